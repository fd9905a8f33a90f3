"""`x[key]` and `x[key] = value`: the basic part of a key is a view, the rest goes to the rows of indexing.

    x[1:, None, i, :, mask]     is     index_at(x[1:, None, :, :, :], i, mask, places=(False, False, True, False, True))

As in torch, an int between index tensors selects first, and does not count as one of them.

Source: torch.Tensor.__getitem__, torch/csrc/autograd/python_variable_indexing.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import HOST_ARRAY, HOST_SCALAR
from ..dtypes import bool_, int32, int64, uint8
from ..errors import UsageError
from ..lines import warn
from ..tensor import Tensor
from .batching import rank
from .creation import tensor
from .indexing import Places, index_at, masked_fill_, nonzero, one_value, put_at, put_at_
from .inplace import copy_
from .joining import unbind
from .shape import basic_index, permute, reshape, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


# ---------------------------------------------------------------- keys
def parsed(x: Tensor, key: Any) -> tuple[Tensor, list[Tensor], Places]:
    """The view that the basic part of a key means, and what to index it with."""
    items = [_item(i, x) for i in _entries(key)]
    shape, spare = x.shape, x.ndim - sum(map(_dims_used, items))
    if spare < 0:
        msg = f"too many indices for tensor of dimension {x.ndim}" if x.ndim else _NO_DIMS
        raise IndexError(msg)
    basic: list[Any] = []
    tensors: list[Tensor] = []
    places: list[bool] = []
    at, changed = 0, False
    for i in items:
        kind = type(i)
        if isinstance(i, Tensor):
            n = _dims_used(i)
            _check_mask(i, shape, at)
            if n:
                basic += [slice(None)] * n
            else:  # one truth value: a new dimension that holds the elements once, or not at all
                basic.append(None)
                changed = True
            tensors.append(i if n else reshape(nonzero(unsqueeze(i, 0)), -1))
            places.append(True)
            at += n
        elif kind is int:
            basic.append(_in_range(i, shape[at], at))
            changed = True
            at += 1
        elif kind is slice:
            start, stop, step = i.indices(shape[at])
            if step < 1:
                msg = "step must be greater than zero"
                raise ValueError(msg)
            basic.append(slice(start, max(start, stop), step))
            changed = changed or (start, stop, step) != (0, shape[at], 1)
            places.append(False)
            at += 1
        elif i is None:
            basic.append(None)
            changed = True
            places.append(False)
        else:  # Ellipsis
            basic += [slice(None)] * spare
            places += [False] * spare
            at, spare = at + spare, 0
    view = basic_index(x, tuple(basic)) if changed or not tensors else x
    if len(tensors) > 1 and len({i.ndim == 0 for i in tensors}) > 1:
        return _scalars_together(view, tensors, places)
    return view, tensors, tuple(places)


def _scalars_together(x: Tensor, tensors: list[Tensor], places: list[bool]) -> tuple[Tensor, list[Tensor], Places]:
    """A batched index of one value selects, and has no say in where the result's index dimensions go.

    So its dimension is moved to where the first other index tensor stands.
    """
    slots: list[tuple[Tensor | None, list[int]]] = []
    given, at = iter(tensors), 0
    for place in [*places, *[False] * x.ndim]:
        i = next(given) if place else None
        width = 1 if i is None else _dims_used(i)
        if at + width <= x.ndim:
            slots.append((i, list(range(at, at + width))))
        at += width
    scalars = [s for s in slots if s[0] is not None and s[0].ndim == 0]
    others = [s for s in slots if s[0] is None or s[0].ndim]
    first = next(k for k, (i, _) in enumerate(others) if i is not None)
    order = [*others[:first], *scalars, *others[first:]]
    return (permute(x, [d for _, dims in order for d in dims]), [i for i, _ in order if i is not None],
            tuple(i is not None for i, _ in order))


_NO_DIMS = ("invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
            "tensor to a number")


def _entries(key: Any) -> tuple[Any, ...]:
    """The entries of a key; a list that holds more than numbers is a tuple, as in numpy's first years."""
    if type(key) is tuple:
        return key
    if isinstance(key, list) and len(key) < _LONGEST and any(
            i is None or i is Ellipsis or isinstance(i, (Tensor, slice, list, tuple, range)) for i in key):
        warn("Using a non-tuple sequence for multidimensional indexing is deprecated; use x[tuple(seq)] instead of x[seq].")
        return tuple(key)
    return (key,)


_LONGEST = 32
"""The shortest list that cannot be a tuple of indices."""


def _item(i: Any, x: Tensor) -> Any:
    """One entry of a key in normal form: an int, a slice, None, Ellipsis or an index tensor on x's device."""
    kind = type(i)
    if kind is int or kind is slice or i is None or i is Ellipsis:
        return i
    if isinstance(i, HOST_SCALAR):
        i = i.item()
    if isinstance(i, bool):
        return tensor(i, device=x.device)
    if isinstance(i, (list, tuple, range, HOST_ARRAY)):
        i = tensor(i, device=x.device) if isinstance(i, HOST_ARRAY) or len(i) else tensor([], dtype=int64, device=x.device)
    if isinstance(i, Tensor):
        i = _index_tensor(i, x)
        return int(i) if i.ndim == 0 and i.dtype is not bool_ and one_value(i) else i
    if hasattr(i, "__index__"):
        return i.__index__()
    msg = ("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices "
           f"(got {kind.__name__})")
    raise (TypeError if isinstance(i, str) else IndexError)(msg)


