"""Inference tensors: made where nothing will ever be recorded, so nobody may save them for a backward. [NOTE inference-mode]

Memory that is made in inference mode is known by its kind, which says for which levels: those that were on the stack.  Views
of it have that kind, in any mode.

Upstream: c10/core/InferenceMode.h; pytorch/rfcs#17.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .state import State, current
from .storage import Kind, kind_of, new_storage

if TYPE_CHECKING:
    from .dtypes import dtype
    from .tensor import Tensor

_KINDS: dict[Any, Kind] = {}
_MANY = 64


def mark(x: Tensor) -> None:
    """In inference mode, make a new base tensor an inference tensor."""
    levels = current().inference
    if levels is None:
        return
    key = x.kind, levels
    if key not in _KINDS:
        if len(_KINDS) > _MANY:  # levels come and go
            _KINDS.clear()
        kind = _KINDS[key] = Kind(x.kind.dtype, x.kind.device, bare=False)
        kind.inference = levels
    if x.store is None:
        x.store = new_storage(x.value, x.kind)
    x.store.array = x.value.view()  # so that no save takes the storage for the tensor, and each looks at the kind
    x.kind = _KINDS[key]


def retyped(kind: Kind, d: dtype) -> Kind:
    """The kind of memory of that kind, where it is looked at as another dtype."""
    if d is kind.dtype:
        return kind
    found = kind_of(d, kind.device)
    if kind.inference is not None:
        found = Kind(d, kind.device, bare=False)
        found.inference = kind.inference
    return found


def saving(kind: Kind) -> None:
    """Raise UsageError where the innermost level that records was on the stack when this memory was made."""
    if kind.inference is not None and _innermost(current()) in kind.inference:
        msg = ("Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
               "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it "
               "in autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`. "
               "[NOTE inference-mode]")
        raise UsageError(msg)


def writing(kind: Kind) -> None:
    """Raise UsageError outside inference mode."""
    if kind.inference is not None and current().inference is None:
        msg = ("Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal "
               "tensor before doing inplace update. [NOTE inference-mode]")
        raise UsageError(msg)


def _innermost(state: State) -> Any:
    return next((me for me in reversed(state.levels) if not me.transparent), None)
