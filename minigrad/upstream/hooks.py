"""The hooks of saved tensors, where they act on base tensors and at every level.

torch has one stack of hook pairs for all levels, of which the topmost pair acts; torch.func forbids them, because torch's pairs
would be handed wrapped tensors.  Ours are pushed on the same stack, and torch.func's ban is kept for everybody else's.

    Hooks    what a kind of hooks does: which levels' saves it manages, pack, unpack
    Entry    hooks that are entered: what lies outside of them, and the pair that torch calls
    Packed   what torch keeps of a save: its layers, and what the hooks made of its base tensors
"""

from __future__ import annotations

from contextlib import contextmanager
from operator import methodcaller
from threading import local
from typing import TYPE_CHECKING, Any

import torch

from .layers import Outermost, one_down, peel_saved
from .levels import below, depth, standing
from .private import ban_hooks, ban_message, is_wrapped, lift_ban, pop_hooks, push_hooks, top_hooks
from .replaced import Replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .layers import Layers

INPUTS = -1
"""The level of an inner region's inputs."""


class Hooks:
    """Where the base tensors of saves go, and how they come back."""

    def manages(self, level: int) -> bool:
        """Whether these hooks act on the saves of a level; else those outside do, or nobody."""
        return True

    def pack(self, base: torch.Tensor, level: int) -> Any:
        """Take a base tensor, return anything."""
        raise NotImplementedError

    def unpack(self, packed: Any, asking: int) -> torch.Tensor:
        """Take what pack returned, return a base tensor that is equal; `asking` is the level that needs it."""
        raise NotImplementedError


