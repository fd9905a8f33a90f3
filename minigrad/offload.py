"""save_on_cpu: what a region saves lives on the host until backward.

One host copy is made for each distinct storage and version, whatever the number of saves, levels and views; a view is
remembered as shape, strides and offset.  Unpacking makes one device copy for each, while that is alive. [NOTE one-copy]

Upstream: torch.autograd.graph.save_on_cpu; pytorch/pytorch#89166, #88976, #89159.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .backend import CPU, NUMPY_DTYPE, address, is_dense, strided
from .graph.saved import Hooks, Site
from .state import current, tell
from .storage import Storage, counted_storage
from .tensor import Tensor, alias, base_tensor, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from .backend import Array


class HostCopy:
    """The memory of one storage, copied; and the device memory it was last brought back to, while that lives."""

    __slots__ = ("__weakref__", "array", "back", "kind")

    def __init__(self, array: Array, store: Storage) -> None:
        tell(current().watchers, "copy", None, store.kind.device, ("to host", array.nbytes))
        self.kind = store.kind
        self.array = self.fetched(array, store)
        self.back: ref[Storage] | None = None
        tell(current().watchers, "offload", None, self, store)

    def fetched(self, array: Array, store: Storage) -> Array:
        """The copy itself."""
        device: Any = store.kind.device
        return device.to_host(array)

    def restored(self) -> Storage:
        """The memory on its device."""
        store = None if self.back is None else self.back()
        if store is None:
            device: Any = self.kind.device
            store = counted_storage(device.from_host(self.array), self.kind)
            tell(current().watchers, "copy", None, device, ("from host", self.array.nbytes, store))
            self.back = ref(store)
            tell(current().watchers, "restore", None, self, store)
        return store


class OnHost:
    """A packed tensor: a host copy, and where in that memory the tensor lies."""

    __slots__ = ("__weakref__", "copy", "kind", "offset", "owner", "place", "shape", "strides")

    owner: Any
    place: int

    def __init__(self, copy: HostCopy, root: Array, base: Tensor) -> None:
        self.copy = copy
        self.kind = base.kind
        self.shape = base.value.shape
        self.strides = base.value.strides
        self.offset = address(base.value) - address(root)

    def restored(self) -> Tensor:
        """The tensor on its device, with the strides it had."""
        store = self.copy.restored()
        array = strided(store.array, self.shape, self.strides, self.offset, NUMPY_DTYPE[self.kind.dtype])
        return base_tensor(array, self.kind, self.shape, store)


class Offload(Hooks):
    """The hooks of one save_on_cpu block."""

    __slots__ = ("settings",)
    title = "save_on_cpu"

    def __init__(self, settings: Offloading, outer: Hooks | None) -> None:
        super().__init__(outer)
        self.settings = settings

    def passes(self, x: Tensor) -> bool:
        return x.kind.device is CPU

    def pack(self, base: Tensor, site: Site) -> Any:
        return self.settings.pack(base, site.owner)

    def unpack(self, packed: Any, asking: Any) -> Tensor:
        return self.settings.unpack(packed)


class Offloading:
    """What one save_on_cpu context has copied so far."""

    def __init__(self, *, dedupe: bool, skip: Callable[[Tensor], bool] | None) -> None:
        self.dedupe = dedupe
        self.skip = skip
        self.copies: WeakKeyDictionary[Storage, dict[int, HostCopy]] = WeakKeyDictionary()
        self.count = 0

    def pack(self, base: Tensor, owner: Any = None) -> OnHost | Tensor:
        """A tensor of a device as a host copy; one that is on the host, or skipped, as it is. [NOTE host-tensors-stay]"""
        if self.stays(base):
            return alias(base)
        store = storage_of(base)
        if not is_dense(store.array):
            self.count += 1  # somebody else's memory, which has gaps: the elements are copied, and come back without
            packed = OnHost(HostCopy(base.value, store), base.value, base)
            packed.strides = packed.copy.array.strides
            return packed
        made = self.copies.setdefault(store, {}) if self.dedupe else {}
        copy = made.get(store.version)
        if copy is None:
            copy = made[store.version] = self.copied(store)
            self.count += 1
        return OnHost(copy, store.array, base)

    def stays(self, base: Tensor) -> bool:
        """Whether a tensor is kept where it is."""
        return base.device is CPU or (self.skip is not None and self.skip(base))

    def copied(self, store: Storage) -> HostCopy:
        """A new copy of a dense memory."""
        return HostCopy(store.array, store)

    def unpack(self, packed: OnHost | Tensor) -> Tensor:
        """The tensor back where it came from."""
        return packed.restored() if isinstance(packed, OnHost) else packed
