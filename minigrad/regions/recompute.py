"""Recomputation: a region's saves become slots, and a backward that asks for one runs the region again.

    pack     a save of the region becomes a slot, numbered for each level: (level, index)
    unpack   the first slot that a backward run of a level asks for runs the region again, under the State and the context
             variables of its forward, and fills that level's slots; each value is dropped as it is handed out

Recomputation is for data only: it rebuilds no graph, because each layer's edges were never lost. [NOTE layers-remember]
So nothing here names a transform.  With remat="every" the graph is dropped on purpose, and recorded again: remat.py.

Upstream: _CheckpointFrame and NOTE [Nestable Checkpoint] in torch/utils/checkpoint.py, whose six rules hold.
"""

from __future__ import annotations

import sys
from itertools import cycle
from operator import methodcaller
from typing import TYPE_CHECKING, Any
from weakref import ref

from .. import tree
from ..autograd.engine import Run
from ..errors import CheckpointError
from ..graph.saved import Hooks, PackedTensor, SavedBase, SavedValue, Site, keep, keep_base
from ..state import State, current, tell, using
from ..tensor import Tensor, bases, next_number, peel
from .oplog import OpLog, checksum

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from ..interpreters.base import Interpreter
    from ..storage import Storage
    from .region import Region

INPUTS: Any = "inputs"
"""The level of an inner region's inputs among its parent's slots: any recomputation fills them. [NOTE nested-regions]"""


class Slot:
    """What a node keeps of a region's save: its place in the frame, and what it must look like. [NOTE slots-per-level]

    At level 0 it is the saved tensor itself, elsewhere layers are put around what it gives.
    """

    __slots__ = ("__weakref__", "frame", "index", "looks", "site")

    frame: Frame
    index: int
    """Among the saves of its level, which the site names."""
    looks: tuple[Any, ...]
    site: Site

    def unpack(self) -> Tensor:
        return self.frame.unpack(self, self.site.owner)


