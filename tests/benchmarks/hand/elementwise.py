"""Ops on each element alone: arithmetic, functions of one and of two numbers, activations, choices, complex numbers."""

from __future__ import annotations

from math import log, pi, sqrt

import numpy as np
from scipy import special as sp

import minigrad as mg
import minigrad.nn.functional as F
from tests.benchmarks.hand.arrays import CG, INTEGERS, MASK, C, D, G, P, R, S, U, X, Y, Z

T = mg.from_numpy


# ---------------------------------------------------------------- what is more than an expression
def sign(x):
    """Of nan it is 0, in torch."""
    y = np.sign(x)
    y[np.isnan(x)] = 0
    return y


def tanh(x, g):
    y = np.tanh(x)
    return y, g * (1 - y * y)


def sigmoid(x, g):
    y = 1 / (1 + np.exp(-x))
    return y, g * y * (1 - y)


def maximum(x, y, g):
    half = np.where(x == y, g / 2, g)
    return np.maximum(x, y), np.where(x >= y, half, 0), np.where(y >= x, half, 0)


def minimum(x, y, g):
    half = np.where(x == y, g / 2, g)
    return np.minimum(x, y), np.where(x <= y, half, 0), np.where(y <= x, half, 0)


def gelu(x, g):
    """As of silu, the input is kept, and no tanh of it."""
    c = sqrt(2 / pi)
    y = 0.5 * x * (1 + np.tanh(c * (x + 0.044715 * x * x * x)))
    t = np.tanh(c * (x + 0.044715 * x * x * x))
    return y, g * (0.5 * (1 + t) + 0.5 * c * x * (1 - t * t) * (1 + 3 * 0.044715 * x * x))


def silu(x, g):
    """The input is kept, and no sigmoid of it."""
    y = x / (1 + np.exp(-x))
    s = 1 / (1 + np.exp(-x))
    return y, g * s * (1 + x * (1 - s))


def mish(x, g):
    y = x * np.tanh(np.logaddexp(x, 0))
    t = np.tanh(np.logaddexp(x, 0))
    return y, g * (t + x * (1 - t * t) / (1 + np.exp(-x)))


def elu(x, g):
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0))), g * np.where(x > 0, 1, np.exp(np.minimum(x, 0)))


def softplus(x, g):
    return np.where(x > 20, x, np.logaddexp(x, 0)), np.where(x > 20, g, g / (1 + np.exp(-x)))


def log_sigmoid(x, g):
    e = np.exp(-np.abs(x))
    return np.minimum(x, 0) - np.log1p(e), g * np.where(x < 0, 1, e) / (1 + e)


def hardswish(x, g):
    return x * np.clip(x + 3, 0, 6) / 6, g * np.where(x <= -3, 0, np.where(x < 3, x / 3 + 0.5, 1))


def glu(x, g):
    a, b = x[:, :500], x[:, 500:]
    s = 1 / (1 + np.exp(-b))
    y, s = a * s, 1 / (1 + np.exp(-b))
    out = np.empty_like(x)
    out[:, :500] = g * s
    out[:, 500:] = g * a * s * (1 - s)
    return y, out


def log_sum(x, y, g):
    return np.logaddexp(x, y), g / (1 + np.exp(y - x)), g / (1 + np.exp(x - y))


def log_sum_2(x, y, g):
    return np.logaddexp2(x, y), g / (1 + np.exp2(y - x)), g / (1 + np.exp2(x - y))


def hypot(x, y, g):
    h = np.hypot(x, y)
    return h, g * x / h, g * y / h


def atan2(x, y, g):
    each = g / (x * x + y * y)
    return np.arctan2(x, y), y * each, -x * each


def power(x, y, g):
    """0 to a positive power has derivatives, 0 as that of the exponent."""
    out = x ** y
    return out, np.where(y == 0, 0, g * y * x ** (y - 1)), g * np.where((x == 0) & (y >= 0), 0, out * np.log(x))


def lerp(x, y, w, g):
    d = y - x
    return np.where(np.abs(w) < 0.5, x + w * d, y - d * (1 - w)), g * (1 - w), g * w, g * (y - x)


def divided(x, y, g):
    return x / y, g / y, -g * x / (y * y)


def added_quotient(x, y, z, g):
    return x + 0.5 * y / z, g, g * 0.5 / z, -g * 0.5 * y / (z * z)


def fmax(x, y, g):
    """A number wins over nan."""
    first = (x >= y) | np.isnan(y)
    return np.fmax(x, y), np.where(first, g, 0), np.where(first, 0, g)


