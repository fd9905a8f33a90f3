"""Tensors from nothing, from numbers and from arrays.

What is made inside a transform belongs to no level until an op brings it into one.
"""

from __future__ import annotations

from functools import reduce
from math import ceil, isfinite
from typing import TYPE_CHECKING, Any

from ..backend import CPU, HOST_ARRAY, HOST_SCALAR, NUMPY_DTYPE, Device, dtype_of
from ..backend import device as find_device
from ..dtypes import bool_, dtype, int64, of_scalar, promote_types
from ..errors import UsageError
from ..row import OpFunction, row
from ..state import current
from ..storage import kind_of, new_storage
from ..tensor import Tensor, fresh
from .batching import elementwise, same_bdim, with_batch_shape
from .shape import varargs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..backend import Array


def _device(device: str | Device | None) -> Device:
    return current().default_device if device is None else find_device(device)


def as_leaf(x: Tensor, requires_grad: bool) -> Tensor:
    """`x`, which requires grad where that was asked for."""
    return x.requires_grad_() if requires_grad else x


def _making(name: str, array: Callable[..., Array]) -> OpFunction:
    """The row of array(xp, dtype, ...), which is made on its device."""
    def kernel(xp: Any, dtype: dtype, device: Device, **params: Any) -> Array:
        return array(xp, NUMPY_DTYPE[dtype], **params)

    return row(name, kernel, vjp=None, jvp=None, batch=same_bdim)  # without arguments, it never has a batch of them


def _placed(xp: Any, array: Array, dtype: dtype, device: Any) -> Array:
    host = checked(xp, array, NUMPY_DTYPE[dtype]).astype(NUMPY_DTYPE[dtype])
    return host if device is CPU else device.from_host(host)


def checked(xp: Any, numbers: Any, d: Any) -> Array:
    """Numbers for an array of numpy's type `d`, where a fraction is cut off.  Raises UsageError for what else would be lost.

    A negative number wraps round to an unsigned one.  Source: c10::checked_convert.
    """
    array = xp.asarray(numbers)
    if array.dtype == d or d.kind in "bc" or array.dtype.kind == "b" or not array.size:
        return array
    lost = array.dtype.kind == "c" and bool(array.imag.any())
    if d.kind in "iu" and not lost:
        most = int(xp.iinfo(d).max)
        least = -most if d.kind == "u" else -most - 1
        lost = not (least <= array.real.min() and array.real.max() <= most)  # so is nan
    if lost:
        msg = f"value cannot be converted to type {d.name} without overflow"
        raise UsageError(msg)
    return array


_constant: OpFunction = row("lift_fresh", _placed, vjp=None, jvp=None, batch=same_bdim)


def _filled(xp: Any, d: Any, shape: tuple[int, ...], fill_value: Any) -> Array:
    """Memory of zeros is not touched before it is written to."""
    if type(fill_value) is int and fill_value == 0:
        return xp.zeros(shape, d)
    out = xp.empty(shape, d)  # numpy's own full and ones take longer for a few numbers
    out.fill(checked(xp, fill_value, d).astype(d))
    return out


_full = _making("full", _filled)


def _arange_kernel(xp: Any, d: Any, start: Any, end: Any, step: Any) -> Any:
    """Of ints as many as the numbers given would make, from the whole part of start by that of step."""
    out = xp.arange(max(ceil((end - start) / step), 0))
    if d.kind in "iu":
        out, start, step = out.astype(d, copy=False), xp.asarray(start).astype(d), xp.asarray(step).astype(d)
    if step != 1:
        out = out * step
    return (out + start if start != 0 else out).astype(d, copy=False)


_arange = _making("arange", _arange_kernel)


def _linspace_kernel(xp: Any, d: Any, start: Any, end: Any, steps: int) -> Any:
    """Of ints, what lies between the ends is without its own fraction."""
    return xp.linspace(*_ends(d, start, end), steps).astype(d, copy=False)


