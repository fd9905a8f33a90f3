"""checkpoint: keep a region's inputs instead of what it saves, and run it again when a backward asks.

    pack     the region's saves become slots, numbered for each level: (level, index)
    unpack   the first slot that a backward run of a level asks for runs the region again, under the State and the context
             variables of its forward, and fills that level's slots; each value is dropped as it is handed out

Recomputation is for data only: it never rebuilds graph, because each layer's edges were never lost. [NOTE layers-remember]
So nothing here names a transform.

Upstream: torch/utils/checkpoint.py, NOTE [Nestable Checkpoint] (whose six rules hold).
"""

from __future__ import annotations

import functools
from contextlib import nullcontext
from contextvars import copy_context
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .. import tree
from ..autograd.engine import Run
from ..errors import CheckpointError, Refusal
from ..graph.saved import Hooks, PackedTensor, SavedTensor, Site, keep
from ..state import State, Watcher, current, show, tell, using
from ..tensor import Storage, Tensor, alias, next_number, peel, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from ..interpreters.base import Interpreter

__all__ = ["CheckpointError", "checkpoint", "checkpoint_sequential", "is_recomputing", "set_checkpoint_early_stop"]

INPUTS = "inputs"
"""The level of an inner region's inputs among its parent's slots: a recomputation for any level fills them."""


def checkpoint(function: Callable[..., Any] | None = None, *args: Any, use_reentrant: bool = False,
               context_fn: Any = None, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, preserve_rng_state: bool = True, **kwargs: Any) -> Any:
    """Return function(*args, **kwargs), saving the inputs only; a backward runs the function again.

    args, kwargs: any pytrees; tensors in them are saved (through the hooks in force), captured tensors are reached again
    through the closure.  Without a function, returns a decorator.
    determinism_check: "default" compares number, shape, dtype and device of what is saved, "values" checksums too,
    "none" nothing; debug: errors show the ops of both runs; early_stop: stop as soon as all that is needed is there.
    Raises CheckpointError, in the backward, where the second run differs or reads what was modified meanwhile.
    Source: torch.utils.checkpoint.checkpoint.
    """
    if function is None:
        return lambda f: functools.wraps(f)(functools.partial(
            checkpoint, f, use_reentrant=use_reentrant, context_fn=context_fn, determinism_check=determinism_check,
            debug=debug, early_stop=early_stop, preserve_rng_state=preserve_rng_state))
    if use_reentrant:
        msg = ("checkpoint(use_reentrant=True) runs a graph inside a graph, which composes with nothing but .backward() at "
               f"level 0: pass use_reentrant=False, which needs no change to the function. [level stack: {show()}]")
        raise Refusal(msg)
    if determinism_check not in ("default", "values", "none"):
        msg = f"determinism_check must be 'default', 'values' or 'none', found {determinism_check!r}."
        raise ValueError(msg)
    state = current()
    forward, again = context_fn() if context_fn is not None else (nullcontext(), nullcontext())
    if not _records(state):
        with forward:
            return function(*args, **kwargs)
    if state.hooks_disabled is not None:
        raise Refusal(state.hooks_disabled)
    region = Region(state, preserve_rng_state=preserve_rng_state, log=[] if debug else None)
    frame = Frame(function, (args, kwargs), state, region, again, determinism_check=determinism_check,
                  early_stop=early_stop if state.early_stop is None else state.early_stop)
    try:
        with using(state._replace(hooks=frame, watchers=(region, *state.watchers))), forward:
            return function(*args, **kwargs)
    finally:
        region.close()


def _records(state: State) -> bool:
    """Whether any level on the stack records."""
    off = state.grad_off
    return None not in off or any(me not in off and not me.transparent for me in state.levels)


# ---------------------------------------------------------------- what a forward leaves behind
class Slot:
    """What a node keeps of a save inside a region: its place in the frame, and what it must look like."""

    __slots__ = ("__weakref__", "frame", "index", "level", "looks", "site")

    def __init__(self, frame: Frame, level: Any, index: int, base: Tensor, site: Site) -> None:
        self.frame = frame
        self.level = level
        self.index = index
        self.site = site
        self.looks = frame.look(base)


