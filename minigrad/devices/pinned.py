"""Pinned host memory: blocks that copies may use while the host does something else, kept for the next copy.

A block goes back to its pool when the last array in it dies, and to somebody else only when the last copy from or to it is
done.  No more blocks stay idle than were in use at once. [NOTE streams]

Source: torch.Tensor.pin_memory; CachingHostAllocator.cpp.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from ..backend import CPU, memory_of, strided
from .counts import Count

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array
    from .streams import Event


class Pinned:
    """A block in use: what the arrays in it hold on to. Its death gives it back."""

    __slots__ = ("__array_interface__", "last", "memory", "pool")

    def __init__(self, memory: Array, pool: Pool) -> None:
        self.memory = memory
        self.pool = pool
        self.last: Event | None = None
        """Of the last copy from or to it."""
        self.__array_interface__ = memory.__array_interface__

    def __del__(self) -> None:
        self.pool.given_back(self)


class Pool:
    """The pinned memory of one accelerator."""

    __slots__ = ("_allocate", "_begin", "_idle", "held", "live")

    def __init__(self, allocate: Callable[[int], Array], begin: Callable[[Array], None]) -> None:
        self._allocate = allocate
        self._begin = begin
        self._idle: dict[int, deque[tuple[Array, Event | None]]] = {}
        """By their size, the longest idle first."""
        self.live = Count()
        """Bytes in use."""
        self.held = 0
        """Bytes in use, or idle."""

    def take(self, like: Array) -> Array:
        """Host memory in the layout of a dense array; it holds nothing yet."""
        block = Pinned(self._memory(int(like.nbytes)), self)
        self.live.add(block.memory.nbytes)
        array = strided(CPU.xp.asarray(block).view(like.dtype), like.shape, like.strides, 0)
        self._begin(array)
        return array

    def _memory(self, nbytes: int) -> Array:
        """An idle block of that size, or a new one, for which idle ones may have to go; nobody waits for a copy."""
        if self._is_there(nbytes):
            return self._no_longer_idle(nbytes)
        self.held += nbytes
        for size in list(self._idle):
            while self.held > max(self.live.peak, self.live.live + nbytes) and self._is_there(size):
                self.held -= self._no_longer_idle(size).nbytes
        return self._allocate(nbytes)

    def _is_there(self, nbytes: int) -> bool:
        """Whether the block of that size that was idle for longest can be used again: its copies are done."""
        return nbytes in self._idle and self.is_free(self._idle[nbytes][0][1])

    def _no_longer_idle(self, nbytes: int) -> Array:
        memory, _ = self._idle[nbytes].popleft()
        if not self._idle[nbytes]:
            del self._idle[nbytes]
        return memory

    @staticmethod
    def is_free(last: Event | None) -> bool:
        """Whether the last copy of an idle block is done."""
        return last is None or last.query()

    def given_back(self, block: Pinned) -> None:
        """Keep a block for the next one who asks."""
        self.live.live -= block.memory.nbytes
        self._idle.setdefault(block.memory.nbytes, deque()).append((block.memory, block.last))


def block_of(array: Array) -> Any:
    """The pinned block that a host array lies in, or None."""
    owner = memory_of(array).base
    return owner if isinstance(owner, Pinned) else None
