"""The graph of one level: nodes, what they keep, and how a recorded op becomes one.

A node's edges lead to the nodes, or leaf tensors, its cotangents go to; nothing leads back, so no graph holds a cycle
and reference counting alone frees it.  Level 0 and a `grad` level record with the same code: only the value one storey
down differs (an alias of the base tensor at level 0).

Upstream: torch/csrc/autograd/function.h (Node, Edge), VariableTypeUtils.h.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from ..backend import CPU, host_array
from ..errors import UsageError
from ..state import State, current, show, tell, watched
from ..storage import Storage
from ..tensor import LEAF, Tensor, alias, base_tensor, next_number, wrapper
from .saved import Constant, PackedTensor, SavedTensor, keep, keep_base, save

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
    """One step of a backward graph; its edges are the pairs of `targets` (nodes, or leaf tensors) and output numbers."""

    __slots__ = ("__weakref__", "hooks", "number", "numbers", "outs", "owner", "targets")

    owner: Interpreter | None
    targets: tuple[Any, ...]
    numbers: tuple[int, ...]
    hooks: NodeHooks | None
    number: int
    """Grows with time: consumers have larger numbers than what they consume."""
    outs: int

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
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
        return tuple((AccumulateGrad(t) if isinstance(t, Tensor) else t, nr)
                     for t, nr in zip(self.targets, self.numbers, strict=True))

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


UNARY = 3
"""The bits of a plan for one input, which requires grad."""
FIRST = (0,)
NO_PARAMS: dict[str, Any] = {}


class Plan:
    """A row seen from its inputs that require grad: what to save, which formulas to run, and on what."""

    __slots__ = ("arrays", "joint", "keeps_input", "lean", "needs", "op", "origins", "places", "saves", "steps")

    def __init__(self, op: Op, needs: tuple[bool, ...]) -> None:
        self.op = op
        self.needs = needs
        active = [i for i, need in enumerate(needs) if need]
        self.joint = op.joint
        formulas = [op.joint] if op.joint else [op.formulas[i] for i in active]
        used = {name for f in formulas if f for name in f.tensors(len(needs))}
        order = [name for kept in op.saves for name in op.expand(kept, len(needs))]
        # torch leaves out a save for want of requires_grad only where a single formula reads it, and never an output
        reads = [f.tensors(len(needs)) for f in op.formulas if f]
        used |= {name for name in order if name[0] == "o" or sum(name in names for names in reads) > 1}
        self.saves = tuple(name for name in order if name in used)
        place = {name: k for k, name in enumerate(self.saves)}
        self.steps = tuple(f and f.compiled(place, len(needs)) for f in formulas)
        # of each save: which input it is, or None and which output
        self.places = tuple((None, int(name[3:] or 0)) if name[0] == "o" else (int(name[1:]), 0) for name in self.saves)
        # of each save: the place of its own edge among the node's, None where it has none, "out" where it is the node's output
        self.origins = tuple("out" if i is None else active.index(i) if needs[i] else None for i, _ in self.places)
        self.keeps_input = self.places == ((0, 0),)
        self.arrays = on_arrays(self.steps) if op.elementwise else None
        # one rule that reads at most one saved tensor and nothing else
        self.lean = self.steps[0] if (len(self.steps) == 1 and self.steps[0] and not self.joint and len(self.saves) < 2  # noqa: PLR2004
                                      and self.steps[0][1] in ((), FIRST)) else None


def on_arrays(steps: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The rules of an elementwise row with every row they name read as its kernel, or None where they name something else.

    Below level 0 there are only arrays, and what a row does there is its kernel. [NOTE fast-path]
    """
    made = []
    for step in steps:
        rule = _as_kernel(step[0]) if step is not None and all(type(k) is int for k in step[1]) else None
        if rule is None:
            return None
        made.append((rule, step[1]))
    return tuple(made)


def _as_kernel(f: Any) -> Any:
    """A row as its kernel, a number as it is, any other function with what it names read so; None where that fails."""
    op = getattr(f, "op", None)
    if op is not None:
        return CPU.kernel(op.kernel) if op.elementwise else None
    if type(f) is not FunctionType:
        return f if type(f) in (int, float) else None
    named = {name: _as_kernel(f.__globals__.get(name)) for name in f.__code__.co_names}
    closed = [_as_kernel(cell.cell_contents) for cell in f.__closure__ or ()]
    if None in named.values() or None in closed:
        return None
    return FunctionType(f.__code__, named, closure=tuple([CellType(c) for c in closed]))


