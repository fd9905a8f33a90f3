"""Programs that minigrad and torch both run, with one text."""

import pytest

import tests.differential.level_zero
import tests.differential.safety  # noqa: F401  more programs
from tests.differential.harness import LIBRARIES, judge, outcome
from tests.differential.programs import FEATURED, FEATURES, PROGRAMS


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_program(program):
    judge(program.__name__, *[outcome(program, t) for t in LIBRARIES.values()])


@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("program", FEATURED, ids=lambda f: f.__name__)
def test_feature_under_transforms(program, feature):
    """checkpoint and hooks change nothing: minigrad with the feature gives what torch gives without."""
    mine, theirs = (outcome(lambda t: program(t, FEATURES[feature](t)), t) for t in LIBRARIES.values())
    oracle = outcome(lambda t: program(t, lambda f: f), LIBRARIES["torch"])
    judge(f"{program.__name__}[{feature}]", mine, theirs, oracle=oracle)
