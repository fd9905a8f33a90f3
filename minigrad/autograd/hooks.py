"""Hooks of tensors: what a program hears of gradients as they are computed.

Source: torch.Tensor.register_hook, retain_grad, register_post_accumulate_grad_hook.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from ..errors import Refusal, UsageError
from ..graph.node import RemovableHandle, hooks_of
from ..state import show
from ..tensor import Tensor, edge, extra_of

if TYPE_CHECKING:
    from collections.abc import Callable


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook(gradient)` when the gradient of `x` has been computed; it may return another.

    Source: torch.Tensor.register_hook.
    """
    if not x.requires_grad:
        msg = "cannot register a hook on a tensor that doesn't require gradient"
        raise UsageError(msg)
    target, nr = _edge(x)
    if isinstance(target, Tensor):
        extra = extra_of(target)
        extra.hooks = [] if extra.hooks is None else extra.hooks
        return RemovableHandle(extra.hooks, hook)
    return RemovableHandle(hooks_of(target).tensor.setdefault(nr, []), hook)


def retain_grad(x: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in its `.grad`.  Source: torch.Tensor.retain_grad."""
    if not x.requires_grad:
        msg = "can't retain_grad on Tensor that has requires_grad=False"
        raise UsageError(msg)
    if not x.is_leaf:
        target, nr = _edge(x)
        hooks_of(target).retains[nr] = ref(x)


def _edge(x: Tensor) -> tuple[Any, int]:
    target, nr = edge(x)
    if target is None:
        msg = (f"a tensor of {x.owner} has no edge of its own, but its parts have: register it on the tensor that went into "
               f"the level. [level stack: {show()}] [NOTE level-zero]")
        raise Refusal(msg)
    return target, nr


def register_post_accumulate_grad_hook(x: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(x)` after a backward has accumulated into `x.grad`.

    Source: torch.Tensor.register_post_accumulate_grad_hook.
    """
    if not x.is_leaf or not x.requires_grad:
        msg = "post accumulate grad hooks cannot be registered on non-leaf tensors"
        raise UsageError(msg)
    extra = extra_of(x)
    extra.post_hooks = [] if extra.post_hooks is None else extra.post_hooks
    return RemovableHandle(extra.post_hooks, hook)
