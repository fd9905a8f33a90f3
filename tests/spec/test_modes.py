"""Modes: who is asked before something runs, and what they see."""

from __future__ import annotations

from weakref import ref

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.errors import UsageError
from minigrad.func import grad, hessian, jacfwd, jvp, vmap
from minigrad.state import current
from minigrad.utils._python_dispatch import TorchDispatchMode
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Tape, nth, sin_sin, t


class Seen(TorchDispatchMode):
    """The names of what reached the base."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


class Instead(TorchDispatchMode):
    """One row in the place of another."""

    def __init__(self, row, other):
        super().__init__()
        self.row, self.other = row, other

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return (self.other if func is self.row else func)(*args, **(kwargs or {}))


def backward_twice(x):
    x = x.detach().requires_grad_()
    for y in (sin_sin(x), x * x):
        y.sum().backward()
    return x.grad


def train(x):
    layer = nn.Linear(2, 2, dtype=mg.float64)
    with mg.no_grad():
        layer.weight.copy_(mg.eye(2) * 3)
        layer.bias.fill_(0.5)
    for _ in range(2):
        nn.functional.mse_loss(layer(x).relu(), mg.ones_like(x)).backward()
    with mg.no_grad():
        for p in layer.parameters():
            p -= p.grad * 0.1
    return layer(x)


def overwrite(x):
    y = x.clone()
    y[0].mul_(y[1])
    y[1] = 3
    return y.sin_().t() if y.ndim > 1 else y


def attention(x):
    x = x.to(mg.float32).expand(1, 2, 2)
    return nn.functional.scaled_dot_product_attention(x, x * 2, x, is_causal=True)


def dropped(x):
    return nn.functional.dropout(x, 0.5) * 0 + mg.rand(2) * 0 + x


def checkpointed(x):
    return grad(lambda x: checkpoint(sin_sin, x).sum())(x)


def offloaded(x):
    with save_on_cpu():
        return grad(lambda x: sin_sin(x).sum())(x)


def hooked(x):
    with saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2):
        return grad(lambda x: sin_sin(x).sum())(x)


PROGRAMS = [
    sin_sin, backward_twice, train, overwrite, attention, dropped, checkpointed, offloaded, hooked,
    lambda x: nth(3, sin_sin)(x[0]), lambda x: vmap(grad(lambda y: checkpoint(sin_sin, y) * y))(x),
    lambda x: hessian(lambda x: (x.softmax(0) * x).sum())(x), lambda x: jacfwd(lambda x: x.cumsum(0) * x)(x),
    lambda x: jvp(grad(lambda x: checkpoint(sin_sin, x).sum()), (x,), (mg.ones_like(x),))[1],
    lambda x: mg.autograd.grad(sin_sin(y := x.detach().requires_grad_()).sum(), y, create_graph=True)[0],
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_tape_of_what_a_mode_sees_replays_the_program(program, device):
    """[NOTE dispatch-modes] What it has seen makes the result again, from other inputs too: nothing is missing."""
    where = "cpu" if program is offloaded else device      # elsewhere copies move memory, which is no op
    x, other = t([0.5, -1.5], device=where), t([0.25, 2.0], device=where)
    with Tape() as tape:
        out = program(x)
    assert tape.replayed(out, {}).tolist() == out.tolist()
    again = tape.replayed(out, {x: other}).tolist()
    assert again == program(other).tolist()
    assert again != out.tolist()


def test_what_save_on_cpu_brings_back_comes_from_outside():
    """[NOTE dispatch-modes] No function that a mode has seen gave that memory."""
    class Given(TorchDispatchMode):
        def __init__(self):
            self.made, self.strange = [], []

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.strange += [(func.__name__, x.device.type) for x in args if isinstance(x, mg.Tensor)
                             and all(x.untyped_storage() is not y.untyped_storage() for y in self.made)]
            out = func(*args, **(kwargs or {}))
            self.made.append(out)
            return out

    def strange(where):
        with Given() as seen:
            offloaded(mg.ones(2, device=where) * 0.5)
        return seen.strange

    assert strange("cpu") == []
    assert strange("sim") == [("cos", "sim"), ("cos", "sim")]


def test_a_dispatch_mode_sees_what_a_program_makes_looks_at_and_writes():
    """[NOTE dispatch-modes] The four that are no row on tensors."""
    with Seen() as seen:
        x = mg.zeros(2)
        x.copy_(mg.tensor([3.0, mg.tensor(2.0).item()]))
        mg.randn(2)
    assert seen.names == ["full", "lift_fresh", "item", "lift_fresh", "copy_", "normal"]


def test_modes_are_asked_the_innermost_first_and_run_without_themselves():
    """[NOTE dispatch-modes] What a mode calls goes to those outside it."""
    with Seen() as outer, Instead(mg.sin, mg.cos), Seen() as inner:
        y = mg.sin(t(1.0))
    assert y.item() == mg.cos(t(1.0)).item()
    assert inner.names[-1] == "sin"
    assert outer.names[-1] == "cos"


def test_a_mode_is_given_base_tensors_with_no_level_around():
    """[NOTE dispatch-modes] Under any transform, the handler stands at the base."""
    found = []

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            found.extend((x.owner, current().levels, (x * 2).requires_grad) for x in args if isinstance(x, mg.Tensor))
            return func(*args, **(kwargs or {}))

    with Look():
        vmap(grad(grad(mg.sin)))(t([1.0, 2.0], requires_grad=True))
    assert set(found) == {(None, (), False)}


def test_level_0_records_around_a_dispatch_mode():
    """[NOTE dispatch-modes] Values are the mode's, derivatives the op's."""
    x = t(1.0, requires_grad=True)
    with Instead(mg.sin, mg.cos):
        y = mg.sin(x)
    y.backward()
    assert y.item() == mg.cos(t(1.0)).item()
    assert x.grad.item() == mg.cos(t(1.0)).item()         # the derivative of sin
    assert y.grad_fn.name() == "SinBackward0"


def test_a_recomputation_runs_under_the_dispatch_modes_of_its_forward():
    """[NOTE dispatch-modes] [NOTE recompute-under-the-same-state] C1: left since, and not those around the backward."""
    def run(wrap):
        x = t(1.0, requires_grad=True)
        with Instead(mg.sin, mg.cos):
            y = wrap(lambda x: mg.exp(mg.sin(x)))(x)
        with Seen() as seen:
            y.backward()
        return x.grad.item(), seen.names

    plain, names = run(lambda f: f)
    recomputed, names_again = run(lambda f: lambda x: checkpoint(f, x))
    assert recomputed == plain
    assert names_again == names


def test_a_mode_entered_in_a_region_is_entered_again_when_it_runs_again():
    """[NOTE dispatch-modes] It is part of what the function does."""
    seen = Seen()

    def f(x):
        with seen:
            return mg.sin(mg.sin(x))

    grad(lambda x: checkpoint(f, x))(t(1.0))
    assert seen.names == ["sin", "sin", "sin", "sin"]


def test_a_mode_that_returns_its_argument_does_not_give_it_an_edge():
    """[NOTE dispatch-modes] The output of an op is a tensor of its own."""
    class Nothing(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return args[0]

    x = t(1.0, requires_grad=True)
    with Nothing():
        y = mg.sin(x)
    assert x.is_leaf
    assert y is not x
    assert y.untyped_storage() is x.untyped_storage()


@pytest.mark.parametrize("wrong", [None, 3, "the level's"])
def test_what_a_mode_may_not_return_is_an_error_that_leaves_no_trace(wrong):
    """[NOTE dispatch-modes]"""
    outside = current()

    class Wrong(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return given if wrong == "the level's" else wrong

    given = None

    def f(x):
        nonlocal given
        given = x
        with Wrong():
            return mg.sin(x)

    with pytest.raises(UsageError, match=r"a dispatch mode returned .* for sin"):
        grad(f)(t(1.0))
    assert current() is outside


def test_a_mode_keeps_nothing_alive():
    """[NOTE dispatch-modes] [NOTE no-cycles]"""
    with Seen():
        y = mg.sin(t(1.0, requires_grad=True)).exp()
    node = ref(y.grad_fn)
    del y
    assert node() is None
