"""Products of vectors and matrices: a row for each rank, then `matmul`, `einsum` and `tensordot`, composed of them.

A product of batches is one product of arrays, whichever side is batched:

    left     (.., B n, k) @ (.., k, m)         the batch joins the rows of the left matrix
    right    (.., n, k) @ (.., k, B m)         or the columns of the right one
    both     (B, .., n, k) @ (B, .., k, m)     the matrices get one more dimension
"""

from __future__ import annotations

from math import prod
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor, bottom
from .batching import Batched, Bdims, Params, Values, aligned, elementwise, to_front
from .elimination import dagger
from .indexing import one_value
from .pointwise import add_row, conj
from .reduction import sum as sum_over
from .shape import (
    diagonal,
    movedim,
    normal_dim,
    permute,
    reshape,
    squeeze,
    sum_dims,
    sum_to,
    t,
    transpose,
    unsqueeze,
    view_row,
    widened,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Array
    from ..op import Op

VECTOR, MATRIX = 1, 2


def adjoint(x: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions, a view where x is real.  Source: torch.adjoint."""
    return conj(transpose(x, -2, -1))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- rows of matrices: mm of two dimensions, bmm of more
def _plain(xp: Any, x0: Array, x1: Array) -> Array:
    # a sum of one term: BLAS takes several times as long for an outer product
    return xp.multiply(x0, x1) if x0.shape[-1] == 1 else xp.matmul(x0, x1)


class Products(NamedTuple):
    """The rows of x y, of x yᴴ and of xᴴ y, which are each other's derivatives: nothing has to be transposed for them."""

    plain: OpFunction
    right: OpFunction
    left: OpFunction


def _products(name: str) -> Products:
    def made(suffix: str, kernel: Any, x_axis: int, y_axis: int, vjp: Any) -> OpFunction:
        call: OpFunction = row(name + suffix, kernel, arity=2, saves=("x1", "x0"), node=f"{name.capitalize()}Backward0",
                               batch=_product_batch(x_axis, y_axis, ("", "_right", "_left").index(suffix)), vjp=vjp,
                               jvp=(lambda dx, x1: call(dx, x1), lambda dx, x0: call(x0, dx)))
        return call

    plain: OpFunction = made("", _plain, -2, -1, (lambda ct, x1: right(ct, x1), lambda ct, x0: left(x0, ct)))
    right: OpFunction = made("_right", lambda xp, x0, x1: _plain(xp, x0, dagger(x1)), -2, -2,
                             (lambda ct, x1: plain(ct, x1), lambda ct, x0: left(ct, x0)))
    left: OpFunction = made("_left", lambda xp, x0, x1: _plain(xp, dagger(x0), x1), -1, -1,
                            (lambda ct, x1: right(x1, ct), lambda ct, x0: plain(x0, ct)))
    return Products(plain, right, left)


def _product_batch(x_axis: int, y_axis: int, kind: int) -> Callable[..., Batched]:
    """The rule of a product whose result has the dimensions x_axis of x and y_axis of y: a batch joins the one it is in."""
    def batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
        (x, y), (bx, by) = values, bdims
        if bx is not None and by is not None:
            return bmm_rows[kind](to_front(x, bx), to_front(y, by)), 0
        if bx is not None:
            rows, n = _joined(x, bx, x_axis)
            out = op.call(rows, y)
            return view_row(out, shape=(*out.shape[:-2], size, n, out.shape[-1])), out.ndim - 2
        columns, n = _joined(y, by, y_axis)
        out = op.call(x, columns)
        return view_row(out, shape=(*out.shape[:-1], size, n)), out.ndim - 1
    return batch


def _joined(x: Tensor, bdim: int | None, axis: int) -> tuple[Tensor, int]:
    """The batch and the logical dimension `axis` (-1 or -2) as one; and the extent that dimension had."""
    assert bdim is not None
    at = x.ndim + axis
    if bdim != at - 1:
        x = movedim(x, bdim, at - 1)
    shape = x.shape
    return view_row(x, shape=(*shape[:at - 1], shape[at - 1] * shape[at], *shape[at + 1:])), shape[at]


mm_rows, bmm_rows = _products("mm"), _products("bmm")


def _times(x: Tensor, factor: Any) -> Tensor:
    return x if factor == 1 else x * factor


def _fused_kernel(xp: Any, x0: Any, x1: Any, x2: Any, beta: Any, alpha: Any) -> Any:
    out = _plain(xp, x1, x2)
    if out.dtype.kind in "iu":
        beta, alpha = int(beta), int(alpha)
    if alpha != 1:
        out *= alpha
    if beta != 0:
        out += x0 if beta == 1 else beta * x0
    return out


def _fused(name: str, rows: Products) -> OpFunction:
    """The row of beta x0 + alpha x1 @ x2."""
    def batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
        (x, *ab), (bx, *bab) = values, bdims
        out, bdim = (rows.plain(*ab), None) if bab == [None, None] else rows.plain.op.batch(rows.plain.op, size, ab, bab, {})
        if params["beta"] == 0:
            return _times(out, params["alpha"]), bdim
        return elementwise(add_row.op, size, [_times(x, params["beta"]), _times(out, params["alpha"])], [bx, bdim], {})

    return row(name, _fused_kernel, saves=("x1", "x2"), fits=True, batch=batch,
               vjp=(lambda ct, beta: _times(ct, conj(beta)),
                    lambda ct, x2, alpha: _times(rows.right(ct, x2), conj(alpha)),
                    lambda ct, x1, alpha: _times(rows.left(x1, ct), conj(alpha))),
               jvp=(lambda dx, beta: _times(dx, beta),
                    lambda dx, x2, alpha: _times(rows.plain(dx, x2), alpha),
                    lambda dx, x1, alpha: _times(rows.plain(x1, dx), alpha)))


_addmm, _baddbmm = _fused("addmm", mm_rows), _fused("baddbmm", bmm_rows)


# ---------------------------------------------------------------- rows of vectors
def _vector_batch(axis: int, samples: OpFunction, both: OpFunction) -> Callable[..., Batched]:
    """The rule of a product of a matrix, whose dimension `axis` the result has, and a vector.

    It becomes the row `samples` for a batch of vectors, `both` for a batch of each.
    """
    def batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
        (a, v), (ba, bv) = values, bdims
        if bv is None:
            joined, n = _joined(a, ba, axis)
            return view_row(op.call(joined, v), shape=(size, n)), 0
        if ba is None:
            return samples(to_front(v, bv), conj(a)), 0
        return squeeze(both(to_front(a, ba), unsqueeze(to_front(v, bv), 2)), 2), 0
    return batch


def _last(x: Tensor) -> Tensor:
    return sum_dims(x, dims=(x.ndim - 1,), keepdim=False)  # type: ignore[no-any-return]


_outer: OpFunction = row("outer", lambda xp, x0, x1: x0[..., None] * x1[..., None, :], saves=("x1", "x0"), fits=True,
                         batch=aligned,
                         vjp=(lambda ct, x1: _last(ct * unsqueeze(conj(x1), -2)),
                              lambda ct, x0: _last(transpose(ct, -2, -1) * unsqueeze(conj(x0), -2))),
                         jvp=(lambda dx, x1: _outer(dx, x1), lambda dx, x0: _outer(x0, dx)))

_mv: OpFunction = row("mv", "matmul", arity=2, saves=("x0", "x1"), batch=_vector_batch(-2, mm_rows.right, bmm_rows.plain),
                      vjp=(lambda ct, x1: _outer(ct, conj(x1)), lambda ct, x0: _mv_left(x0, ct)),
                      jvp=(lambda dx, x1: _mv(dx, x1), lambda dx, x0: _mv(x0, dx)))

_mv_left: OpFunction = row("mv_left", lambda xp, x0, x1: xp.matmul(dagger(x0), x1), arity=2, saves=("x0", "x1"),
                           batch=_vector_batch(-1, mm_rows.plain, bmm_rows.left), node="MvBackward0",
                           vjp=(lambda ct, x1: _outer(x1, conj(ct)), lambda ct, x0: _mv(x0, ct)),
                           jvp=(lambda dx, x1: _mv_left(dx, x1), lambda dx, x0: _mv_left(x0, dx)))


def product_to(x: Tensor, y: Any, shape: tuple[int, ...]) -> Tensor:
    """sum_to(x * y, shape), for y that broadcasts to x: where y lies along all that is summed and nothing else, one mv."""
    rank = x.ndim
    summed = [d for d, n in enumerate((1,) * (rank - len(shape)) + shape) if n != x.shape[d]]
    if summed and isinstance(y, Tensor) and summed == [d + rank - y.ndim for d, n in enumerate(y.shape) if n != 1]:
        kept, n = prod(shape), y.numel()
        vector = view_row(y, shape=(n,))
        if summed[0] == rank - len(summed):
            return view_row(_mv(view_row(x, shape=(kept, n)), vector), shape=shape)  # type: ignore[no-any-return]
        if summed[-1] == len(summed) - 1:
            return view_row(_mv(t(view_row(x, shape=(n, kept))), vector), shape=shape)  # type: ignore[no-any-return]
    return sum_to(x * y, shape)


def _dot_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    (x, y), (bx, by) = values, bdims
    if by is None:
        return _mv(to_front(x, bx), y), 0
    if bx is None:
        return _mv(to_front(y, by), x), 0
    return reshape(bmm_rows.plain(unsqueeze(to_front(x, bx), 1), unsqueeze(to_front(y, by), 2)), size), 0


_dot: OpFunction = row("dot", "dot", arity=2, saves=("x0", "x1"), batch=_dot_batch,
                       vjp=(lambda ct, x1: ct * conj(x1), lambda ct, x0: ct * conj(x0)),
                       jvp=(lambda dx, x1: _dot(dx, x1), lambda dx, x0: _dot(x0, dx)))


def _vdot_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    return _dot_batch(op, size, [conj(values[0]), values[1]], bdims, params)


_vdot: OpFunction = row("vdot", "vdot", arity=2, saves=("x1", "x0"), batch=_vdot_batch,
                        vjp=(lambda ct, x1: conj(ct) * x1, lambda ct, x0: ct * x0),
                        jvp=(lambda dx, x1: _vdot(dx, x1), lambda dx, x0: _vdot(x0, dx)))


# ---------------------------------------------------------------- the public names of the rows
def _check(name: str, x: Tensor, y: Tensor, ranks: tuple[int, int]) -> None:
    for a in (x, y):
        if not isinstance(a, Tensor):
            msg = f"{name}(): argument must be Tensor, not {type(a).__name__}"
            raise TypeError(msg)
    if (x.ndim, y.ndim) != ranks:
        msg = f"{name}: {ranks[0]}D and {ranks[1]}D tensors expected, but got {x.ndim}D and {y.ndim}D tensors"
        raise UsageError(msg)
    if x.dtype is not y.dtype:
        msg = f"{name}: expected both tensors to have the same dtype, but got: {x.dtype} != {y.dtype}"
        raise UsageError(msg)


def _extents(x: Tensor) -> str:
    return "x".join(map(str, x.shape))


def _check_mm(name: str, x: Tensor, y: Tensor) -> None:
    _check(name, x, y, (MATRIX, MATRIX))
    if x.shape[1] != y.shape[0]:
        msg = f"mat1 and mat2 shapes cannot be multiplied ({_extents(x)} and {_extents(y)})"
        raise UsageError(msg)


def _check_bmm(name: str, x: Tensor, y: Tensor) -> None:
    _check(name, x, y, (3, 3))
    if (x.shape[0], x.shape[2]) != y.shape[:2]:
        msg = (f"Expected size for first two dimensions of batch2 tensor to be: [{x.shape[0]}, {x.shape[2]}] but got: "
               f"{list(y.shape[:2])}.")
        raise UsageError(msg)


def mm(x: Tensor, y: Tensor) -> Tensor:
    """The product of two matrices of one dtype.  Source: torch.mm."""
    _check_mm("mm", x, y)
    return mm_rows.plain(x, y)  # type: ignore[no-any-return]


def bmm(x: Tensor, y: Tensor) -> Tensor:
    """The products of the matrices of two batches, (b, n, k) and (b, k, m).  Source: torch.bmm."""
    _check_bmm("bmm", x, y)
    return bmm_rows.plain(x, y)  # type: ignore[no-any-return]


def mv(x: Tensor, y: Tensor) -> Tensor:
    """The product of a matrix and a vector.  Source: torch.mv."""
    _check("mv", x, y, (MATRIX, VECTOR))
    if x.shape[1] != y.shape[0]:
        msg = f"size mismatch, got input ({x.shape[0]}), mat ({_extents(x)}), vec ({y.shape[0]})"
        raise UsageError(msg)
    return _mv(x, y)  # type: ignore[no-any-return]


def _check_vectors(name: str, x: Tensor, y: Tensor) -> None:
    _check(name, x, y, (VECTOR, VECTOR))
    if x.shape != y.shape:
        msg = (f"inconsistent tensor size, expected tensor {list(x.shape)} and src {list(y.shape)} to have the same number of "
               f"elements, but got {x.shape[0]} and {y.shape[0]} elements respectively")
        raise UsageError(msg)


def dot(x: Tensor, y: Tensor) -> Tensor:
    """The sum of the products of two vectors' elements, nothing conjugated.  Source: torch.dot."""
    _check_vectors("dot", x, y)
    return _dot(x, y)  # type: ignore[no-any-return]


def vdot(x: Tensor, y: Tensor) -> Tensor:
    """The dot product of conj(x) and y.  Source: torch.vdot."""
    _check_vectors("vdot", x, y)
    return _vdot(x, y)  # type: ignore[no-any-return]


def outer(x: Tensor, y: Tensor) -> Tensor:
    """The products of every element of one vector with every one of another.  Source: torch.outer."""
    for name, a in (("self", x), ("vec2", y)):
        if a.ndim != VECTOR:
            msg = f"outer: Expected 1-D argument {name}, but got {a.ndim}-D"
            raise UsageError(msg)
    return unsqueeze(x, 1) * y


def addmm(x: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta x + alpha mat1 @ mat2; x broadcasts to the product's shape, and is not read where beta is 0.

    Source: torch.addmm.
    """
    _check_mm("addmm", mat1, mat2)
    _check_added("addmm", x, mat1, mat2.shape[-1])
    return _addmm(x, mat1, mat2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


def baddbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """Return beta x + alpha bmm(batch1, batch2); x broadcasts to the product's shape, and is not read where beta is 0.

    Source: torch.baddbmm.
    """
    _check_bmm("baddbmm", batch1, batch2)
    _check_added("baddbmm", x, batch1, batch2.shape[-1])
    return _baddbmm(x, batch1, batch2, beta=beta, alpha=alpha)  # type: ignore[no-any-return]


def _check_added(name: str, x: Tensor, left: Tensor, columns: int) -> None:
    if x.dtype is not left.dtype:
        msg = f"{name}: self and mat2 must have the same dtype, but got {x.dtype} and {left.dtype}"
        raise UsageError(msg)
    wanted = (*left.shape[:-1], columns)
    if x.shape != wanted[-1:] and x.shape != wanted:
        widened(x, wanted)  # which says what is wrong


# ---------------------------------------------------------------- matmul: which row torch would call
def matmul(x: Tensor, y: Tensor) -> Tensor:
    """The product of vectors, matrices, or batches of matrices that broadcast.

    A vector is a row on the left, a column on the right, and is no dimension of the result.  Folds into one mm or mv, or
    goes to bmm, where torch does, so that it saves what torch saves.  Source: torch.matmul.
    """
    if not isinstance(y, Tensor):
        msg = f"matmul(): argument 'other' must be Tensor, not {type(y).__name__}"
        raise TypeError(msg)
    ranks = x.ndim, y.ndim
    if ranks == (MATRIX, MATRIX):
        return mm(x, y)
    if ranks == (VECTOR, MATRIX):
        return _vector_matrix(x, y)
    if ranks == (MATRIX, VECTOR):
        return mv(x, y)
    if ranks == (VECTOR, VECTOR):
        return dot(x, y)
    if 0 in ranks:
        msg = f"both arguments to matmul need to be at least 1D, but they are {ranks[0]}D and {ranks[1]}D"
        raise UsageError(msg)
    if min(ranks) > MATRIX or not _folds(x, y):
        return _matmul_batches(x, y)
    if x.ndim > y.ndim:
        return _matmul_rows(x, y)
    if x.ndim == MATRIX:
        return transpose(_matmul_rows(transpose(y, -2, -1), t(x)), -2, -1)
    return _matmul_rows(transpose(y, -2, -1), x)


def _vector_matrix(x: Tensor, y: Tensor) -> Tensor:
    """As torch, mm of one row; above level 0, where torch has no hooks to show what it saves, without that row's views."""
    if (x.owner is None and y.owner is None) or x.shape[0] != y.shape[0] or x.dtype is not y.dtype:
        return view_row(mm(view_row(x, shape=(1, x.shape[0])), y), shape=(y.shape[1],))  # type: ignore[no-any-return]
    return _mv_left(conj(y), x)  # type: ignore[no-any-return]


def _folds(x: Tensor, y: Tensor) -> bool:
    """Whether the batch of the one becomes rows, that the other, a matrix or vector, is multiplied with.

    It does where no copy is needed, and where the other's gradient would be a sum over the batch.
    Source: should_fold in aten/src/ATen/native/LinearAlgebra.cpp.
    """
    large, small = (x, y) if x.ndim > y.ndim else (transpose(y, -2, -1), x)
    return small.requires_grad or (x.ndim != MATRIX and _rows_in_order(large))


def _array(x: Tensor) -> Any:
    """The array at the bottom, for a look at its layout; None under vmap, where that is nobody's business."""
    return bottom(x).value if one_value(x) else None


def _rows_in_order(x: Tensor) -> bool:
    """Whether all dimensions but the last may become one without a copy."""
    array = _array(x)
    if array is None or 0 in array.shape:
        return True
    shape, strides = array.shape, array.strides
    return all(strides[i] == strides[i + 1] * shape[i + 1] for i in range(len(shape) - 2))


def _matmul_rows(x: Tensor, y: Tensor) -> Tensor:
    rows = reshape(x, prod(x.shape[:-1]), x.shape[-1])
    if y.ndim == VECTOR:
        return reshape(mv(rows, y), x.shape[:-1])
    return reshape(mm(rows, y), *x.shape[:-1], y.shape[1])


def _matmul_batches(x: Tensor, y: Tensor) -> Tensor:
    if x.ndim == y.ndim == 3 and x.shape[0] != y.shape[0]:
        if x.shape[0] == 1 and x.requires_grad:
            return matmul(squeeze(x, 0), y)
        if y.shape[0] == 1 and y.requires_grad:
            return matmul(x, squeeze(y, 0))
    batch = broadcast_shapes(x.shape[:-2], y.shape[:-2])
    rows = (x.shape[-2],) if x.ndim > VECTOR else ()
    columns = (y.shape[-1],) if y.ndim > VECTOR else ()
    left = reshape(widened(x, *batch, *(rows or (1,)), x.shape[-1]), prod(batch), *(rows or (1,)), x.shape[-1])
    if columns:
        right = reshape(widened(y, *batch, *y.shape[-2:]), prod(batch), *y.shape[-2:])
    else:
        right = unsqueeze(reshape(widened(y, *batch, *y.shape), prod(batch), *y.shape), 2)
    return reshape(bmm(left, right), *batch, *rows, *columns)


def broadcast_shapes(*shapes: tuple[int, ...] | int) -> tuple[int, ...]:
    """The shape that all of these broadcast to.  Raises UsageError where they do not.  Source: torch.broadcast_shapes."""
    given = [(shape,) if isinstance(shape, int) else shape for shape in shapes]
    rank = max(map(len, given), default=0)
    common = [1] * rank
    for shape in given:
        for i, n in enumerate(shape, rank - len(shape)):
            if n not in (1, common[i]):
                if common[i] != 1:
                    msg = (f"The size of tensor a ({common[i]}) must match the size of tensor b ({n}) at non-singleton "
                           f"dimension {i}")
                    raise UsageError(msg)
                common[i] = n
    return tuple(common)


# ---------------------------------------------------------------- contractions
def tensordot(x: Tensor, y: Tensor, dims: Any = 2) -> Tensor:
    """The sum of products over pairs of dimensions: the last `dims` of x with the first of y, or two lists of them.

    Source: torch.tensordot.
    """
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0 or dims > min(x.ndim, y.ndim):
            msg = f"tensordot expects dims >= 0 and at most the number of dimensions, but got dims={dims}"
            raise UsageError(msg)
        dims = range(x.ndim - dims, x.ndim), range(dims)
    left, right = ((d,) if isinstance(d, int) else tuple(d) for d in dims)
    if len(left) != len(right):
        msg = "both dimension lists should have same length"
        raise UsageError(msg)
    left, right = tuple(normal_dim(d, x.ndim) for d in left), tuple(normal_dim(d, y.ndim) for d in right)
    for i, j in zip(left, right, strict=True):
        if x.shape[i] != y.shape[j]:
            if 1 not in (x.shape[i], y.shape[j]):
                msg = (f"contracted dimensions need to match, but first has size {x.shape[i]} in dim {i} and second has size "
                       f"{y.shape[j]} in dim {j}")
                raise UsageError(msg)
            narrow = y.shape[j] == 1
            x, y = ((sum_over(x, i, keepdim=True, dtype=x.dtype), y) if narrow else
                    (x, sum_over(y, j, keepdim=True, dtype=y.dtype)))
    rows, columns = [i for i in range(x.ndim) if i not in left], [j for j in range(y.ndim) if j not in right]
    n, k, m = prod(x.shape[i] for i in rows), prod(x.shape[i] for i in left), prod(y.shape[j] for j in columns)
    x, y = permute(x, *rows, *left), permute(y, *right, *columns)
    extents = (*x.shape[:len(rows)], *y.shape[len(right):])
    if n == m == 1:  # one number, as torch computes it
        in_order = all((a := _array(v)) is None or a.flags.c_contiguous for v in (x, y))
        found = dot(reshape(x, k), reshape(y, k)) if in_order else sum_over(squeeze(x) * squeeze(y), dtype=x.dtype)
        return reshape(found, extents)
    return reshape(mm(reshape(x, n, k), reshape(y, k, m)), extents)


def kron(x: Tensor, y: Tensor) -> Tensor:
    """The Kronecker product.  Source: torch.kron."""
    rank = max(x.ndim, y.ndim)
    a, b = (1,) * (rank - x.ndim) + x.shape, (1,) * (rank - y.ndim) + y.shape
    pairs = reshape(x, *[n for i in a for n in (i, 1)]) * reshape(y, *[n for i in b for n in (1, i)])
    return reshape(pairs, *[i * j for i, j in zip(a, b, strict=True)])


Label = str | int


def einsum(equation: Any, *operands: Any) -> Tensor:
    """The sum of products that the subscripts name, as in "bij,bjk->bik"; or after each operand a list of numbers names them.

    "..." stands for dimensions that broadcast; a subscript repeated within an operand takes a diagonal; without "->" the
    result has "...", then the subscripts seen once, in order.  Operands are multiplied from left to right, each pair by
    one bmm.  Raises UsageError where subscripts and shapes disagree.  Source: torch.einsum.
    """
    if isinstance(equation, Tensor):
        equation, operands = _spelled((equation, *operands))
    if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
        operands = tuple(operands[0])
    inputs, result = _subscripts(equation, operands)
    others = {s for labels in inputs for s in labels}.difference(result)
    order = [*result, *sorted(others, key=lambda s: (isinstance(s, str), s))]
    aligned = [_aligned(x, labels, order) for x, labels in zip(operands, inputs, strict=True)]
    _check_extents(aligned, order)
    product, *rest = aligned
    if not rest:
        return sum_over(product, tuple(range(len(result), len(order)))) if others else product
    for i, x in enumerate(rest):
        last = [d for d in range(len(result), len(order)) if all(later.shape[d] == 1 for later in rest[i + 1:])]
        product = _contracted(product, x, last)
    return reshape(product, product.shape[:len(result)])


def _spelled(args: tuple[Any, ...]) -> tuple[str, tuple[Tensor, ...]]:
    """The equation, and the operands, of operands that are each followed by numbers; more numbers name the result."""
    names = [_letters(numbers) for numbers in args[1::2]]
    equation = ",".join(names)
    return (equation, args[::2]) if len(args) % 2 == 0 else (f"{equation}->{_letters(args[-1])}", args[:-1:2])


_NAMES = ascii_uppercase + ascii_lowercase


def _letters(numbers: Sequence[Any]) -> str:
    if any(n is not Ellipsis and not 0 <= n < len(_NAMES) for n in numbers):
        msg = f"einsum(): subscript in subscript list is not within the valid range [0, {len(_NAMES)})"
        raise ValueError(msg)
    return "".join("..." if n is Ellipsis else _NAMES[n] for n in numbers)


def _subscripts(equation: str, operands: tuple[Tensor, ...]) -> tuple[list[list[Label]], list[Label]]:
    """Labels of the operands' dimensions and of the result's: letters, and negative numbers for what "..." covers."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        msg = (f"einsum(): {'fewer' if len(operands) < len(terms) else 'more'} operands were provided than specified in the "
               "equation")
        raise UsageError(msg)
    inputs = [_labels(term, x.ndim, f"operand {i}") for i, (term, x) in enumerate(zip(terms, operands, strict=True))]
    seen = [s for labels in inputs for s in labels]
    dots = range(min([s for s in seen if isinstance(s, int)], default=0), 0)
    if not arrow:
        return inputs, [*dots, *sorted(s for s in seen if isinstance(s, str) and seen.count(s) == 1)]
    result = _labels(right, len(right.replace("...", "")) + len(dots) * ("..." in right), "the output")
    for s in result:
        if s not in seen or result.count(s) > 1:
            what = "does not appear in the equation for any input operand" if s not in seen else \
                "appears more than once in the output"
            msg = f"einsum(): output subscript {s} {what}"
            raise UsageError(msg)
    return inputs, result


def _labels(term: str, rank: int, what: str) -> list[Label]:
    head, dots, tail = term.partition("...")
    names = head + tail
    for c in names:
        if not (c.isascii() and c.isalpha()):
            msg = f"einsum(): invalid subscript {c!r} in the equation string for {what}, subscripts must be in [a-zA-Z]"
            raise UsageError(msg)
    covered = rank - len(names)
    if covered < 0 or (covered and not dots):
        msg = (f"einsum(): the number of subscripts in the equation ({len(names)}) "
               f"{'is more than' if dots else 'does not match'} the number of dimensions ({rank}) for {what}"
               f"{'' if dots else ' and no ellipsis was given'}")
        raise UsageError(msg)
    return [*head, *range(-covered, 0), *tail]


def _aligned(x: Tensor, labels: list[Label], order: list[Label]) -> Tensor:
    """A view with one dimension for each label in `order`, of extent 1 where `x` has no such label."""
    own: list[Label] = []
    for s in labels:
        if s not in own:
            own.append(s)
            continue
        first, again = own.index(s), len(own)
        if x.shape[first] != x.shape[again]:
            msg = (f"einsum(): subscript {s} is repeated for an operand but the sizes don't match, {x.shape[again]} != "
                   f"{x.shape[first]}")
            raise UsageError(msg)
        x = movedim(diagonal(x, 0, first, again), -1, first)
    extents = [x.shape[own.index(s)] if s in own else 1 for s in order]
    return reshape(permute(x, *[own.index(s) for s in order if s in own]), *extents)


def _check_extents(aligned: list[Tensor], order: list[Label]) -> None:
    for d, s in enumerate(order):
        known = 1
        for i, x in enumerate(aligned):
            n = x.shape[d]
            if n not in (1, known) and known != 1:
                what = "a dimension covered by ..." if isinstance(s, int) else f"subscript {s}"
                msg = (f"einsum(): {what} has size {n} for operand {i} which does not broadcast with previously seen size "
                       f"{known}")
                raise UsageError(msg)
            known = n if known == 1 else known


def _contracted(x: Tensor, y: Tensor, dims: list[int]) -> Tensor:
    """The product of two aligned tensors summed over `dims`, which keep the extent 1.

    Source: sumproduct_pair in aten/src/ATen/native/Linear.cpp.
    """
    x_only = tuple(d for d in dims if x.shape[d] != 1 and y.shape[d] == 1)
    y_only = tuple(d for d in dims if y.shape[d] != 1 and x.shape[d] == 1)
    x = sum_over(x, x_only, keepdim=True) if x_only else x
    y = sum_over(y, y_only, keepdim=True) if y_only else y
    summed = [d for d in dims if x.shape[d] != 1]
    if not summed:
        return x * y
    free = [d for d in range(x.ndim) if d not in summed]
    both = [d for d in free if x.shape[d] != 1 and y.shape[d] != 1]
    left = [d for d in free if x.shape[d] != 1 and y.shape[d] == 1]
    right = [d for d in free if x.shape[d] == 1]
    b, k = prod(x.shape[d] for d in both), prod(x.shape[d] for d in summed)
    rows = reshape(permute(x, *both, *left, *summed, *right), b, prod(x.shape[d] for d in left), k)
    columns = reshape(permute(y, *both, *summed, *right, *left), b, k, prod(y.shape[d] for d in right))
    order = [*both, *left, *summed, *right]
    extents = [x.shape[d] for d in (*both, *left)] + [1] * len(summed) + [y.shape[d] for d in right]
    return permute(reshape(bmm(rows, columns), *extents), *[order.index(d) for d in range(x.ndim)])
