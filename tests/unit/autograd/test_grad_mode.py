"""minigrad/autograd/grad_mode.py"""

import pytest

import minigrad as mg
from minigrad.autograd.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from minigrad.interpreters.grad import GradInterpreter
from minigrad.interpreters.vmap import VmapInterpreter
from minigrad.state import current, level, using


def test_no_grad_turns_off_every_level_on_the_stack():
    with level(GradInterpreter()) as me, no_grad():
        assert current().grad_off == {None, me}


def test_a_level_entered_inside_no_grad_records():
    with no_grad(), level(GradInterpreter()):
        assert is_grad_enabled()


def test_enable_grad_turns_on_the_innermost_grad_level():
    with level(GradInterpreter()), no_grad():
        assert not is_grad_enabled()
        with enable_grad():
            assert is_grad_enabled()


def test_enable_grad_leaves_the_levels_below_as_that_level_found_them():
    with no_grad(), level(GradInterpreter()), no_grad(), enable_grad():
        assert current().grad_off == {None}


def test_levels_without_a_graph_are_passed_over():
    with level(VmapInterpreter(2, "error")), no_grad():
        assert not is_grad_enabled()
        with enable_grad():
            assert is_grad_enabled()


def test_a_context_can_be_entered_again_while_it_is_in_force():
    mode = no_grad()
    with mode:
        with mode:
            assert not is_grad_enabled()
        assert not is_grad_enabled()
    assert is_grad_enabled()


@pytest.mark.parametrize("decorator", [no_grad, no_grad()])
def test_a_decorator_with_or_without_parentheses(decorator):
    @decorator
    def f(a):
        """Say it."""
        return a, is_grad_enabled()

    assert f(1) == (1, False)
    assert f.__doc__ == "Say it."


def test_set_grad_enabled_takes_effect_when_it_is_made():
    with using(current()):
        set_grad_enabled(False)
        assert not is_grad_enabled()


def test_set_grad_enabled_as_a_decorator_has_no_effect_outside():
    @set_grad_enabled(False)
    def f():
        return is_grad_enabled()

    assert is_grad_enabled()
    assert not f()


def test_an_op_under_no_grad_has_no_node():
    x = mg.tensor([1.0]).requires_grad_()
    with no_grad():
        assert not (x * 2).requires_grad
