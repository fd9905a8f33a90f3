"""checkpoint: what is kept, what runs again and how often, under every level that was there."""

from __future__ import annotations

import gc
import math
import threading
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np
import pytest
import torch
import torch.utils.checkpoint

import minigrad as mg
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.errors import CheckpointError, UsageError
from minigrad.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from minigrad.random import Generator
from minigrad.state import current, show, using
from minigrad.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    is_recomputing,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)
from tests.spec.instruments import Alive, Counted, Packed, Recomputations, chain, nth, sin_sin, t, watching

TRANSFORMS = {
    "grad": grad,
    "grad grad": lambda f: grad(grad(f)),
    "grad grad grad": lambda f: nth(3, f),
    "vmap grad": lambda f: lambda x: vmap(grad(f))(mg.stack([x, x + 1])),
    "vmap grad grad": lambda f: lambda x: vmap(nth(2, f))(mg.stack([x, x + 1])),
    "grad sum vmap": lambda f: grad(lambda x: vmap(f)(mg.stack([x, x * 2])).sum()),
    "grad grad sum vmap": lambda f: nth(2, lambda x: vmap(f)(mg.stack([x, x * 2])).sum()),
    "jvp": lambda f: lambda x: jvp(f, (x,), (mg.ones_like(x),))[1],
    "jvp grad": lambda f: lambda x: jvp(grad(f), (x,), (mg.ones_like(x),))[1],
    "grad jvp": lambda f: grad(lambda x: jvp(f, (x,), (mg.ones_like(x),))[1]),
    "grad jvp, the tangent f(x)": lambda f: grad(lambda x: jvp(f, (x,), (f(x),))[1]),
    "jacrev": jacrev,
    "jacrev jacrev": lambda f: jacrev(jacrev(f)),
    "jacfwd jacrev": hessian,
    "jacrev jacfwd": lambda f: jacrev(jacfwd(f)),
    "vjp after exit": lambda f: lambda x: vjp(f, x)[1](mg.ones_like(x))[0],
    "grad of vjp after exit": lambda f: grad(lambda x: vjp(f, x)[1](mg.ones_like(x))[0]),
    "vmap of vjp after exit": lambda f: lambda x: vmap(vjp(f, x)[1])(mg.ones(3, dtype=x.dtype))[0],
    "backward": lambda f: backward(f),
    "backward of grad": lambda f: backward(grad(f)),
    "autograd.grad of grad": lambda f: backward_twice(f),
}


def backward(f):
    def derivative(x):
        x = x.detach().requires_grad_()
        f(x).backward()
        return x.grad
    return derivative


def backward_twice(f):
    def derivative(x):
        x = x.detach().requires_grad_()
        (g,) = mg.autograd.grad(f(x), x, create_graph=True)
        return mg.autograd.grad(g, x)[0]
    return derivative


W = t([[0.3, -0.7], [0.5, 0.2]])
BODIES = {
    "sin sin": sin_sin,
    "exp, an output, and a view": lambda x: mg.exp(mg.stack([x, x * 2])[1]).tanh(),
    "a captured matrix": lambda x: mg.tanh(W.to(x.device) @ mg.stack([x, mg.sin(x)])).sum(),
    "grad inside": lambda x: grad(sin_sin)(x),
    "autograd.grad inside": lambda x: grad(lambda y: mg.autograd.grad(sin_sin(y), y, create_graph=True)[0] * y)(x),
    "vmap inside": lambda x: vmap(lambda a: mg.sin(a * x))(t([1.0, 2.0])).sum(),
    "nested": lambda x: checkpoint(lambda q: mg.sin(q) * checkpoint(mg.cos, q), mg.sin(x)),
    "in place": lambda x: (x * 1).mul_(x).sin_(),
    "control flow": lambda x: mg.sin(x) if len(x.shape) == 0 else mg.cos(x),
}


def region_of(f):
    return lambda x: checkpoint(f, x)


def capturing(f):
    """The same value, but x reaches the region through its closure."""
    return lambda x: checkpoint(lambda: f(x))


def offloaded_region(f):
    def g(x):
        with save_on_cpu():
            return checkpoint(f, x)
    return g


# ---------------------------------------------------------------- the value
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("body", BODIES)
def test_a_checkpointed_program_means_the_plain_program(body, transform):
    """[NOTE recompute-under-the-same-state] C1.  torch refuses where torch.func differentiates."""
    f, derive, x = BODIES[body], TRANSFORMS[transform], t(0.7)
    want = derive(f)(x)
    for region in (region_of, capturing, offloaded_region):
        got = derive(region(f))(x)
        assert mg.allclose(got, want, rtol=1e-12, atol=1e-14), region.__name__


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if "vmap" not in name and "jac" not in name])
def test_dropout_in_a_region_keeps_its_mask(transform):
    """[NOTE random-streams] C6.  Under vmap randomness is a choice: see the test below."""
    def f(x):
        return (mg.sin(x) * mg.rand(4, dtype=mg.float64)).sum()

    def run(g):
        mg.manual_seed(3)
        return TRANSFORMS[transform](g)(t(0.7)).item()
    assert run(region_of(f)) == pytest.approx(run(f), rel=1e-12)


