"""The simulated accelerator: numpy memory in an address space of its own, counted to the byte.

Source: torch.cuda (its names).
"""

from __future__ import annotations

from . import memory

__all__ = ["is_available", "max_memory_allocated", "memory_allocated", "memory_stats", "reset_peak_memory_stats", "synchronize"]


def is_available() -> bool:
    """Return True: every machine has one.  Source: torch.cuda.is_available."""
    return True


def synchronize() -> None:
    """Wait for all that was asked for: for nothing, as copies are made at once.  Source: torch.cuda.synchronize."""


def memory_stats() -> dict[str, int]:
    """Return bytes and memories in use, their peaks and totals, and the bytes copied.  Source: torch.cuda.memory_stats."""
    return memory.stats("sim")


def memory_allocated() -> int:
    """Return the bytes in use.  Source: torch.cuda.memory_allocated."""
    return memory.live_bytes("sim")


def max_memory_allocated() -> int:
    """Return the most bytes in use since the peak was reset.  Source: torch.cuda.max_memory_allocated."""
    return memory.peak_bytes("sim")


def reset_peak_memory_stats() -> None:
    """Start the peaks again from what is in use now.  Source: torch.cuda.reset_peak_memory_stats."""
    memory.reset_peak("sim")
