"""minigrad/ops/pointwise.py: sizes of complex numbers, at 0 too."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError

NUMBERS = [0, 3 - 4j, complex("nan"), complex("inf"), complex(0, -float("inf")), -2]


def derivatives(lib):
    """The sizes, their gradient, and the gradient of that along a direction."""
    x = lib.tensor(NUMBERS, dtype=lib.complex128, requires_grad=True)
    size = lib.abs(x)
    (first,) = lib.autograd.grad(size, x, lib.arange(1.0, 7.0, dtype=lib.float64), create_graph=True)
    (second,) = lib.autograd.grad(first, x, lib.full((6,), 2 - 1j, dtype=lib.complex128))
    return [y.detach().cpu().numpy() for y in (size, first, second)]


def test_derivatives_of_the_size_of_complex_numbers_are_torchs_at_zero_and_at_the_ends():
    for mine, theirs in zip(derivatives(mg), derivatives(torch), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-13)


@pytest.mark.parametrize("name", ["floor_divide", "remainder", "fmod"])
def test_an_integer_divided_by_zero_is_an_error_that_says_what_to_do(name):
    with pytest.raises(UsageError, match=rf"^{name}: ZeroDivisionError: .*Divide floats, .* \(found shapes \[2\], \[2\]\)"):
        getattr(mg, name)(mg.tensor([1, 2]), mg.tensor([1, 0]))
