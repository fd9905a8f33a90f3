"""minigrad/errors.py"""

import pickle

import pytest

import minigrad as mg
from minigrad import errors
from minigrad.func import grad, vmap
from minigrad.interpreters.grad import GradInterpreter
from minigrad.state import level


def test_errors_are_runtime_errors_as_torchs_are():
    assert all(issubclass(getattr(errors, name), RuntimeError) for name in errors.__all__)


def test_only_a_refusal_says_that_it_is_one():
    assert [name for name in errors.__all__ if getattr(errors, name).refusal] == ["Refusal"]


@pytest.mark.parametrize("name", ["LevelError", "CheckpointError"])
def test_breaking_a_rule_is_a_usage_error(name):
    assert issubclass(getattr(errors, name), errors.UsageError)


def test_a_bug_of_minigrad_is_no_usage_error():
    assert not issubclass(errors.InternalError, errors.UsageError)


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_ends_in_the_level_stack_where_it_was_made(name):
    made = []
    vmap(grad(lambda x: made.append(getattr(errors, name)("wrong.")) or x))(mg.ones(2))
    assert str(made[0]) == "wrong. [level stack: base < vmap@1 < grad@2]"


def test_an_error_that_shows_another_stack_shows_no_second_one():
    assert str(errors.Refusal("wrong. [level stack: base < grad@1]")) == "wrong. [level stack: base < grad@1]"


def test_a_pickled_error_shows_the_stack_where_it_was_made():
    with level(GradInterpreter()):
        error = errors.UsageError("wrong.")
    assert str(pickle.loads(pickle.dumps(error))) == "wrong. [level stack: base < grad@1]"
