"""Discrete Fourier transforms: three rows, of complex to complex, real to complex, complex to real numbers.

    c2c     its transpose is the transform in the other direction, of the same scale
    r2c     forward, half of the frequencies or all of them; c2r backward, from half of them

What is called the norm here says what a transform is divided by: nothing ("none"), the number of elements ("all") or the root
of that ("root").

Upstream: _fft_c2c, _fft_r2c, _fft_c2r in derivatives.yaml; fft_r2c_backward, fft_c2r_backward in FunctionsManual.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..dtypes import FLOAT, float16
from ..errors import UsageError, no_dimension
from ..row import OpFunction, row
from ..state import current
from .batching import to_front
from .creation import arange, as_leaf
from .embedding import pad
from .pointwise import conj, real
from .rearrange import roll
from .shape import basic_index, normal_dim, normal_dims, slice_backward

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Array, Device
    from ..dtypes import dtype
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values

Dims = tuple[int, ...]

FORWARD = {"none": "backward", "root": "ortho", "all": "forward"}
BACKWARD = {"none": "forward", "root": "ortho", "all": "backward"}
"""What the array namespace calls the norms."""


def _batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    return op.call(to_front(values[0], bdims[0]), **{**params, "dims": tuple(d + 1 for d in params["dims"])}), 0


def _part(dim: int, part: slice) -> tuple[slice, ...]:
    return (*[slice(None)] * dim, part)


# ---------------------------------------------------------------- rows
def _c2c_kernel(xp: Any, x0: Array, dims: Dims, norm: str, forward: bool) -> Array:
    if forward:
        return xp.fft.fftn(x0, axes=dims, norm=FORWARD[norm])
    return xp.fft.ifftn(x0, axes=dims, norm=BACKWARD[norm])


def _r2c_kernel(xp: Any, x0: Array, dims: Dims, norm: str, onesided: bool) -> Array:
    return (xp.fft.rfftn if onesided else xp.fft.fftn)(x0, axes=dims, norm=FORWARD[norm])


def _r2c_vjp(ct: Tensor, x0: Tensor, dims: Dims, norm: str, onesided: bool) -> Any:
    """The frequencies that were left out had no influence."""
    if onesided:
        ct = slice_backward(ct, shape=x0.shape, index=_part(dims[-1], slice(ct.shape[dims[-1]])))
    return real(_c2c(ct, dims=dims, norm=norm, forward=False))


def _c2r_kernel(xp: Any, x0: Array, dims: Dims, norm: str, n: int) -> Array:
    extents = (*[x0.shape[d] for d in dims[:-1]], n)
    return xp.fft.irfftn(x0, extents, axes=dims, norm=BACKWARD[norm])


def _c2r_vjp(ct: Tensor, dims: Dims, norm: str, n: int) -> Tensor:
    """All frequencies were read twice, but the first and, of an even number, the middle one."""
    half: Tensor = _r2c(ct, dims=dims, norm=norm, onesided=True)
    twice = _part(dims[-1], slice(1, 1 + n - half.shape[dims[-1]]))
    return half + slice_backward(basic_index(half, twice), shape=half.shape, index=twice)  # type: ignore[no-any-return]


_c2c: OpFunction = row("_fft_c2c", _c2c_kernel, arity=1, jvp="linear", batch=_batch,
                       vjp=(lambda ct, dims, norm, forward: _c2c(ct, dims=dims, norm=norm, forward=not forward),))
_r2c: OpFunction = row("_fft_r2c", _r2c_kernel, arity=1, jvp="linear", batch=_batch, saves=("x0",), vjp=(_r2c_vjp,),
                       node="FftR2CBackward0")
_c2r: OpFunction = row("_fft_c2r", _c2r_kernel, arity=1, jvp="linear", batch=_batch, vjp=(_c2r_vjp,), node="FftC2RBackward0")


# ---------------------------------------------------------------- arguments in normal form
def _norm(norm: str | None, *, forward: bool) -> str:
    table = FORWARD if forward else BACKWARD
    for mode, name in table.items():
        if name == (norm or "backward"):
            return mode
    msg = f'Invalid normalization mode: "{norm}"'
    raise UsageError(msg)


def _floating(x: Tensor) -> Tensor:
    if x.dtype is float16:
        msg = "Unsupported dtype Half"
        raise UsageError(msg)
    return x if x.dtype.category >= FLOAT else x.to(current().default_dtype)


def _complex(x: Tensor) -> Tensor:
    x = _floating(x)
    return x if x.dtype.is_complex else x.to(x.dtype.to_complex())


def _real(name: str, x: Tensor) -> Tensor:
    if x.dtype.is_complex:
        msg = f"{name} expects a real input tensor, but got {x.dtype}"
        raise UsageError(msg)
    return _floating(x)


class Signal(NamedTuple):
    """Of the dimensions to transform, which they are, and how many elements each is to have."""

    dims: Dims
    extents: tuple[int, ...]


def _signal(x: Tensor, s: Sequence[int] | None, dim: Sequence[int] | None) -> Signal:
    """Without dim the last dimensions, as many as s has, or all of them; without s (or for -1) all that is there."""
    if isinstance(dim, int):
        dim = (dim,)
    if isinstance(s, int):
        s = (s,)
    if dim is not None and s is not None and len(dim) != len(s):
        msg = "When given, dim and shape arguments must have the same length"
        raise UsageError(msg)
    if dim is None and s is not None and len(s) > x.ndim:
        msg = f"Got shape with {len(s)} values but input tensor only has {x.ndim} dimensions."
        raise UsageError(msg)
    if dim is not None:
        dims = tuple(_dim(d, x) for d in dim)
        if len(set(dims)) != len(dims):
            msg = "FFT dims must be unique"
            raise UsageError(msg)
    else:
        dims = tuple(range(x.ndim - (x.ndim if s is None else len(s)), x.ndim))
    extents = tuple(x.shape[d] if s is None or s[i] == -1 else s[i] for i, d in enumerate(dims))
    return Signal(dims, _checked(extents))


def _dim(dim: int, x: Tensor) -> int:
    if not x.ndim:
        raise no_dimension(dim, 0)
    return normal_dim(dim, x.ndim)


def _checked(extents: tuple[int, ...]) -> tuple[int, ...]:
    if any(n < 1 for n in extents):
        msg = f"Invalid number of data points ({min(extents)}) specified"
        raise UsageError(msg)
    return extents


def _fitted(x: Tensor, dims: Dims, extents: tuple[int, ...]) -> Tensor:
    """Cut to, or filled up with zeros to, these extents."""
    missing = [0] * x.ndim
    for d, n in zip(dims, extents, strict=True):
        if n < x.shape[d]:
            x = basic_index(x, _part(d, slice(n)))
        missing[d] = n - x.shape[d]
    return pad(x, [m for n in reversed(missing) for m in (0, n)]) if any(missing) else x


def _half(x: Tensor, signal: Signal, n: int | None) -> tuple[Tensor, int]:
    """Half of the frequencies of a real signal, of n elements in the last dimension, fitted; and n."""
    n = 2 * (x.shape[signal.dims[-1]] - 1) if n in (None, -1) else n
    assert n is not None
    _checked((n,))
    return _fitted(_complex(x), signal.dims, (*signal.extents[:-1], n // 2 + 1)), n


def _some(name: str, signal: Signal) -> Signal:
    if not signal.dims:
        msg = f"{name} must transform at least one axis"
        raise UsageError(msg)
    return signal


# ---------------------------------------------------------------- transforms of several dimensions
def _complex_transform(x: Tensor, s: Any, dim: Any, norm: str | None, *, forward: bool) -> Tensor:
    signal, mode = _signal(x, s, dim), _norm(norm, forward=forward)
    x = _fitted(_complex(x), *signal)
    return _c2c(x, dims=signal.dims, norm=mode, forward=forward) if signal.dims else x


def fftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The Fourier transform over dimensions (all of them), cut to or filled up to extents s.

    norm: what it is divided by, nothing ("backward", as None), the number of elements ("forward") or its root ("ortho").
    Source: torch.fft.fftn.
    """
    return _complex_transform(x, s, dim, norm, forward=True)


def ifftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of fftn, divided by what that is not.  Source: torch.fft.ifftn."""
    return _complex_transform(x, s, dim, norm, forward=False)


def rfftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The fftn of real numbers; of the last dimension the half that the rest follows from.  Source: torch.fft.rfftn."""
    x = _real("rfftn", x)
    signal = _some("rfftn", _signal(x, s, dim))
    return _r2c(_fitted(x, *signal), dims=signal.dims, norm=_norm(norm, forward=True), onesided=True)  # type: ignore[no-any-return]


def _last(s: Any) -> int | None:
    return None if s is None else s if isinstance(s, int) else s[-1]


def irfftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of rfftn; s[-1] is the real extent, 2 (n - 1) without.  Source: torch.fft.irfftn."""
    signal = _some("irfftn", _signal(x, s, dim))
    half, n = _half(x, signal, _last(s))
    return _c2r(half, dims=signal.dims, norm=_norm(norm, forward=False), n=n)  # type: ignore[no-any-return]


def hfftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The fftn, real, of a signal whose last dimension is half of a Hermitian one.  Source: torch.fft.hfftn."""
    signal = _some("hfftn", _signal(x, s, dim))
    half, n = _half(x, signal, _last(s))
    mode, *others = _norm(norm, forward=True), *signal.dims[:-1]
    out = _c2c(half, dims=tuple(others), norm=mode, forward=True) if others else half
    return _c2r(conj(out), dims=signal.dims[-1:], norm=mode, n=n)  # type: ignore[no-any-return]


