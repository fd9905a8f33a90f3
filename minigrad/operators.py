"""The operators of Tensor: the rows themselves where they can be, for speed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .ops import choice, linalg, pointwise
from .ops.inplace import in_place
from .ops.subscript import contains, getitem, iterate, setitem

if TYPE_CHECKING:
    from .tensor import Tensor


def _reversed(f: Any) -> Any:
    return lambda x, other: f(other, x)


def _or_not_implemented(f: Any) -> Any:
    """`f`, that leaves what is neither tensor nor number to python: unequal, and without an order."""
    def compare(x: Tensor, other: Any) -> Any:
        try:
            return f(x, other)
        except TypeError:
            if hasattr(other, "__array__"):  # python would say unequal where the elements were meant
                raise
            return NotImplemented
    compare.__name__ = f.__name__
    return compare


def _reciprocal_times(x: Tensor, other: Any) -> Any:
    return pointwise.reciprocal(x) * other  # what torch saves


_reciprocal_times.__name__ = "__rdiv__"  # torch's name of both

__add__ = __radd__ = pointwise.add_row
__sub__ = pointwise.sub_row
__rsub__ = _reversed(pointwise.sub_row)
__mul__ = __rmul__ = pointwise.mul
__truediv__ = pointwise.true_div
__rdiv__ = __rtruediv__ = _reciprocal_times
__floordiv__ = pointwise.floor_divide
__rfloordiv__ = _reversed(pointwise.floor_divide)
__mod__ = pointwise.remainder
__rmod__ = _reversed(pointwise.remainder)
__pow__ = pointwise.pow
__rpow__ = _reversed(pointwise.pow)
__neg__ = pointwise.neg
__pos__ = lambda x: x
__abs__ = pointwise.abs
__matmul__ = _or_not_implemented(linalg.matmul)
__rmatmul__ = _reversed(linalg.matmul)
__invert__ = choice.bitwise_not
__and__ = __rand__ = choice.bitwise_and
__or__ = __ror__ = choice.bitwise_or
__xor__ = __rxor__ = choice.bitwise_xor
__lshift__ = choice.bitwise_left_shift
__rshift__ = choice.bitwise_right_shift
__rlshift__ = _reversed(choice.bitwise_left_shift)
__rrshift__ = _reversed(choice.bitwise_right_shift)
__eq__ = _or_not_implemented(choice.eq)
__ne__ = _or_not_implemented(choice.ne)
__lt__ = _or_not_implemented(choice.lt)
__le__ = _or_not_implemented(choice.le)
__gt__ = _or_not_implemented(choice.gt)
__ge__ = _or_not_implemented(choice.ge)
__getitem__, __setitem__, __iter__, __contains__ = getitem, setitem, iterate, contains

__iadd__ = in_place(pointwise.add_row, "add_")
__isub__ = in_place(pointwise.sub_row, "sub_")
__imul__ = in_place(pointwise.mul, "mul_")
__itruediv__ = in_place(pointwise.true_div, "div_")
__ifloordiv__ = in_place(pointwise.floor_divide, "floor_divide_")
__imod__ = in_place(pointwise.remainder, "remainder_")
__ipow__ = in_place(pointwise.pow, "pow_")
__iand__ = in_place(choice.bitwise_and, "bitwise_and_")
__ior__ = in_place(choice.bitwise_or, "bitwise_or_")
__ixor__ = in_place(choice.bitwise_xor, "bitwise_xor_")
__ilshift__ = in_place(choice.bitwise_left_shift, "bitwise_left_shift_")
__irshift__ = in_place(choice.bitwise_right_shift, "bitwise_right_shift_")
