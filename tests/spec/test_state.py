"""All hidden state is one immutable value: taking a snapshot is reading a variable, leaving a context puts the old one back."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from contextvars import copy_context

import pytest

import minigrad as mg
from minigrad.autograd.graph import disable_saved_tensors_hooks, save_on_cpu, saved_tensors_hooks
from minigrad.func import grad, vmap
from minigrad.overrides import TorchFunctionMode
from minigrad.random import fork_rng
from minigrad.state import State, Watcher, current, show, using
from minigrad.utils._python_dispatch import TorchDispatchMode
from minigrad.utils.checkpoint import set_checkpoint_early_stop
from tests.spec.instruments import Packed, chain, nth, sin_sin, t, watching

CONTEXTS = {
    "no_grad": mg.no_grad,
    "enable_grad": mg.enable_grad,
    "set_grad_enabled": lambda: mg.autograd.set_grad_enabled(False),
    "saved_tensors_hooks": lambda: saved_tensors_hooks(lambda s: s, lambda s: s),
    "save_on_cpu": save_on_cpu,
    "disable_saved_tensors_hooks": lambda: disable_saved_tensors_hooks("no"),
    "set_checkpoint_early_stop": lambda: set_checkpoint_early_stop(False),
    "fork_rng": fork_rng,
}


@pytest.mark.parametrize("name", CONTEXTS)
def test_leaving_a_context_puts_back_the_very_value_that_was_there(name):
    """[NOTE state-is-a-value]"""
    before = current()
    with CONTEXTS[name]():
        assert current() is not before
    assert current() is before
    with pytest.raises(ZeroDivisionError), CONTEXTS[name]():
        raise ZeroDivisionError
    assert current() is before


@pytest.mark.parametrize(("transform", "x"), [(grad, 1.0), (vmap, [1.0]), (lambda f: nth(3, f), 1.0), (lambda f: vmap(grad(f)), [1.0])],
                         ids=["grad", "vmap", "grad grad grad", "vmap grad"])
def test_leaving_a_transform_does_too_whatever_was_set_inside(transform, x):
    """[NOTE state-is-a-value]"""
    def careless(x):
        mg.autograd.set_grad_enabled(False)
        saved_tensors_hooks(lambda s: s, lambda s: s).__enter__()
        mg.no_grad().__enter__()
        return x.sum()
    before = current()
    transform(careless)(t(x))
    assert current() is before


def test_a_state_is_not_changed_but_replaced():
    """[NOTE state-is-a-value]"""
    with pytest.raises(AttributeError, match="immutable"):
        current().hooks = None
    other = current()._replace(hooks_disabled="no")
    assert current().hooks_disabled is None and other.hooks_disabled == "no"
    assert State().levels == ()


def test_a_snapshot_put_back_is_the_stack_as_it_was():
    """[NOTE state-is-a-value]: what "restore the thread-local state" takes."""
    kept = []
    vmap(grad(lambda x: kept.append(current()) or x * x))(t([1.0, 2.0]))
    assert show() == "base"
    with using(kept[0]):
        assert show() == "base < vmap@1 < grad@2"
    assert show() == "base"


def test_contexts_nest_in_any_number_and_can_be_entered_again():
    """[NOTE state-is-a-value]"""
    before, hooks, off = current(), Packed(), mg.no_grad()
    with ExitStack() as stack:
        for _ in range(3):
            stack.enter_context(hooks)
            stack.enter_context(off)
            stack.enter_context(mg.enable_grad())
        mg.sin(t(1.0, requires_grad=True))
    assert current() is before
    assert hooks.count == 1


def test_tasks_of_one_thread_do_not_see_each_others_state():
    """[NOTE state-is-a-value]  A thread-local would be shared by them."""
    async def one(mode):
        with mg.autograd.set_grad_enabled(mode):
            seen = []
            for _ in range(3):
                await asyncio.sleep(0)
                seen.append(mg.autograd.is_grad_enabled())
        return seen

    async def two():
        return await asyncio.gather(one(True), one(False))
    assert asyncio.run(two()) == [[True] * 3, [False] * 3]


# ---------------------------------------------------------------- a State may outlive its block
def modes():
    """Each mode, and whether it is in force for `sin` and `mul`, which take the fast path where nobody watches."""
    class Counting(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.seen = True
            return func(*args, **(kwargs or {}))

    class Asked(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.seen = True
            return func(*args, **(kwargs or {}))

    def sees(mode):
        mg.sin(t(1.0)) * 2
        return hasattr(mode, "seen")

    return {"inference": (mg.inference_mode(), lambda _: mg.sin(t(1.0)).is_inference()),
            "autocast": (mg.autocast(mg.get_default_device().type, mg.float16), lambda _: (mg.ones(2, 2) @ mg.ones(2, 2)).dtype is mg.float16),
            "dispatch": (Counting(), sees), "function": (Asked(), sees)}


@pytest.mark.parametrize("mode", modes())
def test_a_mode_is_in_force_in_a_context_that_was_copied_in_its_block(mode):
    """[NOTE state-is-a-value]"""
    block, in_force = modes()[mode]
    with block:
        copied = copy_context()
    assert copied.run(in_force, block)


@pytest.mark.parametrize("mode", modes())
def test_a_mode_is_in_force_in_a_task_that_was_made_in_its_block(mode):
    """[NOTE state-is-a-value]"""
    block, in_force = modes()[mode]

    async def ask():
        await asyncio.sleep(0)
        return in_force(block)

    async def main():
        with block:
            task = asyncio.create_task(ask())
        return await task
    assert asyncio.run(main())


# ---------------------------------------------------------------- the fast path
BODIES = {
    "chain": chain(5),
    "arithmetic": lambda x: (x * 2 - x / 3 + 1) ** 2 * x,
    "broadcast": lambda x: (x.reshape(1, 1) * t([[1.0, 2.0], [3.0, 4.0]])).sum(),
    "outputs": lambda x: mg.exp(mg.tanh(x)) * mg.sigmoid(x),
    "complex scalar": lambda x: mg.real(mg.sin(mg.complex(x, 2 * x)) * mg.exp(mg.complex(x * x, x)) / mg.complex(x, t(1.0))),
    "complex": lambda x: mg.real(mg.exp(mg.complex(x, 2 * x) * t([1.0, 2.0])) / mg.complex(x + t([0.0, 1.0]), x.expand(2))).sum(),
    "constants": lambda x: mg.sin(x * t(3.0)) + t(2.0) * mg.cos(t(2.0)),
}


def graph_of(y):
    """Names of nodes and numbers of edges, depth first."""
    if y is None:
        return None
    return y.name(), [graph_of(n) for n, _ in y.next_functions]


@pytest.mark.parametrize("body", BODIES)
def test_the_fast_path_means_what_the_long_way_means(body):
    """[NOTE fast-path]: the long way is taken where somebody watches, or where there are hooks."""
    f = BODIES[body]

    def run():
        x = t(0.7, requires_grad=True)
        y = f(x)
        y.backward()
        return y.item(), x.grad.item(), graph_of(y.grad_fn), nth(2, f)(t(0.7)).item(), vmap(grad(f))(t([0.7, 0.2])).tolist()
    fast = run()
    with watching(Watcher()):
        assert run() == fast
    with Packed():
        assert run() == fast


def test_nobody_is_told_of_ops_where_nobody_watches():
    """[NOTE fast-path]"""
    class Loud(Watcher):
        def notice(self, event, owner, subject, detail):
            heard.append(event)
    heard = []
    with watching(Loud()):
        sin_sin(t(1.0))
    told = len(heard)
    sin_sin(t(1.0))
    assert told > 0 and len(heard) == told
