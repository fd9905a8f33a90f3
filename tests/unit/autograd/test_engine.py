"""minigrad/autograd/engine.py"""

import re

import numpy as np
import pytest

import minigrad as mg
from minigrad.autograd import engine
from minigrad.autograd.roots import roots
from minigrad.errors import UsageError
from minigrad.interpreters.grad import GradInterpreter
from minigrad.state import Watcher, current, level, using
from minigrad.tensor import storage_of


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device).requires_grad_()


def run(y, inputs=None, **options):
    return engine.backward(None, roots([y], [None], "test"), inputs=inputs, **options)


def test_cotangents_of_inputs_come_back_in_their_order(x):
    y = mg.ones_like(x).requires_grad_()
    assert [g.tolist() for g in run((x * y).sum(), [y, x])] == [[1.0, 2.0], [1.0, 1.0]]


def test_an_input_that_is_not_reached_gets_none(x):
    other = mg.ones_like(x).requires_grad_()
    assert run(x.sum(), [other]) == [None]


def test_without_inputs_leaves_accumulate(x):
    assert run((x * 3).sum()) == []
    assert x.grad.tolist() == [3.0, 3.0]


def test_with_accumulate_only_the_inputs_do(x):
    other = mg.ones_like(x).requires_grad_()
    run((x * other).sum(), [x], accumulate=True)
    assert (x.grad.tolist(), other.grad) == ([1.0, 1.0], None)


def test_a_gradient_nobody_else_knows_is_taken_over(x):
    heard = []

    class Noting(Watcher):
        __slots__ = ()

        def notice(self, event, owner, subject, detail):
            if event == "op":
                heard.append(subject.name)

    y = (x * 3).sum()
    with using(current()._replace(watchers=(Noting(),))):
        run(y)
    assert heard.count("clone") == (x.device.kind != "cpu")


def test_a_cotangent_the_caller_knows_is_copied(x, device):
    ct = mg.ones(2, device=device)
    engine.backward(None, roots([x], [ct], "test"))
    assert storage_of(x.grad) is not storage_of(ct)


def test_the_run_turns_recording_off_for_its_level(x):
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(None in current().grad_off))
    run(y.sum(), [x])
    run((x * 2).sum(), [x])
    assert seen == [True]


def test_with_create_graph_it_does_not(x):
    (g,) = run((x * x).sum(), [x], create_graph=True)
    assert g.requires_grad


def test_a_run_is_an_object_that_lives_while_it_runs(x):
    seen = []
    y = x * 2
    y.register_hook(lambda g: seen.append(current().run))
    run(y.sum(), [x])
    assert isinstance(seen[0], engine.Run)
    assert current().run is None


def test_graphs_are_released_unless_retained(x):
    y = (x * x).sum()
    run(y, [x], retain_graph=True)
    run(y, [x])
    with pytest.raises(UsageError, match="a second time"):
        run(y, [x])


def test_a_level_gets_cotangents_one_storey_down(x):
    with level(GradInterpreter()) as me:
        leaf = me.leaf(x.detach())
        (g,) = engine.backward(me, roots([(leaf * leaf).sum()], [None], "test"), inputs=[leaf])
    assert g.owner is None
    assert g.tolist() == [2.0, 4.0]


def test_below_is_one_storey_down(x):
    assert engine.below(x).node is None
    with level(GradInterpreter()) as me:
        assert engine.below(me.leaf(x)) is x


HOOKS = {
    "tensor": lambda y, f: y.register_hook(f),
    "leaf": lambda y, f: y.grad_fn.next_functions[0][0].variable.register_hook(f),
    "before a node": lambda y, f: y.grad_fn.register_prehook(lambda cts: (f(cts[0]),)),
    "after a node": lambda y, f: y.grad_fn.register_hook(lambda grads, cts: (f(grads[0]),)),
    "before accumulation": lambda y, f: y.grad_fn.next_functions[0][0].register_prehook(lambda cts: (f(cts[0]),)),
}
OTHERS = {
    "has changed the size of value": lambda g: g[:1],
    "has changed the type of value": lambda g: g.to(mg.float64),
    "expected Variable, but hook returned 'float'": lambda g: 2.0,
}


@pytest.mark.parametrize("message", OTHERS)
@pytest.mark.parametrize("where", HOOKS)
def test_what_a_hook_returns_is_as_what_it_was_given(x, where, message):
    y = x.sin()
    HOOKS[where](y, OTHERS[message])
    with pytest.raises((UsageError, TypeError), match=message):
        run(y.cos().sum())


@pytest.mark.parametrize(("returned", "message"), [
    (lambda g: (g, g), "has returned an incorrect number of values (got 2, but expected 1)"),
    (lambda g: g, "expected tuple, but hook returned 'Tensor'")])
def test_a_hook_of_a_node_returns_one_value_for_each_it_was_given(x, returned, message):
    y = x.sin()
    y.grad_fn.register_prehook(lambda cts: returned(cts[0]))
    with pytest.raises((UsageError, TypeError), match=re.escape(message)):
        run(y.cos().sum())


def test_a_numpy_number_is_as_weak_in_a_gradient_as_in_the_op(x):
    run((x * np.float64(2)).sum())
    assert x.grad.dtype is mg.float32


def test_nodes_run_the_youngest_first(x):
    order = []
    a = x.sin()
    b = a.cos()
    c = a * 2
    for name, y in (("a", a), ("b", b), ("c", c)):
        y.grad_fn.register_prehook(lambda cts, name=name: order.append(name))
    run((b + c).sum(), [x])
    assert order == ["c", "b", "a"]
