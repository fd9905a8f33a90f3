"""The functions of torch.nn.functional: torch's arguments, checked, then ops.

Source: torch.nn.functional.
"""

from __future__ import annotations

import warnings
from math import prod
from typing import TYPE_CHECKING, Any

from ..autograd.grad_mode import no_grad
from ..dtypes import FLOAT, float16, float32, int64, uint8
from ..errors import UsageError
from ..modes import publish
from ..ops import activation, loss, pieces
from ..ops.activation import gelu, logsigmoid, sigmoid, softplus
from ..ops.choice import at_least, clamp_min
from ..ops.convolution import (
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    fold,
    unfold,
)
from ..ops.distances import pdist
from ..ops.embedding import embedding, embedding_bag, pad
from ..ops.gather import index_select
from ..ops.grid import affine_grid, grid_sample
from ..ops.indexing import masked_fill
from ..ops.inplace import copy_, in_place
from ..ops.joining import cat, split
from ..ops.linalg import broadcast_shapes
from ..ops.misc import finfo
from ..ops.norm import vector_norm
from ..ops.normalization import batch_norm, group_norm, layer_norm, layer_shape
from ..ops.pairs import xlogy
from ..ops.picking import one_hot
from ..ops.pieces import glu, hardshrink, prelu, softshrink, tanhshrink
from ..ops.pixels import channel_shuffle, pixel_shuffle, pixel_unshuffle
from ..ops.pointwise import abs as absolute
from ..ops.pointwise import exp, rsqrt, square, tanh
from ..ops.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    interpolate,
    max_pool1d,
    max_pool2d,
    max_pool3d,
    upsample_bilinear,
    upsample_nearest,
)
from ..ops.products import bilinear, linear, pairwise_distance
from ..ops.rearrange import broadcast_tensors, repeat
from ..ops.reduction import mean
from ..ops.reduction import sum as sum_over
from ..ops.shape import reshape, widened
from ..ops.softmax import log_softmax, softmax, softmin
from ..ops.windows import (
    fractional_max_pool2d,
    fractional_max_pool3d,
    local_response_norm,
    lp_pool1d,
    lp_pool2d,
    lp_pool3d,
    max_unpool1d,
    max_unpool2d,
    max_unpool3d,
)
from ..utils.checkpoint import checkpoint
from .heads import multi_head_attention_forward, scaled_dot_product_attention
from .noise import alpha_dropout, dropout, dropout1d, dropout2d, dropout3d, feature_alpha_dropout, rrelu
from .ranking import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from .reductions import check_reduction, reduced
from .sequences import ctc_loss

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "affine_grid", "alpha_dropout", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm",
    "bilinear", "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "celu_", "channel_shuffle", "conv1d",
    "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss",
    "cosine_similarity", "cross_entropy", "ctc_loss", "dropout", "dropout1d", "dropout2d", "dropout3d", "elu", "elu_",
    "embedding", "embedding_bag", "feature_alpha_dropout", "fold", "fractional_max_pool2d", "fractional_max_pool3d",
    "gaussian_nll_loss", "gelu", "glu", "grid_sample", "group_norm", "hardshrink", "hardsigmoid", "hardswish", "hardtanh",
    "hardtanh_", "hinge_embedding_loss", "huber_loss", "instance_norm", "interpolate", "kl_div", "l1_loss", "layer_norm",
    "leaky_relu", "leaky_relu_", "linear", "linear_cross_entropy", "local_response_norm", "log_softmax", "logsigmoid",
    "lp_pool1d", "lp_pool2d", "lp_pool3d", "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "max_unpool1d",
    "max_unpool2d", "max_unpool3d", "mish", "mse_loss", "multi_head_attention_forward", "multi_margin_loss",
    "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance",
    "pdist", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss", "prelu", "relu", "relu6", "relu_", "rms_norm", "rrelu",
    "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax",
    "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink", "threshold", "threshold_", "triplet_margin_loss",
    "triplet_margin_with_distance_loss", "unfold", "upsample_bilinear", "upsample_nearest",
]