class Region(Watcher):
    """What one forward, or one recomputation, of a region reads from outside, and what it makes.

    It keeps no tensor alive: storages are referred to weakly. [NOTE captured-tensors]
    """

    __slots__ = ("draws", "log", "parent", "reads", "versions")

    def __init__(self, state: State, *, preserve_rng_state: bool, log: list[str] | None) -> None:
        self.parent = next((w for w in state.watchers if isinstance(w, Region)), None)
        self.reads: dict[ref[Storage], None] = {}
        self.versions: dict[ref[Storage], int] = {}
        self.draws: dict[Any, Any] | None = {} if preserve_rng_state else None
        self.log = log

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "draw":
            if self.draws is not None:
                self.draws.setdefault(subject, detail)
        elif owner is None and event == "op":
            if self.log is not None:
                self.log.append(subject.name)
            for x in detail:
                if type(x) is Tensor:
                    store = storage_of(x)
                    if not self._made(store):
                        self.reads[ref(store)] = None
        elif owner is None and event == "made":
            for x in detail if isinstance(detail, tuple) else (detail,):
                store = storage_of(x)
                if store.maker is None:
                    store.maker = self

    def _made(self, store: Storage) -> bool:
        maker = store.maker
        while maker is not None and maker is not self:
            maker = maker.parent
        return maker is self

    def close(self) -> None:
        """Take the versions of all that was read, as the region left them."""
        self.versions = {r: store.version for r in self.reads if (store := r()) is not None}

    def check(self) -> None:
        """Raise CheckpointError where something read was written to since."""
        for r, version in self.versions.items():
            store = r()
            if store is not None and store.version != version:
                msg = (f"one of the tensors that the checkpointed function reads ({store.array.dtype} {list(store.array.shape)}) "
                       f"has been modified by an inplace operation after its forward: it is at version {store.version}, "
                       f"expected version {version}. The recomputation would compute something else. Run the backward first, or "
                       f"pass a clone. [level stack: {show()}] [NOTE captured-tensors]")
                raise CheckpointError(msg)


