"""checkpoint's own features, under transforms."""

import contextlib
import contextvars
import logging
import warnings

import pytest
import torch
import torch.nn.functional as F
from torch.func import functional_call, grad, jacrev, stack_module_state, vjp, vmap
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import (
    CheckpointError,
    GraphExecGroup,
    create_selective_checkpoint_contexts,
    set_checkpoint_debug_enabled,
    set_checkpoint_early_stop,
)

from minigrad.upstream import checkpoint, is_recomputing
from tests.upstream.instruments import Counted, T, chain

X = T([0.3, 0.7])


def leaf():
    return X.clone().requires_grad_()


def backward(f):
    x = leaf()
    return torch.autograd.grad(f(x).sum(), x)[0]


def transformed(f):
    return grad(lambda x: f(x).sum())(X)


EVERYWHERE = pytest.mark.parametrize("run", [backward, transformed])


# ---------------------------------------------------------------- the same surroundings
@EVERYWHERE
def test_the_same_numbers_are_drawn_again_and_the_stream_goes_on_undisturbed(run):
    def f(x):
        return F.dropout(x.sin(), 0.5).sin() * torch.rand(2, dtype=torch.float64)

    def program(wrap):
        torch.manual_seed(1)
        return run(lambda x: wrap(f, x)), torch.rand(3)

    torch.testing.assert_close(program(checkpoint), program(lambda f, x: f(x)), rtol=0, atol=0)


@EVERYWHERE
def test_numbers_are_drawn_anew_where_the_state_is_not_preserved(run):
    drawn = []

    def f(x):
        drawn.append(torch.rand(1).item())
        return x.sin()

    run(lambda x: checkpoint(f, x, preserve_rng_state=False))
    assert drawn[0] != drawn[1]


