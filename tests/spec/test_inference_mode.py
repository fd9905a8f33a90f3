"""Inference mode: what is made there is never saved."""

from __future__ import annotations

import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import grad
from minigrad.state import current
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import sin_sin, t

SAVED = "Inference tensors cannot be saved for backward"


@pytest.fixture
def made():
    with mg.inference_mode():
        return t([1.0, 2.0])


def test_what_is_made_inside_and_its_views_are_inference_tensors(made):
    """[NOTE inference-mode]"""
    assert made.is_inference()
    assert made[0].is_inference()
    assert made.detach().is_inference()
    assert not (made + 1).is_inference()
    assert not made.clone().is_inference()
    with mg.inference_mode():
        x = t([1.0], requires_grad=True)
        assert (x * 2).is_inference()
        assert not (x * 2).requires_grad
        with mg.enable_grad():
            assert not (x * 2).requires_grad
        with mg.inference_mode(False):
            assert (x.clone() + x).requires_grad
            assert not t(1.0).is_inference()


def test_which_levels_may_save_an_inference_tensor(made):
    """[NOTE inference-mode] Those that were not on the stack when it was made."""
    x = t([1.0, 1.0], requires_grad=True)
    assert (x + made).requires_grad
    with pytest.raises(UsageError, match=SAVED):
        x * made
    assert grad(lambda y: (y * made).sum())(t([1.0, 1.0])).tolist() == [1.0, 2.0]
    with mg.inference_mode():
        assert grad(lambda y: (y * y).sum())(made).tolist() == [2.0, 4.0]

    def inside(y):
        with mg.inference_mode():
            z = y.sin()
        return (y * z).sum()

    with pytest.raises(UsageError, match=SAVED):
        grad(inside)(t([1.0, 1.0]))


def test_only_inference_mode_writes_to_an_inference_tensor(made):
    """[NOTE inference-mode]"""
    with pytest.raises(UsageError, match="outside InferenceMode is not allowed"):
        made.add_(1)
    with pytest.raises(UsageError, match="outside InferenceMode is not allowed"):
        made.requires_grad_()
    with pytest.raises(UsageError, match="do not track version counter"):
        made._version
    with mg.inference_mode():
        made.add_(1)
    assert made.tolist() == [2.0, 3.0]


def test_a_write_inside_to_a_tensor_from_outside_is_found_by_its_backward():
    """[NOTE inference-mode]"""
    a = t(1.0, requires_grad=True).clone()
    y = a * a
    with mg.inference_mode():
        a.add_(1)
    assert not a.is_inference()
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


def test_a_region_runs_again_in_the_mode_of_its_forward(made):
    """[NOTE inference-mode] [NOTE recompute-under-the-same-state] Upstream: meta-pytorch/tnt#912."""
    def gradient(wrap):
        x = t([0.5, 1.5], requires_grad=True)
        y = wrap(lambda x, c: sin_sin(x) + c)(x, made).sum()
        with mg.inference_mode():
            y.backward()
        return x.grad.tolist()

    assert gradient(lambda f: lambda *args: checkpoint(f, *args)) == gradient(lambda f: f)


def test_as_a_context_and_as_a_decorator_it_puts_back_what_it_found():
    """[NOTE inference-mode] [NOTE state-is-a-value]"""
    outside = current()
    for decorated in (mg.inference_mode(mg.sin), mg.inference_mode()(mg.sin), mg.inference_mode(mode=True)(mg.sin)):
        assert mg.is_inference(decorated(t(1.0)))
    with mg.inference_mode():
        assert mg.is_inference_mode_enabled()
        with mg.inference_mode(False):
            assert not mg.is_inference_mode_enabled()
    assert current() is outside


def test_an_inference_tensor_does_not_become_a_view_of_itself_outside():
    """[NOTE inference-mode]  An in-place view counts as a write, as in torch."""
    with mg.inference_mode():
        c = mg.ones(1, 2)
        c.t_()
    with pytest.raises(UsageError, match="Inplace update to inference tensor outside InferenceMode"):
        c.t_()
    assert c.shape == (2, 1)


@pytest.mark.parametrize("library", [mg, torch], ids=["minigrad", "torch"])
def test_a_tensor_that_requires_grad_is_resized_in_inference_mode_alone(library):
    """[NOTE inference-mode]"""
    with library.inference_mode():
        x = library.ones(2, 3, requires_grad=True)
        assert x.resize_(1, 2).tolist() == [[1, 1]]
    with pytest.raises(RuntimeError, match="cannot resize variables that require grad"):
        library.ones(2, 3, requires_grad=True).resize_(1, 2)
