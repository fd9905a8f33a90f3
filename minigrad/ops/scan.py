"""Running sums and products along a dimension.

The derivative of a running product is a linear recurrence, s[k] = c[k] + a[k] * s[k - 1], and that of a recurrence is one
again, in the other direction: no division, so zeros are no obstacle, at any order.

Source: torch.cumsum, torch.cumprod, torch.logcumsumexp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, dtype, int64
from ..errors import Refusal
from ..row import OpFunction, row
from .batching import along_dim
from .choice import isfinite
from .creation import new_full, zeros_like
from .indexing import one_value
from .joining import cat, narrow
from .pointwise import conj, exp
from .shape import normal_dim, reshape
from .special import accumulate

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor


def shifted(x: Tensor, dim: int, fill: float | None, *, back: bool = False) -> Tensor:
    """`x` moved one place along `dim`, to later places (or back); `fill`, or what was there, in the place that becomes free."""
    n = x.shape[dim]
    if n == 0:
        return x
    edge = narrow(x, dim, n - 1 if back else 0, 1)
    free = edge if fill is None else new_full(edge, edge.shape, fill)
    return cat([narrow(x, dim, 1, n - 1), free] if back else [free, narrow(x, dim, 0, n - 1)], dim)


# ---------------------------------------------------------------- sums
def _cumsum_kernel(xp: Any, x0: Any, dim: int, reverse: bool) -> Any:
    if not reverse:
        return xp.cumsum(x0, axis=dim, dtype=x0.dtype)
    out = xp.empty_like(x0)
    xp.cumsum(xp.flip(x0, dim), axis=dim, out=xp.flip(out, dim))
    return out


_cumsum: OpFunction = row("cumsum", _cumsum_kernel, arity=1, jvp="linear", batch=along_dim,
                          vjp=(lambda ct, dim, reverse: _cumsum(ct, dim=dim, reverse=not reverse),))


def _running_sum(x: Tensor, dim: int) -> Tensor:
    return _cumsum(x, dim=dim, reverse=False)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- linear recurrences
def _recurrence_kernel(xp: Any, x0: Any, x1: Any, dim: int, reverse: bool) -> Any:
    c, a = xp.moveaxis(x0, dim, 0), xp.moveaxis(x1, dim, 0)
    out = xp.array(c)
    steps = range(len(c) - 2, -1, -1) if reverse else range(1, len(c))
    for k in steps:
        out[k] += a[k] * out[k + 1 if reverse else k - 1]
    return xp.moveaxis(out, 0, dim)


def _recurrence_vjp(ct: Tensor, x1: Tensor, out: Tensor, dim: int, reverse: bool) -> list[Tensor]:
    adjoint = recurrence(ct, conj(shifted(x1, dim, 0, back=not reverse)), dim=dim, reverse=not reverse)
    return [adjoint, adjoint * conj(shifted(out, dim, 0, back=reverse))]


def _recurrence_jvp(dx: list[Any], x0: Tensor, x1: Tensor, out: Tensor, dim: int, reverse: bool) -> Tensor:
    dc = zeros_like(x0) if dx[0] is None else dx[0]
    if dx[1] is not None:
        dc = dc + dx[1] * shifted(out, dim, 0, back=reverse)
    return recurrence(dc, x1, dim=dim, reverse=reverse)  # type: ignore[no-any-return]


recurrence: OpFunction = row("recurrence", _recurrence_kernel, saves=("x1", "out"), vjp=_recurrence_vjp,
                             jvp=_recurrence_jvp, batch=along_dim)


# ---------------------------------------------------------------- products
def no_zero(product: Tensor) -> bool:
    """Whether one may look, and sees that no factor was zero: then that of the others is the whole over each element."""
    return one_value(product) and bool(((product != 0) & isfinite(product)).all())


def _cumprod_vjp(ct: Tensor, x0: Tensor, out: Tensor, dim: int) -> Tensor:
    if x0.shape[dim] == 1:  # one factor: there is nothing to differentiate once more, as in torch
        return ct
    if out.numel() and no_zero(narrow(out, dim, out.shape[dim] - 1, 1)):
        return _cumsum(ct * conj(out), dim=dim, reverse=True) / conj(x0)  # type: ignore[no-any-return]
    after = recurrence(ct, conj(shifted(x0, dim, 0, back=True)), dim=dim, reverse=True)
    return after * conj(shifted(out, dim, 1))  # type: ignore[no-any-return]


_cumprod: OpFunction = row(
    "cumprod", lambda xp, x0, dim: xp.cumprod(x0, axis=dim, dtype=x0.dtype), arity=1, saves=("x0", "out"), vjp=(_cumprod_vjp,),
    jvp=(lambda dx, x0, out, dim: recurrence(dx * shifted(out, dim, 1), x0, dim=dim, reverse=False),), batch=along_dim)


# ---------------------------------------------------------------- log of sums of exponentials
def _logcumsumexp_vjp(ct: Tensor, x0: Tensor, out: Tensor, dim: int) -> Tensor:
    """The sum over later i of ct[i] * exp(x[k] - out[i]), in factors that are at most 1."""
    after = recurrence(ct, exp(out - shifted(out, dim, None, back=True)), dim=dim, reverse=True)
    return after * exp(x0 - out)  # type: ignore[no-any-return]


def _logcumsumexp_jvp(dx: Tensor, x0: Tensor, out: Tensor, dim: int) -> Tensor:
    kept = exp(shifted(out, dim, None) - out)
    return recurrence(dx * exp(x0 - out), kept, dim=dim, reverse=False)  # type: ignore[no-any-return]


_logcumsumexp: OpFunction = row(
    "logcumsumexp", lambda xp, x0, dim: accumulate(xp, "logaddexp", x0, dim), arity=1, saves=("x0", "out"),
    batch=along_dim, vjp=(_logcumsumexp_vjp,), jvp=(_logcumsumexp_jvp,))


# ---------------------------------------------------------------- public
def along(f: Callable[..., Any], x: Tensor, dim: int) -> Any:
    """f(x, dim=...) with the dimension in normal form; a 0-d tensor counts as a vector of one element."""
    at = normal_dim(dim, x.ndim)
    return f(x, dim=at) if x.ndim else reshape(f(reshape(x, 1), dim=0), ())


def cumsum(x: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Running sums along a dimension; ints and bools sum as int64.  Source: torch.cumsum."""
    dtype = int64 if dtype is None and x.dtype.category < FLOAT else dtype
    return along(_running_sum, x if dtype is None else x.to(dtype), dim)  # type: ignore[no-any-return]


def cumprod(x: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """Running products along a dimension; ints and bools multiply as int64.  Source: torch.cumprod."""
    dtype = int64 if dtype is None and x.dtype.category < FLOAT else dtype
    return along(_cumprod, x if dtype is None else x.to(dtype), dim)  # type: ignore[no-any-return]


def logcumsumexp(x: Tensor, dim: int) -> Tensor:
    """The log of running sums of exponentials along a dimension; of real tensors.  Source: torch.logcumsumexp."""
    if x.dtype.is_complex:
        msg = "logcumsumexp of a complex tensor: the branches of the logarithm are not followed here. Use exp, cumsum and log."
        raise Refusal(msg)
    return along(_logcumsumexp, x, dim)  # type: ignore[no-any-return]
