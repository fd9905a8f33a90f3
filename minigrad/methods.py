"""The methods of Tensor, and where they live: each is imported when a program first reaches it.

Those that are functions, too, are at the head of `__init__.pyi`; here are the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .names import FINDING, METHODS, held, published
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable


class Late:
    """A method that nobody has reached yet: who does finds it, and from then on it stands in this place itself."""

    __slots__ = ("form", "found", "home", "name")

    def __init__(self, name: str, home: tuple[str, str], form: Callable[[Any, str], Any]) -> None:
        self.name = name
        self.home = home
        self.form = form
        self.found: Any = None

    def arrive(self) -> Any:
        with FINDING:
            if self.found is None:
                self.found = self.form(held(*self.home), self.name)
                setattr(Tensor, self.name, self.found)
        return self.found

    def __get__(self, x: Tensor | None, cls: type[Tensor]) -> Any:
        return self.arrive().__get__(x, cls)


class LateProperty(Late):
    """A property that nobody has reached yet, which may be assigned to."""

    __slots__ = ()

    def __set__(self, x: Tensor, value: Any) -> None:
        self.arrive().__set__(x, value)

    def __delete__(self, x: Tensor) -> None:
        self.arrive().__delete__(x)


# ---------------------------------------------------------------- what a function becomes
def _method(f: Any, name: str) -> Any:
    f = published(f)
    if f.__name__ not in vars(Tensor):
        f.__name__ = name
    return f


def _in_place(f: Any, name: str) -> Any:
    return published(held(".ops.inplace", "in_place")(f, name, reads_input=name not in _IN_PLACE_UNREAD.split()))


def _in_place_view(f: Any, name: str) -> Any:
    return published(held(".ops.inplace", "in_place_view")(f, name))


def _property(f: Any, name: str) -> property:
    return f if isinstance(f, property) else property(f)


def _class_method(f: Any, name: str) -> Any:
    return classmethod(f)


def _static_method(f: Any, name: str) -> Any:
    return staticmethod(f)


# ---------------------------------------------------------------- where they live; `name=original` where it is another name
_FUNCTIONS = {
    ".autograd": "backward=tensor_backward",
    ".autograd.hooks": "register_hook register_post_accumulate_grad_hook retain_grad",
    ".conversion": "__array__=array __bool__=boolean __complex__=complex_number __deepcopy__=deepcopied __dlpack__=dlpack "
                   "__dlpack_device__=dlpack_device __float__=floating __format__=formatted __index__=index __int__=integer "
                   "__reduce__=reduced __repr__=text item numpy storage stride tolist",
    ".operators": "__abs__ __add__ __and__ __contains__ __eq__ __floordiv__ __ge__ __getitem__ __gt__ __iadd__ __iand__ "
                  "__ifloordiv__ __ilshift__ __imod__ __imul__ __invert__ __ior__ __ipow__ __irshift__ __isub__ __iter__ "
                  "__itruediv__ __ixor__ __le__ __lshift__ __lt__ __matmul__ __mod__ __mul__ __ne__ __neg__ __or__ __pos__ "
                  "__pow__ __radd__ __rand__ __rdiv__ __rfloordiv__ __rlshift__ __rmatmul__ __rmod__ __rmul__ __ror__ __rpow__ "
                  "__rrshift__ __rshift__ __rsub__ __rtruediv__ __rxor__ __setitem__ __sub__ __truediv__ __xor__",
    ".ops.choice": "where=where_of",
    ".ops.creation": "new_empty=new_zeros new_full new_ones new_tensor new_zeros",
    ".ops.distributions": "polygamma=polygamma_of",
    ".ops.forms": "unfold",
    ".ops.indexing": "masked_fill_",
    ".ops.inplace": "copy_",
    ".ops.layout": "contiguous is_contiguous",
    ".ops.linalg": "ger=outer",
    ".ops.misc": "as_subclass bool=bool_ byte cdouble cfloat char double float half int=int_ long "
                 "ndimension nelement=numel short storage_offset type=type_ type_as",
    ".ops.pieces": "hardshrink prelu",
    ".ops.random": "bernoulli_ exponential_ normal_ random_ uniform_",
    ".ops.rearrange": "expand_as fill_diagonal_ repeat reshape_as view_as",
    ".ops.reduction": "sum_to_size",
    ".ops.shape": "expand view",
    ".ops.strides": "new_empty_strided resize_",
    ".ops.transfer": "cpu is_pinned pin_memory to",
    ".views": "_is_view=is_view",
}
_PROPERTIES = {
    ".autograd.accumulated": "grad",
    ".ops.linalg": "mH=adjoint",
    ".ops.misc": "data is_cpu is_cuda is_meta itemsize layout=layout_of nbytes retains_grad",
    ".ops.pointwise": "imag real",
    ".ops.rearrange": "H=matrix_H T=numpy_T mT",
    ".views": "_base=base_of",
}

_CLASS_METHODS = {".ops.misc": "__init_subclass__=constructible", ".subclass": "__torch_function__=inherited"}
_STATIC_METHODS = {".ops.misc": "_make_subclass=make_subclass"}

# ---------------------------------------------------------------- f_, made of the method f; functions, too: __init__.pyi
_IN_PLACE = """
    absolute_ atan2_ bitwise_and_ bitwise_left_shift_ bitwise_not_ bitwise_or_ bitwise_right_shift_ bitwise_xor_ copysign_
    cumprod_ digamma_ div_ divide_ eq_ erfinv_ float_power_ floor_divide_ fmod_ ge_ gt_ heaviside_ hypot_ index_reduce_ le_
    lerp_ lgamma_ logical_and_ logical_not_ logical_or_ logical_xor_ lt_ mul_ multiply_ mvlgamma_ ne_ nextafter_
    polygamma_ pow_ remainder_ renorm_ scatter_reduce_ sgn_ sign_ true_divide_
