"""minigrad/state.py"""

import threading

import pytest

from minigrad import state
from minigrad.autograd.grad_mode import no_grad
from minigrad.errors import UsageError
from minigrad.interpreters.base import Interpreter
from minigrad.state import State, Watcher, below, current, level, show, tell, using, watched


def test_a_state_cannot_be_set():
    with pytest.raises(AttributeError, match="put another in force"):
        current().hooks = None


def test_replace_makes_another_state_and_leaves_this_one():
    before = State()
    after = before._replace(strict_levels=True)
    assert (before.strict_levels, after.strict_levels) == (False, True)


def test_replace_keeps_all_other_fields():
    before = State()._replace(hooks_disabled="no", early_stop=False)
    after = before._replace(strict_levels=True)
    assert (after.hooks_disabled, after.early_stop) == ("no", False)


def test_every_field_has_a_default_and_a_text():
    assert set(vars(State())) == set(State.__annotations__)


def test_using_puts_back_the_old_object():
    before = current()
    with using(before._replace(strict_levels=True)) as inside:
        assert current() is inside
    assert current() is before


def test_using_puts_it_back_after_an_error():
    before = current()
    with pytest.raises(KeyError), using(before._replace(strict_levels=True)):
        raise KeyError
    assert current() is before


def test_a_level_is_on_top_within_its_block():
    with level(Interpreter()) as a, level(Interpreter()) as b:
        assert current().levels == (a, b)
    assert current().levels == ()


def test_levels_are_numbered_from_one():
    with level(Interpreter()) as a, level(Interpreter()) as b:
        assert (a.number, b.number) == (1, 2)


def test_a_level_knows_the_grad_mode_outside():
    with using(current()._replace(grad_off=frozenset({None}))), level(Interpreter()) as me:
        assert me.grad_off_outside == {None}


def test_below_is_the_state_one_storey_down():
    with level(Interpreter()) as a, level(Interpreter()) as b:
        assert below(b).levels == (a,)
        assert below(a).levels == ()


def test_show_draws_the_stack_bottom_first():
    assert show() == "base"
    with level(Interpreter()), level(Interpreter()):
        assert show() == "base < level@1 < level@2"


def test_show_takes_a_state():
    with level(Interpreter()):
        inside = current()
    assert show(inside) == "base < level@1"
    assert show() == "base"


def test_a_state_with_watchers_is_known_to_all_threads_while_it_lives():
    assert not watched
    with using(current()._replace(watchers=(Watcher(),))):
        assert len(watched) == 1
    assert not watched


def test_tell_tells_every_watcher():
    class Noting(Watcher):
        def __init__(self):
            self.heard = []

        def notice(self, *event):
            self.heard.append(event)

    both = Noting(), Noting()
    tell(both, "op", None, "subject", "detail")
    assert both[0].heard == both[1].heard == [("op", None, "subject", "detail")]


def test_a_watcher_does_nothing_by_itself():
    assert Watcher().notice("op", None, None, None) is None


def test_another_thread_has_the_default_state():
    found = []
    with using(current()._replace(strict_levels=True)):
        thread = threading.Thread(target=lambda: found.append(current().strict_levels))
        thread.start()
        thread.join()
    assert found == [False]


def test_the_default_dtype_is_a_field():
    from minigrad import float32, float64
    with using(current()):
        state.set_default_dtype(float64)
        assert state.get_default_dtype() is float64
    assert state.get_default_dtype() is float32


def test_an_entry_that_was_never_left_is_forgotten_with_the_block_it_was_made_in():
    context, before = no_grad(), current()
    with context:
        inside = current()
        with using(inside._replace(early_stop=True)):
            context.__enter__()
        assert current() is inside
    assert current() is before


def test_a_context_that_is_left_more_often_than_it_was_entered_is_an_error():
    context, before = no_grad(), current()
    with context:
        pass
    with pytest.raises(UsageError, match="no_grad is left more often than it was entered"):
        context.__exit__()
    assert current() is before
