"""Selective checkpointing: what a policy keeps does not run again, at any level, and nothing else changes."""

from __future__ import annotations

import math
from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest

import minigrad as mg
from minigrad import nn, sim
from minigrad.autograd import Function
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.errors import CheckpointError, UsageError
from minigrad.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from minigrad.fx.experimental.proxy_tensor import make_fx
from minigrad.memory import saved_residuals
from minigrad.nn import functional as F
from minigrad.ops import aten
from minigrad.state import current
from minigrad.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    checkpoint_name,
    checkpoint_policies,
    create_selective_checkpoint_contexts,
    is_recomputing,
    set_checkpoint_remat,
)
from tests.spec.instruments import Alive, OpsByLevel, Packed, no_garbage, nth, sin_sin, t, watching
from tests.spec.test_checkpoint import BODIES
from tests.spec.test_checkpoint import TRANSFORMS as ALL_TRANSFORMS

MUST_SAVE, RECOMPUTE, OFFLOAD = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_RECOMPUTE,
                                 CheckpointPolicy.MUST_CPU_OFFLOAD)


def selective(f, policy, **options):
    """`f` as a region with a policy."""
    contexts = partial(create_selective_checkpoint_contexts, policy, **options)
    return lambda *xs: checkpoint(f, *xs, context_fn=contexts)


def everything(ctx, op, *args, **kwargs):
    return MUST_SAVE


def runs(program, *names):
    """What a program returns, and how often each op ran at the base in it."""
    with watching(OpsByLevel()) as seen:
        out = program()
    return out, *[seen.names.get("base", []).count(name) for name in names]


def body(x):
    """An op that is dear, tanh, and two that are cheap."""
    return mg.sin(mg.tanh(mg.sin(x)))


SAVE_TANH = [aten.tanh.default]
TRANSFORMS = {
    "grad": grad, "grad grad": partial(nth, 2), "grad grad grad": partial(nth, 3),
    "vmap grad": lambda f: vmap(grad(f)), "grad vmap": lambda f: grad(lambda x: vmap(f)(x).sum()),
    "jvp grad": lambda f: lambda x: jvp(grad(f), (x,), (mg.ones_like(x),))[1],
    "hessian": hessian, "jacfwd jacrev": lambda f: jacfwd(jacrev(f)),
    "vjp, later": lambda f: lambda x: vjp(f, x)[1](mg.ones_like(x))[0],
    "linearize grad": lambda f: lambda x: linearize(grad(f), x)[1](mg.ones_like(x)),
}
BATCHED = ("vmap grad", "grad vmap")


def at(transform, device):
    return t([0.7, -0.3] if transform in BATCHED else 0.7, device=device)


# ---------------------------------------------------------------- what is kept does not run again
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_saved_op_runs_once_and_the_value_is_the_plain_programs(transform, device):
    """[NOTE selective-policies] C10: under every transform, at every order; without a policy it runs once more for each level."""
    derive, x = TRANSFORMS[transform], at(transform, device)
    (plain, once), (kept, again) = (runs(lambda f=f: derive(f)(x), "tanh") for f in (body, selective(body, SAVE_TANH)))
    _, all_again = runs(lambda: derive(lambda x: checkpoint(body, x))(x), "tanh")
    assert kept.tolist() == pytest.approx(plain.tolist(), rel=1e-12)
    assert (again, all_again > once) == (once, True)


def at_random(seed):
    """A policy that says anything."""
    rng = np.random.default_rng(seed)
    return lambda ctx, op, *args, **kwargs: CheckpointPolicy(int(rng.integers(len(CheckpointPolicy))))


def hooked(f):
    def inside(x):
        with saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2):
            return f(x)
    return inside


overwriting = partial(selective, allow_cache_entry_mutation=True)
WRAPS = {
    "all": lambda f: overwriting(f, everything),
    "some in some": lambda f: overwriting(lambda x: overwriting(f, at_random(5))(x) * 1, at_random(4)),
    "all in hooks": lambda f: hooked(overwriting(f, everything)),
    "all in a region": lambda f: lambda x: checkpoint(lambda x: overwriting(f, everything)(x) * 1, x),
    "a region in some": lambda f: overwriting(lambda x: checkpoint(f, x) * 1, at_random(6)),
}


