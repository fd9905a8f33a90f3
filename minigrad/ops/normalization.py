"""Rows that bring numbers to mean 0 and variance 1: over a layer, over each channel of a batch, over groups of channels.

    normal = (x - mean) rstd        out = normal weight + bias        (outputs: out, mean, rstd)

They differ in their `Layout` alone.  x and the moments are saved, and `normal` is computed again, as in torch.

Upstream: native_layer_norm, native_batch_norm, native_group_norm in derivatives.yaml.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import FLOAT
from ..errors import UsageError
from ..row import OpFunction, row
from ..state import current
from .batching import to_front
from .inplace import copy_
from .pointwise import rsqrt
from .shape import detach, moveaxis, reshape, sum_dims, sum_to, widened

if TYPE_CHECKING:
    from ..backend import Array
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values

Shape = tuple[int, ...]


class Layout(NamedTuple):
    """How a normalization looks at its input."""

    view: Shape
    """The shape of x as the moments are taken of it."""
    dims: Shape
    """The dimensions of the view that the moments are taken over."""
    own: Shape
    """The shape of weight and bias."""
    affine: Shape
    """The shape in which weight and bias broadcast to x."""

    @property
    def kept(self) -> Shape:
        """The moments, as they broadcast to the view."""
        return tuple(1 if d in self.dims else n for d, n in enumerate(self.view))

    @property
    def extent(self) -> int:
        """How many numbers a moment is of."""
        return prod(self.view[d] for d in self.dims)


def _of_layer(shape: Shape, rank: int) -> Layout:
    return Layout(shape, tuple(range(len(shape) - rank, len(shape))), shape[-rank:], shape[-rank:])


def _of_batch(shape: Shape) -> Layout:
    return Layout(shape, (0, *range(2, len(shape))), shape[1:2], (1, shape[1], *[1] * (len(shape) - 2)))


def _of_group(shape: Shape, groups: int) -> Layout:
    view = shape[0], groups, prod(shape[1:]) // groups
    return Layout(view, (2,), shape[1:2], (1, shape[1], *[1] * (len(shape) - 2)))


# ---------------------------------------------------------------- what they share
def _as(x: Any, shape: Shape) -> Any:
    return x if x is None or x.shape == shape else x.reshape(shape)


def _normalized(xp: Any, x0: Array, x1: Any, x2: Any, lay: Layout, eps: float) -> tuple[Array, Array, Array]:
    """(out, mean, rstd), the moments as they are kept; half precision is computed in single."""
    x = _as(x0, lay.view).astype("float32" if x0.dtype.char == "e" else x0.dtype, copy=False)
    mean = xp.add.reduce(x, lay.dims, keepdims=True) / lay.extent
    normal = x - mean
    rstd = 1 / xp.sqrt(xp.add.reduce(normal * normal, lay.dims, keepdims=True) / lay.extent + eps)
    normal *= rstd
    return _affine(_as(normal, x0.shape), x1, x2, lay).astype(x0.dtype, copy=False), mean, rstd


def _affine(normal: Array, x1: Any, x2: Any, lay: Layout) -> Array:
    if x1 is not None:
        normal *= _as(x1, lay.affine)
    if x2 is not None:
        normal += _as(x2, lay.affine)
    return normal


def _mean(x: Tensor, lay: Layout) -> Tensor:
    return sum_dims(x, dims=lay.dims, keepdim=True) * (1 / lay.extent)  # type: ignore[no-any-return]


def _through(g: Tensor, normal: Tensor, rstd: Tensor, lay: Layout) -> Tensor:
    """The tangent of `normal` from that of x, and the cotangent of x from that of `normal`: the map is its own transpose."""
    return (g - _mean(g, lay) - normal * _mean(g * normal, lay)) * rstd


def _weighed(g: Tensor, x1: Any, rstd: Tensor, lay: Layout) -> tuple[Any, Any]:
    """The cotangent of `normal`, and rstd; a weight that is one for all that a moment is of goes with rstd."""
    if x1 is not None and lay.affine == lay.kept:
        return _as(g, lay.view), rstd * _as(x1, lay.affine)
    return _as(g if x1 is None else g * _as(x1, lay.affine), lay.view), rstd


def _sum(parts: list[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total


def _pulled(ct: list[Any], x0: Tensor, x1: Any, mean: Tensor, rstd: Tensor, needs: tuple[bool, ...], lay: Layout,
            *, fixed: bool = False) -> list[Any]:
    """Cotangents of x, weight and bias; the moments are constants where they are `fixed`."""
    g, g_mean, g_rstd = ct if not fixed else (ct[0], None, None)
    rstd = _as(rstd, lay.kept)
    normal = (_as(x0, lay.view) - _as(mean, lay.kept)) * rstd
    grads: list[Any] = [None] * len(needs)
    if needs[0]:
        parts = []
        if g is not None:
            inner, scale = _weighed(g, x1, rstd, lay)
            parts.append(inner * scale if fixed else _through(inner, normal, scale, lay))
        if g_mean is not None:
            parts.append(widened(_as(g_mean, lay.kept) / lay.extent, lay.view))
        if g_rstd is not None:
            parts.append(normal * (_as(g_rstd, lay.kept) * rstd * rstd * (-1 / lay.extent)))
        grads[0] = _as(_sum(parts), x0.shape)
    if needs[1] and g is not None:
        grads[1] = _as(sum_to(g * _as(normal, x0.shape), lay.affine), lay.own)
    if needs[2] and g is not None:
        grads[2] = _as(sum_to(g, lay.affine), lay.own)
    return grads


def _pushed(dx: list[Any], x0: Tensor, x1: Any, mean: Tensor, rstd: Tensor, lay: Layout, *, fixed: bool = False) -> list[Any]:
    """Tangents of out, mean and rstd."""
    wide = _as(rstd, lay.kept)
    normal = (_as(x0, lay.view) - _as(mean, lay.kept)) * wide
    parts: list[Any] = [] if dx[2] is None else [_as(dx[2], lay.affine)]
    moments: list[Any] = [None, None]
    if dx[0] is not None:
        inner = _as(dx[0], lay.view)
        through = _as(inner * wide if fixed else _through(inner, normal, wide, lay), x0.shape)
        parts.append(through if x1 is None else through * _as(x1, lay.affine))
        if not fixed:
            moments = [_as(_mean(inner, lay), mean.shape), _as(_mean(inner * normal, lay) * (-wide * wide), mean.shape)]
    if dx[1] is not None:
        parts.append(_as(normal, x0.shape) * _as(dx[1], lay.affine))
    return [widened(_sum(parts), x0.shape), *moments]


# ---------------------------------------------------------------- over a layer: the last `rank` dimensions
def _layer_kernel(xp: Any, x0: Array, x1: Any, x2: Any, rank: int, eps: float) -> tuple[Array, ...]:
    out, *moments = _normalized(xp, x0, x1, x2, _of_layer(x0.shape, rank), eps)
    return out, *[v.astype(x0.dtype, copy=False) for v in moments]


def _layer_vjp(ct: list[Any], x2: Any, x0: Tensor, x1: Any, out1: Tensor, out2: Tensor, needs: tuple[bool, ...],
               rank: int) -> list[Any]:
    return _pulled(ct, x0, x1, out1, out2, needs, _of_layer(x0.shape, rank))


def _layer_jvp(dx: list[Any], x0: Tensor, x1: Any, out1: Tensor, out2: Tensor, rank: int) -> list[Any]:
    return _pushed(dx, x0, x1, out1, out2, _of_layer(x0.shape, rank))


def _layer_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    (x, w, b), (bx, bw, bb) = values, bdims
    x = to_front(x, bx)
    if bw is bb is None:
        return op.call(x, w, b, **params), 0
    out, *moments = op.call(x, None, None, **params)
    ones = (1,) * (x.ndim - (bx is not None) - params["rank"])
    w, b = (v if d is None else reshape(to_front(v, d), size, *ones, *x.shape[-params["rank"]:])
            for v, d in ((w, bw), (b, bb)))
    out = out if w is None else out * w
    return (out if b is None else out + b, *moments), (0, *[None if bx is None else 0] * 2)


_layer_norm: OpFunction = row("native_layer_norm", _layer_kernel, outs=3, saves=("x2", "x0", "x1", "out1", "out2"),
                              vjp=_layer_vjp, jvp=_layer_jvp, batch=_layer_batch)


def layer_shape(x: Tensor, normalized_shape: Any) -> Shape:
    """`normalized_shape`, which the last dimensions of `x` must have, else UsageError."""
    shape = tuple(normalized_shape)
    if not shape or x.shape[-len(shape):] != shape:
        msg = (f"Given normalized_shape={list(shape)}, expected input with shape [*, {', '.join(map(str, shape))}], but got "
               f"input of size{list(x.shape)}")
        raise UsageError(msg)
    return shape


def layer_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Normalize over the last dimensions, whose shape is `normalized_shape`, which weight and bias have too.

    Source: torch.nn.functional.layer_norm.
    """
    return _of_checked_layer(x, normalized_shape, weight, bias, eps)[0]


