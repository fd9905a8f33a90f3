"""The programs with a feature, on torch with minigrad.upstream in it: each gives what torch gives without the feature."""

import warnings

import pytest
import torch

from minigrad.scoreboard.judge import ported
from tests.differential.harness import difference, outcome
from tests.differential.programs import FEATURED, FEATURES

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