@pytest.mark.parametrize("remat", ["first", "every"])
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("transform", ALL_TRANSFORMS)
def test_with_a_policy_every_program_means_the_plain_program(transform, wrap, remat):
    """[NOTE selective-policies] C10: whatever the policy says, of bodies that write, capture and nest too."""
    derive, x = ALL_TRANSFORMS[transform], t(0.7)
    for name, f in BODIES.items():
        with set_checkpoint_remat("first"):
            plain = derive(f)(x).tolist()
        with set_checkpoint_remat(remat):
            assert derive(WRAPS[wrap](f))(x).tolist() == pytest.approx(plain, rel=1e-11), name


@pytest.mark.parametrize("order", [1, 2, 3])
def test_the_rest_runs_again_once_for_each_level(order, device):
    """[NOTE selective-policies] The first sine is one of order + 1; the last is after the last save, and stops the run."""
    x = t(0.7, device=device)
    _, tanhs = runs(lambda: nth(order, selective(body, SAVE_TANH))(x), "tanh")
    firsts = []
    nth(order, selective(lambda x: body(firsts.append(1) or x), SAVE_TANH))(x)
    assert (tanhs, len(firsts)) == (1, order + 1)


def test_double_backward_and_retain_graph_at_level_0(device):
    """[NOTE selective-policies] However often a backward asks."""
    x = t(0.7, device=device).requires_grad_()

    def program():
        y = selective(body, SAVE_TANH)(x)
        (g,) = mg.autograd.grad(y, x, create_graph=True)
        (gg,) = mg.autograd.grad(g, x, retain_graph=True)
        (again,) = mg.autograd.grad(y, x)
        return g, gg, again

    (g, gg, again), tanhs = runs(program, "tanh")
    assert (g.item(), gg.item(), again.item()) == pytest.approx(
        (grad(body)(x.detach()).item(), nth(2, body)(x.detach()).item(), g.item()), rel=1e-12)
    assert tanhs == 1


@pytest.mark.parametrize("order", [1, 2, 3])
def test_with_every_the_region_keeps_what_the_policy_says_and_nothing_else(order, device):
    """[NOTE selective-policies] remat="every" takes policies: tanh runs once, though the region runs order + 1 times."""
    x, contexts = t(0.7, device=device), partial(create_selective_checkpoint_contexts, SAVE_TANH)
    calls = []
    f = nth(order, lambda x: checkpoint(lambda x: body(calls.append(1) or x), x, remat="every", context_fn=contexts))
    value, tanhs = runs(lambda: f(x), "tanh")
    assert value.item() == pytest.approx(nth(order, body)(x).item(), rel=1e-12)
    plain, _ = runs(lambda: nth(order, lambda x: checkpoint(body, x, remat="every"))(x), "tanh")
    assert plain.item() == value.item()
    assert tanhs == 1


def test_with_every_what_the_policy_keeps_is_added_to_one_array_for_each_order(device):
    """[NOTE selective-policies] [NOTE remat-every] To differentiate f, grad f, grad grad f."""
    x = t([0.7, -0.3], device=device)
    kept = [[saved_residuals(lambda x, p=policy: checkpoint(
        body, x, remat="every", context_fn=partial(create_selective_checkpoint_contexts, p)), x, order=order, level=1).arrays
        for order in range(3)] for policy in ([], SAVE_TANH)]
    assert kept == [[1, 2, 3], [2, 3, 4]]


@pytest.mark.parametrize(("order", "policy", "tanhs"), [(1, SAVE_TANH, 1), (2, SAVE_TANH, 1), (1, [], 2), (2, [], 3)])
def test_a_trace_has_what_is_kept_once(order, policy, tanhs, device):
    """[NOTE selective-policies] [NOTE traces-are-pure] And gives the derivative at other inputs too."""
    x, other = t(0.7, device=device), t(-1.2, device=device)
    traced = make_fx(nth(order, selective(body, policy)))(x)
    names = [node.target.__name__ for node in traced.graph.nodes if node.op == "call_function"]
    assert names.count("tanh") == tanhs
    assert traced(other).item() == pytest.approx(nth(order, body)(other).item(), rel=1e-12)


