"""Devices and their arrays: the only file that names numpy or cupy.

A `Device` has a type (`cpu`, `sim`, `cuda`), an index, the array namespace `xp` that kernels are written over, and
`stats`.  The host is one; accelerators, which have streams and memory of their own, are in devices/.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

from . import dtypes
from .devices.counts import Stats
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from .storage import CountedStorage

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minigrad\.")  # log(0) is -inf and no surprise, as in torch

Array = Any
NUMPY_DTYPE = {d: numpy.dtype(d.name) for d in dtypes.ALL}
HOST_ARRAY, HOST_SCALAR = numpy.ndarray, numpy.generic
host_array, host_type = numpy.asarray, numpy.result_type


def on_0d(kernel: Callable[..., Any]) -> Callable[[Array], Array]:
    """A kernel of one array for 0-d arrays: a ufunc is twice as fast on numpy's scalars, and rounds the same."""
    if isinstance(kernel, numpy.ufunc):
        return lambda array: host_array(kernel(array[()]))
    return lambda array: host_array(kernel(array))


QUEUED: set[Any] = set()
"""Kernels that ask a stream for work instead of doing it."""


class Device:
    """One address space.  There is one object for each, so that `is` compares them; calling the class finds it.

    As a context manager it is where tensors are made that name no device.  Source: torch.device.
    """

    __slots__ = ("_compiled", "counted", "index", "kind", "stats", "xp")

    kind: str
    index: int | None
    xp: Any
    counted: bool
    readable = True
    """Whether there is data to look at."""
    stats: Stats
    _compiled: dict[Any, Callable[..., Array]]

    def __new__(cls, type: str | Device, index: int | None = None) -> Device:  # noqa: A002  torch's name
        return device(type if index is None else f"{type}:{index}")

    def __enter__(self) -> Device:
        from .state import enter_device  # noqa: PLC0415  the State needs this file

        enter_device(self)
        return self

    def __exit__(self, *error: object) -> None:
        from .state import leave_device  # noqa: PLC0415

        leave_device()

    @property
    def type(self) -> str:
        """As torch.device.type."""
        return self.kind

    def __repr__(self) -> str:
        return f"device(type='{self.kind}'" + (")" if self.index is None else f", index={self.index})")

    def __str__(self) -> str:
        return self.kind if self.index is None else f"{self.kind}:{self.index}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return device, (str(self),)

    def kernel(self, spec: Any) -> Callable[..., Array]:
        """The function of arrays that a row's kernel is here: a name of the namespace, or f(xp, ...)."""
        found = self._compiled.get(spec)
        if found is None:
            found = getattr(self.xp, spec) if isinstance(spec, str) else partial(spec, self.xp)
            self._compiled[spec] = found
        return found

    def array(self, data: Any, d: dtypes.dtype) -> Array:
        """A new array with this data (numbers, nested lists, or a host array)."""
        return self.xp.array(data, dtype=NUMPY_DTYPE[d])

    def look(self, array: Array) -> Array:
        """The array as the host can read it, after all that the current stream was asked for."""
        return array

    def freed(self, store: CountedStorage) -> None:
        """A counted memory is not in use any more."""
        self.stats.freed(store.counted)


def new_device(cls: type[Any], kind: str, index: int | None, xp: Any, *, counted: bool) -> Any:
    """Make the one object of a device."""
    made = object.__new__(cls)
    made.kind = kind
    made.index = index
    made.xp = xp
    made.counted = counted
    made.stats = Stats()
    made._compiled = {}
    return made


CPU: Device = new_device(Device, "cpu", None, numpy, counted=False)
_FOUND: dict[str, Device] = {"cpu": CPU, "cpu:0": CPU}


def device(name: str | Device) -> Device:
    """Return the device of that name: "cpu", "sim", "cuda", "cuda:1", "meta".  Source: torch.device.

    Raises UsageError for a name that this machine has no device for.
    """
    if isinstance(name, Device):
        return name
    if name not in _FOUND:
        kind, _, index = name.partition(":")
        if name in ("sim", "sim:0"):
            from .devices.simulated import SIM  # noqa: PLC0415  accelerators are above the State

            _FOUND[name] = SIM
        elif name in ("meta", "meta:0"):
            from .devices.meta import META  # noqa: PLC0415

            _FOUND[name] = META
        elif kind == "cuda" and (index or "0").isdigit():
            from .devices.gpu import find  # noqa: PLC0415

            _FOUND[name] = find(int(index or 0))
        else:
            msg = f"device {name!r} is unknown: the devices are cpu, sim, cuda and meta."
            raise UsageError(msg)
    return _FOUND[name]


def import_cupy() -> tuple[Any, Any]:
    """Import cupy and cupyx, an optional extra, when a program first asks for a GPU."""
    import cupy  # noqa: PLC0415
    import cupyx  # noqa: PLC0415

    return cupy, cupyx


def special(xp: Any, name: str) -> Callable[..., Array]:
    """A function of scipy.special, or of what stands for it in another namespace.

    Raises UsageError where it is not installed.
    """
    try:
        from importlib import import_module  # noqa: PLC0415  an optional extra, imported when a program first asks for it

        return getattr(import_module("scipy.special" if xp is numpy else "cupyx.scipy.special"), name)  # type: ignore[no-any-return]
    except ImportError as reason:
        msg = f"{name} needs scipy: install minigrad[special]."
        raise UsageError(msg) from reason


def special_or(xp: Any, name: str, own: Callable[..., Array]) -> Callable[..., Array]:
    """A function of scipy.special; where that is not installed, own(xp, array)."""
    try:
        return special(xp, name)
    except UsageError:
        return partial(own, xp)


