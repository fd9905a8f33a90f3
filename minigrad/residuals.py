"""What is kept from a forward to its backward: every save of every level, and where its data is.

    print(saved_residuals(f, x))             of f
    print(saved_residuals(f, x, order=2))    of the derivative of the derivative of f

A watcher notes each save; what is listed is alive at the moment when the backward of its level could begin.
[NOTE what-is-kept]

Source: jax.ad_checkpoint.print_saved_residuals.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from . import tree
from .func import grad, vjp
from .lines import line_of_caller
from .offload import Offload
from .regions.recompute import INPUTS, Frame, Refill
from .state import Watcher, current, using
from .tensor import Tensor, bases, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph.node import Node
    from .graph.saved import Hooks, PackedTensor, Site
    from .interpreters.base import Interpreter
    from .storage import Storage

KEPT, RECOMPUTED = "kept", "recomputed"


class Residual(NamedTuple):
    """One save."""

    level: int
    """The height of the level whose backward needs it."""
    op: str
    """The node that keeps it: `SinBackward0`; `checkpoint` of the inputs of a region."""
    name: str
    """Its name in the node's row: `x0`, `out`; of what a policy keeps, the policy."""
    dtype: str
    shape: tuple[int, ...]
    nbytes: int
    """Of what lies in memory: physical under vmap, the storage of an expanded tensor."""
    source: str
    """`argument 0`, or the op that made it."""
    line: str
    """Where the program asked for the save."""
    verdict: str
    """`kept`; `recomputed` by a checkpoint; `on host`; the title of the hooks that took it; or the policy by which a checkpoint
    takes it from what it keeps (`MUST_SAVE`), which is listed for itself, as `kept` or where it is."""
    memories: tuple[int, ...]
    """Numbers of the memories it lies in: saves that share one have the same number."""

    def __str__(self) -> str:
        return (f"{self.dtype}{list(self.shape)} {self.nbytes} B, {self.name} of {self.op}: {self.source}, {self.verdict}, "
                f"{self.line}")


class Residuals(list[Residual]):
    """Saves, level by level in the order they were made."""

    def of(self, level: int) -> Residuals:
        """The saves of one level."""
        return Residuals(r for r in self if r.level == level)

    @property
    def arrays(self) -> int:
        """How many different memories are kept where they are."""
        return len({n for r in self if r.verdict == KEPT for n in r.memories})

    @property
    def nbytes(self) -> int:
        """Bytes that are kept where they are; a memory that is saved twice counts once."""
        return sum({r.memories: r.nbytes for r in self if r.verdict == KEPT}.values())

    def __str__(self) -> str:
        lines = []
        for level in sorted({r.level for r in self}):
            mine = self.of(level)
            lines.append(f"level {level}: {len(mine)} saves, {mine.arrays} arrays kept, {mine.nbytes} B")
            lines += [f"  {r}" for r in mine]
        return "\n".join(lines) or "nothing"


def saved_residuals(f: Callable[..., Any], *args: Any, order: int = 0, level: int | None = None, **kwargs: Any) -> Residuals:
    """Return what is kept to differentiate f(*args, **kwargs), or its derivative of that order by the first argument.

    Each level is looked at when its backward is about to begin: level 1 is the outermost derivative.  level: of that one only.
    Source: jax.ad_checkpoint.print_saved_residuals.
    """
    for _ in range(order):
        f = grad(partial(_summed, f))
    state = current()
    keeper = _Keeper([x for x in tree.flatten((args, kwargs))[0] if isinstance(x, Tensor)], len(state.levels))
    with using(state._replace(watchers=(*state.watchers, keeper))):
        _, pull = vjp(partial(f, **kwargs), *args)
        keeper.look(1)
        del pull
    found = Residuals(r for _, kept in sorted(keeper.found.items()) for r in kept)
    return found if level is None else found.of(level)


def _summed(f: Callable[..., Any], *args: Any, **kwargs: Any) -> Tensor:
    total: Any = 0
    for out in tree.flatten(f(*args, **kwargs))[0]:
        total = total + (out.sum() if out.ndim else out)
    return total  # type: ignore[no-any-return]