def native_layer_norm(x: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """layer_norm, and mean and 1 / standard deviation, which are not differentiated.  Source: torch.native_layer_norm."""
    out, mean, rstd = _of_checked_layer(x, normalized_shape, weight, bias, eps)
    return out, detach(mean), detach(rstd)


def _floats(name: str, x: Tensor) -> None:
    if x.dtype.category < FLOAT:
        msg = f"\"{name}\" not implemented for '{x.dtype.name}'"
        raise UsageError(msg)


def _of_checked_layer(x: Tensor, normalized_shape: Any, weight: Tensor | None, bias: Tensor | None,
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    _floats("LayerNormKernelImpl", x)
    shape = layer_shape(x, normalized_shape)
    for name, given in (("weight", weight), ("bias", bias)):
        if given is not None and given.shape != shape:
            msg = (f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape {list(given.shape)} and "
                   f"normalized_shape = {list(shape)}")
            raise UsageError(msg)
    return _layer_norm(x, weight, bias, rank=len(shape), eps=eps)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- over groups of channels, of each sample
def _group_kernel(xp: Any, x0: Array, x1: Any, x2: Any, groups: int, eps: float) -> tuple[Array, ...]:
    out, *moments = _normalized(xp, x0, x1, x2, _of_group(x0.shape, groups), eps)
    return out, *[v.reshape(x0.shape[0], groups).astype(x0.dtype, copy=False) for v in moments]


def _group_vjp(ct: list[Any], x0: Tensor, x1: Any, out1: Tensor, out2: Tensor, needs: tuple[bool, ...],
               groups: int) -> list[Any]:
    return _pulled(ct, x0, x1, out1, out2, needs, _of_group(x0.shape, groups))


def _group_jvp(dx: list[Any], x0: Tensor, x1: Any, out1: Tensor, out2: Tensor, groups: int) -> list[Any]:
    return _pushed(dx, x0, x1, out1, out2, _of_group(x0.shape, groups))


def _group_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """The batch joins the samples, (B N, C, ...); a batch of weights is applied afterwards."""
    (x, w, b), (bx, bw, bb) = values, bdims
    x = to_front(x, bx, size)
    n, channels, *rest = x.shape[1:]
    plain = bw is bb is None
    out, *moments = op.call(reshape(x, size * n, channels, *rest), *((w, b) if plain else (None, None)), **params)
    out, moments = reshape(out, x.shape), [reshape(v, size, n, params["groups"]) for v in moments]
    if not plain:
        w, b = (v if v is None else reshape(to_front(v, d, size), size, 1, channels, *[1] * len(rest))
                for v, d in ((w, bw), (b, bb)))
        out = out if w is None else out * w
        out = out if b is None else out + b
    return (out, *moments), 0


_group_norm: OpFunction = row("native_group_norm", _group_kernel, outs=3, saves=("x0", "x1", "out1", "out2"),
                              vjp=_group_vjp, jvp=_group_jvp, batch=_group_batch)


def group_norm(x: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None,
               eps: float = 1e-5) -> Tensor:
    """Normalize each group of channels (dimension 1) of each sample.  Source: torch.nn.functional.group_norm."""
    if x.ndim < 2:
        msg = f"Expected at least 2 dimensions for input tensor but received {x.ndim}"
        raise UsageError(msg)
    if x.shape[1] % num_groups:
        msg = (f"Expected number of channels in input to be divisible by num_groups, but got input of shape {list(x.shape)} "
               f"and num_groups={num_groups}")
        raise UsageError(msg)
    _floats("GroupNormKernelImpl", x)
    return _group_norm(x, weight, bias, groups=num_groups, eps=eps)[0]  # type: ignore[no-any-return]


def native_group_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, N: int, C: int, HxW: int, group: int,  # noqa: N803
                      eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """group_norm of (N, C, ..), HxW numbers a channel, and the means and 1 / standard deviations (N, group).

    Source: torch.native_group_norm.
    """
    if x.numel() != N * C * HxW or C % group:
        msg = (f"native_group_norm: expected an input of N * C * HxW = {N * C * HxW} elements, and C divisible by the number "
               f"of groups, but got {x.numel()}, C = {C} and {group} groups")
        raise UsageError(msg)
    return _group_norm(x, weight, bias, groups=group, eps=eps)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- over a batch: each channel, dimension 1
def _batch_kernel(xp: Any, x0: Array, x1: Any, x2: Any, x3: Any, x4: Any, training: bool, momentum: float, eps: float,
                  update: bool) -> tuple[Array, ...]:
    lay = _of_batch(x0.shape)
    if not training:
        normal = x0 - _as(x3, lay.kept)
        normal /= xp.sqrt(_as(x4, lay.kept) + eps)
        return _affine(normal, x1, x2, lay), xp.empty(0, x0.dtype), xp.empty(0, x0.dtype)
    out, *moments = _normalized(xp, x0, x1, x2, lay, eps)
    mean, rstd = (v.reshape(-1) for v in moments)
    if update:  # no version counts it, as in torch: the backward of training does not read them
        x3 += momentum * (mean - x3)
        x4 += momentum * ((1 / (rstd * rstd) - eps) * (lay.extent / max(lay.extent - 1, 1)) - x4)
    return out, mean, rstd


def _constant(*differentiated: bool) -> None:
    if any(differentiated):
        msg = ("The function 'native_batch_norm' is not differentiable with respect to argument 'running_mean' or "
               "'running_var'. These inputs cannot have requires_grad True: detach them.")
        raise UsageError(msg)


def _batch_vjp(ct: list[Any], x0: Tensor, x3: Any, x4: Any, x1: Any, out1: Tensor, out2: Tensor, needs: tuple[bool, ...],
               training: bool, eps: float) -> list[Any]:
    _constant(*needs[3:])
    mean, rstd = (out1, out2) if training else (x3, rsqrt(x4 + eps))
    return _pulled(ct, x0, x1, mean, rstd, needs, _of_batch(x0.shape), fixed=not training)


def _batch_jvp(dx: list[Any], x0: Tensor, x1: Any, x3: Any, x4: Any, out1: Tensor, out2: Tensor, training: bool,
               eps: float) -> list[Any]:
    _constant(*[d is not None for d in dx[3:]])
    mean, rstd = (out1, out2) if training else (x3, rsqrt(x4 + eps))
    return _pushed(dx, x0, x1, mean, rstd, _of_batch(x0.shape), fixed=not training)


def _batch_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """The batch joins the channels, (N, B C, ...)."""
    if params["update"] and None in bdims[3:]:
        msg = ("Batch norm got a batched tensor as input while the running_mean or running_var, which will be updated in "
               "place, were not batched. Set `track_running_stats` to False, or vmap over the statistics too.")
        raise UsageError(msg)
    x = moveaxis(to_front(values[0], bdims[0], size), 0, 1)
    n, _, channels, *rest = x.shape
    fronts: list[Any] = [v if v is None else to_front(v, b, size) for v, b in zip(values[1:], bdims[1:], strict=True)]
    flat: list[Any] = [v if v is None else reshape(v, size * channels) for v in fronts]
    out, *moments = op.call(reshape(x, n, size * channels, *rest), *flat, **params)
    if params["update"]:
        for front, new in zip(fronts[2:], flat[2:], strict=True):
            copy_(front, reshape(new, size, channels))
    out = reshape(out, n, size, channels, *rest)
    if not params["training"]:
        return (out, *moments), (1, None, None)
    return (out, *[reshape(v, size, channels) for v in moments]), (1, 0, 0)


_batch_norm: OpFunction = row("native_batch_norm", _batch_kernel, outs=3, saves=("x0", "x3", "x4", "x1", "out1", "out2"),
                              vjp=_batch_vjp, jvp=_batch_jvp, batch=_batch_batch)


def batch_norm(x: Tensor, running_mean: Tensor | None, running_var: Tensor | None, weight: Tensor | None = None,
               bias: Tensor | None = None, training: bool = False, momentum: float = 0.1, eps: float = 1e-5) -> Tensor:
    """Normalize each channel, dimension 1: by the batch in training, else by the running statistics.

    Training moves the running statistics, where there are any, towards those of the batch by `momentum`; the recomputation
    of a checkpoint does not do so again. [NOTE side-effects-once]  Source: torch.nn.functional.batch_norm.
    """
    if x.ndim < 2 and x.shape != (0,):
        msg = f"Expected 2 or more dimensions, (N, C, ...), but got input size {list(x.shape)}"
        raise UsageError(msg)
    if training and x.numel() and x.numel() == x.shape[1]:
        msg = f"Expected more than 1 value per channel when training, got input size {list(x.shape)}"
        raise ValueError(msg)
    if not training and (running_mean is None or running_var is None):
        msg = "Expected running_mean and running_var to be defined when training=False"
        raise UsageError(msg)
    _floats("batch_norm", x)
    return _of_batch_now(x, weight, bias, running_mean, running_var, training, momentum, eps)[0]


def native_batch_norm(x: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                      running_var: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    """batch_norm, and in training the means and 1 / standard deviations of the batch.  Source: torch.native_batch_norm."""
    out, mean, rstd = _of_batch_now(x, weight, bias, running_mean, running_var, training, momentum, eps)
    return out, detach(mean), detach(rstd)


def _of_batch_now(x: Tensor, weight: Tensor | None, bias: Tensor | None, running_mean: Tensor | None,
                  running_var: Tensor | None, training: bool, momentum: float, eps: float) -> tuple[Tensor, Tensor, Tensor]:
    update = training and running_mean is not None and current().recomputing is None
    return _batch_norm(x, weight, bias, running_mean, running_var, training=training, momentum=momentum,  # type: ignore[no-any-return]
                       eps=eps, update=update)
