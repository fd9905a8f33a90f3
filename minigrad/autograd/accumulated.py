"""`.grad`: the gradient that backward() has accumulated in a tensor.

Source: torch.Tensor.grad; torch/csrc/autograd/functions/accumulate_grad.h.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import is_dense, is_writable
from ..errors import UsageError
from ..lines import warn
from ..ops.inplace import laid_out
from ..state import current, using, watched
from ..tensor import Tensor, extra_of, fresh, storage_of, written
from ..views import order_of
from .replaced import replaced

if TYPE_CHECKING:
    from ..backend import Array


def get(x: Tensor) -> Tensor | None:
    """The gradient that backward() accumulated here, of the same shape, dtype and device, or None.

    Asking a computed tensor that keeps none is warned of.  Source: torch.Tensor.grad.
    """
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


grad = property(get, set_, delete)


def deposit(leaf: Tensor, ct: Tensor, *, create_graph: bool) -> None:
    """Accumulate a gradient in `leaf.grad`, with the hooks around that; not in a leaf that was made a constant since."""
    extra = extra_of(leaf)
    if extra.node_hooks is not None:
        for pre in list(extra.node_hooks.pre):
            (ct,) = replaced(pre, (ct,), pre((ct,)))
        if ct is None:
            return
    if leaf.node is not None:
        extra.grad = _first(leaf, ct) if extra.grad is None else _sum(extra.grad, ct, create_graph=create_graph)
    for hook in list(extra.post_hooks or ()):
        if hook(leaf) is not None:
            msg = f"post accumulate grad hooks should return None. {hook!r} returned something."
            raise UsageError(msg)
    if extra.node_hooks is not None:
        for post in list(extra.node_hooks.post):
            replaced(post, (), post((), (ct,)))


def _sum(grad: Tensor, ct: Tensor, *, create_graph: bool) -> Tensor:
    """The gradient so far, to which this one is added; where it stands, unless that is recorded."""
    if create_graph or ct.node is not None:
        return grad + ct
    if ct.owner is grad.owner is None and ct.kind is grad.kind and ct.shape == grad.shape and is_writable(grad.value) and (
            not watched or not current().dispatch_modes):
        ct.device.kernel("add")(grad.value, ct.value, out=grad.value)  # no op: a region does not read it
        written(grad)
    else:
        with using(current()._replace(watchers=())):
            grad.add_(ct)
    return grad


def _first(leaf: Tensor, ct: Tensor) -> Tensor:
    """The gradient as the leaf's own: in the leaf's layout, taken over where nobody else knows its memory."""
    if ct.owner is leaf.owner is None and not _lies_as(ct.value, leaf.value):
        return _in_order(ct, leaf)
    shared = ct.owner is not None or ct.store is not None or ct.device.counted
    own: Tensor = ct.clone() if shared else ct
    if own.owner is None:
        storage_of(own)
    return own


def _lies_as(array: Array, leaf: Array) -> bool:
    """Whether a gradient has the order of its leaf's elements, without gaps: the gradient layout contract."""
    if leaf.flags.c_contiguous or not is_dense(leaf):
        return bool(array.flags.c_contiguous)
    return all(a == b or n == 1 for a, b, n in zip(array.strides, leaf.strides, leaf.shape, strict=True))


def _in_order(ct: Tensor, leaf: Tensor) -> Tensor:
    """A copy of a gradient in that order."""
    dense = is_dense(leaf.value)
    if ct.node is None and not watched:
        return fresh(ct.device.kernel(_copied)(ct.value, leaf.value, order="K" if dense else "C"), ct.dtype, ct.device)
    copy = laid_out(ct, order_of(leaf) if dense else tuple(range(leaf.ndim)))
    copy.extra = None  # nobody knows the tensor it is a view of
    return copy


def _copied(xp: Any, array: Array, leaf: Array, order: str) -> Array:
    made = xp.empty_like(leaf, order=order)
    made[...] = array
    return made
