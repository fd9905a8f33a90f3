"""Activations made of straight pieces or of other activations.

Source: torch.nn.functional; derivatives.yaml (hardswish, hardsigmoid, hardshrink, softshrink, glu, prelu).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT
from ..errors import UsageError
from ..row import row
from .activation import activation, elu, sigmoid
from .batching import along_dim, elementwise
from .choice import choose
from .joining import cat, split_with_sizes
from .pointwise import tanh
from .shape import normal_dim, reshape

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


def _hardsigmoid_kernel(xp: Any, x0: Array) -> Array:
    return xp.clip(x0 + 3, 0, 6) / 6


hardsigmoid = activation("hardsigmoid", _hardsigmoid_kernel, lambda ct, x0: choose((x0 > -3) & (x0 < 3), ct / 6, 0))

hardswish = activation(
    "hardswish", lambda xp, x0: x0 * _hardsigmoid_kernel(xp, x0),
    lambda ct, x0: choose(x0 <= -3, 0, choose(x0 < 3, ct * (x0 / 3 + 0.5), ct)))

_hardshrink = activation("hardshrink", lambda xp, x0, lambd: xp.where(abs(x0) <= lambd, 0, x0).astype(x0.dtype, copy=False),
                         lambda ct, x0, lambd: choose((x0 >= -lambd) & (x0 <= lambd), 0, ct))

_softshrink = activation("softshrink", lambda xp, x0, lambd: x0 - xp.clip(x0, -lambd, lambd),
                         lambda ct, x0, lambd: choose((x0 >= -lambd) & (x0 <= lambd), 0, ct))


def hardshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x, and 0 where |x| <= lambd.  Source: torch.nn.functional.hardshrink."""
    return _hardshrink(x, lambd=lambd)  # type: ignore[no-any-return]


def softshrink(x: Tensor, lambd: float = 0.5) -> Tensor:
    """x nearer to 0 by lambd, and 0 where |x| <= lambd.  Source: torch.nn.functional.softshrink."""
    if lambd < 0:
        msg = f"lambda must be greater or equal to 0, but found to be {lambd}."
        raise UsageError(msg)
    return _softshrink(x, lambd=lambd)  # type: ignore[no-any-return]


def tanhshrink(x: Tensor) -> Tensor:
    """x - tanh(x).  Source: torch.nn.functional.tanhshrink."""
    return x - tanh(x)  # type: ignore[no-any-return]


def celu(x: Tensor, alpha: float = 1.0) -> Tensor:
    """x, and alpha * (exp(x / alpha) - 1) below 0.  Source: torch.nn.functional.celu."""
    if alpha == 0:
        msg = "ZeroDivisionError: alpha cannot be 0 for CELU"
        raise UsageError(msg)
    return elu(x, alpha, 1.0, 1.0 / alpha)


def _halves(x: Tensor, dim: int) -> tuple[Tensor, ...]:
    return split_with_sizes(x, [x.shape[dim] // 2] * 2, dim)


def _glu_kernel(xp: Any, x0: Array, dim: int) -> Array:
    values, gates = xp.split(x0, 2, dim)
    return values / (1 + xp.exp(-gates))


def _glu_vjp(ct: Tensor, x0: Tensor, dim: int) -> Tensor:
    values, gates = _halves(x0, dim)
    open_ = sigmoid(gates)
    passed = ct * open_
    return cat([passed, passed * values * (1 - open_)], dim)


def _glu_jvp(dx: Tensor, x0: Tensor, dim: int) -> Tensor:
    (dvalues, dgates), (values, gates) = _halves(dx, dim), _halves(x0, dim)
    open_ = sigmoid(gates)
    return open_ * (dvalues + values * (1 - open_) * dgates)  # type: ignore[no-any-return]


_glu = row("glu", _glu_kernel, arity=1, saves=("x0",), vjp=(_glu_vjp,), jvp=(_glu_jvp,), batch=along_dim)


def glu(x: Tensor, dim: int = -1) -> Tensor:
    """The first half of a dimension times the sigmoid of the second.  Source: torch.nn.functional.glu."""
    if not x.ndim:
        msg = "glu does not support scalars because halving size must be even"
        raise UsageError(msg)
    at = normal_dim(dim, x.ndim)
    if x.shape[at] % 2:
        msg = f"Halving dimension must be even, but dimension {at} is size {x.shape[at]}"
        raise UsageError(msg)
    return _glu(x, dim=at)  # type: ignore[no-any-return]


_prelu = row(
    "prelu_kernel", lambda xp, x0, x1: xp.where(x0 > 0, x0, x1 * x0), saves=("x0", "x1"), fits=True, batch=elementwise,
    vjp=(lambda ct, x0, x1: choose(x0 > 0, ct, ct * x1), lambda ct, x0: choose(x0 > 0, 0, ct * x0)),
    jvp=(lambda dx, x0, x1: choose(x0 > 0, dx, dx * x1), lambda dx, x0: choose(x0 > 0, 0, dx * x0)))


def prelu(x: Tensor, weight: Tensor) -> Tensor:
    """x, and weight * x below 0; one weight, or one for each channel (dimension 1).  Source: torch.nn.functional.prelu."""
    if weight.ndim > 1:
        msg = f"prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = {weight.ndim}"
        raise UsageError(msg)
    if weight.numel() != 1:
        channels = x.shape[1] if x.ndim > 1 else 1
        if not x.ndim or weight.numel() != channels:
            msg = f"Mismatch of parameter numbers and input channel size. Found {weight.numel()} and {channels}."
            raise UsageError(msg)
    if x.dtype.category < FLOAT or x.dtype is not weight.dtype:
        msg = f"prelu: Type promoting not supported. Got {x.dtype} and {weight.dtype}"
        raise UsageError(msg)
    wide = reshape(weight, *[-1 if d == 1 else 1 for d in range(x.ndim)]) if x.ndim > 1 else reshape(weight, *[1] * x.ndim)
    return _prelu(x, wide)  # type: ignore[no-any-return]
