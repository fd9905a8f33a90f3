"""Images at the places that a grid names: composed of gathers, with a weight for each place that is read.

A grid holds coordinates in [-1, 1], the last dimension's first.  With align_corners -1 and 1 are the middles of the outermost
pixels, else their outer edges.

Source: torch.nn.functional.grid_sample, torch.nn.functional.affine_grid.
"""

from __future__ import annotations

import warnings
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, int64
from ..errors import UsageError
from .choice import choose, clamp, where
from .creation import arange, ones_like, zeros_like
from .gather import gather_at
from .joining import select, stack
from .linalg import matmul
from .pointwise import abs as absolute
from .pointwise import floor, remainder
from .pointwise import round as rounded
from .rearrange import meshgrid
from .reduction import sum as sum_over
from .resampling import cubic_weights
from .shape import detach, reshape, transpose, unsqueeze, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tensor import Tensor

MODES = ("bilinear", "nearest", "bicubic")
PADDINGS = ("zeros", "border", "reflection")


# ---------------------------------------------------------------- one coordinate
def _inside(x: Tensor, extent: int, padding: str, align_corners: bool) -> Tensor:
    """A coordinate brought into the image; with "zeros" it stays where it is."""
    if padding == "zeros":
        return x
    if padding == "reflection":
        low, span = (0.0, extent - 1.0) if align_corners else (-0.5, float(extent))
        x = low + span - absolute(remainder(x - low, 2 * span) - span) if span else zeros_like(x)
    return choose((x > 0) & (x < extent - 1), x, detach(clamp(x, 0, extent - 1)))  # type: ignore[no-any-return]


def _taps(x: Tensor, extent: int, mode: str, padding: str, align_corners: bool) -> list[tuple[Tensor, Any]]:
    """The pixels that are read along one dimension, each with its weight."""
    x = (x + 1) / 2 * (extent - 1) if align_corners else ((x + 1) * extent - 1) / 2
    if mode == "bicubic":
        low = floor(x)
        return [(_inside(low + k, extent, padding, align_corners), w)
                for k, w in zip(range(-1, 3), cubic_weights(x - low), strict=True)]
    x = _inside(x, extent, padding, align_corners)
    if mode == "nearest":
        return [(rounded(x), ones_like(x))]
    low = floor(x)
    return [(low, low + 1 - x), (low + 1, x - low)]


# ---------------------------------------------------------------- the whole
def _check(x: Tensor, grid: Tensor) -> None:
    wanted = None
    if x.dtype is not grid.dtype:
        wanted = "input and grid to have same dtype"
    elif x.ndim not in (4, 5) or x.ndim != grid.ndim:
        wanted = "4D or 5D input and grid with same number of dimensions"
    elif x.shape[0] != grid.shape[0]:
        wanted = "grid and input to have same batch size"
    elif grid.shape[-1] != x.ndim - 2:
        wanted = f"grid to have size {x.ndim - 2} in last dimension"
    elif 0 in x.shape[2:]:
        wanted = "input to have non-empty spatial dimensions"
    if wanted:
        msg = (f"grid_sampler(): expected {wanted}, but got input with sizes {list(x.shape)} ({x.dtype}) and grid with sizes "
               f"{list(grid.shape)} ({grid.dtype})")
        raise UsageError(msg)


def _sampled(x: Tensor, grid: Tensor, mode: str, padding: str, align_corners: bool) -> Tensor:
    """(N, C, *extents) at (N, *places, rank) as (N, C, *places)."""
    n, channels, *extents = x.shape
    places, rank = grid.shape[1:-1], len(extents)
    each = [_taps(reshape(select(grid, -1, rank - 1 - d), n, prod(places)), extent, mode, padding, align_corners)
            for d, extent in enumerate(extents)]
    indices, weights = [], []
    for taps in product(*each):
        index, weight = zeros_like(taps[0][0]), ones_like(taps[0][0])
        for (pixel, part), extent in zip(taps, extents, strict=True):
            there = (pixel >= 0) & (pixel <= extent - 1)
            index = index * extent + where(there, pixel, 0)
            weight = weight * part * there
        indices.append(index)
        weights.append(weight)
    index = reshape(stack(indices, 1).to(int64), n, 1, len(indices) * prod(places))
    seen = gather_at(reshape(x, n, channels, prod(extents)), widened(index, n, channels, index.shape[-1]), dim=2)
    seen = reshape(seen, n, channels, len(indices), prod(places))
    return reshape(sum_over(seen * unsqueeze(stack(weights, 1), 1), 2), n, channels, *places)


