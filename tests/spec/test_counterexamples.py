"""Every clause that can be broken is broken here, alone, and the wrong number that follows is written down.

The right number beside it is a closed form, or the program without the feature.
"""

from __future__ import annotations

import gc
import math
from contextvars import ContextVar, copy_context
from functools import partial
from weakref import ref

import pytest

import minigrad as mg
import minigrad.autograd.forward_ad as fw
from minigrad import memory, sim
from minigrad.autograd import Function, shallow_detach
from minigrad.autograd.graph import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from minigrad.devices.simulated import SIM
from minigrad.errors import CheckpointError, LevelError, Refusal, UsageError
from minigrad.func import functional_call, functionalize, grad, grad_and_value, jvp, linearize, vjp, vmap
from minigrad.fx.experimental.proxy_tensor import make_fx
from minigrad.ops import aten
from minigrad.overrides import TorchFunctionMode
from minigrad.random import generator_of
from minigrad.state import current, show, using
from minigrad.utils.checkpoint import GraphExecGroup, checkpoint, create_selective_checkpoint_contexts, is_recomputing
from tests.spec import counterexamples as broken
from tests.spec.instruments import (
    Alive,
    Counted,
    OpsByLevel,
    Packed,
    Tape,
    arrays_kept,
    chain,
    every,
    forget_streams,
    nth,
    see_tangent,
    sin_sin,
    t,
    watching,
)

# derivatives of sin(sin x) at 5, in closed form
S, C = math.sin(5.0), math.cos(5.0)
FIRST = math.cos(S) * C
SECOND = -math.sin(S) * C * C - math.cos(S) * S


def close(a, b):
    return a == pytest.approx(b, rel=1e-12)


def checkpointed(x):
    return checkpoint(sin_sin, x)


def offloaded(x):
    with save_on_cpu():
        return sin_sin(x)


# ---------------------------------------------------------------- the State and its levels
def test_popping_a_level_leaks_what_was_set_inside_it():
    """[NOTE state-is-a-value] S.  Upstream: temporarily_pop_interpreter_stack, which undoes instead of restoring."""
    def careless(x):
        mg.autograd.set_grad_enabled(False)
        return x * x

    def records_afterwards():
        with using(current()):
            grad(careless)(t(3.0))
            return mg.autograd.is_grad_enabled()

    assert records_afterwards() is True
    with broken.levels_left_by_popping():
        assert records_afterwards() is False


def test_a_hook_that_may_return_anything_broadcasts_in_silence():
    """[NOTE hooks-of-gradients]  x x, of which the second is weighed 3 times: the gradient is 2 x and 6 x."""
    def program():
        x = t([1.0, 2.0], requires_grad=True)
        y = x * x
        y.register_hook(lambda g: g.max())
        (y * t([1.0, 3.0])).sum().backward()
        return x.grad.tolist()

    with pytest.raises(UsageError, match="has changed the size of value"):
        program()
    with broken.hooks_that_may_return_anything():
        assert program() == [6.0, 12.0]


def test_a_state_forgotten_with_its_block_is_not_in_force_where_a_copied_context_runs():
    """[NOTE state-is-a-value] S.  The mode says that it is on, and the product is in full precision."""
    def product():
        x = mg.ones(2, 2, device="cpu")  # the fast path is the host's
        return mg.is_autocast_enabled("cpu"), (x @ x).dtype

    def later():
        with mg.autocast("cpu", mg.float16):
            copied = copy_context()
        return copied.run(product)

    assert later() == (True, mg.float16)
    with broken.states_forgotten_when_their_block_ends():
        assert later() == (True, mg.float32)


def test_popping_a_level_leaks_a_refusal_into_the_next_program():
    """[NOTE disabled-hooks] H7.  torch: after some failures every later checkpoint of the thread is refused."""
    def failing(x):
        disable_saved_tensors_hooks("not in here").__enter__()
        raise ZeroDivisionError

    def next_program():
        with using(current()):
            with pytest.raises(ZeroDivisionError):
                grad(failing)(t(1.0))
            return grad(checkpointed)(t(5.0)).item()

    assert close(next_program(), FIRST)
    with broken.levels_left_by_popping(), pytest.raises(Refusal, match="not in here"):
        next_program()


def test_leaves_that_are_cut_off_from_level_0_lose_the_outer_derivative():
    """[NOTE level-zero] S2: `grad` at one level, level 0 at the other; both derivatives are 0 without the edge."""
    def outer():
        x = t(5.0, requires_grad=True)
        g = grad(sin_sin)(x)
        return mg.autograd.grad(g, x)[0].item() if g.requires_grad else 0.0

    assert close(outer(), SECOND)
    with broken.leaves_cut_off_from_level_0():
        assert outer() == 0.0
        assert nth(2, sin_sin)(t(5.0)).item() == 0.0


def test_comparing_levels_by_number_makes_linearize_zero():
    """[NOTE levels-are-objects] S1.  A vjp function's level has gone; the level that now has its number is another one."""
    def slope():
        return linearize(sin_sin, t(5.0))[1](t(1.0)).item()

    assert close(slope(), FIRST)
    with broken.levels_compared_by_number():
        assert slope() == 0.0


def test_an_op_that_meets_the_level_of_its_first_argument_loses_the_inner_derivative():
    """[NOTE who-processes-an-op]  The second derivative of x y y, by y and then by x, is 2y."""
    def program():
        return grad(lambda x: grad(lambda y: x * y * y)(t(2.0)))(t(3.0)).item()

    assert program() == 4.0
    with broken.ops_processed_by_the_level_of_the_first_argument():
        assert program() == 0.0


def test_a_watcher_told_of_the_top_alone_does_not_know_what_ran():
    """[NOTE the-stack-is-shown] S6.  x x forward, and its two factors backward: three products of arrays."""
    def products():
        with watching(OpsByLevel()) as seen:
            vmap(grad(lambda x: x * x))(t([1.0, 2.0]))
        return seen.names.get("base", []).count("mul")

    assert products() == 3
    with broken.watchers_told_of_the_top_alone():
        assert products() == 0


def test_one_grad_mode_for_all_levels_makes_grad_under_no_grad_zero():
    """[NOTE grad-mode-per-level] S3.  Upstream: NOTE [grad and vjp interaction with no_grad], case 1."""
    def program():
        with mg.no_grad():
            return grad(sin_sin)(t(5.0)).item()

    assert close(program(), FIRST)
    with broken.one_grad_mode_for_all_levels():
        assert program() == 0.0


def test_a_guard_that_turns_all_levels_off_makes_the_second_derivative_zero():
    """[NOTE grad-mode-per-level] S3.  The C++ no-grad guard around packing: "why did we need to enable grad mode" (#89166)."""
    assert close(nth(2, sin_sin)(t(5.0)).item(), SECOND)
    with broken.backward_with_all_grad_modes_off():
        assert nth(2, sin_sin)(t(5.0)).item() == 0.0


def test_an_escaped_batch_that_means_its_value_broadcasts_in_silence():
    """[NOTE escaped-tensor] S4."""
    def program():
        kept = []
        vmap(lambda x: kept.append(x) or x)(t([1.0, 2.0, 3.0]))
        return (t(10.0) * kept[0]).tolist()

    with pytest.raises(LevelError):
        program()
    with broken.escaped_batches_mean_their_value():
        assert program() == [10.0, 20.0, 30.0]


def test_a_forward_that_means_values_loses_what_its_closure_captured():
    """[NOTE custom-function]  6 where d(2 x x) is 12."""
    def program(x):
        class Times(Function):
            forward = staticmethod(lambda y: y * x)
            setup_context = staticmethod(lambda ctx, inputs, output: None)
        return x * Times.apply(t(2.0))

    with pytest.raises(Refusal, match="not among its arguments"):
        grad(program)(t(3.0))
    with broken.forward_that_means_values():
        assert grad(program)(t(3.0)).item() == 6.0


def test_intermediates_without_history_are_constants_to_the_second_derivative():
    """[NOTE custom-function]  Upstream: pytorch/pytorch#76185."""
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            square = x * x
            ctx.save_for_backward(square)
            return square * x

        @staticmethod
        def backward(ctx, g):
            return 3 * ctx.saved_tensors[0] * g

    def second_derivative():
        x = t(2.0, requires_grad=True)
        (g,) = mg.autograd.grad(Cube.apply(x) + x**2, x, create_graph=True)
        return mg.autograd.grad(g, x)[0].item()

    with pytest.raises(UsageError, match="kept a tensor that its forward computed"):
        second_derivative()
    with broken.intermediates_without_history():
        assert second_derivative() == 2.0                  # 6x + 2 was asked for


