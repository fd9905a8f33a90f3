"""remat="every": what is kept at each order, how often a region runs, what is not cut off."""

import gc
import weakref

import pytest
import torch
from torch.autograd import forward_ad
from torch.func import functionalize, grad, jacfwd, vjp, vmap

from minigrad.upstream import checkpoint, save_on_cpu, set_checkpoint_remat
from tests.upstream.instruments import Alive, Counted, T, chain, nth

X = T([0.3, 0.7])
CT = T([1.0, 2.0])


def every(f, *args, **kwargs):
    return checkpoint(f, *args, remat="every", **kwargs)


def kept_at_each_order(wrap, orders):
    """What is alive of 32 sines and of their recomputations, when the derivative of each order is about to be taken."""
    alive = Alive()
    f = Counted(chain(32, alive.note))
    x = X.clone().requires_grad_()
    y, found = wrap(f, x), []
    for _ in range(orders):
        found.append(alive.count)
        y, = torch.autograd.grad(y, x, CT, create_graph=True)
    return found, f.calls


def kept_under_grad(wrap, order):
    """The same where torch.func takes the derivatives, each inside of the next."""
    alive = Alive()
    f = Counted(chain(32, alive.note))

    def derivative(order):
        if order == 0:
            return lambda x: wrap(f, x).sum()

        def run(x):
            y, pull = vjp(derivative(order - 1), x)
            found.append(alive.count)
            return pull(torch.ones_like(y))[0].sum()

        return run

    found = []
    derivative(order)(X)
    return found, f.calls


def test_0_of_31_are_kept_at_every_order():
    """Of the 32 noted the last one is the output, which the first derivative takes the place of."""
    kept, calls = kept_at_each_order(every, 3)
    assert kept == [1, 0, 0]
    assert calls == 4
    first, _ = kept_at_each_order(checkpoint, 3)
    assert first[0] == 1
    assert min(first[1:]) >= 31


@pytest.mark.parametrize("order", [1, 2, 3])
def test_0_of_31_are_kept_at_every_order_of_nested_gradients(order):
    kept, calls = kept_under_grad(every, order)
    assert kept == [0] * order
    assert calls == 1 + order


def test_the_other_mode_keeps_31_from_the_second_order_on():
    kept, calls = kept_under_grad(checkpoint, 2)
    assert kept[0] == 0
    assert kept[1] >= 31
    assert calls == 3


@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_a_region_has_run_once_more_at_each_order(order):
    f = Counted(chain(2))
    torch.testing.assert_close(nth(order, lambda x: every(f, x))(X), nth(order, chain(2))(X))
    assert f.calls == 1 + order


PROGRAMS = {
    "the region alone": (lambda x, region: region(x, 2.0), lambda k: k + 1),
    "ops before": (lambda x, region: region(x.exp(), 2.0), lambda k: 1 + 2 ** (k - 1)),
    "an input made of another": (lambda x, region: region(x, x.exp()), lambda k: 1 + 2 ** (k - 1)),
    "ops on both sides": (lambda x, region: region(x.exp(), 2.0).sin(), lambda k: 2 ** k),
}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_region_runs_again_for_each_node_that_stands_for_it(program, order):
    """Where its value or its gradient is used, the next order has a node more; in the core they share a second run."""
    f, runs = PROGRAMS[program]
    body = Counted(lambda x, y: x.sin() * y)
    got = nth(order, lambda x: f(x, lambda x, y: every(body, x, y)))(X)
    torch.testing.assert_close(got, nth(order, lambda x: f(x, lambda x, y: x.sin() * y))(X), rtol=1e-12, atol=1e-12)
    assert body.calls == runs(order)


@pytest.mark.parametrize(("depth", "order", "runs"), [(2, 1, 3), (2, 2, 6), (3, 2, 10)])
def test_nested_regions_run_their_body_as_often_as_in_the_core(depth, order, runs):
    """binomial(depth + order, order)."""
    f = Counted(chain(2))
    nested = f
    for _ in range(depth):
        nested = lambda x, inner=nested: every(inner, x)
    torch.testing.assert_close(nth(order, nested)(X), nth(order, chain(2))(X))
    assert f.calls == runs


def test_what_a_level_does_not_differentiate_comes_back_at_its_own_level():
    """c belongs to vmap's level, which is below the one that saves it."""
    def program(wrap):
        def loss(x, c):
            return vmap(lambda x, c: grad(lambda x: wrap(wrap(lambda x: (x * c.exp()).sin()))(x).sum())(x))(x, c).sum()

        return grad(loss, argnums=1)(torch.stack([X, CT]), torch.stack([CT, X]))

    torch.testing.assert_close(program(lambda f: lambda x: every(f, x)), program(lambda f: f), rtol=1e-12, atol=0)


def test_an_output_with_a_tangent_keeps_the_edge_of_a_level_that_is_not_cut():
    def program(wrap):
        def directional(x):
            with forward_ad.dual_level():
                y, t = forward_ad.unpack_dual(wrap(lambda x: x + CT, forward_ad.make_dual(x, x * CT)))
                return (y * t).sum()

        x = X.clone().requires_grad_()
        return torch.autograd.grad(grad(directional)(x).pow(2).sum(), x)[0]

    torch.testing.assert_close(program(every), program(lambda f, x: f(x)))


