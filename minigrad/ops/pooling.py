"""Pooling and interpolation under torch's names: windows of arguments made tables, then rows of resampling.py and `_largest`.

Source: torch.nn.functional; max_pool2d_with_indices and its kin in derivatives.yaml.
"""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT
from ..errors import UsageError
from ..row import OpFunction, row
from . import resampling
from .batching import leading
from .convolution import tupled
from .gather import gather_at, spread_at
from .reduction import mean
from .resampling import Taps, cells, pool, resample, windows
from .shape import reshape, squeeze, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Array
    from ..tensor import Tensor

Table = tuple[tuple[int, ...], ...]


# ---------------------------------------------------------------- the largest of each window
def _windows(xp: Any, x: Array, tables: tuple[Any, ...]) -> Array:
    """(.., *places, elements of the window)"""
    lead, r = x.ndim - len(tables), len(tables)
    for k, table in enumerate(tables):
        axis = lead + 2 * k
        x = xp.take(x, table.reshape(-1), axis=axis).reshape(*x.shape[:axis], *table.shape, *x.shape[axis + 1:])
    order = (*range(lead), *range(lead, lead + 2 * r, 2), *range(lead + 1, lead + 2 * r, 2))
    x = xp.transpose(x, order)
    return x.reshape(*x.shape[:lead + r], prod(x.shape[lead + r:]))


def _largest_kernel(xp: Any, x0: Array, places: tuple[Table, ...]) -> tuple[Array, Array]:
    tables = [xp.asarray(table, int).reshape(len(table), -1 if table else 1) for table in places]
    seen = _windows(xp, x0, tuple(tables))
    chosen = xp.argmax(seen, axis=-1)
    values = xp.take_along_axis(seen, chosen[..., None], -1)[..., 0]
    index, step = xp.zeros(chosen.shape, chosen.dtype), 1
    for k in reversed(range(len(tables))):
        table = tables[k]
        own = xp.arange(table.shape[0]).reshape(-1, *[1] * (len(tables) - 1 - k))
        index = index + step * table[own, chosen % table.shape[1]]
        chosen = chosen // table.shape[1]
        step *= x0.shape[x0.ndim - len(tables) + k]
    return values, index


def _flat(x: Tensor, rank: int) -> Tensor:
    return reshape(x, *x.shape[:x.ndim - rank], prod(x.shape[x.ndim - rank:]))


def _largest_vjp(ct: list[Any], x0: Tensor, out1: Tensor, places: tuple[Table, ...]) -> list[Tensor]:
    rank = len(places)
    values, index = _flat(ct[0], rank), _flat(out1, rank)
    shape = *x0.shape[:x0.ndim - rank], prod(x0.shape[x0.ndim - rank:])
    return [reshape(spread_at(values, index, shape=shape, dim=index.ndim - 1, distinct=False), x0.shape)]


def _largest_jvp(dx: list[Any], out1: Tensor, places: tuple[Table, ...]) -> tuple[Tensor, None]:
    rank = len(places)
    index = _flat(out1, rank)
    return reshape(gather_at(_flat(dx[0], rank), index, dim=index.ndim - 1), out1.shape), None


_largest: OpFunction = row("max_pool2d_with_indices", _largest_kernel, outs=2, saves=("x0", "out1"), batch=leading,
                           vjp=_largest_vjp, jvp=_largest_jvp)


def _table(rows: Sequence[range]) -> Table:
    """Of windows of several extents, the shorter ones filled up with their last place."""
    width = max(map(len, rows), default=0)
    return tuple(tuple(each) + (each[-1],) * (width - len(each)) for each in rows)


