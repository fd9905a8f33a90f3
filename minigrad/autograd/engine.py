"""The engine: cotangents walk down the graph of one level, the newest node first.

Consumers are younger than what they consume, so the order of age is an order of dependence: nothing waits in a queue.
[NOTE age-of-nodes]
Without create_graph the cotangents of a level are tensors one storey down; with it they are tensors of the level, and the
backward is recorded like any other program.  Nothing recurses with the length of the graph.

Where nothing records and nobody watches, descent.py goes the same way, on bare arrays where there is nothing else.

Upstream: torch/csrc/autograd/engine.cpp (whose queue is ordered by sequence number, which gives the same order).
"""

from __future__ import annotations

from itertools import repeat
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..graph.bare import around
from ..graph.edge import end_of
from ..graph.node import done_before
from ..ops.shape import sum_to
from ..state import current, tell, using, watched
from ..tensor import Tensor, alias, extra_of, next_number, storage_of
from .accumulated import deposit
from .descent import descend
from .replaced import replaced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..graph.edge import End
    from ..graph.node import Node, NodeHooks
    from ..interpreters.base import Interpreter


class Run:
    """What a program asks for at once; recomputed values live as long as it does. [NOTE recomputed-values-live-once]"""

    __slots__ = ("__weakref__", "_tables", "second")
    owner: Interpreter | None = None
    partial = False

    def __init__(self) -> None:
        self._tables: dict[ref[Any], dict[Any, dict[int, Any]]] = {}
        self.second: Any = None
        """A region that was run again and is to be walked once more, before any other. [NOTE remat-every]"""

    def tables(self, frame: Any) -> dict[Any, dict[int, Any]]:
        """What was recomputed of a frame in this run and not handed out yet: of each level, by index; while the frame lives."""
        run = ref(self)  # weakly, or the table would hold itself

        def gone(key: ref[Any]) -> None:
            if (alive := run()) is not None:
                alive._tables.pop(key, None)  # noqa: SLF001

        return self._tables.setdefault(ref(frame, gone), {})

    def reaches(self, target: Any) -> bool:
        """Whether a cotangent is still to come to a node, or a leaf."""
        return False

    def forget(self) -> None:
        """Drop what was not handed out."""
        self._tables = {}


_NUMBER, _TARGET = attrgetter("number"), itemgetter(0)


def reachable(roots: Sequence[Any], fixed: frozenset[Any] = frozenset(), *,
              since: int = 0) -> tuple[list[Node], dict[Tensor, int]]:
    """All nodes that the roots lead to, without `fixed` and older ones, oldest first; and the leaves, with edges to each."""
    seen = {*roots, *fixed}
    todo = list(seen - fixed if fixed else seen)
    nodes: list[Node] = []
    leaves: dict[Tensor, int] = {}
    while todo:
        node: Any = todo.pop()
        if type(node) is Tensor:
            continue
        while True:  # down the first edges; where the others lead is for later
            nodes.append(node)
            for target, _ in node.more:
                if type(target) is Tensor:
                    leaves[target] = leaves.get(target, 0) + 1
                elif target not in seen and target.number > since:
                    seen.add(target)
                    todo.append(target)
            node = node.target
            if type(node) is Tensor:
                leaves[node] = leaves.get(node, 0) + 1
                break
            if node in seen or node.number <= since:
                break
            seen.add(node)
    nodes.sort(key=_NUMBER)
    return nodes, leaves


def _leading_to(inputs: frozenset[Any], nodes: list[Node]) -> tuple[set[Any], list[Node], dict[Tensor, int]]:
    """The targets on the way to the inputs, these too; those of `nodes` that are among them, and the leaves as above."""
    wanted, kept = set(inputs), []
    leaves: dict[Tensor, int] = {}
    for node in nodes:
        targets = [target for target, _ in node.edges]
        if node in wanted or not wanted.isdisjoint(targets):
            wanted.add(node)
            kept.append(node)
            for target in targets:
                if type(target) is Tensor:
                    leaves[target] = leaves.get(target, 0) + 1
    return wanted, kept, leaves