@pytest.mark.parametrize("randomness", ["same", "different"])
def test_random_draws_under_vmap_are_replayed_with_its_size_and_randomness(randomness):
    """[NOTE recompute-under-the-same-state] C1.  Upstream: pytorch/pytorch#165880."""
    def run(wrap):
        mg.manual_seed(3)
        x = t([1.0, 2.0, 3.0], requires_grad=True)
        f = wrap(lambda x: mg.sin(x) * (mg.rand(()) > 0.5).to(x.dtype))
        y = vmap(f, randomness=randomness)(x)
        y.sum().backward()
        return y.tolist(), x.grad.tolist()
    assert run(region_of) == run(lambda f: f)


# ---------------------------------------------------------------- C1, S5: the State of the forward
def test_a_region_runs_again_under_the_levels_that_have_exited_since():
    """[NOTE recompute-under-the-same-state] C1."""
    seen = []

    def f(x):
        seen.append(show())
        return sin_sin(x)
    x = t([1.0, 2.0], requires_grad=True)
    vmap(lambda a: jvp(region_of(f), (a,), (mg.ones_like(a),))[1])(x).sum().backward()
    assert seen == ["base < vmap@1 < jvp@2"] * 2
    assert show() == "base"


def test_unrelated_levels_around_the_backward_are_not_there():
    """[NOTE recompute-under-the-same-state] C1: jacrev pulls back under vmap, which the region never saw."""
    seen = []

    def f(x):
        seen.append(show())
        return mg.sin(x.cumsum(0))
    jacrev(region_of(f))(t([1.0, 2.0, 3.0]))
    assert seen == ["base < grad@1"] * 2


def test_jacrev_runs_a_region_once_more_not_once_a_row():
    """[NOTE recompute-under-the-same-state] C1.  Upstream: pytorch/pytorch#141845."""
    f = Counted(lambda x: mg.sin(x.cumsum(0)))
    jacrev(region_of(f))(t([1.0, 2.0, 3.0, 4.0]))
    assert f.calls == 2


@pytest.mark.parametrize("mode", [mg.no_grad, mg.enable_grad])
def test_the_grad_mode_of_the_backward_does_not_matter(mode):
    """[NOTE recompute-under-the-same-state] C1."""
    x = t(5.0, requires_grad=True)
    y = checkpoint(sin_sin, x)
    with mode():
        y.backward()
    assert x.grad.item() == pytest.approx(math.cos(math.sin(5)) * math.cos(5))


def test_a_part_under_no_grad_is_so_again():
    """[NOTE recompute-under-the-same-state] C1."""
    def f(x):
        with mg.no_grad():
            c = mg.sin(x)
        return mg.sin(x) * c
    assert nth(2, region_of(f))(t(5.0)).item() == pytest.approx(nth(2, f)(t(5.0)).item())


def test_the_default_dtype_of_the_forward_is_in_force_again():
    """[NOTE recompute-under-the-same-state] C1."""
    x = mg.tensor(1.0, dtype=mg.float64, requires_grad=True)
    with using(current()._replace(default_dtype=mg.float64)):
        y = checkpoint(lambda x: mg.sin(x * mg.tensor(3.0)), x)
    y.backward()
    assert x.grad.item() == pytest.approx(3 * math.cos(3), rel=1e-14)


def test_context_variables_of_the_forward_are_in_force_again_and_do_not_leak():
    """[NOTE recompute-under-the-same-state] S5.  Upstream: pytorch/pytorch#184018."""
    scale = ContextVar("scale", default=1.0)

    def f(x):
        factor = scale.get()
        scale.set(factor + 1)
        return mg.sin(x * factor)
    x = t(1.0, requires_grad=True)
    scale.set(3.0)
    y = checkpoint(f, x)
    scale.set(10.0)
    y.backward()
    assert x.grad.item() == pytest.approx(3 * math.cos(3))
    assert scale.get() == 10.0


def test_a_backward_in_another_thread_runs_the_region_as_it_ran():
    """[NOTE recompute-under-the-same-state] S5.  torch: other thread-local modes are lost."""
    scale = ContextVar("scale", default=1.0)
    x = t(1.0, requires_grad=True)
    scale.set(3.0)
    y = checkpoint(lambda x: mg.sin(x * scale.get()), x)
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.item() == pytest.approx(3 * math.cos(3))


def test_the_contexts_of_context_fn_are_around_the_two_runs():
    """[NOTE recompute-under-the-same-state] C1."""
    log = []

    @contextmanager
    def around(name):
        log.append(f"enter {name}")
        yield
        log.append(f"leave {name}")
    x = t(1.0, requires_grad=True)
    y = checkpoint(lambda x: log.append("run") or mg.sin(x), x, context_fn=lambda: (around("forward"), around("again")))
    y.backward()
    assert log == ["enter forward", "run", "leave forward", "enter again", "run", "leave again"]


# ---------------------------------------------------------------- C2: whose saves
def test_the_sandwich_runs_its_function_twice_in_all():
    """[NOTE whose-saves] C2.  zou3519's question: gy and recomputed_y are recomputed; nothing loops."""
    f = Counted(sin_sin)
    got = grad(lambda x: checkpoint(grad(f), x))(t(5.0))
    assert got.item() == pytest.approx(nth(2, sin_sin)(t(5.0)).item())
    assert f.calls == 2


