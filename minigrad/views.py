"""Which tensors are views of which, and how they lie in memory: an in-place op on one is one on the others. [NOTE in-place]"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import ref

from .tensor import Tensor, bottom, extra_of

if TYPE_CHECKING:
    from collections.abc import Callable


def root_of(x: Tensor) -> Tensor:
    """The tensor that `x` is a view of, or `x` itself."""
    return x if x.extra is None or x.extra.root is None else x.extra.root


def is_view(x: Tensor) -> bool:
    """Whether `x` shares the memory of a tensor that it was made from.  Source: torch.Tensor._is_view."""
    return x.extra is not None and x.extra.root is not None


def base_of(x: Tensor) -> Tensor | None:
    """The tensor that `x` is a view of, or None.  Source: torch.Tensor._base."""
    return None if x.extra is None else x.extra.root


def link(view: Tensor, of: Tensor, step: Callable[[Tensor], Tensor]) -> None:
    """Note that `view` is `step(of)`, where writing one writes the other: they share memory, or are so related below."""
    if view is not of and isinstance(of, Tensor) and (bottom(view).store is bottom(of).store or (
            view.owner is not None and view.owner is of.owner and root_of(view.value) is root_of(of.value))):
        relate(view, of, step)


def relate(view: Tensor, of: Tensor, step: Callable[[Tensor], Tensor]) -> None:
    """Note that `view` is `step(of)`, without asking whether writing one writes the other."""
    root = root_of(of)
    steps = (step,) if root is of else (*extra_of(of).steps, step)
    mine, its = extra_of(view), extra_of(root)
    if mine.root is root:  # a dispatch mode has run the op that made it
        return
    mine.root, mine.steps = root, steps
    if its.views is None:
        its.views = []
    its.views.append(ref(view))
    if len(its.views) > its.most_views:  # forget the dead, seldom enough to cost nothing
        its.views = [r for r in its.views if r() is not None]
        its.most_views = 16 + 2 * len(its.views)


def strides_of(x: Tensor) -> tuple[int, ...]:
    """How many elements of memory lie between two neighbours along each logical dimension."""
    if x.owner is None:
        return tuple([s // x.value.itemsize for s in x.value.strides])
    hidden = x.owner.hidden(x)
    return tuple([s for d, s in enumerate(strides_of(x.value)) if d != hidden])


def order_of(x: Tensor) -> tuple[int, ...]:
    """The logical dimensions from the one whose neighbours lie farthest apart to the closest."""
    strides = strides_of(x)
    return tuple(sorted(range(len(strides)), key=lambda d: -strides[d]))


def lies_in(x: Tensor, order: tuple[int, ...]) -> bool:
    """Whether the elements lie in memory in that order of dimensions, without gaps."""
    strides, expected = strides_of(x), 1
    for d in reversed(order):
        if x.shape[d] != 1:
            if strides[d] != expected:
                return False
            expected *= x.shape[d]
    return True
