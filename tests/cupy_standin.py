"""A stand-in for cupy, made of numpy, for machines without a GPU: it takes what cupy takes, and refuses what cupy refuses.

Its arrays are no numpy arrays, and never become one by themselves; its functions take none either; ufuncs reduce and accumulate
as cupy's do; there is no flags.writeable; copies go by address.  Nothing is asynchronous, and nothing is measured here: it shows
that the code for cupy runs, not that it is right on a GPU.
"""

from __future__ import annotations

import ctypes
import types

import numpy as np

_REDUCED = {"add": np.sum, "multiply": np.prod}
_ACCUMULATED = {"add": np.cumsum, "multiply": np.cumprod}


class MemoryPointer:
    """An address in the stand-in's memory, which it keeps alive."""

    def __init__(self, memory, ptr):
        self.mem = memory
        self.ptr = ptr

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr + offset)

    def copy_to_host_async(self, mem, size, stream):
        assert isinstance(stream, Stream)
        ctypes.memmove(mem, self.ptr, size)

    def copy_from_host_async(self, mem, size, stream):
        assert isinstance(stream, Stream)
        ctypes.memmove(self.ptr, mem, size)


class _Memory:
    def __init__(self, array):
        while isinstance(array.base, np.ndarray):
            array = array.base
        self.array = array
        self.ptr = array.__array_interface__["data"][0]


class Flags:
    def __init__(self, flags):
        self.c_contiguous, self.f_contiguous, self.owndata = flags.c_contiguous, flags.f_contiguous, flags.owndata


class ndarray:
    """An array that is not numpy's."""

    __array_priority__ = 100
    __array_ufunc__ = None
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None):
        if memptr is None:
            self._np = np.empty(shape, dtype)
        else:
            root = memptr.mem.array
            flat = root.ravel(order="K").view(np.uint8)
            offset = memptr.ptr - memptr.mem.ptr
            self._np = np.ndarray(shape, dtype, flat, offset, strides)
        self.base = None

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed. Please use `.get()` to construct a NumPy array explicitly.")

    shape = property(lambda self: self._np.shape)
    strides = property(lambda self: self._np.strides)
    dtype = property(lambda self: self._np.dtype)
    ndim = property(lambda self: self._np.ndim)
    size = property(lambda self: self._np.size)
    nbytes = property(lambda self: self._np.nbytes)
    itemsize = property(lambda self: self._np.itemsize)
    flags = property(lambda self: Flags(self._np.flags))
    real = property(lambda self: wrap(self._np.real, self))
    imag = property(lambda self: wrap(self._np.imag, self))
    T = property(lambda self: wrap(self._np.T, self))

    @property
    def data(self):
        return MemoryPointer(_Memory(self._np), self._np.__array_interface__["data"][0])

    def __len__(self):
        return len(self._np)

    def __bool__(self):
        return bool(self._np)

    def __int__(self):
        return int(self._np)

    def __float__(self):
        return float(self._np)

    def __index__(self):
        return self._np.__index__()

    def __getitem__(self, index):
        return wrap(self._np[taken(index)], self)

    def __setitem__(self, index, value):
        self._np[taken(index)] = taken(value)

    def item(self):
        return self._np.item()

    def tolist(self):
        return self._np.tolist()

    def get(self):
        return self._np.copy(order="A")


def wrap(found, parent=None):
    """numpy's result as an array of this kind; scalars are 0-d arrays, as in cupy."""
    if isinstance(found, (tuple, list)):
        return type(found)(wrap(f, parent) for f in found)
    if not isinstance(found, (np.ndarray, np.generic)):
        return found
    array = ndarray.__new__(ndarray)
    array._np = np.asarray(found)
    shared = isinstance(found, np.ndarray) and parent is not None and np.shares_memory(found, parent._np)
    array.base = (parent.base if parent.base is not None else parent) if shared else None
    return array


