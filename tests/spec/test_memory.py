"""Memory is freed by reference counting alone: nothing that minigrad does makes a cycle."""

from __future__ import annotations

import gc
from weakref import ref

import pytest

import minigrad as mg
from minigrad import memory
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.func import grad, hessian, jacrev, jvp, linearize, vjp, vmap
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Alive, Counted, Packed, chain, no_garbage, nth, sin_sin, t


def leaf(*data, device=None):
    return t(list(data) or 0.7, requires_grad=True, device=device)


def hooked():
    x = leaf()
    y = mg.sin(x)
    y.register_hook(lambda g: g * 2)
    y.retain_grad()
    x.register_post_accumulate_grad_hook(lambda x: None)
    y.grad_fn.register_hook(lambda *_: None)
    y.grad_fn.register_prehook(lambda *_: None)
    (y * y).backward()


def backward_in_a_hook():
    x, w = leaf(), leaf()
    y = mg.sin(x)

    def hook(g):
        with mg.enable_grad():
            (w * w).backward()
    y.register_hook(hook)
    y.backward()


def kept_vjp():
    _, pull = vjp(sin_sin, t(0.7))
    for _ in range(3):
        pull(t(1.0))


def offloaded(wrap=lambda f: f):
    def f(x):
        with save_on_cpu():
            return sin_sin(x).sum()
    wrap(f)(leaf(1.0, 2.0, device="sim")).backward()


def composed_hooks():
    x = leaf()
    with saved_tensors_hooks(lambda s: s.clone(), lambda s: s), saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2, compose=True):
        y = sin_sin(mg.exp(x))
    y.backward()


def nested_regions():
    x = leaf()
    checkpoint(lambda x: mg.sin(checkpoint(lambda q: mg.cos(checkpoint(mg.exp, q)), x)), x).backward()


def backward_inside_a_region():
    x = leaf()

    def region(a):
        (g,) = mg.autograd.grad(sin_sin(a), a, create_graph=True)
        return g * a
    checkpoint(region, x * 1).backward()


def written_views():
    x = leaf(1.0, 2.0)
    a = x * 1
    v, w = a[0], a[1:]
    v.mul_(x[1])
    a.mul_(a.exp())
    w.zero_()
    (a.sum() + v).backward()


def double_backward():
    x = leaf()
    (g,) = mg.autograd.grad(mg.exp(x), x, create_graph=True)
    mg.autograd.grad(g, x)


def batched_gradients():
    x = leaf(1.0, 2.0)
    mg.autograd.grad(mg.exp(x), x, mg.eye(2, dtype=x.dtype), is_grads_batched=True)


def index_and_put():
    x = leaf(1.0, 2.0, 3.0)
    x[[0, 1]].index_put((t([0.0]).to(mg.int64),), x[0]).sum().backward()


def with_aux():
    grad(lambda x: (mg.sin(x), x), has_aux=True)(t(0.7))


