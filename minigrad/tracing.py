"""What happened, event by event: ops at every level, saves and who packed them, recomputations, and what was freed when.

    with tracing.recorded() as log:
        grad(lambda x: checkpoint(f, x))(x)
    print(log)

A line is indented by its level, the base furthest to the right, so that a column is a level.  Saves, regions and memories
are numbered as they come.  A log holds text and numbers only: nothing lives longer because it is watched.
"""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from .regions.recompute import INPUTS, Frame, Refill
from .state import Watcher, current, using
from .tensor import Tensor, bases, storage_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .backend import Device
    from .dtypes import dtype
    from .graph.node import Node
    from .graph.saved import Hooks, Site
    from .interpreters.base import Interpreter
    from .op import Op
    from .random import Generator
    from .storage import Storage

__all__ = ["Event", "Log", "recorded"]


class Event(NamedTuple):
    """One line of a log."""

    kind: str
    """op; save, unpack, free; checkpoint, recompute, recomputed; backward; draw; copy."""
    level: int
    """The height of its level; 0 is the base, and the graph of level 0."""
    where: str
    """The level's name: `grad@2`, `base`, `level 0`."""
    what: str = ""
    """An op, `x0 of SinBackward0`, `checkpoint 1`, a generator's device, `sim to host`."""
    numbers: tuple[int, ...] = ()
    """The saves concerned; of a draw, its place in the stream."""
    look: str = ""
    """Type and shape of what is kept: logical where it is kept as it is, physical where hooks pack it."""
    nbytes: int = 0
    by: str = ""
    """Who packed it: `checkpoint 1`, `save_on_cpu`, `hooks`; nobody where it is kept as it is."""
    memories: tuple[int, ...] = ()
    """The memories that are kept as they are."""

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.numbers))
        kept = f"{self.look} {self.nbytes} B{self.by and ' packed by '}{self.by}"
        return {
            "op": f"{self.what} {self.where}",
            "save": f"save {numbers}: {self.what} {self.where}, {kept}",
            "unpack": f"unpack {numbers}: {self.what} {self.where}",
            "free": f"free {numbers or self.what}",
            "checkpoint": f"{self.what} keeps {kept}",
            "recompute": f"recompute {self.what} for {self.where}",
            "recomputed": f"recomputed {self.what}: saves {numbers or 'none'}",
            "backward": f"backward {self.where}",
            "draw": f"draw {numbers} of {self.what}",
            "copy": f"copy {self.what}, {self.nbytes} B",
        }[self.kind]


