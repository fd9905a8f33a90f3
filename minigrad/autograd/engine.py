"""The engine: cotangents walk down the graph of one level, the newest node first.

Without create_graph the cotangents of a level are tensors one storey down; with it they are tensors of the level, and the
backward is recorded like any other program.  Nothing recurses with the length of the graph.

Upstream: torch/csrc/autograd/engine.cpp (dependencies, sequence numbers, InputBuffer, capture hooks).
"""

from __future__ import annotations

from heapq import heappop, heappush
from operator import attrgetter
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


def _consumers(roots: Sequence[Any]) -> tuple[dict[Any, int], list[Node]]:
    """For each target that the roots lead to, how many consumers it waits for; and all its nodes."""
    waiting: dict[Any, int] = dict.fromkeys(roots, 0)
    todo, nodes = list(waiting), []
    while todo:
        node = todo.pop()
        if type(node) is Tensor:
            continue
        nodes.append(node)
        for target in node.targets:
            if target in waiting:
                waiting[target] += 1
            else:
                waiting[target] = 1
                todo.append(target)
    return waiting, nodes


def _leading_to(inputs: set[Any], nodes: list[Node]) -> set[Any]:
    """The targets on the way from the nodes to the inputs, which are among them."""
    wanted = set(inputs)
    nodes.sort(key=attrgetter("number"))  # consumers have larger numbers than what they consume
    for node in nodes:
        for target in node.targets:
            if target in wanted:
                wanted.add(node)
                break
    return wanted


def backward(owner: Interpreter | None, roots: Sequence[tuple[Any, int, Tensor]], *, inputs: Sequence[Tensor] | None = None,
             retain_graph: bool = False, create_graph: bool = False, accumulate: bool = False) -> list[Tensor | None]:
    """Run the graph of a level from `roots`, (target, output number, cotangent) each.

    Returns the cotangents of `inputs`, None where there is none; with `accumulate`, leaves (those among `inputs`, or all)
    get theirs in `.grad` instead.
    """
    edges = None if inputs is None else [edge(x) for x in inputs]
    walk = _Walk([target for target, _, _ in roots], edges, create_graph=create_graph, retain_graph=retain_graph)
    state = current()
    off = state.grad_off - {owner} if create_graph else state.grad_off | {owner}
    with using(state._replace(grad_off=off, run=Run())):
        for target, nr, ct in roots:
            if not create_graph and ct.owner is owner:
                ct = below(ct)  # noqa: PLW2901
            if ct.owner is None:
                storage_of(ct)  # the caller may know this memory
            walk.arrive(target, nr, ct)
        walk.go()
    if edges is None:
        return []
    found = [walk.captured.get(e) for e in edges]
    if accumulate:
        assert inputs is not None
        for x, ct in zip(inputs, found, strict=True):
            if ct is not None and not done_before(x):
                deposit(x, ct, create_graph=create_graph)
    return found


