"""Negative logarithms of likelihoods as modules: of counts, normal variables, sequences, and classes behind a linear layer.

Source: torch.nn.modules.loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from . import functional as F  # noqa: N812  torch's habit
from .layers import Linear
from .losses import _Loss, _WeightedLoss

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..backend import Device
    from ..dtypes import dtype
    from ..tensor import Tensor


# ---------------------------------------------------------------- of distributions and sequences
class PoissonNLLLoss(_Loss):
    """Source: torch.nn.PoissonNLLLoss."""

    def __init__(self, log_input: bool = True, full: bool = False, eps: float = 1e-8, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.log_input = log_input
        self.full = full
        self.eps = eps

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        return F.poisson_nll_loss(x, target, self.log_input, self.full, self.eps, reduction=self.reduction)


class GaussianNLLLoss(_Loss):
    """Source: torch.nn.GaussianNLLLoss."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean") -> None:
        super().__init__(reduction)
        self.full = full
        self.eps = eps

    def forward(self, x: Tensor, target: Tensor, var: Any) -> Tensor:
        return F.gaussian_nll_loss(x, target, var, self.full, self.eps, reduction=self.reduction)


class CTCLoss(_Loss):
    """Source: torch.nn.CTCLoss."""

    def __init__(self, blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> None:
        super().__init__(reduction)
        self.blank = blank
        self.zero_infinity = zero_infinity

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int],
                target_lengths: Tensor | Sequence[int]) -> Tensor:
        return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity)


# ---------------------------------------------------------------- a linear layer and its loss in one
@dataclass
class LinearCrossEntropyOptions:
    """How many rows of logits there are at a time: all without batch_chunk_size.

    allow_retain_graph is torch's; here a graph may always be kept.  Source: torch.nn.LinearCrossEntropyOptions.
    """

    allow_retain_graph: bool = False
    batch_chunk_size: int | None = None

    def __post_init__(self) -> None:
        if self.batch_chunk_size is not None and self.batch_chunk_size < 1:
            msg = f"batch_chunk_size must be positive int or None, got {self.batch_chunk_size!r}"
            raise ValueError(msg)


class LinearCrossEntropyLoss(_WeightedLoss):
    """CrossEntropyLoss of a Linear layer without the logits of all samples.  Source: torch.nn.LinearCrossEntropyLoss."""

    def __init__(self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
                 device: str | Device | None = None, dtype: dtype | None = None, reduction: str = "mean",
                 weight: Tensor | None = None, ignore_index: int | None = None, label_smoothing: float = 0.0,
                 options: LinearCrossEntropyOptions | None = None) -> None:
        if weight is not None and weight.shape != (num_classes,):
            msg = f"expected weight shape to be {(num_classes,)}, got {weight.shape}"
            raise UsageError(msg)
        super().__init__(weight, reduction)
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * prod(out_features), bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, x: Tensor, target: Tensor) -> Tensor:
        shape, bias = (self.num_classes, *self.out_features), self.linear.bias
        return F.linear_cross_entropy(
            x, self.linear.weight.reshape(*shape, -1), target, linear_bias=None if bias is None else bias.reshape(shape),
            weight=self.weight, reduction=self.reduction, ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing, options=self.options)

    def extra_repr(self) -> str:
        return (f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
                f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
                f"label_smoothing={self.label_smoothing}, options={self.options}")
