"""remat="every": the backward of a checkpointed region is itself a checkpointed region. [NOTE remat-every]

    forward    the region runs as every region does; then the graph that its outputs hang on is cut off at each level: one
               node stands for all that was recorded since the region began, and keeps the region's inputs
    backward   B(cotangents): run the region again, which records that graph once more, and walk it down to where it began;
               B is a region too, of the levels that record while it runs, so it keeps its cotangents and nothing else

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
from ..graph.node import Node, age
from ..graph.record import already_freed
from ..ops.inplace import set_edge
from ..state import current, show
from ..tensor import Tensor, next_number
from .recompute import Frame, Refill, records
from .region import NOTHING, Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from ..graph.node import Edge
    from ..graph.saved import Hooks, Site
    from ..interpreters.base import Interpreter
    from .recompute import Slot


def every(frame: Frame, args: tuple[Any, ...], kwargs: dict[str, Any], within: AbstractContextManager[Any]) -> Any:
    """Run a region for the first time, and cut off what each level recorded."""
    began = next_number()
    out = frame.run(args, kwargs, within)
    for owner in (None, *frame.levels):
        _cut(frame, owner, out, began)
    return out


def _cut(frame: Frame, owner: Interpreter | None, out: Any, began: int) -> None:
    """Let one node stand for the graph of a level between a region's outputs and its beginning.

    Not where somebody waits for a gradient inside: of a leaf that the region made, or of an intermediate that got out.
    """
    ends = _ends(out, owner, began)
    edges = _edges(ends)
    nodes, _ = reachable([node for node, _ in edges], since=began)
    border = _border(nodes, began)
    if not border or any(age(target) > began for target, _ in border) or _awaited(nodes, ends):
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


def _border(nodes: list[Node], began: int) -> list[Edge]:
    """The edges that lead from the nodes of a region out of it, or to a leaf, each once."""
    return list({(target, nr): None for node in nodes for target, nr in node.edges
                 if type(target) is Tensor or target.number < began})


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
        cts = {nr: one for nr, one in enumerate([ct] if self.outs == 1 else ct) if one is not None}
        border = list(self.edges)
        asked = [edge for edge in border if wanted is None or edge[0] in wanted]
        back = _backward(self.frame, self.owner, self.slots, self.outs, border, list(cts), asked, create_graph=create_graph)
        found = dict(zip(asked, _as_region(self.frame, back, *cts.values()), strict=True))
        return [found.get(edge) for edge in border]

    def release(self) -> None:
        self.frame, self.slots = None, []


def _backward(frame: Frame, owner: Interpreter | None, slots: list[Slot], outs: int, border: list[Edge], given: list[int],
              asked: list[Edge], *, create_graph: bool) -> Callable[..., list[Tensor | None]]:
    """B: from cotangents of the outputs `given`, those of the edges `asked`.  The region's inputs it finds in the frame."""
    def back(*cts: Tensor) -> list[Tensor | None]:
        began = next_number()
        edges = _edges(_ends(frame.recompute(Recording(frame, owner, slots)), owner, began))
        nodes, leaves = reachable([node for node, _ in edges], since=began)
        if len(edges) != outs or not set(_border(nodes, began)) <= set(border):
            raise _differs(outs, len(edges), owner)
        walk = _Local(nodes, leaves, asked, create_graph=create_graph, retain_graph=create_graph)
        walk.run(owner, [(*edges[nr], ct) for nr, ct in zip(given, cts, strict=True)])
        return [walk.arrived.get((target, nr) if nr else target) for target, nr in asked]
    return back


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
                  early_stop=like.early_stop, edges=True)
    return every(frame, args, {}, NOTHING)


class Recording(Refill):
    """The hooks of a second run whose graph is used: its level keeps all, those below save with the hooks outside."""

    __slots__ = ("below",)
    exact = True

    def __init__(self, frame: Frame, level: Interpreter | None, slots: list[Slot]) -> None:
        super().__init__(frame, level, {})
        now = current()
        self.outer = now.hooks
        self.missing = {(level, slot.index): slot for slot in slots}
        height = 0 if level is None else 1 + frame.levels.index(level)
        self.below = {None, *frame.levels[:height]} & {None, *now.levels} - {level}

    def manager(self, owner: Any) -> Hooks | None:
        if owner is self.level:
            return self
        return self.outer.manager(owner) if self.outer is not None and owner in self.below else None

    def pack(self, base: Tensor, site: Site) -> Tensor:
        self.met(base, site)
        return base

    def before(self, owner: Any, node: str, inputs: dict[str, Tensor]) -> None:
        """Nothing is missing that a stop could bring."""


def _differs(then: int, now: int, owner: Interpreter | None) -> CheckpointError:
    what = (f"{then} of its outputs had a history in the forward, and {now} have in the recomputation" if then != now else
            "the recomputation reaches a tensor outside of the region that the forward did not")
    return CheckpointError(
        f"torch.utils.checkpoint: the graph of the region at {owner or 'level 0'} is not that of its forward: {what}. The "
        f"function must do the same when it runs again, and may not change what it captures. [level stack: {show()}]")
