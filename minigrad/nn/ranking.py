"""Losses that compare pairs and triplets, and likelihoods: composed of other ops.

Source: torch.nn.functional.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..modes import publish
from ..ops.activation import logsigmoid, relu
from ..ops.choice import at_least, clamp_min, minimum, where
from ..ops.creation import arange, zeros_like
from ..ops.gather import gather, index_select, scatter_add
from ..ops.pointwise import exp, log, log1p, sqrt, square
from ..ops.products import pairwise_distance
from ..ops.reduction import mean
from ..ops.reduction import sum as sum_over
from ..ops.scan import cumprod
from ..ops.shape import reshape, unsqueeze
from .reductions import check_reduction, reduced

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor

__all__ = ["cosine_embedding_loss", "gaussian_nll_loss", "hinge_embedding_loss", "margin_ranking_loss", "multi_margin_loss",
           "multilabel_margin_loss", "multilabel_soft_margin_loss", "poisson_nll_loss", "soft_margin_loss",
           "triplet_margin_loss", "triplet_margin_with_distance_loss"]


def _reduced(x: Tensor, reduction: str) -> Tensor:
    check_reduction(reduction)
    return reduced(x, reduction)


def margin_ranking_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, *,
                        reduction: str = "mean") -> Tensor:
    """max(0, -target * (input1 - input2) + margin).  Source: torch.nn.functional.margin_ranking_loss."""
    if not input1.ndim == input2.ndim == target.ndim:
        msg = ("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
               f"{list(input1.shape)}, input2: {list(input2.shape)}, target: {list(target.shape)} ")
        raise UsageError(msg)
    return _reduced(clamp_min(-target * (input1 - input2) + margin, 0), reduction)


def hinge_embedding_loss(x: Tensor, target: Tensor, margin: float = 1.0, *, reduction: str = "mean") -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1.  Source: torch.nn.functional.hinge_embedding_loss."""
    far = where(target == 1, zeros_like(x), clamp_min(margin - x, 0))
    near = where(target == -1, zeros_like(x), x)
    return _reduced(far + near, reduction)


def cosine_embedding_loss(input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0, *,
                          reduction: str = "mean") -> Tensor:
    """1 - cos(input1, input2) where the target is 1, max(0, cos - margin) where it is -1.

    Source: torch.nn.functional.cosine_embedding_loss.
    """
    if input1.shape != input2.shape or input1.ndim != target.ndim + 1:
        msg = (f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found inputs with sizes "
               f"{list(input1.shape)} and {list(input2.shape)}.")
        raise UsageError(msg)
    epsilon = 1e-12
    dot = sum_over(input1 * input2, -1)
    cos = dot / sqrt((sum_over(input1 * input1, -1) + epsilon) * (sum_over(input2 * input2, -1) + epsilon))
    zeros = zeros_like(cos)
    return _reduced(where(target == 1, 1 - cos, zeros) + where(target == -1, clamp_min(cos - margin, 0), zeros), reduction)


def soft_margin_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """log(1 + exp(-target * x)).  Source: torch.nn.functional.soft_margin_loss."""
    return _reduced(log1p(exp(-target * x)), reduction)


def multilabel_soft_margin_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean") -> Tensor:
    """The mean over classes of the logistic loss.  Source: torch.nn.functional.multilabel_soft_margin_loss."""
    loss = -(target * logsigmoid(x) + (1 - target) * logsigmoid(-x))
    return _reduced(mean(loss if weight is None else loss * weight, -1), reduction)


def multi_margin_loss(x: Tensor, target: Tensor, p: int = 1, margin: float = 1.0, weight: Tensor | None = None, *,
                      reduction: str = "mean") -> Tensor:
    """The mean over classes, but for the target's, of max(0, margin - x[target] + x) ** p times the target's weight.

    x (N, C) with target (N), or (C) with one; p is 1 or 2.  Source: torch.nn.functional.multi_margin_loss.
    """
    check_reduction(reduction)
    if p not in (1, 2):
        msg = f"only p == 1 and p == 2 supported, but got {p}"
        raise ValueError(msg)
    x, flat = _rows("multi_margin_loss", x), reshape(target, -1, 1)
    classes = x.shape[1]
    if flat.shape[0] != x.shape[0]:
        msg = f"multi_margin_loss: inconsistent target size, expected [{x.shape[0]}] but got {list(target.shape)}"
        raise UsageError(msg)
    if weight is not None and weight.ndim != 1:
        msg = f"weight must be one-dimensional, but it has {weight.ndim} dimensions"
        raise ValueError(msg)
    if weight is not None and weight.shape != (classes,):
        msg = f"multi_margin_loss: inconsistent weight size, expected {classes} but got {list(weight.shape)}"
        raise UsageError(msg)
    loss = relu(margin - gather(x, 1, flat) + x)
    loss = loss if p == 1 else square(loss)
    if weight is not None:
        loss = loss * reshape(index_select(weight, 0, reshape(flat, -1)), -1, 1)
    others = arange(classes, device=x.device) != flat
    return _reduced(reshape(sum_over(loss * others, 1) / classes, target.shape), reduction)


