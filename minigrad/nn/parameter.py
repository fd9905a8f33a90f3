"""Tensors that a module owns: ordinary leaf tensors with a role, so that ops need not know of them.

Source: torch.nn.parameter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ops.creation import zeros
from ..ops.shape import detach
from ..tensor import LEAF, Tensor, alias, extra_of, next_number

if TYPE_CHECKING:
    from typing_extensions import TypeIs


class _Role(type):
    """A class whose instances are the tensors with that role."""

    def __instancecheck__(cls, x: object) -> TypeIs[Tensor]:
        return type(x) is Tensor and x.extra is not None and x.extra.role is not None and issubclass(x.extra.role, cls)


class Parameter(metaclass=_Role):
    """A leaf tensor on the memory of `data`, which a module that it is assigned to lists among its parameters.

    Source: torch.nn.Parameter.
    """

    title = "Parameter containing:\n"
    """What its text begins with."""

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Any:
        x = _with_role(data, cls)
        if x.owner is None and x.dtype.differentiable:
            x.node, x.nr = LEAF if requires_grad else None, next_number()  # inside a transform too: modules may be made there
            return x
        return x.requires_grad_(requires_grad)


class Buffer(metaclass=_Role):
    """A tensor on the memory of `data`, which a module that it is assigned to lists among its buffers.

    persistent: whether it is part of the module's state_dict.  Source: torch.nn.Buffer.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Any:
        return _with_role(data, cls if persistent else TransientBuffer)


class TransientBuffer(Buffer):
    """A buffer that no state_dict holds."""


def _with_role(data: Tensor | None, role: type) -> Tensor:
    x = zeros(0) if data is None else alias(data) if data.owner is None else detach(data)
    extra_of(x).role = role
    return x
