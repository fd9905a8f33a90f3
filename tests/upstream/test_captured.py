"""What a region captures is what it was in the forward, although its level has exited when the region runs again."""

import pytest
import torch
from torch.autograd import forward_ad as fwd
from torch.func import grad, jacrev, jvp, vjp, vmap

from minigrad.upstream import checkpoint
from tests.upstream.programs import V, X, leaf

PROGRAMS = {}


def region(f):
    """A program that differentiates x -> wrap(z -> f(z, c))(x), where c belongs to x's level, once that level has exited."""
    def program(wrap):
        def h(x):
            c = x.cos()
            return wrap(lambda z: f(z, c), x)

        return jacrev(jacrev(h))(X)

    PROGRAMS[f.__name__] = program
    return f


def program(f):
    PROGRAMS[f.__name__] = f
    return f


@region
def in_an_op(z, c):
    return (z * c).sin() * c


@region
def in_a_list(z, c):
    return torch.stack([z, c]).sin().sum(0) * c


@region
def differentiated_inside(z, c):
    return grad(lambda t: (t * z).sin().sum())(c).sin()


@region
def mapped_inside(z, c):
    return vmap(lambda a: (a * z.sum()).sin())(c).sin() * c


@region
def stacked_and_mapped_inside(z, c):
    return vmap(lambda a, b: (a * b).sin(), (0, None))(torch.stack([c, c]), z).sum(0) * c


@region
def a_primal_and_a_tangent_inside(z, c):
    return jvp(lambda t: (t * z).sin(), (c,), (c * z,))[1]


@region
def by_an_inner_region(z, c):
    return checkpoint(lambda q: (q * c).sin().sin(), z).sin() * c


@region
def read_for_its_shape(z, c):
    return (z * c.numel()).sin() * c.new_ones(c.shape).cumsum(0)


@program
def what_is_captured_is_an_argument_too(wrap):
    def h(x):
        c = x.sin()

        def f(z):
            g, = torch.autograd.grad((c * c.cos()).sum(), z, create_graph=True)
            return g * z

        return wrap(f, c)

    return jacrev(h)(X)


@program
def at_a_jvp_level_that_exited(wrap):
    def h(y):
        return jvp(grad(lambda z: wrap(lambda q: (q * y.cos()).sin().sin(), z).sum()), (y,), (V,))[1]

    fn = vjp(h, X)[1]
    return grad(lambda w: vmap(fn)(torch.stack([w, w * 2]))[0].pow(2).sum())(V)


@program
def a_dual_tensor_whose_level_was_left(wrap):
    with fwd.dual_level():
        d = fwd.make_dual(leaf(X), V)
        y = fwd.unpack_dual(wrap(lambda a: (a * d).sin().sin(), d)).tangent
    return torch.autograd.grad(y.sum(), d)[0]


@program
def by_an_inner_backward_in_a_dual_level_entered_inside(wrap):
    x, c = leaf(X), leaf(V)

    def f(x):
        with fwd.dual_level():
            y = (fwd.make_dual(x, V) * c).sin()
            return torch.autograd.grad(fwd.unpack_dual(y).tangent.sum(), x, create_graph=True)[0].sin()

    return torch.cat(torch.autograd.grad(wrap(f, x).sum(), (x, c)))


@program
def at_two_levels_that_exited_around_one_that_is_entered_again(wrap):
    c = leaf(V)

    def h(x):
        return jvp(lambda z: wrap(lambda: grad(lambda q: ((q * z) ** 3 * c * x).sum())(z)), (x,), (V,))[1]

    return torch.autograd.grad(grad(lambda x: h(x).sum())(X).sum(), c)[0]


@program
def a_tensor_of_an_outer_level_at_an_inner_one(wrap):
    def outer(x):
        c = x.cos()
        fn = vjp(lambda y: wrap(lambda q: (q * c).sin() * (q * c).exp(), y), x.sin())[1]
        return fn(x)[0]

    return jacrev(outer)(X)


@program
def by_an_inner_region_as_its_argument(wrap):
    x = leaf(X)
    y = jvp(lambda x: wrap(lambda one: wrap(lambda x: (x * V).sin(), x) * one, torch.ones_like(X)), (x,), (V,))[1]
    return torch.autograd.grad(y.pow(2).sum(), x)[0]


@pytest.mark.parametrize("name", PROGRAMS)
def test_captured_tensors_are_what_they_were(name):
    torch.testing.assert_close(PROGRAMS[name](checkpoint), PROGRAMS[name](lambda f, *args: f(*args)), rtol=1e-12, atol=1e-14)
