"""Leaving minigrad: a tensor as text, as an array, as python numbers, and through pickle.

A program may look at one value; a batch has many, so under vmap each of these is an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .autograd.grad_mode import is_grad_enabled
from .backend import Array, array_text
from .errors import LevelError, UsageError, no_dimension
from .modes import at_base
from .ops.creation import tensor
from .ops.shape import clone, detach
from .state import current, tell
from .tensor import LEAF, extra_of, next_number
from .views import strides_of

if TYPE_CHECKING:
    from .storage import Storage
    from .tensor import Tensor


def logical(x: Tensor, what: str) -> Array:
    """The array that a program may look at.  Raises LevelError under vmap, where there is one for each sample."""
    return base(x, what).value


def base(x: Tensor, what: str) -> Tensor:
    """The tensor at the bottom, where python may look at it."""
    while x.owner is not None:
        if not x.owner.readable:
            msg = (f"vmap: It looks like you're calling .{what}() on a Tensor of {x.owner}. It holds a batch, and "
                   "python can look at one value only: use tensor operations (where, clamp, ...) instead.")
            raise LevelError(msg)
        x = x.value
    return x


def seen(base: Tensor) -> Array:
    """The elements of a base tensor on the host, after all that its device was asked for."""
    return base.device.look(base.value)


def _read(x: Tensor, what: str) -> Tensor:
    """The tensor at the bottom, whose array leaves minigrad: whoever watches is told."""
    found = base(x, what)
    tell(current().watchers, "read", None, found, what)
    return found


def text(x: Tensor) -> str:
    """Values, or the layers around them: `grad@2*(vmap@1(tensor(...), bdim=0))`, a star where the layer has an edge."""
    title = "" if x.extra is None else getattr(x.extra.role, "title", "")
    if x.owner is not None:
        return f"{title}{x.owner}{'*' if x.node is not None else ''}({x.value!r}{x.owner.describe(x)})"
    more = "" if x.device.kind == "cpu" else f", device='{x.device}'"
    if x.device.readable:
        host = seen(x)
        values = array_text(host).replace("\n", "\n       ") if host.ndim else str(host.item())
    else:
        values, more = "...", f"{more}, size={x.shape}"
    if x.dtype.name not in ("float32", "int64", "bool"):
        more += f", dtype={x.dtype}"
    if x.node is LEAF:
        more += ", requires_grad=True"
    elif x.node is not None:
        more += f", grad_fn=<{x.grad_fn.name()}>" if x.grad_fn is not None else ", requires_grad=True"
    return f"{title}tensor({values}{more})"


def stride(x: Tensor, dim: int | None = None) -> Any:
    """Strides in elements; under vmap those of a sample.  Source: torch.Tensor.stride."""
    strides = strides_of(x)
    if dim is not None and not -x.ndim <= dim < x.ndim:
        raise no_dimension(dim, x.ndim)
    return strides if dim is None else strides[dim]


def numpy(x: Tensor, *, force: bool = False) -> Array:
    """The host array itself, of the same memory and strides; with force whatever has to be left or copied for it.

    Raises UsageError where it requires grad, unless under no_grad, and TypeError where it lives on a device.
    Source: torch.Tensor.numpy.
    """
    if force:
        x = x.detach().cpu()
    if x.requires_grad and is_grad_enabled():
        msg = "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
        raise UsageError(msg)
    if x.device.kind != "cpu":
        msg = f"can't convert a tensor on {x.device} to numpy. Use Tensor.cpu() to copy it to the host first."
        raise TypeError(msg)
    return _read(x, "numpy").value


def array(x: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """As numpy asks for it."""
    array = x.numpy()
    return array if dtype is None else array.astype(dtype)


def tolist(x: Tensor) -> Any:
    """The elements as python lists, nested once for each dimension, or a number.  Source: torch.Tensor.tolist."""
    found, state = base(x, "tolist"), current()
    return at_base(tolist, (found,), {}, state) if state.dispatch_modes else seen(found).tolist()


def item(x: Tensor) -> Any:
    """The one element, as a python number.  Raises UsageError where there are more, or none.  Source: torch.Tensor.item."""
    found, state = base(x, "item"), current()
    if found.value.size != 1:
        msg = f"a Tensor with {found.value.size} elements cannot be converted to Scalar"
        raise UsageError(msg)
    return at_base(item, (found,), {}, state) if state.dispatch_modes else seen(found).item()


def boolean(x: Tensor) -> bool:
    """The truth of the one element."""
    if x.numel() != 1:
        msg = f"Boolean value of Tensor with {'more than one value' if x.numel() else 'no values'} is ambiguous"
        raise UsageError(msg)
    return bool(x.item())


def _only(x: Tensor) -> Any:
    if x.numel() != 1:
        msg = "only one element tensors can be converted to Python scalars"
        raise ValueError(msg)
    return x.item()


def floating(x: Tensor) -> float:
    """The one element as a float."""
    return float(_only(x))


def integer(x: Tensor) -> int:
    """The one element as an int."""
    return int(_only(x))


def complex_number(x: Tensor) -> complex:
    """The one element as a complex number."""
    return complex(_only(x))


def index(x: Tensor) -> int:
    """The one element of an integer tensor, where python wants an index."""
    if x.dtype.is_floating_point or x.dtype.is_complex or x.numel() != 1:
        msg = "only integer tensors of a single element can be converted to an index"
        raise TypeError(msg)
    return int(x.item())


def formatted(x: Tensor, spec: str) -> str:
    """The one element in a format, or the text."""
    return format(x.item(), spec) if spec and x.ndim == 0 else repr(x)


def dlpack(x: Tensor, **kwargs: Any) -> Any:
    """The array itself for DLPack, shared.  Raises where numpy() does, but not for a CUDA device."""
    if x.requires_grad:
        msg = "Can't export tensors that require gradient, use tensor.detach()"
        raise BufferError(msg)
    if x.device.kind == "sim":
        msg = f"can't export a tensor on {x.device}: nobody else knows that memory. Copy it to the host: Tensor.cpu()."
        raise BufferError(msg)
    return logical(x, "__dlpack__").__dlpack__(**kwargs)


def dlpack_device(x: Tensor) -> Any:
    """Where the array is, for DLPack."""
    return logical(x, "__dlpack_device__").__dlpack_device__()


def reduced(x: Tensor) -> Any:
    """What pickle keeps: data, device and whether it requires grad, which makes it a leaf."""
    return _unpickled, (seen(_read(x, "pickle")), str(x.device), x.requires_grad, x.extra and x.extra.role)


def deepcopied(x: Tensor, memo: dict[int, Any]) -> Tensor:
    """A copy of a leaf.  Raises UsageError for a computed tensor."""
    if not x.is_leaf:
        msg = "only leaf tensors can be deep-copied: a copy of a computed tensor would have no graph. Use clone()."
        raise UsageError(msg)
    new: Tensor = clone(detach(base(x, "deepcopy")))
    new.node = x.node
    new.nr = next_number()
    if x.extra is not None:
        extra_of(new).role = x.extra.role
        new.grad = None if x.grad is None else deepcopied(x.grad, memo)
    memo[id(x)] = new
    return new


def _unpickled(array: Array, device: str, requires_grad: bool, role: type | None) -> Tensor:
    x = tensor(array, device=device, requires_grad=requires_grad)
    if role is not None:
        extra_of(x).role = role
    return x


def storage(x: Tensor) -> TypedStorage:
    """The memory of `x`, and of all its views, as elements.  Source: torch.Tensor.storage."""
    return TypedStorage(x)


class TypedStorage:
    """The memory of a tensor as elements of its type; `len` is their number.  Source: torch.TypedStorage."""

    __slots__ = ("_storage", "dtype")

    def __init__(self, x: Tensor) -> None:
        self._storage = x.untyped_storage()
        self.dtype = x.dtype

    def __len__(self) -> int:
        return self.nbytes() // self.dtype.itemsize

    def size(self) -> int:
        """The number of elements."""
        return len(self)

    def nbytes(self) -> int:
        """Bytes of the memory."""
        return self._storage.nbytes()

    def data_ptr(self) -> int:
        """Address of the memory."""
        return self._storage.data_ptr()

    def untyped(self) -> Storage:
        """The memory that the tensor and its views share."""
        return self._storage
