"""Special functions of one number: gamma, Bessel, error and entropy functions.  scipy computes them (`minigrad[special]`).

Source: torch.special; derivatives.yaml.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..backend import special
from ..errors import UsageError
from ..row import OpFunction, row
from .batching import elementwise
from .choice import NO_COMPLEX, choose
from .creation import arange
from .pointwise import conj, erfc, exp, log, pointwise, reciprocal, sgn, square
from .reduction import sum as sum_over
from .shape import unsqueeze

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array
    from ..tensor import Tensor


def _of_scipy(name: str) -> Callable[..., Array]:
    def kernel(xp: Any, x0: Array) -> Array:
        return special(xp, name)(x0.astype("float64", copy=False)).astype(x0.dtype, copy=False)
    return kernel


def _function(name: str, scipys: str, derivative: Callable[..., Tensor]) -> OpFunction:
    return pointwise(name, _of_scipy(scipys), derivative, refuses=NO_COMPLEX)


def _of_both(name: str, scipys: str, derivative: Callable[..., Tensor]) -> OpFunction:
    """A row whose derivative reads its input and its output."""
    def rule(ct: Tensor, x0: Tensor, out: Tensor) -> Tensor:
        return ct * derivative(x0, out)

    return row(name, _of_scipy(scipys), promote="float", saves=("x0", "out"), batch=elementwise,
               elementwise=True, vjp=(rule,), jvp=(rule,), refuses=NO_COMPLEX)


# ---------------------------------------------------------------- gamma
def _lgamma_kernel(xp: Any, x0: Array) -> Array:
    """scipy's, but inf at -inf, too, as the standard of C has it."""
    return _of_scipy("gammaln")(xp, xp.where(x0 == -math.inf, math.inf, x0))


lgamma = pointwise("lgamma", _lgamma_kernel, lambda x0: digamma(x0), refuses=NO_COMPLEX)
digamma: OpFunction = _function("digamma", "psi", lambda x0: _polygamma(x0, n=1))


def _polygamma_kernel(xp: Any, x0: Array, n: int) -> Array:
    return (-1.0) ** (n + 1) * math.factorial(n) * special(xp, "zeta")(n + 1, x0.astype("float64")).astype(x0.dtype, copy=False)


def _polygamma_rule(ct: Tensor, x0: Tensor, n: int) -> Tensor:
    return ct * _polygamma(x0, n=n + 1)  # type: ignore[no-any-return]


_polygamma: OpFunction = row("polygamma", _polygamma_kernel, promote="float", saves=("x0",), batch=elementwise,
                             vjp=(_polygamma_rule,), jvp=(_polygamma_rule,), refuses=NO_COMPLEX)


def polygamma(n: int, x: Tensor) -> Tensor:
    """The n-th derivative of digamma.  Source: torch.polygamma."""
    if n < 0:
        msg = "polygamma(n, x) does not support negative n."
        raise UsageError(msg)
    return _polygamma(x, n=n) if n else digamma(x)  # type: ignore[no-any-return]


def polygamma_of(x: Tensor, n: int) -> Tensor:
    """The n-th derivative of digamma.  Source: torch.Tensor.polygamma."""
    return polygamma(n, x)


def mvlgamma(x: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of p dimensions.  Source: torch.mvlgamma."""
    if p < 1:
        msg = "p has to be greater than or equal to 1"
        raise UsageError(msg)
    shifts = arange(p, dtype=x.dtype if x.dtype.is_floating_point else None, device=x.device) / 2
    return sum_over(lgamma(unsqueeze(x, -1) - shifts), -1) + p * (p - 1) / 4 * math.log(math.pi)


# ---------------------------------------------------------------- Bessel functions of imaginary argument
def _i1_slope(x0: Tensor, out: Tensor) -> Any:
    """i0 - i1 / x, and its limit at 0."""
    return choose(x0 == 0, 0.5, i0(x0) - out / choose(x0 == 0, 1, x0))


def _i1e_slope(x0: Tensor, out: Tensor) -> Any:
    return choose(x0 == 0, 0.5, i0e(x0) - out * (sgn(x0) + reciprocal(choose(x0 == 0, 1, x0))))


i0: OpFunction = _function("i0", "i0", lambda x0: i1(x0))
i0e: OpFunction = _of_both("special_i0e", "i0e", lambda x0, out: i1e(x0) - sgn(x0) * out)
i1: OpFunction = _of_both("special_i1", "i1", _i1_slope)
i1e: OpFunction = _of_both("special_i1e", "i1e", _i1e_slope)

# ---------------------------------------------------------------- the normal distribution, and its error function
_ROOT_2, _ROOT_PI = math.sqrt(2), math.sqrt(math.pi)

erfinv: OpFunction = _function("erfinv", "erfinv", lambda x0: 0.5 * _ROOT_PI * exp(square(erfinv(x0))))
erfcx: OpFunction = _of_both("special_erfcx", "erfcx", lambda x0, out: 2 * x0 * out - 2 / _ROOT_PI)
log_ndtr = _of_both("special_log_ndtr", "log_ndtr", lambda x0, out: _ROOT_2 / _ROOT_PI * reciprocal(erfcx(x0 * -_ROOT_2 / 2)))
ndtri = _function("special_ndtri", "ndtri", lambda out: _ROOT_2 * _ROOT_PI * exp(0.5 * square(out)))


def ndtr(x: Tensor) -> Tensor:
    """The normal distribution function.  Source: torch.special.ndtr."""
    return 0.5 * erfc(x * (-_ROOT_2 / 2))  # type: ignore[no-any-return]


# ---------------------------------------------------------------- entropy
def _entr_kernel(xp: Any, x0: Array) -> Array:
    out = xp.asarray(-x0 * xp.log(x0))
    out[x0 == 0] = 0
    out[x0 < 0] = -math.inf
    return out


entr = pointwise("special_entr", _entr_kernel, lambda x0: -log(x0) - 1, refuses=NO_COMPLEX)


# ---------------------------------------------------------------- sinc
def _sinc_kernel(xp: Any, x0: Array, order: int) -> Array:
    """The order-th derivative of sin(pi x) / (pi x), by its recurrence, and by its series where that would cancel."""
    if order == 0:
        return xp.sinc(x0).astype(x0.dtype, copy=False)
    y = xp.asarray(math.pi * x0)
    near = xp.abs(y) < 0.5 + 0.5 * order
    out, small, far = xp.empty_like(y), y[near], y[~near]
    found = xp.sin(far) / far
    for n in range(1, order + 1):
        found = (xp.sin(far + n * math.pi / 2) - n * found) / far
    out[~near] = found
    first, series, square = (order + 1) // 2, xp.zeros_like(small), small * small
    for k in reversed(range(first, first + 10 + order)):  # of the terms (-1)^k y^p / (p! (2k + 1)), p = 2k - order
        series *= square
        series += (-1) ** k / (math.factorial(2 * k - order) * (2 * k + 1))
    out[near] = series * small if order % 2 else series
    return out * math.pi ** order


_sinc: OpFunction = row("sinc", _sinc_kernel, promote="float", saves=("x0",), batch=elementwise,
                        vjp=(lambda ct, x0, order: ct * conj(_sinc(x0, order=order + 1)),),
                        jvp=(lambda dx, x0, order: dx * _sinc(x0, order=order + 1),))


def sinc(x: Tensor) -> Tensor:
    """sin(pi x) / (pi x), and 1 at 0.  Source: torch.sinc."""
    return _sinc(x, order=0)  # type: ignore[no-any-return]
