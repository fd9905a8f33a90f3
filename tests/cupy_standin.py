"""A stand-in for cupy, made of numpy, for machines without a GPU: it takes what cupy takes, and refuses what cupy refuses.

What cupy has is in tests/house/cupy_interface.json, written down from cupy itself: names, parameters, and for which kinds of
element there are loops.  Beside that: arrays are no numpy arrays, and never become one by themselves; functions take none
either; elementwise results are contiguous; an array is used on its own device; there is no flags.writeable; copies go by address.

Nothing is asynchronous, and nothing is measured here: it shows that the code for cupy runs, not that it is right on a GPU.
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import json
import types
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

import numpy as np

INTERFACE = json.loads((Path(__file__).parent / "house" / "cupy_interface.json").read_text())
_REDUCED = {"add": np.sum, "multiply": np.prod}
_ACCUMULATED = {"add": np.cumsum, "multiply": np.cumprod}
_AT = {"add": "iIlLqQefd", "subtract": "iI", "maximum": "iIlLqQfd", "minimum": "iIlLqQfd"}
"""Kinds of element that atomic functions of CUDA take, as of cupy 14.1 (before it, add.at knows no l and q)."""
_OPERATORS = {"add": "add", "sub": "subtract", "mul": "multiply", "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder",
              "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor", "lshift": "left_shift",
              "rshift": "right_shift"}
_COMPARISONS = {"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal"}
_UNARY = {"neg": "negative", "invert": "invert", "abs": "absolute"}
DEVICES = [1]
"""How many there are."""
LOOKS = [0]
"""How often the host waited for a number."""
WAITS = ("nonzero", "argwhere")
"""Functions that wait for how many there are."""
LINALG = ["ignore"]
"""What a function of linalg does where it fails: unless it is told, nothing."""


# ---------------------------------------------------------------- memory
class MemoryPointer:
    """An address in the stand-in's memory, which it keeps alive."""

    def __init__(self, memory, ptr):
        self.mem = memory
        self.ptr = ptr

    def __add__(self, offset):
        return MemoryPointer(self.mem, self.ptr + offset)

    def copy_to_host_async(self, mem, size, stream=None):
        self._check(stream)
        ctypes.memmove(mem, self.ptr, size)

    def copy_from_host_async(self, mem, size, stream=None):
        self._check(stream)
        ctypes.memmove(self.ptr, mem, size)

    def _check(self, stream):
        assert isinstance(stream, Stream)
        assert stream._device in (None, self.mem.device) and Device._now == self.mem.device, "cudaErrorInvalidValue"


class _Memory:
    def __init__(self, array, device):
        while isinstance(array.base, np.ndarray):
            array = array.base
        self.array = array
        self.device = device
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
        self._device = Device._now if memptr is None else memptr.mem.device

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
    real = property(lambda self: wrap(self._np.real, self), lambda self, x: self._set("real", x))
    imag = property(lambda self: wrap(self._np.imag, self), lambda self, x: self._set("imag", x))
    T = property(lambda self: wrap(self._np.T, self))
    device = property(lambda self: Device(self._device))

    @property
    def data(self):
        return MemoryPointer(_Memory(self._np, self._device), self._np.__array_interface__["data"][0])

    def __len__(self):
        return len(self._np)

    def __getitem__(self, index):
        if any(isinstance(i, ndarray) and i.dtype == bool for i in (index if isinstance(index, tuple) else (index,))):
            LOOKS[0] += 1                                  # how many there are
        return wrap(self._np[taken(index)], self)

    def __setitem__(self, index, value):
        self._np[taken(index)] = taken(value)

    def _set(self, part, value):
        setattr(self._np, part, taken(value))

    def get(self):
        LOOKS[0] += 1
        return self._np.copy(order="A")

    def __dlpack_device__(self):
        return 2, self._device

    def __dlpack__(self, **params):
        return self


def wrap(found, parent=None):
    """numpy's result as an array of this kind; scalars are 0-d arrays, as in cupy."""
    if isinstance(found, (tuple, list)):
        return type(found)(wrap(f, parent) for f in found) if not hasattr(found, "_fields") else found._make(wrap(f, parent) for f in found)
    if not isinstance(found, (np.ndarray, np.generic)):
        return found
    array = ndarray.__new__(ndarray)
    array._np = np.asarray(found)
    if array._np is found:
        with suppress(ValueError):                         # a view of a view whose flag was set
            found.flags.writeable = True
    shared = isinstance(found, np.ndarray) and parent is not None and np.shares_memory(found, parent._np)
    array.base = (parent.base if parent.base is not None else parent) if shared else None
    array._device = parent._device if shared else Device._now
    return array


