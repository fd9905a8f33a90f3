"""minigrad/autograd/graph.py"""

import pytest

import minigrad as mg
from minigrad.autograd.graph import disable_saved_tensors_hooks, increment_version, save_on_cpu, saved_tensors_hooks
from minigrad.errors import Refusal, UsageError
from minigrad.state import current


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device).requires_grad_()


@pytest.mark.parametrize("hooks", [(1, abs), (abs, 2)])
def test_hooks_that_are_no_functions_are_refused_where_they_are_entered(hooks):
    """As torch does, which makes the context."""
    context = saved_tensors_hooks(*hooks)
    with pytest.raises(TypeError, match="both must be functions, found"), context:
        pass


def test_the_innermost_hooks_are_in_force():
    with saved_tensors_hooks(abs, abs):
        outer = current().hooks
        with saved_tensors_hooks(abs, abs):
            assert current().hooks.outer is outer
        assert current().hooks is outer
    assert current().hooks is None


def test_one_object_can_be_entered_twice(x):
    hooks = saved_tensors_hooks(lambda v: v, lambda v: v)
    with hooks, hooks:
        x.sin().sum().backward()
    assert current().hooks is None


def test_save_on_cpu_is_a_pair_of_hooks_too():
    context = save_on_cpu()
    assert callable(context.pack_hook)
    assert callable(context.unpack_hook)


def test_a_tensor_on_the_host_is_not_copied():
    x = mg.tensor([1.0], device="cpu").requires_grad_()
    with save_on_cpu() as _, save_on_cpu() as _:
        pass
    context = save_on_cpu()
    with context:
        x.sin().sum().backward()
    assert context.host_copies == 0


def test_a_tensor_on_a_device_is_copied_once():
    x = mg.tensor([1.0, 2.0], device="sim").requires_grad_()
    context = save_on_cpu()
    with context:
        y = (x.sin() + x.cos() + x[:1].exp().sum()).sum()
    assert context.host_copies == 2
    y.backward()
    assert x.grad.device.type == "sim"


def test_skip_leaves_tensors_where_they_are():
    x = mg.tensor([1.0, 2.0], device="sim").requires_grad_()
    context = save_on_cpu(skip=lambda v: v.numel() < 5)
    with context:
        x.sin()
    assert context.host_copies == 0


def test_without_dedupe_every_save_is_a_copy():
    x = mg.tensor([1.0, 2.0], device="sim").requires_grad_()
    context = save_on_cpu(dedupe=False)
    with context:
        x.sin() + x.cos()
    assert context.host_copies == 2


def test_disabled_hooks_refuse_with_the_message():
    with disable_saved_tensors_hooks("not here"), pytest.raises(Refusal, match="not here"), saved_tensors_hooks(abs, abs):
        pass
    assert current().hooks_disabled is None


def test_disabling_nests():
    with disable_saved_tensors_hooks("outer"):
        with disable_saved_tensors_hooks("inner"):
            assert current().hooks_disabled == "inner"
        assert current().hooks_disabled == "outer"


def test_disabling_inside_hooks_is_an_error():
    with saved_tensors_hooks(abs, abs), pytest.raises(UsageError, match="cannot be disabled"), disable_saved_tensors_hooks("no"):
        pass


def test_increment_version_counts_one_write_for_each(x):
    y = x.detach().clone()
    increment_version([y, y])
    increment_version(y)
    assert y._version == 3