"""
_IN_PLACE_UNREAD = """
    add_ addbmm_ addcdiv_ addcmul_ addmm_ addmv_ addr_ baddbmm_ cumsum_ index_add_ index_copy_ index_fill_ masked_scatter_
    put_ round_ scatter_ scatter_add_ sub_ subtract_ tril_ triu_
"""
"""Composites whose derivatives do not read what is overwritten, so that no copy of it is kept; rows say so themselves."""

_IN_PLACE_VIEWS = "squeeze_ swapaxes_ swapdims_ t_ transpose_ unsqueeze_"


def _homes(table: dict[str, str]) -> dict[str, tuple[str, str]]:
    """Of every name in a table its module, and the name it has there."""
    entries = [(module, *entry.partition("=")) for module, names in table.items() for entry in names.split()]
    return {name: (module, original or name) for module, name, _, original in entries}


def _fill() -> None:
    """Put every method in its place."""
    homes = METHODS | _homes(_FUNCTIONS)
    in_place = [name for name, (module, _) in METHODS.items() if module == ".methods"]
    in_place += [*_IN_PLACE.split(), *_IN_PLACE_UNREAD.split()]
    tables = (
        (Late, homes, _method),
        (Late, {name: homes[name[:-1]] for name in in_place}, _in_place),
        (Late, {name: homes[name[:-1]] for name in _IN_PLACE_VIEWS.split()}, _in_place_view),
        (LateProperty, _homes(_PROPERTIES), _property),
        (Late, _homes(_CLASS_METHODS), _class_method),
        (Late, _homes(_STATIC_METHODS), _static_method),
    )
    for late, table, form in tables:
        for name, home in table.items():
            setattr(Tensor, name, late(name, home, form))


_fill()


def __getattr__(name: str) -> Any:
    """A method of Tensor, as the function that it is."""
    return getattr(Tensor, name)
