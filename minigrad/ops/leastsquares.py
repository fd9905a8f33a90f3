"""Least squares: composed of the pseudoinverse and singular values of spectra.py.

Source: torch.linalg.lstsq.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..dtypes import int64
from ..errors import UsageError
from .creation import zeros
from .linalg import matmul
from .pointwise import abs as absolute
from .pointwise import square
from .reduction import sum as sum_over
from .shape import basic_index, detach, reshape, squeeze, unsqueeze
from .solving import same_batches
from .spectra import matrix_rank, pinv, svdvals

if TYPE_CHECKING:
    from ..tensor import Tensor


class LeastSquares(NamedTuple):
    """What lstsq returns.  Source: torch.return_types.linalg_lstsq."""

    solution: Tensor
    residuals: Tensor
    rank: Tensor
    singular_values: Tensor


# driver -> whether it gives residuals, the rank, singular values
DRIVERS = {"gels": (True, False, False), "gelsy": (False, True, False), "gelsd": (True, True, True),
           "gelss": (True, True, True)}


def lstsq(A: Tensor, B: Tensor, rcond: float | None = None, *, driver: str | None = None) -> LeastSquares:  # noqa: N803
    """The X of least norm of those that make the norm of A X - B least; B may be a vector for each matrix.

    driver: "gels" takes A to be of full rank; for the others singular values up to rcond times the largest count as 0.  It
    also says what is given beside: "gelsy" (the default) the rank, "gels" the squared norms of the residuals' columns where A
    is higher than wide, "gelsd" and "gelss" both and the singular values; the rest is empty.
    Raises UsageError for another driver, and for shapes or dtypes that do not fit.  Source: torch.linalg.lstsq.
    """
    driver = driver or "gelsy"
    _check(A, B, driver)
    vector = B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])
    a, b = same_batches(A, unsqueeze(B, -1) if vector else B)
    if a.shape[-2] != b.shape[-2]:
        msg = f"torch.linalg.lstsq: input.size(-2) should match other.size(-2), but they are {a.shape[-2]} and {b.shape[-2]}"
        raise UsageError(msg)
    rtol = 0.0 if driver == "gels" else rcond
    x = matmul(pinv(a, rtol=rtol), b)
    residuals, rank, values = DRIVERS[driver]
    left, plain = sum_over(square(absolute(matmul(a, x) - b)), -2), detach(a)
    return LeastSquares(
        squeeze(x, -1) if vector else x,
        left if residuals and a.shape[-2] > a.shape[-1] else _nothing(left),
        matrix_rank(plain, rtol=rtol) if rank else zeros(0, dtype=int64, device=a.device),
        svdvals(plain) if values else _nothing(detach(left)))


def _nothing(x: Tensor) -> Tensor:
    """No element of x, but of its dtype, and differentiable where it is."""
    return basic_index(reshape(x, -1), (slice(0),))


def _check(a: Tensor, b: Tensor, driver: str) -> None:
    found = None
    if a.ndim < 2:
        found = f"input must have at least 2 dimensions, but it has {a.ndim}."
    elif b.ndim < 1:
        found = "other must have at least 1 dimension, but it has none."
    elif a.dtype is not b.dtype:
        found = f"Expected input and other to have the same dtype, but got {a.dtype} and {b.dtype}"
    elif driver not in DRIVERS:
        found = f"parameter `driver` should be one of ({', '.join(DRIVERS)}), but it is {driver!r}"
    if found:
        msg = f"torch.linalg.lstsq: {found}"
        raise UsageError(msg)