def fmin(x, y, g):
    first = (x <= y) | np.isnan(y)
    return np.fmin(x, y), np.where(first, g, 0), np.where(first, 0, g)


def copysign(x, y, g):
    out = np.copysign(x, y)
    return out, np.where(x == 0, 0, g * np.sign(x) * np.sign(out)), np.zeros_like(y)


def times_log(x, y):
    """0 where x is 0, unless y is nan."""
    out = x * np.log(y)
    out[(x == 0) & ~np.isnan(y)] = 0
    return out


def xlogy(x, y, g):
    return times_log(x, y), np.where((x == 0) & (y <= 0), 0, times_log(g, y)), g * x / y


def xlog1py(x, y, g):
    def times_log1p(x):
        out = x * np.log1p(y)
        out[(x == 0) & ~np.isnan(y)] = 0
        return out
    return times_log1p(x), np.where((x == 0) & (y <= -1), 0, times_log1p(g)), g * x / (y + 1)


def sinc(x, g):
    z = pi * x
    return np.sinc(x), g * np.where(z == 0, 0, pi * (np.cos(z) - np.sin(z) / z) / z)


def frexp(x, g):
    mantissa, exponent = np.frexp(x)
    return mantissa, g / np.exp2(exponent.astype(float))


def logit(x, g):
    return np.log(x / (1 - x)), np.where((x >= 0) & (x <= 1), g / (x * (1 - x)), np.nan)


def entr(x, g):
    return -x * np.log(x), g * (-np.log(x) - 1)


def i0e(x, g):
    y = sp.i0e(x)
    return y, g * (sp.i1e(x) - sign(x) * y)


def i1(x, g):
    y = sp.i1(x)
    return y, g * (sp.i0(x) - y / x)


def i1e(x, g):
    y = sp.i1e(x)
    return y, g * (sp.i0e(x) - y * (np.sign(x) + 1 / x))


def complex_of(x, y, g):
    out = np.empty(x.shape, complex)
    out.real, out.imag = x, y
    return out, g.real.copy(), g.imag.copy()


def polar(r, a, g):
    out = np.empty(r.shape, complex)
    out.real, out.imag = r * np.cos(a), r * np.sin(a)
    turned = g.conj() * out
    return out, turned.real / np.abs(out), -turned.imag


def not_zero(size):
    """The derivative at 0 is 0."""
    size[size == 0] = 1
    return size


def complex_abs(x, g):
    return np.abs(x), x * (g / not_zero(np.abs(x)))


def sgn(x, g):
    y = x / not_zero(np.abs(x))
    size = np.abs(x)
    return y, np.where(size == 0, 0, (g - y * y * g.conj()) / (2 * size))


def angle(x, g):
    return np.angle(x), x * 1j * (g / not_zero(x.real * x.real + x.imag * x.imag))


# ---------------------------------------------------------------- name -> (op, arguments, cotangent, by hand)
ARITHMETIC = {
    "add": (mg.add, (X, Y), G, lambda x, y, g: (x + y, g, g)),
    "sub": (mg.sub, (X, Y), G, lambda x, y, g: (x - y, g, -g)),
    "mul": (mg.mul, (X, Y), G, lambda x, y, g: (x * y, g * y, g * x)),
    "mul, broadcast": (mg.mul, (X, R), G, lambda x, y, g: (x * y, g * y, (g * x).sum(0))),
    "div": (mg.div, (X, P), G, divided),
    "div(floor)": (lambda x, y: mg.div(x, y, rounding_mode="floor"), (X, P), G,
                   lambda x, y, g: (np.floor_divide(x, y), np.zeros_like(g), np.zeros_like(g))),
    "div(trunc)": (lambda x, y: mg.div(x, y, rounding_mode="trunc"), (X, P), G,
                   lambda x, y, g: (np.trunc(x / y), np.zeros_like(g), np.zeros_like(g))),
    "floor_divide": (mg.floor_divide, (X, P), None, np.floor_divide),
    "remainder": (mg.remainder, (X, P), G, lambda x, y, g: (np.remainder(x, y), g, -g * np.floor_divide(x, y))),
    "fmod": (mg.fmod, (X, P), G, lambda x, y, g: (np.fmod(x, y), g, -g * np.trunc(x / y))),
    "neg": (mg.neg, (X,), G, lambda x, g: (-x, -g)),
    "lerp": (mg.lerp, (X, Y, U), G, lerp),
    "addcmul": (lambda x, y, z: mg.addcmul(x, y, z, value=0.5), (X, Y, Z), G,
                lambda x, y, z, g: (x + 0.5 * y * z, g, g * 0.5 * z, g * 0.5 * y)),
    "addcdiv": (lambda x, y, z: mg.addcdiv(x, y, z, value=0.5), (X, Y, P), G, added_quotient),
    "pow(2)": (lambda x: x ** 2, (X,), G, lambda x, g: (x ** 2, 2 * g * x)),
    "pow(3)": (lambda x: x ** 3, (X,), G, lambda x, g: (x ** 3, 3 * g * x ** 2)),
    "pow(tensor)": (mg.pow, (P, Y), G, power),
    "atan2": (mg.atan2, (X, Y), G, atan2),
    "hypot": (mg.hypot, (X, Y), G, hypot),
    "logaddexp": (mg.logaddexp, (X, Y), G, log_sum),
    "logaddexp2": (mg.logaddexp2, (X, Y), G, log_sum_2),
    "xlogy": (mg.xlogy, (X, P), G, xlogy),
    "special.xlog1py": (mg.special.xlog1py, (X, P), G, xlog1py),
    "copysign": (mg.copysign, (X, Y), G, copysign),
    "nextafter": (mg.nextafter, (X, Y), G, lambda x, y, g: (np.nextafter(x, y), np.where(x == y, 0, g), np.where(x == y, g, 0))),
    "maximum": (mg.maximum, (X, Y), G, maximum),
    "minimum": (mg.minimum, (X, Y), G, minimum),
    "fmax": (mg.fmax, (X, Y), G, fmax),
    "fmin": (mg.fmin, (X, Y), G, fmin),
}

