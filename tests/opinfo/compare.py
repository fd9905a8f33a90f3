"""Whether what minigrad gave is what torch gave."""

from __future__ import annotations

import numpy as np

from .libraries import Minigrad, Torch, leaves

RTOL = {"float64": 1e-11, "complex128": 1e-11, "float32": 1e-5, "complex64": 1e-5, "float16": 2e-3}


class Deviation(Exception):
    """Minigrad does not do what torch does."""


def dtype_name(x):
    return str(x.dtype).rpartition(".")[2]


def same(found, wanted, what, *, strides=(), rtol=0.0):
    """Compare two lists of leaves.  Numbers may differ by the RTOL of their dtype, relative to the largest one, or to 1.

    rtol: that of a dtype on the way to them.
    """
    found, wanted = leaves(found), leaves(wanted)
    if len(found) != len(wanted):
        msg = f"{what}: {len(found)} results, torch {len(wanted)}"
        raise Deviation(msg)
    for k, (a, b) in enumerate(zip(found, wanted, strict=True)):
        place = f"{what}[{k}]" if len(wanted) > 1 else what
        if not isinstance(b, Torch.Tensor) or not isinstance(a, Minigrad.Tensor):
            _same_constant(a, b, place)
            continue
        if (dtype_name(a), tuple(a.shape)) != (dtype_name(b), tuple(b.shape)):
            msg = f"{place}: {dtype_name(a)}{list(a.shape)}, torch {dtype_name(b)}{list(b.shape)}"
            raise Deviation(msg)
        if strides and strides[k] and b.numel() and _steps(a) != _steps(b):
            msg = f"{place}: strides {a.stride()}, torch {b.stride()}"
            raise Deviation(msg)
        _same_numbers(Minigrad.numpy(a), Torch.numpy(b), max(RTOL.get(dtype_name(b), 0), rtol), place)


def _steps(x):
    """The strides of dimensions that have more than one element."""
    return [s for s, n in zip(x.stride(), x.shape, strict=True) if n > 1]


def _same_numbers(a, b, rtol, place):
    finite = np.isfinite(b)
    scale = max(np.max(np.abs(b), initial=0, where=finite), 1) if rtol else 0
    with np.errstate(all="ignore"):
        if not np.allclose(a, b, rtol=0, atol=rtol * scale, equal_nan=True):
            msg = f"{place}: {_short(a)}, torch {_short(b)}"
            raise Deviation(msg)


def _short(a):
    return np.array2string(a, threshold=12, edgeitems=3, precision=6).replace("\n", "")


def _same_constant(a, b, place):
    if isinstance(b, Torch.Tensor) or isinstance(a, Minigrad.Tensor) or str(a).rpartition(".")[2] != str(b).rpartition(".")[2]:
        if isinstance(a, float) and isinstance(b, float) and (a == b or (a != a and b != b)):
            return
        msg = f"{place}: {a!r}, torch {b!r}"
        raise Deviation(msg)
