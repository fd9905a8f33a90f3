"""minigrad/graph/node.py"""

import pytest
import torch

import minigrad as mg
from minigrad.graph.node import AccumulateGrad, RemovableHandle


def test_next_functions_are_torchs_pairs():
    x = mg.tensor([1.0]).requires_grad_()
    y = x.sin()
    assert y.cos().grad_fn.next_functions == ((y.grad_fn, 0),)
    ((end, nr),) = y.grad_fn.next_functions
    assert (end, nr, end.variable) == (AccumulateGrad(x), 0, x)


@pytest.mark.parametrize("library", [mg, torch], ids=["minigrad", "torch"])
def test_all_that_a_walk_of_the_graph_meets_is_a_node(library):
    y = (library.ones(2, requires_grad=True) * 2).exp()
    node, names = y.grad_fn, []
    while node is not None:
        assert isinstance(node, library.autograd.graph.Node)
        names.append(node.name())
        node = next((after for after, _ in node.next_functions if after is not None), None)
    assert names == ["ExpBackward0", "MulBackward0", "torch::autograd::AccumulateGrad"]


def test_the_end_of_a_graph_names_its_level():
    assert repr(AccumulateGrad(mg.ones(2))) == "<torch::autograd::AccumulateGrad object of level 0>"


def test_the_end_of_a_graph_is_the_same_for_one_leaf():
    x, y = mg.tensor([1.0]), mg.tensor([1.0])
    assert AccumulateGrad(x) == AccumulateGrad(x)
    assert AccumulateGrad(x) != AccumulateGrad(y)
    assert len({AccumulateGrad(x), AccumulateGrad(x)}) == 1
    assert AccumulateGrad(x).next_functions == ()


def test_a_handle_takes_its_hook_off_once():
    def hook(_):
        return None

    hooks = []
    handle = RemovableHandle(hooks, hook)
    assert hooks == [hook]
    handle.remove()
    handle.remove()
    assert hooks == []


def test_a_handle_is_a_context():
    hooks = []
    with RemovableHandle(hooks, print):
        assert hooks == [print]
    assert hooks == []


def test_a_node_says_its_level():
    x = mg.tensor([1.0]).requires_grad_()
    assert repr(x.sin().grad_fn) == "<SinBackward0 object of level 0>"


def test_names_are_torchs():
    x = mg.tensor([1.0]).requires_grad_()
    assert x.sin().grad_fn.name() == "SinBackward0"
    assert AccumulateGrad(x).name() == "torch::autograd::AccumulateGrad"
