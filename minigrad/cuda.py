"""CUDA devices, by cupy, which is imported when one is first asked for.

Bytes are those of minigrad's tensors; what cupy's pool reserves is not counted.

Source: torch.cuda.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .devices.gpu import CudaEvent as Event
from .devices.gpu import CudaStream as Stream
from .devices.gpu import found as _found
from .devices.streams import stream
from .errors import UsageError
from .memory import live_bytes, peak_bytes, reset_peak, stats

if TYPE_CHECKING:
    from .backend import Device

__all__ = ["Event", "Stream", "current_stream", "default_stream", "is_available", "max_memory_allocated", "memory_allocated",
           "memory_stats", "reset_peak_memory_stats", "stream", "synchronize"]


def is_available() -> bool:
    """Return whether cupy and a GPU are there.  Source: torch.cuda.is_available."""
    try:
        _found(0)
    except UsageError:
        return False
    return True


def current_stream(device: str | int | Device | None = None) -> Stream:
    """Return the stream that kernels run on here.  Source: torch.cuda.current_stream."""
    return _found(device).current_stream()  # type: ignore[no-any-return]


def default_stream(device: str | int | Device | None = None) -> Stream:
    """Return the stream of whoever names none.  Source: torch.cuda.default_stream."""
    return _found(device).default_stream  # type: ignore[no-any-return]


def synchronize(device: str | int | Device | None = None) -> None:
    """Wait until everything that was asked for is done.  Source: torch.cuda.synchronize."""
    _found(device).synchronize()


def memory_stats(device: str | int | Device | None = None) -> dict[str, int]:
    """Return bytes and memories in use, their peaks and totals, and the bytes copied.  Source: torch.cuda.memory_stats."""
    return stats(_found(device))


def memory_allocated(device: str | int | Device | None = None) -> int:
    """Return the bytes in use.  Source: torch.cuda.memory_allocated."""
    return live_bytes(_found(device))


def max_memory_allocated(device: str | int | Device | None = None) -> int:
    """Return the most bytes in use since the peak was reset.  Source: torch.cuda.max_memory_allocated."""
    return peak_bytes(_found(device))


def reset_peak_memory_stats(device: str | int | Device | None = None) -> None:
    """Start the peaks again from what is in use now.  Source: torch.cuda.reset_peak_memory_stats."""
    reset_peak(_found(device))
