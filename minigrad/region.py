"""What a checkpointed region meets outside of itself: what it reads, and which random streams it draws from.

A recomputation must find both as the forward did: a tensor that was written to since is an error, a stream is replayed from a
private copy. [NOTE captured-tensors] [NOTE random-streams]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from .errors import CheckpointError
from .state import State, Watcher, show
from .tensor import Tensor, storage_of

if TYPE_CHECKING:
    from .interpreters.base import Interpreter
    from .storage import Storage


class Region(Watcher):
    """What one forward, or one recomputation, of a region reads from outside, and what it makes.

    It keeps no tensor alive: storages are referred to weakly. [NOTE captured-tensors]
    """

    __slots__ = ("closed", "draws", "parent", "reads", "versions")

    def __init__(self, state: State, *, preserve_rng_state: bool) -> None:
        self.parent = next((w for w in state.watchers if isinstance(w, Region)), None)
        self.reads: dict[ref[Storage], None] = {}
        self.versions: dict[ref[Storage], int] = {}
        self.closed = False
        """Whether the forward has ended: until then an inner backward may ask for a recomputation."""
        self.draws: dict[Any, Any] | None = {} if preserve_rng_state else None

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "draw":
            if self.draws is not None:
                self.draws.setdefault(subject, detail)
        elif owner is None and event == "op":
            for x in detail:
                if type(x) is Tensor:
                    store = storage_of(x)
                    if not self._made(store):
                        self.reads[ref(store)] = None
        elif owner is None and event == "made":
            store = storage_of(subject)
            if store.maker is None:
                store.maker = self

    def _made(self, store: Storage) -> bool:
        maker = store.maker
        while maker is not None and maker is not self:
            maker = maker.parent
        return maker is self

    def close(self) -> None:
        """Take the versions of all that was read, as the region left them."""
        self.closed = True
        self.versions = {r: store.version for r in self.reads if (store := r()) is not None}

    def check(self) -> None:
        """Raise CheckpointError where something read was written to since."""
        for r, version in self.versions.items():
            store = r()
            if store is not None and store.version != version:
                msg = (f"a tensor that the checkpointed function reads ({store.kind.dtype} {list(store.array.shape)}) "
                       f"has been modified by an inplace operation after its forward: it is at version {store.version}, "
                       f"expected version {version}. The recomputation would compute something else. Run the backward first, "
                       f"or pass a clone. [level stack: {show()}] [NOTE captured-tensors]")
                raise CheckpointError(msg)

    def streams(self, outside: tuple[tuple[Any, Any], ...]) -> tuple[tuple[Any, Any], ...]:
        """Private copies of the generators that the region drew from, where they stood before it; then those from outside."""
        if not self.draws:
            return outside
        return (*((generator, generator.standing_at(place)) for generator, place in self.draws.items()), *outside)


class OpLog(Watcher):
    """The names of the ops of one run, for checkpoint's debug."""

    __slots__ = ("names",)

    def __init__(self) -> None:
        self.names: list[str] = []

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if owner is None and event == "op":
            self.names.append(subject.name)

    def against(self, other: OpLog) -> str:
        """Both runs, and where they part."""
        both = self.names, other.names
        at = next((i for i, (a, b) in enumerate(zip(*both, strict=False)) if a != b), min(map(len, both)))
        return f" The runs differ from op {at} on. Forward: {' '.join(both[0])}. Recomputation: {' '.join(both[1])}."
