"""The engine: what backward, autograd.grad and hooks mean, and that nothing recurses with the length of a graph."""

from __future__ import annotations

import math
import warnings
from weakref import ref

import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import grad, vmap
from minigrad.utils._python_dispatch import TorchDispatchMode
from tests.spec.instruments import chain, nth, sin_sin, t

pytestmark = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")  # torch's, about its own cycle


def leaf(lib, *data):
    return lib.tensor(list(data) if len(data) > 1 else data[0], dtype=lib.float64, requires_grad=True)


def both(program):
    """What a program gives on minigrad and on torch, tensors as lists."""
    return [plain(program(lib)) for lib in (mg, torch)]


def plain(x):
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    if isinstance(x, dict):
        return {k: plain(v) for k, v in x.items()}
    return x.tolist() if hasattr(x, "tolist") else x


def agree(program):
    got, want = both(program)
    assert _close(got, want), (got, want)


def _close(a, b):
    if isinstance(a, list):
        return len(a) == len(b) and all(_close(x, y) for x, y in zip(a, b, strict=True))
    return a == pytest.approx(b, rel=1e-12) if isinstance(a, float) else a == b


# ---------------------------------------------------------------- accumulation
def test_gradients_accumulate_in_leaves():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 1.0, 2.0)
        for k in range(3):
            (x * x * k).sum().backward()
        return x.grad
    agree(program)


def test_a_gradient_that_accumulates_is_the_leafs_own_memory():
    """[NOTE age-of-nodes]  c = a + b hands the same cotangent to both: writing to a.grad must not change b.grad."""
    a, b = leaf(mg, 1.0, 2.0), leaf(mg, 3.0, 4.0)
    ct = t([1.0, 1.0])
    (a + b).backward(ct)
    a.grad.mul_(10)
    assert (a.grad.tolist(), b.grad.tolist(), ct.tolist()) == ([10.0, 10.0], [1.0, 1.0], [1.0, 1.0])
    (a + b).backward(ct)
    assert (a.grad.tolist(), ct.tolist()) == ([11.0, 11.0], [1.0, 1.0])


def test_accumulation_writes_into_the_gradient_that_is_there_unless_it_has_a_graph():
    """[NOTE age-of-nodes]  As torch: in place without create_graph, out of place with it."""
    def program(lib):
        x = leaf(lib, 2.0, 3.0)
        (x * x).sum().backward()
        first = x.grad
        (x * x).sum().backward()
        same = x.grad is first
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # it may be a reference cycle
            (x * x * x).sum().backward(create_graph=True)
        return same, first, x.grad.requires_grad, x.grad.detach()
    agree(program)


def diamond(lib, x):
    a = x * x
    return a + lib.sin(a)


def two_diamonds(lib, x):
    a = lib.exp(x)
    return a * a + lib.sin(a) * x


def one_leaf_four_times(lib, x):
    return x * x * x * x


def fan(lib, x):
    return sum(lib.sin(x * k) for k in range(1, 6))


def two_outputs_of_one_node(lib, x):
    a, b = x.unbind()
    return lib.sin(a * b) + a


@pytest.mark.parametrize("body", [diamond, two_diamonds, one_leaf_four_times, fan, two_outputs_of_one_node])
def test_a_node_runs_when_its_cotangent_is_complete(body):
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 0.5, 0.7)
        body(lib, x).sum().backward()
        (g,) = lib.autograd.grad(body(lib, x).sum(), x, create_graph=True)
        (gg,) = lib.autograd.grad(g.sum(), x)
        return x.grad, gg
    agree(program)


# ---------------------------------------------------------------- backward and autograd.grad, option by option
def test_a_graph_is_used_once_unless_it_is_retained():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 0.5)
        y = lib.sin(lib.exp(x))
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()
        return x.grad
    agree(program)


def test_a_graph_that_saves_nothing_can_be_used_again():
    """[NOTE age-of-nodes]  As torch: what is freed is the saved tensors."""
    def program(lib):
        x = leaf(lib, 0.5)
        y = (x + x).sum()
        y.backward()
        y.backward()
        return x.grad
    agree(program)


def test_create_graph_records_the_backward_and_retains_the_graph():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x, found = leaf(lib, 0.5), []
        y = lib.sin(lib.exp(x))
        for _ in range(3):
            (y,) = lib.autograd.grad(y, x, create_graph=True)
            found.append(y.detach())
        return found
    agree(program)


def test_an_input_that_was_not_used_is_an_error_or_none_or_zeros():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x, z = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
        y = (x * x).sum()
        with pytest.raises(RuntimeError, match="not have been used in the graph"):
            lib.autograd.grad(y, [x, z], retain_graph=True)
        with pytest.raises(ValueError, match="allow_unused"):
            lib.autograd.grad(y, [x, z], allow_unused=False, materialize_grads=True, retain_graph=True)
        return (lib.autograd.grad(y, [x, z], allow_unused=True, retain_graph=True),
                lib.autograd.grad(y, [x, z], materialize_grads=True))
    agree(program)