class Log(Watcher):
    """The events of one `recorded` block."""

    __slots__ = ("_alive", "_memories", "_of_node", "_regions", "_saves", "_step", "events", "sizes")

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.sizes: dict[int, int] = {}
        """Bytes of each memory."""
        self._step = count(1).__next__
        self._saves: dict[tuple[int, str], int] = {}
        self._of_node: dict[int, tuple[int, ...]] = {}
        self._alive: list[ref[Any]] = []
        self._memories: WeakKeyDictionary[Storage, int] = WeakKeyDictionary()
        self._regions: WeakKeyDictionary[Hooks, str] = WeakKeyDictionary()

    def close(self) -> None:
        """Write no more, also of what dies later."""
        self._alive.clear()

    def lines(self) -> list[str]:
        """The events as text, indented by level; a bar stands before what a recomputation did."""
        height = max((e.level for e in self.events), default=0)
        lines, bars = [], 0
        for e in self.events:
            bars -= e.kind == "recomputed"
            lines.append("| " * bars + "  " * (height - e.level) + str(e))
            bars += e.kind == "recompute"
        return lines

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def of(self, kind: str) -> list[Event]:
        """The events of one kind."""
        return [e for e in self.events if e.kind == kind]

    # ---------------------------------------------------------------- being told: a method for each event
    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        handle = getattr(self, f"_on_{event}", None)
        if handle is not None:
            handle(owner, subject, detail)

    def _add(self, kind: str, owner: Interpreter | None, *rest: Any) -> None:
        self.events.append(Event(kind, *_place(owner), *rest))

    def _on_op(self, owner: Interpreter | None, op: Op, args: Any) -> None:
        self.events.append(Event("op", 0, "base", op.name) if owner is None else Event("op", *_place(owner), op.name))

    def _on_save(self, owner: Interpreter | None, site: Site, detail: tuple[Tensor, Node | None]) -> None:
        x, keeper = detail
        nbytes, memories = self._memory([x])
        self._add("save", owner, f"{site.name} of {site.node}", (self._number(site, keeper),), _look(x.dtype, x.shape), nbytes,
                  "", memories)

    def _on_pack(self, owner: Interpreter | None, site: Site, detail: tuple[Hooks, Node | None, Tensor]) -> None:
        hooks, keeper, x = detail
        if isinstance(hooks, Refill):  # a slot that is being filled: "recomputed" will tell which
            return
        packed = list(bases(x.value if owner is not None and x.owner is owner else x))
        looks = ", ".join(_look(base.dtype, base.value.shape) for base in packed)
        nbytes = sum(prod(base.value.shape) * base.dtype.itemsize for base in packed)
        self._add("save", owner, f"{site.name} of {site.node}", (self._number(site, keeper),), looks, nbytes,
                  self._regions.get(hooks, hooks.title))

    def _on_unpack(self, owner: Interpreter | None, node: Node, name: str) -> None:
        number = self._saves.get((node.number, name))
        if number is not None:
            self._add("unpack", owner, f"{name} of {node.name()}", (number,))

    def _on_release(self, owner: Interpreter | None, node: Node, _: Any) -> None:
        _freed(self.events, self._of_node, node.number, _place(owner))

    def _on_checkpoint(self, owner: Interpreter | None, frame: Frame, arguments: list[Any]) -> None:
        title = self._regions[frame] = f"checkpoint {len(self.of('checkpoint')) + 1}"
        inputs = [x for x in arguments if isinstance(x, Tensor)]
        nbytes, memories = self._memory(inputs)
        packer = None if frame.outer is None else frame.outer.manager(INPUTS)
        by = "" if packer is None else self._regions.get(packer, packer.title)
        self._add("checkpoint", owner, title, (), ", ".join(_look(x.dtype, x.shape) for x in inputs) or "nothing,", nbytes, by,
                  () if by else memories)
        freed = Event("free", *_place(owner), title)
        self._alive.append(ref(frame, lambda _, events=self.events: events.append(freed)))  # type: ignore[misc]

    def _on_recompute(self, owner: Interpreter | None, frame: Frame, refill: Refill) -> None:
        self._add("recompute", owner, self._regions.get(frame, frame.title))

    def _on_recomputed(self, owner: Interpreter | None, frame: Frame, refill: Refill) -> None:
        slots = [frame.slots[refill.level][index]() for index in refill.table.get(refill.level, ())]
        found = [self._saves.get((slot.site.number, slot.site.name)) for slot in slots if slot is not None]
        self._add("recomputed", owner, self._regions.get(frame, frame.title), tuple([n for n in found if n is not None]))

    def _on_backward(self, owner: Interpreter | None, subject: None, detail: None) -> None:
        self._add("backward", owner)

    def _on_draw(self, owner: Interpreter | None, generator: Generator, place: tuple[int, int]) -> None:
        self.events.append(Event("draw", 0, "base", str(generator.device), (place[1],)))

    def _on_copy(self, owner: Interpreter | None, device: Device, detail: tuple[str, int]) -> None:
        self.events.append(Event("copy", 0, "base", f"{device} {detail[0]}", nbytes=int(detail[1])))

    # ---------------------------------------------------------------- numbers instead of objects
    def _number(self, site: Site, keeper: Node | None) -> int:
        """The number of a new save, which the release or the death of its node frees."""
        number = self._saves[site.number, site.name] = self._step()
        if keeper is not None:
            if site.number not in self._of_node:
                self._alive.append(ref(keeper, partial(_freed, self.events, self._of_node, site.number, _place(site.owner))))
            self._of_node[site.number] = (*self._of_node.get(site.number, ()), number)
        return number

    def _memory(self, kept: list[Tensor]) -> tuple[int, tuple[int, ...]]:
        """Bytes of tensors, and the numbers of the memories they lie in."""
        nbytes, numbers = 0, []
        for base in [base for x in kept for base in bases(x)]:
            store = storage_of(base)
            if store not in self._memories:
                self._memories[store] = len(self.sizes) + 1
                self.sizes[len(self.sizes) + 1] = store.nbytes()
            numbers.append(self._memories[store])
            nbytes += min(int(base.value.nbytes), store.nbytes())  # an expanded tensor is not larger than its memory
        return nbytes, tuple(numbers)


def _place(owner: Interpreter | None) -> tuple[int, str]:
    return (0, "level 0") if owner is None else (owner.number, str(owner))


def _look(dtype: dtype, shape: tuple[int, ...]) -> str:
    return f"{dtype.name}{list(shape)}"


def _freed(events: list[Event], of_node: dict[int, tuple[int, ...]], node: int, place: tuple[int, str], _: Any = None) -> None:
    """What a node kept is gone: it was released, or has died."""
    numbers = of_node.pop(node, None)
    if numbers is not None:
        events.append(Event("free", *place, "", numbers))


@contextmanager
def recorded() -> Iterator[Log]:
    """Within this context everything that happens in this thread is written to the log, recomputations too."""
    log = Log()
    state = current()
    try:
        with using(state._replace(watchers=(*state.watchers, log))):
            yield log
    finally:
        log.close()
