"""A = P L U of arrays of matrices, by partial pivoting: L below the diagonal and U on and above it, in one array.

On the host LAPACK's own where scipy is installed, which is much faster; else by halves of columns, so that most of the work is
products of matrices.  cupyx.scipy has it for one matrix only.

Source: S. Toledo, Locality of reference in LU decomposition with partial pivoting, SIAM J. Matrix Anal. Appl. 18 (1997);
LAPACK's getrf.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ..backend import lapack, looking

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array

_FEW, _SMALL = 16, 64


# ---------------------------------------------------------------- factors
def eliminated(xp: Any, x: Array) -> tuple[Array, Array]:
    """The factors, and the row, counted from 1, that each step exchanges with its own."""
    a = xp.array(x, order="C").reshape(prod(x.shape[:-2]), *x.shape[-2:])
    pivots = xp.zeros((a.shape[0], min(a.shape[1:])), "int32")
    getrf = lapack(xp, "getrf", a)
    if getrf is None:
        eliminate(xp, a, pivots)
    elif a.size:
        for i in range(len(a)):
            a[i], pivots[i], _ = getrf(a[i])
    return a.reshape(x.shape), (pivots + 1).reshape(*x.shape[:-2], pivots.shape[1])


def eliminate(xp: Any, a: Array, pivots: Array) -> Array:
    """Matrices become their factors, for as many columns as there are pivots; the order that rows come to is returned."""
    steps = pivots.shape[1]
    if steps <= _FEW:
        return _step_by_step(xp, a, pivots)
    half = steps // 2
    left, right = a[:, :, :half], a[:, :, half:]
    order = eliminate(xp, left, pivots[:, :half])
    right[...] = xp.take_along_axis(right, order[:, :, None], 1)
    unit = xp.tril(left[:, :half], -1) + xp.eye(half, dtype=a.dtype)
    right[:, :half] = by_halves(xp, unit, right[:, :half], upper=False)
    right[:, half:] -= xp.matmul(left[:, half:], right[:, :half])
    rest = eliminate(xp, right[:, half:], pivots[:, half:])
    pivots[:, half:] += half
    left[:, half:] = xp.take_along_axis(left[:, half:], rest[:, :, None], 1)
    order[:, half:] = xp.take_along_axis(order[:, half:], rest, 1)
    return order


def _step_by_step(xp: Any, a: Array, pivots: Array) -> Array:
    each = xp.arange(a.shape[0])
    for k in range(pivots.shape[1]):
        pivots[:, k] = xp.argmax(_size(xp, a[:, k:, k]), axis=1) + k
        _exchange(a, each, k, pivots[:, k])
        pivot = a[:, k, k, None]
        a[:, k + 1:, k] /= xp.where(pivot == 0, 1, pivot)
        a[:, k + 1:, k + 1:] -= a[:, k + 1:, k, None] * a[:, k, None, k + 1:]
    return exchanged(xp, pivots, a.shape[1])


def _size(xp: Any, x: Array) -> Array:
    """What the largest pivot is the largest by, as LAPACK has it."""
    return xp.abs(x.real) + xp.abs(x.imag) if x.dtype.kind == "c" else xp.abs(x)


def _exchange(rows: Array, each: Array, k: int, other: Array) -> None:
    """Row k of each matrix, or element k of each vector, and another one, exchanged."""
    row = rows[:, k].copy()
    rows[:, k] = rows[each, other]
    rows[each, other] = row


def exchanged(xp: Any, pivots: Array, m: int) -> Array:
    """The order that m rows come to lie in, after these exchanges, which are counted from 0."""
    each = xp.arange(pivots.shape[0])
    order = xp.broadcast_to(xp.arange(m), (pivots.shape[0], m)).copy()
    for k in range(pivots.shape[1]):
        _exchange(order, each, k, pivots[:, k])
    return order


def permuted(xp: Any, pivots: Array, m: int) -> Array:
    """The order that m rows come to lie in, after the exchanges that `eliminated` tells of."""
    batch = pivots.shape[:-1]
    return exchanged(xp, pivots.reshape(prod(batch), pivots.shape[-1]) - 1, m).reshape(*batch, m)


def lower(xp: Any, lu: Array) -> Array:
    """L, with ones on its diagonal."""
    m, k = lu.shape[-2], min(lu.shape[-2:])
    return xp.tril(lu[..., :k], -1) + xp.eye(m, k, dtype=lu.dtype)


def upper(xp: Any, lu: Array) -> Array:
    """U."""
    return xp.triu(lu[..., :min(lu.shape[-2:]), :])


# ---------------------------------------------------------------- solutions
def solved(xp: Any, a: Array, b: Array) -> Array:
    """The solution of a x = b."""
    with looking(xp):
        return xp.linalg.solve(a, b)


def inverted(xp: Any, x0: Array) -> Array:
    """The inverse."""
    with looking(xp):
        return xp.linalg.inv(x0)


def by_halves(xp: Any, a: Array, b: Array, upper: bool) -> Array:
    """The solution of a x = b, where a is a triangle: one half of the unknowns, then the other; small ones as any matrix."""
    n = a.shape[-1]
    if n <= _SMALL:
        return solved(xp, a, b)
    first, second = (slice(n // 2, n), slice(n // 2)) if upper else (slice(n // 2), slice(n // 2, n))
    x = by_halves(xp, a[..., first, first], b[..., first, :], upper)
    y = by_halves(xp, a[..., second, second], b[..., second, :] - xp.matmul(a[..., second, first], x), upper)
    return xp.concatenate([y, x] if upper else [x, y], -2)


def dagger(x: Array) -> Array:
    """The adjoint of arrays of matrices."""
    return x.swapaxes(-1, -2).conj() if x.dtype.kind == "c" else x.swapaxes(-1, -2)


def substituted(xp: Any, lu: Array, pivots: Array, b: Array, *, adjoint: bool) -> Array:
    """The solution of P L U x = b, or of its adjoint."""
    getrs = lapack(xp, "getrs", lu)
    if getrs is not None and b.size:
        return _one_by_one(xp, getrs, lu, pivots, b, 2 if adjoint else 0)
    order = permuted(xp, pivots, lu.shape[-1])
    low, up = lower(xp, lu), upper(xp, lu)
    if adjoint:
        x = by_halves(xp, dagger(low), by_halves(xp, dagger(up), b, upper=False), upper=True)
        return xp.take_along_axis(x, xp.argsort(order, -1)[..., None], -2)
    return by_halves(xp, up, by_halves(xp, low, xp.take_along_axis(b, order[..., None], -2), upper=False), upper=True)


def _one_by_one(xp: Any, getrs: Callable[..., Any], lu: Array, pivots: Array, b: Array, trans: int) -> Array:
    """The solution by LAPACK, a matrix at a time; ValueError for a singular one, which LAPACK divides by zero."""
    if not xp.diagonal(lu, axis1=-2, axis2=-1).all():
        msg = "Singular matrix"
        raise ValueError(msg)
    x = xp.array(b, order="C")
    many = prod(b.shape[:-2])
    each = x.reshape(many, *b.shape[-2:])
    for i, factors, exchanges in zip(range(many), lu.reshape(many, *lu.shape[-2:]), pivots.reshape(many, -1) - 1, strict=True):
        each[i], _ = getrs(factors, exchanges, each[i], trans)
    return x
