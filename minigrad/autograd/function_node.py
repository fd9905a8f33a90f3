"""The context and the node of a call with its own rules, at one level. [NOTE custom-function]

What a Function names in its context becomes saves, edges and marks when its forward has returned.  The node holds the
context; the context refers to the node weakly, and the outputs that the program gets are other handles than those that it
saw, so that nothing it keeps leads back to itself.

Upstream: torch/csrc/autograd/python_function.cpp (PyNode, process_outputs), custom_function.cpp (_wrap_outputs).
"""

# ruff: noqa: SLF001  the fields of a context are what these files share

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from .. import tree
from ..errors import UsageError
from ..graph.node import Node
from ..graph.raw import raw
from ..graph.record import already_freed
from ..graph.saved import save
from ..lines import warn
from ..ops.creation import zeros
from ..ops.inplace import promote, relink
from ..state import current, tell
from ..tensor import LEAF, Tensor, alias, bottom, edge, next_number, storage_of, wrapper
from ..views import link
from .engine import below
from .lost import Descent, Lost

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..graph.raw import SavedTensor
    from ..interpreters.base import Interpreter
    from ..state import State
    from .function_call import Call


class FunctionCtx:
    """What one call notes in forward for its backward or jvp, at one level; attributes of any name may be added.

    Source: torch.autograd.function.FunctionCtx.
    """

    needs_input_grad: tuple[bool, ...]
    """For each argument, whether it requires grad at this level."""
    _node: ref[FunctionNode] | None = None
    _to_save: tuple[Tensor | None, ...] = ()
    _for_forward: tuple[Tensor | None, ...] | None = None
    _dirty: tuple[Tensor, ...] = ()
    _non_differentiable: tuple[Tensor, ...] = ()
    _materialize = True

    def __init__(self, needs: tuple[bool, ...]) -> None:
        self.needs_input_grad = needs

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors, or None, until backward; the saved-tensor hooks in force see them when forward has returned."""
        for i, x in enumerate(tensors):
            if x is not None and not isinstance(x, Tensor):
                msg = f"save_for_backward can only save variables, but argument {i} is of type {type(x).__name__}"
                raise TypeError(msg)
        self._to_save = tensors

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        """Keep tensors for `jvp`."""
        self._for_forward = tensors

    def mark_dirty(self, *args: Tensor) -> None:
        """Say which inputs forward modified in place; it must return them."""
        self._dirty = args

    def mark_non_differentiable(self, *args: Tensor) -> None:
        """Say which outputs have no gradient."""
        self._non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Whether backward and jvp get zeros (the default) or None where no gradient or tangent arrived."""
        self._materialize = value

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """What was saved; in backward, inputs and outputs with the edges they had."""
        node = None if self._node is None else self._node()
        if node is None:
            if self._node is not None and self._for_forward is None:
                msg = ("ctx.saved_tensors is read after the graph of the call has gone, and what it saved with it: a context "
                       "does not keep its node alive. Read it in backward, or keep the output. [NOTE no-cycles]")
                raise UsageError(msg)
            return self._for_forward or ()  # in jvp
        if not node.saved and node.saved is not None:
            return self._to_save if self._for_forward is None else self._for_forward
        return node.saved_tensors


