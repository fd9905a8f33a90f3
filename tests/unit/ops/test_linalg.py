"""minigrad/ops/linalg.py: the gradient of a product that broadcasts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.state import Watcher, current, using

WHERE = {"outer": ((5, 1), (4,)), "one number": ((2, 3), ()), "first": ((2, 3, 4), (2, 1, 1)), "last": ((2, 3, 4), (4,)),
         "middle": ((2, 1, 4), (3, 1)), "part of the rest": ((2, 3, 1), (4,)), "extent of 1": ((1, 1), (4,))}


def gradients(lib, a, b, ct, **options):
    x, y = (lib.tensor(v, requires_grad=True) for v in (a, b))
    return lib.autograd.grad(x * y, [x, y], lib.tensor(ct), **options)


@pytest.mark.parametrize("unit", [1, 1 + 2j])
@pytest.mark.parametrize("where", WHERE)
def test_gradients_of_a_product_that_broadcasts_are_torchs(where, unit):
    rng = np.random.default_rng(0)
    a, b = (unit * rng.standard_normal(shape) - unit ** 2 for shape in WHERE[where])
    ct = a + b
    for mine, theirs in zip(gradients(mg, a, b, ct), gradients(torch, a, b, ct), strict=True):
        np.testing.assert_allclose(mine.cpu().numpy(), theirs.numpy(), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_gradients_of_an_outer_product_are_products_with_a_vector(create_graph):
    class Noting(Watcher):
        __slots__ = ()

        def notice(self, event, owner, subject, detail):
            if event == "op":
                seen.append(subject.name)

    seen = []
    with using(current()._replace(watchers=(Noting(),))):
        gradients(mg, np.ones((5, 1)), np.ones(4), np.ones((5, 4)), create_graph=create_graph)
    assert seen.count("mv") == 2
    assert "sum" not in seen
