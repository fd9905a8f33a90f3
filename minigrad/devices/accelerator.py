"""An accelerator: a device with streams, and copies between its memory and the host's.

    to_host, from_host    a copy that is done when they return
    fetch, bring          a copy that a stream is asked for, with the event that it is done; the host's end is pinned

What differs between accelerators is what a stream is, and where memory comes from: simulated.py, gpu.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import Device
from .pinned import Pool, block_of
from .streams import current_of

if TYPE_CHECKING:
    from ..backend import Array
    from .streams import Event, Stream


class Accelerator(Device):
    """A device whose memory is counted, and which does what its streams are asked for."""

    __slots__ = ("_copies", "_default", "pool")

    _default: Any
    _copies: Any
    pool: Pool
    """Its pinned host memory."""

    def set_up(self) -> Any:
        """Make the rest of a new accelerator; returns it."""
        self._default = self._copies = None
        self.pool = Pool(self.new_pinned, self.begin)
        return self

    @property
    def default_stream(self) -> Any:
        """The stream of whoever names none."""
        if self._default is None:
            self._default = self.new_stream(default=True)
        return self._default

    @property
    def copy_stream(self) -> Any:
        """The one on which offloaded tensors travel: a copy back always comes after the copy out."""
        if self._copies is None:
            self._copies = self.new_stream()
        return self._copies

    def current_stream(self) -> Any:
        """The stream that kernels run on here.  Source: torch.cuda.current_stream."""
        return current_of(self, self.default_stream)

    def fetch(self, array: Array, stream: Stream) -> tuple[Array, Event]:
        """Ask for a copy on the host of a dense array, in pinned memory and in the same strides, after what was computed."""
        host = self.pool.take(array)
        self.stats.to_host += array.nbytes
        self.after_computing(stream)
        return host, _asked(stream, host, host, array)

    def bring(self, host: Array, stream: Stream) -> tuple[Array, Event]:
        """Ask for a copy in this address space of a dense array in pinned memory, in the same strides.

        It happens after what was computed: before that its memory may be somebody else's.
        """
        array = self.empty(host)
        self.stats.to_device += array.nbytes
        self.after_computing(stream)
        return array, _asked(stream, host, array, host)

    def after_computing(self, stream: Stream) -> None:
        """Let what a stream is asked for from here on happen after what the current one was asked for so far."""
        stream.wait_stream(self.current_stream())

    # ------------------------------------------------------------ what differs
    def to_host(self, array: Array) -> Array:
        """A copy on the host of an array of this device, in the same strides where it is dense."""
        raise NotImplementedError

    def from_host(self, array: Array) -> Array:
        """A copy in this address space of a host array, in the same strides where it is dense."""
        raise NotImplementedError

    def new_stream(self, *, default: bool = False) -> Stream:
        """Make a stream, or the one that is there already."""
        raise NotImplementedError

    def new_pinned(self, nbytes: int) -> Array:
        """Make a pinned host array of bytes."""
        raise NotImplementedError

    def begin(self, array: Array) -> None:
        """A pinned block begins another life as this array."""

    def empty(self, like: Array) -> Array:
        """Memory of this device in the layout of a dense array, for work that the current stream is asked for from here on."""
        raise NotImplementedError


def _asked(stream: Stream, host: Array, target: Array, source: Array) -> Event:
    stream.copy(target, source)
    block_of(host).last = done = stream.record_event()
    return done  # type: ignore[no-any-return]
