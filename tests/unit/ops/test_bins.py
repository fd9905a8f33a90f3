"""minigrad/ops/bins.py and other functions of integers: places, sets, counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.func import vmap
from tests.spec.instruments import t


def both(f):
    """What a program gives in torch and in minigrad, as lists."""
    return [[x.tolist() for x in found] if isinstance(found := f(lib), tuple) else found.tolist() for lib in (torch, mg)]


# ---------------------------------------------------------------- places
def test_places_of_a_batch_of_sequences_and_values_are_those_of_each_sample():
    sequences, values = t(np.sort(np.random.default_rng(0).standard_normal((3, 5)))), t(np.linspace(-1, 1, 12).reshape(3, 2, 2))
    found = vmap(mg.searchsorted)(sequences, values)
    assert found.tolist() == [mg.searchsorted(s, v).tolist() for s, v in zip(sequences, values, strict=True)]
    assert vmap(mg.bucketize, in_dims=(1, None))(values[0], sequences[0]).tolist() == mg.bucketize(values[0].T, sequences[0]).tolist()


def test_a_number_is_looked_up_as_a_tensor_is():
    assert mg.searchsorted(mg.tensor([1.0, 3.0, 5.0]), 3, right=True).item() == 2
    assert mg.bucketize(mg.tensor([1.5, 2]), mg.tensor([1, 2])).tolist() == [1, 1]
    assert mg.isin(3, mg.tensor([1, 3])).item() is True


@pytest.mark.parametrize("program", [
    lambda lib: lib.searchsorted(lib.zeros(3), lib.zeros(2), side="middle"),
    lambda lib: lib.searchsorted(lib.zeros(3), lib.zeros(2), side="left", right=True),
    lambda lib: lib.searchsorted(lib.zeros(2, 3), lib.zeros(3, 3)),
    lambda lib: lib.bucketize(lib.zeros(3), lib.zeros(2, 2)),
    lambda lib: lib.bincount(lib.tensor([1, -1])),
    lambda lib: lib.bincount(lib.tensor([1, 1]), minlength=-1),
    lambda lib: lib.bincount(lib.tensor([1, 1]), lib.zeros(3)),
    lambda lib: lib.histc(lib.zeros(3), 0),
    lambda lib: lib.logspace(0, 1, -1),
    lambda lib: lib.frexp(lib.tensor([1])),
], ids=["side", "opposites", "leading dimensions", "boundaries", "negative", "minlength", "weights", "no bins", "steps",
        "integers"])
def test_a_mistake_is_refused_by_both(program):
    for lib in (torch, mg):
        with pytest.raises((RuntimeError, ValueError)) as error:
            program(lib)
        assert len(str(error.value).split()) > 2


# ---------------------------------------------------------------- sets
def test_unique_entries_are_torchs_with_their_numbers_and_counts():
    rows = [[1, 2], [0, 5], [1, 2], [0, 4], [1, 2]]
    want, got = both(lambda lib: lib.unique(lib.tensor(rows), dim=0, return_inverse=True, return_counts=True))
    assert got == want == [[[0, 4], [0, 5], [1, 2]], [2, 1, 2, 0, 2], [1, 1, 3]]


def test_nan_is_no_other_nan():
    want, got = both(lambda lib: lib.unique(lib.tensor([np.nan, 1, np.nan, 1]), return_counts=True)[1:][0])
    assert got == want
    assert not mg.isin(mg.tensor([np.nan]), mg.tensor([np.nan])).item()


def test_runs_of_one_and_of_none_are_torchs():
    for shape in ((0,), (), (1,)):
        want, got = both(lambda lib, shape=shape: lib.zeros(shape).unique_consecutive(return_inverse=True, return_counts=True))
        assert got == want


def test_how_many_there_are_is_refused_of_a_batch():
    with pytest.raises(RuntimeError, match="output dynamic shape"):
        vmap(mg.unique)(mg.zeros(2, 3))


# ---------------------------------------------------------------- counts and indices
def test_indices_of_what_is_not_zero_are_found_for_each_sample():
    """Torch has no batching rule for it."""
    x = mg.tensor([[0, 5, 0, 3], [0, 0, 0, 0], [1, 1, 1, 1]])
    assert vmap(lambda x: x.nonzero_static(size=2))(x).tolist() == [[[1], [3]], [[-1], [-1]], [[0], [1]]]


def test_counts_in_bins_are_torchs_at_the_ends_and_for_equal_elements():
    for given, options in (([0.0, 1, 2, 3, -1, 4], {"bins": 3, "max": 3}), ([2.0, 2, 2], {"bins": 4}), ([], {"bins": 2})):
        want, got = both(lambda lib, given=given, options=options: lib.histc(lib.tensor(given), **options))
        assert got == want


def test_shifted_bits_are_torchs():
    for program in (lambda lib: lib.tensor([1, -5, 7]) << 2, lambda lib: lib.tensor([1, -5, 70]) >> 1, lambda lib: 1 << lib.tensor([0, 3]),
                    lambda lib: lib.tensor([1, 2]).bitwise_left_shift_(lib.tensor([3, 1]))):
        want, got = both(program)
        assert got == want


def test_a_mantissa_has_the_derivative_of_a_quotient():
    x = t([3.0, -0.3], requires_grad=True)
    mantissa, exponent = mg.frexp(x)
    assert (mantissa.tolist(), exponent.tolist(), exponent.dtype) == ([0.75, -0.6], [2, -1], mg.int32)
    mantissa.sum().backward()
    assert x.grad.tolist() == [0.25, 2]


# ---------------------------------------------------------------- other sizes
def test_a_tensor_is_resized_in_its_memory():
    x = mg.arange(6)
    view = x[2:]
    assert x.resize_(2, 2) is x
    assert (x.tolist(), view.tolist()) == ([[0, 1], [2, 3]], [2, 3, 4, 5])
    assert x.resize_(6).tolist() == list(range(6))
    assert view.resize_as_(mg.zeros(3)).tolist() == [2, 3, 4]
    with pytest.raises(RuntimeError, match=r"needs room for 7 elements, and the memory of this tensor has 6"):
        x.resize_(7)
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        mg.zeros(2, requires_grad=True).resize_(1)
