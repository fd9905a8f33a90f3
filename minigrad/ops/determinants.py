"""Determinants, from the LU factors of a matrix, and their logarithms.

    d det(A) = det(A) tr(A⁻¹ dA)

Upstream: _linalg_det, _linalg_slogdet in derivatives.yaml; linalg_det_backward, slogdet_backward in FunctionsManual.cpp.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from ..row import OpFunction, row
from .batching import leading
from .choice import choose, where
from .creation import zeros_like
from .factors import add_eye, constant_factor, solve_factored
from .pointwise import conj, imag, log, real
from .reduction import sum as sum_over
from .shape import diagonal, unsqueeze
from .solving import squares

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


class SignLog(NamedTuple):
    """What slogdet returns.  Source: torch.return_types.slogdet."""

    sign: Tensor
    logabsdet: Tensor


def _diagonal(xp: Any, x0: Array) -> Array:
    return xp.diagonal(x0, axis1=-2, axis2=-1)


def _swaps(xp: Any, x1: Array, like: Array) -> Array:
    """1 for an even number of exchanged rows, else -1."""
    return (1 - 2 * (xp.sum(x1 != xp.arange(1, x1.shape[-1] + 1), axis=-1) % 2)).astype(like.dtype)


def _of_factors(xp: Any, x0: Array, x1: Array) -> Array:
    return xp.prod(_diagonal(xp, x0), axis=-1) * _swaps(xp, x1, x0)


def _regular_kernel(xp: Any, x0: Array) -> Array:
    tiny = xp.finfo(x0.dtype).eps
    return xp.where(xp.eye(x0.shape[-1], dtype=bool) & (x0 == 0), x0.dtype.type(tiny), x0)


_regular: OpFunction = row("regular_factor", _regular_kernel, vjp=None, jvp=None, batch=leading)
_det_of: OpFunction = row("det_of_factor", _of_factors, vjp=None, jvp=None, batch=leading)


def _each(x: Tensor) -> Tensor:
    """A number for each matrix, as it broadcasts to them."""
    return unsqueeze(unsqueeze(x, -1), -1)


def _trace(x: Tensor) -> Tensor:
    return sum_over(diagonal(x, 0, -2, -1), -1)


def _adjugate(x1: Tensor, x2: Tensor, out: Tensor) -> tuple[Tensor, Tensor]:
    """(det, factors) of A; of a singular A those of a matrix nearby, whose adjugate is much the same."""
    regular = _regular(x1)
    return choose(out == 0, _det_of(regular, x2), out), regular


def _det_vjp(ct: Tensor, x0: Tensor, x1: Tensor, x2: Tensor, out: Tensor) -> Any:
    det, regular = _adjugate(x1, x2, out)
    return solve_factored(x0, regular, x2, _each(ct * conj(det)) * add_eye(zeros_like(x0)), adjoint=True)


def _det_jvp(dx: Tensor, x0: Tensor, x1: Tensor, x2: Tensor, out: Tensor) -> Any:
    det, regular = _adjugate(x1, x2, out)
    return det * _trace(solve_factored(x0, regular, x2, dx))


_det: OpFunction = row(
    "_linalg_det", lambda xp, x0, x1, x2: _of_factors(xp, x1, x2), saves=("x0", "x1", "x2", "out"), batch=leading,
    node="LinalgDetBackward0", vjp=(_det_vjp, None, None), jvp=(_det_jvp, None, None))


def _slog_kernel(xp: Any, x0: Array, x1: Array, x2: Array) -> tuple[Array, Array]:
    d = _diagonal(xp, x1)
    size = xp.abs(d)
    return xp.prod(d / xp.where(size == 0, 1, size), axis=-1) * _swaps(xp, x2, x0), xp.sum(xp.log(size), axis=-1)


def _slog_vjp(ct: list[Any], x0: Tensor, x1: Tensor, x2: Tensor, out0: Tensor) -> list[Any]:
    """The number w of <w, tr(A⁻¹ dA)>, whose real part moves the logarithm and whose imaginary part turns the sign."""
    g_sign, g_log = ct
    w = zeros_like(out0) if g_log is None else g_log.to(out0.dtype)
    if g_sign is not None and out0.dtype.is_complex:
        w = w - imag(conj(g_sign) * out0) * 1j
    return [solve_factored(x0, x1, x2, _each(w) * add_eye(zeros_like(x0)), adjoint=True), None, None]


def _slog_jvp(dx: list[Any], x0: Tensor, x1: Tensor, x2: Tensor, out0: Tensor) -> tuple[Any, Any]:
    t = _trace(solve_factored(x0, x1, x2, dx[0]))
    return (imag(t) * 1j * out0, real(t)) if out0.dtype.is_complex else (zeros_like(out0), t)


_slogdet: OpFunction = row("_linalg_slogdet", _slog_kernel, outs=2, saves=("x0", "x1", "x2", "out0"), batch=leading,
                           node="LinalgSlogdetBackward0", vjp=_slog_vjp, jvp=_slog_jvp)


def det(x: Tensor) -> Tensor:
    """The determinant of square matrices.  Source: torch.linalg.det."""
    return _det(squares("linalg.det", x), *constant_factor(x))  # type: ignore[no-any-return]


def slogdet(x: Tensor) -> SignLog:
    """The sign of the determinant, and the logarithm of its absolute value.  Source: torch.linalg.slogdet."""
    return SignLog(*_slogdet(squares("linalg.slogdet", x), *constant_factor(x)))


def logdet(x: Tensor) -> Any:
    """The logarithm of the determinant; nan of a negative one.  Source: torch.logdet."""
    sign, logabsdet = slogdet(squares("logdet", x))
    return log(sign) + logabsdet if sign.dtype.is_complex else where(sign == -1.0, nan, logabsdet)
