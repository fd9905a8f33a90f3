"""What is held to the answer in float64 is held to it."""

import pytest

from . import rounding
from .compare import Deviation
from .entries import samples


@pytest.fixture(scope="module")
def program():
    return samples("linalg.tensorsolve", "float32")[2][0]


def test_a_gradient_that_is_off_by_more_than_the_rounding_of_its_input_deviates(program, monkeypatch):
    def slightly_off(program, oracle, recorded=rounding.recorded):
        xs, y = recorded(program, oracle)
        return xs, y * 1.001
    monkeypatch.setattr(rounding, "recorded", slightly_off)
    with pytest.raises(Deviation, match="minigrad's gradient is off by 1"):
        rounding.near_the_exact_gradient(program)


def test_a_gradient_that_bears_the_rounding_of_its_input_is_compared_as_any_other():
    with pytest.raises(Deviation, match="can be compared as any other"):
        rounding.near_the_exact_gradient(samples("linalg.tensorsolve", "float32")[0][0])
