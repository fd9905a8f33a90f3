"""remat="every": the backward of a region is a region.  What is kept and what runs again at every order, and that nothing else changes."""

from __future__ import annotations

import math
import threading
from weakref import ref

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.autograd.graph import save_on_cpu
from minigrad.errors import CheckpointError, UsageError
from minigrad.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from minigrad.nn import functional as F
from minigrad.state import current, show
from minigrad.utils.checkpoint import GraphExecGroup, checkpoint, checkpoint_sequential, is_recomputing, set_checkpoint_remat
from tests.spec.instruments import Alive, Counted, Packed, arrays_kept, chain, every, no_garbage, nth, sin_sin, t
from tests.spec.test_checkpoint import BODIES, TRANSFORMS


def first(f):
    return lambda x: checkpoint(f, x, remat="first")


def offloaded(f):
    def g(x):
        with save_on_cpu():
            return f(x)
    return g


WRAPS = {
    "around it": every,
    "captured": lambda f: lambda x: checkpoint(lambda: f(x), remat="every"),
    "every in every": lambda f: every(lambda x: every(f)(x) * 1),
    "every in first": lambda f: first(lambda x: every(f)(x) * 1),
    "first in every": lambda f: every(lambda x: first(f)(x) * 1),
    "in save_on_cpu": lambda f: offloaded(every(f)),
    "around save_on_cpu": lambda f: every(offloaded(f)),
}


# ---------------------------------------------------------------- the value
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("wrap", ["around it", "every in first", "first in every"])
def test_a_program_means_the_plain_program(wrap, body, transform):
    """[NOTE remat-every] C11; regions inside the body too."""
    derive, x = TRANSFORMS[transform], t(0.7)
    with set_checkpoint_remat("first"):
        plain = derive(BODIES[body])(x)
    assert derive(WRAPS[wrap](BODIES[body]))(x).tolist() == pytest.approx(plain.tolist(), rel=1e-12)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("wrap", [every, lambda f: every(lambda x: mg.sin(every(f)(mg.exp(x))))], ids=["one", "nested"])
def test_a_region_between_other_ops_means_the_plain_program(wrap, body, transform):
    """[NOTE remat-every] C11: its nodes share a second run there."""
    def between(f):
        return lambda x: mg.cos(f(mg.sin(x))) * x
    derive, x = TRANSFORMS[transform], t(0.7)
    with set_checkpoint_remat("first"):
        plain = derive(between(wrap(BODIES[body])))(x)
    assert derive(between(wrap(BODIES[body])))(x).tolist() == pytest.approx(plain.tolist(), rel=1e-12)


@pytest.mark.parametrize("transform", ["grad grad", "vmap grad grad", "jvp grad", "jacfwd jacrev", "autograd.grad of grad"])
@pytest.mark.parametrize("wrap", WRAPS)
def test_it_means_the_same_wherever_the_region_stands(wrap, transform):
    """[NOTE remat-every] C11."""
    derive, x = TRANSFORMS[transform], t(0.7)
    for f in (sin_sin, BODIES["a captured matrix"], BODIES["in place"]):
        assert derive(WRAPS[wrap](f))(x).tolist() == pytest.approx(derive(f)(x).tolist(), rel=1e-12)


def test_linearize_and_its_function_mean_the_same():
    """[NOTE remat-every] C11."""
    x, dx = t([0.3, 0.7]), t([1.0, -2.0])
    out, push = linearize(every(sin_sin), x)
    want, plain = linearize(sin_sin, x)
    assert out.tolist() == want.tolist()
    assert push(dx).tolist() == plain(dx).tolist()
    assert jacrev(lambda dx: push(dx))(dx).tolist() == jacrev(lambda dx: plain(dx))(dx).tolist()


def test_closures_that_capture_tensors_of_several_levels_mean_the_same():
    """[NOTE remat-every] C11: no closure is converted; what the graph leads to outside of the region is a captured tensor."""
    def program(wrap):
        def outer(a, w):
            def inner(b):
                c = mg.sin(a * w)                          # of level 1 and level 0
                return wrap(lambda x: mg.sin(x * c) * mg.exp(a) * w)(b * a)
            return grad(inner)(a * a)
        w = t(0.8, requires_grad=True)
        g = grad(outer)(t(0.6), w)
        g.backward()
        return g.item(), w.grad.item()
    assert program(every) == pytest.approx(program(lambda f: f), rel=1e-12)


