"""Sorted elements: where others belong among them, which there are, how often; and counts in bins.

Nothing here has a derivative.  What has as many results as values say is refused under vmap, as in torch.

Source: torch.searchsorted, torch.bucketize, torch.isin, torch.unique, torch.bincount, torch.histc.
"""

from __future__ import annotations

from math import isfinite, prod
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, bool_, float64, int32, int64
from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import rank, to_front
from .choice import clamp, where
from .creation import arange, full_like, new_zeros, ones_like, tensor
from .extremes import max as largest
from .extremes import sort
from .gather import gather, index_select, scatter, scatter_add
from .indexing import nonzero
from .joining import cat, stack
from .misc import is_floating_point
from .picking import unravel_index
from .pointwise import floor
from .reduction import any as any_of
from .reduction import sum as sum_over
from .scan import cumsum
from .shape import detach, movedim, normal_dim, reshape

if TYPE_CHECKING:
    from ..backend import Array
    from ..op import Op
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- places among sorted elements
def _searchsorted_kernel(xp: Any, x0: Array, x1: Array, side: str) -> Array:
    """Of one sequence for all values, or one for each row of values."""
    if x0.ndim == 1:
        return xp.searchsorted(x0, x1, side=side)
    out = xp.zeros(x1.shape, "int64")
    rows = prod(x1.shape[:-1])
    sequences, values, places = (a.reshape(rows, a.shape[-1]) for a in (x0, x1, out))
    for k in range(rows):
        places[k] = xp.searchsorted(sequences[k], values[k], side=side)
    return out


def _searchsorted_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    (sequence, x), (outer, bdim) = values, bdims
    if outer is None and sequence.ndim == 1:
        return op.call(sequence, x, **params), bdim
    one = rank(sequence, outer) == 1
    sequence, x = to_front(sequence, outer, size), to_front(x, bdim, size)
    flat = reshape(x, size, x.numel() // size) if one else x
    return reshape(op.call(sequence, flat, **params), x.shape), 0


_searchsorted: OpFunction = row("searchsorted", _searchsorted_kernel, vjp=None, jvp=None, batch=_searchsorted_batch)


def searchsorted(sorted_sequence: Tensor, values: Any, *, out_int32: bool = False, right: bool = False,
                 side: str | None = None, sorter: Tensor | None = None) -> Tensor:
    """Where in the last dimension, which is sorted, values would have to be put in; after equal ones if `right`.

    A sequence of one dimension serves all values, others need the leading dimensions of theirs, else UsageError; `side` says as
    `right` does: "left" or "right".  Source: torch.searchsorted.
    """
    if side not in (None, "left", "right"):
        msg = f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}"
        raise UsageError(msg)
    if side == "left" and right:
        msg = "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        raise UsageError(msg)
    x = values if isinstance(values, Tensor) else tensor(values, device=sorted_sequence.device)
    if sorted_sequence.ndim != 1 and sorted_sequence.shape[:-1] != x.shape[:-1]:
        msg = ("torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
               f"and input value tensor must match, but we got boundaries tensor {list(sorted_sequence.shape)} and input value "
               f"tensor {list(x.shape)}")
        raise UsageError(msg)
    if sorter is not None:
        sorted_sequence = gather(sorted_sequence, -1, sorter)
    found = _searchsorted(sorted_sequence, x, side="right" if right or side == "right" else "left")
    return found.to(int32) if out_int32 else found  # type: ignore[no-any-return]


def bucketize(x: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """Which of the buckets between boundaries, a sorted vector, holds each element.

    Raises UsageError where they are no vector.  Source: torch.bucketize.
    """
    if boundaries.ndim != 1:
        msg = f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries.ndim})"
        raise UsageError(msg)
    return searchsorted(boundaries, x, out_int32=out_int32, right=right)


def isin(elements: Any, test_elements: Any, *, assume_unique: bool = False, invert: bool = False) -> Tensor:
    """Whether each element is one of some others.  Source: torch.isin."""
    like = elements if isinstance(elements, Tensor) else test_elements
    x, others = (a if isinstance(a, Tensor) else tensor(a, dtype=like.dtype, device=like.device)
                 for a in (elements, test_elements))
    if not others.numel():
        return full_like(x, invert, dtype=bool_)
    known = sort(reshape(others, -1)).values
    places = clamp(_searchsorted(known, x, side="left"), max=known.numel() - 1)
    found = reshape(index_select(known, 0, reshape(places, -1)), x.shape) == x
    return ~found if invert else found


