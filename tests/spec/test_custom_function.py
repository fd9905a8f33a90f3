"""autograd.Function: its rules run one storey down, its saves are saves like any other's, and nothing is dropped in silence."""

from __future__ import annotations

from weakref import ref

import pytest

import minigrad as mg
import minigrad.autograd.forward_ad as fw
from minigrad.autograd import Function
from minigrad.autograd.function import once_differentiable
from minigrad.autograd.graph import save_on_cpu
from minigrad.errors import LevelError, Refusal, UsageError
from minigrad.func import grad, jacfwd, jacrev, jvp, vjp, vmap
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Counted, Packed, no_garbage, nth, t


class Sine(Function):
    """sin, which saves its input; forward counts."""

    generate_vmap_rule = True
    forward = staticmethod(Counted(mg.sin))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        return g * Cosine.apply(ctx.saved_tensors[0])

    @staticmethod
    def jvp(ctx, d):
        return d * Cosine.apply(ctx.saved_tensors[0])


class Cosine(Sine):
    """cos, likewise."""

    forward = staticmethod(mg.cos)

    @staticmethod
    def backward(ctx, g):
        return -g * Sine.apply(ctx.saved_tensors[0])

    @staticmethod
    def jvp(ctx, d):
        return -d * Sine.apply(ctx.saved_tensors[0])


class Combined(Function):
    """The square, in the combined style, and with a counter."""

    calls = 0

    @staticmethod
    def forward(ctx, x):
        Combined.calls += 1
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (a,), (b,) = ctx.saved_tensors, ctx.saved_tensors
        return g * (a + b)


def sine(x):
    return Sine.apply(x)


def sine_sine(x):
    return Sine.apply(Sine.apply(x))


# ---------------------------------------------------------------- a call meets the stack as an op does
@pytest.mark.parametrize("n", range(5))
def test_every_derivative_of_a_function_is_that_of_the_op(n):
    """[NOTE custom-function]"""
    x = t(0.7)
    assert nth(n, sine_sine)(x).item() == pytest.approx(nth(n, lambda x: mg.sin(mg.sin(x)))(x).item(), rel=1e-12)


@pytest.mark.parametrize("n", range(5))
def test_so_is_every_derivative_in_forward_mode(n):
    """[NOTE custom-function]  torch gives 0 from the second on, pytorch#197867."""
    def pushed(f):
        return lambda x: jvp(f, (x,), (t(1.0),))[1]

    f, g = sine_sine, lambda x: mg.sin(mg.sin(x))
    for _ in range(n):
        f, g = pushed(f), pushed(g)
    assert f(t(0.7)).item() == pytest.approx(g(t(0.7)).item(), rel=1e-12)


def test_forward_runs_once_whatever_the_levels():
    """[NOTE custom-function]"""
    before = Sine.forward.calls
    vmap(grad(lambda x: jvp(sine, (x,), (x,))[0]))(t([0.1, 0.2]))
    assert Sine.forward.calls == before + 1


def test_a_level_that_no_argument_belongs_to_costs_nothing():
    """[NOTE custom-function]"""
    packed = Packed()
    with packed:
        grad(lambda x: x * Sine.apply(t(1.0)))(t(2.0))
    assert packed.count == 1                              # the product's


# ---------------------------------------------------------------- nothing is dropped in silence
@pytest.mark.parametrize("transform", [grad, vmap, jacfwd, jacrev, lambda f: lambda x: jvp(f, (x,), (x,))])
@pytest.mark.parametrize("rules", [{"generate_vmap_rule": True}, {"vmap": staticmethod(lambda info, dims, x: (x, dims[0]))}])
def test_a_captured_tensor_of_a_live_level_is_refused_by_name(transform, rules):
    """[NOTE custom-function]"""
    def f(x):
        captured = type("Captured", (Function,), {
            "forward": staticmethod(lambda y: y * x), "setup_context": staticmethod(lambda *a: None),
            "backward": staticmethod(lambda ctx, g: g), "jvp": staticmethod(lambda ctx, d: d), **rules})
        return (captured.apply(t(2.0)) * x).sum()
    with pytest.raises(Refusal, match=r"Captured uses a tensor of (grad|vmap|jvp)@\d that is not among its arguments"):
        transform(f)(t([1.0, 2.0]))