class Frame(Hooks):
    """One checkpointed call: the hooks of its region in forward, and the way to run it again.

    It manages the saves of the levels on the stack at its entry; a level entered inside is the region's own business and
    saves with the next hooks outside. [NOTE whose-saves]
    """

    __slots__ = ("check", "debug", "early_stop", "function", "inputs", "levels", "log", "of", "region", "slots", "spec")
    title = "checkpoint"
    numbered = True

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], state: State,
                 region: Region, *, determinism_check: str, debug: bool, early_stop: bool, edges: bool = False,
                 of: Frame | None = None) -> None:
        super().__init__(state.hooks)
        self.of = of
        """The region that this is a backward of, at whatever order. [NOTE remat-every]"""
        self.function = function
        self.levels = state.levels
        self.region = region
        self.check = determinism_check
        self.debug = debug
        self.log = OpLog(values=determinism_check == "values") if debug or determinism_check == "values" else None
        self.early_stop = early_stop
        self.slots: dict[Any, list[ref[Slot]]] = {}
        leaves, self.spec = tree.flatten((*args, kwargs))
        self.inputs = [_kept(x, state, edges=edges) for x in leaves]
        if state.watchers:
            tell(state.watchers, "checkpoint", state.levels[-1] if state.levels else None, self, leaves)

    def manager(self, owner: Any) -> Hooks | None:
        if owner is None or owner in self.levels or (owner is INPUTS and not _own_business(self.levels)):
            return self
        return None if self.outer is None else self.outer.manager(owner)

    def look(self, base: Tensor) -> tuple[Any, ...]:
        """What a recomputed tensor must agree in."""
        return (base.value.shape, base.kind, checksum(base)) if self.check == "values" else (base.value.shape, base.kind)

    def pack(self, base: Tensor, site: Site) -> Slot:
        slots = self.slots.get(site.owner)
        if slots is None:
            slots = self.slots[site.owner] = []
        slot = Slot()
        slot.frame = self
        slot.index = len(slots)
        slot.site = site
        slot.looks = self.look(base)
        slots.append(ref(slot))
        return slot

    save_base = pack

    def unpack(self, packed: Slot, asking: Any) -> Tensor:
        now = current()
        tables = (now.group or now.run or Run()).tables(self)
        table = tables.setdefault(packed.site.owner, {})
        if packed.index not in table:
            self.recompute(Refill(self, asking, tables))
        if packed.index not in table:
            raise self.fewer(packed)
        base: Tensor = table.pop(packed.index).unpack()
        return base

    def alive(self, level: Any) -> list[Slot]:
        """The slots of a level that somebody still needs."""
        return [slot for r in self.slots.get(level, ()) if (slot := r()) is not None]

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], within: AbstractContextManager[Any]) -> Any:
        """Run the region for the first time."""
        state, region = current(), self.region
        watchers = state.watchers if self.log is None else (self.log, *state.watchers)
        try:
            with using(state._replace(hooks=self, watchers=watchers, regions=(region, *state.regions))), within:
                return self.function(*args, **kwargs)
        finally:
            region.ended = next_number()

    def recompute(self, refill: Refill) -> Any:
        """Run the region as in forward, but with these hooks, to its end or theirs. [NOTE recompute-under-the-same-state]"""
        now, began = current(), next_number()
        *args, kwargs = tree.unflatten([again(refill.level) for again in self.inputs], self.spec)
        asking = refill.level if refill.level is not INPUTS else None

        def call() -> Any:
            try:
                return self.function(*args, **kwargs)
            except Stop as stop:
                if stop.refill is not refill:
                    raise

        if now.watchers:
            tell(now.watchers, "recompute", asking, self, refill)
        try:
            # what it takes of regions outside, others of the run take too
            out = self.region.again(began, call, refill, *([refill.log] if refill.log else []), run=now.run)
        finally:
            if now.watchers:
                tell(now.watchers, "recomputed", asking, self, refill)
            if self.debug:
                sys.stderr.write(self.logs(refill))
        if refill.missing and self.check != "none":
            raise self.fewer(next(iter(refill.missing.values())), refill)
        return out

    def count(self, level: Any) -> int:
        """How many saves the forward made there."""
        return len(self.slots.get(level, ()))

    def fewer(self, slot: Slot, refill: Refill | None = None) -> CheckpointError:
        """The error of a recomputation that did not get to a save of its forward."""
        known = self.count(slot.site.owner)
        got = "" if refill is None else f", and {refill.counts.get(slot.site.owner, 0)} during recomputation"
        return CheckpointError(
            "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation: "
            f"{known} in the forward at {slot.site.owner or 'level 0'}{got}; the first one missing is {slot.site}. The "
            f"function must do the same when it runs again: no state that changes between runs.{self.logs(refill)}")

    def logs(self, refill: Refill | None) -> str:
        """Where the runs part, if anybody looked, and both op by op, if debug asked for that."""
        if self.log is None or refill is None or refill.log is None:
            return ""
        return self.log.against(refill.log) + (self.log.beside(refill.log) if self.debug else "")


def _own_business(levels: tuple[Interpreter, ...]) -> bool:
    """Whether a grad level was entered since: it may ask for an inner region's inputs while the forward still runs."""
    return any(not me.transparent for me in current().levels if me not in levels)


def _kept(x: Any, state: State, *, edges: bool) -> Callable[[Any], Any]:
    """Keep an argument: a function of the level that asks, which gives it again.

    A tensor is kept through the hooks outside, and comes back with each layer's flag and no edge (with `edges`, as it was).
    [NOTE arguments-are-fresh]
    """
    if not isinstance(x, Tensor):
        return lambda asking: x
    hooks = None if state.hooks is None else state.hooks.manager(INPUTS)
    if hooks is not None:
        return PackedTensor(x, hooks, Site(INPUTS, "checkpoint", "input"), edges=edges).unpack
    bases, rebuild = peel(x, edges=edges)
    if x.kind.inference is not None:  # no backward saves it, but a function may be given it
        return lambda asking: rebuild(iter(bases))
    kept = list(map(keep_base, bases))
    return lambda asking: rebuild(map(_UNPACK, kept))


_UNPACK = methodcaller("unpack")


def records(state: State) -> bool:
    """Whether any level on the stack records."""
    off = state.grad_off
    return None not in off or any(me not in off and not me.transparent for me in state.levels)


