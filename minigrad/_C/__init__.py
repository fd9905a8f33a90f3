"""Private names of torch under which PyTorch's own tests ask for what has a public place, or none, here.

Source: torch._C.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from weakref import ref

from ..autograd.forward_ad import _is_fwd_grad_enabled, with_forward_mode
from ..autograd.grad_mode import is_grad_enabled
from ..graph.node import AccumulateGrad
from ..graph.raw import SavedTensor
from ..overrides import DisableTorchFunction, DisableTorchFunctionSubclass
from ..state import _STATE, current
from ..subclass import bare
from . import _functorch as _functorch

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["DisableTorchFunction", "DisableTorchFunctionSubclass", "_WeakTensorRef", "_autograd",
           "_disabled_torch_function_impl", "_functions", "_is_fwd_grad_enabled",
           "_set_fwd_grad_enabled", "is_grad_enabled"]


def _set_fwd_grad_enabled(mode: bool) -> None:
    """Turn forward mode on or off, from here on.  Source: torch._C._set_fwd_grad_enabled."""
    _STATE.set(with_forward_mode(current(), mode))


class _WeakTensorRef:
    """Whether a tensor is still alive.  Source: torch._C._WeakTensorRef."""

    def __init__(self, x: Tensor) -> None:
        self._ref = ref(x)

    def expired(self) -> bool:
        """Whether it is not."""
        return self._ref() is None


def _disabled_torch_function_impl(func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Be the `__torch_function__` of a subclass that has nothing to say.  Source: torch._C._disabled_torch_function_impl."""
    return func(*bare(args), **bare(kwargs or {}))


_autograd = SimpleNamespace(SavedTensor=SavedTensor,
                            _saved_tensors_hooks_is_enabled=lambda: current().hooks_disabled is None)
_functions = SimpleNamespace(AccumulateGrad=AccumulateGrad)
