"""Functions of some of the elements: those where a mask, which is broadcast to the input, is true.

What is left out has no part in the result and no gradient; where all is left out the result is that of no elements (0 for
a sum, nan for a mean).  Without a mask each is the function itself, as is where results' dtypes come from.

Source: torch.masked.
"""

from __future__ import annotations

from math import inf, nan
from typing import TYPE_CHECKING

from .dtypes import INT, bool_, dtype, float32, int64
from .errors import UsageError
from .modes import publish
from .nn import functional
from .ops import extremes, pairs, ranks, reduction, scan
from .ops import norm as norms
from .ops import softmax as exponentials
from .ops.choice import maximum, where
from .ops.creation import ones_like
from .ops.indexing import one_value
from .ops.misc import iinfo
from .ops.pointwise import conj, sqrt
from .ops.rearrange import broadcast_to
from .ops.shape import normal_dim, normal_dims

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .tensor import Tensor

    Dims = int | Sequence[int] | None


def _kept(x: Tensor, mask: Tensor | None, identity: float) -> Tensor:
    """`x` with what has no part in the result where the mask is false; the least and greatest ints for infinities."""
    if mask is None:
        return x
    if identity in (inf, -inf) and x.dtype.category <= INT:
        identity = iinfo(x.dtype).max if identity == inf else iinfo(x.dtype).min
    return where(_mask_of(x, mask), x, identity).to(x.dtype)  # type: ignore[no-any-return]


def _mask_of(x: Tensor, mask: Tensor) -> Tensor:
    return broadcast_to(mask, x.shape).to(bool_)  # type: ignore[no-any-return]


def _summed(x: Tensor, d: dtype | None) -> dtype:
    """The dtype of a sum."""
    return d or (int64 if x.dtype.category <= INT else x.dtype)


