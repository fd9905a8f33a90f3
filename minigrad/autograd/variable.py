"""What tensors that require grad were called before they were tensors.

Source: torch.autograd.Variable.
"""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor


class _Tensors(type):
    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, Tensor)


class Variable(metaclass=_Tensors):
    """Every tensor is one; calling it gives another tensor with the same memory and no graph.

    Source: torch.autograd.Variable.
    """

    def __new__(cls, data: Tensor, requires_grad: bool = False) -> Any:
        if not isinstance(data, Tensor):
            msg = f"Variable data has to be a tensor, but got {type(data).__name__}"
            raise TypeError(msg)
        return data.detach().requires_grad_(requires_grad)
