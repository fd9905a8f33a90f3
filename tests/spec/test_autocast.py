"""Autocast: in which type a call runs."""

from __future__ import annotations

import pytest

import minigrad as mg
import minigrad.nn.functional as F
from minigrad import nn
from minigrad.amp import autocast, custom_bwd, custom_fwd
from minigrad.autograd import Function
from minigrad.errors import UsageError
from minigrad.func import grad, jvp, vmap
from minigrad.state import current
from minigrad.utils._python_dispatch import TorchDispatchMode
from minigrad.utils.checkpoint import checkpoint

torch = pytest.importorskip("torch")
HALF, FLOAT, DOUBLE = mg.float16, mg.float32, mg.float64

CALLS = {
    "mm": lambda m, f, x: m.mm(x, x), "matmul": lambda m, f, x: x @ x, "bmm": lambda m, f, x: m.bmm(x[None], x[None]),
    "mv": lambda m, f, x: m.mv(x, x[0]), "dot": lambda m, f, x: m.dot(x[0], x[0]), "addmm": lambda m, f, x: m.addmm(x, x, x),
    "baddbmm": lambda m, f, x: m.baddbmm(x[None], x[None], x[None]), "linear": lambda m, f, x: f.linear(x, x),
    "einsum": lambda m, f, x: m.einsum("ij,jk->ik", x, x), "tensordot": lambda m, f, x: m.tensordot(x, x, 1),
    "attention": lambda m, f, x: f.scaled_dot_product_attention(x[None], x[None], x[None]), "outer": lambda m, f, x: m.outer(x[0], x[0]),
    "softmax": lambda m, f, x: f.softmax(x, -1), "log_softmax": lambda m, f, x: f.log_softmax(x, -1),
    "logsumexp": lambda m, f, x: m.logsumexp(x, -1), "sum": lambda m, f, x: x.sum(), "mean": lambda m, f, x: x.mean(),
    "prod": lambda m, f, x: x.prod(), "cumsum": lambda m, f, x: x.cumsum(0), "norm": lambda m, f, x: x.norm(),
    "var": lambda m, f, x: x.var(), "exp": lambda m, f, x: x.exp(), "pow": lambda m, f, x: x ** 2.5,
    "trace": lambda m, f, x: x.trace(), "layer_norm": lambda m, f, x: f.layer_norm(x, (2,)), "gelu": lambda m, f, x: f.gelu(x),
    "mse_loss": lambda m, f, x: f.mse_loss(x, x), "l1_loss": lambda m, f, x: f.l1_loss(x, x),
    "smooth_l1_loss": lambda m, f, x: f.smooth_l1_loss(x, x), "huber_loss": lambda m, f, x: f.huber_loss(x, x),
    "nll_loss": lambda m, f, x: f.nll_loss(x, m.tensor([0, 1])), "cross_entropy": lambda m, f, x: f.cross_entropy(x, m.tensor([0, 1])),
    "kl_div": lambda m, f, x: f.kl_div(x, x, reduction="sum"), "binary_cross_entropy": lambda m, f, x: f.binary_cross_entropy(x, x),
    "with_logits": lambda m, f, x: f.binary_cross_entropy_with_logits(x, x), "cosine": lambda m, f, x: f.cosine_similarity(x, x),
    "normalize": lambda m, f, x: f.normalize(x), "mixed_cat": lambda m, f, x: m.cat([x, m.ones(2, 2)]),
    "mixed_stack": lambda m, f, x: m.stack([m.ones(2, 2, dtype=m.float16), x]), "mixed_add": lambda m, f, x: x + m.ones(2, 2),
    "index_copy": lambda m, f, x: m.index_copy(x, 0, m.tensor([1, 0]), m.ones(2, 2, dtype=m.float16)) if x.dtype is not m.float64 else x,
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_calls_run_in_the_types_that_torch_runs_them_in(name, dtype):
    """[NOTE autocast] The lists of the cpu, on inputs of each type."""
    def run(m, functional, enter):
        x = m.ones(2, 2, dtype=getattr(m, dtype), device="cpu") / 2
        with enter:
            return str(CALLS[name](m, functional, x).dtype).rpartition(".")[2]

    with mg.device("cpu"):
        assert run(mg, F, autocast("cpu")) == run(torch, torch.nn.functional, torch.autocast("cpu", torch.float16))


def test_an_accelerator_has_the_lists_of_cuda():
    """[NOTE autocast]"""
    x = mg.ones(2, 2, device="sim", dtype=HALF)
    with autocast("sim"):
        assert (x.float() @ x).dtype is HALF
        assert [y.dtype for y in (x.sum(), x.exp(), F.softmax(x, 0), x ** 2, F.layer_norm(x, (2,)))] == [FLOAT] * 5
        assert [y.dtype for y in (x.mean(), F.gelu(x), x.tanh())] == [HALF] * 3
        assert mg.dot(x[0], x[0].float()).dtype is FLOAT
        on_the_host = mg.ones(2, 2, device="cpu", dtype=FLOAT)
        assert (on_the_host @ on_the_host).dtype is FLOAT


def matrix(scale=3.0, **options):
    return mg.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=FLOAT, **options) / scale


def f(w):
    return (w @ matrix(5)).sin().to(FLOAT).sum()


def cast_by_hand(w):
    return (w.to(HALF) @ matrix(5).to(HALF)).sin().to(FLOAT).sum()


