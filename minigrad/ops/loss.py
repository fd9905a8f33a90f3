"""Losses that torch has rows of their own for: they save their arguments, and reduce at once.

`reduction` is "none", "mean" or "sum", and `rank` the number of dimensions that it reduces, the last ones: a batch in front
of them stays, so that every vmap is the same kernel.

Upstream: mse_loss, smooth_l1_loss, huber_loss, binary_cross_entropy*, nll_loss* in derivatives.yaml.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..row import OpFunction, row
from .activation import sigmoid, softplus
from .batching import padded, to_front
from .choice import ONLY_FLOAT, clamp, clamp_min
from .creation import new_zeros
from .gather import elements, flat_places
from .pointwise import log, log1p
from .shape import reshape, sum_dims

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- reductions of the last `rank` dimensions
def _last(x: Any, rank: int) -> tuple[int, ...]:
    return tuple(range(x.ndim - rank, x.ndim))


def _reduced(x: Array, reduction: str, rank: int) -> Array:
    return x if reduction == "none" else (x.mean if reduction == "mean" else x.sum)(_last(x, rank))


def _push(x: Tensor, reduction: str, rank: int) -> Tensor:
    """The tangent of the loss, from those of its elements."""
    if reduction == "none":
        return x
    total: Tensor = sum_dims(x, dims=_last(x, rank), keepdim=False)
    return total / prod(x.shape[x.ndim - rank:]) if reduction == "mean" else total


def _pull(ct: Tensor, x: Tensor, reduction: str, rank: int) -> Tensor:
    """The cotangent of every element, up to broadcasting, from that of the loss."""
    if reduction == "none":
        return ct
    each = reshape(ct, *ct.shape, *[1] * rank) if ct.ndim else ct
    return each / prod(x.shape[x.ndim - rank:]) if reduction == "mean" else each


def _batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """Batches go to the front of input and target, and of weights, which may have fewer dimensions."""
    fronts = []
    for i, (x, bdim) in enumerate(zip(values, bdims, strict=True)):
        if x is None or (bdim is None and i > 1):
            fronts.append(x)
            continue
        front = to_front(x, bdim, size)
        fronts.append(padded(front, fronts[0].ndim - front.ndim if fronts else 0))
    return op.call(*fronts, **params), 0


# ---------------------------------------------------------------- of the difference of two tensors
def _of_difference(name: str, value: Callable[..., Array], slope: Callable[[Tensor, float, Any], Tensor]) -> OpFunction:
    """The row of value(xp, x0 - x1, width) for each element; `slope` gives its derivative times a third argument."""
    def kernel(xp: Any, x0: Array, x1: Array, width: float, reduction: str, rank: int) -> Array:
        return _reduced(value(xp, x0 - x1, width), reduction, rank)

    def pull(ct: Tensor, x0: Tensor, x1: Tensor, needs: tuple[bool, ...], width: float, reduction: str, rank: int) -> list[Any]:
        grad = slope(x0 - x1, width, _pull(ct, x0, reduction, rank))
        return [grad if needs[0] else None, -grad if needs[1] else None]

    def push(dx: list[Any], x0: Tensor, x1: Tensor, width: float, reduction: str, rank: int) -> Tensor:
        d = -dx[1] if dx[0] is None else dx[0] if dx[1] is None else dx[0] - dx[1]
        return _push(slope(x0 - x1, width, d), reduction, rank)

    return row(name, kernel, promote="arith", saves=("x0", "x1"), batch=_batch, refuses=ONLY_FLOAT, vjp=pull, jvp=push)


def _square(xp: Any, d: Array, width: float) -> Array:
    return d * d


def _smooth_l1(xp: Any, d: Array, beta: float) -> Array:
    size = xp.abs(d)
    return xp.where(size < beta, d * d * (0.5 / beta), size - 0.5 * beta)


def _huber(xp: Any, d: Array, delta: float) -> Array:
    size = xp.abs(d)
    return xp.where(size <= delta, 0.5 * d * d, delta * (size - 0.5 * delta))


square_loss = _of_difference("mse_loss", _square, lambda d, width, each: d * (each * 2))
smooth_l1 = _of_difference("smooth_l1_loss", _smooth_l1, lambda d, beta, each: clamp(d, -beta, beta) * (each / beta))
huber = _of_difference("huber_loss", _huber, lambda d, delta, each: clamp(d, -delta, delta) * each)


# ---------------------------------------------------------------- binary cross-entropy, of probabilities and of logits
def _weighted(x: Any, weight: Any) -> Any:
    return x if weight is None else x * weight


def _bce_kernel(xp: Any, x0: Array, x1: Array, x2: Any, reduction: str, rank: int) -> Array:
    if x0.size and not (x0.min() >= 0 and x0.max() <= 1):
        msg = "all elements of input should be between 0 and 1"
        raise UsageError(msg)
    yes, no = xp.maximum(xp.log(x0), -100), xp.maximum(xp.log1p(-x0), -100)
    return _reduced(_weighted((x1 - 1) * no - x1 * yes, x2), reduction, rank)


def _bce_slope(x0: Tensor, x1: Tensor, x2: Any) -> Tensor:
    return _weighted((x0 - x1) / clamp_min((1 - x0) * x0, 1e-12), x2)  # type: ignore[no-any-return]


def _bce_target_slope(x0: Tensor, x1: Tensor, x2: Any) -> Tensor:
    return _weighted(log1p(-x0) - log(x0), x2)  # type: ignore[no-any-return]


probable_loss: OpFunction = row(
    "binary_cross_entropy", _bce_kernel, saves=("x0", "x1", "x2"), batch=_batch,
    vjp=(lambda ct, x0, x1, x2, reduction, rank: _pull(ct, x0, reduction, rank) * _bce_slope(x0, x1, x2),
         lambda ct, x0, x1, x2, reduction, rank: _pull(ct, x0, reduction, rank) * _bce_target_slope(x0, x1, x2), None),
    jvp=(lambda dx, x0, x1, x2, reduction, rank: _push(dx * _bce_slope(x0, x1, x2), reduction, rank),
         lambda dx, x0, x1, x2, reduction, rank: _push(dx * _bce_target_slope(x0, x1, x2), reduction, rank), None))


def _logit_kernel(xp: Any, x0: Array, x1: Array, x2: Any, x3: Any, reduction: str, rank: int) -> Array:
    no = xp.log1p(xp.exp(-xp.abs(x0))) + xp.maximum(-x0, 0)
    return _reduced(_weighted((1 - x1) * x0 + (no if x3 is None else ((x3 - 1) * x1 + 1) * no), x2), reduction, rank)


def _logit_slope(x0: Tensor, x1: Tensor, x2: Any, x3: Any) -> Tensor:
    if x3 is None:
        return _weighted(sigmoid(x0) - x1, x2)  # type: ignore[no-any-return]
    return _weighted((x3 * x1 + 1 - x1) * sigmoid(x0) - x3 * x1, x2)  # type: ignore[no-any-return]


def _logit_target_slope(x0: Tensor, x1: Tensor, x2: Any, x3: Any) -> Tensor:
    return _weighted(-x0 if x3 is None else (x3 - 1) * softplus(-x0) - x0, x2)  # type: ignore[no-any-return]


logit_loss: OpFunction = row(
    "binary_cross_entropy_with_logits", _logit_kernel, saves=("x3", "x0", "x1", "x2"), batch=_batch,
    vjp=(lambda ct, x0, x1, x2, x3, reduction, rank: _pull(ct, x0, reduction, rank) * _logit_slope(x0, x1, x2, x3),
         lambda ct, x0, x1, x2, x3, reduction, rank: _pull(ct, x0, reduction, rank) * _logit_target_slope(x0, x1, x2, x3),
         None, None),
    jvp=(lambda dx, x0, x1, x2, x3, reduction, rank: _push(dx * _logit_slope(x0, x1, x2, x3), reduction, rank),
         lambda dx, x0, x1, x2, x3, reduction, rank: _push(dx * _logit_target_slope(x0, x1, x2, x3), reduction, rank),
         None, None))


# ---------------------------------------------------------------- negative log-likelihood of a class
def _samples(xp: Any, x1: Array, x2: Any, shape: tuple[int, ...], ignore_index: int,
             rank: int) -> tuple[tuple[Array, ...], Array]:
    """Where the class of each sample is in an array of `shape`, as a key, and its weight: false or 0 where it is ignored.

    The dimension of classes follows the first one of the samples, or stands where there is none.
    """
    axis = x1.ndim - rank + (rank > 0)
    kept = x1 != ignore_index
    index = xp.where(kept, x1, 0)
    if index.size and xp.max(index.astype("uint64", copy=False)) >= shape[axis]:  # a negative one becomes a huge one
        msg = f"Target {index.max() if index.min() >= 0 else index.min()} is out of bounds."
        raise IndexError(msg)
    grid = [xp.arange(n).reshape(-1, *[1] * (x1.ndim - d - 1)) for d, n in enumerate(x1.shape)]
    key = *grid[:axis], index, *grid[axis:]
    return key, kept if x2 is None else x2[(*grid[:x2.ndim - 1], index)] * kept


def _nll_kernel(xp: Any, x0: Array, x1: Array, x2: Any, reduction: str, ignore_index: int, rank: int) -> tuple[Array, Array]:
    """The loss, and the total weight of the samples."""
    key, weight = _samples(xp, x1, x2, x0.shape, ignore_index, rank)
    each = -elements(xp, x0, key) * weight
    axes = _last(weight, rank)
    total = xp.add.reduce(weight, axes, dtype=x0.dtype)
    loss = each if reduction == "none" else xp.add.reduce(each, axes)
    return _per(xp, loss, total) if reduction == "mean" else loss, total


def _per(xp: Any, x: Array, total: Array) -> Array:
    return x / xp.where(total != 0, total, xp.nan).astype(x.dtype, copy=False)


def _nll_backward_kernel(xp: Any, x0: Array, x1: Array, x2: Any, x3: Array, reduction: str, ignore_index: int, rank: int,
                         extents: tuple[int, ...]) -> Array:
    key, weight = _samples(xp, x1, x2, extents, ignore_index, rank)
    if reduction != "none":
        each = _per(xp, x0, x3) if reduction == "mean" else x0
        x0 = each.reshape(each.shape + (1,) * rank)
    out = xp.zeros(prod(extents), x0.dtype)
    out[flat_places(xp, key, extents)] = xp.where(weight, -x0 if x2 is None else -x0 * weight, 0)
    return out.reshape(extents)


def _nll_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    fronts = [x if x is None or (i == 2 and b is None and x.ndim == 1) else to_front(x, b, size)
              for i, (x, b) in enumerate(zip(values, bdims, strict=True))]
    return op.call(*fronts, **{**params, **({"extents": (size, *params["extents"])} if "extents" in params else {})}), 0


def _nll_pull(ct: list[Any], x0: Tensor, x1: Tensor, x2: Any, out1: Tensor, reduction: str, ignore_index: int,
              rank: int) -> Any:
    if ct[0] is None:
        return None
    return _nll_backward(ct[0], x1, x2, out1, reduction=reduction, ignore_index=ignore_index, rank=rank, extents=x0.shape)


def _nll(name: str, node: str) -> OpFunction:
    def push(dx: list[Any], x1: Tensor, x2: Any, reduction: str, ignore_index: int, rank: int) -> list[Any]:
        if dx[2] is not None:
            msg = f"The function '{name}' is not differentiable with respect to argument 'weight': detach it."
            raise UsageError(msg)
        return [made(dx[0], x1, x2, reduction=reduction, ignore_index=ignore_index, rank=rank)[0], None]

    made: OpFunction = row(name, _nll_kernel, outs=2, saves=("x0", "x1", "x2", "out1"), batch=_nll_batch,
                           vjp=(_nll_pull, None, None), jvp=push, node=node)
    return made


class_loss, class_loss_2d = _nll("nll_loss", "NllLossBackward0"), _nll("nll_loss2d", "NllLoss2DBackward0")

_nll_backward: OpFunction = row(
    "nll_loss_backward", _nll_backward_kernel, saves=("x1", "x2"), batch=_nll_batch,
    vjp=(lambda ct, x1, x2, reduction, ignore_index, rank: class_loss(
        ct, x1, x2, reduction=reduction, ignore_index=ignore_index, rank=rank)[0], None, None,
        lambda ct, shape3: new_zeros(ct, shape3)),
    jvp=(lambda dx, x1, x2, x3, reduction, ignore_index, rank, extents: _nll_backward(
        dx, x1, x2, x3, reduction=reduction, ignore_index=ignore_index, rank=rank, extents=extents), None, None, None))
