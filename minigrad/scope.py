"""Contexts under torch's names: each changes the State for a block, or for every call of a function. [NOTE state-is-a-value]"""

from __future__ import annotations

from functools import partial, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any

from .errors import UsageError
from .lines import warn
from .state import State, current, using

if TYPE_CHECKING:
    from collections.abc import Callable


CO_GENERATOR = 0x20
"""The flag of a generator function's code; `inspect`, which names it, takes 10 ms to import."""


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
        if not scopes:
            msg = f"{type(self).__name__} is left more often than it was entered. Leave it once each time: use a with block."
            raise UsageError(msg)
        scope, now = scopes.pop(), current()
        if scope.new is not now and any(s.new is now for s in scopes):  # entered, and never left, in a block that has ended
            while scope.new is not now:
                scope = scopes.pop()
        scope.__exit__(*error)

    def __call__(self, f: Callable[..., Any]) -> Any:
        if isinstance(f, type):
            warn("Decorating classes is deprecated and will be disabled in future versions. You should only decorate functions "
                 "or methods. To preserve the current behavior of class decoration, you can directly decorate the `__init__` "
                 "method and nothing else.", FutureWarning)
            f.__init__ = self(f.__init__)  # type: ignore[misc]
            return f
        if isinstance(f, FunctionType) and f.__code__.co_flags & CO_GENERATOR:
            return self._each_step(f)

        @wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with using(self.inside(current())):
                return f(*args, **kwargs)
        return inside

    def _each_step(self, f: Callable[..., Any]) -> Callable[..., Any]:
        """A generator function whose code runs within the context, each time, and never the code of who asks it."""
        @wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            made = f(*args, **kwargs)
            step = partial(made.send, None)
            while True:
                try:
                    with using(self.inside(current())):
                        given = step()
                except StopIteration as end:
                    return end.value
                try:
                    step = partial(made.send, (yield given))
                except GeneratorExit:
                    with using(self.inside(current())):
                        made.close()
                    raise
                except BaseException as error:  # noqa: BLE001  whatever is thrown in is thrown on
                    step = partial(made.throw, error)
        return inside
