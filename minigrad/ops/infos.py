"""Factorizations that say how each matrix went, instead of failing.

info is 0, or which pivot or leading minor was the first at fault, counted from 1.

A matrix that fails has nan for a result, and so has its gradient; the others of its batch are what they are.  What failed
is looked for only where something did, and up to rounding.

Source: torch.linalg.cholesky_ex, torch.linalg.inv_ex, torch.linalg.lu_factor_ex, torch.linalg.solve_ex.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import int32
from ..errors import UsageError
from . import factors
from .choice import where
from .creation import new_zeros
from .extremes import amax
from .joining import stack
from .linalg import adjoint
from .misc import finfo
from .pointwise import abs as absolute
from .shape import basic_index, detach, diagonal, unsqueeze
from .solving import cholesky, first, inv, lu_factor, matrices, pivoted, solve, squares, zero_pivot
from .spectra import eigvalsh

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor


class FactorsInfo(NamedTuple):
    """What lu_factor_ex returns.  Source: torch.return_types.linalg_lu_factor_ex."""

    LU: Tensor
    pivots: Tensor
    info: Tensor


class InverseInfo(NamedTuple):
    """What inv_ex returns.  Source: torch.return_types.linalg_inv_ex."""

    inverse: Tensor
    info: Tensor


class CholeskyInfo(NamedTuple):
    """What cholesky_ex returns.  Source: torch.return_types.linalg_cholesky_ex."""

    L: Tensor
    info: Tensor


class SolutionInfo(NamedTuple):
    """What solve_ex returns.  Source: torch.return_types.linalg_solve_ex."""

    result: Tensor
    info: Tensor


def inv_ex(A: Tensor, *, check_errors: bool = False) -> InverseInfo:  # noqa: N803  torch's names
    """The inverses of square matrices, and whether they are there.  Source: torch.linalg.inv_ex."""
    return InverseInfo(*_informed(inv, squares("linalg.inv", A), _singular, check_errors))


def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> SolutionInfo:  # noqa: N803
    """X of A X = B (X A = B without left), and whether it is there.  Source: torch.linalg.solve_ex."""
    return SolutionInfo(*_informed(lambda a: solve(a, B, left=left), squares("linalg.solve", A), _singular, check_errors))


def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> CholeskyInfo:  # noqa: N803
    """L of A = L Lᴴ, its adjoint for upper, and whether it is there.  Source: torch.linalg.cholesky_ex."""
    return CholeskyInfo(*_informed(lambda a: cholesky(a, upper=upper), squares("linalg.cholesky", A),
                                   lambda a: _indefinite(adjoint(a) if upper else a), check_errors))


def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> FactorsInfo:  # noqa: N803
    """As lu_factor, which is there for singular matrices too, and which pivot is 0.  Source: torch.linalg.lu_factor_ex."""
    if check_errors:
        lu, pivots = lu_factor(A, pivot=pivot)
    else:
        pivoted("lu_factor_ex", pivot)
        lu, pivots = factors.factor(matrices("linalg.lu_factor", A))
    return FactorsInfo(lu, pivots, zero_pivot(lu))


# ---------------------------------------------------------------- what failed
def _informed(f: Callable[[Tensor], Tensor], a: Tensor, failed: Callable[[Tensor], Tensor],
              check_errors: bool) -> tuple[Tensor, Tensor]:
    """f(a), of matrices that fail nan, and which do."""
    try:
        return f(a), new_zeros(detach(a), a.shape[:-2], dtype=int32)
    except UsageError:
        if check_errors:
            raise
    info = failed(detach(a))
    lost = unsqueeze(unsqueeze(info != 0, -1), -1)
    out = f(a + where(lost, factors.add_eye(-detach(a)), 0))  # the identity instead, whose gradient comes by here, too
    return out * where(_fitting(lost, out, a), nan, 1), info


def _fitting(lost: Tensor, out: Tensor, a: Tensor) -> Tensor:
    """For each matrix one number, for results that are vectors too."""
    return lost if out.ndim >= a.ndim else basic_index(lost, (Ellipsis, 0))


def _singular(a: Tensor) -> Tensor:
    """Which pivot is the first that is 0, up to rounding."""
    pivots = absolute(diagonal(factors.constant_factor(a)[0], 0, -2, -1))
    return first(pivots <= amax(pivots, -1, keepdim=True) * (a.shape[-1] * finfo(a.dtype).eps))


def _indefinite(a: Tensor) -> Tensor:
    """Which leading minor is the first that is not positive definite, up to rounding."""
    n, found = a.shape[-1], []
    for k in range(1, n + 1):
        values = eigvalsh(basic_index(a, (Ellipsis, slice(k), slice(k))))
        found.append(basic_index(values, (Ellipsis, 0)) <= amax(absolute(values), -1) * (n * finfo(a.dtype).eps))
    return first(stack(found, -1))
