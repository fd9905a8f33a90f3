"""What programs ask of a tensor, or of a dtype, beside its values; conversions by name; `data`.

Source: torch.Tensor, torch.finfo, torch.iinfo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import dtypes
from ..backend import CPU, NUMPY_DTYPE, address
from ..errors import UsageError
from ..state import get_default_dtype
from ..subclass import bare, dressed
from ..tensor import WRITES, Tensor, bottom, next_number, storage_of
from .creation import tensor, zeros
from .inplace import views_of
from .shape import detach
from .transfer import to

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..dtypes import dtype
    from .layout import memory_format


# ---------------------------------------------------------------- questions
class layout:  # noqa: N801  torch spells it so
    """How elements are found in memory; all tensors are `strided`.  Source: torch.layout."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "minigrad.strided"

    def __reduce__(self) -> str:
        return "strided"


strided = layout()
Size: type = tuple


def layout_of(x: Tensor) -> layout:
    """`strided`.  Source: torch.Tensor.layout."""
    return strided


def is_tensor(x: Any) -> bool:
    """Whether it is a tensor.  Source: torch.is_tensor."""
    return isinstance(x, Tensor)


def ndimension(x: Tensor) -> int:
    """The number of logical dimensions.  Source: torch.Tensor.ndimension."""
    return x.ndim


def numel(x: Tensor) -> int:
    """The number of logical elements.  Source: torch.numel."""
    return x.numel()


def is_floating_point(x: Tensor) -> bool:
    """Whether its dtype is a floating one.  Source: torch.is_floating_point."""
    return x.dtype.is_floating_point


def is_complex(x: Tensor) -> bool:
    """Whether its dtype is a complex one.  Source: torch.is_complex."""
    return x.dtype.is_complex


def is_signed(x: Tensor) -> bool:
    """Whether its dtype has negative numbers.  Source: torch.Tensor.is_signed."""
    return x.dtype.is_signed


def is_nonzero(x: Tensor) -> bool:
    """Whether its one element is not 0.  Source: torch.is_nonzero."""
    return bool(x)


def storage_offset(x: Tensor) -> int:
    """How many elements of the memory lie before its first one.  Source: torch.Tensor.storage_offset."""
    base = bottom(x)
    return (address(base.value) - address(storage_of(base).array)) // x.element_size()


def itemsize(x: Tensor) -> int:
    """Bytes of one element.  Source: torch.Tensor.itemsize."""
    return x.element_size()


def nbytes(x: Tensor) -> int:
    """Bytes of its elements.  Source: torch.Tensor.nbytes."""
    return x.numel() * x.element_size()


def is_cuda(x: Tensor) -> bool:
    """Whether it is on a GPU.  Source: torch.Tensor.is_cuda."""
    return x.device.kind == "cuda"


def as_subclass(x: Tensor, cls: type[Tensor]) -> Tensor:
    """A view of `x` of that subclass of Tensor, or of Tensor itself. [NOTE subclasses]  Source: torch.Tensor.as_subclass.

    Raises TypeError where `cls` is no subclass of Tensor.
    """
    if not issubclass(cls, Tensor):
        msg = f"Creating a Tensor subclass from a class that does not inherit from Tensor is not possible: {cls.__name__}"
        raise TypeError(msg)
    inside: Tensor = bare(x).view(x.shape)
    return inside if cls is Tensor else dressed(cls, inside)


def constructed(cls: type[Tensor], *data: Any) -> Tensor:
    """A tensor of that subclass: a view of a tensor, or numbers of the default dtype, or memory of some sizes (zeros).

    Source: torch.Tensor.__new__.
    """
    if len(data) == 1 and isinstance(data[0], Tensor):
        return as_subclass(data[0], cls)
    sizes = all(isinstance(n, int) for n in data)
    return dressed(cls, zeros(*data or (0,)) if sizes else tensor(*data, dtype=get_default_dtype()))


def constructible(cls: type[Tensor], /, **options: Any) -> None:
    """Let a new subclass of Tensor be called; Tensor itself is not, since all that makes tensors would be slower."""
    if "__new__" not in vars(cls):
        cls.__new__ = constructed  # type: ignore[method-assign,assignment]


