"""Hooks of tensors: what a program hears of gradients as they are computed. [NOTE hooks-of-gradients]

Source: torch.Tensor.register_hook, retain_grad, register_post_accumulate_grad_hook; torch.autograd.graph.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from ..errors import Refusal, UsageError
from ..graph.node import RemovableHandle, hooks_of
from ..state import current
from ..tensor import Tensor, edge, extra_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


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
        return RemovableHandle(extra.hooks, hook, target)
    return RemovableHandle(hooks_of(target).tensor.setdefault(nr, []), hook, target)


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
               "the level. [NOTE level-zero]")
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
    return RemovableHandle(extra.post_hooks, hook, x)


def register_multi_grad_hook(tensors: Sequence[Tensor], fn: Callable[..., Any], *, mode: str = "all") -> Handles:
    """Call `fn` once for each backward run: with a list of all gradients, as soon as those that the run computes are there.

    The others are None.  In mode "any": with the first gradient, as soon as that is there.
    Source: torch.autograd.graph.register_multi_grad_hook.
    """
    if mode not in ("all", "any"):
        msg = f"Expects mode to be one of ('all', 'any') but got {mode}"
        raise ValueError(msg)
    joint = _Joint(tensors, fn, every=mode == "all")
    return Handles([register_hook(x, partial(joint.arrived, i)) for i, x in enumerate(tensors)])


class Handles:
    """Takes hooks off again."""

    def __init__(self, handles: list[RemovableHandle]) -> None:
        self._handles = handles

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self._handles:
            handle.remove()

    def __enter__(self) -> Handles:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


class _Joint:
    """What has arrived of several gradients, for each backward run."""

    def __init__(self, tensors: Sequence[Tensor], fn: Callable[..., Any], *, every: bool) -> None:
        self.targets = [ref(edge(x)[0]) for x in tensors]  # weakly: their hooks lead here
        self.fn = fn
        self.every = every
        self.runs: WeakKeyDictionary[Any, tuple[int, list[Tensor | None]]] = WeakKeyDictionary()

    def arrived(self, i: int, g: Tensor) -> None:
        run = current().run
        assert run is not None
        first = run not in self.runs
        if first:
            mine = self.targets[i]()
            coming = sum((there := target()) is mine or run.reaches(there) for target in self.targets)
            self.runs[run] = coming, [None] * len(self.targets)
        coming, found = self.runs[run]
        found[i] = g
        if not self.every:
            if first:
                self.fn(g)
        elif sum(g is not None for g in found) == coming:
            self.fn(found)