def taken(value):
    """An argument for numpy.  Arrays of numpy are refused, as cupy refuses them, and arrays of another device."""
    if isinstance(value, ndarray):
        assert value._device == Device._now, f"Array device must be same as the current device: {value._device}, {Device._now}"
        return value._np
    if isinstance(value, np.ndarray):
        raise TypeError("Unsupported type <class 'numpy.ndarray'>")
    if isinstance(value, (tuple, list)):
        return type(value)(taken(v) for v in value)
    return value


# ---------------------------------------------------------------- functions
@cache
def loops(name):
    """What kinds of element a ufunc takes, and what it gives."""
    found = [loop.split("->") for loop in INTERFACE["ufuncs"][name].split()]
    return [([np.dtype(c) for c in ins], [np.dtype(c) for c in outs]) for ins, outs in found]


def fits(x, kind):
    """Whether a ufunc that has a loop for `kind` takes `x`, a numpy array or a number."""
    return np.can_cast(x.dtype if isinstance(x, (np.ndarray, np.generic)) else np.result_type(x, kind), kind)


@cache
def signature(name):
    """How a function is called."""
    said = INTERFACE["functions"][name]
    if said is None:
        return None
    found, kind = [], inspect.Parameter.POSITIONAL_OR_KEYWORD
    for p in said.split():
        if p == "*":
            kind = inspect.Parameter.KEYWORD_ONLY
        elif p.startswith("*"):
            this = inspect.Parameter.VAR_KEYWORD if p.startswith("**") else inspect.Parameter.VAR_POSITIONAL
            found.append(inspect.Parameter(p.strip("*"), this))
            kind = inspect.Parameter.KEYWORD_ONLY
        else:
            found.append(inspect.Parameter(p.strip("="), kind, default=None if p.endswith("=") else inspect.Parameter.empty))
    return inspect.Signature(found)


class ufunc:
    """A universal function; only sums and products reduce and accumulate, and only some kinds of element are added at indices."""

    def __init__(self, name, function):
        self.name = name
        self.function = function

    def __call__(self, *args, **params):
        args, params = taken(args), {k: taken(v) for k, v in params.items()}
        kinds = [outs for ins, outs in loops(self.name) if all(map(fits, args, ins))]
        if not kinds:
            raise TypeError(f"Wrong type ({[getattr(a, 'dtype', type(a)) for a in args]}) of arguments for cupy.{self.name}")
        with np.errstate(all="ignore"):
            return contiguous(self.function(*args, **params))

    def _known(self, table, what):
        if self.name not in table:
            raise NotImplementedError(f"`cupy_{self.name}.{what}` is not supported yet")
        return table[self.name]

    def reduce(self, array, axis=0, dtype=None, out=None, keepdims=False):
        return wrap(self._known(_REDUCED, "reduce")(taken(array), axis=axis, dtype=dtype, keepdims=keepdims))

    def accumulate(self, array, axis=0, dtype=None, out=None):
        return wrap(self._known(_ACCUMULATED, "accumulate")(taken(array), axis=axis, dtype=dtype))

    def at(self, a, indices, b=None):
        masks = isinstance(indices, ndarray) and indices.dtype == bool
        if not masks and a.dtype.char not in self._known(_AT, "at"):
            raise TypeError(f"cupy.{self.name}.at only supports {_AT[self.name]} as data type")
        self.function.at(a._np, taken(indices), taken(b))


def contiguous(found):
    """A result of a ufunc: its memory is in the order of its indices, whatever that of its arguments is."""
    return tuple(map(contiguous, found)) if isinstance(found, tuple) else wrap(np.asarray(found, order="C"))


def function(name, found):
    """A function that is called as cupy's is; of arrays, whose first is what a view is of."""
    called = signature(name)

    def made(*args, **params):
        if called is not None:
            try:
                called.bind(*args, **params)
            except TypeError as error:
                raise TypeError(f"cupy.{name}: {error}") from None
        LOOKS[0] += name in WAITS
        parent = next((a for a in args if isinstance(a, ndarray)), None)
        if name == "linalg.solve" and args[0].shape[:-1] != args[1].shape[:-1]:
            raise ValueError("a must have (..., M, M) shape and b must have (..., M, K) for multidimensional b")
        try:
            result = found(*taken(args), **{k: taken(v) for k, v in params.items()})
            return wrap(np.asarray(result) if name == "count_nonzero" else result, parent)  # before numpy 2.4 an int
        except np.linalg.LinAlgError:
            if LINALG[0] == "raise":
                raise
            return wrap(np.full(args[-1].shape, np.nan, args[-1].dtype))
    return made


class Namespace(types.ModuleType):
    """numpy's functions under cupy's names, or those of a part of it."""

    def __init__(self, name, numpys, prefix=""):
        super().__init__(name)
        self._numpys, self._prefix = numpys, prefix

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        full = self._prefix + name
        if full in INTERFACE["ufuncs"]:
            made = ufunc(full, getattr(self._numpys, name))
        elif full in INTERFACE["functions"]:
            made = function(full, getattr(self._numpys, name))
        elif any(n.startswith(full + ".") for n in INTERFACE["functions"]):
            made = Namespace(full, importlib.import_module(f"numpy.{full}"), full + ".")
        else:
            made = getattr(self._numpys, name)
            assert isinstance(made, type) or full in INTERFACE["others"], f"cupy has no {full}"
        setattr(self, name, made)
        return made


