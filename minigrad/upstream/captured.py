"""What a region reads besides its arguments, when it is run again after levels have exited.

A tensor whose level has exited means its value: the rerun would not record with it what the forward recorded.  So the forward
notes the layers of every tensor that it meets, and the rerun meets a fresh tensor of the same layers in its place.

Upstream: closure conversion would find the same tensors before the region runs.
"""

from __future__ import annotations

from threading import local
from typing import TYPE_CHECKING, Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from .effects import is_recomputing
from .layers import one_down, peel, rewrapped
from .levels import dual_level, tangent_of
from .private import function_modes, is_dead, is_wrapped, level_of, tree_map_only

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from .layers import Layers


class _Program(local):
    runs = True


program = _Program()
"""Whether what is called is called by the program: not where a tensor is taken apart, or another put in its place."""


class bookkeeping:  # noqa: N801  a context, as torch's are
    """Call torch for our own purposes."""

    __slots__ = ("_before",)

    def __enter__(self) -> None:
        self._before, program.runs = program.runs, False

    def __exit__(self, *exc: object) -> None:
        program.runs = self._before


class Notes(TorchFunctionMode):
    """The layers of the tensors that a forward meets, for as long as those are alive; None for what it made itself."""

    def __init__(self) -> None:
        super().__init__()
        self.known = WeakTensorKeyDictionary()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not program.runs:
            return func(*args, **kwargs)
        with bookkeeping():
            for x in _tensors((args, *kwargs.values())):
                self.note(x)
        out = func(*args, **kwargs)
        for x in _tensors((out,)):
            self.known.setdefault(x, None)
        return out

    def note(self, x: torch.Tensor) -> None:
        """Note a tensor, and the wrapped ones in it."""
        while x not in self.known and (is_wrapped(x) or dual_level()):
            bases: list[torch.Tensor] = []
            now = substitute(x)
            layers = peel(now, bases, edges=False)
            self.known[x] = layers, [base.detach() if base is now else base for base in bases]
            if not is_wrapped(x):
                return
            x = one_down(x)


class Again(TorchFunctionMode):
    """Put fresh tensors in the place of arguments, and of noted ones."""

    def __init__(self, notes: Notes | None = None) -> None:
        super().__init__()
        self._notes = WeakTensorKeyDictionary() if notes is None else notes.known
        self.fresh = WeakTensorKeyDictionary()

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if program.runs:
            with bookkeeping():
                args, kwargs = tree_map_only(torch.Tensor, self.again, (args, kwargs or {}))
        return func(*args, **(kwargs or {}))

    def again(self, x: torch.Tensor) -> torch.Tensor:
        """What stands for a tensor in the rerun."""
        if x in self.fresh:
            return self.fresh[x]
        new = self._fresh(x)
        if new is not x:  # always the same: it may be given a flag, or be what a gradient is asked for
            self.fresh[x] = new
        return new

    def _fresh(self, x: torch.Tensor) -> torch.Tensor:
        note: tuple[Layers, list[torch.Tensor]] | None = self._notes.get(x)
        if note is not None:
            layers, bases = note
            return layers.fresh(iter(bases))
        if not is_wrapped(x) or is_dead(x):
            return x
        inner = one_down(x)
        new = self.again(inner)
        if new is inner:
            return x
        tangent = tangent_of(x, level_of(x))
        return rewrapped(x, new, None if tangent is None else self.again(tangent))


def substitute(x: torch.Tensor) -> torch.Tensor:
    """What stands for a tensor in the regions that are being run again."""
    for mode in reversed(function_modes()) if is_recomputing() else ():
        if isinstance(mode, Again):
            x = mode.again(x)
    return x


def _tensors(values: Iterable[Any]) -> Iterator[torch.Tensor]:
    for x in values:
        if isinstance(x, torch.Tensor):
            yield x
        elif isinstance(x, (list, tuple)):
            yield from _tensors(x)
