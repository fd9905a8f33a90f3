"""minigrad/interpreters/jvp.py"""

import pytest

import minigrad as mg
from minigrad.interpreters.jvp import JvpInterpreter, push
from minigrad.ops.pointwise import mul
from minigrad.ops.shape import sum_dims
from minigrad.state import level


@pytest.fixture
def me():
    with level(JvpInterpreter()) as interpreter:
        yield interpreter


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device)


def test_a_dual_is_a_primal_with_a_tangent(me, x):
    dual = me.dual(x, x * 3)
    assert (dual.value, dual.note.tolist(), dual.shape) == (x, [3.0, 6.0], (2,))


def test_an_op_pushes_the_tangent(me, x):
    y = me.dual(x, x * 3) * x
    assert (y.value.tolist(), y.note.tolist()) == ([1.0, 4.0], [3.0, 12.0])


def test_an_op_without_a_tangent_rule_gives_a_constant(me, x):
    assert (me.dual(x, x) > 0).owner is None
    assert me.dual(x, x).detach().owner is None


def test_what_is_cast_to_integers_is_a_constant(me, x):
    """As in torch; a gather by it would otherwise be refused."""
    assert me.dual(x, x).to(mg.int64).owner is None
    assert me.dual(x, x).to(mg.float32).note.dtype is mg.float32


def test_a_linear_op_is_its_own_derivative(x):
    out = sum_dims(x, dims=(0,), keepdim=False)
    assert push(sum_dims.op, [x * 2], [x], out, {"dims": (0,), "keepdim": False}).tolist() == 6.0


def test_a_missing_tangent_is_zero(x):
    assert push(mul.op, [None, x], [x, x], x * x, {}).tolist() == [1.0, 4.0]
    assert push(mul.op, [None, None], [x, x], x * x, {}) is None


def test_a_tangent_has_shape_and_type_of_the_output(me, x, device):
    wide = mg.zeros(3, 2, dtype=mg.float64, device=device)
    y = me.dual(x, x) + wide
    assert (y.note.shape, y.note.dtype) == ((3, 2), mg.float64)


def test_in_place_changes_the_tangent_of_the_handle(me, x):
    y = me.dual(x * 1, x * 1)
    y.mul_(3)
    assert (y.value.tolist(), y.note.tolist()) == ([3.0, 6.0], [3.0, 6.0])


def test_writing_a_view_changes_its_part_of_the_tangent(me, x):
    y = me.dual(x * 1, x * 1)
    y[:1].mul_(5)
    assert y.note.tolist() == [5.0, 2.0]


def test_a_constant_that_is_written_to_gets_a_zero_tangent_first(me, x):
    y = mg.zeros_like(x)
    y[1:].add_(me.dual(x, x)[:1])
    assert (y.owner, y.note.tolist()) == (me, [0.0, 1.0])


def test_both_parts_are_parts(me, x):
    dual = me.dual(x, x * 2)
    assert me.parts(dual) == (x, dual.note)
    assert me.describe(dual).startswith(", tangent=")


def test_it_has_no_graph():
    assert JvpInterpreter.transparent
