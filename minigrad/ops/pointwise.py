"""Rows that work on each element alone: arithmetic, then functions of one number."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..op import OpFunction, row
from ..tensor import Tensor
from .batching import elementwise

if TYPE_CHECKING:
    from collections.abc import Callable


def conj(x: Any) -> Any:
    """The complex conjugate; a real tensor or number itself.  Source: torch.conj."""
    if type(x) is Tensor:
        return _conj(x) if x.dtype.is_complex else x
    return x.conjugate()


def pointwise(name: str, kernel: Any, derivative: Callable[[Tensor], Tensor], *, node: str | None = None) -> OpFunction:
    """A row of one floating input; `derivative` names its parameter x0 or out, and that is what is saved."""
    def vjp_x0(ct: Tensor, x0: Tensor) -> Tensor:
        return ct * conj(derivative(x0))

    def vjp_out(ct: Tensor, out: Tensor) -> Tensor:
        return ct * conj(derivative(out))

    def jvp_x0(dx: Tensor, x0: Tensor) -> Tensor:
        return dx * derivative(x0)

    def jvp_out(dx: Tensor, out: Tensor) -> Tensor:
        return dx * derivative(out)

    of_out = derivative.__code__.co_varnames[0] == "out"
    return row(name, kernel, arity=1, promote="float", saves=("out",) if of_out else ("x0",), batch=elementwise,
               vjp=(vjp_out if of_out else vjp_x0,), jvp=(jvp_out if of_out else jvp_x0,), node=node)


# ---------------------------------------------------------------- arithmetic
add_ = row("add", "add", arity=2, promote="arith", batch=elementwise,
           vjp=(lambda ct: ct, lambda ct: ct), jvp=(lambda dx: dx, lambda dx: dx))

sub_ = row("sub", "subtract", arity=2, promote="arith", batch=elementwise,
           vjp=(lambda ct: ct, lambda ct: -ct), jvp=(lambda dx: dx, lambda dx: -dx))

mul = row("mul", "multiply", arity=2, promote="arith", saves=("x0", "x1"), batch=elementwise,
          vjp=(lambda ct, x1: ct * conj(x1), lambda ct, x0: ct * conj(x0)),
          jvp=(lambda dx, x1: dx * x1, lambda dx, x0: dx * x0))

true_div = row("div", "true_divide", arity=2, promote="float", saves=("x0", "x1"), batch=elementwise,
               vjp=(lambda ct, x1: ct / conj(x1), lambda ct, x0, x1: -ct * conj((x0 / x1) / x1)),
               jvp=(lambda dx, x1: dx / x1, lambda dx, x1, out: -dx * (out / x1)))

neg = row("neg", "negative", arity=1, promote="arith", batch=elementwise,
          vjp=(lambda ct: -ct,), jvp="linear")

_conj = row("conj", "conjugate", arity=1, promote="arith", batch=elementwise, vjp=(conj,), jvp="linear")

# ---------------------------------------------------------------- functions of one number
sin = pointwise("sin", "sin", lambda x0: cos(x0))
cos = pointwise("cos", "cos", lambda x0: -sin(x0))
exp = pointwise("exp", "exp", lambda out: out)
log = pointwise("log", "log", lambda x0: 1 / x0)
tanh = pointwise("tanh", "tanh", lambda out: 1 - out * out)
sqrt = pointwise("sqrt", "sqrt", lambda out: 0.5 / out)
