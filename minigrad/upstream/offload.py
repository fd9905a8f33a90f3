"""save_on_cpu: one host copy for each stretch of memory that is saved, however many levels and views save it.

Hooks see base tensors, so grad of grad of sin(sin(x)) saves four times and copies twice.

Upstream: torch.autograd.graph.save_on_cpu copies at every save; pytorch/pytorch#88976 wanted one copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

import torch

from .hooks import check, saved_tensors_hooks
from .private import dispatch_modes, is_zerotensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from torch import UntypedStorage

_CPU = torch.device("cpu")


class Same:
    """A tensor that stays where it is, with the version check of plain saving."""

    __slots__ = ("_tensor", "_version")

    def __init__(self, x: torch.Tensor) -> None:
        self._tensor = x if x.is_leaf else x.detach()
        self._version = x._version

    def restored(self) -> torch.Tensor:
        check(self._tensor, self._version)
        return self._tensor


class Copied:
    """A tensor that is copied on its own: a sparse one, a subclass and the like."""

    __slots__ = ("_device", "_host", "_pinned")

    def __init__(self, x: torch.Tensor, host: torch.Tensor, *, pinned: bool) -> None:
        self._device, self._host, self._pinned = x.device, host, pinned

    def restored(self) -> torch.Tensor:
        return self._host.to(self._device, non_blocking=self._pinned)


class Stretch:
    """A stretch of one storage on the host; and on its device, while what was brought back there is alive."""

    __slots__ = ("_back", "_device", "_host", "_pinned")

    def __init__(self, x: torch.Tensor, host: torch.Tensor, *, pinned: bool) -> None:
        self._device, self._host, self._pinned = x.device, host, pinned
        self._back: ref[UntypedStorage] | None = None

    def brought(self) -> torch.Tensor:
        """On its device, flat."""
        return self._host.to(self._device, non_blocking=self._pinned, copy=self._device == _CPU)

    def restored(self) -> UntypedStorage:
        """On its device, as memory, once for as long as that is alive."""
        store = None if self._back is None else self._back()
        if store is None:
            store = self.brought().untyped_storage()
            self._back = ref(store)
        return store


class View:
    """A tensor as a stretch of memory and where in that it lies."""

    __slots__ = ("_like", "_place", "_stretch")

    def __init__(self, x: torch.Tensor, stretch: Stretch) -> None:
        self._stretch = stretch
        self._place = x.size(), x.stride()
        self._like = x.dtype, x.device

    def restored(self) -> torch.Tensor:
        if dispatch_modes():  # a trace knows tensors, not their memory
            return self._stretch.brought().as_strided(*self._place)
        dtype, device = self._like
        return torch.empty(0, dtype=dtype, device=device).set_(self._stretch.restored(), 0, *self._place)


class save_on_cpu(saved_tensors_hooks):  # noqa: N801  torch's name
    """Keep what is saved inside on the host until backward, at every level of torch.func.

    A tensor that is on the host already stays as it is, unless pin_memory asks for a copy in pinned memory.

    Args:
        pin_memory: whether copies are in pinned memory, and made without blocking
        device_type: the accelerator that memory is pinned for
        skip: what is kept as it is: a function of a base tensor

    Attributes:
        host_copies: the copies made so far, one for each stretch of memory and version of it

    Source: torch.autograd.graph.save_on_cpu

    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda", *,
                 skip: Callable[[torch.Tensor], bool] | None = None) -> None:
        super().__init__(self._to_host, _restored)
        self.host_copies = 0
        self._skip = skip
        self._pin = pin_memory
        self._pinnable = pin_memory and getattr(torch, device_type, torch.cuda).is_available()
        self._made: WeakKeyDictionary[UntypedStorage, dict[Any, Stretch]] = WeakKeyDictionary()

    def _to_host(self, x: torch.Tensor) -> Any:
        if (x.device == _CPU and not self._pin) or is_zerotensor(x) or (self._skip is not None and self._skip(x)):
            return Same(x)
        if x.layout != torch.strided or type(x) not in (torch.Tensor, torch.nn.Parameter):
            return Copied(x, self._copy(x), pinned=self._pinnable)
        span = 1 + sum((n - 1) * stride for n, stride in zip(x.size(), x.stride(), strict=True)) if x.numel() else 0
        made = self._made.setdefault(x.untyped_storage(), {})
        key = x._version, x.storage_offset(), span, x.dtype, x.is_conj(), x.is_neg()
        stretch = made.get(key)
        if stretch is None:
            flat = x.detach().as_strided((span,), (1,))
            stretch = made[key] = Stretch(x, self._copy(flat), pinned=self._pinnable)
        return View(x, stretch)

    def _copy(self, x: torch.Tensor) -> torch.Tensor:
        self.host_copies += 1
        if not self._pinnable:
            return x.to(_CPU, copy=True)
        return torch.empty(x.size(), dtype=x.dtype, layout=x.layout, pin_memory=not x.is_sparse).copy_(x, non_blocking=True)


def _restored(packed: Any) -> torch.Tensor:
    return packed.restored()
