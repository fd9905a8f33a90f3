"""Devices and their arrays: the only file that names numpy or cupy.

A `Device` has a type (`cpu`, `sim`, `cuda`), an index, the array namespace `xp` that kernels are written over, and
`stats`.  `sim` is a simulated accelerator: numpy memory that no `cpu` tensor may be mixed with, counted to the byte.
"""

from __future__ import annotations

import warnings
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

from . import dtypes
from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

warnings.filterwarnings("ignore", category=RuntimeWarning, module=r"minigrad\.")  # log(0) is -inf and no surprise, as in torch

Array = Any
NUMPY_DTYPE = {d: numpy.dtype(d.name) for d in dtypes.ALL}
HOST_ARRAY, HOST_SCALAR = numpy.ndarray, numpy.generic
host_array = numpy.asarray


class Count:
    """How much there is of something, the most that there ever was, and all that there has been."""

    __slots__ = ("allocated", "live", "peak")

    def __init__(self) -> None:
        self.live = self.peak = self.allocated = 0

    def add(self, n: int) -> None:
        """There is more."""
        self.live += n
        self.allocated += n
        self.peak = max(self.peak, self.live)


class Stats:
    """What one device holds, exactly: its memories and their bytes; and the bytes copied from and to it."""

    __slots__ = ("blocks", "bytes", "to_device", "to_host")

    def __init__(self) -> None:
        self.bytes = Count()
        self.blocks = Count()
        self.to_host = self.to_device = 0

    def allocated(self, nbytes: int) -> None:
        """One more memory is in use."""
        self.bytes.add(nbytes)
        self.blocks.add(1)

    def freed(self, nbytes: int) -> None:
        """One memory is not in use any more."""
        self.bytes.live -= nbytes
        self.blocks.live -= 1


class Device:
    """One address space.  There is one object for each, so that `is` compares them; calling the class finds it.

    As a context manager it is where tensors are made that name no device.  Source: torch.device.
    """

    __slots__ = ("_compiled", "counted", "index", "kind", "stats", "xp")

    kind: str
    index: int | None
    xp: Any
    counted: bool
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

    def from_host(self, array: Array) -> Array:
        """A copy in this address space of a host array, in the same strides."""
        self.stats.to_device += array.nbytes
        if self.xp is numpy:
            return numpy.copy(array, order="K")
        return self.xp.array(array, order="A")

    def to_host(self, array: Array) -> Array:
        """A copy on the host of an array of this device, in the same strides."""
        self.stats.to_host += array.nbytes
        if self.xp is numpy:
            return numpy.copy(array, order="K")
        return self.xp.asnumpy(array, order="A")


def _new_device(kind: str, index: int | None, xp: Any, *, counted: bool) -> Device:
    made = object.__new__(Device)
    made.kind = kind
    made.index = index
    made.xp = xp
    made.counted = counted
    made.stats = Stats()
    made._compiled = {}
    return made


CPU = _new_device("cpu", None, numpy, counted=False)
SIM = _new_device("sim", None, numpy, counted=True)
_FOUND: dict[str, Device] = {"cpu": CPU, "sim": SIM, "cpu:0": CPU, "sim:0": SIM}


def device(name: str | Device) -> Device:
    """Return the device of that name: "cpu", "sim", "cuda", "cuda:1".  Source: torch.device.

    Raises UsageError for a name that this machine has no device for.
    """
    if isinstance(name, Device):
        return name
    if name not in _FOUND:
        kind, _, index = name.partition(":")
        if kind != "cuda" or not (index or "0").isdigit():
            msg = f"device {name!r} is unknown: the devices are cpu, sim and cuda."
            raise UsageError(msg)
        _FOUND[name] = _cuda(int(index or 0))
    return _FOUND[name]


def _cuda(index: int) -> Device:
    try:
        import cupy  # noqa: PLC0415  an optional extra, imported when a program first asks for it
        cupy.cuda.Device(index).use()
    except Exception as reason:
        msg = f"device cuda:{index} cannot be used ({reason}). Install minigrad[cuda12] or [cuda13] where there is a GPU."
        raise UsageError(msg) from reason
    return _FOUND.setdefault(f"cuda:{index}", _new_device("cuda", index, cupy, counted=True))


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


def strided(root: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int) -> Array:
    """A view of `root`'s memory, which is dense: strides and offset in bytes, the offset from root's first element."""
    flat = root.ravel(order="K")[offset // root.itemsize:]  # in the order of memory, without a copy
    if isinstance(root, HOST_ARRAY):
        return numpy.lib.stride_tricks.as_strided(flat, shape, strides)
    return type(root)(shape, root.dtype, flat.data, strides)


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
    expected = array.itemsize
    for stride, extent in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != expected:
            return False
        expected *= extent
    return True
