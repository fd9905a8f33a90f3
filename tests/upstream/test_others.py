"""What is not ours behaves as in torch without us: before, inside, afterwards, also after errors."""

import threading

import pytest
import torch
from torch.autograd.graph import disable_saved_tensors_hooks, saved_tensors_hooks
from torch.func import grad, vmap

import minigrad.upstream as up
from minigrad.upstream.levels import depth
from tests.upstream.instruments import Counted, T

X = T([0.3, 0.7])
REFUSED = r"don't yet support saved tensor hooks"


def same(x):
    return x


def sin_sin(x):
    return x.sin().sin()


def total(f):
    return lambda x: f(x).sum()


class Broken(Exception):
    pass


def breaking(*args):
    raise Broken


@pytest.fixture(autouse=True)
def _torch_is_as_it_was():
    """After each test, whatever it did."""
    yield
    assert depth() == 0
    assert torch.is_grad_enabled()
    assert torch._C._is_fwd_grad_enabled()
    assert torch._C._autograd._top_saved_tensors_default_hooks(True) is None
    assert torch._C._autograd._saved_tensors_hooks_get_disabled_error_message() is None
    assert torch.autograd.graph.disable_saved_tensors_hooks is disable_saved_tensors_hooks
    assert saved_tensors_hooks.__enter__.__module__ == "torch.autograd.graph"
    assert torch.autograd.backward.__module__ == "torch.autograd"
    assert not torch.overrides._get_current_function_mode_stack()
    with pytest.raises(RuntimeError, match=REFUSED):
        hooked_by_torch(X)


def hooked_by_torch(x):
    def f(x):
        with saved_tensors_hooks(same, same):
            return x.sin().sum()

    return grad(f)(x)


# ---------------------------------------------------------------- errors at every place
def in_forward(x):
    up.checkpoint(lambda x: breaking(x.sin()), x)


def in_recomputation(x):
    runs = []

    def f(x):
        y = x.sin().sin()
        runs.append(1)
        return y.sin() if len(runs) == 1 else breaking()

    return up.checkpoint(f, x)


def in_pack(x):
    with up.saved_tensors_hooks(breaking, same):
        return x.sin()


def in_unpack(x):
    with up.saved_tensors_hooks(same, breaking):
        return x.sin()


def in_a_level_of_the_region(x):
    return up.checkpoint(grad(lambda x: breaking(x.sin())), x)


def by_torchs_hooks_inside(x):
    try:
        return up.checkpoint(hooked_by_torch, x)
    except RuntimeError:
        raise Broken from None


@pytest.mark.parametrize("body", [in_forward, in_recomputation, in_pack, in_unpack, in_a_level_of_the_region, by_torchs_hooks_inside])
@pytest.mark.parametrize("nesting", [
    lambda f: torch.autograd.grad(f(x := X.clone().requires_grad_()).sum(), x),
    lambda f: grad(total(f))(X),
    lambda f: grad(total(grad(total(f))))(X),
    lambda f: vmap(grad(total(f)))(X),
])
def test_an_error_leaves_torch_as_it_was(nesting, body):
    with pytest.raises(Broken):
        nesting(body)
    torch.testing.assert_close(grad(total(lambda x: up.checkpoint(sin_sin, x)))(X), grad(total(sin_sin))(X))


# ---------------------------------------------------------------- hooks of torch's own
def test_torchs_hooks_inside_a_region_manage_their_saves():
    pack = Counted(same)

    def f(x):
        with saved_tensors_hooks(pack, same):
            return x.sin()

    x = X.clone().requires_grad_()
    y = up.checkpoint(f, x)
    assert pack.calls == 1
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], X.cos())


def test_torchs_hooks_outside_get_the_arguments_of_a_region():
    pack = Counted(torch.clone)
    x = X.clone().requires_grad_()
    with saved_tensors_hooks(pack, same):
        y = up.checkpoint(sin_sin, x)
    assert pack.calls == 1
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], grad(total(sin_sin))(X))


def test_torchs_hooks_outside_see_base_tensors_of_a_level_that_the_region_enters():
    seen = []
    x = X.clone().requires_grad_()
    with saved_tensors_hooks(lambda x: seen.append(x) or x.clone(), same):
        y = up.checkpoint(grad(total(sin_sin)), x)
    assert not any(torch._C._functorch.is_functorch_wrapped_tensor(s) for s in seen)
    with up.saved_tensors_hooks(pack := Counted(same), same):
        grad(total(sin_sin))(X)
    assert len(seen) == 1 + pack.calls
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], grad(total(grad(total(sin_sin))))(X))


@pytest.mark.parametrize("place", [up.saved_tensors_hooks(same, same), up.save_on_cpu()])
def test_torchs_hooks_are_refused_under_a_transform_that_began_in_ours(place):
    with place, pytest.raises(RuntimeError, match=REFUSED):
        hooked_by_torch(X)


def test_torchs_hooks_are_refused_in_ours_under_a_transform():
    def f(x):
        with up.saved_tensors_hooks(same, same):
            with pytest.raises(RuntimeError, match=REFUSED), saved_tensors_hooks(same, same):
                pass
            return x.sin().sum()

    torch.testing.assert_close(grad(f)(X), X.cos())


def test_a_transform_in_torchs_hooks_in_ours_is_refused():
    with up.save_on_cpu(), saved_tensors_hooks(same, same), pytest.raises(RuntimeError):
        grad(total(sin_sin))(X)


def test_hooks_that_somebody_disabled_are_disabled():
    with disable_saved_tensors_hooks("not here"):
        for place in (up.saved_tensors_hooks(same, same), up.save_on_cpu()):
            with pytest.raises(RuntimeError, match="not here"), place:
                pass
        with pytest.raises(RuntimeError, match="not here"):
            up.checkpoint(sin_sin, X.clone().requires_grad_())


def test_another_thread_sees_torch_while_a_region_runs():
    found = []

    def elsewhere():
        try:
            hooked_by_torch(X)
        except RuntimeError as error:
            found.append(str(error))
        x = X.clone().requires_grad_()
        torch.autograd.backward(torch.utils.checkpoint.checkpoint(sin_sin, x, use_reentrant=False).sum())
        found.append(x.grad)

    def f(x):
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        return x.sin()

    grad(total(lambda x: up.checkpoint(f, x)))(X)
    assert ["support saved tensor hooks" in found[i] for i in (0, 2)] == [True, True]
    torch.testing.assert_close([found[1], found[3]], [grad(total(sin_sin))(X)] * 2)
