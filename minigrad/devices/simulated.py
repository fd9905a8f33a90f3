"""The simulated accelerator: numpy memory in an address space of its own, and streams whose work is late on purpose.

What a stream is asked for waits in a queue, and happens when somebody must wait for it: the host that synchronises, a kernel
that is launched on the same stream, or another stream that waits for an event.  Until then the memory holds poison: whoever
forgets to wait computes with that.  Memory is born with poison and dies with poison, which is work of the current stream.
[NOTE late-on-purpose]

A kernel runs at once, after what its stream was asked for before.
"""

from __future__ import annotations

from _thread import RLock
from collections import deque
from typing import TYPE_CHECKING, Any

from ..backend import CPU, QUEUED, address, new_device, poison, strided
from ..errors import UsageError
from .accelerator import Accelerator
from .pinned import block_of
from .streams import Event, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array
    from ..storage import CountedStorage

_LOCK = RLock()
"""Work is asked for and done by one thread at a time."""


class SimEvent(Event):
    """A number of things that a stream was asked for."""

    __slots__ = ("_place", "_stream")

    def __init__(self, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._stream: SimStream | None = None
        self._place = 0

    def record(self, stream: SimStream | None = None) -> None:
        self._stream = stream or SIM.current_stream()
        self._place = self._stream.asked

    def query(self) -> bool:
        return self._stream is None or self._stream.done >= self._place

    def synchronize(self) -> None:
        if self._stream is not None:
            self._stream.run(self._place)

    def wait(self, stream: SimStream | None = None) -> None:
        if not self.query():
            recorded, place = self._stream, self._place
            (stream or SIM.current_stream()).ask(lambda: recorded.run(place))  # type: ignore[union-attr]


class SimStream(Stream):
    """A queue of work, none of which happens before somebody must wait for it."""

    __slots__ = ("_work", "asked", "done")

    def __init__(self, device: Any = None, priority: int = 0) -> None:
        self.device = SIM
        self._work: deque[Callable[[], None]] = deque()
        self.asked = self.done = 0

    def ask(self, work: Callable[[], None]) -> None:
        """Let something happen after all that was asked for before, as late as possible."""
        with _LOCK:
            self._work.append(work)
            self.asked += 1
            SIM.busy[self] = None

    def after(self, work: Callable[[], None]) -> None:
        """Let something happen that is not worth waiting for: at once, or after all that was asked for before."""
        with _LOCK:
            if self._work:
                self.ask(work)
            else:
                work()

    def run(self, place: int | None = None) -> None:
        """Make it happen, up to a place or all of it."""
        with _LOCK:
            last = self.asked if place is None else place
            while self.done < last:
                work = self._work.popleft()
                try:
                    work()
                finally:
                    self.done += 1
                    if not self._work:
                        SIM.busy.pop(self, None)

    synchronize = run

    def query(self) -> bool:
        return self.done == self.asked

    def new_event(self) -> SimEvent:
        return SimEvent()

    def copy(self, target: Array, source: Array) -> None:
        copy = SIM.coming[address(target)] = Copy(_memory(target), _memory(source))
        self.ask(copy)


def _memory(array: Array) -> Array:
    """The elements of an array, without keeping a pinned block in use: whoever asks for a copy must see to that."""
    block = block_of(array)
    if block is None:
        return array
    return strided(block.memory.view(array.dtype), array.shape, array.strides, address(array) - address(block.memory))


class Copy:
    """A copy between host and device."""

    __slots__ = ("lost", "source", "target")

    def __init__(self, target: Array, source: Array) -> None:
        self.target = target
        self.source = source
        self.lost = False

    def __call__(self) -> None:
        SIM.coming.pop(address(self.target), None)
        if self.lost:
            msg = (f"a copy of {self.target.nbytes} bytes would write to memory of sim that was freed before: keep the tensor "
                   "until a stream has waited for the copy. [NOTE late-on-purpose]")
            raise UsageError(msg)
        self.target[...] = self.source


class Simulated(Accelerator):
    """`sim`."""

    __slots__ = ("busy", "coming")

    busy: dict[SimStream, None]
    """The streams whose work is not all done."""
    coming: dict[int, Copy]
    """By the address they will write to, the copies that did not happen yet."""

    def settle(self) -> None:
        """Let what the current stream was asked for happen."""
        if self.busy:
            self.current_stream().run()

    def synchronize(self) -> None:
        """Let everything happen, in the worst order: the default stream, whose kernels should have waited, is the last."""
        while self.busy:
            max(reversed(self.busy), key=lambda stream: stream is not self.default_stream).run()

    def kernel(self, spec: Any) -> Callable[..., Array]:
        if self.busy and spec not in QUEUED:
            self.settle()
        return super().kernel(spec)

    def look(self, array: Array) -> Array:
        self.settle()
        return array

    def to_host(self, array: Array) -> Array:
        self.stats.to_host += array.nbytes
        self.settle()
        return self.xp.copy(array, order="K")

    def from_host(self, array: Array) -> Array:
        self.stats.to_device += array.nbytes
        self.settle()
        return self.xp.copy(array, order="K")

    def new_stream(self, *, default: bool = False) -> SimStream:
        return SimStream()

    def new_pinned(self, nbytes: int) -> Array:
        return self.xp.empty(nbytes, "uint8")

    def begin(self, array: Array) -> None:
        poison(array)

    def empty(self, like: Array) -> Array:
        array = strided(self.xp.empty(like.size, like.dtype), like.shape, like.strides, 0)
        poison(array)
        self.current_stream().after(lambda: poison(array))
        return array

    def freed(self, store: CountedStorage) -> None:
        super().freed(store)
        if self.busy:
            self.current_stream().after(lambda array=store.array: self._end(array))

    def _end(self, array: Array) -> None:
        """The memory is somebody else's now: who still reads it finds poison, who still writes to it makes an error."""
        poison(array)
        copy = self.coming.get(address(array))
        if copy is not None:
            copy.lost = True


SIM: Simulated = new_device(Simulated, "sim", None, CPU.xp, counted=True)
SIM.busy, SIM.coming = {}, {}
SIM.set_up()
