"""The programs with a feature, on torch with minigrad.upstream in it: each gives what torch gives without the feature."""

import warnings

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from minigrad.scoreboard.judge import ported
from tests.differential.harness import Raised, difference, outcome
from tests.differential.programs import FEATURED, FEATURES
from tests.differential.test_random import LAYERS, OPERATIONS, run

PORTED = ported()


def at_every_order(f):
    def region(*args):
        return PORTED.utils.checkpoint.checkpoint(f, *args, use_reentrant=False, remat="every")

    return region


WRAPS = {**{name: feature(PORTED) for name, feature in FEATURES.items()}, "checkpoint of every order": at_every_order}
CASES = [pytest.param(program, wrap, id=f"{program.__name__}-{name}") for program in FEATURED for name, wrap in WRAPS.items()]


@pytest.mark.parametrize(("program", "wrap"), CASES)
def test_a_feature_of_the_port_changes_nothing(program, wrap):
    plain = outcome(lambda t: program(t, lambda f: f), torch)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's own use of its own deprecated parts
        found = outcome(lambda t: program(t, wrap), PORTED)
    assert difference(found, plain) is None


def check(ops, layers, level_0):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain, found = (outcome(lambda t: run(t, ops, layers, features=wanted, level_0=level_0), PORTED) for wanted in (False, True))
    if not isinstance(plain, Raised):  # torch has ops that fail in some nesting
        assert difference(found, plain, rtol=1e-11) is None


@settings(max_examples=80, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None)
@given(OPERATIONS, LAYERS, st.booleans())
def test_random_programs_of_the_port(ops, layers, level_0):
    check(ops, layers, level_0)


@pytest.mark.slow
@settings(max_examples=5000, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(OPERATIONS, LAYERS, st.booleans())
def test_many_random_programs_of_the_port(ops, layers, level_0):
    check(ops, layers, level_0)
