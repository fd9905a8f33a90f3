"""Losses as modules.  `reduction` is "mean", "sum" or "none".  Source: torch.nn.modules.loss."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import functional as F  # noqa: N812  torch's habit
from .module import Module

if TYPE_CHECKING:
    from ..tensor import Tensor


class _Loss(Module):
    def __init__(self, reduction: str = "mean") -> None:
        super().__init__()
        self.reduction = reduction


class _WeightedLoss(_Loss):
    def __init__(self, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.register_buffer("weight", weight)


class MSELoss(_Loss):
    """Source: torch.nn.MSELoss."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(x, target, reduction=self.reduction)


class L1Loss(_Loss):
    """Source: torch.nn.L1Loss."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(x, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Source: torch.nn.SmoothL1Loss."""

    def __init__(self, reduction: str = "mean", beta: float = 1.0) -> None:
        super().__init__(reduction)
        self.beta = beta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(x, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Source: torch.nn.HuberLoss."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0) -> None:
        super().__init__(reduction)
        self.delta = delta

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(x, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """Source: torch.nn.KLDivLoss."""

    def __init__(self, reduction: str = "mean", log_target: bool = False) -> None:
        super().__init__(reduction)
        self.log_target = log_target

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(x, target, reduction=self.reduction, log_target=self.log_target)


class BCELoss(_WeightedLoss):
    """Source: torch.nn.BCELoss."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(x, target, self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_WeightedLoss):
    """Source: torch.nn.BCEWithLogitsLoss."""

    def __init__(self, weight: Tensor | None = None, reduction: str = "mean", pos_weight: Tensor | None = None) -> None:
        super().__init__(weight, reduction)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(x, target, self.weight, reduction=self.reduction,
                                                  pos_weight=self.pos_weight)


class NLLLoss(_WeightedLoss):
    """Source: torch.nn.NLLLoss."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(x, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """Source: torch.nn.CrossEntropyLoss."""

    def __init__(self, weight: Tensor | None = None, ignore_index: int = -100, reduction: str = "mean",
                 label_smoothing: float = 0.0) -> None:
        super().__init__(weight, reduction)
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(x, target, self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
                               label_smoothing=self.label_smoothing)
