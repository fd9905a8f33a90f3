"""The methods of Tensor: functions whose first argument is the tensor.  Written out, so that a reader can jump."""

from __future__ import annotations

from typing import Any

from . import autograd
from .ops import creation, inplace, pointwise, reduction, shape, transfer
from .ops.inplace import in_place
from .tensor import Tensor

T: Any = Tensor


def _reversed(f: Any) -> Any:
    return lambda x, other: f(other, x)


# ---------------------------------------------------------------- operators
T.__add__ = pointwise.add_
T.__radd__ = _reversed(pointwise.add_)
T.__sub__ = pointwise.sub_
T.__rsub__ = _reversed(pointwise.sub_)
T.__mul__ = pointwise.mul
T.__rmul__ = _reversed(pointwise.mul)
T.__truediv__ = pointwise.true_div
T.__rtruediv__ = _reversed(pointwise.true_div)
T.__neg__ = pointwise.neg
T.__getitem__ = lambda x, index: shape.basic_index(x, index if isinstance(index, tuple) else (index,))

T.sin = pointwise.sin
T.cos = pointwise.cos
T.exp = pointwise.exp
T.mul = pointwise.mul
T.sum = reduction.sum
T.mean = reduction.mean
T.reshape = shape.reshape
T.expand = shape.expand
T.detach = shape.detach
T.clone = shape.clone
T.to = transfer.to
T.sin_ = in_place(pointwise.sin, "sin_")
T.mul_ = in_place(pointwise.mul, "mul_")
T.add_ = in_place(pointwise.add_, "add_")
T.zero_ = inplace.zero_
T.copy_ = inplace.copy_
_ = creation

T.backward = autograd.tensor_backward
T.register_hook = autograd.register_hook
T.retain_grad = autograd.retain_grad
T.register_post_accumulate_grad_hook = autograd.register_post_accumulate_grad_hook
