"""What a backward inside of a region did to leaves, it did once: when the region runs again, they are left as they are.

Upstream: torch accumulates again, pytorch/pytorch#96136 has the same for running statistics.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import local
from typing import TYPE_CHECKING, Any

import torch

from .replaced import Replaced

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Rerun(local):
    grads: dict[torch.Tensor, torch.Tensor | None] | None = None
    """What leaves had before a backward of this rerun; None outside of reruns."""


_rerun = _Rerun()


@contextmanager
def rerunning() -> Iterator[None]:
    """Run a region again."""
    before, _rerun.grads = _rerun.grads, {}
    try:
        with _BACKWARD:
            yield
    finally:
        for leaf, grad in _rerun.grads.items():
            leaf.grad = grad
        _rerun.grads = before


def is_recomputing() -> bool:
    """Whether a region is being run again: for counters, logs, running statistics."""
    return _rerun.grads is not None


def _backward(tensors: Any, *args: Any, **kwargs: Any) -> None:
    if _rerun.grads is not None:
        for leaf in _leaves((tensors,) if isinstance(tensors, torch.Tensor) else tensors):
            if leaf not in _rerun.grads:
                _rerun.grads[leaf] = leaf.grad
                leaf.grad = None
    _BACKWARD.original(tensors, *args, **kwargs)


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
