"""The graph of one level: what a node is, for the engine that walks it and for those who hook into it.

A node's edges lead to the nodes, or leaf tensors, its cotangents go to; nothing leads back, so no graph holds a cycle and
reference counting alone frees it. [NOTE no-cycles]  Most nodes have one edge, which is in the node itself. [NOTE fast-path]

Upstream: torch/csrc/autograd/function.h (Node, Edge).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from ..state import current
from ..tensor import Tensor, extra_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..interpreters.base import Interpreter

Edge = tuple[Any, int]
"""A node or a leaf tensor, and an output number."""


class NodeHooks:
    """The hooks of one node, in the order they run: on one output's cotangent, before the node, after it."""

    __slots__ = ("post", "pre", "retains", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, list[Callable[..., Any]]] = {}
        self.retains: dict[int, Any] = {}
        self.pre: list[Callable[..., Any]] = []
        self.post: list[Callable[..., Any]] = []


class Node:
    """One step of a backward graph; an edge is a pair: a target (a node, or a leaf tensor) and an output number of it.

    Source: torch.autograd.graph.Node.
    """

    __slots__ = ("__weakref__", "hooks", "metas", "more", "nr", "number", "outs", "owner", "target")

    owner: Interpreter | None
    target: Any
    """Where the first edge leads, None where there is none."""
    nr: int
    """Which output of the target the first edge leads to."""
    more: tuple[Edge, ...]
    """All edges but the first."""
    hooks: NodeHooks | None
    number: int
    """Grows with time: consumers have larger numbers than what they consume."""
    outs: int
    metas: tuple[tuple[tuple[int, ...], Any], ...] | None
    """Shape and dtype that the engine brings the cotangents back to, where an op broadcast or promoted its inputs."""

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        """Cotangents for the edges, in their order, from the cotangent of the output (a list, where outs > 1)."""
        raise NotImplementedError

    def on_arrays(self, ct: Any) -> list[Any] | None:
        """The cotangents for the edges as arrays, where only arrays are below; None where it takes more. [NOTE fast-path]"""
        return None

    def release(self) -> None:
        """Drop what is kept for backward."""

    def name(self) -> str:
        """The name that torch gives to such a node."""
        raise NotImplementedError

    @property
    def edges(self) -> tuple[Edge, ...]:
        """All its edges."""
        return () if self.target is None else ((self.target, self.nr), *self.more)

    @edges.setter
    def edges(self, edges: Sequence[Edge]) -> None:
        (self.target, self.nr), self.more = edges[0] if edges else (None, 0), tuple(edges[1:])

    @property
    def metadata(self) -> dict[Any, Any]:
        """What others keep with a node, for as long as it lives.  Source: torch.autograd.graph.Node.metadata."""
        return _METADATA.setdefault(self, {})

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """As torch's: pairs of a node (AccumulateGrad for a leaf) and its output number."""
        return tuple((AccumulateGrad(target) if isinstance(target, Tensor) else target, nr) for target, nr in self.edges)

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran.  Source: torch.autograd.graph.Node.register_hook."""
        return RemovableHandle(hooks_of(self).post, hook, self)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the node runs.  Source: torch.autograd.graph.Node.register_prehook."""
        return RemovableHandle(hooks_of(self).pre, hook, self)

    def __repr__(self) -> str:
        return f"<{self.name()} object of {self.owner or 'level 0'}>"


_METADATA: WeakKeyDictionary[Any, dict[Any, Any]] = WeakKeyDictionary()


class AccumulateGrad(Node):
    """The end of a graph, as torch shows it: the edges of minigrad lead to the leaf tensor itself."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable
        self.owner = variable.owner
        self.target = None

    def name(self) -> str:
        """As torch's."""
        return "torch::autograd::AccumulateGrad"

    @property
    def metadata(self) -> dict[Any, Any]:
        """What others keep with it, for as long as the leaf lives."""
        return _METADATA.setdefault(self.variable, {})

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook((), (gradient,))` after a backward has accumulated.  Source: torch.autograd.graph.Node.register_hook."""
        return RemovableHandle(self._hooks().post, hook, self.variable)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook((gradient,))` before; it may return another.  Source: torch.autograd.graph.Node.register_prehook."""
        return RemovableHandle(self._hooks().pre, hook, self.variable)

    def _hooks(self) -> NodeHooks:
        extra = extra_of(self.variable)
        if extra.node_hooks is None:
            extra.node_hooks = NodeHooks()
        return extra.node_hooks  # type: ignore[no-any-return]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


class RemovableHandle:
    """Puts a hook on a node or leaf, and takes it off again.  Source: torch.utils.hooks.RemovableHandle.

    Where a region runs again, one that is older than that run has the hook already. [NOTE side-effects-once]
    """

    __slots__ = ("_hook", "_list")

    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any], target: Any = None) -> None:
        self._list = [] if target is not None and done_before(target) else hooks
        self._list.append(hook)
        self._hook = hook

    def remove(self) -> None:
        """Remove the hook, once."""
        if self._hook in self._list:
            self._list.remove(self._hook)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def hooks_of(node: Node) -> NodeHooks:
    """The hooks of a node, made now where it has none yet."""
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


def age(target: Any) -> int:
    """When a node or a leaf was made."""
    number: int = target.nr if type(target) is Tensor else target.number
    return number


def done_before(target: Any) -> bool:
    """Whether this is a recomputation of what has run that node, or accumulated into that leaf, already."""
    began = current().recomputing
    return began is not None and age(target) < began
