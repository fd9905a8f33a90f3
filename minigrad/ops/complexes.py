"""Complex numbers and their parts; real, imag and conj are with the arithmetic in pointwise.py.

Source: torch.complex, torch.polar, torch.angle, torch.view_as_complex; derivatives.yaml.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, float16
from ..errors import UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from ..views import strides_of
from .batching import elementwise, leading, same_bdim
from .creation import zeros_like
from .linalg import broadcast_shapes
from .misc import storage_offset
from .pointwise import conj, imag, real, sgn

if TYPE_CHECKING:
    from ..backend import Array


def _joined(xp: Any, x0: Array, x1: Array) -> Array:
    out = xp.empty(broadcast_shapes(x0.shape, x1.shape), xp.result_type(x0, xp.complex64))
    out.real, out.imag = x0, x1
    return out


_complex: OpFunction = row(
    "complex", _joined, fits=True, batch=elementwise,
    vjp=(lambda ct: real(ct), lambda ct: imag(ct)),
    jvp=(lambda dx: _complex(dx, zeros_like(dx)), lambda dx: _complex(zeros_like(dx), dx)))


def _polar_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    return _joined(xp, x0 * xp.cos(x1), x0 * xp.sin(x1))


_polar: OpFunction = row(
    "polar", _polar_kernel, saves=("out",), fits=True, batch=elementwise,
    vjp=(lambda ct, out: real(conj(ct) * sgn(out)), lambda ct, out: -imag(conj(ct) * out)),
    jvp=(lambda dx, out, x1: dx * _polar(dx * 0 + 1, x1), lambda dx, out: dx * (out * 1j)))


def _same_floats(name: str, x: Tensor, y: Tensor) -> None:
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        msg = f"{name}(): both arguments must be Tensor, not {type(x).__name__} and {type(y).__name__}"
        raise TypeError(msg)
    if x.dtype is not y.dtype or x.dtype.category != FLOAT or x.dtype is float16:
        msg = f"Expected both inputs of {name} to be float or double tensors of one type, but got {x.dtype} and {y.dtype}"
        raise UsageError(msg)


def complex(real: Tensor, imag: Tensor) -> Tensor:  # noqa: A001  torch's name
    """The complex numbers with these parts.  Source: torch.complex."""
    _same_floats("complex", real, imag)
    return _complex(real, imag)  # type: ignore[no-any-return]


def polar(abs: Tensor, angle: Tensor) -> Tensor:  # noqa: A002  torch's names
    """The complex numbers of these sizes and angles.  Source: torch.polar."""
    _same_floats("polar", abs, angle)
    return _polar(abs, angle)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- angles
def _angle_kernel(xp: Any, x0: Array) -> Array:
    """Of a real number 0 or pi, nan for nan."""
    return xp.where(xp.isnan(x0), x0, xp.angle(x0 + 0)) if x0.dtype.kind == "f" else xp.angle(x0)  # of -0.0 as of 0.0


def _size(a: Tensor, b: Tensor) -> Any:
    """|a + bi| squared, and 1 at 0, where it divides 0."""
    square = a * a + b * b
    return square + (square == 0)


def _angle_vjp(ct: Tensor, x0: Tensor) -> Any:
    if not x0.dtype.is_complex:
        return zeros_like(ct)
    a, b = real(x0), imag(x0)
    each = ct / _size(a, b)
    return _complex(-b * each, a * each)


def _angle_jvp(dx: Tensor, x0: Tensor) -> Any:
    if not x0.dtype.is_complex:
        return zeros_like(dx)
    return imag(dx * conj(x0)) / _size(real(x0), imag(x0))


angle = row("angle", _angle_kernel, promote="float", saves=("x0",), batch=elementwise, vjp=(_angle_vjp,), jvp=(_angle_jvp,),
            doc="The angle of complex numbers, in radians; 0 or pi of real ones.  Source: torch.angle.")


# ---------------------------------------------------------------- pairs of real numbers
_view_as_real: OpFunction = row(
    "view_as_real", lambda xp, x0: x0[..., None].view(x0.real.dtype), view=True, batch=same_bdim, jvp="linear",
    vjp=(lambda ct: _view_as_complex(ct),))


def _pairs_kernel(xp: Any, x0: Array) -> Array:
    """A view where the two parts lie side by side."""
    side_by_side = x0.strides[-1] == x0.itemsize
    return (x0 if side_by_side else xp.ascontiguousarray(x0)).view(xp.result_type(x0, xp.complex64))[..., 0]


_view_as_complex: OpFunction = row(
    "view_as_complex", _pairs_kernel, view=True, batch=leading, jvp="linear", vjp=(lambda ct: _view_as_real(ct),))


def view_as_real(x: Tensor) -> Tensor:
    """The parts of complex numbers in a last dimension, a view.  Source: torch.view_as_real."""
    if not x.dtype.is_complex:
        msg = "view_as_real is only supported for complex tensors"
        raise UsageError(msg)
    return _view_as_real(x)  # type: ignore[no-any-return]


def view_as_complex(x: Tensor) -> Tensor:
    """The complex numbers whose parts are in the last dimension, side by side in memory; a view.

    Source: torch.view_as_complex.
    """
    if not x.ndim or x.shape[-1] != 2 or x.dtype.category != FLOAT:
        msg = f"Tensor must have a last dimension of size 2, of floats, but it is {x.dtype} of shape {list(x.shape)}"
        raise UsageError(msg)
    *outer, last = strides_of(x)
    if last != 1 or any(s % 2 for s, n in zip(outer, x.shape, strict=False) if n > 1) or storage_offset(x) % 2:
        msg = (f"Tensor must have a last dimension with stride 1, and an offset and other strides divisible by 2, but its "
               f"strides are {[*outer, last]}, its offset {storage_offset(x)}. Use contiguous() first.")
        raise UsageError(msg)
    return _view_as_complex(x)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- conjugates
def resolve_conj(x: Tensor) -> Tensor:
    """The tensor itself: minigrad's conj is computed at once.  Source: torch.resolve_conj."""
    return x


def is_conj(x: Tensor) -> bool:
    """Whether its conjugate is still to be computed: never, here.  Source: torch.is_conj."""
    return False


resolve_neg, conj_physical, is_neg = resolve_conj, conj, is_conj