def test_the_sandwich_keeps_nothing_of_the_region_for_the_outer_level(no_gc):
    """[NOTE whose-saves] C2: the inner level's saves live as long as it runs, those of the outer level are slots."""
    alive = Alive()

    def body(x):
        for _ in range(6):
            x = alive.see(mg.sin(x))
        return x

    def outer(x):
        y = checkpoint(grad(body), x)
        assert alive.count() == 0
        return y
    grad(outer)(t(1.0))
    assert len(alive.refs) == 12


def test_a_level_entered_inside_saves_with_the_next_hooks_outside_the_frame():
    """[NOTE whose-saves] C2."""
    hooks = Packed()

    def outer(x):
        with hooks:
            return checkpoint(grad(chain(3)), x)
    grad(outer)(t(1.0))
    # in the forward the three saves of grad@2 and the region's input; nothing of grad@1
    assert hooks.count == 4


def test_a_checkpoint_inside_the_inner_level_and_one_outside_compose():
    """[NOTE whose-saves] C2."""
    f = Counted(sin_sin)
    got = grad(lambda x: checkpoint(grad(lambda y: checkpoint(f, y)), x))(t(5.0))
    assert got.item() == pytest.approx(nth(2, sin_sin)(t(5.0)).item())
    # forward, and again for grad@2; the outer recomputation does both again; then the inner one for grad@1
    assert f.calls == 5                                    # as in MLX and HIPS autograd


# ---------------------------------------------------------------- C3: slots per level, and how often it runs
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_derivative_of_order_n_costs_at_most_n_recomputations(order):
    """[NOTE slots-per-level] C3: never 2^n - 1."""
    f = Counted(sin_sin)
    with watching(Recomputations()) as log:
        nth(order, region_of(f))(t(5.0))
    assert f.calls == 1 + order
    assert log.levels == [f"grad@{n}" for n in range(order, 0, -1)]


def test_one_recomputation_fills_the_slots_of_one_level():
    """[NOTE slots-per-level] C3."""
    with watching(Recomputations()) as log:
        x = t(5.0, requires_grad=True)
        grad(region_of(sin_sin))(x).backward()
    assert log.levels == ["grad@1", "level 0"]


def test_each_backward_run_recomputes_for_itself():
    """[NOTE recomputed-values-live-once]"""
    f, x = Counted(sin_sin), t(5.0, requires_grad=True)
    y = checkpoint(f, x)
    for _ in range(3):
        y.backward(retain_graph=True)
    assert f.calls == 4
    assert x.grad.item() == pytest.approx(3 * math.cos(math.sin(5)) * math.cos(5))


def test_a_region_that_saves_nothing_is_not_run_again():
    """[NOTE slots-per-level]  Upstream: pytorch/pytorch#96866."""
    f, x = Counted(lambda x: x + 1), t(5.0, requires_grad=True)
    checkpoint(f, x).backward()
    assert f.calls == 1


def test_forward_mode_alone_runs_a_region_once():
    """[NOTE slots-per-level]  Upstream: pytorch/pytorch#129293."""
    f = Counted(sin_sin)
    jvp(region_of(f), (t(5.0),), (t(1.0),))
    vmap(region_of(f))(t([1.0, 2.0]))
    with mg.no_grad():
        checkpoint(f, t(5.0, requires_grad=True))
    assert f.calls == 3


# ---------------------------------------------------------------- what is alive
@pytest.mark.parametrize("order", [1, 2, 3])
def test_after_the_forward_the_region_keeps_its_input_only(order, no_gc):
    """[NOTE recomputed-values-live-once]  The saves of all levels are slots."""
    alive = Alive()

    def body(x):
        for _ in range(8):
            x = alive.see(mg.sin(x))
        return x

    def f(x):
        y = checkpoint(body, x * 1)
        found.append(alive.count(0, 7))
        return y
    found = []
    nth(order, f)(t(1.0))
    assert found[0] == 0


def test_recomputed_values_are_dropped_as_they_are_unpacked_also_with_retain_graph(no_gc):
    """[NOTE recomputed-values-live-once]  Rule 4 of torch's NOTE [Nestable Checkpoint]."""
    alive, found = Alive(), []

    def body(x):
        for _ in range(6):
            x = alive.see(mg.sin(x))
            if not is_recomputing():
                x.register_hook(lambda g: found.append(alive.count(6)))
        return x
    x = t(1.0, requires_grad=True)
    checkpoint(body, x).backward(retain_graph=True)
    # before each node runs, from the last to the first: those of the nodes below it, and its own
    assert found == [0, 4, 3, 2, 1, 0]


def test_nothing_recomputed_is_alive_after_the_backward(no_gc):
    """[NOTE recomputed-values-live-once]  Upstream: pytorch/pytorch#77284, #82776."""
    alive = Alive()

    def body(x):
        for _ in range(5):
            x = alive.see(mg.sin(x))
        return x
    x = t(1.0, requires_grad=True)
    y = checkpoint(body, x)
    y.backward(retain_graph=True)
    assert alive.count(5) == 0
    assert gc.isenabled() is False