# ---------------------------------------------------------------- reductions
def sum(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A001, A002  torch's names
        mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.sum."""
    return reduction.sum(_kept(input, mask, 0), normal_dims(dim, input.ndim), keepdim, dtype=_summed(input, dtype))


def prod(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
         mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.prod."""
    out = _kept(input, mask, 1).to(_summed(input, dtype))
    if not input.ndim:
        return out.clone()  # type: ignore[no-any-return]
    for d in sorted(normal_dims(dim, input.ndim), reverse=True):
        out = reduction.prod(out, d, keepdim)
    return out  # type: ignore[no-any-return]


def amax(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
         mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.amax."""
    return extremes.amax(_kept(input, mask, -inf), normal_dims(dim, input.ndim), keepdim).to(dtype or input.dtype)  # type: ignore[no-any-return]


def amin(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
         mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.amin."""
    return extremes.amin(_kept(input, mask, inf), normal_dims(dim, input.ndim), keepdim).to(dtype or input.dtype)  # type: ignore[no-any-return]


def argmax(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
           mask: Tensor | None = None) -> Tensor:
    """Places, in the dtype of the input.  Source: torch.masked.argmax."""
    return extremes.argmax(_kept(input, mask, -inf), dim, keepdim).to(dtype or input.dtype)  # type: ignore[no-any-return]


def argmin(input: Tensor, dim: int | None = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
           mask: Tensor | None = None) -> Tensor:
    """Places, in the dtype of the input.  Source: torch.masked.argmin."""
    return extremes.argmin(_kept(input, mask, inf), dim, keepdim).to(dtype or input.dtype)  # type: ignore[no-any-return]


def _count(x: Tensor, dims: tuple[int, ...], mask: Tensor | None, *, keepdim: bool) -> Tensor:
    there = ones_like(x, dtype=int64) if mask is None else _mask_of(x, mask)
    return reduction.sum(there, dims, keepdim)


def mean(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
         mask: Tensor | None = None) -> Tensor:
    """Raises ValueError for ints without a dtype.  Source: torch.masked.mean."""
    d = dtype or input.dtype
    if d.category <= INT:
        msg = f"mean(): Could not infer output dtype. dtype must be either a floating point or complex dtype. Got: {d}"
        raise ValueError(msg)
    count = _count(input, normal_dims(dim, input.ndim), mask, keepdim=keepdim)
    return sum(input, dim, keepdim=keepdim, dtype=d, mask=mask) / count


def median(input: Tensor, dim: int = -1, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
           mask: Tensor | None = None) -> Tensor:
    """The lower of two in the middle.  Raises ValueError for ints of which none is left.  Source: torch.masked.median."""
    whole = input.dtype.category <= INT
    out = ranks.nanmedian(_kept(input.to(float32) if whole else input, mask, nan), normal_dim(dim, input.ndim), keepdim).values
    if not whole:
        return out  # type: ignore[no-any-return]
    if one_value(out) and bool(out.isnan().any()):
        msg = "masked median expects no fully masked out rows if dtype is not floating point"
        raise ValueError(msg)
    return out.to(dtype or input.dtype)  # type: ignore[no-any-return]


def norm(input: Tensor, ord: float | None = 2.0, dim: Dims = None, *, keepdim: bool = False,  # noqa: A002
         dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.norm."""
    kept = _kept(input, mask, inf if ord == -inf else 0)
    return norms.vector_norm(kept, 2.0 if ord is None else ord, normal_dims(dim, input.ndim), keepdim, dtype=dtype)


def var(input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,  # noqa: A002
        keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Raises UsageError for both unbiased and correction.  Source: torch.masked.var."""
    if unbiased is not None and correction is not None:
        msg = "Only one of unbiased and correction may be given"
        raise UsageError(msg)
    d = dtype or (float32 if input.dtype.category <= INT else input.dtype)
    dims = normal_dims(dim, input.ndim)
    count = _count(input, dims, mask, keepdim=True)
    apart = input - sum(input, dims, keepdim=True, dtype=d, mask=mask) / count
    total = sum(apart * conj(apart), dims, keepdim=keepdim, dtype=d, mask=mask)
    less = correction if correction is not None else 0 if unbiased is False else 1
    left = maximum(count.to(d.to_real()) - less, 0)
    return (total / left.reshape(total.shape)).to(d)  # type: ignore[no-any-return]


def std(input: Tensor, dim: Dims = None, unbiased: bool | None = None, *, correction: float | None = None,  # noqa: A002
        keepdim: bool = False, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.std."""
    return sqrt(var(input, dim, unbiased, correction=correction, keepdim=keepdim, dtype=dtype, mask=mask))  # type: ignore[no-any-return]


def logsumexp(input: Tensor, dim: Dims = None, *, keepdim: bool = False, dtype: dtype | None = None,  # noqa: A002
              mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.logsumexp."""
    return exponentials.logsumexp(_kept(input, mask, -inf), normal_dims(dim, input.ndim), keepdim).to(dtype or input.dtype)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- along a dimension
def _along(f: Callable[..., Tensor], name: str, identity: float) -> Callable[..., Tensor]:
    def masked(input: Tensor, dim: int, *, dtype: dtype | None = None, mask: Tensor | None = None) -> Tensor:  # noqa: A002
        return f(_kept(input, mask, identity), normal_dim(dim, input.ndim), dtype=dtype or input.dtype)

    masked.__name__ = name
    masked.__doc__ = f"Source: torch.masked.{name}."
    return masked


cumsum = _along(scan.cumsum, "cumsum", 0)
cumprod = _along(scan.cumprod, "cumprod", 1)
softmax = _along(exponentials.softmax, "softmax", -inf)
log_softmax = _along(exponentials.log_softmax, "log_softmax", -inf)
softmin = _along(functional.softmin, "softmin", inf)


def normalize(input: Tensor, ord: float, dim: int, *, eps: float = 1e-12, dtype: dtype | None = None,  # noqa: A002
              mask: Tensor | None = None) -> Tensor:
    """Divided by the norm, or by eps where that is more.  Source: torch.masked.normalize."""
    size = norm(input, ord, dim, keepdim=True, dtype=dtype or input.dtype, mask=mask)
    return _kept(input, mask, 0) / maximum(size, eps)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- two inputs
def logaddexp(input: Tensor, other: Tensor, *, dtype: dtype | None = None, input_mask: Tensor | None = None,  # noqa: A002
              other_mask: Tensor | None = None) -> Tensor:
    """Source: torch.masked.logaddexp."""
    out = pairs.logaddexp(_kept(input, input_mask, -inf), _kept(other, other_mask, -inf))
    return out.to(dtype or input.dtype)  # type: ignore[no-any-return]


__all__ = [
    "amax", "amin", "argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logaddexp", "logsumexp", "mean", "median", "norm",
    "normalize", "prod", "softmax", "softmin", "std", "sum", "var",
]

publish(globals())
