"""save_on_cpu and saved_tensors_hooks: what is handed out and what comes back."""

import pytest
import torch
from torch.func import grad, vmap

from minigrad.upstream import save_on_cpu, saved_tensors_hooks
from tests.upstream.instruments import T, chain

X = T([0.3, 0.7])


def saving(x, f, *, context=None):
    """What backward gets of a tensor that f saves."""
    with context or save_on_cpu(pin_memory=True):
        return f(x).grad_fn


@pytest.mark.parametrize("view", [
    lambda x: x.t(), lambda x: x[1:], lambda x: x[:, ::2], lambda x: x[0].expand(3, 4), lambda x: x[1:1], lambda x: x[2, 3],
    lambda x: x.reshape(2, 2, 3).transpose(0, 2), lambda x: x.flip(0)[1:],
])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64])
def test_a_tensor_comes_back_with_its_values_strides_and_dtype(view, dtype):
    x = view(torch.arange(12).reshape(3, 4).to(dtype)).detach().requires_grad_()
    back = saving(x, torch.sin)._saved_self
    assert (back.stride(), back.dtype, back.device, back.requires_grad) == (x.stride(), x.dtype, x.device, True)
    assert back.untyped_storage().data_ptr() != x.untyped_storage().data_ptr() or not x.numel()
    torch.testing.assert_close(back, x)


def test_a_conjugate_view_does_not_share_the_copy_of_what_it_conjugates():
    x = torch.tensor([1 + 2j, 3 - 1j], requires_grad=True)
    w = torch.tensor([2 + 1j, 1 + 1j])
    with save_on_cpu(pin_memory=True):
        y = (x * w + x * w.conj()).abs().sum()
    torch.testing.assert_close(torch.autograd.grad(y, x)[0], torch.autograd.grad((x * w + x * w.conj()).abs().sum(), x)[0])


def test_a_sparse_tensor_comes_back_sparse():
    s = torch.eye(3).to_sparse()
    x = torch.rand(3, 3, requires_grad=True)
    with save_on_cpu(pin_memory=True):
        y = torch.sparse.mm(s, x)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], torch.ones(3, 3))


def test_views_of_one_stretch_come_back_as_views_of_one():
    x = torch.rand(3, 3).requires_grad_()
    with save_on_cpu(pin_memory=True):
        a, b = x.sin().grad_fn, x.t().cos().grad_fn
    first, second = a._saved_self, b._saved_self
    assert first.untyped_storage().data_ptr() == second.untyped_storage().data_ptr()
    torch.testing.assert_close(second, x.t())


def test_a_host_tensor_stays_where_it_is():
    x = X.clone().requires_grad_()
    with (context := save_on_cpu()):
        y = x.sin().sin()
    assert context.host_copies == 0
    assert y.grad_fn.next_functions[0][0]._saved_self.data_ptr() == x.data_ptr()


@pytest.mark.parametrize("context", [save_on_cpu(), save_on_cpu(pin_memory=True, skip=lambda x: True)])
@pytest.mark.parametrize("run", [grad, lambda f: lambda x: torch.autograd.grad(f(y := x.clone().requires_grad_()), y)])
def test_what_stays_where_it_is_has_its_version_checked(run, context):
    def f(x):
        w = x.sin()
        with context:
            y = w * w.exp()
        w.mul_(2)
        return y.sum()

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(f)(X)


def test_hooks_under_transforms_see_base_tensors_below_every_level():
    seen = []

    def pack(x):
        seen.append((x, torch.is_grad_enabled(), (x + 1).requires_grad))
        return x

    def f(x):
        with saved_tensors_hooks(pack, lambda x: x):
            return x.sin().sum()

    x = torch.stack([X, -X]).requires_grad_()
    vmap(grad(f))(x)
    base, recording, derived = seen[0]  # grad's save: level 0 has its own
    assert (base.shape, base.requires_grad, recording, derived) == (x.shape, False, False, False)


def test_hooks_at_level_0_are_handed_what_torch_hands_them():
    def packed(hooks):
        seen = []
        x = X.clone().requires_grad_()
        with hooks(lambda s: seen.append((s is x, s.requires_grad, type(s.grad_fn).__name__)) or s.detach(), lambda s: s):
            x.sin().exp()
        return seen

    assert packed(saved_tensors_hooks) == packed(torch.autograd.graph.saved_tensors_hooks)


def test_unpack_under_a_transform_must_return_a_tensor():
    def f(x):
        with saved_tensors_hooks(lambda x: x, lambda x: None):
            return x.sin().sum()

    with pytest.raises(TypeError, match="expected to be a Tensor but got NoneType"):
        grad(f)(X)


def test_the_innermost_hooks_act():
    seen = []

    def at(name):
        return saved_tensors_hooks(lambda x: seen.append(name) or x, lambda x: x)

    def f(x):
        with at("outer"):
            y = x.sin()
            with at("inner"):
                return y.sin().sum()

    torch.testing.assert_close(grad(f)(X), grad(lambda x: chain(2)(x).sum())(X))
    assert seen == ["outer", "inner"]


def test_a_context_may_be_entered_again_inside_itself():
    context = saved_tensors_hooks(lambda x: x.clone(), lambda x: x)

    def f(x):
        with context:
            y = x.sin()
            with context:
                y = y.sin()
            return y.sin().sum()

    torch.testing.assert_close(grad(f)(X), grad(lambda x: chain(3)(x).sum())(X))