def test_an_input_that_another_input_was_made_of_gets_each_gradient_once():
    """[NOTE remat-every] C11: the walk ends where the region began."""
    def program(wrap):
        x = t(0.7, requires_grad=True)
        y = mg.sin(x)
        z = wrap(lambda x, y: mg.sin(x * y) * x)(x, y)
        (g,) = mg.autograd.grad(z, x, create_graph=True)
        return g.item(), mg.autograd.grad(g, x)[0].item()
    assert program(every) == pytest.approx(program(lambda f: f), rel=1e-12)


def test_pytrees_keywords_and_outputs_that_are_no_tensors_mean_the_same():
    """[NOTE remat-every] C11 C4."""
    def f(pair, *, named):
        a, [b] = pair
        return {"product": mg.sin(a * b) * named["c"], "count": 2, "sum": (mg.cos(a + b), None)}

    def program(wrap):
        a, b, c = (t(v, requires_grad=True) for v in (0.3, 0.5, 0.7))
        out = wrap(f)((a, [b]), named={"c": c})
        assert out["count"] == 2 and out["sum"][1] is None
        ga, gb, gc = mg.autograd.grad(out["product"] + out["sum"][0], (a, b, c), create_graph=True)
        return [g.item() for g in (ga, gb, gc, *mg.autograd.grad(ga * gb * gc, (a, b, c)))]
    assert program(every) == pytest.approx(program(lambda f: f), rel=1e-12)


@pytest.mark.parametrize("used", [0, 1, 2])
def test_outputs_that_are_not_used_cost_nothing(used):
    """[NOTE remat-every] C11."""
    def program(wrap):
        x = t(0.7, requires_grad=True)
        out = wrap(lambda x: (mg.sin(x), x, mg.exp(x) * 2))(x)
        return mg.autograd.grad(out[used], x)[0].item()
    assert program(every) == program(lambda f: f)


def test_an_output_given_back_as_it_came_keeps_its_own_history():
    """[NOTE remat-every] C11."""
    x = t(0.7, requires_grad=True)
    y = mg.sin(x)
    z, same = every(lambda y: (mg.exp(y), y))(y)
    assert same is y and y.grad_fn.name() == "SinBackward0"
    assert mg.autograd.grad(z * same, x)[0].item() == pytest.approx(
        (math.exp(math.sin(0.7)) * (1 + math.sin(0.7))) * math.cos(0.7))


def test_a_custom_function_in_the_region_means_the_same():
    """[NOTE remat-every] C11."""
    class Cube(mg.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, dx):
            return dx * 3 * ctx.saved_tensors[0] ** 2

    for order, right in enumerate((8.0, 12.0, 12.0, 6.0)):
        assert nth(order, every(Cube.apply))(t(2.0)).item() == right


# ---------------------------------------------------------------- what is kept
def per_layer(f, n):
    def run(x):
        for _ in range(n):
            x = f(x)
        return x
    return run


def test_a_chain_of_ten_keeps_one_array_more_at_each_order():
    """[NOTE remat-every] C11: the input and a cotangent for each order.  torch keeps 1, 29, 84; JAX 1, 2, 3."""
    assert arrays_kept(every(chain(10)), 3) == [1, 2, 3, 4]


def test_one_region_a_layer_keeps_its_input_and_the_cotangents_that_reach_it():
    """[NOTE remat-every] C11.  JAX keeps 10, 29, 83."""
    assert arrays_kept(per_layer(every(mg.sin), 10), 2) == [10, 20, 39]


def test_regions_in_a_region_keep_what_the_outermost_keeps():
    """[NOTE remat-every] C11."""
    assert arrays_kept(every(per_layer(every(mg.sin), 10)), 3) == [1, 2, 3, 4]


def test_a_region_that_captures_all_it_reads_keeps_the_cotangents():
    """[NOTE remat-every] C11: what is captured is the program's own."""
    assert arrays_kept(lambda x: checkpoint(lambda: chain(10)(x), remat="every"), 3) == [0, 1, 2, 3]


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_transform_keeps_the_input_and_a_cotangent_for_each_order_below(order):
    """[NOTE remat-every] C11: bytes that a vjp function keeps alive, in arrays of the input's size."""
    x = mg.linspace(0.3, 0.8, 50, dtype=mg.float64).to("sim")
    f = every(chain(10))
    for _ in range(order - 1):
        f = lambda x, f=f: grad(lambda x: f(x).sum())(x)
    before = mg.sim.memory_stats()["allocated_bytes.all.current"]
    out, pull = vjp(lambda x: f(x).sum(), x)
    kept = mg.sim.memory_stats()["allocated_bytes.all.current"] - before - 8
    assert kept <= (order - 1) * 400 + 8 * order and out.shape == () and pull is not None