FUNCTIONS = {
    "sin": (mg.sin, (X,), G, lambda x, g: (np.sin(x), g * np.cos(x))),
    "cos": (mg.cos, (X,), G, lambda x, g: (np.cos(x), -g * np.sin(x))),
    "tan": (mg.tan, (S,), G, lambda x, g: ((y := np.tan(x)), g * (1 + y * y))),
    "asin": (mg.asin, (S,), G, lambda x, g: (np.arcsin(x), g / np.sqrt(1 - x * x))),
    "acos": (mg.acos, (S,), G, lambda x, g: (np.arccos(x), -g / np.sqrt(1 - x * x))),
    "atan": (mg.atan, (X,), G, lambda x, g: (np.arctan(x), g / (1 + x * x))),
    "sinh": (mg.sinh, (X,), G, lambda x, g: (np.sinh(x), g * np.cosh(x))),
    "cosh": (mg.cosh, (X,), G, lambda x, g: (np.cosh(x), g * np.sinh(x))),
    "tanh": (mg.tanh, (X,), G, tanh),
    "asinh": (mg.asinh, (X,), G, lambda x, g: (np.arcsinh(x), g / np.sqrt(x * x + 1))),
    "acosh": (mg.acosh, (P + 1,), G, lambda x, g: (np.arccosh(x), g / np.sqrt(x * x - 1))),
    "atanh": (mg.atanh, (S,), G, lambda x, g: (np.arctanh(x), g / (1 - x * x))),
    "exp": (mg.exp, (X,), G, lambda x, g: ((y := np.exp(x)), g * y)),
    "exp2": (mg.exp2, (X,), G, lambda x, g: ((y := np.exp2(x)), g * y * log(2))),
    "expm1": (mg.expm1, (X,), G, lambda x, g: ((y := np.expm1(x)), g * (y + 1))),
    "log": (mg.log, (P,), G, lambda x, g: (np.log(x), g / x)),
    "log2": (mg.log2, (P,), G, lambda x, g: (np.log2(x), g / (x * log(2)))),
    "log10": (mg.log10, (P,), G, lambda x, g: (np.log10(x), g / (x * log(10)))),
    "log1p": (mg.log1p, (P,), G, lambda x, g: (np.log1p(x), g / (x + 1))),
    "sqrt": (mg.sqrt, (P,), G, lambda x, g: ((y := np.sqrt(x)), g / (2 * y))),
    "rsqrt": (mg.rsqrt, (P,), G, lambda x, g: ((y := 1 / np.sqrt(x)), g * y * y * y * -0.5)),
    "reciprocal": (mg.reciprocal, (P,), G, lambda x, g: ((y := 1 / x), -g * y * y)),
    "erf": (mg.erf, (X,), G, lambda x, g: (sp.erf(x), g * np.exp(-x * x) * (2 / sqrt(pi)))),
    "erfc": (mg.erfc, (X,), G, lambda x, g: (sp.erfc(x), g * np.exp(-x * x) * (-2 / sqrt(pi)))),
    "erfinv": (mg.erfinv, (S,), G, lambda x, g: (sp.erfinv(x), g * np.exp(sp.erfinv(x) ** 2) * (sqrt(pi) / 2))),
    "lgamma": (mg.lgamma, (P,), G, lambda x, g: (sp.gammaln(x), g * sp.psi(x))),
    "digamma": (mg.digamma, (P,), G, lambda x, g: (sp.psi(x), g * sp.zeta(2, x))),
    "polygamma": (lambda x: mg.polygamma(1, x), (P,), G, lambda x, g: (sp.zeta(2, x), g * -2 * sp.zeta(3, x))),
    "i0": (mg.i0, (X,), G, lambda x, g: (sp.i0(x), g * sp.i1(x))),
    "special.i0e": (mg.special.i0e, (X,), G, i0e),
    "special.i1": (mg.special.i1, (X,), G, i1),
    "special.i1e": (mg.special.i1e, (X,), G, i1e),
    "special.erfcx": (mg.special.erfcx, (X,), G, lambda x, g: ((y := sp.erfcx(x)), g * (2 * x * y - 2 / sqrt(pi)))),
    "special.log_ndtr": (mg.special.log_ndtr, (X,), G,
                         lambda x, g: (sp.log_ndtr(x), g * sqrt(2 / pi) / sp.erfcx(x * -sqrt(0.5)))),
    "special.ndtri": (mg.special.ndtri, (U,), G, lambda x, g: ((y := sp.ndtri(x)), g * np.exp(0.5 * y * y) * sqrt(2 * pi))),
    "special.entr": (mg.special.entr, (P,), G, entr),
    "sinc": (mg.sinc, (X,), G, sinc),
    "abs": (mg.abs, (X,), G, lambda x, g: (np.abs(x), g * sign(x))),
    "sign": (mg.sign, (X,), G, lambda x, g: (sign(x), np.zeros_like(g))),
    "floor": (mg.floor, (X,), G, lambda x, g: (np.floor(x), np.zeros_like(g))),
    "ceil": (mg.ceil, (X,), G, lambda x, g: (np.ceil(x), np.zeros_like(g))),
    "trunc": (mg.trunc, (X,), G, lambda x, g: (np.trunc(x), np.zeros_like(g))),
    "round": (mg.round, (X,), G, lambda x, g: (np.round(x), np.zeros_like(g))),
    "frac": (mg.frac, (X,), G, lambda x, g: (x - np.trunc(x), g)),
    "frexp": (lambda x: mg.frexp(x)[0], (X,), G, frexp),
    "nan_to_num": (mg.nan_to_num, (X,), G, lambda x, g: (np.nan_to_num(x), g * np.isfinite(x))),
}

