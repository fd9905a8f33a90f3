"""Each nesting with a feature in it gives what the same program of torch gives without."""

import pytest
import torch
from torch.func import grad
from torch.fx.experimental.proxy_tensor import make_fx

from tests.upstream.programs import AROUND_TRANSFORMS, BODIES, FEATURES, NESTINGS, NOT_ALIKE, PLAIN_FAILS, W1, W2, V, X


def plainly(f):
    return f


def value(program):
    torch.manual_seed(3)
    for w in (W1, W2):
        w.grad = None
    return program()


def agree(program, feature):
    want = value(lambda: program(plainly))
    assert want.abs().max() > 1e-9, "a program that gives zero shows nothing"
    torch.testing.assert_close(value(lambda: program(feature)), want, rtol=1e-12, atol=1e-14)


CELLS = [(n, b) for n in NESTINGS for b in BODIES if (n, b) not in PLAIN_FAILS.union(NOT_ALIKE)]


ALL_BODIES = ["checkpoint", "checkpoint of every order", "save_on_cpu"]
"""Features that meet every body."""
ALL_FEATURES = ["sinsin", "dropout", "a_tensor_of_the_level_is_captured", "an_argument_is_a_swapped_parameter_too"]
"""Bodies that meet every feature."""


@pytest.mark.parametrize(("nesting", "body", "feature"), [
    (n, b, f) for n, b in CELLS for f in FEATURES if f in ALL_BODIES or b in ALL_FEATURES])
def test_a_feature_around_the_body_changes_nothing(nesting, body, feature):
    agree(lambda wrap: NESTINGS[nesting](lambda x: BODIES[body](wrap, x)), FEATURES[feature])


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("body", ["sinsin", "dropout"])
@pytest.mark.parametrize("nesting", AROUND_TRANSFORMS)
def test_a_feature_around_transforms_changes_nothing(nesting, body, feature):
    agree(lambda wrap: AROUND_TRANSFORMS[nesting](wrap, lambda x: BODIES[body](plainly, x)), FEATURES[feature])


@pytest.mark.parametrize("feature", ["checkpoint", "save_on_cpu", "save_on_cpu(checkpoint)"])
def test_a_trace_holds_what_a_feature_did(feature):
    """Not the values that it saw: it is right for another input."""
    def f(x):
        return BODIES["parameters_are_captured"](FEATURES[feature], x).pow(2).sum()

    trace = make_fx(grad(f))(X)
    torch.testing.assert_close(trace(V), grad(f)(V))


@pytest.mark.parametrize(("nesting", "body"), sorted(PLAIN_FAILS))
def test_what_is_left_out_fails_without_the_port(nesting, body):
    with pytest.raises(RuntimeError):
        NESTINGS[nesting](lambda x: BODIES[body](plainly, x))