# ---------------------------------------------------------------- known by how, not by when
def test_a_run_that_does_less_still_finds_what_is_kept(device):
    """[NOTE kept-by-value] Statistics of the forward alone: the second tanh of the forward is the first of the second run."""
    def f(x):
        if not is_recomputing():
            mg.tanh(x.detach() * 3)
        return mg.sin(mg.tanh(x))

    x = t(0.7, device=device)
    value, tanhs = runs(lambda: grad(selective(f, SAVE_TANH))(x), "tanh")
    assert value.item() == pytest.approx(grad(lambda x: mg.sin(mg.tanh(x)))(x).item(), rel=1e-12)
    assert tanhs == 2


def test_a_run_that_computes_something_else_is_not_given_what_is_kept(device):
    """[NOTE kept-by-value] Another number among the arguments is another value."""
    factor = [2.0]
    x = t(0.7, device=device).requires_grad_()
    y = selective(lambda x: mg.sin(x * factor[0]), everything)(x)
    factor[0] = 3.0
    assert mg.autograd.grad(y, x)[0].item() == pytest.approx(2 * math.cos(2.1), rel=1e-12)  # as without a policy


def test_a_cast_that_the_forward_alone_found_ready_is_no_error():
    """[NOTE kept-by-value] [NOTE autocast] The second run casts, and computes again what it does not find (pytorch/pytorch#193338)."""
    x = mg.tensor([[0.5, -1.0]], requires_grad=True)
    layer = nn.Linear(2, 2, bias=False)

    def derivative(region):
        with mg.autocast("cpu", mg.float16):
            y = region(region(x))
        return mg.autograd.grad(y.to(mg.float32).sum(), x)[0].tolist()

    assert derivative(selective(lambda x: layer(x).sin(), [aten.mm.default])) == derivative(lambda x: layer(x).sin())


def test_training_statistics_are_updated_once_under_a_policy_that_saves_all(device):
    """[NOTE kept-by-value] [NOTE side-effects-once] The forward does more than the second run, and both agree."""
    mean, var = mg.zeros(2, dtype=mg.float64, device=device), mg.ones(2, dtype=mg.float64, device=device)

    def f(x):
        return mg.sin(F.batch_norm(mg.sin(x), mean, var, training=True)).sum()

    x = t([[0.5, 1.0], [2.0, -1.0], [0.25, 3.0]], device=device)
    value = grad(selective(f, everything))(x)
    seen = mean.tolist()
    mean.zero_()
    assert value.tolist() == grad(f)(x).tolist()
    assert mean.tolist() == seen


def test_arguments_that_hooks_gave_back_in_other_memory_are_the_same_arguments(device):
    """[NOTE kept-by-value] What is computed from them is found."""
    x = t(0.7, device=device)
    with saved_tensors_hooks(lambda s: s.clone(), lambda s: s.clone()):
        _, tanhs = runs(lambda: grad(selective(lambda x: mg.sin(mg.tanh(x)), SAVE_TANH))(x), "tanh")
    assert tanhs == 1


def test_the_arguments_of_regions_inside_are_their_own(device):
    """[NOTE kept-by-value] Contexts of a program's own, around regions in a region that has no arguments."""
    x = t(0.7, device=device)
    inside = partial(checkpoint, mg.tanh, context_fn=lambda: (nullcontext(), nullcontext()))
    f = lambda: mg.sin(inside(x * 1) * inside(x * 2))
    x = x.requires_grad_()
    y = checkpoint(f, context_fn=partial(create_selective_checkpoint_contexts, everything))
    (plain,) = mg.autograd.grad(mg.sin(mg.tanh(x * 1) * mg.tanh(x * 2)), x)
    assert mg.autograd.grad(y, x)[0].item() == pytest.approx(plain.item(), rel=1e-12)


def test_of_two_equal_values_one_is_kept(device):
    """[NOTE kept-by-value] The same op on the same value is the same value."""
    x = t(0.7, device=device)
    kept = saved_residuals(selective(lambda x: mg.sin(mg.tanh(x)) + mg.cos(mg.tanh(x)), SAVE_TANH), x)
    assert [r.name for r in kept if r.op == "checkpoint"] == ["input", "MUST_SAVE"]


