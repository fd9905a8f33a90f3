"""minigrad/graph/record.py"""

import pytest

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.graph.record import OpNode
from minigrad.interpreters.grad import GradInterpreter
from minigrad.state import level
from minigrad.storage import Storage


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0, 3.0], device=device).requires_grad_()


def test_an_op_on_a_leaf_leads_to_the_leaf_itself(x):
    node = x.sin().grad_fn
    assert isinstance(node, OpNode)
    assert node.edges == ((x, 0),)


def test_an_op_on_a_result_leads_to_its_node(x):
    y = x.sin()
    assert y.cos().grad_fn.edges == ((y.grad_fn, 0),)


def test_only_inputs_that_require_grad_have_edges(x):
    assert (x.detach() * x).grad_fn.edges == ((x, 0),)
    assert (x * 2).grad_fn.edges == ((x, 0),)


def test_an_edge_knows_which_output_it_comes_from(x):
    values = x.sort()[0]
    v, m = mg.var_mean(x)
    assert [(y * 2).grad_fn.nr for y in (v, m, values)] == [0, 1, 0]


def test_younger_nodes_have_larger_numbers(x):
    y = x.sin()
    z = y.cos()
    assert z.grad_fn.number > y.grad_fn.number


def test_nothing_is_recorded_without_an_input_that_requires_grad(x):
    assert (x.detach() * 2).grad_fn is None
    with mg.no_grad():
        assert (x * 2).grad_fn is None


def test_a_result_that_has_no_derivative_has_no_node(x):
    assert (x > 0).grad_fn is None
    assert x.sort()[1].grad_fn is None


def test_a_memory_that_was_never_written_to_is_its_own_save(device):
    x = mg.tensor([1.0], device=device).requires_grad_()
    assert type(x.sin().grad_fn.saved[0]).__mro__[-2] is Storage or isinstance(x.sin().grad_fn.saved[0], Storage)


def test_shapes_are_kept_only_where_a_rule_reads_them(x):
    assert x.sin().grad_fn.shapes is None
    assert x.sum().grad_fn.shapes == ((3,),)


def test_cotangents_come_back_in_shape_and_type(x, device):
    wide = mg.ones(2, 3, dtype=mg.float64, device=device)
    (wide * x).sum().backward()
    assert (x.grad.shape, x.grad.dtype) == ((3,), mg.float32)


def test_metas_are_kept_only_where_something_was_broadcast_or_promoted(x, device):
    assert (x * x.detach()).grad_fn.metas is None
    assert (x * mg.ones(2, 1, device=device)).grad_fn.metas == (((3,), mg.float32),)


def test_release_gives_up_what_was_saved(x):
    node = x.sin().grad_fn
    node.release()
    assert node.saved is None
    with pytest.raises(UsageError, match=r"already been freed\), here those of SinBackward0"):
        node.run(mg.ones(3), None, False)


def test_a_node_that_saved_nothing_is_not_used_up(x):
    node = (x + 1).grad_fn
    node.release()
    assert node.saved == ()


def test_the_saved_attributes_are_torchs(x):
    y = x * x.detach()
    assert y.grad_fn._saved_self is None
    assert y.grad_fn._saved_other.tolist() == x.tolist()
    with pytest.raises(AttributeError):
        y.grad_fn._saved_result


def test_a_node_of_a_level_is_made_by_the_same_code(x):
    with level(GradInterpreter()) as me:
        y = me.leaf(x).sin()
        assert (type(y.node), y.node.owner, y.node.plan) == (OpNode, me, x.sin().grad_fn.plan)


def test_a_level_keeps_the_value_one_storey_down(x):
    with level(GradInterpreter()) as me:
        leaf = me.leaf(x)
        y = leaf.sin()
        kept = y.node.saved[0].unpack()
        assert kept is x
        assert y.value.grad_fn is not None
