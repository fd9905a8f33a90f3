"""The error function is right where scipy is not installed, too."""

import math

import numpy as np
import pytest

from minigrad import backend
from minigrad.errors import UsageError
from minigrad.ops import special

HERE = np.array([-40.0, -4.5, -4.0, -1.3, -0.46875, -1e-3, 0.0, 0.2, 0.46875, 0.7, 3.9, 4.1, 26.0, np.inf])


def _missing(xp, name):
    msg = f"{name} needs scipy"
    raise UsageError(msg)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_the_error_function_without_scipy_is_pythons(name, monkeypatch):
    monkeypatch.setattr(backend, "special", _missing)
    found = getattr(special, name)(np, HERE)
    np.testing.assert_allclose(found, [getattr(math, name)(x) for x in HERE], rtol=1e-14, atol=1e-300)


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_the_error_function_keeps_single_precision(name):
    assert getattr(special, name)(np, HERE.astype("float32")).dtype == np.float32


@pytest.mark.parametrize("name", ["erf", "erfc"])
def test_the_error_function_of_nan_is_nan_without_scipy(name, monkeypatch):
    monkeypatch.setattr(backend, "special", _missing)
    assert np.isnan(getattr(special, name)(np, np.array([np.nan])))
