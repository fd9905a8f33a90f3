"""make_fx: a graph of base ops for any nesting, that computes on other inputs what the program computes there."""

from __future__ import annotations

import pickle
from weakref import ref

import pytest

import minigrad as mg
import minigrad.autograd.forward_ad as fw
from minigrad import nn
from minigrad.autograd import Function
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.errors import LevelError, Refusal
from minigrad.func import functional_call, functionalize, grad, grad_and_value, hessian, jvp, vjp, vmap
from minigrad.fx.experimental.proxy_tensor import make_fx
from minigrad.fx.kept import kept
from minigrad.tensor import alias
from minigrad.testing import assert_close
from minigrad.tracing import recorded
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import chain, sin_sin, t

HERE, THERE = [0.5, 1.5, -0.25], [2.0, -1.0, 0.75]


def region(f):
    return lambda *args: checkpoint(f, *args)


def offloaded(f):
    def run(x):
        with save_on_cpu():
            return f(x)
    return run


def hooked(f):
    def run(x):
        with saved_tensors_hooks(lambda x: x * 2, lambda x: x / 2):
            return f(x)
    return run


def writing(x):
    y = x * 2
    y.sin_()
    y[1:].mul_(x[1:])
    return y.cos() * x


def every(f):
    return lambda x: checkpoint(f, x, remat="every")


class Square(Function):
    """Both rules, so that jvp finds one too."""

    @staticmethod
    def forward(x):
        return x * x

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, ct):
        return ct * ctx.saved_tensors[0] * 2

    @staticmethod
    def jvp(ctx, dx):
        return dx * ctx.saved_tensors[0] * 2

    @staticmethod
    def vmap(info, in_dims, x):
        return Square.apply(x), in_dims[0]


def dual(f):
    def tangent(x):
        with fw.dual_level():
            return fw.unpack_dual(f(fw.make_dual(x, x * x))).tangent
    return tangent


def scalar(f):
    return lambda x: f(x).sum()


def level_0(f):
    def gradient(x):
        x = x.detach().requires_grad_()
        f(x).sum().backward()
        return x.grad
    return gradient


def level_0_twice(f):
    def gradient(x):
        x = x.detach().requires_grad_()
        g, = mg.autograd.grad(f(x).sum(), x, create_graph=True)
        return mg.autograd.grad((g * g).sum(), x)[0]
    return gradient


FEATURES = {"plain": lambda f: f, "checkpoint": region, "nested checkpoint": lambda f: region(region(f)),
            "checkpoint of all orders": every, "save_on_cpu": offloaded,
            "save_on_cpu of checkpoint": lambda f: offloaded(region(f)), "hooks": hooked}
