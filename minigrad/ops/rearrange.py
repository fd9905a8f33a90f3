"""What is composed of views and copies: shapes of other tensors, repeats, grids, diagonals, joins and splits.

Nothing here touches an array but the rows of `repeat` and `roll`.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, int64
from ..errors import UsageError, no_dimension
from ..row import OpFunction, row
from ..tensor import Tensor, bottom
from .batching import padded, physical, to_front
from .indexing import one_value
from .inplace import copy_
from .linalg import broadcast_shapes
from .pointwise import conj
from .shape import (
    basic_index,
    contiguous_row,
    diagonal_backward,
    expand,
    flip,
    normal_dim,
    permute,
    reshape,
    sum_dims,
    transpose,
    varargs,
    view,
    widened,
)
from .shape import diagonal as diagonal_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..op import Op
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- the shape of another tensor
def expand_as(x: Tensor, other: Tensor) -> Tensor:
    """`x` expanded to the shape of `other`.  Source: torch.Tensor.expand_as."""
    return expand(x, other.shape)


def view_as(x: Tensor, other: Tensor) -> Tensor:
    """`x` viewed in the shape of `other`.  Source: torch.Tensor.view_as."""
    return view(x, other.shape)


def reshape_as(x: Tensor, other: Tensor) -> Tensor:
    """`x` in the shape of `other`.  Source: torch.Tensor.reshape_as."""
    return reshape(x, other.shape)


def broadcast_to(x: Tensor, size: Sequence[int]) -> Tensor:
    """`x` expanded to `size`.  Source: torch.broadcast_to."""
    return expand(x, size)


def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All of them expanded to one shape.  Source: torch.broadcast_tensors."""
    shape = broadcast_shapes(*[x.shape for x in tensors])
    return tuple(widened(x, shape) for x in tensors)


