"""Losses with a margin, of classes, pairs and triplets, and the distances they are of.

Source: torch.nn.modules.loss, torch.nn.modules.distance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import functional as F  # noqa: N812  torch's habit
from .losses import _Loss, _WeightedLoss
from .module import Module

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor


# ---------------------------------------------------------------- distances
class CosineSimilarity(Module):
    """The cosine of the angle along a dimension.  Source: torch.nn.CosineSimilarity."""

    def __init__(self, dim: int = 1, eps: float = 1e-8) -> None:
        super().__init__()
        self.dim = dim
        self.eps = eps

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The p-norm of the difference over the last dimension.  Source: torch.nn.PairwiseDistance."""

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> None:
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)


# ---------------------------------------------------------------- margins of classes
class MultiMarginLoss(_WeightedLoss):
    """Source: torch.nn.MultiMarginLoss."""

    def __init__(self, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, reduction: str = "mean") -> None:
        super().__init__(weight, reduction)
        if p not in (1, 2):
            msg = f"only p == 1 and p == 2 supported, but got {p}"
            raise ValueError(msg)
        self.p = p
        self.margin = margin

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.multi_margin_loss(x, target, self.p, self.margin, self.weight, reduction=self.reduction)


class MultiLabelMarginLoss(_Loss):
    """Source: torch.nn.MultiLabelMarginLoss."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_margin_loss(x, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Source: torch.nn.MultiLabelSoftMarginLoss."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.multilabel_soft_margin_loss(x, target, self.weight, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """Source: torch.nn.SoftMarginLoss."""

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.soft_margin_loss(x, target, reduction=self.reduction)


# ---------------------------------------------------------------- pairs and triplets
class _MarginLoss(_Loss):
    def __init__(self, margin: float = 0.0, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.margin = margin


class MarginRankingLoss(_MarginLoss):
    """Source: torch.nn.MarginRankingLoss."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.margin_ranking_loss(input1, input2, target, self.margin, reduction=self.reduction)


class CosineEmbeddingLoss(_MarginLoss):
    """Source: torch.nn.CosineEmbeddingLoss."""

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        return F.cosine_embedding_loss(input1, input2, target, self.margin, reduction=self.reduction)


class HingeEmbeddingLoss(_MarginLoss):
    """Source: torch.nn.HingeEmbeddingLoss."""

    def __init__(self, margin: float = 1.0, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.hinge_embedding_loss(x, target, self.margin, reduction=self.reduction)


class TripletMarginLoss(_MarginLoss):
    """Source: torch.nn.TripletMarginLoss."""

    def __init__(self, margin: float = 1.0, p: float = 2.0, eps: float = 1e-6, swap: bool = False,
                 reduction: str = "mean") -> None:
        super().__init__(margin, reduction)
        self.p = p
        self.eps = eps
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_loss(anchor, positive, negative, self.margin, self.p, self.eps, self.swap,
                                     reduction=self.reduction)


class TripletMarginWithDistanceLoss(_MarginLoss):
    """Source: torch.nn.TripletMarginWithDistanceLoss."""

    def __init__(self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
                 swap: bool = False, reduction: str = "mean") -> None:
        super().__init__(margin, reduction)
        self.distance_function = distance_function
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction)