class _Walk:
    """Cotangents on their way: buffers of what arrived, and a heap of what is ready, newest first."""

    __slots__ = ("buffers", "captured", "create_graph", "keys", "ready", "retain_graph", "special", "waiting", "wanted")

    def __init__(self, roots: list[Any], edges: list[tuple[Any, int]] | None, *, create_graph: bool, retain_graph: bool) -> None:
        self.waiting, nodes = _consumers(roots)
        self.keys = set(edges or ())
        self.wanted = None if edges is None else _leading_to({target for target, _ in edges}, nodes)
        self.special = {target for target, _ in self.keys}
        self.captured: dict[tuple[Any, int], Tensor] = {}
        self.create_graph = create_graph
        self.retain_graph = retain_graph
        self.buffers: dict[Any, Any] = {}
        self.ready: list[tuple[int, int, Any]] = []
        for target in dict.fromkeys(roots):
            if not self.waiting[target]:
                self.push(target)

    def arrive(self, target: Any, nr: int, ct: Tensor) -> None:
        """Add a cotangent to what already waits for a target."""
        buffers = self.buffers
        if type(target) is Tensor or target.outs == 1:
            old = buffers.get(target)
            buffers[target] = ct if old is None else old + ct
            return
        slots = buffers.setdefault(target, [None] * target.outs)
        slots[nr] = ct if slots[nr] is None else slots[nr] + ct

    def push(self, target: Any) -> None:
        heappush(self.ready, (LEAVES_FIRST if type(target) is Tensor else -target.number, id(target), target))

    def go(self) -> None:
        """Walk until nothing is ready."""
        waiting, wanted, buffers, ready = self.waiting, self.wanted, self.buffers, self.ready
        special, retain_graph, create_graph = self.special, self.retain_graph, self.create_graph
        while ready:
            target = heappop(ready)[2]
            while target is not None:
                ct = buffers.pop(target, None)
                if type(target) is Tensor:
                    self._leaf(target, ct)
                    break
                if ct is None:
                    grads = None
                elif target.hooks is not None or target in special:
                    grads = self._watched(target, ct)
                else:
                    grads = target.run(ct, wanted, create_graph)
                    if not retain_graph:
                        target.release()
                alone = None  # a target that became ready while nothing else was need not go through the heap
                for k, nxt in enumerate(target.targets):
                    if grads is not None and (g := grads[k]) is not None and (wanted is None or nxt in wanted):
                        if nxt not in buffers and (type(nxt) is Tensor or nxt.outs == 1):
                            buffers[nxt] = g
                        else:
                            self.arrive(nxt, target.numbers[k], g)
                    left = waiting[nxt] = waiting[nxt] - 1
                    if not left:
                        if alone is not None:
                            self.push(alone)
                        alone = nxt
                if ready and alone is not None:
                    self.push(alone)
                    break
                target = alone

    def _watched(self, node: Node, ct: Any) -> Any:
        """Run a node that has hooks or whose cotangent was asked for; nothing further where that was all."""
        if node.hooks is not None:
            ct = _before(node, ct)
        if node in self.special:
            self._capture(node, ct)
            if self.wanted is not None and self.wanted.isdisjoint(node.targets):
                return None
        if node.hooks is not None:
            ct = _pre(node, ct)
        grads = node.run(ct, self.wanted, self.create_graph)
        if node.hooks is not None:
            grads = _post(node, grads, ct)
        if not self.retain_graph:
            node.release()
        return grads

    def _leaf(self, leaf: Tensor, ct: Tensor | None) -> None:
        if ct is None or (self.wanted is None and done_before(leaf)):
            return
        if leaf.extra is not None and leaf.extra.hooks:
            ct = call_hooks(leaf.extra.hooks, ct)
        if self.wanted is None:
            deposit(leaf, ct, create_graph=self.create_graph)
        elif (leaf, 0) in self.keys:
            self.captured[leaf, 0] = ct

    def _capture(self, node: Node, ct: Any) -> None:
        keys = self.keys
        if node.outs == 1:
            if (node, 0) in keys:
                self.captured[node, 0] = ct
            return
        for nr, got in enumerate(ct):
            if got is not None and (node, nr) in keys:
                self.captured[node, nr] = got


LEAVES_FIRST = -(1 << 62)


def _pre(node: Node, ct: Any) -> Any:
    assert node.hooks is not None
    for hook in list(node.hooks.pre):
        changed = hook((ct,) if node.outs == 1 else tuple(ct))
        if changed is not None:
            ct = changed[0] if node.outs == 1 else list(changed)
    return ct


def _post(node: Node, grads: Any, ct: Any) -> Any:
    assert node.hooks is not None
    for hook in list(node.hooks.post):
        changed = hook(tuple(grads), (ct,) if node.outs == 1 else tuple(ct))
        if changed is not None:
            grads = list(changed) if isinstance(changed, (tuple, list)) else [changed]
    return grads


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
