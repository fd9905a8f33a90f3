"""How a function that brings its own rules meets the stack. [NOTE custom-function]

A call meets it as an op does: the highest level that an argument belongs to processes it by the rule for its kind, and
every rule calls the function again one storey down.  At the base forward runs, on plain arrays.

    at_base, at_grad   a node with a context of its own, which runs `backward`
    at_jvp             `jvp` one storey down, so that the levels there see what it computes
    at_vmap            `vmap` one storey down, or the whole function on a fresh batched level

Upstream: custom_function_call and its rules in torch/_functorch/autograd_function.py.
"""

# ruff: noqa: SLF001  the fields of a context are what these files share

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import ref

from .. import tree
from ..errors import Refusal, UsageError
from ..op import revive
from ..ops.batching import to_front
from ..ops.creation import zeros_like
from ..ops.inplace import promote
from ..ops.shape import moveaxis, sum_to
from ..state import current, level, using
from ..subclass import bare
from ..tensor import Tensor, wrapper
from .combined import Noted
from .function_node import FunctionCtx, FunctionNode, among, guarded, handle, mapped, sums_to, tupled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..interpreters.base import Interpreter
    from ..interpreters.grad import GradInterpreter
    from ..interpreters.jvp import JvpInterpreter
    from ..interpreters.vmap import VmapInterpreter
    from ..state import State

Rule = Callable[..., Any]
DOCS = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """What the vmap staticmethod is told of its level."""

    batch_size: int
    randomness: str


