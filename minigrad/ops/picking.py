"""Elements picked, or written, by flat position or by a mask; picked by a count; and classes as vectors.

Upstream: derivatives.yaml (take, masked_select, masked_scatter); torch.repeat_interleave, torch.nn.functional.one_hot.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, bool_, int64
from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import along_dim, to_front
from .choice import where
from .creation import new_zeros, zeros_like
from .gather import index_add, index_copy, index_select, spread_at
from .indexing import index_batch, masked_fill, no_batch, put_at
from .layout import clone, contiguous_format
from .pointwise import floor_divide
from .rearrange import broadcast_tensors
from .shape import normal_dim, reshape, unsqueeze, widened
from .special import repeated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..op import Op
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- flat positions
def _take_kernel(xp: Any, x0: Any, x1: Any) -> Any:
    n = x0.size
    if x1.size and (x1.min() < -n or x1.max() >= n):
        wrong = x1[(x1 < -n) | (x1 >= n)][0]
        msg = f"out of range: tried to access index {int(wrong)} on a tensor of {n} elements."
        raise IndexError(msg)
    return x0.reshape(-1)[x1]


def _take_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x, bdim = values[0], bdims[0]
    flat = reshape(x, -1) if bdim is None else reshape(to_front(x, bdim), size, -1)
    return index_batch(op, size, [flat, values[1]], [None if bdim is None else 0, bdims[1]], {"places": (True,)})


def _take_vjp(ct: Tensor, x0: Tensor, x1: Tensor) -> Tensor:
    n = x0.numel()
    index = reshape(where(x1 < 0, x1 + n, x1), -1)  # a remainder takes five times as long
    return reshape(spread_at(reshape(ct, -1), index, shape=(n,), dim=0, distinct=False), x0.shape)


_take: OpFunction = row("take", _take_kernel, saves=("x1", "x0"), vjp=(_take_vjp, None),
                        jvp=(lambda dx, x1: _take(dx, x1), None), batch=_take_batch)


def take(x: Tensor, index: Tensor) -> Tensor:
    """The elements of the flat tensor at the index, in its shape.  Source: torch.take."""
    if index.dtype is not int64:
        msg = f"take(): Expected a long tensor for index, but got {index.dtype}"
        raise UsageError(msg)
    return _take(x, index)  # type: ignore[no-any-return]


def put(x: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`x` with the elements of `source` written, or added, at flat positions.  Source: torch.put."""
    if index.dtype is not int64 or source.dtype is not x.dtype or index.numel() != source.numel():
        msg = (f"put_(): Expected a long index with as many elements as the source, of type {x.dtype}, but got {index.dtype} "
               f"with {index.numel()} and {source.dtype} with {source.numel()}")
        raise UsageError(msg)
    flat, places = reshape(x, -1), reshape(index, -1)
    places = places + (places < 0).to(int64) * x.numel()
    return reshape((index_add if accumulate else index_copy)(flat, 0, places, reshape(source, -1)), x.shape)


def unravel_index(indices: Tensor, shape: int | Sequence[int]) -> tuple[Tensor, ...]:
    """Of positions in a flat tensor the indices into its shape, a tensor for each dimension.  Source: torch.unravel_index."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    if indices.dtype.category >= FLOAT or indices.dtype is bool_:
        msg = f"expected 'indices' to be integer dtype, but got {indices.dtype}"
        raise ValueError(msg)
    if any(n < 0 for n in extents):
        msg = f"'shape' cannot have negative values, but got {extents}"
        raise ValueError(msg)
    found, rest = [], indices.to(int64)
    for n in reversed(extents):
        found.append(rest % n)
        rest = floor_divide(rest, n)
    return tuple(reversed(found))


# ---------------------------------------------------------------- masks: what comes out, or goes in, in order
_masked_select: OpFunction = row(
    "masked_select", lambda xp, x0, x1: x0[x1], saves=("x1", "x0"),
    vjp=(lambda ct, x0, x1: put_at(zeros_like(x0), ct, x1, places=(True,), accumulate=False), None),
    jvp=(lambda dx, x1: _masked_select(dx, x1), None),
    batch=lambda op, size, values, bdims, params: index_batch(op, size, values, bdims, {"places": (True,)}))


def masked_select(x: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask is true, in a vector; a batched mask is refused.  Source: torch.masked_select."""
    if mask.dtype is not bool_:
        msg = "masked_select: expected BoolTensor for mask"
        raise UsageError(msg)
    x, mask = broadcast_tensors(x, mask)
    return _masked_select(x, mask) if x.ndim else _masked_select(reshape(x, 1), reshape(mask, 1))  # type: ignore[no-any-return]


def _needed(xp: Any, mask: Any, n: int, dim: int) -> Any:
    """Which of n elements along the last dimension, `dim`, a mask takes: as many of the first ones as it has true ones."""
    count = xp.sum(mask, axis=dim, keepdims=True) if dim else xp.asarray(xp.count_nonzero(mask))  # of all it is much faster
    if count.size and count.max() > n:
        msg = ("masked_scatter: expected self and source to have same dtypes and source to have at least as many elements "
               f"({int(count.max())}) as the mask has ones")
        raise UsageError(msg)
    return xp.arange(n) < count if dim else slice(int(count))