class Frame(Hooks):
    """One checkpointed call: the hooks of its region in forward, and the way to run it again.

    It manages the saves of the levels on the stack at its entry; a level entered inside is the region's own business and
    saves with the next hooks outside. [NOTE whose-saves]
    """

    __slots__ = ("__weakref__", "again", "check", "context", "counts", "early_stop", "filled", "function", "inputs", "levels",
                 "region", "slots", "spec")

    def __init__(self, function: Callable[..., Any], args: Any, state: State, region: Region,
                 again: AbstractContextManager[Any], *, determinism_check: str, early_stop: bool) -> None:
        super().__init__(state.hooks)
        self.function = function
        self.levels = state.levels
        self.context = copy_context()
        self.region = region
        self.again = again
        self.check = determinism_check
        self.early_stop = early_stop
        self.counts: dict[Any, int] = {}
        self.slots: dict[Any, dict[int, ref[Slot]]] = {}
        self.filled: WeakKeyDictionary[Any, dict[Any, dict[int, SavedTensor]]] = WeakKeyDictionary()
        leaves, self.spec = tree.flatten(args)
        self.inputs = [_kept(x, state) if isinstance(x, Tensor) else x for x in leaves]

    def manager(self, owner: Any) -> Hooks | None:
        if owner is None or owner in self.levels or (owner is INPUTS and not _own_business(self.levels)):
            return self
        return None if self.outer is None else self.outer.manager(owner)

    def look(self, base: Tensor) -> tuple[Any, ...]:
        """What a recomputed tensor must agree in."""
        looks = (base.value.shape, base.dtype, base.device)
        return (*looks, hash(base.value.tobytes())) if self.check == "values" else looks

    def pack(self, base: Tensor, site: Site) -> Slot:
        level = site.owner
        index = self.counts.get(level, 0)
        self.counts[level] = index + 1
        slot = Slot(self, level, index, base, site)
        self.slots.setdefault(level, {})[index] = ref(slot)
        return slot

    def unpack(self, packed: Slot, asking: Any) -> Tensor:
        run = current().run or Run()
        table = self.filled.setdefault(run, {}).setdefault(packed.level, {})
        if packed.index not in table:
            self.recompute(asking, run)
        if packed.index not in table:
            raise self.fewer(packed)
        return table.pop(packed.index).unpack()

    def recompute(self, level: Any, run: object) -> None:
        """Run the region again as it ran in forward, and fill the slots of one level. [NOTE recompute-under-the-same-state]"""
        self.region.check()
        now = current()
        refill = Refill(self, level, self.filled[run])
        args, kwargs = tree.unflatten([_again(kept, level) for kept in self.inputs], self.spec)
        if now.watchers:
            tell(now.watchers, "recompute", level if level is not INPUTS else None, self, refill)

        def region() -> None:
            began = current()
            state = began._replace(hooks=refill, watchers=(refill.region, *now.watchers), run=None, recomputing=next_number(),
                                   streams=_replayed(self.region.draws, began.streams))
            with using(state), self.again:
                try:
                    self.function(*args, **kwargs)
                except Stop as stop:
                    if stop.refill is not refill:
                        raise

        try:
            self.context.copy().run(region)
        finally:
            self.region.close()
        if refill.missing and self.check != "none":
            raise self.fewer(next(iter(refill.missing.values())), refill)
        if now.watchers:
            tell(now.watchers, "recomputed", level if level is not INPUTS else None, self, refill)

    def fewer(self, slot: Slot, refill: Refill | None = None) -> CheckpointError:
        """The error of a recomputation that did not get to a save of its forward."""
        known = self.counts.get(slot.level, 0)
        got = "" if refill is None else f", and {refill.counts.get(slot.level, 0)} during recomputation"
        return CheckpointError(
            "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation: "
            f"{known} in the forward at {slot.site.owner or 'level 0'}{got}; the first one missing is {slot.site}. The function "
            f"must do the same when it runs again: no state that changes between runs.{self.logs(refill)} [level stack: {show()}]")

    def logs(self, refill: Refill | None) -> str:
        """Both runs op by op, where debug asked for that."""
        if self.region.log is None or refill is None:
            return ""
        both = [list(self.region.log), list(refill.region.log or [])]
        at = next((i for i, (a, b) in enumerate(zip(*both, strict=False)) if a != b), min(map(len, both)))
        return f" The runs differ from op {at} on. Forward: {' '.join(both[0])}. Recomputation: {' '.join(both[1])}."


def _own_business(levels: tuple[Interpreter, ...]) -> bool:
    """Whether a grad level was entered since: it may ask for an inner region's inputs while the forward still runs."""
    return any(not me.transparent for me in current().levels if me not in levels)


def _kept(x: Tensor, state: State) -> SavedTensor | PackedTensor:
    """Keep an argument: through the hooks outside, with each layer's flag and no edge. [NOTE arguments-are-fresh]"""
    hooks = None if state.hooks is None else state.hooks.manager(INPUTS)  # type: ignore[arg-type]
    if hooks is None:
        return keep(_fresh(x))
    return PackedTensor(x, hooks, Site(INPUTS, "checkpoint", "input"), edges=False)  # type: ignore[arg-type]


def _fresh(x: Tensor) -> Tensor:
    bases, rebuild = peel(x, edges=False)
    return rebuild(iter([alias(b) for b in bases]))


def _again(kept: Any, level: Any) -> Any:
    if isinstance(kept, PackedTensor):
        return kept.unpack(level)
    return _fresh(kept.unpack()) if isinstance(kept, SavedTensor) else kept


# ---------------------------------------------------------------- running again
def _replayed(draws: dict[Any, Any] | None, streams: tuple[tuple[Any, Any], ...]) -> tuple[tuple[Any, Any], ...]:
    """Private copies of the generators that the forward drew from, where they stood before it. [NOTE random-streams]"""
    if not draws:
        return streams
    fresh = tuple((generator, generator.standing_at(state)) for generator, state in draws.items())
    return (*fresh, *streams)


class Stop(BaseException):
    """All that is needed is there.  Not an Exception, so that the region's own handlers let it pass. [NOTE early-stop]"""

    def __init__(self, refill: Refill) -> None:
        super().__init__()
        self.refill = refill


