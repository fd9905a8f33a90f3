"""The functions of torch.nn.functional: torch's arguments, checked, then ops.

Source: torch.nn.functional.
"""

from __future__ import annotations

import warnings
from math import inf, prod, sqrt
from typing import TYPE_CHECKING, Any

from ..autograd.grad_mode import no_grad
from ..dtypes import FLOAT, bool_, float16, float32, int64, uint8
from ..errors import UsageError
from ..modes import publish
from ..ops import activation, loss, pieces
from ..ops.activation import gelu, logsigmoid, sigmoid, softplus
from ..ops.attention import attention, safe_softmax
from ..ops.choice import clamp_min
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
from ..ops.creation import ones, zeros
from ..ops.embedding import embedding, pad
from ..ops.gather import index_select
from ..ops.indexing import masked_fill
from ..ops.inplace import copy_, in_place
from ..ops.linalg import addmm, broadcast_shapes, matmul
from ..ops.norm import vector_norm
from ..ops.normalization import batch_norm, group_norm, layer_norm
from ..ops.picking import one_hot, repeat_interleave
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
from ..ops.products import pairwise_distance
from ..ops.random import coins
from ..ops.rearrange import broadcast_tensors, is_contiguous, repeat
from ..ops.reduction import mean
from ..ops.reduction import sum as sum_over
from ..ops.shape import expand, reshape, t, transpose, tril
from ..ops.softmax import log_softmax, softmax, softmin
from .ranking import (
    cosine_embedding_loss,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multilabel_soft_margin_loss,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "batch_norm", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "celu", "channel_shuffle", "conv1d", "conv2d", "conv3d", "conv_transpose1d",
    "conv_transpose2d", "conv_transpose3d", "cosine_embedding_loss", "cosine_similarity", "cross_entropy", "dropout",
    "dropout1d", "dropout2d", "dropout3d", "elu", "embedding", "fold", "gaussian_nll_loss", "gelu", "glu", "group_norm",
    "hardshrink", "hardsigmoid", "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "instance_norm",
    "interpolate", "kl_div", "l1_loss", "layer_norm", "leaky_relu", "linear", "log_softmax", "logsigmoid",
    "margin_ranking_loss", "max_pool1d", "max_pool2d", "max_pool3d", "mish", "mse_loss", "multilabel_soft_margin_loss",
    "nll_loss", "normalize", "one_hot", "pad", "pairwise_distance", "pixel_shuffle", "pixel_unshuffle", "poisson_nll_loss",
    "prelu", "relu", "relu6", "rms_norm", "scaled_dot_product_attention", "selu", "selu_", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softmin", "softplus", "softshrink", "softsign", "tanh", "tanhshrink",
    "threshold", "triplet_margin_loss", "triplet_margin_with_distance_loss", "unfold", "upsample_bilinear",
    "upsample_nearest",
]

# ---------------------------------------------------------------- activations, which may be done in place
_relu_ = in_place(activation.relu, "relu_")
_leaky_relu_ = in_place(activation.leaky_relu, "leaky_relu_")
_elu_ = in_place(activation.elu, "elu_")
_hardtanh_ = in_place(activation.hardtanh, "hardtanh_")
_silu_ = in_place(activation.silu, "silu_")
_mish_ = in_place(activation.mish, "mish_")
_threshold_ = in_place(activation.threshold, "threshold_")

_hardsigmoid_ = in_place(pieces.hardsigmoid, "hardsigmoid_")
_hardswish_ = in_place(pieces.hardswish, "hardswish_")
_celu_ = in_place(pieces.celu, "celu_")

SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


def relu(x: Tensor, inplace: bool = False) -> Tensor:
    """Return x, or 0 below 0.  Source: torch.nn.functional.relu."""
    return (_relu_ if inplace else activation.relu)(x)


def relu6(x: Tensor, inplace: bool = False) -> Tensor:
    """Return x kept between 0 and 6.  Source: torch.nn.functional.relu6."""
    return hardtanh(x, 0.0, 6.0, inplace)


