"""The graph of one level: nodes, what they keep, and how a recorded op becomes one.

A node's edges lead to the nodes, or leaf tensors, its cotangents go to; nothing leads back, so no graph holds a cycle
and reference counting alone frees it.  Level 0 and a `grad` level record with the same code: only the value one storey
down differs (an alias of the base tensor at level 0).

Upstream: torch/csrc/autograd/function.h (Node, Edge), VariableTypeUtils.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..state import State, show
from ..tensor import LEAF, Tensor, alias, next_number, wrapper
from .saved import Constant, PackedTensor, SavedTensor, save

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..interpreters.base import Interpreter
    from ..op import Op

class NodeHooks:
    """The hooks of one node, in the order they run: on one output's cotangent, before the node, after it."""

    __slots__ = ("post", "pre", "retains", "tensor")

    def __init__(self) -> None:
        self.tensor: dict[int, list[Callable[..., Any]]] = {}
        self.retains: dict[int, Any] = {}
        self.pre: list[Callable[..., Any]] = []
        self.post: list[Callable[..., Any]] = []


class Node:
    """One step of a backward graph.  `edges` alternates targets and output numbers: (t0, nr0, t1, nr1, ...)."""

    __slots__ = ("__weakref__", "edges", "hooks", "number", "outs", "owner")

    owner: Interpreter | None
    edges: tuple[Any, ...]
    hooks: NodeHooks | None
    number: int
    """Grows with time: consumers have larger numbers than what they consume."""
    outs: int

    def run(self, ct: Any, wanted: set[Any] | None, *, create_graph: bool) -> Any:
        """Cotangents for the edges, in their order, from the cotangent of the output (a list, where outs > 1)."""
        raise NotImplementedError

    def release(self) -> None:
        """Drop what is kept for backward."""

    def name(self) -> str:
        """The name that torch gives to such a node."""
        raise NotImplementedError

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """As torch's: pairs of a node (AccumulateGrad for a leaf) and its output number."""
        flat = self.edges
        return tuple((AccumulateGrad(t) if isinstance(t, Tensor) else t, nr)
                     for t, nr in zip(flat[::2], flat[1::2], strict=True))

    def register_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the node ran.  Source: torch.autograd.graph.Node.register_hook."""
        return RemovableHandle(_hooks(self).post, hook)

    def register_prehook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the node runs.  Source: torch.autograd.graph.Node.register_prehook."""
        return RemovableHandle(_hooks(self).pre, hook)

    def __repr__(self) -> str:
        return f"<{self.name()} object of {self.owner or 'level 0'}>"


class AccumulateGrad:
    """The end of a graph, as torch shows it: the edges of minigrad lead to the leaf tensor itself."""

    __slots__ = ("variable",)

    def __init__(self, variable: Tensor) -> None:
        self.variable = variable

    def name(self) -> str:
        """As torch's."""
        return "struct torch::autograd::AccumulateGrad"

    @property
    def next_functions(self) -> tuple[tuple[Any, int], ...]:
        """None: the graph ends here."""
        return ()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AccumulateGrad) and other.variable is self.variable

    def __hash__(self) -> int:
        return id(self.variable)


class RemovableHandle:
    """Takes a hook off again.  Source: torch.utils.hooks.RemovableHandle."""

    __slots__ = ("_hook", "_list")

    def __init__(self, hooks: list[Callable[..., Any]], hook: Callable[..., Any]) -> None:
        hooks.append(hook)
        self._list = hooks
        self._hook = hook

    def remove(self) -> None:
        """Remove the hook, once."""
        if self._hook in self._list:
            self._list.remove(self._hook)

    def __enter__(self) -> RemovableHandle:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _hooks(node: Node) -> NodeHooks:
    if node.hooks is None:
        node.hooks = NodeHooks()
    return node.hooks


hooks_of = _hooks


class Plan:
    """A row seen from its inputs that require grad: what to save, which formulas to run, and on what."""

    __slots__ = ("joint", "needs", "op", "origins", "reduces", "saves", "steps")

    def __init__(self, op: Op, needs: tuple[bool, ...]) -> None:
        self.op = op
        self.needs = needs
        active = [i for i, need in enumerate(needs) if need]
        self.joint = op.joint
        formulas = [op.joint] if op.joint else [op.formulas[i] for i in active]
        used = {name for f in formulas if f for name in f.tensors(len(needs))}
        order = [name for kept in op.saves for name in op.expand(kept, len(needs))]
        self.saves = tuple(name for name in order if name in used)
        place = {name: k for k, name in enumerate(self.saves)}
        self.steps = tuple(f and f.compiled(place, len(needs)) for f in formulas)
        # where a saved tensor's own edge is: an output of the node, or the place of an input's edge, or nowhere
        self.origins = tuple(
            (int(name[3:] or 0), None) if name.startswith("out")
            else (None, active.index(int(name[1:])) * 2 if needs[int(name[1:])] else None) for name in self.saves)
        self.reduces = op.broadcasts


