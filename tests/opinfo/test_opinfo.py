"""Every op that torch's database of sample inputs has and minigrad has too, asked every question of checks.py.

By default a slice runs: values, gradients and saves in float64, of the first and the last sample of each entry.  `-m opinfo`
runs everything.  `python -m tests.opinfo.deviations` says what deviates, as lines for verdicts.toml.
"""

from __future__ import annotations

import pytest

from . import verdicts
from .entries import QUESTIONS, answers
from .rounding import near_the_exact_gradient

SLICE = ("value", "gradient", "saves")


def judge(record, entry, check, dtype, most=None):
    """What deviates is what the verdicts say, no more and no less."""
    rules = verdicts.expected(entry, check, dtype)
    passed = deviated = 0
    for program, deviation in answers(entry, check, dtype, most):
        rule = rules.get(None) or rules.get(program.index)
        if rule is not None and rule.rounding:
            near_the_exact_gradient(program)
            deviated += 1
        elif deviation is None:
            assert rule is None, f"{program!r} agrees with torch now: remove it from the verdict {rule.text!r} ({rule.reason})"
            passed += 1
        elif rule is None:
            deviation.add_note(f"{check} of {program!r}")
            raise deviation
        else:
            deviated += 1
    record("opinfo", [entry, check, dtype, passed, deviated])


@pytest.mark.opinfo
@pytest.mark.parametrize(("entry", "check", "dtype"), QUESTIONS)
def test_an_op_does_what_torch_does(record_property, entry, check, dtype):
    judge(record_property, entry, check, dtype)


@pytest.mark.parametrize(("entry", "check"), [(e, c) for e, c, dtype in QUESTIONS if c in SLICE and dtype == "float64"])
def test_a_slice_of_it(record_property, entry, check):
    judge(record_property, entry, check, "float64", most=2)


def test_every_verdict_is_on_a_question():
    idle = [rule.text for rule in verdicts.RULES if not any(rule.covers(*question) for question in QUESTIONS)]
    assert not idle, "no such entry, check or dtype"