class Call:
    """One call of a function, and its rules: staticmethods of a Function, or methods of one on a batched level."""

    __slots__ = ("backward", "forward", "jvp", "name", "setup_context", "vmap")

    def __init__(self, name: str, *, forward: Rule, setup_context: Rule | None, backward: Rule, jvp: Rule,
                 vmap: Rule | None) -> None:
        self.name = name
        self.forward = forward
        self.setup_context = setup_context
        """None where forward takes the context itself."""
        self.backward = backward
        self.jvp = jvp
        self.vmap = vmap
        """None where the other rules may run on a batched level."""

    def __call__(self, args: tuple[Any, ...]) -> Any:
        """Run it at the highest level that an argument belongs to. [NOTE who-processes-an-op]"""
        state = current()
        args = tuple([revive(x, state) if type(x) is Tensor else bare(x) if isinstance(x, Tensor) else x for x in args])
        owners = [x.owner for x in args if type(x) is Tensor and x.owner is not None]
        if not owners:
            return self.at_base(args, state)
        if self.setup_context is None and all(me.by_hand for me in owners):
            return self._noted(args)
        if self.setup_context is None:
            msg = ("In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must "
                   f"override the setup_context staticmethod, and {self.name} does not. {DOCS}")
            raise Refusal(msg)
        return max(owners, key=state.levels.index).process_call(self, args)

    def _noted(self, args: tuple[Any, ...]) -> Any:
        """Run the combined style at levels that are no transforms: level 0's one context is copied for each."""
        noted = Noted(self.name, self.forward)
        try:
            return Call(self.name, forward=noted.forward, setup_context=noted.setup_context, backward=self.backward,
                        jvp=self.jvp, vmap=self.vmap)(args)
        finally:
            noted.forget()

    def inside(self, state: State, levels: tuple[Interpreter, ...]) -> State:
        """The state in which code of the function runs, which may use no tensor of the levels that are left out."""
        off = state.forward_off if levels else frozenset({None})
        closed = state.closed.union(state.levels) - set(levels)
        return state._replace(levels=levels, forward_off=off, closed=closed, closed_by=self.name)

    def at_base(self, args: tuple[Any, ...], state: State) -> Any:
        """Run forward on base tensors, and record it at level 0."""
        ctx = FunctionCtx(tuple([type(x) is Tensor and x.node is not None for x in args]))
        node = FunctionNode(None, self, ctx, args, state)
        with using(node.watching(self.inside(state, ()))):
            if self.setup_context is None:
                out = self.forward(ctx, *args)
            else:
                out = self.forward(*args)
                self.setup_context(ctx, args, out)
        return node.record(args, out, state)

    def at_grad(self, me: GradInterpreter, args: tuple[Any, ...]) -> Any:
        """Run it one storey down, and record it here."""
        state = current()
        values = [x.value if type(x) is Tensor and x.owner is me else x for x in args]
        ctx = FunctionCtx(tuple([type(x) is Tensor and x.owner is me and x.node is not None for x in args]))
        node = FunctionNode(me, self, ctx, args, state)
        out = mapped(self(tuple(values)), lambda y: handle(y, values, args, lambda y: wrapper(me, y)))
        assert self.setup_context is not None
        with using(node.watching(state)):
            self.setup_context(ctx, args, out)
        return node.record(args, out, state)

    def at_jvp(self, me: JvpInterpreter, args: tuple[Any, ...]) -> Any:
        """Run it one storey down, and `jvp` there too."""
        mine = [type(x) is Tensor and x.owner is me for x in args]
        primals = tuple([x.value if m else x for x, m in zip(args, mine, strict=True)])
        out = self(primals)
        if me in current().forward_off:
            return out
        ctx = FunctionCtx(tuple([type(x) is Tensor and x.requires_grad for x in args]))
        assert self.setup_context is not None
        self.setup_context(ctx, primals, out)
        zeros = [zeros_like(x) if type(x) is Tensor and x.dtype.differentiable and ctx._materialize else None for x in args]
        tangents = [x.note if m and x.note is not None else z for x, m, z in zip(args, mine, zeros, strict=True)]
        pushed = tupled(self.jvp(ctx, *tangents))
        outs = tupled(out)
        if len(pushed) != len(outs):
            msg = f"function {self.name} returned an incorrect number of jvp tangents (expected {len(outs)}, got {len(pushed)})"
            raise UsageError(msg)
        tangent_of = iter(pushed)
        return mapped(out, lambda y: self._dual(me, y, next(tangent_of), ctx, primals, args), others=tangent_of)

    def _dual(self, me: JvpInterpreter, y: Tensor, dy: Tensor | None, ctx: FunctionCtx, primals: tuple[Any, ...],
              args: tuple[Any, ...]) -> Tensor:
        if not y.dtype.differentiable or among(y, ctx._non_differentiable):
            if dy is not None:
                msg = (f"The jvp of {self.name} returned a tangent for an output that is not differentiable. You should return "
                       "None at that position instead.")
                raise UsageError(msg)
        elif dy is not None and dy.shape != y.shape:
            msg = (f"The jvp of {self.name} returned a tangent of shape {list(dy.shape)} for an output of shape "
                   f"{list(y.shape)}.")
            raise UsageError(msg)
        if among(y, ctx._dirty):
            x = handle(y, primals, args, lambda y: y)
            if x.owner is not me:
                promote(x, me)
            me.retangent(x, zeros_like(y) if dy is None else dy)
            return x
        return y if dy is None else guarded(me.dual(y, dy), args, self.name, 0)

    def at_functional(self, me: Interpreter, args: tuple[Any, ...]) -> Any:
        """Run it one storey down; what its own code writes to, it writes to."""
        values = [x.value if type(x) is Tensor and x.owner is me else x for x in args]
        return mapped(self(tuple(values)), lambda y: handle(y, values, args, lambda y: wrapper(me, y)))

    def at_vmap(self, me: VmapInterpreter, args: tuple[Any, ...]) -> Any:
        """Run the vmap staticmethod one storey down, or the function itself on a fresh batched level."""
        values = tuple([x.value if type(x) is Tensor and x.owner is me else x for x in args])
        dims = tuple([x.note if type(x) is Tensor and x.owner is me else None for x in args])
        state = current()
        with using(self.inside(state, state.levels[:state.levels.index(me)])):
            if self.vmap is not None:
                result = self.vmap(VmapInfo(me.size, me.randomness), dims, *values)
                if not isinstance(result, tuple) or len(result) != 2:
                    msg = ("Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure "
                           f"compatible with the output. Got {result!r} instead")
                    raise UsageError(msg)
                out, out_dims = result
            else:
                batched = Batched(self, me, dims)
                out, out_dims = batched.call(values), batched.out_dims
        places = iter(tree.broadcast(out_dims, out, f"The vmap staticmethod of {self.name} returned an incompatible (output, "
                                     "out_dims) tuple: out_dims"))

        def rebatched(y: Tensor) -> Tensor:
            place = next(places)
            return handle(y, values, args, lambda y: y if place is None else me.batched(y, place % y.ndim))
        return mapped(out, rebatched, others=places)