def test_a_backward_asks_for_no_op_that_its_nodes_do_not():
    """[NOTE dispatch-modes]"""
    seen = []

    class Sees(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x, ct = leaf(mg, 1.0, 2.0), mg.ones(2, dtype=mg.float64)
    y = x.sin()
    with Sees():
        mg.autograd.grad(y, x, ct)
    assert seen == ["cos", "mul"]


def test_batched_cotangents_give_a_jacobian():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 1.0, 2.0)
        y = lib.sin(x) * x.sum()
        return lib.autograd.grad(y, x, lib.eye(2, dtype=lib.float64), is_grads_batched=True)
    agree(program)


def test_inputs_restrict_what_accumulates():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x, w = leaf(lib, 1.0), leaf(lib, 2.0)
        h = x * w
        h.retain_grad()
        k = h * 2
        (h * k).backward(inputs=[x, h, k])
        return x.grad, w.grad, h.grad, k.grad, k.retains_grad
    agree(program)


def test_gradients_of_tensors_that_are_no_leaves():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 1.0, 2.0)
        a = x * x
        b = lib.sin(a)
        return lib.autograd.grad((a * b).sum(), [a, b, x])
    agree(program)


def test_a_tensor_asked_for_as_input_and_output_has_gradient_one():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 2.0)
        y = x * x
        return lib.autograd.grad(y, [y, x], retain_graph=True), lib.autograd.grad(x, x)
    agree(program)


def test_several_outputs_with_cotangents_are_summed():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x = leaf(lib, 1.0, 2.0)
        y, z = x * 2, x * x
        lib.autograd.backward([y, z], [lib.ones_like(y), lib.full_like(z, 3.0)])
        return x.grad, lib.autograd.grad([(x * 3).sum(), (x * x).sum()], x)
    agree(program)


@pytest.mark.parametrize(("program", "text"), [
    (lambda lib: lib.ones(2).sum().backward(), "does not require grad and does not have a grad_fn"),
    (lambda lib: (leaf(lib, 1.0, 2.0) * 2).backward(), "grad can be implicitly created only for scalar outputs"),
    (lambda lib: (leaf(lib, 1.0, 2.0) * 2).backward(lib.ones(3)), r"Mismatch in shape: grad_output\[0\] has a shape of"),
    (lambda lib: lib.autograd.grad(leaf(lib, 1.0) * 2, lib.ones(())), "does not require grad"),
    (lambda lib: (leaf(lib, 1.0) * 2).backward(inputs=[lib.ones(())]), "can't retain_grad on Tensor that has requires_grad=False"),
    (lambda lib: (leaf(lib, 1.0) * 2).backward(inputs=[]), "cannot be empty"),
], ids=["no graph", "no scalar", "shape", "input without grad", "inputs without grad", "no inputs"])
def test_a_call_that_makes_no_sense_is_refused_in_torchs_words(program, text):
    """[NOTE age-of-nodes]"""
    for lib in (mg, torch):
        with pytest.raises(RuntimeError, match=text):
            program(lib)


# ---------------------------------------------------------------- hooks
def test_hooks_run_in_torchs_order_and_see_torchs_values():
    """[NOTE age-of-nodes]  Upstream: pytorch/pytorch#85849."""
    def program(lib):
        log = []
        x = leaf(lib, 2.0)
        a = x * 3
        a.register_hook(lambda g: log.append(["tensor 1", g.item()]) or g * 2)
        a.retain_grad()
        a.register_hook(lambda g: log.append(["tensor 2", g.item()]))
        a.grad_fn.register_prehook(lambda gs: log.append(["pre", gs[0].item()]) or (gs[0] * 5,))
        a.grad_fn.register_hook(lambda gin, gout: log.append(["post", gin[0].item(), gout[0].item()]))
        x.register_hook(lambda g: log.append(["leaf", g.item()]))
        x.register_post_accumulate_grad_hook(lambda p: log.append(["accumulated", p.grad.item()]))
        (a * a).backward()
        return log, a.grad, x.grad
    agree(program)


RETURNED = {
    "has changed the size of value": lambda g: g[:1],
    "has changed the type of value": lambda g: g.float(),
    "expected Variable, but hook returned 'float'": lambda g: 2.0,
}


@pytest.mark.parametrize("text", RETURNED)
def test_what_a_hook_returns_is_as_what_it_was_given(text):
    """[NOTE hooks-of-gradients]"""
    def program(lib):
        x = leaf(lib, 1.0, 2.0)
        y = x.sin()
        y.register_hook(RETURNED[text])
        with pytest.raises((RuntimeError, TypeError)) as error:
            y.sum().backward()
        return text in str(error.value), x.grad is None
    agree(program)