def test_depth_first_order_runs_a_node_before_its_cotangent_is_complete():
    """[NOTE age-of-nodes]"""
    def program():
        x = t(2.0, requires_grad=True)
        a = x * x
        (a + mg.sin(a)).backward()
        return x.grad.item()

    assert close(program(), 4 * (1 + math.cos(4)))
    with broken.nodes_in_depth_first_order():
        assert program() == 4.0


def test_views_that_are_not_told_lose_their_gradient():
    """[NOTE in-place]"""
    def program():
        x = t(2.0, requires_grad=True)
        base = t([0.0, 0.0])
        first = base[0]
        base.copy_(mg.stack([x * 3, x]))
        return first.requires_grad and mg.autograd.grad(first, x)[0].item()

    assert program() == 3.0
    with broken.views_that_are_not_told():
        assert program() is False


def test_writes_to_views_made_under_no_grad_lose_a_factor():
    """[NOTE in-place]  (x0 x1)^2 has the gradient 2 x0 x1^2, which is 8 at (1, 2)."""
    def program():
        x = t([1.0, 2.0], requires_grad=True)
        base = x * 1
        with mg.no_grad():
            view = base[:1]
        view.mul_(x[1:])
        return mg.autograd.grad((base[0] * base[0]).sum(), x)[0][0].item()

    with pytest.raises(UsageError, match="A view was created in no_grad mode"):
        program()
    with broken.writes_to_any_view():
        assert program() == 0.0


# ---------------------------------------------------------------- saving
@pytest.mark.parametrize("feature", [checkpointed, offloaded], ids=["checkpoint", "save_on_cpu"])
def test_detaching_at_every_level_makes_the_second_derivative_zero(feature):
    """[NOTE layers-remember]  The number of the issue: `grad(grad(checkpoint(f)))` was 0."""
    x = t(5.0).to("sim")
    with broken.detach_every_level():
        assert close(grad(feature)(x).item(), FIRST)
        assert grad(grad(feature))(x).item() == 0.0
    assert close(grad(grad(feature))(x).item(), SECOND)


def test_guessing_which_save_is_outermost_makes_the_second_derivative_zero():
    """[NOTE layers-remember]  Upstream: pytorch/pytorch#89159."""
    x = t(5.0).to("sim")
    with broken.save_the_outermost():
        assert close(grad(offloaded)(x).item(), FIRST)
        assert grad(grad(offloaded))(x).item() == 0.0
    assert close(grad(grad(offloaded))(x).item(), SECOND)


def test_detach_where_one_level_is_meant_gives_zero_for_2x():
    """[NOTE shallow-detach]  torch, JAX and MLX have the left column only."""
    def program(cut):
        return grad(lambda x: grad(lambda y: (y * cut(x * y)).sum())(x).sum())(t(3.0)).item()

    assert program(lambda x: x.detach()) == 0.0
    assert program(shallow_detach) == 6.0


def test_hooks_in_one_graph_see_half_of_the_saves():
    """[NOTE hooks-at-every-level] H2.  zou3519's question: "do we install a saved variable hook in both graphs"."""
    def packs():
        hooks = Packed()

        def f(x):
            with hooks:
                return sin_sin(x)
        grad(grad(f))(t(5.0))
        return hooks.count

    assert packs() == 4
    with broken.hooks_in_one_graph():
        assert packs() == 2


def test_a_checkpoint_in_one_graph_keeps_what_the_other_saves(no_gc):
    """[NOTE hooks-at-every-level] H2."""
    def kept_by_the_outer_level():
        alive, found = Alive(), []

        def body(x):
            for _ in range(6):
                x = alive.see(mg.sin(x))
            return x

        def first_derivative(x):
            out = grad(lambda y: checkpoint(body, y))(x)
            found.append(alive.count(0, 6))
            return out
        grad(first_derivative)(t(1.0))
        return found[0]

    assert kept_by_the_outer_level() == 0
    with broken.checkpoint_in_one_graph():
        assert kept_by_the_outer_level() == 4


def test_a_leaf_that_is_packed_as_another_tensor_is_not_recognised():
    """[NOTE layers-remember] H2: a hook that would leave the parameters alone takes them for activations."""
    def taken():
        w, packed = t(3.0, requires_grad=True), []
        with saved_tensors_hooks(lambda x: packed.append(x is w) or x, lambda x: x):
            mg.sin(w)
        return packed

    assert taken() == [True]
    with broken.leaves_packed_as_aliases():
        assert taken() == [False]


def test_asking_the_outermost_hooks_exchanges_the_laws_of_checkpoint_and_save_on_cpu():
    """[NOTE hooks-compose] H3: (host copies, runs) of save_on_cpu(checkpoint(f)), and of checkpoint(save_on_cpu(f))."""
    def laws():
        found = []
        for region_outside in (False, True):
            f, offload, x = Counted(sin_sin), save_on_cpu(), t([1.0], device="sim", requires_grad=True)

            def inside(x, f=f, offload=offload):
                with offload:
                    return f(x)
            if region_outside:
                y = checkpoint(inside, x)
            else:
                with offload:
                    y = checkpoint(f, x)
            y.backward()
            found.append((offload.host_copies, f.calls))
        return found

    assert laws() == [(1, 2), (2, 1)]
    with broken.outermost_hooks_asked():
        assert laws() == [(2, 1), (0, 2)]


def test_levels_that_hide_hooks_offload_nothing():
    """[NOTE hooks-at-every-level] H2."""
    def packs():
        hooks = Packed()
        with hooks:
            grad(sin_sin)(t(5.0))
        return hooks.count

    assert packs() == 2
    with broken.levels_that_hide_hooks():
        assert packs() == 0


def test_what_a_rule_keeps_in_a_closure_no_hook_can_see():
    """[NOTE what-is-saved] H1: the number of packs, and of bytes that stay on the device."""
    class Square(Function):
        @staticmethod
        def forward(ctx, x, kept_by):
            if kept_by == "save":
                ctx.save_for_backward(x)
            else:
                ctx.x = x                                  # what a closure does
            return x * x

        @staticmethod
        def backward(ctx, g):
            x = ctx.x if hasattr(ctx, "x") else ctx.saved_tensors[0]
            return 2 * x * g, None

    def device_bytes(kept_by):
        x = mg.ones(100, device="sim", requires_grad=True)
        start = sim.memory_allocated()
        with (context := save_on_cpu()):
            y = Square.apply(x + 0, kept_by)
        return context.host_copies, sim.memory_allocated() - start - y.untyped_storage().nbytes()

    assert device_bytes("save") == (1, 0)
    assert device_bytes("closure") == (0, 400)


def test_composed_hooks_that_unpack_outwards_give_back_another_number():
    """[NOTE hooks-compose] H3: (2e + 1) / 2 - 1 for e."""
    def program():
        x = t(1.0, requires_grad=True)
        with saved_tensors_hooks(lambda s: s + 1, lambda s: s - 1), saved_tensors_hooks(lambda s: s * 2, lambda s: s / 2,
                                                                                      compose=True):
            y = mg.exp(x)
        y.backward()
        return x.grad.item()

    assert close(program(), math.e)
    with broken.composed_hooks_unpack_outwards():
        assert close(program(), math.e - 0.5)


def test_an_output_saved_with_its_node_is_never_freed(no_gc):
    """[NOTE outputs-own-nothing] H4.  Upstream: pytorch/pytorch#115255."""
    def freed():
        x = t(2.0, requires_grad=True)
        y = mg.exp(x)
        memory = ref(y.untyped_storage())
        del y
        return memory() is None

    assert freed()
    with broken.outputs_saved_with_their_node():
        assert not freed()
    gc.collect()


