"""Contexts under torch's names: each changes the State for a block, or for every call of a function. [NOTE state-is-a-value]"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any

from .state import State, current, using

if TYPE_CHECKING:
    from collections.abc import Callable


class Scope:
    """A context manager that changes the State, and a decorator; may be entered again, also while it is in force."""

    _scopes: list[using] | None = None
    """Its blocks that have not been left."""

    def inside(self, outside: State) -> State:
        """The state within it, made of the one that it finds."""
        raise NotImplementedError

    def __enter__(self) -> Any:
        scope = using(self.inside(current()))
        scope.__enter__()
        if self._scopes is None:  # a subclass need not call super().__init__()
            self._scopes = []
        self._scopes.append(scope)

    def __exit__(self, *error: Any) -> None:
        scopes = self._scopes
        assert scopes
        scope, now = scopes.pop(), current()
        if scope.new is not now and any(s.new is now for s in scopes):  # entered, and never left, in a block that has ended
            while scope.new is not now:
                scope = scopes.pop()
        scope.__exit__(*error)

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with using(self.inside(current())):
                return f(*args, **kwargs)
        return inside
