"""Products of Householder reflections, as geqrf gives them: a vector below the diagonal of each column, and a weight tau.

    H₁ H₂ .. = 1 - V T Vᴴ        T = (1 + diag(tau) N)⁻¹ diag(tau), N the part of Vᴴ V above its diagonal

Source: Joffrain, Low, Quintana-Ortí, van de Geijn, Van Zee, Accumulating Householder transformations, revisited (2006).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..row import OpFunction, row
from .batching import leading
from .creation import eye
from .factors import corner, solve_triangle, unit_lower
from .linalg import adjoint, matmul
from .rearrange import diag_embed
from .shape import triu, unsqueeze, widened
from .solving import matrices

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


class Reflections(NamedTuple):
    """What geqrf returns.  Source: torch.return_types.geqrf."""

    a: Tensor
    tau: Tensor


def _kernel(xp: Any, x0: Array) -> tuple[Array, Array]:
    columns, tau = xp.linalg.qr(x0, "raw")
    return columns.swapaxes(-1, -2), tau


def _refuse(ct: list[Any]) -> Any:
    msg = "the derivative for 'geqrf' is not implemented: use linalg.qr, which has one."
    raise UsageError(msg)


_geqrf: OpFunction = row("geqrf", _kernel, outs=2, batch=leading, vjp=_refuse, jvp=_refuse,
                         node="torch::autograd::NotImplemented")


def geqrf(x: Tensor) -> Reflections:
    """R on and above the diagonal, and the reflections whose product is Q; without derivative.  Source: torch.geqrf."""
    return Reflections(*_geqrf(matrices("torch.geqrf", x)))


def _reflected(a: Tensor, tau: Tensor, x: Tensor, *, left: bool, transpose: bool) -> Tensor:
    """The product of the reflections, or its adjoint, times x; x times it without left."""
    v = unit_lower(corner(a, a.shape[-2], tau.shape[-1]))
    above = unsqueeze(tau, -1) * triu(matmul(adjoint(v), v), 1)
    weights = solve_triangle(above, diag_embed(tau), upper=True, left=True, unit=True)
    weights = adjoint(weights) if transpose else weights
    if left:
        return x - matmul(v, matmul(weights, matmul(adjoint(v), x)))
    return x - matmul(matmul(matmul(x, v), weights), adjoint(v))


def _check(name: str, a: Tensor, tau: Tensor) -> None:
    matrices(name, a)
    if a.dtype is not tau.dtype:
        msg = f"{name}: tau dtype {tau.dtype} does not match input dtype {a.dtype}"
        raise UsageError(msg)
    if tau.shape[:-1] != a.shape[:-2] or not tau.ndim:
        msg = f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau.shape)}"
        raise UsageError(msg)


def ormqr(x: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of all reflections, or its adjoint with transpose, times `other`; `other` times it without left.

    Raises UsageError where the shapes do not fit.  Source: torch.ormqr.
    """
    _check("torch.ormqr", x, tau)
    dim = -2 if left else -1
    m, side = x.shape[-2], other.shape[dim]
    if side != m:
        msg = f"torch.ormqr: other.shape[{dim}] must be equal to input.shape[-2], but they are {side} and {m}"
        raise UsageError(msg)
    if tau.shape[-1] != min(side, x.shape[-1]):
        msg = (f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{dim}], input.shape[-1]), but they are "
               f"{tau.shape[-1]} and {min(side, x.shape[-1])}")
        raise UsageError(msg)
    return _reflected(x, tau, other, left=left, transpose=transpose)


def householder_product(A: Tensor, tau: Tensor) -> Tensor:  # noqa: N803  torch's name
    """The first columns of the product of the reflections, as many as A has.

    Raises UsageError where A is wider than high, or has less columns than reflections.
    Source: torch.linalg.householder_product.
    """
    _check("torch.linalg.householder_product", A, tau)
    m, n, k = *A.shape[-2:], tau.shape[-1]
    if not m >= n >= k:
        msg = ("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1], and that "
               f"than or equal to tau.shape[-1], but they are {m}, {n} and {k}")
        raise UsageError(msg)
    start = widened(eye(m, n, dtype=A.dtype, device=A.device), A.shape)
    return _reflected(A, tau, start, left=True, transpose=False)


def orgqr(x: Tensor, tau: Tensor) -> Tensor:
    """As linalg.householder_product.  Source: torch.orgqr."""
    return householder_product(x, tau)
