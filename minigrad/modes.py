"""Modes: who is asked before something runs.

    program -> levels, the top first -> level 0 -> dispatch modes, the innermost first -> kernel

A dispatch mode stands at the base: it is given all that reaches it, runs it, or does something else. [NOTE dispatch-modes]

Upstream: DispatchKey::Python, torch/utils/_python_dispatch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .state import State, show, underneath, using
from .tensor import Tensor, alias

if TYPE_CHECKING:
    from collections.abc import Callable

    from .op import Op


def at_base(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], state: State) -> Any:
    """Have the innermost dispatch mode run a call on base tensors; it is off meanwhile, as levels, recording and hooks are."""
    *outer, mode = state.dispatch_modes
    with using(underneath(state, dispatch_modes=tuple(outer))):
        return mode.__torch_dispatch__(function, (), args, kwargs)


def row_at_base(op: Op, args: tuple[Any, ...], params: dict[str, Any], state: State) -> Any:
    """The same for a row, whose outputs get their edges at level 0 afterwards: each must be a base tensor of its own."""
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
                      f"{op.outs or 'several'} tensor{'s' * (op.outs != 1)} that no level owns. [level stack: {show()}] "
                      "[NOTE dispatch-modes]")