BODIES = {"sin sin": sin_sin, "in place": writing, "function": lambda x: Square.apply(x.sin()).sin()}
NESTINGS = {
    "f": lambda f: f,
    "backward": level_0,
    "double backward": level_0_twice,
    "grad": lambda f: grad(scalar(f)),
    "grad(grad)": lambda f: grad(scalar(grad(scalar(f)))),
    "dual level": dual,
    "backward(dual level)": lambda f: level_0(dual(f)),
    "vjp": lambda f: lambda x: vjp(f, x)[1](x)[0],
    "jvp(grad)": lambda f: lambda x: jvp(grad(scalar(f)), (x,), (x,))[1],
    "hessian": lambda f: hessian(scalar(f)),
    "vmap(grad)": lambda f: lambda x: vmap(grad(scalar(f)))(mg.stack([x, x * 2])),
    "backward(vmap(grad))": lambda f: level_0(lambda x: vmap(grad(scalar(f)))(mg.stack([x, x * 2]))),
    "grad(functionalize)": lambda f: grad(scalar(functionalize(f))),
    "functionalize(grad)": lambda f: functionalize(grad(scalar(f)), remove="mutations_and_views"),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("feature", FEATURES)
@pytest.mark.parametrize("nesting", NESTINGS)
def test_a_graph_computes_on_other_inputs_what_the_program_does(nesting, feature, body, no_gc):
    """[NOTE traces-are-pure] And so do its live part, and what comes back from its code."""
    program = NESTINGS[nesting](FEATURES[feature](BODIES[body]))
    expected = program(t(THERE))
    gm = make_fx(program)(t(HERE))
    gm.graph.lint()
    assert_close(gm(t(THERE)), expected, rtol=1e-12, atol=0)
    again = pickle.loads(pickle.dumps(gm))
    assert again.code == gm.code
    assert [node.meta for node in again.graph.nodes] == [node.meta for node in gm.graph.nodes]
    again.graph.eliminate_dead_code()
    again.recompile()
    assert_close(again(t(THERE)), expected, rtol=1e-12, atol=0)


def test_a_graph_is_a_program_that_transforms_apply_to():
    """[NOTE traces-are-pure]"""
    def f(x):
        return (x.detach() * sin_sin(x)).sum()

    gm = make_fx(f)(t(HERE))
    assert_close(grad(gm)(t(THERE)), grad(f)(t(THERE)), rtol=0, atol=0)
    xs = mg.stack([t(HERE), t(THERE)])
    assert_close(vmap(make_fx(grad(f))(t(HERE)))(xs), vmap(grad(f))(xs), rtol=0, atol=0)
    assert make_fx(lambda x: gm(x))(t(HERE)).code == gm.code


# ---------------------------------------------------------------- what a graph holds
def names(gm, wanted=None):
    return [node.target.__name__ for node in gm.graph.nodes if node.op == "call_function"
            and (wanted is None or node.meta["pass"] == wanted)]


def test_forward_recomputation_and_backward_are_told_apart():
    """[NOTE traces-are-pure]"""
    gm = make_fx(grad(region(chain(3))))(t(0.5))
    assert names(gm, "forward") == ["sin", "sin", "sin", "ones_like"]
    assert names(gm, "recomputation") == ["sin", "sin", "sin"]
    assert names(gm, "backward") == ["cos", "mul", "cos", "mul", "cos", "mul"]
    regions = [node.meta["region"] for node in gm.graph.nodes if node.op == "call_function"]
    assert regions == ["checkpoint 1"] * 3 + [None] + ["checkpoint 1"] * 3 + [None] * 6


def test_each_node_says_its_level_and_the_stack():
    """[NOTE traces-are-pure]"""
    gm = make_fx(lambda x: vmap(grad(mg.sin))(x) + 1)(t(HERE))
    places = [(node.target.__name__, node.meta["level"], node.meta["stack"]) for node in gm.graph.nodes
              if node.op == "call_function"]
    inside = "grad@2", "base < vmap@1 < grad@2"
    assert places == [(name, *inside) for name in ("sin", "ones_like", "cos", "mul")] + [("add", "level 0", "base")]


def test_no_node_writes_and_what_was_written_to_an_argument_is_written_back():
    """[NOTE traces-are-pure]"""
    weight = nn.Parameter(t(HERE))

    def f(x, y):
        with mg.no_grad():
            weight[0] = y[1]
        x.add_(weight)
        return x[:2] * y[0]

    def args():
        return t(THERE), t([3.0, 4.0])

    gm = make_fx(f)(*args())
    assert [node.op for node in gm.graph.nodes if node.is_impure()] == ["placeholder", "placeholder", "call_method", "call_method",
                                                                       "output"]
    given = args()
    assert weight is gm._param_constant0                   # the very parameter
    with mg.no_grad():
        weight.copy_(t(HERE))
        out = gm(*given)
    assert weight.tolist() == [4.0, 1.5, -0.25]
    assert given[0].tolist() == [6.0, 0.5, 0.5]
    assert out.tolist() == [18.0, 1.5]


def test_running_a_graph_draws_one_mask_for_the_forward_and_its_recomputation():
    """[NOTE one-draw-in-a-trace] The same as the program, from the same place, and on to the same place."""
    own = mg.Generator(mg.get_default_device())

    def f(x):
        noise = mg.rand(3, generator=own, dtype=mg.float64)
        return (nn.functional.dropout(x * 2, 0.5, True) * noise).sin().sum()

    program = grad_and_value(region(f))
    gm = make_fx(program)(t(HERE))
    assert sum(getattr(node.target, "draws", False) for node in gm.graph.nodes) == 2
    found = []
    for run in (program, gm):
        mg.manual_seed(3)
        own.manual_seed(4)
        found.append((run(t(THERE)), mg.rand(1), mg.rand(1, generator=own)))
    assert_close(found[0][0], found[1][0], rtol=0, atol=0)
    assert_close(found[0][1:], found[1][1:], rtol=0, atol=0)
    assert gm._generator0 is own


def test_samples_of_a_batch_draw_as_vmap_says():
    """[NOTE one-draw-in-a-trace]"""
    def f(x):
        return nn.functional.dropout(x, 0.5, True)

    xs = mg.ones(4, 8, dtype=mg.float64)
    for randomness in ("same", "different"):
        def program(xs, randomness=randomness):
            return vmap(f, randomness=randomness)(xs)
        gm = make_fx(program)(xs)
        results = []
        for run in (program, gm, vmap(make_fx(f)(xs[0]), randomness=randomness)):
            mg.manual_seed(0)
            results.append(run(xs).tolist())
        assert results[0] == results[1] == results[2]


def test_casts_of_autocast_are_nodes(device):
    """[NOTE traces-are-pure]"""
    weight = mg.ones(3, 3)

    def f(x):
        with mg.autocast(mg.device(device).type, dtype=mg.float16):
            return region(lambda x: ((x @ weight) @ weight).sin().sum())(x)

    gm = make_fx(grad(f))(mg.tensor(HERE).expand(2, 3) * 1)
    there = mg.tensor(THERE).expand(2, 3) * 1
    assert_close(gm(there), grad(f)(there), rtol=0, atol=0)
    assert "_to_copy" in names(gm, "forward")


def test_save_on_cpu_copies_in_the_graph_too(device):
    """[NOTE traces-are-pure] A memory once, whatever the number of saves and of views."""
    def f(x):
        y = x.exp()
        with save_on_cpu():
            return (y * y[0] * y.sin()).sum()

    with recorded() as log:
        grad(f)(t(HERE))
    gm = make_fx(grad(f))(t(HERE))
    targets = [node.kwargs["target"].type for node in gm.graph.nodes if "_to_copy_device" in str(node.target)]
    assert targets.count("cpu") == (0 if device == "cpu" else 3)                           # y, its sine and y * y[0]
    assert len(targets) == len(log.of("copy"))             # and back as often as the program asks
    assert_close(gm(t(THERE)), grad(f)(t(THERE)), rtol=1e-12, atol=0)


def test_looking_at_a_traced_value_is_refused():
    """[NOTE traces-are-pure]"""
    looks = {
        "bool": lambda x: x if x.sum() > 0 else -x,
        "item": lambda x: x * x[0].item(),
        "tolist": lambda x: mg.tensor(x.tolist()),
        "numpy": lambda x: mg.tensor(x.cpu().numpy()),
        "written": lambda x: mg.zeros(3).add_(x)[0].item(),
        "drawn": lambda x: x * mg.rand(1).item(),
    }
    for look in looks.values():
        with pytest.raises(Refusal, match="data-dependent control flow"):
            make_fx(look)(t(HERE))
    with pytest.raises(Refusal, match=r"level stack: base < grad@1"):
        make_fx(grad(lambda x: (x if x.sum() > 0 else -x).sum()))(t(HERE))


def test_python_may_look_at_constants():
    """[NOTE traces-are-pure]"""
    gm = make_fx(lambda x: x * mg.tensor([2.0, 3.0]).sum().item() if mg.ones(1) > 0 else x)(t(HERE))
    assert gm(t(THERE)).tolist() == [10.0, -5.0, 3.75]


def test_a_view_of_a_captured_tensor_is_found_through_that():
    """[NOTE traces-are-pure]"""
    whole = mg.zeros(3, dtype=mg.float64)
    part = whole[1:]

    def f(x):
        part.add_(x[1:])
        return whole * x

    gm = make_fx(f)(t(HERE))
    whole.zero_()
    assert gm(t(THERE)).tolist() == [0.0, 1.0, 0.5625]
    assert whole.tolist() == [0.0, -1.0, 0.75]


@pytest.mark.parametrize("first", ["kept", "data"])
def test_a_captured_tensor_that_is_met_first_without_its_history_has_its_gradient(first):
    """[NOTE traces-are-pure]  Hooks and `.data` have handles of their own on the memory."""
    w = t([0.3, 0.5], requires_grad=True)

    def f(x):
        with saved_tensors_hooks(lambda v: v.detach().clone(), lambda v: v):
            y = x * w.data if first == "data" else x + checkpoint(lambda w: w * 0, w)
            return y + w.sin()
    (g,) = mg.autograd.grad(make_fx(f)(t([1.0, 2.0]))(t([3.0, 4.0])).sum(), w)
    assert g.tolist() == mg.cos(w).tolist()


def test_two_strangers_in_one_memory_are_refused_where_that_is_written_to():
    """[NOTE traces-are-pure]"""
    whole = t(THERE)
    stranger = alias(whole[1:])                            # of which nobody knows that it is a view

    def f(x):
        y = stranger * 1
        whole.add_(x)
        return y + stranger

    assert make_fx(lambda x: stranger + whole[1:] * x[1:])(t(HERE))(t(THERE)).tolist() == [0.0, 1.3125]
    with pytest.raises(Refusal, match="meets as two tensors"):
        make_fx(f)(t(HERE))


def test_arguments_that_share_memory_are_traced_apart():
    """[NOTE traces-are-pure] A call of the graph may give two."""
    def f(x, y, z):
        return x * 2 + y * 3 + z[0]

    x = t(HERE)
    assert make_fx(f)(x, x, x[1:])(*map(t, ([1.0], [10.0], [100.0]))).tolist() == [132.0]


# ---------------------------------------------------------------- inside a transform
def test_inside_a_transform_a_function_is_traced_on_the_value_of_its_arguments():
    """[NOTE traces-are-pure]"""
    def outer(x):
        return make_fx(scalar(sin_sin))(x)(x)

    assert_close(grad(outer)(t(HERE)), grad(scalar(sin_sin))(t(HERE)), rtol=0, atol=0)
    with pytest.raises(LevelError, match="trace outside of the transform"):
        vmap(outer)(mg.stack([t(HERE), t(THERE)]))
    with pytest.raises(Refusal, match="a function traced by make_fx uses a tensor of grad@1"):
        grad(lambda x: make_fx(lambda y: (x * y).sum())(t(THERE))(x))(t(HERE))


def test_an_error_in_the_function_leaves_no_trace(no_gc):
    """[NOTE traces-are-pure]"""
    with pytest.raises(ZeroDivisionError):
        make_fx(lambda x: x / (1 // 0))(t(HERE))


def test_a_trace_and_its_module_are_freed_at_once(no_gc):
    """[NOTE no-cycles]"""
    gm = make_fx(grad(scalar(region(writing))))(t(HERE))
    gone = ref(gm), ref(gm.graph)
    again = pickle.loads(pickle.dumps(gm))
    gone += ref(again), ref(again.graph)
    gm(t(THERE))
    del gm, again
    assert [r() for r in gone] == [None] * 4


def test_a_long_trace_recurses_nowhere():
    """[NOTE no-cycles] Views of views too, made again after a write."""
    n = 2000

    def f(x):
        y = view = x * 1
        for _ in range(n):
            view = view[1:]
        y.add_(1)
        return chain(n)(view)

    x = mg.arange(n + 1, dtype=mg.float64)
    gm = make_fx(f)(x)
    assert names(gm).count("slice") > 2 * n - 2
    gm.graph.eliminate_dead_code()
    gm.recompile()
    assert names(gm).count("slice") == n
    assert gm(x).tolist() == f(x).tolist()


# ---------------------------------------------------------------- what a graph keeps
def test_a_region_leads_no_edge_to_the_backward_but_from_its_input():
    """[NOTE traces-are-pure] [NOTE layers-remember] Bytes, by hand: 3 numbers of 8 bytes each."""
    ten = chain(10)
    table = kept(make_fx(grad(scalar(ten)))(t(HERE)).graph)
    assert [(k.node.op, k.nbytes) for k in table.levels["grad@1"]] == [
        ("placeholder", 24), *[("call_function", 24)] * 9, ("call_function", 8)]          # the last is the cotangent
    gm = make_fx(grad(scalar(region(ten))))(t(HERE))
    gm.graph.eliminate_dead_code()
    table = kept(gm.graph)
    assert [(k.node.op, k.nbytes) for k in table.levels["grad@1"]] == [("placeholder", 24), ("call_function", 8)]
    assert table.nbytes("grad@1") == 8


def test_a_functional_call_is_traced_with_its_parameters():
    """[NOTE traces-are-pure] Pytrees of arguments and of results."""
    layer = nn.Linear(3, 2, dtype=mg.float64)
    parameters = {name: p.detach() for name, p in layer.named_parameters()}

    def loss(parameters, x):
        return (functional_call(layer, parameters, (x,)) ** 2).sum()

    program = grad(region(loss))
    gm = make_fx(program)(parameters, t(HERE))
    others = {name: p + 1 for name, p in parameters.items()}
    assert_close(gm(others, t(THERE)), program(others, t(THERE)), rtol=1e-12, atol=0)
    assert gm.graph.find_nodes(op="get_attr") == []
