"""Recomputation: a region's saves become slots, and a backward that asks for one runs the region again.

    pack     a base tensor that the region saves becomes a slot, numbered for each level: (level, index)
    unpack   the first slot that a backward run asks for runs the region again, at fresh levels like those of its forward, and
             fills the slots of the level that asked; each value is dropped as it is handed out

Recomputation is for data only: each layer's edges were never lost, so nothing here connects graphs, and an order-n derivative
costs at most n recomputations.

Upstream: _CheckpointFrame and NOTE [Nestable Checkpoint] in torch/utils/checkpoint.py, whose six rules hold.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from sys import maxsize
from typing import TYPE_CHECKING, Any
from weakref import ref

import torch
from torch.utils.checkpoint import CheckpointError

from .captured import Again, Notes, substitute
from .effects import next_hook, rerunning
from .hooks import INPUTS, Entry, Hooks, Packed, check, entered
from .layers import peel
from .levels import Stack, below, depth, standing
from .private import engine, get_stack, graph_group, graph_task, tree_flatten, tree_unflatten
from .surroundings import Surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


class Settings:
    """How a region is to be run again, and checked."""

    __slots__ = ("again", "early_stop", "explain", "look", "preserve_rng_state")

    def __init__(self, *, again: AbstractContextManager[Any] | None, early_stop: bool,
                 explain: Callable[[CheckpointError], None] | None, look: Callable[[torch.Tensor], Any],
                 preserve_rng_state: bool) -> None:
        self.again = again
        self.early_stop = early_stop
        self.explain = explain
        self.look = look
        self.preserve_rng_state = preserve_rng_state


class Slot:
    """What a node keeps of a base tensor: its place in the frame, and what it must look like."""

    __slots__ = ("__weakref__", "_saved", "_version", "looks", "values")

    def __init__(self, base: torch.Tensor, looks: Any) -> None:
        self._saved = ref(base)
        self._version = base._version
        self.looks = looks
        self.values: dict[Any, tuple[torch.Tensor, int]] = {}
        """Recomputed, for a backward run, with the version that was saved."""

    def changed(self, base: torch.Tensor) -> bool:
        """Whether the rerun saves the very tensor that the forward saved, a captured one, and that was written to since."""
        return base is self._saved() and base._version != self._version


class Held:
    """A base tensor of an argument, with the version check of plain saving."""

    __slots__ = ("_tensor", "_version")

    def __init__(self, x: torch.Tensor) -> None:
        with below():
            self._tensor = x.detach()
        self._version = x._version

    def value(self) -> torch.Tensor:
        """The tensor; RuntimeError where it was written to."""
        check(self._tensor, self._version)
        return self._tensor


class Holding(Hooks):
    """Where arguments go if nobody outside manages them."""

    def pack(self, base: torch.Tensor, level: int) -> Held:
        return Held(base)

    def unpack(self, packed: Held, asking: int) -> torch.Tensor:
        return packed.value()


_HOLDING = Holding()


class Argument(Packed):
    """An argument, to come back fresh: with each layer's flag and no edges, so an inner backward ends at the border."""

    __slots__ = ("original",)

    def __init__(self, x: torch.Tensor, now: torch.Tensor, outside: Entry | None) -> None:
        bases: list[torch.Tensor] = []
        layers = peel(now, bases, edges=False)
        super().__init__(layers, bases, (outside and outside.manager(INPUTS)) or _HOLDING, INPUTS)
        self.original = ref(x)


