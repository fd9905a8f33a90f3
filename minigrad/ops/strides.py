"""Windows on memory: `as_strided`, and tensors whose strides are said.

    as_strided(x, (2, 3), (a, b), offset)      [i, j] is the element at offset + i a + j b of the memory that x lies in

As a function of x: where several elements of x lie in one place it is their mean, and places in which none lies are constants.
A level's strides are those that its program sees: under vmap, of one sample.

Upstream: as_strided_backward in FunctionsManual.cpp, "as_strided Backward and layout-aware/agnostic autograd";
as_strided_batching_rule in LegacyBatchingRegistrations.cpp.
"""

from __future__ import annotations

from math import gcd, prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..backend import window
from ..errors import UsageError
from ..row import OpFunction, row
from ..state import current
from ..tensor import bottom, storage_of
from ..views import order_of, root_of, strides_of
from .batching import to_front
from .creation import as_leaf, empty, new_zeros
from .inplace import embedded, in_place_view
from .layout import clone, contiguous_format
from .misc import storage_offset as offset_of
from .shape import permute, varargs
from .special import add_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backend import Array, Device
    from ..dtypes import dtype
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- rows
def _span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """How far the last element lies behind the first."""
    return sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def _inside(shape: Sequence[int], given: Sequence[int], size: Sequence[int], stride: Sequence[int], offset: int,
            others: Sequence[int]) -> bool:
    """Whether a window stays in a tensor, of which there are more in its memory, `others` apart."""
    between = gcd(*given) if any(s < max(given, default=0) for s in others) else 1  # they may lie between its elements
    return (offset >= 0 and offset + _span(size, stride) <= _span(shape, given)
            and not any(s % between for n, s in ((2, offset), *zip(size, stride, strict=True)) if n > 1))


class _Places(NamedTuple):
    """Where the elements of a tensor and of a window on it lie, in a memory that holds both."""

    extent: int
    own: Array
    seen: Array
    often: Array
    """How many elements of the tensor lie in each place."""


def _places(xp: Any, shape: tuple[int, ...], given: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...],
            offset: int) -> _Places:
    first = min(offset, 0)
    extent = max(_span(shape, given), offset + _span(size, stride)) - first + 1
    own, seen = _grid(xp, shape, given, -first), _grid(xp, size, stride, offset - first)
    return _Places(extent, own, seen, xp.bincount(own.reshape(-1), minlength=extent))


def _grid(xp: Any, shape: tuple[int, ...], strides: tuple[int, ...], start: int) -> Array:
    places = xp.full((), start)
    for n, s in zip(shape, strides, strict=True):
        places = places[..., None] + xp.arange(n) * s
    return places


def _gathered(xp: Any, x: Array, kept: int, at: Array, extent: int) -> Array:
    """A memory for each sample, to which the elements are added at their places."""
    memory = xp.zeros((*x.shape[:kept], extent), x.dtype)
    add_at(xp, memory, (*[slice(None)] * kept, at), x)
    return memory


