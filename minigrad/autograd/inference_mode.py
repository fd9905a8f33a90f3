"""Inference mode under torch's names. [NOTE inference-mode]"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..scope import Scope
from ..state import State, current
from .grad_mode import with_grad_mode

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor


class inference_mode(Scope):  # noqa: N801  torch spells it so
    """Within it no level on the stack records, not under enable_grad either, and what is made is an inference tensor.

    Such a tensor may be read anywhere, written to inside only, and saved for a backward nowhere.  With `mode=False` the block
    is one outside of inference mode.  Source: torch.autograd.grad_mode.inference_mode.
    """

    def __new__(cls, mode: bool | Callable[..., Any] = True) -> Any:
        made = super().__new__(cls)
        if isinstance(mode, bool):
            return made
        made.mode = True
        return made(mode)

    def __init__(self, mode: bool = True) -> None:
        self.mode = mode

    def inside(self, outside: State) -> State:
        if not self.mode:
            return with_grad_mode(outside._replace(inference=None), mode=True)
        levels: frozenset[Any] = frozenset({None, *outside.levels})
        return outside._replace(grad_off=levels, inference=levels)


def is_inference_mode_enabled() -> bool:
    """Whether what is made here is an inference tensor.  Source: torch.is_inference_mode_enabled."""
    return current().inference is not None


def is_inference(x: Tensor) -> bool:
    """Whether it is an inference tensor, or a view of one.  Source: torch.is_inference."""
    return x.kind.inference is not None