# ---------------------------------------------------------------- nested regions
def test_nested_regions_recompute_only_what_is_needed():
    """[NOTE nested-regions]  Upstream: NOTE [Nestable Checkpoint]; pytorch/pytorch#90105."""
    outer, inner, x = Counted(lambda x: mg.sin(checkpoint(inner, mg.sin(x)))), Counted(mg.exp), t(0.5, requires_grad=True)
    checkpoint(outer, x).backward()
    # the outer region runs once more and meets the inner one, which runs once more when its own save is asked for
    assert (outer.calls, inner.calls) == (2, 3)
    want = t(0.5, requires_grad=True)
    mg.sin(mg.exp(mg.sin(want))).backward()
    assert x.grad.item() == pytest.approx(want.grad.item())


@pytest.mark.parametrize("derive", [backward, grad], ids=["backward", "grad"])
@pytest.mark.parametrize("early_stop", [True, False])
def test_one_recomputation_of_the_outer_region_brings_the_inner_ones_input_and_its_own_saves(derive, early_stop):
    """[NOTE nested-regions]  Also where the inner region's input is what is asked for first, and at level 0."""
    outer = Counted(lambda x: checkpoint(mg.exp, sin_sin(x), early_stop=early_stop))
    got = derive(lambda x: checkpoint(outer, x, early_stop=early_stop))(t(0.5))
    assert got.item() == pytest.approx(derive(lambda x: mg.exp(sin_sin(x)))(t(0.5)).item())
    assert outer.calls == 2


def test_a_region_at_a_level_of_the_outer_regions_own_keeps_its_inputs_itself():
    """[NOTE nested-regions]  In every run alike, so that the numbers of saves agree."""
    x = t(0.7, requires_grad=True)

    def middle(v):
        y, pull = vjp(lambda a: checkpoint(lambda a, b: a * b, a, x), v)
        return pull(x)[0] + y
    checkpoint(lambda: checkpoint(middle, x * 1.5), early_stop=False).backward()
    assert x.grad.item() == pytest.approx(2 * 0.7 + 3 * 0.7)


def test_regions_nested_k_deep_run_their_body_as_often_as_in_torch():
    """[NOTE nested-regions]  Once more, at any depth: the recomputation of an outer region stops before the body."""
    def runs(lib, check, x, depth):
        body = Counted(lib.sin)

        def nest(k):
            return body if k == 0 else lambda x: check(nest(k - 1), x)
        nest(depth)(x).backward()
        return body.calls

    def torch_check(f, x):
        return torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)
    for depth in (1, 2, 3):
        mine = runs(mg, checkpoint, t(0.5, requires_grad=True), depth)
        assert mine == runs(torch, torch_check, torch.tensor(0.5, requires_grad=True), depth) == 2


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_tree_of_regions_means_the_plain_program(transform):
    """[NOTE nested-regions]  The O(log n) scheme of pytorch/pytorch#90105."""
    def tree(k, wrap):
        if k == 0:
            return mg.sin
        return lambda x: wrap(tree(k - 1, wrap), wrap(tree(k - 1, wrap), x))
    x = t(0.7)
    got, want = (TRANSFORMS[transform](tree(3, wrap))(x) for wrap in (checkpoint, lambda f, x: f(x)))
    assert mg.allclose(got, want, rtol=1e-12)


# ---------------------------------------------------------------- C4: arguments
def test_arguments_are_rebuilt_with_their_flags_and_no_edges():
    """[NOTE arguments-are-fresh] C4."""
    seen = []

    def f(a, c):
        seen.append((a.requires_grad, a.is_leaf, c.requires_grad))
        return a * a * c
    x, c = t(2.0, requires_grad=True), t(3.0)
    checkpoint(f, x * x, c).backward()
    assert seen == [(True, False, False), (True, True, False)]
    assert x.grad.item() == 96.0                            # d(3 x^4)/dx


def test_a_backward_inside_the_region_stays_inside_when_it_runs_again():
    """[NOTE arguments-are-fresh] C4."""
    def run(wrap):
        x, visits = t(2.0, requires_grad=True), []
        a = x * x
        a.register_hook(lambda g: visits.append(1))

        def region(a):
            (d,) = mg.autograd.grad(mg.sin(a), a, create_graph=True)
            return d * a
        wrap(region, a).backward()
        return x.grad.item(), len(visits)
    plain, visits = run(lambda f, a: f(a))
    assert run(checkpoint) == (pytest.approx(plain), visits)


def test_tensors_anywhere_in_the_arguments_are_saved_through_the_hooks_outside():
    """[NOTE arguments-are-fresh] C4.  Upstream: pytorch/pytorch#178568, where nested ones are not."""
    a, b, c, d = (t(float(k), requires_grad=True) for k in range(1, 5))
    hooks = Packed()
    with hooks:
        y = checkpoint(lambda a, nest, *, last: mg.sin(a * nest["b"] * nest["c"][0] * last), a, {"b": b, "c": (c, "text")}, last=d)
    assert hooks.count == 4
    y.backward()
    assert d.grad.item() == pytest.approx(6 * math.cos(24))


@pytest.mark.parametrize("way", ["positional", "keyword", "nested"])
def test_an_argument_that_is_written_to_before_the_backward_is_an_error(way):
    """[NOTE captured-tensors] C5.  Upstream: pytorch/pytorch#80987: torch checks the positional ones only."""
    x, a = t(2.0, requires_grad=True), t(3.0)
    if way == "positional":
        y = checkpoint(lambda x, a: mg.sin(x * a), x, a)
    elif way == "keyword":
        y = checkpoint(lambda x, a: mg.sin(x * a), x, a=a)
    else:
        y = checkpoint(lambda x, a: mg.sin(x * a[0]["a"]), x, [{"a": a}])
    a.add_(1)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


