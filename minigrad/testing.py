"""What tests of programs use: assert_close, make_tensor.  Source: torch.testing."""

from __future__ import annotations

from math import ceil, prod
from typing import TYPE_CHECKING, Any

from .dtypes import FLOAT, bool_, complex64, complex128, dtype, float16, float32, float64, promote_types, uint8
from .ops.choice import logical_not, where
from .ops.creation import tensor
from .ops.misc import finfo
from .ops.pointwise import abs as absolute
from .ops.random import rand, randint
from .ops.reduction import isclose
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

    from .backend import Device

__all__ = ["assert_close", "make_tensor"]

TOLERANCES = {float16: (1e-3, 1e-5), float32: (1.3e-6, 1e-5), float64: (1e-7, 1e-7), complex64: (1.3e-6, 1e-5),
              complex128: (1e-7, 1e-7)}
"""rtol and atol; other dtypes must be equal."""


def assert_close(actual: Any, expected: Any, *, allow_subclasses: bool = True, rtol: float | None = None,
                 atol: float | None = None, equal_nan: bool = False, check_device: bool = True, check_dtype: bool = True,
                 check_layout: bool = True, check_stride: bool = False,
                 msg: str | Callable[[str], str] | None = None) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol * |expected| everywhere.

    actual, expected: tensors, arrays, numbers, or sequences and dicts of them, in the same form.  Tolerances belong to the
    dtypes where none are given, and are given together.  Source: torch.testing.assert_close.
    """
    if (rtol is None) is not (atol is None):
        text = "rtol and atol must both be specified or both be left out."
        raise ValueError(text)

    def compare(a: Any, b: Any, where: str) -> None:
        if isinstance(b, dict) or (isinstance(b, (tuple, list)) and not isinstance(a, Tensor)):
            _same_form(a, b, where)
            for key in b if isinstance(b, dict) else range(len(b)):
                compare(a[key], b[key], f"{where}[{key!r}]")
        elif b is None or a is None:
            _must(a is b, f"None mismatch: {a} is not {b}", where)
        else:
            _compare(_as_tensor(a), _as_tensor(b), where)

    def _compare(a: Tensor, b: Tensor, where: str) -> None:
        _must(a.shape == b.shape, f"The values for attribute 'shape' do not match: {list(a.shape)} != {list(b.shape)}.", where)
        _must(a.device is b.device or not check_device,
              f"The values for attribute 'device' do not match: {a.device} != {b.device}.", where)
        _must(a.dtype is b.dtype or not check_dtype,
              f"The values for attribute 'dtype' do not match: {a.dtype} != {b.dtype}.", where)
        _must(not check_stride or a.stride() == b.stride(),
              f"The values for attribute 'stride()' do not match: {a.stride()} != {b.stride()}.", where)
        r, t = _tolerances(a.dtype, b.dtype) if rtol is None or atol is None else (rtol, atol)
        common = promote_types(a.dtype, b.dtype)
        a, b = a.detach().to(common), b.detach().to(b.device).to(common)
        close = isclose(a, b, r, t, equal_nan)
        if not close.all():
            raise AssertionError(_mismatch(a, b, logical_not(close), r, t) + _at(where))

    try:
        compare(actual, expected, "")
    except AssertionError as error:
        if msg is None:
            raise
        raise AssertionError(msg(str(error)) if callable(msg) else msg) from None


def _same_form(a: Any, b: Any, where: str) -> None:
    keys = isinstance(b, dict)
    _must(isinstance(a, dict) if keys else isinstance(a, (tuple, list)),
          f"No comparison pair was able to handle inputs of type {type(a)} and {type(b)}.", where)
    _must(set(a) == set(b) if keys else len(a) == len(b),
          f"The {'keys of the mappings' if keys else 'length of the sequences'} do not match: "
          f"{list(a) if keys else len(a)} != {list(b) if keys else len(b)}", where)


def _must(holds: bool, text: str, where: str) -> None:
    if not holds:
        raise AssertionError(text + _at(where))


def _at(where: str) -> str:
    return f"\n\nThe failure occurred for item {where}" if where else ""


def _as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else tensor(x, dtype=float64 if isinstance(x, float) else None)


def _tolerances(*given: dtype) -> tuple[float, float]:
    pairs = [TOLERANCES.get(d, (0.0, 0.0)) for d in given]
    return max(r for r, _ in pairs), max(a for _, a in pairs)


def _mismatch(a: Tensor, b: Tensor, wrong: Tensor, rtol: float, atol: float) -> str:
    count, total = int(wrong.sum().item()), wrong.numel()
    exact = rtol == 0 and atol == 0
    lines = [f"{'Tensor-likes' if wrong.ndim else 'Scalars'} are not {'equal' if exact else 'close'}!", ""]
    if not wrong.ndim:
        lines.append(f"Expected {b.item()} but got {a.item()}.")
    else:
        lines.append(f"Mismatched elements: {count} / {total} ({count / total:.1%})")
    if a.dtype is not bool_:
        gap = absolute(a - b)
        for name, values, allowed in (("absolute", gap, atol), ("relative", gap / absolute(b), rtol)):
            at = int(values.nan_to_num(-1.0).argmax().item()) if values.ndim else 0
            index = _index(at, values.shape)
            place = f" at index {index}" if values.ndim else ""
            limit = "" if exact else f" (up to {allowed} allowed)"
            lines.append(f"Greatest {name} difference: {values[index].item() if index else values.item()}{place}{limit}")
    return "\n".join(lines)


def _index(at: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: tuple[int, ...] = ()
    for n in reversed(shape):
        at, k = divmod(at, n)
        index = (k, *index)
    return index


# ---------------------------------------------------------------- making tensors
def make_tensor(*shape: Any, dtype: dtype, device: str | Device, low: float | None = None, high: float | None = None,
                requires_grad: bool = False, noncontiguous: bool = False, exclude_zero: bool = False) -> Tensor:
    """Random numbers uniform in [low, high), by default in [-9, 9), integers in [-9, 10), unsigned ones and booleans from 0.

    noncontiguous: every second element of its memory along the last dimension; exclude_zero: zeros are the smallest normal
    number, or 1.  Raises ValueError where the interval is empty.  Source: torch.testing.make_tensor.
    """
    size = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
    apart = noncontiguous and prod(size) > 1
    floating = dtype.category >= FLOAT
    low = (0 if dtype in (bool_, uint8) else -9) if low is None else low
    high = (2 if dtype is bool_ else 9 if floating else 10) if high is None else high
    if not low < high:
        msg = f"`low` must be less than `high`, but got {low} >= {high}"
        raise ValueError(msg)
    wide = (*size[:-1], 2 * size[-1]) if apart else size
    if floating:
        x = rand(wide, dtype=dtype, device=device) * (high - low) + (complex(low, low) if dtype.is_complex else low)
    else:
        x = randint(ceil(low), ceil(high), wide, dtype=dtype, device=device)
    if apart:
        x = x[..., ::2]
    if exclude_zero:
        x = where(x == 0, tensor(finfo(dtype).tiny if floating else 1, dtype=dtype, device=device), x)
    return x.requires_grad_(requires_grad)
