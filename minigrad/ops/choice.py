"""Rows that compare elements and choose between them: truth values and bits, where, extremes, clamp, nan_to_num.

Of these only the last four have a derivative, and theirs only pass a cotangent on or stop it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import CPU, HOST_SCALAR, NUMPY_DTYPE
from ..dtypes import BOOL, COMPLEX, FLOAT, INT, bool_, dtype, of_scalar
from ..dtypes import result_type as _result_type
from ..errors import UsageError
from ..row import OpFunction, row
from ..state import current
from ..tensor import Tensor
from .batching import elementwise, same_bdim
from .creation import checked, tensor

if TYPE_CHECKING:
    from collections.abc import Callable

# what rows refuse: torch has no such kernel
NO_COMPLEX = {COMPLEX: ""}
NO_BOOL_OR_COMPLEX = {BOOL: "", COMPLEX: ""}
NO_BOOL_OR_INT = {BOOL: "", INT: ""}
ONLY_FLOAT = {BOOL: "", INT: "", COMPLEX: ""}
ONLY_INT = {FLOAT: "", COMPLEX: ""}


def result_type(x: Any, y: Any) -> dtype:
    """The dtype of an op on two tensors or numbers.  Source: torch.result_type."""
    tensors = [a for a in (x, y) if isinstance(a, Tensor)]
    numbers = [of_scalar(a.item() if isinstance(a, HOST_SCALAR) else a, current().default_dtype)
               for a in (x, y) if not isinstance(a, Tensor)]
    return _result_type([a.dtype for a in tensors if a.shape], [a.dtype for a in tensors if not a.shape], numbers)


# ---------------------------------------------------------------- truth: bool tensors, and bits; nothing to differentiate
def _truth(name: str, kernel: Any, *, refuses: dict[int, str] | None = None, promote: str | None = "arith") -> OpFunction:
    return row(name, kernel, promote=promote, vjp=None, jvp=None, batch=elementwise, elementwise=True, refuses=refuses)


eq = _truth("eq", "equal")
ne = _truth("ne", "not_equal")
lt = _truth("lt", "less", refuses=NO_COMPLEX)
le = _truth("le", "less_equal", refuses=NO_COMPLEX)
gt = _truth("gt", "greater", refuses=NO_COMPLEX)
ge = _truth("ge", "greater_equal", refuses=NO_COMPLEX)


def _of_truths(name: str) -> Any:
    """A kernel of which of two arguments are zero; cupy's know no complex numbers."""
    return lambda xp, x0, x1: getattr(xp, name)(*[x != 0 if x.dtype.kind == "c" else x for x in (x0, x1)])


logical_and = _truth("logical_and", _of_truths("logical_and"))
logical_or = _truth("logical_or", _of_truths("logical_or"))
logical_xor = _truth("logical_xor", _of_truths("logical_xor"))
logical_not = _truth("logical_not", lambda xp, x0: x0 == 0, promote=None)

bitwise_and = _truth("bitwise_and", "bitwise_and", refuses=ONLY_INT)
bitwise_or = _truth("bitwise_or", "bitwise_or", refuses=ONLY_INT)
bitwise_xor = _truth("bitwise_xor", "bitwise_xor", refuses=ONLY_INT)
bitwise_not = _truth("bitwise_not", "invert", refuses=ONLY_INT)

bitwise_left_shift = _truth("bitwise_left_shift", "left_shift", refuses={**ONLY_INT, BOOL: ""})
bitwise_right_shift = _truth("bitwise_right_shift", "right_shift", refuses={**ONLY_INT, BOOL: ""})

isnan = _truth("isnan", "isnan", promote=None)
isinf = _truth("isinf", "isinf", promote=None)
isfinite = _truth("isfinite", "isfinite", promote=None)
isposinf = _truth("isposinf", "isposinf", refuses=NO_COMPLEX)
isneginf = _truth("isneginf", "isneginf", refuses=NO_COMPLEX)
isreal = _truth("isreal", "isreal", promote=None)
signbit = _truth("signbit", lambda xp, x0: xp.signbit(x0) if x0.dtype.kind == "f" else x0 < 0, refuses=NO_COMPLEX)

# ---------------------------------------------------------------- choices; `choose` is where, its branches of one dtype
choose: OpFunction = row("where", "where", saves=("x0",), fits=True, batch=elementwise, elementwise=True,
             vjp=(None, lambda ct, x0: choose(x0, ct, 0), lambda ct, x0: choose(x0, 0, ct)),
             jvp=(None, lambda dx, x0: choose(x0, dx, 0), lambda dx, x0: choose(x0, 0, dx)))


