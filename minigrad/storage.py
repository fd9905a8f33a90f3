"""Memory: what a tensor and its views share, its version, and the kinds of element it can hold.

Upstream: c10::StorageImpl, c10::VariableVersion.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .backend import CPU, Array, Device, address
from .errors import UsageError

if TYPE_CHECKING:
    from .dtypes import dtype


class Kind:
    """A dtype on a device; there is one object for each, so that one `is` compares both. [NOTE fast-path]"""

    __slots__ = ("above", "bare", "complex", "device", "dtype", "fast", "inference")

    bare: bool
    """Of tensors that are an array on the host, and nothing more."""
    fast: bool
    """Bare, and floating: ops take the fast path, and rules may run on the arrays."""
    complex: bool
    """Bare, and complex: rules may run on the arrays."""
    above: Kind
    """The kind of a wrapper around such a tensor: the same, and not bare."""

    def __init__(self, d: dtype, device: Device, *, bare: bool) -> None:
        self.dtype = d
        self.device = device
        self.bare = bare
        self.fast = bare and d.is_floating_point
        self.complex = bare and d.is_complex
        self.inference: frozenset[Any] | None = None
        self.above = Kind(d, device, bare=False) if bare else self


def kind_of(d: dtype, device: Device) -> Kind:
    """The kind of base tensors of that dtype on that device; on the host they are bare: arrays, and nothing more."""
    found = _KINDS.get((d, device))
    if found is None:
        found = _KINDS[d, device] = Kind(d, device, bare=device is CPU)
    return found


_KINDS: dict[tuple[dtype, Device], Kind] = {}


class Storage:
    """The memory that a tensor and its views share, and how often it was written to.

    Made when it is first needed: by a view, a save, an in-place op, or a device that counts bytes.
    Source: torch.UntypedStorage; the version is c10::VariableVersion.
    """

    __slots__ = ("__weakref__", "array", "kind", "last_write", "version")

    array: Array
    kind: Kind
    version: int
    last_write: int
    """The moment of the last write, on the clock that numbers nodes; 0 before any. [NOTE captured-tensors]"""

    if TYPE_CHECKING:  # written out where tensors are: a storage is its own saved tensor
        def unpack(self) -> Any: ...

    def nbytes(self) -> int:
        """Bytes of the memory."""
        return int(self.array.nbytes)

    def data_ptr(self) -> int:
        """Address of the memory."""
        return address(self.array)


class CountedStorage(Storage):
    """A storage whose bytes its device counts while it lives. [NOTE bytes-are-counted]"""

    __slots__ = ("counted",)

    counted: int

    def __del__(self) -> None:
        self.kind.device.freed(self)


def new_storage(array: Array, kind: Kind) -> Storage:
    """The storage of fresh memory."""
    store = Storage()
    store.array = array
    store.kind = kind
    store.version = 0
    store.last_write = 0
    return store


def counted_storage(array: Array, kind: Kind) -> Storage:
    """The storage of memory that its device counts."""
    store = CountedStorage()
    store.array = array
    store.kind = kind
    store.version = 0
    store.last_write = 0
    store.counted = int(array.nbytes)
    kind.device.stats.allocated(store.counted)
    return store


def modified(dtype: Any, store: Storage, expected: int) -> UsageError:
    """The error of a saved tensor whose memory was written to since."""
    return UsageError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{dtype} {list(store.array.shape)}], is at version {store.version}; expected version {expected} instead. "
        "Clone it before the in-place operation, or do that out of place.")