# ---------------------------------------------------------------- running again
class Stop(BaseException):
    """All that is needed is there.  Not an Exception, so that the region's own handlers let it pass. [NOTE early-stop]"""

    def __init__(self, refill: Refill) -> None:
        self.refill = refill


class Refill(Hooks):
    """The hooks of a recomputation: saves of one level fill its slots, all others are the rerun's own."""

    __slots__ = ("counts", "frame", "level", "log", "missing", "table")
    title = "recomputation"
    numbered = True
    exact = False
    """Whether to save more than the forward did is an error whatever `early_stop` says."""

    def __init__(self, frame: Frame, level: Any, table: dict[Any, dict[int, Any]]) -> None:
        super().__init__(None)
        self.frame = frame
        self.level = level
        self.table = table
        self.log = None if frame.log is None else OpLog(values=frame.log.values)
        self.counts: dict[Any, int] = {}
        self.missing = {(at, slot.index): slot for at in (level, INPUTS) for slot in frame.alive(at)}

    def manager(self, owner: Any) -> Hooks | None:
        if owner is self.level or (owner is INPUTS and not _own_business(self.frame.levels)):
            return self
        return None

    def pack(self, base: Tensor, site: Site) -> Tensor:
        slot = self.met(base, site)
        if slot is not None:
            self.table.setdefault(slot.site.owner, {})[slot.index] = keep_base(base)
            if not self.missing and (self.frame.early_stop or self.frame.region.ended is None):  # never ahead of the forward
                raise Stop(self)
        return base

    def met(self, base: Tensor, site: Site) -> Slot | None:
        """Count a save, and compare it with the slot that has been missing it, if any."""
        level = site.owner
        index = self.counts.get(level, 0)
        self.counts[level] = index + 1
        slot = self.missing.pop((level, index), None)
        if slot is not None:
            looks = self.frame.look(base)
            if looks != slot.looks and self.frame.check != "none":
                raise self._different(slot, looks, site)
        elif index >= self.frame.count(level) and self.frame.region.ended is not None and (
                self.exact or not self.frame.early_stop):
            raise self._more(site)
        return slot

    def save_base(self, base: Tensor, site: Site) -> SavedBase | Storage:
        self.pack(base, site)
        return keep_base(base)

    def save_value(self, value: Tensor, site: Site) -> SavedBase | SavedValue | Storage:
        for base in bases(value):
            self.pack(base, site)
        return keep(value)

    def before(self, owner: Any, node: str, inputs: dict[str, Tensor]) -> None:
        """Stop before the function runs, where all that is missing are inputs that it will save. [NOTE early-stop]"""
        if owner is not self.level or not self.frame.early_stop:
            return
        first = self.counts.get(owner, 0)
        sites = [slot.site for k in range(len(self.missing)) if (slot := self.missing.get((owner, first + k))) is not None]
        if (len(sites) == len(self.missing) and len({site.number for site in sites}) == 1
                and all(site.node == node and site.name in inputs for site in sites)):
            given = {name: cycle(bases(x.value if owner is not None and x.owner is owner else x)) for name, x in inputs.items()}
            for site in sites:
                self.pack(next(given[site.name]), site)

    def unpack(self, packed: Tensor, asking: Any) -> Tensor:
        return packed

    def _different(self, slot: Slot, looks: tuple[Any, ...], site: Site) -> CheckpointError:
        what = "Recomputed values for the following tensors have different " + (
            "values (checksums)" if looks[:2] == slot.looks[:2] else "metadata")
        return CheckpointError(
            f"torch.utils.checkpoint: {what} than during the forward pass: save {slot.index} of "
            f"{slot.site.owner or 'level 0'}, {slot.site.name} of {slot.site.node}, was {_text(slot.looks)}; the "
            f"recomputation saved {site.name} of {site.node}, {_text(looks)}.{self.frame.logs(self)}")

    def _more(self, site: Site) -> CheckpointError:
        return CheckpointError(
            "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass: "
            f"{self.frame.count(site.owner)} in the forward at {site.owner or 'level 0'}; the next one is {site}."
            + self.frame.logs(self))


def _text(looks: tuple[Any, ...]) -> str:
    return f"{looks[1].dtype}{list(looks[0])} on {looks[1].device}"
