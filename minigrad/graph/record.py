"""How a recorded op becomes a node, and how that node runs.

Level 0 and a `grad` level record with the same code: only the value one storey down differs.

Upstream: VariableType*.cpp and Functions.cpp, which torch generates from derivatives.yaml.
"""

from __future__ import annotations

from itertools import compress
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..state import State, current, tell, watched
from ..tensor import LEAF, NO_PARAMS, Tensor, alias, next_number, wrapper
from .bare import on_arrays
from .node import Node
from .plan import UNARY, Plan
from .raw import raw
from .saved import Constant, PackedTensor, keep, keep_base, save

if TYPE_CHECKING:
    from ..interpreters.base import Interpreter
    from ..op import Op


class OpNode(Node):
    """The node of a row."""

    __slots__ = ("held", "params", "plan", "shapes")

    plan: Plan
    held: Any
    """Storage, SavedBase, SavedValue, PackedTensor or Constant, or a tuple of several or none; None once that is freed."""
    params: dict[str, Any]
    shapes: tuple[tuple[int, ...], ...] | None

    def name(self) -> str:
        return self.plan.op.node_name

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        held, plan, metas, summed = self.held, self.plan, self.metas, self.plan.op.summed
        if held is None:
            raise already_freed(self.name())
        if plan.lean is not None and not create_graph and not watched and (metas is None or summed is None):  # [NOTE fast-path]
            function, reads, others = plan.lean
            if others:
                given = [source(self, False) for source in others]
                return [function(ct, held.unpack(), *given) if reads else function(ct, *given)]
            return [function(ct, held.unpack()) if reads else function(ct)]
        values: list[Any] = [None] * len(plan.saves)
        grads: list[Any] = []
        for k, step in enumerate(plan.steps):
            if step is None or (wanted is not None and not plan.joint and self.edges[k][0] not in wanted):
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
            grads.append(function(ct, *read) if summed is None or metas is None else summed(ct, *read, metas[k][0]))
        return grads if plan.joint is None else list(compress(grads[0], plan.needs))

    on_arrays = on_arrays

    @property
    def saved(self) -> Any:
        """What it keeps, in the order of plan.saves; None once that is freed."""
        return self.held if type(self.held) is tuple or self.held is None else (self.held,)

    def _unpack(self, k: int, create_graph: bool) -> Any:
        """The k-th saved tensor: at this level with its edge, where the backward is itself recorded, else below it."""
        value: Any = self.saved[k].unpack()
        if current().watchers:
            tell(current().watchers, "unpack", self.owner, self, self.plan.saves[k])
        if not create_graph:
            return value
        origin: Any = self.plan.origins[k]
        if origin is None or not value.dtype.differentiable:
            return value
        node, nr = (self, self.plan.places[k][1]) if origin == "out" else self.edges[origin]
        return alias(value, node, nr) if self.owner is None else wrapper(self.owner, value, node, nr)

    def release(self) -> None:
        if self.held:
            self.held = None
            if watched and current().watchers:
                tell(current().watchers, "release", self.owner, self)

    def saved_tensor(self, name: str) -> Any:
        """What is saved under its name in the row (x0, out, ...), unpacked: in a checkpointed region that runs it again.

        None where no input that requires grad needs it, as in torch.
        """
        plan = self.plan
        if name not in plan.op.saves:
            msg = f"{self.name()} saves {', '.join(plan.op.saves) or 'nothing'}, and no {name}."
            raise AttributeError(msg)
        if self.held is None:
            raise already_freed(self.name())
        return self._unpack(plan.saves.index(name), create_graph=True) if name in plan.saves else None

    def kept(self, k: int) -> tuple[Any, Tensor | None, str]:
        """What is kept in a slot, the leaf of level 0 that it is, and its name."""
        if self.held is None:
            raise already_freed(self.name())
        origin = self.plan.origins[k]
        end = self.edges[origin][0] if isinstance(origin, int) and self.owner is None else None
        return self.saved[k], end if isinstance(end, Tensor) else None, self.plan.saves[k]

    def keep(self, k: int, packed: PackedTensor) -> None:
        """Keep something else in a slot."""
        saved = self.saved
        self.held = (*saved[:k], packed, *saved[k + 1:]) if len(saved) > 1 else packed

    # torch's names, as properties: a __getattr__ would make every other attribute of a node slow
    _saved_self = property(lambda self: self.saved_tensor("x0"))
    _saved_other = property(lambda self: self.saved_tensor("x1"))
    _saved_result = property(lambda self: self.saved_tensor("out"))
    _raw_saved_self = property(lambda self: raw(self, self.plan.saves.index("x0")))
    _raw_saved_other = property(lambda self: raw(self, self.plan.saves.index("x1")))
    _raw_saved_result = property(lambda self: raw(self, self.plan.saves.index("out")))


