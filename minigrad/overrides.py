"""Function modes under torch's names. [NOTE function-modes]"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .modes import Ahead
from .scope import Scope
from .state import State, current

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TorchFunctionMode"]


class TorchFunctionMode(Scope, Ahead):
    """Within it, each call that the program writes goes through `__torch_function__`.

    `func` is the function called, a composite as the one that it is; a method is the function of its name where there is one.
    `types` is empty; subclasses of Tensor are asked after it.  In its handler a mode is not in force, and none of what runs for
    `func` is a call of the program.  Source: torch.overrides.TorchFunctionMode.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func(*args, **kwargs)`, or do something else; return what it would."""
        raise NotImplementedError

    def run(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return self.__torch_function__(call, (), args, kwargs)

    def inside(self, outside: State) -> State:
        return outside._replace(ahead=(*outside.ahead, self))

    def __enter__(self) -> Any:
        super().__enter__()
        return self


def _get_current_function_mode_stack() -> list[Any]:
    """The function modes in force, the innermost last; devices that were entered, such modes in torch, come first."""
    state = current()
    modes = [who for who in state.ahead if isinstance(who, TorchFunctionMode)]
    return [*_entered(state), *modes]


def _entered(state: State) -> list[Any]:
    return [] if state.outside is None else [*_entered(state.outside), state.default_device]


def _get_current_function_mode() -> Any:
    """The innermost function mode."""
    stack = _get_current_function_mode_stack()
    return stack[-1] if stack else None


class DisableTorchFunctionSubclass(Scope):
    """Within it, no subclass of Tensor is asked.  Source: torch._C.DisableTorchFunctionSubclass."""

    def inside(self, outside: State) -> State:
        return outside._replace(plain=True)


class DisableTorchFunction(Scope):
    """Within it, no function mode is asked, and no subclass of Tensor.  Source: torch._C.DisableTorchFunction."""

    def inside(self, outside: State) -> State:
        others = tuple([who for who in outside.ahead if not isinstance(who, TorchFunctionMode)])
        return outside._replace(plain=True, ahead=others)