class Pair(Hooks):
    """Two functions, which run below every transform with nothing recorded."""

    def __init__(self, pack_hook: Callable[[torch.Tensor], Any], unpack_hook: Callable[[Any], torch.Tensor]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self._entries: list[Entry] = []

    def pack(self, base: torch.Tensor, level: int) -> Any:
        if level == 0:
            return self.pack_hook(base)  # what torch hands it
        with below(), torch.no_grad():
            return self.pack_hook(base.detach())

    def unpack(self, packed: Any, asking: int) -> torch.Tensor:
        if not depth():
            return self.unpack_hook(packed)  # as torch calls it
        with standing(0), torch.no_grad():
            base = self.unpack_hook(packed)
        if not isinstance(base, torch.Tensor):
            msg = f"Output of saved tensor unpack_hook expected to be a Tensor but got {type(base).__name__}"
            raise TypeError(msg)
        return base


# ---------------------------------------------------------------- what torch keeps
class Bare:
    """A base tensor that went through hooks."""

    __slots__ = ("_hooks", "_level", "_packed")

    def __init__(self, base: torch.Tensor, hooks: Hooks, level: int) -> None:
        self._hooks = hooks
        self._level = level
        self._packed = hooks.pack(base, level)

    def unpack(self) -> torch.Tensor:
        """The base tensor, whose edge torch knows."""
        return self._hooks.unpack(self._packed, self._level)


class Packed:
    """A tensor whose base tensors went through hooks: the layers stay here."""

    __slots__ = ("_hooks", "_layers", "_level", "_packed")

    def __init__(self, layers: Layers, bases: list[torch.Tensor], hooks: Hooks, level: int) -> None:
        self._hooks = hooks
        self._layers = layers
        self._level = level
        self._packed = [hooks.pack(base, level) for base in bases]

    def unpack(self) -> torch.Tensor:
        """The tensor with its layers, each with its own edge."""
        return self._layers.around(self.bases(self._level))

    def fresh(self, bases: Iterator[torch.Tensor]) -> torch.Tensor:
        """The tensor with its layers and no edges, from base tensors that were asked for before."""
        return self._layers.fresh(bases)

    def bases(self, asking: int) -> Iterator[torch.Tensor]:
        """The base tensors, for a level that asks."""
        return iter([self._hooks.unpack(packed, asking) for packed in self._packed])


class Kept:
    """A save that nobody manages, kept as torch would: without its own level's edge, and with the version check."""

    __slots__ = ("_base", "_layer", "_value", "_version")

    def __init__(self, x: torch.Tensor) -> None:
        self._layer = Outermost(x) if is_wrapped(x) else None
        self._value = one_down(x) if self._layer else x if x.is_leaf else x.detach()
        self._base = self._value
        while is_wrapped(self._base):
            self._base = one_down(self._base)
        self._version = self._base._version

    def unpack(self) -> torch.Tensor:
        """The tensor; RuntimeError where it was written to."""
        check(self._base, self._version)
        return self._layer.around(self._value, None) if self._layer else self._value


def check(x: torch.Tensor, version: int) -> None:
    """Raise torch's error about a tensor that was written to since it was saved."""
    if x._version != version:
        msg = ("one of the variables needed for gradient computation has been modified by an inplace operation: "
               f"[{x.type()} {list(x.shape)}] is at version {x._version}; expected version {version} instead.")
        raise RuntimeError(msg)


# ---------------------------------------------------------------- hooks that are entered
class Entry:
    """Hooks on torch's stack."""

    __slots__ = ("_before", "hooks", "outer")

    def __init__(self, hooks: Hooks, *, alone: bool = False) -> None:
        self.hooks = hooks
        self.outer = None if alone else entered()

    def manager(self, level: int) -> Hooks | None:
        """Who manages the saves of a level: these hooks, the next outside that do, or nobody."""
        entry: Entry | None = self
        while entry is not None and not entry.hooks.manages(level):
            entry = entry.outer
        return None if entry is None else entry.hooks

    def save(self, x: torch.Tensor) -> Bare | Packed | Kept:
        """What torch calls for every save, at every level."""
        level = depth()
        hooks = self.manager(level)
        if hooks is None:
            return Kept(x)
        if not is_wrapped(x):
            return Bare(x, hooks, level)
        bases: list[torch.Tensor] = []
        return Packed(peel_saved(x, bases), bases, hooks, level)

    def __enter__(self) -> None:
        ban = ban_message()
        self._before = ban, _lifted.ban
        if ban is not None and ban.startswith(_FUNCTORCH):
            _lifted.ban = ban
            lift_ban()
        push_hooks(self.save, _UNPACK)
        _BAN.__enter__()
        _ENTER.__enter__()

    def __exit__(self, *exc: object) -> None:
        _ENTER.__exit__()
        _BAN.__exit__()
        pop_hooks()
        ban, _lifted.ban = self._before
        if ban is not None:
            ban_hooks(ban, fail_if_non_empty=False)


_UNPACK = methodcaller("unpack")


def entered() -> Entry | None:
    """The hooks in force, a pair of torch's own taken for one of ours."""
    top = top_hooks(True)
    if top is None:
        return None
    entry = getattr(top[0], "__self__", None)
    if isinstance(entry, Entry):
        return entry
    return Entry(Pair(*top), alone=True)


def _ours() -> bool:
    """Whether hooks of this module are the ones in force."""
    top = top_hooks(True)
    return top is not None and isinstance(getattr(top[0], "__self__", None), Entry)


# ---------------------------------------------------------------- the ban of torch.func, which does not mean our hooks
_FUNCTORCH = "torch.func.{grad, vjp, jacrev, hessian} don't yet support saved tensor hooks"


class _Lifted(local):
    ban: str | None = None
    """The ban that is in force for all hooks but ours."""


_lifted = _Lifted()


@contextmanager
def _ban(error_message: str) -> Iterator[None]:
    """Let transforms begin where our hooks are in force."""
    if not (error_message.startswith(_FUNCTORCH) and _ours()):
        with _BAN.original(error_message):
            yield
        return
    before, _lifted.ban = _lifted.ban, error_message
    try:
        yield
    finally:
        _lifted.ban = before


def _enter(self: torch.autograd.graph.saved_tensors_hooks) -> None:
    """Refuse another's hooks where the ban would have refused them."""
    if _lifted.ban is not None and _ours():
        raise RuntimeError(_lifted.ban)
    _ENTER.original(self)


_BAN = Replaced(torch.autograd.graph, "disable_saved_tensors_hooks", _ban)
_ENTER = Replaced(torch.autograd.graph.saved_tensors_hooks, "__enter__", _enter)


# ---------------------------------------------------------------- torch.autograd.graph.saved_tensors_hooks
class saved_tensors_hooks(Pair):  # noqa: N801  torch's name
    """A pair of pack and unpack hooks for all tensors that are saved inside, at every level of torch.func.

    Under a transform pack is handed the base tensor, below every transform and without a gradient, and unpack returns one that
    is equal; what they did is the identity to every derivative.  At level 0 pack is handed what torch hands it.

    Args:
        pack_hook: from a tensor to anything
        unpack_hook: from what pack_hook returned to a tensor of the same shape, dtype and device

    Raises:
        RuntimeError: hooks are disabled by torch.autograd.graph.disable_saved_tensors_hooks
        TypeError: unpack_hook returned something else than a tensor

    Source: torch.autograd.graph.saved_tensors_hooks

    """

    def __enter__(self) -> None:
        entry = Entry(self)
        entry.__enter__()
        self._entries.append(entry)

    def __exit__(self, *exc: object) -> None:
        self._entries.pop().__exit__(*exc)