def test_hooks_that_alias_need_the_version_check():
    """[NOTE aliasing-hooks] H5.  d(a*a)/da at a = 2 is 4; with a written to, torch says 40."""
    def program():
        x = t(2.0, requires_grad=True)
        a = x * 1
        with saved_tensors_hooks(lambda x: x, lambda x: x):
            y = a * a
        with mg.no_grad():
            a.mul_(10)
        y.backward()
        return x.grad.item()

    with pytest.raises(UsageError, match="modified by an inplace operation"):
        program()
    with broken.packed_tensors_unwatched():
        assert program() == 40.0


def test_a_stretch_of_nodes_that_is_not_checked_runs_on_what_was_written():
    """[NOTE fast-path]  On the host.  d tanh(3 sin x)/dx at 0 is 3; with the saved output overwritten by 2 it would be (1 - 4) 3."""
    def program():
        x = t(0.0, device="cpu", requires_grad=True)    # other devices have no stretches
        y = mg.tanh(mg.sin(x) * 3)
        z = y * 1
        with mg.no_grad():
            y.fill_(2.0)
        z.backward()
        return x.grad.item()

    with pytest.raises(UsageError, match="modified by an inplace operation"):
        program()
    with broken.straight_stretches_unchecked():
        assert program() == -9.0


def test_a_cotangent_that_two_leaves_take_for_their_own_is_written_to_twice():
    """[NOTE fast-path]  On the host.  The gradients of 3 (x + y) are 3; x's is written to, and y's would be 4 too."""
    def program():
        x, y = (t([1.0, 2.0], device="cpu", requires_grad=True) for _ in range(2))
        ((x + y) * 3.0).sum().backward()
        x.grad.add_(1.0)
        return y.grad.tolist()

    assert program() == [3.0, 3.0]
    with broken.shared_cotangents_as_arrays():
        assert program() == [4.0, 4.0]


def test_an_unpack_hook_that_writes_makes_the_second_backward_another():
    """[NOTE hooks-do-not-mutate] H6.  Upstream: pytorch/pytorch#60975."""
    def two_backwards():
        x = t(2.0, requires_grad=True)
        with saved_tensors_hooks(lambda x: x.clone(), lambda x: x.mul_(2)):
            y = x * x
        return [mg.autograd.grad(y, x, retain_graph=True)[0].item() for _ in range(2)]

    with pytest.raises(UsageError, match="modified what pack returned"):
        two_backwards()
    with broken.packed_tensors_unwatched():
        assert two_backwards() == [8.0, 16.0]


def test_a_pack_hook_that_writes_changes_what_the_forward_goes_on_with():
    """[NOTE hooks-do-not-mutate] H6."""
    def program():
        x = t(2.0, requires_grad=True)
        a = x * 1
        with saved_tensors_hooks(lambda s: s.mul_(10), lambda s: s):
            mg.sin(a)
        return a.item()

    with pytest.raises(UsageError, match="modifying its input in place"):
        program()
    with broken.pack_hooks_unwatched():
        assert program() == 20.0


def test_what_a_hook_gives_back_in_another_shape_broadcasts_in_silence():
    """[NOTE hooks-do-not-mutate] H6: cos 1 twice, where cos 1 and cos 2 were asked for."""
    def program():
        x = t([1.0, 2.0], requires_grad=True)
        with saved_tensors_hooks(lambda s: s, lambda s: s[:1]):
            y = mg.sin(x)
        y.sum().backward()
        return x.grad.tolist()

    with pytest.raises(UsageError, match="same shape and dtype"):
        program()
    with broken.unpacked_tensors_unchecked():
        assert program() == pytest.approx([math.cos(1)] * 2)


# ---------------------------------------------------------------- checkpoint
def test_recomputing_where_the_backward_runs_does_not_know_vmap():
    """[NOTE recompute-under-the-same-state] C1.  Upstream: pytorch/pytorch#165880."""
    def program():
        x = t([1.0, 2.0, 3.0], requires_grad=True)
        vmap(checkpointed)(x).sum().backward()
        return x.grad.tolist()

    assert program() == pytest.approx([math.cos(math.sin(a)) * math.cos(a) for a in (1, 2, 3)])
    with broken.recompute_where_the_backward_runs(), pytest.raises(LevelError, match="may have escaped"):
        program()


def test_recomputing_where_the_backward_runs_does_not_know_jvp():
    """[NOTE recompute-under-the-same-state] C1."""
    def program():
        x = t(5.0, requires_grad=True)
        jvp(checkpointed, (x,), (t(1.0),))[1].backward()
        return x.grad.item()

    assert close(program(), SECOND)
    with broken.recompute_where_the_backward_runs(), pytest.raises(CheckpointError, match="different number of tensors"):
        program()


def test_recomputing_where_the_backward_runs_does_not_know_grad():
    """[NOTE recompute-under-the-same-state] C1: the vjp function is called after its level has gone."""
    def program():
        return vjp(checkpointed, t(5.0))[1](t(1.0))[0].item()

    assert close(program(), FIRST)
    with broken.recompute_where_the_backward_runs(), pytest.raises(CheckpointError, match="different number of tensors"):
        program()


def test_recomputing_where_the_backward_runs_finds_the_modules_own_weights():
    """[NOTE captured-tensors] C5, C1: functional_call's are 3, the module's own are 1.  Upstream: pytorch/pytorch#165880."""
    def program():
        class Scaled(mg.nn.Module):
            def __init__(self):
                super().__init__()
                self.w = mg.nn.Parameter(t(1.0))

            def forward(self, x):
                return checkpoint(lambda x: mg.sin(x * self.w), x)
        x = t(1.0, requires_grad=True)
        functional_call(Scaled(), {"w": t(3.0)}, (x,)).backward()
        return x.grad.item()

    assert close(program(), 3 * math.cos(3))
    with broken.recompute_where_the_backward_runs():
        assert close(program(), math.cos(1))


def test_recomputing_where_the_backward_runs_shows_the_stack_of_the_backward():
    """[NOTE the-stack-is-shown] S6."""
    def shown():
        seen, x = [], t([1.0, 2.0], requires_grad=True)
        y = vmap(lambda a: checkpoint(lambda a: seen.append(show()) or mg.sin(a), a))(x).sum()
        try:
            y.backward()
        except RuntimeError as error:
            seen.append(type(error))
        return seen

    assert shown() == ["base < vmap@1"] * 2
    with broken.recompute_where_the_backward_runs():
        assert shown() == ["base < vmap@1", "base", LevelError]


def test_recomputing_with_other_context_variables_gives_another_gradient():
    """[NOTE recompute-under-the-same-state] S5.  Upstream: pytorch/pytorch#184018, where torch is silently wrong."""
    scale = ContextVar("scale", default=1.0)

    def program():
        x = t(1.0, requires_grad=True)
        before = scale.set(3.0)
        y = checkpoint(lambda x: mg.sin(x * scale.get()), x)
        scale.reset(before)
        y.backward()
        return x.grad.item()

    assert close(program(), 3 * math.cos(3))
    with broken.recompute_where_the_backward_runs():
        assert close(program(), 3 * math.cos(1))


def test_frames_that_manage_every_level_ask_a_level_that_is_not_theirs():
    """[NOTE whose-saves] C2.  zou3519's sandwich: grad_0 of checkpoint(grad_1(f))."""
    f = Counted(sin_sin)

    def program():
        f.calls = 0
        return grad(lambda x: checkpoint(grad(f), x))(t(5.0)).item()

    assert close(program(), SECOND)
    assert f.calls == 2
    with broken.frames_that_manage_every_level(), pytest.raises(CheckpointError, match="different number of tensors"):
        program()


def test_what_a_regions_own_levels_save_stays_on_the_device_though_there_are_hooks():
    """[NOTE whose-saves] C2: host copies of the region's input and of three saves of grad@2, or of the input alone."""
    def copies():
        with (context := save_on_cpu()):
            checkpoint(grad(chain(3)), t(1.0, device="sim", requires_grad=True))
        return context.host_copies

    assert copies() == 3
    with broken.own_levels_saves_kept():
        assert copies() == 1


def test_one_list_of_slots_hands_out_the_saves_of_another_level():
    """[NOTE slots-per-level] C3.  The count is right, every shape is right, the number is wrong."""
    def program():
        return grad(lambda x: checkpoint(grad(sin_sin), x))(t(5.0)).item()

    assert close(program(), SECOND)
    with broken.one_list_of_slots():
        assert program() == pytest.approx(3.870, abs=1e-3)


