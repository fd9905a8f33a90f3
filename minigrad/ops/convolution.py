"""Convolutions: three rows, the maps of one form that is linear in x, w and y, and which are each other's derivatives.

    conv        x, w -> y       what programs call a convolution
    conv_input  y, w -> x       its transpose: the gradient of x, and a transposed convolution
    conv_weight x, y -> w       the gradient of w

`extents` are those of the result: a transposed convolution is told by how much more than the least it is to give.

Each is a product of matrices and the columns that a window sees, of all places that it goes to.

Upstream: convolution in derivatives.yaml; _convolution_double_backward in Convolution.cpp.
"""

from __future__ import annotations

from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..row import OpFunction, row
from .batching import leading, to_front
from .embedding import pad
from .pointwise import conj
from .shape import moveaxis, reshape, squeeze, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Array
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values

Extents = tuple[int, ...]


# ---------------------------------------------------------------- windows of arrays
def reach(extents: Extents, size: Extents, stride: Extents, padding: Extents, dilation: Extents) -> Extents:
    """How many places a window goes to in each dimension."""
    return tuple((n + 2 * p - d * (k - 1) - 1) // s + 1
                 for n, k, s, p, d in zip(extents, size, stride, padding, dilation, strict=True))


def _places(at: Extents, out: Extents, stride: Extents, dilation: Extents) -> tuple[Any, ...]:
    """What one element of the window sees, of the padded dimensions."""
    return (Ellipsis, *[slice(k * d, k * d + s * (n - 1) + 1, s) for k, n, s, d in zip(at, out, stride, dilation, strict=True)])


def _inside(extents: Extents, padding: Extents) -> tuple[Any, ...]:
    return (Ellipsis, *[slice(p, p + n) for n, p in zip(extents, padding, strict=True)])


def columns(xp: Any, x: Array, size: Extents, out: Extents, stride: Extents, padding: Extents, dilation: Extents) -> Array:
    """(.., *size, *out) of (.., *extents): what every element of the window sees at each of `out` places."""
    r = len(size)
    extents = x.shape[-r:]
    if any(padding):
        wide = xp.zeros((*x.shape[:-r], *[n + 2 * p for n, p in zip(extents, padding, strict=True)]), x.dtype)
        wide[_inside(extents, padding)] = x
        x = wide
    made = xp.empty((*x.shape[:-r], *size, *out), x.dtype)
    for at in product(*map(range, size)):
        made[(Ellipsis, *at, *[slice(None)] * r)] = x[_places(at, out, stride, dilation)]
    return made


def summed(xp: Any, x: Array, extents: Extents, stride: Extents, padding: Extents, dilation: Extents) -> Array:
    """The transpose: every element added where it was seen."""
    r = len(extents)
    size, out = x.shape[-2 * r:-r], x.shape[-r:]
    made = xp.zeros((*x.shape[:-2 * r], *[n + 2 * p for n, p in zip(extents, padding, strict=True)]), x.dtype)
    for at in product(*map(range, size)):
        made[_places(at, out, stride, dilation)] += x[(Ellipsis, *at, *[slice(None)] * r)]
    return xp.ascontiguousarray(made[_inside(extents, padding)])  # memory of its own, and no more


# ---------------------------------------------------------------- kernels: (N, groups, channels of one, places)
def _grouped(x: Array, groups: int) -> Array:
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, prod(x.shape[2:]))


