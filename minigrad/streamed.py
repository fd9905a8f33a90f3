"""save_on_cpu in pinned memory, and with copies on a stream of their own, beside the kernels. [NOTE copies-on-a-stream]

    pack      the copy stream waits for what was computed so far and is asked for the copy; few are under way at a time: for the
              oldest the current stream waits, and then its memory is let go
    unpack    the current stream waits for the copy back; those of the next saves, in backward order, are asked for beforehand

The host never waits.

Upstream: torch.autograd.graph.save_on_cpu, whose copies are made at once; torchtune.training.OffloadActivations.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any
from weakref import WeakSet, ref

from .offload import HostCopy, Offloading, OnHost
from .state import current, tell
from .storage import Storage, counted_storage, modified

if TYPE_CHECKING:
    from collections.abc import Callable

    from .backend import Array
    from .tensor import Tensor


class Pinned(Offloading):
    """What one save_on_cpu context has copied into pinned memory, waiting for each copy."""

    def copied(self, store: Storage) -> HostCopy:
        return PinnedCopy(store.array, store)


class PinnedCopy(HostCopy):
    """A host copy in pinned memory."""

    __slots__ = ()

    def fetched(self, array: Array, store: Storage) -> Array:
        device: Any = self.kind.device
        host, done = device.fetch(array, device.current_stream())
        done.synchronize()
        return host


class Streamed(Offloading):
    """What one save_on_cpu context has asked the copy stream for."""

    window = 2
    """How many copies are under way, to the host and ahead of the backward."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.saves: list[ref[OnHost]] = []
        """In the order of their age."""
        self.leaving: deque[ref[StreamedCopy]] = deque()
        self.early: list[ref[StreamedCopy]] = []

    def copied(self, store: Storage) -> HostCopy:
        copy = StreamedCopy(store.array, store)
        self.leaving.append(ref(copy))
        self._let_go(self.window)
        return copy

    def pack(self, base: Tensor, owner: Any = None) -> OnHost | Tensor:
        packed = super().pack(base, owner)
        if isinstance(packed, OnHost) and isinstance(packed.copy, StreamedCopy):
            while self.saves and self.saves[-1]() is None:
                self.saves.pop()
            packed.owner, packed.place = owner, len(self.saves)
            self.saves.append(ref(packed))
        return packed

    def unpack(self, packed: OnHost | Tensor) -> Tensor:
        self._let_go(0)
        found = super().unpack(packed)
        if isinstance(packed, OnHost) and isinstance(packed.copy, StreamedCopy):
            self._start_next(packed)
        return found

    def _let_go(self, window: int) -> None:
        while len(self.leaving) > window:
            copy = self.leaving.popleft()()
            if copy is not None:
                copy.let_go()

    def _start_next(self, packed: OnHost) -> None:
        """Ask for the next copies that a backward of this level will need; what it has jumped over is let go."""
        wanted: list[StreamedCopy] = []
        place = packed.place
        while place and len(wanted) < self.window:
            place -= 1
            other = self.saves[place]()
            if other is not None and other.owner is packed.owner and other.copy is not packed.copy and other.copy not in wanted:
                wanted.append(other.copy)  # type: ignore[arg-type]
        for copy in [r() for r in self.early]:
            if copy is not None and copy not in wanted:
                copy.coming = None
        self.early = [ref(copy) for copy in wanted]
        for copy in wanted:
            copy.start()


class StreamedCopy(HostCopy):
    """A host copy that is made, and brought back, on the copy stream."""

    __slots__ = ("arrived", "coming", "leaving", "torn", "version")

    coming: Crossing | None
    arrived: Any
    """The event of the last copy back."""
    torn: Exception | None
    """The memory was written to before the copy was known to be done: it may hold the one value or the other."""

    def fetched(self, array: Array, store: Storage) -> Array:
        device: Any = self.kind.device
        host, done = device.fetch(array, device.copy_stream)
        self.leaving: Crossing | None = Crossing(store, done)
        self.version = store.version
        self.coming = self.arrived = None
        self.torn = None
        return host

    def let_go(self) -> None:
        """What the current stream does from here on may use the memory: it comes after the copy."""
        if self.leaving is not None:
            written = self.leaving.store.version != self.version
            self.torn = modified(self.kind.dtype, self.leaving.store, self.version) if written else None
            self.leaving = None

    def start(self) -> None:
        """Ask for the copy back, where it is neither there nor under way."""
        if self.coming is None and (self.back is None or self.back() is None):
            device: Any = self.kind.device
            array, done = device.bring(self.array, device.copy_stream)
            self.coming = Crossing(counted_storage(array, self.kind), done)
            tell(current().watchers, "copy", None, device, ("from host", self.array.nbytes, self.coming.store))

    def restored(self) -> Storage:
        if self.torn is not None:
            raise self.torn
        store = None if self.back is None else self.back()
        if store is None:
            self.start()
            assert self.coming is not None
            store, self.arrived = self.coming.landed()
            self.back, self.coming = ref(store), None
            tell(current().watchers, "restore", None, self, store)
        self.wait()
        return store

    def wait(self) -> None:
        """Let what the current stream is asked for from here on happen after the copy back."""
        device: Any = self.kind.device
        device.current_stream().wait_event(self.arrived)


class Crossing:
    """A copy under way, and the memory at the device's end, which nobody else gets before the copy ran."""

    __slots__ = ("done", "store")

    def __init__(self, store: Storage, done: Any) -> None:
        self.store = store
        self.done = done

    def landed(self) -> tuple[Storage, Any]:
        """The memory, and the event to wait for; now that is the caller's business."""
        done, self.done = self.done, None
        return self.store, done

    def __del__(self) -> None:
        if self.done is not None:
            device: Any = self.store.kind.device
            device.current_stream().wait_event(self.done)


def offloading(*, pinned: bool, streamed: bool, dedupe: bool, skip: Any) -> Offloading:
    """The way that save_on_cpu's arguments ask for."""
    kind = Streamed if streamed else Pinned if pinned else Offloading
    return kind(dedupe=dedupe, skip=skip if skip is None or callable(skip) else _staying(skip))


def _staying(skip: Any) -> Callable[[Tensor], bool]:
    """The predicate that a number of bytes, or tensors, stand for."""
    if isinstance(skip, int):
        return lambda x: int(x.value.nbytes) < skip
    memories = WeakSet(x.untyped_storage() for x in skip)
    return lambda x: x.untyped_storage() in memories