def lapack(xp: Any, name: str, like: Array) -> Callable[..., Any] | None:
    """A routine of LAPACK for the type of an array of the host; None where scipy is not installed, or for another namespace."""
    if xp is not numpy:
        return None
    try:
        from importlib import import_module  # noqa: PLC0415  as above

        return import_module("scipy.linalg.lapack").get_lapack_funcs((name,), (like,))[0]  # type: ignore[no-any-return]
    except ImportError:
        return None


def is_known(xp: Any, x: Array) -> bool:
    """Whether these are numbers of the host, and none is nan: elsewhere nobody looks."""
    return xp is numpy and not numpy.isnan(x).any()


def looking(xp: Any) -> AbstractContextManager[Any]:
    """Within it a function of linalg raises where it fails, for which cupy's would have to wait: else those give nan."""
    if xp is numpy:
        return nullcontext()
    from importlib import import_module  # noqa: PLC0415  as above

    return import_module("cupyx").errstate(linalg="raise")  # type: ignore[no-any-return]


def dtype_of(array: Array) -> dtypes.dtype:
    """The minigrad dtype of an array.  Raises TypeError where minigrad has none."""
    try:
        return dtypes.BY_CHAR[array.dtype.char]
    except KeyError:
        msg = f"can't convert an array of type {array.dtype}: minigrad has {', '.join(dtypes.BY_NAME)}."
        raise TypeError(msg) from None


def cast(array: Array, d: dtypes.dtype) -> Array:
    """The array in another element type; the same array where it has that type."""
    return array.astype(NUMPY_DTYPE[d], copy=False)


def as_array(result: Any, where: Device) -> Array:
    """An array from what a kernel returned: 0-d kernels return scalars."""
    return where.xp.asarray(result)


def strided(root: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int, element: Any = None) -> Array:
    """A view of `root`'s memory, which is dense: strides and offset in bytes, the offset from root's first element.

    element: the type of the view's elements, where it is another one.
    """
    element = root.dtype if element is None else element
    if isinstance(root, HOST_ARRAY):
        return numpy.ndarray(shape, element, root.ravel(order="K"), offset, strides)  # in the order of memory: no copy
    return type(root)(shape, element, root.data + offset, strides)


def window(array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array | None:
    """A view of the memory that `array` lies in, the offset from its first element; None where it would leave that memory."""
    if not isinstance(array, HOST_ARRAY):
        return type(array)(shape, array.dtype, array.data + offset, strides)
    root = memory_of(array)
    start = address(array) - address(root) + offset
    end = start + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) + array.itemsize
    inside = is_dense(root) and start >= 0 and end <= root.nbytes
    return strided(root, shape, strides, start, array.dtype) if inside else None


def poison(array: Array) -> None:
    """Write what nobody can take for data: nan, or bytes of a pattern."""
    kind = array.dtype.kind
    array.fill(numpy.nan if kind in "fc" else kind == "b" or int.from_bytes(b"\xa5" * array.itemsize, signed=kind == "i"))


def expanded(xp: Any, array: Array, shape: tuple[int, ...]) -> Array:
    """A broadcast view; what is a part of it with an address for each element may be written to, where `array` may."""
    new = len(shape) - array.ndim
    if type(array) is HOST_ARRAY and array.flags.c_contiguous and array.shape == shape[new:]:  # numpy finds the strides slowly
        return numpy.ndarray(shape, array.dtype, array, 0, (0,) * new + array.strides)
    view = xp.broadcast_to(array, shape)
    if isinstance(view, HOST_ARRAY):
        view.flags.writeable = array.flags.writeable
    return view


def repeated(xp: Any, array: Array, shape: tuple[int, ...], dims: tuple[int, ...]) -> Array:
    """A view of that shape, which repeats an array along `dims`, that it does not have."""
    if type(array) is HOST_ARRAY and array.flags.c_contiguous:  # numpy finds the strides slowly
        own = iter(array.strides)
        return numpy.ndarray(shape, array.dtype, array, 0, tuple([0 if d in dims else next(own) for d in range(len(shape))]))
    return expanded(xp, xp.expand_dims(array, dims), shape)


def is_writable(array: Array) -> bool:
    """Whether a program may write to it: no two elements are one."""
    if isinstance(array, HOST_ARRAY) and not array.flags.writeable:
        return False
    if 0 not in array.strides or not array.size:
        return True
    return not any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


def address(array: Array) -> int:
    """The address of the first element."""
    if isinstance(array, HOST_ARRAY):
        return int(array.__array_interface__["data"][0])
    return int(array.data.ptr)


def memory_of(array: Array) -> Array:
    """The host array that owns the memory of a host array."""
    while isinstance(array.base, HOST_ARRAY):
        array = array.base
    return array


def share_memory(a: Array, b: Array) -> bool:
    """Whether two arrays of one device may overlap."""
    if a.base is not None and (a.base is b or a.base is b.base):
        return True
    if isinstance(a, HOST_ARRAY):
        return bool(numpy.may_share_memory(a, b))
    return bool(a.data.mem.ptr == b.data.mem.ptr)


def array_text(array: Array) -> str:
    """A host array as text, elements set apart by commas."""
    return numpy.array2string(array, separator=", ")


def is_dense(array: Array) -> bool:
    """Whether the elements fill a block of memory, so that a copy can have the same strides."""
    if array.flags.c_contiguous:
        return True
    expected = array.itemsize
    for stride, extent in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= extent
    return True
