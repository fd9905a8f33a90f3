"""What hooks put in the place of gradients. [NOTE hooks-of-gradients]

Source: torch/csrc/autograd/python_hook.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..subclass import bare
from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence


def replaced(hook: Any, old: Sequence[Any], new: Any) -> Sequence[Any]:
    """What a hook returned for the gradients it was given, or these where that is None; of a subclass the tensor inside.

    Raises UsageError or TypeError unless there is one for each, of its shape and type, or None.
    """
    if new is None:
        return old
    if not isinstance(new, tuple):
        msg = f"expected tuple, but hook returned '{type(new).__name__}'"
        raise TypeError(msg)
    name = getattr(hook, "__name__", "<unknown>")
    if len(new) != len(old):
        msg = f"hook '{name}' has returned an incorrect number of values (got {len(new)}, but expected {len(old)})"
        raise UsageError(msg)
    for was, got in zip(old, new, strict=True):
        if got is None:
            continue
        if not isinstance(got, Tensor):
            msg = f"expected Variable, but hook returned '{type(got).__name__}'"
            raise TypeError(msg)
        if was is None:
            msg = "can't replace a None gradient with a non-None value"
            raise UsageError(msg)
        if got.dtype is not was.dtype or got.device is not was.device:
            msg = (f"hook '{name}' has changed the type of value "
                   f"(was {was.dtype} on {was.device} got {got.dtype} on {got.device})")
            raise UsageError(msg)
        if got.shape != was.shape:
            msg = f"hook '{name}' has changed the size of value (was {list(was.shape)} got {list(got.shape)})"
            raise UsageError(msg)
    return [bare(got) for got in new]
