"""Function modes: the calls that a program writes, and no others."""

from __future__ import annotations

import pytest
import torch

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn
from minigrad.autograd import Function
from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.func import grad, jvp, vjp, vmap
from minigrad.overrides import DisableTorchFunction, TorchFunctionMode, _get_current_function_mode_stack
from minigrad.state import current, watched
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import sin_sin, t


class Calls(TorchFunctionMode):
    """The names of the calls."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Instead(TorchFunctionMode):
    """One function in the place of another."""

    def __init__(self, function, other):
        super().__init__()
        self.function, self.other = function, other

    def __torch_function__(self, func, types, args=(), kwargs=None):
        return (self.other if func is self.function else func)(*args, **(kwargs or {}))


def names(f):
    with Calls() as calls:
        f()
    return calls.names


LAYER = nn.Linear(2, 2, device="cpu")
X = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(("program", "expected"), [
    (lambda x: (x.sin(), mg.sin(x), x + x, 2 * x, x @ x, x[0], x > 0), ["sin", "sin", "add", "mul", "matmul", "__getitem__", "gt"]),
    (lambda x: LAYER(x.float().cpu()).relu(), ["float", "cpu", "linear", "relu"]),
    (lambda x: F.mse_loss(F.softmax(x, -1), x), ["softmax", "mse_loss"]),
    (lambda x: mg.einsum("ij,jk->ik", x, x), ["einsum"]),
    (lambda x: x.clone().add_(1).mul_(2), ["clone", "add_", "mul_"]),
    (lambda x: mg.stack([mg.zeros(2), mg.randn(2)]), ["zeros", "randn", "stack"]),
    (lambda x: mg.autograd.grad((x * x).sum(), x), ["mul", "sum", "grad"]),
    (lambda x: (x * x).sum().backward(), ["mul", "sum", "backward"]),
    (lambda x: x.sum().item(), ["sum", "item"]),
    (lambda x: (mg.cdist(x, x), mg.as_strided(x, (2,), (1,)), mg.unique(x)), ["cdist", "as_strided", "unique"]),  # loaded late
    (lambda x: vjp(sin_sin, x)[1](x), ["sin", "sin"]),
    (lambda x: vmap(lambda x: sin_sin(x).sum())(x), ["sin", "sin", "sum"]),
    (lambda x: jvp(sin_sin, (x,), (x,)), ["sin", "sin"]),
    (lambda x: checkpoint(sin_sin, x).sum().backward(), ["sin", "sin", "sum", "backward"]),
])
def test_a_mode_sees_the_calls_that_the_program_writes(program, expected):
    """[NOTE function-modes] A composite is one call; rules of transforms and of backward are none; nor is a recomputation's rest."""
    x = t(X, requires_grad=True)
    seen = names(lambda: program(x))
    if expected[-1] == "backward" and expected[0] == "sin":
        assert seen == [*expected, "sin", "sin"]           # the region runs again under the modes of its forward: this one
    else:
        assert seen == expected


def test_modes_are_asked_the_innermost_first_and_not_in_their_handlers():
    """[NOTE function-modes]"""
    with Calls() as outer, Instead(mg.sin, mg.cos), Calls() as inner:
        y = mg.sin(t(1.0))
    assert y.item() == mg.cos(t(1.0)).item()
    assert (inner.names[-1], outer.names[-1]) == ("sin", "cos")


def test_what_a_mode_puts_in_the_place_of_a_call_is_differentiated():
    """[NOTE function-modes] It stands ahead of the levels: unlike a dispatch mode's, its program is the one that counts."""
    with Instead(mg.sin, mg.exp):
        assert grad(grad(mg.sin))(t(1.0)).item() == mg.exp(t(1.0)).item()


def test_a_recomputation_runs_under_the_function_modes_of_its_forward():
    """[NOTE function-modes] [NOTE recompute-under-the-same-state] C1: left since, and not those around the backward."""
    def run(wrap):
        x = t(1.0, requires_grad=True)
        with Instead(mg.sin, mg.cos):
            y = wrap(lambda x: mg.exp(mg.sin(x)))(x)
        with Calls() as around:
            y.backward()
        return x.grad.item(), around.names

    assert run(lambda f: f) == run(lambda f: lambda x: checkpoint(f, x))


def test_a_mode_entered_in_a_region_is_entered_again_when_it_runs_again():
    """[NOTE function-modes]"""
    calls = Calls()

    def f(x):
        with calls:
            return mg.sin(mg.sin(x))

    grad(lambda x: checkpoint(f, x))(t(1.0))
    assert calls.names == ["sin"] * 4


def test_hooks_and_custom_backwards_are_inside_the_call_of_the_backward():
    """[NOTE function-modes]"""
    class Sine(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return mg.sin(x)

        @staticmethod
        def backward(ctx, ct):
            return ct * mg.cos(ctx.saved_tensors[0])

    x = t(1.0, requires_grad=True)
    with saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2):
        y = Sine.apply(x)
    y.register_hook(lambda g: g * 2)
    assert names(y.backward) == ["backward"]


def test_the_stack_is_as_deep_after_a_backward_and_after_an_error():
    """[NOTE function-modes] [NOTE state-is-a-value] Upstream: pytorch/pytorch#180423."""
    outside = current()
    x = t(1.0, requires_grad=True)
    with Calls() as calls:
        y = checkpoint(sin_sin, x)
        assert _get_current_function_mode_stack() == [calls]
        with DisableTorchFunction():
            assert _get_current_function_mode_stack() == []
        y.backward()
        assert _get_current_function_mode_stack() == [calls]
        with pytest.raises(TypeError):
            mg.sin(None)
        assert _get_current_function_mode_stack() == [calls]
    assert current() is outside
    assert not watched


def test_a_method_and_the_function_of_its_name_are_one():
    """[NOTE function-modes] So that a mode can compare what it is given."""
    found = []

    class Look(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            found.append((func is mg.sin or func is mg.sum or func is F.linear, types))
            return func(*args, **(kwargs or {}))

    x = t(X)
    with Look():
        (x.sin(), mg.sin(x), x.sum(), mg.sum(x), F.linear(x, x))
    assert found == [(True, ())] * 5


def test_a_mode_sees_ops_whose_file_is_imported_when_they_are_asked_for():
    """[NOTE function-modes]"""
    a = t([[2.0, 1.0], [1.0, 3.0]])
    with Calls() as calls:
        mg.cholesky(a)
        mg.cdist(a, a)
        mg.as_strided(a, (2,), (3,))
    assert calls.names == ["cholesky", "cdist", "as_strided"]


def test_a_device_that_was_entered_is_listed_as_in_torch_and_a_backward_leaves_it_so():
    """[NOTE function-modes] Upstream: pytorch/pytorch#180423."""
    def depths(lib):
        stack, seen = lib.overrides._get_current_function_mode_stack, []
        x = lib.ones(2, device="cpu", requires_grad=True)
        with lib.device("meta"):
            y = lib.utils.checkpoint.checkpoint(lambda x: x.sin().sin(), x, use_reentrant=False)
            seen.append(len(stack()))
        seen.append(len(stack()))
        y.sum().backward()
        with lib.device("cpu"), lib.device("meta"):
            lib.utils.checkpoint.checkpoint(lambda x: x.sin().sin(), x, use_reentrant=False).sum().backward()
            seen += [len(stack()), lib.ones(2).device.type]
        return [*seen, len(stack())]

    assert depths(mg) == depths(torch)
