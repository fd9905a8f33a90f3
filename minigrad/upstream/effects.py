"""What a region did to others, it did once: when it runs again, they are found as it found them, and left as they are.

A backward inside of it accumulates into leaves; a hook that it registers on a tensor, node or module stays there.

Upstream: torch does both again, pytorch/pytorch#96136 has the same for running statistics.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.hooks import RemovableHandle

from .private import hooks_of
from .replaced import Replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Effects:
    """What a second run has done to others, and how they were."""

    def __init__(self, registered: range) -> None:
        self.grads: dict[torch.Tensor, torch.Tensor | None] = {}
        """What leaves had before a backward of this run."""
        self._hooks: dict[int, tuple[Any, dict[int, Any]]] = {}
        self._registered = registered

    def registers(self, hooks: Any) -> None:
        """A hook is about to be registered: those that the forward put there make room, as they are registered again."""
        if id(hooks) not in self._hooks:
            self._hooks[id(hooks)] = hooks, dict(hooks)
            for key in [key for key in hooks if key in self._registered]:
                del hooks[key]

    def undo(self, passing: Iterable[torch.Tensor] | None) -> None:
        """Leave all as it was; with `passing`, which only stand for others, the graph of this run keeps its own hooks."""
        for leaf, grad in self.grads.items():
            leaf.grad = grad
        if not self._hooks:
            return
        standing = None if passing is None else {id(hooks) for x in passing for hooks in _all_hooks(x)}
        for key, (hooks, before) in self._hooks.items():
            if standing is None or key in standing or any(key in self._registered for key in before):
                hooks.clear()
                hooks.update(before)


class _Rerun(local):
    effects: Effects | None = None
    """None outside of reruns."""


_rerun = _Rerun()


@contextmanager
def rerunning(registered: range, passing: Callable[[], Iterable[torch.Tensor]] | None = None) -> Iterator[None]:
    """Run a region again, whose forward registered the hooks of these numbers."""
    before, _rerun.effects = _rerun.effects, (effects := Effects(registered))
    try:
        with _BACKWARD, _HANDLE:
            yield
    finally:
        effects.undo(passing and passing())
        _rerun.effects = before


def _all_hooks(x: torch.Tensor) -> Iterator[Any]:
    """Where the hooks of a tensor and of its node are; of a node, only who registers one is told."""
    yield hooks_of(x)
    if x.grad_fn is not None:
        for register in (x.grad_fn.register_hook, x.grad_fn.register_prehook):
            with register(print) as handle:
                yield handle.hooks_dict_ref()


def next_hook() -> int:
    """The number of the hook that is registered next."""
    return RemovableHandle.next_id


def is_recomputing() -> bool:
    """Whether a region is being run again: for counters, logs, running statistics."""
    return _rerun.effects is not None


def _backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
    if _rerun.effects is not None:
        grads = _rerun.effects.grads
        for leaf in _leaves((tensors,) if isinstance(tensors, torch.Tensor) else tensors):
            if leaf not in grads:
                grads[leaf] = leaf.grad
                leaf.grad = None
    _BACKWARD.original(tensors, *args, **kwargs)


def _register(self: RemovableHandle, hooks_dict: Any, **kwargs: Any) -> None:
    if _rerun.effects is not None:
        _rerun.effects.registers(hooks_dict)
    _HANDLE.original(self, hooks_dict, **kwargs)


def _leaves(tensors: Any) -> Iterator[torch.Tensor]:
    """The leaves that a backward accumulates into."""
    nodes = [x.grad_fn if isinstance(x, torch.Tensor) else x.node for x in tensors]
    seen = set(nodes)
    while nodes:
        node = nodes.pop()
        if node is None:
            continue
        if (leaf := getattr(node, "variable", None)) is not None:
            yield leaf
        new = {n for n, _ in node.next_functions} - seen
        seen |= new
        nodes += new


_BACKWARD = Replaced(torch.autograd, "backward", _backward)
_HANDLE = Replaced(RemovableHandle, "__init__", _register)