def test_counting_the_inputs_of_every_level_hands_out_another_regions_input():
    """[NOTE nested-regions]  d/dx (2x + sin 3x), where 2x is the gradient of an inner region at a level of its own."""
    def program():
        x = t(0.7, requires_grad=True)

        def region(x):
            slope = grad(lambda y: checkpoint(lambda q: q * q, y))(x)
            return slope + checkpoint(mg.sin, x * 3)
        checkpoint(region, x).backward()
        return x.grad.item()

    assert close(program(), 2 + 3 * math.cos(2.1))
    with broken.inputs_of_every_level():
        assert close(program(), 2 + 3 * math.cos(0.7))


def test_arguments_with_edges_keep_the_graph_outside_alive(no_gc):
    """[NOTE arguments-are-fresh] C4."""
    def freed():
        x = t(2.0, requires_grad=True)
        a = mg.exp(x)
        node = ref(a.grad_fn)
        y = checkpoint(lambda a: x * a.detach(), a)
        del a
        return node() is None and y is not None

    assert freed()
    with broken.arguments_with_edges():
        assert not freed()


def test_arguments_kept_beside_the_hooks_stay_on_the_device():
    """[NOTE arguments-are-fresh] C4.  Upstream: pytorch/pytorch#178568."""
    def copies():
        with (context := save_on_cpu()):
            checkpoint(lambda nest: sin_sin(nest["x"][0]), {"x": [t(1.0, device="sim", requires_grad=True)]})
        return context.host_copies

    assert copies() == 1
    with broken.arguments_beside_the_hooks():
        assert copies() == 0


def test_data_that_is_not_checked_gives_a_gradient_at_the_new_value():
    """[NOTE captured-tensors] C5: other memory instead of another value in the same."""
    def program():
        x, w = t(1.0, requires_grad=True), t(2.0)
        y = checkpoint(lambda x: mg.sin(x * w), x)
        w.data = t(20.0)
        y.backward()
        return x.grad.item()

    with pytest.raises(CheckpointError, match="given other data"):
        program()
    with broken.captured_tensors_unchecked():
        assert close(program(), 20 * math.cos(20))         # 2 cos 2 was asked for


def test_captured_tensors_that_are_not_checked_give_a_gradient_at_the_new_value():
    """[NOTE captured-tensors] C5.  torch is silently wrong here."""
    def program():
        x, w = t(1.0, requires_grad=True), t(2.0)
        y = checkpoint(lambda x: mg.sin(x * w), x)
        w.mul_(10)
        y.backward()
        return x.grad.item()

    with pytest.raises(CheckpointError, match="modified by an inplace operation"):
        program()
    with broken.captured_tensors_unchecked():
        assert close(program(), 20 * math.cos(20))        # 2 cos 2 was asked for


def test_streams_that_are_not_replayed_give_the_gradient_of_another_mask():
    """[NOTE random-streams] C6."""
    def differ():
        mg.manual_seed(0)
        x = t([1.0] * 64, requires_grad=True)
        y = checkpoint(lambda x: mg.sin(x) * (mg.rand(64) > 0.5).to(x.dtype), x)
        y.sum().backward()
        return sum((a != 0) != (b != 0) for a, b in zip(y.tolist(), x.grad.tolist(), strict=True))

    assert differ() == 0
    with broken.streams_not_replayed():
        assert differ() > 0


@pytest.mark.parametrize("wanted", [lambda g: g.device.kind == "cpu", lambda g: g in (mg.default_generator, generator_of(SIM))],
                         ids=["of one device", "of nobody's own"])
def test_streams_of_some_generators_are_not_enough(wanted):
    """[NOTE random-streams] C6.  Upstream: torch replays the arguments' device, and none of the user's (pytorch/pytorch#26013)."""
    def differ():
        own = mg.Generator("sim").manual_seed(3)
        x = t([1.0] * 64, requires_grad=True, device="cpu")

        def region(x):
            return mg.sin(x).to("sim") * (mg.rand(64, device="sim", generator=own) > 0.5).to(x.dtype)
        y = checkpoint(region, x)
        y.sum().backward()
        return sum((a != 0) != (b != 0) for a, b in zip(y.tolist(), x.grad.tolist(), strict=True))

    assert differ() == 0
    with broken.streams_replayed_where(wanted):
        assert differ() > 0


def test_streams_replayed_in_place_disturb_whoever_draws_next():
    """[NOTE random-streams] C6.  Upstream: fork_rng swaps the generator that every thread draws from."""
    def next_draws(do):
        mg.manual_seed(0)
        x = t([1.0] * 4, requires_grad=True)
        y = do(lambda x: mg.sin(x) * mg.rand(4), x)
        y.sum().backward()
        return mg.rand(1).item()

    want = next_draws(lambda f, x: f(x))
    assert next_draws(checkpoint) == want
    with broken.streams_replayed_in_place():
        mg.manual_seed(0)
        x = t([1.0] * 4, requires_grad=True)
        y = checkpoint(lambda x: mg.sin(x) * mg.rand(4), x)
        mine = mg.rand(1).item()
        y.sum().backward()
        assert mg.rand(1).item() == mine                   # the same draw a second time


def test_an_early_stop_that_is_an_exception_ends_in_the_users_handler():
    """[NOTE early-stop] C9."""
    def program():
        x, handled = t(2.0, requires_grad=True), []

        def region(a):
            try:
                return sin_sin(a)
            except Exception:  # noqa: BLE001  what is tested
                handled.append("the fallback runs")
                return a
        checkpoint(region, x).backward()
        return handled

    assert program() == []
    with broken.early_stop_is_an_exception():
        assert program() == ["the fallback runs"]


def test_an_output_that_is_saved_before_it_is_written_is_handed_out_empty():
    """[NOTE early-stop] C9.  exp(2x) saves its output, and the stop comes as soon as it is saved; without a stop nothing shows."""
    def program(early_stop):
        with mg.device("cpu"):  # elsewhere what was not written yet is poison
            x = t([1.0], requires_grad=True)
        checkpoint(lambda x: mg.exp(x * 2), x, early_stop=early_stop).sum().backward()
        return x.grad.item()

    assert close(program(early_stop=True), 2 * math.exp(2))
    with broken.outputs_saved_before_they_are_written():
        assert close(program(early_stop=False), 2 * math.exp(2))
        assert program(early_stop=True) == 0.0


def test_looks_that_are_not_compared_broadcast_in_silence():
    """[NOTE recomputation-is-checked] C7: cos 1 twice, where cos 1 and cos 2 were asked for."""
    def program():
        x, runs = t([1.0, 2.0], requires_grad=True), []

        def region(x):
            runs.append(x)
            return mg.sin(x if len(runs) == 1 else x[:1])
        checkpoint(region, x).sum().backward()
        return x.grad.tolist()

    with pytest.raises(CheckpointError, match="different metadata"):
        program()
    with broken.looks_unchecked():
        assert program() == pytest.approx([math.cos(1)] * 2)


def test_values_that_are_not_compared_give_the_derivative_of_another_function():
    """[NOTE recomputation-is-checked] C7."""
    def program():
        x, runs = t(1.0, requires_grad=True), []

        def region(x):
            runs.append(x)
            return mg.sin(x * len(runs))
        checkpoint(region, x, determinism_check="values").backward()
        return x.grad.item()

    with pytest.raises(CheckpointError, match="checksums"):
        program()
    with broken.values_unchecked():
        assert close(program(), math.cos(2))               # cos 1 was asked for


def test_accumulating_again_doubles_the_gradient():
    """[NOTE side-effects-once] C8.  torch accumulates twice."""
    def program():
        w, x = t(3.0, requires_grad=True), t(2.0, requires_grad=True)

        def region(x):
            (w * w).backward()
            return mg.sin(x)
        checkpoint(region, x).backward()
        return w.grad.item()

    assert program() == 6.0
    with broken.accumulate_again():
        assert program() == 12.0


@pytest.mark.parametrize("options", [{}, {"remat": "every"}, {"use_reentrant": True}], ids=["first", "every", "reentrant"])
def test_a_hook_that_is_registered_again_doubles_once_more(options):
    """[NOTE side-effects-once] C8: the gradient of x w is x, and the hook doubles it."""
    def program():
        w, x = t(3.0, requires_grad=True), t(2.0, requires_grad=True)

        def region(x):
            w.register_hook(lambda g: g * 2)
            return mg.sin(x) * w
        checkpoint(region, x, **options).backward()
        return w.grad.item()

    assert close(program(), 2 * math.sin(2))
    with broken.hooks_registered_again():
        assert close(program(), 4 * math.sin(2))


