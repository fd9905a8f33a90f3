"""A CUDA device, by cupy, which is imported when one is first asked for.

Arrays, streams, events and pinned memory are cupy's; copies go by address, so that they keep any dense layout.

Source: torch.cuda; cupy.cuda.Stream, cupy.cuda.MemoryPointer, cupyx.empty_pinned.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from ..backend import CPU, HOST_ARRAY, address, import_cupy, is_dense, new_device, strided
from ..backend import device as find_device
from ..errors import UsageError
from .accelerator import Accelerator
from .streams import Event, Stream

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array, Device


class CudaEvent(Event):
    """An event of cupy, made on the device of the stream that first records it."""

    __slots__ = ("_options", "_raw")

    def __init__(self, *, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False) -> None:
        self._options = {"block": blocking, "disable_timing": not enable_timing, "interprocess": interprocess}
        self._raw: Any = None

    def record(self, stream: CudaStream | None = None) -> None:
        stream = stream or find(0).current_stream()
        with stream.device.raw:
            self._raw = self._raw or stream.device.xp.cuda.Event(**self._options)
            self._raw.record(stream.raw)

    def query(self) -> bool:
        return self._raw is None or bool(self._raw.done)

    def synchronize(self) -> None:
        if self._raw is not None:
            self._raw.synchronize()

    def wait(self, stream: CudaStream | None = None) -> None:
        if self._raw is not None:
            (stream or find(0).current_stream()).raw.wait_event(self._raw)

    def elapsed_time(self, end_event: CudaEvent) -> float:
        """Return the milliseconds between two events made with enable_timing.  Source: torch.cuda.Event.elapsed_time."""
        return float(find(0).xp.cuda.get_elapsed_time(self._raw, end_event._raw))


class CudaStream(Stream):
    """A stream of cupy."""

    __slots__ = ("raw",)

    def __init__(self, device: str | int | Device | None = None, raw: Any = None) -> None:
        self.device = found(device)
        with self.device.raw:
            self.raw = raw or self.device.xp.cuda.Stream(non_blocking=True)

    def synchronize(self) -> None:
        self.raw.synchronize()

    def query(self) -> bool:
        return bool(self.raw.done)

    def new_event(self) -> CudaEvent:
        return CudaEvent()

    def copy(self, target: Array, source: Array) -> None:
        with self.device.raw:
            if isinstance(target, HOST_ARRAY):
                source.data.copy_to_host_async(address(target), target.nbytes, self.raw)
            else:
                target.data.copy_from_host_async(address(source), target.nbytes, self.raw)

    def enter(self) -> None:
        self.device.raw.__enter__()
        self.raw.__enter__()

    def leave(self) -> None:
        self.raw.__exit__(None, None, None)
        self.device.raw.__exit__(None, None, None)


class Cuda(Accelerator):
    """`cuda:0` and its like."""

    __slots__ = ("_pinned", "alone", "raw")

    raw: Any
    """cupy's object, a context in which work goes to this device."""
    alone: bool
    """Whether it is the only one."""
    _pinned: Any

    def kernel(self, spec: Any) -> Callable[..., Array]:
        """The kernel, on this device where there are several."""
        found = self._compiled.get(spec)
        if found is None:
            found = super().kernel(spec)
            if not self.alone:
                found = self._compiled[spec] = self._here(found)
        return found

    def _here(self, function: Callable[..., Array]) -> Callable[..., Array]:
        @wraps(function, assigned=())
        def call(*args: Any, **params: Any) -> Array:
            with self.raw:
                return function(*args, **params)
        return call

    def look(self, array: Array) -> Array:
        return self.xp.asnumpy(array)

    def to_host(self, array: Array) -> Array:
        self.stats.to_host += array.nbytes
        if not is_dense(array):
            return self.xp.asnumpy(array)
        return self._done(_laid_out(CPU.xp.empty(array.size, array.dtype), array), array)

    def from_host(self, array: Array) -> Array:
        self.stats.to_device += array.nbytes
        if not is_dense(array):
            array = CPU.xp.ascontiguousarray(array)
        return self._done(self.empty(array), array)

    def _done(self, target: Array, source: Array) -> Array:
        stream = self.current_stream()
        stream.copy(target, source)
        stream.synchronize()
        return target

    def new_stream(self, *, default: bool = False) -> CudaStream:
        return CudaStream(self, self.xp.cuda.Stream.null if default else None)

    def new_pinned(self, nbytes: int) -> Array:
        return self._pinned(nbytes, "uint8") if nbytes else CPU.xp.empty(0, "uint8")

    def empty(self, like: Array) -> Array:
        with self.raw:
            return _laid_out(self.xp.empty(like.size, like.dtype), like)

    def synchronize(self) -> None:
        """Wait for everything on this device."""
        self.raw.synchronize()


def _laid_out(flat: Array, like: Array) -> Array:
    return strided(flat, like.shape, like.strides, 0)


_FOUND: dict[int, Cuda] = {}


def find(index: int) -> Cuda:
    """Return the device of that number.  Raises UsageError where there is none, or no cupy."""
    if index not in _FOUND:
        try:
            cupy, cupyx = import_cupy()
            raw = cupy.cuda.Device(index)
            raw.compute_capability  # noqa: B018  asks the driver, which knows whether there is one
        except Exception as reason:
            msg = f"device cuda:{index} cannot be used ({reason}). Install minigrad[cuda12] or [cuda13] where there is a GPU."
            raise UsageError(msg) from reason
        made: Cuda = new_device(Cuda, "cuda", index, cupy, counted=True)
        made.raw, made._pinned = raw, cupyx.empty_pinned  # noqa: SLF001
        made.alone = cupy.cuda.runtime.getDeviceCount() == 1
        _FOUND[index] = made.set_up()
    return _FOUND[index]


def found(device: str | int | Device | None) -> Cuda:
    """The device that an argument of torch's kind names; cuda:0 if none."""
    made: Any = find(device or 0) if device is None or isinstance(device, int) else find_device(device)
    return made  # type: ignore[no-any-return]