def _weights(w: Array, groups: int) -> Array:
    return w.reshape(groups, w.shape[0] // groups, prod(w.shape[1:]))


def _seen(xp: Any, x: Array, size: Extents, out: Extents, groups: int, geometry: tuple[Extents, ...]) -> Array:
    return columns(xp, x, size, out, *geometry).reshape(x.shape[0], groups, x.shape[1] // groups * prod(size), prod(out))


def _conv_kernel(xp: Any, x0: Array, x1: Array, stride: Extents, padding: Extents, dilation: Extents, groups: int,
                 extents: Extents) -> Array:
    out = xp.matmul(_weights(x1, groups), _seen(xp, x0, x1.shape[2:], extents, groups, (stride, padding, dilation)))
    return out.reshape(x0.shape[0], x1.shape[0], *extents)


def _input_kernel(xp: Any, x0: Array, x1: Array, stride: Extents, padding: Extents, dilation: Extents, groups: int,
                  extents: Extents) -> Array:
    seen = xp.matmul(_weights(x1, groups).swapaxes(-1, -2), _grouped(x0, groups))
    seen = seen.reshape(x0.shape[0], groups * x1.shape[1], *x1.shape[2:], *x0.shape[2:])
    return summed(xp, seen, extents, stride, padding, dilation)


def _weight_kernel(xp: Any, x0: Array, x1: Array, stride: Extents, padding: Extents, dilation: Extents, groups: int,
                   extents: Extents) -> Array:
    seen = xp.moveaxis(_seen(xp, x0, extents, x1.shape[2:], groups, (stride, padding, dilation)), 0, 2)
    out = xp.moveaxis(_grouped(x1, groups), 0, 2)
    n = x0.shape[0] * out.shape[-1]
    w = xp.matmul(out.reshape(groups, x1.shape[1] // groups, n),
                  seen.reshape(groups, x0.shape[1] // groups * prod(extents), n).swapaxes(-1, -2))
    return w.reshape(x1.shape[1], x0.shape[1] // groups, *extents)


# ---------------------------------------------------------------- rows
def _joined(x: Tensor, bdim: int | None, size: int, dim: int) -> Tensor:
    """The batch joined with a logical dimension, in front of it."""
    x = moveaxis(to_front(x, bdim, size), 0, dim)
    return reshape(x, *x.shape[:dim], size * x.shape[dim + 1], *x.shape[dim + 2:])


def _parted(x: Tensor, size: int, dim: int) -> Batched:
    return reshape(x, *x.shape[:dim], size, x.shape[dim] // size, *x.shape[dim + 1:]), dim


def _batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """A batch of x alone is more of x; a batch of weights is more groups."""
    (x, w), (bx, bw) = values, bdims
    if bw is None:
        return _parted(op.call(_joined(x, bx, size, 0), w, **params), size, 0)
    out = op.call(_joined(x, bx, size, 1), _joined(w, bw, size, 0), **{**params, "groups": size * params["groups"]})
    return _parted(out, size, 1)


def _weight_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x, y = (_joined(v, b, size, 1) for v, b in zip(values, bdims, strict=True))
    return _parted(op.call(x, y, **{**params, "groups": size * params["groups"]}), size, 0)


def _form(name: str, kernel: Callable[..., Array], batch: Callable[..., Batched], first: Callable[..., Any],
          second: Callable[..., Any]) -> OpFunction:
    """A row of two inputs; `first` and `second` give their cotangents, of (cotangent, the other input)."""
    def vjp(ct: Tensor, x0: Tensor, x1: Tensor, needs: tuple[bool, ...], stride: Extents, padding: Extents, dilation: Extents,
            groups: int) -> list[Any]:
        how = {"stride": stride, "padding": padding, "dilation": dilation, "groups": groups}
        return [first(ct, x0, conj(x1), how) if needs[0] else None, second(ct, conj(x0), x1, how) if needs[1] else None]

    made: OpFunction = row(
        name, kernel, saves=("x0", "x1"), node="ConvolutionBackward0", batch=batch, vjp=vjp,
        jvp=(lambda dx, x1, stride, padding, dilation, groups, extents: made(
                dx, x1, stride=stride, padding=padding, dilation=dilation, groups=groups, extents=extents),
             lambda dx, x0, stride, padding, dilation, groups, extents: made(
                x0, dx, stride=stride, padding=padding, dilation=dilation, groups=groups, extents=extents)))
    return made


_conv: OpFunction = _form(
    "convolution", _conv_kernel, _batch,
    lambda ct, x, w, how: _conv_input(ct, w, extents=x.shape[2:], **how),
    lambda ct, x, w, how: _conv_weight(x, ct, extents=w.shape[2:], **how))

_conv_input: OpFunction = _form(
    "convolution_transpose", _input_kernel, _batch,
    lambda ct, y, w, how: _conv(ct, w, extents=y.shape[2:], **how),
    lambda ct, y, w, how: _conv_weight(ct, y, extents=w.shape[2:], **how))

_conv_weight: OpFunction = _form(
    "convolution_weight", _weight_kernel, _weight_batch,
    lambda ct, x, y, how: _conv_input(y, ct, extents=x.shape[2:], **how),
    lambda ct, x, y, how: _conv(x, ct, extents=y.shape[2:], **how))


# ---------------------------------------------------------------- torch's functions
def tupled(name: str, given: Any, rank: int) -> Extents:
    """A number for each dimension, of one number or as many."""
    found = (given,) * rank if isinstance(given, int) else tuple(given)
    found = found * rank if len(found) == 1 else found
    if len(found) != rank:
        msg = (f"expected {name} to be a single integer value or a list of {rank} values to match the convolution dimensions, "
               f"but got {name}={list(found)}")
        raise UsageError(msg)
    return found


def _checked(rank: int, x: Tensor, weight: Tensor, bias: Tensor | None, stride: Extents, padding: Extents, dilation: Extents,
             groups: int, *, transposed: bool) -> None:
    name = f"conv{'_transpose' * transposed}{rank}d"
    if x.ndim not in (rank + 1, rank + 2):
        msg = (f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
               f"{list(x.shape)}")
        raise UsageError(msg)
    if weight.ndim != rank + 2:
        msg = f"weight should have at least three dimensions: expected {rank + 2} of {name}, got {list(weight.shape)}"
        raise UsageError(msg)
    if weight.dtype is not x.dtype or (bias is not None and bias.dtype is not x.dtype):
        msg = f"Input type ({x.dtype}) and weight type ({weight.dtype}) or bias type should be the same"
        raise UsageError(msg)
    if groups <= 0:
        msg = "non-positive groups is not supported"
        raise UsageError(msg)
    if min(padding) < 0:
        msg = "negative padding is not supported"
        raise UsageError(msg)
    if min(stride) <= 0:
        msg = "non-positive stride is not supported"
        raise UsageError(msg)
    if min(dilation) <= 0:
        msg = "dilation should be greater than zero"
        raise UsageError(msg)
    channels, wanted = x.shape[-rank - 1], weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != wanted or weight.shape[0] % groups:
        msg = (f"Given groups={groups}, {'transposed=1, ' * transposed}weight of size {list(weight.shape)}, expected "
               f"input{list(x.shape)} to have {wanted} channels, but got {channels} channels instead")
        raise UsageError(msg)
    made = weight.shape[1] * groups if transposed else weight.shape[0]
    if bias is not None and bias.shape != (made,):
        msg = (f"Given transposed={int(transposed)}, weight of size {list(weight.shape)}, expected bias to be 1-dimensional "
               f"with {made} elements, but got bias of size {list(bias.shape)} instead")
        raise UsageError(msg)


def _finished(out: Tensor, bias: Tensor | None, rank: int, *, batched: bool) -> Tensor:
    out = out if bias is None else out + reshape(bias, -1, *[1] * rank)
    return out if batched else squeeze(out, 0)


def _same(x: Tensor, weight: Tensor, stride: Extents, dilation: Extents) -> tuple[Tensor, Extents]:
    """Padding after which as many places are seen as there are; where it is odd, one is put in front of the convolution."""
    if any(s != 1 for s in stride):
        msg = "padding='same' is not supported for strided convolutions"
        raise UsageError(msg)
    total = [d * (k - 1) for k, d in zip(weight.shape[2:], dilation, strict=True)]
    if any(n % 2 for n in total):
        x = pad(x, [n for t in reversed(total) for n in (0, t % 2)])
    return x, tuple(n // 2 for n in total)


def _convolution(rank: int) -> Callable[..., Tensor]:
    def conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
             padding: int | Sequence[int] | str = 0, dilation: int | Sequence[int] = 1, groups: int = 1) -> Tensor:
        steps, gaps = tupled("stride", stride, rank), tupled("dilation", dilation, rank)
        given = padding if not isinstance(padding, str) else 0
        around = tupled("padding", given, rank)
        _checked(rank, x, weight, bias, steps, around, gaps, groups, transposed=False)
        batched = x.ndim == rank + 2
        x = x if batched else unsqueeze(x, 0)
        if padding == "same":
            x, around = _same(x, weight, steps, gaps)
        elif isinstance(padding, str) and padding != "valid":
            msg = f"Invalid padding string: '{padding}'"
            raise UsageError(msg)
        size, extents = weight.shape[2:], x.shape[2:]
        out = reach(extents, size, steps, around, gaps)
        if min(out) < 1:
            wide, far = ([n + 2 * p for n, p in zip(extents, around, strict=True)],
                         [d * (k - 1) + 1 for k, d in zip(size, gaps, strict=True)])
            msg = (f"Calculated padded input size per channel: {wide}. Kernel size: {far}. Kernel size can't be greater than "
                   "actual input size")
            raise UsageError(msg)
        y = _conv(x, weight, stride=steps, padding=around, dilation=gaps, groups=groups, extents=out)
        return _finished(y, bias, rank, batched=batched)

    conv.__name__ = f"conv{rank}d"
    conv.__doc__ = f"""The convolution of (N, C, ..) or (C, ..), over {rank} dimensions, with weights (M, C / groups, ..).

    padding: how many zeros on both sides, or "valid" (none), or "same" (as many as keep the extents).
    Source: torch.nn.functional.conv{rank}d.
    """
    return conv


def _transposed(rank: int) -> Callable[..., Tensor]:
    def conv(x: Tensor, weight: Tensor, bias: Tensor | None = None, stride: int | Sequence[int] = 1,
             padding: int | Sequence[int] = 0, output_padding: int | Sequence[int] = 0, groups: int = 1,
             dilation: int | Sequence[int] = 1) -> Tensor:
        steps, around = tupled("stride", stride, rank), tupled("padding", padding, rank)
        more, gaps = tupled("output_padding", output_padding, rank), tupled("dilation", dilation, rank)
        _checked(rank, x, weight, bias, steps, around, gaps, groups, transposed=True)
        if any(m >= max(s, d) for m, s, d in zip(more, steps, gaps, strict=True)):
            msg = "output padding must be smaller than either stride or dilation"
            raise UsageError(msg)
        batched = x.ndim == rank + 2
        x = x if batched else unsqueeze(x, 0)
        extents = tuple((n - 1) * s - 2 * p + d * (k - 1) + m + 1
                        for n, s, p, d, k, m in zip(x.shape[2:], steps, around, gaps, weight.shape[2:], more, strict=True))
        if min(extents) < 1:
            msg = (f"Given input size per channel: {list(x.shape[2:])}. Calculated output size per channel: {list(extents)}. "
                   "Output size is too small")
            raise UsageError(msg)
        out = _conv_input(x, weight, stride=steps, padding=around, dilation=gaps, groups=groups, extents=extents)
        return _finished(out, bias, rank, batched=batched)

    conv.__name__ = f"conv_transpose{rank}d"
    conv.__doc__ = f"""The transpose of conv{rank}d, of (N, M, ..) or (M, ..), with weights (M, C / groups, ..).

    output_padding: how much larger than the least the result is.  Source: torch.nn.functional.conv_transpose{rank}d.
    """
    return conv


conv1d, conv2d, conv3d = _convolution(1), _convolution(2), _convolution(3)
conv_transpose1d, conv_transpose2d, conv_transpose3d = _transposed(1), _transposed(2), _transposed(3)


# ---------------------------------------------------------------- the columns themselves
_im2col: OpFunction = row(
    "im2col", lambda xp, x0, size, stride, padding, dilation: columns(
        xp, x0, size, reach(x0.shape[-len(size):], size, stride, padding, dilation), stride, padding, dilation),
    arity=1, jvp="linear", batch=leading, node="Im2ColBackward0",
    vjp=(lambda ct, shape0, stride, padding, dilation: _col2im(
        ct, extents=shape0[-2:], stride=stride, padding=padding, dilation=dilation),))

_col2im: OpFunction = row(
    "col2im", lambda xp, x0, extents, stride, padding, dilation: summed(xp, x0, extents, stride, padding, dilation),
    arity=1, jvp="linear", batch=leading, node="Col2ImBackward0",
    vjp=(lambda ct, shape0, stride, padding, dilation: _im2col(
        ct, size=shape0[-4:-2], stride=stride, padding=padding, dilation=dilation),))


def unfold(x: Tensor, kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
           stride: int | Sequence[int] = 1) -> Tensor:
    """The columns (N, C * size, places) that windows of (N, C, H, W) see.  Source: torch.nn.functional.unfold."""
    size, gaps, around, steps = (tupled(name, given, 2) for name, given in (
        ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding), ("stride", stride)))
    if x.ndim not in (3, 4) or 0 in x.shape[1:]:
        msg = ("Expected 3D or 4D (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for input, but "
               f"got: {list(x.shape)}")
        raise UsageError(msg)
    if min(size) < 1 or min(gaps) < 1 or min(around) < 0 or min(steps) < 1:
        msg = (f"unfold: kernel size, dilation and stride should be greater than zero, padding not negative, but got "
               f"{size}, {gaps}, {steps}, {around}")
        raise UsageError(msg)
    places = reach(x.shape[-2:], size, steps, around, gaps)
    if min(places) < 1:
        msg = (f"Given input with spatial size {list(x.shape[-2:])}, kernel_size={list(size)}: the calculated shape of the "
               "array of sliding blocks must be at least one.")
        raise UsageError(msg)
    out = _im2col(x, size=size, stride=steps, padding=around, dilation=gaps)
    return reshape(out, *x.shape[:-3], x.shape[-3] * prod(size), prod(places))


def fold(x: Tensor, output_size: int | Sequence[int], kernel_size: int | Sequence[int], dilation: int | Sequence[int] = 1,
         padding: int | Sequence[int] = 0, stride: int | Sequence[int] = 1) -> Tensor:
    """The transpose of unfold: columns added where windows of (H, W) see them.  Source: torch.nn.functional.fold."""
    extents, size, gaps, around, steps = (tupled(name, given, 2) for name, given in (
        ("output_size", output_size), ("kernel_size", kernel_size), ("dilation", dilation), ("padding", padding),
        ("stride", stride)))
    places = reach(extents, size, steps, around, gaps)
    if x.ndim not in (2, 3) or x.shape[-2] % prod(size) or x.shape[-1] != prod(places):
        msg = (f"Given output_size={extents}, kernel_size={size}, dilation={gaps}, padding={around}, stride={steps}, expected "
               f"size of input's dimension 2 to match the calculated number of sliding blocks {places}, but got "
               f"{list(x.shape)}")
        raise UsageError(msg)
    out = reshape(x, *x.shape[:-2], x.shape[-2] // prod(size), *size, *places)
    return _col2im(out, extents=extents, stride=steps, padding=around, dilation=gaps)  # type: ignore[no-any-return]