def test_a_value_that_is_equal_to_one_that_is_overwritten_is_computed_again(device):
    """[NOTE kept-by-value] Given the kept memory for both, the second run would write to it."""
    def f(x):
        a, b = mg.cos(x), mg.cos(x)
        return (b.mul_(2) * mg.sin(a)).sin()

    x = t([0.7, -0.3], device=device)
    plain = grad(lambda x: f(x).sum())(x).tolist()
    assert grad(lambda x: selective(f, [aten.cos.default])(x).sum())(x).tolist() == pytest.approx(plain, rel=1e-12)


def test_random_numbers_that_are_kept_are_stepped_over(device):
    """[NOTE kept-by-value] Those drawn after them are those of the forward, and are not mistaken for them."""
    drawn = []

    def f(x):
        drawn.append((mg.rand(2, dtype=mg.float64, device=device), mg.rand(2, dtype=mg.float64, device=device)))
        return (x * drawn[-1][0]).sin() * drawn[-1][1]

    first = iter([True])
    policy = lambda ctx, op, *args, **kwargs: op is aten.uniform.default and next(first, False)
    grad(lambda x: selective(f, policy)(x).sum())(t([0.7, -0.3], device=device))
    (a, b), (a_again, b_again) = drawn
    assert (a.tolist(), b.tolist()) == (a_again.tolist(), b_again.tolist())
    assert a.untyped_storage() is a_again.untyped_storage()
    assert b.untyped_storage() is not b_again.untyped_storage()


# ---------------------------------------------------------------- where it is kept
def test_what_is_kept_is_given_to_the_hooks_around(device):
    """[NOTE selective-policies] The input, and what the policy keeps; the slots of the region are none of their business."""
    x = t([0.7, -0.3], device=device).requires_grad_()
    with (hooks := Packed()):
        y = selective(body, SAVE_TANH)(x)
    assert hooks.seen == [((2,), 16), ((2,), 16)]
    (_, tanhs) = runs(lambda: y.sum().backward(), "tanh")
    assert (hooks.unpacked, tanhs) == (2, 0)


def test_save_on_cpu_around_a_region_offloads_what_is_kept():
    """[NOTE selective-policies] Bytes on the host: the input's and tanh's."""
    x = t([0.7, -0.3], device="sim").requires_grad_()
    before = sim.memory_stats()["copied_bytes.to_host"]
    with save_on_cpu():
        y = selective(body, SAVE_TANH)(x)
    assert sim.memory_stats()["copied_bytes.to_host"] - before == 32
    y.sum().backward()
    assert x.grad.tolist() == pytest.approx(grad(lambda x: body(x).sum())(x.detach()).tolist(), rel=1e-12)


@pytest.mark.parametrize("order", [1, 2])
def test_an_offloaded_value_is_copied_to_the_host_once_and_is_not_on_the_device(order):
    """[NOTE selective-policies] Of the region's two values of 800 bytes, none stays; one comes back for each level."""
    x = t([0.5] * 100, device="sim")
    policy = lambda ctx, op, *args, **kwargs: OFFLOAD if op is aten.tanh.default else RECOMPUTE
    alive, start = [], {key: sim.memory_stats()[f"copied_bytes.{key}"] for key in ("to_host", "to_device")}

    def f(x):
        before = sim.memory_allocated()
        y = selective(body, policy)(x)
        alive.append(sim.memory_allocated() - before)
        return y.sum()

    value = grad(f)(x) if order == 1 else grad(lambda x: grad(f)(x).sum())(x)
    moved = {key: sim.memory_stats()[f"copied_bytes.{key}"] - n for key, n in start.items()}
    assert value.tolist() == pytest.approx([nth(order, body)(t(0.5)).item()] * 100, rel=1e-12)
    assert moved == {"to_host": 800, "to_device": 800 * order}
    assert alive == [800]                                 # the output alone


def test_an_offloaded_value_of_the_host_stays_where_it_is():
    """[NOTE selective-policies] [NOTE host-tensors-stay] As with save_on_cpu."""
    policy = lambda ctx, op, *args, **kwargs: OFFLOAD if op is aten.tanh.default else RECOMPUTE
    _, tanhs = runs(lambda: grad(selective(body, policy))(t(0.7, device="cpu")), "tanh")
    assert tanhs == 1