def taken(value):
    """An argument for numpy.  Arrays of numpy are refused, as cupy refuses them."""
    if isinstance(value, ndarray):
        return value._np
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (tuple, list)):
        return type(value)(taken(v) for v in value)
    return value


def _method(name):
    def method(self, *args, **params):
        return wrap(getattr(self._np, name)(*taken(args), **{k: taken(v) for k, v in params.items()}), self)
    return method


for _name in ("astype", "copy", "reshape", "ravel", "transpose", "swapaxes", "sum", "any", "all", "max", "min", "conj", "conjugate", "fill",
              "squeeze", "cumsum", "mean", "argmax", "argsort", "take", "repeat", "dot", "clip", "round", "nonzero", "view", "__neg__",
              "__pos__", "__abs__", "__invert__", "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__iadd__", "__isub__",
              "__imul__", "__itruediv__", *(f"__{r}{op}__" for r in ("", "r") for op in (
                  "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor", "lshift", "rshift"))):
    setattr(ndarray, _name, _method(_name))


class ufunc:
    """A universal function; only sums and products reduce and accumulate."""

    def __init__(self, function):
        self.function = function

    def __call__(self, *args, **params):
        return wrap(self.function(*taken(args), **{k: taken(v) for k, v in params.items()}))

    def _known(self, table, what):
        if self.function.__name__ not in table:
            raise NotImplementedError(f"`{self.function.__name__}.{what}` is not supported yet")
        return table[self.function.__name__]

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        return wrap(self._known(_REDUCED, "reduce")(taken(array), axis=axis, dtype=dtype, keepdims=keepdims))

    def accumulate(self, array, axis=0, dtype=None, out=None):
        return wrap(self._known(_ACCUMULATED, "accumulate")(taken(array), axis=axis, dtype=dtype))

    def at(self, a, indices, b=None):
        self.function.at(a._np, taken(indices), taken(b))


class _Context:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass


class Device(_Context):
    compute_capability = "90"

    def __init__(self, index=0):
        assert index == 0, "cudaErrorInvalidDevice: invalid device ordinal"

    def synchronize(self):
        pass


class Event:
    done = True

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        pass

    def record(self, stream=None):
        assert isinstance(stream, Stream)

    def synchronize(self):
        pass


class Stream(_Context):
    done = True
    null = None

    def __init__(self, null=False, non_blocking=False, ptds=False):
        pass

    def synchronize(self):
        pass

    def wait_event(self, event):
        assert isinstance(event, Event)


Stream.null = Stream(null=True)


def _array(data, *args, **params):
    """Here numpy arrays are welcome: it is how they get to the device."""
    found = np.array(data._np if isinstance(data, ndarray) else data, *args, **params)
    return wrap(found)


def _asarray(data, *args, **params):
    return data if isinstance(data, ndarray) and not args and not params else _array(data, *args, **params)


class _Cupy(types.ModuleType):
    ndarray = ndarray
    array, asarray = staticmethod(_array), staticmethod(_asarray)
    cuda = types.SimpleNamespace(Device=Device, Event=Event, Stream=Stream, get_elapsed_time=lambda a, b: 0.0,
                                 runtime=types.SimpleNamespace(getDeviceCount=lambda: 1))

    @staticmethod
    def asnumpy(array):
        return array.get()

    def __getattr__(self, name):
        found = getattr(np, name)
        if isinstance(found, np.ufunc):
            made = ufunc(found)
        elif callable(found) and not isinstance(found, type):
            def made(*args, **params):
                parent = next((a for a in args if isinstance(a, ndarray)), None)
                return wrap(found(*taken(args), **{k: taken(v) for k, v in params.items()}), parent)
        else:
            made = found
        setattr(self, name, made)
        return made


def empty_pinned(shape, dtype=float, order="C"):
    return np.empty(shape, dtype, order)


CUPY = _Cupy("cupy")
CUPYX = types.SimpleNamespace(empty_pinned=empty_pinned)