def backward(owner: Interpreter | None, roots: Sequence[tuple[Any, int, Tensor]], *, inputs: Sequence[End] | None = None,
             retain_graph: bool = False, create_graph: bool = False, accumulate: bool = False,
             fixed: frozenset[Any] = frozenset()) -> list[Tensor | None]:
    """Run the graph of a level from `roots`, (target, output number, cotangent) each; what goes to `fixed` targets is lost.

    Returns the cotangents of `inputs`, None where there is none; with `accumulate`, leaves (those among `inputs`, or all)
    get theirs in `.grad` instead.
    """
    edges = None if inputs is None else list(map(end_of, inputs))
    accumulate = accumulate or edges is None
    state = current()
    if state.watchers:
        tell(state.watchers, "backward", owner, None)
    nodes, leaves = reachable(list(map(_TARGET, roots)), fixed)
    if accumulate and state.recomputing is not None:
        nodes = [node for node in nodes if not done_before(node)]
    walk = Walk(nodes, leaves, edges, create_graph=create_graph, retain_graph=retain_graph, accumulate=accumulate)
    walk.run(owner, roots)
    return list(map(walk.captured.get, edges or ()))


class Walk(Run):
    """One backward of a level: what has arrived at each target, keyed by the target, or (target, nr) for later outputs."""

    __slots__ = ("accumulates", "arrived", "captured", "consumers", "create_graph", "edges", "nodes", "owner", "partial",
                 "retained", "special", "wanted")

    partial: bool
    """Whether a program, and not another backward, asked for the gradients of some inputs only."""
    consumers: dict[Tensor, int]
    """Of each leaf, how many edges are still to come: it accumulates as soon as there is none."""
    retained: int
    """The age up to which nodes stay as they are; 0, where all are released."""
    wanted: set[Any] | None
    """The targets on the way to what was asked for; None where all are."""

    def __init__(self, nodes: list[Node], leaves: dict[Tensor, int], edges: list[tuple[Any, int]] | None, *,
                 create_graph: bool, retain_graph: bool, accumulate: bool = False) -> None:
        super().__init__()
        self.nodes, self.consumers = nodes, leaves
        self.edges = frozenset(edges or ())
        self.special = frozenset(dict(self.edges))
        self.accumulates = accumulate
        self.wanted = None
        if edges is not None and not self.consumers.keys() <= self.special:
            self.wanted, self.nodes, self.consumers = _leading_to(self.special, self.nodes)
        self.arrived: dict[Any, Any] = {}
        self.captured: dict[tuple[Any, int], Tensor] = {}
        self.create_graph = create_graph
        self.retained = next_number() if retain_graph else 0

    def run(self, owner: Interpreter | None, roots: Sequence[tuple[Any, int, Tensor]]) -> None:
        """Start from the roots and go, with the level recording or not."""
        state = current()
        off = state.grad_off - {owner} if self.create_graph else state.grad_off | {owner}
        self.owner = owner
        self.partial = bool(self.edges) and state.run is None
        with using(state._replace(grad_off=off, ahead=(), run=self)):
            for target, nr, ct in roots:
                if not self.create_graph and ct.owner is owner and (ct.node is not None or owner is not None):
                    ct = below(ct)  # noqa: PLW2901
                if ct.owner is None:
                    storage_of(ct)  # the caller may know this memory
                self.arrive(target, nr, ct)
            self.go()

    def reaches(self, target: Any) -> bool:
        return (self.wanted is None or target in self.wanted) and (
            target in self.consumers or target in self.nodes or target in self.arrived)

    def arrive(self, target: Any, nr: int, ct: Any) -> None:
        """Add a cotangent, a tensor or a bare array, to what has already arrived there."""
        key = (target, nr) if nr else target
        old = self.arrived.get(key)
        self.arrived[key] = ct if old is None else _sum(old, ct)

    def go(self) -> None:
        """Run the nodes from the youngest to the oldest."""
        for target in list(self.arrived):
            if type(target) is Tensor and target not in self.consumers:
                self.leaf(target)
        if not self.create_graph and not watched:
            descend(self)
            return
        while self.nodes:
            node = self.nodes.pop()
            ct = self.taken(node)
            self.send(node, None if ct is None else self.ran(node, ct))

    def taken(self, node: Node) -> Any:
        """What has arrived at a node: the cotangent of its output, a list of those of several; None where nothing has."""
        if node.outs == 1:
            return self.arrived.pop(node, None)
        cts = [self.arrived.pop((node, nr) if nr else node, None) for nr in range(node.outs)]
        return [ct if ct is None else around(ct) for ct in cts] if any(ct is not None for ct in cts) else None

    def ran(self, node: Node, ct: Any) -> Any:
        """Run a node, with what hooks and watchers have to say: the cotangents of its edges, None where none is wanted."""
        if node.outs == 1:
            ct = around(ct)
        if node.hooks is not None:
            ct = _tensor_hooks(node, ct)
        if node in self.special:
            for nr, got in enumerate([ct] if node.outs == 1 else ct):
                if got is not None and (node, nr) in self.edges:
                    self.captured[node, nr] = got
            if not self.accumulates and self.wanted is not None and self.wanted.isdisjoint([to for to, _ in node.edges]):
                return None
        if node.hooks is not None:
            ct = _prehooks(node.hooks, ct, one=node.outs == 1)
            if ct is None:
                return None
        grads = self._told(node, ct) if watched else node.run(ct, self.wanted, self.create_graph)
        if node.metas is not None:
            grads = _fitted(grads, node.metas)
        if node.hooks is not None:
            grads = _posthooks(node, grads, ct)
        if node.number > self.retained:
            node.release()
        return grads

    def _told(self, node: Node, ct: Any) -> Any:
        """Run a node, and let the watchers know."""
        watchers = current().watchers
        tell(watchers, "run", node.owner, node)
        try:
            grads = node.run(ct, self.wanted, self.create_graph)
        except Exception:
            tell(watchers, "failed", node.owner, node)
            raise
        tell(watchers, "ran", node.owner, node, grads)
        return grads

    def send(self, node: Node, grads: Sequence[Any] | None) -> None:
        """Let cotangents arrive where the edges of a node lead; without any, that much less is to come there."""
        for (target, nr), ct in zip(node.edges, grads or repeat(None), strict=False):
            if ct is not None and (self.wanted is None or target in self.wanted):
                self.arrive(target, nr, ct)
            if type(target) is Tensor:
                self.came(target)

    def came(self, leaf: Tensor) -> None:
        """Count one of the edges to a leaf as done."""
        left = self.consumers[leaf] = self.consumers[leaf] - 1
        if not left:
            self.leaf(leaf)

    def leaf(self, leaf: Tensor) -> None:
        """Deal with a leaf at which all has arrived."""
        ct = self.arrived.pop(leaf, None)
        if ct is None or (self.edges and leaf not in self.special) or (self.accumulates and done_before(leaf)):
            return
        ct = around(ct)
        if leaf.extra is not None and leaf.extra.hooks:
            ct = call_hooks(leaf.extra.hooks, ct)
        if self.accumulates:
            deposit(leaf, ct, create_graph=self.create_graph)
        else:
            self.captured[leaf, 0] = ct