ACTIVATIONS = {
    "relu": (mg.relu, (X,), G, lambda x, g: ((y := np.maximum(x, 0)), np.where(y <= 0, 0, g))),
    "threshold": (lambda x: F.threshold(x, 0.1, 0.5), (X,), G,
                  lambda x, g: (np.where(x <= 0.1, 0.5, x), np.where(x <= 0.1, 0, g))),
    "leaky_relu": (F.leaky_relu, (X,), G, lambda x, g: (np.where(x > 0, x, 0.01 * x), np.where(x > 0, g, 0.01 * g))),
    "hardtanh": (F.hardtanh, (X,), G, lambda x, g: (np.clip(x, -1, 1), np.where((x > -1) & (x < 1), g, 0))),
    "elu": (F.elu, (X,), G, elu),
    "sigmoid": (mg.sigmoid, (X,), G, sigmoid),
    "logit": (mg.logit, (U,), G, logit),
    "silu": (F.silu, (X,), G, silu),
    "mish": (F.mish, (X,), G, mish),
    "gelu(tanh)": (lambda x: F.gelu(x, approximate="tanh"), (X,), G, gelu),
    "gelu": (F.gelu, (X,), G, lambda x, g: (0.5 * x * (1 + sp.erf(x * sqrt(0.5))), g * (
        0.5 * (1 + sp.erf(x * sqrt(0.5))) + x * np.exp(-0.5 * x * x) / sqrt(2 * pi)))),
    "softplus": (F.softplus, (X,), G, softplus),
    "logsigmoid": (F.logsigmoid, (X,), G, log_sigmoid),
    "hardsigmoid": (F.hardsigmoid, (X,), G, lambda x, g: (np.clip(x + 3, 0, 6) / 6, np.where((x > -3) & (x < 3), g / 6, 0))),
    "hardswish": (F.hardswish, (X,), G, hardswish),
    "hardshrink": (F.hardshrink, (X,), G, lambda x, g: (np.where(np.abs(x) <= 0.5, 0, x), np.where(np.abs(x) <= 0.5, 0, g))),
    "softshrink": (F.softshrink, (X,), G, lambda x, g: (x - np.clip(x, -0.5, 0.5), np.where(np.abs(x) <= 0.5, 0, g))),
    "glu": (lambda x: F.glu(x, 1), (X,), G[:, :500].copy(), glu),
    "prelu": (F.prelu, (X, np.full(1, 0.2)), G, lambda x, w, g: (
        np.where(x > 0, x, w * x), np.where(x > 0, g, w * g), (np.where(x > 0, 0, x) * g).sum(keepdims=True)[0])),
}

