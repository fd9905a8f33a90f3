"""Gradients in float32 of what depends so much on its input that the rounding of the input is the larger error.

There two libraries differ as their BLAS does.  What both can be held to is the gradient in float64, at the same input: each has to be
as near to it as the gradients are of inputs that were rounded otherwise, times what an algorithm may add.
"""

from __future__ import annotations

import numpy as np

from .checks import grad, recorded
from .compare import RTOL, Deviation
from .libraries import Minigrad, Torch
from .oracle import Oracle

UNIT = 2.0 ** -24
"""Half a step of float32: how far a number is from what it was rounded to, relatively."""
WAYS = 8
"""How many other roundings are looked at."""
GROWTH = 4
"""What a stable algorithm may add: of a few steps, each as exact as for an input that was rounded once more."""


def near_the_exact_gradient(program):
    """Raise Deviation unless both are; and where the input's rounding is no larger error than is allowed everywhere."""
    oracle = Oracle(program)
    exact, rng = _in_double(program, oracle), np.random.default_rng(0)
    others = [_in_double(program, oracle, lambda a: a * (1 + UNIT * rng.choice([-1, 1], a.shape))) for _ in range(WAYS)]
    spread = max(_off(other, exact) for other in others)
    if spread < RTOL["float32"]:
        msg = f"{program!r}: rounding its input changes the gradient by {spread:.1e}, so it can be compared as any other"
        raise Deviation(msg)
    xs, y = recorded(program, oracle)
    found = {"minigrad": map(Minigrad.numpy, grad(y, xs, materialize_grads=True)), "torch": map(Torch.numpy, oracle.gradient)}
    for library, grads in found.items():
        if not (off := _off(grads, exact)) <= GROWTH * spread:
            msg = f"{program!r}: {library}'s gradient is off by {off:.1e}, and those of other roundings by {spread:.1e}"
            raise Deviation(msg)


def _in_double(program, oracle, changed=lambda a: a):
    """Torch's gradient in float64 at the input, or at one that was rounded otherwise."""
    arrays = [changed(a.astype("float64")) if a.dtype == "float32" else a for a in program.arrays]
    return [Torch.numpy(g) for g in Oracle(program.with_arrays(arrays), oracle.weights).gradient]


def _off(grads, exact):
    """How far gradients are from others, relative to the largest element of each."""
    return max(float(np.max(np.abs(a - b)) / np.max(np.abs(b))) for a, b in zip(grads, exact, strict=True))
