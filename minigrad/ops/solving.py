"""Linear systems and factorizations under torch's names: arguments checked, then rows of factors.py.

Those that say how it went, instead of failing, are in infos.py.

Source: torch.linalg.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import FLOAT, int32
from ..errors import UsageError
from ..row import OpFunction, row
from . import factors
from .batching import same_bdim
from .creation import new_zeros, zeros
from .definite import cholesky_inverse_row, cholesky_row, cholesky_solve_row
from .extremes import argmax
from .factors import factor, inverse, lu_row, lu_solve_row, solve_triangle
from .layout import clone
from .linalg import broadcast_shapes, matmul
from .reduction import any as any_of
from .shape import detach, diagonal, movedim, reshape, transpose, unsqueeze, widened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backend import Array
    from ..tensor import Tensor


class Factors(NamedTuple):
    """What lu_factor returns.  Source: torch.return_types.linalg_lu_factor."""

    LU: Tensor
    pivots: Tensor


class PLU(NamedTuple):
    """What lu returns.  Source: torch.return_types.linalg_lu."""

    P: Tensor
    L: Tensor
    U: Tensor


# ---------------------------------------------------------------- checks
def matrices(name: str, x: Tensor) -> Tensor:
    """`x`, which is to hold matrices of floats or complex numbers."""
    if x.ndim < 2:
        msg = f"{name}: The input tensor A must have at least 2 dimensions."
        raise UsageError(msg)
    if x.dtype.category < FLOAT or x.dtype.itemsize < 4:
        msg = f"{name}: Expected a floating point or complex tensor as input. Got {x.dtype}"
        raise UsageError(msg)
    return x


def squares(name: str, x: Tensor) -> Tensor:
    """`x`, which is to hold square matrices of floats or complex numbers."""
    matrices(name, x)
    if x.shape[-1] != x.shape[-2]:
        msg = f"{name}: A must be batches of square matrices, but they are {x.shape[-2]} by {x.shape[-1]} matrices"
        raise UsageError(msg)
    return x


def _alike(name: str, a: Tensor, b: Tensor) -> None:
    if a.dtype is not b.dtype:
        msg = f"{name}: Expected A and B to have the same dtype, but found A of type {a.dtype} and B of type {b.dtype} instead"
        raise UsageError(msg)


def _fit(name: str, a: Tensor, b: Tensor, left: bool) -> None:
    matrices(name, b)
    if a.shape[-2] != b.shape[-2 if left else -1]:
        msg = (f"{name}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
               f"({a.shape[-2]}x{a.shape[-1]} and {b.shape[-2]}x{b.shape[-1]})")
        raise UsageError(msg)


def same_batches(a: Tensor, b: Tensor, cores: tuple[int, int] = (2, 2)) -> tuple[Tensor, Tensor]:
    """Both with the same leading dimensions."""
    i, j = a.ndim - cores[0], b.ndim - cores[1]
    batch = broadcast_shapes(a.shape[:i], b.shape[:j])
    return widened(a, *batch, *a.shape[i:]), widened(b, *batch, *b.shape[j:])


# ---------------------------------------------------------------- systems and inverses
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:  # noqa: N803  torch's names
    """X of A X = B (X A = B without left); B may be a vector for each matrix.

    Raises UsageError where a matrix is singular.  Source: torch.linalg.solve.
    """
    squares("linalg.solve", A)
    _alike("linalg.solve", A, B)
    if B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1]):
        a, b = same_batches(A, B, (2, 1))
        lu, pivots = factors.constant_factor(a)
        return factors.solve_factored(a, lu, pivots, b, vector=True)
    _fit("linalg.solve", A, B, left)
    if left:
        return _solve(A, B)
    return transpose(_solve(transpose(A, -2, -1), transpose(B, -2, -1)), -2, -1)


def _solve(a: Tensor, b: Tensor) -> Tensor:
    a, b = same_batches(a, b)
    lu, pivots = factors.constant_factor(a)
    return factors.solve_factored(a, lu, pivots, b)


def inv(A: Tensor) -> Tensor:  # noqa: N803
    """The inverses of square matrices.  Raises UsageError where one is singular.  Source: torch.linalg.inv."""
    return inverse(squares("linalg.inv", A))  # type: ignore[no-any-return]


def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:  # noqa: N803
    """X of A X = B (X A = B without left), reading one triangle of A, without its diagonal where that is one.

    Source: torch.linalg.solve_triangular.
    """
    squares("linalg.solve_triangular", A)
    _alike("linalg.solve_triangular", A, B)
    _fit("linalg.solve_triangular", A, B, left)
    a, b = same_batches(A, B)
    return solve_triangle(a, b, upper=upper, left=left, unit=unitriangular)  # type: ignore[no-any-return]


def tensorinv(A: Tensor, ind: int = 2) -> Tensor:  # noqa: N803
    """The inverse of a tensor as a map of its last dimensions to its first `ind`.  Source: torch.linalg.tensorinv."""
    if ind <= 0:
        msg = "Expected a strictly positive integer for 'ind'"
        raise UsageError(msg)
    first, last = A.shape[:ind], A.shape[ind:]
    if prod(first) != prod(last):
        msg = ("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
               f"{prod(last)} != {prod(first)}")
        raise UsageError(msg)
    return reshape(inv(reshape(A, prod(last), prod(first))), *last, *first)


def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None) -> Tensor:  # noqa: N803
    """X of tensordot(A, X, X.ndim) = B; dims are moved to the end of A before.  Source: torch.linalg.tensorsolve."""
    if dims is not None:
        A = movedim(A, tuple(dims), tuple(range(A.ndim - len(dims), A.ndim)))  # noqa: N806
    rest = A.shape[B.ndim:]
    if prod(rest) != prod(A.shape[:B.ndim]):
        msg = "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim])"
        raise UsageError(msg)
    return reshape(solve(reshape(A, B.numel(), prod(rest)), reshape(B, B.numel())), rest)


# ---------------------------------------------------------------- LU
def pivoted(name: str, pivot: bool) -> None:
    """Raise UsageError where no rows are to be exchanged."""
    if not pivot:
        msg = f"linalg.{name}: LU without pivoting is not implemented on the CPU"
        raise UsageError(msg)


def lu(A: Tensor, *, pivot: bool = True) -> PLU:  # noqa: N803
    """P, L and U of A = P L U.  Source: torch.linalg.lu."""
    pivoted("lu", pivot)
    return PLU(*lu_row(matrices("linalg.lu", A)))


def lu_factor(A: Tensor, *, pivot: bool = True) -> Factors:  # noqa: N803
    """L and U in one matrix, and which rows were exchanged, counted from 1.

    Raises UsageError where a matrix is singular.  Source: torch.linalg.lu_factor.
    """
    pivoted("lu_factor", pivot)
    lu, pivots = factor(matrices("linalg.lu_factor", A))
    no_failure(zero_pivot(lu), failure="torch.linalg.lu_factor: {}U[{k},{k}] is zero and using it on lu_solve would result in "
               "a division by zero. If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
               "linalg.lu_factor_ex(A, pivot)")
    return Factors(lu, pivots)


def _no_failure_kernel(xp: Any, x0: Array, failure: str) -> Array:
    if x0.any():
        where = int(xp.argwhere(x0.reshape(-1))[0, 0])
        raise ValueError(failure.format(f"(Batch element {where}): " if x0.ndim else "", k=int(x0.reshape(-1)[where])))
    return x0.copy()


no_failure: OpFunction = row("_linalg_check_errors", _no_failure_kernel, vjp=None, jvp=None, batch=same_bdim)


def zero_pivot(lu: Tensor) -> Tensor:
    """Of each U which number of its diagonal, from 1, is the first that is 0; 0 where none is."""
    return first(diagonal(detach(lu), 0, -2, -1) == 0)


def first(found: Tensor) -> Tensor:
    """Of each vector the place of its first true element, from 1; 0 where there is none."""
    if not found.shape[-1]:
        return new_zeros(found, found.shape[:-1], dtype=int32)
    return ((argmax(found.to(int32), -1) + 1) * any_of(found, -1)).to(int32)  # type: ignore[no-any-return]


def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> PLU:  # noqa: N803
    """P, L and U of what lu_factor returns; empty ones for what is not wanted.  Source: torch.lu_unpack."""
    if LU_pivots.dtype is not int32:
        msg = ("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype. Note: this function is "
               "intended to be used with the output produced by torch.linalg.lu_factor")
        raise UsageError(msg)
    empty = zeros(0, dtype=LU_data.dtype, device=LU_data.device)
    p, low, up = factors.unpacked(LU_data, LU_pivots)
    return PLU(p if unpack_pivots else empty, *((low, up) if unpack_data else (empty, empty)))


def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:  # noqa: N803
    """X of A X = B (X A = B without left), or of the adjoint of A, from its lu_factor.  Source: torch.linalg.lu_solve."""
    squares("torch.linalg.lu_solve", LU)
    _alike("torch.linalg.lu_solve", LU, B)
    _fit("torch.linalg.lu_solve", LU, B, left)
    if pivots.shape != LU.shape[:-1]:
        msg = ("linalg.lu_solve: Number of pivots per batch should be same as the dimension of the matrix, but pivots is "
               f"{list(pivots.shape)} and LU {list(LU.shape)}")
        raise UsageError(msg)
    lu, b = same_batches(LU, B)
    return lu_solve_row(lu, widened(pivots, lu.shape[:-1]), b, left=left, adjoint=adjoint)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- Cholesky
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:  # noqa: N803
    """L of A = L Lᴴ, which reads one triangle of A; its adjoint for upper.

    Raises UsageError where a matrix is not positive definite.  Source: torch.linalg.cholesky.
    """
    return cholesky_row(squares("linalg.cholesky", A), upper=upper)  # type: ignore[no-any-return]


def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:  # noqa: N803
    """X of L Lᴴ X = B, for upper of Lᴴ L X = B.  Source: torch.cholesky_solve."""
    squares("cholesky_solve", L)
    matrices("cholesky_solve", B)
    _alike("cholesky_solve", L, B)
    b, low = same_batches(B, L)
    return cholesky_solve_row(b, low, upper=upper)  # type: ignore[no-any-return]


def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:  # noqa: N803
    """The inverse of L Lᴴ, for upper of Lᴴ L.  Source: torch.cholesky_inverse."""
    return cholesky_inverse_row(squares("cholesky_inverse", L), upper=upper)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- products
def matrix_power(A: Tensor, n: int) -> Tensor:  # noqa: N803
    """A multiplied with itself n times; for a negative n its inverse.  Source: torch.linalg.matrix_power."""
    squares("linalg.matrix_power", A)
    if n == 0:
        return factors.add_eye(clone(A) * 0)  # type: ignore[no-any-return]
    x = inv(A) if n < 0 else A
    n = abs(n)
    if n == 1:
        return x if x is not A else clone(x)
    if n == 3:
        return matmul(matmul(x, x), x)
    out, power = None, x
    while True:
        if n % 2:
            out = power if out is None else matmul(out, power)
        n //= 2
        if not n:
            return out  # type: ignore[return-value]
        power = matmul(power, power)


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """The product of matrices, in the order that takes the fewest multiplications; the first and last may be vectors.

    Source: torch.linalg.multi_dot.
    """
    chain = list(tensors)
    if len(chain) < 2:
        msg = f"multi_dot(): expected at least 2 tensors but got {len(chain)}"
        raise UsageError(msg)
    row, column = chain[0].ndim == 1, chain[-1].ndim == 1
    chain[0] = unsqueeze(chain[0], 0) if row else chain[0]
    chain[-1] = unsqueeze(chain[-1], -1) if column else chain[-1]
    for i, x in enumerate(chain):
        if x.ndim != 2:
            msg = f"multi_dot(): tensor {i} must be 2D but got {x.ndim}D"
            raise UsageError(msg)
        if i and x.shape[0] != chain[i - 1].shape[1]:
            msg = (f"multi_dot(): tensors {i - 1} and {i} with shapes {list(chain[i - 1].shape)} and {list(x.shape)} cannot be "
                   "multiplied")
            raise UsageError(msg)
    cuts = _cuts([x.shape[0] for x in chain] + [chain[-1].shape[1]])
    out = _chained(chain, cuts, 0, len(chain) - 1)
    return reshape(out, out.shape[row:2 - column])


def _cuts(p: list[int]) -> list[list[int]]:
    """After which matrix the product of matrices i to j is cut; matrix i has p[i] rows and p[i + 1] columns."""
    n = len(p) - 1
    costs, cuts = [[0] * n for _ in range(n)], [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs[i][j], cuts[i][j] = min(
                (costs[i][k] + costs[k + 1][j] + p[i] * p[k + 1] * p[j + 1], k) for k in range(i, j))
    return cuts


def _chained(chain: list[Tensor], cuts: list[list[int]], i: int, j: int) -> Tensor:
    if i == j:
        return chain[i]
    k = cuts[i][j]
    right = _chained(chain, cuts, k + 1, j)  # first, as in torch
    return matmul(_chained(chain, cuts, i, k), right)