def _masked_scatter_kernel(xp: Any, x0: Any, x1: Any, x2: Any, dim: int) -> Any:
    out = xp.array(x0)
    out[x1] = x2[_needed(xp, x1, x2.shape[dim], dim)]
    return out


def _masked_gather_kernel(xp: Any, x0: Any, x1: Any, dim: int, n: int) -> Any:
    out = xp.zeros((*x0.shape[:dim], n), x0.dtype)
    out[_needed(xp, x1, n, dim)] = x0[x1]
    return out


_masked_scatter: OpFunction = row(
    "masked_scatter", _masked_scatter_kernel, saves=("x1",), batch=along_dim,
    vjp=(lambda ct, x1: masked_fill(ct, x1, 0), None,
         lambda ct, x1, shape2, dim: _masked_gather(ct, x1, dim=dim, n=shape2[dim])),
    jvp=(lambda dx, x1: masked_fill(dx, x1, 0), None,
         lambda dx, x0, x1, dim: _masked_scatter(zeros_like(x0), x1, dx, dim=dim)))

_masked_gather: OpFunction = row(
    "masked_scatter_backward", _masked_gather_kernel, saves=("x1",), batch=along_dim,
    vjp=(lambda ct, x1, shape0, dim: _masked_scatter(new_zeros(ct, shape0), x1, ct, dim=dim), None),
    jvp=(lambda dx, x1, dim, n: _masked_gather(dx, x1, dim=dim, n=n), None))


def masked_scatter(x: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """`x` with the elements of `source`, in order, where the mask is true.  Source: torch.masked_scatter."""
    if mask.dtype is not bool_ or source.dtype is not x.dtype:
        msg = f"masked_scatter_: expected a bool mask and a source of type {x.dtype}, but got {mask.dtype} and {source.dtype}"
        raise UsageError(msg)
    x, mask = broadcast_tensors(x, mask)
    return reshape(_masked_scatter(reshape(x, -1), reshape(mask, -1), reshape(source, -1), dim=0), x.shape)


# ---------------------------------------------------------------- counts
_repeated = row("repeat_interleave", lambda xp, x0, n: repeated(xp, x0, n), arity=1, vjp=None, jvp=None,
                batch=no_batch)


def repeat_interleave(x: Tensor, repeats: int | Tensor, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each entry of a dimension, or element of the flat tensor, `repeats` times in a row.  Source: torch.repeat_interleave."""
    if dim is None:
        return repeat_interleave(reshape(x, -1), repeats, 0)
    at = normal_dim(dim, x.ndim)
    n = x.shape[at]
    if isinstance(repeats, Tensor) and repeats.numel() > 1:
        if repeats.shape != (n,):
            msg = f"repeats must have the same size as input along dim, but got {list(repeats.shape)} for {n} entries"
            raise UsageError(msg)
        return index_select(x, at, _repeated(repeats, n=n))
    times = int(repeats)
    if times < 0:
        msg = "Repeats must be non-negative"
        raise UsageError(msg)
    wide = widened(unsqueeze(x, at + 1), *x.shape[:at + 1], times, *x.shape[at + 1:])
    return reshape(clone(wide, memory_format=contiguous_format), *x.shape[:at], n * times, *x.shape[at + 1:])


# ---------------------------------------------------------------- classes
def _one_hot_kernel(xp: Any, x0: Any, num_classes: int) -> Any:
    if num_classes == -1:
        if not x0.size:
            msg = "Can not infer total number of classes from empty tensor."
            raise UsageError(msg)
        num_classes = int(x0.max()) + 1
    if x0.size and x0.min() < 0:
        msg = "Class values must be non-negative."
        raise UsageError(msg)
    if x0.size and x0.max() >= num_classes:
        msg = "Class values must be smaller than num_classes."
        raise UsageError(msg)
    out = xp.zeros((x0.size, num_classes), x0.dtype)
    out[xp.arange(x0.size), x0.reshape(-1)] = 1
    return out.reshape(*x0.shape, num_classes)


def _one_hot_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    if params["num_classes"] == -1:
        return no_batch(op, size, values, bdims, params)
    return op.call(values[0], **params), bdims[0]


_one_hot = row("one_hot", _one_hot_kernel, arity=1, vjp=None, jvp=None, batch=_one_hot_batch)


def one_hot(x: Tensor, num_classes: int = -1) -> Tensor:
    """For each class number a vector with a 1 at it; without num_classes the largest number says how long.

    Source: torch.nn.functional.one_hot.
    """
    if x.dtype is not int64:
        msg = "one_hot is only applicable to index tensor of type LongTensor."
        raise UsageError(msg)
    return _one_hot(x, num_classes=num_classes)  # type: ignore[no-any-return]
