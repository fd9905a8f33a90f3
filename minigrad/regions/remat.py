"""remat="every": the backward of a checkpointed region is itself a checkpointed region. [NOTE remat-every]

    forward    the region runs as every region does; then the graph that its outputs hang on is cut off at each level: one
               node stands for all that was recorded since the region began, and keeps the region's inputs
    backward   B(cotangents): run the region again, which records that graph once more, and walk it down to where it began;
               B is a region too, of the levels that record while it runs, so it keeps its cotangents and nothing else
    next       a region whose value or gradient is used has several nodes at the next order: B, B of B, ... and itself; the
               second run stays for all of them that are walked before another region's, so there is one at a time

What belongs to a region is told by age: its nodes are younger than its beginning, and what they lead to is older, be it an
input or captured.  So levels may come and go, and nothing here names a transform.
What cannot be cut off is left as it is, and recomputed as remat="first" does.

Upstream: nothing; in torch the backward of a region saves plainly.  JAX's remat recurs in the same way, on traced programs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import tree
from ..autograd.engine import Walk, reachable
from ..errors import CheckpointError
from ..graph.bare import around
from ..graph.node import Node, age
from ..graph.record import already_freed
from ..graph.saved import Hooks
from ..ops.inplace import set_edge
from ..state import current
from ..tensor import WRITES, Tensor, next_number
from .recompute import Frame, Refill, records
from .region import NOTHING, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..graph.node import Edge
    from ..graph.saved import Site
    from ..interpreters.base import Interpreter
    from .recompute import Slot


def every(frame: Frame, args: tuple[Any, ...], kwargs: dict[str, Any], within: AbstractContextManager[Any]) -> Any:
    """Run a region for the first time, and cut off what each level recorded."""
    began: int = next_number()
    given: frozenset[Any] = frozenset()
    if frame.of is not None:  # what it walks may have run before, and its cotangents have come after that
        began = _second(frame).began
        given = frozenset([layer.node for ct in args for layer in _layers(ct)])
    out = frame.run(args, kwargs, within)
    for owner in (None, *frame.levels):
        _cut(frame, owner, out, began, given)
    return out


def _cut(frame: Frame, owner: Interpreter | None, out: Any, began: int, given: frozenset[Any]) -> None:
    """Let one node stand for the graph of a level between a region's outputs and its beginning, or what is given to it.

    Not where somebody waits for a gradient inside: of a leaf that the region made, or of an intermediate that got out.
    """
    ends = [x for x in _ends(out, owner, began) if x.node not in given]
    edges = _edges(ends)
    nodes, _ = reachable([node for node, _ in edges], given, since=began)
    border = _border(nodes)
    if not border or any(age(target) > began for target, _ in border if target not in given) or _awaited(nodes, ends):
        return
    node = RegionNode(frame, owner, len(edges), border)
    places = {edge: nr for nr, edge in enumerate(edges)}
    for x, nr in [(x, places[x.node, x.nr]) for x in ends]:  # one that is returned twice is looked up twice
        set_edge(x, (node, nr))


def _ends(out: Any, owner: Interpreter | None, began: int) -> list[Tensor]:
    """Of a region's outputs, the layers of a level to which the region gave an edge."""
    return [x for leaf in tree.leaves_of(out) if isinstance(leaf, Tensor) for x in _layers(leaf)
            if x.owner is owner and isinstance(x.node, Node) and x.node.number > began]


def _layers(x: Tensor) -> Iterator[Tensor]:
    yield x
    for part in () if x.owner is None else x.owner.parts(x):
        yield from _layers(part)


def _edges(ends: list[Tensor]) -> list[Edge]:
    """Their edges, each once."""
    return list(dict.fromkeys((x.node, x.nr) for x in ends))


def _border(nodes: list[Node]) -> list[Edge]:
    """The edges that lead from the nodes of a region out of it, each once."""
    inside = set(nodes)
    return list({edge: None for node in nodes for edge in node.edges if edge[0] not in inside})


