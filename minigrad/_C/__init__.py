"""Private names of torch under which PyTorch's own tests ask for what has a public place, or none, here.

Source: torch._C.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from ..autograd.forward_ad import _fwd_mode, _is_fwd_grad_enabled
from ..autograd.grad_mode import is_grad_enabled
from ..state import _STATE, current

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["_WeakTensorRef", "_is_fwd_grad_enabled", "_set_fwd_grad_enabled", "is_grad_enabled"]


def _set_fwd_grad_enabled(mode: bool) -> None:
    """Turn forward mode on or off, from here on.  Source: torch._C._set_fwd_grad_enabled."""
    _STATE.set(_fwd_mode(current(), mode))


class _WeakTensorRef:
    """Whether a tensor is still alive.  Source: torch._C._WeakTensorRef."""

    def __init__(self, x: Tensor) -> None:
        self._ref = ref(x)

    def expired(self) -> bool:
        """Whether it is not."""
        return self._ref() is None