class OpNode(Node):
    """The node of a row."""

    __slots__ = ("metas", "params", "plan", "saved", "shapes")

    plan: Plan
    saved: tuple[Any, ...] | None
    """Storage, SavedBase, SavedTensor, PackedTensor or Constant, in the order of plan.saves; None once they are freed."""
    params: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...] | None
    metas: tuple[tuple[tuple[int, ...], Any], ...] | None
    """Shape and dtype to bring cotangents back to, where the op broadcast or promoted its inputs."""

    def name(self) -> str:
        return self.plan.op.node_name

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        saved, plan = self.saved, self.plan
        if saved is None:
            raise already_freed(self.name())
        if (plan.arrays is not None and self.owner is None and not create_graph and self.metas is None and ct.kind.fast
                and not watched):
            grads = self._on_arrays(ct, plan.arrays, saved)
            if grads is not None:
                return grads
        if plan.lean is not None and not create_graph and not watched:
            function, reads = plan.lean
            grads = [function(ct, saved[0].unpack()) if reads else function(ct)]
        else:
            grads = self._run(ct, wanted, create_graph)
        if self.metas is not None:
            grads = [g if g is None else fit(g, *meta) for g, meta in zip(grads, self.metas, strict=True)]
        return grads

    def _on_arrays(self, ct: Tensor, rules: tuple[Any, ...], saved: tuple[Any, ...]) -> list[Tensor] | None:
        """The rules of an elementwise row on the arrays themselves, where nothing records. [NOTE fast-path]"""
        shape = ct.shape
        if len(rules) == 1:  # one rule that reads one saved tensor: most of a chain, in half the time of the loop below
            rule, reads = rules[0]
            kept = saved[0] if len(reads) == 1 else None
            if type(kept) is Storage and not kept.version:
                made = rule(ct.value, kept.array)
                g = Tensor()
                g.owner = None
                g.shape = shape
                g.value = made if shape else host_array(made)
                g.kind = ct.kind
                g.node = None
                g.store = None
                g.extra = None
                return [g]
        values = []
        for kept in saved:
            if type(kept) is PackedTensor or type(kept) is SavedTensor:
                return None
            values.append(kept.value if type(kept) is Constant else kept.unpack().value)
        made = [rule(ct.value, *[values[k] for k in reads]) for rule, reads in rules]
        return [ct if m is ct.value else base_tensor(m if shape else host_array(m), ct.kind, shape, None) for m in made]

    def _run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> list[Any]:
        plan = self.plan
        values: list[Any] = [None] * len(plan.saves)
        grads: list[Any] = []
        for target, step in zip(self.targets, plan.steps, strict=False):
            if step is None or (wanted is not None and not plan.joint and target not in wanted):
                grads.append(None)
                continue
            function, sources = step
            read = []
            for source in sources:
                if type(source) is int:
                    if values[source] is None:
                        values[source] = self._unpack(source, create_graph)
                    read.append(values[source])
                else:
                    read.append(source(self, create_graph))
            grads.append(function(ct, *read))
        return [g for g, need in zip(grads[0], plan.needs, strict=True) if need] if plan.joint else grads

    def _unpack(self, k: int, create_graph: bool) -> Any:
        """The k-th saved tensor: at this level with its edge, where the backward is itself recorded, else below it."""
        assert self.saved is not None
        value = self.saved[k].unpack()
        if current().watchers:
            tell(current().watchers, "unpack", self.owner, self, self.plan.saves[k])
        if not create_graph:
            return value
        origin = self.plan.origins[k]
        if origin is None:
            return value
        node, nr = (self, self.plan.places[k][1]) if origin == "out" else (self.targets[origin], self.numbers[origin])
        return alias(value, node, nr) if self.owner is None else wrapper(self.owner, value, node, nr)

    def release(self) -> None:
        if self.saved:
            self.saved = None

    def saved_tensor(self, name: str) -> Any:
        """What is saved under its name in the row (x0, out, ...), unpacked: in a checkpointed region that runs it again."""
        if self.saved is None:
            raise already_freed(self.name())
        return self._unpack(self.plan.saves.index(name), create_graph=True)

    # torch's names, as properties: a __getattr__ would make every other attribute of a node slow
    _saved_self = property(lambda self: self.saved_tensor("x0"))
    _saved_other = property(lambda self: self.saved_tensor("x1"))
    _saved_result = property(lambda self: self.saved_tensor("out"))


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
    node = OpNode()
    node.owner = owner
    node.params = params
    node.number = next_number()
    node.hooks = None
    node.shapes = tuple([x.shape if type(x) is Tensor else () for x in inputs]) if op.reads_shapes else None

    targets: tuple[Any, ...] = ()
    numbers: tuple[int, ...] = ()
    needs = 1  # a bit for each input that requires grad, below a bit that tells how many inputs there are
    for x in inputs:
        needs <<= 1
        if type(x) is Tensor and x.owner is owner and x.node is not None:
            needs |= 1
            if x.node is LEAF:
                targets += (x,)
                numbers += (0,)
            else:
                targets += (x.node,)
                numbers += (x.nr,)
    node.targets = targets
    node.numbers = numbers
    node.plan = plan = op.plans.get(needs) or op.plan(needs)

    if op.outs == 1:
        node.outs = 1
        node.metas = _metas(plan, inputs, out) if op.broadcasts else None
        if owner is None:
            out.node = node
            out.nr = 0
        else:
            out = wrapper(owner, out, node)
    else:
        node.outs = len(out)
        node.metas = None
        out = _several(owner, out, node)

    saved: tuple[Any, ...] = ()
    hooked = state.hooks is not None or state.watchers
    for i, nr in plan.places:
        x = inputs[i] if i is not None else out if op.outs == 1 else out[nr]
        if hooked and type(x) is Tensor:
            saved += (save(owner, x, op.node_name, plan.saves[len(saved)], state),)
        else:
            saved += (_kept(owner, x),)
    node.saved = saved
    return out