def ihfftn(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] | None = None, norm: str | None = None) -> Tensor:
    """The inverse of hfftn.  Source: torch.fft.ihfftn."""
    x = _real("ihfftn", x)
    signal, mode = _some("ihfftn", _signal(x, s, dim)), _norm(norm, forward=False)
    out = conj(_r2c(_fitted(x, *signal), dims=signal.dims[-1:], norm=mode, onesided=True))
    return _c2c(out, dims=signal.dims[:-1], norm=mode, forward=False) if len(signal.dims) > 1 else out  # type: ignore[no-any-return]


# ---------------------------------------------------------------- of one dimension, and of two
def _one(name: str, f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(x: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        return f(x, None if n is None else _checked((n,)), (dim,), norm)

    transform.__name__ = name
    transform.__doc__ = f"As {name}n, over one dimension of n elements.  Source: torch.fft.{name}."
    return transform


def _two(name: str, f: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def transform(x: Tensor, s: Sequence[int] | None = None, dim: Sequence[int] = (-2, -1), norm: str | None = None) -> Tensor:
        return f(x, s, dim, norm)

    transform.__name__ = name
    transform.__doc__ = f"As {name[:-1]}n, over the last two dimensions or two others.  Source: torch.fft.{name}."
    return transform


def _all_frequencies(f: Callable[..., Tensor], *, forward: bool) -> Callable[..., Tensor]:
    """`f`, and of real numbers r2c with all frequencies, which torch takes for one dimension."""
    def transform(x: Tensor, s: Any, dim: Any, norm: str | None) -> Tensor:
        if x.dtype.is_complex:
            return f(x, s, dim, norm)
        signal = _signal(x, s, dim)
        x = _fitted(_floating(x), *signal)
        out = _r2c(x, dims=signal.dims, norm=_norm(norm, forward=forward), onesided=False)
        return out if forward else conj(out)  # type: ignore[no-any-return]
    return transform


fft = _one("fft", _all_frequencies(fftn, forward=True))
ifft = _one("ifft", _all_frequencies(ifftn, forward=False))
rfft, irfft = _one("rfft", rfftn), _one("irfft", irfftn)
hfft, ihfft = _one("hfft", hfftn), _one("ihfft", ihfftn)
fft2, ifft2 = _two("fft2", fftn), _two("ifft2", ifftn)
rfft2, irfft2 = _two("rfft2", rfftn), _two("irfft2", irfftn)
hfft2, ihfft2 = _two("hfft2", hfftn), _two("ihfft2", ihfftn)


# ---------------------------------------------------------------- the order of frequencies
def fftfreq(n: int, d: float = 1.0, *, dtype: dtype | None = None, device: str | Device | None = None,
            requires_grad: bool = False) -> Tensor:
    """The frequencies of a transform of n samples that are d apart, the negative ones last.  Source: torch.fft.fftfreq."""
    k = arange(n, dtype=dtype or current().default_dtype, device=device)
    return as_leaf((k - n * (k >= (n + 1) // 2)) * (1 / (max(n, 1) * d)), requires_grad)


def rfftfreq(n: int, d: float = 1.0, *, dtype: dtype | None = None, device: str | Device | None = None,
             requires_grad: bool = False) -> Tensor:
    """Those of a real signal, half of them.  Source: torch.fft.rfftfreq."""
    k = arange(n // 2 + 1, dtype=dtype or current().default_dtype, device=device)
    return as_leaf(k * (1 / (max(n, 1) * d)), requires_grad)


def fftshift(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Frequency 0 moved to the middle of dimensions (all of them).  Source: torch.fft.fftshift."""
    dims = normal_dims(dim, x.ndim)
    return roll(x, [x.shape[d] // 2 for d in dims], dims)


def ifftshift(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """The inverse of fftshift.  Source: torch.fft.ifftshift."""
    dims = normal_dims(dim, x.ndim)
    return roll(x, [(x.shape[d] + 1) // 2 for d in dims], dims)