@pytest.mark.parametrize("where", ["before a node", "after a node", "before an accumulation"])
def test_a_gradient_that_a_hook_takes_away_goes_nowhere(where):
    """[NOTE hooks-of-gradients]"""
    def program(lib):
        x, z = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
        y = x * z
        accumulation = y.grad_fn.next_functions[0][0]
        {"before a node": lambda: y.grad_fn.register_prehook(lambda gs: (None,)),
         "after a node": lambda: y.grad_fn.register_hook(lambda gs, cts: (None, gs[1])),
         "before an accumulation": lambda: accumulation.register_prehook(lambda gs: (None,))}[where]()
        y.sum().backward()
        return [v.grad is None for v in (x, z)]
    agree(program)


def test_a_hook_after_an_accumulation_returns_nothing():
    """[NOTE hooks-of-gradients]"""
    def program(lib):
        x = leaf(lib, 1.0, 2.0)
        y = x.sin()
        y.grad_fn.next_functions[0][0].register_hook(lambda gs, cts: cts)
        with pytest.raises(RuntimeError, match=r"incorrect number of values \(got 1, but expected 0\)"):
            y.sum().backward()
        return x.grad
    agree(program)


def test_hooks_hear_what_leads_to_an_input():
    """[NOTE hooks-of-gradients]"""
    def program(lib):
        x, w, heard = leaf(lib, 1.0), leaf(lib, 2.0), []
        y = x.sin()
        for name, v in (("x", x), ("y", y), ("w", w)):
            v.register_hook(lambda g, name=name: heard.append(name))
        lib.autograd.backward([y, x, w * 2], inputs=[w])
        return heard, [v.grad for v in (x, w)]
    agree(program)


def test_a_hook_that_is_removed_runs_no_more():
    """[NOTE age-of-nodes]"""
    def program(lib):
        log, x = [], leaf(lib, 2.0)
        y = x * x
        handle = y.register_hook(lambda g: log.append(g.item()))
        y.backward(retain_graph=True)
        handle.remove()
        y.backward()
        return log, x.grad
    agree(program)


def test_hooks_fire_for_the_gradient_that_was_asked_for_and_no_node_below_it():
    """[NOTE age-of-nodes]  Upstream: pytorch/pytorch#85849."""
    def program(lib):
        log, x = [], leaf(lib, 2.0)
        b = x * 3
        b.register_hook(lambda g: log.append("tensor") or g * 10)
        b.grad_fn.register_prehook(lambda gs: log.append("node"))
        return lib.autograd.grad(b * b, b), log
    agree(program)


def test_a_backward_inside_a_hook_is_a_run_of_its_own():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x, w = leaf(lib, 2.0), leaf(lib, 3.0)
        y = x * x

        def hook(g):
            with lib.enable_grad():
                (w * w * g.detach()).backward()
        y.register_hook(hook)
        (y * y).backward()
        return x.grad, w.grad
    agree(program)


def test_a_backward_through_the_same_graph_inside_a_hook():
    """[NOTE age-of-nodes]"""
    def program(lib):
        x, depth = leaf(lib, 2.0), []
        y = x * x
        z = lib.sin(y)

        def hook(g):
            if len(depth) < 3:
                depth.append(g.item())
                z.backward(retain_graph=True)
        y.register_hook(hook)
        z.backward(retain_graph=True)
        return x.grad, depth
    agree(program)


def test_hooks_run_with_recording_off_unless_the_backward_is_recorded():
    """[NOTE grad-mode-per-level]"""
    def program(lib):
        log, x = [], leaf(lib, 2.0)
        y = x * x
        y.register_hook(lambda g: log.append(lib.is_grad_enabled() if lib is torch else lib.autograd.is_grad_enabled()))
        y.backward(retain_graph=True)
        lib.autograd.grad(y, x, create_graph=True)
        return log
    agree(program)


def test_hooks_work_at_a_grad_level():
    """[NOTE level-zero]"""
    def f(x):
        y = x * x
        y.register_hook(lambda g: g * 10)
        return y
    assert grad(f)(t(3.0)).item() == 60.0
    assert vmap(grad(f))(t([1.0, 2.0])).tolist() == [20.0, 40.0]
    assert grad(grad(f))(t(3.0)).item() == 20.0


