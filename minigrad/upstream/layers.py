"""Layers remember, the bottom forgets: a tensor taken apart into base tensors and its layers, and put together again.

A layer is what one level knows of a tensor: its edge in that level's graph, a batch dimension, a tangent. A base tensor belongs
to no transform. Saved tensors keep their layers and give their bases away, so whoever has those (a hook, the host, a rerun)
needs to know nothing of levels, and every derivative at every level treats what was done to them as the identity.

    peel(x, bases)          take the layers off x, append its bases
    Layers.around(bases)    put them around base tensors again, each with its own edge
    Layers.fresh(bases)     the same for arguments, which come back with each layer's flag and no edges

Upstream: SavedVariable in torch/csrc/autograd/saved_variable.cpp remembers one layer.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from .levels import below, dual, level, standing, tangent_of
from .private import (
    accumulator,
    bdim_of,
    enter_grad,
    exit_grad,
    forward_mode_context,
    is_batched,
    is_dead,
    is_functional,
    is_wrapped,
    level_of,
    pop_hooks,
    push_hooks,
    saved_tensor,
    sync,
    unwrap_functional,
    unwrapped,
    wrap_for_grad,
    wrap_for_vmap,
    wrap_functional,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .levels import Level


# ---------------------------------------------------------------- what one level's autograd knows
class _Cell:
    """Where a saved tensor looks for its data."""

    __slots__ = ("data",)
    data: torch.Tensor


class Edge:
    """The edge of one level, without the data: torch's own saved tensor, whose hooks have packed nothing."""

    __slots__ = ("_cell", "_depth", "_leaf", "_saved")

    def __init__(self, x: torch.Tensor, depth: int) -> None:
        self._cell = cell = _Cell()
        self._depth = depth
        self._leaf = None
        if x.is_leaf:
            with standing(depth):
                self._leaf = accumulator(x)
        push_hooks(lambda _: cell, attrgetter("data"))
        try:
            with forward_mode_context(mode=False):  # or it would keep the tangent
                self._saved = saved_tensor(x, is_output=False)
        finally:
            pop_hooks()

    def on(self, x: torch.Tensor) -> torch.Tensor:
        """An alias of x with this edge."""
        self._cell.data = x
        try:
            with standing(self._depth):  # where a dispatch mode sees the copy that it makes
                return self._saved.unpack()
        finally:
            del self._cell.data


# ---------------------------------------------------------------- what forward mode knows
class Tangent:
    """The tangent of a tensor of one level, with layers of its own; once forward mode has been left there is none."""

    __slots__ = ("_dual", "_layers")

    def __init__(self, tangent: torch.Tensor, bases: list[torch.Tensor], *, edges: bool) -> None:
        self._dual = dual()
        self._layers = peel(tangent, bases, edges=edges)

    def around(self, bases: Iterator[torch.Tensor]) -> torch.Tensor | None:
        tangent = self._layers.around(bases)
        return tangent if self._dual.alive else None

    def fresh(self, bases: Iterator[torch.Tensor]) -> torch.Tensor:
        return self._layers.fresh(bases)

    @classmethod
    def of(cls, x: torch.Tensor, depth: int, bases: list[torch.Tensor], *, edges: bool) -> Tangent | None:
        """The tangent of a tensor of that level, if it has one."""
        tangent = tangent_of(x, depth)
        return None if tangent is None else cls(tangent, bases, edges=edges)


# ---------------------------------------------------------------- layers, one class for each kind of wrapper
class Batch:
    """What vmap knows."""

    __slots__ = ("_bdim", "_number")
    tangent = None

    def __init__(self, x: torch.Tensor) -> None:
        self._number, self._bdim = level_of(x), bdim_of(x)

    def around(self, x: torch.Tensor, tangent: None) -> torch.Tensor:
        return wrap_for_vmap(x, self._bdim, self._number)

    fresh = around


class Functional:
    """What functionalize knows: that nobody else sees what is written here."""

    __slots__ = ("_number",)
    tangent = None

    def __init__(self, x: torch.Tensor) -> None:
        self._number = level_of(x)

    def around(self, x: torch.Tensor, tangent: None) -> torch.Tensor:
        return wrap_functional(x, self._number)

    fresh = around


class Tracked:
    """What grad or jvp knows: an edge, or a tangent.  Once the level has exited, its tensors mean their value."""

    __slots__ = ("_edge", "_flag", "_level", "tangent")

    def __init__(self, x: torch.Tensor, me: Level, bases: list[torch.Tensor], *, edges: bool) -> None:
        self._level = me
        self._flag = x.requires_grad
        self._edge = Edge(x, me.number) if edges and self._flag else None
        self.tangent = Tangent.of(x, me.number, bases, edges=edges)

    def around(self, x: torch.Tensor, tangent: torch.Tensor | None) -> torch.Tensor:
        if not self._level.alive:
            return x
        x = wrap_for_grad(x, self._level.number)
        if self._edge is not None:
            x = self._edge.on(x)
        return x if tangent is None else with_tangent(x, tangent, self._level.number)

    def fresh(self, x: torch.Tensor, tangent: torch.Tensor | None) -> torch.Tensor:
        x = wrap_for_grad(x, self._level.number)
        x.requires_grad = self._flag
        return x if tangent is None else with_tangent(x, tangent, self._level.number)