def test_nothing_of_the_region_is_alive_between_its_runs(no_gc):
    """[NOTE remat-every] C11 [NOTE no-cycles]."""
    alive = Alive()

    def body(x):
        for _ in range(6):
            x = alive.see(mg.sin(x))
        return mg.sin(x)
    x = t(0.7, requires_grad=True)
    (g,) = mg.autograd.grad(every(body)(x), x, create_graph=True)
    (gg,) = mg.autograd.grad(g, x, create_graph=True)
    assert alive.count() == 0 and len(alive.refs) == 18 and gg.requires_grad


def test_a_second_run_is_gone_when_its_last_node_in_a_row_has_been_walked(no_gc):
    """[NOTE remat-every] C11: what is alive of it when the walk comes to what its input was made of."""
    alive, found, x = Alive(), [], t(0.7, requires_grad=True)

    def body(x):
        for _ in range(6):
            x = alive.see(mg.sin(x))
        return x
    h = mg.sin(x)
    (g,) = mg.autograd.grad(mg.sin(every(body)(h)), x, create_graph=True)
    h.register_hook(lambda g: found.append(alive.count()))
    mg.autograd.grad(g, x)
    assert found == [0] and len(alive.refs) == 18


def test_save_on_cpu_around_copies_the_inputs_and_the_cotangents():
    """[NOTE remat-every] C11 O1."""
    x = t([0.3, 0.7]).to("sim").requires_grad_()
    with (context := save_on_cpu()):
        y = every(chain(10))(x).sum()
        copies = [context.host_copies]
        for _ in range(2):
            y = mg.autograd.grad(y, x, create_graph=True)[0].sum()
            copies.append(context.host_copies)
    assert copies == [1, 2, 3]


# ---------------------------------------------------------------- what runs again
@pytest.mark.parametrize("order", [0, 1, 2, 3, 4])
def test_the_function_has_run_once_more_at_each_order(order):
    """[NOTE remat-every] C11: k + 1 runs at order k."""
    f = Counted(sin_sin)
    nth(order, every(f))(t(0.7))
    assert f.calls == order + 1


def product(x, y, z=1.0):
    return mg.sin(x) * y * z


def captures(x, region):
    c = mg.sin(x)
    return region(lambda x: mg.sin(x) * c)(x)


ONE_REGION = {
    "unrelated inputs": (lambda x, region: region(product)(x, 2.0), [1, 2, 3, 4]),
    "two related inputs": (lambda x, region: region(product)(x, mg.sin(x)), [2, 5, 11, 22]),
    "three related inputs": (lambda x, region: region(product)(x, mg.sin(x), mg.exp(x)), [3, 7, 15, 29]),
    "a captured tensor made of an input": (captures, [1, 4, 10, 21]),
    "ops before": (lambda x, region: region(sin_sin)(mg.sin(x)), [2, 5, 11, 22]),
    "ops after": (lambda x, region: mg.sin(region(sin_sin)(x)), [2, 4, 8, 16]),
    "a region inside": (lambda x, region: mg.sin(region(lambda x: mg.sin(every(sin_sin)(x)))(mg.sin(x))), [3, 7, 16, 34]),
}
"""What else is in a program of one region, and the arrays kept for orders 0 to 3."""


@pytest.mark.parametrize("program", ONE_REGION)
def test_a_region_runs_once_more_at_each_order_wherever_its_values_go(program):
    """[NOTE remat-every] C11: whatever nodes of it a backward comes to, one second run serves them all."""
    f, x = ONE_REGION[program][0], t(0.7)
    for order in range(5):
        bodies = []

        def region(body, bodies=bodies):
            bodies.append(Counted(body))
            return every(bodies[-1])
        value = nth(order, lambda x, region=region: f(x, region))(x).item()
        assert [body.calls for body in bodies] == [order + 1]
        assert value == pytest.approx(nth(order, lambda x: f(x, lambda body: body))(x).item(), rel=1e-12)


@pytest.mark.parametrize("program", ONE_REGION)
def test_a_second_run_for_several_nodes_keeps_no_more_between_backwards(program):
    """[NOTE remat-every] C11: what each of them kept when it had a run of its own."""
    f, kept = ONE_REGION[program]
    assert arrays_kept(lambda x: f(x, every), 3) == kept