class _Keeper(Watcher):
    """Notes saves, and who must live for each to be kept."""

    __slots__ = ("_below", "_gone", "_memories", "_op", "_policies", "_saves", "_sources", "_step", "found")

    def __init__(self, arguments: list[Tensor], below: int) -> None:
        self._below = below
        self._saves: list[tuple[ref[Any], set[int], Residual]] = []
        """Who must live for it, the levels that it is kept for, and what it is."""
        self._gone: set[int] = set()
        self._op = ""
        self._step = count(1).__next__
        self._memories: WeakKeyDictionary[Storage, int] = WeakKeyDictionary()
        self._sources: WeakKeyDictionary[Storage, str] = WeakKeyDictionary()
        self._policies: dict[tuple[int, ...], str] = {}
        """Of memories, by their numbers: the policy that keeps them."""
        for k, x in enumerate(arguments):
            for base in bases(x):
                self._sources.setdefault(storage_of(base), f"argument {k}")
        self.found: dict[int, list[Residual]] = {}

    def look(self, level: int) -> None:
        """Keep what is kept now for that level."""
        self.found.setdefault(level, [self._now(r)._replace(level=level) for keeper, levels, r in self._saves
                                      if level in levels and self._lives(keeper())])

    def _now(self, r: Residual) -> Residual:
        """A policy may have decided after the save."""
        return r._replace(verdict=self._policies.get(r.memories, r.verdict)) if r.verdict == RECOMPUTED else r

    def _lives(self, keeper: Any) -> bool:
        return keeper is not None and getattr(keeper, "number", 0) not in self._gone

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "op" and owner is None:
            self._op = subject.name
        elif event == "made":
            self._sources[storage_of(subject)] = f"output of {self._op}"
        elif event == "copy" and len(detail) == 3:
            self._sources[detail[2]] = "back from the host"
        elif event == "save":
            self._note(owner, subject, detail[0], detail[1], KEPT)
        elif event == "pack" and not isinstance(detail[0], Refill):
            hooks, keeper, x = detail
            self._note(owner, subject, x, keeper, _verdict(hooks, x))
        elif event == "checkpoint":
            self._inputs(subject, detail)
        elif event == "policy":
            self._policy(subject, *detail)
        elif event == "release":
            self._gone.add(subject.number)
        elif event == "backward":
            self.look(self._height(owner))

    def _note(self, owner: Interpreter | None, site: Site, x: Tensor, keeper: Node | None, verdict: str) -> None:
        if keeper is not None:
            value = x.value if owner is not None and x.owner is owner else x
            self._saves.append((ref(keeper), {self._height(owner)}, self._residual(site.node, site.name, value, verdict)))

    def _height(self, owner: Interpreter | None) -> int:
        return 0 if owner is None else owner.number - self._below

    def _inputs(self, frame: Frame, arguments: list[Any]) -> None:
        """A region's inputs are kept for every level that records in it."""
        levels = {self._height(owner) for owner in (None, *frame.levels)}
        packer = None if frame.outer is None else frame.outer.manager(INPUTS)
        for x in arguments:
            if isinstance(x, Tensor):
                verdict = KEPT if packer is None else _verdict(packer, x)
                self._saves.append((ref(frame), levels, self._residual("checkpoint", "input", x, verdict)))

    def _policy(self, keeper: Any, base: Tensor, verdict: str, inside: tuple[Interpreter, ...],
                packed: PackedTensor | None) -> None:
        """What a policy keeps is kept for every level that records in the region."""
        where = KEPT if packed is None else _verdict(packed.hooks, base)
        residual = self._residual("checkpoint", verdict, base, where)
        self._policies[residual.memories] = verdict
        self._saves.append((ref(keeper), {self._height(owner) for owner in (None, *inside)}, residual))

    def _residual(self, op: str, name: str, value: Tensor, verdict: str) -> Residual:
        found = list(bases(value))
        stores = [storage_of(base) for base in found]
        numbers = tuple([self._memories.get(s) or self._memories.setdefault(s, self._step()) for s in stores])
        nbytes = sum(min(int(base.value.nbytes), s.nbytes()) for base, s in zip(found, stores, strict=True))
        return Residual(0, op, name, value.dtype.name, value.shape, nbytes, self._sources.get(stores[0], "from outside"),
                        line_of_caller(), verdict, numbers)


def _verdict(hooks: Hooks, x: Tensor) -> str:
    """Where the data is that these hooks were given."""
    if isinstance(hooks, Frame):
        return RECOMPUTED
    if isinstance(hooks, Offload):
        return KEPT if all(hooks.settings.stays(base) for base in bases(x)) else "on host"
    return hooks.title