def test_a_level_of_functionalize_below_forward_mode_has_no_tangents():
    def program(wrap):
        def h(x):
            c = x.cos()
            return wrap(lambda z: (z * c).sin(), x)

        return jacfwd(vmap(functionalize(h)))(torch.stack([X, CT]))

    torch.testing.assert_close(program(every), program(lambda f, x: f(x)))


def test_parameters_get_their_gradients_of_all_orders():
    w = T([0.5, -0.4]).requires_grad_()

    def second(wrap):
        x = X.clone().requires_grad_()
        y = wrap(lambda x: (x * w).sin(), x).pow(2).sum()
        gx, gw = torch.autograd.grad(y, (x, w), create_graph=True)
        return torch.autograd.grad((gx * gw).sum(), (x, w))

    for got, want in zip(second(every), second(lambda f, x: f(x)), strict=True):
        torch.testing.assert_close(got, want, rtol=1e-12, atol=0)


def test_a_leaf_is_given_its_gradient_once():
    w = T([0.5, -0.4]).requires_grad_()
    every(lambda x: (x * w).sin(), X).sum().backward()
    torch.testing.assert_close(w.grad, (X * w).cos() * X)


def test_an_intermediate_that_is_an_ancestor_of_another_input_is_not_counted_twice():
    x = X.clone().requires_grad_()
    y = x.sin()
    got, = torch.autograd.grad(every(lambda x, y: x * y, x, y).sum(), x)
    torch.testing.assert_close(got, x.sin() + x * x.cos())


# ---------------------------------------------------------------- what is not cut off, and recomputed as with "first"
def is_cut(y):
    return type(y.grad_fn).__name__ == "RegionNodeBackward"


def test_a_region_is_one_node():
    x = X.clone().requires_grad_()
    assert is_cut(every(chain(2), x))


def test_an_intermediate_that_retains_its_gradient_gets_it():
    out = []

    def f(x):
        y = x.sin()
        y.retain_grad()
        out.append(y)
        return y.sin()

    z = every(f, X.clone().requires_grad_())
    assert not is_cut(z)
    z.sum().backward()
    torch.testing.assert_close(out[0].grad, X.sin().cos())


def test_a_leaf_that_the_region_made_gets_its_gradient():
    out = []

    def f(x):
        out.append(torch.ones(2, dtype=torch.float64, requires_grad=True))
        return x * out[-1]

    z = every(f, X.clone().requires_grad_())
    assert not is_cut(z)
    z.sum().backward()
    torch.testing.assert_close(out[0].grad, X)


def test_an_argument_that_the_region_wrote_to_is_an_error_as_in_the_other_mode():
    x = X.clone().requires_grad_() * 1
    z = every(lambda x: x.mul_(2).sin(), x)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_a_captured_tensor_that_the_region_wrote_to_is_not_cut_off():
    c = X.clone().requires_grad_() * 1
    assert not is_cut(every(lambda x: c.mul_(2) * x, X.clone().requires_grad_()))


def test_a_tensor_that_came_in_unseen_is_not_lost():
    """A backward's saved tensors are seen by no mode of torch."""
    def program(wrap):
        x = X.clone().requires_grad_()
        c = x.sin()
        pull = vjp(lambda z: z * c, X)[1]
        return torch.autograd.grad(wrap(lambda v: pull(v)[0], x * 2).sum(), x)[0]

    torch.testing.assert_close(program(every), program(lambda f, x: f(x)))


def test_functionalize_is_left_as_it_is():
    f = Counted(chain(2))
    want = grad(lambda x: functionalize(chain(2))(x).sum())(X)
    torch.testing.assert_close(grad(lambda x: functionalize(lambda x: every(f, x))(x).sum())(X), want)
    assert f.calls == 2


def test_another_second_run_is_an_error():
    shapes = iter([2, 1])
    z = every(lambda x: x[:next(shapes)].sin(), X.clone().requires_grad_())
    with pytest.raises(torch.utils.checkpoint.CheckpointError, match="not those of its forward"):
        z.sum().backward()


def test_other_words_are_refused():
    with pytest.raises(ValueError, match="remat must be 'first' or 'every', found 'last'"):
        checkpoint(torch.sin, X, remat="last")


def test_a_context_overrules_what_the_call_says():
    for said in ("first", "every"):
        x = X.clone().requires_grad_()
        with set_checkpoint_remat(said):
            assert [is_cut(checkpoint(chain(2), x, remat=r)) for r in ("first", "every")] == [said == "every"] * 2
    assert not is_cut(checkpoint(chain(2), x))


def test_a_region_that_runs_again_is_in_the_context_of_its_forward():
    x, inner = X.clone().requires_grad_(), []

    def f(x):
        inner.append(checkpoint(chain(2), x))
        return inner[-1]

    with set_checkpoint_remat("every"):
        y = every(f, x)
    torch.autograd.grad(y.sum(), x)
    assert [is_cut(y) for y in inner] == [True, True]


# ---------------------------------------------------------------- memory
@pytest.mark.parametrize("order", [0, 1, 2])
def test_everything_is_freed_without_the_cyclic_collector(order):
    refs = []

    def f(x):
        with save_on_cpu(pin_memory=True):
            y = every(lambda x: x.sin().sin(), x)
        refs.append(weakref.ref(y))
        return y.sum()

    gc.collect()
    gc.disable()
    try:
        x = X.clone().requires_grad_()
        torch.autograd.grad(f(x), x)
        nth(order, f)(X)
        assert [r() for r in refs] == [None] * len(refs)
    finally:
        gc.enable()
