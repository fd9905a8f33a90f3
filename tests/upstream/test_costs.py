"""What a feature costs, as integers: tensors kept, recomputations, packs, host copies."""

import gc
import weakref

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import grad, jvp, vjp, vmap

from minigrad.upstream import checkpoint, save_on_cpu, saved_tensors_hooks
from minigrad.upstream.levels import tangent_of
from minigrad.upstream.reads import base_of
from tests.upstream.instruments import Alive, Counted, T, chain, nth

X = T([0.3, 0.7])


def kept(forward, wrap):
    """The intermediates of 32 sins that are kept once the forward has returned, and the calls in all."""
    alive = Alive()
    f = Counted(chain(32, alive.note))
    finish = forward(lambda x: wrap(f, x))
    found = alive.count
    finish()
    return found, f.calls


def at_level_0(f):
    x = X.clone().requires_grad_()
    y = f(x).sum()
    return lambda: torch.autograd.grad(y, x)


def at_level_1(f):
    y, fn = vjp(lambda x: f(x).sum(), X)
    return lambda: fn(torch.ones_like(y))


def at_level_2_below_vmap(f):
    y, fn = vjp(lambda x: vmap(f)(x).sum(), X)
    return lambda: fn(torch.ones_like(y))


@pytest.mark.parametrize("forward", [at_level_0, at_level_1, at_level_2_below_vmap])
def test_at_first_order_a_region_of_32_layers_keeps_0_of_31_and_runs_once_more(forward):
    assert kept(forward, lambda f, x: f(x)) == (31, 1)
    assert kept(forward, checkpoint) == (0, 2)


def test_at_level_0_a_region_keeps_and_runs_what_torchs_does():
    assert kept(at_level_0, checkpoint) == kept(at_level_0, lambda f, x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False))


def test_a_region_keeps_no_tangents():
    """jvp(grad): the saves of grad's level are duals."""
    alive = Alive()

    def f(x):
        return x * T([1.0, 2.0]).sin()

    def loss(x):
        y = checkpoint(lambda x: alive.note(x.sin()).sin(), x).sum()
        seen.append(alive.count)
        return y

    seen = []
    jvp(grad(loss), (X,), (f(X),))
    assert seen == [0]


def test_a_region_keeps_no_tangents_of_a_dual_level_outside():
    alive, seen = Alive(), []

    def note(x):
        alive.note(tangent_of(base_of(alive.note(x)), 0))
        return x

    def loss(x):
        y = checkpoint(lambda x: note(note(x.sin()).sin()).sin(), x).sum()
        seen.append((len(alive.refs), alive.count))
        return y

    with forward_ad.dual_level():
        grad(loss)(forward_ad.make_dual(X, X.cos()))
    assert seen == [(4, 0)]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_derivative_of_order_n_costs_n_recomputations(order):
    f = Counted(chain(2))
    torch.testing.assert_close(nth(order, lambda x: checkpoint(f, x))(X), nth(order, chain(2))(X))
    assert f.calls == 1 + order


def test_forward_mode_recomputes_nothing():
    f = Counted(chain(2))
    jvp(lambda x: vmap(lambda x: checkpoint(f, x))(x), (X,), (X,))
    assert f.calls == 1


def test_the_sandwich_runs_its_function_twice_in_all():
    """The seeds' question: grad_0(checkpoint(grad_1(f)))."""
    f = Counted(lambda x: x.sin().sin().sum())
    grad(lambda x: checkpoint(grad(f), x).sum())(X)
    assert f.calls == 2


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_regions_nested_k_deep_run_their_body_as_often_as_in_torch(depth):
    def runs(checkpoint):
        f = Counted(chain(2))
        nested = f
        for _ in range(depth):
            nested = lambda x, inner=nested: checkpoint(inner, x, use_reentrant=False)
        at_level_0(nested)()
        return f.calls

    assert runs(checkpoint) == runs(torch.utils.checkpoint.checkpoint)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_hooks_are_asked_once_for_each_save_of_each_level(order):
    pack = Counted(lambda x: x)

    def f(x):
        with saved_tensors_hooks(pack, lambda x: x):
            return chain(2)(x)

    nth(order, f)(X)
    assert pack.calls == 2 * order


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_number_of_host_copies_does_not_depend_on_the_order(order):
    context = save_on_cpu(pin_memory=True)

    def f(x):
        with context:
            return chain(2)(x)

    nth(order, f)(X)
    assert context.host_copies == 2


def test_views_of_one_stretch_share_a_copy_and_other_stretches_do_not():
    x = torch.rand(4, 4, dtype=torch.float64).requires_grad_()
    w = torch.rand(4, 4, dtype=torch.float64)
    with (context := save_on_cpu(pin_memory=True)):
        y = (w @ x) + (w.t() @ x)
        assert context.host_copies == 1
        y = y + x * w[1:2].expand(4, 4)
    assert context.host_copies == 2
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], w.sum(0)[:, None] + w.sum(1)[:, None] + w[1])


def test_a_version_is_copied_on_its_own():
    x, w = T([0.3]).requires_grad_(), T([2.0])
    with (context := save_on_cpu(pin_memory=True)):
        y = x * w
        w.mul_(5)
        y = y + x * w
    assert context.host_copies == 2
    assert torch.autograd.grad(y, x)[0].item() == 12


def test_a_partial_backward_leaves_nothing_behind():
    alive = Alive()
    x = X.clone().requires_grad_()

    def f(x):
        y = alive.note(x.sin())
        return y.sin(), alive.note(y.cos()).exp()

    first, second = checkpoint(f, x)
    torch.autograd.grad(first.sum(), x, retain_graph=True)
    assert alive.count == 0
    torch.autograd.grad(second.sum(), x)


class AtTheEnd(torch.autograd.Function):
    """Calls something when the backward comes by."""

    @staticmethod
    def forward(x, call):
        return x.clone()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.call = inputs[1]

    @staticmethod
    def backward(ctx, g):
        ctx.call()
        return g, None


@pytest.mark.parametrize("retain_graph", [False, True])
@pytest.mark.parametrize("level", [0, 1])
def test_a_recomputed_value_is_dropped_as_it_is_handed_out(level, retain_graph):
    alive, counts = Alive(), []

    def f(x):
        y = AtTheEnd.apply(x, lambda: counts.append(alive.count))
        return checkpoint(chain(32, alive.note), y).sum()

    if level:
        y, fn = vjp(f, X)
        fn(torch.ones_like(y), retain_graph=retain_graph)
    else:
        f(X.clone().requires_grad_()).backward(retain_graph=retain_graph)
    assert max(counts) <= 1  # the last one is still in use


@pytest.mark.parametrize("order", [0, 1, 2])
def test_everything_is_freed_without_the_cyclic_collector(order):
    refs = []

    def f(x):
        y = checkpoint(lambda x: x.sin().sin(), x)
        with save_on_cpu(pin_memory=True), saved_tensors_hooks(lambda x: x, lambda x: x):
            y = y.sin().exp()
        refs.append(weakref.ref(y))
        return y.sum()

    gc.collect()
    gc.disable()
    try:
        if order == 0:
            at_level_0(f)()
        nth(order, f)(X)
        assert [r() for r in refs] == [None] * len(refs)
    finally:
        gc.enable()
