"""minigrad/errors.py"""

import pytest

from minigrad import errors


def test_errors_are_runtime_errors_as_torchs_are():
    assert all(issubclass(getattr(errors, name), RuntimeError) for name in errors.__all__)


def test_only_a_refusal_says_that_it_is_one():
    assert [name for name in errors.__all__ if getattr(errors, name).refusal] == ["Refusal"]


@pytest.mark.parametrize("name", ["LevelError", "CheckpointError"])
def test_breaking_a_rule_is_a_usage_error(name):
    assert issubclass(getattr(errors, name), errors.UsageError)


def test_a_bug_of_minigrad_is_no_usage_error():
    assert not issubclass(errors.InternalError, errors.UsageError)
