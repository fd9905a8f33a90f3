"""What order says beside extremes.py: the most frequent, the middle without nan, quantiles.

Source: torch.mode, torch.nanmedian, torch.quantile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, int64
from ..errors import UsageError
from ..tensor import Tensor
from .choice import isnan
from .creation import full_like, tensor
from .extremes import (
    Chosen,
    choice_row,
    chosen_along,
    extreme_of_all,
    not_empty,
    nth,
    of_flat,
    of_nothing,
    smallest,
    sort,
    sort_order,
)
from .gather import gather
from .indexing import masked_fill
from .pointwise import ceil, floor, round
from .reduction import any as any_of
from .reduction import sum as sum_over
from .shape import flatten, moveaxis, normal_dim, reshape, squeeze, unsqueeze
from .special import accumulate
from .triples import lerp

if TYPE_CHECKING:
    from ..backend import Array


# ---------------------------------------------------------------- chosen elements
def _mode_index(xp: Any, x: Array, dim: int) -> Array:
    """The last place of the smallest of the most frequent elements."""
    x = xp.moveaxis(x, dim, -1)
    order = xp.argsort(x, axis=-1, kind="stable")
    x = xp.take_along_axis(x, order, -1)
    places = xp.arange(x.shape[-1])
    begins = xp.ones(x.shape, bool)
    begins[..., 1:] = x[..., 1:] != x[..., :-1]
    so_often = places - accumulate(xp, "maximum", xp.where(begins, places, 0), -1)
    longest = xp.argmax(so_often, axis=-1, keepdims=True)  # the first of them, and in it the last of equal ones
    return xp.moveaxis(xp.take_along_axis(order, longest, -1), -1, dim)


def _nanmedian_index(xp: Any, x: Array, dim: int) -> Array:
    """The lower of the two in the middle of what is not nan."""
    lost = xp.isnan(x)
    if not lost.any():
        return nth(xp, x, dim, (x.shape[dim] + 1) // 2)
    count = (~lost).sum(axis=dim, keepdims=True)
    return xp.take_along_axis(sort_order(xp, x, dim, descending=False), xp.maximum(count - 1, 0) // 2, dim)


def _nanmedian_value(xp: Any, x: Array, dim: int) -> Array:
    if not xp.isnan(x).any():
        return smallest(xp, x, dim, (x.shape[dim] + 1) // 2).copy()  # the rest is not kept
    return xp.take_along_axis(x, _nanmedian_index(xp, x, dim), dim)


def _nanmedian_kernel(xp: Any, x0: Array, dims: tuple[int, ...], keepdim: bool) -> Array:
    return of_flat(xp, _nanmedian_value, x0, dims, keepdim=keepdim)


_mode = choice_row("mode", _mode_index)
_nanmedian = choice_row("nanmedian", _nanmedian_index, node="NanmedianBackward1")
_nanmedian_all = extreme_of_all("nanmedian", _nanmedian_kernel)


def mode(x: Tensor, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The most frequent element along a dimension, the smallest of several: (values, indices).  Source: torch.mode."""
    not_empty("mode", x, (normal_dim(dim, x.ndim),))
    return chosen_along(_mode, x, dim, keepdim=keepdim)


def nanmedian(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """As median, of what is not nan.  Source: torch.nanmedian."""
    if dim is None and not x.numel() and x.dtype.category >= FLOAT:
        return of_nothing(x)
    if dim is None:
        return _nanmedian_all(x, dims=tuple(range(x.ndim)), keepdim=False)
    not_empty("nanmedian", x, (normal_dim(dim, x.ndim),))
    return chosen_along(_nanmedian, x, dim, keepdim=keepdim)


def msort(x: Tensor) -> Tensor:
    """The elements in order along the first dimension.  Source: torch.msort."""
    return sort(x, 0).values


# ---------------------------------------------------------------- quantiles
def _quantile(name: str, x: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, ignore_nan: bool) -> Tensor:
    """Positions q (n - 1) of the sorted elements, between two of them: the quantiles go to the first dimension."""
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            msg = f"{name}() q must be in the range [0, 1] but got {q}"
            raise UsageError(msg)
        q = tensor(q, dtype=x.dtype, device=x.device)
    if x.dtype.category != FLOAT or x.dtype is not q.dtype or not x.numel() or q.ndim > 1:
        msg = f"{name}() input tensor must be float or double, not empty, and q of its type, a number or a vector"
        raise UsageError(msg)
    if interpolation not in _BETWEEN:
        msg = (f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}")
        raise UsageError(msg)
    at = 0 if dim is None else normal_dim(dim, x.ndim)
    flat = moveaxis(flatten(x) if dim is None else x if x.ndim else reshape(x, 1), at, -1)
    lost = isnan(flat)
    n = flat.shape[-1] - sum_over(lost, -1, keepdim=True).to(x.dtype)
    place = q.reshape(-1) * (n - 1).clamp(0)
    if not ignore_nan:
        place = masked_fill(place, any_of(lost, -1, keepdim=True), flat.shape[-1] - 1)
    ordered = sort(flat, -1).values
    low, high, weight = _BETWEEN[interpolation](place)
    below = gather(ordered, -1, low.detach().to(int64))
    out = below if weight is None else lerp(below, gather(ordered, -1, high.detach().to(int64)), weight)
    if keepdim:
        out = reshape(out, *[1] * x.ndim, -1) if dim is None else unsqueeze(out, at)
        out = moveaxis(out, -1, 0) if dim is None or x.ndim else reshape(out, -1)
    else:
        out = moveaxis(out, -1, 0)
    return out if q.ndim else squeeze(out, 0)


_BETWEEN: dict[str, Any] = {
    "linear": lambda p: (floor(p), ceil(p), p - floor(p)),
    "midpoint": lambda p: (floor(p), ceil(p), full_like(p, 0.5)),
    "lower": lambda p: (floor(p), None, None),
    "higher": lambda p: (ceil(p), None, None),
    "nearest": lambda p: (round(p), None, None),
}


def quantile(x: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The q-quantiles along a dimension, or of all elements; nan where there is a nan.  Source: torch.quantile."""
    return _quantile("quantile", x, q, dim, keepdim, interpolation, ignore_nan=False)


def nanquantile(x: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear") -> Tensor:
    """The quantiles of what is not nan.  Source: torch.nanquantile."""
    return _quantile("nanquantile", x, q, dim, keepdim, interpolation, ignore_nan=True)