def where(condition: Tensor, x: Any, y: Any) -> Tensor:
    """x where the condition holds, else y: tensors or numbers, broadcast.  Source: torch.where."""
    if condition.dtype is not bool_:
        msg = f"where expected condition to be a boolean tensor, but got a tensor with dtype {condition.dtype}"
        raise UsageError(msg)
    common = result_type(x, y)
    return choose(condition, *[  # type: ignore[no-any-return]
        a.to(common) if isinstance(a, Tensor) else tensor(a, dtype=common, device=condition.device) for a in (x, y)])


def where_of(x: Tensor, condition: Tensor, other: Any) -> Tensor:
    """x where the condition holds, else `other`.  Source: torch.Tensor.where."""
    return where(condition, x, other)


def _winner(ct: Tensor, x0: Any, x1: Any, loses: Tensor) -> Tensor:
    return choose(x0 == x1, ct / 2, choose(loses, 0, ct))  # type: ignore[no-any-return]


def _extreme(name: str, first: Callable[..., Tensor], second: Callable[..., Tensor]) -> OpFunction:
    rules = (lambda ct, x0, x1: _winner(ct, x0, x1, first(x0, x1)), lambda ct, x0, x1: _winner(ct, x0, x1, second(x0, x1)))
    return row(name, name, promote="arith", saves=("x1", "x0"), batch=elementwise, elementwise=True,
               vjp=rules, jvp=rules, refuses={COMPLEX: f"{name} not implemented for complex tensors."},
               doc=f"The {name} of two tensors; where they are equal each gets half the gradient.  Source: torch.{name}.")


maximum = _extreme("maximum", lt, gt)
minimum = _extreme("minimum", gt, lt)

_MIN_RULES = (lambda ct, x0, x1: choose(x0 >= x1, ct, 0), lambda ct, x0, x1: choose(x0 < x1, ct, 0))
_MAX_RULES = (lambda ct, x0, x1: choose(x0 <= x1, ct, 0), lambda ct, x0, x1: choose(x0 > x1, ct, 0))
_BOTH_RULES = (lambda ct, x0, x1, x2: choose((x0 >= x1) & (x0 <= x2), ct, 0),
               lambda ct, x0, x1, x2: choose((x0 < x1) & (x1 < x2), ct, 0),
               lambda ct, x0, x1, x2: choose((x0 > x2) | (x2 < x1), ct, 0))
_BOTH_JVP = (_BOTH_RULES[0], lambda dx, x0, x1, x2: choose((x0 < x1) & (x1 <= x2), dx, 0), _BOTH_RULES[2])
_NO_CLAMP = {COMPLEX: "clamp is not supported for complex types"}

clamp_min = row("clamp_min", "maximum", promote="arith", saves=("x1", "x0"), batch=elementwise, elementwise=True,
                vjp=_MIN_RULES, jvp=_MIN_RULES, refuses=_NO_CLAMP,
                doc="x, but at least `min`, a tensor or a number.  Source: torch.clamp_min.")

clamp_max = row("clamp_max", "minimum", promote="arith", saves=("x1", "x0"), batch=elementwise, elementwise=True,
                vjp=_MAX_RULES, jvp=_MAX_RULES, refuses=_NO_CLAMP,
                doc="x, but at most `max`, a tensor or a number.  Source: torch.clamp_max.")

_clamp = row("clamp", "clip", promote="arith", saves=("x2", "x1", "x0"), node="ClampBackward1", batch=elementwise,
             elementwise=True, vjp=_BOTH_RULES, jvp=_BOTH_JVP, refuses=_NO_CLAMP)


def clamp(x: Tensor, min: Any = None, max: Any = None) -> Tensor:  # noqa: A002  torch's names
    """x, but at least `min` and at most `max`, tensors or numbers; the gradient is 1 at both.  Source: torch.clamp."""
    if x.dtype.category == INT:
        for bound in (min, max):
            if isinstance(bound, int):
                checked(CPU.xp, bound, NUMPY_DTYPE[x.dtype])
    if min is not None and max is not None:
        return _clamp(x, min, max)  # type: ignore[no-any-return]
    if min is None and max is None:
        msg = "torch.clamp: At least one of 'min' or 'max' must not be None"
        raise UsageError(msg)
    return clamp_min(x, min) if max is None else clamp_max(x, max)  # type: ignore[no-any-return]


clip = clamp


_nan_to_num = row("nan_to_num", lambda xp, x0, **numbers: xp.nan_to_num(x0, **numbers), arity=1, saves=("x0",),
                  batch=same_bdim, vjp=(lambda ct, x0: ct * isfinite(x0),), jvp=(lambda dx, x0: dx * isfinite(x0),))


def nan_to_num(x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """Numbers for nan and for the infinities (by default the largest of the dtype).  Source: torch.nan_to_num."""
    return _nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)  # type: ignore[no-any-return]


def at_least(x: Tensor, least: float) -> Tensor:
    """clamp_min whose derivative is 1 everywhere, at every level and order."""
    now = x.detach()
    return x + (clamp_min(now, least) - now)  # type: ignore[no-any-return]