def test_a_vmap_staticmethod_may_capture_nothing_of_its_level_either():
    """[NOTE custom-function]"""
    def f(x):
        captured = type("Captured", (Function,), {
            "forward": staticmethod(lambda y: y), "setup_context": staticmethod(lambda *a: None),
            "vmap": staticmethod(lambda info, dims, y: (y * x, 0))})
        return captured.apply(x * 2)
    with pytest.raises(Refusal, match="Captured uses a tensor of vmap@1"):
        vmap(f)(t([1.0, 2.0]))


def test_transforms_inside_forward_have_levels_of_their_own():
    """[NOTE custom-function]"""
    slope = type("Slope", (Sine,), {"forward": staticmethod(grad(lambda x: mg.sin(mg.sin(x))))})
    inner = type("Inner", (Sine,), {"forward": staticmethod(lambda x: vmap(grad(sine))(x))})
    assert grad(lambda x: slope.apply(x) * 0 + x)(t(0.5)).item() == 1.0
    x = t([0.1, 0.2])
    assert vmap(lambda x: inner.apply(mg.stack([x, x])))(x)[:, 1].tolist() == pytest.approx(mg.cos(x).tolist())


def keeping(how):
    """3 x squared with a value on the way, 3 x, kept by `save_for_backward` or as an attribute, or returned too."""
    class Kept(Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 3
            ctx.save_for_backward(*[x, y][:1 if how == "attribute" else 2])
            if how == "attribute":
                ctx.y = y
            return (y * x, y) if how == "output" else y * x

        @staticmethod
        def backward(ctx, g, *of_y):
            x = ctx.saved_tensors[0]
            y = ctx.y if how == "attribute" else ctx.saved_tensors[1]
            first = g * (y + x * 3)
            return first + of_y[0] * 3 if of_y else first

    return (lambda x: Kept.apply(x)[0]) if how == "output" else Kept.apply


@pytest.mark.parametrize("how", ["saved", "attribute"])
def test_a_derivative_through_a_kept_value_whose_history_is_lost_is_an_error(how):
    """[NOTE custom-function]  torch gives 3 instead of 6, pytorch#76185."""
    x = t(2.0, requires_grad=True)
    g, = mg.autograd.grad(keeping(how)(x), x, create_graph=True)
    assert g.item() == 12.0
    with pytest.raises(UsageError, match="kept a tensor that its forward computed from its inputs"):
        mg.autograd.grad(g, x)


def test_a_kept_output_has_its_history():
    """[NOTE custom-function]"""
    x = t(2.0, requires_grad=True)
    g, = mg.autograd.grad(keeping("output")(x), x, create_graph=True)
    assert mg.autograd.grad(g, x)[0].item() == 6.0


def test_a_kept_value_that_depends_on_no_input_is_a_constant():
    """[NOTE custom-function]  A mask, drawn or compared, does not stand in the way of a double backward."""
    class Masked(Function):
        @staticmethod
        def forward(ctx, x):
            mask = (x > 0).to(mg.float64) * 2
            ctx.save_for_backward(mask, x)
            ctx.noise = mg.ones((2,), dtype=mg.float64)
            return x * x * mask

        @staticmethod
        def backward(ctx, g):
            mask, x = ctx.saved_tensors
            return g * 2 * x * mask * ctx.noise

    x = t([-1.0, 2.0], requires_grad=True)
    g, = mg.autograd.grad(Masked.apply(x).sum(), x, create_graph=True)
    assert mg.autograd.grad(g.sum(), x)[0].tolist() == [0.0, 4.0]


@pytest.mark.parametrize("outer", [lambda f: grad(lambda x: grad(f)(x)), lambda f: lambda x: vjp(grad(f), x)[1](x)[0],
                                   lambda f: vmap(grad(lambda x: grad(f)(x)))])
def test_once_differentiable_is_an_error_the_second_time_at_every_level(outer):
    """[NOTE custom-function]"""
    square = type("Square", (Function,), {
        "generate_vmap_rule": True, "forward": staticmethod(lambda x: x * x),
        "setup_context": staticmethod(lambda ctx, inputs, output: ctx.save_for_backward(*inputs)),
        "backward": staticmethod(once_differentiable(lambda ctx, g: g * 2 * ctx.saved_tensors[0]))})
    x = t([1.0, 2.0])
    assert vmap(grad(square.apply))(x).tolist() == [2.0, 4.0]
    with pytest.raises(UsageError, match="once_differentiable"):
        outer(square.apply)(x if "vmap" in outer.__code__.co_names else x[0])


# ---------------------------------------------------------------- its saves are saves like any other's
@pytest.mark.parametrize("n", [1, 2, 3])
def test_hooks_see_a_functions_saves_at_every_level(n):
    """[NOTE custom-function]  One save for each Function and level, as of the op: sin and cos save their input."""
    counts = []
    for f in (sine, mg.sin):
        packed = Packed()
        with packed:
            nth(n, f)(t(0.5))
        counts.append([seen for seen in packed.seen if seen[0] == ()])
    assert len(counts[0]) == len(counts[1])


def offloaded(f, x):
    with save_on_cpu():
        return f(x)


OUTER = {"grad": lambda f: nth(1, f), "grad grad": lambda f: nth(2, f), "grad grad grad": lambda f: nth(3, f),
         "vmap grad grad": lambda f: vmap(nth(2, f)), "jacfwd jacrev": lambda f: jacfwd(jacrev(f)),
         "jvp grad grad": lambda f: lambda x: jvp(nth(2, f), (x,), (x,))[1]}


@pytest.mark.parametrize("around", ["checkpoint", "checkpoint in checkpoint", "save_on_cpu"])
@pytest.mark.parametrize("outer", OUTER)
def test_checkpoint_and_save_on_cpu_hold_functions(around, outer):
    """[NOTE custom-function]"""
    x = t([0.3, 0.4]) if outer == "vmap grad grad" else t(0.3)
    wrapped = {"checkpoint": lambda x: checkpoint(sine_sine, x), "save_on_cpu": lambda x: offloaded(sine_sine, x),
               "checkpoint in checkpoint": lambda x: checkpoint(checkpoint, sine_sine, x)}[around]
    want = OUTER[outer](lambda x: mg.sin(mg.sin(x)))(x)
    assert OUTER[outer](wrapped)(x).tolist() == pytest.approx(want.tolist(), rel=1e-12)


def test_saved_tensors_are_read_twice_and_recomputed_once():
    """[NOTE custom-function]  pytorch#82156."""
    body = Counted(lambda x: mg.sin(Combined.apply(x)))
    x = t(3.0, requires_grad=True)
    checkpoint(body, x).backward()
    assert x.grad.item() == pytest.approx(6 * mg.cos(t(9.0)).item())
    assert body.calls == 2


def test_a_function_whose_inputs_alone_are_missing_does_not_run_again():
    """[NOTE early-stop]  pytorch#102600."""
    Combined.calls = 0
    x = t(0.5, requires_grad=True)
    checkpoint(lambda x: Combined.apply(mg.sin(x)), x).backward()
    assert x.grad.item() == pytest.approx((2 * mg.sin(t(0.5)) * mg.cos(t(0.5))).item())
    assert Combined.calls == 1
    Sine.forward.calls = 0
    assert grad(lambda x: checkpoint(lambda x: Sine.apply(mg.exp(x)), x))(t(0.5)).item() == pytest.approx(
        grad(lambda x: mg.sin(mg.exp(x)))(t(0.5)).item())
    assert Sine.forward.calls == 1


class Product(Function):
    """x y, which saves both; forward counts."""

    generate_vmap_rule = True
    forward = staticmethod(Counted(lambda x, y: x * y))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y, g * x


@pytest.mark.parametrize("outer", ["grad", "vmap grad", "grad grad"])
def test_nor_where_some_of_them_are_constants_of_its_level(outer):
    """[NOTE early-stop]"""
    x = t([0.3, 0.4]) if outer == "vmap grad" else t(0.3)
    for y in (t(2.0), x):
        Product.forward.calls = 0
        around = {"grad": grad, "vmap grad": lambda f: vmap(grad(f)), "grad grad": lambda f: nth(2, f)}[outer]
        y = y if outer != "vmap grad" else y.sum()
        got = around(lambda x, y=y: checkpoint(lambda x: Product.apply(mg.exp(x), y), x))(x)
        want = around(lambda x, y=y: mg.exp(x) * y)(x)
        assert got.tolist() == pytest.approx(want.tolist(), rel=1e-12)
        assert outer == "grad grad" or Product.forward.calls == 1


def test_a_saved_tensor_that_was_modified_is_an_error():
    """[NOTE custom-function]"""
    x = t(3.0, requires_grad=True)
    a = x * 1
    y = Combined.apply(a)
    with mg.no_grad():
        a.mul_(2)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


def test_what_a_node_saved_is_freed_with_the_first_backward():
    """[NOTE custom-function]"""
    x = t(3.0, requires_grad=True)
    y = Combined.apply(x * 1)
    alive = ref(y.grad_fn.saved_tensors[0].untyped_storage())
    y.backward(retain_graph=True)
    assert alive() is not None
    y.backward()
    assert alive() is None
    with pytest.raises(UsageError, match="second time"):
        y.backward()


def test_a_context_that_outlives_its_graph_says_that_what_it_saved_is_gone():
    """[NOTE no-cycles]"""
    found = []

    class Stashing(Sine):
        @staticmethod
        def backward(ctx, g):
            found.append(ctx)
            return g

    y = Stashing.apply(t(3.0, requires_grad=True))
    y.backward(retain_graph=True)
    assert found[0].saved_tensors[0].item() == 3
    del y
    with pytest.raises(UsageError, match="read after the graph of the call has gone"):
        found[0].saved_tensors


class Careless(Function):
    """exp, which keeps all it can get: its output twice, and its input."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x.exp(), x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output[0], *inputs)
        ctx.output = output[1]

    @staticmethod
    def backward(ctx, g, h):
        return g * ctx.saved_tensors[0] + h * ctx.output


def test_a_function_that_keeps_its_outputs_makes_no_cycle(no_gc):
    """[NOTE custom-function]"""
    x = t([0.5, 0.6], requires_grad=True)
    with no_garbage():
        y, z = Careless.apply(x * 2)
        memory = ref(y.untyped_storage())
        mg.autograd.grad((y + z).sum(), x, create_graph=True)
        del y, z
        grad(lambda x: sum(Careless.apply(x)).sum())(t([0.5]))
        vmap(Sine.apply)(x)
        vmap(grad(grad(sine)))(t([0.5]))
    assert memory() is None


def test_an_attribute_that_is_an_output_has_its_edge_in_a_double_backward():
    """[NOTE custom-function]"""
    x = t(0.5, requires_grad=True)
    y, z = Careless.apply(x)
    g, = mg.autograd.grad(y + z, x, create_graph=True)
    assert mg.autograd.grad(g, x)[0].item() == pytest.approx(2 * mg.exp(t(0.5)).item())


def test_errors_in_a_function_leave_the_state_as_it_was():
    """[NOTE custom-function]  Their level is gone, so is the closed door around forward."""
    def broken(x):
        raise KeyError

    failing = type("Failing", (Sine,), {"forward": staticmethod(broken)})
    for transform in (grad, vmap, jacfwd):
        with pytest.raises(KeyError):
            transform(failing.apply)(t([1.0]))
    escaped = []
    grad(lambda x: escaped.append(x) or Sine.apply(x))(t(1.0))
    assert Sine.apply(escaped[0]).item() == mg.sin(t(1.0)).item()
    vmap(lambda x: escaped.append(x) or x)(t([1.0]))
    with pytest.raises(LevelError):
        Sine.apply(escaped[1])


# ---------------------------------------------------------------- the combined style, at levels entered by hand
class Kept(Function):
    """x ** 3 in the combined style, which keeps its input, its output, and a square that it computed on the way."""

    calls = 0

    @staticmethod
    def forward(ctx, x, power):
        Kept.calls += 1
        square = x * x
        out = square * x
        ctx.save_for_backward(x, square)
        ctx.save_for_forward(x, square, out)
        ctx.power, ctx.out_shape = power, out.shape
        return out

    @staticmethod
    def backward(ctx, g):
        x, _ = ctx.saved_tensors
        return ctx.power * x * x * g, None

    @staticmethod
    def jvp(ctx, dx, _):
        x, _, out = ctx.saved_tensors
        assert out.shape == ctx.out_shape
        return ctx.power * x * x * dx


def by_hand(f, x, v=None):
    with fw.dual_level():
        return fw.unpack_dual(f(fw.make_dual(x, mg.ones_like(x) if v is None else v))).tangent


def test_the_combined_style_works_at_levels_entered_by_hand():
    """[NOTE custom-function] Forward runs once, and each level has a context of its own."""
    Kept.calls = 0
    x = t(2.0, requires_grad=True)
    with fw.dual_level():
        y = Kept.apply(fw.make_dual(x, t(1.0)), 3)
        primal, tangent = fw.unpack_dual(y)
    assert Kept.calls == 1
    assert (primal.item(), tangent.item()) == (8.0, 12.0)
    assert mg.autograd.grad(tangent, x, retain_graph=True)[0].item() == 12.0
    assert mg.autograd.grad(primal, x)[0].item() == 12.0
    assert by_hand(lambda x: by_hand(lambda x: Kept.apply(x, 3), x), t(2.0)).item() == 12.0


def test_the_combined_style_is_refused_in_a_transform():
    """[NOTE custom-function]"""
    with pytest.raises(Refusal, match="must override the setup_context staticmethod"), fw.dual_level():
        grad(lambda x: Kept.apply(x, 3))(fw.make_dual(t(2.0), t(1.0)))


def test_a_derivative_of_a_jvp_through_a_value_that_a_combined_forward_kept_is_an_error():
    """[NOTE custom-function]"""
    class Lossy(Kept):
        @staticmethod
        def jvp(ctx, dx, _):
            return 3 * ctx.saved_tensors[1] * dx

    x = t(2.0, requires_grad=True)
    tangent = by_hand(lambda x: Lossy.apply(x, 3), x)
    assert tangent.item() == 12.0
    with pytest.raises(UsageError, match="kept a tensor that its forward computed"):
        mg.autograd.grad(tangent, x)


def test_what_a_combined_forward_saw_is_freed():
    """[NOTE custom-function] [NOTE no-cycles]"""
    with no_garbage():
        x = t(2.0, requires_grad=True)
        with fw.dual_level():
            y = Kept.apply(fw.make_dual(x, t(1.0)), 3)
            known = ref(fw.unpack_dual(y).primal.untyped_storage())
            kept = y.grad_fn
            del y
        assert known() is None
        del kept, x


def test_a_rule_for_batches_pushes_tangents_of_levels_below():
    """[NOTE custom-function] [NOTE dual-levels]"""
    class Cubed(Function):
        forward = staticmethod(lambda x: x ** 3)
        setup_context = staticmethod(lambda ctx, inputs, output: None)
        vmap = staticmethod(lambda info, dims, x: (x ** 3, dims[0]))

    x = t([1.0, 2.0])
    assert jvp(vmap(Cubed.apply), (x,), (mg.ones_like(x),))[1].tolist() == [3.0, 12.0]


def test_a_functions_tangent_is_none_where_there_is_none():
    """[NOTE custom-function]"""
    class Counts(Function):
        forward = staticmethod(lambda x, n: (x * n, n + 1))
        setup_context = staticmethod(lambda ctx, inputs, output: setattr(ctx, "n", inputs[1]))
        jvp = staticmethod(lambda ctx, dx, dn: (dx * ctx.n, dn))

    class Claims(Counts):
        jvp = staticmethod(lambda ctx, dx, dn: (dx, dx))

    n = mg.tensor(3)
    assert by_hand(lambda x: Counts.apply(x, n)[0], t(2.0)).item() == 3.0
    with pytest.raises(UsageError, match="You should return None at that position"):
        by_hand(lambda x: Claims.apply(x, n)[0], t(2.0))


def test_a_function_pushes_nothing_where_forward_mode_is_off():
    """[NOTE custom-function] [NOTE dual-levels]"""
    with fw.dual_level():
        x = fw.make_dual(t(2.0), t(1.0))
        with fw._set_fwd_grad_enabled(False):
            y = Sine.apply(x)
        assert fw.unpack_dual(y).tangent is None
