"""What else is made of windows: the inverse of max pooling, norms of windows, normalization by the channels around.

Composed of pooling, padding and scattering.

Source: torch.nn.functional.max_unpool2d, lp_pool2d, local_response_norm and their kin.
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

from ..dtypes import int64
from ..errors import UsageError
from .activation import relu
from .convolution import tupled
from .creation import new_zeros
from .embedding import pad
from .gather import scatter_at
from .pointwise import abs as absolute
from .pointwise import pow as power
from .pointwise import sign
from .pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from .shape import reshape

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor


# ---------------------------------------------------------------- the inverse of max pooling
def _unpooled(rank: int, x: Tensor, indices: Tensor, kernel_size: Any, stride: Any, padding: Any, output_size: Any) -> Tensor:
    if indices.dtype is not int64:
        msg = f"elements in indices should be type int64 but got: {indices.dtype}"
        raise UsageError(msg)
    if indices.shape != x.shape:
        msg = (f"Expected shape of indices to be same as that of the input tensor ({list(x.shape)}) but got indices tensor "
               f"with shape: {list(indices.shape)}")
        raise UsageError(msg)
    if x.ndim not in (rank + 1, rank + 2):
        msg = (f"Input to max_unpooling{rank}d should be a {rank + 1}d or {rank + 2}d Tensor, but got a tensor with {x.ndim} "
               "dimensions.")
        raise UsageError(msg)
    size = tupled("kernel_size", kernel_size, rank)
    steps = size if stride is None else tupled("stride", stride, rank)
    extents = _extents(x.shape[-rank:], size, steps, tupled("padding", padding, rank), output_size)
    lead = x.shape[:-rank]
    flat = scatter_at(new_zeros(x, *lead, prod(extents)), reshape(indices, *lead, -1), reshape(x, *lead, -1), dim=len(lead))
    return reshape(flat, *lead, *extents)


def _extents(given: tuple[int, ...], size: tuple[int, ...], steps: tuple[int, ...], around: tuple[int, ...],
             wanted: Any) -> list[int]:
    """The extents that were pooled: several come to the same windows, of which `wanted` may choose."""
    found = [(n - 1) * s + k - 2 * p for n, k, s, p in zip(given, size, steps, around, strict=True)]
    if wanted is None:
        return found
    out = list(wanted)[-len(size):]
    if len(wanted) not in (len(size), len(size) + 2):
        msg = (f"output_size should be a sequence containing {len(size)} or {len(size) + 2} elements, but it has a length of "
               f"'{len(wanted)}'")
        raise ValueError(msg)
    for d, (n, m, s) in enumerate(zip(found, out, steps, strict=True)):
        if not n - s < m < n + s:
            msg = f'invalid output_size "{out}" (dim {d} must be between {n - s} and {n + s})'
            raise ValueError(msg)
    return out


def max_unpool1d(x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
    """As max_unpool2d, of (N, C, L).  Source: torch.nn.functional.max_unpool1d."""
    return _unpooled(1, x, indices, kernel_size, stride, padding, output_size)


def max_unpool2d(x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
    """(N, C, h, w) at the places that max_pool2d took them from, zeros elsewhere.  Source: torch.nn.functional.max_unpool2d."""
    return _unpooled(2, x, indices, kernel_size, stride, padding, output_size)


def max_unpool3d(x: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0,
                 output_size: Any = None) -> Tensor:
    """As max_unpool2d, of (N, C, D, H, W).  Source: torch.nn.functional.max_unpool3d."""
    return _unpooled(3, x, indices, kernel_size, stride, padding, output_size)


# ---------------------------------------------------------------- norms of windows
def _norms(rank: int, x: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    largest: Callable[..., Any] = (max_pool1d, max_pool2d, max_pool3d)[rank - 1]
    mean: Callable[..., Tensor] = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
    if norm_type == inf:
        return largest(absolute(x), kernel_size, stride, ceil_mode=ceil_mode)  # type: ignore[no-any-return]
    if norm_type == -inf:
        return -largest(-absolute(x), kernel_size, stride, ceil_mode=ceil_mode)  # type: ignore[no-any-return]
    out = mean(power(x, norm_type), kernel_size, stride, ceil_mode=ceil_mode)
    return power(sign(out) * relu(absolute(out)) * prod(tupled("kernel_size", kernel_size, rank)), 1 / norm_type)


def lp_pool1d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """As lp_pool2d, of (N, C, L).  Source: torch.nn.functional.lp_pool1d."""
    return _norms(1, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool2d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """(sum of x ** p) ** (1 / p) over each window of (N, C, H, W), p the norm_type.  Source: torch.nn.functional.lp_pool2d."""
    return _norms(2, x, norm_type, kernel_size, stride, ceil_mode)


def lp_pool3d(x: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
    """As lp_pool2d, of (N, C, D, H, W).  Source: torch.nn.functional.lp_pool3d."""
    return _norms(3, x, norm_type, kernel_size, stride, ceil_mode)


# ---------------------------------------------------------------- normalization by the channels around
def local_response_norm(x: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """x / (k + alpha times the mean square of `size` channels around) ** beta.

    Source: torch.nn.functional.local_response_norm.
    """
    if x.ndim < 3:
        msg = f"Expected 3D or higher dimensionality input (got {x.ndim} dimensions)"
        raise ValueError(msg)
    if not x.numel():
        return x
    n, channels, *rest = x.shape
    squares = reshape(x * x, n, 1, channels, prod(rest))
    means = avg_pool2d(pad(squares, (0, 0, size // 2, (size - 1) // 2)), (size, 1), stride=1)
    return x / power(reshape(means, x.shape) * alpha + k, beta)
