"""The jvp interpreter: every op carries a tangent along.

A tensor of this level is a primal and its tangent, both one storey down; grad mode does not concern it.

Upstream: JvpInterpreter, torch/csrc/autograd/forward_grad.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT
from ..errors import UsageError
from ..op import draw_below
from ..ops.creation import zeros_like
from ..ops.inplace import assign, embedded, views_of
from ..state import current
from ..tensor import Tensor, wrapper
from ..views import order_of, root_of
from .base import Interpreter
from .duals import Given, gradients

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..autograd.function_call import Call
    from ..op import Op
    from ..state import State


class JvpInterpreter(Interpreter):
    """One forward-mode level; its tensors are `wrapper(me, primal, note=tangent)`, None for a tangent that is zero."""

    __slots__ = ("forward_off_outside", "given")
    name = "jvp"

    def enter(self, outside: State) -> None:
        super().enter(outside)
        self.forward_off_outside = outside.forward_off
        self.given = Given()

    def give(self, primal: Tensor, tangent: Tensor) -> Tensor:
        """The dual that a program makes of two tensors of levels below."""
        self.given.add(primal, tangent)
        return self.dual(primal, tangent if tangent.dtype is primal.dtype else tangent.to(primal.dtype))

    def dual(self, primal: Tensor, tangent: Tensor | None = None) -> Tensor:
        """The primal with its tangent, of the same shape."""
        return wrapper(self, primal, note=tangent)

    def process(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        primals = [x.value if type(x) is Tensor and x.owner is self else x for x in args]
        out = op.call(*primals, **params)
        if op.jvp is None or self in current().forward_off or (op.outs == 1 and out.kind.dtype.category < FLOAT):
            return out
        tangents = [x.note if type(x) is Tensor and x.owner is self else None for x in args]
        dout = push(op, tangents, primals, out, params)
        if op.outs == 1:
            return out if dout is None else self.dual(out, dout)
        return tuple([o if d is None else self.dual(o, d) for o, d in zip(out, dout, strict=True)])

    def process_call(self, call: Call, args: tuple[Any, ...]) -> Any:
        return call.at_jvp(self, args)

    def draw(self, op: Op, params: dict[str, Any]) -> Any:
        return draw_below(self, op, params)

    def assign(self, x: Tensor, new: Tensor) -> None:
        mine = new.owner is self
        assign(x.value, new.value if mine else new)
        self.retangent(x, new.note if mine and new.note is not None else zeros_like(x.value))

    def retangent(self, x: Tensor, tangent: Tensor) -> None:
        """Give `x` another tangent; through its root, where it is a view."""
        root = root_of(x)
        if root is x:
            x.note = tangent
        else:
            assert x.extra is not None
            whole = zeros_like(root.value) if root.note is None else root.note
            root.note = embedded(whole, x.extra.steps, tangent, order_of(root.value))
        for view, again in views_of(root):
            view.note = again(root.note)

    def adopt(self, x: Tensor, inside: Tensor) -> None:
        super().adopt(x, inside)
        x.note = zeros_like(inside)

    def describe(self, x: Tensor) -> str:
        return "" if x.note is None else f", tangent={x.note!r}"

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        return (x.value,) if x.note is None else (x.value, x.note)

    def detach_(self, x: Tensor) -> None:
        x.note = None

    def holds(self, x: Tensor) -> bool:
        return x in self.given

    def primal(self, x: Tensor) -> Tensor:
        return x.value  # type: ignore[no-any-return]

    def gradients(self, run: Callable[..., Any], outputs: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any],
                  retain_graph: bool) -> Sequence[Any]:
        return gradients(self, run, outputs, inputs, cts, retain_graph)

    def rewrap(self, x: Tensor) -> Callable[..., Tensor]:
        return self.dual

    renew = rewrap


def push(op: Op, tangents: list[Any], primals: list[Any], out: Any, params: dict[str, Any]) -> Any:
    """The tangent of `op`'s output (of each, where it has several) from those of its inputs; None is zero."""
    if op.jvp == "linear":
        given = [zeros_like(x) if t is None and isinstance(x, Tensor) else t for t, x in zip(tangents, primals, strict=True)]
        return op.call(*given, **params)
    if not isinstance(op.jvp, list):
        return op.jvp(tangents, primals, out, params)
    total = None
    for formula, tangent in zip(op.jvp, tangents, strict=True):
        if tangent is not None:
            if formula is None:
                msg = f"The function '{op.name}' is not differentiable with respect to an input that has a tangent: detach it."
                raise UsageError(msg)
            part = formula(tangent, primals, out, params)
            total = part if total is None else total + part
    if total is not None and (total.shape != out.shape or total.dtype is not out.dtype):
        total = total.expand(out.shape).to(out.dtype)
    return total
