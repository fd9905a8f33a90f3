"""Products composed of those of linalg.py: sums, linear and bilinear maps, cross and Cartesian products, blocks, powers.

Source: torch.addmv, torch.cross, torch.cartesian_prod, torch.block_diag, torch.linalg.vander.
"""

from __future__ import annotations

from itertools import combinations as _combinations
from itertools import combinations_with_replacement
from math import prod
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, int64
from ..errors import UsageError
from ..row import OpFunction, row
from .batching import along_dim
from .choice import result_type, where
from .creation import new_zeros, ones_like, tensor
from .gather import index_select
from .joining import atleast_2d, cat, stack
from .linalg import addmm, broadcast_shapes, dot, einsum, matmul, mv, outer, tensordot
from .norm import vector_norm
from .pointwise import conj
from .rearrange import is_contiguous, meshgrid
from .reduction import sum as sum_over
from .scan import cumprod
from .shape import normal_dim, reshape, t, unsqueeze, widened

if TYPE_CHECKING:
    from ..tensor import Tensor


# ---------------------------------------------------------------- sums of products
def _added(x: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * x + alpha * product, in the common dtype: of ints the factors lose their fractions."""
    common = result_type(x, product)
    if common.category < FLOAT:
        beta, alpha = int(beta), int(alpha)
    scaled = product if alpha == 1 else product * alpha
    return (scaled if beta == 0 else (x if beta == 1 else x * beta) + scaled).to(common)  # type: ignore[no-any-return]


def addmv(x: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * (mat @ vec).  Source: torch.addmv."""
    return widened(_added(x, mv(mat, vec), beta, alpha), mat.shape[0])


def addr(x: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * the outer product of two vectors.  Source: torch.addr."""
    return _added(x, outer(vec1, vec2), beta, alpha)


def addbmm(x: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * x + alpha * the sum over a batch of products of matrices.  Source: torch.addbmm."""
    return _added(x, sum_over(matmul(batch1, batch2), 0, dtype=batch1.dtype), beta, alpha)


def inner(x: Tensor, y: Tensor) -> Tensor:
    """The sum of products over the last dimensions.  Source: torch.inner."""
    if not x.ndim or not y.ndim:
        return x * y
    if x.shape[-1] != y.shape[-1]:
        msg = f"inner() the last dimension must match on both input tensors but got shapes {list(x.shape)} and {list(y.shape)}"
        raise UsageError(msg)
    return dot(x, y) if x.ndim == y.ndim == 1 else tensordot(x, y, ([-1], [-1]))


def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The sum of conj(x) * y along a dimension.  Source: torch.linalg.vecdot."""
    return sum_over(conj(x) * y, dim)


_cross: OpFunction = row(
    "linalg_cross", lambda xp, x0, x1, dim: xp.cross(x0, x1, axis=dim), saves=("x1", "x0"), fits=True, batch=along_dim,
    vjp=(lambda ct, x1, dim: _cross(conj(x1), ct, dim=dim), lambda ct, x0, dim: _cross(ct, conj(x0), dim=dim)),
    jvp=(lambda dx, x1, dim: _cross(dx, x1, dim=dim), lambda dx, x0, dim: _cross(x0, dx, dim=dim)))


def cross_along(x: Tensor, other: Tensor, dim: int = -1) -> Tensor:
    """The cross product along a dimension of extent 3.  Source: torch.linalg.cross."""
    shape = broadcast_shapes(x.shape, other.shape)
    at = normal_dim(dim, len(shape))
    if x.ndim != other.ndim or shape[at] != 3 or x.shape[at] != other.shape[at]:
        msg = f"linalg.cross: inputs dimension {dim} must have length 3. Got {list(x.shape)} and {list(other.shape)}"
        raise UsageError(msg)
    return _cross(x, other, dim=at)  # type: ignore[no-any-return]


cross_along.__name__ = "cross"


def cross(x: Tensor, other: Tensor, dim: int | None = None) -> Tensor:
    """As linalg.cross; without `dim`, along the first dimension of extent 3.  Source: torch.cross."""
    if dim is None:
        dim = next((d for d, n in enumerate(x.shape) if n == 3), None)
        if dim is None:
            msg = "no dimension of size 3 in input"
            raise UsageError(msg)
    return cross_along(x, other, dim)


# ---------------------------------------------------------------- maps of the last dimension
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product of x's last dimension with the rows of `weight`, plus bias.

    One addmm where there is a bias and x folds without a copy, as in torch.  Source: torch.nn.functional.linear.
    """
    if not x.ndim or not weight.ndim:
        msg = f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D"
        raise UsageError(msg)
    if bias is None:
        return matmul(x, t(weight))
    if x.ndim == 2:
        return addmm(bias, x, t(weight))
    if is_contiguous(x):
        rows = addmm(bias, reshape(x, prod(x.shape[:-1]), x.shape[-1]), t(weight))
        return reshape(rows, *x.shape[:-1], rows.shape[-1])
    return matmul(x, t(weight)) + bias


def bilinear(x1: Tensor, x2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x1 (.., n), x2 (.., m) as (.., k), the sum of x1_i weight_kij x2_j, plus bias.  Source: torch.nn.functional.bilinear."""
    for name, x, n in (("input1", x1, 1), ("input2", x2, 2)):
        if x.shape[-1] != weight.shape[n]:
            msg = f"bilinear(): {name} size does not match weight size: got {x.shape[-1]} but expected {weight.shape[n]}"
            raise UsageError(msg)
    if x1.shape[:-1] != x2.shape[:-1]:
        msg = f"bilinear(): input batch dimensions do not match: got {list(x1.shape[:-1])} and {list(x2.shape[:-1])}"
        raise UsageError(msg)
    if bias is not None and bias.shape != weight.shape[:1]:
        msg = f"bilinear(): bias size does not match weight size: got {bias.shape[0]} but expected {weight.shape[0]}"
        raise UsageError(msg)
    k, n, m = weight.shape
    flat1, flat2 = reshape(x1, prod(x1.shape[:-1]), n), reshape(x2, prod(x2.shape[:-1]), m)
    out = reshape(einsum("bi,kij,bj->bk", flat1, weight, flat2), *x1.shape[:-1], k)
    return out if bias is None else out + bias


# ---------------------------------------------------------------- every choice of elements
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Every choice of one element from each vector, a row each.  Source: torch.cartesian_prod."""
    if any(x.ndim != 1 for x in tensors):
        msg = "Expect a 1D vector, but got shape " + str([list(x.shape) for x in tensors])
        raise UsageError(msg)
    return tensors[0] if len(tensors) == 1 else stack([reshape(x, -1) for x in meshgrid(*tensors)], 1)


def combinations(x: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Every choice of r elements of a vector, a row each.  Source: torch.combinations."""
    if x.ndim != 1 or r < 0:
        msg = f"Expect a 1D vector and a non-negative number, but got shape {list(x.shape)} and {r}"
        raise UsageError(msg)
    if r == 0:
        return new_zeros(x, 0)
    chosen = list((combinations_with_replacement if with_replacement else _combinations)(range(x.shape[0]), r))
    places = tensor([i for each in chosen for i in each], dtype=int64, device=x.device)
    return reshape(index_select(x, 0, places), len(chosen), r)


def block_diag(*tensors: Tensor) -> Tensor:
    """A matrix with the tensors, as matrices, along its diagonal.  Source: torch.block_diag."""
    if not tensors:
        return new_zeros(tensor(0.0), 1, 0)
    if any(x.ndim > 2 for x in tensors):
        msg = f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Got {[x.ndim for x in tensors]}"
        raise UsageError(msg)
    blocks = [atleast_2d(x) for x in tensors]
    width = sum(b.shape[1] for b in blocks)
    rows, at = [], 0
    for b in blocks:
        n, m = b.shape
        rows.append(cat([new_zeros(b, n, at), b, new_zeros(b, n, width - at - m)], 1))
        at += m
    return cat(rows, 0)


def vander(x: Tensor, *, N: int | None = None) -> Tensor:  # noqa: N803  torch's name
    """The powers 0 .. N - 1 of each element, in a last dimension.  Source: torch.linalg.vander."""
    x = x if x.ndim else reshape(x, 1)
    n = x.shape[-1] if N is None else N
    if n <= 1 and N is not None:
        msg = f"N must be greater than 1, but got {n}"
        raise UsageError(msg)
    x = unsqueeze(x, -1)
    return cat([ones_like(x), cumprod(widened(x, *x.shape[:-1], n - 1), -1)], -1)


# ---------------------------------------------------------------- distances
def dist(x: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The p-norm of the difference.  Source: torch.dist."""
    return vector_norm(x - other, p)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps over the last dimension.  Source: torch.nn.functional.pairwise_distance."""
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """`x` with the entries of a dimension made so short that their p-norm is at most maxnorm.  Source: torch.renorm."""
    at = normal_dim(dim, x.ndim)
    if p <= 0 or maxnorm < 0 or x.ndim < 2:
        msg = f"renorm: expected a matrix, a positive p and maxnorm >= 0, but got shape {list(x.shape)}, {p} and {maxnorm}"
        raise UsageError(msg)
    norms = vector_norm(x, p, [d for d in range(x.ndim) if d != at], keepdim=True)
    return x * where(norms > maxnorm, maxnorm / (norms + 1e-7), 1.0)