def nonzero_static(x: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """The first `size` indices of what is not zero, and a value where there are less: of that shape also under vmap.

    Source: torch.nonzero_static.
    """
    zero = reshape(x, -1) == 0
    places = sort(zero).indices[:size]
    if size > x.numel():
        places = cat([places, new_zeros(places, size - x.numel())])
    there = arange(size, device=x.device) < sum_over(~zero)
    found = [where(there, i, fill_value) for i in unravel_index(places, [n or 1 for n in x.shape])]
    return stack(found, 1) if found else new_zeros(places, size, 0)


# ---------------------------------------------------------------- which there are
def unique_consecutive(x: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None) -> Any:
    """The first of each run of equal elements, or of entries of a dimension: (values, inverse, counts) or what is wanted of it.

    inverse: for each element, or entry, the number of its run.  Source: torch.unique_consecutive.
    """
    return _wanted(x, dim, *_runs(*_entries(x, dim)), return_inverse=return_inverse, return_counts=return_counts)


def _entries(x: Tensor, dim: int | None) -> tuple[Tensor, int]:
    """What is compared with what, and its dimension: without `dim` all elements, one after the other."""
    if dim is None:
        return reshape(x, -1), 0
    return (x, normal_dim(dim, x.ndim)) if x.ndim else (reshape(x, 1), 0)


def _runs(x: Tensor, dim: int) -> tuple[Tensor, Tensor, Tensor]:
    """Of each run of equal entries the first one, for each entry the number of its run, and how long each run is."""
    n = x.shape[dim]
    rows = reshape(movedim(x, dim, 0), n, -1) if n else reshape(x, 0, 1)
    starts = cat([ones_like(rows[:1, 0], dtype=bool_), any_of(rows[1:] != rows[:-1], 1)]) if n else rows[:, 0].to(bool_)
    places = reshape(nonzero(starts), -1)
    ends = cat([places[1:], full_like(places[:1], n)])
    return index_select(x, dim, places), cumsum(starts.to(int64), 0) - 1, ends - places


def unique(x: Tensor, sorted: bool = True, return_inverse: bool = False, return_counts: bool = False,  # noqa: A002  torch's name
           dim: int | None = None) -> Any:
    """The elements that there are, or the entries of a dimension, sorted: (values, inverse, counts) or what is wanted of it.

    Source: torch.unique.
    """
    inner, at = _entries(x, dim)
    order = _order(inner, at)
    values, inverse, counts = _runs(index_select(inner, at, order), at)
    return _wanted(x, dim, values, scatter(inverse, 0, order, inverse), counts, return_inverse=return_inverse,
                   return_counts=return_counts)


def _order(x: Tensor, dim: int) -> Tensor:
    """The indices that sort entries by their first element, then by the next."""
    columns = reshape(movedim(x, dim, 0), x.shape[dim], -1) if x.shape[dim] else reshape(x, 0, 1)
    order = sort(columns[:, -1]).indices
    for k in reversed(range(columns.shape[1] - 1)):
        order = order[sort(columns[order, k]).indices]
    return order


def _wanted(x: Tensor, dim: int | None, values: Tensor, inverse: Tensor, counts: Tensor, *, return_inverse: bool,
            return_counts: bool) -> Any:
    """What a program asked for, in shapes that fit its `x`."""
    if dim is None:
        inverse = reshape(inverse, x.shape)
    elif not x.ndim:
        values = reshape(values, x.shape)
    found = (values, *[inverse] * return_inverse, *[counts] * return_counts)
    return found if len(found) > 1 else values


# ---------------------------------------------------------------- how many
def bincount(x: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """How often each number from 0 occurs in a vector of integers, or the sum of its weights there.

    Raises UsageError for what is no such vector, and for weights of another shape.  Source: torch.bincount.
    """
    if x.ndim != 1 or is_floating_point(x) or x.dtype is bool_:
        msg = f"bincount only supports 1-d non-negative integral inputs, but it is {x.dtype} of shape {list(x.shape)}"
        raise UsageError(msg)
    if minlength < 0:
        msg = "minlength should be >= 0"
        raise UsageError(msg)
    if weights is not None and weights.shape != x.shape:
        msg = "weights should be 1-d and have the same length as input"
        raise UsageError(msg)
    if x.numel() and bool(any_of(x < 0)):
        msg = "bincount only supports 1-d non-negative integral inputs."
        raise UsageError(msg)
    n = int(largest(x)) + 1 if x.numel() else 0
    if weights is None:
        given = ones_like(x, dtype=int64)
    else:
        given = detach(weights if weights.dtype.category == FLOAT else weights.to(float64))
    return scatter_add(new_zeros(given, max(minlength, n)), 0, x.to(int64), given)


def histc(x: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:  # noqa: A002  torch's names
    """How many elements lie in each of equal bins from min to max; of all the data, where the two are equal.

    Raises UsageError for no bins.  Source: torch.histc.
    """
    if bins <= 0:
        msg = "bins must be > 0"
        raise UsageError(msg)
    x = detach(reshape(x, -1))
    low, high = (float(x.min()), float(x.max())) if min == max and x.numel() else (min, max)
    if not isfinite(low + high):
        msg = f"torch.histc: range of [{low}, {high}] is not finite"
        raise UsageError(msg)
    if low > high:
        msg = "torch.histc: max must be larger than min"
        raise UsageError(msg)
    low, high = (low - 1, high + 1) if low == high else (low, high)
    place = clamp(floor((x - low) * (bins / (high - low))), 0, bins - 1)
    inside = (x >= low) & (x <= high)
    return scatter_add(new_zeros(x, bins), 0, place.to(int64) * inside, inside.to(x.dtype))