class FunctionNode(Node):
    """The node of a call at one level.  It holds the context, which holds no output and refers to it weakly."""

    __slots__ = ("call", "creating", "ctx", "descent", "needs", "outputs", "saved", "stashed", "tensors", "values")

    ctx: Any
    saved: tuple[Any, ...] | None
    """(what is kept, target and number of its edge, its name) or None for each; the target of an output is "out"."""
    values: tuple[Any, ...] | None
    """The saved tensors, while backward runs: it may read them twice."""
    stashed: tuple[tuple[str, Any, int], ...]
    """Attributes of the context that are tensors without an edge: name, and target and number of the edge they should have."""
    descent: Descent | None
    """Until forward has returned: what was computed from the inputs.  None where nothing is recorded."""
    creating: bool | None
    """While backward runs: whether it is itself recorded."""

    def __init__(self, owner: Interpreter | None, call: Call, ctx: FunctionCtx, args: tuple[Any, ...], state: State) -> None:
        self.owner = owner
        self.call = call
        self.ctx = ctx
        self.number = next_number()
        self.hooks = None
        self.creating = None
        self.saved = ()
        self.values = None
        self.stashed = ()
        self.edges, self.metas = (), ()
        self.needs = ctx.needs_input_grad
        self.tensors = tuple([type(x) is Tensor for x in args])
        self.descent = None
        ctx._node = ref(self)
        if True in self.needs and owner not in state.grad_off:
            active = [x for x, need in zip(args, self.needs, strict=True) if need]
            self.edges = [edge(x) for x in active]
            self.metas = tuple([(x.shape, x.dtype) for x in active])
            self.descent = Descent(active)
            if state.hooks is not None:
                state.hooks.before(owner, self.name(), {f"x{i}": x for i, x in enumerate(args) if type(x) is Tensor})

    def watching(self, state: State) -> State:
        """The state in which the function's own code runs: this level records nothing."""
        watchers = state.watchers if self.descent is None else (self.descent, *state.watchers)
        return state._replace(grad_off=state.grad_off | {self.owner}, watchers=watchers)

    def name(self) -> str:
        return f"{self.call.name}Backward"

    def record(self, args: tuple[Any, ...], out: Any, state: State) -> Any:
        """Give the outputs their edges, and save what the context names; `out` is of this level, without edges."""
        ctx, outs = self.ctx, tupled(out)
        for x in ctx._dirty:
            if not among(x, outs):
                msg = ("Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                       "are modified inplace must all be outputs of the Function.")
                raise UsageError(msg)
            if not among(x, args):
                warn("ctx.mark_dirty() received a tensor that was not an input. Only input Tensors that have been mutated "
                     "should be passed to ctx.mark_dirty().")
        self.outs = len(outs)
        if self.descent is not None:
            self.outputs = tuple([(y.shape, y.dtype, y.device) if isinstance(y, Tensor) else None for y in outs])
            self.saved = tuple([None if x is None else self._kept(k, x, args, outs, state) for k, x in enumerate(ctx._to_save)])
            self.stashed = tuple([(name, *self._origin(x, args, outs)) for name, x in vars(ctx).items()
                                  if isinstance(x, Tensor) and x.node is None])
        ctx._to_save, ctx._for_forward = (), None
        recording, self.descent = self.descent is not None, None
        if recording:
            tell(state.watchers, "node", self.owner, self)
        marked, ctx._dirty, ctx._non_differentiable = (ctx._dirty, ctx._non_differentiable), (), ()
        nrs = iter(range(len(outs)))
        return mapped(out, lambda y: self._output(y, next(nrs), args, marked, state, recording=recording), others=nrs)

    def _output(self, y: Tensor, nr: int, args: tuple[Any, ...], marked: Any, state: State, *, recording: bool) -> Tensor:
        dirty, constant = among(y, marked[0]), among(y, marked[1]) or not y.dtype.differentiable
        if not recording:
            if dirty:
                return y
            if self.owner is None:
                return alias(y) if among(y, args) else y
            return y.value if y.owner is self.owner else y
        node = None if constant else self
        if not dirty:
            inside = y.value if y.owner is not None and y.owner is self.owner else y
            new = alias(y, node, nr) if self.owner is None else wrapper(self.owner, inside, node, nr)
            return guarded(new, args, self.call.name, nr)
        if self.owner is not None and y.owner is not self.owner:
            promote(y, self.owner)
        root = y if y.extra is None or y.extra.root is None else y.extra.root
        if root.node is LEAF:
            what = "a leaf Variable that requires grad" if root is y else "a view of a leaf Variable that requires grad"
            msg = f"{what} has been used in an in-place operation ({self.call.name})."
            raise UsageError(msg)
        relink(self.owner, y, alias(y, node, nr) if self.owner is None else wrapper(self.owner, y.value, node, nr), state)
        return y

    def _kept(self, k: int, x: Tensor, args: tuple[Any, ...], outs: tuple[Any, ...], state: State) -> tuple[Any, ...]:
        target, nr = self._origin(x, args, outs)
        name = next((f"x{i}" for i, a in enumerate(args) if a is x and target != "out"), f"saved{k}")
        if target == "out":
            name = f"out{nr}" if len(outs) > 1 else "out"
        return save(self.owner, x, self.name(), name, state, self, k), target, nr, name

    def _origin(self, x: Tensor, args: tuple[Any, ...], outs: tuple[Any, ...]) -> tuple[Any, int]:
        """Target and number of the edge that a tensor has at this level, as far as forward can tell."""
        given = among(x, args)
        if not given or among(x, self.ctx._dirty):
            for nr, y in enumerate(outs):
                if y is x:
                    return "out", nr
        if x.owner is self.owner and x.node is not None:
            return edge(x)
        return None if given or self.descent is None or not self.descent.made(x) else "lost", 0

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        """The tensors that the function saved.  Source: torch.autograd.function.FunctionCtx.saved_tensors."""
        if self.saved is None:
            raise already_freed(self.name())
        if self.values is not None:
            return self.values
        found = tuple([kept and self._unpack(*kept) for kept in self.saved])
        self.values = None if self.creating is None else found
        return found

    def kept(self, k: int) -> tuple[Any, Tensor | None, str]:
        """What is kept in a slot, the leaf of level 0 that it is, and its name."""
        if self.saved is None:
            raise already_freed(self.name())
        if self.saved[k] is None:
            return None, None, ""
        kept, target, _, name = self.saved[k]
        return kept, target if isinstance(target, Tensor) and self.owner is None else None, name

    def keep(self, k: int, packed: Any) -> None:
        """Keep something else in a slot."""
        assert self.saved is not None
        self.saved = (*self.saved[:k], (packed, *self.saved[k][1:]), *self.saved[k + 1:])

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        if self.saved is None:
            raise already_freed(self.name())
        return tuple([raw(self, k) for k in range(len(self.saved))])

    def _unpack(self, kept: Any, target: Any, nr: int, name: str) -> Tensor:
        value: Tensor = kept.unpack()
        if current().watchers:
            tell(current().watchers, "unpack", self.owner, self, name)
        return self._with_edge(value, target, nr)

    def _with_edge(self, value: Tensor, target: Any, nr: int) -> Tensor:
        if target is None or not value.dtype.differentiable or (self.creating is not True and (
                self.owner is not None or target == "lost")):
            return value
        target = self if target == "out" else Lost(self, self.call.name) if target == "lost" else target
        return alias(value, target, nr) if self.owner is None else wrapper(self.owner, value, target, nr)

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        cts = [ct] if self.outs == 1 else ct
        if self.ctx._materialize:
            cts = [zeros(meta[0], dtype=meta[1], device=meta[2]) if g is None and meta is not None else g
                   for g, meta in zip(cts, self.outputs, strict=True)]
        self.creating = create_graph
        stash = [(name, getattr(self.ctx, name, None), target, nr) for name, target, nr in self.stashed if create_graph]
        try:
            for name, x, target, nr in stash:
                if isinstance(x, Tensor):
                    setattr(self.ctx, name, self._with_edge(below(x) if x.owner is self.owner else x, target, nr))
            grads = tupled(self.call.backward(self.ctx, *cts))
        finally:
            self.creating = self.values = None
            for name, x, _, _ in stash:
                setattr(self.ctx, name, x)
        return self._checked(grads, create_graph=create_graph)

    def _checked(self, grads: tuple[Any, ...], *, create_graph: bool) -> list[Tensor | None]:
        """The gradients of the inputs that require grad."""
        n = len(self.needs)
        if len(grads) < n or any(g is not None for g in grads[n:]):
            msg = f"function {self.name()} returned an incorrect number of gradients (expected {n}, got {len(grads)})"
            raise UsageError(msg)
        for i, g in enumerate(grads[:n]):
            if g is not None and not self.tensors[i]:
                msg = (f"function {self.name()} returned a gradient different than None at position {i + 1}, but the "
                       "corresponding forward input was not a Variable")
                raise UsageError(msg)
        metas = iter(self.metas or ())
        return [self._fitting(i, g, *next(metas), create_graph=create_graph) for i, g in enumerate(grads[:n]) if self.needs[i]]

    def _fitting(self, i: int, g: Any, shape: tuple[int, ...], dtype: Any, *, create_graph: bool) -> Any:
        if g is None:
            return None
        if not isinstance(g, Tensor):
            msg = f"expected Variable or None (got {type(g).__name__})"
            raise UsageError(msg)
        if not sums_to(g.shape, shape):
            msg = (f"Function {self.name()} returned an invalid gradient at index {i} - got {list(g.shape)} but expected shape "
                   f"compatible with {list(shape)}")
            raise UsageError(msg)
        if not create_graph and g.owner is self.owner and g.node is not None:
            g = below(g)
        if g.owner is None:
            storage_of(g)  # the function may know this memory
        return g

    def release(self) -> None:
        if self.saved:
            self.saved = None
            if current().watchers:
                tell(current().watchers, "release", self.owner, self)


def sums_to(big: tuple[int, ...], small: tuple[int, ...]) -> bool:
    """Whether `small` broadcasts to `big`."""
    pad = len(big) - len(small)
    return pad >= 0 and all(n in (1, m) for n, m in zip(small, big[pad:], strict=True))


# ---------------------------------------------------------------- outputs
def mapped(out: Any, f: Callable[[Tensor], Tensor], others: Iterator[Any] | None = None) -> Any:
    """An output, one or a tuple, with f applied to its tensors; `others` is advanced over what f is not applied to.

    A tensor that was returned twice is one tensor.
    """
    made: list[Any] = []
    outs = tupled(out)
    for i, y in enumerate(outs):
        first = next(k for k, x in enumerate(outs) if x is y)
        if first < i and isinstance(y, Tensor):
            made.append(made[first])
            if others is not None:
                next(others)
        elif isinstance(y, Tensor):
            made.append(f(y))
        elif any(isinstance(x, Tensor) for x in tree.leaves_of(y)):
            msg = f"forward must return a tensor or a tuple of them, and returned tensors inside of a {type(y).__name__}."
            raise UsageError(msg)
        else:
            made.append(y)
            if others is not None:
                next(others)
    return (type(out)(*made) if hasattr(out, "_fields") else tuple(made)) if isinstance(out, tuple) else made[0]


def tupled(out: Any) -> tuple[Any, ...]:
    """What a rule returned, as a tuple."""
    return out if isinstance(out, tuple) else (out,)


def among(y: Tensor, marked: Sequence[Any]) -> bool:
    """Whether `y` is one of these very objects."""
    return any(y is x for x in marked)


def handle(y: Tensor, values: Sequence[Any], args: Sequence[Any], new: Callable[[Tensor], Tensor]) -> Tensor:
    """The argument whose value `y` is, an input that was modified in place and returned; else a new handle."""
    for x, value in zip(args, values, strict=True):
        if value is y:
            return x  # type: ignore[no-any-return]
    return new(y)


def guarded(out: Tensor, args: Sequence[Any], name: str, nr: int) -> Tensor:
    """An output; where it shares memory with an argument, one that knows no way to be made again. [NOTE in-place]"""
    store = bottom(out).store

    def again(x: Tensor) -> Tensor:
        msg = (f"Output {nr} of {name} is a view and is being modified inplace. This view was created inside a custom Function "
               "(or because an input was returned as-is) and the autograd logic to handle view+inplace would override the "
               "custom backward associated with the custom Function, leading to incorrect gradients. This behavior is "
               "forbidden. You can fix this by cloning the output of the custom Function.")
        raise UsageError(msg)

    for x in args:
        if store is not None and type(x) is Tensor and x.owner is out.owner and bottom(x).store is store:
            link(out, x, again)
            break
    return out
