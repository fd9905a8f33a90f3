"""In-place ops: compute, then assign, at every layer; views and versions."""

from __future__ import annotations

import math
from weakref import ref

import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import grad, jvp, vjp, vmap
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Alive, nth, t

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script")  # torch's own, on the first jvp

BODIES = {}


def body(f):
    BODIES[f.__name__.replace("_", " ")] = f
    return f


@body
def a_chain(lib, x):
    return (x * 1).sin_().mul_(x).exp_()


@body
def by_what_came_from_it(lib, x):
    a = x * 1
    return a.mul_(lib.exp(a))


@body
def a_view_is_written(lib, x):
    a = lib.stack([x, x * 2])
    a[0].mul_(x)
    return a.sum()


@body
def the_base_is_written_and_a_view_is_read(lib, x):
    a = lib.stack([x, x * 2])
    view = a[0]
    a.mul_(x)
    return view * view


@body
def a_view_of_a_view_is_written(lib, x):
    a = lib.stack([x, x * 2, x * 3, x]).reshape(2, 2) * 1
    a[0][1:].mul_(x)
    return a.sum()


@body
def one_view_is_written_and_another_is_read(lib, x):
    a = lib.stack([x, x * 2]) * 1
    one, other = a[0], a[:1]
    one.mul_(x)
    return other.sum()


@body
def a_copy(lib, x):
    a = x * 2
    a.copy_(lib.sin(x))
    return a * x


@body
def an_item_is_set(lib, x):
    a = lib.stack([x, x])
    a[0] = x * x
    return (a * x).sum()


@body
def part_is_overwritten_by_a_constant(lib, x):
    a = lib.stack([x, x * 2])
    a[0].zero_()
    return (a * a).sum()


@body
def a_constant_is_written_into(lib, x):
    a = lib.zeros_like(x) + 1
    a.add_(x)
    return (a * a).sum()


@body
def a_view_in_place(lib, x):
    y = (x * 1).unsqueeze_(0)
    return (y * x).squeeze_(0) * 2


@body
def a_view_in_place_of_what_has_views(lib, x):
    y = lib.stack([x, x * x])
    part = y[1:]
    y.unsqueeze_(0).transpose_(0, 1)
    y.mul_(3)
    part.sin_()
    return (y.t_().squeeze_() * x).sum() + part.sum()


@body
def a_flat_view_is_written_and_the_cotangent_lies_otherwise(lib, x):
    a = lib.stack([x, x * 2, x * 3, x]).reshape(2, 2) * 1
    a.view(4).mul_(x)
    return (a.t() * lib.stack([x, x * x, x, x]).reshape(2, 2)).sum()


@body
def a_window_is_written(lib, x):
    a = lib.stack([x, x * 2, x * 3, x, x, x * x]) * 1
    a.as_strided((2, 2), (3, 1), 1).mul_(x)
    return (a * a).sum()


@body
def a_window_of_a_transposed_tensor_is_read_where_elements_overlap(lib, x):
    a = (lib.stack([x, x * 2, x * 3, x, x, x * x]).reshape(2, 3) * 1).t()
    return (a.as_strided((4, 3), (1, 1)) * x).sum()


@body
def the_parts_of_complex_numbers_are_written(lib, x):
    a = lib.stack([lib.complex(x, x * x), lib.complex(x * 3, x)])
    a.real.mul_(x)
    lib.view_as_real(a)[0].sin_()
    a.imag[1:].copy_(x)
    return (a * a.conj()).real.sum() + a.imag.prod()