def test_sites_of_the_top_mix_the_levels():
    """[NOTE told-of-the-site] H8."""
    def program():
        seen = []
        with saved_tensors_hooks(lambda x, *, site: seen.append(site.level) or x, lambda x: x):
            nth(2, sin_sin)(t(1.0))
        return seen.count(1), seen.count(2)
    assert program() == (7, 2)
    with broken.sites_of_the_top():
        assert program() == (0, 9)


def test_writes_without_a_copy_give_the_derivative_elsewhere():
    """[NOTE write-after-save] H5."""
    def program():
        x = t(2.0, requires_grad=True)
        with allow_mutation_on_saved_tensors():
            b = x * 1
            y = b * b
            b.mul_(10)
            y.backward()
        return x.grad.item()
    assert program() == 4.0
    with broken.writes_without_a_copy():
        assert program() == 40.0


def test_groups_that_do_nothing_run_the_region_for_each_backward():
    """[NOTE one-group]  Upstream: pytorch/pytorch#166536."""
    def recomputations():
        f, a, b = Counted(lambda a, b: (mg.sin(a), mg.sin(b))), t(1.0, requires_grad=True), t(2.0, requires_grad=True)
        y, z = checkpoint(f, a, b)
        with GraphExecGroup():
            y.backward()
            z.backward()
        return f.calls - 1
    assert recomputations() == 1
    with broken.groups_that_do_nothing():
        assert recomputations() == 2


def test_a_second_graph_without_border_gives_a_captured_weight_nothing():
    """[NOTE reentrant] C12.  Upstream: pytorch/pytorch#7617, where it gets nothing either."""
    def program():
        w, x = t(3.0, requires_grad=True), t(2.0, requires_grad=True)
        checkpoint(lambda x: x * x * w, x, use_reentrant=True).backward()
        return x.grad.item(), w.grad and w.grad.item()
    assert program() == (12.0, 4.0)
    with broken.a_second_graph_without_border():
        assert program() == (12.0, None)


def test_a_reentrant_region_below_the_levels_is_a_constant_to_them():
    """[NOTE reentrant] C12.  Of (f x)', which is f + f' x, the level that grad entered sees the f."""
    def program():
        return grad(lambda x: checkpoint(sin_sin, x, use_reentrant=True) * x)(t(5.0, requires_grad=True)).item()

    with pytest.raises(Refusal, match="composes with no transform"):
        program()
    with broken.reentrant_regions_below_the_levels():
        assert close(program(), math.sin(S))


@pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")
def test_a_second_derivative_round_a_reentrant_region_is_half_of_it():
    """[NOTE reentrant] C12.  Of (f x)'' = 2 f' + f'' x, one f' is left.  Upstream: openai/guided-diffusion#144, silently so."""
    def program():
        x = t(5.0, requires_grad=True)
        (checkpoint(sin_sin, x, use_reentrant=True) * x).backward(create_graph=True)
        g, x.grad = x.grad, None
        g.backward()
        return x.grad.item()

    with pytest.raises(UsageError, match="differentiate twice"):
        program()
    with broken.reentrant_gradients_that_are_constants():
        assert close(program(), FIRST)


def test_recomputed_values_that_are_kept_are_alive_at_the_leaf(no_gc):
    """[NOTE recomputed-values-live-once]  Upstream: NOTE [Nestable Checkpoint], rule 4; pytorch/pytorch#77284."""
    def alive_at_the_leaf():
        alive, found = Alive(), []

        def body(x):
            for _ in range(6):
                x = alive.see(mg.sin(x))
            return x
        x = t(1.0, requires_grad=True)
        y = checkpoint(body, x)
        x.register_hook(lambda g: found.append(alive.count(6)))
        y.backward(retain_graph=True)
        return found[0]

    assert alive_at_the_leaf() == 0
    with broken.recomputed_values_kept():
        assert alive_at_the_leaf() == 5


# ---------------------------------------------------------------- remat="every"
def test_backwards_that_save_plainly_keep_all_from_the_second_order_on():
    """[NOTE remat-every] C11."""
    with broken.backwards_that_save_plainly():
        assert arrays_kept(every(chain(10)), 2) == [1, 29, 76]


def test_recorded_nodes_cut_into_regions_keep_the_gradients_of_what_they_saved():
    """[NOTE remat-every] C11: what the first run saved leads to the first run's nodes, so its gradients leave the region."""
    with broken.recorded_nodes_cut_into_regions():
        assert arrays_kept(every(chain(10)), 2) == [1, 2, 29]


def test_walks_that_leave_the_region_run_the_graph_outside_twice():
    """[NOTE remat-every] C11."""
    def visits():
        x, seen = t(0.7, requires_grad=True), []
        y = x + 1
        y.register_hook(lambda g: seen.append(1))
        (every(lambda x, y: mg.sin(x * y))(x, y) + y).backward()
        return len(seen)

    assert visits() == 1
    with broken.walks_that_leave_the_region():
        assert visits() == 2


def test_second_runs_that_may_save_more_give_the_derivative_of_another_function():
    """[NOTE remat-every] C11 C7."""
    def program():
        x, runs = t(0.7, requires_grad=True), []

        def region(x):
            runs.append(1)
            return chain(len(runs))(x)
        every(region)(x).backward()
        return x.grad.item()

    with pytest.raises(CheckpointError, match="trying to save more tensors"):
        program()
    with broken.second_runs_that_may_save_more():
        assert program() == pytest.approx(math.cos(0.7) * math.cos(math.sin(0.7)))      # cos 0.7 was asked for


def test_second_runs_that_keep_for_every_level_hold_the_whole_region_to_the_end(no_gc):
    """[NOTE remat-every] C11: how many of six values are alive when the backward of the region, recorded below, is nearly done."""
    def alive_at_the_end():
        alive, found = Alive(), []

        def region(x):
            h = mg.sin(x)
            h.register_hook(lambda g: found.append(alive.count()))
            for _ in range(6):
                h = alive.see(mg.sin(h))
            return h
        grad(lambda x: grad(lambda x: checkpoint(region, x, remat="every"))(x))(t(0.7))
        return found[0]

    assert alive_at_the_end() == 1
    with broken.second_runs_that_keep_for_every_level():
        assert alive_at_the_end() == 5


def between_sines(*bodies):
    """A chain of regions, between other ops."""
    def program(x):
        x = mg.sin(x)
        for body in bodies:
            x = every(body)(x)
        return mg.sin(x)
    return program


def runs_of(count, order):
    bodies = [Counted(mg.sin) for _ in range(count)]
    nth(order, between_sines(*bodies))(t(0.7))
    return [body.calls for body in bodies]


def test_second_runs_for_one_node_each_are_twice_as_many_at_each_order():
    """[NOTE remat-every] C11: one region, at orders 0 to 4."""
    assert [runs_of(1, order) for order in range(5)] == [[1], [2], [3], [4], [5]]
    with broken.second_runs_for_one_node_each():
        assert [runs_of(1, order) for order in range(5)] == [[1], [2], [4], [8], [16]]


def test_second_runs_that_stay_to_the_end_are_one_an_order_and_hold_every_region(no_gc):
    """[NOTE remat-every] C11: by how many arrays the peak of a second derivative grows from four regions of 30 ops to eight."""
    def peak(count):
        sim.reset_peak_memory_stats()
        before = sim.memory_allocated()
        x = mg.linspace(0.3, 0.8, 50, dtype=mg.float64).to("sim")
        f = between_sines(*[chain(30)] * count)
        grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(x)
        return (sim.max_memory_allocated() - before) // x.nbytes

    assert runs_of(4, 2) == [4, 4, 4, 3] and peak(8) - peak(4) == 8          # their inputs, and cotangents
    with broken.second_runs_that_stay_to_the_end():
        assert runs_of(4, 2) == [3, 3, 3, 3] and peak(8) - peak(4) == 128


