"""The grad interpreter: level 0's machine again, one storey up. [NOTE level-zero]

Each op runs one storey down; where an argument of this level requires grad, a node of this level's graph remembers it.

Upstream: GradInterpreter, at::functorch::TensorWrapper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT
from ..graph.record import record, record_binary, record_unary
from ..op import draw_below
from ..ops.inplace import assign, relink
from ..state import current
from ..tensor import LEAF, NO_PARAMS, Tensor, edge, next_number, wrapper
from .base import Interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..autograd.function_call import Call
    from ..op import Op
    from ..state import State


class GradInterpreter(Interpreter):
    """One reverse-mode level; its tensors are `wrapper(me, value, node, nr)`."""

    __slots__ = ()
    name = "grad"
    transparent = False

    def leaf(self, x: Tensor) -> Tensor:
        """`x` as a leaf of this level."""
        return wrapper(self, x, LEAF if x.dtype.differentiable else None, next_number())

    def process(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values = []
        records = False
        for x in args:
            if type(x) is Tensor and x.owner is self:
                values.append(x.value)
                records = records or x.node is not None
            else:
                values.append(x)
        out = op.call(*values, **params)
        if not records or not op.differentiable or (op.outs == 1 and out.kind.dtype.category < FLOAT):
            return out
        state = current()
        if self in state.grad_off:
            return out
        if op.elementwise and op.arity == 2 and not state.watchers:
            return record_binary(op, self, args[0], args[1], out, state)
        return record(op, self, args, out, params, state)

    def unary(self, op: Op, x: Tensor, state: State, params: dict[str, Any] = NO_PARAMS) -> Any:
        out = op.call(x.value, **params) if params else op.call(x.value)
        if x.node is None or not op.differentiable or self in state.grad_off:
            return out
        if out.kind is x.value.kind:
            return record_unary(op, self, x, out, state, params)
        return out if out.kind.dtype.category < FLOAT else record(op, self, (x,), out, params, state)

    def binary(self, op: Op, x: Tensor, y: Any, state: State) -> Any:
        if type(y) is Tensor:
            out = op.call(x.value, y.value)
            records = x.node is not None or y.node is not None
        else:
            out = op.call(x.value, y)
            records = x.node is not None
        if not records or not op.differentiable or self in state.grad_off or out.kind.dtype.category < FLOAT:
            return out
        return record_binary(op, self, x, y, out, state) if op.elementwise else record(op, self, (x, y), out, NO_PARAMS, state)

    def process_call(self, call: Call, args: tuple[Any, ...]) -> Any:
        return call.at_grad(self, args)

    def draw(self, op: Op, params: dict[str, Any]) -> Any:
        return draw_below(self, op, params)

    def rewrap(self, x: Tensor) -> Callable[..., Tensor]:
        node, nr = edge(x)
        return lambda value: wrapper(self, value, node, nr)

    def renew(self, x: Tensor) -> Callable[..., Tensor]:
        node = None if x.node is None else LEAF
        return lambda value: wrapper(self, value, node, next_number())

    def assign(self, x: Tensor, new: Tensor) -> None:
        assign(x.value, new.value if new.owner is self else new)
        relink(self, x, new, current())
