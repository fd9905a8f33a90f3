"""The simulated accelerator: numpy memory in an address space of its own, counted to the byte, and streams.

What a stream is asked for happens when somebody waits for it, and not before. [NOTE late-on-purpose]

Source: torch.cuda (its names).
"""

from __future__ import annotations

from typing import Any

from .devices.simulated import SIM
from .devices.simulated import SimEvent as Event
from .devices.simulated import SimStream as Stream
from .devices.streams import stream
from .memory import live_bytes, peak_bytes, reset_peak, stats

__all__ = ["Event", "Stream", "current_stream", "default_stream", "is_available", "max_memory_allocated", "memory_allocated",
           "memory_stats", "reset_peak_memory_stats", "stream", "synchronize"]


def is_available() -> bool:
    """Return True: every machine has one.  Source: torch.cuda.is_available."""
    return True


def current_stream(device: Any = None) -> Stream:
    """Return the stream that kernels run on here.  Source: torch.cuda.current_stream."""
    return SIM.current_stream()  # type: ignore[no-any-return]


def default_stream(device: Any = None) -> Stream:
    """Return the stream of whoever names none.  Source: torch.cuda.default_stream."""
    return SIM.default_stream  # type: ignore[no-any-return]


def synchronize(device: Any = None) -> None:
    """Wait for all that every stream was asked for.  Source: torch.cuda.synchronize."""
    SIM.synchronize()


def memory_stats() -> dict[str, int]:
    """Return bytes and memories in use, their peaks and totals, and the bytes copied.  Source: torch.cuda.memory_stats."""
    return stats("sim")


def memory_allocated() -> int:
    """Return the bytes in use.  Source: torch.cuda.memory_allocated."""
    return live_bytes("sim")


def max_memory_allocated() -> int:
    """Return the most bytes in use since the peak was reset.  Source: torch.cuda.max_memory_allocated."""
    return peak_bytes("sim")


def reset_peak_memory_stats() -> None:
    """Start the peaks again from what is in use now.  Source: torch.cuda.reset_peak_memory_stats."""
    reset_peak("sim")
