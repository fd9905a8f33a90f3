"""What is composed of pooling: its inverse, pooling at random places, norms of windows, normalization by the channels around.

Source: torch.nn.functional.max_unpool2d, fractional_max_pool2d, lp_pool2d, local_response_norm and their kin.
"""

from __future__ import annotations

from math import inf, prod
from typing import TYPE_CHECKING, Any

from ..dtypes import int64
from ..errors import UsageError
from .activation import relu
from .convolution import tupled
from .creation import arange, new_zeros
from .embedding import pad
from .extremes import max as largest
from .gather import gather_at, scatter_at
from .joining import cat, select
from .pointwise import abs as absolute
from .pointwise import pow as power
from .pointwise import sign, trunc
from .pooling import avg_pool1d, avg_pool2d, avg_pool3d, max_pool1d, max_pool2d, max_pool3d
from .random import rand
from .shape import reshape, squeeze, unsqueeze

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
    lead, places = x.shape[:-rank], prod(x.shape[-rank:])
    zeros = new_zeros(x, *lead, prod(extents))
    flat = scatter_at(zeros, reshape(indices, *lead, places), reshape(x, *lead, places), dim=len(lead))
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


# ---------------------------------------------------------------- windows at random places
def _places(sample: Tensor, extent: int, out: int, size: int) -> Tensor:
    """The places (N, C, out, size) that windows of one dimension see, by a random number (N, C) for each channel.

    Source: Graham, Fractional max-pooling (2014).
    """
    room, last = extent - size, new_zeros(sample, *sample.shape, 1)
    starts = last + room
    if out > 1:
        step, sample = room / (out - 1), unsqueeze(sample, -1)
        before = trunc((arange(out - 1, device=sample.device) + sample) * step) - trunc(sample * step)
        starts = cat([before, starts], -1)
    return unsqueeze(starts.to(int64), -1) + arange(size, device=sample.device)


def _fractional(rank: int, x: Tensor, kernel_size: Any, output_size: Any, output_ratio: Any, return_indices: bool,
                samples: Tensor | None) -> Any:
    if x.ndim == rank + 1:
        found = _fractional(rank, unsqueeze(x, 0), kernel_size, output_size, output_ratio, True, samples)
        return tuple(squeeze(y, 0) for y in found) if return_indices else squeeze(found[0], 0)
    if (output_size is None) == (output_ratio is None):
        msg = f"fractional_max_pool{rank}d requires specifying either an output_size or an output_ratio"
        raise ValueError(msg)
    n, channels, *extents = x.shape
    size = tupled("kernel_size", kernel_size, rank)
    if output_size is None:
        ratios = (output_ratio,) * rank if isinstance(output_ratio, float) else output_ratio
        outs = tuple(int(extent * ratio) for extent, ratio in zip(extents, ratios, strict=True))
    else:
        outs = tupled("output_size", output_size, rank)
    if any(out + k - 1 > extent for out, k, extent in zip(outs, size, extents, strict=True)):
        msg = f"fractional_max_pool{rank}d(): pool {size} is too large relative to input {extents} and output {outs}"
        raise UsageError(msg)
    samples = rand(n, channels, rank, dtype=x.dtype, device=x.device) if samples is None else samples
    order = reversed(range(rank)) if rank == 2 else range(rank)  # in 2D the last dimension takes the first number
    index: Any = 0
    for d, (k, extent) in enumerate(zip(order, extents, strict=True)):
        seen = _places(select(samples, 2, k), extent, outs[d], size[d])
        index = index * extent + reshape(seen, n, channels, *_at(d, rank, outs[d]), *_at(d, rank, size[d]))
    index = reshape(index, n, channels, prod(outs) * prod(size))
    flat = gather_at(reshape(x, n, channels, prod(extents)), index, dim=2)
    index, flat = (reshape(y, n, channels, prod(outs), prod(size)) for y in (index, flat))
    values, chosen = largest(flat, 3)
    out = reshape(values, n, channels, *outs)
    return (out, reshape(gather_at(index, unsqueeze(chosen, 3), dim=3), out.shape)) if return_indices else out


def _at(d: int, rank: int, extent: int) -> list[int]:
    return [extent if k == d else 1 for k in range(rank)]


def fractional_max_pool2d(x: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """The largest element of each of output_size windows of (N, C, H, W), of one size and a random distance.

    output_ratio: output_size as a part of (H, W).  Source: torch.nn.functional.fractional_max_pool2d.
    """
    return _fractional(2, x, kernel_size, output_size, output_ratio, return_indices, _random_samples)


def fractional_max_pool3d(x: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                          return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:
    """As fractional_max_pool2d, of (N, C, D, H, W).  Source: torch.nn.functional.fractional_max_pool3d."""
    return _fractional(3, x, kernel_size, output_size, output_ratio, return_indices, _random_samples)


# ---------------------------------------------------------------- norms of windows
def _norms(rank: int, x: Tensor, norm_type: float, kernel_size: Any, stride: Any, ceil_mode: bool) -> Tensor:
    pooled: Callable[..., Any] = (max_pool1d, max_pool2d, max_pool3d)[rank - 1]
    mean: Callable[..., Tensor] = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
    if norm_type == inf:
        return pooled(absolute(x), kernel_size, stride, ceil_mode=ceil_mode)  # type: ignore[no-any-return]
    if norm_type == -inf:
        return -pooled(-absolute(x), kernel_size, stride, ceil_mode=ceil_mode)  # type: ignore[no-any-return]
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
    """x / (k + alpha times the mean square of `size` channels around) ** beta, for (N, C, ..).

    Raises ValueError for less than three dimensions.  Source: torch.nn.functional.local_response_norm.
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
