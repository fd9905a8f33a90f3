"""Bytes in use, exactly, for each device. [NOTE bytes-are-counted]

A memory is counted from the op that makes it until nothing refers to it any more; views cost nothing, and neither does what
a kernel allocates and frees within itself.  `sim` and `cuda` count always; `cpu` counts only what is made inside
`measured("cpu")`, because counting costs more than a small op, and what was there before stays uncounted.

Source: torch.cuda.memory (whose keys `stats` has).
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import ref

from .backend import CPU, memory_of
from .backend import device as find_device
from .residuals import saved_residuals
from .state import Watcher, current, using
from .timeline import timeline

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .backend import Array, Device
    from .devices.counts import Stats
    from .interpreters.base import Interpreter

__all__ = ["live_bytes", "measured", "peak_bytes", "reset_peak", "saved_residuals", "stats", "timeline"]


def live_bytes(device: str | Device) -> int:
    """Return the bytes in use.  Source: torch.cuda.memory_allocated."""
    return find_device(device).stats.bytes.live


def peak_bytes(device: str | Device) -> int:
    """Return the most bytes that were in use since the last `reset_peak`.  Source: torch.cuda.max_memory_allocated."""
    return find_device(device).stats.bytes.peak


def reset_peak(device: str | Device) -> None:
    """Start the peaks again, from what is in use now.  Source: torch.cuda.reset_peak_memory_stats."""
    counted = find_device(device).stats
    for count in (counted.bytes, counted.blocks):
        count.peak = count.live


def stats(device: str | Device) -> dict[str, int]:
    """Return what is in use now, its peak, what was ever allocated and freed (bytes; memories), and the bytes copied.

    Source: torch.cuda.memory_stats; copied_bytes.to_host and copied_bytes.to_device are minigrad's own.
    """
    counted = find_device(device).stats
    found: dict[str, int] = {}
    for key, count in (("allocated_bytes", counted.bytes), ("allocation", counted.blocks)):
        found |= {f"{key}.all.current": count.live, f"{key}.all.peak": count.peak, f"{key}.all.allocated": count.allocated,
                  f"{key}.all.freed": count.allocated - count.live}
    return found | {"copied_bytes.to_host": counted.to_host, "copied_bytes.to_device": counted.to_device}


class Measure:
    """What a `measured` block has allocated so far, or had when it ended."""

    __slots__ = ("_before", "_ended", "_peak_outside", "_stats")

    def __init__(self, counted: Stats) -> None:
        self._stats = counted
        self._before = counted.bytes.live, counted.blocks.allocated
        self._peak_outside = counted.bytes.peak
        self._ended: tuple[int, int, int] | None = None
        counted.bytes.peak = counted.bytes.live

    def end(self) -> None:
        """Stand still, and give an enclosing block its peak back."""
        self._ended = self._now()
        self._stats.bytes.peak = max(self._peak_outside, self._stats.bytes.peak)

    def _now(self) -> tuple[int, int, int]:
        live, allocations = self._before
        now = self._stats
        return self._ended or (now.bytes.live - live, now.bytes.peak - live, now.blocks.allocated - allocations)

    @property
    def live(self) -> int:
        """Bytes in use, less what was in use when the block began."""
        return self._now()[0]

    @property
    def peak(self) -> int:
        """The most that `live` has been."""
        return self._now()[1]

    @property
    def allocations(self) -> int:
        """How many memories were made."""
        return self._now()[2]

    def __repr__(self) -> str:
        return f"<live {self.live} B, peak {self.peak} B, {self.allocations} allocations>"


@contextmanager
def measured(device: str | Device) -> Iterator[Measure]:
    """Within this context count what is allocated on a device; such contexts nest.

    Of cpu only what this thread makes within the context is counted, until it is freed, however long that takes.
    """
    where = find_device(device)
    state = current()
    measure = Measure(where.stats)
    try:
        with using(state._replace(watchers=(*state.watchers, _COUNTER)) if where is CPU else state):
            yield measure
    finally:
        measure.end()


class _HostCounter(Watcher):
    """Counts host memories from the moment they are made to that of their death."""

    __slots__ = ("counted",)

    def __init__(self) -> None:
        self.counted: dict[int, ref[Array]] = {}

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "made" and subject.device is CPU:
            memory = memory_of(subject.value)
            if id(memory) not in self.counted:
                CPU.stats.allocated(memory.nbytes)
                self.counted[id(memory)] = ref(memory, partial(self._freed, id(memory), memory.nbytes))

    def _freed(self, key: int, nbytes: int, _: object) -> None:
        del self.counted[key]
        CPU.stats.freed(nbytes)


_COUNTER = _HostCounter()