def _awaited(nodes: list[Node], ends: list[Tensor]) -> bool:
    """Whether a tensor other than the outputs asked for its gradient to be retained, and is alive."""
    holders = [r() for node in nodes if node.hooks is not None for r in node.hooks.retains.values()]
    return any(x is not None and all(x is not end for end in ends) for x in holders)


# ---------------------------------------------------------------- backward
class RegionNode(Node):
    """A region in the graph of one level: its edges are those that left the region's own graph."""

    __slots__ = ("frame", "slots")

    frame: Frame | None
    slots: list[Slot]
    """What the saves of the second run must agree in; no data. [NOTE recomputation-is-checked]"""

    def __init__(self, frame: Frame, owner: Interpreter | None, outs: int, border: list[Edge]) -> None:
        self.frame = frame
        self.slots = frame.alive(owner)
        self.owner = owner
        self.edges = border
        self.number = next_number()
        self.hooks = None
        self.metas = None
        self.outs = outs

    def name(self) -> str:
        return "CheckpointBackward"

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        if self.frame is None:
            raise already_freed(self.name())
        walk = current().run
        assert isinstance(walk, Walk)
        second = walk.second = _second(self.frame)  # that of another region goes before this one runs
        second.stays = _comes_next(second.region, walk)
        cts = {nr: one for nr, one in enumerate([ct] if self.outs == 1 else ct) if one is not None}
        border = list(self.edges)
        asked = [edge for edge in border if wanted is None or edge[0] in wanted]
        back = _backward(self.frame, self.owner, self.slots, self.outs, border, list(cts), asked, create_graph=create_graph)
        found = dict(zip(asked, _as_region(self.frame, back, *cts.values()), strict=True))
        if not second.stays:
            walk.second = None
        return [found.get(edge) for edge in border]

    def release(self) -> None:
        self.frame, self.slots = None, []


def _backward(frame: Frame, owner: Interpreter | None, slots: list[Slot], outs: int, border: list[Edge], given: list[int],
              asked: list[Edge], *, create_graph: bool) -> Callable[..., list[Tensor | None]]:
    """B: from cotangents of the outputs `given`, those of the edges `asked`.  The region's inputs it finds in the frame."""
    def back(*cts: Tensor) -> list[Tensor | None]:
        second = _second(frame)
        edges = _edges(_ends(second.outputs(frame, owner, slots), owner, second.began))
        nodes, leaves = reachable([node for node, _ in edges], since=second.began)
        if len(edges) != outs or not set(_border(nodes)) <= set(border):
            raise _differs(outs, len(edges), owner)
        walk = _Local(nodes, leaves, asked, create_graph=create_graph, retain_graph=create_graph)
        walk.retained = walk.retained or second.ended
        walk.run(owner, [(*edges[nr], ct) for nr, ct in zip(given, cts, strict=True)])
        found = [walk.arrived.get((target, nr) if nr else target) for target, nr in asked]
        return [g if g is None else around(g) for g in found]
    return back


class SecondRun:
    """A region that was run again, for all of its nodes that a walk comes to before another region's."""

    __slots__ = ("_out", "began", "ended", "region", "stays")

    def __init__(self, region: Frame) -> None:
        self.region = region
        self.stays = False
        """Whether it is walked again after this."""
        self.began = next_number()
        self.ended = 0
        """Where it stays: the age up to which nodes are its own."""
        self._out: Any = None

    def outputs(self, frame: Frame, owner: Interpreter | None, slots: list[Slot]) -> Any:
        """What the region returned, or a backward of it, which runs now and walks this run."""
        if frame is not self.region:
            if WRITES.latest > self.began:  # as if it were part of the rerun that walks it
                frame.region.reruns.append((self.began, self.ended))
            return frame.recompute(Recording(frame, owner, slots))
        out = frame.recompute(Recording(frame, owner, slots)) if self._out is None else self._out
        self._out, self.ended = (out, self.ended or next_number()) if self.stays else (None, 0)
        return out


