"""minigrad/autograd/roots.py, minigrad/graph/edge.py"""

import pytest

import minigrad as mg
from minigrad.autograd.graph import GradientEdge, get_gradient_edge
from minigrad.autograd.roots import roots
from minigrad.errors import UsageError
from minigrad.func import grad


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device).requires_grad_()


def test_a_root_is_checked(x, device):
    with pytest.raises(UsageError, match="element 1 of tensors does not require grad"):
        roots([x.sum(), x.detach()], [None, None], "test")
    with pytest.raises(UsageError, match="only for scalar outputs"):
        roots([x], [None], "test")
    with pytest.raises(UsageError, match=r"Mismatch in shape: grad_output\[1\] has a shape of"):
        roots([x.sum(), x], [None, mg.ones(3, device=device)], "test")


def test_there_is_one_cotangent_for_each_output(x):
    for cts in ([None], [None] * 3):
        with pytest.raises(UsageError, match=f"got 2 tensors and {len(cts)} gradients"):
            mg.autograd.backward([x.sum(), x.prod()], cts)


def test_nothing_has_no_gradient(x):
    mg.autograd.backward([])
    assert mg.autograd.grad([], [x], allow_unused=True) == (None,)
    with pytest.raises(UsageError, match="appears to not have been used"):
        mg.autograd.grad([], [x])


def test_a_cotangent_is_a_tensor(x):
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        mg.autograd.grad(x.sum(), x, grad_outputs=(1.0,))
    with pytest.raises(TypeError, match="gradients can be either Tensors or None, but got float"):
        x.sum().backward(1.0)


def test_a_constant_among_the_inputs_is_told_by_its_index_and_level(x):
    with pytest.raises(UsageError, match=r"the one at index 1 is a constant of level 0\. Call requires_grad_\(\) on it"):
        mg.autograd.grad(x.sum(), [x, x.detach()])


def test_an_input_of_a_level_below_the_outputs_is_told_by_both_levels(x):
    with pytest.raises(UsageError, match=r"the one at index 1 belongs to level 0, and the outputs to grad@1\. Pass it as an "
                                         "argument of the function that grad@1 transforms"):
        grad(lambda y: mg.autograd.grad(y.sum(), [y, x])[0].sum())(x)


def test_an_input_of_a_level_above_the_outputs_is_told_by_both_levels(x):
    with pytest.raises(UsageError, match=r"the one at index 0 belongs to grad@1, and the outputs to level 0\. Differentiate "
                                         "inside grad@1"):
        grad(lambda y: mg.autograd.grad(x.sum(), y)[0].sum())(x)


def test_an_input_that_was_not_used_is_told_by_its_index(x):
    with pytest.raises(UsageError, match="The differentiated Tensor at index 1 appears to not have been used in the graph"):
        mg.autograd.grad(x.sum(), [x, mg.ones_like(x).requires_grad_()])


def test_a_cotangent_takes_the_type_of_its_output(x, device):
    [(_, _, ct)] = roots([x], [mg.ones(2, dtype=mg.float64, device=device)], "test")
    assert ct.dtype is mg.float32


def test_an_edge_made_by_hand_needs_a_cotangent(x):
    y = x.sum()
    edge = GradientEdge(y.grad_fn, 0)
    with pytest.raises(UsageError, match="Make it with get_gradient_edge"):
        mg.autograd.grad(edge, x)
    assert mg.autograd.grad(edge, x, grad_outputs=mg.ones_like(y))[0].tolist() == [1.0, 1.0]


def test_an_edge_belongs_to_the_level_of_its_graph(x):
    owners = []

    def f(v):
        w = v.sin()
        owners.extend([get_gradient_edge(v).owner is v.owner, get_gradient_edge(w).owner is v.owner])
        (g,) = mg.autograd.grad((w * w).sum(), get_gradient_edge(w), create_graph=True)
        return g.sum()
    found = grad(f)(x.detach())
    assert owners == [True, True]
    assert mg.allclose(found, 2 * x.detach().cos())
