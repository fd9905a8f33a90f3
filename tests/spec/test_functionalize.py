"""functionalize: the results of the function, and no memory that is written before its end."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.errors import UsageError
from minigrad.func import functionalize, grad, hessian, jvp, vmap
from minigrad.testing import assert_close
from minigrad.utils._python_dispatch import TorchDispatchMode
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Alive, t

REMOVE = ("mutations", "mutations_and_views")


def writes(x):
    """In-place ops, through views and a detached tensor too."""
    y = x * 2
    y.sin_()
    part = y[1:]
    part.mul_(x[1:])
    y.detach().add_(1)
    y[0] += part[1]
    return y.cos() * x


X = [1.0, 2.0, 3.0]
AROUND = {
    "f": lambda f: f,
    "grad": lambda f: grad(lambda x: f(x).sum()),
    "hessian": lambda f: hessian(lambda x: f(x).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x * x,))[1],
    "vmap": lambda f: lambda x: vmap(f)(mg.stack([x, x * 2])),
    "vmap(grad)": lambda f: lambda x: vmap(grad(lambda x: f(x).sum()))(mg.stack([x, x * 2])),
    "grad(checkpoint)": lambda f: grad(lambda x: checkpoint(f, x).sum()),
}


@pytest.mark.parametrize("remove", REMOVE)
@pytest.mark.parametrize("around", AROUND)
def test_it_composes_with_transforms_inside_and_outside(around, remove):
    """[NOTE functionalize]"""
    transform = AROUND[around]
    expected = transform(writes)(t(X))
    assert_close(transform(functionalize(writes, remove=remove))(t(X)), expected, rtol=1e-12, atol=0)
    assert_close(functionalize(transform(writes), remove=remove)(t(X)), expected, rtol=1e-12, atol=0)


class Writes(TorchDispatchMode):
    """The memories that are written to, and whether they are older than the mode."""

    def __init__(self, *older):
        super().__init__()
        self.older = [x.untyped_storage() for x in older]
        self.count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__ == "copy_" and args[0].untyped_storage() in self.older
        return func(*args, **(kwargs or {}))


def test_no_memory_is_written_before_the_end():
    """[NOTE functionalize]"""
    x, captured = t(X), t(X)
    before = []

    def f(inside):
        inside.mul_(2)
        inside[0].add_(captured[1])
        captured.add_(1)
        before.append((seen.count, x.tolist()))
        return inside + captured

    with Writes(x, captured) as seen:
        out = functionalize(f)(x)
    assert before == [(0, X)]
    assert seen.count == 2                                 # each once
    assert (out.tolist(), x.tolist(), captured.tolist()) == ([6.0, 7.0, 10.0], [4.0, 4.0, 6.0], [2.0, 3.0, 4.0])


def test_a_write_to_what_was_saved_has_its_right_gradient():
    """[NOTE functionalize] exp saves its output; eager refuses to write to it."""
    def f(x):
        return x.exp().mul_(2).sum()

    x = t(X)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        grad(f)(x)
    expected = (2 * x.exp()).tolist()
    assert functionalize(grad(f))(x).tolist() == grad(functionalize(f))(x).tolist() == expected
    assert functionalize(grad(lambda x: grad(f)(x).sum()))(x).tolist() == expected


def test_tensors_from_outside_are_given_back_with_what_was_written():
    """[NOTE functionalize] Also a view, and the tensor that it is a view of."""
    whole = t(X)
    part = whole[1:]

    def f(x):
        part.add_(x[1:])
        whole.mul_(2)
        return part * 1

    assert functionalize(f)(t(X)).tolist() == [8.0, 12.0]
    assert (whole.tolist(), part.tolist()) == ([2.0, 8.0, 12.0], [8.0, 12.0])
    assert whole.owner is part.owner is None
    part.zero_()
    assert whole.tolist() == [2.0, 0.0, 0.0]


def test_a_leaf_that_is_written_to_where_nothing_records_stays_that_leaf():
    """[NOTE functionalize] An optimizer's step inside."""
    w = t(X, requires_grad=True)

    def f(x):
        with mg.no_grad():
            w.add_(1)
        return (w * w * x).sum()

    functionalize(f)(t([1.0, 1.0, 1.0])).backward()
    assert w.is_leaf
    assert w.tolist() == [2.0, 3.0, 4.0]
    assert w.grad.tolist() == [4.0, 6.0, 8.0]


def test_buffers_of_a_module_are_updated_once():
    """[NOTE functionalize]"""
    norms = [nn.BatchNorm1d(3, dtype=mg.float64) for _ in range(2)]
    x = mg.arange(12, dtype=mg.float64).reshape(4, 3)
    outs = [norms[0](x), functionalize(norms[1])(x)]
    assert outs[0].tolist() == outs[1].tolist()
    assert norms[0].running_mean.tolist() == norms[1].running_mean.tolist() != [0.0, 0.0, 0.0]
    assert norms[1].running_mean.owner is None
    assert norms[1].num_batches_tracked.item() == 1


def test_an_error_gives_back_what_was_brought_in():
    """[NOTE functionalize]"""
    captured = t(X)

    def f(x):
        captured.add_(1)
        raise KeyError

    with pytest.raises(KeyError):
        functionalize(f)(t(X))
    assert captured.owner is None
    assert captured.tolist() == [2.0, 3.0, 4.0]            # as it would be without functionalize


def test_a_region_runs_again_under_the_level_that_has_ended(no_gc):
    """[NOTE functionalize] And what it makes there is freed with it."""
    made = Alive()

    def body(x):
        y = made.see(mg.zeros(3, dtype=mg.float64))
        y[1:] = x[1:] * 2
        return (y * x).sin()

    x = t(X, requires_grad=True)
    functionalize(lambda x: checkpoint(body, x))(x).sum().backward()
    assert len(made.refs) == 2
    assert made.count() == 0
    y = t(X, requires_grad=True)
    body(y).sum().backward()
    assert x.grad.tolist() == y.grad.tolist()


def test_an_argument_that_is_returned_is_the_argument():
    """[NOTE functionalize]"""
    x = t(X)
    assert functionalize(lambda x: x.add_(1))(x) is x
    assert x.tolist() == [2.0, 3.0, 4.0]


def test_what_to_remove_is_one_of_two():
    """[NOTE functionalize]"""
    with pytest.raises(UsageError, match="Valid options are: remove='mutations' or remove='mutations_and_views'"):
        functionalize(writes, remove="views")
