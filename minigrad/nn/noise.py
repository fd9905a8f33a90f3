"""Functions of torch.nn.functional that draw: dropout of elements and of channels, random slopes.

Under vmap its `randomness` says whether samples differ; a checkpoint draws the same again.

Source: torch.nn.functional; _dropout_impl in Dropout.cpp.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..modes import publish
from ..ops.activation import leaky_relu
from ..ops.choice import choose
from ..ops.creation import ones_like, zeros
from ..ops.inplace import in_place
from ..ops.random import coins, rand

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout", "rrelu"]


# ---------------------------------------------------------------- dropout
def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training each element is 0 with probability p, and the others grow by 1 / (1 - p); else x itself.

    Raises ValueError for a p outside [0, 1].  Source: torch.nn.functional.dropout.
    """
    return _dropped(x, p, training, inplace, x.shape)


def dropout1d(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels are dropped, of (N, C, L) or (C, L).  Source: torch.nn.functional.dropout1d."""
    return _dropped(x, p, training, inplace, (*x.shape[:-1], 1))


def dropout2d(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels are dropped, of (N, C, H, W) or (C, H, W).  Source: torch.nn.functional.dropout2d."""
    return _dropped(x, p, training, inplace, (*x.shape[:-2], 1, 1))


def dropout3d(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels are dropped, of (N, C, D, H, W) or (C, D, H, W).  Source: torch.nn.functional.dropout3d."""
    return _dropped(x, p, training, inplace, (*x.shape[:-3], 1, 1, 1))


def _idle(x: Tensor, p: float, training: bool) -> bool:
    """Whether nothing is dropped."""
    if not 0 <= p <= 1:
        msg = f"dropout probability has to be between 0 and 1, but got {p}"
        raise ValueError(msg)
    return p == 0 or not training or 0 in x.shape


def _dropped(x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if _idle(x, p, training):
        return x
    noise = zeros((), dtype=x.dtype, device=x.device) if p == 1 else coins(shape, 1 - p, x.dtype, x.device) / (1 - p)
    return x.mul_(noise) if inplace else x * noise


# ---------------------------------------------------------------- dropout that keeps mean 0 and variance 1, with selu
SATURATED = 1.7580993408473766
"""Minus what selu tends to.  Source: Klambauer et al., Self-normalizing neural networks (2017)."""


def alpha_dropout(x: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """In training, elements are what selu tends to, with probability p; all are scaled and moved to mean 0 and variance 1.

    Source: torch.nn.functional.alpha_dropout.
    """
    return _saturated(x, p, training, inplace, x.shape)


def feature_alpha_dropout(x: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """alpha_dropout of whole channels, of (N, C, ..), else UsageError.  Source: torch.nn.functional.feature_alpha_dropout."""
    if not _idle(x, p, training) and x.ndim < 2:
        msg = f"Feature dropout requires at least 2 dimensions in the input, but it has {x.ndim}"
        raise UsageError(msg)
    return _saturated(x, p, training, inplace, (*x.shape[:2], *[1] * (x.ndim - 2)))


def _saturated(x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if _idle(x, p, training):
        return x
    if p == 1:
        return _dropped(x, p, training, inplace, shape)
    noise, scale = coins(shape, 1 - p, x.dtype, x.device), 1 / sqrt((SATURATED ** 2 * p + 1) * (1 - p))
    factor, moved = noise * scale, (noise - 1 + p) * (SATURATED * scale)
    return x.mul_(factor).add_(moved) if inplace else x * factor + moved


# ---------------------------------------------------------------- random slopes
def rrelu(x: Tensor, lower: float = 1 / 8, upper: float = 1 / 3, training: bool = False, inplace: bool = False) -> Tensor:
    """leaky_relu, in training with a slope for each element, uniform between two numbers, else with their mean.

    Raises UsageError where lower is above upper.  Source: torch.nn.functional.rrelu.
    """
    if lower > upper:
        msg = f"Lower bound should be less than or equal to the upper bound, but got {lower} and {upper}"
        raise UsageError(msg)
    return (_sloped_ if inplace else _sloped)(x, lower, upper, training)


def _sloped(x: Tensor, lower: float, upper: float, training: bool) -> Tensor:
    if not training:
        return leaky_relu(x, (lower + upper) / 2)
    slope = rand(x.shape, dtype=x.dtype, device=x.device) * (upper - lower) + lower
    return x * choose(x > 0, ones_like(slope), slope)  # type: ignore[no-any-return]


_sloped_ = in_place(_sloped, "rrelu_")


publish(globals())
