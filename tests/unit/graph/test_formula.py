"""minigrad/graph/formula.py"""

import pytest

from minigrad.graph.formula import Formula, expand, meaning


@pytest.mark.parametrize(("name", "meant"), [
    ("x0", ("x", 0)), ("out", ("out", None)), ("out1", ("out", 1)), ("rest", ("rest", 1)), ("rest2", ("rest", 2)),
    ("shape0", ("shape", 0)), ("shapes", ("shapes", None)), ("shape", ("param", "shape")), ("xp", ("param", "xp"))])
def test_a_name_says_its_sort_and_which(name, meant):
    assert meaning(name) == meant


def test_a_formula_says_what_it_reads():
    formula = Formula(lambda ct, x0, rest, out, dim: ct)
    assert formula.names == ("x0", "rest", "out", "dim")
    assert formula.tensors(3) == ["x0", "x1", "x2", "out"]


def test_rest_stands_for_the_inputs_from_the_second_on():
    assert expand("rest", 3) == ("x1", "x2")
    assert expand("rest2", 3) == ("x2",)
    assert expand("x0", 3) == ("x0",)


def test_a_formula_is_applied_to_what_is_at_hand():
    formula = Formula(lambda dx, x1, out, rest, dim: (dx, x1, out, rest, dim))
    assert formula("dx", ["a", "b", "c"], "y", {"dim": 2}) == ("dx", "b", "y", ("b", "c"), 2)
