"""Largest and smallest elements, and order: values that are taken from the input, with the indices they are from.

    amax, max(x), aminmax     every element that equals the result has an equal share in the gradient
    max(x, dim), sort, topk   one element was chosen: the gradient goes to it alone, by the saved index

Upstream: derivatives.yaml; value_selecting_reduction_backward, evenly_distribute_backward in FunctionsManual.cpp.
"""

from __future__ import annotations

from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backend import is_known
from ..dtypes import BOOL, FLOAT
from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import along_dim, elementwise, over_dims
from .choice import choose, maximum, minimum
from .gather import along_key, elements, gather_at, spread_at
from .reduction import counted
from .shape import kept, normal_dim, normal_dims, reshape, sum_dims, unsqueeze
from .special import accumulate

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Array


class Chosen(NamedTuple):
    """What max, sort and the like return.  Source: torch.return_types."""

    values: Tensor
    indices: Tensor


class MinMax(NamedTuple):
    """What aminmax returns.  Source: torch.return_types.aminmax."""

    min: Tensor
    max: Tensor


# ---------------------------------------------------------------- shared by what equals the result
def _alike(xp: Any, x0: Array, x1: Array) -> Array:
    """Equal, or nan both: a pass less where it is known that they are not, as torch does on the CPU alone."""
    same = x0 == x1
    return same if is_known(xp, x1) else same | (xp.isnan(x0) > ~xp.isnan(x1))  # of one number, & takes 20 times as long as >


the_same = row("equal_or_nan", _alike, vjp=None, jvp=None, batch=elementwise, promote="arith",
                doc="What torch means where it takes one extreme of all elements.")