def test_level_0_obeys_the_same_law():
    """[NOTE remat-every] C11: with create_graph the region's backward is a region of the same level."""
    f, x, runs = Counted(sin_sin), t(0.7, requires_grad=True), []
    y = every(f)(x)
    for _ in range(4):
        runs.append(f.calls)
        (y,) = mg.autograd.grad(y, x, create_graph=True)
    assert [*runs, f.calls] == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("program", ONE_REGION)
def test_level_0_obeys_the_same_law_wherever_the_values_go(program):
    """[NOTE remat-every] C11."""
    bodies, x = [], t(0.7, requires_grad=True)

    def region(body):
        bodies.append(Counted(body))
        return every(bodies[-1])
    y = ONE_REGION[program][0](x, region)
    for order in range(1, 4):
        (y,) = mg.autograd.grad(y, x, create_graph=True)
        assert [body.calls for body in bodies] == [order + 1]
    assert y.item() == pytest.approx(nth(3, lambda x: ONE_REGION[program][0](x, lambda body: body))(t(0.7)).item(), rel=1e-12)


@pytest.mark.parametrize(("derive", "runs"), [
    (jacrev, 2), (lambda f: hessian(f), 2), (lambda f: jacrev(jacrev(f)), 3), (lambda f: jacrev(jacfwd(f)), 2),
    (lambda f: jacfwd(f), 1), (lambda f: lambda x: vmap(f)(mg.stack([x, x])), 1),
    (lambda f: lambda x: jvp(grad(f), (x,), (x,)), 2)])
def test_only_reverse_mode_runs_it_again(derive, runs):
    """[NOTE remat-every] C11: forward mode and batching go along with a run; each backward is one more."""
    f = Counted(sin_sin)
    derive(every(f))(t(0.7))
    assert f.calls == runs


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_regions_nested_k_deep_run_their_body_as_often_as_there_are_ways_down(depth, order):
    """[NOTE remat-every] C11: a backward in each depth, and so at each order: binomial(depth + order, order) runs."""
    f = Counted(sin_sin)
    region = f
    for _ in range(depth):
        region = every(region)
    nth(order, region)(t(0.7))
    assert f.calls == math.comb(depth + order, order)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_a_region_in_a_region_runs_once_more_for_each_walk_of_the_one_around(order):
    """[NOTE remat-every] C11: a node of order a is walked at a levels, of which each runs what is inside again."""
    outer, inner = Counted(lambda x: mg.sin(every(inner)(mg.sin(x)))), Counted(sin_sin)
    nth(order, lambda x: mg.sin(every(outer)(mg.sin(x))))(t(0.7))
    assert (outer.calls, inner.calls) == (order + 1, order + 1 + order * 2 ** (order - 1))


@pytest.mark.parametrize("layers", [5, 10, 20])
def test_the_layers_of_a_region_of_the_first_kind_share_its_recomputation(layers):
    """[NOTE remat-every] C11: their inputs are recomputed for all of them at once, at the second order too."""
    f = Counted(mg.sin)
    nth(2, first(per_layer(every(f), layers)))(t(0.7))
    assert f.calls == 7 * layers - 5


def test_a_backward_to_some_inputs_runs_only_what_leads_there():
    """[NOTE remat-every] C11: partial inputs."""
    seen = []

    def region(x, y):
        a, b = mg.sin(x), mg.exp(y)
        a.register_hook(lambda g: seen.append("a"))
        b.register_hook(lambda g: seen.append("b"))
        return a * b
    x, y = t(0.3, requires_grad=True), t(0.5, requires_grad=True)
    (g,) = mg.autograd.grad(every(region)(x, y), y)
    assert seen == ["b"] and g.item() == pytest.approx(math.sin(0.3) * math.exp(0.5))


@pytest.mark.parametrize("inputs", ["x", "w", "both"])
def test_backward_accumulates_into_the_inputs_that_were_asked_for(inputs):
    """[NOTE remat-every] C11: partial inputs, one of them captured."""
    x, w = t(0.3, requires_grad=True), t(0.5, requires_grad=True)
    asked = {"x": [x], "w": [w], "both": [x, w]}[inputs]
    every(lambda x: mg.sin(x * w))(x).backward(inputs=asked)
    assert [v.grad is not None for v in (x, w)] == [inputs in ("x", "both"), inputs in ("w", "both")]
    assert asked[0].grad.item() == pytest.approx(math.cos(0.15) * (0.5 if asked[0] is x else 0.3))