class Outermost:
    """The layer of the level that saves: its edge is kept by torch, which wants a tensor of that level, alive or not."""

    __slots__ = ("_level",)
    tangent = None

    def __init__(self, x: torch.Tensor) -> None:
        self._level = None if is_dead(x) else level(level_of(x))

    def around(self, x: torch.Tensor, tangent: None) -> torch.Tensor:
        if self._level is not None and self._level.alive:
            return wrap_for_grad(x, self._level.number)
        # torch will overwrite the edge of what it gets, so x itself must not be what it gets
        number = enter_grad()
        try:
            return wrap_for_grad(x, number)
        finally:
            exit_grad()


class Base:
    """What ordinary autograd knows."""

    __slots__ = ("_edge", "_flag", "tangent")

    def __init__(self, x: torch.Tensor, bases: list[torch.Tensor], *, edges: bool) -> None:
        self._flag = x.requires_grad
        self._edge = Edge(x, 0) if edges and self._flag else None
        self.tangent = Tangent.of(x, 0, bases, edges=edges)

    def around(self, x: torch.Tensor, tangent: torch.Tensor | None) -> torch.Tensor:
        if tangent is not None:
            with below():
                x = x.detach()  # where hooks return what they got, it has a tangent
        if self._edge is not None:
            x = self._edge.on(x)
        return x if tangent is None else with_tangent(x, tangent, 0)

    def fresh(self, x: torch.Tensor, tangent: torch.Tensor | None) -> torch.Tensor:
        with below():
            x = x.detach()
            x.requires_grad = self._flag
        return x if tangent is None else with_tangent(x, tangent, 0)


def with_tangent(x: torch.Tensor, tangent: torch.Tensor, depth: int) -> torch.Tensor:
    """A tensor of that level with a tangent."""
    with standing(depth), forward_mode_context(mode=True), torch.enable_grad():
        return forward_ad.make_dual(x, tangent)


# ---------------------------------------------------------------- all layers of a tensor
class Layers:
    """The layers of one tensor, outermost first; the last one is Base."""

    __slots__ = ("_layers",)

    def __init__(self, layers: list[Any]) -> None:
        self._layers = layers

    def around(self, bases: Iterator[torch.Tensor]) -> torch.Tensor:
        """Put them around base tensors, each with its own edge."""
        tangents = [layer.tangent and layer.tangent.around(bases) for layer in self._layers]
        x = next(bases)
        for layer, tangent in zip(reversed(self._layers), reversed(tangents), strict=True):
            x = layer.around(x, tangent)
        return x

    def fresh(self, bases: Iterator[torch.Tensor]) -> torch.Tensor:
        """Put them around base tensors, with flags and no edges, at levels of the same numbers."""
        tangents = [layer.tangent and layer.tangent.fresh(bases) for layer in self._layers]
        x = next(bases)
        for layer, tangent in zip(reversed(self._layers), reversed(tangents), strict=True):
            x = layer.fresh(x, tangent)
        return x


def peel(x: torch.Tensor, bases: list[torch.Tensor], *, edges: bool) -> Layers:
    """Take off all layers and append the bases: the tangents', from the outermost layer on, then the tensor's own."""
    layers: list[Any] = []
    while is_wrapped(x):
        if not is_dead(x):
            layers.append(_outer(x, bases, edges=edges))
        x = one_down(x)
    layers.append(Base(x, bases, edges=edges))
    bases.append(x)
    return Layers(layers)


def peel_saved(x: torch.Tensor, bases: list[torch.Tensor]) -> Layers:
    """Take off all layers of a tensor that a level saves now: that level's own edge is torch's business."""
    layers = peel(unwrapped(x), bases, edges=True)
    return Layers([Outermost(x), *layers._layers])


def _outer(x: torch.Tensor, bases: list[torch.Tensor], *, edges: bool) -> Batch | Functional | Tracked:
    if is_batched(x):
        return Batch(x)
    if is_functional(x):
        return Functional(x)
    return Tracked(x, level(level_of(x)), bases, edges=edges)


def rewrapped(x: torch.Tensor, value: torch.Tensor, tangent: torch.Tensor | None) -> torch.Tensor:
    """The outermost layer of x around another value, and with another tangent."""
    return _outer(x, [], edges=True).around(value, tangent)  # type: ignore[arg-type]


def one_down(x: torch.Tensor) -> torch.Tensor:
    """The tensor below one wrapper."""
    if is_functional(x):
        with standing(level_of(x)):
            sync(x)
            return unwrap_functional(x, False)
    return unwrapped(x)
