"""What a tensor is at its outermost level.  Source: torch._C._functorch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..interpreters.grad import GradInterpreter
from ..interpreters.jvp import JvpInterpreter
from ..interpreters.vmap import VmapInterpreter
from ..state import current

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["dlevel", "get_unwrapped", "is_batchedtensor", "is_functorch_wrapped_tensor", "is_gradtrackingtensor",
           "maybe_current_level", "maybe_get_bdim", "maybe_get_level"]


def maybe_current_level() -> int | None:
    """Return the number of the innermost transform, or None."""
    return next((me.number for me in reversed(current().levels) if not me.by_hand), None)


def dlevel(x: Tensor) -> int:
    """Return the number of the level that a tensor belongs to, 0 for a base tensor."""
    return 0 if x.owner is None else x.owner.number


def is_batchedtensor(x: Tensor) -> bool:
    """Whether its outermost layer is vmap's."""
    return isinstance(x.owner, VmapInterpreter)


def is_gradtrackingtensor(x: Tensor) -> bool:
    """Whether its outermost layer is that of grad or jvp."""
    return isinstance(x.owner, (GradInterpreter, JvpInterpreter))


def is_functorch_wrapped_tensor(x: Tensor) -> bool:
    """Whether it has a layer at all."""
    return x.owner is not None


def get_unwrapped(x: Tensor) -> Tensor:
    """Return the tensor below its outermost layer.  Raises ValueError where it has none."""
    if x.owner is None:
        msg = "No wrappers present!"
        raise ValueError(msg)
    return x.value  # type: ignore[no-any-return]


def maybe_get_level(x: Tensor) -> int:
    """Return the number of the level it belongs to, or -1."""
    return -1 if x.owner is None else x.owner.number


def maybe_get_bdim(x: Tensor) -> int:
    """Return the dimension that its outermost layer maps over, or -1."""
    return x.note if isinstance(x.owner, VmapInterpreter) else -1
