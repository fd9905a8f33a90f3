"""Each nesting with a feature in it gives what the same program of torch gives without."""

import pytest
import torch

from tests.upstream.programs import AROUND_TRANSFORMS, BODIES, FEATURES, NESTINGS, PLAIN_FAILS, W1, W2


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


CELLS = [(n, b) for n in NESTINGS for b in BODIES if (n, b) not in PLAIN_FAILS]


ALL_BODIES = ["checkpoint", "save_on_cpu"]
"""Features that meet every body; the others meet three."""


@pytest.mark.parametrize(("nesting", "body", "feature"), [
    (n, b, f) for n, b in CELLS for f in FEATURES if f in ALL_BODIES or b in ("sinsin", "dropout", "a_tensor_of_the_level_is_captured")])
def test_a_feature_around_the_body_changes_nothing(nesting, body, feature):
    agree(lambda wrap: NESTINGS[nesting](lambda x: BODIES[body](wrap, x)), FEATURES[feature])


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("body", ["sinsin", "dropout"])
@pytest.mark.parametrize("nesting", AROUND_TRANSFORMS)
def test_a_feature_around_transforms_changes_nothing(nesting, body, feature):
    agree(lambda wrap: AROUND_TRANSFORMS[nesting](wrap, lambda x: BODIES[body](plainly, x)), FEATURES[feature])


@pytest.mark.parametrize(("nesting", "body"), sorted(PLAIN_FAILS))
def test_what_is_left_out_fails_without_the_port(nesting, body):
    with pytest.raises(RuntimeError):
        NESTINGS[nesting](lambda x: BODIES[body](plainly, x))