# ---------------------------------------------------------------- activations, which may be done in place
relu_ = in_place(activation.relu, "relu_")
leaky_relu_ = in_place(activation.leaky_relu, "leaky_relu_")
elu_ = in_place(activation.elu, "elu_")
hardtanh_ = in_place(activation.hardtanh, "hardtanh_")
_silu_ = in_place(activation.silu, "silu_")
_mish_ = in_place(activation.mish, "mish_")
threshold_ = in_place(activation.threshold, "threshold_")

_hardsigmoid_ = in_place(pieces.hardsigmoid, "hardsigmoid_")
_hardswish_ = in_place(pieces.hardswish, "hardswish_")
celu_ = in_place(pieces.celu, "celu_")

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    """Return x, or 0 below 0.  Source: torch.nn.functional.relu."""
    return (relu_ if inplace else activation.relu)(x)


def relu6(x: Tensor, inplace: bool = False) -> Tensor:
    """Return x kept between 0 and 6.  Source: torch.nn.functional.relu6."""
    return hardtanh(x, 0.0, 6.0, inplace)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x, or negative_slope * x below 0.  Source: torch.nn.functional.leaky_relu."""
    return (leaky_relu_ if inplace else activation.leaky_relu)(x, negative_slope)


def elu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x, or alpha * (exp(x) - 1) below 0.  Source: torch.nn.functional.elu."""
    return (elu_ if inplace else activation.elu)(x, alpha)


def selu(x: Tensor, inplace: bool = False) -> Tensor:
    """The elu that keeps mean 0 and variance 1.  Source: torch.nn.functional.selu."""
    return (elu_ if inplace else activation.elu)(x, SELU_ALPHA, SELU_SCALE)


def selu_(x: Tensor) -> Tensor:
    """The in-place form of selu.  Source: torch.nn.functional.selu_."""
    return selu(x, inplace=True)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x kept between two numbers.  Source: torch.nn.functional.hardtanh."""
    return (hardtanh_ if inplace else activation.hardtanh)(x, min_val, max_val)


def celu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and alpha * (exp(x / alpha) - 1) below 0.  Source: torch.nn.functional.celu."""
    return celu_(x, alpha) if inplace else pieces.celu(x, alpha)


def hardsigmoid(x: Tensor, inplace: bool = False) -> Tensor:
    """x / 6 + 1 / 2, kept between 0 and 1.  Source: torch.nn.functional.hardsigmoid."""
    return _hardsigmoid_(x) if inplace else pieces.hardsigmoid(x)


def hardswish(x: Tensor, inplace: bool = False) -> Tensor:
    """x * hardsigmoid(x).  Source: torch.nn.functional.hardswish."""
    return _hardswish_(x) if inplace else pieces.hardswish(x)


def silu(x: Tensor, inplace: bool = False) -> Tensor:
    """Return x sigmoid(x).  Source: torch.nn.functional.silu."""
    return (_silu_ if inplace else activation.silu)(x)


def mish(x: Tensor, inplace: bool = False) -> Tensor:
    """Return x tanh(softplus(x)).  Source: torch.nn.functional.mish."""
    return (_mish_ if inplace else activation.mish)(x)


