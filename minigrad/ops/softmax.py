"""Softmax and its logarithm, and the log of a sum of exponentials; none overflows where its value does not.

Upstream: derivatives.yaml (_softmax, _log_softmax, logsumexp).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, dtype
from ..row import OpFunction, row
from ..state import get_default_dtype
from .batching import along_dim, over_dims
from .pointwise import conj, exp
from .reduction import pull, push
from .scan import along
from .shape import normal_dims, restore, sum_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tensor import Tensor


# ---------------------------------------------------------------- softmax
def _total(x: Tensor, dim: int) -> Tensor:
    return sum_dims(x, dims=(dim,), keepdim=True)  # type: ignore[no-any-return]


def _softmax_kernel(xp: Any, x0: Any, dim: int) -> Any:
    if not x0.size:
        return xp.array(x0)
    out = xp.exp(x0 - x0.max(axis=dim, keepdims=True))
    out /= out.sum(axis=dim, keepdims=True)
    return out


def _log_softmax_kernel(xp: Any, x0: Any, dim: int) -> Any:
    if not x0.size:
        return xp.array(x0)
    out = x0 - x0.max(axis=dim, keepdims=True)
    out -= xp.log(xp.exp(out).sum(axis=dim, keepdims=True))
    return out


_softmax: OpFunction = row(
    "softmax", _softmax_kernel, arity=1, saves=("out",), batch=along_dim,
    vjp=(lambda ct, out, dim: conj(out) * (ct - _total(ct * conj(out), dim)),),
    jvp=(lambda dx, out, dim: out * (dx - _total(dx * out, dim)),))

_log_softmax: OpFunction = row(
    "log_softmax", _log_softmax_kernel, arity=1, saves=("out",), batch=along_dim,
    vjp=(lambda ct, out, dim: ct - exp(conj(out)) * _total(ct, dim),),
    jvp=(lambda dx, out, dim: dx - _total(exp(out) * dx, dim),))


def _along(f: OpFunction, x: Tensor, dim: int, dtype: dtype | None) -> Tensor:
    x = x if dtype is None else x.to(dtype)
    if x.dtype.category != FLOAT:
        msg = f'"{f.__name__}" not implemented for {x.dtype}: give it a floating tensor, or a dtype.'
        raise NotImplementedError(msg)
    return along(f, x, dim)  # type: ignore[no-any-return]


def softmax(x: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """exp(x) over its sum along a dimension; with dtype, x is converted first.  Source: torch.softmax."""
    return _along(_softmax, x, dim, dtype)


def log_softmax(x: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The logarithm of softmax; with dtype, x is converted first.  Source: torch.log_softmax."""
    return _along(_log_softmax, x, dim, dtype)


def softmin(x: Tensor, dim: int, *, dtype: dtype | None = None) -> Tensor:
    """The softmax of -x.  Source: torch.nn.functional.softmin."""
    return _along(_softmax, -x, dim, dtype)


# ---------------------------------------------------------------- log-sum-exp
def _logsumexp_kernel(xp: Any, x0: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    if not x0.size:
        return xp.log(xp.sum(x0, axis=dims, keepdims=keepdim))
    top = x0.real.max(axis=dims, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    out = xp.log(xp.exp(x0 - top).sum(axis=dims, keepdims=keepdim))
    return out + (top if keepdim else top.reshape(out.shape))


def _weight(x0: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return conj(exp(x0 - restore(out, x0.shape, dims, keepdim)))  # type: ignore[no-any-return]


_logsumexp: OpFunction = row(
    "logsumexp", _logsumexp_kernel, arity=1, saves=("x0", "out"), batch=over_dims,
    vjp=(lambda ct, x0, out, dims, keepdim: pull(ct, _weight(x0, out, dims, keepdim), dims, keepdim),),
    jvp=(lambda dx, x0, out, dims, keepdim: push(dx, _weight(x0, out, dims, keepdim), dims, keepdim),))


def logsumexp(x: Tensor, dim: int | Sequence[int], keepdim: bool = False) -> Tensor:
    """The log of the sum of exponentials over dimensions.  Source: torch.logsumexp."""
    if x.dtype.category < FLOAT:
        x = x.to(get_default_dtype())
    return _logsumexp(x, dims=normal_dims(dim, x.ndim), keepdim=keepdim)  # type: ignore[no-any-return]