def test_what_a_region_in_a_region_keeps_is_a_save_of_the_outer_one(device):
    """[NOTE selective-policies] [NOTE nested-regions] It is computed again for the outer one, which keeps its input alone."""
    x = t([0.7, -0.3], device=device)
    inner = selective(body, SAVE_TANH)
    outer = lambda x: checkpoint(lambda x: inner(x * 2).sum(), x)
    assert saved_residuals(outer, x).arrays == 1
    value, tanhs = runs(lambda: grad(outer)(x), "tanh")
    assert value.tolist() == pytest.approx(grad(lambda x: body(x * 2).sum())(x).tolist(), rel=1e-12)
    assert tanhs == 2


def test_a_region_in_a_region_with_a_policy_finds_what_that_one_keeps(device):
    """[NOTE selective-policies] Also where the inner one asks after the outer forward."""
    x = t([0.7, -0.3], device=device)
    outer = selective(lambda x: checkpoint(body, x * 2).sum(), SAVE_TANH)
    value, tanhs = runs(lambda: grad(outer)(x), "tanh")
    assert value.tolist() == pytest.approx(grad(lambda x: body(x * 2).sum())(x).tolist(), rel=1e-12)
    assert tanhs == 1


# ---------------------------------------------------------------- how long
def test_what_is_kept_dies_with_the_region(device, no_gc):
    """[NOTE selective-policies] Without a backward, and with the last node of one; with retain_graph it stays with the graph."""
    alive = Alive()
    f = selective(lambda x: mg.sin(alive.see(mg.tanh(x))), SAVE_TANH)
    x = t([0.7, -0.3], device=device).requires_grad_()
    with no_garbage():
        y = f(x)
        assert alive.count() == 1
        del y
        assert alive.count() == 0
        y = f(x).sum()
        y.backward(retain_graph=True)
        assert alive.count(1, 2) == 1
        y.backward()
        assert alive.count() == 0


def test_a_region_keeps_one_memory_for_each_saved_value(device):
    """[NOTE selective-policies] Of a chain of 6: the input, and the 2 that are named."""
    def f(x):
        for k in range(6):
            x = mg.sin(x)
            if k % 3 == 1:
                x = checkpoint_name(x, "milestone")
        return x
    x = t([0.7, -0.3], device=device)
    assert [saved_residuals(selective(f, policy), x).arrays for policy in (
        checkpoint_policies.save_only_these_names("milestone"), checkpoint_policies.save_only_these_names(), everything)] == [3, 1, 7]


# ---------------------------------------------------------------- mutation
def test_a_kept_value_that_the_region_writes_to_is_an_error(device):
    """[NOTE selective-policies] The policy and the program contradict each other."""
    x = t([0.7], device=device).requires_grad_()
    y = selective(lambda x: mg.cos(x).mul_(2).sin(), [aten.cos.default])(x)
    with pytest.raises(CheckpointError, match="has been mutated: the output of cos"):
        y.backward()


def test_a_kept_value_that_the_region_writes_to_is_computed_again_where_that_is_allowed(device):
    """[NOTE selective-policies] The gradient is right, which torch's is not."""
    x = t([0.7], device=device).requires_grad_()
    y = selective(lambda x: mg.cos(x).mul_(2).sin(), [aten.cos.default], allow_cache_entry_mutation=True)(x)
    y.backward()
    assert x.grad.item() == pytest.approx(grad(lambda x: (mg.cos(x) * 2).sin())(x.detach()[0]).item(), rel=1e-12)


def test_an_output_that_is_written_to_after_the_region_is_no_error(device):
    """[NOTE selective-policies] As without a policy: it is computed again, if anybody needs it."""
    x = t([0.7], device=device).requires_grad_()
    y = selective(lambda x: mg.tanh(mg.sin(x)), SAVE_TANH)(x)
    y.mul_(2)
    y.backward()
    assert x.grad.item() == pytest.approx(2 * grad(lambda x: mg.tanh(mg.sin(x)))(x.detach()[0]).item(), rel=1e-12)


def test_a_write_before_the_value_is_kept_is_no_error(device):
    """[NOTE selective-policies] A name for memory that was written to keeps nothing, and is right."""
    f = lambda x: checkpoint_name(mg.cos(x).mul_(2), "a").sin()
    x = t(0.7, device=device)
    assert grad(selective(f, checkpoint_policies.save_only_these_names("a")))(x).item() == pytest.approx(grad(f)(x).item(), rel=1e-12)


