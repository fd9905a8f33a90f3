"""Systems of linear equations, and the triangular factors that solve them.

A factorization of A is a constant to `_solved`, whose derivatives are those of A X = B: so the factors serve every order, and
no derivative goes through them.  The factors that a program asks for have rows of their own.

Upstream: _linalg_solve_ex, linalg_inv_ex, linalg_lu_factor_ex, linalg_lu, linalg_lu_solve, linalg_solve_triangular in
derivatives.yaml; FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..row import OpFunction, row
from .batching import leading
from .elimination import by_halves, dagger, eliminated, inverted, lower, permuted, substituted, upper
from .joining import cat
from .linalg import adjoint, matmul
from .reduction import total_of
from .shape import basic_index, squeeze, tril, triu, unsqueeze

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


# ---------------------------------------------------------------- P L U
def matrix_of(xp: Any, order: Array, dtype: Any) -> Array:
    """The permutation matrix P of P L U."""
    n = order.shape[-1]
    return (xp.arange(n)[:, None] == order[..., None, :]).astype(dtype)


def _lu_kernel(xp: Any, x0: Array) -> tuple[Array, Array, Array]:
    lu, pivots = eliminated(xp, x0)
    return matrix_of(xp, permuted(xp, pivots, x0.shape[-2]), x0.dtype), lower(xp, lu), upper(xp, lu)


def corner(x: Tensor, m: int, n: int) -> Tensor:
    """The first m rows and n columns."""
    return basic_index(x, (Ellipsis, slice(m), slice(n)))


def _below(x: Tensor, m: int) -> Tensor:
    return basic_index(x, (Ellipsis, slice(m, None), slice(None)))


def columns_from(x: Tensor, n: int) -> Tensor:
    """The columns from the n-th on."""
    return basic_index(x, (Ellipsis, slice(n, None)))


def lu_pulled(g_lower: Any, g_upper: Any, p: Tensor, low: Tensor, up: Tensor) -> Tensor:
    """The cotangent of A = P L U; beyond the square corner, A is L2 U below it, or L U2 beside it."""
    k = low.shape[-1]
    below, beside = low.shape[-2] > k, up.shape[-1] > k
    low1, up1 = corner(low, k, k), corner(up, k, k)
    inner = total_of(None if g_lower is None else tril(matmul(adjoint(low1), corner(g_lower, k, k)), -1),
                     None if g_upper is None else triu(matmul(corner(g_upper, k, k), adjoint(up1))))
    extra = []
    if below and g_lower is not None:
        inner = inner - triu(matmul(adjoint(_below(low, k)), _below(g_lower, k)))
        extra = [solve_triangle(adjoint(up1), _below(g_lower, k), upper=False, left=False, unit=False)]
    if beside and g_upper is not None:
        inner = inner - tril(matmul(columns_from(g_upper, k), adjoint(columns_from(up, k))), -1)
        extra = [solve_triangle(adjoint(low1), columns_from(g_upper, k), upper=True, left=True, unit=True)]
    inner = solve_triangle(adjoint(low1), inner, upper=True, left=True, unit=True)
    inner = solve_triangle(adjoint(up1), inner, upper=False, left=False, unit=False)
    if not extra and (below or beside):
        extra = [(_below(low, k) if below else columns_from(up, k)) * 0]
    return matmul(p, cat([inner, *extra], -2 if below else -1) if extra else inner)


def lu_pushed(da: Tensor, p: Tensor, low: Tensor, up: Tensor) -> tuple[Tensor, Tensor]:
    """The tangents of L and U."""
    k = low.shape[-1]
    da = matmul(adjoint(p), da)
    low1, up1 = corner(low, k, k), corner(up, k, k)
    inner = solve_triangle(low1, corner(da, k, k), upper=False, left=True, unit=True)
    inner = solve_triangle(up1, inner, upper=True, left=False, unit=False)
    left, right = tril(inner, -1), triu(inner)
    d_lower, d_upper = matmul(low1, left), matmul(right, up1)
    if low.shape[-2] > k:
        rest = solve_triangle(up1, _below(da, k), upper=True, left=False, unit=False) - matmul(_below(low, k), right)
        d_lower = cat([d_lower, rest], -2)
    if up.shape[-1] > k:
        rest = solve_triangle(low1, columns_from(da, k), upper=False, left=True, unit=True) - matmul(left, columns_from(up, k))
        d_upper = cat([d_upper, rest], -1)
    return d_lower, d_upper


def unpacked(lu: Tensor, pivots: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """P, L and U of what lu_factor gives."""
    m, k = lu.shape[-2], min(lu.shape[-2:])
    return order_matrix(pivots, lu, m=m), unit_lower(corner(lu, m, k)), triu(corner(lu, k, lu.shape[-1]))


def packed(low: Any, up: Any) -> Any:
    """L and U as lu_factor gives them; the diagonal of L is no number of it."""
    if low is not None and up is not None:
        m, n, k = low.shape[-2], up.shape[-1], low.shape[-1]
        low, up = tril(low, -1), triu(up)
        if n > k:
            low = cat([low, columns_from(up, k) * 0], -1)
        if m > k:
            up = cat([up, _below(low, k) * 0], -2)
    return total_of(low, up)


def unit_lower(x: Tensor) -> Tensor:
    """What is below the diagonal, and ones on it."""
    return add_eye(tril(x, -1))  # type: ignore[no-any-return]


def _eye_kernel(xp: Any, x0: Array) -> Array:
    return x0 + xp.eye(*x0.shape[-2:], dtype=x0.dtype)


add_eye: OpFunction = row("add_eye", _eye_kernel, vjp=(lambda ct: ct,), jvp=(lambda dx: dx,), batch=leading,
                           node="AddBackward0")

order_matrix: OpFunction = row(
    "permutation", lambda xp, x0, x1, m: matrix_of(xp, permuted(xp, x0, m), x1.dtype), vjp=None, jvp=None, batch=leading)


def _factor_vjp(ct: list[Any], out0: Tensor, out1: Tensor) -> list[Tensor]:
    p, low, up = unpacked(out0, out1)
    m, k, n = low.shape[-2], low.shape[-1], up.shape[-1]
    return [lu_pulled(tril(corner(ct[0], m, k), -1), triu(corner(ct[0], k, n)), p, low, up)]


def _factor_jvp(dx: list[Any], out0: Tensor, out1: Tensor) -> tuple[Any, None]:
    return packed(*lu_pushed(dx[0], *unpacked(out0, out1))), None


factor: OpFunction = row("linalg_lu_factor_ex", eliminated, outs=2, saves=("out0", "out1"), batch=leading,
                         vjp=_factor_vjp, jvp=_factor_jvp)
constant_factor: OpFunction = row("linalg_lu_factor", eliminated, outs=2, batch=leading, vjp=None, jvp=None)

lu_row: OpFunction = row(
    "linalg_lu", _lu_kernel, outs=3, saves=("out1", "out0", "out2"), batch=leading,
    vjp=lambda ct, out0, out1, out2: [lu_pulled(ct[1], ct[2], out0, out1, out2)],
    jvp=lambda dx, out0, out1, out2: (None, *lu_pushed(dx[0], out0, out1, out2)))


# ---------------------------------------------------------------- triangles
def _triangle(x: Any, upper: bool, unit: bool) -> Any:
    return triu(x, int(unit)) if upper else tril(x, -int(unit))


def _triangle_kernel(xp: Any, x0: Array, x1: Array, upper: bool, left: bool, unit: bool) -> Array:
    a = xp.triu(x0, int(unit)) if upper else xp.tril(x0, -int(unit))
    if unit:
        a = a + xp.eye(a.shape[-1], dtype=a.dtype)
    if left:
        return by_halves(xp, a, x1, upper)
    return by_halves(xp, a.swapaxes(-1, -2), x1.swapaxes(-1, -2), not upper).swapaxes(-1, -2)


def _triangle_vjp(ct: Tensor, x0: Tensor, out: Tensor, needs: tuple[bool, ...], upper: bool, left: bool,
                  unit: bool) -> list[Any]:
    g = solve_triangle(adjoint(x0), ct, upper=not upper, left=left, unit=unit)
    moved = -_triangle(matmul(g, adjoint(out)) if left else matmul(adjoint(out), g), upper, unit) if needs[0] else None
    return [moved, g]


def _triangle_moved(dx: Tensor, x0: Tensor, out: Tensor, upper: bool, left: bool, unit: bool) -> Any:
    dx = _triangle(dx, upper, unit)
    return -solve_triangle(x0, matmul(dx, out) if left else matmul(out, dx), upper=upper, left=left, unit=unit)


solve_triangle: OpFunction = row(
    "linalg_solve_triangular", _triangle_kernel, saves=("x0", "out"), batch=leading,
    vjp=_triangle_vjp,
    jvp=(_triangle_moved, lambda dx, x0, upper, left, unit: solve_triangle(x0, dx, upper=upper, left=left, unit=unit)))


# ---------------------------------------------------------------- A X = B, with the factors of A at hand
def _solved_kernel(xp: Any, x0: Array, x1: Array, x2: Array, x3: Array, adjoint: bool, vector: bool) -> Array:
    if vector:
        return substituted(xp, x1, x2, x3[..., None], adjoint=adjoint)[..., 0]
    return substituted(xp, x1, x2, x3, adjoint=adjoint)


def _solved_vjp(ct: Tensor, x0: Tensor, x1: Tensor, x2: Tensor, out: Tensor, needs: tuple[bool, ...], adjoint: bool,
                vector: bool) -> list[Any]:
    g = _solved(x0, x1, x2, ct, adjoint=not adjoint, vector=vector)
    if not needs[0]:
        return [None, None, None, g]
    a, b = (out, g) if adjoint else (g, out)
    return [-matmul(_columns(a, vector), _adjoint(_columns(b, vector))), None, None, g]


def _matrix_moved(dx: Tensor, x0: Tensor, x1: Tensor, x2: Tensor, out: Tensor, adjoint: bool, vector: bool) -> Tensor:
    moved = matmul(_or_adjoint(dx, adjoint), _columns(out, vector))
    out = -_solved(x0, x1, x2, moved, adjoint=adjoint, vector=False)
    return squeeze(out, -1) if vector else out


def _columns(x: Tensor, vector: bool) -> Tensor:
    return unsqueeze(x, -1) if vector else x


def _or_adjoint(x: Tensor, is_adjoint: bool) -> Tensor:
    return adjoint(x) if is_adjoint else x


_adjoint = adjoint

_solved: OpFunction = row(
    "_linalg_solve_ex", _solved_kernel, saves=("x0", "x1", "x2", "out"), batch=leading, node="LinalgSolveExBackward0",
    vjp=_solved_vjp,
    jvp=(_matrix_moved, None, None,
         lambda dx, x0, x1, x2, adjoint, vector: _solved(x0, x1, x2, dx, adjoint=adjoint, vector=vector)))


def solve_factored(a: Tensor, lu: Tensor, pivots: Tensor, b: Tensor, *, adjoint: bool = False, vector: bool = False) -> Tensor:
    """The solution of a x = b, where lu and pivots are the factors of a, and no more than that to derivatives.

    vector: b holds a vector for each matrix.
    """
    return _solved(a, lu, pivots, b, adjoint=adjoint, vector=vector)  # type: ignore[no-any-return]


inverse: OpFunction = row("linalg_inv_ex", inverted, saves=("out",), batch=leading,
                          vjp=(lambda ct, out: -matmul(adjoint(out), matmul(ct, adjoint(out))),),
                          jvp=(lambda dx, out: -matmul(out, matmul(dx, out)),))


# ---------------------------------------------------------------- P L U X = B, where the factors themselves are differentiated
def _lu_solve_kernel(xp: Any, x0: Array, x1: Array, x2: Array, left: bool, adjoint: bool) -> Array:
    if left:
        return substituted(xp, x0, x1, x2, adjoint=adjoint)
    return dagger(substituted(xp, x0, x1, dagger(x2), adjoint=not adjoint))


def _lu_solve_pulled(ct: Tensor, x0: Tensor, x1: Tensor, left: bool, adjoint: bool) -> Any:
    return lu_solve_row(x0, x1, ct, left=left, adjoint=not adjoint)


def _lu_solve_factors(ct: Tensor, x0: Tensor, x1: Tensor, out: Tensor, left: bool, adjoint: bool) -> Tensor:
    """Through x in L U x = Pᵀ b, or through x in Uᴴ Lᴴ Pᵀ x = b; from the right, through the adjoint of either."""
    g = _lu_solve_pulled(ct, x0, x1, left, adjoint)
    if not left:
        g, out, adjoint = _adjoint(g), _adjoint(out), not adjoint
    p, low, up = unpacked(x0, x1)
    a, b = (out, matmul(_adjoint(p), g)) if not adjoint else (g, matmul(_adjoint(p), out))
    # both ways: Lᴴ Pᵀ y and U x, with x the one that U and y the one that P stands beside
    pair = matmul(b, _adjoint(matmul(up, a)))
    return -(tril(pair, -1) + triu(matmul(matmul(_adjoint(low), b), _adjoint(a))))


def _lu_solve_moved(dx: Tensor, x0: Tensor, x1: Tensor, out: Tensor, left: bool, adjoint: bool) -> Any:
    p, low, up = unpacked(x0, x1)
    moved = matmul(p, matmul(tril(dx, -1), up) + matmul(low, triu(dx)))
    moved = _or_adjoint(moved, adjoint)
    return -lu_solve_row(x0, x1, matmul(moved, out) if left else matmul(out, moved), left=left, adjoint=adjoint)


lu_solve_row: OpFunction = row(
    "linalg_lu_solve", _lu_solve_kernel, saves=("x0", "x1", "out"), batch=leading,
    vjp=(_lu_solve_factors, None, _lu_solve_pulled),
    jvp=(_lu_solve_moved, None,
         lambda dx, x0, x1, left, adjoint: lu_solve_row(x0, x1, dx, left=left, adjoint=adjoint)))