def _shares(ties_of: Callable[[Tensor, Tensor], Tensor],
            give: Callable[[Tensor, Tensor], Tensor]) -> tuple[Callable[..., Tensor], Callable[..., Tensor]]:
    """The vjp and the jvp of an extreme: the elements that `ties_of` finds in it are given equal shares."""
    def ties(x: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> tuple[Tensor, Tensor]:
        """Which elements they are, and how many."""
        found = ties_of(x, kept(out, x.shape, dims, keepdim))
        return found, counted(found, dims=dims, keepdim=keepdim)

    def pull_shares(ct: Tensor, x0: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        found, n = ties(x0, out, dims, keepdim)
        return give(found, kept(ct / n, x0.shape, dims, keepdim))

    def push_shares(dx: Tensor, x0: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
        found, n = ties(x0, out, dims, keepdim)
        return sum_dims(dx * found, dims=dims, keepdim=keepdim) / n  # type: ignore[no-any-return]
    return pull_shares, push_shares


# over dimensions torch multiplies by the mask: a share that is no finite number is nan elsewhere; of all elements it chooses
_over_dims = _pull_shares, _push_shares = _shares(lambda x, out: x == out, lambda found, share: found * share)
_of_all = _shares(the_same, lambda found, share: choose(found, share, 0))


def _extreme_row(name: str, kernel: Callable[..., Any], shares: tuple[Callable[..., Tensor], Callable[..., Tensor]], *,
                 node: str | None = None) -> OpFunction:
    pull_shares, push_shares = shares
    return row(name, kernel, arity=1, saves=("x0", "out"), batch=over_dims, node=node, vjp=(pull_shares,), jvp=(push_shares,))


def extreme_of_all(name: str, kernel: Callable[..., Any], *, node: str | None = None) -> OpFunction:
    """A row of one element of all; those that equal it, or are nan as it is, share the gradient."""
    return _extreme_row(name, kernel, _of_all, node=node)


def _median_kernel(xp: Any, x0: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return of_flat(xp, _middle, x0, dims, keepdim=keepdim)


def of_flat(xp: Any, f: Callable[..., Array], x0: Array, dims: tuple[int, ...], *, keepdim: bool) -> Array:
    """What f(xp, x, dim) makes of several dimensions taken for one."""
    kept = [d for d in range(x0.ndim) if d not in dims]
    flat = xp.transpose(x0, (*kept, *dims)).reshape(*[x0.shape[d] for d in kept], -1)
    found = f(xp, flat, flat.ndim - 1)
    return found.reshape([1 if d in dims else n for d, n in enumerate(x0.shape) if keepdim or d not in dims])


def _max_kernel(xp: Any, x0: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return x0.max(axis=dims, keepdims=keepdim)


def _min_kernel(xp: Any, x0: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    return x0.min(axis=dims, keepdims=keepdim)


_amax = _extreme_row("amax", _max_kernel, _over_dims)
_amin = _extreme_row("amin", _min_kernel, _over_dims)
_max_all = extreme_of_all("max", _max_kernel, node="MaxBackward1")
_min_all = extreme_of_all("min", _min_kernel, node="MinBackward1")
_median_all = extreme_of_all("median", _median_kernel)


def _aminmax_vjp(ct: list[Any], x0: Tensor, out0: Tensor, out1: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    parts = [_pull_shares(c, x0, out, dims, keepdim)
             for c, out in zip(ct, (out0, out1), strict=True) if c is not None]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


_aminmax: OpFunction = row(
    "aminmax", lambda xp, x0, dims, keepdim: (x0.min(axis=dims, keepdims=keepdim), x0.max(axis=dims, keepdims=keepdim)),
    saves=("x0", "out0", "out1"), outs=2, batch=over_dims, vjp=(_aminmax_vjp,),
    jvp=lambda dx, x0, out0, out1, dims, keepdim: tuple(
        _push_shares(dx[0], x0, out, dims, keepdim) for out in (out0, out1)))


# ---------------------------------------------------------------- one element chosen, along one dimension
def _spread(ct: list[Any], out1: Tensor, shape0: tuple[int, ...], dim: int, keepdim: bool) -> Tensor:
    """The cotangents of chosen values at the places they came from."""
    values, indices = (ct[0], out1) if keepdim else (unsqueeze(ct[0], dim), unsqueeze(out1, dim))
    return spread_at(values, indices, shape=shape0, dim=dim, distinct=True)  # type: ignore[no-any-return]


def _chosen(dx: list[Any], out1: Tensor, dim: int, keepdim: bool) -> tuple[Tensor, None]:
    """The tangents of chosen values."""
    if keepdim:
        return gather_at(dx[0], out1, dim=dim), None
    found = gather_at(dx[0], unsqueeze(out1, dim), dim=dim)
    return reshape(found, found.shape[:dim] + found.shape[dim + 1:]), None


def choice_row(name: str, index: Callable[..., Any], *, node: str | None = None) -> OpFunction:
    """A row of (values, indices); `index` is f(xp, array, dim, more) -> indices, where more is the row's own parameter."""
    def kernel(xp: Any, x0: Any, dim: int, keepdim: bool, **more: Any) -> Any:
        indices = index(xp, x0, dim, **more)
        values = elements(xp, x0, along_key(xp, indices, dim))
        return (values, indices) if keepdim else (values.squeeze(dim), indices.squeeze(dim))

    return row(name, kernel, saves=("out1",), outs=2, vjp=(_spread,), jvp=_chosen, batch=along_dim, node=node)


def sort_order(xp: Any, x: Any, dim: int, descending: bool) -> Any:
    """Indices that sort, equal elements in the order they stand; nan is the largest."""
    if not descending:
        return xp.argsort(x, axis=dim, kind="stable")
    return xp.ascontiguousarray(xp.flip(x.shape[dim] - 1 - xp.argsort(xp.flip(x, dim), axis=dim, kind="stable"), dim))


def _first(x: Any, dim: int, k: int) -> Any:
    return x[(*[slice(None)] * dim, slice(k))].copy()  # the rest is not kept


def smallest(xp: Any, x: Any, dim: int, k: int) -> Any:
    """The k-th smallest, counted from 1; nan is the largest."""
    return xp.partition(x, k - 1, axis=dim)[(*[slice(None)] * dim, slice(k - 1, k))]


def nth(xp: Any, x: Any, dim: int, k: int) -> Any:
    """Where that is; of equal elements, the one that comes to place k in the order."""
    value = smallest(xp, x, dim, k)
    found = x == value
    if xp.count_nonzero(found) == value.size:
        return xp.argmax(found, axis=dim, keepdims=True)
    return sort_order(xp, x, dim, descending=False)[(*[slice(None)] * dim, slice(k - 1, k))].copy()


def _middle(xp: Any, x: Any, dim: int) -> Any:
    """The lower of the two in the middle; nan where there is a nan."""
    top = x.max(axis=dim, keepdims=True)
    return xp.where(xp.isnan(top), top, smallest(xp, x, dim, (x.shape[dim] + 1) // 2))


def _median_index(xp: Any, x: Any, dim: int) -> Any:
    """Where that is."""
    middle = nth(xp, x, dim, (x.shape[dim] + 1) // 2)
    lost = xp.isnan(x)
    return xp.where(xp.any(lost, axis=dim, keepdims=True), xp.argmax(lost, axis=dim, keepdims=True), middle)


def _top(xp: Any, x: Any, dim: int, k: int, largest: bool) -> Any:
    """The k first of the order, of which nothing but these has to be put in order."""
    n = x.shape[dim]
    if not 0 < k < n:
        return _first(sort_order(xp, x, dim, largest), dim, k)
    apart = xp.argpartition(x, n - k if largest else k - 1, axis=dim)
    found = xp.sort(apart[(*[slice(None)] * dim, slice(n - k, n) if largest else slice(k))], axis=dim)
    return xp.take_along_axis(found, sort_order(xp, xp.take_along_axis(x, found, dim), dim, largest), dim)


_max = choice_row("max", lambda xp, x, dim: xp.argmax(x, axis=dim, keepdims=True))
_min = choice_row("min", lambda xp, x, dim: xp.argmin(x, axis=dim, keepdims=True))
_median = choice_row("median", _median_index, node="MedianBackward1")
_kthvalue = choice_row("kthvalue", nth)
_sort = choice_row("sort", sort_order)
_topk = choice_row("topk", _top)


# ---------------------------------------------------------------- running extremes: a place may be chosen more than once
def _running(name: str, ufunc: str) -> OpFunction:
    def kernel(xp: Any, x0: Any, dim: int) -> Any:
        values = accumulate(xp, ufunc, x0, dim)
        places = xp.arange(x0.shape[dim]).reshape([-1 if d == dim else 1 for d in range(x0.ndim)])
        return values, accumulate(xp, "maximum", xp.where((x0 == values) | xp.isnan(x0), places, 0), dim)

    return row(name, kernel, saves=("x0", "out1"), outs=2, batch=along_dim,
               vjp=(lambda ct, x0, out1, dim: spread_at(ct[0], out1, shape=x0.shape, dim=dim, distinct=False),),
               jvp=lambda dx, out1, dim: (gather_at(dx[0], out1, dim=dim), None))


_cummax, _cummin = _running("cummax", "maximum"), _running("cummin", "minimum")


# ---------------------------------------------------------------- places alone
_argmax = row("argmax", lambda xp, x0, dim, keepdim: xp.argmax(x0, axis=dim, keepdims=keepdim), arity=1, vjp=None, jvp=None,
              batch=along_dim)
_argmin = row("argmin", lambda xp, x0, dim, keepdim: xp.argmin(x0, axis=dim, keepdims=keepdim), arity=1, vjp=None, jvp=None,
              batch=along_dim)


# ---------------------------------------------------------------- public
def _ordered(f: OpFunction, x: Tensor) -> None:
    if x.dtype.is_complex:
        msg = f"\"{f.__name__}\" not implemented for '{x.dtype.name}': complex numbers have no order"
        raise UsageError(msg)


def chosen_along(f: OpFunction, x: Tensor, dim: int, **more: Any) -> Chosen:
    """Call a row of (values, indices); a 0-d tensor counts as a vector of one element."""
    _ordered(f, x)
    at = normal_dim(dim, x.ndim)
    if x.ndim:
        return Chosen(*f(x, dim=at, **more))
    return Chosen(*[reshape(out, ()) for out in f(reshape(x, 1), dim=0, **more)])


def not_empty(name: str, x: Tensor, dims: Sequence[int], error: type[Exception] = IndexError) -> None:
    """Raise `error` where a dimension to reduce holds nothing."""
    for d in dims:
        if x.ndim and not x.shape[d]:
            msg = f"{name}(): Expected reduction dim {d} to have non-zero size."
            raise error(msg)


def _over(f: OpFunction, x: Tensor, dim: Any, keepdim: bool) -> Any:
    _ordered(f, x)
    dims = normal_dims(dim, x.ndim)
    not_empty(f.__name__, x, dims, UsageError if dim in (None, ()) else IndexError)
    return f(x, dims=dims, keepdim=keepdim)


def _all_of(f: OpFunction, x: Tensor) -> Tensor:
    _ordered(f, x)
    if not x.numel():
        msg = (f"{f.__name__}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with "
               "the 'dim' argument.")
        raise UsageError(msg)
    return f(x, dims=tuple(range(x.ndim)), keepdim=False)  # type: ignore[no-any-return]


def amax(x: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The largest element over dimensions; equal ones share the gradient.  Source: torch.amax."""
    return _over(_amax, x, dim, keepdim)  # type: ignore[no-any-return]


def amin(x: Tensor, dim: int | Sequence[int] = (), keepdim: bool = False) -> Tensor:
    """The smallest element over dimensions; equal ones share the gradient.  Source: torch.amin."""
    return _over(_amin, x, dim, keepdim)  # type: ignore[no-any-return]


def aminmax(x: Tensor, *, dim: int | None = None, keepdim: bool = False) -> MinMax:
    """The smallest and the largest element over one dimension, or all.  Source: torch.aminmax."""
    return MinMax(*_over(_aminmax, x, dim, keepdim))


def _extremes(x: Tensor, dim: Any, keepdim: bool, other: Any, rows: tuple[OpFunction, OpFunction, OpFunction]) -> Any:
    whole, chosen, pair = rows
    other = dim if isinstance(dim, Tensor) else other
    if other is not None:
        return pair(x, other)
    if dim is None:
        return _all_of(whole, x)
    not_empty(chosen.__name__, x, (normal_dim(dim, x.ndim),))
    return chosen_along(chosen, x, dim, keepdim=keepdim)


def max(x: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:  # noqa: A001
    """The largest element; along a dimension (values, indices); of two tensors their maximum.

    Equal elements share the gradient, except along a dimension, where it goes to the one chosen.  Source: torch.max.
    """
    return _extremes(x, dim, keepdim, other, (_max_all, _max, maximum))


def min(x: Tensor, dim: int | Tensor | None = None, keepdim: bool = False, *, other: Tensor | None = None) -> Any:  # noqa: A001
    """As max, of the smallest.  Source: torch.min."""
    return _extremes(x, dim, keepdim, other, (_min_all, _min, minimum))


def of_nothing(x: Tensor) -> Tensor:
    """The median of no numbers, which is nan."""
    return sum_dims(x, dims=tuple(range(x.ndim)), keepdim=False) + nan  # type: ignore[no-any-return]


def median(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """The element in the middle, the lower of two; along a dimension (values, indices).  Source: torch.median."""
    if dim is None:
        return _all_of(_median_all, x) if x.numel() or x.dtype.category < FLOAT else of_nothing(x)
    not_empty("median", x, (normal_dim(dim, x.ndim),))
    return chosen_along(_median, x, dim, keepdim=keepdim)


def kthvalue(x: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Chosen:
    """The k-th smallest along a dimension, counted from 1: (values, indices).  Source: torch.kthvalue."""
    if not 1 <= k <= (x.shape[normal_dim(dim, x.ndim)] if x.ndim else 1):
        msg = "kthvalue(): selected number k out of range for dimension"
        raise UsageError(msg)
    return chosen_along(_kthvalue, x, dim, k=k, keepdim=keepdim)


def _arg(f: OpFunction, x: Tensor, dim: int | None, keepdim: bool) -> Tensor:
    name = f.__name__
    _ordered(f, x)
    if x.dtype.category == BOOL:
        msg = f"{name}(): does not support bool input"
        raise UsageError(msg)
    if dim is None:
        if not x.numel():
            msg = f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
            raise IndexError(msg)
        return reshape(f(reshape(x, -1), dim=0, keepdim=False), (1,) * x.ndim if keepdim else ())
    at = normal_dim(dim, x.ndim)
    not_empty(name, x, (at,))
    return f(x, dim=at, keepdim=keepdim) if x.ndim else reshape(f(reshape(x, 1), dim=0, keepdim=False), ())


def argmax(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the largest element is along a dimension, or in the flat tensor.  Source: torch.argmax."""
    return _arg(_argmax, x, dim, keepdim)


def argmin(x: Tensor, dim: int | None = None, keepdim: bool = False) -> Tensor:
    """Where the smallest element is along a dimension, or in the flat tensor.  Source: torch.argmin."""
    return _arg(_argmin, x, dim, keepdim)


def sort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Chosen:
    """The elements in order along a dimension: (values, indices); always stable.  Source: torch.sort."""
    return chosen_along(_sort, x, dim, descending=descending, keepdim=True)


def argsort(x: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort along a dimension.  Source: torch.argsort."""
    return sort(x, dim, descending).indices


def topk(x: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Chosen:  # noqa: A002
    """The k largest (or smallest) along a dimension, in order: (values, indices).  Source: torch.topk."""
    if not 0 <= k <= (x.shape[normal_dim(dim, x.ndim)] if x.ndim else 1):
        msg = "selected index k out of range"
        raise UsageError(msg)
    return chosen_along(_topk, x, dim, k=k, largest=largest, keepdim=True)


def cummax(x: Tensor, dim: int) -> Chosen:
    """The largest so far along a dimension: (values, indices).  Source: torch.cummax."""
    return chosen_along(_cummax, x, dim)


def cummin(x: Tensor, dim: int) -> Chosen:
    """The smallest so far along a dimension: (values, indices).  Source: torch.cummin."""
    return chosen_along(_cummin, x, dim)