# ---------------------------------------------------------------- save_on_cpu
def gradients_and_copies(f, *data):
    """The gradients of sum(f(*tensors on sim)) under save_on_cpu, and the number of host copies."""
    xs = [t(d).to("sim").requires_grad_() for d in data]
    with (context := save_on_cpu()):
        y = f(*xs).sum()
    y.backward()
    return [x.grad.cpu().tolist() for x in xs], context.host_copies


def first_element(x):
    return x.cpu().reshape(-1)[0].item()


def test_copies_keyed_by_the_first_element_confuse_two_tensors():
    """[NOTE one-copy] O1.  The trick of pytorch/pytorch#89166."""
    def program():
        return gradients_and_copies(lambda a, b: mg.sin(a) + mg.sin(b), [1.0, 2.0], [1.0, 3.0])

    (_, b), copies = program()
    assert b == pytest.approx([math.cos(1), math.cos(3)]) and copies == 2
    with broken.host_copies_keyed_by(first_element):
        (_, b), copies = program()
        assert b == pytest.approx([math.cos(1), math.cos(2)]) and copies == 1


def test_copies_keyed_by_address_confuse_a_square_with_its_transpose():
    """[NOTE one-copy] O1.  Upstream: ms-swift#10157."""
    def program():
        (a,), copies = gradients_and_copies(lambda a: mg.sin(a) + mg.cos(a.t()), [[1.0, 2.0], [3.0, 4.0]])
        return a[0][1], copies

    assert program() == (pytest.approx(math.cos(2) - math.sin(2)), 1)
    with broken.host_copies_keyed_by(lambda x: (x.data_ptr(), x.shape)):
        assert program() == (pytest.approx(math.cos(2) - math.sin(3)), 1)


@pytest.mark.parametrize("key", [id, lambda x: x.data_ptr()], ids=["id", "address"])
def test_copies_keyed_by_what_is_used_again_confuse_the_dead_with_the_living(key):
    """[NOTE one-copy] O1: "id() gets reused, using data_ptr helps but is also not enough" (#89166)."""
    def program():
        def f(x):
            total = 0
            for k in range(1, 9):
                total = total + x * (x.detach() * k)       # a new factor each time, in the memory of the one before
            return total
        (g,), copies = gradients_and_copies(f, [1.0])
        return g[0], copies

    assert program() == (36.0, 8)
    with broken.host_copies_keyed_by(key):
        wrong, copies = program()
        assert wrong != 36.0 and copies < 8


def test_a_copy_of_any_version_gives_the_gradient_at_the_old_value():
    """[NOTE one-copy] O1: d/dx (sin(x) + sin(2 x)) where the second save is of the same memory, doubled."""
    def program():
        x = t([1.0], device="sim", requires_grad=True)
        with save_on_cpu():
            a = x * 1
            y = mg.sin(a)
            y = y + mg.sin(a.mul_(2))
        y.sum().backward()
        return x.grad.item()

    assert close(program(), math.cos(1) + 2 * math.cos(2))
    with broken.host_copies_of_any_version():
        assert close(program(), math.cos(1) + 2 * math.cos(1))


def test_device_copies_for_each_save_bring_back_a_memory_twice():
    """[NOTE one-copy] O2: bytes to the device for two saves in 800."""
    def moved():
        x = mg.ones(100, dtype=mg.float64, device="sim", requires_grad=True)
        with save_on_cpu():
            y = mg.sin(x), mg.cos(x)
        before = sim.memory_stats()["copied_bytes.to_device"]
        kept = [out.grad_fn._saved_self for out in y]
        return sim.memory_stats()["copied_bytes.to_device"] - before, len(kept)

    assert moved() == (800, 2)
    with broken.device_copies_for_each_save():
        assert moved() == (1600, 2)


def test_what_is_skipped_is_not_copied():
    """[NOTE copies-on-a-stream] O3: a weight that is on the device anyway."""
    def copies():
        w, x = t([3.0], device="sim", requires_grad=True), t([2.0], device="sim", requires_grad=True)
        with (context := save_on_cpu(non_blocking=True, skip=[w])):
            x * w
        return context.host_copies

    assert copies() == 1
    with broken.nothing_skipped():
        assert copies() == 2


def test_a_host_tensor_that_is_copied_loses_its_version_check():
    """[NOTE host-tensors-stay] O4: the gradient is right, the program's mistake is not told."""
    def program():
        x = mg.tensor(2.0, requires_grad=True, device="cpu")
        a = x * 1
        with (context := save_on_cpu()):
            y = a * a
        with mg.no_grad():
            a.mul_(10)
        y.backward()
        return x.grad.item(), context.host_copies

    with pytest.raises(UsageError, match="modified by an inplace operation"):
        program()
    with broken.host_tensors_copied():
        assert program() == (4.0, 2)


def test_copies_that_come_back_contiguous_have_other_strides():
    """[NOTE one-copy] O2.  Upstream: ms-swift#10157."""
    def strides():
        x = t([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]).to("sim").requires_grad_()
        with save_on_cpu():
            y = mg.sin(x.t())
        return y.grad_fn._saved_self.stride()

    assert strides() == (1, 3)
    with broken.contiguous_copies():
        assert strides() == (2, 1)


# ---------------------------------------------------------------- streams: each edge, broken alone
@pytest.fixture(autouse=True)
def _no_work_is_left():
    yield
    forget_streams()


def late(value):
    """A tensor that the current stream waits for, and its kernels did not need yet."""
    loader = sim.Stream()
    with sim.stream(loader):
        x = t([value], device="cpu").pin_memory("sim").to("sim", non_blocking=True)
    sim.current_stream().wait_stream(loader)
    return x


def streamed_gradient(before_backward=lambda y: None):
    """The derivative at 1 of six sines whose saves travel on the copy stream."""
    x = t([1.0], device="sim", requires_grad=True)
    with save_on_cpu(non_blocking=True):
        y = chain(6)(x)
    before_backward(y)
    y.sum().backward()
    return x.grad.item()


SIX = math.prod(math.cos(x) for x in [1.0, *[chain(n)(t(1.0)).item() for n in range(1, 6)]])


def test_a_copy_out_that_waits_for_nothing_copies_poison():
    """[NOTE copies-on-a-stream] O3."""
    def program():
        w = t([2.0], device="sim", requires_grad=True)
        x = late(0.5)
        with save_on_cpu(non_blocking=True):
            y = checkpoint(region, x, w)
        y.sum().backward()
        return w.grad.item()

    def region(x, w):
        sim.synchronize()                                  # the device does the copies first
        return x * w

    assert program() == 0.5
    with broken.copies_that_wait_for_nothing():
        assert math.isnan(program())


def test_a_copy_back_that_waits_for_nothing_is_overwritten_by_who_had_the_memory_before():
    """[NOTE copies-on-a-stream] O3: seen where the copy stream runs ahead."""
    def program():
        def run_ahead(y):
            y.grad_fn._saved_self
            sim.synchronize()
        return streamed_gradient(run_ahead)

    assert close(program(), SIX)
    with broken.copies_that_wait_for_nothing():
        assert math.isnan(program())


def test_memory_that_is_let_go_at_once_is_copied_as_poison():
    """[NOTE copies-on-a-stream] O3."""
    assert close(streamed_gradient(), SIX)
    with broken.memory_let_go_at_once():
        assert math.isnan(streamed_gradient())


def test_memory_that_is_let_go_before_its_copy_back_belongs_to_somebody_else():
    """[NOTE copies-on-a-stream] O3: a copy that was asked for ahead, and a graph that is dropped."""
    def program():
        x = t([1.0], device="sim", requires_grad=True)
        with save_on_cpu(non_blocking=True):
            y = chain(6)(x)
        sim.synchronize()
        y.grad_fn._saved_self
        del y
        x.sin()
        sim.synchronize()

    program()
    with broken.memory_let_go_at_once(), pytest.raises(UsageError, match="memory of sim that was freed before"):
        program()


def test_what_comes_back_is_poison_to_who_does_not_wait():
    """[NOTE copies-on-a-stream] O3."""
    assert close(streamed_gradient(), SIX)
    with broken.copies_back_not_waited_for():
        assert math.isnan(streamed_gradient())


