"""Linear algebra under the names it had before torch.linalg, which programs still use.

Source: torch.cholesky, torch.inverse, torch.lu, torch.lu_solve, torch.pinverse, torch.qr, torch.svd, torch.triangular_solve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import UsageError
from . import infos, shape, solving, spectra
from .creation import new_zeros
from .layout import clone
from .linalg import adjoint

if TYPE_CHECKING:
    from ..tensor import Tensor
    from .spectra import QR


class SVD(NamedTuple):
    """What svd returns, V and not its adjoint.  Source: torch.return_types.svd."""

    U: Tensor
    S: Tensor
    V: Tensor


def cholesky(x: Tensor, upper: bool = False) -> Tensor:
    """As linalg.cholesky.  Source: torch.cholesky."""
    return solving.cholesky(x, upper=upper)


def inverse(x: Tensor) -> Tensor:
    """As linalg.inv.  Source: torch.inverse."""
    return solving.inv(x)


def lu(x: Tensor, pivot: bool = True, get_infos: bool = False) -> tuple[Tensor, ...]:
    """As linalg.lu_factor; with get_infos as lu_factor_ex.  Source: torch.lu."""
    return infos.lu_factor_ex(x, pivot=pivot) if get_infos else solving.lu_factor(x, pivot=pivot)


def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:  # noqa: N803  torch's names
    """As linalg.lu_solve, the right side first.  Source: torch.lu_solve."""
    return solving.lu_solve(LU_data, LU_pivots, b)


def pinverse(x: Tensor, rcond: float = 1e-15) -> Tensor:
    """As linalg.pinv.  Source: torch.pinverse."""
    return spectra.pinv(x, rcond)


def qr(x: Tensor, some: bool = True) -> QR:
    """As linalg.qr.  Source: torch.qr."""
    return spectra.qr(x, "reduced" if some else "complete")


def svd(x: Tensor, some: bool = True, compute_uv: bool = True) -> SVD:
    """As linalg.svd; without compute_uv zeros for U and V.  Source: torch.svd."""
    u, s, vh = spectra.svd(x, full_matrices=not some)
    v = adjoint(vh)
    return SVD(u, s, v) if compute_uv else SVD(new_zeros(u, u.shape), s, new_zeros(v, v.shape))


class Triangular(NamedTuple):
    """What triangular_solve returns.  Source: torch.return_types.triangular_solve."""

    solution: Tensor
    cloned_coefficient: Tensor


def triangular_solve(b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False,  # noqa: N803
                     unitriangular: bool = False) -> Triangular:
    """As linalg.solve_triangular, the right side first, of A or its transpose; and a copy of A.

    Source: torch.triangular_solve.
    """
    for name, x in (("b", b), ("A", A)):
        if x.ndim < 2:
            msg = f"torch.triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.ndim} instead"
            raise UsageError(msg)
    a, upper = (shape.transpose(A, -2, -1), not upper) if transpose else (A, upper)
    return Triangular(solving.solve_triangular(a, b, upper=upper, unitriangular=unitriangular), clone(A))
