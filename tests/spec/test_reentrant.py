"""checkpoint(use_reentrant=True): torch's first variant, at level 0, with its limits."""

from __future__ import annotations

import math
import warnings

import pytest
import torch
import torch.utils.checkpoint

import minigrad as mg
from minigrad.autograd.graph import save_on_cpu
from minigrad.errors import CheckpointError, Refusal, UsageError
from minigrad.func import grad, jvp, vjp, vmap
from minigrad.utils.checkpoint import (
    check_backward_validity,
    checkpoint,
    checkpoint_sequential,
    detach_variable,
    is_recomputing,
)
from tests.spec.instruments import Alive, Counted, Packed, sin_sin, t


def region_of(f, **options):
    return lambda *args: checkpoint(f, *args, use_reentrant=True, **options)


def plain(f):
    return f


def on_both(program):
    """What a program of (library, checkpoint) returns on minigrad and on torch."""
    return program(mg, checkpoint), program(torch, torch.utils.checkpoint.checkpoint)


# ---------------------------------------------------------------- the value
BODIES = {
    "sin sin": lambda lib, x, w: lib.sin(lib.sin(x)),
    "a captured weight": lambda lib, x, w: lib.sin(x * w),
    "a captured weight, twice": lambda lib, x, w: lib.sin(x * w) * w,
    "a constant": lambda lib, x, w: lib.sin(x * w.detach()),
    "in place": lambda lib, x, w: (x * w).sin_().mul_(x),
    "an argument": lambda lib, x, w: x * 1 + x,
}


@pytest.mark.parametrize("body", BODIES)
def test_a_region_means_the_plain_program_and_what_torch_gives(body):
    """[NOTE reentrant] C12."""
    def gradients(lib, wrap):
        x, w = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in (0.7, 1.3))
        y = wrap(lambda a: BODIES[body](lib, a, w))(x)
        (y * y).backward()
        return y.item(), x.grad.item(), None if w.grad is None else w.grad.item()
    got = gradients(mg, region_of)
    assert got == pytest.approx(gradients(torch, lambda f: lambda x: torch.utils.checkpoint.checkpoint(f, x, use_reentrant=True)))
    assert got == pytest.approx(gradients(mg, plain))


def test_the_function_runs_with_nothing_recorded_and_once_more_recorded():
    """[NOTE reentrant] C12."""
    def program(lib, check):
        seen, x = [], lib.tensor(1.0, requires_grad=True)
        check(lambda x: seen.append((lib.is_grad_enabled(), x.requires_grad, x.is_leaf)) or lib.sin(x), x,
              use_reentrant=True).backward()
        return seen
    mine, its = on_both(program)
    assert mine == its == [(False, True, True), (True, True, True)]


def test_it_runs_whole_and_once_for_each_backward():
    """[NOTE reentrant] C12: it never stops early."""
    def program(lib, check):
        tail, x = Counted(lambda x: x + 1), lib.tensor(1.0, requires_grad=True)
        y = check(lambda x: tail(lib.sin(x)), x, use_reentrant=True)
        for _ in range(2):
            y.backward(retain_graph=True)
        return tail.calls, x.grad.item()
    mine, its = on_both(program)
    assert mine == pytest.approx(its) == (3, pytest.approx(2 * math.cos(1)))


def test_outputs_are_a_tensor_or_a_tuple_and_may_be_no_tensors():
    """[NOTE reentrant] C12."""
    def program(lib, check):
        x = lib.tensor(2.0, requires_grad=True)
        a, text, b, none = check(lambda x, flag: (lib.sin(x), "text", x.detach() * 2, None) if flag else x, x, True,
                                 use_reentrant=True)
        flags = a.requires_grad, b.requires_grad
        (a * 3).backward()
        return flags, text, none, x.grad.item()
    mine, its = on_both(program)
    assert mine == its == ((True, True), "text", None, pytest.approx(3 * math.cos(2)))


