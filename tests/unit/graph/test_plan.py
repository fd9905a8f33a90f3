"""minigrad/graph/plan.py"""

import pytest

from minigrad.errors import UsageError
from minigrad.graph.bare import as_kernels
from minigrad.graph.plan import Plan
from minigrad.ops.linalg import _addmm
from minigrad.ops.pointwise import _pow_number, add_row, exp, mul, sin, true_div
from minigrad.ops.softmax import _softmax


def test_a_save_is_kept_only_if_a_rule_that_is_needed_reads_it():
    assert Plan(mul.op, (True, True)).saves == ("x1", "x0")
    assert Plan(mul.op, (True, False)).saves == ("x1",)
    assert Plan(mul.op, (False, True)).saves == ("x0",)


def test_a_save_that_two_rules_read_is_kept_for_either():
    assert Plan(true_div.op, (True, False)).saves == ("x1",)
    assert Plan(true_div.op, (False, True)).saves == ("x1", "x0")


def test_an_output_is_kept_whoever_reads_it():
    assert Plan(exp.op, (True,)).saves == ("out",)


def test_places_say_which_input_or_output_a_save_is():
    assert Plan(mul.op, (True, True)).places == ((1, 0), (0, 0))
    assert Plan(exp.op, (True,)).places == ((None, 0),)


def test_origins_say_which_edge_a_save_has():
    assert Plan(mul.op, (True, True)).origins == (1, 0)
    assert Plan(mul.op, (True, False)).origins == (None,)
    assert Plan(exp.op, (True,)).origins == ("out",)


def test_an_op_that_saves_nothing():
    plan = Plan(add_row.op, (True, True))
    assert (plan.saves, plan.places) == ((), ())


def test_rules_of_elementwise_rows_are_read_as_kernels():
    assert Plan(sin.op, (True,)).arrays is not None
    assert Plan(_softmax.op, (True,)).arrays is None


def test_a_rule_that_names_something_else_is_not_read_as_a_kernel():
    assert as_kernels(((lambda ct, x0: ct * unknown(x0), (0,)),), "on_reals") is None  # noqa: F821
    assert as_kernels((None,), "on_reals") is None


def test_inputs_count_from_the_left():
    assert Plan(_addmm.op, (False, True, False)).saves == ("x2",)


def test_an_input_without_a_rule_cannot_be_differentiated():
    from minigrad.ops.choice import choose
    with pytest.raises(UsageError, match="'where' is not differentiable with respect to argument 0"):
        Plan(choose.op, (True, True, False))


def test_the_rule_of_a_power_is_read_as_a_kernel_though_it_may_give_zeros():
    assert Plan(_pow_number.op, (True, False)).arrays is not None
