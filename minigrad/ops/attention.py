"""Attention in one row, which keeps no matrix of weights: the backward computes them again from the logarithm of their sums.

    weights = exp(scores - logsumexp(scores))       scores = scale q kᵀ + mask        out = weights v

Rows of zero weight, where a mask leaves no key, give 0 and have logsumexp inf.

Upstream: _scaled_dot_product_flash_attention_for_cpu, _safe_softmax; aten/src/ATen/native/transformers.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..row import OpFunction, row
from .batching import along_dim, padded, to_front
from .creation import full
from .linalg import bmm_rows
from .pointwise import exp
from .reduction import total_of
from .shape import reshape, sum_dims, sum_to, triu, unsqueeze

if TYPE_CHECKING:
    from ..backend import Array
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values

plain, right, left = bmm_rows


def _finite(xp: Any, top: Array) -> Array:
    return xp.where(xp.isfinite(top), top, 0)


def _attention_kernel(xp: Any, x0: Array, x1: Array, x2: Array, x3: Any, is_causal: bool, scale: float) -> tuple[Array, Array]:
    wide = [x.astype("float32") if x.dtype.char == "e" else x for x in (x0, x1, x2)]
    weights = xp.matmul(wide[0], wide[1].swapaxes(-1, -2))
    weights *= scale
    if is_causal:
        weights += xp.triu(xp.full(weights.shape[-2:], -inf, weights.dtype), 1)
    if x3 is not None:
        weights += x3
    top = _finite(xp, weights.max(-1, keepdims=True))
    weights -= top
    xp.exp(weights, out=weights)
    total = weights.sum(-1, keepdims=True)
    some = xp.where(total != 0, total, 1)
    out = xp.matmul(weights, wide[2])
    out /= some
    sums = xp.where(total != 0, xp.log(some) + top, inf).squeeze(-1)
    return out.astype(x0.dtype, copy=False), sums.astype(weights.dtype, copy=False)


def _weights(x0: Tensor, x1: Tensor, x3: Any, out1: Tensor, is_causal: bool, scale: float) -> Tensor:
    scores = right(x0, x1) * scale
    if is_causal:
        scores = scores + triu(full(scores.shape[-2:], -inf, dtype=scores.dtype, device=scores.device), 1)
    if x3 is not None:
        scores = scores + x3
    return exp(scores - unsqueeze(out1, -1))  # type: ignore[no-any-return]


def _total(x: Tensor) -> Tensor:
    return sum_dims(x, dims=(x.ndim - 1,), keepdim=True)  # type: ignore[no-any-return]


def _attention_vjp(ct: list[Any], x3: Any, x1: Tensor, x0: Tensor, x2: Tensor, out1: Tensor, out0: Tensor,
                   needs: tuple[bool, ...], is_causal: bool, scale: float) -> list[Any]:
    g, g_sums = ct
    weights = _weights(x0, x1, x3, out1, is_causal, scale)
    grads: list[Any] = [None] * 4
    inner = 0 if g_sums is None else unsqueeze(g_sums, -1)
    if g is not None:
        if needs[2]:
            grads[2] = left(weights, g)
        inner = right(g, x2) - (_total(g * out0) - inner)
    inner = weights * inner
    if needs[3]:
        grads[3] = sum_to(inner, x3.shape)
    inner = inner * scale
    if needs[0]:
        grads[0] = plain(inner, x1)
    if needs[1]:
        grads[1] = left(inner, x0)
    return [g if g is None else g.to(x0.dtype) for g in grads]  # halves are computed in single


def _attention_jvp(dx: list[Any], x0: Tensor, x1: Tensor, x2: Tensor, x3: Any, out1: Tensor, is_causal: bool,
                   scale: float) -> list[Any]:
    dq, dk, dv, dmask = dx
    weights = _weights(x0, x1, x3, out1, is_causal, scale)
    inner = total_of(dmask, None if dq is None else right(dq, x1) * scale, None if dk is None else right(x0, dk) * scale)
    if inner is None:
        return [plain(weights, dv), None]
    inner = weights * inner
    sums = _total(inner)
    out = plain(inner - weights * sums, x2)
    return [out if dv is None else out + plain(weights, dv), reshape(sums, out1.shape)]


def _attention_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    *qkv, mask = values
    fronts = [to_front(x, b, size) for x, b in zip(qkv, bdims, strict=False)]
    if bdims[3] is not None:
        mask = padded(to_front(mask, bdims[3]), fronts[0].ndim - mask.ndim)
    return op.call(*fronts, mask, **params), 0


attention: OpFunction = row(
    "_scaled_dot_product_flash_attention_for_cpu", _attention_kernel, outs=2, saves=("x3", "x1", "x0", "x2", "out1", "out0"),
    vjp=_attention_vjp, jvp=_attention_jvp, batch=_attention_batch)


def _safe_softmax_kernel(xp: Any, x0: Array, dim: int) -> Array:
    out = xp.exp(x0 - _finite(xp, x0.max(dim, keepdims=True)))
    total = out.sum(dim, keepdims=True)
    out /= xp.where(total != 0, total, 1)
    return out


def _safe_rule(ct: Tensor, out: Tensor, dim: int) -> Tensor:
    return out * (ct - sum_dims(ct * out, dims=(dim,), keepdim=True))  # type: ignore[no-any-return]


safe_softmax: OpFunction = row("_safe_softmax", _safe_softmax_kernel, arity=1, saves=("out",), batch=along_dim,
                               vjp=(_safe_rule,), jvp=(_safe_rule,))
