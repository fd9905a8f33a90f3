"""Rows that move a tensor between devices, and `to`, which also changes its type."""

from __future__ import annotations

from typing import Any

from ..backend import CPU, QUEUED, Device, dtype_of, is_dense
from ..backend import device as find_device
from ..devices.pinned import block_of
from ..dtypes import dtype
from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor, bottom, fresh
from .batching import same_bdim
from .layout import in_format, memory_format
from .shape import cast


def _transfer_kernel(xp: Any, x0: Any, source: Any, target: Any, non_blocking: bool = False, pin: Any = None) -> Tensor:
    """A copy that is done; or one that the current stream is asked for; or one on the host, in memory that `pin` pins."""
    if pin is not None:
        return fresh(_pinned(x0, pin), dtype_of(x0), CPU)
    if non_blocking and source is CPU:
        out, _ = target.bring(x0 if is_dense(x0) and block_of(x0) else _pinned(x0, target), target.current_stream())
    elif non_blocking:
        out, _ = source.fetch(x0 if is_dense(x0) else source.kernel("ascontiguousarray")(x0), source.current_stream())
    else:
        out = target.from_host(x0) if source is CPU else source.to_host(x0)
    return fresh(out, dtype_of(x0), target)


def _pinned(host: Any, where: Any) -> Any:
    out = where.pool.take(host if is_dense(host) else CPU.kernel("ascontiguousarray")(host))
    out[...] = host
    return out


QUEUED.add(_transfer_kernel)
_transfer: OpFunction = row("_to_copy_device", _transfer_kernel, node="ToCopyBackward0",
                vjp=(lambda ct, source, target: _transfer(ct, source=target, target=source),), jvp="linear", batch=same_bdim)


def _moved(x: Tensor, source: Device, target: Device, *, non_blocking: bool) -> Tensor:
    if CPU not in (source, target):
        x, source = _transfer(x, source=source, target=CPU), CPU
    return _transfer(x, source=source, target=target, non_blocking=non_blocking)  # type: ignore[no-any-return]


def to(x: Tensor, *args: Any, dtype: dtype | None = None, device: str | Device | None = None, copy: bool = False,
       non_blocking: bool = False, memory_format: memory_format | None = None) -> Tensor:
    """The tensor in another dtype, on another device (or as another tensor), in another format; itself if nothing changes.

    args: a dtype, a device or both, or a tensor; then non_blocking and copy, which gives new memory in any case.
    non_blocking: the current stream is asked for the copy, which is done when that is.  Who reads it earlier finds anything;
    on sim, poison. [NOTE late-on-purpose]
    Source: torch.Tensor.to.
    """
    flags = iter([arg for arg in args if isinstance(arg, bool)])
    non_blocking, copy = next(flags, non_blocking), next(flags, copy)
    for arg in args:
        if isinstance(arg, Tensor):
            dtype, device = arg.dtype, arg.device
        elif isinstance(arg, (str, Device)):
            device = arg
        elif isinstance(arg, _DTYPE):
            dtype = arg
    out = x
    if device is not None:
        target = find_device(device)
        if target is not x.device:
            out = _moved(out, x.device, target, non_blocking=non_blocking)
    if dtype is not None and dtype is not x.dtype:
        out = cast(out, dtype=dtype)
    out = in_format(out, memory_format)
    return out.clone() if copy and out is x else out


_DTYPE = dtype


def cpu(x: Tensor) -> Tensor:
    """The tensor on the host.  Source: torch.Tensor.cpu."""
    return to(x, device=CPU)


def pin_memory(x: Tensor, device: str | Device | None = None) -> Tensor:
    """A copy of a host tensor in pinned memory of an accelerator (default: cuda, or sim where there is none).

    Raises UsageError for a tensor that is not on the host.  Source: torch.Tensor.pin_memory.
    """
    if x.device is not CPU:
        msg = f"cannot pin a tensor on {x.device}: only dense CPU tensors can be pinned."
        raise UsageError(msg)
    if is_pinned(x):
        return x
    return _transfer(x, source=CPU, target=CPU, pin=_accelerator() if device is None else find_device(device))  # type: ignore[no-any-return]


def is_pinned(x: Tensor, device: str | Device | None = None) -> bool:
    """Whether it lies in pinned host memory.  Source: torch.Tensor.is_pinned."""
    base = bottom(x)
    return base.device is CPU and block_of(base.value) is not None


def _accelerator() -> Device:
    try:
        return find_device("cuda")
    except UsageError:
        return find_device("sim")