TRANSFORMS = {
    "level 0": lambda f, x: mg.autograd.grad(f(y := x.detach().requires_grad_()), y)[0],
    "grad": lambda f, x: grad(f)(x), "grad grad": lambda f, x: grad(lambda x: grad(f)(x).sum())(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,))[1], "jvp grad": lambda f, x: jvp(grad(f), (x,), (x,))[1],
    "vmap grad": lambda f, x: vmap(grad(f))(mg.stack([x, x * 2])),
    "grad vmap": lambda f, x: grad(lambda x: vmap(f)(mg.stack([x, x])).sum())(x),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: lambda x: checkpoint(f, x)], ids=["plain", "checkpoint"])
@pytest.mark.parametrize("entered", ["around", "inside"])
def test_gradients_flow_through_casts_at_every_level(name, wrap, entered):
    """[NOTE autocast] As where the program casts itself; the oracle is that program, without autocast."""
    transform, x = TRANSFORMS[name], matrix()
    expected = transform(cast_by_hand, x)
    if entered == "around":
        with autocast(x.device.type):
            found = transform(wrap(f), x)
    else:
        found = transform(wrap(autocast(x.device.type)(f)), x)
    assert found.dtype is expected.dtype
    assert found.tolist() == expected.tolist()


def test_a_region_runs_again_under_the_autocast_of_its_forward():
    """[NOTE autocast] [NOTE recompute-under-the-same-state] C1, whatever is in force around the backward."""
    def gradient(wrap, around):
        w = matrix(requires_grad=True).detach().requires_grad_()
        with autocast(w.device.type):
            y = wrap(f)(w)
        with around:
            y.backward()
        return w.grad.tolist()

    kind = matrix().device.type
    plain = gradient(lambda f: f, autocast(kind, enabled=False))
    for around in (autocast(kind), autocast(kind, enabled=False)):
        assert gradient(lambda f: lambda w: checkpoint(f, w), around) == plain


def test_regions_that_share_a_parameter_save_alike_in_forward_and_recomputation():
    """[NOTE autocast] Upstream: pytorch/pytorch#193338.  The second region finds the cast of the first, its recomputation does not."""
    linear, x = nn.Linear(2, 2, bias=False), matrix(requires_grad=True)
    with autocast(x.device.type):
        y = checkpoint(lambda x: linear(x).sin(), checkpoint(lambda x: linear(x).sin(), x))
    y.float().sum().backward()
    with autocast(x.device.type):
        z = linear(linear(x.detach()).sin()).sin()
    g, = mg.autograd.grad(z.float().sum(), linear.weight)
    assert linear.weight.grad.tolist() == g.tolist()


class Casts(TorchDispatchMode):
    """How often something is cast."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += func.__name__ == "_to_copy"
        return func(*args, **(kwargs or {}))


def test_one_cast_of_a_leaf_serves_until_the_outermost_block_ends():
    """[NOTE autocast] Not after a write to it."""
    w = matrix().detach().requires_grad_()
    kind = w.device.type

    def casts(program, **options):
        with Casts() as casts, autocast(kind, **options):
            program()
        return casts.count

    def write():
        w @ w
        with mg.no_grad():
            w.mul_(2)
        w @ w

    def nested():
        with autocast(kind):
            w @ w
        w @ w

    assert casts(lambda: (w @ w, w @ w)) == 1
    assert casts(lambda: (w @ w, w @ w)) == 1
    assert casts(lambda: (w @ w, w @ w), cache_enabled=False) == 4
    assert casts(nested) == 1
    assert casts(write) == 2
    assert casts(lambda: (w.detach() @ w.detach())) == 2   # no leaf that requires grad


def test_nested_blocks_and_functions_put_back_what_they_found():
    """[NOTE autocast] [NOTE state-is-a-value]"""
    outside, x = current(), matrix()
    kind = x.device.type
    with autocast(kind):
        with autocast(kind, enabled=False):
            assert (x @ x).dtype is FLOAT
            assert not mg.is_autocast_enabled(kind)
            assert autocast(kind)(lambda: (x @ x).dtype)() is HALF
            assert (x.half() @ x.half()).dtype is HALF
        assert (x @ x).dtype is HALF
        assert (x.double() @ x.double()).dtype is DOUBLE
        assert mg.is_autocast_enabled(kind)
    assert current() is outside


def test_types_and_devices_that_it_does_not_know_are_refused_by_name():
    """[NOTE autocast]"""
    with pytest.raises(UsageError, match="has no bfloat16"):
        autocast("cpu", dtype=mg.float32)
    with pytest.raises(AttributeError, match="because numpy"):
        mg.bfloat16
    with pytest.raises(UsageError, match="unsupported autocast device_type 'tpu'"):
        autocast("tpu")


@pytest.mark.parametrize("cast_inputs", [None, FLOAT])
def test_a_custom_function_runs_its_backward_as_its_forward(cast_inputs):
    """[NOTE autocast] [NOTE custom-function]"""
    seen, x = [], matrix().detach().requires_grad_()
    kind = x.device.type

    class Square(Function):
        @staticmethod
        @custom_fwd(device_type=kind, cast_inputs=cast_inputs)
        def forward(ctx, x):
            ctx.save_for_backward(x)
            seen.append((x.dtype, mg.is_autocast_enabled(kind)))
            return x @ x

        @staticmethod
        @custom_bwd(device_type=kind)
        def backward(ctx, ct):
            x, = ctx.saved_tensors
            seen.append((ct.dtype, mg.is_autocast_enabled(kind)))
            return (ct @ x.t() + x.t() @ ct).to(FLOAT)

    with autocast(kind):
        y = Square.apply(x)
    y.sum().backward()
    inside = HALF if cast_inputs is None else FLOAT
    assert seen == [(FLOAT, cast_inputs is None), (inside, cast_inputs is None)]
    assert y.dtype is inside
