"""Live bytes from op to op, and what was alive at the peak.

    with memory.timeline() as t:
        f(x).backward()
    print(t)                                 # of each device the peak, and what was alive then
    t.export_chrome_trace("memory.json")     # for chrome://tracing or ui.perfetto.dev

A watcher notes each memory when it is made and when it dies; time is the number of base ops so far.
[NOTE what-is-kept]

Source: torch.cuda.memory._record_memory_history, torch.profiler.profile.export_chrome_trace.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from .backend import CPU, memory_of
from .backend import device as find_device
from .lines import line_of_caller
from .state import Watcher, current, using
from .tensor import storage_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike

    from .backend import Device
    from .interpreters.base import Interpreter

__all__ = ["Memory", "Timeline", "timeline"]


class Memory(NamedTuple):
    """One memory that was made."""

    device: str
    nbytes: int
    look: str
    """`float64[3, 4]`."""
    op: str
    """The op that made it; `from host`, where save_on_cpu brought it back."""
    at: int
    """The number of that op."""
    line: str
    """Where the program asked for it."""

    def __str__(self) -> str:
        return f"{self.nbytes} B {self.look}, {self.op} (op {self.at}), {self.line}"


class Change(NamedTuple):
    """A memory is made, or dies."""

    at: int
    memory: Memory
    made: bool


class Peak(NamedTuple):
    """The most bytes at once, of what a timeline saw being made."""

    nbytes: int
    at: int
    alive: tuple[Memory, ...]
    """What was alive then, in the order it was made."""


class Timeline(Watcher):
    """What was made and freed in a `timeline` block: integers and text, which keep nothing alive."""

    __slots__ = ("__weakref__", "_alive", "changes", "ops")

    def __init__(self) -> None:
        self.ops: list[tuple[str, str]] = []
        """Of each base op its name and the line that asked for it."""
        self.changes: list[Change] = []
        self._alive: dict[int, tuple[ref[Any], int]] = {}

    def close(self) -> None:
        """Note no more, also of what dies later."""
        self._alive.clear()

    # ------------------------------------------------------------ being told
    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "op" and owner is None:
            self.ops.append((subject.name, line_of_caller()))
        elif event == "made":
            op, line = self.ops[-1] if self.ops else ("", line_of_caller())
            memory = memory_of(subject.value) if subject.device is CPU else storage_of(subject)
            array = subject.value
            self._made(memory, int(array.nbytes), subject.device, f"{subject.dtype.name}{list(array.shape)}", op, line)
        elif event == "copy" and len(detail) == 3:
            store = detail[2]
            self._made(store, store.nbytes(), subject, f"{store.kind.dtype.name}{list(store.array.shape)}", detail[0],
                       line_of_caller())

    def _made(self, owner: Any, nbytes: int, device: Device, look: str, op: str, line: str) -> None:
        key = id(owner)
        if key not in self._alive:
            memory = Memory(str(device), nbytes, look, op, max(len(self.ops) - 1, 0), line)
            self.changes.append(Change(memory.at, memory, made=True))
            self._alive[key] = ref(owner, partial(_died, ref(self), key)), len(self.changes) - 1

    def died(self, key: int) -> None:
        """A memory that was noted is gone."""
        found = self._alive.pop(key, None)
        if found is not None:
            self.changes.append(Change(max(len(self.ops) - 1, 0), self.changes[found[1]].memory, made=False))

    # ------------------------------------------------------------ being asked
    @property
    def devices(self) -> list[str]:
        """The devices on which something was made."""
        return list(dict.fromkeys(change.memory.device for change in self.changes))

    def _of(self, device: str | Device) -> list[Change]:
        name = str(find_device(device))
        return [change for change in self.changes if change.memory.device == name]

    def live(self, device: str | Device) -> list[tuple[int, int]]:
        """Return (op index, live bytes) after each change on that device, of what was made within the block."""
        points, live = [], 0
        for change in self._of(device):
            live += change.memory.nbytes if change.made else -change.memory.nbytes
            points.append((change.at, live))
        return points

    def peak(self, device: str | Device) -> Peak:
        """Return the most bytes at once on that device, when that was, and what was alive then."""
        points = self.live(device)
        if not points:
            return Peak(0, 0, ())
        top = max(range(len(points)), key=lambda k: points[k][1])
        alive: list[Memory] = []
        for change in self._of(device)[:top + 1]:
            if change.made:
                alive.append(change.memory)
            else:
                alive.pop(next(k for k, memory in enumerate(alive) if memory is change.memory))
        return Peak(points[top][1], points[top][0], tuple(alive))

    def __str__(self) -> str:
        lines = []
        for device in self.devices:
            peak = self.peak(device)
            lines += [f"{device}: peak {peak.nbytes} B at op {peak.at} of {len(self.ops)}", *[f"  {m}" for m in peak.alive]]
        return "\n".join(lines) or "nothing was made"

    # ------------------------------------------------------------ Chrome's format
    def chrome_trace(self) -> dict[str, Any]:
        """Return the trace: a process for each device, a slice for each op and memory, a counter of live bytes.

        A microsecond stands for an op.  Source: the Trace Event Format of chrome://tracing.
        """
        pids = {device: k + 1 for k, device in enumerate(self.devices)}
        events: list[dict[str, Any]] = [{"ph": "M", "name": "process_name", "pid": pid, "args": {"name": name}}
                                        for name, pid in {"ops": 0, **pids}.items()]
        events += [{"ph": "X", "name": op, "cat": "op", "pid": 0, "tid": 0, "ts": k, "dur": 1, "args": {"line": line}}
                   for k, (op, line) in enumerate(self.ops)]
        numbers: dict[int, int] = {}
        for change in self.changes:
            memory, pid = change.memory, pids[change.memory.device]
            number = numbers.setdefault(id(memory), len(numbers))
            about = {"bytes": memory.nbytes, "op": memory.op, "line": memory.line}
            events.append({"ph": "b" if change.made else "e", "name": memory.look, "cat": "memory", "id": number, "pid": pid,
                           "tid": 0, "ts": change.at, "args": about})
        for device, pid in pids.items():
            events += [{"ph": "C", "name": "live bytes", "pid": pid, "ts": index, "args": {"bytes": live}}
                       for index, live in self.live(device)]
        return {"traceEvents": events, "displayTimeUnit": "ms"}

    def export_chrome_trace(self, path: str | PathLike[str]) -> None:
        """Write the trace to a file.  Source: torch.profiler.profile.export_chrome_trace."""
        with open(path, "w", encoding="utf-8") as file:  # noqa: PTH123  as torch's, a path of any kind
            json.dump(self.chrome_trace(), file)


def _died(timeline: ref[Timeline], key: int, _: object) -> None:
    found = timeline()
    if found is not None:
        found.died(key)


@contextmanager
def timeline() -> Iterator[Timeline]:
    """Within this context every memory that this thread makes is noted, on every device, until the block ends."""
    noted = Timeline()
    state = current()
    try:
        with using(state._replace(watchers=(*state.watchers, noted))):
            yield noted
    finally:
        noted.close()
