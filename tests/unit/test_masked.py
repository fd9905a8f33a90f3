"""minigrad/masked.py: what is masked out has no part in the result, and no gradient."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad import masked
from minigrad.func import grad, vmap
from tests.spec.instruments import t

X, MASK = [[3.0, 1, 2], [4, 5, 6]], [[True, False, True], [False, False, False]]
REDUCED = {"sum": [5, 0], "prod": [6, 1], "amax": [3, -float("inf")], "amin": [2, float("inf")], "argmax": [0, 0]}


@pytest.mark.parametrize("name", REDUCED)
def test_a_reduction_of_what_is_left_and_of_nothing(name):
    assert getattr(masked, name)(t(X), 1, mask=mg.tensor(MASK)).tolist() == REDUCED[name]


def test_a_gradient_goes_to_what_is_left():
    mask = mg.tensor([True, False, True])
    for f in (masked.sum, masked.mean, masked.var, masked.norm, masked.logsumexp):
        g = grad(lambda x, f=f: f(x, mask=mask))(t(X[0]))
        assert g[1].item() == 0
        assert g[0].item() != 0


def test_a_mask_of_each_sample_is_its_own():
    found = vmap(lambda x, mask: masked.softmax(x, 0, mask=mask))(t(X), mg.tensor([[True, True, False], [True, False, False]]))
    assert found[1].tolist() == [1, 0, 0]
    assert found[0, 2].item() == 0


def test_the_median_of_ints_of_which_none_is_left_is_refused():
    whole = mg.tensor([[3, 1, 2], [4, 5, 6]])
    assert masked.median(whole, 1).tolist() == [2, 5]
    with pytest.raises(ValueError, match="no fully masked out rows"):
        masked.median(whole, 1, mask=mg.tensor(MASK))
    with pytest.raises(ValueError, match="Could not infer output dtype"):
        masked.mean(whole)
    with pytest.raises(RuntimeError, match="Only one of unbiased and correction"):
        masked.var(t(X), unbiased=True, correction=1)
