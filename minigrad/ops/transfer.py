"""Rows that move a tensor between devices, and `to`, which also changes its type."""

from __future__ import annotations

from typing import Any

from ..backend import CPU, Device
from ..backend import device as find_device
from ..dtypes import dtype
from ..op import OpFunction, row
from ..tensor import Tensor, fresh
from .batching import same_bdim
from .layout import in_format, memory_format
from .shape import cast


def _transfer_kernel(xp: Any, x0: Any, source: Device, target: Device) -> Tensor:
    from ..backend import dtype_of  # noqa: PLC0415

    host = x0 if source is CPU else source.to_host(x0)
    return fresh(host if target is CPU else target.from_host(host), dtype_of(host), target)


_transfer: OpFunction = row("_to_copy_device", _transfer_kernel, node="ToCopyBackward0",
                vjp=(lambda ct, source, target: _transfer(ct, source=target, target=source),), jvp="linear", batch=same_bdim)


def to(x: Tensor, *args: Any, dtype: dtype | None = None, device: str | Device | None = None, copy: bool = False,
       non_blocking: bool = False, memory_format: memory_format | None = None) -> Tensor:
    """The tensor in another dtype, on another device (or as another tensor), in another format; itself if nothing changes.

    Source: torch.Tensor.to.
    """
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
            out = _transfer(out, source=x.device, target=target)
    if dtype is not None and dtype is not x.dtype:
        out = cast(out, dtype=dtype)
    out = in_format(out, memory_format)
    return out.clone() if copy and out is x else out


_DTYPE = dtype


def cpu(x: Tensor) -> Tensor:
    """The tensor on the host.  Source: torch.Tensor.cpu."""
    return to(x, device=CPU)
