"""Attention with several heads.  Source: torch.nn.MultiheadAttention."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import UsageError
from ..ops.creation import empty, zeros
from ..ops.shape import transpose
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

    kdim, vdim: the features of keys and values, embed_dim without.  add_bias_kv: one more key and value, which are learned;
    add_zero_attn: one of zeros.  Source: torch.nn.MultiheadAttention.
    """

    def __init__(self, embed_dim: int, num_heads: int, dropout: float = 0.0, bias: bool = True, add_bias_kv: bool = False,
                 add_zero_attn: bool = False, kdim: int | None = None, vdim: int | None = None, batch_first: bool = False,
                 device: str | Device | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        if embed_dim % num_heads:
            msg = "embed_dim must be divisible by num_heads"
            raise UsageError(msg)
        self.embed_dim = embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.add_zero_attn = add_zero_attn
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.separate = not self.kdim == self.vdim == embed_dim

        def projection(rows: int, columns: int) -> Tensor:
            return Parameter(init.xavier_uniform_(empty(rows, columns, device=device, dtype=dtype)))  # type: ignore[no-any-return]

        for name, n in (("q_proj_weight", embed_dim), ("k_proj_weight", self.kdim), ("v_proj_weight", self.vdim)):
            self.register_parameter(name, projection(embed_dim, n) if self.separate else None)
        self.register_parameter("in_proj_weight", None if self.separate else projection(3 * embed_dim, embed_dim))
        self.register_parameter("in_proj_bias", Parameter(zeros(3 * embed_dim, device=device, dtype=dtype)) if bias else None)
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        if bias:
            init.zeros_(self.out_proj.bias)
        for name in ("bias_k", "bias_v"):
            self.register_parameter(name, Parameter(init.xavier_normal_(empty(1, 1, embed_dim, device=device, dtype=dtype)))
                                    if add_bias_kv else None)

    def forward(self, query: Tensor, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None,
                need_weights: bool = True, attn_mask: Tensor | None = None, average_attn_weights: bool = True,
                is_causal: bool = False) -> tuple[Tensor, Tensor | None]:
        """Return the result, and the weights (batch, queries, keys) where they are needed, of each head unless averaged.

        Masks are true, or hold a number to add, where a key takes no part: key_padding_mask (batch, keys), attn_mask
        (queries, keys) or (batch * heads, queries, keys).  is_causal says what attn_mask is, and needs it.
        """
        turned = self.batch_first and query.ndim == 3
        query, key, value = (transpose(x, 0, 1) if turned else x for x in (query, key, value))
        out, weights = F.multi_head_attention_forward(
            query, key, value, self.embed_dim, self.num_heads, self.in_proj_weight, self.in_proj_bias, self.bias_k, self.bias_v,
            self.add_zero_attn, self.dropout, self.out_proj.weight, self.out_proj.bias, self.training, key_padding_mask,
            need_weights, attn_mask, self.separate, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight,
            average_attn_weights=average_attn_weights, is_causal=is_causal)
        return transpose(out, 0, 1) if turned else out, weights
