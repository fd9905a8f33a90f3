"""Traces and functionalize: the same text on both, and the same numbers."""

import pytest

from tests.differential.harness import LIBRARIES, judge, outcome
from tests.differential.programs import FEATURES
from tests.differential.traced import FEATURED, TRACED


@pytest.mark.parametrize("program", TRACED, ids=lambda f: f.__name__)
def test_traced(program):
    judge(program.__name__, *[outcome(program, t) for t in LIBRARIES.values()])


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("program", FEATURED, ids=lambda f: f.__name__)
def test_traced_with_a_feature(program, feature):
    mine, theirs = (outcome(lambda t: program(t, FEATURES[feature](t)), t) for t in LIBRARIES.values())
    oracle = outcome(lambda t: program(t, lambda f: f), LIBRARIES["torch"])
    judge(f"{program.__name__}[{feature}]", mine, theirs, oracle=oracle)