class Frame(Hooks):
    """One checkpointed call: the hooks of its region in the forward, and the way to run it again.

    It manages the saves of the levels on the stack at its entry. A level entered inside is the region's own business.
    """

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], settings: Settings) -> None:
        self.function = function
        self.settings = settings
        self.stack = Stack()
        self.depth = len(self.stack.levels)
        self._names = tuple(kwargs)
        leaves, self._spec = tree_flatten([*args, *kwargs.values()])
        self.around = Surroundings(leaves, preserve_rng_state=settings.preserve_rng_state)
        self.notes = Notes() if self.depth or self.stack.dual else None
        self.slots: dict[int, list[ref[Slot]]] = {}
        self.closed = False
        """Whether the forward has ended: until then an inner backward may ask for a recomputation."""
        self.hooks = range(next_hook(), maxsize)
        """The numbers of the hooks that were registered meanwhile."""
        outside = entered()
        given = {id(x): x for x in leaves if isinstance(x, torch.Tensor)}
        arguments = {nr: Argument(x, substitute(x), outside) for nr, x in given.items()}
        self._arguments = list(arguments.values())
        self._leaves = [arguments.get(id(x), x) for x in leaves]
        self.tells_apart = False
        """Whether a region inside tells its inputs apart: an argument that is captured too must then be one in a second run."""

    # ------------------------------------------------------------ forward
    def run(self, here: AbstractContextManager[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The forward, in a context."""
        try:
            with Entry(self), self.notes or nullcontext(), here:
                return self.function(*args, **kwargs)
        finally:
            self.closed = True
            self.hooks = range(self.hooks.start, next_hook())
        msg = "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception of the forward"
        raise RuntimeError(msg)

    def manages(self, level: int) -> bool:
        return level <= self.depth if level != INPUTS else not self.own_level()

    def own_level(self) -> bool:
        """Whether a grad level was entered since: it may ask for an inner region's inputs while the forward still runs."""
        return depth() > self.depth and any(i.key().name == "Grad" for i in get_stack()[self.depth:])

    def pack(self, base: torch.Tensor, level: int) -> Slot:
        slot = Slot(base, self.settings.look(base))
        self.slots.setdefault(level, []).append(ref(slot))
        return slot

    # ------------------------------------------------------------ backward
    def unpack(self, packed: Slot, asking: int) -> torch.Tensor:
        run = graph_group() or graph_task()
        if run not in packed.values:
            try:
                self.recompute(Refill(self, asking, run, packed))
            except CheckpointError as error:
                if self.settings.explain is not None:
                    self.settings.explain(error)
                raise
        value, version = packed.values.pop(run)
        check(value, version)
        return value

    def recompute(self, refill: Refill) -> None:
        """Run the region as it ran in the forward, and fill slots."""
        bases = [x.bases(refill.asking) for x in self._arguments]
        with standing(0):
            self.around.again(self._again, refill, bases)
            refill.finish()

    def _again(self, refill: Refill, bases: list[Iterator[torch.Tensor]]) -> None:
        with self.stack.entered(), rerunning(self.hooks):
            fresh = {id(x): x.fresh(b) for x, b in zip(self._arguments, bases, strict=True)}
            with self._standing(fresh), Entry(refill, alone=True), self.settings.again or nullcontext():
                values = tree_unflatten([fresh.get(id(x), x) for x in self._leaves], self._spec)
                named = len(values) - len(self._names)
                try:
                    self.function(*values[:named], **dict(zip(self._names, values[named:], strict=True)))
                except (Stop, Exception):
                    if not refill.stopped:  # once it is, whatever arrives is Stop: TorchScript makes another exception of it
                        raise

    def _standing(self, fresh: dict[int, torch.Tensor]) -> AbstractContextManager[Any]:
        """Where tensors from outside may have lost a layer, what stands for them; so too where a region inside must know."""
        notes = self.notes if self.stack.left else None
        if notes is None and not self.tells_apart:
            return nullcontext()
        again = Again(notes)
        for x in self._arguments:
            if (old := x.original()) is not None:
                again.fresh[old] = fresh[id(x)]
        return again


def enclosing() -> Iterator[Frame]:
    """The regions whose forwards are running, innermost first."""
    entry = entered()
    while entry is not None:
        if isinstance(entry.hooks, Frame):
            yield entry.hooks
        entry = entry.outer


# ---------------------------------------------------------------- running again
class Stop(BaseException):
    """All that is needed is there.  Not an Exception, so that the region's own handlers let it pass."""


_NO_RUN = -1  # something unpacks outside of a backward run: it gets what it asks for


class Refill(Hooks):
    """The hooks of a recomputation: saves of one level, and inputs of inner regions, fill slots; others are the rerun's own."""

    def __init__(self, frame: Frame, asking: int, run: Any, wanted: Slot) -> None:
        self.frame = frame
        self.asking = asking
        self.stopped = False
        self._run = run
        self._counts: dict[int, int] = {}
        self._filled: list[tuple[Slot, torch.Tensor, int]] = []
        self._missing = {
            (level, index): slot for level in {asking, INPUTS} for index, r in enumerate(frame.slots.get(level, ()))
            if (slot := r()) is not None and run not in slot.values and (run != _NO_RUN or slot is wanted)}

    def manages(self, level: int) -> bool:
        return level == self.asking or (level == INPUTS and not self.frame.own_level())

    def pack(self, base: torch.Tensor, level: int) -> torch.Tensor:
        index = self._counts.get(level, 0)
        self._counts[level] = index + 1
        value = base.detach() if level == 0 else base
        slot = self._missing.pop((level, index), None)
        settings, closed = self.frame.settings, self.frame.closed
        if slot is not None:
            if slot.changed(base):
                raise CheckpointError(_CHANGED.format(where=_where(level), index=index, looks=slot.looks))
            looks = settings.look(base)
            if looks != slot.looks:
                raise CheckpointError(_DIFFERENT.format(where=_where(level), index=index, was=slot.looks, now=looks))
            self._filled.append((slot, value, value._version))
            if not self._missing and (settings.early_stop or not closed):  # never ahead of the forward
                self.stopped = True
                raise Stop
        elif closed and not settings.early_stop and index >= len(self.frame.slots.get(level, ())):
            raise CheckpointError(_MORE.format(where=_where(level), known=index))
        return value

    def unpack(self, packed: torch.Tensor, asking: int) -> torch.Tensor:
        return packed

    def finish(self) -> None:
        """Hand out what was recomputed, as data; CheckpointError where something was not."""
        filled, self._filled = self._filled, []
        for slot, value, version in filled:
            slot.values[self._run] = value.detach(), version
        if self._missing:
            level = next(iter(self._missing))[0]
            known, got = len(self.frame.slots[level]), self._counts.get(level, 0)
            raise CheckpointError(_FEWER.format(where=_where(level), known=known, got=got))
        if graph_task() == self._run != _NO_RUN:
            engine.queue_callback(partial(_drop, [ref(slot) for slot, _, _ in filled], self._run))


def _drop(slots: list[ref[Slot]], run: Any) -> None:
    """Recomputed values live for one backward run."""
    for r in slots:
        if (slot := r()) is not None:
            slot.values.pop(run, None)


def _where(level: int) -> str:
    return "inputs of inner regions" if level == INPUTS else f"level {level}"


_FEWER = ("torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
          "Number of tensors saved during forward: {known} ({where})\nNumber of tensors saved during recomputation: {got}.")
_MORE = ("torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.\n"
         "Number of tensors saved during forward: {known} ({where}).")
_CHANGED = ("torch.utils.checkpoint: a tensor that the checkpointed function captures has been modified by an inplace "
            "operation after its forward: the one saved at position {index} ({where}), {looks}.")
_DIFFERENT = ("torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the "
              "forward pass.\ntensor at position {index} ({where}):\nsaved metadata: {was}\nrecomputed metadata: {now}")