def unflatten(x: Tensor, dim: int, sizes: Sequence[int]) -> Tensor:
    """One dimension made several, whose extents multiply to its own; one may be -1.  Source: torch.unflatten."""
    if not x.ndim:
        msg = f"unflatten: Dimension specified as {dim} but tensor has no dimensions"
        raise UsageError(msg)
    at = normal_dim(dim, x.ndim)
    known, extent, free = prod(sizes), x.shape[at], tuple(sizes).count(-1)
    if not sizes or free > 1 or (known != extent if not free else known == 0 or extent % known):
        msg = (f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {at} ({extent}) in the input "
               "tensor")
        raise UsageError(msg)
    sizes = tuple(extent // -known if n == -1 else n for n in sizes)
    return reshape(x, *x.shape[:at], *sizes, *x.shape[at + 1:])


# ---------------------------------------------------------------- transposes
def numpy_T(x: Tensor) -> Tensor:  # noqa: N802
    """All dimensions in reverse order.  Source: torch.Tensor.T."""
    return permute(x, tuple(range(x.ndim))[::-1])


def mT(x: Tensor) -> Tensor:  # noqa: N802
    """The last two dimensions exchanged; a 0-d tensor is its own.  Source: torch.Tensor.mT."""
    if not x.ndim:
        return x
    if x.ndim < 2:
        msg = f"tensor.mT is only supported on matrices or batches of matrices. Got {x.ndim}-D tensor."
        raise UsageError(msg)
    return transpose(x, -2, -1)


def matrix_H(x: Tensor) -> Tensor:  # noqa: N802
    """The conjugate transpose of a matrix.  Source: torch.Tensor.H."""
    if x.ndim not in (0, 2):
        msg = f"tensor.H is only supported on matrices (2-D tensors). Got {x.ndim}-D tensor."
        raise UsageError(msg)
    return conj(numpy_T(x))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- copies
def _repeat_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x, reps = to_front(values[0], bdims[0]), params["repeats"]
    return op.call(padded(x, len(reps) + 1 - x.ndim), repeats=(1, *reps)), 0


def _repeat_vjp(ct: Tensor, shape0: tuple[int, ...], repeats: tuple[int, ...]) -> Tensor:
    own = (1,) * (len(repeats) - len(shape0)) + shape0
    apart = reshape(ct, *[n for pair in zip(repeats, own, strict=True) for n in pair])
    return reshape(sum_dims(apart, dims=tuple(range(0, 2 * len(repeats), 2)), keepdim=False), shape0)


_repeat = row("repeat", lambda xp, x0, repeats: xp.tile(x0, repeats), arity=1, vjp=(_repeat_vjp,), jvp="linear",
              batch=_repeat_batch)


def repeat(x: Tensor, *counts: Any, repeats: Sequence[int] | None = None) -> Tensor:
    """Copies of `x` side by side, `repeats[i]` of them along dimension i.  Source: torch.Tensor.repeat."""
    reps = varargs(counts, repeats)
    if len(reps) < x.ndim:
        msg = ("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: "
               f"{list(reps)} for {list(x.shape)}.")
        raise UsageError(msg)
    return _repeat(x, repeats=reps)  # type: ignore[no-any-return]


def fill(x: Tensor, value: Any) -> Tensor:
    """One value in the shape of `x`.  Source: torch.fill."""
    return x.clone().fill_(value)  # type: ignore[no-any-return]


def tile(x: Tensor, *counts: Any, dims: Sequence[int] | None = None) -> Tensor:
    """As repeat; missing leading repeats are 1.  Source: torch.tile."""
    reps = varargs(counts, dims)
    return repeat(x, (1,) * (x.ndim - len(reps)) + reps)


def is_contiguous(x: Tensor) -> bool:
    """Whether elements lie in memory in order, so that view() needs no copy.  Source: torch.Tensor.is_contiguous."""
    in_memory: bool = bottom(x).value.flags.c_contiguous
    return in_memory and (one_value(x) or reshape(x, -1).untyped_storage() is x.untyped_storage())


def contiguous(x: Tensor) -> Tensor:
    """`x` itself where it is contiguous, else a copy that is.  Source: torch.Tensor.contiguous."""
    return x if is_contiguous(x) else contiguous_row(x)


def ravel(x: Tensor) -> Tensor:
    """One dimension, elements in order: a view where `x` is contiguous, else of a copy that is.  Source: torch.ravel."""
    return view(contiguous(x), -1)


roll_dims: OpFunction = row("roll", lambda xp, x0, shifts, dims: xp.roll(x0, shifts, dims), arity=1,
                vjp=(lambda ct, shifts, dims: roll_dims(ct, shifts=tuple(-s for s in shifts), dims=dims),), jvp="linear",
                batch=lambda op, size, values, bdims, params: (op.call(
                    values[0], shifts=params["shifts"],
                    dims=tuple(physical(d, bdims[0]) for d in params["dims"])), bdims[0]))


def roll(x: Tensor, shifts: int | Sequence[int], dims: int | Sequence[int] | None = None) -> Tensor:
    """Elements moved round along dimensions (of the flattened tensor, without dims).  Source: torch.roll."""
    moves = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    if not moves:
        msg = "`shifts` required"
        raise UsageError(msg)
    if dims is None and len(moves) == 1:
        return reshape(roll(reshape(x, -1), shifts, 0), x.shape)
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if len(dims) != len(moves):
        msg = f"shifts and dimensions must align. shifts: {len(moves)}, dims:{len(dims)}"
        raise UsageError(msg)
    if not x.ndim:
        raise no_dimension(dims[0], 0)
    return roll_dims(x, shifts=moves, dims=tuple([normal_dim(d, x.ndim) for d in dims]))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- diagonals
def matrix_diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:  # noqa: N803
    """The diagonals of matrices.  Source: torch.linalg.diagonal."""
    return diagonal_view(A, offset, dim1, dim2)


def diag_embed(x: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """Square matrices whose diagonals are the last dimension of `x`.  Source: torch.diag_embed."""
    a, b = normal_dim(dim1, x.ndim + 1), normal_dim(dim2, x.ndim + 1)
    if a == b:
        msg = f"diagonal dimensions cannot be identical {dim1}, {dim2}"
        raise UsageError(msg)
    n = x.shape[-1] + abs(offset)
    rest = iter(x.shape[:-1])
    shape = tuple(n if k in (a, b) else next(rest) for k in range(x.ndim + 1))
    return diagonal_backward(x, shape=shape, offset=offset, dim1=a, dim2=b)  # type: ignore[no-any-return]


def diag(x: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or a copy of a matrix's diagonal.  Source: torch.diag."""
    if x.ndim not in (1, 2):
        msg = f"diag(): Supports 1D or 2D tensors. Got {x.ndim}D"
        raise UsageError(msg)
    return diag_embed(x, diagonal) if x.ndim == 1 else diagonal_view(x, diagonal).clone()


def diagflat(x: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements on its diagonal.  Source: torch.diagflat."""
    return diag_embed(reshape(x, -1), offset)


def trace(x: Tensor) -> Tensor:
    """The sum of a matrix's diagonal.  Source: torch.trace."""
    if x.ndim != 2:
        msg = f"trace: expected a matrix, but got tensor with dim {x.ndim}"
        raise UsageError(msg)
    elements = diagonal_view(x if x.dtype.category >= FLOAT else x.to(int64))
    return sum_dims(elements, dims=(0,), keepdim=False)  # type: ignore[no-any-return]


def fill_diagonal_(x: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Write one value on the diagonal of a matrix; with wrap it begins anew under the square.

    Source: torch.Tensor.fill_diagonal_.
    """
    copy_(diagonal_view(x), fill_value)
    rows, columns = x.shape
    if wrap and rows > columns + 1:
        fill_diagonal_(basic_index(x, (slice(columns + 1, None),)), fill_value, wrap)
    return x


# ---------------------------------------------------------------- grids, order
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """The coordinates of a grid: for each vector a tensor that varies along its dimension.

    indexing: "ij", or "xy", where the first two dimensions are exchanged.  Source: torch.meshgrid.
    """
    if indexing not in ("ij", "xy"):
        msg = f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        raise UsageError(msg)
    axes = list(tensors[0] if len(tensors) == 1 and not isinstance(tensors[0], Tensor) else tensors)
    if indexing == "xy" and len(axes) > 1:
        y, x, *rest = meshgrid(axes[1], axes[0], *axes[2:])
        return (x, y, *rest)
    shape = tuple(x.numel() for x in axes)
    return tuple(widened(reshape(x, *[1] * k, -1, *[1] * (len(axes) - k - 1)), shape) for k, x in enumerate(axes))


def fliplr(x: Tensor) -> Tensor:
    """Columns in reverse order.  Source: torch.fliplr."""
    if x.ndim < 2:
        msg = "Input must be >= 2-d."
        raise UsageError(msg)
    return flip(x, 1)


def flipud(x: Tensor) -> Tensor:
    """Rows in reverse order.  Source: torch.flipud."""
    if not x.ndim:
        msg = "Input must be >= 1-d."
        raise UsageError(msg)
    return flip(x, 0)


def rot90(x: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """Turned by 90 degrees k times, from the first dimension towards the second.  Source: torch.rot90."""
    if len(dims) != 2:
        msg = f"expected total rotation dims == 2, but got dims = {len(dims)}"
        raise UsageError(msg)
    if x.ndim < 2:
        msg = f"expected total dims >= 2, but got total dims = {x.ndim}"
        raise UsageError(msg)
    a, b = (normal_dim(d, x.ndim) for d in dims)
    if a == b:
        msg = f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        raise UsageError(msg)
    turns = k % 4
    if turns == 0:
        return x.clone()  # type: ignore[no-any-return]
    return (flip(x, a, b) if turns == 2 else
            transpose(flip(x, b), a, b) if turns == 1 else flip(transpose(x, a, b), b))
