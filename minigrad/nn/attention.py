"""Attention with several heads.  Source: torch.nn.MultiheadAttention."""

from __future__ import annotations

from math import inf, sqrt
from typing import TYPE_CHECKING

from ..dtypes import bool_
from ..errors import Refusal, UsageError
from ..ops.creation import empty, zeros
from ..ops.indexing import masked_fill
from ..ops.joining import chunk
from ..ops.linalg import matmul
from ..ops.shape import reshape, transpose, unsqueeze
from . import functional as F  # noqa: N812  torch's habit
from . import init
from .layers import Linear
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..backend import Device
    from ..dtypes import dtype
    from ..tensor import Tensor


class MultiheadAttention(Module):
    """Attention of num_heads heads, between projections: (length, batch, embed_dim), batch before length if batch_first.

    Source: torch.nn.MultiheadAttention.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
                 device: str | Device | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        if add_bias_kv or add_zero_attn or kdim not in (None, embed_dim) or vdim not in (None, embed_dim):
            msg = ("MultiheadAttention: keys and values have embed_dim features and nothing is added to them: project them, or "
                   "append to them, outside.")
            raise Refusal(msg)
        if embed_dim % num_heads:
            msg = "embed_dim must be divisible by num_heads"
            raise UsageError(msg)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.in_proj_weight = Parameter(
            init.xavier_uniform_(empty(3 * embed_dim, embed_dim, device=device, dtype=dtype)))
        self.register_parameter("in_proj_bias", Parameter(zeros(3 * embed_dim, device=device, dtype=dtype)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if bias:
            init.zeros_(self.out_proj.bias)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Return the result, and the weights (batch, queries, keys) where they are needed, of each head unless averaged.

        Masks are true, or hold a number to add, where a key takes no part: key_padding_mask (batch, keys), attn_mask
        (queries, keys) or (batch * heads, queries, keys).  is_causal says what attn_mask is, and needs it.
        """
        if is_causal and attn_mask is None:
            msg = "Need attn_mask if specifying the is_causal hint."
            raise UsageError(msg)
        if query.ndim == 2:
            at = 0 if self.batch_first else 1
            pad = None if key_padding_mask is None else unsqueeze(key_padding_mask, 0)
            out, weights = self.forward(unsqueeze(query, at), unsqueeze(key, at), unsqueeze(value, at), pad, need_weights,
                                        attn_mask, average_attn_weights)
            return out.squeeze(at), None if weights is None else weights.squeeze(0)
        inputs = [x if self.batch_first else transpose(x, 0, 1) for x in (query, key, value)]
        biases = (None,) * 3 if self.in_proj_bias is None else chunk(self.in_proj_bias, 3)
        q, k, v = (self._heads(F.linear(x, w, b))
                   for x, w, b in zip(inputs, chunk(self.in_proj_weight, 3), biases, strict=True))
        mask = _joined(attn_mask, key_padding_mask, q)
        p = self.dropout if self.training else 0.0
        if need_weights:
            scores = matmul(q / sqrt(q.shape[-1]), transpose(k, -2, -1))
            weights = F.dropout(F.softmax(scores if mask is None else scores + mask, -1), p)
            out = matmul(weights, v)
        else:
            weights, out = None, F.scaled_dot_product_attention(q, k, v, mask, p)
        out = transpose(out, 1, 2)
        out = self.out_proj(reshape(out, *out.shape[:2], self.embed_dim))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        return out if self.batch_first else transpose(out, 0, 1), weights

    def _heads(self, x: Tensor) -> Tensor:
        """(batch, length, features) as (batch, heads, length, features of each)."""
        return transpose(reshape(x, *x.shape[:2], self.num_heads, -1), 1, 2)


def _joined(attn_mask: Tensor | None, padding: Tensor | None, q: Tensor) -> Tensor | None:
    """Both masks as numbers to add to (batch, heads, queries, keys)."""
    total = None
    if attn_mask is not None:
        total = _added(attn_mask, q)
        if attn_mask.ndim == 3:
            total = reshape(total, *q.shape[:2], *attn_mask.shape[1:])
    if padding is not None:
        pad = _added(padding, q)[:, None, None, :]
        total = pad if total is None else total + pad
    return total


def _added(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype is not bool_:
        return mask
    return masked_fill(zeros(mask.shape, dtype=like.dtype, device=like.device), mask, -inf)
