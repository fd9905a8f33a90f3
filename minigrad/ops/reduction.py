"""Reductions: sums and means, then products, variances, and truth.

The derivative of a reduction to one output is a weight for each element; `pull` and `push` apply it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import NUMPY_DTYPE
from ..dtypes import FLOAT, bool_, dtype, int64, uint8
from ..errors import UsageError
from ..row import OpFunction, row
from .batching import over_dims
from .choice import isfinite, isnan
from .creation import ones_like
from .indexing import masked_fill
from .pointwise import abs as absolute
from .pointwise import conj, real
from .scan import cumprod, no_zero, shifted
from .shape import flip_dims, normal_dims, permute, reshape, restore, sum_dims, sum_to, varargs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..tensor import Tensor


def pull(ct: Tensor, weight: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The cotangent of the input, from that of the output."""
    return restore(ct, weight.shape, dims, keepdim) * weight


def push(dx: Tensor, weight: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """The tangent of the output, from that of the input."""
    return sum_dims(dx * conj(weight), dims=dims, keepdim=keepdim)  # type: ignore[no-any-return]


def count(shape: tuple[int, ...], dims: tuple[int, ...]) -> int:
    """How many elements one output is made of."""
    n = 1
    for d in dims:
        n *= shape[d]
    return n


def total_of(*parts: Any) -> Any:
    """The sum of those that are there; None where none is."""
    total = None
    for part in parts:
        if part is not None:
            total = part if total is None else total + part
    return total


def _accumulated(x: Tensor, dtype: dtype | None) -> Tensor:
    """`x` in the type that it is summed in: int64 for ints and bools."""
    if dtype is None and x.dtype.category < FLOAT:
        dtype = int64
    return x if dtype is None else x.to(dtype)


# ---------------------------------------------------------------- sums and means
def sum(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *,  # noqa: A001
        dtype: dtype | None = None) -> Tensor:
    """The sum over dimensions (all, without dim); ints and bools sum as int64.  Source: torch.sum."""
    return sum_dims(_accumulated(x, dtype), dims=normal_dims(dim, x.ndim), keepdim=keepdim)  # type: ignore[no-any-return]


def _mean_kernel(xp: Any, x0: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    if x0.dtype.itemsize == 2 and x0.size:
        return xp.mean(x0, axis=dims, keepdims=keepdim)
    return xp.add.reduce(x0, axis=dims, keepdims=keepdim) / count(x0.shape, dims)


_mean = row("mean", _mean_kernel, arity=1, jvp="linear", batch=over_dims,
            vjp=(lambda ct, shape0, dims, keepdim: restore(ct / count(shape0, dims), shape0, dims, keepdim),))


def mean(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The mean over dimensions (all, without dim).  Raises UsageError for an int tensor.  Source: torch.mean."""
    x = x if dtype is None else x.to(dtype)
    if x.dtype.category < FLOAT:
        msg = ("mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
               f"Got: {x.dtype}")
        raise UsageError(msg)
    return _mean(x, dims=normal_dims(dim, x.ndim), keepdim=keepdim)  # type: ignore[no-any-return]


_nansum: OpFunction = row(
    "nansum", lambda xp, x0, dims, keepdim: xp.nansum(x0, axis=dims, keepdims=keepdim), arity=1, saves=("x0",), batch=over_dims,
    vjp=(lambda ct, x0, dims, keepdim: masked_fill(restore(ct, x0.shape, dims, keepdim), isnan(x0), 0),),
    jvp=(lambda dx, x0, dims, keepdim: sum_dims(masked_fill(dx, isnan(x0), 0), dims=dims, keepdim=keepdim),))


def nansum(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The sum of what is not nan.  Source: torch.nansum."""
    return _nansum(_accumulated(x, dtype), dims=normal_dims(dim, x.ndim), keepdim=keepdim)  # type: ignore[no-any-return]


def nanmean(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The mean of what is not nan.  Source: torch.nanmean."""
    if x.dtype.category < FLOAT:
        msg = f"nanmean(): expected input to have floating point or complex dtype but got {x.dtype}"
        raise UsageError(msg)
    return nansum(x, dim, keepdim, dtype=dtype) / sum(~isnan(x), dim, keepdim)


# ---------------------------------------------------------------- products
def _others(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    """For each element the product of all the others over `dims`: of those before it and those after it."""
    if 0 in x.shape:
        return ones_like(x)
    order = (*[d for d in range(x.ndim) if d not in dims], *dims)
    moved = permute(x, order)
    flat = reshape(moved, *moved.shape[:x.ndim - len(dims)], count(x.shape, dims))
    last = flat.ndim - 1
    before = shifted(cumprod(flat, last), last, 1)
    backwards = flip_dims(flat, dims=(last,))
    after = flip_dims(shifted(cumprod(backwards, last), last, 1), dims=(last,))
    return permute(reshape(before * after, moved.shape), tuple(order.index(d) for d in range(x.ndim)))


def _prod_vjp(ct: Tensor, x0: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if not x0.ndim:  # one factor: there is nothing to differentiate once more, as in torch
        return ct
    x = x0.to(ct.dtype)
    if no_zero(out):
        return restore(ct * conj(out), x.shape, dims, keepdim) / conj(x)  # type: ignore[no-any-return]
    return pull(ct, conj(_others(x, dims)), dims, keepdim)


def _prod_jvp(dx: Tensor, x0: Tensor, out: Tensor, dims: tuple[int, ...], keepdim: bool) -> Tensor:
    if no_zero(out):
        return sum_dims(dx / x0, dims=dims, keepdim=keepdim) * out  # type: ignore[no-any-return]
    return push(dx, conj(_others(x0, dims)), dims, keepdim)


_prod: OpFunction = row(
    "prod", lambda xp, x0, dims, keepdim, dtype: xp.prod(x0, axis=dims, keepdims=keepdim, dtype=NUMPY_DTYPE[dtype]),
    saves=("x0", "out"), fits=True, batch=over_dims,
    vjp=(_prod_vjp,), jvp=(_prod_jvp,))


def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: dtype | None = None) -> Tensor:
    """The product over one dimension, or all; ints and bools multiply as int64.  Source: torch.prod."""
    made = dtype or (int64 if x.dtype.category < FLOAT else x.dtype)
    return _prod(x, dims=normal_dims(dim, x.ndim), keepdim=keepdim, dtype=made)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- variances
def _spread(xp: Any, x0: Any, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    mean = _mean_kernel(xp, x0, dims, keepdim=True)
    d = x0 - mean
    squares = d * d if d.dtype.kind == "f" else (d * d.conj()).real
    n = xp.asarray(max(count(x0.shape, dims) - correction, 0), squares.dtype)
    spread = squares.sum(axis=dims, keepdims=keepdim) / n
    return spread, mean if keepdim else mean.reshape(spread.shape)


def _over(n: float, d: float) -> float:
    return n / d if d else float("inf")


def _slope(x: Tensor, dims: tuple[int, ...], correction: float, deviation: Tensor | None = None) -> tuple[Any, Tensor]:
    """The derivative of a variance, or of the standard deviation: a factor for each one of them, and one for each element.

    That of a deviation of 0 is 0.
    """
    each = _over(2, count(x.shape, dims) - correction)
    own = each if deviation is None else masked_fill(0.5 * each / deviation, deviation == 0, 0)
    return own, x - _mean(x, dims=dims, keepdim=True)


def _pulled(ct: Tensor, slope: tuple[Any, Tensor], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return pull(ct * slope[0], slope[1], dims, keepdim)


def _pushed(dx: Tensor, slope: tuple[Any, Tensor], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    return push(dx, slope[1], dims, keepdim) * slope[0]  # type: ignore[no-any-return]


_var: OpFunction = row(
    "var", lambda xp, x0, dims, correction, keepdim: _spread(xp, x0, dims, correction, keepdim)[0], arity=1, saves=("x0",),
    vjp=(lambda ct, x0, dims, correction, keepdim: _pulled(ct, _slope(x0, dims, correction), dims, keepdim),),
    jvp=(lambda dx, x0, dims, correction, keepdim: _pushed(dx, _slope(x0, dims, correction), dims, keepdim),),
    batch=over_dims)

_std: OpFunction = row(
    "std", lambda xp, x0, dims, correction, keepdim: xp.sqrt(_spread(xp, x0, dims, correction, keepdim)[0]),
    arity=1, saves=("x0", "out"), batch=over_dims,
    vjp=(lambda ct, x0, out, dims, correction, keepdim: _pulled(ct, _slope(x0, dims, correction, out), dims, keepdim),),
    jvp=(lambda dx, x0, out, dims, correction, keepdim: _pushed(dx, _slope(x0, dims, correction, out), dims, keepdim),))


def _added(ct: list[Any], slope: Callable[[], tuple[Any, Tensor]], shape: tuple[int, ...], dims: tuple[int, ...],
           keepdim: bool) -> Any:
    """The cotangent through a spread and a mean; either may be None."""
    return total_of(None if ct[0] is None else _pulled(ct[0], slope(), dims, keepdim),
                    None if ct[1] is None else restore(ct[1] / count(shape, dims), shape, dims, keepdim))


_var_mean: OpFunction = row(
    "var_mean", _spread, saves=("x0",), outs=2, batch=over_dims,
    vjp=(lambda ct, x0, dims, correction, keepdim: _added(
        ct, lambda: _slope(x0, dims, correction), x0.shape, dims, keepdim),),
    jvp=lambda dx, x0, dims, correction, keepdim: (
        real(_pushed(dx[0], _slope(x0, dims, correction), dims, keepdim)), _mean(dx[0], dims=dims, keepdim=keepdim)))


def _std_mean_kernel(xp: Any, x0: Any, dims: tuple[int, ...], correction: float, keepdim: bool) -> Any:
    spread, mean = _spread(xp, x0, dims, correction, keepdim)
    return xp.sqrt(spread), mean


_std_mean: OpFunction = row(
    "std_mean", _std_mean_kernel, saves=("x0", "out0"), outs=2, batch=over_dims,
    vjp=(lambda ct, x0, out0, dims, correction, keepdim: _added(
        ct, lambda: _slope(x0, dims, correction, out0), x0.shape, dims, keepdim),),
    jvp=lambda dx, x0, out0, dims, correction, keepdim: (
        real(_pushed(dx[0], _slope(x0, dims, correction, out0), dims, keepdim)),
        _mean(dx[0], dims=dims, keepdim=keepdim)))


def _variance(f: OpFunction, x: Tensor, dim: Any, unbiased: bool | None, keepdim: bool, correction: float | None) -> Any:
    if isinstance(dim, bool):  # torch's var(x, unbiased)
        dim, unbiased = None, dim
    if x.dtype.category < FLOAT:
        msg = "std and var only support floating point and complex dtypes"
        raise UsageError(msg)
    if correction is None:
        correction = int(unbiased is not False)
    return f(x, dims=normal_dims(dim, x.ndim), correction=correction, keepdim=keepdim)


def var(x: Tensor, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """The variance over dimensions: squares over count - correction, which is 1, or 0 if not unbiased.  Source: torch.var."""
    return _variance(_var, x, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]


def std(x: Tensor, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
        correction: float | None = None) -> Tensor:
    """The square root of the variance.  Source: torch.std."""
    return _variance(_std, x, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]


def var_mean(x: Tensor, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """The variance and the mean.  Source: torch.var_mean."""
    return _variance(_var_mean, x, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]


def std_mean(x: Tensor, dim: int | Sequence[int] | bool | None = None, unbiased: bool | None = None, keepdim: bool = False, *,
             correction: float | None = None) -> tuple[Tensor, Tensor]:
    """The standard deviation and the mean.  Source: torch.std_mean."""
    return _variance(_std_mean, x, dim, unbiased, keepdim, correction)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- truth
def _counted_kernel(xp: Any, x0: Any, dims: tuple[int, ...], keepdim: bool) -> Any:
    n = xp.asarray(xp.count_nonzero(x0, axis=dims if len(dims) < x0.ndim else None))  # of all elements it is much faster
    return n.reshape([1 if d in dims else extent for d, extent in enumerate(x0.shape)]) if keepdim else n


counted = row("count_nonzero", _counted_kernel, arity=1, vjp=None, jvp=None, batch=over_dims,
              doc="How many are not zero, over dims.")
_all = row("all", lambda xp, x0, dims, keepdim: x0.all(axis=dims, keepdims=keepdim), arity=1, vjp=None, jvp=None,
           batch=over_dims)
_any = row("any", lambda xp, x0, dims, keepdim: x0.any(axis=dims, keepdims=keepdim), arity=1, vjp=None, jvp=None,
           batch=over_dims)


def _truth(f: OpFunction, x: Tensor, dim: Any, keepdim: bool) -> Tensor:
    dims = () if isinstance(dim, (tuple, list)) and not dim else normal_dims(dim, x.ndim)
    out = f(x, dims=dims, keepdim=keepdim)
    return out.to(uint8) if x.dtype is uint8 else out  # type: ignore[no-any-return]


def all(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:  # noqa: A001
    """Whether every element is true (not zero) over dimensions.  Source: torch.all."""
    return _truth(_all, x, dim, keepdim)


def any(x: Tensor, dim: int | Sequence[int] | None = None, keepdim: bool = False) -> Tensor:  # noqa: A001
    """Whether an element is true (not zero) over dimensions.  Source: torch.any."""
    return _truth(_any, x, dim, keepdim)


def count_nonzero(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """How many elements are not zero.  Source: torch.count_nonzero."""
    return sum(x if x.dtype is bool_ else x != 0, dim)


# ---------------------------------------------------------------- equal to another tensor
def isclose(x: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Where |x - other| <= atol + rtol * |other|; infinities equal themselves only.  Source: torch.isclose."""
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if tolerance < 0:
            msg = f"{name} must be greater than or equal to zero, but got {tolerance}"
            raise UsageError(msg)
    if x.dtype is not other.dtype:
        msg = f"{x.dtype} did not match {other.dtype}"
        raise UsageError(msg)
    near = (absolute(x - other) <= atol + rtol * absolute(other)) & isfinite(other) if x.dtype is not bool_ else x == other
    close = near | (x == other)
    return close | (isnan(x) & isnan(other)) if equal_nan else close


def allclose(x: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether isclose holds everywhere.  Source: torch.allclose."""
    return bool(all(isclose(x, other, rtol, atol, equal_nan)))


def equal(x: Tensor, other: Tensor) -> bool:
    """Whether shapes and all elements are equal.  Source: torch.equal."""
    return x.shape == other.shape and bool(all(x == other))


def sum_to_size(x: Tensor, *extents: Any, size: Sequence[int] | None = None) -> Tensor:
    """Summed over what broadcasting `size` to x's shape would repeat.  Source: torch.Tensor.sum_to_size."""
    wanted = varargs(extents, size)
    if len(wanted) > x.ndim or not {m for m, n in zip(wanted[::-1], x.shape[::-1], strict=False) if m != n} <= {1}:
        msg = f"size {{{list(wanted)}}} is not expandable to size {{{list(x.shape)}}}."
        raise UsageError(msg)
    if not wanted:
        return sum(x)
    return x if wanted == x.shape else sum_to(_accumulated(x, None), wanted)