class OpNode(Node):
    """The node of a row."""

    __slots__ = ("metas", "params", "plan", "saved", "shapes")

    plan: Plan
    saved: tuple[SavedTensor | PackedTensor | Constant, ...] | None
    params: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...] | None
    metas: tuple[tuple[tuple[int, ...], Any], ...] | None
    """Shape and dtype to bring cotangents back to, where the op broadcast or promoted its inputs."""

    def name(self) -> str:
        return self.plan.op.node_name

    def run(self, ct: Any, wanted: set[Any] | None, *, create_graph: bool) -> Any:
        saved = self.saved
        if saved is None:
            raise already_freed(self.name())
        plan, edges = self.plan, self.edges
        values: list[Any] = [None] * len(saved)
        grads: list[Any] = []
        for k, step in enumerate(plan.steps):
            if step is None or (wanted is not None and not plan.joint and edges[2 * k] not in wanted):
                grads.append(None)
                continue
            function, sources = step
            read = []
            for source in sources:
                if type(source) is int:
                    if values[source] is None:
                        values[source] = self._unpack(source, create_graph=create_graph)
                    read.append(values[source])
                else:
                    read.append(source(self, values, create_graph))
            grads.append(function(ct, *read))
        if plan.joint:
            grads = [g for g, need in zip(grads[0], plan.needs, strict=True) if need]
        if self.metas is not None:
            grads = [g if g is None else fit(g, *meta) for g, meta in zip(grads, self.metas, strict=True)]
        return grads

    def _unpack(self, k: int, *, create_graph: bool) -> Tensor:
        """The k-th saved tensor: at this level with its edge, where the backward is itself recorded, else below it."""
        assert self.saved is not None
        value = self.saved[k].unpack()
        if not create_graph:
            return value
        out, place = self.plan.origins[k]
        node, nr = (self, out) if out is not None else (None, 0) if place is None else self.edges[place:place + 2]
        if node is None:
            return value
        return alias(value, node, nr) if self.owner is None else wrapper(self.owner, value, node, nr)

    def release(self) -> None:
        if self.saved:
            self.saved = None

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_saved_"):
            raise AttributeError(name)
        wanted = {"self": "x0", "other": "x1", "result": "out"}.get(name[7:], name[7:])
        if wanted in self.plan.saves:
            if self.saved is None:
                raise already_freed(self.name())
            return self._unpack(self.plan.saves.index(wanted), create_graph=True)
        if wanted in self.params:
            return self.params[wanted]
        raise AttributeError(name)


def fit(ct: Tensor, shape: tuple[int, ...], dtype: Any) -> Tensor:
    """A cotangent in the shape and dtype of what it belongs to: summed over what was broadcast."""
    from ..ops.shape import sum_to  # noqa: PLC0415  ops are above this file

    if ct.shape != shape:
        ct = sum_to(ct, shape)
    return ct if ct.dtype is dtype else ct.to(dtype)  # type: ignore[no-any-return]


def already_freed(name: str) -> UsageError:
    return UsageError(
        f"Trying to backward through the graph a second time, but the saved tensors of {name} have already been freed. "
        "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify "
        f"retain_graph=True in the first call if you need to backward through the graph again. [level stack: {show()}]")


def record(op: Op, owner: Interpreter | None, inputs: tuple[Any, ...], out: Any, params: dict[str, Any],
           state: State) -> Any:
    """Make the node of an op that ran at the level of `owner`, and give the outputs their edges.

    `out` is the value one storey down, and a wrapper of it is returned; at level 0 it is the fresh base tensor itself.
    """
    edges: list[Any] = []
    needs = []
    for x in inputs:
        if type(x) is Tensor and x.owner is owner and x.node is not None:
            edges += (x, 0) if x.node is LEAF else (x.node, x.nr)
            needs.append(True)
        else:
            needs.append(False)
    key = tuple(needs)
    plan = op.plans.get(key)
    if plan is None:
        plan = op.plans[key] = Plan(op, key)

    node = _new(OpNode)
    node.owner = owner
    node.plan = plan
    node.edges = tuple(edges)
    node.number = next_number()
    node.hooks = None
    node.params = params
    node.shapes = tuple([x.shape if type(x) is Tensor else () for x in inputs]) if op.reads_shapes else None
    node.metas = _metas(inputs, key, out) if plan.reduces else None

    single = op.outs == 1
    node.outs = 1 if single else len(out)
    if owner is None:
        if single:
            out.node = node
            out.nr = 0
        else:
            for nr, o in enumerate(out):
                if o.dtype.differentiable:
                    o.node = node
                    o.nr = nr
        result = out
    elif single:
        result = wrapper(owner, out, node)
    else:
        result = tuple([wrapper(owner, o, node, nr) if o.dtype.differentiable else o for nr, o in enumerate(out)])

    saved = []
    for name in plan.saves:
        if name[0] == "x":
            x = inputs[int(name[1:])]
        else:
            x = result if single else result[int(name[3:])]
        saved.append(save(owner, x, op.node_name, name, state) if type(x) is Tensor else Constant(x))
    node.saved = tuple(saved)
    return result


def _metas(inputs: tuple[Any, ...], needs: tuple[bool, ...], out: Any) -> Any:
    """Shape and dtype of the active inputs, or None where all are like the output."""
    shape, dtype = out.shape, out.dtype
    metas = [(x.shape, x.dtype) for x, need in zip(inputs, needs, strict=True) if need]
    for s, d in metas:
        if s != shape or d is not dtype:
            return tuple(metas)
    return None


_new = object.__new__
