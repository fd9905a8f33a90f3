"""The nonlinearities of networks.  Halves are computed in float32 and rounded once, as torch computes them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..dtypes import BOOL, COMPLEX, uint8
from ..errors import UsageError
from ..row import OpFunction, row
from . import special
from .batching import elementwise
from .choice import NO_BOOL_OR_COMPLEX, NO_BOOL_OR_INT, NO_COMPLEX, ONLY_FLOAT, choose
from .creation import zeros_like
from .pointwise import conj, erf, exp, tanh

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array
    from ..tensor import Tensor


def _wide(kernel: Callable[..., Array]) -> Callable[..., Array]:
    """The kernel, in float32 for halves."""
    def wide(xp: Any, x0: Array, **params: Any) -> Array:
        if x0.dtype.char == "e":
            return kernel(xp, x0.astype("float32"), **params).astype("float16")
        return kernel(xp, x0, **params)
    return wide


def activation(name: str, kernel: Callable[..., Array], vjp: Callable[..., Tensor], *, saves: str = "x0",
               **options: Any) -> OpFunction:
    """A row of one real input, whose rule serves both modes: its Jacobian is diagonal."""
    return row(name, kernel, promote="arith", saves=(saves,), batch=elementwise, elementwise=True, vjp=(vjp,), jvp=(vjp,),
               **{"refuses": ONLY_FLOAT, **options})


# ---------------------------------------------------------------- with a corner
relu = activation("relu", lambda xp, x0: xp.maximum(x0, 0), lambda ct, out: relu_backward(ct, out), saves="out", arity=1,
                  refuses={BOOL: "Boolean inputs not supported for relu", COMPLEX: ""})

relu_backward: OpFunction = row(
    "threshold_backward", lambda xp, x0, x1: xp.where(x1 <= 0, 0, x0), arity=2, promote="arith", saves=("x1",),
    batch=elementwise, elementwise=True,
    vjp=(lambda ct, x1: relu_backward(ct, x1), lambda ct: zeros_like(ct)),
    jvp=(lambda dx, x1: relu_backward(dx, x1), lambda dx: zeros_like(dx)),
    doc="The cotangent of relu's input, from that of its output, and the output.")

_threshold = activation("threshold",
                        lambda xp, x0, threshold, value: xp.where(x0 <= threshold, value, x0).astype(x0.dtype, copy=False),
                        lambda ct, x0, threshold: choose(x0 <= threshold, 0, ct),
                        refuses=NO_BOOL_OR_COMPLEX)

_leaky_relu = activation("leaky_relu", lambda xp, x0, negative_slope: xp.where(x0 > 0, x0, x0 * negative_slope),
                         lambda ct, x0, negative_slope: choose(x0 > 0, ct, ct * negative_slope))

_hardtanh = activation("hardtanh", lambda xp, x0, min_val, max_val: xp.clip(x0, min_val, max_val).astype(x0.dtype, copy=False),
                       lambda ct, x0, min_val, max_val: choose((x0 > min_val) & (x0 < max_val), ct, 0),
                       refuses=NO_BOOL_OR_COMPLEX)


@_wide
def _elu_kernel(xp: Any, x0: Array, alpha: float, scale: float, input_scale: float) -> Array:
    low = xp.expm1(xp.minimum(x0, 0) * input_scale)
    low *= alpha * scale
    return xp.where(x0 > 0, x0 if scale == 1 else x0 * scale, low)


def _elu_rule(ct: Tensor, x0: Tensor, alpha: float, scale: float, input_scale: float) -> Tensor:
    below = alpha * scale * input_scale * exp(choose(x0 >= 0, 0, x0) * input_scale)
    return ct * choose(x0 > 0, scale, below)  # type: ignore[no-any-return]


_elu = activation("elu", _elu_kernel, _elu_rule)


def threshold(x: Tensor, threshold: float, value: float) -> Tensor:
    """x where it is above the threshold, else `value`.  Source: torch.nn.functional.threshold."""
    return _threshold(x, threshold=threshold, value=value)  # type: ignore[no-any-return]


def leaky_relu(x: Tensor, negative_slope: float = 0.01) -> Tensor:
    """x, or negative_slope * x below 0.  Source: torch.nn.functional.leaky_relu."""
    return _leaky_relu(x, negative_slope=negative_slope)  # type: ignore[no-any-return]


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """x kept between two numbers; the gradient is 0 at both.  Source: torch.nn.functional.hardtanh."""
    if min_val > max_val:
        msg = "min_val cannot be greater than max_val"
        raise ValueError(msg)
    if x.dtype is uint8 and min_val < 0:
        msg = "cannot do hardtanh on an unsigned type with negative limits"
        raise UsageError(msg)
    return _hardtanh(x, min_val=min_val, max_val=max_val)  # type: ignore[no-any-return]


def elu(x: Tensor, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0) -> Tensor:
    """scale * x, or scale * alpha * (exp(input_scale * x) - 1) below 0.  Source: torch.nn.functional.elu."""
    return _elu(x, alpha=alpha, scale=scale, input_scale=input_scale)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- smooth
@_wide
def _sigmoid_kernel(xp: Any, x0: Array) -> Array:
    return 1 / (1 + xp.exp(-x0))  # which is 0 where the exponential overflows


sigmoid = row("sigmoid", _sigmoid_kernel, arity=1, promote="float", saves=("out",), batch=elementwise, elementwise=True,
              vjp=(lambda ct, out: sigmoid_backward(ct, out),), jvp=(lambda dx, out: sigmoid_backward(dx, conj(out)),))

sigmoid_backward: OpFunction = row(
    "sigmoid_backward", lambda xp, x0, x1: x0 * ((1 - x1) * x1).conj(), arity=2, promote="arith", saves=("x0", "x1"),
    batch=elementwise, elementwise=True,
    vjp=(lambda ct, x1: sigmoid_backward(ct, conj(x1)), lambda ct, x0, x1: conj(ct) * x0 * conj(1 - 2 * x1)),
    jvp=(lambda dx, x1: sigmoid_backward(dx, x1), lambda dx, x0, x1: x0 * conj(dx * (1 - 2 * x1))),
    doc="The cotangent of sigmoid's input, from that of its output, and the output.")


@_wide
def _logit_kernel(xp: Any, x0: Array, eps: float | None) -> Array:
    p = x0 if eps is None else xp.clip(x0, eps, 1 - eps)
    return xp.log(p / (1 - p))


def _logit_rule(ct: Tensor, x0: Tensor, eps: float | None) -> Tensor:
    low, outside = (0, math.nan) if eps is None else (eps, 0.0)
    return choose((x0 >= low) & (x0 <= 1 - low), ct / (x0 * (1 - x0)), outside)  # type: ignore[no-any-return]


_logit = row("logit", _logit_kernel, promote="float", saves=("x0",), batch=elementwise, vjp=(_logit_rule,),
             jvp=(_logit_rule,), refuses=NO_COMPLEX)


def logit(x: Tensor, eps: float | None = None) -> Tensor:
    """log(x / (1 - x)), of x kept between eps and 1 - eps where eps is given.  Source: torch.logit."""
    return _logit(x, eps=eps)  # type: ignore[no-any-return]


def _silu_slope(x0: Tensor) -> Tensor:
    s = sigmoid(x0)
    return s * (1 + x0 * (1 - s))  # type: ignore[no-any-return]


silu = row("silu", _wide(lambda xp, x0: x0 * _sigmoid_kernel(xp, x0)), arity=1, promote="arith", saves=("x0",),
           batch=elementwise, elementwise=True, refuses=NO_BOOL_OR_INT,
           vjp=(lambda ct, x0: ct * conj(_silu_slope(x0)),), jvp=(lambda dx, x0: dx * _silu_slope(x0),))


def _mish_slope(x0: Tensor) -> Tensor:
    t = tanh(softplus(x0))
    return t + x0 * sigmoid(x0) * (1 - t * t)  # type: ignore[no-any-return]


mish = activation("mish", _wide(lambda xp, x0: x0 * xp.tanh(xp.logaddexp(x0, 0))), lambda ct, x0: ct * _mish_slope(x0), arity=1)

_ROOT = math.sqrt(2 / math.pi)
_CUBIC = 0.044715
_ROOT_HALF, _DENSITY = math.sqrt(0.5), 1 / math.sqrt(2 * math.pi)


@_wide
def _gelu_kernel(xp: Any, x0: Array, approximate: str) -> Array:
    if approximate == "tanh":
        return 0.5 * x0 * (1 + xp.tanh(_ROOT * (x0 + _CUBIC * x0 * x0 * x0)))
    return 0.5 * x0 * (1 + special.erf(xp, x0 * _ROOT_HALF))


def _gelu_slope(x0: Tensor, approximate: str) -> Tensor:
    if approximate == "tanh":
        t = tanh(_ROOT * (x0 + _CUBIC * x0 * x0 * x0))
        return 0.5 * (1 + t) + 0.5 * _ROOT * x0 * (1 - t * t) * (1 + 3 * _CUBIC * x0 * x0)  # type: ignore[no-any-return]
    return 0.5 * (1 + erf(x0 * _ROOT_HALF)) + x0 * (exp(-0.5 * x0 * x0) * _DENSITY)  # type: ignore[no-any-return]


_gelu = activation("gelu", _gelu_kernel, lambda ct, x0, approximate: ct * _gelu_slope(x0, approximate))


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the normal distribution function of x; approximate: "none" or "tanh".  Source: torch.nn.functional.gelu."""
    if approximate not in ("none", "tanh"):
        msg = "approximate argument must be either none or tanh."
        raise UsageError(msg)
    return _gelu(x, approximate=approximate)  # type: ignore[no-any-return]


