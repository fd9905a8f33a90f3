"""minigrad/ops/batching.py"""

import pytest

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import vmap
from minigrad.ops.batching import along_dim, elementwise, over_dims, physical, rank, to_front, with_batch_shape
from minigrad.ops.pointwise import add_row, sin
from minigrad.ops.scan import _cumsum
from minigrad.ops.shape import sum_dims, view_row


@pytest.fixture
def x(device):
    return mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)


def test_to_front_moves_the_batch(x):
    assert to_front(x, 1).shape == (3, 2)
    assert to_front(x, 0) is x


def test_to_front_expands_what_is_no_batch_where_it_is_told_to(x):
    assert to_front(x, None) is x
    assert to_front(x, None, 4).shape == (4, 2, 3)


def test_rank_counts_logical_dimensions(x):
    assert (rank(x, 0), rank(x, None), rank(2.0, None)) == (1, 2, 0)


def test_dims_at_or_after_the_batch_are_one_further_on():
    assert [physical(d, 1) for d in range(3)] == [0, 2, 3]


def test_an_elementwise_op_leaves_a_single_batch_where_it_is(x):
    out, bdim = elementwise(sin.op, 3, [x], [1], {})
    assert (out.shape, bdim) == ((2, 3), 1)


def test_operands_line_up_by_logical_dimensions(x, device):
    y = mg.ones(4, 3, device=device)
    out, bdim = elementwise(add_row.op, 2, [x, y], [0, None], {})
    assert (out.shape, bdim) == ((2, 4, 3), 0)


def test_a_batch_of_scalars_is_weak(device):
    scalars = mg.ones(2, dtype=mg.float64, device=device)
    x = mg.ones(3, device=device)
    out, _ = elementwise(add_row.op, 2, [scalars, x], [0, None], {})
    assert (out.dtype, out.shape) == (mg.float32, (2, 3))


def test_a_reduction_goes_over_logical_dims(x):
    out, bdim = over_dims(sum_dims.op, 2, [x], [0], {"dims": (0,), "keepdim": False})
    assert (out.tolist(), bdim) == ([6.0, 15.0], 0)
    out, bdim = over_dims(sum_dims.op, 3, [x], [1], {"dims": (0,), "keepdim": False})
    assert (out.tolist(), bdim) == ([5.0, 7.0, 9.0], 0)


def test_along_dim_goes_one_up(x):
    out, bdim = along_dim(_cumsum.op, 2, [x], [0], {"dim": 0, "reverse": False})
    assert (out.tolist(), bdim) == ([[1.0, 3.0, 6.0], [4.0, 9.0, 15.0]], 0)


def test_a_shape_gets_the_batch_in_front(x):
    out, bdim = with_batch_shape(view_row.op, 2, [x], [0], {"shape": (3, 1)})
    assert (out.shape, bdim) == ((2, 3, 1), 0)


@pytest.mark.parametrize("mask", [[True, False], [[True, False], [False, True]]])
def test_a_batch_of_bools_is_refused_where_one_of_them_is(mask):
    x = mg.ones(2, 2)
    with pytest.raises(UsageError, match="Subtraction, the `-` operator, with a bool tensor is not supported"):
        vmap(mg.sub)(x, mg.tensor(mask))