# ---------------------------------------------------------------- C5: captured tensors
@pytest.mark.parametrize("level", [0, 1, 2])
def test_a_captured_tensor_that_is_written_to_before_the_backward_is_an_error(level):
    """[NOTE captured-tensors] C5."""
    w = t(3.0)

    def f(x):
        y = checkpoint(lambda x: mg.sin(x * w), x)
        w.add_(1)
        return y
    with pytest.raises(CheckpointError, match="modified by an inplace operation after its forward"):
        if level:
            nth(level, f)(t(2.0))
        else:
            f(t(2.0, requires_grad=True)).backward()


def test_what_the_region_itself_writes_is_its_own_business():
    """[NOTE captured-tensors] C5: a buffer that every run updates, as batch norm's."""
    steps, x = t(0.0), t(2.0, requires_grad=True)

    def region(x):
        with mg.no_grad():
            steps.add_(1)
        return mg.sin(x)
    y = checkpoint(region, x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == pytest.approx(2 * math.cos(2))


def test_what_the_region_makes_and_writes_is_no_capture():
    """[NOTE captured-tensors] C5."""
    x = t(2.0, requires_grad=True)

    def region(x):
        made = mg.zeros(2, dtype=mg.float64)
        made[0] = x
        return mg.sin(made).sum()
    checkpoint(region, x).backward()
    assert x.grad.item() == pytest.approx(math.cos(2))


def test_a_captured_tensor_of_the_level_gets_its_gradient():
    """[NOTE captured-tensors] C5: no closure conversion is needed.  MLX returns zeros."""
    def f(x):
        w = mg.sin(x)
        return checkpoint(lambda q: mg.sin(q * w), x)
    plain = grad(lambda x: mg.sin(x * mg.sin(x)))
    assert grad(f)(t(2.0)).item() == pytest.approx(plain(t(2.0)).item())
    assert grad(grad(f))(t(2.0)).item() == pytest.approx(grad(plain)(t(2.0)).item())


def test_watching_what_a_region_reads_keeps_nothing_alive(no_gc):
    """[NOTE captured-tensors] C5."""
    alive, x = Alive(), t(2.0, requires_grad=True)

    def region(x):
        scratch = alive.see(mg.cos(t(5.0)))
        return mg.sin(x) + scratch
    y = checkpoint(region, x)
    assert alive.count() == 0
    y.backward()


# ---------------------------------------------------------------- C6: random streams
def test_a_mask_is_the_same_in_both_runs_and_the_stream_goes_on_undisturbed():
    """[NOTE random-streams] C6.  Upstream: pytorch/pytorch#14253."""
    def run(wrap):
        mg.manual_seed(0)
        x = t([1.0] * 16, requires_grad=True)
        y = wrap(lambda x: mg.sin(x) * (mg.rand(16) > 0.5).to(x.dtype), x)
        between = mg.rand(2).tolist()
        y.sum().backward()
        return y.tolist(), x.grad.tolist(), between, mg.rand(2).tolist()
    assert run(checkpoint) == run(lambda f, x: f(x))


def test_a_generator_of_the_users_own_is_replayed_too():
    """[NOTE random-streams] C6.  Upstream: pytorch/pytorch#26013, where torch is silently wrong."""
    generator = Generator().manual_seed(7)
    x = t([1.0] * 16, requires_grad=True, device="cpu")

    def region(x):
        return mg.sin(x) * mg.rand(16, dtype=mg.float64, generator=generator, device="cpu")
    y = checkpoint(region, x)
    y.sum().backward()
    mask = [a / math.sin(1) for a in y.tolist()]
    assert x.grad.tolist() == pytest.approx([m * math.cos(1) for m in mask])


def test_another_thread_draws_its_own_numbers_while_a_region_is_run_again():
    """[NOTE random-streams] C6.  Upstream: fork_rng; in torch the other thread draws from the replayed stream."""
    drawn = []

    def region(x):
        if is_recomputing():
            thread = threading.Thread(target=lambda: drawn.append(mg.rand(1, device=x.device).item()))
            thread.start()
            thread.join()
        return mg.sin(x) * mg.rand(())
    mg.manual_seed(0)
    y = checkpoint(region, t(1.0, requires_grad=True))
    y.backward()
    mg.manual_seed(0)
    mg.rand(())
    assert drawn == [mg.rand(1).item()]


def test_an_error_in_a_recomputation_leaves_the_stream_where_it_was():
    """[NOTE random-streams] C6."""
    def region(x):
        m = mg.rand(())
        if is_recomputing():
            raise ZeroDivisionError
        return mg.sin(x) * m
    mg.manual_seed(0)
    y = checkpoint(region, t(1.0, requires_grad=True))
    with pytest.raises(ZeroDivisionError):
        y.backward()
    after = mg.rand(1).item()
    mg.manual_seed(0)
    mg.rand(())
    assert after == mg.rand(1).item()


def test_a_region_that_seeds_is_replayed_from_its_seed():
    """[NOTE random-streams] C6."""
    x = t([1.0] * 8, requires_grad=True)

    def region(x):
        mg.manual_seed(5)
        return mg.sin(x) * mg.rand(8, dtype=mg.float64)
    y = checkpoint(region, x)
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx([a / math.tan(1) for a in y.tolist()])


def test_without_preserve_rng_state_the_second_run_draws_on():
    """[NOTE random-streams] C6."""
    mg.manual_seed(0)
    x = t([1.0] * 16, requires_grad=True)
    y = checkpoint(lambda x: mg.sin(x) * (mg.rand(16) > 0.5).to(x.dtype), x, preserve_rng_state=False)
    y.sum().backward()
    assert [a != 0 for a in y.tolist()] != [a != 0 for a in x.grad.tolist()]


# ---------------------------------------------------------------- C7: the recomputation is checked
def changing(first, second):
    """A function that does one thing in its first run and another in all later ones."""
    runs = []

    def f(x):
        runs.append(1)
        return (first if len(runs) == 1 else second)(x)
    return f


def test_fewer_saves_are_an_error_that_says_how_many_at_which_level():
    """[NOTE recomputation-is-checked] C7.  Upstream: pytorch/pytorch#90105."""
    x = t(1.0, requires_grad=True)
    with pytest.raises(CheckpointError, match=r"3 in the forward at level 0, and 1 during recomputation"):
        checkpoint(changing(chain(3), chain(1)), x).backward()
    with pytest.raises(CheckpointError, match=r"3 in the forward at grad@1, and 1 during recomputation"):
        grad(region_of(changing(chain(3), chain(1))))(t(1.0))


def test_more_saves_are_an_error_where_early_stop_does_not_end_the_run_before_them():
    """[NOTE recomputation-is-checked] C7: with early stop they are never reached."""
    x = t(1.0, requires_grad=True)
    checkpoint(changing(chain(2), chain(4)), x).backward()
    with pytest.raises(CheckpointError, match="trying to save more tensors during recomputation"):
        checkpoint(changing(chain(2), chain(4)), x, early_stop=False).backward()


@pytest.mark.parametrize(("second", "text"), [
    (lambda x: mg.sin(x.reshape(2, 2)), r"float64\[4\].*float64\[2, 2\]"),
    (lambda x: mg.sin(x.to(mg.float32)), r"float64\[4\].*float32\[4\]"),
    (lambda x: mg.sin(x.to("cpu" if str(x.device) == "sim" else "sim")), "sim"),
], ids=["shape", "dtype", "device"])
def test_other_shapes_types_and_devices_are_an_error_that_names_the_save(second, text):
    """[NOTE recomputation-is-checked] C7."""
    x = t([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    with pytest.raises(CheckpointError, match=r"different metadata.*save 0 of level 0, x0 of SinBackward0.*" + text):
        checkpoint(changing(mg.sin, second), x).sum().backward()


def test_other_values_are_seen_where_they_are_asked_for():
    """[NOTE recomputation-is-checked] C7."""
    x = t(1.0, requires_grad=True)
    for check, right in (("default", False), ("values", True), ("none", False)):
        y = checkpoint(changing(lambda x: mg.sin(x * 2), lambda x: mg.sin(x * 3)), x, determinism_check=check)
        if right:
            with pytest.raises(CheckpointError, match="checksums"):
                y.backward()
        else:
            y.backward()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_values_are_compared_at_every_order(order):
    """[NOTE recomputation-is-checked] C7: and a program that repeats itself passes."""
    def f(x):
        return checkpoint(sin_sin, x, determinism_check="values")
    assert nth(order, f)(t(5.0)).item() == pytest.approx(nth(order, sin_sin)(t(5.0)).item())


def test_debug_shows_both_runs_op_by_op_on_every_recomputation(capsys):
    """[NOTE recomputation-is-checked] C7: also where nothing is wrong, and a second time."""
    x = t(1.0, requires_grad=True)
    y = checkpoint(sin_sin, x, debug=True)
    for _ in range(2):
        y.backward(retain_graph=True)
        shown = " ".join(capsys.readouterr().err.split())
        assert shown == ("Operations executed during the original forward: sin(float64[]) sin(float64[]) "
                         "Operations executed during recomputation: sin(float64[]) sin(float64[])")


def test_an_error_under_debug_shows_both_runs_and_where_they_part():
    """[NOTE recomputation-is-checked] C7.  Upstream: torch's debug mode breaks on a second recomputation."""
    x = t(1.0, requires_grad=True)
    y = checkpoint(changing(lambda x: mg.sin(mg.exp(x)), lambda x: mg.cos(x)), x, debug=True)
    part = r"differ from op 0 on: exp\(float64\[\]\) in the forward, cos\(float64\[\]\) in the recomputation"
    logs = r"original forward:\s+exp\(float64\[\]\)\s+sin\(float64\[\]\)\s+Operations executed during recomputation:\s+cos\(float64\[\]\)"
    for _ in range(2):
        with pytest.raises(CheckpointError, match=rf"(?s){part}.*{logs}"):
            y.backward(retain_graph=True)


def test_the_switch_for_debug_overrules_the_regions_own(capsys):
    """[NOTE recomputation-is-checked] C7."""
    x = t(1.0, requires_grad=True)
    for enabled, own, shown in ((True, False, True), (False, True, False), (None, True, True), (None, False, False)):
        with set_checkpoint_debug_enabled(enabled):
            y = checkpoint(sin_sin, x, debug=own)
        y.backward()
        assert ("Operations executed" in capsys.readouterr().err) is shown


@pytest.mark.parametrize(("program", "first"), [
    (lambda x, k: mg.sin(mg.exp(x * k)), r"op 0 on: mul\(float64\[\], 2\.0\) in the forward, mul\(float64\[\], 3\.0\) in the"),
    (lambda x, k: mg.sin(mg.exp(x) * mg.tensor(k, dtype=mg.float64, device=x.device)), r"op 1 on: lift_fresh\(\), on other values"),
], ids=["a number", "data from elsewhere"])
def test_the_check_of_values_names_the_first_op_that_differs(program, first):
    """[NOTE recomputation-is-checked] C7."""
    factors, x = [3.0, 2.0], t(1.0, requires_grad=True)
    y = checkpoint(lambda x: program(x, factors.pop()), x, determinism_check="values")
    with pytest.raises(CheckpointError, match=rf"(?s)checksums.*The runs differ from {first}"):
        y.backward()


def test_the_check_of_values_sees_numbers_that_another_library_drew():
    """[NOTE recomputation-is-checked] C7.  Upstream: pytorch/pytorch#26013."""
    stream, x = np.random.RandomState(0), mg.ones(200, requires_grad=True)

    def region(x):
        return mg.exp(x) * mg.tensor(stream.rand(200) < 0.5, dtype=x.dtype, device=x.device)
    checkpoint(region, x).sum().backward()                 # silently another mask
    with pytest.raises(CheckpointError, match="checksums"):
        checkpoint(region, x, determinism_check="values").sum().backward()


# ---------------------------------------------------------------- C8: side effects
def test_a_backward_inside_a_region_accumulates_once():
    """[NOTE side-effects-once] C8.  torch accumulates twice."""
    def run(wrap):
        w, x = t(3.0, requires_grad=True), t(2.0, requires_grad=True)

        def region(x):
            mg.sin(w * w).backward()
            return mg.sin(x * w)
        wrap(region, x).backward()
        return w.grad.item(), x.grad.item()
    assert run(checkpoint) == pytest.approx(run(lambda f, x: f(x)))


@pytest.mark.parametrize("remat", ["first", "every"])
@pytest.mark.parametrize("captured", [False, True])
def test_a_backward_inside_that_leaves_the_region_runs_what_is_outside_once(captured, remat):
    """[NOTE side-effects-once] C8: once in the forward, once for the region; torch runs its hooks a third time."""
    x, runs = t(2.0, requires_grad=True), []
    outside = x * 1
    outside.register_hook(lambda g: runs.append(1))

    def region(*given):
        a = outside if captured else given[0]
        b = mg.sin(a * a)
        b.backward(retain_graph=True)
        return mg.sin(b)
    checkpoint(region, *([] if captured else [outside]), remat=remat).backward()
    assert len(runs) == 2


def test_regions_may_accumulate_into_one_leaf_before_any_of_them_runs_again():
    """[NOTE side-effects-once] C8 [NOTE captured-tensors]: a gradient that is accumulated into is not read by the region."""
    def run(wrap):
        w = t(3.0, requires_grad=True)

        def region(x):
            mg.sin(w * x.detach()).backward()
            return mg.sin(x * w)
        x = w * 1
        for _ in range(3):
            x = wrap(region, x)
        x.backward()
        return w.grad.item()
    assert run(checkpoint) == pytest.approx(run(lambda f, x: f(x)))


@pytest.mark.parametrize("early_stop", [True, False])
def test_an_inner_backward_does_not_run_the_region_ahead_of_its_forward(early_stop):
    """[NOTE early-stop] C9 [NOTE random-streams] C6: what comes after it has not been drawn, saved or done yet."""
    def run(wrap):
        log = []
        mg.manual_seed(0)

        def region(x):
            y = mg.sin(x)
            for _ in range(2):
                (g,) = mg.autograd.grad(y, x, create_graph=True)
                y = y * g
            if not is_recomputing():
                log.append("after")
            else:
                log.append("after, again")
            return mg.sin(y * mg.rand((), dtype=y.dtype))
        x = t(0.7, requires_grad=True)
        y = wrap(region, x)
        seen = list(log)
        y.backward()
        return y.item(), x.grad.item(), mg.rand(()).item(), seen
    plain = run(lambda f, x: f(x))
    assert run(lambda f, x: checkpoint(f, x, early_stop=early_stop)) == plain


def test_a_function_can_ask_whether_it_runs_again():
    """[NOTE side-effects-once] C8."""
    seen = []

    def region(x):
        seen.append(is_recomputing())
        return sin_sin(x)
    grad(grad(region_of(region)))(t(1.0))
    assert seen == [False, True, True]
    assert not is_recomputing()


# ---------------------------------------------------------------- C9: early stop
def test_ops_after_the_last_save_that_is_needed_do_not_run_again():
    """[NOTE early-stop] C9.  Upstream: pytorch/pytorch#96866."""
    tail, x = Counted(lambda x: x + 1), t(1.0, requires_grad=True)
    checkpoint(lambda x: tail(mg.sin(x)), x).backward()
    assert tail.calls == 1
    checkpoint(lambda x: tail(mg.sin(x)), x, early_stop=False).backward()
    assert tail.calls == 3


def test_the_switch_for_all_regions_overrules_their_own():
    """[NOTE early-stop] C9."""
    tail, x = Counted(lambda x: x + 1), t(1.0, requires_grad=True)
    with set_checkpoint_early_stop(False):
        y = checkpoint(lambda x: tail(mg.sin(x)), x)
    y.backward()
    assert tail.calls == 2
    with set_checkpoint_early_stop(True):
        y = checkpoint(lambda x: tail(mg.sin(x)), x, early_stop=False)
    y.backward()
    assert tail.calls == 3


def test_a_users_except_exception_does_not_see_an_early_stop():
    """[NOTE early-stop] C9."""
    handled, x = [], t(1.0, requires_grad=True)

    def region(x):
        try:
            return mg.sin(x)
        except Exception:
            handled.append(1)
            raise
    checkpoint(region, x).backward()
    assert handled == []


def test_with_blocks_and_finally_are_left_when_a_run_stops_early():
    """[NOTE early-stop] C9."""
    log, x = [], t(1.0, requires_grad=True)

    def region(x):
        try:
            with mg.no_grad():
                mg.cos(x)
            return mg.sin(x)
        finally:
            log.append(mg.autograd.is_grad_enabled())
    checkpoint(region, x).backward()
    assert log == [True, True]


def test_a_stop_ends_its_own_region_only():
    """[NOTE early-stop] C9: the stop of an inner recomputation does not end the outer one."""
    x = t(0.5, requires_grad=True)

    def outer(x):
        y = checkpoint(lambda a: mg.exp(mg.sin(a)), x)
        (g,) = mg.autograd.grad(y, x, create_graph=True)
        return mg.sin(g) * y

    want = t(0.5, requires_grad=True)
    z = mg.exp(mg.sin(want))
    (mg.sin(mg.autograd.grad(z, want, create_graph=True)[0]) * z).backward()
    checkpoint(outer, x).backward()
    assert x.grad.item() == pytest.approx(want.grad.item())


def test_a_value_is_handed_out_only_when_its_op_has_finished():
    """[NOTE early-stop] C9: the saves of an op follow its kernel, so the last one has its data.  Upstream: #193671."""
    def region(x):
        return mg.exp(x * 2)                               # exp saves its output
    for order in (1, 2):
        assert nth(order, region_of(region))(t(1.0)).item() == pytest.approx(2**order * math.exp(2))


# ---------------------------------------------------------------- the interface
def test_a_decorator_is_the_same_function():
    """[NOTE arguments-are-fresh]  Decision: checkpoint without a function is a decorator."""
    @checkpoint(determinism_check="values")
    def f(x):
        """Two sines."""
        return sin_sin(x)
    assert grad(f)(t(5.0)).item() == pytest.approx(nth(1, sin_sin)(t(5.0)).item())
    assert (f.__name__, f.__doc__) == ("f", "Two sines.")


def test_a_method_is_decorated_as_a_function_is():
    """[NOTE whose-saves]  Decision: checkpoint without a function is a decorator."""
    class Block(mg.nn.Module):
        runs = 0

        @checkpoint(determinism_check="values")
        def forward(self, x, *, times=1):
            self.runs += 1
            return sin_sin(x) * times

    block, x = Block(), t(5.0, requires_grad=True)
    block(x, times=2).backward()
    assert x.grad.item() == pytest.approx(2 * nth(1, sin_sin)(t(5.0)).item())
    assert block.runs == 2


@pytest.mark.parametrize("segments", [1, 2, 3, 4])
def test_a_sequence_in_segments_means_the_sequence(segments):
    """[NOTE nested-regions]  Upstream: pytorch/pytorch#86328: the last segment is not checkpointed."""
    layers = [Counted(mg.sin) for _ in range(4)]
    x = t(0.7, requires_grad=True)
    checkpoint_sequential(layers, segments, x, use_reentrant=False).backward()
    assert x.grad.item() == pytest.approx(grad(chain(4))(t(0.7)).item())
    assert layers[-1].calls == 1


def test_segments_out_of_range_are_an_error_that_names_both_numbers():
    """[NOTE nested-regions]  Upstream: pytorch/pytorch#152752."""
    with pytest.raises(ValueError, match=r"between 1 and the number of functions \(2\), found 0"):
        checkpoint_sequential([mg.sin, mg.cos], 0, t(1.0))


def test_hooks_inside_a_region_that_are_not_asked_for_in_forward_are_not_asked_again():
    """[NOTE whose-saves]  The rerun's own saves at other levels are kept plainly, whatever hooks the backward has."""
    hooks = Packed()
    x = t(5.0, requires_grad=True)
    y = checkpoint(sin_sin, x)
    with hooks:
        y.backward()
    assert hooks.count == 0


def test_a_region_whose_output_does_not_depend_on_its_input():
    """[NOTE slots-per-level]"""
    def f(x):
        return checkpoint(lambda x: t(3.0), x) * x
    assert grad(f)(t(2.0)).item() == 3.0
    with saved_tensors_hooks(lambda s: s, lambda s: s):
        assert grad(grad(f))(t(2.0)).item() == 0.0
