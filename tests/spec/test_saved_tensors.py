"""What is saved, who is asked about it, and what comes back."""

from __future__ import annotations

import functools
import math
from contextlib import ExitStack, nullcontext
from unittest.mock import patch
from weakref import ref

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import minigrad as mg
from minigrad.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from minigrad.errors import Refusal, UsageError
from minigrad.func import grad, jvp, vjp, vmap
from minigrad.state import current
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Alive, Packed, chain, nth, sin_sin, t


def identity(**options):
    return saved_tensors_hooks(lambda x: x, lambda x: x, **options)


# ---------------------------------------------------------------- H1: what torch saves
def x34(lib):
    return lib.linspace(0.1, 1.2, 12, dtype=lib.float64).reshape(3, 4)


PROGRAMS = {
    "add": lambda lib, a, b: a + b,
    "sub, number": lambda lib, a, b: 1 - a,
    "mul": lambda lib, a, b: a * b,
    "mul of one tensor twice": lambda lib, a, b: a * a,
    "mul by a number": lambda lib, a, b: a * 3,
    "mul by a constant tensor": lambda lib, a, b: a * b.detach(),
    "constant times": lambda lib, a, b: b.detach() * a,
    "div": lambda lib, a, b: a / b,
    "div by a number": lambda lib, a, b: a / 3,
    "pow": lambda lib, a, b: a**3,
    "pow of tensors": lambda lib, a, b: a**b,
    "sin": lambda lib, a, b: lib.sin(a),
    "exp, an output": lambda lib, a, b: lib.exp(a),
    "tanh, an output": lambda lib, a, b: lib.tanh(a),
    "sigmoid": lambda lib, a, b: lib.sigmoid(a),
    "relu": lambda lib, a, b: lib.relu(a),
    "sqrt": lambda lib, a, b: lib.sqrt(a),
    "log": lambda lib, a, b: lib.log(a),
    "abs": lambda lib, a, b: a.abs(),
    "clamp": lambda lib, a, b: a.clamp(0.2, 0.8),
    "where": lambda lib, a, b: lib.where(a > 0.5, a, b),
    "maximum": lambda lib, a, b: lib.maximum(a, b),
    "matmul": lambda lib, a, b: a @ b.t(),
    "matmul with a constant": lambda lib, a, b: a @ b.detach().t(),
    "addmm": lambda lib, a, b: lib.addmm(a[:, :3], a, b.t()),
    "sum": lambda lib, a, b: a.sum(),
    "mean over a dim": lambda lib, a, b: a.mean(1),
    "prod": lambda lib, a, b: a.prod(1),
    "max over a dim": lambda lib, a, b: a.max(1)[0],
    "softmax": lambda lib, a, b: lib.softmax(a, 1),
    "log_softmax": lambda lib, a, b: lib.log_softmax(a, 1),
    "cumsum": lambda lib, a, b: a.cumsum(0),
    "reshape, transpose, slice": lambda lib, a, b: a.reshape(4, 3).t()[1:],
    "index": lambda lib, a, b: a[[0, 2]],
    "cat": lambda lib, a, b: lib.cat([a, b]),
    "broadcast": lambda lib, a, b: a * b[0],
    "expand": lambda lib, a, b: a[:1].expand(5, 4) * 2.0,
    "an MLP": lambda lib, a, b: lib.relu(a @ b.t()).tanh() @ a,
    "in-place": lambda lib, a, b: (a * 1).mul_(b).exp_(),
}


def packs(lib, hooks, body):
    """(shape, bytes) of each pack of a program, in order."""
    seen = []

    def pack(x):
        seen.append((tuple(x.shape), x.numel() * x.element_size()))
        return x
    a, b = x34(lib).requires_grad_(), (x34(lib) + 0.5).requires_grad_()
    with hooks(pack, lambda x: x):
        body(lib, a, b)
    return seen


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_saves_what_torch_saves_as_often_and_in_that_order(name):
    """[NOTE what-is-saved] H1.  Upstream: tools/autograd/derivatives.yaml."""
    body = PROGRAMS[name]
    want = packs(torch, torch.autograd.graph.saved_tensors_hooks, body)
    assert packs(mg, saved_tensors_hooks, body) == want