@lru_cache(maxsize=256)
def _sliding(extent: int, size: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> Table:
    rows = []
    for place in range(resampling.places(extent, size, stride, padding, dilation, ceil_mode)):
        first = place * stride - padding
        seen = range(first, first + dilation * (size - 1) + 1, dilation)
        rows.append(range(next(i for i in seen if i >= 0), min(seen[-1] + 1, extent), dilation))
    return _table(rows)


@lru_cache(maxsize=256)
def _adaptive(extent: int, out: int) -> Table:
    return _table([range(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)])


# ---------------------------------------------------------------- checks
def _ranked(name: str, x: Tensor, rank: int) -> None:
    if x.ndim not in (rank + 1, rank + 2):
        msg = f"{name}() Expected {rank + 1}D or {rank + 2}D input tensor, but got {list(x.shape)}"
        raise UsageError(msg)
    if 0 in x.shape[-rank - (x.ndim == rank + 1):]:
        msg = (f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
               f"got: {list(x.shape)}")
        raise UsageError(msg)


def _window(name: str, x: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any,
            ceil_mode: bool) -> list[tuple[int, int, int, int, int]]:
    """(extent, size, stride, padding, dilation) of each dimension."""
    _ranked(name, x, rank)
    size = tupled("kernel_size", kernel_size, rank)
    steps = size if stride is None or stride in ([], ()) else tupled("stride", stride, rank)
    around, gaps = tupled("padding", padding, rank), tupled("dilation", dilation, rank)
    if min(size) < 1 or min(steps) < 1 or min(gaps) < 1:
        msg = f"{name}: kernel size, stride and dilation should be greater than zero, but got {size}, {steps}, {gaps}"
        raise UsageError(msg)
    if any(p < 0 or p > (d * (k - 1) + 1) // 2 for p, k, d in zip(around, size, gaps, strict=True)):
        msg = f"pad should be at most half of effective kernel size and not negative, but got pad={around}, kernel_size={size}"
        raise UsageError(msg)
    found = list(zip(x.shape[-rank:], size, steps, around, gaps, strict=True))
    if min(resampling.places(*each, ceil_mode) for each in found) < 1:
        msg = (f"Given input size: {list(x.shape)} and kernel size {size}. Calculated output size is too small")
        raise UsageError(msg)
    return found


def _floats(name: str, x: Tensor) -> None:
    if x.dtype.category < FLOAT:
        msg = f'"{name}" not implemented for {x.dtype}: weights are no integers. Convert the tensor to a floating type.'
        raise UsageError(msg)


def _by_two(f: Callable[[Tensor], Any], x: Tensor) -> Any:
    """One dimension as the second of two, as torch does."""
    if x.ndim not in (2, 3):
        return f(x)
    out = f(unsqueeze(x, -2))
    return tuple(squeeze(y, -2) for y in out) if isinstance(out, tuple) else squeeze(out, -2)


# ---------------------------------------------------------------- max pooling
def _max_pool(x: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool,
              return_indices: bool) -> Any:
    found = _window(f"max_pool{rank}d", x, rank, kernel_size, stride, padding, dilation, ceil_mode)
    out = _largest(x, places=tuple(_sliding(*each, ceil_mode) for each in found))
    return out if return_indices else out[0]


def max_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """The largest element of each window of (N, C, H, W); with return_indices also where it is, among H * W.

    Source: torch.nn.functional.max_pool2d.
    """
    return _max_pool(x, 2, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def max_pool3d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """As max_pool2d, of (N, C, D, H, W).  Source: torch.nn.functional.max_pool3d."""
    return _max_pool(x, 3, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


def _beside(name: str, given: Any, fill: int) -> Any:
    return None if given is None or given in ([], ()) else (fill, *tupled(name, given, 1))


def max_pool1d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1, ceil_mode: bool = False,
               return_indices: bool = False) -> Any:
    """As max_pool2d, of (N, C, L).  Source: torch.nn.functional.max_pool1d."""
    _window("max_pool1d", x, 1, kernel_size, stride, padding, dilation, ceil_mode)
    size, steps = _beside("kernel_size", kernel_size, 1), _beside("stride", stride, 1)
    around, gaps = _beside("padding", padding, 0), _beside("dilation", dilation, 1)
    return _by_two(lambda x: _max_pool(x, 2, size, steps, around, gaps, ceil_mode, return_indices), x)


def _outputs(name: str, x: Tensor, output_size: Any, rank: int) -> list[tuple[int, int]]:
    """(extent, output extent) of each dimension."""
    if x.ndim < rank + 1:
        msg = f"Input dimension should be at least {rank + 1}"
        raise ValueError(msg)
    _ranked(name, x, rank)
    wanted = (output_size,) * rank if output_size is None or isinstance(output_size, int) else tuple(output_size)
    if len(wanted) != rank:
        msg = f"{name}: internal error: output_size.size() must be {rank}, but got {list(wanted)}"
        raise UsageError(msg)
    extents = x.shape[-rank:]
    found = [(n, n if out is None else out) for n, out in zip(extents, wanted, strict=True)]
    if min(out for _, out in found) < 0:
        msg = f"{name}: elements of output_size must be greater than or equal to 0, but received {list(wanted)}"
        raise UsageError(msg)
    return found


def _adaptive_max(x: Tensor, output_size: Any, return_indices: bool, rank: int) -> Any:
    found = _outputs(f"adaptive_max_pool{rank}d", x, output_size, rank)
    out = _largest(x, places=tuple(_adaptive(*each) for each in found))
    return out if return_indices else out[0]


def adaptive_max_pool2d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of output_size windows.  Source: torch.nn.functional.adaptive_max_pool2d."""
    return _adaptive_max(x, output_size, return_indices, 2)


def adaptive_max_pool3d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of output_size windows of volumes.  Source: torch.nn.functional.adaptive_max_pool3d."""
    return _adaptive_max(x, output_size, return_indices, 3)


def adaptive_max_pool1d(x: Tensor, output_size: Any, return_indices: bool = False) -> Any:
    """The largest element of each of output_size windows of (N, C, L).  Source: torch.nn.functional.adaptive_max_pool1d."""
    ((_, out),) = _outputs("adaptive_max_pool1d", x, output_size, 1)
    return _by_two(lambda x: _adaptive_max(x, (1, out), return_indices, 2), x)


# ---------------------------------------------------------------- means
def _avg_pool(x: Tensor, rank: int, kernel_size: Any, stride: Any, padding: Any, ceil_mode: bool, count_include_pad: bool,
              divisor_override: int | None) -> Tensor:
    _floats(f"avg_pool{rank}d", x)
    if divisor_override == 0:
        msg = "divisor must be not zero"
        raise UsageError(msg)
    found = _window(f"avg_pool{rank}d", x, rank, kernel_size, stride, padding, 1, ceil_mode)
    divisors = [divisor_override and (divisor_override if k == 0 else 1) for k in range(rank)]
    return pool(x, taps=tuple(  # type: ignore[no-any-return]
        windows(*each[:4], ceil_mode, count_include_pad, d) for each, d in zip(found, divisors, strict=True)))


def avg_pool2d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean over each window of (N, C, H, W), padding counted or not.  Source: torch.nn.functional.avg_pool2d."""
    return _avg_pool(x, 2, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool3d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:
    """The mean over each window of (N, C, D, H, W), padding counted or not.  Source: torch.nn.functional.avg_pool3d."""
    return _avg_pool(x, 3, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override)


def avg_pool1d(x: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
               count_include_pad: bool = True) -> Tensor:
    """The mean over each window of (N, C, L), padding counted or not.  Source: torch.nn.functional.avg_pool1d."""
    _window("avg_pool1d", x, 1, kernel_size, stride, padding, 1, ceil_mode)
    size, steps = _beside("kernel_size", kernel_size, 1), _beside("stride", stride, 1)
    around = _beside("padding", padding, 0)
    return _by_two(lambda x: _avg_pool(x, 2, size, steps, around, ceil_mode, count_include_pad, None), x)  # type: ignore[no-any-return]


def _adaptive_avg(x: Tensor, output_size: Any, rank: int) -> Tensor:
    found = _outputs(f"adaptive_avg_pool{rank}d", x, output_size, rank)
    _floats(f"adaptive_avg_pool{rank}d", x)
    if all(out == 1 for _, out in found):
        return mean(x, tuple(range(-rank, 0)), keepdim=True)
    return pool(x, taps=tuple(cells(*each) for each in found))  # type: ignore[no-any-return]


def adaptive_avg_pool2d(x: Tensor, output_size: Any) -> Tensor:
    """The mean over each of output_size windows.  Source: torch.nn.functional.adaptive_avg_pool2d."""
    return _adaptive_avg(x, output_size, 2)


def adaptive_avg_pool3d(x: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows of (N, C, D, H, W).  Source: torch.nn.functional.adaptive_avg_pool3d."""
    return _adaptive_avg(x, output_size, 3)


def adaptive_avg_pool1d(x: Tensor, output_size: Any) -> Tensor:
    """The mean of each of output_size windows of (N, C, L).  Source: torch.nn.functional.adaptive_avg_pool1d."""
    ((_, out),) = _outputs("adaptive_avg_pool1d", x, output_size, 1)
    return _by_two(lambda x: _adaptive_avg(x, (1, out), 2), x)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- interpolation
RANKS = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}


def _extents(x: Tensor, size: Any, scale_factor: Any) -> tuple[list[int], list[float] | None]:
    rank = x.ndim - 2
    if (size is None) == (scale_factor is None):
        msg = "only one of size or scale_factor should be defined" if size is not None else \
              "either size or scale_factor should be defined"
        raise ValueError(msg)
    given = size if size is not None else scale_factor
    given = [given] * rank if isinstance(given, (int, float)) else list(given)
    if len(given) != rank:
        msg = (f"Input and {'output' if size is not None else 'scale_factor'} must have the same number of spatial dimensions, "
               f"but got input with spatial dimensions of {list(x.shape[2:])} and {given}")
        raise ValueError(msg)
    return (given, None) if size is not None else (resampling.sizes(x.shape[2:], given), given)


def interpolate(x: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", align_corners: bool | None = None,
                recompute_scale_factor: bool | None = None, antialias: bool = False) -> Tensor:
    """Other extents, or extents times scale_factor, for the dimensions after (N, C).

    mode: "nearest", "nearest-exact", "area", "linear", "bilinear", "trilinear", "bicubic"; align_corners: whether the first and
    last places stay where they are, or the edges beyond them.  Refuses antialias.  Source: torch.nn.functional.interpolate.
    """
    if antialias:
        msg = "interpolate: antialias is not supported."
        raise UsageError(msg)
    if mode in ("nearest", "area", "nearest-exact") and align_corners is not None:
        msg = "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        raise ValueError(msg)
    out, factors = _extents(x, size, scale_factor)
    if mode in RANKS and RANKS[mode] != x.ndim - 2:
        msg = f"Got {x.ndim}D input, but {mode} mode needs {RANKS[mode] + 2}D input"
        raise NotImplementedError(msg)
    if min(out, default=1) < 1:
        msg = f"Input and output sizes should be greater than 0, but got input {list(x.shape[2:])} output {out}"
        raise UsageError(msg)
    if not mode.startswith("nearest"):
        _floats(mode, x)
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[x.ndim - 3](x, out)
    scales = [n / m if factors is None or recompute_scale_factor else 1 / f
              for n, m, f in zip(x.shape[2:], out, factors or out, strict=True)]
    return resample(x, taps=tuple(_taps(mode, n, m, s, bool(align_corners))  # type: ignore[no-any-return]
                                  for n, m, s in zip(x.shape[2:], out, scales, strict=True)))


def _taps(mode: str, extent: int, out: int, scale: float, align_corners: bool) -> Taps:
    if mode.startswith("nearest"):
        return resampling.nearest(extent, out, scale, mode == "nearest-exact")
    if mode in ("linear", "bilinear", "trilinear"):
        return resampling.linear(extent, out, scale, align_corners)
    if mode == "bicubic":
        return resampling.cubic(extent, out, scale, align_corners)
    msg = f"Input Error: interpolate has no mode {mode!r}"
    raise NotImplementedError(msg)


def upsample_nearest(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """As interpolate.  Source: torch.nn.functional.upsample_nearest."""
    return interpolate(x, size, scale_factor)


def upsample_bilinear(x: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """As interpolate, the corners aligned.  Source: torch.nn.functional.upsample_bilinear."""
    return interpolate(x, size, scale_factor, "bilinear", align_corners=True)
