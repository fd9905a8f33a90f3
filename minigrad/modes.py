"""Modes: who is asked before something runs.

    program -> function modes, autocast -> levels, the top first -> level 0 -> dispatch modes -> kernel

Those ahead of the levels are asked about each call that the program writes, a composite as the one call it is; what runs for
it, rules of ops and of backward too, is no call of the program. [NOTE function-modes]
A dispatch mode stands at the base: it is given all that reaches it, runs it, or does something else. [NOTE dispatch-modes]

Upstream: DispatchKey::Python, torch/utils/_python_dispatch.py.
"""

from __future__ import annotations

from functools import update_wrapper
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .state import State, current, underneath, using, watched
from .subclass import SEEN, ask, classes
from .tensor import Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Callable

    from .op import Op


class Ahead:
    """One who is asked about calls."""

    __slots__ = ()

    def takes(self, call: Callable[..., Any]) -> bool:
        """Whether it has anything to do with this call."""
        return True

    def run(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a call that it takes, itself not asked meanwhile."""
        raise NotImplementedError

    def sees_into(self, call: Callable[..., Any]) -> bool:
        """Whether, of a call that it does not take, it is asked about the calls inside it."""
        return False


def meet(call: Callable[..., Any], body: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any],
         state: State) -> Any:
    """Ask those ahead about a call, the innermost first; nobody is asked about what runs for it in the end."""
    for who in reversed(state.ahead):
        if who.takes(call):
            with using(state._replace(ahead=tuple([other for other in state.ahead if other is not who]))):
                return who.run(call, args, kwargs)
    if any(who.sees_into(call) for who in state.ahead):
        return body(*args, **kwargs)
    with using(state._replace(ahead=())):
        return body(*args, **kwargs)


def published(f: Any) -> Any:
    """A function as programs call it: those ahead are asked about it.  A row asks by itself, where it meets the levels."""
    if type(f) is not FunctionType or hasattr(f, "op") or hasattr(f, "__published__"):
        return f
    found = _PUBLISHED.get(f)
    if found is None:
        def call(*args: Any, **kwargs: Any) -> Any:
            if watched and (state := current()).ahead:
                return meet(call, body, args, kwargs, state)
            return body(*args, **kwargs) if SEEN else f(*args, **kwargs)

        def body(*args: Any, **kwargs: Any) -> Any:
            types = classes((args, kwargs))
            return ask(call, args, kwargs, types) if types else f(*args, **kwargs)

        found = _PUBLISHED.setdefault(f, update_wrapper(call, f))
        found.__published__ = True  # type: ignore[attr-defined]
    return found


_PUBLISHED: dict[Any, Callable[..., Any]] = {}


def publish(names: dict[str, Any]) -> None:
    """Publish, where they stand, the functions of ops and of the module itself among the public names of a module.

    These are the names in its `__all__`, where it has one.
    """
    for name in names.get("__all__") or list(names):
        f = names.get(name)
        if type(f) is FunctionType and name[0] != "_" and f.__module__.startswith((_OPS, names["__name__"])):
            names[name] = published(f)


_OPS = __name__.replace("modes", "ops.")


def at_base(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], state: State) -> Any:
    """Have the innermost dispatch mode run a call on base tensors; it is off meanwhile, as levels, recording and hooks are."""
    *outer, mode = state.dispatch_modes
    with using(underneath(state, dispatch_modes=tuple(outer))):
        return mode.__torch_dispatch__(function, (), args, kwargs)


def row_at_base(op: Op, args: tuple[Any, ...], params: dict[str, Any], state: State) -> Any:
    """Have the innermost dispatch mode run a row; each output, which gets an edge later, must be a base tensor of its own."""
    out = at_base(op.call, args, params, state)
    if op.outs == 1:
        return _own(out, op, args)
    if not isinstance(out, (tuple, list)):
        raise _no_tensor(out, op)
    return tuple([_own(o, op, args) for o in out])


def _own(out: Any, op: Op, args: tuple[Any, ...]) -> Tensor:
    if type(out) is not Tensor or out.owner is not None:
        raise _no_tensor(out, op)
    return alias(out) if any(out is x for x in args) else out


def _no_tensor(out: Any, op: Op) -> UsageError:
    return UsageError(f"a dispatch mode returned {out!r} for {op.name}: it must return what the op would, "
                      f"{op.outs or 'several'} tensor{'s' * (op.outs != 1)} that no level owns. "
                      "[NOTE dispatch-modes]")
