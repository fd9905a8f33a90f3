"""LU factors without LAPACK, and with it: both are torch's."""

import numpy as np
import pytest
import torch

from minigrad.ops import elimination

SHAPES = [(1, 1), (5, 5), (40, 40), (2, 3, 40, 40), (70, 33), (33, 70), (3, 0), (0, 3), (0, 4, 4)]


def matrices(shape, dtype="complex128"):
    rng = np.random.default_rng(1)
    return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)


def is_torchs(x):
    lu, pivots = elimination.eliminated(np, x)
    want, exchanged = torch.linalg.lu_factor_ex(torch.from_numpy(x))[:2]
    np.testing.assert_array_equal(pivots, exchanged.numpy(), strict=True)
    np.testing.assert_allclose(lu, want.numpy(), atol=1e-12, strict=True)


@pytest.fixture(params=["scipy", "none"])
def routine(request, monkeypatch):
    if request.param == "none":
        monkeypatch.setattr(elimination, "lapack", lambda xp, name, like: None)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.usefixtures("routine")
def test_pivots_and_factors_are_torchs(shape, dtype):
    is_torchs(matrices(shape, dtype))


@pytest.mark.usefixtures("routine")
def test_of_equal_pivots_the_first_is_taken():
    is_torchs(np.array([[1.0, 2], [-1, 3], [1, 4]]))


@pytest.mark.usefixtures("routine")
def test_a_column_of_zeros_is_left_as_it_is():
    x = matrices((40, 40)).real.copy()
    x[:, 20] = 0
    is_torchs(x)
