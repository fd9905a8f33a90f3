"""What a checkpointed region leaves behind so that it can be run again as it ran: when it ended, and where the streams stood.

A recomputation must find both as the forward did: a tensor that was written to since is an error, a stream is replayed from a
private copy. [NOTE captured-tensors] [NOTE random-streams]
"""

from __future__ import annotations

from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError
from ..state import Watcher, current, using
from ..tensor import WRITES, Tensor, next_number

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..autograd.engine import Run
    from ..graph.saved import Hooks
    from ..interpreters.base import Interpreter
    from ..storage import Storage


NOTHING = nullcontext()
"""The context that does nothing; it remembers nothing either, so one serves all."""


class Region:
    """One forward of a region: it is told of the random streams that are drawn from while it is among State.regions."""

    __slots__ = ("around", "context", "draws", "ended", "reruns")

    def __init__(self, *, preserve_rng_state: bool, around: AbstractContextManager[Any] | None = None) -> None:
        state = current()
        with using(state._replace(run=None)) if state.run else NOTHING:  # it holds gradients, which lead here
            self.context = copy_context()
        self.around = around or NOTHING
        """What is entered around a recomputation."""
        self.ended: int | None = None
        """The moment its forward ended; until then an inner backward may ask for a recomputation."""
        self.draws: dict[Any, Any] | None = {} if preserve_rng_state else None
        self.reruns: list[tuple[int, int]] = []
        """When it ran again: what was written to then is its own business."""

    def drawn(self, generator: Any, place: tuple[int, int]) -> None:
        """A generator that stands at `place` is about to be drawn from."""
        if self.draws is not None:
            self.draws.setdefault(generator, place)

    def streams(self, outside: tuple[tuple[Any, Any], ...]) -> tuple[tuple[Any, Any], ...]:
        """Private copies of the generators that the region drew from, where they stood before it; then those from outside."""
        if not self.draws:
            return outside
        return (*((generator, generator.standing_at(place)) for generator, place in self.draws.items()), *outside)

    def readers(self, began: int) -> tuple[Watcher, ...]:
        """Who must watch a recomputation that begins now: nobody, where nothing at all was written to since the forward."""
        return () if self.ended is None or WRITES.latest < self.ended else (Reader(self, began),)

    def again(self, began: int, call: Callable[[], Any], hooks: Hooks | None, *logs: Watcher, run: Run | None = None) -> Any:
        """Call it as the forward was called, for a backward run, its saves going to `hooks`.

        [NOTE recompute-under-the-same-state]
        """
        now = current()
        watchers = (*self.readers(began), *logs, *now.watchers)

        def inside() -> Any:
            captured = current()
            with using(captured._replace(hooks=hooks, run=run, recomputing=began, streams=self.streams(captured.streams),
                                         device_streams=now.device_streams, regions=(), watchers=watchers)), self.around:
                return call()

        try:
            return self.context.copy().run(inside)
        finally:
            if WRITES.latest > began:
                self.reruns.append((began, next_number()))

    def outdates(self, store: Storage, began: int) -> bool:
        """Whether somebody else wrote to that memory between the forward and the recomputation that began then."""
        moment = store.last_write
        return self.ended is not None and self.ended < moment < began and not any(a < moment < b for a, b in self.reruns)


class Reader(Watcher):
    """Looks at all that a recomputation reads, argument or not, at any level. [NOTE captured-tensors]"""

    __slots__ = ("began", "region")

    def __init__(self, region: Region, began: int) -> None:
        self.region = region
        self.began = began

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "op" and owner is None:
            for x in detail:
                if type(x) is Tensor and x.store is not None and self.region.outdates(x.store, self.began):
                    msg = (f"a tensor that the checkpointed function reads ({x.dtype} {list(x.store.array.shape)}, in "
                           f"{subject.name}) has been modified by an inplace operation after its forward, or was given other "
                           f"data: it is at version {x.store.version} now. The recomputation would compute something else. "
                           "Run the backward first, or pass a clone. [NOTE captured-tensors]")
                    raise CheckpointError(msg)
