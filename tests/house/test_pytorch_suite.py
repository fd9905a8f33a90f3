"""What is said of PyTorch's own tests adds up: each that fails has one reason, and what reasons cite exists."""

import re
import tomllib

import pytest

from tests.house.sources import ROOT

SUITE = tomllib.loads((ROOT / "tests" / "pytorch_suite.toml").read_text())
REASONS = {name: reason for name, reason in SUITE.items() if name not in ("torch", "date", "passed")}
KINDS = {"deviation", "missing", "private", "deprecated", "instrument"}


def failing(reason):
    return [(cls, test) for cls, tests in reason.items() if cls not in ("kind", "why") for test in tests]


@pytest.mark.parametrize("cls", SUITE["passed"])
def test_what_does_not_pass_is_listed(cls):
    passed, of = SUITE["passed"][cls]
    assert sum(found == cls for reason in REASONS.values() for found, _ in failing(reason)) == of - passed


def test_every_test_has_one_reason():
    found = [pair for reason in REASONS.values() for pair in failing(reason)]
    assert len(found) == len(set(found))
    assert {cls for cls, _ in found} <= SUITE["passed"].keys()


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_says_why_and_cites_what_exists(name):
    reason = REASONS[name]
    assert reason["kind"] in KINDS
    assert failing(reason)
    for slug in re.findall(r"\[NOTE ([\w-]+)\]", reason["why"]):
        assert (ROOT / "docs" / "notes" / f"{slug}.md").exists()
    for number in re.findall(r"decision (\d+)", reason["why"]):
        assert list((ROOT / "docs" / "decisions").glob(f"{number}-*.md"))