def _window_kernel(xp: Any, x0: Array, size: tuple[int, ...], stride: tuple[int, ...], offset: int, given: tuple[int, ...],
                   kept: int) -> Array:
    """A view where `x0` lies as the tensor that it stands for, else a copy of what the view would show."""
    shape, step = x0.shape[kept:], x0.itemsize
    if 0 in shape:
        return x0.reshape(x0.shape[:kept] + size) if 0 in size else xp.zeros(x0.shape[:kept] + size, x0.dtype)
    if 0 in size:
        offset = 0  # no matter where it would begin, it is a view
    others = [s // step for s in x0.strides[:kept]]
    if all(n == 1 or s == g * step for n, s, g in zip(shape, x0.strides[kept:], given, strict=True)) and (
            not others or _inside(shape, given, size, stride, offset, others)):
        view = window(x0, x0.shape[:kept] + size, x0.strides[:kept] + tuple(s * step for s in stride), offset * step)
        if view is not None:
            return view
    places = _places(xp, shape, given, size, stride, offset)
    memory = _gathered(xp, x0, kept, places.own, places.extent)
    return (memory / xp.maximum(places.often, 1)).astype(x0.dtype)[..., places.seen]


def _window_backward_kernel(xp: Any, x0: Array, shape: tuple[int, ...], size: tuple[int, ...], stride: tuple[int, ...],
                            offset: int, given: tuple[int, ...], kept: int) -> Array:
    """Every cotangent added where it was read; elements that lie in one place share what comes there."""
    if 0 in size or 0 in shape:
        return xp.zeros(x0.shape[:kept] + shape, x0.dtype)
    places = _places(xp, shape, given, size, stride, offset)
    memory = _gathered(xp, x0, kept, places.seen, places.extent)
    return (memory / xp.maximum(places.often, 1)).astype(x0.dtype)[..., places.own]


def _window_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    return op.call(to_front(values[0], bdims[0]), **{**params, "kept": params["kept"] + 1}), 0


_as_strided: OpFunction = row(
    "as_strided", _window_kernel, view=True, batch=_window_batch, jvp="linear",
    vjp=(lambda ct, shape0, size, stride, offset, given, kept: _as_strided_backward(
        ct, shape=shape0[kept:], size=size, stride=stride, offset=offset, given=given, kept=kept),))

_as_strided_backward: OpFunction = row(
    "as_strided_backward", _window_backward_kernel, batch=_window_batch, jvp="linear",
    vjp=(lambda ct, size, stride, offset, given, kept: _as_strided(
        ct, size=size, stride=stride, offset=offset, given=given, kept=kept),))


# ---------------------------------------------------------------- windows
def as_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """A view of these sizes and strides, in elements, on the memory of `x`; it begins where `x` does, without an offset.

    Gradients reach the elements of `x` and, where it is a view itself, those of the tensor that it is a view of.
    Raises UsageError where it would leave the memory, or under vmap the sample.  Source: torch.as_strided.
    """
    size, stride, at = _checked(x, size, stride, storage_offset)
    root = root_of(x)
    if root is not x and root.dtype is x.dtype and not _covers(x, size, stride, at - offset_of(x)):
        x = root
    return _window(x, size, stride, at - offset_of(x))


def _window(x: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> Tensor:
    others, own = _others(x), strides_of(x)
    if others and 0 not in size and not _inside(x.shape, own, size, stride, offset, others):
        msg = (f"vmap: result = tensor.as_strided({list(size)}, {list(stride)}) can access memory outside of `tensor`: it "
               f"begins {offset} elements behind the first one of a sample, which has sizes {list(x.shape)} and strides "
               f"{list(own)}. This is not supported inside of vmap, please try to rewrite the `as_strided` call as a sequence "
               "of view operations")
        raise UsageError(msg)
    return _as_strided(x, size=size, stride=stride, offset=offset, given=own, kept=0)  # type: ignore[no-any-return]


def _covers(x: Tensor, size: tuple[int, ...], stride: tuple[int, ...], offset: int) -> bool:
    """Whether every place that the window shows holds an element of `x`, because there are no gaps between those."""
    own, reach = strides_of(x), 1
    for s, n in sorted(zip(own, x.shape, strict=True)):
        if s > reach and n > 1:
            return False
        reach += (n - 1) * s
    return offset >= 0 and offset + _span(size, stride) < reach


def _checked(x: Tensor, size: Sequence[int], stride: Sequence[int],
             offset: int | None) -> tuple[tuple[int, ...], tuple[int, ...], int]:
    """Size, stride and offset of a window that lies in the memory of `x`."""
    shape, strides, at = varargs((), size), varargs((), stride), offset_of(x) if offset is None else offset
    if len(shape) != len(strides):
        msg = f"mismatch in length of strides and shape: {list(strides)} for {list(shape)}"
        raise UsageError(msg)
    if any(s < 0 for s in strides):
        msg = f"as_strided: Negative strides are not supported at the moment, got strides: {list(strides)}"
        raise UsageError(msg)
    if at < 0:
        msg = f"Tensor: invalid storage offset {at}"
        raise UsageError(msg)
    memory, needed = storage_of(bottom(x)).nbytes(), (at + _span(shape, strides) + 1) * x.element_size()
    if 0 not in shape and needed > memory:
        msg = (f"setStorage: sizes {list(shape)}, strides {list(strides)}, storage offset {at}, and itemsize "
               f"{x.element_size()} requiring a storage size of {needed} are out of bounds for storage of size {memory}")
        raise UsageError(msg)
    return shape, strides, at


def _others(x: Tensor) -> list[int]:
    """How far apart the samples lie that levels hide."""
    found = []
    while x.owner is not None:
        hidden = x.owner.hidden(x)
        x = x.value
        if hidden is not None:
            found.append(strides_of(x)[hidden])
    return found


def as_strided_copy(x: Tensor, size: Sequence[int], stride: Sequence[int], storage_offset: int | None = None) -> Tensor:
    """As as_strided, in memory of its own.  Source: torch.as_strided_copy."""
    return clone(as_strided(x, size, stride, storage_offset), memory_format=contiguous_format)


def as_strided_scatter(x: Tensor, src: Tensor, size: Sequence[int], stride: Sequence[int],
                       storage_offset: int | None = None) -> Tensor:
    """A copy of `x` in which that window holds `src`.

    Raises UsageError where the window would leave the memory, or `src` is not of its sizes.  Source: torch.as_strided_scatter.
    """
    shape, strides, at = _checked(x, size, stride, storage_offset)
    if src.shape != shape:
        msg = (f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
               f"{list(shape)}")
        raise UsageError(msg)
    offset = at - offset_of(x)
    return embedded(x, (lambda whole: _window(whole, shape, strides, offset),), src, order_of(x))


as_strided_ = in_place_view(as_strided, "as_strided_")


def resize_(x: Tensor, *size: Any) -> Tensor:
    """`x` becomes contiguous of another shape, from where it begins.

    Raises UsageError where it requires grad, but for inference mode, or where its memory, which does not grow, has no room.
    Source: torch.Tensor.resize_.
    """
    shape = varargs(size)
    if x.requires_grad and current().inference is None:
        msg = "cannot resize variables that require grad"
        raise UsageError(msg)
    room = storage_of(bottom(x)).nbytes() // x.element_size() - offset_of(x)
    if prod(shape) > room:
        msg = (f"resize_ to {list(shape)} needs room for {prod(shape)} elements, and the memory of this tensor has {room}: it "
               "has the size that it was made with. Make another tensor of that shape.")
        raise UsageError(msg)
    strides = tuple(prod(shape[d + 1:]) for d in range(len(shape)))
    return x if shape == x.shape else as_strided_(x, shape, strides)


def resize_as_(x: Tensor, other: Tensor) -> Tensor:
    """resize_ to the shape of another tensor.  Source: torch.Tensor.resize_as_."""
    return resize_(x, other.shape)


# ---------------------------------------------------------------- tensors whose strides are said
def empty_strided(size: Sequence[int], stride: Sequence[int], *, dtype: dtype | None = None,
                  device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Memory as it is (zeros), with these strides.  Source: torch.empty_strided."""
    return as_leaf(_strided(empty(_extent(size, stride), dtype=dtype, device=device), size, stride), requires_grad)


def new_empty_strided(x: Tensor, size: Sequence[int], stride: Sequence[int], *, requires_grad: bool = False,
                      **options: Any) -> Tensor:
    """empty_strided like `x`; a batch where `x` is one.  Source: torch.Tensor.new_empty_strided."""
    return as_leaf(_strided(new_zeros(x, _extent(size, stride), **options), size, stride), requires_grad)


def _extent(size: Sequence[int], stride: Sequence[int]) -> int:
    return _span(size, stride) + 1 if len(size) == len(stride) and 0 not in size else 0


def _strided(memory: Tensor, size: Sequence[int], stride: Sequence[int]) -> Tensor:
    return as_strided(memory, size, stride).detach()  # type: ignore[no-any-return]


def empty_permuted(size: Sequence[int], physical_layout: Sequence[int], *, dtype: dtype | None = None,
                   device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Memory as it is (zeros), whose dimensions lie in that order, the outermost first.

    Raises UsageError where the order does not name each dimension once.  Source: torch.empty_permuted.
    """
    shape, order = varargs((), size), varargs((), physical_layout)
    if sorted(order) != list(range(len(shape))):
        msg = (f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = {len(shape)}, "
               f"physical_layout = {list(order)}, which must name each dimension once")
        raise UsageError(msg)
    memory = empty([shape[d] for d in order], dtype=dtype, device=device)
    return as_leaf(permute(memory, sorted(order, key=order.__getitem__)).detach(), requires_grad)