# ---------------------------------------------------------------- on a batched level
class Batched:
    """A call whose every rule runs on a fresh batched level: rules of a function of the values one storey down."""

    out_dims: Any
    shapes: tuple[Any, ...]
    """The logical shapes of the arguments, None for what is no tensor."""

    def __init__(self, sample: Call, me: VmapInterpreter, dims: tuple[int | None, ...]) -> None:
        self.sample = sample
        self.me = me
        self.dims = dims

    @property
    def call(self) -> Call:
        """The call one storey down."""
        return Call(self.sample.name, forward=self.forward, setup_context=self.setup_context, backward=self.backward,
                    jvp=self.jvp, vmap=None)

    def _level(self) -> level:
        return level(type(self.me)(self.me.size, self.me.randomness))

    def forward(self, *values: Any) -> Any:
        with self._level() as me:
            args = hidden(me, values, self.dims)
            self.shapes = tuple([x.shape if isinstance(x, Tensor) else None for x in args])
            out = self.sample.forward(*args)
            self.out_dims = tree.map(lambda y: y.note if isinstance(y, Tensor) and y.owner is me else None, out)
            return mapped(out, lambda y: y.value if y.owner is me else y)

    def setup_context(self, ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        ctx._inner = inner = BatchedCtx(ctx)  # type: ignore[attr-defined]
        with self._level() as inner._me:
            outs = hidden(inner._me, tupled(output), tupled(self.out_dims))
            assert self.sample.setup_context is not None
            self.sample.setup_context(inner, hidden(inner._me, inputs, self.dims),
                                      outs if isinstance(output, tuple) else outs[0])

    def backward(self, ctx: Any, *cts: Any) -> Any:
        with self._level() as ctx._inner._me:
            grads = tupled(self.sample.backward(ctx._inner, *hidden(ctx._inner._me, cts, tupled(self.out_dims))))
            known = len(self.dims)
            return (*map(lambda *each: self._summed(ctx._inner._me, *each), grads, self.dims, self.shapes), *grads[known:])

    def _summed(self, me: Interpreter, g: Any, dim: int | None, shape: tuple[int, ...] | None) -> Any:
        """The gradient of a value, from that of each sample: their sum, where the value is the same for all."""
        if not isinstance(g, Tensor) or shape is None:
            return g
        if g.shape != shape and sums_to(g.shape, shape):
            g = sum_to(g, shape)
        if dim is None:
            return g.value.sum(g.note) if g.owner is me else g
        return self._down(me, g, dim)

    def _down(self, me: Interpreter, x: Any, dim: int | None) -> Any:
        if not isinstance(x, Tensor) or (dim is None and x.owner is not me):
            return x
        if dim is None:
            msg = f"The jvp of {self.sample.name} returned a batch of tangents for an output that is the same for all samples."
            raise UsageError(msg)
        front = to_front(x.value, x.note) if x.owner is me else to_front(x, None, self.me.size)
        return moveaxis(front, 0, dim)

    def jvp(self, ctx: Any, *tangents: Any) -> Any:
        inner = ctx._inner
        with self._level() as inner._me:
            inner._dims = inner._dims if inner._forward_dims is None else inner._forward_dims
            pushed = tupled(self.sample.jvp(inner, *hidden(inner._me, tangents, self.dims)))
            return tuple([self._down(inner._me, d, dim) for d, dim in zip(pushed, tupled(self.out_dims), strict=True)])


def hidden(me: Any, values: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, ...]:
    """Hide the batch dimensions."""
    return tuple([x if d is None or not isinstance(x, Tensor) else me.batched(x, d) for x, d in zip(values, dims, strict=True)])


class BatchedCtx(FunctionCtx):
    """The context that a Function sees on a batched level: what it names is passed on one storey down."""

    _me: Any = None
    _dims: tuple[int | None, ...] = ()
    _forward_dims: tuple[int | None, ...] | None = None

    def __init__(self, outer: FunctionCtx) -> None:
        super().__init__(outer.needs_input_grad)
        self._outer = ref(outer)

    def _passed(self, method: Callable[..., None], tensors: tuple[Any, ...]) -> tuple[int | None, ...]:
        mine = [isinstance(x, Tensor) and x.owner is self._me for x in tensors]
        method(self._outer(), *[x.value if m else x for x, m in zip(tensors, mine, strict=True)])
        return tuple([x.note if m else None for x, m in zip(tensors, mine, strict=True)])

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        self._dims = self._passed(lambda outer, *xs: outer.save_for_backward(*xs), tensors)

    def save_for_forward(self, *tensors: Tensor | None) -> None:
        self._forward_dims = self._passed(lambda outer, *xs: outer.save_for_forward(*xs), tensors)

    def mark_dirty(self, *args: Tensor) -> None:
        self._passed(lambda outer, *xs: outer.mark_dirty(*xs), args)

    def mark_non_differentiable(self, *args: Tensor) -> None:
        self._passed(lambda outer, *xs: outer.mark_non_differentiable(*xs), args)

    def set_materialize_grads(self, value: bool) -> None:
        self._passed(lambda outer: outer.set_materialize_grads(value), ())

    @property
    def saved_tensors(self) -> tuple[Tensor | None, ...]:
        outer = self._outer()
        assert outer is not None
        return hidden(self._me, outer.saved_tensors, self._dims)
