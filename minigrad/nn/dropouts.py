"""Modules that draw in training: dropout of elements and of channels, random slopes.  Source: torch.nn.modules.dropout."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import functional as F  # noqa: N812  torch's habit
from .module import Module

if TYPE_CHECKING:
    from ..tensor import Tensor


class _Dropout(Module):
    def __init__(self, p: float = 0.5, inplace: bool = False) -> None:
        super().__init__()
        if not 0 <= p <= 1:
            msg = f"dropout probability has to be between 0 and 1, but got {p}"
            raise ValueError(msg)
        self.p = p
        self.inplace = inplace

    def extra_repr(self) -> str:
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_Dropout):
    """In training, elements are 0 with probability p and the others grow by 1 / (1 - p).  Source: torch.nn.Dropout."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout(x, self.p, self.training, self.inplace)


class Dropout1d(_Dropout):
    """Whole channels, of (N, C, L).  Source: torch.nn.Dropout1d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout1d(x, self.p, self.training, self.inplace)


class Dropout2d(_Dropout):
    """Whole channels, of (N, C, H, W).  Source: torch.nn.Dropout2d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout2d(x, self.p, self.training, self.inplace)


class Dropout3d(_Dropout):
    """Whole channels, of (N, C, D, H, W).  Source: torch.nn.Dropout3d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.dropout3d(x, self.p, self.training, self.inplace)


class AlphaDropout(_Dropout):
    """What selu tends to in place of 0, so that mean and variance stay.  Source: torch.nn.AlphaDropout."""

    def forward(self, x: Tensor) -> Tensor:
        return F.alpha_dropout(x, self.p, self.training, self.inplace)


class FeatureAlphaDropout(_Dropout):
    """Whole channels of what selu tends to, so that mean and variance stay.  Source: torch.nn.FeatureAlphaDropout."""

    def forward(self, x: Tensor) -> Tensor:
        return F.feature_alpha_dropout(x, self.p, self.training, self.inplace)


class RReLU(Module):
    """In training a slope for each element below 0, uniform between two numbers, else their mean.  Source: torch.nn.RReLU."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        return F.rrelu(x, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}" + (", inplace=True" if self.inplace else "")
