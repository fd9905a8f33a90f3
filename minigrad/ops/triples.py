"""Rows of three numbers each: steps between two, and what is added scaled.

Source: torch.lerp, torch.addcmul, torch.addcdiv; derivatives.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import BOOL, INT
from ..row import row
from .batching import elementwise
from .choice import NO_BOOL_OR_INT
from .pointwise import conj

if TYPE_CHECKING:
    from ..backend import Array
    from ..tensor import Tensor


def _lerp_kernel(xp: Any, x0: Array, x1: Array, x2: Array) -> Array:
    return xp.where(xp.abs(x2) < 0.5, x0 + x2 * (x1 - x0), x1 - (x1 - x0) * (1 - x2))


lerp = row("lerp", _lerp_kernel, promote="arith", saves=("x1", "x0", "x2"), batch=elementwise, elementwise=True,
           vjp=(lambda ct, x2: ct * conj(1 - x2), lambda ct, x2: ct * conj(x2), lambda ct, x0, x1: ct * conj(x1 - x0)),
           jvp=(lambda dx, x2: dx * (1 - x2), lambda dx, x2: dx * x2, lambda dx, x0, x1: dx * (x1 - x0)),
           refuses=NO_BOOL_OR_INT, doc="start + weight * (end - start), exact at weight 1.  Source: torch.lerp.")

_addcmul = row("addcmul", lambda xp, x0, x1, x2, value: x0 + value * x1 * x2, promote="arith", saves=("x1", "x2"),
               batch=elementwise, elementwise=True,
               vjp=(lambda ct: ct, lambda ct, x2, value: ct * conj(x2 * value), lambda ct, x1, value: ct * conj(x1 * value)),
               jvp=(lambda dx: dx, lambda dx, x2, value: dx * (x2 * value), lambda dx, x1, value: dx * (x1 * value)))

_addcdiv = row("addcdiv", lambda xp, x0, x1, x2, value: x0 + value * (x1 / x2), promote="arith", saves=("x1", "x2"),
               batch=elementwise, elementwise=True,
               refuses={BOOL: "", INT: "Integer division with addcdiv is no longer supported."},
               vjp=(lambda ct: ct, lambda ct, x2, value: ct * conj(value) / conj(x2),
                    lambda ct, x1, x2, value: -ct * conj(value * x1) / conj(x2 * x2)),
               jvp=(lambda dx: dx, lambda dx, x2, value: dx * value / x2,
                    lambda dx, x1, x2, value: -dx * (value * x1) / (x2 * x2)))


def addcmul(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 * tensor2.  Source: torch.addcmul."""
    return _addcmul(x, tensor1, tensor2, value=value)  # type: ignore[no-any-return]


def addcdiv(x: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """x + value * tensor1 / tensor2.  Source: torch.addcdiv."""
    return _addcdiv(x, tensor1, tensor2, value=value)  # type: ignore[no-any-return]
