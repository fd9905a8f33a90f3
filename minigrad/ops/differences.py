"""Differences of neighbours, sums over intervals, and how variables vary together: composed of other ops.

Source: torch.diff, torch.trapezoid, torch.gradient, torch.cov.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, INT, bool_
from ..errors import UsageError
from ..state import get_default_dtype
from ..tensor import Tensor
from .choice import clamp, logical_xor
from .creation import tensor
from .joining import cat, narrow
from .linalg import mm
from .pointwise import conj, imag, real, sqrt, true_divide
from .reduction import mean
from .reduction import sum as sum_over
from .scan import cumsum
from .shape import diagonal, movedim, normal_dim, normal_dims, reshape, squeeze, t, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Sequence


def _pairs(x: Tensor, dim: int) -> tuple[Tensor, Tensor]:
    """Every entry of a dimension but the last, and every one but the first."""
    n = max(x.shape[dim] - 1, 0)
    return narrow(x, dim, 0, n), narrow(x, dim, min(1, x.shape[dim]), n)


def diff(x: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences along a dimension, of the tensor with something before or after it.  Source: torch.diff."""
    if not x.ndim:
        msg = "diff expects input to be at least one-dimensional"
        raise UsageError(msg)
    at = normal_dim(dim, x.ndim)
    parts = [part for part in (prepend, x, append) if part is not None]
    if any(part.ndim != x.ndim for part in parts):
        msg = "diff expects prepend or append to have the same number of dimensions as input"
        raise UsageError(msg)
    if n < 0:
        msg = f"order must be non-negative but got {n}"
        raise UsageError(msg)
    if not n:
        return x.clone()  # type: ignore[no-any-return]
    out = cat(parts, at) if len(parts) > 1 else x
    for _ in range(min(n, out.shape[at])):
        low, high = _pairs(out, at)
        out = logical_xor(high, low) if x.dtype is bool_ else high - low
    return out