def _second(frame: Frame) -> SecondRun:
    """The second run that serves a frame in the walk at hand: the one that stayed, or a new one."""
    run, region = current().run, frame.of or frame
    stayed: SecondRun | None = None if run is None else run.second
    return stayed if stayed is not None and stayed.region is region else SecondRun(region)


def _comes_next(region: Frame, walk: Walk) -> bool:
    """Whether the next region that a walk comes to is that one."""
    frame = next((node.frame for node in reversed(walk.nodes) if isinstance(node, RegionNode)), None)
    return frame is not None and (frame.of or frame) is region


class _Local(Walk):
    """A walk that ends where its nodes do: what arrives beyond stays there, and no hook or leaf is told."""

    __slots__ = ()

    def leaf(self, leaf: Tensor) -> None:
        pass


def _as_region(like: Frame, function: Callable[..., Any], *args: Any) -> Any:
    """Run a function as a region that is checked as another one is."""
    state = current()
    if not records(state):
        return function(*args)
    region = Region(preserve_rng_state=like.region.draws is not None)
    frame = Frame(function, args, {}, state, region, determinism_check=like.check, debug=like.debug,
                  early_stop=like.early_stop, edges=True, of=like.of or like)
    return every(frame, args, {}, NOTHING)


class Recording(Refill):
    """The hooks of a second run whose graph is used: the level that asks keeps all, and so do those of the walks around."""

    __slots__ = ("below", "kept")
    exact = True
    below: Below

    def __init__(self, frame: Frame, level: Interpreter | None, slots: list[Slot]) -> None:
        super().__init__(frame, level, {})
        now = current()
        height = 0 if level is None else 1 + frame.levels.index(level)
        here = {None, *frame.levels[:height]} & {None, *now.levels}
        around = now.hooks.below.levels if isinstance(now.hooks, Recording) else here
        self.below = Below(frame, here & around - {level})
        self.kept = {level, *here} - self.below.levels
        known = [*slots, *[slot for owner in self.kept - {level} for slot in frame.alive(owner)]]
        self.missing = {(slot.site.owner, slot.index): slot for slot in known}

    def manager(self, owner: Any) -> Hooks | None:
        return self if owner in self.kept else self.below.manager(owner)

    def pack(self, base: Tensor, site: Site) -> Tensor:
        self.met(base, site)
        return base

    def before(self, owner: Any, node: str, inputs: dict[str, Tensor]) -> None:
        """Nothing is missing that a stop could bring."""


class Below(Hooks):
    """The hooks of a second run for levels that nobody walks now: what they save are the slots of the first run."""

    __slots__ = ("_counts", "_frame", "levels")
    title = "recomputation"
    numbered = True

    def __init__(self, frame: Frame, levels: set[Any]) -> None:
        super().__init__(None)
        self._frame = frame
        self.levels = levels
        self._counts: dict[Any, int] = {}

    def manager(self, owner: Any) -> Hooks | None:
        return self if owner in self.levels else None

    def pack(self, base: Tensor, site: Site) -> Slot:
        index = self._counts[site.owner] = self._counts.get(site.owner, -1) + 1
        slots = self._frame.slots.setdefault(site.owner, [])
        slot = slots[index]() if index < len(slots) else None
        if slot is None:  # the node that kept the first one has gone
            slot = self._frame.pack(base, site)
            slot.index = index
            slots[index:index + 1] = [slots.pop()]
        return slot

    save_base = pack

    def unpack(self, packed: Slot, asking: Any) -> Tensor:
        return self._frame.unpack(packed, asking)


def _differs(then: int, now: int, owner: Interpreter | None) -> CheckpointError:
    what = (f"{then} of its outputs had a history in the forward, and {now} have in the recomputation" if then != now else
            "the recomputation reaches a tensor outside of the region that the forward did not")
    return CheckpointError(
        f"torch.utils.checkpoint: the graph of the region at {owner or 'level 0'} is not that of its forward: {what}. The "
        "function must do the same when it runs again, and may not change what it captures.")
