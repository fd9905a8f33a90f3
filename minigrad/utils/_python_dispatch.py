"""Dispatch modes under torch's names. [NOTE dispatch-modes]"""

from __future__ import annotations

from typing import Any

from ..scope import Scope
from ..state import State, current

__all__ = ["TorchDispatchMode"]


class TorchDispatchMode(Scope):
    """Within it, all that reaches the base goes through `__torch_dispatch__`.

    Source: torch.utils._python_dispatch.TorchDispatchMode.

    `func` is the function of a row (`func.op` is the row, `func.__name__` its name; params as keywords, always all of them),
    or one of the three that are no rows: `copy_(x, new)`, which every in-place op comes to, and `item(x)` and `tolist(x)`, by
    which python looks at values.  Calling it goes on to the next mode, at last to the kernel.

    All arguments and results are base tensors, below every level and not recorded; the very objects, so that what an op
    returned is what a later op is given, unless the program's tensor was taken off its layers or saved and unpacked meanwhile:
    that makes another handle on the same memory.  So a value is known by its memory, `(x.untyped_storage(), address and
    strides and shape of its array, x.dtype)`, and by `x._version`, which grows with each `copy_` to that memory.  Nothing but
    the functions seen here makes memory or writes to it; memory that none of them made comes from outside, as that does which
    save_on_cpu brings back to a device.
    """

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run `func(*args, **kwargs)`, or do something else; return what it would."""
        raise NotImplementedError

    def inside(self, outside: State) -> State:
        return outside._replace(dispatch_modes=(*outside.dispatch_modes, self))

    def __enter__(self) -> Any:
        super().__enter__()
        return self


def _get_current_dispatch_mode() -> Any:
    """The innermost dispatch mode, or None."""
    modes = current().dispatch_modes
    return modes[-1] if modes else None


class _disable_current_modes(Scope):  # noqa: N801  torch spells it so
    """Within it, nothing is given to a dispatch mode.  Source: torch.utils._python_dispatch._disable_current_modes."""

    def inside(self, outside: State) -> State:
        return outside._replace(dispatch_modes=())