@settings(max_examples=30, deadline=None)
@given(st.lists(st.sampled_from(["sin", "exp", "mul", "tanh", "square", "sum", "div"]), min_size=1, max_size=6))
def test_a_random_chain_saves_what_torch_saves(ops):
    """[NOTE what-is-saved] H1."""
    step = {"sin": lambda lib, x, y: lib.sin(x), "exp": lambda lib, x, y: lib.exp(x), "mul": lambda lib, x, y: x * y,
            "tanh": lambda lib, x, y: lib.tanh(x), "square": lambda lib, x, y: x * x,
            "sum": lambda lib, x, y: x.sum(-1, keepdim=True), "div": lambda lib, x, y: x / y}

    def body(lib, a, b):
        for op in ops:
            a = step[op](lib, a, b)
        return a
    assert packs(mg, saved_tensors_hooks, body) == packs(torch, torch.autograd.graph.saved_tensors_hooks, body)


def test_a_chain_of_n_sines_makes_n_saves_at_each_level():
    """[NOTE what-is-saved] H1."""
    for order in (1, 2, 3):
        hooks = Packed()

        def f(x, hooks=hooks):
            with hooks:
                return chain(10)(x)
        nth(order, f)(t(1.0))
        assert hooks.count == 10 * order


def test_the_saves_of_every_order_of_grad_are_those_of_torch_without_its_ban():
    """[NOTE what-is-saved] H1.  torch.func refuses hooks by one call, which is lifted here; identity hooks are right there."""
    def count(lib, transform, hooks, x, order):
        seen = []

        def f(x):
            with hooks(lambda s: seen.append(1) or s, lambda s: s):
                return lib.sin(lib.sin(x))
        for _ in range(order):
            f = transform(f)
        f(x)
        return len(seen)

    with patch.object(torch.autograd.graph, "disable_saved_tensors_hooks", lambda message: nullcontext()):
        want = [count(torch, torch.func.grad, torch.autograd.graph.saved_tensors_hooks, torch.tensor(5.0), n) for n in (1, 2, 3)]
    assert [count(mg, grad, saved_tensors_hooks, t(5.0), n) for n in (1, 2, 3)] == want == [2, 4, 6]


def test_python_numbers_are_no_saves():
    """[NOTE what-is-saved] H1."""
    hooks = Packed()
    with hooks:
        t(2.0, requires_grad=True) * 3.0
    assert hooks.count == 0


def test_nothing_is_saved_for_an_input_that_requires_no_grad():
    """[NOTE what-is-saved] H1."""
    x, w = t([1.0, 2.0], requires_grad=True), t([3.0, 4.0])
    hooks = Packed()
    with hooks:
        x * w
    assert hooks.seen == [((2,), 16)]                       # w alone, which the gradient of x reads


# ---------------------------------------------------------------- H2: who is asked
def test_hooks_around_a_transform_see_the_saves_inside_it():
    """[NOTE hooks-at-every-level] H2."""
    hooks = Packed()
    with hooks:
        grad(sin_sin)(t(5.0))
    assert hooks.count == 2


def test_the_innermost_pair_on_the_stack_when_the_save_happens_is_asked():
    """[NOTE hooks-at-every-level] H2."""
    outer, inner = Packed(), Packed()
    x = t(5.0, requires_grad=True)
    with outer:
        y = mg.sin(x)
        with inner:
            y = mg.sin(y)
        y = mg.sin(y)
    assert (outer.count, inner.count) == (2, 1)
    y.backward()
    assert (outer.unpacked, inner.unpacked) == (2, 1)


