"""Reductions: sums and means, then extremes, then what is composed of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..dtypes import FLOAT, dtype, int64
from ..op import row
from .batching import over_dims
from .shape import normal_dims, restore, sum_dims

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tensor import Tensor



def sum(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:  # noqa: A001
    """The sum over dimensions (all, without dim); ints and bools sum as int64.  Source: torch.sum."""
    if dtype is None and x.dtype.category < FLOAT:
        dtype = int64
    if dtype is not None:
        x = x.to(dtype)
    return sum_dims(x, dims=normal_dims(dim, x.ndim), keepdim=keepdim)  # type: ignore[no-any-return]


def _scaled(ct: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    n = 1
    for d in dims:
        n *= shape[d]
    return restore(ct, shape, dims, keepdim) / n


_mean = row("mean", lambda xp, x0, dims, keepdim: xp.mean(x0, axis=dims, keepdims=keepdim),
            vjp=(lambda ct, shape0, dims, keepdim: _scaled(ct, shape0, dims, keepdim),), jvp="linear", batch=over_dims)


def mean(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The mean over dimensions (all, without dim).  Raises UsageError for an int tensor.  Source: torch.mean."""
    if dtype is not None:
        x = x.to(dtype)
    if x.dtype.category < FLOAT:
        from ..errors import UsageError  # noqa: PLC0415

        msg = f"mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: {x.dtype}"
        raise UsageError(msg)
    return _mean(x, dims=normal_dims(dim, x.ndim), keepdim=keepdim)  # type: ignore[no-any-return]
