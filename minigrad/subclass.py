"""Subclasses of Tensor: one more layer, whose class is asked about each call. [NOTE subclasses]

A tensor of a subclass is a layer around a tensor of no subclass.  A call that is given one goes to `__torch_function__` of its
class, after those ahead and before the levels; the inherited one runs it on the tensors inside, and puts the layer around what
comes out.  What remembers layers remembers this one, so a region that runs again is given tensors of the class, and asks it.

Source: torch.Tensor.__torch_function__, torch.overrides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import tree
from .interpreters.base import Interpreter
from .state import current
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

SEEN: set[type] = set()
"""The subclasses that tensors were made of: without any, a composite need not look at its arguments."""


class Subclassed(Interpreter):
    """The owner of all tensors of subclasses: no level, so it never stands on the stack."""

    __slots__ = ()
    by_hand = True

    def rewrap(self, x: Tensor) -> Callable[..., Tensor]:
        cls, attributes = type(x), vars(x)
        return lambda value: dressed(cls, value, attributes)

    renew = rewrap

    def __str__(self) -> str:
        return "a subclass"


SUBCLASSED = Subclassed()


def dressed(cls: type[Tensor], value: Tensor, attributes: dict[str, Any] | None = None) -> Tensor:
    """A tensor of a subclass around a tensor of none."""
    SEEN.add(cls)
    x = object.__new__(cls)
    x.owner = SUBCLASSED
    x.value = value
    x.kind = value.kind.above
    x.shape = value.shape
    x.node = x.note = x.extra = None
    x.nr = 0
    vars(x).update(attributes or {})
    return x


def bare(arguments: Any) -> Any:
    """A pytree with the tensors inside for those of subclasses."""
    return tree.map(inner, arguments)


def inner(x: Any) -> Any:
    """The tensor inside one of a subclass; anything else as it is."""
    return x.value if _is_dressed(x) else x


def _is_dressed(x: Any) -> bool:
    return isinstance(x, Tensor) and x.owner is SUBCLASSED


def classes(arguments: Any) -> tuple[type[Any], ...]:
    """The subclasses among the arguments: from the left, but each before those that it is made of."""
    found: list[type[Any]] = []
    for x in tree.leaves_of(arguments):
        if _is_dressed(x) and type(x) not in found:
            place = next((i for i, cls in enumerate(found) if issubclass(type(x), cls)), len(found))
            found.insert(place, type(x))
    return tuple(found)


def ask(call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], types: tuple[type[Any], ...]) -> Any:
    """Let the subclasses among the arguments say what a call means, until one does."""
    if current().plain:
        return call(*bare(args), **bare(kwargs))
    for cls in types:
        found = cls.__torch_function__(call, types, args, kwargs)
        if found is not NotImplemented:
            return found
    msg = (f"Multiple dispatch failed for '{call.__name__}'; all __torch_function__ handlers returned NotImplemented: "
           f"{', '.join(cls.__name__ for cls in types)}")
    raise TypeError(msg)


def inherited(cls: type[Tensor], func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """Run `func` on the tensors inside; new tensors that come out are of this class, but for those of a level.

    Source: torch.Tensor.__torch_function__.
    """
    if not all(issubclass(cls, other) for other in types):
        return NotImplemented
    kwargs = kwargs or {}
    known = {id(x.value): x for x in tree.leaves_of((args, kwargs)) if _is_dressed(x)}
    out = func(*bare(args), **bare(kwargs))
    if func.__name__ == "as_subclass":  # it says itself of which class
        return out
    return tree.map(lambda y: known.get(id(y), dressed(cls, y)) if type(y) is Tensor and y.owner is None else y, out)
