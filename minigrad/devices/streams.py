"""Streams and events: in which order an accelerator does what it is asked for.

Work on one stream happens in the order it was asked for; of two streams nothing is known, unless one waits for an event of the
other.  Kernels run on the current stream, which is a field of the State; every accelerator has a default one. [NOTE streams]

Source: torch.cuda.Stream, torch.cuda.Event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from ..state import current, using

if TYPE_CHECKING:
    from ..backend import Array

S = TypeVar("S", bound="Stream")


class Event:
    """A place in what a stream was asked for: it is reached when everything before it is done.  Source: torch.cuda.Event."""

    __slots__ = ()

    def record(self, stream: Any = None) -> None:
        """Stand for what was asked of `stream`, by default the current one, up to here."""
        raise NotImplementedError

    def query(self) -> bool:
        """Return whether all of that is done; true of an event that was never recorded."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Keep the host waiting until all of that is done."""
        raise NotImplementedError

    def wait(self, stream: Any = None) -> None:
        """Let what `stream`, by default the current one, is asked for from here on happen after that."""
        raise NotImplementedError


class Stream:
    """Work of one accelerator, in order.  Source: torch.cuda.Stream."""

    __slots__ = ("__weakref__", "device")

    device: Any

    def record_event(self, event: Any = None) -> Any:
        """Record an event, by default a new one, and return it."""
        event = event or self.new_event()
        event.record(self)
        return event

    def wait_event(self, event: Event) -> None:
        """Let what is asked for from here on happen after the event.  The host does not wait."""
        event.wait(self)

    def wait_stream(self, stream: Stream) -> None:
        """Let what is asked for from here on happen after all that `stream` was asked for so far."""
        self.wait_event(stream.record_event())

    def query(self) -> bool:
        """Return whether all that was asked for is done."""
        raise NotImplementedError

    def synchronize(self) -> None:
        """Keep the host waiting until all that was asked for is done."""
        raise NotImplementedError

    # ------------------------------------------------------------ what an accelerator fills in
    def new_event(self) -> Event:
        """An event that this stream can record."""
        raise NotImplementedError

    def copy(self, target: Array, source: Array) -> None:
        """Ask for a copy between host and device of memory in the same layout; the host's end is pinned."""
        raise NotImplementedError

    def enter(self) -> None:
        """Become the stream on which the kernels of this thread run."""

    def leave(self) -> None:
        """Be the stream on which the kernels of this thread run no more."""


class stream:  # noqa: N801  torch spells it so
    """Within this context kernels run on the given stream; None changes nothing.  Source: torch.cuda.stream."""

    def __init__(self, stream: Stream | None) -> None:
        self.stream = stream

    def __enter__(self) -> None:
        state = current()
        new = state if self.stream is None else state._replace(device_streams=(*state.device_streams, self.stream))
        self._scope = using(new)
        self._scope.__enter__()
        if self.stream is not None:
            self.stream.enter()

    def __exit__(self, *error: Any) -> None:
        if self.stream is not None:
            self.stream.leave()
        self._scope.__exit__(*error)


def current_of(device: Any, default: S) -> S:
    """The stream of a device that was entered last, or its default one."""
    return next((s for s in reversed(current().device_streams) if s.device is device), default)