def record_unary(op: Op, owner: Interpreter | None, x: Tensor, out: Tensor) -> Tensor:
    """`record` for an elementwise op of one tensor, which requires grad, with no hooks and nobody watching. [NOTE fast-path]"""
    node = OpNode()
    node.owner = owner
    node.plan = plan = op.plans.get(UNARY) or op.plan(UNARY)
    node.params = NO_PARAMS
    node.number = next_number()
    node.hooks = None
    node.shapes = None
    node.metas = None
    node.outs = 1
    if x.node is LEAF:
        node.targets = (x,)
        node.numbers = FIRST
    else:
        node.targets = (x.node,)
        node.numbers = (x.nr,) if x.nr else FIRST
    if owner is None:
        out.node = node
        out.nr = 0
        node.saved = (keep_base(x if plan.keeps_input else out),) if plan.places else ()
        return out
    node.saved = (keep(x.value if plan.keeps_input else out),) if plan.places else ()
    return wrapper(owner, out, node)


def record_binary(op: Op, owner: Interpreter | None, x: Any, y: Any, out: Tensor) -> Tensor:
    """The same for two inputs, of which one at least is a tensor that requires grad; the other may be a number."""
    a = x.node if type(x) is Tensor and x.owner is owner else None
    b = y.node if type(y) is Tensor and y.owner is owner else None
    node = OpNode()
    if b is None:
        needs = 6
        node.targets = (x if a is LEAF else a,)
        node.numbers = FIRST if a is LEAF or not x.nr else (x.nr,)
    elif a is None:
        needs = 5
        node.targets = (y if b is LEAF else b,)
        node.numbers = FIRST if b is LEAF or not y.nr else (y.nr,)
    else:
        needs = 7
        node.targets = (x if a is LEAF else a, y if b is LEAF else b)
        node.numbers = (0 if a is LEAF else x.nr, 0 if b is LEAF else y.nr)
    node.owner = owner
    node.plan = plan = op.plans.get(needs) or op.plan(needs)
    node.params = NO_PARAMS
    node.number = next_number()
    node.hooks = None
    node.shapes = None
    shape, dtype = out.shape, out.kind.dtype
    node.metas = None if (type(x) is not Tensor or (x.shape == shape and x.kind.dtype is dtype)) and (
        type(y) is not Tensor or (y.shape == shape and y.kind.dtype is dtype)) else _metas(plan, (x, y), out)
    node.outs = 1
    node.saved = tuple([_kept(owner, x if i == 0 else y if i == 1 else out) for i, _ in plan.places]) if plan.places else ()
    if owner is None:
        out.node = node
        out.nr = 0
        return out
    return wrapper(owner, out, node)


def _kept(owner: Interpreter | None, x: Any) -> Any:
    """What a node keeps of an input or output where no hooks are in force."""
    if type(x) is not Tensor:
        return Constant(x)
    return keep_base(x) if owner is None else keep(x.value if x.owner is owner else x)


def _several(owner: Interpreter | None, out: tuple[Tensor, ...], node: OpNode) -> tuple[Tensor, ...]:
    """Give the differentiable ones of several outputs their edges."""
    if owner is not None:
        return tuple([wrapper(owner, o, node, nr) if o.dtype.differentiable else o for nr, o in enumerate(out)])
    for nr, o in enumerate(out):
        if o.dtype.differentiable:
            o.node = node
            o.nr = nr
    return out


def _metas(plan: Plan, inputs: tuple[Any, ...], out: Tensor) -> Any:
    """Shape and dtype of the active inputs, or None where all are like the output."""
    shape, dtype = out.shape, out.kind.dtype
    for x in inputs:
        if type(x) is Tensor and (x.kind.dtype is not dtype or x.shape != shape):
            return tuple([(x.shape, x.dtype) for x, need in zip(inputs, plan.needs, strict=True) if need])
    return None


