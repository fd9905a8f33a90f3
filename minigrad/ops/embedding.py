"""Rows of a table by number, and padding: the rows of torch.nn.functional that place what they are given.

Upstream: embedding, embedding_dense_backward, constant_pad_nd in derivatives.yaml.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..dtypes import bool_, int32, int64
from ..errors import Refusal, UsageError
from ..row import OpFunction, row
from .batching import to_front
from .choice import clamp_min, where
from .creation import arange, new_zeros, ones_like
from .extremes import max as largest
from .gather import index_add
from .indexing import masked_fill
from .joining import cat
from .reduction import any as any_of
from .reduction import sum as sum_over
from .shape import basic_index, flip_dims, reshape, unsqueeze, widened
from .special import add_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- embedding
def _lookup_kernel(xp: Any, x0: Array, x1: Array, padding: int, period: int) -> Array:
    if x1.size and not 0 <= x1.min() <= x1.max() < x0.shape[0]:
        msg = "index out of range in self"
        raise IndexError(msg)
    return xp.take(x0, x1, axis=0)  # which copies whole rows


def _offset(x: Tensor, bdim: int | None, size: int, rows: int) -> Tensor:
    """The numbers of every sample, moved to its own block of rows."""
    front = to_front(x, bdim, size)
    return front + reshape(arange(size, device=x.device) * rows, size, *[1] * (front.ndim - 1))


def _lookup_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    (table, index), (bt, bi) = values, bdims
    if bt is None:
        return op.call(table, index, **params), bi
    table = to_front(table, bt)
    _, rows, width = table.shape
    return op.call(reshape(table, size * rows, width), _offset(index, bi, size, rows), **params), 0


def _spread_kernel(xp: Any, x0: Array, x1: Array, rows: int, padding: int, period: int) -> Array:
    out = xp.zeros((rows, x0.shape[-1]), x0.dtype)
    add_at(xp, out, x1, xp.where((x1 % period == padding)[..., None], 0, x0))
    return out


def _spread_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    (ct, index), (bc, bi) = values, bdims
    rows = params["rows"]
    out = op.call(to_front(ct, bc, size), _offset(index, bi, size, rows), **{**params, "rows": size * rows})
    return reshape(out, size, rows, out.shape[-1]), 0


def _kept(x: Tensor, index: Tensor, padding: int, period: int) -> Tensor:
    return x if padding < 0 else masked_fill(x, unsqueeze(index % period == padding, -1), 0)


_lookup: OpFunction = row(
    "embedding", _lookup_kernel, saves=("x1",), batch=_lookup_batch,
    vjp=(lambda ct, shape0, x1, padding, period: _spread(ct, x1, rows=shape0[0], padding=padding, period=period), None),
    jvp=(lambda dx, x1, padding, period: _lookup(dx, x1, padding=padding, period=period), None))

_spread: OpFunction = row(
    "embedding_dense_backward", _spread_kernel, saves=("x1",), batch=_spread_batch,
    vjp=(lambda ct, x1, padding, period: _kept(_lookup(ct, x1, padding=-1, period=period), x1, padding, period), None),
    jvp=(lambda dx, x1, rows, padding, period: _spread(dx, x1, rows=rows, padding=padding, period=period), None))


def embedding(x: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
              norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """The row of `weight` for every number in `x`; the row padding_idx gets no gradient.

    Raises IndexError where there is no such row.  Source: torch.nn.functional.embedding.
    """
    if max_norm is not None or scale_grad_by_freq or sparse:
        msg = "embedding: max_norm, scale_grad_by_freq and sparse are not supported: minigrad's gradients are dense and plain."
        raise Refusal(msg)
    if x.dtype not in (int64, int32):
        msg = ("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
               f"{x.dtype}")
        raise UsageError(msg)
    if weight.ndim != 2:
        msg = f"'weight' must be 2-D, but it is {weight.ndim}-D"
        raise UsageError(msg)
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        msg = "Padding_idx must be within num_embeddings"
        raise AssertionError(msg)
    padding = -1 if padding_idx is None else padding_idx + rows * (padding_idx < 0)
    return _lookup(weight, x, padding=padding, period=rows)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- bags of embeddings
BAGS = ("sum", "mean", "max")


def embedding_bag(x: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None, norm_type: float = 2,
                  scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                  per_sample_weights: Tensor | None = None, include_last_offset: bool = False,
                  padding_idx: int | None = None) -> Tensor:
    """The sum, mean or largest of the rows of `weight` in each bag, 0 of an empty one; padding_idx is in none.

    x (B, n): bags of n numbers; or (N), where `offsets` says at which number each bag begins, and with include_last_offset
    where the last one ends.  per_sample_weights: factors of the rows in a sum.  Source: torch.nn.functional.embedding_bag.
    """
    _check_bags(x, offsets, mode, per_sample_weights)
    places = arange(x.numel(), device=x.device)
    if offsets is None:
        bags, bag = x.shape[0], places // max(x.shape[1], 1)
    else:
        starts = basic_index(offsets, (slice(-1),)) if include_last_offset else offsets
        bags, bag = starts.shape[0], sum_over(unsqueeze(starts, 0) <= unsqueeze(places, 1), 1) - 1
    x = reshape(x, -1)
    rows = embedding(x, weight, padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
    counted = ones_like(x, dtype=bool_) if padding_idx is None else x != padding_idx % weight.shape[0]
    if mode == "max" and x.numel():  # else every bag is empty
        mine = (unsqueeze(arange(bags, device=x.device), 1) == bag) & counted
        found, _ = largest(where(unsqueeze(mine, -1), rows, -inf), 1)
        return masked_fill(found, unsqueeze(~any_of(mine, 1), -1), 0)
    factor = counted.to(rows.dtype) if per_sample_weights is None else reshape(per_sample_weights, -1) * counted
    out = index_add(new_zeros(rows, bags, rows.shape[1]), 0, bag, rows * unsqueeze(factor, -1))
    if mode == "sum":
        return out
    return out / unsqueeze(clamp_min(index_add(new_zeros(factor, bags), 0, bag, factor), 1), -1)


def _check_bags(x: Tensor, offsets: Tensor | None, mode: str, per_sample_weights: Tensor | None) -> None:
    if per_sample_weights is not None and mode != "sum":
        msg = f"embedding_bag: per_sample_weights is only supported for mode='sum' (got mode={mode!r})"
        raise NotImplementedError(msg)
    found = None
    if mode not in BAGS:
        found = f"mode has to be one of sum, mean or max, but it is {mode!r}"
    elif x.ndim not in (1, 2):
        found = f"input has to be 1D or 2D Tensor, but got Tensor of dimension {x.ndim}"
    elif (offsets is None) != (x.ndim == 2):
        found = "if input is 2D, then offsets has to be None, and if it is 1D, offsets has to be a 1D Tensor"
    elif offsets is not None and offsets.ndim != 1:
        found = f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}"
    elif per_sample_weights is not None and per_sample_weights.shape != x.shape:
        found = (f"embedding_bag: If per_sample_weights ({list(per_sample_weights.shape)}) is not None, then it must have the "
                 f"same shape as the input ({list(x.shape)})")
    if found:
        raise ValueError(found)


# ---------------------------------------------------------------- padding
def _pad_kernel(xp: Any, x0: Array, extents: tuple[int, ...], index: Any, value: float) -> Array:
    out = xp.full(extents, value, x0.dtype)
    out[index] = x0
    return out


def _pad_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    index = (slice(None), *params["index"])
    return op.call(to_front(values[0], bdims[0]), **{**params, "extents": (size, *params["extents"]), "index": index}), 0


_pad: OpFunction = row("constant_pad_nd", _pad_kernel, arity=1, batch=_pad_batch,
                       vjp=(lambda ct, index: basic_index(ct, index),),
                       jvp=(lambda dx, extents, index: _pad(dx, extents=extents, index=index, value=0),))


# what goes before n entries of a dimension and after them, so many, of x itself: slices of x, and whether they are reversed
_FROM_X: dict[str, Callable[[int, int, int], tuple[slice, slice, bool]]] = {
    "reflect": lambda n, a, b: (slice(1, a + 1), slice(n - 1 - b, n - 1), True),
    "circular": lambda n, a, b: (slice(n - a, n), slice(b), False),
    "replicate": lambda n, a, b: (slice(1), slice(n - 1, n), False),
}
_MOST: dict[str, Callable[[int], float]] = {"reflect": lambda n: n - 1, "circular": lambda n: n, "replicate": lambda n: inf}


def _padded(x: Tensor, dim: int, before: int, after: int, mode: str) -> Tensor:
    """One dimension made longer by what is in it, and cut off where a side is negative; the edges are those before the cut."""
    front = (slice(None),) * dim

    def cut(y: Tensor) -> Tensor:
        return basic_index(y, (*front, slice(max(-before, 0), y.shape[dim] - max(-after, 0))))

    x = x if mode == "replicate" else cut(x)
    n, a, b = x.shape[dim], max(before, 0), max(after, 0)
    if max(a, b) > _MOST[mode](n):
        msg = f"Padding size should be less than the corresponding input dimension, but got {(a, b)} at dimension {dim}"
        raise UsageError(msg)
    first, last, mirrored = _FROM_X[mode](n, a, b)
    parts = [widened(basic_index(x, (*front, s)), *x.shape[:dim], k, *x.shape[dim + 1:]) for s, k in ((first, a), (last, b))]
    head, tail = (flip_dims(part, dims=(dim,)) for part in parts) if mirrored else parts
    out = cat([part for part, k in ((head, a), (x, 1), (tail, b)) if k], dim)
    return cut(out) if mode == "replicate" else out


def constant_pad_nd(x: Tensor, pad: Any, value: float = 0) -> Tensor:
    """As pad, with a constant.  Source: torch.constant_pad_nd."""
    return _padding(x, pad, value=value)


def pad(x: Tensor, pad: Any, mode: str = "constant", value: float | None = None) -> Tensor:
    """`x` with `value` (0) before and after it: (left, right) of the last dimension, then of the one before, and so on.

    Negative numbers cut off.  mode: "constant"; "reflect", what is there as in a mirror; "replicate", the outermost entry;
    "circular", what is at the other end.  Source: torch.nn.functional.pad.
    """
    if mode != "constant" and mode not in _FROM_X:
        msg = f"Unrecognised padding mode {mode}"
        raise NotImplementedError(msg)
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        msg = f"Padding length must be divisible by 2 and at most twice the number of dimensions of the input. Got {len(pad)}"
        raise UsageError(msg)
    sides = [(0, 0)] * (x.ndim - len(pad) // 2) + [*zip(pad[-2::-2], pad[-1::-2], strict=True)]
    if mode != "constant":
        for dim, (a, b) in enumerate(sides):
            x = _padded(x, dim, a, b, mode) if a or b else x
        return x
    extents = tuple(a + n + b for n, (a, b) in zip(x.shape, sides, strict=True))
    if min(extents, default=0) < 0:
        msg = f"The input size {list(x.shape)}, plus padding {list(pad)}, resulted in a negative output size"
        raise UsageError(msg)
    if min(pad, default=0) < 0:
        x = basic_index(x, tuple(slice(max(-a, 0), n - max(-b, 0)) for n, (a, b) in zip(x.shape, sides, strict=True)))
    outside = tuple(slice(max(a, 0), n - max(b, 0)) for n, (a, b) in zip(extents, sides, strict=True))
    return _pad(x, extents=extents, index=outside, value=value or 0)  # type: ignore[no-any-return]


_padding = pad
