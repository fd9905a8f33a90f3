"""Selective policies: the same text on both, the same numbers, and as many runs of each op."""

import pytest

from tests.differential.harness import LIBRARIES, judge, outcome
from tests.differential.policies import POLICIES


@pytest.mark.parametrize("program", POLICIES, ids=lambda f: f.__name__)
def test_policies(program):
    judge(program.__name__, *[outcome(program, t) for t in LIBRARIES.values()])
