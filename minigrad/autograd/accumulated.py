"""`.grad`: the gradient that backward() has accumulated in a tensor.

Source: torch.Tensor.grad.
"""

from __future__ import annotations

from ..errors import UsageError
from ..lines import warn
from ..tensor import Tensor, extra_of


def get(x: Tensor) -> Tensor | None:
    """The gradient that backward() accumulated here; asking a computed tensor that keeps none is warned of."""
    if x.owner is not None and x.owner.by_hand:
        return get(x.value)
    found = None if x.extra is None else x.extra.grad
    if found is None and not x.is_leaf and not x.retains_grad:
        warn("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be "
             "populated during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, "
             "use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access "
             "the leaf Tensor instead.")
    return found


def set_(x: Tensor, grad: Tensor | None) -> None:
    """Put a gradient of the same shape, dtype and device there, or None."""
    if x.owner is not None and x.owner.by_hand:
        set_(x.value, grad)
        return
    if grad is not None:
        _check(x, grad)
    extra_of(x).grad = grad


def _check(x: Tensor, grad: Tensor) -> None:
    if not isinstance(grad, Tensor):
        msg = f"assigned grad expected to be a Tensor or None but got grad of type {type(grad).__name__}"
        raise TypeError(msg)
    if grad is x:
        msg = "can't assign Variable as its own grad"
        raise UsageError(msg)
    if grad.shape != x.shape:
        msg = (f"attempting to assign a gradient of size '{list(grad.shape)}' to a tensor of size '{list(x.shape)}'. Please "
               "ensure that the gradient and the tensor are the same size")
        raise UsageError(msg)
    if grad.kind.dtype is not x.kind.dtype or grad.device is not x.device:
        msg = (f"attempting to assign a gradient of {grad.dtype} on {grad.device} to a tensor of {x.dtype} on {x.device}. "
               "Please ensure that the gradient and the tensor have the same dtype and device")
        raise UsageError(msg)


def delete(x: Tensor) -> None:
    """`del x.grad`: as None."""
    set_(x, None)