TRANSFORMS = {
    "grad": lambda lib, f: lib.func.grad(f),
    "grad grad": lambda lib, f: lib.func.grad(lib.func.grad(f)),
    "jvp": lambda lib, f: lambda x: lib.func.jvp(f, (x,), (lib.ones_like(x),))[1],
    "jvp grad": lambda lib, f: lambda x: lib.func.jvp(lib.func.grad(f), (x,), (lib.ones_like(x),))[1],
    "vmap grad": lambda lib, f: lambda x: lib.func.vmap(lib.func.grad(f))(lib.stack([x, x + 1])),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", BODIES)
def test_an_in_place_program_means_what_it_means_in_torch(name, transform):
    """[NOTE in-place]"""
    got = TRANSFORMS[transform](mg, lambda x: BODIES[name](mg, x))(t(0.7))
    want = TRANSFORMS[transform](torch, lambda x: BODIES[name](torch, x))(torch.tensor(0.7, dtype=torch.float64))
    assert got.tolist() == pytest.approx(want.tolist(), rel=1e-12)


@pytest.mark.parametrize("name", BODIES)
def test_at_level_0_too_also_inside_a_checkpoint(name):
    """[NOTE in-place]"""
    want = torch.tensor(0.7, dtype=torch.float64).requires_grad_()
    BODIES[name](torch, want).backward()
    for run in (lambda f, x: f(x), checkpoint):
        x = t(0.7, requires_grad=True)
        run(lambda x: BODIES[name](mg, x), x).backward()
        assert x.grad.item() == pytest.approx(want.grad.item(), rel=1e-12)


def test_a_write_is_seen_through_every_layer_and_every_view():
    """[NOTE in-place]: one version counter, on the storage at the bottom."""
    base = t([1.0, 2.0])
    view = base[0]
    versions = [base._version]

    def f(x):
        view.mul_(5)
        versions.append(base._version)
        return x * view
    assert grad(f)(t(3.0)).item() == 5.0
    assert base.tolist() == [5.0, 2.0]
    assert versions == [0, 1]
    assert view._version == 1


def test_a_captured_tensor_that_is_written_to_at_a_level_comes_into_that_level():
    """[NOTE in-place]  torch refuses: a mutation of a captured tensor.  Decision: in-place is assign."""
    def f(x):
        made = mg.zeros(2, dtype=mg.float64)
        made[0] = x * x
        return (made * made).sum()
    assert grad(f)(t(3.0)).item() == 108.0                 # d(x^4)/dx
    assert grad(grad(f))(t(3.0)).item() == 108.0           # 12 x^2
    assert jvp(f, (t(3.0),), (t(1.0),))[1].item() == 108.0


def test_a_write_of_a_batch_into_one_tensor_is_refused():
    """[NOTE in-place]: there is one memory and a value for each sample."""
    def f(x):
        mg.zeros(2)[0].copy_(x)
    with pytest.raises(UsageError, match=r"vmap: inplace arithmetic.*vmap@1"):
        vmap(f)(t([1.0, 2.0]))
    made = vmap(lambda x: mg.zeros_like(x).add_(x))(t([1.0, 2.0]))
    assert made.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("what", ["leaf", "view"])
def test_a_leaf_that_requires_grad_is_written_to_only_where_nothing_records(what):
    """[NOTE in-place]"""
    x = t([1.0, 2.0], requires_grad=True)
    target = x if what == "leaf" else x[:1]
    with pytest.raises(UsageError, match=r"leaf Variable that requires grad.*in-place operation \(mul_\)"):
        target.mul_(2)
    assert x.tolist() == [1.0, 2.0]
    with mg.no_grad():
        target.mul_(2)
    assert x.tolist()[0] == 2.0
    with pytest.raises(UsageError, match="grad@1"):
        grad(lambda y: y.mul_(2))(t(1.0))


def test_what_an_in_place_op_overwrites_is_kept_where_its_derivative_reads_it():
    """[NOTE in-place]"""
    x = t(0.7, requires_grad=True)
    a = x * 1
    a.sin_()
    a.backward()
    assert x.grad.item() == pytest.approx(math.cos(0.7))


@pytest.mark.parametrize("body", [lambda lib, a: a.mul_(a), lambda lib, a: a.mul_(lib.sin(a))], ids=["itself", "its sine"])
def test_a_factor_that_is_overwritten_by_the_product_is_an_error_as_in_torch(body):
    """[NOTE in-place]"""
    for lib, x in ((mg, t(0.7, requires_grad=True)), (torch, torch.tensor(0.7, requires_grad=True))):
        y = body(lib, x * 1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.backward()


def test_an_in_place_op_on_what_somebody_else_saved_is_an_error():
    """[NOTE in-place]"""
    x = t(0.7, requires_grad=True)
    a = x * 1
    y = mg.sin(a)
    a.mul_(2)
    with pytest.raises(UsageError, match=r"at version 1; expected version 0"):
        y.backward()


def test_a_failed_write_leaves_everything_as_it_was():
    """[NOTE in-place]"""
    x = t([1.0, 2.0], requires_grad=True)
    a = x * 1
    node, version = a.grad_fn, a._version
    with pytest.raises(UsageError, match="doesn't match the broadcast shape"):
        a.add_(mg.ones(3, 2))
    with pytest.raises(UsageError, match="can't be cast"):
        mg.ones(2, dtype=mg.int64).mul_(0.5)
    assert a.grad_fn is node and a._version == version and a.tolist() == [1.0, 2.0]


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("level", [0, 1, 2])
def test_no_cycle_is_made_by_a_write(name, level, no_gc):
    """[NOTE no-cycles]  x.mul_(y), y made from x: the new node leads to the old one, never to the handle."""
    alive = Alive()

    def f(x):
        return alive.see(BODIES[name](mg, alive.see(x * 1)))
    if level:
        nth(level, f)(t(0.7))
    else:
        x = t(0.7, requires_grad=True)
        f(x).backward()
        del x
    assert alive.count() == 0


def test_the_graph_of_a_written_tensor_is_freed_without_a_backward(no_gc):
    """[NOTE no-cycles]"""
    x = t([1.0, 2.0], requires_grad=True)
    a = x * 1
    view = a[0]
    a.mul_(mg.sin(a))
    view.mul_(a[1])
    refs = [ref(a.grad_fn), ref(view.grad_fn), ref(a.untyped_storage())]
    del a, view
    assert [r() for r in refs] == [None] * 3


def test_a_vjp_through_a_write_can_be_pulled_many_times():
    """[NOTE in-place]"""
    def f(x):
        a = mg.stack([x, x * 2])
        a[0].mul_(x)
        return a.sum()
    _, pull = vjp(f, t(3.0))
    assert [pull(t(k))[0].item() for k in (1.0, 2.0)] == [8.0, 16.0]


# ---------------------------------------------------------------- in-place views
def test_an_in_place_view_is_the_same_tensor_in_another_shape():
    """[NOTE in-place]"""
    for lib in (mg, torch):
        x = lib.zeros(2, 3)
        view = x[1:]
        assert x.transpose_(0, 1) is x
        assert (tuple(x.shape), x._version, view._base is not None) == ((3, 2), 1, True)
        x[0, 1] = 5.0
        assert view.tolist() == [[5.0, 0.0, 0.0]]


def test_a_leaf_that_requires_grad_is_no_view_in_place():
    """[NOTE in-place]"""
    for lib in (mg, torch):
        with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
            lib.ones(1, 2, requires_grad=True).squeeze_(0)


def test_an_in_place_view_of_a_sample():
    """[NOTE in-place]"""
    x = t([[[1.0, 2.0]], [[3.0, 4.0]]])
    found = vmap(grad(lambda a: (a * a).squeeze_(0).mul_(a[0]).sum()))(x)
    assert found.tolist() == (3 * x * x).tolist()


LEVELS = {"level 0": lambda f, x: f(x.requires_grad_()), "grad": lambda f, x: grad(f)(x),
          "vmap grad": lambda f, x: vmap(grad(f))(mg.stack([x, x]))}


@pytest.mark.parametrize("level", LEVELS)
def test_a_view_made_under_no_grad_is_not_written_to_where_writes_are_recorded(level):
    """[NOTE in-place]  At any level; under no_grad it may be, and no gradient knows."""
    def f(x, *, unrecorded):
        base = x * 1
        with mg.no_grad():
            view = base[:1]
            if unrecorded:
                view.mul_(x[1:])
        if not unrecorded:
            view.mul_(x[1:])
        return base.sum()
    with pytest.raises(UsageError, match="A view was created in no_grad mode and is being modified inplace with grad mode"):
        LEVELS[level](lambda x: f(x, unrecorded=False), t([1.0, 2.0]))
    LEVELS[level](lambda x: f(x, unrecorded=True), t([1.0, 2.0]))