# ---------------------------------------------------------------- methods and operators
def _method(name):
    def method(self, *args, **params):
        return wrap(getattr(self._np, name)(*taken(args), **{k: taken(v) for k, v in params.items()}), self)
    return method


def _look(name):
    def method(self):
        LOOKS[0] += 1
        return getattr(self._np, name)()
    return method


def _operator(name, *, swapped=False, arity=2):
    def method(self, *others):
        assert len(others) == arity - 1
        return getattr(CUPY, name)(*((*others, self) if swapped else (self, *others)))
    return method


def _in_place(name):
    def method(self, other):
        getattr(np, name)(self._np, taken(other), out=self._np)
        return self
    return method


for _name in ("astype", "copy", "reshape", "ravel", "transpose", "swapaxes", "sum", "any", "all", "max", "min", "conj", "conjugate", "fill",
              "squeeze", "cumsum", "mean", "argmax", "argsort", "take", "repeat", "dot", "clip", "round", "nonzero", "view"):
    setattr(ndarray, _name, _method(_name))
for _name in ("__bool__", "__int__", "__float__", "__complex__", "item", "tolist"):
    setattr(ndarray, _name, _look(_name))
for _name, _function in _OPERATORS.items():
    setattr(ndarray, f"__{_name}__", _operator(_function))
    setattr(ndarray, f"__r{_name}__", _operator(_function, swapped=True))
    if _name != "matmul":
        setattr(ndarray, f"__i{_name}__", _in_place(_function))
for _name, _function in _COMPARISONS.items():
    setattr(ndarray, f"__{_name}__", _operator(_function))
for _name, _function in _UNARY.items():
    setattr(ndarray, f"__{_name}__", _operator(_function, arity=1))


# ---------------------------------------------------------------- devices, streams, events
class Device:
    _now = 0
    compute_capability = "90"

    def __init__(self, index=0):
        assert index < DEVICES[0], "cudaErrorInvalidDevice: invalid device ordinal"
        self.id = index
        self._before = []

    def __enter__(self):
        self._before.append(Device._now)
        Device._now = self.id
        return self

    def __exit__(self, *error):
        Device._now = self._before.pop()

    def synchronize(self):
        pass


class Event:
    done = True

    def __init__(self, block=False, disable_timing=False, interprocess=False):
        self._device = Device._now

    def record(self, stream=None):
        assert isinstance(stream, Stream)
        assert stream._device in (None, self._device), "cudaErrorInvalidResourceHandle"

    def synchronize(self):
        pass


class Stream:
    done = True
    null = None

    def __init__(self, null=False, non_blocking=False, ptds=False, priority=None):
        self._device = None if null else Device._now

    def __enter__(self):
        return self

    def __exit__(self, *error):
        pass

    def synchronize(self):
        pass

    def wait_event(self, event):
        assert isinstance(event, Event)


Stream.null = Stream(null=True)


# ---------------------------------------------------------------- the modules
def _array(data, *args, **params):
    """Here numpy arrays are welcome: it is how they get to the device."""
    signature("array").bind(data, *args, **params)
    return wrap(np.array(taken(data) if isinstance(data, (ndarray, list, tuple)) else data, *args, **params))


def _asarray(data, *args, **params):
    return data if isinstance(data, ndarray) and not args and not params else _array(data, *args, **params)


CUPY = Namespace("cupy", np)
CUPY.ndarray, CUPY.array, CUPY.asarray = ndarray, _array, _asarray
CUPY.asnumpy = lambda array: array.get()
CUPY.from_dlpack = lambda array: array.__dlpack__()
CUPY.cuda = types.SimpleNamespace(Device=Device, Event=Event, Stream=Stream, get_elapsed_time=lambda a, b: 0.0,
                                  runtime=types.SimpleNamespace(getDeviceCount=lambda: DEVICES[0]))
CUPYX = types.ModuleType("cupyx")
CUPYX.empty_pinned = np.empty


@contextmanager
def errstate(*, linalg):
    before, LINALG[0] = LINALG[0], linalg
    LOOKS[0] += linalg != "ignore"
    try:
        yield
    finally:
        LINALG[0] = before


CUPYX.errstate = errstate


class _Special(Namespace):
    def __getattr__(self, name):
        if self._numpys is None:
            self._numpys = importlib.import_module("scipy.special")
        return super().__getattr__(name)


MODULES = {"cupy": CUPY, "cupyx": CUPYX, "cupyx.scipy": types.ModuleType("cupyx.scipy"),
           "cupyx.scipy.special": _Special("cupyx.scipy.special", None, "special.")}
"""What `import` finds, where they are among sys.modules."""
