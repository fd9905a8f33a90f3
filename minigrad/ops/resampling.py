"""Maps that work on each dimension by itself: interpolation, means over windows.

Each place of the result is a sum of few places of the input, with weights; a table of these for each dimension (`Taps`) is all
that such a map is.  Its transpose is a map of the same kind.

Upstream: upsample_*, avg_pool*, _adaptive_avg_pool* in derivatives.yaml; UpSample.h.
"""

from __future__ import annotations

from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, Any

from ..row import OpFunction, row
from .batching import leading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backend import Array


class Taps:
    """Of one dimension: for each place of the result the places that it reads, and their weights."""

    __slots__ = ("extent", "index", "weight")

    def __init__(self, extent: int, taps: Sequence[Sequence[tuple[int, float]]]) -> None:
        self.extent = extent
        width = max(map(len, taps), default=0)
        full = [[*each, *[(0, 0.0)] * (width - len(each))] for each in taps]
        self.index = [[i for i, _ in each] for each in full]
        self.weight = [[w for _, w in each] for each in full]

    @property
    def plain(self) -> bool:
        """Whether every place is one place of the input, as it is."""
        return all(each == [1.0] for each in self.weight)


@lru_cache(maxsize=256)
def transposed(taps: Taps) -> Taps:
    """The map that takes every weight back."""
    back: list[list[tuple[int, float]]] = [[] for _ in range(taps.extent)]
    for place, (index, weight) in enumerate(zip(taps.index, taps.weight, strict=True)):
        for i, w in zip(index, weight, strict=True):
            if w:
                back[i].append((place, w))
    return Taps(len(taps.index), back)


def _back(taps: tuple[Taps, ...]) -> tuple[Taps, ...]:
    return tuple(transposed(t) for t in taps)


# ---------------------------------------------------------------- rows, over the last dimensions
def _kernel(xp: Any, x0: Array, taps: tuple[Taps, ...]) -> Array:
    out = x0
    for axis, table in enumerate(taps, x0.ndim - len(taps)):
        out = _applied(xp, out, axis, table)
    return out


def _applied(xp: Any, x: Array, axis: int, taps: Taps) -> Array:
    if not taps.index or not taps.index[0]:
        return xp.zeros((*x.shape[:axis], len(taps.index), *x.shape[axis + 1:]), x.dtype)
    index = xp.asarray(taps.index)
    if taps.plain:
        return xp.take(x, index[:, 0], axis=axis)
    weight = xp.asarray(taps.weight).astype(x.dtype).reshape(len(taps.index), -1, *[1] * (x.ndim - 1 - axis))
    out = xp.take(x, index[:, 0], axis=axis) * weight[:, 0]
    for t in range(1, index.shape[1]):
        out += xp.take(x, index[:, t], axis=axis) * weight[:, t]
    return out


resample: OpFunction = row("upsample", _kernel, arity=1, jvp="linear", batch=leading,
                           vjp=(lambda ct, taps: resample(ct, taps=_back(taps)),))

pool: OpFunction = row("avg_pool", _kernel, arity=1, jvp="linear", batch=leading, saves=("x0",),
                       vjp=(lambda ct, x0, taps: resample(ct, taps=_back(taps)),))
"""`resample` for those that keep their input, as torch does for its shape."""


# ---------------------------------------------------------------- means over windows
@lru_cache(maxsize=256)
def cells(extent: int, out: int) -> Taps:
    """As many windows as are wanted, as equal as can be."""
    bounds = [(i * extent // out, -(-(i + 1) * extent // out)) for i in range(out)]
    return Taps(extent, [[(i, 1 / (b - a)) for i in range(a, b)] for a, b in bounds])


def places(extent: int, size: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    """How many places a window goes to; in ceil mode also to one that is cut off, if it begins inside."""
    room = extent + 2 * padding - dilation * (size - 1) - 1
    out = (room + (stride - 1) * ceil_mode) // stride + 1
    return out - 1 if ceil_mode and (out - 1) * stride >= extent + padding else out


@lru_cache(maxsize=256)
def windows(extent: int, size: int, stride: int, padding: int, ceil_mode: bool, count_padding: bool,
            divisor: int | None) -> Taps:
    """The mean over each window; of what is there and, with count_padding, of the zeros around it."""
    taps = []
    for place in range(places(extent, size, stride, padding, 1, ceil_mode)):
        first = place * stride - padding
        last = min(first + size, extent + padding)
        inside = range(max(first, 0), min(last, extent))
        count = divisor or (last - first if count_padding else len(inside))
        taps.append([(i, 1 / count) for i in inside])
    return Taps(extent, taps)


# ---------------------------------------------------------------- interpolation
@lru_cache(maxsize=256)
def nearest(extent: int, out: int, scale: float, exact: bool) -> Taps:
    """The place before, or with `exact` the one whose middle is the nearest."""
    return Taps(extent, [[(min(floor((i + 0.5 * exact) * scale), extent - 1), 1.0)] for i in range(out)])


def _source(i: int, extent: int, out: int, scale: float, align_corners: bool) -> float:
    if align_corners:
        return i * (extent - 1) / (out - 1) if out > 1 else 0.0
    return scale * (i + 0.5) - 0.5


@lru_cache(maxsize=256)
def linear(extent: int, out: int, scale: float, align_corners: bool) -> Taps:
    """On the line between two places."""
    taps = []
    for i in range(out):
        at = max(_source(i, extent, out, scale, align_corners), 0.0)
        low = min(int(at), extent - 1)
        part = min(max(at - low, 0.0), 1.0)
        taps.append([(low, 1 - part), (min(low + 1, extent - 1), part)])
    return Taps(extent, taps)


A = -0.75
"""Source: Keys, Cubic convolution interpolation for digital image processing (1981); torch's choice of a."""


def _near(t: Any) -> Any:
    return ((A + 2) * t - (A + 3)) * t * t + 1


def _far(t: Any) -> Any:
    return ((A * t - 5 * A) * t + 8 * A) * t - 4 * A


def cubic_weights(t: Any) -> tuple[Any, ...]:
    """Of the two places before and the two after one that lies t behind the second: a number's, or a tensor's."""
    return _far(t + 1), _near(t), _near(1 - t), _far(2 - t)


@lru_cache(maxsize=256)
def cubic(extent: int, out: int, scale: float, align_corners: bool) -> Taps:
    """On the cubic curve through four places."""
    taps = []
    for i in range(out):
        at = _source(i, extent, out, scale, align_corners)
        low = floor(at)
        places = (min(max(low + k, 0), extent - 1) for k in range(-1, 3))
        taps.append([*zip(places, cubic_weights(at - low), strict=True)])
    return Taps(extent, taps)


def sizes(extents: Sequence[int], factors: Sequence[float]) -> list[int]:
    """The extents that factors give."""
    return [floor(float(n) * f) for n, f in zip(extents, factors, strict=True)]