def _ends(d: Any, start: Any, end: Any) -> tuple[Any, Any]:
    """Of ints, the ends without their fractions."""
    return (int(start), int(end)) if d.kind in "iu" else (start, end)


_linspace = _making("linspace", _linspace_kernel)


def _logspace_kernel(xp: Any, d: Any, start: Any, end: Any, steps: int, base: float) -> Any:
    return xp.power(base, xp.linspace(*_ends(d, start, end), steps)).astype(d)


_logspace = _making("logspace", _logspace_kernel)
_eye = _making("eye", lambda xp, d, n, m: xp.eye(n, m, dtype=d))


def tensor(data: Any, *, dtype: dtype | None = None, device: str | Device | None = None,
           requires_grad: bool = False) -> Tensor:
    """Return a new tensor with a copy of the data: numbers, nested sequences, arrays or tensors.

    Python floats become the default dtype, ints int64.  Source: torch.tensor.
    """
    if isinstance(data, Tensor):
        out = data.detach().clone() if dtype is None else data.detach().clone().to(dtype)
        return as_leaf(out if device is None else out.to(device), requires_grad)
    if isinstance(data, (list, tuple)) and _is_typed(data):
        dtype = reduce(promote_types, _types(data)) if dtype is None else dtype
        data = _numbers(data)
    host = CPU.xp.array(data)
    if dtype is None:
        dtype = _inferred(data, host)
    return as_leaf(_constant(array=host, dtype=dtype, device=_device(device)), requires_grad)


def _is_typed(data: Any) -> bool:
    """Whether there is a tensor, or something of numpy's, in nested sequences: it has a type of its own."""
    return any(_is_typed(d) if isinstance(d, (list, tuple)) else isinstance(d, (Tensor, HOST_SCALAR, HOST_ARRAY)) for d in data)


def _types(data: Any) -> Iterator[dtype]:
    if isinstance(data, (list, tuple)):
        for d in data:
            yield from _types(d)
    elif isinstance(data, Tensor):
        yield data.dtype
    else:
        yield dtype_of(data) if isinstance(data, (HOST_SCALAR, HOST_ARRAY)) else of_scalar(data, current().default_dtype)


