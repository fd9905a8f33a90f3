"""Elementwise functions of two numbers, beside the arithmetic of pointwise.py.

Source: torch; derivatives.yaml.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import BOOL, FLOAT, complex128, float32, float64
from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import elementwise
from .choice import NO_BOOL_OR_INT, NO_COMPLEX, ONLY_INT, choose
from .creation import zeros_like
from .pointwise import exp, exp2, pow, sub

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array


def _pair(name: str, kernel: Any, first: Callable[..., Tensor], second: Callable[..., Tensor], *, saves: tuple[str, ...],
          promote: str = "float", **options: Any) -> OpFunction:
    """A row of two real inputs, whose rules serve both modes: its Jacobians are diagonal."""
    return row(name, kernel, promote=promote, saves=saves, batch=elementwise, elementwise=True,
               vjp=(first, second), jvp=(first, second), **{"refuses": NO_COMPLEX, **options})


# ---------------------------------------------------------------- logarithms
def _log_sum(name: str, kernel: str, power: OpFunction) -> OpFunction:
    def share(ct: Tensor, mine: Any, other: Any) -> Tensor:
        lead = other - mine
        return ct / (1 + power(choose((mine == other) & (lead != 0), 0, lead)))  # type: ignore[no-any-return]  # of equal infinities

    return _pair(name, kernel, lambda ct, x0, x1: share(ct, x0, x1), lambda ct, x0, x1: share(ct, x1, x0), saves=("x1", "x0"),
                 refuses=NO_BOOL_OR_INT | NO_COMPLEX)


logaddexp = _log_sum("logaddexp", "logaddexp", exp)
logaddexp2 = _log_sum("logaddexp2", "logaddexp2", exp2)


def _times_log(name: str) -> Callable[..., Array]:
    """The kernel of x0 times that logarithm of x1, and 0 where x0 is 0 and x1 a number."""
    def kernel(xp: Any, x0: Array, x1: Array) -> Array:
        out = xp.asarray(x0 * getattr(xp, name)(xp.asarray(x1, xp.result_type(x0, x1))))  # of a number alone it is float64
        out[(x0 == 0) & ~xp.isnan(x1)] = 0
        return out
    return kernel


xlogy: OpFunction = _pair(
    "xlogy", _times_log("log"), lambda ct, x0, x1: choose((x0 == 0) & (x1 <= 0), 0, xlogy(ct, x1)),
    lambda ct, x0, x1: ct * x0 / x1, saves=("x1", "x0"),
    doc="x log(y), 0 where x is 0 and y is a number.  Source: torch.xlogy.")

xlog1py: OpFunction = _pair(
    "special_xlog1py", _times_log("log1p"), lambda ct, x0, x1: choose((x0 == 0) & (x1 <= -1.0), 0, xlog1py(ct, x1)),
    lambda ct, x0, x1: ct * x0 / (x1 + 1), saves=("x1", "x0"))

# ---------------------------------------------------------------- sizes, angles and signs
hypot = _pair("hypot", "hypot", lambda ct, x0, out: ct * (x0 / out), lambda ct, x1, out: ct * (x1 / out),
              saves=("x1", "x0", "out"), promote="arith", refuses=NO_BOOL_OR_INT | NO_COMPLEX)


def _atan2_slopes(ct: Any, x0: Any, x1: Any) -> Any:
    """What both rules of atan2 share: ct / (x0^2 + x1^2), and ct at the origin, where it meets zeros."""
    square = x0 * x0 + x1 * x1
    return ct / (square + (square == 0))


def _atan2_vjp(ct: Tensor, x0: Any, x1: Any, needs: tuple[bool, ...]) -> list[Any]:
    each = _atan2_slopes(ct, x0, x1)
    return [x1 * each if needs[0] else None, -x0 * each if needs[1] else None]


atan2 = row("atan2", "arctan2", arity=2, promote="float", saves=("x1", "x0"), batch=elementwise, refuses=NO_COMPLEX,
            vjp=_atan2_vjp,
            jvp=(lambda dx, x0, x1: x1 * _atan2_slopes(dx, x0, x1), lambda dx, x0, x1: -x0 * _atan2_slopes(dx, x0, x1)))


def _signs(ct: Tensor, x0: Tensor, out: Tensor) -> Tensor:
    return choose(x0 == 0, 0, ct * (out / x0))  # type: ignore[no-any-return]


copysign = _pair("copysign", "copysign", _signs, lambda ct: zeros_like(ct), saves=("x0", "out"))

heaviside = row("heaviside", lambda xp, x0, x1: xp.where(x0 == 0, x1, x0 > 0).astype(x0.dtype), promote="arith", vjp=None,
                jvp=None, batch=elementwise, refuses=NO_COMPLEX)


# ---------------------------------------------------------------- extremes that pass over nan
def _extreme(name: str, wins: Callable[[Any, Any], Any]) -> OpFunction:
    def first(ct: Tensor, x0: Any, x1: Any) -> Tensor:
        return choose(wins(x0, x1) | (x1 != x1), ct, 0)  # type: ignore[no-any-return]  # noqa: PLR0124  x1, a tensor or a number

    def second(ct: Tensor, x0: Any, x1: Any) -> Tensor:
        return choose(wins(x0, x1) | (x1 != x1), 0, ct)  # type: ignore[no-any-return]  # noqa: PLR0124

    return _pair(name, name, first, second, saves=("x1", "x0"), promote="arith")


fmax = _extreme("fmax", lambda a, b: a >= b)
fmin = _extreme("fmin", lambda a, b: a <= b)


# ---------------------------------------------------------------- neighbours, and whole numbers
def _only(ct: Tensor, x0: Any, x1: Any) -> Tensor:
    return choose(x0 == x1, 0, ct)  # type: ignore[no-any-return]


nextafter = _pair("nextafter", "nextafter", _only, lambda ct, x0, x1: choose(x0 != x1, 0, ct), saves=("x1", "x0"),
                  promote="arith", refuses=NO_BOOL_OR_INT | NO_COMPLEX)

gcd = row("gcd", "gcd", promote="arith", vjp=None, jvp=None, batch=elementwise, refuses=ONLY_INT | {BOOL: ""})
lcm = row("lcm", "lcm", promote="arith", vjp=None, jvp=None, batch=elementwise, refuses=ONLY_INT | {BOOL: ""})


# ---------------------------------------------------------------- composed
def float_power(x: Any, exponent: Any) -> Tensor:
    """x to a power, in double precision.  Source: torch.float_power."""
    complexes = [isinstance(a, complex) or (isinstance(a, Tensor) and a.dtype.is_complex) for a in (x, exponent)]
    wide = complex128 if any(complexes) else float64
    x, exponent = (a.to(wide) if isinstance(a, Tensor) else a for a in (x, exponent))
    return pow(x, exponent)


class Frexp(NamedTuple):
    """What frexp returns.  Source: torch.return_types.frexp."""

    mantissa: Tensor
    exponent: Tensor


_frexp: OpFunction = row(
    "frexp", "frexp", saves=("out1",), outs=2, batch=elementwise,
    vjp=(lambda ct, out1: ct[0] / exp2(out1.to(ct[0].dtype)),),
    jvp=lambda dx, out1: (dx[0] / exp2(out1.to(dx[0].dtype)), None))


def frexp(x: Tensor) -> Frexp:
    """x as mantissa * 2 ** exponent, the mantissa in [1/2, 1).  Source: torch.frexp."""
    if x.dtype.category != FLOAT:
        msg = f"torch.frexp() only supports floating-point dtypes, but got {x.dtype}"
        raise UsageError(msg)
    return Frexp(*_frexp(x))


def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """x * 2 ** other, in the type of a floating `x` where `other` holds integers.  Source: torch.ldexp."""
    if not isinstance(other, Tensor):
        msg = f"ldexp(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}"
        raise TypeError(msg)
    if other.dtype.category >= FLOAT or x.dtype.category < FLOAT:
        return x * pow(2.0, other)
    out = x * pow(2.0, other.to(float64 if x.dtype in (float64, complex128) else float32))
    return out.to(x.dtype)  # type: ignore[no-any-return]


def rsub(x: Tensor, other: Any, *, alpha: Any = 1) -> Tensor:
    """other - alpha * x.  Source: torch.rsub."""
    return sub(other, x, alpha=alpha)


def deg2rad(x: Tensor) -> Tensor:
    """Degrees as radians.  Source: torch.deg2rad."""
    return x * (math.pi / 180)


def rad2deg(x: Tensor) -> Tensor:
    """Radians as degrees.  Source: torch.rad2deg."""
    return x * (180 / math.pi)


def positive(x: Tensor) -> Tensor:
    """The tensor itself.  Raises UsageError for bools.  Source: torch.positive."""
    if x.dtype.category == BOOL:
        msg = "The `+` operator, on a bool tensor is not supported."
        raise UsageError(msg)
    return x