def already_freed(name: str) -> UsageError:
    """The error of a node that was released."""
    return UsageError(
        "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
        f"freed), here those of {name}. Saved intermediate values of the graph are freed when you call .backward() or "
        "autograd.grad(). Specify retain_graph=True in the first call if you need to backward through the graph again.")


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

    edges = []
    needs = 1  # a bit for each input that requires grad, below a bit that tells how many inputs there are
    for x in inputs:
        needs <<= 1
        if type(x) is Tensor and x.owner is owner and x.node is not None:
            needs |= 1
            edges.append((x, 0) if x.node is LEAF else (x.node, x.nr))
    node.edges = edges
    node.plan = plan = op.plans[needs]

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

    if state.hooks is not None or state.watchers:
        node.held = _saved(op, owner, inputs, out, plan, state, node)
        tell(state.watchers, "node", owner, node)
    else:
        saved = tuple([_kept(owner, inputs[i] if i is not None else out if op.outs == 1 else out[nr]) for i, nr in plan.places])
        node.held = saved if len(saved) != 1 else saved[0]
    return out


def record_unary(op: Op, owner: Interpreter | None, x: Tensor, out: Tensor, state: State,
                 params: dict[str, Any] = NO_PARAMS) -> Tensor:
    """`record` for an op of one tensor, which requires grad, with nobody watching. [NOTE fast-path]"""
    node = OpNode()
    node.owner = owner
    node.plan = plan = op.plans[UNARY]
    node.params = params
    node.number = next_number()
    node.hooks = None
    node.shapes = (x.shape,) if op.reads_shapes else None
    node.metas = None
    node.outs = 1
    node.target, node.nr = (x, 0) if x.node is LEAF else (x.node, x.nr)
    node.more = ()
    if owner is None:
        out.node = node
        out.nr = 0
    else:
        out = wrapper(owner, out, node)
    if plan.alone is None:
        node.held = _saved(op, owner, (x,), out, plan, state, node) if plan.saves else ()
        return out
    kept = (x, out)[plan.alone]
    if state.hooks is not None:
        node.held = save(owner, kept, op.node_name, plan.saves[0], state, node)
    elif owner is None or (kept.value.owner is None and kept.value.node is None):  # most often: a call less than keep
        node.held = keep_base(kept if owner is None else kept.value)
    else:
        node.held = keep(kept.value)
    return out


def record_binary(op: Op, owner: Interpreter | None, x: Any, y: Any, out: Tensor, state: State) -> Tensor:
    """Record a row of two inputs, of which one at least is a tensor that requires grad; the other may be a number."""
    a = x.node if type(x) is Tensor and x.owner is owner else None
    b = y.node if type(y) is Tensor and y.owner is owner else None
    node = OpNode()
    node.more = ()
    if b is None:
        needs = 0b110
        node.target, node.nr = (x, 0) if a is LEAF else (a, x.nr)
    elif a is None:
        needs = 0b101
        node.target, node.nr = (y, 0) if b is LEAF else (b, y.nr)
    else:
        needs = 0b111
        node.target, node.nr = (x, 0) if a is LEAF else (a, x.nr)
        node.more = ((y, 0) if b is LEAF else (b, y.nr),)
    node.owner = owner
    node.plan = plan = op.plans[needs]
    node.params = NO_PARAMS
    node.number = next_number()
    node.hooks = None
    node.shapes = None
    shape = out.shape
    alike = type(x) is Tensor and x.shape == shape and x.kind.dtype is out.kind.dtype and (
        type(y) is not Tensor or (y.kind is x.kind and y.shape == shape))
    node.metas = None if alike or not op.broadcasts else _metas(plan, (x, y), out)
    node.outs = 1
    if owner is None:
        out.node = node
        out.nr = 0
    else:
        out = wrapper(owner, out, node)
    if not plan.saves:
        node.held = ()
    elif state.hooks is None and plan.alone is not None:
        kept = (x, y, out)[plan.alone]
        node.held = keep_base(kept) if owner is None and type(kept) is Tensor else _kept(owner, kept)
    elif state.hooks is None and plan.crossed:
        node.held = _kept(owner, y), _kept(owner, x)
    else:
        node.held = _saved(op, owner, (x, y), out, plan, state, node)
    return out


def _saved(op: Op, owner: Interpreter | None, inputs: tuple[Any, ...], out: Any, plan: Plan, state: State,
           node: OpNode) -> Any:
    """What a node keeps, whatever is in force; where nothing is there are shorter ways."""
    saved: tuple[Any, ...] = ()
    for i, nr in plan.places:
        x = inputs[i] if i is not None else out if op.outs == 1 else out[nr]
        k = len(saved)
        saved += (Constant(x) if type(x) is not Tensor else save(owner, x, op.node_name, plan.saves[k], state, node, k),)
    return saved if len(saved) != 1 else saved[0]


def _kept(owner: Interpreter | None, x: Any) -> Any:
    """What a node keeps of an input or output where no hooks are in force."""
    if type(x) is not Tensor:
        return Constant(x)
    if owner is not None:
        x = x.value if x.owner is owner else x
        if x.owner is not None or x.node is not None:
            return keep(x)
    return keep_base(x)


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
