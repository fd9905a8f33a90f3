"""Cholesky factors of Hermitian, positive definite matrices, and systems that they solve.

A matrix moves as a whole, and stays Hermitian, though one triangle of it is read: so do its derivatives.  A factor that is
given is read in one triangle, and only that has a derivative.

Upstream: linalg_cholesky_ex, cholesky_solve, cholesky_inverse in derivatives.yaml; cholesky_backward in FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import looking
from ..row import OpFunction, row
from .batching import leading
from .elimination import dagger, inverted, solved
from .factors import solve_triangle
from .linalg import adjoint, matmul
from .shape import tril, triu

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


# ---------------------------------------------------------------- A = L Lᴴ
def half(x: Tensor) -> Tensor:
    """The lower triangle, half of the diagonal."""
    return (tril(x) + tril(x, -1)) * 0.5


def _cholesky_vjp(ct: Tensor, out: Tensor, upper: bool) -> Tensor:
    """Of a Hermitian A, which moves as a whole."""
    low, g = (adjoint(out), adjoint(ct)) if upper else (out, ct)
    inner = tril(matmul(adjoint(low), g)) * 0.5
    inner = solve_triangle(adjoint(low), inner + adjoint(tril(inner, -1)), upper=True, left=True, unit=False)
    return solve_triangle(low, inner, upper=False, left=False, unit=False)  # type: ignore[no-any-return]


def _cholesky_jvp(dx: Tensor, out: Tensor, upper: bool) -> Tensor:
    low = adjoint(out) if upper else out
    inner = solve_triangle(low, dx, upper=False, left=True, unit=False)
    moved = matmul(low, half(solve_triangle(adjoint(low), inner, upper=True, left=False, unit=False)))
    return adjoint(moved) if upper else moved


def _cholesky_kernel(xp: Any, x0: Array, upper: bool) -> Array:
    with looking(xp):
        low = xp.linalg.cholesky(dagger(x0) if upper else x0)
    return dagger(low) if upper else low


cholesky_row: OpFunction = row("linalg_cholesky_ex", _cholesky_kernel, saves=("out",), batch=leading,
                               vjp=(_cholesky_vjp,), jvp=(_cholesky_jvp,))


def _product(xp: Any, x: Array, upper: bool) -> Array:
    """The matrix that a triangle is the Cholesky factor of."""
    x = xp.triu(x) if upper else xp.tril(x)
    return xp.matmul(dagger(x), x) if upper else xp.matmul(x, dagger(x))


def _through_product(pair: Tensor, x: Tensor, upper: bool) -> Tensor:
    """The cotangent of a triangle from that of its product, `pair` and its adjoint."""
    pair = pair + adjoint(pair)
    return triu(matmul(triu(x), pair)) if upper else tril(matmul(pair, tril(x)))


def _product_moved(dx: Tensor, x: Tensor, upper: bool) -> Tensor:
    moved = matmul(adjoint(triu(dx)), triu(x)) if upper else matmul(tril(dx), adjoint(tril(x)))
    return moved + adjoint(moved)


cholesky_solve_row: OpFunction = row(
    "cholesky_solve", lambda xp, x0, x1, upper: solved(xp, _product(xp, x1, upper), x0), saves=("x1", "x0", "out"),
    batch=leading,
    vjp=(lambda ct, x1, upper: cholesky_solve_row(ct, x1, upper=upper),
         lambda ct, x0, x1, out, upper: -_through_product(
             matmul(cholesky_solve_row(ct, x1, upper=upper), adjoint(out)), x1, upper)),
    jvp=(lambda dx, x1, upper: cholesky_solve_row(dx, x1, upper=upper),
         lambda dx, x1, out, upper: -cholesky_solve_row(matmul(_product_moved(dx, x1, upper), out), x1, upper=upper)))

cholesky_inverse_row: OpFunction = row(
    "cholesky_inverse", lambda xp, x0, upper: inverted(xp, _product(xp, x0, upper)), saves=("x0", "out"), batch=leading,
    vjp=(lambda ct, x0, out, upper: -_through_product(matmul(out, matmul(ct, out)), x0, upper),),
    jvp=(lambda dx, x0, out, upper: -matmul(out, matmul(_product_moved(dx, x0, upper), out)),))