def test_copies_that_are_not_asked_for_ahead_come_when_the_backward_waits():
    """[NOTE copies-on-a-stream] O3: bytes on their way after the first of six saves of 8 bytes was unpacked."""
    def asked():
        x = t([1.0], device="sim", requires_grad=True)
        with save_on_cpu(non_blocking=True):
            y = chain(6)(x)
        before = sim.memory_stats()["copied_bytes.to_device"]
        y.grad_fn._saved_self
        return sim.memory_stats()["copied_bytes.to_device"] - before

    assert asked() == 24
    with broken.nothing_asked_for_ahead():
        assert asked() == 8


def test_copies_without_a_window_leave_the_device_as_full_as_it_was():
    """[NOTE copies-on-a-stream] O3: arrays of 800 bytes after twelve sines: the output and two that leave, or all."""
    def kept():
        x = mg.ones(100, dtype=mg.float64, device="sim", requires_grad=True)
        before = sim.memory_allocated()
        with save_on_cpu(non_blocking=True):
            y = chain(12)(x)
        return (sim.memory_allocated() - before) // y.untyped_storage().nbytes()

    assert kept() == 3
    with broken.copies_without_a_window():
        assert kept() == 12


def test_pinned_memory_that_is_never_reused_grows_with_every_step():
    """[NOTE streams] O3: blocks of 8 KiB that are new in the last two of three steps."""
    def grown():
        held = []
        for _ in range(3):
            x = mg.ones(1024, dtype=mg.float64, device="sim", requires_grad=True)
            with save_on_cpu(non_blocking=True):
                y = chain(6)(x)
            y.sum().backward()
            sim.synchronize()
            del x, y
            held.append(SIM.pool.held)
        return (held[-1] - held[0]) // 8192

    assert grown() == 0
    with broken.pinned_memory_never_reused():
        assert grown() == 12


def test_pinned_memory_that_is_given_away_early_holds_another_tensor():
    """[NOTE streams] O3: a buffer is not reused before its copy ran."""
    def program(n):                                        # a size that nobody has used before
        loader = sim.Stream()
        with sim.stream(loader):
            x = t([3.0] * n, device="cpu").pin_memory("sim").to("sim", non_blocking=True)   # its pinned memory is dead
        host = t([4.0] * n, device="sim").to("cpu", non_blocking=True)
        sim.default_stream().synchronize()
        sim.default_stream().wait_stream(loader)
        return x[0].item(), host[0].item()

    assert program(771) == (3.0, 4.0)
    with broken.pinned_memory_given_away_early():
        assert program(772) == (4.0, 4.0)


def test_a_write_under_a_copy_is_copied():
    """[NOTE copies-on-a-stream] O3: the gradient of 2 * 2 is 4; with what was written since it is 40."""
    def program():
        x = t([2.0], device="sim", requires_grad=True)
        with save_on_cpu(non_blocking=True):
            a = x * 1
            y = a * a
        with mg.no_grad():
            a.mul_(10)
        y.sum().backward()
        return x.grad.item()

    with pytest.raises(UsageError, match="modified by an inplace operation"):
        program()
    with broken.writes_under_a_copy_unchecked():
        assert program() == 40.0


def test_frees_that_do_not_wait_are_poison_to_who_did():
    """[NOTE late-on-purpose]"""
    def program():
        x, stream = t([3.0], device="sim"), sim.Stream()
        with sim.stream(stream):
            host = x.to("cpu", non_blocking=True)
        sim.current_stream().wait_stream(stream)
        del x
        sim.synchronize()
        return host.item()

    assert program() == 3.0
    with broken.frees_that_do_not_wait():
        assert math.isnan(program())


def test_saves_that_are_never_dropped_count_what_was_thrown_away():
    """[NOTE what-is-kept]"""
    def f(x):
        chain(10)(x * 1)                                   # nobody wants it: its graph dies here
        return x.sin()

    assert memory.saved_residuals(f, t(0.7)).arrays == 1
    with broken.saves_never_dropped():
        assert memory.saved_residuals(f, t(0.7)).arrays == 11


def test_the_chain_that_the_other_tests_speak_of_has_as_many_saves_as_ops():
    """[NOTE what-is-saved]"""
    hooks = Packed()
    with hooks:
        grad(chain(10))(t(1.0))
    assert hooks.count == 10


def test_a_gradient_that_is_added_without_an_op_is_missing_on_a_tape():
    """[NOTE dispatch-modes]"""
    def replayed():
        x, w = t(2.0), t(0.0, requires_grad=True)
        with Tape() as tape:
            for factor in (x, x * x):
                (w * factor).backward()
        return tape.replayed(w.grad, {x: t(3.0)}).item()

    assert replayed() == 3.0 + 9.0
    with broken.gradients_added_unseen():
        assert replayed() == 3.0


# ---------------------------------------------------------------- forward mode by hand
def test_tangents_kept_beside_what_is_packed_stay_alive():
    """[NOTE dual-levels] Upstream: pytorch/pytorch#129293."""
    def program():
        alive = Alive()
        f = lambda x: see_tangent(alive, see_tangent(alive, x.sin()).sin()).cos()
        with fw.dual_level():
            kept = vjp(lambda x: checkpoint(f, x), fw.make_dual(t(1.0), t(1.0)))
            return alive.count(), len(kept)

    assert program() == (0, 2)
    with broken.tangents_kept_beside_what_is_packed():
        assert program() == (2, 2)


def test_recomputing_where_the_backward_runs_does_not_know_a_dual_level_that_was_left():
    """[NOTE dual-levels] [NOTE recompute-under-the-same-state] C1."""
    def program():
        x = t(5.0, requires_grad=True)
        with fw.dual_level():
            tangent = fw.unpack_dual(checkpointed(fw.make_dual(x, t(1.0)))).tangent
        tangent.backward()
        return x.grad.item()

    assert close(program(), SECOND)
    with broken.recompute_where_the_backward_runs(), pytest.raises(CheckpointError, match="different number of tensors"):
        program()


def test_given_tangents_that_move_are_differentiated():
    """[NOTE gradients-of-duals] 6x along 2x is 12 at 1, and the derivative of 3xx 2x is 18."""
    def program():
        x = t(1.0, requires_grad=True)
        with fw.dual_level():
            y = fw.make_dual(x, x * 2) ** 3
            return fw.unpack_dual(mg.autograd.grad(y, x)[0]).tangent.item()

    assert program() == 12.0
    with broken.given_tangents_that_move():
        assert program() == 18.0


def test_one_forward_mode_for_all_levels_loses_a_derivative():
    """[NOTE dual-levels] S3."""
    def program():
        with fw._set_fwd_grad_enabled(False):
            return jvp(mg.sin, (t(0.0),), (t(1.0),))[1].item()

    assert program() == 1.0
    with broken.one_forward_mode_for_all_levels():
        assert program() == 0.0


def test_a_primal_that_becomes_a_dual_has_a_tangent_at_its_own_level():
    """[NOTE dual-levels] x is the primal of a dual: written to, it would carry 2, and the dual 1 and 2 at once."""
    def program():
        x = t(2.0)
        with fw.dual_level():
            dual = fw.make_dual(x, t(1.0))
            x.mul_(dual)
            return fw.unpack_dual(fw.unpack_dual(dual).primal).tangent.item()

    with pytest.raises(UsageError, match="memory of a primal of that level"):
        program()
    with broken.primals_that_become_duals():
        assert program() == 2.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Anomaly Detection")
def test_nodes_that_are_noted_as_they_run_name_the_backward():
    """[NOTE anomaly]"""
    def blamed():
        with mg.autograd.detect_anomaly(), pytest.warns(UserWarning, match="Error detected") as found:
            y = mg.sqrt(t(0.0, requires_grad=True)) * 0
            with pytest.raises(UsageError, match="returned nan"):
                y.backward()
        text = str(found[-1].message)
        return [line for line in ("* 0\n", "y.backward()\n") if line in text]

    assert blamed() == ["* 0\n"]
    with broken.nodes_noted_as_they_run():
        assert blamed() == ["y.backward()\n"]


def test_a_trace_that_knows_values_by_handle_keeps_the_numbers_of_its_inputs():
    """[NOTE traces-are-pure] The graph of the derivative, traced at 5 and run at 10."""
    def program():
        return make_fx(grad(checkpointed))(t(5.0))(t(10.0)).item()

    assert close(program(), math.cos(math.sin(10.0)) * math.cos(10.0))
    with broken.values_known_by_handle():
        assert close(program(), FIRST)