class Refill(Hooks):
    """The hooks of a recomputation: saves of one level fill its slots, all others are the rerun's own."""

    __slots__ = ("counts", "frame", "level", "missing", "region", "table")

    def __init__(self, frame: Frame, level: Any, table: dict[Any, dict[int, SavedTensor]]) -> None:
        super().__init__(None)
        self.frame = frame
        self.level = level
        self.table = table
        self.region = Region(current(), preserve_rng_state=False, log=None if frame.region.log is None else [])
        self.counts: dict[Any, int] = {}
        self.missing: dict[tuple[Any, int], Slot] = {
            (key, index): slot for key in {level, INPUTS} for index, r in frame.slots.get(key, {}).items()
            if (slot := r()) is not None}

    def manager(self, owner: Any) -> Hooks | None:
        if owner is self.level or (owner is INPUTS and not _own_business(self.frame.levels)):
            return self
        return None

    def pack(self, base: Tensor, site: Site) -> Tensor:
        level = site.owner
        index = self.counts.get(level, 0)
        self.counts[level] = index + 1
        slot = self.missing.pop((level, index), None)
        if slot is not None:
            looks = self.frame.look(base)
            if looks != slot.looks and self.frame.check != "none":
                raise self._different(slot, looks, site)
            self.table.setdefault(level, {})[index] = keep(alias(base))
            if not self.missing and self.frame.early_stop:
                raise Stop(self)
        elif index >= self.frame.counts.get(level, 0) and not self.frame.early_stop and self.frame.region.versions:
            raise self._more(site)
        return base

    def unpack(self, packed: Tensor, asking: Any) -> Tensor:
        return packed

    def _different(self, slot: Slot, looks: tuple[Any, ...], site: Site) -> CheckpointError:
        what = "Recomputed values for the following tensors have different " + (
            "values (checksums)" if looks[:3] == slot.looks[:3] else "metadata")
        return CheckpointError(
            f"torch.utils.checkpoint: {what} than during the forward pass: save {slot.index} of {slot.site.owner or 'level 0'}, "
            f"{slot.site.name} of {slot.site.node}, was {_text(slot.looks)}; the recomputation saved {site.name} of {site.node}, "
            f"{_text(looks)}.{self.frame.logs(self)} [level stack: {show()}]")

    def _more(self, site: Site) -> CheckpointError:
        return CheckpointError(
            "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass: "
            f"{self.frame.counts.get(site.owner, 0)} in the forward at {site.owner or 'level 0'}; the next one is {site}."
            f"{self.frame.logs(self)} [level stack: {show()}]")


def _text(looks: tuple[Any, ...]) -> str:
    return f"{looks[1]}{list(looks[0])} on {looks[2]}"


def is_recomputing() -> bool:
    """Whether the program that asks runs for a second time, inside a checkpoint's recomputation."""
    return current().recomputing is not None


class set_checkpoint_early_stop:  # noqa: N801  torch spells it so
    """Within this context every checkpoint stops early, or none does, whatever its own early_stop says.

    Source: torch.utils.checkpoint.set_checkpoint_early_stop.
    """

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def __enter__(self) -> None:
        self._scope = using(current()._replace(early_stop=self.enable))
        self._scope.__enter__()

    def __exit__(self, *error: Any) -> None:
        self._scope.__exit__(*error)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool = False, **kwargs: Any) -> Any:  # noqa: A002
    """Return the chain of functions applied to `input`, in `segments` checkpointed pieces; the last runs plainly.

    functions: a sequence of callables, each taking what the one before returned.  Raises ValueError where `segments` is not
    between 1 and their number.  Source: torch.utils.checkpoint.checkpoint_sequential.
    """
    chain: Sequence[Any] = list(functions)
    if not 1 <= segments <= len(chain):
        msg = f"checkpoint_sequential: segments must be between 1 and the number of functions ({len(chain)}), found {segments}."
        raise ValueError(msg)
    size = len(chain) // segments
    ends = [size * i for i in range(1, segments)]

    def run(part: Sequence[Any]) -> Callable[[Any], Any]:
        return lambda x: functools.reduce(lambda y, f: f(y), part, x)

    at = 0
    for end in ends:
        input = checkpoint(run(chain[at:end]), input, use_reentrant=use_reentrant, **kwargs)  # noqa: A001
        at = end
    return run(chain[at:])(input)
