"""All hidden state, as one immutable value in one variable. [NOTE state-is-a-value]

Entering a context replaces the value; leaving it puts the OLD VALUE back, never an inverse operation.  Taking a
snapshot is reading the variable.  A level is an interpreter object, compared by identity: its number is for people.
[NOTE levels-are-objects]

Upstream: the DynamicLayer stack and every other thread-local that at::ThreadLocalState carries.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from . import dtypes
from .backend import CPU, Device

if TYPE_CHECKING:
    from collections.abc import Callable

    from .autograd.engine import Run
    from .graph.saved import Hooks
    from .interpreters.base import Interpreter


class State:
    """Everything an op's meaning depends on, besides its arguments."""

    __slots__ = ("__dict__",)  # set whole: a State is immutable, and a copy of it is one union of dicts

    levels: tuple[Interpreter, ...] = ()
    """The interpreters, bottom first.  Level 0, ordinary autograd, is always below them."""
    grad_off: frozenset[Interpreter | None] = frozenset()
    """The levels that do not record; None is level 0. [NOTE grad-mode-per-level]"""
    forward_off: frozenset[Interpreter | None] = frozenset()
    """The levels of forward mode that push no tangents; None is those to come. [NOTE dual-levels]"""
    hooks: Hooks | None = None
    """The innermost saved-tensor hooks."""
    hooks_disabled: str | None = None
    """The message of `disable_saved_tensors_hooks`, where it is in force. [NOTE disabled-hooks]"""
    watchers: tuple[Watcher, ...] = ()
    """Those who are told of every op.  Where there are none, nor modes, autocast or inference, ops take their fast path."""
    inference: frozenset[Interpreter | None] | None = None
    """In inference mode: the levels that will never save what is made. [NOTE inference-mode]"""
    ahead: tuple[Any, ...] = ()
    """Those who are asked about a call before it meets the levels, the innermost last. [NOTE function-modes] [NOTE autocast]"""
    plain: bool = False
    """Whether tensors of subclasses are taken for the tensors inside. [NOTE subclasses]"""
    dispatch_modes: tuple[Any, ...] = ()
    """Those who are asked to run what reaches the base, the innermost last. [NOTE dispatch-modes]"""
    above: State | None = None
    """Of what runs underneath every level: the state that asked for it."""
    run: Run | None = None
    """The backward run that is under way; recomputed values live as long as it does."""
    recomputing: int | None = None
    """While a checkpointed region is being run again: the number of the moment it began. [NOTE side-effects-once]"""
    early_stop: bool | None = None
    """What `set_checkpoint_early_stop` says, where it says anything."""
    remat: str | None = None
    """What `set_checkpoint_remat` says, where it says anything."""
    checkpoint_debug: bool | None = None
    """What `set_checkpoint_debug_enabled` says, where it says anything."""
    group: Run | None = None
    """Inside a `GraphExecGroup`: what all backward runs are one of. [NOTE one-group]"""
    streams: tuple[tuple[Any, Any], ...] = ()
    """(generator, private copy) pairs: draws from the first are taken from the second."""
    regions: tuple[Any, ...] = ()
    """The checkpointed regions that are being run for the first time: they are told where random streams stand."""
    swaps: tuple[dict[tuple[Any, str], Any], ...] = ()
    """What functional_call gave, innermost last: by (module, name) the tensor it is. [NOTE captured-tensors]"""
    outside: State | None = None
    """What `with device:` found, and leaving it puts back."""
    strict_levels: bool = False
    """Whether a tensor that escaped its level is an error for every kind of level."""
    closed: frozenset[Interpreter] = frozenset()
    """Levels on whose tensors nothing may be computed here."""
    closed_by: str = ""
    """Who closed the levels of `closed`."""
    default_dtype: dtypes.dtype = dtypes.float32
    default_device: Device = CPU
    device_streams: tuple[Any, ...] = ()
    """The streams of accelerators that were entered, innermost last. [NOTE streams]"""

    def __init__(self) -> None:
        _set_fields(self, {name: getattr(State, name) for name in State.__annotations__})

    def _replace(self, **changes: Any) -> State:
        """A copy of the state with some fields changed."""
        fields = self.__dict__ | changes
        attended = fields["watchers"] or fields["ahead"] or fields["dispatch_modes"] or fields["inference"]
        new = State.__new__(Attended if attended else State)
        _set_fields(new, fields)
        if attended:
            watched.add(id(new))
        return new

    def __repr__(self) -> str:
        other = [f", {name}={value!r}" for name, value in vars(self).items() if name != "levels" and value != vars(State)[name]]
        return f"<State {show(self)}{''.join(other)}>"

    def __setattr__(self, name: str, value: Any) -> None:
        msg = f"State is immutable: put another in force instead of setting {name}."
        raise AttributeError(msg)