def grid_sampler(x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """As grid_sample, with numbers for the modes: their places in MODES and PADDINGS.

    Raises UsageError where image and grid do not fit, and for bicubic in 3D.  Source: torch.grid_sampler.
    """
    _check(x, grid)
    if x.ndim == 5 and interpolation_mode == 2:
        msg = "grid_sampler(): bicubic interpolation only supports 4D input"
        raise UsageError(msg)
    return _sampled(x, grid, MODES[interpolation_mode], PADDINGS[padding_mode], align_corners)


def grid_sampler_2d(x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler, of (N, C, H, W).  Source: torch.grid_sampler_2d."""
    return grid_sampler(x, grid, interpolation_mode, padding_mode, align_corners)


def grid_sampler_3d(x: Tensor, grid: Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool) -> Tensor:
    """grid_sampler, of (N, C, D, H, W).  Source: torch.grid_sampler_3d."""
    return grid_sampler(x, grid, interpolation_mode, padding_mode, align_corners)


def _said(align_corners: bool | None) -> bool:
    if align_corners is None:
        warnings.warn("Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please "
                      "specify align_corners=True if the old behavior is desired.", stacklevel=3)
    return bool(align_corners)


def grid_sample(x: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:
    """(N, C, H, W) at the places (N, h, w, 2) of a grid, as (N, C, h, w); the same with a third dimension.

    mode: "bilinear" (in 3D trilinear), "nearest", "bicubic" (2D); padding_mode: what lies outside of the image, "zeros",
    "border", the outermost pixel, or "reflection".
    Raises ValueError for another word, else as grid_sampler.  Source: torch.nn.functional.grid_sample.
    """
    for name, given, known in (("mode", mode, MODES), ("padding_mode", padding_mode, PADDINGS)):
        if given not in known:
            msg = f"nn.functional.grid_sample(): expected {name} to be one of {known}, but got: '{given}'"
            raise ValueError(msg)
    return grid_sampler(x, grid, MODES.index(mode), PADDINGS.index(padding_mode), _said(align_corners))


def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid of an image (N, C, H, W) that affine maps theta (N, 2, 3) move; the same in 3D, theta (N, 3, 4).

    Raises ValueError where theta is none, NotImplementedError for other sizes.  Source: torch.nn.functional.affine_grid.
    """
    align_corners, rank = _said(align_corners), len(size) - 2
    if theta.dtype.category != FLOAT:
        msg = f"Expected theta to have floating point type, but got {theta.dtype}"
        raise ValueError(msg)
    if rank not in (2, 3):
        msg = f"affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms. Got size {list(size)}."
        raise NotImplementedError(msg)
    if theta.ndim != 3 or theta.shape[1:] != (rank, rank + 1):
        msg = (f"Expected a batch of {rank}D affine matrices of shape Nx{rank}x{rank + 1} for size {list(size)}. Got "
               f"{list(theta.shape)}.")
        raise ValueError(msg)
    middles = meshgrid(*[_middles(n, theta, align_corners) for n in size[2:]])
    places = stack([*reversed(middles), ones_like(middles[0])], -1)
    flat = matmul(reshape(places, 1, -1, rank + 1), transpose(theta, 1, 2))
    return reshape(flat, theta.shape[0], *size[2:], rank)


def _middles(n: int, like: Tensor, align_corners: bool) -> Tensor:
    """The middles of n pixels, as a grid names them."""
    steps = arange(n, dtype=like.dtype, device=like.device)
    return (steps * 2 - (n - 1)) / (max(n - 1, 1) if align_corners else n)