PROGRAMS = {
    "forward, never backward": lambda: mg.exp(sin_sin(leaf())),
    "backward": lambda: sin_sin(leaf()).backward(),
    "backward, retained": lambda: sin_sin(leaf()).backward(retain_graph=True),
    "double backward": double_backward,
    "backward with create_graph": lambda: mg.exp(leaf()).backward(create_graph=False),
    "grad grad grad": lambda: nth(3, lambda x: mg.exp(sin_sin(x)))(t(0.7)),
    "vmap grad": lambda: vmap(grad(sin_sin))(t([1.0, 2.0])),
    "jvp grad": lambda: jvp(grad(sin_sin), (t(0.7),), (t(1.0),)),
    "hessian": lambda: hessian(lambda x: mg.exp(x).sum())(t([1.0, 2.0])),
    "jacrev jacrev": lambda: jacrev(jacrev(lambda x: mg.exp(x).cumsum(0)))(t([1.0, 2.0])),
    "linearize": lambda: linearize(sin_sin, t(0.7))[1](t(1.0)),
    "a vjp that is pulled three times": kept_vjp,
    "has_aux": with_aux,
    "hooks on tensors and nodes": hooked,
    "a backward in a hook": backward_in_a_hook,
    "batched gradients": batched_gradients,
    "composed saved-tensor hooks": composed_hooks,
    "save_on_cpu": offloaded,
    "save_on_cpu in a region": lambda: offloaded(lambda f: lambda x: checkpoint(f, x)),
    "a region, never backward": lambda: checkpoint(sin_sin, leaf()),
    "a region": lambda: checkpoint(sin_sin, leaf()).backward(),
    "a region, retained": lambda: checkpoint(sin_sin, leaf()).backward(retain_graph=True),
    "a region with debug": lambda: checkpoint(sin_sin, leaf(), debug=True, determinism_check="values").backward(),
    "a region under grad grad": lambda: nth(2, lambda x: checkpoint(sin_sin, x))(t(0.7)),
    "a region under vmap grad": lambda: vmap(grad(lambda x: checkpoint(sin_sin, x)))(t([1.0, 2.0])),
    "grad inside a region under grad": lambda: grad(lambda x: checkpoint(grad(sin_sin), x))(t(0.7)),
    "nested regions": nested_regions,
    "a backward inside a region": backward_inside_a_region,
    "writes to views": written_views,
    "index and put": index_and_put,
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_leaves_nothing_for_the_cyclic_collector(program):
    """[NOTE no-cycles]"""
    PROGRAMS[program]()                                    # what is made once stays: plans, kernels, imports
    with no_garbage():
        PROGRAMS[program]()


def test_the_check_above_would_see_a_cycle():
    """[NOTE no-cycles]"""
    def cyclic():
        y = mg.exp(leaf())
        y.grad_fn.register_hook(lambda *_: y)              # the user's own: the node holds y, and y holds the node
    with pytest.raises(AssertionError, match="OpNode"), no_garbage():
        cyclic()


def test_accumulating_with_create_graph_makes_the_one_cycle_that_torch_warns_of():
    """[NOTE no-cycles]  x.grad has a graph that leads to x: the user asked for it.  autograd.grad makes none."""
    def program():
        with pytest.warns(UserWarning, match=r"backward\(\) with create_graph=True will create a reference cycle"):
            mg.exp(leaf()).backward(create_graph=True)
    with pytest.raises(AssertionError, match="OpNode"), no_garbage():
        program()


# ---------------------------------------------------------------- what is freed when
def test_dropping_the_output_frees_the_graph_at_once(no_gc):
    """[NOTE no-cycles]"""
    x, alive = leaf(), Alive()
    y = x
    for _ in range(5):
        y = alive.see(mg.exp(mg.sin(y)))
    nodes = [ref(y.grad_fn), ref(y.grad_fn.next_functions[0][0])]
    assert alive.count() == 5
    del y
    assert alive.count() == 0 and [n() for n in nodes] == [None, None]


def test_a_backward_frees_what_was_saved_as_it_goes(no_gc):
    """[NOTE no-cycles]  When the leaf is reached nothing of the graph's data is left."""
    x, alive, found = leaf(), Alive(), []
    y = x
    for _ in range(6):
        y = alive.see(mg.sin(y))
    x.register_hook(lambda g: found.append(alive.count(0, 5)))
    y.backward()
    assert found == [0]


def test_a_second_backward_says_that_the_data_is_gone():
    """[NOTE no-cycles]"""
    y = sin_sin(leaf())
    y.backward()
    with pytest.raises(RuntimeError, match=r"backward through the graph a second time .*, here those of SinBackward0"):
        y.backward()


def test_the_levels_of_a_vjp_are_freed_with_its_function(no_gc):
    """[NOTE no-cycles]"""
    alive = Alive()
    pull = vjp(lambda x: mg.sin(alive.see(mg.sin(x))), t(0.7))[1]
    assert alive.count() == 1
    del pull
    assert alive.count() == 0


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_transform_keeps_nothing_after_it_returned(order, no_gc):
    """[NOTE no-cycles]"""
    alive = Alive()

    def f(x):
        for _ in range(4):
            x = alive.see(mg.exp(mg.sin(x)))
        return x
    out = nth(order, f)(t(0.7))
    assert out is not None and alive.count() == 0


@pytest.mark.parametrize("hooks", [Packed, save_on_cpu])
def test_a_context_that_has_ended_keeps_no_tensor(hooks, no_gc):
    """[NOTE no-cycles]"""
    alive, x = Alive(), leaf(1.0, 2.0)
    context = hooks()
    with context:
        y = mg.exp(alive.see(mg.sin(x)))
    del y
    assert alive.count() == 0 and context is not None


def test_an_error_message_does_not_keep_the_graph(no_gc):
    """[NOTE no-cycles]"""
    alive, x = Alive(), leaf(1.0, 2.0)
    try:
        mg.exp(alive.see(mg.sin(x))) + mg.ones(3)
    except RuntimeError as error:
        text = str(error)
    assert "must match the size" in text and alive.count() == 0


def test_a_chain_that_was_never_run_backward_is_freed_without_recursion():
    """[NOTE no-cycles]  Nothing recurses with the length of a graph, its end neither."""
    x = leaf()
    y = chain(20_000)(x)
    node = ref(y.grad_fn)
    del y
    assert node() is None
    assert gc.isenabled()


# ---------------------------------------------------------------- a deep net in segments
@pytest.mark.parametrize(("in_segments", "activations", "weights", "runs"), [(True, 18, 1, 16), (False, 67, 1, 8)],
                         ids=["8 segments", "plain"])
def test_64_layers_in_8_segments_have_18_activations_alive_at_the_peak(in_segments, activations, weights, runs, device, no_gc):
    """[NOTE bytes-are-counted] [NOTE what-is-kept]  By hand, with square weights, 22; torch 24; plain 68.

    The peak is at the end of the first recomputation: 7 inputs of segments and the output, 8 layers with one product, the
    cotangent; of the weights the sum of gradients so far.
    """
    x = mg.full((64, 8), 0.1, dtype=mg.float64, device=device)
    w = mg.full((8, 8), 0.1, dtype=mg.float64, device=device, requires_grad=True)

    def segment(z):
        for _ in range(8):
            z = (z @ w).tanh()
        return z
    segment, ones = Counted(segment), mg.ones_like(x)
    with memory.measured(device) as m, memory.timeline() as t:
        z = (x * 1).requires_grad_()
        for _ in range(8):
            z = checkpoint(segment, z, use_reentrant=False) if in_segments else segment(z)
        z.backward(ones)
    sizes = [made.nbytes for made in t.peak(device).alive]
    assert (sizes.count(64 * 8 * 8), sizes.count(8 * 8 * 8), len(sizes)) == (activations, weights, activations + weights)
    assert m.peak == activations * 64 * 8 * 8 + weights * 8 * 8 * 8
    assert segment.calls == runs


@pytest.mark.parametrize(("order", "arrays"), [(0, [10]), (1, [29, 10]), (2, [74, 29, 10])])
def test_the_residuals_of_a_level_are_those_that_live_when_its_backward_begins(order, arrays):
    """[NOTE what-is-kept]  The outermost first.  torch: 10, 29, 76; JAX: 10, 29, 83 with checkpoint a layer."""
    found = memory.saved_residuals(chain(10), t(0.7), order=order)
    assert [found.of(level + 1).arrays for level in range(order + 1)] == arrays


@pytest.mark.parametrize(("remat", "arrays"), [("first", [1, 29, 82]), ("every", [1, 2, 3])])
def test_the_residuals_of_a_region_are_its_inputs_and_what_its_backward_saves(remat, arrays):
    """[NOTE what-is-kept] [NOTE remat-every]"""
    def f(x):
        return checkpoint(chain(10), x, remat=remat)
    assert [memory.saved_residuals(f, t(0.7), order=order, level=1).arrays for order in range(3)] == arrays