def test_the_saves_of_a_backward_go_to_the_hooks_in_force_then():
    """[NOTE hooks-at-every-level] H2."""
    x, forward, backward = t(5.0, requires_grad=True), Packed(), Packed()
    with forward:
        y = sin_sin(x)
    with backward:
        mg.autograd.grad(y, x, create_graph=True)
    tx = torch.tensor(5.0, requires_grad=True)
    seen = []
    ty = tx.sin().sin()
    with torch.autograd.graph.saved_tensors_hooks(lambda s: seen.append(1) or s, lambda s: s):
        torch.autograd.grad(ty, tx, create_graph=True)
    assert (forward.count, backward.count) == (2, len(seen))


def test_under_vmap_hooks_see_the_physical_shape():
    """[NOTE hooks-at-every-level] H2.  Upstream: pytorch/pytorch#131191, #187316."""
    hooks = Packed()

    def f(x):
        with hooks:
            return mg.sin(x).sum()
    vmap(grad(f))(t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert hooks.seen == [((3, 2), 48)]


@pytest.mark.parametrize("bdim", [0, 1, -1])
def test_a_batch_dim_anywhere_survives_the_hooks(bdim):
    """[NOTE layers-remember]  The seeds' TODO: "try a non-zero bdim"."""
    x = t([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

    def f(x):
        with saved_tensors_hooks(lambda s: s.clone(), lambda s: s.clone()):
            return sin_sin(x).sum()
    got = vmap(grad(f), in_dims=bdim, out_dims=bdim)(x)
    want = vmap(grad(lambda x: sin_sin(x).sum()), in_dims=bdim, out_dims=bdim)(x)
    assert got.tolist() == want.tolist()


def test_at_level_0_a_leaf_is_handed_over_as_itself_and_an_output_without_edge():
    """[NOTE layers-remember] H2."""
    x, seen = t(2.0, requires_grad=True), []
    with saved_tensors_hooks(lambda s: seen.append(s) or s, lambda s: s):
        mg.exp(x * x)
    assert seen[0] is x and seen[1] is x
    assert seen[2].grad_fn is None and not seen[2].requires_grad


def test_at_level_0_all_that_a_hook_is_handed_is_a_leaf():
    """[NOTE layers-remember] H2.  In torch the leaf alone: what it hands over has its edge."""
    x, seen = t(2.0, requires_grad=True), []
    with saved_tensors_hooks(lambda s: seen.append((s.is_leaf, s.grad_fn)) or s, lambda s: s):
        mg.sin(mg.exp(x) * x)
    assert seen == [(True, None)] * 4


def test_hooks_run_below_every_level_with_nothing_recorded():
    """[NOTE layers-remember]  They are the identity to every derivative."""
    seen = []

    def pack(x):
        seen.append((current().levels, mg.autograd.is_grad_enabled(), x.owner, x.requires_grad, current().hooks))
        return x

    def f(x):
        with saved_tensors_hooks(pack, lambda s: s):
            return sin_sin(x)
    vmap(grad(grad(f)))(t([1.0, 2.0]))
    assert len(seen) == 4
    assert set(seen) == {((), False, None, False, None)}


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("hook", [lambda s: s, lambda s: s.clone(), lambda s: s.detach().clone(), lambda s: s * 1])
def test_hooks_that_give_back_the_same_numbers_change_no_derivative(hook, order):
    """[NOTE layers-remember]  In torch, its ban lifted, `detach()` is enough to make them wrong."""
    def f(x):
        with saved_tensors_hooks(hook, lambda s: s.clone()):
            return sin_sin(x)
    x = t(5.0)
    assert nth(order, f)(x).item() == pytest.approx(nth(order, sin_sin)(x).item(), rel=1e-12)
    assert jvp(nth(order, f), (x,), (t(1.0),))[1].item() == pytest.approx(nth(order + 1, sin_sin)(x).item(), rel=1e-12)


def test_a_hook_that_changes_the_data_changes_the_number_at_the_saved_value():
    """[NOTE layers-remember]  Each layer keeps its edge, so the outer derivative still sees x: d/dx (2x) with x doubled."""
    def f(x):
        with saved_tensors_hooks(lambda s: s * 2, lambda s: s):
            return x * x
    x = t(3.0)
    assert grad(f)(x).item() == 12.0
    # the outer level differentiates (2x + 2x) as the sum of two saved x's, whose edges lead to x: 2
    assert grad(grad(f))(x).item() == 2.0


def test_a_tangent_goes_through_the_hooks_as_well():
    """[NOTE layers-remember]  Upstream: pytorch/pytorch#187316."""
    x, hooks = t(5.0, requires_grad=True), Packed()
    with hooks:
        _, dy = jvp(sin_sin, (x,), (t(1.0),))
    dy.backward()
    assert x.grad.item() == pytest.approx(nth(2, sin_sin)(t(5.0)).item())
    assert hooks.unpacked > 0


# ---------------------------------------------------------------- H3: hooks compose
def test_by_default_the_innermost_pair_is_asked_alone():
    """[NOTE hooks-compose] H3.  Upstream: pytorch/pytorch#70932."""
    outer, inner = Packed(), Packed()
    with outer, inner:
        mg.sin(t(5.0, requires_grad=True)).backward()
    assert (outer.count, inner.count) == (0, 1)


def test_composed_pairs_run_outwards_and_come_back_inwards():
    """[NOTE hooks-compose] H3: unpack undoes pack in the opposite order."""
    log = []

    def named(name, f, g, **options):
        return saved_tensors_hooks(lambda s: log.append(f"pack {name}") or f(s), lambda s: log.append(f"unpack {name}") or g(s),
                                   **options)
    x = t(3.0, requires_grad=True)
    with named("outer", lambda s: s + 1, lambda s: s - 1), named("inner", lambda s: s * 2, lambda s: s / 2, compose=True):
        y = mg.exp(x)
    y.backward()
    assert log == ["pack inner", "pack outer", "unpack outer", "unpack inner"]
    assert x.grad.item() == pytest.approx(math.exp(3))


def test_three_pairs_compose_as_far_as_they_ask_for_it():
    """[NOTE hooks-compose] H3."""
    pairs = [Packed(), Packed(compose=True), Packed(compose=True)]
    with ExitStack() as stack:
        for pair in pairs:
            stack.enter_context(pair)
        mg.exp(t(3.0, requires_grad=True)).backward()
    assert [(p.count, p.unpacked) for p in pairs] == [(1, 1)] * 3
    pairs = [Packed(), Packed(), Packed(compose=True)]
    with ExitStack() as stack:
        for pair in pairs:
            stack.enter_context(pair)
        mg.exp(t(3.0, requires_grad=True)).backward()
    assert [p.count for p in pairs] == [0, 1, 1]


def test_a_quantizing_pair_composes_with_offloading():
    """[NOTE hooks-compose] H3.  The request of pytorch/pytorch#70134."""
    x = t([1.0, 2.0]).to("sim").requires_grad_()
    with (offload := save_on_cpu()), saved_tensors_hooks(lambda s: s.to(mg.float32), lambda s: s.to(mg.float64), compose=True):
        y = mg.exp(x).sum()
    y.backward()
    assert offload.host_copies == 1
    assert x.grad.cpu().tolist() == pytest.approx([math.exp(1), math.exp(2)], rel=1e-6)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_composed_pairs_change_no_derivative(order):
    """[NOTE hooks-compose] H3."""
    def f(x):
        with saved_tensors_hooks(lambda s: s + 1, lambda s: s - 1), identity(compose=True):
            return sin_sin(x)
    assert nth(order, f)(t(5.0)).item() == pytest.approx(nth(order, sin_sin)(t(5.0)).item())


def test_save_on_cpu_around_a_checkpoint_offloads_its_inputs_only():
    """[NOTE hooks-compose] H3, a law: the region saves nothing, its inputs are saves of whoever is outside."""
    x, runs = t([1.0, 2.0]).to("sim").requires_grad_(), []

    def region(x):
        runs.append(1)
        return sin_sin(x * 1)
    with (offload := save_on_cpu()):
        y = checkpoint(region, x)
    y.sum().backward()
    assert (offload.host_copies, len(runs)) == (1, 2)


def test_save_on_cpu_inside_a_checkpoint_offloads_everything_and_runs_once():
    """[NOTE hooks-compose] H3, a law: the inner pair is the innermost, so the frame is asked about nothing."""
    x, runs = t([1.0, 2.0]).to("sim").requires_grad_(), []

    def region(x):
        runs.append(1)
        with save_on_cpu():
            return sin_sin(x * 1)
    y = checkpoint(region, x)
    y.sum().backward()
    assert len(runs) == 1
    assert x.grad.cpu().tolist() == pytest.approx([math.cos(math.sin(a)) * math.cos(a) for a in (1, 2)])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_laws_of_save_on_cpu_and_checkpoint_hold_at_every_order(order):
    """[NOTE hooks-compose] H3: (host copies, runs of f) do not depend on the level that saves."""
    def counts(program):
        runs, offload, x = [], save_on_cpu(), t(0.7).to("sim")

        def f(x):
            runs.append(1)
            return sin_sin(x)
        got = nth(order, lambda x: program(f, x, offload))(x)
        assert got.item() == pytest.approx(nth(order, sin_sin)(t(0.7)).item())
        return offload.host_copies, len(runs)

    def offloaded(f, offload):
        def g(x):
            with offload:
                return f(x)
        return g
    assert counts(lambda f, x, offload: offloaded(lambda x: checkpoint(f, x), offload)(x)) == (1, 1 + order)
    assert counts(lambda f, x, offload: checkpoint(offloaded(f, offload), x)) == (2, 1)
    inside = counts(lambda f, x, offload: checkpoint(offloaded(lambda x: checkpoint(f, x), offload), x))
    assert inside == (1, 1 + order)                        # the inner frame's input is a save of save_on_cpu: nothing is the outer's


@pytest.mark.parametrize("order", [0, 1, 2])
def test_a_composing_pair_in_a_region_hands_its_tensors_to_the_frame(order):
    """[NOTE hooks-compose] H3: what it packed is a slot, and comes from the recomputation's own pair."""
    packed, runs = [], []

    def region(x):
        runs.append(1)
        with saved_tensors_hooks(lambda s: packed.append(1) or s + 1, lambda s: s - 1, compose=True):
            return sin_sin(x)
    if order:
        got = nth(order, lambda x: checkpoint(region, x))(t(5.0))
    else:
        x = t(5.0, requires_grad=True)
        checkpoint(region, x).backward()
        got = x.grad
    assert got.item() == pytest.approx(nth(order or 1, sin_sin)(t(5.0)).item())
    assert len(runs) == 1 + (order or 1)


# ---------------------------------------------------------------- H8: hooks are told of the save
def test_a_hook_with_a_keyword_site_is_told_the_save():
    """[NOTE told-of-the-site] H8: level, node, slot and name, at each level that saves."""
    told = []

    def pack(x, *, site):
        told.append((site.level, site.node, site.slot, site.name))
        return x
    with saved_tensors_hooks(pack, lambda x: x):
        grad(lambda x: mg.exp(x * x))(t(2.0, requires_grad=True))
    forward = [(0, "MulBackward0", 0, "x1"), (0, "MulBackward0", 1, "x0"), (1, "MulBackward0", 0, "x1"), (1, "MulBackward0", 1, "x0"),
               (0, "ExpBackward0", 0, "out"), (1, "ExpBackward0", 0, "out")]
    assert told[:6] == forward
    assert {level for level, *_ in told[6:]} == {0}         # the backward of level 1 saves for level 0


def test_the_saves_of_a_function_and_the_arguments_of_a_region_have_a_site_too():
    """[NOTE told-of-the-site] H8."""
    class Twice(mg.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(b, a)
            return a * b

        @staticmethod
        def backward(ctx, g):
            b, a = ctx.saved_tensors
            return g * b, g * a
    told = []
    with saved_tensors_hooks(lambda x, *, site: told.append((site.level, site.node, site.slot, site.name)) or x, lambda x: x):
        Twice.apply(t(1.0, requires_grad=True), t(2.0))
        checkpoint(sin_sin, t(1.0, requires_grad=True))
    assert told == [(0, "TwiceBackward", 0, "x1"), (0, "TwiceBackward", 1, "x0"), (None, "checkpoint", 0, "input")]


class _Packs:
    def __call__(self, x, *, site):
        return x if site.name else None

    def method(self, x, *, site):
        return self(x, site=site)


HOOKS_THAT_ASK = {"a lambda": lambda x, *, site: x, "an object": _Packs(), "a method": _Packs().method,
                  "a partial": functools.partial(lambda y, x, *, site: x, None)}
HOOKS_THAT_DO_NOT = {"a lambda": lambda x: x, "with any keyword": lambda x, **options: x if not options else None,
                     "a second positional": lambda x, site=None: x if site is None else None, "a builtin": mg.clone,
                     "a local called so": lambda x: next(x for site in (1,))}


@pytest.mark.parametrize("hook", [*HOOKS_THAT_ASK.values(), *HOOKS_THAT_DO_NOT.values()],
                         ids=[*(f"{k}, asks" for k in HOOKS_THAT_ASK), *(f"{k}, does not" for k in HOOKS_THAT_DO_NOT)])
def test_a_hook_is_told_where_its_signature_asks_for_it_and_never_else(hook):
    """[NOTE told-of-the-site] H8."""
    x = t(2.0, requires_grad=True)
    with saved_tensors_hooks(hook, lambda x: x):
        y = mg.sin(x)
    y.backward()
    assert x.grad.item() == pytest.approx(math.cos(2))


@pytest.mark.parametrize("level", [1, 2])
def test_a_policy_by_level_keeps_the_saves_of_that_level_apart(level):
    """[NOTE told-of-the-site] H8: offload what one level saves, and nothing else."""
    copies = []

    def pack(x, *, site):
        return copies.append(site.level) or x.clone() if site.level == level else x
    with saved_tensors_hooks(pack, lambda x: x):
        got = nth(2, sin_sin)(t(5.0))
    assert got.item() == pytest.approx(nth(2, sin_sin)(t(5.0)).item())
    assert copies == [level] * {1: 7, 2: 2}[level]


# ---------------------------------------------------------------- H4: an output owns nothing
@pytest.mark.parametrize("hooks", [nullcontext, identity, save_on_cpu], ids=["plain", "identity hooks", "save_on_cpu"])
@pytest.mark.parametrize("op", [mg.exp, mg.tanh, mg.sigmoid, lambda x: mg.softmax(x, 0), lambda x: x.clone().exp_()],
                         ids=["exp", "tanh", "sigmoid", "softmax", "exp_"])
def test_an_output_that_is_saved_is_freed_with_the_last_reference_to_it(op, hooks, no_gc):
    """[NOTE outputs-own-nothing] H4.  Upstream: pytorch/pytorch#115255, #189025: torch leaks under identity hooks."""
    x = t([1.0, 2.0], requires_grad=True)
    with hooks():
        y = op(x)
    memory, node = ref(y.untyped_storage()), ref(y.grad_fn)
    del y
    assert memory() is None and node() is None


def test_at_a_grad_level_too(no_gc):
    """[NOTE outputs-own-nothing] H4."""
    alive = Alive()

    def f(x):
        with identity():
            alive.see(mg.exp(alive.see(mg.exp(x))))
        assert alive.count() == 0
        return x * x
    grad(grad(f))(t(1.0))


def test_an_output_comes_back_with_its_edge():
    """[NOTE outputs-own-nothing] H4: double backward through exp."""
    for hooks in (nullcontext, identity):
        x = t(1.0, requires_grad=True)
        with hooks():
            y = mg.exp(x)
        (g,) = mg.autograd.grad(y, x, create_graph=True)
        assert mg.autograd.grad(g, x)[0].item() == pytest.approx(math.e)


# ---------------------------------------------------------------- H5: the version check under hooks
@pytest.mark.parametrize("order", [0, 1, 2])
@pytest.mark.parametrize("hooks", [nullcontext, identity], ids=["plain", "identity hooks"])
def test_writing_to_a_saved_tensor_is_an_error_at_every_level(hooks, order):
    """[NOTE aliasing-hooks] H5.  torch has no check under hooks."""
    def f(x):
        a = x * 1
        with hooks():
            y = a * a
        with mg.no_grad():
            a.mul_(10)
        return y

    with pytest.raises(UsageError, match="modified by an inplace operation"):
        if order:
            nth(order, f)(t(2.0))
        else:
            f(t(2.0, requires_grad=True)).backward()


@pytest.mark.parametrize("pack", [lambda s: ("cpu", s), lambda s: [s[:1], 3], lambda s: {"x": s.view(1, 2)}], ids=["tuple", "list", "dict"])
def test_an_alias_among_other_things_that_pack_returned_is_watched_too(pack):
    """[NOTE aliasing-hooks] H5."""
    a = t([2.0, 3.0], requires_grad=True) * 1
    with saved_tensors_hooks(pack, lambda packed: a.detach()):
        y = mg.sin(a)
    with mg.no_grad():
        a.mul_(10)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.sum().backward()


def test_memory_that_pack_goes_on_to_fill_is_no_alias():
    """[NOTE aliasing-hooks] H5: a place in a pool, in torch's way of packing a pair."""
    pool, places = mg.zeros(4, dtype=mg.float64), iter(range(4))

    def pack(s):
        place = next(places)
        pool[place] = s
        return pool, place
    x = t(1.0, requires_grad=True)
    with saved_tensors_hooks(pack, lambda packed: packed[0][packed[1]].clone()):
        y = chain(4)(x)
    y.backward()
    assert x.grad.item() == pytest.approx(nth(1, chain(4))(t(1.0)).item(), rel=1e-12)


def test_a_hook_that_copies_needs_no_check():
    """[NOTE aliasing-hooks] H5: the copy is the value at the time of the save.  Upstream: pytorch/pytorch#128545."""
    x = t(2.0, requires_grad=True)
    a = x * 1
    with saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
        y = a * a
    with mg.no_grad():
        a.mul_(10)
    y.backward()
    assert x.grad.item() == 4.0


def test_a_leaf_that_is_updated_before_its_backward_is_an_error_under_hooks_too():
    """[NOTE aliasing-hooks] H5.  Upstream: pytorch/pytorch#128545, where torch gives the gradient at the new weight."""
    w = t(2.0, requires_grad=True)
    with identity():
        y = w * w
    with mg.no_grad():
        w.fill_(100.0)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


# ---------------------------------------------------------------- H6: hooks that write, hooks that return something else
def test_a_pack_hook_that_writes_to_its_input_is_an_error_at_once():
    """[NOTE hooks-do-not-mutate] H6."""
    a = t(2.0, requires_grad=True) * 1
    with (saved_tensors_hooks(lambda s: s.mul_(10), lambda s: s),
          pytest.raises(UsageError, match=r"pack hook is modifying its input in place \(x0 of SinBackward0 at level 0\)")):
        mg.sin(a)


@pytest.mark.parametrize(("pack", "get"), [(lambda s: s.clone(), lambda p: p), (lambda s: (s.device, s.clone()), lambda p: p[1]),
                                           (lambda s: {"x": [s.clone()]}, lambda p: p["x"][0])], ids=["itself", "in a pair", "in a nest"])
def test_an_unpack_hook_that_writes_is_an_error_at_once(pack, get):
    """[NOTE hooks-do-not-mutate] H6."""
    x = t(2.0, requires_grad=True)
    with saved_tensors_hooks(pack, lambda packed: get(packed).mul_(2)):
        y = mg.sin(x)
    with pytest.raises(UsageError, match="unpack hook modified what pack returned"):
        y.backward()


def test_an_unpack_hook_that_writes_to_its_own_copy_is_harmless():
    """[NOTE hooks-do-not-mutate] H6."""
    x = t(2.0, requires_grad=True)
    with saved_tensors_hooks(lambda s: s.clone(), lambda s: s.clone().mul_(2).div_(2)):
        y = mg.sin(x)
    twice = [mg.autograd.grad(y, x, retain_graph=True)[0].item() for _ in range(2)]
    assert twice == pytest.approx([math.cos(2)] * 2)


@pytest.mark.parametrize(("unpack", "error", "text"), [
    (lambda s: 3, TypeError, "expected to be a Tensor but got result of type int"),
    (lambda s: None, TypeError, "got result of type NoneType"),
    (lambda s: mg.zeros(3, dtype=mg.float64), UsageError, r"\[3\] where minigrad.float64\[\] was saved"),
    (lambda s: s.to(mg.float32), UsageError, "same shape and dtype"),
], ids=["a number", "nothing", "another shape", "another dtype"])
def test_an_unpack_hook_that_returns_something_else_is_an_error_that_says_which_save(unpack, error, text):
    """[NOTE hooks-do-not-mutate] H6."""
    def f(x):
        with saved_tensors_hooks(lambda s: s, unpack):
            return mg.sin(x)
    with pytest.raises(error, match=text) as at_0:
        f(t(2.0, requires_grad=True)).backward()
    assert "(x0 of SinBackward0 at level 0)" in str(at_0.value)
    with pytest.raises(error, match=text) as at_2:
        grad(grad(f))(t(2.0))
    assert "(x0 of SinBackward0 at grad@2)" in str(at_2.value)


# ---------------------------------------------------------------- H7: hooks may be disabled
def test_disabling_hooks_refuses_with_the_message_and_nests():
    """[NOTE disabled-hooks] H7."""
    with disable_saved_tensors_hooks("not in here"):
        with pytest.raises(Refusal, match="not in here"), identity():
            pass
        with disable_saved_tensors_hooks("nor here"), pytest.raises(Refusal, match="nor here"):
            checkpoint(sin_sin, t(1.0, requires_grad=True))
        with pytest.raises(Refusal, match="not in here"), save_on_cpu():
            pass
    with identity():
        pass


def test_disabling_hooks_leaves_no_trace_after_an_error_inside_a_transform():
    """[NOTE disabled-hooks] H7.  torch: after a failing compile every later checkpoint of the thread is refused."""
    def f(x):
        with disable_saved_tensors_hooks("no"):
            raise ZeroDivisionError
    before = current()
    with pytest.raises(ZeroDivisionError):
        vmap(grad(f))(t([1.0]))
    assert current() is before
    assert grad(lambda x: checkpoint(sin_sin, x))(t(5.0)).item() == pytest.approx(nth(1, sin_sin)(t(5.0)).item())


def test_disabling_hooks_while_some_are_in_force_is_an_error():
    """[NOTE disabled-hooks] H7."""
    with identity(), pytest.raises(UsageError, match="while some are in force"), disable_saved_tensors_hooks("no"):
        pass


def test_a_refusal_can_be_told_from_an_error():
    """[NOTE disabled-hooks] H7."""
    with disable_saved_tensors_hooks("no"), pytest.raises(RuntimeError) as e, identity():
        pass
    assert e.value.refusal is True


def test_the_hooks_of_a_block_end_with_it_also_for_a_vjp_that_is_called_later():
    """[NOTE hooks-at-every-level] H2: saves of the forward went to the hooks, those of a later forward do not."""
    hooks = Packed()
    with hooks:
        _, pull = vjp(sin_sin, t(5.0))
    assert hooks.count == 2
    pull(t(1.0))
    assert (hooks.count, hooks.unpacked) == (2, 2)