@_wide
def _softplus_kernel(xp: Any, x0: Array, beta: float, threshold: float) -> Array:
    z = x0 * beta
    return xp.where(z > threshold, x0, xp.logaddexp(z, 0) / beta)


_softplus = activation(
    "softplus", _softplus_kernel,
    lambda ct, x0, beta, threshold: choose(x0 * beta > threshold, ct, ct * sigmoid(x0 * beta)))


def softplus(x: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """log(1 + exp(beta * x)) / beta, and x itself where beta * x is above the threshold.

    Source: torch.nn.functional.softplus.
    """
    return _softplus(x, beta=beta, threshold=threshold)  # type: ignore[no-any-return]


def _log_sigmoid_kernel(xp: Any, x0: Array) -> tuple[Array, Array]:
    """The value, and the buffer that torch keeps beside its argument."""
    x = x0.astype("float32") if x0.dtype.char == "e" else x0
    small = xp.exp(-xp.abs(x))
    return (xp.minimum(x, 0) - xp.log1p(small)).astype(x0.dtype, copy=False), small.astype(x0.dtype, copy=False)


def _times_slope(g: Tensor, x0: Tensor, out1: Tensor) -> Tensor:
    """g * sigmoid(-x), from what is kept of it."""
    return g * choose(x0 < 0, 1, out1) / (1 + out1)  # type: ignore[no-any-return]


def _times_buffer_slope(g: Tensor, x0: Tensor, out1: Tensor) -> Tensor:
    """At 0 that of exp(-x), which makes the second derivative right there."""
    return g * choose(x0 < 0, out1, -out1)  # type: ignore[no-any-return]


def _log_sigmoid_vjp(ct: list[Any], x0: Tensor, out1: Tensor) -> Tensor:
    parts = [times(g, x0, out1) for g, times in zip(ct, (_times_slope, _times_buffer_slope), strict=True) if g is not None]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


_log_sigmoid = row("log_sigmoid", _log_sigmoid_kernel, outs=2, saves=("x0", "out1"), batch=elementwise,
                   vjp=(_log_sigmoid_vjp,),
                   jvp=lambda dx, x0, out1: [_times_slope(dx[0], x0, out1), _times_buffer_slope(dx[0], x0, out1)])


def logsigmoid(x: Tensor) -> Tensor:
    """The logarithm of sigmoid(x).  Source: torch.nn.functional.logsigmoid."""
    return _log_sigmoid(x)[0]  # type: ignore[no-any-return]
