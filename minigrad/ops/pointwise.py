"""Rows that work on each element alone: arithmetic, powers, then functions of one number.  Those of three are in triples.py.

Public functions whose arguments need no arranging are the rows themselves.  What a row saves, and in which order, is
what derivatives.yaml says.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..dtypes import BOOL, COMPLEX, FLOAT
from ..errors import UsageError
from ..op import ANY_BOOL
from ..row import OpFunction, row
from ..tensor import Tensor
from . import special
from .batching import elementwise, same_bdim
from .choice import NO_BOOL_OR_COMPLEX, NO_COMPLEX, ONLY_FLOAT, choose, result_type
from .creation import full_like, zeros_like

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array


def conj(x: Any) -> Any:
    """The complex conjugate; a real tensor or number itself.  Source: torch.conj."""
    if isinstance(x, Tensor):
        return _conj(x) if x.kind.dtype.is_complex else x
    return x.conjugate()


def pointwise(name: str, kernel: Any, derivative: Callable[[Tensor], Tensor], **options: Any) -> OpFunction:
    """A row of one input; `derivative` names its parameter x0 or out, and that is what is saved."""
    def jvp_x0(dx: Tensor, x0: Tensor) -> Tensor:
        return dx * derivative(x0)

    def jvp_out(dx: Tensor, out: Tensor) -> Tensor:
        return dx * derivative(out)

    def vjp_x0(ct: Tensor, x0: Tensor) -> Any:
        return ct * conj(derivative(x0))

    def vjp_out(ct: Tensor, out: Tensor) -> Any:
        return ct * conj(derivative(out))

    vjp_x0.on_reals, vjp_out.on_reals = jvp_x0, jvp_out  # type: ignore[attr-defined]

    of_out = derivative.__code__.co_varnames[0] == "out"
    return row(name, kernel, arity=1, promote="float", saves=("out",) if of_out else ("x0",), batch=elementwise,
               vjp=(vjp_out if of_out else vjp_x0,), jvp=(jvp_out if of_out else jvp_x0,), elementwise=True, **options)


def quotient(name: str, kernel: Any, divisor: Callable[[Tensor], Tensor], **options: Any) -> OpFunction:
    """A row of one number whose derivative is 1 / divisor(x0): dividing is one pass, multiplying by a reciprocal two."""
    return row(name, kernel, arity=1, promote="float", saves=("x0",), batch=elementwise, elementwise=True,
               vjp=(lambda ct, x0: ct / conj(divisor(x0)),), jvp=(lambda dx, x0: dx / divisor(x0),), **options)


# ---------------------------------------------------------------- arithmetic
_INVERT = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."

add_row = row("add", "add", arity=2, promote="arith", batch=elementwise, elementwise=True,
              vjp=(lambda ct: ct, lambda ct: ct), jvp=(lambda dx: dx, lambda dx: dx))

sub_row = row("sub", "subtract", arity=2, promote="arith", batch=elementwise, elementwise=True,
              vjp=(lambda ct: ct, lambda ct: -ct), jvp=(lambda dx: dx, lambda dx: -dx), refuses={
                  BOOL: "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
                        "`logical_xor()` operator instead.",
                  ANY_BOOL: "Subtraction, the `-` operator, with a bool tensor is not supported. " + _INVERT})


def _product_to(ct: Tensor, x: Any, shape: tuple[int, ...]) -> Tensor:
    from .linalg import product_to  # noqa: PLC0415  its rows need the arithmetic

    return product_to(ct, conj(x), shape)


mul = row("mul", "multiply", arity=2, promote="arith", saves=("x1", "x0"), batch=elementwise, elementwise=True,
          vjp=(lambda ct, x1: ct * conj(x1), lambda ct, x0: ct * conj(x0)), summed=_product_to,
          jvp=(lambda dx, x1: dx * x1, lambda dx, x0: dx * x0))

true_div: OpFunction = row(
    "div", "true_divide", arity=2, promote="float", saves=("x1", "x0"), batch=elementwise, elementwise=True,
    vjp=(lambda ct, x1: ct / conj(x1), lambda ct, x0, x1: -ct * conj(true_div(x0, x1) / x1)),  # 2 / x1 is another op
    jvp=(lambda dx, x1: dx / x1, lambda dx, x1, out: -dx * (out / x1)))

neg = row("neg", "negative", arity=1, promote="arith", batch=elementwise, elementwise=True,
          vjp=(lambda ct: -ct,), jvp="linear", refuses={
              BOOL: "Negation, the `-` operator, on a bool tensor is not supported. " + _INVERT})

_conj = row("conj", lambda xp, x0: x0.conjugate(), arity=1, promote="arith", batch=elementwise, elementwise=True,
            vjp=(lambda ct: conj(ct),), jvp="linear")
conj.op = _conj.op  # type: ignore[attr-defined]
conj.on_reals = lambda x: x  # type: ignore[attr-defined]  # in rules that are read as kernels


def add(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """x + alpha * y.  Source: torch.add."""
    return add_row(x, y if alpha == 1 else _scaled(x, y, alpha))  # type: ignore[no-any-return]


def sub(x: Any, y: Any, *, alpha: Any = 1) -> Tensor:
    """x - alpha * y.  Source: torch.sub."""
    return sub_row(x, y if alpha == 1 else _scaled(x, y, alpha))  # type: ignore[no-any-return]


def _scaled(x: Any, y: Any, alpha: Any) -> Any:
    common = result_type(x, y)
    if isinstance(alpha, float) and common.category < FLOAT:
        msg = "For integral input tensors, argument alpha must not be a floating point number."
        raise UsageError(msg)
    return (y.to(common) * alpha).to(common) if isinstance(y, Tensor) else y * alpha


def _floor_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    _refuse_zero(xp, x0, x1)
    return xp.floor_divide(x0, x1)


def _trunc_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    _refuse_zero(xp, x0, x1)
    if xp.result_type(x0, x1).kind == "f":
        return xp.trunc(xp.true_divide(x0, x1))
    floor = xp.floor_divide(x0, x1)
    return floor + ((floor < 0) & (floor * x1 != x0))


def _refuse_zero(xp: Any, x0: Array, x1: Array) -> None:
    if xp.result_type(x0, x1).kind in "iu" and not xp.all(x1):
        msg = ("ZeroDivisionError: among the integers to divide by there is a 0, and an integer has no inf or nan. Divide "
               "floats, or put another number there with where()")
        raise ValueError(msg)


def _rounded_div(kernel: Any) -> OpFunction:
    return row("div", kernel, promote="arith", saves=("x1", "x0"), batch=elementwise, node="DivBackward2",
               vjp=(lambda ct, x1: zeros_like(ct), lambda ct, x0, x1: zeros_like(ct)),
               jvp=(lambda dx: zeros_like(dx), lambda dx: zeros_like(dx)), refuses=NO_BOOL_OR_COMPLEX)


_ROUNDED = {"floor": _rounded_div(_floor_kernel), "trunc": _rounded_div(_trunc_kernel)}


def div(x: Any, y: Any, *, rounding_mode: str | None = None) -> Tensor:
    """x / y, or its integral part towards minus infinity ("floor") or zero ("trunc").  Source: torch.div."""
    if rounding_mode is None:
        return true_div(x, y)  # type: ignore[no-any-return]
    if rounding_mode not in _ROUNDED:
        msg = f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        raise UsageError(msg)
    return _ROUNDED[rounding_mode](x, y)  # type: ignore[no-any-return]


def _floor_divide_rule(ct: Tensor) -> Tensor:
    msg = "derivative for aten::floor_divide is not implemented: use div(x, y, rounding_mode='floor'), whose is zero."
    raise UsageError(msg)


floor_divide = row("floor_divide", _floor_kernel, promote="arith", batch=elementwise, node="torch::autograd::NotImplemented",
                   vjp=(_floor_divide_rule, _floor_divide_rule), jvp=(_floor_divide_rule, _floor_divide_rule),
                   refuses=NO_BOOL_OR_COMPLEX)


def _remainder_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    _refuse_zero(xp, x0, x1)
    return xp.remainder(x0, x1)


def _fmod_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    _refuse_zero(xp, x0, x1)
    return xp.fmod(x0, x1)


remainder = row("remainder", _remainder_kernel, promote="arith", saves=("x1", "x0"), batch=elementwise,
                refuses=NO_BOOL_OR_COMPLEX, doc="x - y * floor(x / y).  Source: torch.remainder.",
                vjp=(lambda ct: ct, lambda ct, x0, x1: -ct * div(x0, x1, rounding_mode="floor")),
                jvp=(lambda dx: dx, lambda dx, x0, x1: -dx * div(x0, x1, rounding_mode="floor")))

fmod = row("fmod", _fmod_kernel, promote="arith", saves=("x1", "x0"), batch=elementwise,
           refuses=NO_BOOL_OR_COMPLEX, doc="x - y * trunc(x / y).  Source: torch.fmod.",
           vjp=(lambda ct: ct, lambda ct, x0, x1: -ct * div(x0, x1, rounding_mode="trunc")),
           jvp=(lambda dx: dx, lambda dx, x0, x1: -dx * div(x0, x1, rounding_mode="trunc")))


# ---------------------------------------------------------------- powers
def _number_slope(x0: Tensor, x1: Any) -> Tensor:
    return x1 * _pow_number(x0, x1 - 1)  # type: ignore[no-any-return]


# x ** 1 is a copy, which a graph needs and arrays do not
_number_slope.on_reals = lambda x, n: x * n if n == 2 else n * _pow_number(x, n - 1)  # type: ignore[attr-defined]


def _base_slope(x0: Any, x1: Tensor) -> Tensor:
    return x1 * pow(x0, x1 - 1)


def _exponent_slope(x0: Any, x1: Tensor, out: Tensor) -> Tensor:
    """out * log(x0), and 0 for 0 to a power that is not negative."""
    if isinstance(x0, (int, float)) and x0 > 0:
        return out * math.log(x0)
    base = x0.to(out.dtype) if isinstance(x0, Tensor) else full_like(out, x0)
    grows = ((imag(x1) == 0) & (real(x1) >= 0)) if x1.dtype.is_complex else x1 >= 0
    return choose((base == 0) & grows, 0, out * log(base))  # type: ignore[no-any-return]


def _pow_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    """Of ints, a negative exponent gives what is left of 1 / x0 ** -x1 without a fraction."""
    kind = (x1 if hasattr(x1, "dtype") else x0).dtype
    if kind.kind in "fc":
        return x0 * x0 * x0 if not hasattr(x1, "dtype") and x1 == 3 else x0 ** x1  # as torch does; a power takes far longer
    whole = xp.power(x0, xp.maximum(x1, 0))
    return xp.where(x1 < 0, (x0 == 1) + (x0 == -1) * (1 - 2 * (x1 % 2)), whole).astype(kind)


_pow_number: OpFunction = row(
    "pow", _pow_kernel, arity=2, promote="arith", saves=("x0", "x1"), batch=elementwise, elementwise=True,
    vjp=(lambda ct, x0, x1: ct * conj(_number_slope(x0, x1)) if x1 else zeros_like(ct), None),
    jvp=(lambda dx, x0, x1: dx * _number_slope(x0, x1) if x1 else zeros_like(dx), None))

_pow = row("pow", _pow_kernel, promote="arith", saves=("x1", "x0", "out"), batch=elementwise, node="PowBackward1",
           vjp=(lambda ct, x0, x1: choose(x1 == 0, 0, ct * conj(_base_slope(x0, x1))),
                lambda ct, x0, x1, out: ct * conj(_exponent_slope(x0, x1, out))),
           jvp=(lambda dx, x0, x1: choose(x1 == 0, 0, dx * _base_slope(x0, x1)),
                lambda dx, x0, x1, out: dx * _exponent_slope(x0, x1, out)),
           refuses={BOOL: ""})


def pow(x: Any, exponent: Any) -> Tensor:  # noqa: A001  torch's name
    """x to a power; either may be a number.  Raises UsageError for an int to a negative number.  Source: torch.pow."""
    if isinstance(exponent, Tensor):
        return _pow(x, exponent)  # type: ignore[no-any-return]
    if type(exponent) is int and exponent < 0 and x.dtype.category < FLOAT:
        msg = "Integers to negative integer powers are not allowed."
        raise UsageError(msg)
    return _pow_number(x, exponent)  # type: ignore[no-any-return]


def square(x: Tensor) -> Tensor:
    """x * x.  Source: torch.square."""
    return _pow_number(x, 2)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- smooth functions of one number
_LN2, _LN10, _TWO_BY_ROOT_PI = math.log(2), math.log(10), 2 / math.sqrt(math.pi)

sin = pointwise("sin", "sin", lambda x0: cos(x0))
cos: OpFunction = pointwise("cos", "cos", lambda x0: -sin(x0))
tan = pointwise("tan", "tan", lambda out: 1 + square(out))
asin = quotient("asin", "arcsin", lambda x0: sqrt(1 - x0 * x0))
acos = quotient("acos", "arccos", lambda x0: -sqrt(1 - x0 * x0))
atan = quotient("atan", "arctan", lambda x0: x0 * x0 + 1)
sinh = pointwise("sinh", "sinh", lambda x0: cosh(x0))
cosh: OpFunction = pointwise("cosh", "cosh", lambda x0: sinh(x0))
tanh = row("tanh", "tanh", arity=1, promote="float", saves=("out",), batch=elementwise, elementwise=True,
           vjp=(lambda ct, out: tanh_backward(ct, out),), jvp=(lambda dx, out: tanh_backward(dx, conj(out)),))
asinh = quotient("asinh", "arcsinh", lambda x0: sqrt(x0 * x0 + 1))
acosh = quotient("acosh", "arccosh", lambda x0: _acosh_divisor(x0))
atanh = quotient("atanh", "arctanh", lambda x0: 1 - x0 * x0)

exp = pointwise("exp", "exp", lambda out: out)
exp2 = pointwise("exp2", lambda xp, x0: xp.exp(x0 * _LN2) if x0.dtype.kind == "c" else xp.exp2(x0),
                 lambda out: out * _LN2)
expm1 = pointwise("expm1", "expm1", lambda out: out + 1)
log = quotient("log", "log", lambda x0: x0)
log2 = quotient("log2", "log2", lambda x0: x0 * _LN2)
log10 = quotient("log10", "log10", lambda x0: x0 * _LN10)
log1p = quotient("log1p", "log1p", lambda x0: x0 + 1, node="Log1PBackward0")

sqrt: OpFunction = row("sqrt", "sqrt", arity=1, promote="float", saves=("out",), batch=elementwise, elementwise=True,
           vjp=(lambda ct, out: ct / conj(out + out),), jvp=(lambda dx, out: dx / (out + out),))
rsqrt: OpFunction = pointwise("rsqrt", lambda xp, x0: 1 / xp.sqrt(x0), lambda out: -0.5 * (out * out * out))
reciprocal: OpFunction = pointwise(  # numpy's takes twice as long
    "reciprocal", lambda xp, x0: xp.reciprocal(x0) if x0.dtype.kind == "c" else 1 / x0, lambda out: -(out * out))
erf = pointwise("erf", special.erf, lambda x0: _TWO_BY_ROOT_PI * exp(-square(x0)), refuses=NO_COMPLEX)
erfc = pointwise("erfc", special.erfc, lambda x0: -_TWO_BY_ROOT_PI * exp(-square(x0)), refuses=NO_COMPLEX)

tanh_backward: OpFunction = row(
    "tanh_backward", lambda xp, x0, x1: x0 * (1 - x1 * x1).conj(), arity=2, promote="arith", saves=("x0", "x1"),
    batch=elementwise, elementwise=True,
    vjp=(lambda ct, x1: tanh_backward(ct, conj(x1)), lambda ct, x0, x1: conj(ct) * (-2 * conj(x1) * x0)),
    jvp=(lambda dx, x1: tanh_backward(dx, x1), lambda dx, x0, x1: x0 * conj(-2 * x1 * dx)),
    doc="The cotangent of tanh's input, from that of its output, and the output.")


def _acosh_divisor(x0: Tensor) -> Any:
    return sqrt(x0 + 1) * sqrt(x0 - 1) if x0.dtype.is_complex else sqrt(x0 * x0 - 1)


_acosh_divisor.on_reals = lambda x0: sqrt(x0 * x0 - 1)  # type: ignore[attr-defined]
_acosh_divisor.on_complexes = lambda x0: sqrt(x0 + 1) * sqrt(x0 - 1)  # type: ignore[attr-defined]


# ---------------------------------------------------------------- steps, magnitude and parts of a number
def _step(name: str, kernel: Any, refuses: dict[int, str] = NO_COMPLEX) -> OpFunction:
    """A row that is constant between its jumps."""
    return row(name, kernel, arity=1, promote="arith", batch=elementwise, refuses=refuses,
               vjp=(lambda ct: zeros_like(ct),), jvp=(lambda dx: zeros_like(dx),))


def _rounding(name: str) -> OpFunction:
    return _step(name, lambda xp, x0: getattr(xp, name)(x0) if x0.dtype.kind == "f" else x0.copy(), {
        BOOL: "", COMPLEX: f"{name} is not supported for complex inputs"})


def _sign_kernel(xp: Any, x0: Array) -> Array:
    """0 for nan too."""
    if x0.dtype.kind != "f":
        return (x0 != 0).astype(x0.dtype) if x0.dtype.kind in "bu" else xp.sign(x0)
    out = xp.asarray(xp.sign(x0))
    out[xp.isnan(x0)] = 0
    return out


def _sgn_kernel(xp: Any, x0: Array) -> Array:
    if x0.dtype.kind != "c":
        return _sign_kernel(xp, x0)
    out, size = xp.empty_like(x0), xp.asarray(xp.abs(x0))
    size[size == 0] = 1
    xp.true_divide(x0.real, size, out=out.real)  # dividing complex numbers takes five times as long
    xp.true_divide(x0.imag, size, out=out.imag)
    return out


def _sgn_rule(g: Tensor, x0: Tensor, out: Tensor) -> Tensor:
    return _sgn_slope(g, x0, out) if x0.dtype.is_complex else zeros_like(g)


def _sgn_slope(g: Tensor, x0: Tensor, out: Tensor) -> Tensor:
    size = abs(x0)
    return choose(size == 0, 0, (g - out * out * conj(g)) / (2 * size))  # type: ignore[no-any-return]


_sgn_rule.on_complexes = _sgn_slope  # type: ignore[attr-defined]


floor = _rounding("floor")
ceil = _rounding("ceil")
trunc = _rounding("trunc")
_round = row("round", lambda xp, x0, decimals: xp.round(x0, decimals), promote="arith", batch=elementwise,
             vjp=(lambda ct: zeros_like(ct),), jvp=(lambda dx: zeros_like(dx),), refuses=NO_BOOL_OR_COMPLEX)
frac = row("frac", lambda xp, x0: x0 - xp.trunc(x0), arity=1, promote="arith", batch=elementwise,
           vjp=(lambda ct: ct,), jvp=(lambda dx: dx,), refuses=ONLY_FLOAT, doc="x - trunc(x).  Source: torch.frac.")
sign = _step("sign", _sign_kernel, {
    COMPLEX: "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."})
sgn = row("sgn", _sgn_kernel, promote="arith", saves=("x0", "out"), batch=elementwise, elementwise=True,
          vjp=(_sgn_rule,), jvp=(_sgn_rule,), doc="x / abs(x), and 0 for 0.  Source: torch.sgn.")


def _abs_backward_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    size = xp.asarray(xp.abs(x1))
    size[size == 0] = 1
    return x1 * (x0 / size)


abs_backward: OpFunction = row(
    "abs_backward", _abs_backward_kernel, saves=("x0", "x1"), fits=True, batch=elementwise,
    vjp=(lambda ct, x1: real(conj(ct) * sgn(x1)), lambda ct, x0, x1: x0 * _sgn_slope(ct, x1, sgn(x1))),
    jvp=(lambda dx, x1: abs_backward(dx, x1), lambda dx, x0, x1: x0 * _sgn_slope(dx, x1, sgn(x1))),
    doc="The real x0 times the sgn of the complex x1, without an array of signs.")


def _abs_rule(ct: Tensor, x0: Tensor) -> Any:
    return abs_backward(ct, x0) if x0.dtype.is_complex else ct * sgn(x0)


_abs_rule.on_reals = lambda ct, x0: ct * sgn(x0)  # type: ignore[attr-defined]

abs = row("abs", "absolute", arity=1, promote="arith", saves=("x0",), batch=elementwise, elementwise=True,  # noqa: A001
          refuses={BOOL: ""},
          vjp=(_abs_rule,), jvp=(lambda dx, x0: real(conj(dx) * sgn(x0)),))
_real = row("real", lambda xp, x0: x0.real, view=True, fits=True, batch=same_bdim, vjp=(lambda ct: ct,), jvp="linear")
_imag = row("imag", lambda xp, x0: x0.imag, view=True, fits=True, batch=same_bdim, vjp=(lambda ct: ct * 1j,), jvp="linear")


def round(x: Tensor, *, decimals: int = 0) -> Tensor:  # noqa: A001  torch's name
    """The nearest number with so many decimals, halves to the even one.  Source: torch.round."""
    return _round(x, decimals=decimals)  # type: ignore[no-any-return]


def real(x: Tensor) -> Tensor:
    """The real part, a view; a real tensor itself.  Source: torch.real."""
    return _real(x) if x.dtype.is_complex else x


def imag(x: Tensor) -> Tensor:
    """The imaginary part, a view.  Raises UsageError for a real tensor.  Source: torch.imag."""
    if not x.dtype.is_complex:
        msg = "imag is not implemented for tensors with non-complex dtypes."
        raise UsageError(msg)
    return _imag(x)  # type: ignore[no-any-return]


# torch's other names
absolute, divide, multiply, negative, subtract, true_divide = abs, div, mul, neg, sub, true_div
