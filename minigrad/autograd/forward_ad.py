"""Forward mode by hand: a program enters a level, gives tensors tangents, and takes the tangents of results off.

The level is the one that `func.jvp` puts on the stack, entered by a call instead of by a transform: so levels nest, hooks,
regions and transforms see it as they see any other, and a region runs again under a level that was left. [NOTE dual-levels]

Source: torch.autograd.forward_ad.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ..errors import Refusal, UsageError
from ..interpreters.jvp import JvpInterpreter
from ..op import revive
from ..ops.rearrange import view_as
from ..scope import Scope
from ..state import State, current, using

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..interpreters.base import Interpreter
    from ..tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]


class UnpackedDualTensor(NamedTuple):
    """A primal, and its tangent, of the same shape, or None.  Source: torch.autograd.forward_ad.UnpackedDualTensor."""

    primal: Tensor
    tangent: Tensor | None


class DualInterpreter(JvpInterpreter):
    """A level of forward mode that a program entered itself; it remembers what exit_dual_level is to leave."""

    __slots__ = ("scope",)
    name = "dual"
    by_hand = True

    def __init__(self) -> None:
        self.scope: dual_level | None = None


def __getattr__(name: str) -> object:
    """`_current_level`, the number of the innermost dual level, -1 where there is none."""
    if name == "_current_level":
        return len(_levels()) - 1
    msg = f"module 'minigrad.autograd.forward_ad' has no attribute {name!r}"
    raise AttributeError(msg)


def _levels() -> list[DualInterpreter]:
    return [me for me in current().levels if isinstance(me, DualInterpreter)]


# ---------------------------------------------------------------- levels
def enter_dual_level() -> int:
    """Put a level on the stack and return its number among dual levels, from 0.

    Source: torch.autograd.forward_ad.enter_dual_level, which refuses a second one.
    """
    scope = dual_level()
    number = scope.__enter__()
    _levels()[-1].scope = scope
    return number


def exit_dual_level(*, level: int | None = None) -> None:
    """Take the innermost level off the stack: its duals mean their primals from now on.

    Raises UsageError where there is none that was entered by enter_dual_level, or where `level` is not its number.  Contexts
    entered since must have been left.
    Source: torch.autograd.forward_ad.exit_dual_level.
    """
    levels = _levels()
    if not levels:
        msg = "exit_dual_level(): no dual level has been entered."
        raise UsageError(msg)
    me = levels[-1]
    if (level is not None and level != len(levels) - 1) or current().levels[-1] is not me or me.scope is None:
        msg = "Trying to exit a forward AD level that was not the last one that was created. This is not supported."
        raise UsageError(msg)
    scope, me.scope = me.scope, None
    scope.__exit__(None, None, None)


class dual_level(Scope):  # noqa: N801  torch spells it so
    """A level for a block, or for each call of a function; `as` gives its number.

    Source: torch.autograd.forward_ad.dual_level.
    """

    def inside(self, outside: State) -> State:
        me = DualInterpreter()
        me.enter(outside)
        off = outside.forward_off if _is_fwd_grad_enabled() else outside.forward_off | {me}
        return outside._replace(levels=(*outside.levels, me), forward_off=off)

    def __enter__(self) -> int:
        super().__enter__()
        return len(_levels()) - 1


# ---------------------------------------------------------------- duals
def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """Return a tensor with the memory of `tensor` that carries `tangent`, of the same shape, at a dual level.

    level: its number; the innermost without.  What is computed from the dual carries a tangent too.
    Raises UsageError without a level, where shapes differ, where one of the two carries a tangent at that level, or where
    one belongs to a transform entered since; ValueError where one is neither floating nor complex.
    Source: torch.autograd.forward_ad.make_dual.
    """
    me = _level(level)
    if me is None:
        msg = "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        raise UsageError(msg)
    for what, x in (("primal", tensor), ("tangent", tangent)):
        if not x.dtype.differentiable:
            msg = f"Expected {what} to be floating point or complex, but got: {x.dtype}"
            raise ValueError(msg)
    primal, tangent = (_under(me, x, "make_dual") for x in (tensor, tangent))
    number = _levels().index(me)
    if primal.owner is me:
        msg = ("Making a dual Tensor based on a Tensor that already has a forward gradient at the same level "
               f"{number} is not supported.")
        raise UsageError(msg)
    if tangent.owner is me:
        msg = (f"Setting a forward grad that itself has a forward gradient at the same level {number} is not supported.")
        raise UsageError(msg)
    if primal.shape != tangent.shape:
        msg = ("Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
               f"supported. Tensor is of size {list(primal.shape)} while the given forward gradient is of size "
               f"{list(tangent.shape)}.")
        raise UsageError(msg)
    return me.give(view_as(primal, primal), tangent)


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """Return the primal, a view, and the tangent as it is: None where the tensor has none, or where there is no level.

    level: the number of a dual level; the innermost without.  Raises UsageError for a tensor of a transform entered since
    that is computed from a dual.  Source: torch.autograd.forward_ad.unpack_dual.
    """
    me = _level(level)
    if me is None:
        return UnpackedDualTensor(tensor, None)
    x = _under(me, tensor, "unpack_dual")
    if x.owner is not me:
        return UnpackedDualTensor(view_as(x, x), None)
    return UnpackedDualTensor(view_as(x.value, x.value), None if me in current().forward_off else x.note)


def _level(number: int | None) -> DualInterpreter | None:
    levels = _levels()
    if number is None:
        return levels[-1] if levels else None
    if not 0 <= number < len(levels):
        msg = f"there is no dual level {number}."
        raise UsageError(msg)
    return levels[number]


def _under(me: Interpreter, x: Tensor, what: str) -> Tensor:
    """`x`, of no level that was entered after `me`."""
    state = current()
    x = revive(x, state)
    if x.owner is not None and state.levels.index(x.owner) > state.levels.index(me):
        msg = (f"{what}: the tensor belongs to {x.owner}, which was entered after {me}: what it remembers would be lost. Enter "
               "a dual level inside, or do this outside. [NOTE dual-levels]")
        raise Refusal(msg)
    return x


# ---------------------------------------------------------------- whether tangents are pushed
def _is_fwd_grad_enabled() -> bool:
    """Whether the innermost level of forward mode pushes tangents."""
    state = current()
    return next(_forward_levels(state), None) not in state.forward_off


def _forward_levels(state: State) -> Iterator[JvpInterpreter]:
    return (me for me in reversed(state.levels) if isinstance(me, JvpInterpreter))


def with_forward_mode(state: State, mode: bool) -> State:
    """The state in which the innermost forward level pushes tangents, those below as it found them; or in which none does."""
    if not mode:
        return state._replace(forward_off=frozenset({None, *state.levels}))
    innermost = next(_forward_levels(state), None)
    return state._replace(forward_off=frozenset() if innermost is None else innermost.forward_off_outside - {innermost})


class _set_fwd_grad_enabled:  # noqa: N801  torch spells it so
    """Take effect at once, and as a context manager until its end: off, levels on the stack push no tangents.

    Source: torch.autograd.forward_ad._set_fwd_grad_enabled.
    """

    def __init__(self, mode: bool) -> None:
        self._scope = using(with_forward_mode(current(), mode))
        self._scope.__enter__()

    def __enter__(self) -> None:
        """Nothing: it is in force since it was made."""

    def __exit__(self, *error: object) -> None:
        self._scope.__exit__(None, None, None)
