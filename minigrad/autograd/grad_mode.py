"""Grad mode, which belongs to a level. [NOTE grad-mode-per-level]

`no_grad` turns recording off for every level that is on the stack where it is entered; a level entered inside it records.
`enable_grad` turns it on for the innermost grad level, and puts the levels below it back to what that level found.

Source: torch.no_grad, torch.enable_grad, torch.set_grad_enabled; NOTE [grad and vjp interaction with no_grad].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..scope import Scope
from ..state import State, current, using

if TYPE_CHECKING:
    from collections.abc import Callable


def with_grad_mode(state: State, mode: bool) -> State:
    """The state in which the innermost grad level records, and those below as it found them; or in which none does."""
    if not mode:
        return state._replace(grad_off=frozenset({None, *state.levels}))
    never = state.inference or frozenset()
    for me in reversed(state.levels):
        if not me.transparent:
            return state._replace(grad_off=me.grad_off_outside | never)
    return state._replace(grad_off=never)


def is_grad_enabled() -> bool:
    """Whether the innermost grad level records.  Source: torch.is_grad_enabled."""
    state = current()
    innermost = next((me for me in reversed(state.levels) if not me.transparent), None)
    return innermost not in state.grad_off


class no_grad(Scope):  # noqa: N801  torch spells it so
    """Record nothing at the levels on the stack.  Source: torch.no_grad."""

    mode = False

    def __new__(cls, f: Callable[..., Any] | None = None) -> Any:
        made = super().__new__(cls)
        if f is None:
            return made
        made.__init__()  # type: ignore[misc]
        return made(f)

    def __init__(self, f: Callable[..., Any] | None = None) -> None:
        super().__init__()

    def inside(self, outside: State) -> State:
        return with_grad_mode(outside, self.mode)


class enable_grad(no_grad):  # noqa: N801  torch spells it so
    """Record again at the innermost grad level.  Source: torch.enable_grad."""

    mode = True


class set_grad_enabled(Scope):  # noqa: N801  torch spells it so
    """Take effect at once, and as a context manager until its end.  Source: torch.set_grad_enabled."""

    def __init__(self, mode: bool) -> None:
        super().__init__()
        self.mode = bool(mode)
        self._before = using(with_grad_mode(current(), self.mode))
        self._before.__enter__()

    def inside(self, outside: State) -> State:
        return with_grad_mode(outside, self.mode)

    def __enter__(self) -> None:
        """Nothing: it is in force since it was made."""

    def __exit__(self, *error: Any) -> None:
        self._before.__exit__(*error)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        self._before.__exit__(None, None, None)
        return super().__call__(f)  # type: ignore[no-any-return]