def leaky_relu(x: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return x, or negative_slope * x below 0.  Source: torch.nn.functional.leaky_relu."""
    return (_leaky_relu_ if inplace else activation.leaky_relu)(x, negative_slope)


def elu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x, or alpha * (exp(x) - 1) below 0.  Source: torch.nn.functional.elu."""
    return (_elu_ if inplace else activation.elu)(x, alpha)


def selu(x: Tensor, inplace: bool = False) -> Tensor:
    """The elu that keeps mean 0 and variance 1.  Source: torch.nn.functional.selu."""
    return (_elu_ if inplace else activation.elu)(x, SELU_ALPHA, SELU_SCALE)


def selu_(x: Tensor) -> Tensor:
    """The in-place form of selu.  Source: torch.nn.functional.selu_."""
    return selu(x, inplace=True)


def hardtanh(x: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return x kept between two numbers.  Source: torch.nn.functional.hardtanh."""
    return (_hardtanh_ if inplace else activation.hardtanh)(x, min_val, max_val)


def celu(x: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """x, and alpha * (exp(x / alpha) - 1) below 0.  Source: torch.nn.functional.celu."""
    return _celu_(x, alpha) if inplace else pieces.celu(x, alpha)


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
    return (_threshold_ if inplace else activation.threshold)(x, threshold, value)


def softsign(x: Tensor) -> Tensor:
    """Return x / (1 + |x|).  Source: torch.nn.functional.softsign."""
    return x / (absolute(x) + 1)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- dropout
def dropout(x: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training each element is 0 with probability p, and the others grow by 1 / (1 - p); else x itself.

    Under vmap its `randomness` says whether samples differ; a checkpoint draws the same again.
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


def _dropped(x: Tensor, p: float, training: bool, inplace: bool, shape: tuple[int, ...]) -> Tensor:
    if not 0 <= p <= 1:
        msg = f"dropout probability has to be between 0 and 1, but got {p}"
        raise ValueError(msg)
    if p == 0 or not training or 0 in x.shape:
        return x
    noise = zeros((), dtype=x.dtype, device=x.device) if p == 1 else coins(shape, 1 - p, x.dtype, x.device) / (1 - p)
    return x.mul_(noise) if inplace else x * noise


# ---------------------------------------------------------------- linear
def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """The product of x's last dimension with the rows of `weight`, plus bias.

    One addmm where there is a bias and x folds without a copy, as in torch.  Source: torch.nn.functional.linear.
    """
    if not x.ndim or not weight.ndim:
        msg = f"both arguments to linear need to be at least 1D, but they are {x.ndim}D and {weight.ndim}D"
        raise UsageError(msg)
    if bias is None:
        return matmul(x, t(weight))
    if x.ndim == 2:
        return addmm(bias, x, t(weight))
    if is_contiguous(x):
        rows = addmm(bias, reshape(x, prod(x.shape[:-1]), x.shape[-1]), t(weight))
        return reshape(rows, *x.shape[:-1], rows.shape[-1])
    return matmul(x, t(weight)) + bias


# ---------------------------------------------------------------- norms
def rms_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    """Divide by the root of the mean square over the last dimensions.  Source: torch.nn.functional.rms_norm."""
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape):] != shape:
        msg = (f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got "
               f"input of size{list(x.shape)}")
        raise UsageError(msg)
    eps = {2: 2.0 ** -10, 4: 2.0 ** -23, 8: 2.0 ** -52}[x.dtype.to_real().itemsize] if eps is None else eps
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
    return x / expand(clamp_min(vector_norm(x, p, dim, keepdim=True), eps), x.shape)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between vectors along a dimension.  Source: torch.nn.functional.cosine_similarity."""
    x1, x2 = broadcast_tensors(x1, x2)
    a, b = (_at_least(vector_norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2))
    return sum_over((x1 / a) * (x2 / b), dim)


def _at_least(x: Tensor, least: float) -> Tensor:
    """clamp_min whose derivative is 1 everywhere, at every level and order."""
    now = x.detach()
    return x + (clamp_min(now, least) - now)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- losses of pairs of elements
def _check_reduction(reduction: str) -> None:
    if reduction not in ("none", "mean", "sum"):
        msg = f"{reduction} is not a valid value for reduction"
        raise ValueError(msg)


def _reduced(x: Tensor, reduction: str) -> Tensor:
    return mean(x) if reduction == "mean" else sum_over(x) if reduction == "sum" else x


def _pair(x: Tensor, target: Tensor, reduction: str) -> tuple[Tensor, Tensor]:
    _check_reduction(reduction)
    if x.shape == target.shape:
        return x, target
    warnings.warn(f"Using a target size ({target.shape}) that is different to the input size ({x.shape}). This will likely "
                  "lead to incorrect results due to broadcasting. Please ensure they have the same size.", stacklevel=3)
    x, target = broadcast_tensors(x, target)
    return x, target


def mse_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The squared difference; reduction: "mean", "sum" or "none".  Source: torch.nn.functional.mse_loss."""
    x, target = _pair(x, target, reduction)
    return loss.square_loss(x, target, width=0, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """The absolute difference.  Source: torch.nn.functional.l1_loss."""
    x, target = _pair(x, target, reduction)
    return _reduced(absolute(x - target), reduction)


def smooth_l1_loss(x: Tensor, target: Tensor, *, reduction: str = "mean", beta: float = 1.0) -> Tensor:
    """The absolute difference less beta / 2, made smooth below beta.  Source: torch.nn.functional.smooth_l1_loss."""
    if beta < 0:
        msg = "smooth_l1_loss does not support negative values for beta."
        raise UsageError(msg)
    x, target = _pair(x, target, reduction)
    if beta == 0:
        return _reduced(absolute(x - target), reduction)
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
    _check_reduction(reduction)
    if x.shape != target.shape:
        msg = (f"Using a target size ({target.shape}) that is different to the input size ({x.shape}) is deprecated. Please "
               "ensure they have the same size.")
        raise ValueError(msg)
    if weight is not None:
        weight = expand(weight, broadcast_shapes(target.shape, weight.shape))
    return loss.probable_loss(x, target, weight, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def binary_cross_entropy_with_logits(x: Tensor, target: Tensor, weight: Tensor | None = None, *, reduction: str = "mean",
                                     pos_weight: Tensor | None = None) -> Tensor:
    """binary_cross_entropy of sigmoid(x), that never overflows; pos_weight: the weight of positive examples.

    Source: torch.nn.functional.binary_cross_entropy_with_logits.
    """
    _check_reduction(reduction)
    if x.shape != target.shape:
        msg = f"Target size ({target.shape}) must be the same as input size ({x.shape})"
        raise ValueError(msg)
    return loss.logit_loss(x, target, weight, pos_weight, reduction=reduction, rank=x.ndim)  # type: ignore[no-any-return]


def kl_div(x: Tensor, target: Tensor, *, reduction: str = "mean", log_target: bool = False) -> Tensor:
    """Return target (log target - x), of log-probabilities x; reduction may also be "batchmean".

    Source: torch.nn.functional.kl_div.
    """
    if reduction != "batchmean":
        _check_reduction(reduction)
    each = exp(target) * (target - x) if log_target else loss.xlogy(target, target) - target * x
    return sum_over(each) / x.shape[0] if reduction == "batchmean" else _reduced(each, reduction)


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
    _check_reduction(reduction)
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
    _check_reduction(reduction)
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


# ---------------------------------------------------------------- attention
def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(scale query keyᵀ + mask) value, over (..., length, features).

    attn_mask: numbers to add, or truth values of what takes part; is_causal: no key after the query; scale: 1 / sqrt(features)
    without; enable_gqa: several query heads (dimension -3) share a key head.  A row without any key gives 0.
    One row that keeps no weights where torch has one (four dimensions, no dropout, a mask without gradient), else matmul,
    softmax, matmul.  Source: torch.nn.functional.scaled_dot_product_attention.
    """
    if not query.dtype is key.dtype is value.dtype:
        msg = ("Expected query, key, and value to have the same dtype, but got query.dtype: "
               f"{query.dtype} key.dtype: {key.dtype} and value.dtype: {value.dtype} instead.")
        raise UsageError(msg)
    if attn_mask is not None and is_causal:
        msg = "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True"
        raise UsageError(msg)
    scale = 1 / sqrt(query.shape[-1]) if scale is None else scale
    if enable_gqa:
        key, value = (repeat_interleave(x, query.shape[-3] // x.shape[-3], -3) for x in (key, value))
    if attn_mask is not None and attn_mask.dtype is bool_:
        attn_mask = _added(attn_mask, query)
    if not dropout_p and _one_row(query, key, value, attn_mask):
        return attention(query, key, value, attn_mask, is_causal=is_causal, scale=scale)[0]  # type: ignore[no-any-return]
    if query.dtype is float16:  # as torch, in single
        query, key, value = (x.to(float32) for x in (query, key, value))
        mask = None if attn_mask is None else attn_mask.to(float32)
        return scaled_dot_product_attention(query, key, value, mask, dropout_p, is_causal, scale).to(float16)  # type: ignore[no-any-return]
    if is_causal:
        attn_mask = _added(tril(ones(query.shape[-2], key.shape[-2], dtype=bool_, device=query.device)), query)
    root = sqrt(abs(scale))
    scores = matmul(query * (root if scale > 0 else -root), transpose(key, -2, -1) * root)
    scores = scores if attn_mask is None else scores + attn_mask
    return matmul(dropout(safe_softmax(scores, dim=scores.ndim - 1), dropout_p), value)


def _added(mask: Tensor, like: Tensor) -> Tensor:
    return masked_fill(zeros(mask.shape, dtype=like.dtype, device=like.device), ~mask, -inf)


def _one_row(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Source: sdp_utils_cpp.cpp, use_flash_attention_cpp."""
    if not query.ndim == key.ndim == value.ndim == 4 or 0 in (*query.shape, *key.shape):
        return False
    if key.shape != value.shape or query.shape[:2] != key.shape[:2] or query.shape[3] != key.shape[3]:
        return False
    if mask is not None and (mask.requires_grad or mask.ndim not in (2, 4)):
        return False
    return all(_last_is_dense(x) for x in (query, key, value))


def _last_is_dense(x: Tensor) -> bool:
    while x.owner is not None:
        x = x.value
    return x.value.strides[-1] == x.value.itemsize  # type: ignore[no-any-return]


publish(globals())
