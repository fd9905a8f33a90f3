"""How much a device holds, exactly: integers that go up and down with its memories. [NOTE bytes-are-counted]"""

from __future__ import annotations


class Count:
    """How much there is of something, the most that there ever was, and all that there has been."""

    __slots__ = ("allocated", "live", "peak")

    def __init__(self) -> None:
        self.live = self.peak = self.allocated = 0

    def add(self, n: int) -> None:
        """There is more."""
        self.live += n
        self.allocated += n
        self.peak = max(self.peak, self.live)


class Stats:
    """What one device holds, exactly: its memories and their bytes; and the bytes copied from and to it."""

    __slots__ = ("blocks", "bytes", "to_device", "to_host")

    def __init__(self) -> None:
        self.bytes = Count()
        self.blocks = Count()
        self.to_host = self.to_device = 0

    def allocated(self, nbytes: int) -> None:
        """One more memory is in use."""
        self.bytes.add(nbytes)
        self.blocks.add(1)

    def freed(self, nbytes: int) -> None:
        """One memory is not in use any more."""
        self.bytes.live -= nbytes
        self.blocks.live -= 1
