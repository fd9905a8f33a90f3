"""A program that fails leaves the State as it was, keeps nothing alive, and says what went wrong and where."""

from __future__ import annotations

import re

import pytest

import minigrad as mg
from minigrad.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from minigrad.func import grad, hessian, jacrev, jvp, vjp, vmap
from minigrad.state import current, watched
from minigrad.utils.checkpoint import checkpoint, is_recomputing
from tests.spec.instruments import Alive, nth, sin_sin, t


class Oops(Exception):
    """What the user's own code raises here."""


def raising(*_):
    msg = "the user's own"
    raise Oops(msg)


def leaf(*data, **options):
    return t(list(data) or 0.7, requires_grad=True, **options)


def on_second_run(f):
    def region(x):
        y = f(x)
        if is_recomputing():
            raising()
        return mg.sin(y)
    return region


def forgetful(first, second):
    return lambda x: (second if is_recomputing() else first)(x)


PROGRAMS = {}
"""By name: the program, which is given a function that notes a tensor's memory; the error; what its text must say."""


def fails(error, *texts):
    def note(program):
        PROGRAMS[program.__name__] = program, error, texts
        return program
    return note


# ---------------------------------------------------------------- the user's function raises
@fails(Oops, "the user's own")
def the_function_under_grad_raises(see):
    grad(lambda x: raising(see(mg.exp(x))))(t(0.7))


@fails(Oops, "the user's own")
def the_function_under_vmap_jvp_grad_raises(see):
    vmap(lambda x: jvp(grad(lambda y: raising(see(mg.exp(y)))), (x,), (mg.ones_like(x),)))(t([1.0, 2.0]))


@fails(Oops, "the user's own")
def it_raises_in_the_middle_of_modes_and_hooks(see):
    def f(x):
        with saved_tensors_hooks(lambda s: s, lambda s: s), mg.no_grad(), mg.enable_grad(), save_on_cpu():
            return raising(see(mg.exp(x)))
    hessian(f)(t(0.7))


@fails(Oops, "the user's own")
def a_tensor_hook_raises(see):
    y = see(mg.exp(leaf()))
    y.register_hook(raising)
    mg.sin(see(y * 2)).backward()


@fails(Oops, "the user's own")
def a_tensor_hook_raises_in_a_level(see):
    def f(x):
        y = see(mg.exp(x))
        y.register_hook(raising)
        return mg.sin(see(y * 2))
    grad(grad(f))(t(0.7))


# ---------------------------------------------------------------- hooks of saved tensors
@fails(Oops, "the user's own")
def a_pack_hook_raises(see):
    x = leaf()
    with saved_tensors_hooks(raising, lambda s: s):
        mg.sin(see(x * 1))


@fails(Oops, "the user's own")
def a_pack_hook_raises_two_levels_up(see):
    def f(x):
        with saved_tensors_hooks(raising, lambda s: s):
            return mg.sin(see(x * 1))
    vmap(grad(grad(f)))(t([1.0, 2.0]))


@fails(Oops, "the user's own")
def an_unpack_hook_raises(see):
    with saved_tensors_hooks(lambda s: s, raising):
        y = mg.sin(see(leaf() * 1))
    y.backward()


@fails(Oops, "the user's own")
def an_unpack_hook_raises_in_a_level_that_has_gone(see):
    def f(x):
        with saved_tensors_hooks(lambda s: s, raising):
            return mg.sin(see(mg.exp(x)))
    vjp(f, t(0.7))[1](t(1.0))


@fails(Oops, "the user's own")
def the_predicate_of_save_on_cpu_raises(see):
    with save_on_cpu(skip=raising):
        mg.sin(see(leaf(device="sim") * 1))


@fails(RuntimeError, "no hooks here")
def hooks_are_entered_where_they_are_disabled(see):
    def f(x):
        with disable_saved_tensors_hooks("no hooks here"):
            return checkpoint(sin_sin, see(x * 1))
    grad(f)(t(0.7))


