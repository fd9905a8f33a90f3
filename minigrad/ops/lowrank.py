"""The first singular values of a large matrix, from a few random combinations of its columns: composed of qr and svd.

Source: torch.svd_lowrank, torch.pca_lowrank.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .formerly import SVD
from .linalg import adjoint, matmul
from .random import randn
from .rearrange import broadcast_to
from .reduction import mean
from .spectra import qr, svd

if TYPE_CHECKING:
    from ..tensor import Tensor


def _basis(a: Tensor, q: int, niter: int) -> Tensor:
    """q orthonormal columns that span nearly what the columns of a do.

    Source: Halko, Martinsson, Tropp, Finding structure with randomness (2009), algorithm 4.4.
    """
    basis = qr(matmul(a, randn(a.shape[-1], q, dtype=a.dtype, device=a.device))).Q
    for _ in range(niter):
        basis = qr(matmul(adjoint(a), basis)).Q
        basis = qr(matmul(a, basis)).Q
    return basis


def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None) -> SVD:  # noqa: N803  torch's names
    """U, S and V, not its adjoint, of the q largest singular values of A, or of A - M: exact where A has no more.

    niter: how often random columns are multiplied by A and its adjoint before.  Source: torch.svd_lowrank.
    """
    a = A if M is None else A - broadcast_to(M, A.shape)
    wide = a.shape[-2] < a.shape[-1]
    a = adjoint(a) if wide else a
    basis = _basis(a, 6 if q is None else q, 2 if niter is None else niter)
    u, s, vh = svd(matmul(adjoint(basis), a), full_matrices=False)
    u, v = matmul(basis, u), adjoint(vh)
    return SVD(v, s, u) if wide else SVD(u, s, v)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> SVD:  # noqa: N803
    """svd_lowrank of A, less the mean of its rows where they are to be centered: its principal components.

    Raises ValueError for a q that is larger than A.  Source: torch.pca_lowrank.
    """
    most = min(A.shape[-2:])
    q = min(6, most) if q is None else q
    if not 0 <= q <= most:
        msg = f"q(={q}) must be non-negative integer and not greater than min(m, n)={most}"
        raise ValueError(msg)
    if niter < 0:
        msg = f"niter(={niter}) must be non-negative integer"
        raise ValueError(msg)
    return svd_lowrank(A - mean(A, -2, keepdim=True) if center else A, q, niter)
