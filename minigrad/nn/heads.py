"""Attention under torch's names: of queries, keys and values, and of several heads between projections.

Source: torch.nn.functional.scaled_dot_product_attention, multi_head_attention_forward.
"""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING, Any

from ..dtypes import bool_, float16, float32
from ..errors import UsageError
from ..modes import publish
from ..ops.attention import attention, safe_softmax
from ..ops.creation import new_zeros, ones, zeros
from ..ops.embedding import pad
from ..ops.indexing import masked_fill
from ..ops.joining import cat, chunk
from ..ops.linalg import matmul
from ..ops.picking import repeat_interleave
from ..ops.products import linear
from ..ops.reduction import mean
from ..ops.shape import permute, reshape, squeeze, transpose, tril, unsqueeze, widened
from ..ops.softmax import softmax
from .noise import dropout

if TYPE_CHECKING:
    from ..tensor import Tensor

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                                 dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                                 enable_gqa: bool = False) -> Tensor:
    """softmax(scale query keyᵀ + mask) value, over (..., length, features).

    attn_mask: numbers to add, or truth values of what takes part; is_causal: no key after the query; scale: 1 / sqrt(features)
    without; enable_gqa: several query heads (dimension -3) share a key head.  A row without any key gives 0.
    One row that keeps no weights where torch has one (four dimensions, no dropout, a mask without gradient), else matmul,
    softmax, matmul.  Raises UsageError for different dtypes, and for a mask beside is_causal.
    Source: torch.nn.functional.scaled_dot_product_attention.
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
    """Truth values of what takes part, as numbers to add."""
    return masked_fill(zeros(mask.shape, dtype=like.dtype, device=like.device), ~mask, -inf)


def _one_row(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> bool:
    """Whether torch has one kernel for these, which saves no weights.  Source: sdp_utils_cpp.cpp, use_flash_attention_cpp."""
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


# ---------------------------------------------------------------- several heads
def multi_head_attention_forward(
        query: Tensor, key: Tensor, value: Tensor, embed_dim_to_check: int, num_heads: int, in_proj_weight: Any,
        in_proj_bias: Tensor | None, bias_k: Tensor | None, bias_v: Tensor | None, add_zero_attn: bool, dropout_p: float,
        out_proj_weight: Tensor, out_proj_bias: Tensor | None, training: bool = True, key_padding_mask: Tensor | None = None,
        need_weights: bool = True, attn_mask: Tensor | None = None, use_separate_proj_weight: bool = False,
        q_proj_weight: Tensor | None = None, k_proj_weight: Tensor | None = None, v_proj_weight: Tensor | None = None,
        static_k: Tensor | None = None, static_v: Tensor | None = None, average_attn_weights: bool = True,
        is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
    """Attention of num_heads heads, between projections: (length, batch, features); and its weights, where they are needed.

    in_proj_weight (3 E, E) projects queries, keys and values, unless each has a weight of its own.  bias_k and bias_v (E) are
    one more key and value; add_zero_attn adds one of zeros; static_k and static_v (batch * heads, length, E / heads) stand for
    those projected.  Masks are true, or hold a number to add, where a key takes no part: key_padding_mask (batch, keys),
    attn_mask (queries, keys) or (batch * heads, queries, keys); is_causal says what attn_mask is, and needs it.  Weights
    (batch, queries, keys) are of each head unless averaged.
    Raises UsageError where features are not those, or no multiple of num_heads.
    Source: torch.nn.functional.multi_head_attention_forward.
    """
    if query.ndim == 2:  # one sample
        padding = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
        out, weights = multi_head_attention_forward(
            unsqueeze(query, 1), unsqueeze(key, 1), unsqueeze(value, 1), embed_dim_to_check, num_heads, in_proj_weight,
            in_proj_bias, bias_k, bias_v, add_zero_attn, dropout_p, out_proj_weight, out_proj_bias, training, padding,
            need_weights, attn_mask, use_separate_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight, static_k, static_v,
            average_attn_weights, is_causal)
        return squeeze(out, 1), None if weights is None else squeeze(weights, 0)
    length, batch, features = query.shape
    if is_causal and attn_mask is None:
        msg = "Need attn_mask if specifying the is_causal hint."
        raise UsageError(msg)
    if features != embed_dim_to_check or features % num_heads:
        msg = (f"was expecting embedding dimension of {embed_dim_to_check}, divisible by num_heads {num_heads}, but got "
               f"{features}")
        raise UsageError(msg)
    projections: Any = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else chunk(in_proj_weight, 3)
    biases: Any = (None,) * 3 if in_proj_bias is None else chunk(in_proj_bias, 3)
    q, k, v = (linear(x, w, b) for x, w, b in zip((query, key, value), projections, biases, strict=True))
    if bias_k is not None and bias_v is not None:
        k, v = (cat([x, widened(reshape(b, 1, 1, -1), 1, batch, features)]) for x, b in ((k, bias_k), (v, bias_v)))
    q, k, v = (permute(reshape(x, x.shape[0], batch, num_heads, -1), 1, 2, 0, 3) for x in (q, k, v))
    k, v = (x if s is None else reshape(s, batch, num_heads, *s.shape[1:]) for x, s in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (cat([x, new_zeros(x, *x.shape[:2], 1, x.shape[3])], 2) for x in (k, v))
    mask = _joined(attn_mask, key_padding_mask, q, k.shape[2])
    p = dropout_p if training else 0.0
    if need_weights:
        scores = matmul(q * sqrt(1 / q.shape[-1]), transpose(k, -2, -1))
        weights = dropout(softmax(scores if mask is None else scores + mask, -1), p)
        out = matmul(weights, v)
    else:
        weights, out = None, scaled_dot_product_attention(q, k, v, mask, p)
    out = linear(reshape(permute(out, 2, 0, 1, 3), length, batch, features), out_proj_weight, out_proj_bias)
    return out, mean(weights, 1) if weights is not None and average_attn_weights else weights


def _joined(attn_mask: Tensor | None, padding: Tensor | None, q: Tensor, keys: int) -> Tensor | None:
    """Both masks as numbers to add to (batch, heads, queries, keys); keys that were added to the given ones take part."""
    masks = []
    if attn_mask is not None:
        mask = _leaving_out(attn_mask, q, keys)
        masks.append(reshape(mask, *q.shape[:2], *mask.shape[1:]) if mask.ndim == 3 else mask)
    if padding is not None:
        masks.append(reshape(_leaving_out(padding, q, keys), q.shape[0], 1, 1, keys))
    return None if not masks else masks[0] if len(masks) == 1 else masks[0] + masks[1]


def _leaving_out(mask: Tensor, like: Tensor, keys: int) -> Tensor:
    """A mask of keys to leave out, as numbers to add, for so many keys: those behind its end take part."""
    mask = _added(~mask, like) if mask.dtype is bool_ else mask
    return mask if mask.shape[-1] == keys else pad(mask, (0, keys - mask.shape[-1]))


publish(globals())