def _index_tensor(i: Tensor, x: Tensor) -> Tensor:
    if i.dtype is uint8:
        i = i.to(bool_)
    if i.dtype not in (int64, int32, bool_):
        msg = "tensors used as indices must be long, int, byte or bool tensors"
        raise IndexError(msg)
    return i if i.device is x.device else i.to(x.device)


def _dims_used(i: Any) -> int:
    if isinstance(i, Tensor) and i.dtype is bool_:
        return i.ndim
    return int(i is not None and i is not Ellipsis)


def _first_difference(a: tuple[int, ...], b: tuple[int, ...]) -> int:
    return next((k for k, (m, n) in enumerate(zip(a, b, strict=False)) if m != n), len(b))


def _check_mask(i: Tensor, shape: tuple[int, ...], at: int) -> None:
    if i.dtype is bool_ and i.shape != shape[at:at + i.ndim]:
        msg = (f"The shape of the mask {list(i.shape)} at index {_first_difference(i.shape, shape[at:])} does not match the "
               f"shape of the indexed tensor {list(shape)} at index {at}")
        raise IndexError(msg)


def _in_range(i: int, n: int, dim: int) -> int:
    if not -n <= i < n:
        msg = f"index {i} is out of bounds for dimension {dim} with size {n}"
        raise IndexError(msg)
    return i


# ---------------------------------------------------------------- reading and writing
def getitem(x: Tensor, key: Any) -> Tensor:
    """`x[key]`: a view for ints, slices, None and Ellipsis, a copy for index tensors, lists and masks.

    Raises IndexError where the key does not fit, and Refusal for a batched mask.  Source: torch.Tensor.__getitem__.
    """
    view, tensors, places = parsed(x, key)
    return index_at(view, *tensors, places=places) if tensors else view


def setitem(x: Tensor, key: Any, value: Any) -> None:
    """`x[key] = value`, in place; the value is broadcast and converted.  Source: torch.Tensor.__setitem__."""
    if isinstance(value, Tensor):
        value = value.to(x.dtype).to(x.device)
    elif not isinstance(value, (bool, int, float, complex, HOST_SCALAR)):
        msg = f"can't assign a {type(value).__name__} to a tensor of type {x.dtype}"
        raise TypeError(msg)
    view, tensors, places = parsed(x, key)
    if not tensors:
        copy_(view, _without_ones(value, view.ndim))
    else:
        _put_(view, tensors, places, value, accumulate=False)


def _put_(x: Tensor, tensors: Sequence[Tensor], places: Places, value: Any, *, accumulate: bool) -> None:
    mask = tensors[0]
    if len(tensors) == 1 and mask.dtype is bool_ and not accumulate and not one_value(mask) and rank(value, None) == 0:
        after = x.ndim - places.index(True) - mask.ndim
        masked_fill_(x, reshape(mask, *mask.shape, *[1] * after), value)
    else:
        put_at_(x, _fitting(value, x, tensors), *tensors, places=places, accumulate=accumulate)


def _fitting(value: Any, x: Tensor, tensors: Sequence[Tensor]) -> Any:
    """A value without more dimensions than the result of the index has."""
    indexed = max(1 if i.dtype is bool_ else i.ndim for i in tensors)
    return _without_ones(value, x.ndim - sum(map(_dims_used, tensors)) + indexed)


def _without_ones(value: Any, most: int) -> Any:
    extra = rank(value, None) - most
    return reshape(value, value.shape[extra:]) if extra > 0 and set(value.shape[:extra]) == {1} else value


def _listed(x: Tensor, indices: Sequence[Any], values: Tensor) -> tuple[list[Tensor], Places]:
    """The index tensors of `index_put`'s argument; None is a whole dimension."""
    if values.dtype is not x.dtype:
        msg = (f"Index put requires the source and destination dtypes match, got {x.dtype} for the destination and "
               f"{values.dtype} for the source.")
        raise UsageError(msg)
    found, at = [], 0
    for i in indices:
        if i is not None:
            found.append(_index_tensor(i, x))
            _check_mask(found[-1], x.shape, at)
        at += 1 if i is None else _dims_used(found[-1])
    if at > x.ndim:
        msg = f"too many indices for tensor of dimension {x.ndim} (got {at})"
        raise IndexError(msg)
    return found, tuple(i is not None for i in indices)


def index_put(x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """`x` with `values` written, or with accumulate added, at x[indices]; they are broadcast.

    With accumulate, an element that is named twice grows twice.  Source: torch.index_put.
    """
    found, places = _listed(x, indices, values)
    return put_at(x, _fitting(values, x, found), *found, places=places, accumulate=accumulate)  # type: ignore[no-any-return]


def index_put_(x: Tensor, indices: Sequence[Any], values: Tensor, accumulate: bool = False) -> Tensor:
    """The in-place form of index_put.  Source: torch.Tensor.index_put_."""
    tensors, places = _listed(x, indices, values)
    _put_(x, tensors, places, values, accumulate=accumulate)
    return x


def iterate(x: Tensor) -> Iterator[Tensor]:
    """The entries of the first dimension.  Raises TypeError for a 0-d tensor.  Source: torch.Tensor.__iter__."""
    if not x.ndim:
        msg = "iteration over a 0-d tensor"
        raise TypeError(msg)
    return iter(unbind(x, 0))


def contains(x: Tensor, element: Any) -> bool:
    """Whether an element equals it.  Source: torch.Tensor.__contains__."""
    if not isinstance(element, (Tensor, bool, int, float, complex)):
        msg = f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}."
        raise UsageError(msg)
    return bool((x == element).any())
