"""Distances of every pair of vectors: a row that keeps the vectors, not their differences, and what is composed for one set.

Upstream: _cdist_forward, _euclidean_dist, _pdist_forward in derivatives.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import dtype_of
from ..dtypes import int64
from ..errors import UsageError
from ..row import OpFunction, row
from .batching import aligned
from .creation import tensor
from .gather import index_select
from .linalg import bmm_rows, broadcast_shapes
from .norm import norm_kernel, norm_slope, vector_norm
from .reduction import total_of
from .shape import squeeze, sum_dims, transpose, unsqueeze

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


def _kernel(xp: Any, x0: Array, x1: Array, order: float) -> Array:
    d = x0[..., :, None, :] - x1[..., None, :, :]
    if not d.shape[-1]:
        return xp.zeros(d.shape[:-1], d.dtype)
    return norm_kernel(xp, d, order, (-1,), False, dtype_of(d))


def _slopes(x0: Tensor, x1: Tensor, out: Tensor, order: float) -> tuple[Any, Tensor]:
    """The derivative of each distance for x0, a factor and a vector in a last dimension; that for x1 is its negative."""
    d = unsqueeze(x0, -2) - unsqueeze(x1, -3)
    return norm_slope(d, out, order, (d.ndim - 1,), False)


def _weighed(g: Tensor, weight: Tensor) -> Any:
    """The vectors of `weight` summed over the last dimension but one, each times a number."""
    return squeeze(bmm_rows.plain(unsqueeze(g, -2), weight), -2)


def _vjp(ct: Tensor, x0: Tensor, x1: Tensor, out: Tensor, needs: tuple[bool, ...], order: float) -> list[Any]:
    each, weight = _slopes(x0, x1, out, order)
    g = ct * each
    return [_weighed(g, weight) if needs[0] else None,
            -_weighed(transpose(g, -2, -1), transpose(weight, -3, -2)) if needs[1] else None]


def _jvp(dx: list[Any], x0: Tensor, x1: Tensor, out: Tensor, order: float) -> Any:
    d = total_of(None if dx[0] is None else unsqueeze(dx[0], -2), None if dx[1] is None else -unsqueeze(dx[1], -3))
    each, weight = _slopes(x0, x1, out, order)
    return sum_dims(d * weight, dims=(weight.ndim - 1,), keepdim=False) * each


_cdist: OpFunction = row("_cdist_forward", _kernel, saves=("x0", "x1", "out"), batch=aligned, fits=True, vjp=_vjp, jvp=_jvp,
                         node="CdistBackward0")


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = "use_mm_for_euclid_dist_if_necessary") -> Tensor:
    """The p-norm of the difference of every row of x1 (.., n, k) and every row of x2 (.., m, k), as (.., n, m).

    compute_mode is torch's: products of matrices, which lose digits, are never used here.
    Raises UsageError for what are no matrices of real numbers, for rows of different lengths and for a negative p.
    Source: torch.cdist.
    """
    for name, x in (("X1", x1), ("X2", x2)):
        if not x.dtype.is_floating_point:
            msg = f"cdist only supports floating-point dtypes, {name} got: {x.dtype}"
            raise UsageError(msg)
        if x.ndim < 2:
            msg = f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D"
            raise UsageError(msg)
    if x1.shape[-1] != x2.shape[-1]:
        msg = f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}"
        raise UsageError(msg)
    if p < 0:
        msg = f"cdist only supports non-negative p values, but got {p}"
        raise UsageError(msg)
    broadcast_shapes(x1.shape[:-2], x2.shape[:-2])
    return _cdist(x1, x2, order=float(p))  # type: ignore[no-any-return]


def pdist(x: Tensor, p: float = 2) -> Tensor:
    """The p-norms of the differences of rows 0 and 1, 0 and 2, .. of a matrix, in a vector.

    Raises UsageError for what is no matrix of real numbers, and for a negative p.  Source: torch.pdist.
    """
    if x.ndim != 2 or not x.dtype.is_floating_point:
        msg = f"pdist only supports 2D tensors of a floating-point dtype, got: {x.ndim}D of {x.dtype}"
        raise UsageError(msg)
    if p < 0:
        msg = f"pdist only supports non-negative p values, but got {p}"
        raise UsageError(msg)
    n = x.shape[0]
    pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
    first, last = (index_select(x, 0, tensor([pair[k] for pair in pairs], dtype=int64, device=x.device)) for k in (0, 1))
    return vector_norm(first - last, p, -1)