def _numbers(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.tolist()
    return [_numbers(d) for d in data] if isinstance(data, (list, tuple)) else data


def _inferred(data: Any, host: Any) -> dtype:
    if isinstance(data, (HOST_ARRAY, HOST_SCALAR)):
        return dtype_of(host)
    kind, default = host.dtype.kind, current().default_dtype
    if kind == "O":
        msg = f"could not infer dtype of {type(data).__name__}"
        raise UsageError(msg)
    if kind in "US":
        msg = "too many dimensions 'str'"  # as torch says it: a string is a sequence
        raise ValueError(msg)
    if kind in "iu":
        return int64
    if kind == "c":
        return default.to_complex()
    return bool_ if kind == "b" else default


def from_numpy(array: Any) -> Tensor:
    """A cpu tensor that shares memory with a numpy array.  Source: torch.from_numpy."""
    if not isinstance(array, HOST_ARRAY):
        msg = f"expected np.ndarray (got {type(array).__name__})"
        raise TypeError(msg)
    d = dtype_of(array)
    return fresh(array, d, CPU, new_storage(array, kind_of(d, CPU)))


def as_tensor(data: Any, dtype: dtype | None = None, device: str | Device | None = None) -> Tensor:
    """The data as a tensor, shared where that is possible.  Source: torch.as_tensor."""
    if isinstance(data, HOST_ARRAY):
        data = from_numpy(data)
    if not isinstance(data, Tensor):
        return tensor(data, dtype=dtype, device=device)
    out = data if dtype is None else data.to(dtype)
    return out if device is None else out.to(device)


def from_dlpack(source: Any) -> Tensor:
    """A tensor that shares memory with whatever speaks DLPack, on the host or on a CUDA device.  Source: torch.from_dlpack."""
    kind, index = source.__dlpack_device__()
    if kind != _DLPACK_CUDA:
        return from_numpy(CPU.xp.from_dlpack(source))
    where = find_device(f"cuda:{index}")
    array = where.xp.from_dlpack(source)
    d = dtype_of(array)
    return fresh(array, d, where, new_storage(array, kind_of(d, where)))


_DLPACK_CUDA = 2
"""kDLCUDA of the DLPack standard."""


def full(size: Any, fill_value: Any, *, dtype: dtype | None = None, device: str | Device | None = None,
         requires_grad: bool = False) -> Tensor:
    """A tensor of one value.  Source: torch.full."""
    where = _device(device)
    shape = (size,) if isinstance(size, int) else tuple(size)
    if isinstance(fill_value, Tensor):
        fill_value = fill_value.item()
    if dtype is None:
        dtype = _inferred(fill_value, CPU.xp.asarray(fill_value))
    return as_leaf(_full(shape=shape, fill_value=fill_value, dtype=dtype, device=where), requires_grad)


def zeros(*sizes: Any, size: Any = None, dtype: dtype | None = None, device: str | Device | None = None,
          requires_grad: bool = False) -> Tensor:
    """Zeros.  Source: torch.zeros."""
    return full(varargs(sizes, size), 0, dtype=dtype or current().default_dtype, device=device, requires_grad=requires_grad)


def ones(*sizes: Any, size: Any = None, dtype: dtype | None = None, device: str | Device | None = None,
         requires_grad: bool = False) -> Tensor:
    """Ones.  Source: torch.ones."""
    return full(varargs(sizes, size), 1, dtype=dtype or current().default_dtype, device=device, requires_grad=requires_grad)


empty = zeros


def arange(*span: Any, start: Any = 0, end: Any = None, step: Any = 1, dtype: dtype | None = None,
           device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Numbers from start (0) to end, without end, by step (1).  Source: torch.arange."""
    if len(span) > 1:
        start, end, step = (*span, step)[:3] if end is None else (span[0], end, span[1])
    elif span:
        start, end = (start, span[0]) if end is None else (span[0], end)
    start, end, step = span = tuple(s.item() if isinstance(s, Tensor) else s for s in (start, end, step))
    if not all(isfinite(s) for s in (start, end)):
        msg = f"unsupported range: {start} -> {end}"
        raise UsageError(msg)
    if not step or (end - start) * step < 0:
        msg = "upper bound and lower bound inconsistent with step sign" if step else "step must be nonzero"
        raise UsageError(msg)
    if dtype is None:
        dtype = int64 if all(isinstance(s, int) for s in span) else current().default_dtype
    elif dtype is int64:
        start, end, step = (int(s) for s in span)
    return as_leaf(_arange(start=start, end=end, step=step, dtype=dtype, device=_device(device)), requires_grad)


def _floating(*numbers: Any) -> dtype:
    """The default type, or the complex one where a number is complex."""
    default = current().default_dtype
    return default.to_complex() if any(isinstance(n, complex) for n in numbers) else default


def _numbers_of(start: Any, end: Any, steps: int) -> tuple[Any, ...]:
    """The ends as numbers.  Raises UsageError where there cannot be so many steps."""
    if steps < 0:
        msg = "number of steps must be non-negative"
        raise UsageError(msg)
    return tuple([v.detach().item() if isinstance(v, Tensor) else v for v in (start, end)])


def linspace(start: float, end: float, steps: int, *, dtype: dtype | None = None,
             device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Evenly spaced numbers from start to end, both included.  Source: torch.linspace."""
    start, end = _numbers_of(start, end, steps)
    return as_leaf(_linspace(start=start, end=end, steps=steps, dtype=dtype or _floating(start, end), device=_device(device)),
                   requires_grad)


def logspace(start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: dtype | None = None,
             device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Powers of the base, to evenly spaced exponents from start to end, both included.  Source: torch.logspace."""
    start, end = _numbers_of(start, end, steps)
    return as_leaf(_logspace(start=start, end=end, steps=steps, base=float(base), dtype=dtype or _floating(start, end),
                             device=_device(device)), requires_grad)


def scalar_tensor(s: Any, *, dtype: dtype | None = None, device: str | Device | None = None,
                  requires_grad: bool = False) -> Tensor:
    """A 0-d tensor of one number, in the default dtype.  Source: torch.scalar_tensor."""
    return tensor(s, dtype=dtype or current().default_dtype, device=device, requires_grad=requires_grad)


def eye(n: int, m: int | None = None, *, dtype: dtype | None = None, device: str | Device | None = None,
        requires_grad: bool = False) -> Tensor:
    """The identity matrix.  Source: torch.eye."""
    return as_leaf(_eye(n=n, m=m, dtype=dtype or current().default_dtype, device=_device(device)), requires_grad)


# ---------------------------------------------------------------- like another tensor: a batch makes a batch
def _full_like_kernel(xp: Any, x0: Any, shape: tuple[int, ...], fill_value: Any, dtype: dtype) -> Any:
    return _filled(xp, NUMPY_DTYPE[dtype], shape, fill_value)


_full_like = row("full_like", _full_like_kernel, arity=1, vjp=None, jvp=None, batch=with_batch_shape)


def full_like(x: Tensor, fill_value: Any, *, dtype: dtype | None = None, device: str | Device | None = None,
              requires_grad: bool = False, **_: Any) -> Tensor:
    """One value in the shape of `x`.  Source: torch.full_like."""
    out = _full_like(x, shape=x.shape, fill_value=fill_value, dtype=dtype or x.dtype)
    return as_leaf(out if device is None else out.to(device), requires_grad)


def _zeros_like_kernel(xp: Any, x0: Array) -> Array:
    return xp.zeros(x0.shape, x0.dtype)


def _ones_like_kernel(xp: Any, x0: Array) -> Array:
    out = xp.empty(x0.shape, x0.dtype)
    out.fill(1)
    return out


_zeros_like = row("zeros_like", _zeros_like_kernel, arity=1, vjp=None, jvp=None, batch=elementwise, elementwise=True)
_ones_like = row("ones_like", _ones_like_kernel, arity=1, vjp=None, jvp=None, batch=elementwise, elementwise=True)


def zeros_like(x: Tensor, **options: Any) -> Tensor:
    """Zeros in the shape of `x`.  Source: torch.zeros_like."""
    return full_like(x, 0, **options) if options else _zeros_like(x)


zeros_like.on_reals = zeros_like.on_complexes = _zeros_like  # type: ignore[attr-defined]  # in rules that are read as kernels


def ones_like(x: Tensor, **options: Any) -> Tensor:
    """Ones in the shape of `x`.  Source: torch.ones_like."""
    return full_like(x, 1, **options) if options else _ones_like(x)


empty_like = zeros_like


def new_full(x: Tensor, size: Any, fill_value: Any, *, dtype: dtype | None = None,
             device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """One value in another shape, a batch where `x` is one.  Source: torch.Tensor.new_full."""
    shape = (size,) if isinstance(size, int) else tuple(size)
    out = _full_like(x, shape=shape, fill_value=fill_value, dtype=dtype or x.dtype)
    return as_leaf(out if device is None else out.to(device), requires_grad)


def new_zeros(x: Tensor, *sizes: Any, size: Any = None, **options: Any) -> Tensor:
    """Zeros in another shape.  Source: torch.Tensor.new_zeros."""
    return new_full(x, varargs(sizes, size), 0, **options)


def new_ones(x: Tensor, *sizes: Any, size: Any = None, **options: Any) -> Tensor:
    """Ones in another shape.  Source: torch.Tensor.new_ones."""
    return new_full(x, varargs(sizes, size), 1, **options)


def new_tensor(x: Tensor, data: Any, **options: Any) -> Tensor:
    """A tensor of the data with the dtype and device of `x`.  Source: torch.Tensor.new_tensor."""
    return tensor(data, **{"dtype": x.dtype, "device": x.device, **options})