@EVERYWHERE
def test_autocast_is_as_it_was(run):
    dtypes = []

    def f(x):
        y = x.float() @ torch.ones(2, 2)
        dtypes.append(y.dtype)
        return y.sin()

    def region(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return checkpoint(f, x)

    run(region)
    assert dtypes == [torch.bfloat16] * 2


@EVERYWHERE
def test_modes_of_the_forward_are_there_again(run):
    seen = []

    class Functions(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            if func is torch.Tensor.sin:
                seen.append("function")
            return func(*args, **(kwargs or {}))

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            if func is torch.ops.aten.sin.default:
                seen.append("dispatch")
            return func(*args, **(kwargs or {}))

    def region(x):
        with Functions(), Dispatch():
            return checkpoint(chain(2), x)

    run(region)
    assert seen == ["function", "dispatch"] * 3 + ["function"]  # and there it stops


@EVERYWHERE
def test_context_variables_are_as_they_were(run):
    scale = contextvars.ContextVar("scale", default=1.0)

    def region(x):
        token = scale.set(3.0)
        try:
            return checkpoint(lambda x: (x * scale.get()).sin(), x)
        finally:
            scale.reset(token)

    torch.testing.assert_close(run(region), 3 * (3 * X).cos())


def test_modes_entered_since_see_the_recomputation():
    """A counter of flops around the backward counts what is recomputed, as in torch."""
    seen = []

    class Dispatch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(func)
            return func(*args, **(kwargs or {}))

    y = checkpoint(chain(2), x := leaf())
    with Dispatch():
        torch.autograd.grad(y.sum(), x)
    assert torch.ops.aten.sin.default in seen


# ---------------------------------------------------------------- swapped parameters
class Net(torch.nn.Module):
    def __init__(self, wrap):
        super().__init__()
        self.layers = torch.nn.ModuleList([torch.nn.Linear(2, 2, dtype=torch.float64) for _ in range(2)])
        self.wrap = wrap

    def forward(self, x):
        for layer in self.layers:
            x = self.wrap(lambda x, layer=layer: torch.tanh(layer(x)), x)
        return self.wrap(self.layers[0], x)


@pytest.mark.parametrize("program", [
    lambda net, p: vmap(grad(lambda p, x: functional_call(net, p, (x,)).sum()), (None, 0))(p, torch.stack([X, -X])),
    lambda net, p: jacrev(lambda p: functional_call(net, p, (X,)))(p),
    lambda net, p: jacrev(grad(lambda p: functional_call(net, p, (X,)).sum()))(p),
    lambda net, p: vjp(lambda p: functional_call(net, p, (X,)), p)[1](X),
    lambda net, p: vmap(grad(lambda p: functional_call(net, p, (X,)).sum()))(stack_module_state([net, net])[0]),
])
def test_parameters_that_functional_call_swapped_in_are_swapped_in_again(program):
    def result(wrap):
        torch.manual_seed(0)
        net = Net(wrap)
        return program(net, {name: 2 * p.detach() for name, p in net.named_parameters()})

    torch.testing.assert_close(result(checkpoint), result(lambda f, x: f(x)))


# ---------------------------------------------------------------- checks
@EVERYWHERE
def test_an_argument_that_is_written_to_is_an_error(run):
    def region(x):
        c = torch.ones(2, dtype=torch.float64)
        y = checkpoint(lambda x, c: (x * c).sin(), x, c)
        c.mul_(2)
        return y

    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        run(region)


@EVERYWHERE
def test_a_captured_tensor_that_is_written_to_is_an_error_where_it_is_saved(run):
    def region(x):
        c = torch.ones(2, dtype=torch.float64)
        y = checkpoint(lambda x: (x * c).sin(), x)
        c.mul_(2)
        return y

    with pytest.raises(CheckpointError, match="captures has been modified by an inplace"):
        run(region)


@EVERYWHERE
def test_an_output_may_be_written_to_although_an_op_saved_it(run):
    torch.testing.assert_close(run(lambda x: checkpoint(lambda x: x.sin().exp(), x).mul_(2)), 2 * X.sin().exp() * X.cos())


@EVERYWHERE
def test_early_stop_passes_through_torchscript(run):
    """torch's own ends in an error there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        f = torch.jit.trace(lambda x: x.sin().exp() * x, X)
    torch.testing.assert_close(run(lambda x: checkpoint(f, x)), run(f))


@pytest.mark.parametrize("early_stop", [True, False])
def test_an_error_of_a_second_run_is_raised(early_stop):
    f = changing(chain(3), lambda x: x.sin() / {}["missing"])
    with pytest.raises(KeyError, match="missing"):
        backward(lambda x: checkpoint(f, x, early_stop=early_stop))


def changing(first, then):
    runs = []

    def f(x):
        runs.append(1)
        return first(x) if len(runs) == 1 else then(x)

    return f


@EVERYWHERE
@pytest.mark.parametrize(("first", "then", "message"), [
    (chain(3), chain(2), "A different number of tensors was saved"),
    (chain(2), lambda x: torch.cat([x, x]).sin().sin(), "different metadata"),
])
def test_a_rerun_that_does_something_else_is_an_error(run, first, then, message):
    with pytest.raises(CheckpointError, match=message):
        run(lambda x: checkpoint(changing(first, then), x))


@EVERYWHERE
def test_a_rerun_that_saves_more_is_an_error_where_it_is_run_to_its_end(run):
    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        run(lambda x: checkpoint(changing(chain(2), chain(3)), x, early_stop=False))
    run(lambda x: checkpoint(changing(chain(2), chain(3)), x))


@EVERYWHERE
def test_metadata_may_be_left_unchecked(run):
    f = changing(lambda x: (x * 2).sum(), lambda x: (x.float() * 2).sum())
    run(lambda x: checkpoint(f, x, determinism_check="none"))
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(f, X, determinism_check="all")


@EVERYWHERE
def test_debug_shows_both_runs(run, monkeypatch):
    monkeypatch.setattr(logging.getLogger("LoggingTensor"), "propagate", False)  # pytest formats what torch logs
    with pytest.raises(CheckpointError, match=r"(?s)in original.*in recompute"):
        run(lambda x: checkpoint(changing(chain(3), chain(2)), x, debug=True))
    with set_checkpoint_debug_enabled(True), pytest.raises(CheckpointError, match="in recompute"):
        run(lambda x: checkpoint(changing(chain(3), chain(2)), x))


@EVERYWHERE
def test_early_stop_stops_as_soon_as_all_is_there(run):
    ends = []

    def f(x):
        y = x.sin()
        ends.append(1)
        return y * 2

    run(lambda x: checkpoint(f, x))
    assert len(ends) == 1
    run(lambda x: checkpoint(f, x, early_stop=False))
    assert len(ends) == 3

    def region(x):
        with set_checkpoint_early_stop(False):
            return checkpoint(f, x)

    run(region)
    assert len(ends) == 5


@EVERYWHERE
def test_early_stop_is_no_exception_that_a_region_could_handle(run):
    def f(x):
        try:
            return x.sin().sin()
        except Exception:  # noqa: BLE001
            return x

    torch.testing.assert_close(run(lambda x: checkpoint(f, x)), run(chain(2)))


# ---------------------------------------------------------------- effects
def test_a_backward_inside_a_region_accumulates_once():
    w, x = T(3.0).requires_grad_(), T(2.0).requires_grad_()

    def f(x):
        (w * w).backward()
        return x.sin()

    checkpoint(lambda x: checkpoint(f, x), x).backward()
    assert (w.grad.item(), x.grad.item()) == (6.0, T(2.0).cos().item())


def test_a_region_that_reads_the_gradient_of_its_argument_reads_it_again():
    def f(x):
        x.sin().sum().backward(retain_graph=True)
        return x.grad * x

    def program(wrap):
        x = leaf()
        y = wrap(f, x).sum()
        x.grad = None
        return torch.autograd.grad(y, x)[0]

    torch.testing.assert_close(program(checkpoint), program(lambda f, x: f(x)))


def on_a_captured_tensor(x, w):
    w.register_hook(lambda g: 2 * g)
    return (x * w).sin()


def on_a_captured_node(x, w):
    w.grad_fn.register_hook(lambda inner, outer: (2 * inner[0],))
    return (x * w).sin()


def on_its_own_tensors(x, w):
    y = x.sin()
    y.register_hook(lambda g: 2 * g)
    x.register_hook(lambda g: 3 * g)
    return (y * w).sin()


def before_an_inner_backward(x, w):
    w.register_hook(lambda g: 2 * g)
    return w * torch.autograd.grad((x * x * w).sin().sum(), w, create_graph=True)[0]


def for_an_inner_backward_only(x, w):
    with w.register_hook(lambda g: 2 * g):
        return w * torch.autograd.grad((x * x * w).sin().sum(), w, create_graph=True)[0]


@pytest.mark.parametrize("remat", ["first", "every"])
@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("f", [on_a_captured_tensor, on_a_captured_node, on_its_own_tensors, before_an_inner_backward,
                               for_an_inner_backward_only])
def test_a_hook_that_a_region_registers_is_registered_once(f, order, remat):
    def program(wrap):
        x, leaf = X.clone().requires_grad_(), T([0.5, 0.6]).requires_grad_()
        w = leaf.cos()
        y = wrap(lambda x: f(x, w), x.exp())
        for _ in range(order):
            y = sum(g.sum() for g in torch.autograd.grad(y.sum(), (x, leaf), create_graph=True))
        return y

    torch.testing.assert_close(program(lambda f, x: checkpoint(f, x, remat=remat)), program(lambda f, x: f(x)))


def test_a_hook_on_the_node_of_an_argument_is_not_one_of_what_stands_for_it():
    def f(x):
        x.grad_fn.register_prehook(lambda outer: (2 * outer[0],))
        return x.sin()

    def program(wrap):
        x = leaf()
        first, = torch.autograd.grad(wrap(f, x.exp()).sum(), x, create_graph=True)
        return torch.autograd.grad(first.sum(), x)[0]

    torch.testing.assert_close(program(lambda f, x: checkpoint(f, x, remat="every")), program(lambda f, x: f(x)))


@pytest.mark.parametrize("remat", ["first", "every"])
def test_hooks_that_were_there_keep_their_order(remat):
    w = T(2.0).requires_grad_()
    w.register_hook(lambda g: g + 1)
    y = checkpoint(lambda x: w.register_hook(lambda g: 3 * g) and (x * w).sin(), T(0.5).requires_grad_(), remat=remat)
    w.register_hook(lambda g: g - 5)
    for _ in range(2):
        torch.testing.assert_close(torch.autograd.grad(y, w, retain_graph=True)[0], 3 * (0.5 * T(1.0).cos() + 1) - 5)


@pytest.mark.parametrize("remat", ["first", "every"])
def test_a_hook_that_a_region_registers_on_a_module_is_registered_once(remat):
    net, x = torch.nn.Linear(2, 2, dtype=torch.float64), leaf()

    def f(x):
        net.register_forward_hook(lambda module, args, out: 2 * out)
        return net(x).sin()

    def plain(x):
        return (2 * F.linear(x, net.weight, net.bias)).sin()

    got = torch.autograd.grad(checkpoint(f, x, remat=remat).sum(), (x, net.weight))
    torch.testing.assert_close(got, torch.autograd.grad(plain(x).sum(), (x, net.weight)))
    torch.testing.assert_close(net(x), 2 * F.linear(x, net.weight, net.bias))


@EVERYWHERE
def test_a_function_can_ask_whether_it_runs_again(run):
    answers = []
    run(lambda x: checkpoint(lambda x: answers.append(is_recomputing()) or x.sin(), x))
    assert answers == [False, True]


# ---------------------------------------------------------------- how it is called
def test_a_second_backward_recomputes_once_more():
    f, x = Counted(chain(2)), leaf()
    y = checkpoint(f, x).sum()
    torch.autograd.grad(y, x, retain_graph=True)
    torch.autograd.grad(y, x)
    assert f.calls == 3
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        torch.autograd.grad(y, x)


def test_the_runs_of_a_group_recompute_once():
    f, x = Counted(lambda x: (x.sin().sin(), x.cos().sin())), leaf()
    a, b = checkpoint(f, x)
    with GraphExecGroup():
        torch.autograd.grad(a.sum(), x)
        torch.autograd.grad(b.sum(), x)
    assert f.calls == 2


def test_a_save_may_be_looked_at_outside_of_a_backward():
    x = leaf()
    y = checkpoint(chain(2), x)
    torch.testing.assert_close(y.grad_fn._saved_self, X.sin())
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x)[0], backward(chain(2)))


@EVERYWHERE
def test_a_selective_policy_says_what_is_not_recomputed(run):
    seen = []

    class Exps(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.extend([func.overloadpacket] * (func is torch.ops.aten.exp.default))
            return func(*args, **(kwargs or {}))

    def contexts():
        return create_selective_checkpoint_contexts([torch.ops.aten.exp.default])

    def f(x):
        return (x.sin().exp() * x.cos()).sin()

    def region(x):
        return checkpoint(f, x, context_fn=contexts)

    with Exps():
        got = run(region)
    assert seen == [torch.ops.aten.exp]
    torch.testing.assert_close(got, run(f))


def test_a_forward_context_that_swallows_an_exception_is_an_error():
    def fail(x):
        raise ValueError

    with pytest.raises(RuntimeError, match="suppressed an exception"):
        checkpoint(fail, X, context_fn=lambda: (contextlib.suppress(ValueError), contextlib.nullcontext()))


def test_where_nothing_is_recorded_the_function_is_called_and_that_is_all():
    f = Counted(chain(2))
    with torch.no_grad():
        checkpoint(f, leaf())
    assert f.calls == 1


def test_the_reentrant_variant_is_torchs():
    x = leaf()
    y = checkpoint(chain(2), x, use_reentrant=True)
    assert type(y.grad_fn).__name__ == "CheckpointFunctionBackward"


@EVERYWHERE
def test_keyword_arguments_and_containers_are_arguments(run):
    def f(pair, *, scale):
        return (pair["a"] * scale[0]).sin()

    torch.testing.assert_close(run(lambda x: checkpoint(f, {"a": x}, scale=[x.cos()])), run(lambda x: (x * x.cos()).sin()))
