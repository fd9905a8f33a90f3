"""minigrad/ops/distances.py"""

import pytest

import minigrad
from minigrad import func
from minigrad.nn.functional import pdist


@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_a_set_has_the_second_derivatives_of_its_pairs(p, device):
    """Where a vector meets itself the distance is 0, which has none: it adds nothing, and no nan."""
    x = minigrad.tensor([[0.3, -1.2], [1.1, 0.4], [-0.7, 2.0]], dtype=minigrad.float64, device=device)
    weights = minigrad.tensor([0.5, -1.0, 2.0], dtype=minigrad.float64, device=device)

    def of_pairs(x):
        return (pdist(x, p) ** 2 * weights).sum()

    def of_all(x):
        d = minigrad.cdist(x, x, p)
        return (minigrad.stack([d[0, 1], d[0, 2], d[1, 2]]) ** 2 * weights).sum() + d.diagonal().sum()

    found, wanted = func.hessian(of_all)(x), func.hessian(of_pairs)(x)
    assert minigrad.allclose(found, wanted, rtol=1e-12, atol=1e-13)


def test_distances_of_vectors_without_elements_are_zero(device):
    assert minigrad.cdist(minigrad.ones(2, 0, device=device), minigrad.ones(1, 0, device=device)).tolist() == [[0], [0]]
