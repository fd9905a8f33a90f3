"""The stack of transforms: which levels it has, standing further down in it, and building one like it again.

    standing(depth)   run below a level, whatever dispatch state its kernel left behind; depth 0 is below every transform
    Stack             what must be known of a stack to enter one like it, after its levels have exited

Upstream: aten/src/ATen/functorch/DynamicLayer.cpp, torch/_functorch/pyfunctorch.py.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager, nullcontext
from functools import reduce
from operator import or_
from threading import local
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from .private import (
    DispatchKey,
    DispatchKeySet,
    current_level,
    enter_functionalize,
    enter_grad,
    enter_jvp,
    enter_vmap,
    excluded_keys,
    exit_functionalize,
    exit_grad,
    exit_jvp,
    exit_vmap,
    force_keys,
    forward_mode_context,
    get_stack,
    included_keys,
    is_batched,
    is_dead,
    is_forward_mode,
    is_functional,
    is_wrapped,
    pop_layer,
    push_layer,
    set_forward_mode,
    unwrapped,
    wrap_for_grad,
)
from .replaced import Replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


def _keys(*names: str) -> Any:
    return reduce(or_, (DispatchKeySet(getattr(DispatchKey, name)) for name in names))


_AUTOCAST = _keys(*[name for name in dir(DispatchKey) if name.startswith("Autocast")])
_PLAIN = _AUTOCAST | _keys("BackendSelect", "ADInplaceOrView", "Python", "PythonTLSSnapshot", "PythonDispatcher", "PreDispatch")
_FUNCTORCH = _keys("FuncTorchDynamicLayerFrontMode", "FuncTorchDynamicLayerBackMode")
_UNSEEN = _keys("BackendSelect", "ADInplaceOrView"), DispatchKeySet(DispatchKey.Undefined)  # by transforms and by modes


def depth() -> int:
    """The number of levels on the stack; 0 is ordinary autograd."""
    return current_level() or 0


class standing:  # noqa: N801  a context, as torch's are
    """Run as if the stack had only its lowest levels, in the dispatch state of ordinary code there.

    The levels above stay alive.  Inside a pack hook the state is that of a kernel: what runs there without this runs at a level
    that nobody chose.
    """

    __slots__ = ("_depth", "_guard", "_layers")

    def __init__(self, depth: int) -> None:
        self._depth = depth

    def __enter__(self) -> None:
        include = (included_keys() & _PLAIN) | _FUNCTORCH if self._depth else included_keys() & _PLAIN
        self._guard = force_keys(include, excluded_keys() & _AUTOCAST)
        self._guard.__enter__()
        self._layers = [pop_layer() for _ in range(depth() - self._depth)]

    def __exit__(self, *exc: object) -> None:
        while self._layers:
            push_layer(self._layers.pop())
        self._guard.__exit__(None, None, None)


def below() -> AbstractContextManager[None]:
    """Below every transform, wherever that is."""
    return standing(0) if depth() else nullcontext()


# ---------------------------------------------------------------- one level
class Level:
    """One entry of a stack: its number, its transform, and whether it is still there."""

    __slots__ = ("_probe", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self._probe = wrap_for_grad(_SOMETHING, number)  # dies with its level, of whatever transform

    @property
    def alive(self) -> bool:
        """Whether it has not exited."""
        return not is_dead(self._probe)


_SOMETHING = torch.empty(0, device="cpu")


class Dual:
    """A level of forward mode, entered by hand or by a jvp, and whether it is still there: torch has one at a time."""

    __slots__ = ("_probe",)

    def __init__(self) -> None:
        with force_keys(*_UNSEEN), forward_mode_context(mode=True):
            self._probe = forward_ad.make_dual(_SOMETHING, _SOMETHING)  # loses its tangent with the level

    @property
    def alive(self) -> bool:
        """Whether it has not exited."""
        with force_keys(*_UNSEEN), forward_mode_context(mode=True):
            return forward_ad.unpack_dual(self._probe).tangent is not None


class _Known(local):
    def __init__(self) -> None:
        self.levels: dict[int, Level] = {}
        self.dual: Dual | None = None


_known = _Known()


def level(number: int) -> Level:
    """The level of that number that is on the stack."""
    found = _known.levels.get(number)
    if found is None or not found.alive:
        found = _known.levels[number] = Level(number)
    return found


def dual_level() -> bool:
    """Whether forward-mode derivatives are being taken: eagerly, or by a jvp."""
    return forward_ad._current_level >= 0


def dual() -> Dual:
    """The level of forward mode that is entered."""
    if _known.dual is None or not _known.dual.alive:
        _known.dual = Dual()
    return _known.dual


def tangent_of(x: torch.Tensor, depth: int) -> torch.Tensor | None:
    """The tangent of a tensor of a level, if it has one: none at a level of vmap or functionalize."""
    if not dual_level() or is_batched(x) or is_functional(x) or _out_of_reach(x):
        return None
    with standing(depth), forward_mode_context(mode=True):  # an autograd.Function turns it off, and no tangent is to be seen
        return forward_ad.unpack_dual(x).tangent


def _out_of_reach(x: torch.Tensor) -> bool:
    """Whether torch can call nothing on it, and so has given it none: of levels that have exited it takes off one, not two."""
    while is_wrapped(x) and not is_functional(x):
        inner = unwrapped(x)
        if is_dead(x) and is_dead(inner):
            return True
        x = inner
    return False


class _Joined(local):
    entered: int | None = None
    """How many levels of forward mode are entered in the one that is there; None: no more may be."""


_joined = _Joined()


@contextmanager
def joining() -> Iterator[None]:
    """Run what enters a level of forward mode while there is one, of which its tensors know nothing: it takes that one."""
    before, _joined.entered = _joined.entered, 0
    try:
        with _ENTER, _EXIT:
            yield
    finally:
        _joined.entered = before


def _enter() -> int:
    if _joined.entered is None:
        return _ENTER.original()
    _joined.entered += 1
    return forward_ad._current_level


def _exit(*, level: int | None = None) -> None:
    if _joined.entered:
        _joined.entered -= 1
    else:
        _EXIT.original(level=level)


_ENTER = Replaced(forward_ad, "enter_dual_level", _enter)
_EXIT = Replaced(forward_ad, "exit_dual_level", _exit)


# ---------------------------------------------------------------- a stack like it
def _again(interpreter: Any) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """How to enter a level like that of an interpreter, and how to leave it."""
    kind = interpreter.key().name
    if kind == "Vmap":
        size, randomness = interpreter.batch_size(), interpreter.randomness()
        return lambda: enter_vmap(size, randomness), exit_vmap
    if kind == "Functionalize":
        views = interpreter.functionalize_add_back_views()
        return lambda: enter_functionalize(views), exit_functionalize
    if kind == "Jvp":
        on = interpreter.prev_fwd_grad_mode()
        return lambda: (set_forward_mode(on), enter_jvp()), exit_jvp
    on = interpreter.prev_grad_mode()  # what the levels below obey: NOTE [grad and vjp interaction with no_grad]
    return lambda: (torch.set_grad_enabled(on), enter_grad()), exit_grad


class Stack:
    """The levels that a region ran under, to be entered once more: the same numbers, new levels."""

    __slots__ = ("_again", "_forward_mode", "dual", "levels")

    def __init__(self) -> None:
        interpreters = get_stack() if depth() else []
        self.levels = tuple([level(i.level()) for i in interpreters])
        self.dual = dual_level()
        self._again = [_again(i) for i in interpreters]
        self._forward_mode = is_forward_mode()

    @property
    def left(self) -> bool:
        """Whether tensors from outside may have lost a layer or a tangent meanwhile."""
        return self.dual or not all(level.alive for level in self.levels)

    @contextmanager
    def entered(self, floor: int = 0) -> Iterator[None]:
        """Enter levels like these, from the lowest ones, which are there."""
        grad_mode, forward_mode = torch.is_grad_enabled(), is_forward_mode()
        known, _known.levels = _known.levels, {n: one for n, one in _known.levels.items() if n <= floor}
        try:
            with ExitStack() as exits:
                if self.dual != dual_level():
                    exits.enter_context(forward_ad.dual_level() if self.dual else joining())
                for enter, leave in self._again[floor:]:
                    enter()
                    exits.callback(leave)
                set_forward_mode(self._forward_mode)
                torch.set_grad_enabled(True)
                yield
        finally:
            set_forward_mode(forward_mode)
            torch.set_grad_enabled(grad_mode)
            _known.levels = known