def make_subclass(cls: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
    """A leaf of that subclass on the memory of `data`.  Source: torch.Tensor._make_subclass."""
    return dressed(cls, bare(data).detach().requires_grad_(require_grad))


def is_meta(x: Tensor) -> bool:
    """Whether it has no data.  Source: torch.Tensor.is_meta."""
    return x.device.kind == "meta"


def is_cpu(x: Tensor) -> bool:
    """Whether it is on the host.  Source: torch.Tensor.is_cpu."""
    return x.device is CPU


def retains_grad(x: Tensor) -> bool:
    """Whether it is no leaf, and backward() leaves its gradient in `.grad`.  Source: torch.Tensor.retains_grad."""
    hooks = None if x.is_leaf else getattr(x.node, "hooks", None)
    holder = None if hooks is None else hooks.retains.get(x.nr)
    return holder is not None and holder() is x


# ---------------------------------------------------------------- conversions
def _conversion(name: str, target: dtype) -> Callable[[Tensor], Tensor]:
    def convert(x: Tensor, memory_format: memory_format | None = None) -> Tensor:
        return to(x, target, memory_format=memory_format)

    convert.__name__ = name
    convert.__doc__ = f"As {target.name}.  Source: torch.Tensor.{name}."
    return convert


half = _conversion("half", dtypes.float16)
float = _conversion("float", dtypes.float32)  # noqa: A001  torch's names
double = _conversion("double", dtypes.float64)
cfloat = _conversion("cfloat", dtypes.complex64)
cdouble = _conversion("cdouble", dtypes.complex128)
bool_ = _conversion("bool", dtypes.bool_)
byte = _conversion("byte", dtypes.uint8)
char = _conversion("char", dtypes.int8)
short = _conversion("short", dtypes.int16)
int_ = _conversion("int", dtypes.int32)
long = _conversion("long", dtypes.int64)


def type_as(x: Tensor, other: Tensor) -> Tensor:
    """With the dtype and device of `other`.  Source: torch.Tensor.type_as."""
    return to(x, other)


_TYPE_NAMES = {dtypes.float16: "Half", dtypes.float32: "Float", dtypes.float64: "Double", dtypes.bool_: "Bool",
               dtypes.uint8: "Byte", dtypes.int8: "Char", dtypes.int16: "Short", dtypes.int32: "Int", dtypes.int64: "Long",
               dtypes.complex64: "ComplexFloat", dtypes.complex128: "ComplexDouble"}


def type_(x: Tensor, dtype: Any = None) -> Any:
    """As another dtype; without one, torch's old name of the type, like "torch.FloatTensor".  Source: torch.Tensor.type."""
    where = "" if x.device is CPU else f"{x.device.kind}."
    if dtype is None:
        return f"torch.{where}{_TYPE_NAMES[x.dtype]}Tensor"
    if isinstance(dtype, str):
        found = [d for d, name in _TYPE_NAMES.items() if dtype.endswith(f".{name}Tensor")]
        if not found:
            msg = f"invalid type: '{dtype}'"
            raise ValueError(msg)
        dtype = found[0]
    return to(x, dtype)


# ---------------------------------------------------------------- data
def get_data(x: Tensor) -> Tensor:
    """The memory of `x` without a graph; unlike torch's, a write to it is one that version checks see.

    Source: torch.Tensor.data.
    """
    return detach(x)


def set_data(x: Tensor, new: Tensor) -> None:
    """Let a base tensor hold the memory of another one: shape, dtype and device too; its place in a graph stays.

    What was saved of it keeps the old memory; a region that reads it, and would find the new one when it runs again, is
    refused that.  Raises UsageError inside a transform.
    """
    if x.owner is not None or new.owner is not None:
        msg = f"x.data = y is for tensors of no transform, found {x!r} and {new!r}: use x.copy_(y)."
        raise UsageError(msg)
    if x.node is not None and not new.dtype.differentiable:
        msg = f"data set to a tensor that requires gradients must be floating point or complex dtype, and this is {new.dtype}."
        raise UsageError(msg)
    x.store = storage_of(new)
    x.store.last_write = WRITES.latest = next_number()  # no new version, but another value [NOTE captured-tensors]
    x.value, x.kind, x.shape = new.value, new.kind, new.shape
    for view in [x, *[v for v, _ in views_of(x)]]:
        if view.extra is not None:
            view.extra.root, view.extra.steps, view.extra.views = None, (), None


data = property(get_data, set_data)


# ---------------------------------------------------------------- limits of dtypes
class finfo:  # noqa: N801  torch spells it so
    """The limits of a floating dtype.  Raises TypeError for another one.  Source: torch.finfo."""

    def __init__(self, type: dtype | None = None) -> None:  # noqa: A002  torch's name
        d = get_default_dtype() if type is None else type
        if not d.differentiable:
            msg = f"torch.finfo() requires a floating point input type. Use torch.iinfo to handle '{d}'"
            raise TypeError(msg)
        d = d.to_real()
        limits = CPU.xp.finfo(NUMPY_DTYPE[d])
        self.dtype = d.name
        self.bits = 8 * d.itemsize
        self.eps, self.max, self.min = limits.eps.item(), limits.max.item(), limits.min.item()
        self.tiny = self.smallest_normal = limits.smallest_normal.item()
        self.resolution = 10.0 ** -limits.precision

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, eps={self.eps:g}, "
                f"smallest_normal={self.smallest_normal:g}, tiny={self.tiny:g}, dtype={self.dtype})")


class iinfo:  # noqa: N801
    """The limits of an integer dtype.  Raises TypeError for another one.  Source: torch.iinfo."""

    def __init__(self, type: dtype) -> None:  # noqa: A002
        if type.category != dtypes.INT:
            msg = f"torch.iinfo() requires an integer input type. Use torch.finfo to handle '{type}'"
            raise TypeError(msg)
        self.dtype = type.name
        self.bits = 8 * type.itemsize
        self.max = (1 << (self.bits - type.is_signed)) - 1
        self.min = -self.max - 1 if type.is_signed else 0

    def __repr__(self) -> str:
        return f"iinfo(min={self.min:g}, max={self.max:g}, dtype={self.dtype})"
