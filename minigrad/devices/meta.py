"""`meta`: tensors with a shape, strides and a type, and no data.

Its memory is zeros that nobody has written, for which the system finds no pages.  A kernel runs on them as on any arrays, and
of what it returns only the looks are kept.  So an op means here what it means elsewhere, and costs what it computes on the way;
where a shape or a branch depends on data, there is none to look at. [NOTE meta-tensors]

Source: torch's meta device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..backend import CPU, HOST_ARRAY, Device, is_dense, new_device, share_memory, strided
from ..errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array


class Unread(HOST_ARRAY):  # type: ignore[misc, valid-type]
    """An array as kernels are given it: whoever looks at its elements, to know which way to go or how many there are, fails."""

    def __getitem__(self, key: Any) -> Any:
        if any(isinstance(k, HOST_ARRAY) and k.dtype.kind == "b" for k in (key if isinstance(key, tuple) else (key,))):
            _refuse("a mask as an index, which gives a shape that depends on data,")
        return super().__getitem__(key)

    def nonzero(self) -> Any:
        _refuse("nonzero, which gives a shape that depends on data,")


class Meta(Device):
    """`meta`."""

    __slots__ = ()
    readable = False

    def kernel(self, spec: Any) -> Callable[..., Any]:
        if spec not in self._compiled:
            self._compiled[spec] = _forgetful(super().kernel(spec))
        return self._compiled[spec]

    def look(self, array: Array) -> Array:
        _refuse("a look at a value")

    def from_host(self, array: Array) -> Array:
        """What a host array looks like."""
        return _unwritten(array)

    def to_host(self, array: Array) -> Array:
        """Nothing can be copied.  Raises UsageError."""
        _refuse("Cannot copy out of meta tensor; no data! A copy")


def _forgetful(kernel: Callable[..., Any]) -> Callable[..., Any]:
    """A kernel that gives what its results look like; views are views of the same memory."""
    def forget(made: Any, given: list[Any]) -> Any:
        if isinstance(made, (tuple, list)):
            return tuple([forget(m, given) for m in made])
        array = CPU.xp.asarray(made)
        return array if any(type(x) is Unread and share_memory(array, x) for x in given) else _unwritten(array)

    def run(*arrays: Any, **params: Any) -> Any:
        given = [x.view(Unread) if type(x) is HOST_ARRAY else x for x in arrays]
        return forget(kernel(*given, **params), given)

    return run


def _unwritten(like: Array) -> Array:
    """Memory in the layout of an array, that nothing is written to."""
    zeros = CPU.xp.zeros(like.size, like.dtype)
    return strided(zeros, like.shape, like.strides, 0) if is_dense(like) else zeros.reshape(like.shape)


def _refuse(what: str) -> NoReturn:
    msg = (f"{what} is not possible on meta, where a tensor has no data: make it on another device, or an empty one there with "
           "empty_like(x, device=...). [NOTE meta-tensors]")
    raise UsageError(msg)


META: Meta = new_device(Meta, "meta", None, CPU.xp, counted=False)
