"""Elements that go to one place, reduced there: an index says which, for each element or for whole entries.

    scatter_reduce([1, 2, 3], 0, index=[0, 0, 2], src=[10, 20, 30], "amax")      [20, 2, 30]

Upstream: scatter_reduce_backward, scatter_reduce_jvp and index_reduce_backward in FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..row import OpFunction, row
from .batching import along_dim
from .choice import choose
from .creation import ones_like, zeros_like
from .gather import gather_at, index_vector, one_rank, place_key, scatter_add_at, scatter_at
from .indexing import masked_fill
from .pointwise import conj
from .reduction import total_of
from .shape import normal_dim, reshape, widened
from .special import add_at, combine_at

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor

_BINARY = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "maximum", "amin": "minimum"}


def _reduced_kernel(xp: Any, x0: Array, x1: Array, x2: Array, dim: int, reduce: str, include_self: bool) -> Array:
    key, out = place_key(xp, x1, x0.shape[dim], dim), xp.array(x0)
    if not include_self:
        out[key] = x2 if reduce in ("amax", "amin") else reduce == "prod"  # one of the elements, or none
    combine_at(xp, _BINARY[reduce], out, key, x2)
    if reduce == "mean":
        count = xp.full(out.shape, 1, "int32")
        count[key] = include_self
        add_at(xp, count, key, xp.full(x2.shape, 1, "int32"))
        return (out / count if out.dtype.kind in "fc" else out // count).astype(out.dtype)
    return out


# ---------------------------------------------------------------- what each element counts
class _Shares(NamedTuple):
    """The derivative of a place by the element that was there, and by each that goes to it."""

    own: Any
    given: Any


def _shares(x: Tensor, index: Tensor, src: Tensor, out: Tensor, dim: int, reduce: str, include_self: bool) -> _Shares:
    if reduce in ("amax", "amin"):
        return _shared(x, index, src, out, dim, include_self)
    if reduce == "prod":
        return _others(x, index, src, dim, include_self)
    if reduce == "sum":
        return _Shares(1, 1)
    count = scatter_add_at(_where_kept(ones_like(x), index, dim, include_self), index, ones_like(src), dim=dim)
    return _Shares(1 / count, 1 / gather_at(count, index, dim=dim))


def _where_kept(x: Tensor, index: Tensor, dim: int, include_self: bool) -> Tensor:
    """0 where elements go, if what was there does not count."""
    return x if include_self else scatter_at(x, index, 0, dim=dim)


def _shared(x: Tensor, index: Tensor, src: Tensor, out: Tensor, dim: int, include_self: bool) -> _Shares:
    """Elements that are the extreme of their place share it."""
    own = _where_kept((x == out).to(x.dtype), index, dim, include_self)
    given = (src == gather_at(out, index, dim=dim)).to(x.dtype)
    count = scatter_add_at(own, index, given, dim=dim)
    count = masked_fill(count, count == 0, 1)  # nan is equal to nothing
    return _Shares(own / count, given / gather_at(count, index, dim=dim))


def _others(x: Tensor, index: Tensor, src: Tensor, dim: int, include_self: bool) -> _Shares:
    """The product of the other elements of a place, so written that its derivative is right where one other element is 0."""
    x = x if include_self else scatter_at(x, index, 1, dim=dim)
    lost, gone = x == 0, src == 0
    product = _scatter_reduce(masked_fill(x, lost, 1), index, masked_fill(src, gone, 1), dim=dim, reduce="prod",
                              include_self=True)
    count = scatter_add_at(lost.to(x.dtype), index, gone.to(x.dtype), dim=dim)
    zeros = scatter_add_at(masked_fill(x, ~lost, 0), index, masked_fill(src, ~gone, 0), dim=dim)

    def share(y: Tensor, zero: Tensor, product: Tensor, count: Tensor, zeros: Tensor) -> Tensor:
        others = count - zero.to(count.dtype)
        factor = choose(others == 0, 1, choose(others == 1, zeros - masked_fill(y, ~zero, 0), 0))
        return product / masked_fill(y, zero, 1) * factor  # type: ignore[no-any-return]
    return _Shares(share(x, lost, product, count, zeros),
                   share(src, gone, *(gather_at(z, index, dim=dim) for z in (product, count, zeros))))


# ---------------------------------------------------------------- the row
def _vjp(ct: Tensor, x0: Tensor, x1: Tensor, x2: Tensor, out: Tensor, needs: tuple[bool, ...], dim: int, reduce: str,
         include_self: bool) -> list[Any]:
    own, given = _shares(x0, x1, x2, out, dim, reduce, include_self)
    return [_where_kept(ct * conj(own), x1, dim, include_self) if needs[0] else None, None,
            gather_at(ct, x1, dim=dim) * conj(given) if needs[2] else None]


def _jvp(dx: list[Any], x0: Tensor, x1: Tensor, x2: Tensor, out: Tensor, dim: int, reduce: str, include_self: bool) -> Any:
    own, given = _shares(x0, x1, x2, out, dim, reduce, include_self)
    return total_of(None if dx[0] is None else _where_kept(dx[0] * own, x1, dim, include_self),
                    None if dx[2] is None else scatter_add_at(zeros_like(x0), x1, dx[2] * given, dim=dim))


_scatter_reduce: OpFunction = row(
    "scatter_reduce", _reduced_kernel, saves=("x1", "x0", "x2", "out"), batch=along_dim,
    vjp=_vjp, jvp=_jvp)


# ---------------------------------------------------------------- public
def scatter_reduce(x: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """`x` where the elements of `src` that go to one place are reduced there, with what was there or without.

    reduce: sum, prod, mean, amax or amin, whose gradient equal elements share; UsageError for another.
    Source: torch.scatter_reduce.
    """
    if reduce not in _BINARY:
        msg = f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}."
        raise UsageError(msg)
    x, index, src, at, added = one_rank("scatter", x, dim, index, src)
    out = _scatter_reduce(x, index, src, dim=at, reduce=reduce, include_self=include_self)
    return reshape(out, ()) if added else out


def index_reduce(x: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True) -> Tensor:
    """`x` where the entries of `source` that go to one entry are reduced there.

    reduce: prod, mean, amax or amin.  Raises UsageError for another, and where `source` is not of the shape of `x` with as many
    entries as the index.  Source: torch.index_reduce.
    """
    if reduce not in ("prod", "mean", "amax", "amin"):
        msg = f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}."
        raise UsageError(msg)
    at, index = normal_dim(dim, x.ndim), index_vector("index_reduce", index)
    if not x.ndim:
        return reshape(index_reduce(reshape(x, 1), 0, index, reshape(source, -1), reduce, include_self=include_self), ())
    if source.shape != (*x.shape[:at], index.numel(), *x.shape[at + 1:]):
        msg = (f"index_reduce(): source must have the shape of self, and along dim {at} as many entries as the index, "
               f"{index.numel()}. Got self.shape = {list(x.shape)} source.shape = {list(source.shape)}")
        raise UsageError(msg)
    places = widened(reshape(index, *[-1 if d == at else 1 for d in range(x.ndim)]), source.shape)
    return scatter_reduce(x, at, places, source, reduce, include_self=include_self)