# ---------------------------------------------------------------- by name, by level
@pytest.mark.parametrize(("policy", "times"), [
    (checkpoint_policies.save_only_these_names("a"), (1, 2)), (checkpoint_policies.save_only_these_names("a", "b"), (1, 1)), (checkpoint_policies.save_only_these_names("c"), (2, 2)),
    (checkpoint_policies.save_any_names_but_these("a"), (2, 1)), (checkpoint_policies.save_any_names_but_these(), (1, 1)),
    (checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=["a"], names_which_can_be_offloaded=["b"]), (1, 1))])
@pytest.mark.parametrize("derive", [grad, lambda f: vmap(grad(f)), partial(nth, 2)])
def test_what_made_a_named_value_is_not_run_again(policy, times, derive, device):
    """[NOTE selective-policies] Whatever op it is, and whatever it is on batches; without a name it runs once for each level."""
    def f(x):
        return mg.sin(checkpoint_name(mg.cosh(checkpoint_name(mg.tanh(x), "a")), "b"))
    levels = 2 if derive.__class__ is partial else 1
    x = t([0.7, -0.3] if derive.__class__ is not partial and derive is not grad else 0.7, device=device)
    value, *found = runs(lambda: derive(selective(f, policy))(x), "tanh", "cosh")
    plain, *least = runs(lambda: derive(f)(x), "tanh", "cosh")
    assert value.tolist() == pytest.approx(plain.tolist(), rel=1e-12)
    assert [n - k for n, k in zip(found, least, strict=True)] == [(n - 1) * levels for n in times]


def test_the_output_of_a_function_is_kept_by_its_name(device):
    """[NOTE selective-policies] A policy sees ops, and never the Function that ran them (pytorch/pytorch#153334)."""
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

    x = t([2.0], device=device).requires_grad_()
    y = selective(lambda x: checkpoint_name(Cube.apply(x), "cube").sin(), checkpoint_policies.save_only_these_names("cube"))(x)
    _, products = runs(lambda: y.backward(), "mul")
    assert products == 1 + 1 + 2                          # x * x again; sin's rule; the Function's


def test_a_policy_is_told_of_the_level(device):
    """[NOTE selective-policies] A level that the region enters has a higher number: what its backward computes is kept here."""
    policy = lambda ctx, op, *args, **kwargs: ctx.level == 2
    x = t(0.7, device=device)
    f = lambda x: mg.tanh(x) * grad(body)(x)
    value, tanhs, cosines = runs(lambda: grad(selective(f, policy))(x), "tanh", "cos")
    plain, least, fewest = runs(lambda: grad(f)(x), "tanh", "cos")
    assert value.item() == pytest.approx(plain.item(), rel=1e-12)
    assert (tanhs - least, cosines - fewest) == (1, 0)


def test_a_policy_is_asked_once_about_each_op_of_the_region_and_about_nothing_else(device):
    """[NOTE selective-policies] Not in a recomputation; not about what hooks compute."""
    asked = []

    def policy(ctx, op, x, *args, **kwargs):
        asked.append((op.op.name, ctx.is_recompute, tuple(ctx.op_output.shape)))
        return RECOMPUTE

    with saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2):
        grad(selective(lambda x: grad(sin_sin)(x), policy))(t(0.7, device=device))
    assert [name for name, _, _ in asked] == ["sin", "sin", "ones_like", "cos", "mul", "cos", "mul"]
    assert {rest for _, *rest in [(n, again, shape) for n, again, shape in asked] for rest in [tuple(rest)]} == {(False, ())}


# ---------------------------------------------------------------- introspection and errors
def test_residuals_show_the_policy(device):
    """[NOTE selective-policies] [NOTE what-is-kept] What is kept, and which saves are taken from it."""
    found = saved_residuals(selective(body, SAVE_TANH), t([0.7, -0.3], device=device)).of(1)
    assert [(r.op, r.name, r.verdict) for r in found] == [
        ("checkpoint", "input", "kept"), ("SinBackward0", "x0", "recomputed"), ("checkpoint", "MUST_SAVE", "kept"),
        ("TanhBackward0", "out", "MUST_SAVE"), ("SinBackward0", "x0", "MUST_SAVE")]
    assert (found.arrays, found.nbytes) == (2, 32)


