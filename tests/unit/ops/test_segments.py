"""minigrad/ops/segments.py: what goes to one place is reduced there."""

from __future__ import annotations

from itertools import product
from math import prod

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.func import hessian, vmap
from tests.spec.instruments import t

OWN, GIVEN, INDEX = [2.0, 0.0, 7.5, 5.0], [0.5, 0.0, 7.0, 7.0, 4.0, 0.0], [0, 0, 2, 2, 1, 0]
REDUCTIONS = list(product(["sum", "prod", "mean", "amax", "amin"], [True, False]))


@pytest.mark.parametrize(("reduce", "include_self"), REDUCTIONS)
def test_gradients_are_torchs_also_where_elements_are_zero_or_equal(reduce, include_self):
    found = []
    for lib in (torch, mg):
        x, src = (lib.tensor(a, dtype=lib.float64, requires_grad=True) for a in (OWN, GIVEN))
        y = lib.scatter_reduce(x, 0, lib.tensor(INDEX), src, reduce, include_self=include_self)
        (y * lib.arange(1.0, 5.0, dtype=lib.float64)).sum().backward()
        found.append([y.tolist(), x.grad.tolist(), src.grad.tolist()])
    for a, b in zip(*found, strict=True):
        assert b == pytest.approx(a, rel=1e-12)


def test_what_was_there_has_no_share_where_it_does_not_count():
    """Torch halves the gradient of the given element, as if what was there were an extreme, too."""
    src = t([3.0], requires_grad=True)
    t([3.0, 1.0]).scatter_reduce(0, mg.tensor([0]), src, "amin", include_self=False)[0].backward()
    assert src.grad.tolist() == [1]


def test_the_second_derivative_of_a_product_is_right_where_two_factors_are_zero():
    """Torch refuses it; by hand: the product of the factors that are left."""
    def f(src):
        return mg.ones(2, dtype=mg.float64).scatter_reduce(0, mg.tensor([0, 0, 0, 1]), src, "prod")[0]
    src = [0.0, 0.0, 7.0, 5.0]

    def others(i, j):
        return prod(src[k] for k in range(3) if k not in (i, j)) if i != j and 3 not in (i, j) else 0
    want = [[others(i, j) for j in range(4)] for i in range(4)]
    assert hessian(f)(t(src)).tolist() == want


@pytest.mark.filterwarnings("ignore:.*index_reduce.. is in beta")  # torch's own
def test_an_index_reduced_in_place_is_torchs():
    def program(lib):
        x = lib.ones(3, 2, dtype=lib.float64)
        source = lib.arange(1.0, 9.0, dtype=lib.float64).reshape(4, 2)
        x.index_reduce_(0, lib.tensor([0, 2, 0, 0]), source, "mean", include_self=False)
        return x.scatter_reduce_(1, lib.tensor([[1], [0], [1]]), source, "amax").tolist()
    assert program(mg) == program(torch)


def test_indices_of_a_batch_are_those_of_each_sample():
    x, src = t(np.ones((2, 3))), t(np.arange(8.0).reshape(2, 4))
    index = mg.tensor([[0, 1, 1, 2], [2, 2, 2, 2]])
    out = vmap(lambda x, index, src: x.scatter_reduce(0, index, src, "mean"))(x, index, src)
    assert out.tolist() == [[0.5, 4 / 3, 2.0], [1, 1, 23 / 5]]


def test_another_reduction_is_refused_in_torchs_words():
    with pytest.raises(RuntimeError, match="reduce argument must be either sum, prod, mean, amax or amin, got max"):
        t(OWN).scatter_reduce(0, mg.tensor(INDEX), t(GIVEN), "max")
    with pytest.raises(RuntimeError, match="Expected reduce to be one of prod, mean, amax or amin but got sum"):
        t(OWN).index_reduce(0, mg.tensor([0]), t([1.0]), "sum")