def test_a_trace_that_forgets_its_draws_masks_the_gradient_anew():
    """[NOTE one-draw-in-a-trace] The value is the sum of the mask, and the gradient is the mask."""
    def masked(x):
        return checkpoint(lambda x: (x * mg.nn.functional.dropout(mg.ones(8), 0.5, True)).sum(), x)

    def program():
        gm = make_fx(grad_and_value(masked))(mg.ones(8))
        mg.manual_seed(0)
        gradient, value = gm(mg.ones(8))
        return value.item(), gradient.sum().item()

    assert program() == (12.0, 12.0)
    with broken.draws_that_a_trace_forgets():
        assert program() == (12.0, 6.0)


def test_saved_wrappers_that_change_give_a_gradient_at_the_new_value():
    """[NOTE functionalize] d/dx 2 e^x at 0."""
    def program():
        return functionalize(grad(lambda x: x.exp().mul_(2)))(t(0.0)).item()

    assert program() == 2.0
    with broken.saved_wrappers_that_change():
        assert program() == 4.0


def test_a_detached_tensor_that_is_no_view_is_written_alone():
    """[NOTE functionalize]"""
    def program(x):
        y = x * 3
        y.detach().add_(1)
        return y

    assert functionalize(program)(t(2.0)).item() == program(t(2.0)).item() == 7.0
    with broken.detached_tensors_apart():
        assert functionalize(program)(t(2.0)).item() == 6.0


# ---------------------------------------------------------------- policies
def selective(f, policy, **options):
    contexts = partial(create_selective_checkpoint_contexts, policy, **options)
    return lambda x: checkpoint(f, x, context_fn=contexts)


def tanhs(program):
    """How often tanh ran."""
    with watching(OpsByLevel()) as seen:
        program()
    return seen.names["base"].count("tanh")


def test_a_value_known_by_its_turn_is_taken_for_another():
    """[NOTE kept-by-value] What the forward alone computes shifts the turns: cos(tanh 3) for cos(tanh 1)."""
    def f(x):
        if not is_recomputing():
            mg.tanh(x.detach() + 2)
        return mg.sin(mg.tanh(x))

    def derivative():
        return grad(selective(f, lambda ctx, op, *args, **kwargs: True))(t(1.0)).item()

    slope = 1 - math.tanh(1.0) ** 2
    assert close(derivative(), math.cos(math.tanh(1.0)) * slope)
    with broken.values_known_by_their_turn():
        assert close(derivative(), math.cos(math.tanh(3.0)) * (1 - math.tanh(3.0) ** 2))


def test_an_argument_in_other_memory_is_another():
    """[NOTE kept-by-value] What is computed from it is computed again."""
    def program():
        with saved_tensors_hooks(lambda s: s.clone(), lambda s: s.clone()):
            grad(selective(mg.tanh, lambda ctx, op, *args, **kwargs: True))(t(1.0))

    assert tanhs(program) == 1
    with broken.arguments_known_by_their_memory():
        assert tanhs(program) == 2


def test_a_second_run_that_writes_to_what_is_kept_differentiates_at_another_value():
    """[NOTE kept-by-value] Two equal cosines in one memory: 2 cos x for cos x."""
    def f(x):
        a, b = mg.cos(x), mg.cos(x)
        return mg.sin(b.mul_(2) * 0 + a)

    def derivative():
        return grad(selective(f, [aten.cos.default]))(t(1.0)).item()

    assert close(derivative(), -math.cos(math.cos(1.0)) * math.sin(1.0))
    with broken.equal_values_in_one_memory():
        assert close(derivative(), -math.cos(2 * math.cos(1.0)) * math.sin(1.0))


def test_random_numbers_that_were_not_drawn_again_shift_those_after_them():
    """[NOTE kept-by-value] The second draw of the forward, and of the recomputation."""
    def program():
        seen, first = [], iter([True])
        policy = lambda ctx, op, *args, **kwargs: op is aten.uniform.default and next(first, False)

        def f(x):
            seen.append((mg.rand(()), mg.rand(()))[1].item())
            return mg.sin(x) * seen[-1]
        grad(selective(f, policy))(t(1.0))
        return seen

    (then, now) = program()
    assert then == now
    with broken.draws_not_stepped_over():
        then, now = program()
    assert then != now


def test_a_kept_value_that_changes_gives_a_gradient_at_another_value():
    """[NOTE selective-policies] C10.  sin(2 cos x) at 1: given what became of cos x, the second run doubles it once more."""
    def derivative():
        return grad(selective(lambda x: mg.cos(x).mul_(2).sin(), [aten.cos.default]))(t(1.0)).item()

    with pytest.raises(CheckpointError, match="has been mutated"):
        derivative()
    with broken.kept_values_that_change():
        assert close(derivative(), -math.cos(4 * math.cos(1.0)) * 2 * math.sin(1.0))


def test_a_policy_beside_the_hooks_leaves_on_the_device_what_save_on_cpu_would_move():
    """[NOTE selective-policies] C10.  Bytes on the host: of the input and of tanh, or of the input alone."""
    def moved():
        x = mg.tensor([1.0], dtype=mg.float64, device="sim").requires_grad_()
        before = sim.memory_stats()["copied_bytes.to_host"]
        with save_on_cpu():
            y = selective(mg.tanh, [aten.tanh.default])(x)
        y.backward()
        return sim.memory_stats()["copied_bytes.to_host"] - before

    assert moved() == 16
    with broken.policies_that_keep_beside_the_hooks():
        assert moved() == 8


def test_a_policy_that_serves_one_level_lets_the_others_compute_again():
    """[NOTE selective-policies] C10.  The first derivative and the second ask."""
    def program():
        nth(2, selective(lambda x: mg.sin(mg.tanh(x)), [aten.tanh.default]))(t(1.0))

    assert tanhs(program) == 1
    with broken.policies_of_every_level_at_once():
        assert tanhs(program) == 2


# ---------------------------------------------------------------- function modes and autocast
def test_a_mode_that_is_asked_about_rules_sees_calls_that_nobody_wrote():
    """[NOTE function-modes]"""
    class Calls(TorchFunctionMode):
        count = 0

        def __torch_function__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **(kwargs or {}))

    def calls():
        y, pull = vjp(sin_sin, t(1.0))
        with Calls() as calls:
            pull(y)
        return calls.count

    assert calls() == 0
    with broken.rules_asked_about():
        assert calls() == 4                                # cos and mul, twice


def test_a_cast_kept_where_nothing_records_has_no_edge():
    """[NOTE autocast]"""
    def requires_grad():
        w = mg.ones(2, 2, dtype=mg.float32, requires_grad=True)
        with mg.autocast(w.device.type):
            with mg.no_grad():
                w @ w
            return (w @ w).requires_grad

    assert requires_grad()
    with broken.casts_kept_where_nothing_records():
        assert not requires_grad()


def test_a_region_that_runs_again_in_inference_mode_saves_nothing():
    """[NOTE inference-mode] Upstream: meta-pytorch/tnt#912."""
    def program():
        x = t(5.0, requires_grad=True)
        y = checkpointed(x)
        with mg.inference_mode():
            y.backward()
        return x.grad.item()

    assert close(program(), FIRST)
    with broken.recomputed_in_inference_mode(), pytest.raises(CheckpointError, match="different number of tensors"):
        program()


def test_a_meta_tensor_of_one_element_is_reshaped_without_a_copy():
    """[NOTE meta-tensors] The strides are wrong too."""
    def program():
        x = mg.ones(2, 3, device="meta")
        return x.stride(), x.t().reshape(6).data_ptr() == x.data_ptr()

    assert program() == ((3, 1), False)
    with broken.meta_tensors_of_one_element():
        assert program() == ((0, 0), True)


def test_a_region_that_gets_tensors_of_no_class_does_not_ask_it():
    """[NOTE subclasses] Upstream: pytorch/pytorch#167223."""
    class Shifted(mg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            out = super().__torch_function__(func, types, args, kwargs)
            return out + 1 if func is mg.exp else out

    def program():
        x = t([0.0]).as_subclass(Shifted).requires_grad_()
        checkpoint(lambda x: mg.exp(x)**2, x).sum().backward()
        return x.grad.item()

    assert program() == 4.0                                # of (exp(x) + 1) ** 2
    with broken.subclasses_that_are_not_remembered():
        assert program() == 2.0
