"""Eigenvalues and eigenvectors of any square matrix: complex, of real matrices too.

Eigenvectors are of norm 1, and unique up to a phase: a derivative means something where what comes of them
does not depend on it.

Upstream: linalg_eig in derivatives.yaml; linalg_eig_backward, linalg_eig_jvp in FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..row import OpFunction, row
from .batching import leading
from .linalg import adjoint, matmul
from .pointwise import conj, real
from .rearrange import diag_embed
from .reduction import total_of
from .shape import diagonal
from .solving import solve, squares
from .spectra import eigen_gaps, off_diagonal, scaled_columns

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


class Eig(NamedTuple):
    """What eig returns.  Source: torch.return_types.linalg_eig."""

    eigenvalues: Tensor
    eigenvectors: Tensor


def _kernel(xp: Any, x0: Array, is_real: bool) -> tuple[Array, Array]:
    if not xp.all(xp.isfinite(x0)):
        msg = "torch.linalg.eig: input tensor should not contain infs or NaNs."
        raise UsageError(msg)
    values, vectors = xp.linalg.eig(x0)
    kind = xp.result_type(x0, xp.complex64)
    return values.astype(kind), vectors.astype(kind)


def _along(x: Tensor, v: Tensor) -> Tensor:
    """Of each column of v as much as keeps it of norm 1, where x is its product with what it moves by."""
    return scaled_columns(v, real(diagonal(x, 0, -2, -1)).to(v.dtype))


def _vjp(ct: list[Any], out0: Tensor, out1: Tensor, is_real: bool) -> list[Tensor]:
    g_l, g_v = ct
    vh = adjoint(out1)
    inner = None
    if g_v is not None:
        turned = matmul(vh, g_v)
        inner = off_diagonal(turned - matmul(vh, _along(turned, out1))) / conj(eigen_gaps(out0))
    inner = total_of(inner, None if g_l is None else diag_embed(g_l))
    g = solve(vh, matmul(inner, vh))
    return [real(g) if is_real else g]


def _jvp(dx: list[Any], out0: Tensor, out1: Tensor) -> tuple[Tensor, Tensor]:
    inner = solve(out1, matmul(dx[0].to(out1.dtype), out1))
    moved = matmul(out1, off_diagonal(inner) / eigen_gaps(out0))
    return diagonal(inner, 0, -2, -1), moved - _along(matmul(adjoint(out1), moved), out1)


_eig: OpFunction = row("linalg_eig", _kernel, outs=2, saves=("out0", "out1"), vjp=_vjp, jvp=_jvp, batch=leading)


def eig(A: Tensor) -> Eig:  # noqa: N803  torch's name
    """Eigenvalues, in no order, and eigenvectors, the columns of a matrix.  Source: torch.linalg.eig."""
    return Eig(*_eig(squares("linalg.eig", A), is_real=not A.dtype.is_complex))


def eigvals(A: Tensor) -> Tensor:  # noqa: N803
    """The eigenvalues that eig gives.  Source: torch.linalg.eigvals."""
    return eig(A)[0]