# ---------------------------------------------------------------- length
@pytest.mark.parametrize("n", [100_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_long_chain_runs_forward_backward_and_is_freed_without_recursion(n):
    """[NOTE age-of-nodes] [NOTE no-cycles]"""
    x = t(0.5, requires_grad=True)
    y = x
    for _ in range(n):
        y = y + x
    node = ref(y.grad_fn)
    y.backward()
    assert x.grad.item() == n + 1
    del y
    assert node() is None


@pytest.mark.parametrize("n", [20_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_a_long_chain_at_a_grad_level_too(n):
    """[NOTE age-of-nodes]"""
    def f(x):
        y = x
        for _ in range(n):
            y = y + x
        return y * y
    assert grad(f)(t(0.5)).item() == (n + 1) ** 2


def test_a_long_chain_of_hooks_checkpoints_and_double_backward():
    """[NOTE age-of-nodes]"""
    from minigrad.utils.checkpoint import checkpoint
    x = t(0.5, requires_grad=True)
    y = x
    for _ in range(2_000):
        y = checkpoint(lambda y: y + x * 1e-3, y)
    (g,) = mg.autograd.grad(y * y, x, create_graph=True)
    (gg,) = mg.autograd.grad(g, x)
    assert g.item() == pytest.approx(2 * 9 * 0.5)
    assert gg.item() == pytest.approx(2 * 9)


def test_a_deep_chain_of_sines_agrees_with_its_closed_form():
    """[NOTE age-of-nodes]"""
    x, product = 0.5, 1.0
    for _ in range(50):
        product *= math.cos(x)
        x = math.sin(x)
    assert nth(1, chain(50))(t(0.5)).item() == pytest.approx(product)


def test_two_threads_may_run_backward_through_graphs_that_meet_in_a_leaf():
    """[NOTE state-is-a-value]: the run is in the State of its thread."""
    from threading import Thread
    x = t(5.0, requires_grad=True)
    found = []
    threads = [Thread(target=lambda: found.append(mg.autograd.grad(sin_sin(x), x)[0].item())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == pytest.approx([math.cos(math.sin(5)) * math.cos(5)] * 4)


def test_outputs_of_several_levels_cannot_start_one_run():
    """[NOTE level-zero]"""
    w = t(2.0, requires_grad=True)
    with pytest.raises(UsageError, match="belong to"):
        grad(lambda x: mg.autograd.grad([x * 2, w * 2], [x, w])[0])(t(1.0))


# ---------------------------------------------------------------- a straight stretch of elementwise nodes [NOTE fast-path]
def stretch(x):
    """(x, sin x, 3 sin x, tanh of that, its negative): each leads to the next alone."""
    a = mg.sin(x)
    b = a * 3
    c = mg.tanh(b)
    return x, a, b, c, -c


def slopes():
    """The derivative of the last with respect to each of the stretch at x = 0.4, by hand."""
    s = math.sin(0.4)
    flat = -(1 - math.tanh(3 * s) ** 2)
    return [3 * math.cos(0.4) * flat, 3 * flat, flat, -1.0, 1.0]


def test_every_tensor_on_a_straight_stretch_can_be_asked_for_its_gradient():
    """[NOTE fast-path]"""
    found = stretch(t(0.4, requires_grad=True))
    for x, right in zip(found, slopes(), strict=True):
        assert mg.autograd.grad(found[-1], x, retain_graph=True)[0].item() == pytest.approx(right, rel=1e-14)


def sum_of_two():
    """x + y, whose gradients are one cotangent; then the gradient of x is written to."""
    x, y = t([1.0, 2.0], requires_grad=True), t([3.0, 4.0], requires_grad=True)
    ((x + y) * 3.0).sum().backward()
    x.grad.add_(1.0)
    return x.grad.tolist(), y.grad.tolist()


def test_two_leaves_that_one_cotangent_reaches_have_gradients_of_their_own():
    """[NOTE fast-path]"""
    assert sum_of_two() == ([4.0, 4.0], [3.0, 3.0])


def test_a_hook_on_a_straight_stretch_runs_once_and_may_change_the_gradient():
    """[NOTE fast-path]"""
    x, _, b, _, last = stretch(t(0.4, requires_grad=True))
    seen = []
    b.register_hook(lambda g: seen.append(g.item()) or g * 10)
    last.backward()
    assert seen == [pytest.approx(slopes()[2], rel=1e-14)]
    assert x.grad.item() == pytest.approx(10 * slopes()[0], rel=1e-14)


def test_a_write_to_what_a_straight_stretch_saved_is_an_error():
    """[NOTE fast-path]"""
    _, _, _, c, last = stretch(t(0.4, requires_grad=True))
    with mg.no_grad():
        c.zero_()
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        last.backward()


def test_a_straight_stretch_is_freed_as_it_is_walked():
    """[NOTE fast-path]"""
    _, a, _, _, last = stretch(t(0.4, requires_grad=True))
    last.backward()
    with pytest.raises(UsageError, match="second time"):
        a.backward()