def multilabel_margin_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The sum of max(0, 1 - x[j] + x[i]) over target classes j and others i, divided by the number of classes.

    x, target (N, C) or (C): classes, as many as there are before the first -1.
    Source: torch.nn.functional.multilabel_margin_loss.
    """
    check_reduction(reduction)
    if x.shape != target.shape:
        msg = f"multilabel_margin_loss: inconsistent target size: {list(target.shape)} for input of size: {list(x.shape)}"
        raise UsageError(msg)
    lead, x, target = x.shape[:-1], _rows("multilabel_margin_loss", x), _rows("multilabel_margin_loss", target)
    named = cumprod((target >= 0).to(target.dtype), 1)
    places = where(named > 0, target, 0)
    wanted = scatter_add(zeros_like(target), 1, places, named) > 0
    pairs = relu(1 - unsqueeze(gather(x, 1, places), 2) + unsqueeze(x, 1))
    counted = unsqueeze(named > 0, 2) & unsqueeze(~wanted, 1)
    return _reduced(reshape(sum_over(pairs * counted, (1, 2)) / x.shape[1], lead), reduction)


def _rows(name: str, x: Tensor) -> Tensor:
    """A sample a row."""
    if x.ndim > 2 or (x.ndim and not x.shape[-1]):
        msg = f"{name}: Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(x.shape)}"
        raise UsageError(msg)
    return x if x.ndim == 2 else reshape(x, 1, -1)


def poisson_nll_loss(x: Tensor, target: Tensor, log_input: bool = True, full: bool = False, eps: float = 1e-8, *,
                     reduction: str = "mean") -> Tensor:
    """exp(x) - target * x, or of the rate itself; `full` adds Stirling's terms.

    Source: torch.nn.functional.poisson_nll_loss.
    """
    loss = exp(x) - target * x if log_input else x - target * log(x + eps)
    if full:
        stirling = target * log(target) - target + 0.5 * log(2 * math.pi * target)
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return _reduced(loss, reduction)


def gaussian_nll_loss(x: Tensor, target: Tensor, var: Any, full: bool = False, eps: float = 1e-6, *,
                      reduction: str = "mean") -> Tensor:
    """(log(var) + (x - target)^2 / var) / 2, with var at least eps.  Source: torch.nn.functional.gaussian_nll_loss."""
    if var < 0 if isinstance(var, float) else bool((var < 0).any()):
        msg = "var has negative entry/entries"
        raise ValueError(msg)
    if isinstance(var, float):
        var = zeros_like(x) + var
    if var.shape != x.shape:
        if x.shape[:-1] == var.shape:
            var = var.unsqueeze(-1)
        elif x.shape[:-1] != var.shape[:-1] or var.shape[-1] != 1:
            msg = "var is of incorrect size"
            raise ValueError(msg)
    var = at_least(var, eps)
    loss = 0.5 * (log(var) + square(x - target) / var)
    return _reduced(loss + 0.5 * math.log(2 * math.pi) if full else loss, reduction)


def triplet_margin_loss(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float = 1.0, p: float = 2,
                        eps: float = 1e-6, swap: bool = False, *, reduction: str = "mean") -> Tensor:
    """max(0, d(anchor, positive) - d(anchor, negative) + margin).  Source: torch.nn.functional.triplet_margin_loss."""
    if margin <= 0:
        msg = f"margin must be greater than 0, got {margin}"
        raise ValueError(msg)
    return triplet_margin_with_distance_loss(anchor, positive, negative, margin=margin, swap=swap, reduction=reduction,
                                             distance_function=lambda a, b: pairwise_distance(a, b, p, eps))


def triplet_margin_with_distance_loss(anchor: Tensor, positive: Tensor, negative: Tensor, *,
                                      distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
                                      swap: bool = False, reduction: str = "mean") -> Tensor:
    """triplet_margin_loss with another distance.  Source: torch.nn.functional.triplet_margin_with_distance_loss."""
    if margin <= 0:
        msg = f"margin must be greater than 0, got {margin}"
        raise ValueError(msg)
    if not anchor.ndim == positive.ndim == negative.ndim:
        msg = ("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but got: "
               f"anchor {anchor.ndim}D, positive {positive.ndim}D, and negative {negative.ndim}D inputs")
        raise UsageError(msg)
    distance = distance_function or pairwise_distance
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum(far, distance(positive, negative))
    return _reduced(clamp_min(margin + near - far, 0), reduction)


publish(globals())
