"""The engine: cotangents walk down the graph of one level, the newest node first.

Without create_graph the cotangents of a level are tensors one storey down; with it they are tensors of the level, and the
backward is recorded like any other program.  Nothing recurses with the length of the graph.

Upstream: torch/csrc/autograd/engine.cpp (dependencies, sequence numbers, InputBuffer, capture hooks).
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..ops.creation import ones_like
from ..state import current, show, using
from ..tensor import LEAF, Tensor, alias, edge, extra_of, storage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..interpreters.base import Interpreter
    from ..graph.node import Node


class Run:
    """One backward run; recomputed values live as long as it does."""

    __slots__ = ("__weakref__",)


class Graph:
    """The part of a graph that one run walks: how many consumers each target waits for, and which targets matter."""

    __slots__ = ("captures", "waiting", "wanted")

    def __init__(self, roots: Sequence[Any], captures: set[Any] | None) -> None:
        self.captures = captures
        self.waiting: dict[Any, int] = dict.fromkeys(roots, 0)
        todo = list(self.waiting)
        order = []
        while todo:
            target = todo.pop()
            if type(target) is Tensor:
                continue
            order.append(target)
            for nxt in target.edges[::2]:
                if nxt in self.waiting:
                    self.waiting[nxt] += 1
                else:
                    self.waiting[nxt] = 1
                    todo.append(nxt)
        self.wanted: set[Any] | None = None
        if captures is not None:
            order.sort(key=lambda node: node.number)
            wanted = set(captures)
            for node in order:  # consumers have larger numbers than what they consume
                if node not in wanted and not wanted.isdisjoint(node.edges[::2]):
                    wanted.add(node)
            self.wanted = wanted


def backward(owner: Interpreter | None, roots: Sequence[tuple[Any, int, Tensor]], *, inputs: Sequence[Tensor] | None = None,
             retain_graph: bool = False, create_graph: bool = False, accumulate: bool = False) -> list[Tensor | None]:
    """Run the graph of a level from `roots`, (target, output number, cotangent) each.

    Returns the cotangents of `inputs`, None where there is none; with `accumulate`, leaves (those among `inputs`, or all)
    get theirs in `.grad` instead.
    """
    edges = [edge(x) for x in inputs] if inputs is not None else None
    captured: dict[tuple[Any, int], Tensor] = {}
    graph = Graph([target for target, _, _ in roots], None if edges is None else {target for target, _ in edges})
    keys = set(edges or ())
    state = current()
    off = state.grad_off - {owner} if create_graph else state.grad_off | {owner}
    walk = _Walk(graph, keys, captured, accumulate and edges is None, create_graph=create_graph, retain_graph=retain_graph)
    with using(state._replace(grad_off=off, run=Run())):
        for target, nr, ct in roots:
            if not create_graph and ct.owner is owner:
                ct = below(ct)
            if ct.owner is None:
                storage_of(ct)  # the caller may know this memory
            walk.arrive(target, nr, ct)
        walk.start({target for target, _, _ in roots})
        walk.go()
    if edges is None:
        return []
    found = [captured.get(e) for e in edges]
    if accumulate:
        assert inputs is not None
        for x, ct in zip(inputs, found, strict=True):
            if ct is not None and not done_before(x):
                deposit(x, ct, create_graph=create_graph)
    return found


class _Walk:
    """Cotangents on their way: buffers of what arrived, and a heap of what is ready, newest first."""

    __slots__ = ("accumulate", "buffers", "captured", "create_graph", "graph", "keys", "ready", "retain_graph")

    def __init__(self, graph: Graph, keys: set[tuple[Any, int]], captured: dict[tuple[Any, int], Tensor],
                 accumulate: bool, *, create_graph: bool, retain_graph: bool) -> None:
        self.graph = graph
        self.keys = keys
        self.captured = captured
        self.accumulate = accumulate
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.buffers: dict[Any, Any] = {}
        self.ready: list[tuple[int, int, Any]] = []

    def arrive(self, target: Any, nr: int, ct: Tensor) -> None:
        """Add a cotangent to what already waits for a target."""
        if type(target) is Tensor or target.outs == 1:
            old = self.buffers.get(target)
            self.buffers[target] = ct if old is None else old + ct
            return
        slots = self.buffers.setdefault(target, [None] * target.outs)
        slots[nr] = ct if slots[nr] is None else slots[nr] + ct

    def start(self, roots: set[Any]) -> None:
        for target in roots:
            if not self.graph.waiting[target]:
                self.push(target)

    def push(self, target: Any) -> None:
        number = 1 << 62 if type(target) is Tensor else target.number
        heappush(self.ready, (-number, id(target), target))

    def go(self) -> None:
        waiting, wanted, buffers = self.graph.waiting, self.graph.wanted, self.buffers
        while self.ready:
            target = heappop(self.ready)[2]
            ct = buffers.pop(target, None)
            if type(target) is Tensor:
                self._leaf(target, ct)
                continue
            grads: Any = None
            if ct is not None:
                if target.hooks is not None:
                    ct = _before(target, ct)
                if self.keys:
                    self._capture(target, ct)
                if wanted is None or not wanted.isdisjoint(target.edges[::2]):
                    grads = self._node(target, ct)
            at = 0
            edges = target.edges
            for k in range(0, len(edges), 2):
                nxt = edges[k]
                g = None if grads is None else grads[at]
                at += 1
                if g is not None and (wanted is None or nxt in wanted):
                    self.arrive(nxt, edges[k + 1], g)
                left = waiting[nxt] = waiting[nxt] - 1
                if not left:
                    self.push(nxt)

    def _node(self, node: Node, ct: Any) -> Any:
        if node.hooks is not None:
            for hook in list(node.hooks.pre):
                changed = hook((ct,) if node.outs == 1 else tuple(ct))
                if changed is not None:
                    ct = changed[0] if node.outs == 1 else list(changed)
        grads = node.run(ct, self.graph.wanted, create_graph=self.create_graph)
        if node.hooks is not None:
            for hook in list(node.hooks.post):
                changed = hook(tuple(grads), (ct,) if node.outs == 1 else tuple(ct))
                if changed is not None:
                    grads = list(changed) if isinstance(changed, (tuple, list)) else [changed]
        if not self.retain_graph:
            node.release()
        return grads

    def _leaf(self, leaf: Tensor, ct: Tensor | None) -> None:
        if ct is None or (self.accumulate and done_before(leaf)):
            return
        if leaf.extra is not None and leaf.extra.hooks:
            ct = call_hooks(leaf.extra.hooks, ct)
        if (leaf, 0) in self.keys:
            self.captured[leaf, 0] = ct
        elif self.accumulate:
            deposit(leaf, ct, create_graph=self.create_graph)

    def _capture(self, node: Node, ct: Any) -> None:
        for nr in range(node.outs):
            if (node, nr) in self.keys:
                got = ct if node.outs == 1 else ct[nr]
                if got is not None:
                    self.captured[node, nr] = got


def call_hooks(hooks: Sequence[Any], ct: Tensor) -> Tensor:
    """Run tensor hooks in the order they were registered; each may replace the gradient."""
    for hook in list(hooks):
        changed = hook(ct)
        if changed is not None:
            if not isinstance(changed, Tensor) or changed.shape != ct.shape:
                msg = (f"a tensor hook returned {changed!r}: hooks return None, or a gradient of the shape they were given "
                       f"({list(ct.shape)}).")
                raise UsageError(msg)
            ct = changed
    return ct


def _before(node: Node, ct: Any) -> Any:
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


def deposit(leaf: Tensor, ct: Tensor, *, create_graph: bool) -> None:
    """Accumulate a gradient in `leaf.grad`; it is taken over where nobody else knows its memory.

    Not in a recomputation, where the leaf is older than that: the forward has done it. [NOTE side-effects-once]
    """
    extra = extra_of(leaf)
    if extra.grad is None:
        shared = ct.owner is not None or ct.store is not None or ct.device.counted
        extra.grad = ct.clone() if shared and not create_graph else ct
        if ct.owner is None:
            storage_of(ct)
    elif create_graph or extra.grad.node is not None or ct.node is not None:
        extra.grad = extra.grad + ct
    else:
        extra.grad.add_(ct)
    for hook in list(extra.post_hooks or ()):
        hook(leaf)


def done_before(leaf: Tensor) -> bool:
    """Whether this is a recomputation of what has accumulated into `leaf` already."""
    began = current().recomputing
    return began is not None and leaf.node is LEAF and leaf.nr < began


def root_of(output: Tensor, ct: Tensor | None, what: str) -> tuple[Any, int, Tensor]:
    """An output with its cotangent, checked, as the engine starts from it."""
    target, nr = edge(output)
    if target is None:
        msg = (f"element 0 of tensors does not require grad and does not have a grad_fn: {what} was asked for the gradient of "
               f"{output!r}. [level stack: {show()}]")
        raise UsageError(msg)
    if ct is None:
        if output.numel() != 1:
            msg = f"grad can be implicitly created only for scalar outputs, and this one has shape {list(output.shape)}."
            raise UsageError(msg)
        ct = ones_like(below(output))
    elif ct.shape != output.shape:
        msg = (f"Mismatch in shape: grad_output[0] has a shape of {list(ct.shape)} and output[0] has a shape of "
               f"{list(output.shape)}.")
        raise UsageError(msg)
    if ct.dtype is not output.dtype:
        ct = ct.to(output.dtype)
    return target, nr, ct


def below(x: Tensor) -> Tensor:
    """The tensor without its edge at its own level: one storey down."""
    return alias(x) if x.owner is None else x.value  # type: ignore[no-any-return]