# ---------------------------------------------------------------- sums over intervals
def _trapezoids(name: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> tuple[Tensor, int]:
    """(twice) the area over each interval, and the dimension."""
    at = normal_dim(dim, y.ndim)
    left, right = _pairs(y, at)
    if x is None:
        return (left + right) * dx, at
    if x.ndim == 1 and x.shape[0] != y.shape[at]:
        msg = f"{name}: There must be one `x` value for each sample point"
        raise UsageError(msg)
    points = reshape(x, *[-1 if d == at else 1 for d in range(y.ndim)]) if x.ndim == 1 else x
    low, high = _pairs(points, normal_dim(at - y.ndim, points.ndim))
    return (left + right) * (high - low), at


def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral along a dimension by the trapezoidal rule; `x` or `dx` are the places.  Source: torch.trapezoid."""
    areas, at = _trapezoids("trapezoid", y, x, 1 if dx is None else dx, dim)
    return sum_over(areas, at) / 2


trapz = trapezoid


def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The running integral.  Source: torch.cumulative_trapezoid."""
    areas, at = _trapezoids("cumulative_trapezoid", y, x, 1 if dx is None else dx, dim)
    return cumsum(areas, at) / 2


# ---------------------------------------------------------------- derivatives by differences
def gradient(x: Tensor, *, spacing: Any = 1, dim: int | Sequence[int] | None = None, edge_order: int = 1) -> list[Tensor]:
    """The slope of `x` along dimensions, a tensor for each: from both neighbours, exact for parabolas.

    spacing: between neighbours, one number or one for each dimension, or for each a tensor of coordinates.
    edge_order: 1 or 2, from how many neighbours more the slope at the ends is.  Source: torch.gradient.
    """
    dims = normal_dims(dim, x.ndim)
    spacing = 1 if spacing is None else spacing
    given = list(spacing) if isinstance(spacing, (list, tuple)) else [spacing] * len(dims)
    if len(given) != len(dims):
        msg = ("torch.gradient expected spacing to be unspecified, a scalar or it's spacing and dim arguments to have the same "
               f"length, but got a spacing argument of length {len(given)} and a dim argument of length {len(dims)}.")
        raise UsageError(msg)
    if edge_order not in (1, 2):
        msg = "torch.gradient only supports edge_order=1 and edge_order=2."
        raise UsageError(msg)
    for d in dims:
        if x.shape[d] < edge_order + 1:
            msg = "torch.gradient expected each dimension size to be at least edge_order+1"
            raise UsageError(msg)
    return [_slope(movedim(x, d, -1), at, edge_order).movedim(-1, d) for d, at in zip(dims, given, strict=True)]


def _slope(x: Tensor, at: Any, edge_order: int) -> Tensor:
    """Along the last dimension."""
    if isinstance(at, Tensor):
        if at.shape != x.shape[-1:]:
            msg = (f"torch.gradient expected each tensor to have one dimension and one coordinate for each element, but got "
                   f"{list(at.shape)} for {x.shape[-1]} elements")
            raise UsageError(msg)
        steps = at[1:] - at[:-1]
        left, right = steps[:-1], steps[1:]
    else:
        steps = left = right = at
    slopes = (x[..., 1:] - x[..., :-1]) / steps
    before, after = slopes[..., :-1], slopes[..., 1:]
    inner = ((before * right + after * left) / (left + right) if isinstance(at, Tensor) else
             (x[..., 2:] - x[..., :-2]) / (2 * at))
    first, last = slopes[..., :1], slopes[..., -1:]
    if edge_order == 2:  # of the parabola through three elements
        wide = left + right
        share, other = (left[:1] / wide[:1], right[-1:] / wide[-1:]) if isinstance(at, Tensor) else (0.5, 0.5)
        first, last = first + (first - after[..., :1]) * share, last + (last - before[..., -1:]) * other
    return cat([first, inner, last], -1)


# ---------------------------------------------------------------- how variables vary together
def cov(x: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """The covariances of variables, the rows of a matrix; frequencies and weights of observations.  Source: torch.cov."""
    if x.ndim > 2:
        msg = f"cov(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        raise UsageError(msg)
    x = reshape(x, 1, -1) if x.ndim < 2 else x
    n = x.shape[1]
    for name, given in (("fweights", fweights), ("aweights", aweights)):
        if given is not None and (given.ndim > 1 or given.numel() != n
                                  or (given.dtype.category == INT) != (name == "fweights")):
            msg = f"cov(): expected {name} to be a vector of {n} {'integers' if name == 'fweights' else 'floating numbers'}"
            raise UsageError(msg)
    weights = aweights if fweights is None else fweights if aweights is None else fweights * aweights
    if weights is None:
        centered = x - mean(x if x.dtype.category >= FLOAT else x.to(get_default_dtype()), 1, keepdim=True)
        norm: Any = n - correction
        return squeeze(true_divide(mm(centered, conj(t(centered))), tensor(max(norm, 0), dtype=centered.dtype.to_real())))
    total = sum_over(weights)
    centered = x - unsqueeze(true_divide(sum_over(x * weights, 1), total), 1)
    if aweights is None or correction == 0:
        norm = total - correction
    else:
        norm = total - correction * sum_over(weights * aweights) / total
    return squeeze(true_divide(mm(centered, conj(t(centered * weights))), clamp(norm, 0)))


def corrcoef(x: Tensor) -> Tensor:
    """The correlations of variables, the rows of a matrix, each at most 1.  Source: torch.corrcoef."""
    if x.ndim > 2:
        msg = f"corrcoef(): expected input to have two or fewer dimensions but got an input with {x.ndim} dimensions"
        raise UsageError(msg)
    c = cov(x)
    if not c.ndim:
        return c / c
    deviations = sqrt(real(diagonal(c)) if c.dtype.is_complex else diagonal(c))
    c = c / unsqueeze(deviations, 1) / unsqueeze(deviations, 0)
    if not c.dtype.is_complex:
        return clamp(c, -1, 1)
    return clamp(real(c), -1, 1) + clamp(imag(c), -1, 1) * 1j