_set_fields = State.__dict__["__dict__"].__set__

watched: set[int] = set()
"""The States with watchers or modes, in any thread: while none lives, nobody can put one in force. [NOTE fast-path]"""


class Attended(State):
    """A State with watchers or modes.  It may outlive its block: a task or a copied context puts it in force again."""

    __slots__ = ()

    def __del__(self) -> None:
        watched.discard(id(self))


class Watcher:
    """Told of what happens while it is in `State.watchers`; does nothing with it unless overridden."""

    __slots__ = ()

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        """`event` happened at the level of `owner`: an op ran on `detail`, a tensor was saved, and the like."""


_STATE: ContextVar[State] = ContextVar("minigrad.state", default=State())  # noqa: B039  it is immutable
current: Callable[[], State] = _STATE.get


class using:  # noqa: N801  reads as a statement
    """`with using(state):` runs a block under that state, and puts the old value back whatever happens."""

    __slots__ = ("new", "old")

    def __init__(self, new: State) -> None:
        self.new = new

    def __enter__(self) -> State:
        self.old = _STATE.get()
        _STATE.set(self.new)
        return self.new

    def __exit__(self, *error: object) -> None:
        _STATE.set(self.old)


class level(using):  # noqa: N801  reads as a statement
    """`with level(interpreter) as me:` puts one more level on the stack for a block."""

    __slots__ = ("me",)

    def __init__(self, me: Interpreter) -> None:
        self.me = me

    def __enter__(self) -> Interpreter:  # type: ignore[override]
        outside = _STATE.get()
        self.me.enter(outside)
        self.new = outside._replace(levels=(*outside.levels, self.me))
        using.__enter__(self)
        return self.me


def below(me: Interpreter) -> State:
    """The state one storey under a level: what ops that look at the stack (random ones) run in."""
    state = _STATE.get()
    return state._replace(levels=state.levels[:state.levels.index(me)])


def underneath(state: State, **changes: Any) -> State:
    """The state at the base: under every level, level 0 too, with nothing recorded and no hooks."""
    return state._replace(levels=(), grad_off=frozenset({None}), hooks=None, above=state, **changes)


def show(state: State | None = None) -> str:
    """The level stack for people: `base < vmap@1 < grad@2`. [NOTE the-stack-is-shown]"""
    return " < ".join(["base", *map(str, (state or _STATE.get()).levels)])


def tell(watchers: tuple[Watcher, ...], event: str, owner: Interpreter | None, subject: Any, detail: Any = None) -> None:
    """Let every watcher know."""
    for watcher in watchers:
        watcher.notice(event, owner, subject, detail)


def set_default_dtype(d: dtypes.dtype) -> None:
    """Set the type of new tensors made from python floats, from here on.  Source: torch.set_default_dtype."""
    _STATE.set(_STATE.get()._replace(default_dtype=d))


def get_default_dtype() -> dtypes.dtype:
    """Return the type of new tensors made from python floats.  Source: torch.get_default_dtype."""
    return _STATE.get().default_dtype


def set_default_device(device: Device | str) -> None:
    """Set where new tensors are made that name no device, from here on.  Source: torch.set_default_device."""
    _STATE.set(_STATE.get()._replace(default_device=Device(device)))


def get_default_device() -> Device:
    """Return where new tensors are made that name no device.  Source: torch.get_default_device."""
    return _STATE.get().default_device


def enter_device(device: Device) -> None:
    """Begin a `with device:` block; the State remembers what it found, for the device is one object for all threads."""
    found = _STATE.get()
    _STATE.set(found._replace(default_device=device, outside=found))


def leave_device() -> None:
    """End it, and put back what it found."""
    found = _STATE.get().outside
    assert found is not None
    _STATE.set(found)
