"""What losses do with the values of all samples: keep them, add them up, or take their mean.

Source: torch.nn._reduction.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ops.reduction import mean
from ..ops.reduction import sum as sum_over

if TYPE_CHECKING:
    from ..tensor import Tensor


def check_reduction(reduction: str) -> None:
    """Raise ValueError for a word that is no reduction."""
    if reduction not in ("none", "mean", "sum"):
        msg = f"{reduction} is not a valid value for reduction"
        raise ValueError(msg)


def reduced(x: Tensor, reduction: str) -> Tensor:
    """One number, of a loss (a word that is none has been refused), or all of them."""
    return mean(x) if reduction == "mean" else sum_over(x) if reduction == "sum" else x
