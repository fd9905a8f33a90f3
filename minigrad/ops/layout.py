"""Memory formats: in which order a tensor's elements lie in memory.

    preserve_format     as they lie now (what a clone keeps)
    contiguous_format   the last dimension closest together
    channels_last       of (N, C, H, W): C closest together; channels_last_3d of (N, C, D, H, W)

Source: torch.memory_format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from . import rearrange, shape

if TYPE_CHECKING:
    from ..tensor import Tensor


class memory_format:  # noqa: N801  torch spells it so
    """One order of elements.  Source: torch.memory_format."""

    __slots__ = ("name", "rank")

    def __init__(self, name: str, rank: int | None = None) -> None:
        self.name = name
        self.rank = rank

    def __repr__(self) -> str:
        return f"minigrad.{self.name}"

    def __reduce__(self) -> str:
        return self.name


preserve_format = memory_format("preserve_format")
contiguous_format = memory_format("contiguous_format")
channels_last = memory_format("channels_last", 4)
channels_last_3d = memory_format("channels_last_3d", 5)


def clone(x: Tensor, *, memory_format: memory_format = preserve_format) -> Tensor:
    """A copy, whose elements lie as those of `x` or in another order.  Source: torch.clone."""
    if memory_format is contiguous_format:
        return shape.contiguous_row(x)  # type: ignore[no-any-return]
    return shape.clone(x) if memory_format is preserve_format else _channels_last(x, memory_format)


def contiguous(x: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """`x` itself where its elements lie in that order, else a copy where they do.  Source: torch.Tensor.contiguous."""
    return x if is_contiguous(x, memory_format) else clone(x, memory_format=memory_format)


def is_contiguous(x: Tensor, memory_format: memory_format = contiguous_format) -> bool:
    """Whether elements lie in memory in that order, without gaps.  Source: torch.Tensor.is_contiguous."""
    if memory_format.rank is None:
        return rearrange.is_contiguous(x)
    return x.ndim == memory_format.rank and rearrange.is_contiguous(shape.movedim(x, 1, -1))


def in_format(x: Tensor, wanted: memory_format | None) -> Tensor:
    """What Tensor.to does for a memory format: nothing, where it is to be preserved."""
    return x if wanted is None or wanted is preserve_format else contiguous(x, wanted)


def _channels_last(x: Tensor, wanted: memory_format) -> Tensor:
    if x.ndim != wanted.rank:
        msg = f"required rank {wanted.rank} tensor to use {wanted.name} format"
        raise UsageError(msg)
    return shape.movedim(shape.contiguous_row(shape.movedim(x, 1, -1)), -1, 1)
