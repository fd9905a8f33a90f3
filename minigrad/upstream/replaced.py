"""Functions of torch that are others while a region runs, and themselves again afterwards.

Three things cannot be had in another way: transforms of torch.func that may begin inside of our hooks; an inner backward, or
the registration of a hook, that is run again without its effects; and a level of forward mode that is entered while there is
one.  Everything else is done through what torch offers.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_LOCK = Lock()


class Replaced:
    """A function of a module, replaced for as long as somebody is inside.

    That is seen by every thread: the replacement must do what the original does wherever it is not meant.
    """

    __slots__ = ("_inside", "_module", "_name", "_new", "original")

    def __init__(self, module: Any, name: str, new: Callable[..., Any]) -> None:
        self._inside = 0
        self._module = module
        self._name = name
        self._new = new
        self.original: Callable[..., Any] = getattr(module, name)

    def __enter__(self) -> None:
        with _LOCK:
            if self._inside == 0:
                self.original = getattr(self._module, self._name)
                setattr(self._module, self._name, self._new)
            self._inside += 1

    def __exit__(self, *exc: object) -> None:
        with _LOCK:
            self._inside -= 1
            if self._inside == 0:
                setattr(self._module, self._name, self.original)