CHOICES = {
    "where": (lambda x, y: mg.where(T(MASK), x, y), (X, Y), G,
              lambda x, y, g: (np.where(MASK, x, y), np.where(MASK, g, 0), np.where(MASK, 0, g))),
    "masked_fill": (lambda x: mg.masked_fill(x, T(MASK), 0), (X,), G,
                    lambda x, g: (np.where(MASK, 0, x), np.where(MASK, 0, g))),
    "clamp": (lambda x: mg.clamp(x, -1, 1), (X,), G, lambda x, g: (np.clip(x, -1, 1), np.where((x >= -1) & (x <= 1), g, 0))),
    "clamp(min)": (lambda x: mg.clamp(x, min=0.1), (X,), G, lambda x, g: (np.maximum(x, 0.1), np.where(x >= 0.1, g, 0))),
    "clamp(max)": (lambda x: mg.clamp(x, max=0.1), (X,), G, lambda x, g: (np.minimum(x, 0.1), np.where(x <= 0.1, g, 0))),
}

COMPLEX = {
    "complex mul": (mg.mul, (C, D), CG, lambda x, y, g: (x * y, g * y.conj(), g * x.conj())),
    "complex div": (mg.div, (C, D), CG, lambda x, y, g: (x / y, g / y.conj(), -g * (x / (y * y)).conj())),
    "complex exp": (mg.exp, (C,), CG, lambda x, g: ((y := np.exp(x)), g * y.conj())),
    "complex sin": (mg.sin, (C,), CG, lambda x, g: (np.sin(x), g * np.cos(x).conj())),
    "complex abs": (mg.abs, (C,), G, complex_abs),
    "conj": (mg.conj, (C,), CG, lambda x, g: (x.conj(), g.conj())),
    "real": (mg.real, (C,), G, lambda x, g: (x.real.copy(), g.astype(complex))),
    "imag": (mg.imag, (C,), G, lambda x, g: (x.imag.copy(), g * 1j)),
    "complex": (mg.complex, (X, Y), CG, complex_of),
    "polar": (mg.polar, (P, X), CG, polar),
    "sgn": (mg.sgn, (C,), CG, sgn),
    "angle": (mg.angle, (C,), G, angle),
}

TRUTH = {  # forward alone: nothing to differentiate
    **{name: (getattr(mg, name), (X, Y), None, f) for name, f in (
        ("eq", np.equal), ("ne", np.not_equal), ("lt", np.less), ("le", np.less_equal), ("gt", np.greater),
        ("ge", np.greater_equal), ("logical_and", np.logical_and), ("logical_or", np.logical_or),
        ("logical_xor", np.logical_xor))},
    **{name: (getattr(mg, name), (X,), None, f) for name, f in (
        ("logical_not", np.logical_not), ("isnan", np.isnan), ("isinf", np.isinf), ("isfinite", np.isfinite),
        ("isposinf", np.isposinf), ("isneginf", np.isneginf), ("isreal", np.isreal), ("signbit", np.signbit))},
    **{name: (getattr(mg, name), (INTEGERS, INTEGERS[::-1].copy()), None, f) for name, f in (
        ("bitwise_and", np.bitwise_and), ("bitwise_or", np.bitwise_or), ("bitwise_xor", np.bitwise_xor), ("gcd", np.gcd),
        ("lcm", np.lcm))},
    "bitwise_not": (mg.bitwise_not, (INTEGERS,), None, np.bitwise_not),
    "heaviside": (mg.heaviside, (X, Y), None, np.heaviside),
    "bitwise_left_shift": (mg.bitwise_left_shift, (INTEGERS, INTEGERS % 8), None, np.left_shift),
    "bitwise_right_shift": (mg.bitwise_right_shift, (INTEGERS, INTEGERS % 8), None, np.right_shift),
}

OPS = {**ARITHMETIC, **FUNCTIONS, **ACTIVATIONS, **CHOICES, **COMPLEX, **TRUTH}