# ---------------------------------------------------------------- checkpoint
@fails(Oops, "the user's own")
def a_region_raises_in_its_forward(see):
    grad(lambda x: checkpoint(lambda a: raising(see(mg.exp(a))), see(x * 1)))(t(0.7))


@fails(Oops, "the user's own")
def a_region_raises_when_it_runs_again(see):
    checkpoint(on_second_run(lambda x: see(mg.exp(x))), see(leaf() * 1)).backward()


@fails(Oops, "the user's own")
def a_region_raises_when_it_runs_again_under_levels_that_have_gone(see):
    x = leaf(1.0, 2.0)
    vmap(lambda a: checkpoint(on_second_run(lambda q: see(mg.exp(q))), a))(x).sum().backward()


@fails(Oops, "the user's own")
def an_inner_region_raises_when_it_runs_again(see):
    def outer(x):
        return mg.sin(checkpoint(on_second_run(lambda q: see(mg.exp(q))), see(x * 1)))
    nth(2, lambda x: checkpoint(outer, x))(t(0.7))


@fails(RuntimeError, "different number of tensors", "2 in the forward at grad@1", "base < grad@1")
def a_region_does_less_when_it_runs_again(see):
    grad(lambda x: checkpoint(forgetful(sin_sin, lambda a: see(mg.sin(a))), see(x * 1)))(t(0.7))


@fails(RuntimeError, "different metadata", "x0 of SinBackward0", "[2]", "[1, 2]")
def a_region_does_something_else_when_it_runs_again(see):
    checkpoint(forgetful(mg.sin, lambda a: mg.sin(see(a.reshape(1, 2)))), see(leaf(1.0, 2.0) * 1)).sum().backward()


@fails(RuntimeError, "modified by an inplace operation after its forward", "is at version 1 now", "[NOTE captured-tensors]")
def a_captured_tensor_was_written_to(see):
    w = see(t(2.0))
    y = checkpoint(lambda x: mg.sin(see(x * w)), see(leaf() * 1))
    w.add_(1)
    y.backward()


# ---------------------------------------------------------------- transforms used wrongly
@fails(ValueError, "in_dim=3", "dimensionality 1")
def vmap_over_a_dimension_that_is_not_there(see):
    vmap(mg.sin, in_dims=3)(see(t([1.0, 2.0])))


@fails(ValueError, "same size in the mapped dimension", "[2, 3]")
def vmap_over_two_sizes(see):
    vmap(lambda a, b: a * b)(see(t([1.0, 2.0])), see(t([1.0, 2.0, 3.0])))


@fails(ValueError, "out_dims")
def vmap_with_out_dims_of_another_structure(see):
    vmap(lambda a: (see(mg.sin(a)), a), out_dims=(0, 0, 0))(t([1.0, 2.0]))


@fails(ValueError, "must only return Tensors", "str")
def vmap_of_a_function_that_returns_something_else(see):
    vmap(lambda a: (see(mg.sin(a)), "text")[1])(t([1.0, 2.0]))


@fails(IndexError, "Dimension out of range")
def vmap_with_an_out_dim_that_is_not_there(see):
    vmap(lambda a: see(mg.sin(a)), out_dims=5)(t([1.0, 2.0]))


@fails(RuntimeError, "calling .item()", "vmap@1")
def python_looks_at_a_batch(see):
    vmap(grad(lambda x: mg.sin(x) if see(mg.exp(x)) > 0 else x))(t([1.0, 2.0]))


@fails(RuntimeError, "randomness error mode", "base < vmap@1")
def a_draw_under_vmap(see):
    vmap(grad(lambda x: see(mg.exp(x)) * mg.rand(())))(t([1.0, 2.0]))


@fails(RuntimeError, "scalar Tensor", "1 dims", "base < grad@1")
def grad_of_a_vector(see):
    grad(lambda x: see(mg.exp(x)))(t([1.0, 2.0]))


@fails(RuntimeError, "tangent of shape [3]", "primal of shape [2]")
def a_tangent_of_another_shape(see):
    grad(lambda x: jvp(mg.exp, (see(x * 1),), (t([1.0, 2.0, 3.0]),))[1].sum())(t([1.0, 2.0]))