def test_residuals_show_a_policy_that_decides_after_the_save(device):
    """[NOTE selective-policies] A name comes later than the op."""
    f = lambda x: checkpoint_name(mg.tanh(x), "a").sin()
    found = saved_residuals(selective(f, checkpoint_policies.save_only_these_names("a")), t(0.7, device=device)).of(1)
    assert {r.verdict for r in found if r.op != "checkpoint"} == {"MUST_SAVE"}


def test_residuals_show_where_an_offloaded_value_is():
    """[NOTE selective-policies] On the host."""
    policy = checkpoint_policies.save_and_offload_only_these_names(names_which_can_be_saved=[], names_which_can_be_offloaded=["a"])
    f = lambda x: checkpoint_name(mg.tanh(x), "a").sin()
    found = saved_residuals(selective(f, policy), t(0.7, device="sim")).of(1)
    assert [(r.name, r.verdict) for r in found if r.op == "checkpoint"] == [("input", "kept"), ("MUST_CPU_OFFLOAD", "on host")]


def test_debug_shows_ops_that_were_not_run_again_where_they_stood(device, capsys):
    """[NOTE selective-policies] [NOTE recomputation-is-checked] Both logs are alike."""
    x = t([0.7], device=device).requires_grad_()
    contexts = partial(create_selective_checkpoint_contexts, SAVE_TANH)
    checkpoint(body, x, context_fn=contexts, debug=True, determinism_check="values").backward()
    text = capsys.readouterr().err
    assert text.count("tanh(float64[1])") == 2
    assert "The runs differ" not in text


def test_contexts_are_those_of_one_region(device):
    """[NOTE selective-policies] Two forwards would leave their values in one place."""
    x = t([0.7], device=device).requires_grad_()
    contexts = create_selective_checkpoint_contexts(SAVE_TANH)
    checkpoint(body, x, context_fn=lambda: contexts)
    before = current()
    with pytest.raises(CheckpointError, match="belong to another region"):
        checkpoint(body, x, context_fn=lambda: contexts)
    assert current() is before


@pytest.mark.parametrize("said", [None, 1, "MUST_SAVE"])
def test_a_policy_returns_a_policy(said, device):
    """[NOTE selective-policies] What it returns is not guessed at."""
    with pytest.raises(TypeError, match="must return a CheckpointPolicy or a bool"):
        grad(selective(body, lambda ctx, op, *args, **kwargs: said))(t(0.7, device=device))


def test_an_op_list_is_a_list_of_ops():
    """[NOTE selective-policies] In torch's words."""
    for ops in ([2], [aten.sin]):
        with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload"):
            create_selective_checkpoint_contexts(ops)
    with pytest.raises(TypeError, match="either a function or a list of ops"):
        create_selective_checkpoint_contexts(2)
    assert not issubclass(ValueError, UsageError)


def test_a_region_that_nobody_differentiates_keeps_nothing(device):
    """[NOTE selective-policies] Its values die as they do without a checkpoint."""
    alive = Alive()
    y = selective(lambda x: mg.sin(alive.see(mg.tanh(x))), SAVE_TANH)(t([0.7], device=device).requires_grad_().detach())
    assert y.item() == pytest.approx(mg.sin(mg.tanh(t(0.7))).item())
    assert alive.count() == 0


def test_a_region_around_a_policy_counts_alike_what_hooks_gave_back():
    """[NOTE kept-by-value] [NOTE selective-policies]  To the forward each clone is a value of its own; the rerun sees no clones."""
    f = lambda x: (hessian(lambda x: (x * x * (x * x).tanh()).sum())(x).sum() * 0 + x).sin()
    region = lambda x: checkpoint(selective(f, [aten.mul.default, aten.tanh.default]), x)
    x = t([0.3, -0.8], requires_grad=True)
    with saved_tensors_hooks(lambda x: x.clone(), lambda x: x):
        y = region(x)
    (g,) = mg.autograd.grad(y.sum(), x)
    assert g.tolist() == pytest.approx(mg.cos(x).tolist())
