"""minigrad/interpreters/grad.py"""

import pytest

import minigrad as mg
from minigrad.interpreters.grad import GradInterpreter
from minigrad.state import current, level, using
from minigrad.tensor import LEAF


@pytest.fixture
def me():
    with level(GradInterpreter()) as interpreter:
        yield interpreter


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device)


def test_a_leaf_wraps_what_is_one_storey_down(me, x):
    leaf = me.leaf(x)
    assert (leaf.owner, leaf.value, leaf.node) == (me, x, LEAF)


def test_ints_are_wrapped_without_an_edge(me):
    assert me.leaf(mg.tensor([1])).node is None


def test_an_op_is_recorded_where_an_argument_requires_grad(me, x):
    y = me.leaf(x).sin()
    assert (y.owner, y.node.owner, y.node.name()) == (me, me, "SinBackward0")


def test_an_op_on_constants_of_the_level_is_not(me, x):
    y = me.leaf(x).detach() * 2
    assert y.owner is None


def test_a_result_without_a_derivative_is_not_wrapped(me, x):
    assert (me.leaf(x) > 0).owner is None


def test_nothing_is_recorded_where_the_level_is_off(me, x):
    with using(current()._replace(grad_off=frozenset({me}))):
        assert me.leaf(x).sin().owner is None


def test_level_0_records_below_it(x):
    x.requires_grad_()
    with level(GradInterpreter()) as me:
        y = me.leaf(x).sin()
    assert y.value.grad_fn.owner is None
    assert y.grad_fn.owner is me


def test_several_outputs_share_a_node(me, x):
    v, m = mg.var_mean(me.leaf(x))
    assert (v.node, v.nr, m.nr) == (m.node, 0, 1)


def test_in_place_moves_the_edge(me, x):
    y = me.leaf(x) * 1
    before = y.node
    y.sin_()
    assert y.node is not before
    assert y.value.tolist() == (x * 1).sin().tolist()


def test_a_renewed_wrapper_is_a_leaf_where_it_required_grad(me, x):
    y = me.leaf(x) * 1
    assert me.renew(y)(x).node is LEAF
    assert me.rewrap(y)(x).node is y.node


def test_it_has_a_graph_of_its_own():
    assert not GradInterpreter.transparent
    assert GradInterpreter.readable