@fails(RuntimeError, "to return only tensors, got unsupported type", "int")
def a_jacobian_of_something_that_is_no_tensor(see):
    jacrev(lambda x: see(mg.exp(x)) is not None and 3)(t([1.0, 2.0]))


# ---------------------------------------------------------------- ops and graphs used wrongly
@fails(RuntimeError, "size of tensor a (2) must match the size of tensor b (3)", "[level stack: base < vmap@1 < grad@2]")
def shapes_that_do_not_broadcast(see):
    vmap(grad(lambda x: (see(mg.exp(x)) + mg.ones(3)).sum()))(t([[1.0, 2.0], [3.0, 4.0]]))


@fails(RuntimeError, "second time", "SinBackward0", "retain_graph=True")
def backward_twice(see):
    y = mg.sin(see(mg.exp(leaf())))
    y.backward()
    y.backward()


@fails(RuntimeError, "not have been used in the graph")
def the_gradient_of_an_input_that_was_not_used(see):
    mg.autograd.grad(see(mg.exp(leaf())), leaf())


@fails(RuntimeError, "does not require grad")
def the_gradient_at_a_level_that_does_not_record(see):
    grad(lambda x: mg.autograd.grad(see(mg.exp(x)), t(1.0))[0])(t(0.7))


@fails(RuntimeError, "modified by an inplace operation", "at version 1; expected version 0")
def a_saved_tensor_was_written_to(see):
    a = see(leaf() * 1)
    y = mg.sin(a)
    a.mul_(2)
    y.backward()


@fails(RuntimeError, "leaf Variable that requires grad", "grad@2")
def a_leaf_is_written_to(see):
    grad(grad(lambda x: (see(x * 1), x.mul_(2))[1]))(t(0.7))


@fails(RuntimeError, "escaped from inside a function being vmapped", "vmap@1", "[NOTE escaped-tensor]")
def a_batch_that_escaped(see):
    kept = []
    vmap(lambda x: kept.append(x) or x)(see(t([1.0, 2.0])))
    grad(lambda x: x * kept[0])(t(0.7))


@fails(RuntimeError, "at least two devices")
def devices_that_do_not_mix(see):
    grad(lambda x: (see(mg.exp(x)) * mg.ones(2, device="sim")).sum())(mg.ones(2, device="cpu"))


# ---------------------------------------------------------------- what must hold afterwards
def run(program, error, see):
    """The text of the error that the program ends in."""
    try:
        program(see)
    except error as found:
        return str(found)
    return pytest.fail("the program did not fail")


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_that_fails_leaves_no_trace(name, no_gc):
    """[NOTE state-is-a-value] H7 [NOTE no-cycles]"""
    program, error, texts = PROGRAMS[name]
    run(program, error, lambda x: x)                       # plans and kernels are made once, and stay
    before, alive = current(), Alive()
    text = run(program, error, alive.see)
    assert current() is before
    assert not watched
    assert alive.refs and alive.count() == 0
    for part in texts:
        assert re.search(re.escape(part), text), f"{text!r} does not say {part!r}"


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_next_program_runs_as_if_nothing_had_happened(name):
    """[NOTE state-is-a-value]"""
    program, error, _ = PROGRAMS[name]
    run(program, error, lambda x: x)
    want = nth(2, sin_sin)(t(5.0)).item()
    assert nth(2, lambda x: checkpoint(sin_sin, x))(t(5.0)).item() == pytest.approx(want)
    assert vmap(nth(2, sin_sin))(t([5.0]))[0].item() == pytest.approx(want)


def test_a_backward_that_failed_can_be_tried_again_where_nothing_was_freed():
    """[NOTE state-is-a-value]: the recomputation begins anew."""
    x, attempts = leaf(), []

    def region(a):
        if is_recomputing():
            attempts.append(1)
            if len(attempts) == 1:
                raise Oops
        return sin_sin(a)
    y = checkpoint(region, x)
    with pytest.raises(Oops):
        y.backward()
    y.backward()
    assert x.grad.item() == pytest.approx(nth(1, sin_sin)(t(0.7)).item())