def test_a_graph_that_is_retained_can_be_run_again():
    """[NOTE remat-every] C11: retain_graph."""
    f, x = Counted(sin_sin), t(0.7, requires_grad=True)
    y = every(f)(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == pytest.approx(2 * math.cos(0.7) * math.cos(math.sin(0.7))) and f.calls == 3
    with pytest.raises(UsageError, match=r"already been freed\), here those of CheckpointBackward"):
        y.backward()


def test_a_vjp_function_may_be_called_often_and_under_vmap_after_its_level_has_gone():
    """[NOTE remat-every] C1 C11."""
    _, pull = vjp(every(sin_sin), t([0.3, 0.7]))
    want = [math.cos(v) * math.cos(math.sin(v)) for v in (0.3, 0.7)]
    for _ in range(2):
        assert pull(t([1.0, 1.0]))[0].tolist() == pytest.approx(want)
    np.testing.assert_allclose(vmap(pull)(t([[1.0, 0.0], [0.0, 1.0]]))[0].tolist(), np.diag(want), rtol=1e-12)


def test_the_backward_of_a_batched_region_runs_after_vmap_has_returned():
    """[NOTE remat-every] C1 C11."""
    x = t([0.3, 0.7], requires_grad=True)
    y = vmap(every(sin_sin))(x)
    (g,) = mg.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = mg.autograd.grad(g.sum(), x)
    assert gg.tolist() == pytest.approx(vmap(nth(2, sin_sin))(t([0.3, 0.7])).tolist())


def test_a_backward_in_another_thread_means_the_same():
    """[NOTE remat-every] C1 C11."""
    x = t(0.7, requires_grad=True)
    y = every(sin_sin)(x)
    thread = threading.Thread(target=y.backward)
    thread.start()
    thread.join()
    assert x.grad.item() == pytest.approx(math.cos(0.7) * math.cos(math.sin(0.7)))


# ---------------------------------------------------------------- hooks, views, what gets out
def test_a_hook_on_an_intermediate_runs_once_and_may_change_the_gradient():
    """[NOTE remat-every] C11: the second run registers it again, on the graph that is used."""
    calls = []

    def region(x):
        h = mg.sin(x)
        h.register_hook(lambda g: calls.append(is_recomputing()) or g * 2)
        return mg.sin(h)
    x = t(0.7, requires_grad=True)
    every(region)(x).backward()
    assert x.grad.item() == pytest.approx(2 * math.cos(0.7) * math.cos(math.sin(0.7))) and calls == [False]


def test_hooks_that_change_gradients_mean_the_same_at_the_next_order():
    """[NOTE remat-every] C11."""
    def region(x):
        h = mg.sin(x)
        h.register_hook(lambda g: g * g)
        return mg.sin(h) * h

    def program(wrap):
        x = t(0.7, requires_grad=True)
        (g,) = mg.autograd.grad(wrap(region)(x), x, create_graph=True)
        return g.item(), mg.autograd.grad(g, x)[0].item()
    assert program(every) == pytest.approx(program(lambda f: f), rel=1e-12)


def test_hooks_on_what_the_region_takes_run_once_for_each_backward():
    """[NOTE remat-every] C11: the walk of a region tells nobody outside of it."""
    x, w, calls = t(0.7, requires_grad=True), t(0.5, requires_grad=True), []
    a = x * 1
    for name, leaf in (("x", x), ("w", w), ("a", a)):
        leaf.register_hook(lambda g, name=name: calls.append(name))
    w.register_post_accumulate_grad_hook(lambda w: calls.append("accumulated"))
    every(lambda a: mg.sin(a * w))(a).backward()
    assert sorted(calls) == ["a", "accumulated", "w", "x"]


def test_an_output_keeps_the_gradient_that_the_region_asked_it_to_retain():
    """[NOTE remat-every] C11."""
    def region(x):
        y = mg.sin(x)
        y.retain_grad()
        return y
    x = t(0.7, requires_grad=True)
    y = every(region)(x)
    (y * 3).backward()
    assert y.grad.item() == 3.0


def test_an_intermediate_that_got_out_keeps_its_gradient():
    """[NOTE remat-every] C11: what somebody waits for is not cut off."""
    out = []

    def region(x):
        h = mg.sin(x)
        h.retain_grad()
        out.append(h)
        return mg.sin(h)
    x = t(0.7, requires_grad=True)
    every(region)(x).backward()
    assert out[0].grad.item() == pytest.approx(math.cos(math.sin(0.7)))
    assert x.grad.item() == pytest.approx(math.cos(0.7) * math.cos(math.sin(0.7)))


def test_a_leaf_that_the_region_makes_gets_its_gradient():
    """[NOTE remat-every] C11: what somebody waits for is not cut off."""
    out = []

    def region(x):
        w = t(2.0, requires_grad=True)
        out.append(w)
        return mg.sin(x * w)
    x = t(0.7, requires_grad=True)
    every(region)(x).backward()
    assert out[0].grad.item() == pytest.approx(0.7 * math.cos(1.4)) and x.grad.item() == pytest.approx(2 * math.cos(1.4))


def test_an_intermediate_that_got_out_is_differentiated_as_ever():
    """[NOTE remat-every] C11: its graph is recomputed as remat="first" does."""
    out, f = [], Counted(lambda x: out.append(mg.sin(x)) or mg.sin(out[-1]))
    x = t(0.7, requires_grad=True)
    y = every(f)(x)
    out[0].backward()
    assert x.grad.item() == pytest.approx(math.cos(0.7)) and f.calls == 2 and y.requires_grad


@pytest.mark.parametrize("write", [lambda y: y.mul_(2), lambda y: y[0].mul_(2), lambda y: y.view(-1).mul_(2)])
def test_an_output_may_be_written_to_afterwards(write):
    """[NOTE remat-every] C11 [NOTE in-place]."""
    def program(wrap):
        x = t([0.3, 0.7], requires_grad=True)
        y = wrap(lambda x: mg.exp(mg.sin(x)) * x)(x)
        write(y)
        (g,) = mg.autograd.grad((y * y).sum(), x, create_graph=True)
        return [*g.tolist(), *mg.autograd.grad(g.sum(), x)[0].tolist()]
    assert program(every) == pytest.approx(program(lambda f: f), rel=1e-12)


def test_a_view_that_the_region_returns_may_be_written_to_afterwards():
    """[NOTE remat-every] C11 [NOTE in-place]."""
    def program(wrap):
        x = t([[0.3, 0.7], [0.1, 0.2]], requires_grad=True)
        y = wrap(lambda x: mg.sin(x)[0])(x)
        y.mul_(3)
        return mg.autograd.grad((y * y).sum(), x)[0].tolist()
    assert program(every) == program(lambda f: f)


def test_the_hooks_in_force_see_the_inputs_once_and_each_cotangent_once():
    """[NOTE remat-every] C11 H2."""
    x = t([0.3, 0.7], requires_grad=True)
    with (packs := Packed()):
        y = every(chain(10))(x).sum()
        assert packs.count == 1
        mg.autograd.grad(y, x, create_graph=True)
        assert packs.count == 2


def test_hooks_see_nothing_of_a_level_that_has_gone():
    """[NOTE remat-every] C11: a second run under the captured levels saves with the hooks outside for levels that are there."""
    def inner(x):
        return vjp(every(sin_sin), x)[1]
    kept = []
    grad(lambda x: kept.append(inner(x)) or x * 1)(t(0.7))
    with (packs := Packed()):
        kept[0](t(1.0))
    assert packs.count == 1                                # the cotangent, by the region at level 0


# ---------------------------------------------------------------- randomness, safety, errors
def test_dropout_is_replayed_at_every_order():
    """[NOTE remat-every] C6 C11."""
    def f(x):
        return (mg.sin(F.dropout(mg.sin(x), 0.5)) * F.dropout(x, 0.5)).sum()

    def program(wrap):
        mg.manual_seed(3)
        g = grad(lambda x: (grad(wrap(f))(x) ** 2).sum())(mg.linspace(0.1, 0.9, 8, dtype=mg.float64))
        return [*g.tolist(), mg.rand(()).item()]
    assert program(every) == program(lambda f: f)


def test_vmap_randomness_is_replayed():
    """[NOTE remat-every] C6 C11."""
    def program(wrap):
        mg.manual_seed(3)
        return vmap(nth(2, wrap(lambda x: mg.sin(x * mg.rand((), dtype=x.dtype)))), randomness="different")(t([0.3, 0.7])).tolist()
    assert program(every) == program(lambda f: f)


@pytest.mark.parametrize("order", [1, 2])
def test_a_captured_tensor_that_was_written_to_is_an_error(order):
    """[NOTE captured-tensors] C5 C11: at every order; torch is silently wrong."""
    x, w = t(0.7, requires_grad=True), t(2.0)
    y = every(lambda x: mg.sin(x * w))(x)
    for _ in range(order - 1):
        (y,) = mg.autograd.grad(y, x, create_graph=True)
    w.mul_(3)
    with pytest.raises(CheckpointError, match="modified by an inplace operation"):
        mg.autograd.grad(y, x)


@pytest.mark.parametrize("order", [1, 2])
def test_an_input_that_was_written_to_is_an_error(order):
    """[NOTE captured-tensors] C5 C11."""
    x = t(0.7, requires_grad=True)
    a = x * 1
    y = every(mg.sin)(a)
    for _ in range(order - 1):
        (y,) = mg.autograd.grad(y, x, create_graph=True)
    a.mul_(3)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        mg.autograd.grad(y, x)


@pytest.mark.parametrize(("change", "message"), [
    (lambda x, n: mg.sin(x) if n == 1 else mg.sin(mg.sin(x)), "trying to save more tensors"),
    (lambda x, n: mg.sin(mg.sin(x)) if n == 1 else mg.sin(x), "different number of tensors"),
    (lambda x, n: mg.sin(x) if n == 1 else mg.sin(x.float()), "different metadata"),
    (lambda x, n: (mg.neg(x), 1) if n == 1 else (1, mg.neg(x), -x), "2 have in the recomputation"),
])
def test_a_function_that_does_something_else_the_second_time_is_an_error(change, message):
    """[NOTE recomputation-is-checked] C7 C11."""
    runs = []
    x = t(0.7, requires_grad=True)
    out = every(lambda x: runs.append(1) or change(x, len(runs)))(x)
    with pytest.raises(CheckpointError, match=message):
        mg.autograd.grad(out[0] if isinstance(out, tuple) else out, x)


def test_checksums_are_compared_where_that_is_asked_for():
    """[NOTE recomputation-is-checked] C7 C11."""
    runs, x = [], t(0.7, requires_grad=True)
    y = every(lambda x: runs.append(1) or mg.sin(x * len(runs)))(x, determinism_check="values")
    with pytest.raises(CheckpointError, match="checksums"):
        y.backward()


def test_a_captured_tensor_that_the_region_changes_is_an_error():
    """[NOTE remat-every] C11: the second run reaches another edge than the first did."""
    x = t(0.7, requires_grad=True)
    c = x * 1
    y = every(lambda x: mg.sin(c.mul_(2)) * x)(x)
    with pytest.raises(CheckpointError, match="reaches a tensor outside of the region that the forward did not"):
        y.backward()


def test_a_backward_inside_accumulates_once_at_every_order():
    """[NOTE side-effects-once] C8 C11."""
    def program(wrap):
        x, w = t(0.7, requires_grad=True), t(0.5, requires_grad=True)

        def region(x):
            mg.sin(w * x.detach()).backward()
            return mg.sin(x)
        (g,) = mg.autograd.grad(wrap(region)(x), x, create_graph=True)
        return mg.autograd.grad(g, x)[0].item(), w.grad.item()
    assert program(every) == pytest.approx(program(lambda f: f))


def test_a_function_can_ask_whether_it_runs_again():
    """[NOTE side-effects-once] C8 C11."""
    asked = []
    nth(2, every(lambda x: asked.append(is_recomputing()) or mg.sin(x)))(t(0.7))
    assert asked == [False, True, True]


def test_an_error_in_the_second_run_leaves_no_trace():
    """[NOTE remat-every] C11 H7."""
    runs, x = [], t(0.7, requires_grad=True)

    def region(x):
        runs.append(1)
        if len(runs) > 2:
            raise KeyError
        return sin_sin(x)
    (g,) = mg.autograd.grad(every(region)(x), x, create_graph=True)
    before = current()
    with pytest.raises(KeyError):
        mg.autograd.grad(g, x, retain_graph=True)
    assert current() is before and show() == "base"
    runs.clear()
    assert mg.autograd.grad(g, x)[0].item() == pytest.approx(nth(2, sin_sin)(t(0.7)).item())


@pytest.mark.parametrize("fails", [False, True])
def test_no_cycle_is_made_at_any_order(fails):
    """[NOTE no-cycles] C11."""
    def program():
        runs, x = [], t(0.7, requires_grad=True)

        def region(x):
            runs.append(1)
            if fails and len(runs) == 3:
                raise KeyError
            return sin_sin(x)
        y = mg.sin(every(region)(mg.sin(x)))
        (g,) = mg.autograd.grad(y, x, create_graph=True)
        try:
            mg.autograd.grad(g, x, create_graph=True)
        except KeyError:
            return "failed"
        return "ran"
    with no_garbage():
        assert program() == ("failed" if fails else "ran")


def test_the_region_is_freed_with_its_output(no_gc):
    """[NOTE no-cycles] C11."""
    class Big:
        pass
    big = Big()
    freed = ref(big)
    y = every(lambda x, _: mg.sin(x))(t(0.7, requires_grad=True), big)
    del big
    assert freed() is not None and y.requires_grad
    del y
    assert freed() is None


def test_what_the_region_keeps_is_freed_with_its_backward(no_gc):
    """[NOTE remat-every] C11."""
    alive, x = Alive(), t(0.7, requires_grad=True)
    y = every(sin_sin)(alive.see(x * 1))
    assert alive.count() == 1
    y.backward()
    assert alive.count() == 0 and y.requires_grad


def test_nothing_recurses_with_the_number_of_regions(no_gc):
    """[NOTE remat-every] C11."""
    x = t(0.001, requires_grad=True)
    y = per_layer(every(mg.sin), 3000)(x)
    (g,) = mg.autograd.grad(y, x, create_graph=True)
    assert 0 < g.item() < 1 and g.requires_grad
    del y, g


# ---------------------------------------------------------------- asking for it
def test_it_is_an_option_of_the_decorator_and_of_checkpoint_sequential():
    """[NOTE remat-every] C11."""
    x = t(0.7, requires_grad=True)
    assert checkpoint(remat="every")(mg.sin)(x).grad_fn.name() == "CheckpointBackward"
    y = checkpoint_sequential([mg.sin, mg.exp, mg.cos], 3, x, remat="every")
    assert [y.grad_fn.name(), y.grad_fn.next_functions[0][0].name()] == ["CosBackward0", "CheckpointBackward"]


def test_a_context_overrules_what_the_call_says():
    """[NOTE remat-every] C11."""
    kept = []
    for said in ("first", "every"):
        with set_checkpoint_remat(said):
            kept.append([arrays_kept(lambda x, r=r: checkpoint(chain(10), x, remat=r), 1) for r in ("first", "every")])
    assert kept == [[[1, 29]] * 2, [[1, 2]] * 2] and current().remat is None


def test_another_word_is_an_error():
    """[NOTE remat-every] C11."""
    with pytest.raises(ValueError, match="remat must be 'first' or 'every', found 'all'"):
        checkpoint(mg.sin, t(0.7), remat="all")


def test_second_derivatives_are_those_of_torch():
    """[NOTE remat-every] C11."""
    data = np.linspace(-1, 1, 6).reshape(2, 3)
    weight = np.linspace(0.2, 1.1, 9).reshape(3, 3)

    def program(lib, wrap):
        x, w = (lib.tensor(a, requires_grad=True) for a in (data, weight))
        y = wrap(lambda x: lib.tanh(x @ w).exp())(x).sum()
        gx, gw = lib.autograd.grad(y, (x, w), create_graph=True)
        return [g.tolist() for g in lib.autograd.grad((gx * gx).sum() + gw.sum(), (x, w))]
    mine, theirs = program(mg, every), program(torch, lambda f: f)
    for a, b in zip(mine, theirs, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_each_backward_in_a_group_runs_the_region_again():
    """[NOTE remat-every] C11 [NOTE one-group]: there is nothing that one of them could leave for the next."""
    f, x = Counted(lambda x: (mg.sin(x), mg.cos(x))), t(0.7, requires_grad=True)
    a, b = every(f)(x)
    with GraphExecGroup():
        a.backward(retain_graph=True)
        b.backward()
    assert f.calls == 3 and x.grad.item() == pytest.approx(math.cos(0.7) - math.sin(0.7))


def test_a_region_entered_in_a_backward_does_not_keep_the_run():
    """[NOTE remat-every] [NOTE no-cycles]  What the run found has edges at level 0, which lead to the region."""
    def program():
        w = t([0.3, 0.5], requires_grad=True)
        _, pull = vjp(every(lambda x: checkpoint(lambda x: x.sum() * w.tanh(), x)), w)
        return pull(t([1.0, 2.0]))[0].tolist()
    with no_garbage():
        program()