def test_regions_nest():
    """[NOTE reentrant] C12."""
    def program(lib, check):
        inner, x = Counted(lambda x: lib.sin(x)), lib.tensor(0.5, requires_grad=True)
        outer = Counted(lambda x: lib.exp(check(inner, lib.sin(x), use_reentrant=True)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")                # torch's inner region warns of the outer one's no_grad
            check(outer, x, use_reentrant=True).backward()
        return outer.calls, inner.calls, x.grad.item()
    mine, its = on_both(program)
    assert mine == pytest.approx(its)
    assert mine[:2] == (2, 3)


@pytest.mark.parametrize("outer", [True, False], ids=["reentrant outside", "reentrant inside"])
def test_both_variants_nest_in_each_other(outer):
    """[NOTE reentrant] C12 [NOTE nested-regions]"""
    def program(lib, check):
        x, w = (lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in (0.5, 2.0))
        check(lambda x: lib.exp(check(lambda x: lib.sin(x * w), lib.sin(x), use_reentrant=not outer)), x,
              use_reentrant=outer).backward()
        return x.grad.item(), w.grad.item()
    mine, its = on_both(program)
    assert mine == pytest.approx(its)


def test_between_forward_and_backward_the_arguments_alone_are_alive(no_gc):
    """[NOTE reentrant] C12."""
    alive = Alive()

    def body(x):
        for _ in range(5):
            x = alive.see(mg.sin(x))
        return x
    x = t(1.0, requires_grad=True)
    y = checkpoint(body, x, use_reentrant=True) * 1
    assert alive.count(0, 4) == 0
    y.backward()
    assert alive.count() == 0


def test_the_arguments_are_saved_through_the_hooks_in_force():
    """[NOTE reentrant] C12: as torch, the arguments and nothing else."""
    def program(lib, check):
        packed, (x, c, w) = [], (lib.tensor(v, requires_grad=v != 3.0) for v in (2.0, 3.0, 4.0))
        with lib.autograd.graph.saved_tensors_hooks(lambda s: packed.append(s.item()) or s, lambda s: s):
            y = check(lambda x, c: lib.sin(x * c * w), x, c, use_reentrant=True)
        y.backward()
        return packed
    mine, its = on_both(program)
    assert mine == its == [2.0, 3.0]


def test_the_recomputation_is_told_to_those_who_watch_and_to_the_function():
    """[NOTE reentrant] C12 [NOTE side-effects-once]"""
    seen, x = [], t(1.0, requires_grad=True)
    checkpoint(lambda x: seen.append(is_recomputing()) or mg.sin(x), x, use_reentrant=True).backward()
    assert seen == [False, True]


def test_a_mask_is_the_same_in_both_runs_unless_it_need_not_be():
    """[NOTE reentrant] C12 [NOTE random-streams]"""
    def run(**options):
        mg.manual_seed(0)
        x = t([1.0] * 16, requires_grad=True)
        y = region_of(lambda x: mg.sin(x) * (mg.rand(16) > 0.5).to(x.dtype), **options)(x)
        between = mg.rand(1).item()
        y.sum().backward()
        return [a != 0 for a in y.tolist()] == [a != 0 for a in x.grad.tolist()], between
    same, between = run()
    other, drawn = run(preserve_rng_state=False)
    assert (same, other) == (True, False)
    assert between == drawn


@pytest.mark.parametrize("segments", [1, 2, 3])
def test_a_sequence_in_reentrant_segments_means_the_sequence(segments):
    """[NOTE reentrant] C12.  Upstream: pytorch/pytorch#42812: weights get their gradient though the input requires none."""
    def program(lib, sequential):
        ws = [lib.tensor(v, dtype=lib.float64, requires_grad=True) for v in (0.5, 0.6, 0.7)]
        x = lib.tensor(1.0, dtype=lib.float64)
        sequential([lambda x, w=w: lib.sin(x * w) for w in ws], x).backward()
        return [w.grad.item() for w in ws]
    got = program(mg, lambda layers, x: checkpoint_sequential(layers, segments, x, use_reentrant=True))
    assert got == pytest.approx(program(torch, lambda layers, x: layers[2](layers[1](layers[0](x)))))


# ---------------------------------------------------------------- captured tensors, which are inputs of the node
def test_an_output_requires_grad_where_only_a_captured_tensor_does():
    """[NOTE reentrant] C12.  torch warns, and the weight gets no gradient: pytorch/pytorch#7617."""
    w, x = t(2.0, requires_grad=True), t(3.0)
    y = checkpoint(lambda x: mg.sin(x * w), x, use_reentrant=True)
    assert y.requires_grad
    y.backward()
    assert w.grad.item() == pytest.approx(3 * math.cos(6))


def test_hooks_of_a_captured_leaf_run_once_with_the_whole_gradient():
    """[NOTE reentrant] C12.  torch runs them for each region: pytorch/pytorch#107063."""
    def run(wrap):
        w, x, log = t(2.0, requires_grad=True), t(0.5, requires_grad=True), []
        w.register_hook(lambda g: log.append(g.item()) or g * 2)
        w.register_post_accumulate_grad_hook(lambda w: log.append(w.grad.item()))
        f = wrap(lambda x: mg.sin(x * w))
        f(f(x)).backward()
        return log
    assert run(region_of) == pytest.approx(run(plain))


def test_a_captured_tensor_that_was_computed_passes_its_gradient_on_once():
    """[NOTE reentrant] C12.  torch: the second region's backward finds the graph of `k` freed."""
    def run(wrap):
        w, x, visits = t(2.0, requires_grad=True), t(0.5, requires_grad=True), []
        k = mg.exp(w)
        k.register_hook(lambda g: visits.append(1))
        f = wrap(lambda x: mg.sin(x * k))
        f(f(x)).backward()
        return w.grad.item(), x.grad.item(), len(visits)
    assert run(region_of) == pytest.approx(run(plain))


def test_a_captured_tensor_may_be_the_argument_too():
    """[NOTE reentrant] C12 [NOTE arguments-are-fresh]"""
    x = t(3.0, requires_grad=True)
    checkpoint(lambda a: a * a * x, x, use_reentrant=True).backward()
    assert x.grad.item() == 27.0


def test_what_another_region_computed_and_did_not_return_is_an_error():
    """[NOTE reentrant] C12.  torch: that part of the gradient is silently lost (unslothai/unsloth-zoo#813)."""
    w, x, box = t(0.7, requires_grad=True), t(1.0, requires_grad=True), {}

    def first(x):
        box["k"] = mg.sin(w * x)
        return x * 1
    y = checkpoint(first, x, use_reentrant=True)
    with pytest.raises(UsageError, match="another such region computed and did not return"):
        checkpoint(lambda y: mg.sin(y * box["k"]), y, use_reentrant=True)


def test_what_another_region_returned_may_be_detached_and_read():
    """[NOTE reentrant] C12: and what it made out of constants."""
    x, box = t(1.0, requires_grad=True), {}

    def first(x):
        box["mask"] = mg.exp(t(2.0))
        return mg.sin(x)
    y = checkpoint(first, x, use_reentrant=True)
    fixed = y.detach()
    checkpoint(lambda y: y * fixed * box["mask"], y, use_reentrant=True).backward()
    assert x.grad.item() == pytest.approx(math.exp(2) * math.sin(1) * math.cos(1))


def test_a_recomputation_that_differentiates_something_else_is_an_error():
    """[NOTE reentrant] C12 [NOTE recomputation-is-checked]"""
    x, box = t(1.0, requires_grad=True), [t(3.0, requires_grad=True), t(2.0, requires_grad=True)]
    y = checkpoint(lambda x: mg.sin(x * box.pop()), x, use_reentrant=True)
    with pytest.raises(CheckpointError, match="which its forward did not"):
        y.backward()


@pytest.mark.parametrize("captured", [True, False])
def test_what_was_written_to_before_the_backward_is_an_error(captured):
    """[NOTE reentrant] C12 [NOTE captured-tensors] C5."""
    x, w = t(2.0, requires_grad=True), t(3.0)
    y = checkpoint(lambda x, *ws: mg.sin(x * (ws[0] if ws else w)), x, *(() if captured else (w,)), use_reentrant=True)
    w.add_(1)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


def test_an_argument_that_the_function_writes_to_is_an_error():
    """[NOTE reentrant] C12 [NOTE captured-tensors] C5.  torch runs it again from the new value."""
    x = t(2.0, requires_grad=True)
    with pytest.raises(CheckpointError, match="modified an argument by an inplace operation"):
        checkpoint(lambda x: mg.sin(x.mul_(2)), x * 1, use_reentrant=True)


# ---------------------------------------------------------------- the limits, in torch's words
LIMITS = {
    "autograd.grad": lambda lib, x, y: lib.autograd.grad(y, x),
    "backward(inputs=)": lambda lib, x, y: y.backward(inputs=[x]),
}


@pytest.mark.parametrize("limit", LIMITS)
def test_gradients_of_some_inputs_only_are_refused(limit):
    """[NOTE reentrant] C12."""
    words = r"torch\.utils\.checkpoint is incompatible with \.grad\(\) or passing an `inputs` parameter to \.backward\(\)"

    def program(lib, check):
        x = lib.tensor(1.0, requires_grad=True)
        y = check(lambda x: lib.sin(x), x, use_reentrant=True)
        with pytest.raises(RuntimeError, match=words):
            LIMITS[limit](lib, x, y)
        return check(lambda x: lib.sin(x), x, use_reentrant=True).backward(), x.grad.item()
    mine, its = on_both(program)
    assert mine == pytest.approx(its)


def test_a_run_inside_a_run_may_ask_for_some_inputs():
    """[NOTE reentrant] C12: a backward that itself calls autograd.grad is no such program."""
    x = t(0.5, requires_grad=True)
    checkpoint(lambda x: mg.exp(checkpoint(mg.sin, x, use_reentrant=True)), x, use_reentrant=True).backward()
    assert x.grad.item() == pytest.approx(math.exp(math.sin(0.5)) * math.cos(0.5))


def test_a_second_derivative_is_an_error_when_it_is_taken():
    """[NOTE reentrant] C12.  torch leaves that part out, silently: openai/guided-diffusion#144."""
    x = t(0.5, requires_grad=True)
    with pytest.warns(UserWarning, match="reference cycle"):
        (checkpoint(sin_sin, x, use_reentrant=True) * x).backward(create_graph=True)
    assert x.grad.item() == pytest.approx(math.cos(math.sin(0.5)) * math.cos(0.5) * 0.5 + math.sin(math.sin(0.5)))
    with pytest.raises(UsageError, match="differentiate twice"):
        mg.autograd.grad(x.grad, x)


def test_keywords_contexts_and_debug_are_refused():
    """[NOTE reentrant] C12: in torch's words, and with the way out."""
    def program(lib, check):
        x, said = lib.tensor(1.0, requires_grad=True), []
        for options in ({"bias": 1, "scale": 2}, {"debug": True}, {"context_fn": lambda: None}):
            with pytest.raises(ValueError) as error:
                check(lambda x: lib.sin(x), x, use_reentrant=True, **options)
            said.append((str(error.value), getattr(error.value, "refusal", False)))
        return said
    mine, its = on_both(program)
    assert all(refused and words.startswith(theirs) and "use_reentrant=False" in words
               for (words, refused), (theirs, _) in zip(mine, its, strict=True))


def test_a_region_of_which_nothing_requires_grad_warns_as_torch_does():
    """[NOTE reentrant] C12: but not where nothing is recorded anyway (huggingface/trl#4636)."""
    def program(lib, check):
        with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True") as caught:
            y = check(lambda x: lib.sin(x), lib.tensor(1.0), use_reentrant=True)
        return y.requires_grad, [str(w.message) for w in caught]
    mine, its = on_both(program)
    assert mine == its
    with warnings.catch_warnings(), mg.no_grad():
        warnings.simplefilter("error")
        checkpoint(mg.sin, t(1.0), use_reentrant=True)


def test_a_region_that_detaches_all_its_outputs_is_an_error_in_the_backward():
    """[NOTE reentrant] C12."""
    def program(lib, check):
        x = lib.tensor(1.0, requires_grad=True)
        y = check(lambda x: lib.sin(x).detach(), x, use_reentrant=True)
        with pytest.raises(RuntimeError, match="none of output has requires_grad=True, this checkpoint\\(\\) is not necessary"):
            y.backward()
        return y.requires_grad
    assert on_both(program) == (True, True)


TRANSFORMS = {
    "grad": lambda f: grad(f)(t(1.0)),
    "vmap": lambda f: vmap(f)(t([1.0, 2.0])),
    "jvp": lambda f: jvp(f, (t(1.0),), (t(1.0),)),
    "vjp": lambda f: vjp(f, t(1.0)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_a_transform_refuses_it_and_says_what_to_use(transform):
    """[NOTE reentrant] C12."""
    with pytest.raises(Refusal, match=r"composes with no transform\. Use use_reentrant=False.*level stack: base < ") as refused:
        TRANSFORMS[transform](region_of(mg.sin))
    assert refused.value.refusal


def test_a_backward_under_an_unrelated_level_runs_the_region_where_it_ran():
    """[NOTE reentrant] C12 [NOTE recompute-under-the-same-state]"""
    seen, x = [], t(1.0, requires_grad=True)
    y = checkpoint(lambda x: seen.append(mg.state.show()) or mg.sin(x), x, use_reentrant=True)
    vmap(lambda a: y.backward() or a)(t([1.0, 2.0]))
    assert seen == ["base", "base"]
    assert x.grad.item() == pytest.approx(math.cos(1))


def test_with_save_on_cpu_around_it_the_arguments_are_offloaded():
    """[NOTE reentrant] C12 [NOTE one-copy]"""
    x = mg.tensor(1.0, device="sim", requires_grad=True)
    offload = save_on_cpu()
    with offload:
        y = checkpoint(sin_sin, x, use_reentrant=True)
    assert offload.host_copies == 1
    y.backward()
    assert x.grad.item() == pytest.approx(math.cos(math.sin(1)) * math.cos(1), rel=1e-6)
    assert offload.host_copies == 1


# ---------------------------------------------------------------- the helpers under torch's names
def test_detached_variables_are_fresh_leaves_with_the_flags_of_the_old():
    """[NOTE reentrant] [NOTE arguments-are-fresh]"""
    x, c = t(1.0, requires_grad=True) * 1, t(2.0)
    fresh, constant, text = detach_variable((x, c, "text"))
    assert (fresh.is_leaf, fresh.requires_grad, constant.requires_grad, text) == (True, True, False, "text")
    with pytest.raises(RuntimeError, match=r"Only tuple of tensors is supported\. Got Unsupported input type: list"):
        detach_variable([x])


def test_the_check_of_inputs_warns_where_none_requires_grad():
    """[NOTE reentrant]"""
    check_backward_validity([t(1.0), t(1.0, requires_grad=True), 3])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        check_backward_validity([t(1.0), 3])


def test_hooks_around_a_backward_see_what_the_recomputation_saves():
    """[NOTE reentrant] C12: a recomputation is a recorded program of the backward, as in torch."""
    hooks, x = Packed(), t(1.0, requires_grad=True)
    y = checkpoint(sin_sin, x, use_reentrant=True)
    with hooks:
        y.backward()
    assert hooks.count == 2