def threshold(x: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return x where it is above the threshold, else `value`.  Source: torch.nn.functional.threshold."""
    return (threshold_ if inplace else activation.threshold)(x, threshold, value)


def softsign(x: Tensor) -> Tensor:
    """Return x / (1 + |x|).  Source: torch.nn.functional.softsign."""
    return x / (absolute(x) + 1)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- norms
def rms_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dimensions.  Source: torch.nn.functional.rms_norm."""
    shape = layer_shape(x, normalized_shape)
    eps = finfo(x.dtype).eps if eps is None else eps
    wide = x.to(float32) if x.dtype is float16 else x
    normal: Tensor = wide * rsqrt(mean(square(wide), tuple(range(-len(shape), 0)), keepdim=True) + eps)
    return (normal if weight is None else normal * weight).to(x.dtype)  # type: ignore[no-any-return]


def instance_norm(x: Tensor, running_mean: Tensor | None = None, running_var: Tensor | None = None,
                  weight: Tensor | None = None, bias: Tensor | None = None, use_input_stats: bool = True,
                  momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalize each channel of each sample: batch_norm with the samples among the channels.

    Source: torch.nn.functional.instance_norm.
    """
    n, channels, *rest = x.shape
    means, variances, weights, biases = (
        v if v is None else repeat(v, n) for v in (running_mean, running_var, weight, bias))
    out = batch_norm(reshape(x, 1, n * channels, *rest), means, variances, weights, biases, use_input_stats, momentum, eps)
    for old, new in ((running_mean, means), (running_var, variances)):
        if use_input_stats and old is not None and new is not None:
            with no_grad():
                copy_(old, mean(reshape(new, n, channels), 0))
    return reshape(out, x.shape)


def normalize(x: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divide by the p-norm along a dimension, or by eps where that is larger.  Source: torch.nn.functional.normalize."""
    return x / widened(clamp_min(vector_norm(x, p, dim, keepdim=True), eps), x.shape)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension.  Source: torch.nn.functional.cosine_similarity."""
    x1, x2 = broadcast_tensors(x1, x2)
    a, b = (at_least(vector_norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2))
    return sum_over((x1 / a) * (x2 / b), dim)


# ---------------------------------------------------------------- losses of pairs of elements
def _pair(x: Tensor, target: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    check_reduction(reduction)
    if x.shape == target.shape:
        return x, target
    warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({x.shape}). This will likely "
                  "lead to incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=3)
    x, target = broadcast_tensors(x, target)
    return x, target


def _weighed(each: Tensor, weight: Tensor, reduction: str, shape: tuple[int, ...]) -> Tensor:
    """Losses times their weights; the mean is over the weights."""
    if weight.shape != shape:
        msg = "Weights and input must have the same size."
        raise ValueError(msg)
    return reduced(each * weight, "sum") / weight.sum() if reduction == "mean" else reduced(each * weight, reduction)


def mse_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The squared difference; reduction: "mean", "sum" or "none".  Source: torch.nn.functional.mse_loss."""
    shape = x.shape
    x, target = _pair(x, target, reduction)
    if weight is not None:
        return _weighed(square(x - target), weight, reduction, shape)
    return loss.square_loss(x, target, width=0, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", weight: Tensor | None = None) -> Tensor:
    """The absolute difference.  Source: torch.nn.functional.l1_loss."""
    shape = x.shape
    x, target = _pair(x, target, reduction)
    if weight is not None:
        return _weighed(absolute(x - target), weight, reduction, shape)
    return reduced(absolute(x - target), reduction)


def smooth_l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The absolute difference less beta / 2, made smooth below beta.  Source: torch.nn.functional.smooth_l1_loss."""
    if beta < 0:
        msg = "smooth_l1_loss does not support negative values for beta."
        raise UsageError(msg)
    x, target = _pair(x, target, reduction)
    if beta == 0:
        return reduced(absolute(x - target), reduction)
    return loss.smooth_l1(x, target, width=beta, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def huber_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", delta: float = 1.0) -> Tensor:
    """Return delta times smooth_l1_loss of that beta.  Source: torch.nn.functional.huber_loss."""
    if delta <= 0:
        msg = "huber_loss does not support non-positive values for delta."
        raise UsageError(msg)
    x, target = _pair(x, target, reduction)
    return loss.huber(x, target, width=delta, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def binary_cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean") -> Tensor:
    """Of probabilities x with those in target; weight broadcasts.  Source: torch.nn.functional.binary_cross_entropy."""
    check_reduction(reduction)
    if x.shape != target.shape:
        msg = (f"Using a target size ({target.shape}) that is different to the input size ({x.shape}) is deprecated. Please "
               "ensure they have the same size.")
        raise ValueError(msg)
    if weight is not None:
        weight = widened(weight, broadcast_shapes(target.shape, weight.shape))
    return loss.probable_loss(x, target, weight, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def binary_cross_entropy_with_logits(x: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(x), that never overflows; pos_weight: the weight of positive examples.

    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    """
    check_reduction(reduction)
    if x.shape != target.shape:
        msg = f"Target size ({target.shape}) must be the same as input size ({x.shape})"
        raise ValueError(msg)
    return loss.logit_loss(x, target, weight, pos_weight, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def kl_div(x: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return target (log target - x), of log-probabilities x; reduction may also be "batchmean".

    Source: torch.nn.functional.kl_div.
    """
    if reduction != "batchmean":
        check_reduction(reduction)
    each = exp(target) * (target - x) if log_target else xlogy(target, target) - target * x
    return sum_over(each) / x.shape[0] if reduction == "batchmean" else reduced(each, reduction)


# ---------------------------------------------------------------- losses of classes
def _check_classes(x: Tensor, target: Tensor) -> None:
    if x.ndim and x.shape[0] != (target.shape[0] if target.ndim and x.ndim > 1 else x.shape[0]):
        msg = f"Expected input batch_size ({x.shape[0]}) to match target batch_size ({target.shape[0]})."
        raise ValueError(msg)
    if target.shape != x.shape[:1] * (x.ndim > 1) + x.shape[2:]:
        msg = f"Expected target size {list(x.shape[:1] + x.shape[2:])}, got {list(target.shape)}"
        raise UsageError(msg)
    if target.dtype not in (int64, uint8):
        msg = f"expected target dtype to be Long or Byte, but got {target.dtype}"
        raise UsageError(msg)


def nll_loss(x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100,
             reduction: str = "mean") -> Tensor:
    """Minus the log-probability in x of each target class: x (C), (N, C) or (N, C, ...), target x's shape without C.

    weight (C): of each class, which a mean divides by.  Samples of class ignore_index count nothing.
    Raises IndexError where there is no such class.  Source: torch.nn.functional.nll_loss.
    """
    check_reduction(reduction)
    _check_classes(x, target)
    if x.ndim <= 2:
        out, _ = loss.class_loss(x, target, weight, reduction=reduction, ignore_index=ignore_index, rank=target.ndim)
        return out  # type: ignore[no-any-return]
    n, classes, *rest = x.shape
    flat, wide = (x, target) if len(rest) == 2 else (
        reshape(x, n, classes, 1, prod(rest)), reshape(target, n, 1, prod(rest)))
    out, _ = loss.class_loss_2d(flat, wide, weight, reduction=reduction, ignore_index=ignore_index, rank=3)
    return out if reduction != "none" or len(rest) == 2 else reshape(out, n, *rest)


def cross_entropy(x: Tensor, target: Tensor, weight: Tensor | None = None, *, ignore_index: int = -100,
                  reduction: str = "mean", label_smoothing: float = 0.0) -> Tensor:
    """nll_loss of log_softmax over the classes; target may also be probabilities, of x's shape.

    label_smoothing: the part of every target's weight that all classes share.  Source: torch.nn.functional.cross_entropy.
    """
    check_reduction(reduction)
    if not 0 <= label_smoothing <= 1:
        msg = f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}"
        raise UsageError(msg)
    dim = 0 if x.ndim == 1 else 1
    classes = x.shape[dim]
    wide = None if weight is None else reshape(weight, *[1] * dim, classes, *[1] * (x.ndim - dim - 1))
    if x.shape == target.shape:
        return _of_probabilities(x, target, wide, dim, reduction, label_smoothing)
    logs = log_softmax(x, dim)
    out = nll_loss(logs, target, weight, ignore_index=ignore_index, reduction=reduction)
    if not label_smoothing:
        return out
    ignored = target == ignore_index
    each = masked_fill(-sum_over(logs if wide is None else logs * wide, dim), ignored, 0)
    if reduction == "mean":
        counted = ~ignored if weight is None else reshape(
            index_select(weight, 0, reshape(masked_fill(target, ignored, 0), -1)), target.shape) * ~ignored
        each = sum_over(each) / sum_over(counted)
    elif reduction == "sum":
        each = sum_over(each)
    return out * (1 - label_smoothing) + each * (label_smoothing / classes)


def _of_probabilities(x: Tensor, target: Tensor, weight: Tensor | None, dim: int, reduction: str, smoothing: float) -> Tensor:
    if target.dtype.category < FLOAT:
        msg = f"Expected floating point type for target with class probabilities, got {target.dtype}"
        raise UsageError(msg)
    classes = x.shape[dim]
    if smoothing:
        target = target * (1 - smoothing) + smoothing / classes
    each = log_softmax(x, dim) * target
    each = each if weight is None else each * weight
    if reduction == "none":
        return -sum_over(each, dim)
    total = -sum_over(each)
    return total / (x.numel() // classes) if reduction == "mean" else total


# ---------------------------------------------------------------- a linear layer and its loss in one
def linear_cross_entropy(x: Tensor, linear_weight: Tensor, target: Tensor, *, linear_bias: Tensor | None = None,
                         weight: Tensor | None = None, reduction: str = "mean", ignore_index: int | None = None,
                         label_smoothing: float = 0.0, options: Any = None) -> Tensor:
    """cross_entropy of linear(x, linear_weight, linear_bias); linear_weight (C, .., n) gives logits (N, C, ..).

    options: a LinearCrossEntropyOptions, whose batch_chunk_size is how many rows of logits there are at a time: each chunk
    is a checkpoint, so that every transform goes through.  Source: torch.nn.functional.linear_cross_entropy.
    """
    _check_linear(x, linear_weight, linear_bias)
    classes, *places, features = linear_weight.shape
    probabilities = target.shape == (*x.shape[:-1], classes, *places)
    if probabilities and ignore_index is not None:
        msg = "ignore_index cannot be specified when target contains probabilities"
        raise UsageError(msg)
    rows = reshape(linear_weight, classes * prod(places), features) if places else linear_weight
    bias = linear_bias if linear_bias is None or not places else reshape(linear_bias, classes * prod(places))
    ignored = -100 if ignore_index is None else ignore_index

    def loss_of(x: Tensor, target: Tensor, rows: Tensor, bias: Tensor | None, reduction: str) -> Tensor:
        logits = linear(x, rows, bias)
        logits = reshape(logits, *x.shape[:-1], classes, *places) if places else logits
        return cross_entropy(logits, target, weight, ignore_index=ignored, reduction=reduction, label_smoothing=label_smoothing)

    size = None if options is None else options.batch_chunk_size
    if size is None or x.ndim == 1 or probabilities:
        return loss_of(x, target, rows, bias, reduction)
    check_reduction(reduction)
    each = cat([checkpoint(loss_of, *pair, rows, bias, "none", use_reentrant=False)
                for pair in zip(split(x, size), split(target, size), strict=True)])
    if reduction != "mean":
        return reduced(each, reduction)
    kept = target != ignored
    counted = kept if weight is None else reshape(
        index_select(weight, 0, reshape(masked_fill(target, ~kept, 0), -1)), target.shape) * kept
    return sum_over(each) / sum_over(counted)


def _check_linear(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    wanted = None
    if x.ndim not in (1, 2):
        wanted = "input with dimensionality 1 or 2"
    elif weight.ndim < 2:
        wanted = "linear_weight with dimensionality at least 2"
    elif x.shape[-1] != weight.shape[-1]:
        wanted = "equal input and linear_weight last dimensions (in_features)"
    elif bias is not None and bias.shape != weight.shape[:-1]:
        wanted = f"linear_bias shape {list(weight.shape[:-1])}, not {list(bias.shape)}"
    elif weight.ndim > 2 and x.ndim == 1:
        wanted = "batched input, (N, in_features), with a linear_weight of more than 2 dimensions"
    if wanted:
        msg = f"expected {wanted}, got {list(x.shape)} and {list(weight.shape)}"
        raise UsageError(msg)


publish(globals())
