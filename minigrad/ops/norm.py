"""Norms of vectors: one row, whose weight (see reduction.py) depends on the order.

Upstream: linalg_vector_norm, norm_backward in FunctionsManual.cpp.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..backend import NUMPY_DTYPE
from ..dtypes import FLOAT, dtype
from ..errors import UsageError
from ..row import OpFunction, row
from .batching import over_dims
from .creation import zeros_like
from .extremes import amax, amin, the_same
from .indexing import masked_fill
from .pointwise import abs as absolute
from .pointwise import pow as power
from .pointwise import sgn
from .reduction import counted, pull, push
from .reduction import sum as sum_over
from .shape import kept, movedim, normal_dim, normal_dims, reshape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tensor import Tensor


def norm_kernel(xp: Any, x0: Any, order: float, dims: tuple[int, ...], keepdim: bool, dtype: dtype) -> Any:
    """The norm of that order over dimensions, of arrays; the elements are cast first."""
    x0 = x0.astype(NUMPY_DTYPE[dtype], copy=False)
    how = {"axis": dims, "keepdims": keepdim}
    if order == 2:
        return xp.sqrt(xp.sum(xp.square(x0) if x0.dtype.kind == "f" else (x0 * x0.conj()).real, **how))
    sizes = xp.abs(x0)
    if order == 0:
        return xp.sum(sizes != 0, **how).astype(sizes.dtype)
    if order in (inf, -inf):
        return (xp.max if order > 0 else xp.min)(sizes, **how)
    if order == 1:
        return xp.sum(sizes, **how)
    return xp.sum(sizes * sizes * sizes if order == 3 else sizes ** order, **how) ** (1 / order)


def norm_slope(x: Tensor, out: Tensor, order: float, dims: tuple[int, ...], keepdim: bool) -> tuple[Any, Tensor]:
    """The derivative of the norm for each element, 0 where the norm is 0: a factor for each norm, and one for each element."""
    if order == 0:
        return 1, zeros_like(x)
    if order == 1:
        return 1, sgn(x)
    if order == 2:
        return masked_fill(1 / out, out == 0, 0), x
    size = absolute(x)
    if order in (inf, -inf):
        ties = the_same(size, kept(out, x.shape, dims, keepdim))
        return 1 / counted(ties, dims=dims, keepdim=keepdim).to(out.dtype), sgn(x) * ties
    if order < 1:
        slope = masked_fill(power(size, order - 1), x == 0, 0)
        return 1, sgn(x) * slope * power(kept(out, x.shape, dims, keepdim), 1 - order)
    each = masked_fill(power(out, 1 - order), out == 0, 0)
    return each, sgn(x) * power(size, order - 1) if order < 2 else x * (size if order == 3 else power(size, order - 2))


def _pull_slope(ct: Tensor, x0: Tensor, out: Tensor, order: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    each, weight = norm_slope(x0, out, order, dims, keepdim)
    return pull(ct * each, weight, dims, keepdim)


def _push_slope(dx: Tensor, x0: Tensor, out: Tensor, order: float, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    each, weight = norm_slope(x0, out, order, dims, keepdim)
    return push(dx, weight, dims, keepdim) * each  # type: ignore[no-any-return]


_vector_norm: OpFunction = row(
    "linalg_vector_norm", norm_kernel, saves=("x0", "out"), fits=True, batch=over_dims,
    vjp=(_pull_slope,), jvp=(_push_slope,))


def vector_norm(x: Tensor, ord: float = 2, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,  # noqa: A002
                dtype: dtype | None = None) -> Tensor:
    """(sum of |x| ** ord) ** (1 / ord) over dimensions; the largest |x| for inf, the number of nonzeros for 0.

    Raises UsageError for an int tensor, and for the largest of no elements.  Source: torch.linalg.vector_norm.
    """
    if x.dtype.category < FLOAT:
        msg = f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {x.dtype}"
        raise UsageError(msg)
    dims = normal_dims(dim, x.ndim)
    if (ord == inf or ord < 0) and any(x.shape[d] == 0 for d in dims):
        msg = (f"linalg.vector_norm cannot compute the {ord} norm on an empty tensor (shape {list(x.shape)}, dims "
               f"{list(dims)}) because the operation does not have an identity")
        raise UsageError(msg)
    return _vector_norm(x, order=ord, dims=dims, keepdim=keepdim, dtype=dtype or x.dtype)  # type: ignore[no-any-return]


def norm(x: Tensor, p: float | str | None = "fro", dim: int | Sequence[int] | None = None, keepdim: bool = False,
         dtype: dtype | None = None) -> Tensor:
    """The p-norm of the elements over dimensions; "fro" is 2, "nuc" the matrix norm of that name.  Source: torch.norm."""
    if p == "nuc":
        return matrix_norm(x, p, (0, 1) if dim is None else dim, keepdim, dtype=dtype)  # type: ignore[arg-type]
    return vector_norm(x, 2 if p in (None, "fro") else float(p), dim, keepdim, dtype=dtype)


def matrix_norm(x: Tensor, ord: float | str = "fro", dim: Sequence[int] = (-2, -1), keepdim: bool = False, *,  # noqa: A002
                dtype: dtype | None = None) -> Tensor:
    """The norm of matrices: "fro", or the largest (smallest) sum of |x| over columns for 1 (-1), over rows for inf (-inf).

    The largest (smallest) singular value for 2 (-2), the sum of them for "nuc".  Source: torch.linalg.matrix_norm.
    """
    rows, columns = (normal_dim(d, x.ndim) for d in dim)
    if ord == "fro":
        return vector_norm(x, 2, (rows, columns), keepdim, dtype=dtype)
    if ord in (2, -2, "nuc"):
        return _spectral(x if dtype is None else x.to(dtype), ord, rows, columns, keepdim)
    if ord not in (1, -1, inf, -inf):
        msg = f"linalg.matrix_norm: Order {ord} not supported."
        raise UsageError(msg)
    over, among = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = vector_norm(x, 1, over, keepdim, dtype=dtype)
    return (amax if ord > 0 else amin)(sums, among - (among > over and not keepdim), keepdim)


def _spectral(x: Tensor, order: float | str, rows: int, columns: int, keepdim: bool) -> Tensor:
    from .spectra import svdvals  # noqa: PLC0415  few programs need singular values, which need norms

    values = svdvals(movedim(x, (rows, columns), (-2, -1)))
    out = (sum_over if order == "nuc" else amax if order == 2 else amin)(values, -1, keepdim)
    return reshape(out, [1 if d in (rows, columns) else n for d, n in enumerate(x.shape)]) if keepdim else out


def of_vector_or_matrix(x: Tensor, ord: float | str | None = None, dim: int | Sequence[int] | None = None,  # noqa: A002
                        keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The norm of a vector, or with an order and two dimensions of a matrix.  Source: torch.linalg.norm."""
    dims = tuple(range(x.ndim)) if dim is None else (dim,) if isinstance(dim, int) else tuple(dim)
    if ord is None or (len(dims) == 1 and not isinstance(ord, str)):
        return vector_norm(x, 2 if ord is None else float(ord), dim, keepdim, dtype=dtype)
    if len(dims) != 2:
        msg = f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {len(dims)}D."
        raise UsageError(msg)
    return matrix_norm(x, ord, dims, keepdim, dtype=dtype)