def _sum(one: Any, other: Any) -> Any:
    """The sum of two cotangents: of arrays, where both are."""
    return around(one) + around(other) if isinstance(one, Tensor) or isinstance(other, Tensor) else one + other


def _fitted(grads: list[Any], metas: tuple[Any, ...]) -> list[Any]:
    """Cotangents in the shape and dtype of what they belong to: summed over what was broadcast, cast back."""
    return [g if g is None or (g.shape == shape and g.dtype is dtype) else sum_to(g, shape).to(dtype)
            for g, (shape, dtype) in zip(grads, metas)]  # noqa: B905  zip is slow with a keyword


def _prehooks(hooks: NodeHooks, ct: Any, *, one: bool) -> Any:
    cts: Sequence[Any] = (ct,) if one else ct
    for hook in list(hooks.pre):
        cts = replaced(hook, cts, hook(tuple(cts)))
    return cts[0] if one else cts if any(ct is not None for ct in cts) else None


def _posthooks(node: Node, grads: Any, ct: Any) -> Any:
    assert node.hooks is not None
    for hook in list(node.hooks.post):
        grads = replaced(hook, grads, hook(tuple(grads), (ct,) if node.outs == 1 else tuple(ct)))
    return grads


def call_hooks(hooks: Sequence[Any], ct: Tensor) -> Tensor:
    """Run tensor hooks in the order they were registered; each may replace the gradient."""
    for hook in list(hooks):
        changed = hook(ct)
        if changed is not None:
            (ct,) = replaced(hook, (ct,), (changed,))
    return ct


def _tensor_hooks(node: Node, ct: Any) -> Any:
    """Hooks of the output tensors, then retained gradients."""
    hooks = node.hooks
    assert hooks is not None
    slots = [ct] if node.outs == 1 else list(ct)
    for nr, value in enumerate(slots):
        if value is None:
            continue
        slots[nr] = call_hooks(hooks.tensor.get(nr, ()), value)
        holder = hooks.retains.get(nr)
        x = None if holder is None else holder()
        if x is not None:
            old = x.grad
            extra_of(x).grad = slots[nr] if old is None else old + slots[nr]
    return slots[0] if node.outs == 1 else slots


def below(x: Tensor) -> Tensor:
    """The tensor without its edge at its own level: one storey down."""
    return alias(x) if x.owner is None else x.value
