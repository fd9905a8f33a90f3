"""Channels as pixels and back, and channels in another order: reshape and permute around a copy, which nothing else shares.

Source: torch.nn.functional.pixel_shuffle, pixel_unshuffle, channel_shuffle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from .shape import contiguous_row, permute, reshape, transpose

if TYPE_CHECKING:
    from ..tensor import Tensor


def _check(name: str, x: Tensor, factor: int) -> None:
    if x.ndim < 3 or factor < 1:
        msg = f"{name} expects an input of at least 3 dimensions and a positive factor, but got {x.ndim} and {factor}"
        raise UsageError(msg)


def pixel_shuffle(x: Tensor, upscale_factor: int) -> Tensor:
    """(*, C r r, H, W) as (*, C, H r, W r).  Source: torch.nn.functional.pixel_shuffle."""
    _check("pixel_shuffle", x, upscale_factor)
    r, (channels, height, width), front = upscale_factor, x.shape[-3:], x.shape[:-3]
    if channels % (r * r):
        msg = ("pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
               f"input.size(-3)={channels} is not divisible by {r * r}")
        raise UsageError(msg)
    n = len(front)
    parts = reshape(x, *front, channels // (r * r), r, r, height, width)
    moved = permute(parts, *range(n), n, n + 3, n + 1, n + 4, n + 2)
    return reshape(contiguous_row(moved), *front, channels // (r * r), height * r, width * r)


def pixel_unshuffle(x: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H r, W r) as (*, C r r, H, W).  Source: torch.nn.functional.pixel_unshuffle."""
    _check("pixel_unshuffle", x, downscale_factor)
    r, (channels, height, width), front = downscale_factor, x.shape[-3:], x.shape[:-3]
    if height % r or width % r:
        msg = f"pixel_unshuffle expects height and width to be divisible by downscale_factor, but got {height}, {width} and {r}"
        raise UsageError(msg)
    n = len(front)
    parts = reshape(x, *front, channels, height // r, r, width // r, r)
    moved = permute(parts, *range(n), n, n + 2, n + 4, n + 1, n + 3)
    return reshape(contiguous_row(moved), *front, channels * r * r, height // r, width // r)


def channel_shuffle(x: Tensor, groups: int) -> Tensor:
    """The channels of all groups in turn.  Source: torch.nn.functional.channel_shuffle."""
    _check("channel_shuffle", x, groups)
    n, channels, *rest = x.shape
    if channels % groups:
        msg = f"Number of channels must be divisible by groups. Got {channels} channels and {groups} groups."
        raise UsageError(msg)
    return reshape(contiguous_row(transpose(reshape(x, n, groups, channels // groups, *rest), 1, 2)), x.shape)
