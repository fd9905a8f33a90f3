"""Dual levels: the level of func.jvp, entered by hand.  And gradients of duals, at the levels below."""

from __future__ import annotations

import math

import pytest

import minigrad as mg
import minigrad.autograd.forward_ad as fw
from minigrad.autograd import Function, gradcheck
from minigrad.autograd.graph import save_on_cpu
from minigrad.errors import Refusal, UsageError
from minigrad.func import grad, jvp, vmap
from minigrad.state import current, show
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Alive, Counted, Packed, no_garbage, sin_sin, t

V = [2.0, -1.0, 0.5]


def leaf(numbers=(0.5, 1.0, 2.0)):
    return t(numbers, requires_grad=True)


def ag(y, x, **options):
    return mg.autograd.grad(y, x, **options)[0]


def close(x, numbers):
    assert x.tolist() == pytest.approx(numbers)


def tangent_of(f, x, v):
    """The derivative of f at x along v, by hand."""
    with fw.dual_level():
        return fw.unpack_dual(f(fw.make_dual(x, v))).tangent


# ---------------------------------------------------------------- levels
def test_a_dual_level_is_a_level_on_the_stack():
    """[NOTE dual-levels]"""
    with fw.dual_level() as outer, fw.dual_level() as inner:
        assert (outer, inner, show()) == (0, 1, "base < dual@1 < dual@2")
    assert show() == "base"


def test_what_is_computed_from_a_dual_carries_the_tangent():
    """[NOTE dual-levels]"""
    close(tangent_of(mg.sin, t([0.5, 1.0]), t([2.0, 3.0])), [2 * math.cos(0.5), 3 * math.cos(1.0)])


def test_dual_levels_nest():
    """[NOTE dual-levels] torch has one level only."""
    x, one = t(0.7), t(1.0)
    close(tangent_of(lambda x: tangent_of(mg.sin, x, one), x, one), -math.sin(0.7))


def test_a_tangent_of_an_outer_level_is_asked_for_by_number():
    """[NOTE dual-levels]"""
    with fw.dual_level():
        x = fw.make_dual(t(3.0), t(1.0))
        with fw.dual_level():
            assert fw.unpack_dual(x).tangent is None
            assert fw.unpack_dual(x * x, level=0).tangent.item() == 6.0


def test_duals_mean_their_primals_when_their_level_was_left():
    """[NOTE dual-levels]"""
    with fw.dual_level():
        x = fw.make_dual(t(3.0), t(1.0))
    assert fw.unpack_dual(x).tangent is None
    with fw.dual_level():
        assert fw.unpack_dual(x * 2) == (6.0, None)


def test_levels_are_left_in_the_order_they_were_entered_in():
    """[NOTE dual-levels]"""
    with pytest.raises(UsageError, match="no dual level has been entered"):
        fw.exit_dual_level()
    fw.enter_dual_level()
    fw.enter_dual_level()
    with pytest.raises(UsageError, match="not the last one that was created"):
        fw.exit_dual_level(level=0)
    fw.exit_dual_level(level=1)
    fw.exit_dual_level()
    assert current().levels == ()


def test_a_level_below_a_transform_is_not_left_inside_it():
    """[NOTE dual-levels]"""
    with fw.dual_level(), pytest.raises(UsageError, match="not the last one that was created"):
        vmap(lambda x: fw.exit_dual_level() or x)(t([1.0]))
    assert show() == "base"


def test_an_error_inside_leaves_no_level_behind():
    """[NOTE dual-levels] [NOTE state-is-a-value]"""
    before = current()
    with pytest.raises(ZeroDivisionError), fw.dual_level():
        _ = 1 / 0
    assert current() is before


def test_a_function_can_have_a_level_for_each_call():
    """[NOTE dual-levels]"""
    @fw.dual_level()
    def push(x):
        return fw.unpack_dual(mg.exp(fw.make_dual(x, x))).tangent

    assert push(t(0.0)).item() == 0.0
    assert show() == "base"


# ---------------------------------------------------------------- duals
def test_the_tangent_is_the_tensor_that_was_given():
    """[NOTE dual-levels]"""
    x, v = t([1.0, 2.0]), t([3.0, 4.0])
    with fw.dual_level():
        dual = fw.make_dual(x, v)
        primal, tangent = fw.unpack_dual(dual)
    assert tangent is v
    assert primal.data_ptr() == x.data_ptr()


@pytest.mark.parametrize(("make", "words"), [
    (lambda x, d: fw.make_dual(d, x), "already has a forward gradient at the same level"),
    (lambda x, d: fw.make_dual(x, d), "itself has a forward gradient at the same level"),
    (lambda x, d: fw.make_dual(x, mg.ones(5)), "has a different size than that of the original Tensor"),
    (lambda x, d: fw.make_dual(x, x, level=3), "no dual level 3"),
    (lambda x, d: fw.make_dual(mg.ones(2, dtype=mg.int64), x), "Expected primal to be floating point or complex"),
    (lambda x, d: fw.make_dual(x, mg.ones(2, dtype=mg.int64)), "Expected tangent to be floating point or complex"),
])
def test_what_cannot_be_a_dual_is_an_error(make, words):
    """[NOTE dual-levels]"""
    x = t([1.0, 2.0])
    with fw.dual_level(), pytest.raises((UsageError, ValueError), match=words):
        make(x, fw.make_dual(x, x))


def test_without_a_level_there_is_no_dual():
    """[NOTE dual-levels]"""
    with pytest.raises(UsageError, match="no level exists"):
        fw.make_dual(t(1.0), t(1.0))


def test_a_tensor_of_a_transform_entered_since_is_refused():
    """[NOTE dual-levels]"""
    with fw.dual_level():
        x = fw.make_dual(t(1.0), t(1.0))
        with pytest.raises(Refusal, match="entered after dual@1"):
            grad(lambda y: fw.unpack_dual(x * y).tangent)(t(1.0))
        with pytest.raises(Refusal, match="entered after dual@1"):
            grad(lambda y: fw.make_dual(y, y))(t(1.0))


def test_in_place_on_a_view_of_a_dual_changes_the_tangent_of_both():
    """[NOTE dual-levels] [NOTE in-place]"""
    with fw.dual_level():
        x = fw.make_dual(t([1.0, 2.0]), t([1.0, 1.0])).clone()
        x[0].mul_(3)
        close(fw.unpack_dual(x).tangent, [3.0, 1.0])


def test_a_tensor_that_a_dual_is_written_to_becomes_a_dual():
    """[NOTE dual-levels] [NOTE in-place]"""
    with fw.dual_level():
        y = mg.zeros(2, dtype=mg.float64)
        y[1] = fw.make_dual(t(2.0), t(5.0))
        close(fw.unpack_dual(y).tangent, [0.0, 5.0])


def test_a_dual_is_not_written_to_the_memory_of_a_primal_of_its_level():
    """[NOTE dual-levels]"""
    x = t([1.0, 2.0])
    with fw.dual_level():
        dual = fw.make_dual(x, t([1.0, 1.0]))
        with pytest.raises(UsageError, match="memory of a primal of that level"):
            x.add_(dual)


def test_a_tangent_that_was_given_is_not_written_to():
    """[NOTE dual-levels] torch writes to it."""
    v = t([1.0, 1.0])
    with fw.dual_level():
        x = fw.make_dual(t([1.0, 2.0]), v)
        y = x + 1                                          # has the same tangent, and shares it
        x.mul_(2)
        close(fw.unpack_dual(x).tangent, [2.0, 2.0])
        close(fw.unpack_dual(y).tangent, [1.0, 1.0])
    close(v, [1.0, 1.0])


@pytest.mark.parametrize("detached", [lambda x: x.detach(), lambda x: x.clone().detach_()], ids=["detach", "detach_"])
def test_detach_cuts_the_tangent_too(detached):
    """[NOTE dual-levels]"""
    with fw.dual_level():
        assert fw.unpack_dual(detached(fw.make_dual(t(2.0), t(1.0))) * 3).tangent is None


def test_no_grad_is_not_about_tangents():
    """[NOTE dual-levels] [NOTE grad-mode-per-level]"""
    x = leaf()
    with fw.dual_level(), mg.no_grad():
        primal, tangent = fw.unpack_dual(fw.make_dual(x, t(V)) * 3)
    assert (primal.requires_grad, tangent.requires_grad) == (False, False)
    close(tangent, [3 * v for v in V])


# ---------------------------------------------------------------- forward mode is on or off at a level
def test_forward_mode_is_turned_off_for_the_levels_on_the_stack():
    """[NOTE dual-levels]"""
    with fw.dual_level():
        x = fw.make_dual(t(2.0), t(1.0))
        with fw._set_fwd_grad_enabled(False):
            assert not fw._is_fwd_grad_enabled()
            constant = x * 3
            within = jvp(mg.sin, (t(0.0),), (t(1.0),))[1].item()
            assert fw.unpack_dual(x).tangent is None
        assert fw._is_fwd_grad_enabled()
        assert fw.unpack_dual(constant).tangent is None
        assert fw.unpack_dual(x * constant).tangent.item() == 6.0
    assert within == 1.0                                   # a level entered inside pushes tangents


def test_forward_mode_is_turned_on_for_the_innermost_level_only():
    """[NOTE dual-levels]"""
    def f(x):
        with fw._set_fwd_grad_enabled(True):
            return x * x

    with fw.dual_level():
        x = fw.make_dual(t(3.0), t(1.0))
        with fw._set_fwd_grad_enabled(False):
            primal, tangent = jvp(f, (x,), (t(1.0),))
        assert fw.unpack_dual(primal).tangent is None
        assert tangent.item() == 6.0


# ---------------------------------------------------------------- memory features
def test_a_level_that_was_left_is_entered_again_by_a_recomputation():
    """[NOTE dual-levels] [NOTE recompute-under-the-same-state]"""
    x, f = leaf(), Counted(sin_sin)
    with fw.dual_level():
        tangent = fw.unpack_dual(checkpoint(f, fw.make_dual(x, t(V)))).tangent
    found = ag(tangent.sum(), x)
    plain = ag(ag(sin_sin(x), x, grad_outputs=t(V), create_graph=True).sum(), x)
    assert found.tolist() == pytest.approx(plain.tolist())
    assert f.calls == 2
    assert show() == "base"


def test_no_tangent_of_a_checkpointed_region_is_alive_after_its_forward():
    """[NOTE dual-levels] [NOTE layers-remember] Upstream: pytorch/pytorch#129293, where both are."""
    alive = Alive()

    def f(x):
        for _ in range(2):
            x = x.sin()
            alive.see(fw.unpack_dual(x).tangent)
        return x.cos()

    with fw.dual_level():
        y = checkpoint(f, fw.make_dual(leaf(), t(V)))
        assert alive.count() == 0
        assert fw.unpack_dual(y).tangent is not None


def test_what_is_saved_of_duals_goes_through_hooks_and_offload():
    """[NOTE dual-levels] [NOTE layers-remember]: sin keeps x, its tangent cos(x) and v, and x for the cosine."""
    x = leaf()
    packed = Packed()
    with fw.dual_level(), packed:
        fw.make_dual(x, t(V).requires_grad_()).sin()
    assert packed.count == 4
    with fw.dual_level(), save_on_cpu():
        tangent = fw.unpack_dual(fw.make_dual(x, t(V)).sin()).tangent
    close(ag(tangent.sum(), x), [-v * math.sin(a) for v, a in zip(V, (0.5, 1.0, 2.0), strict=True)])


def test_a_dual_level_leaves_no_garbage():
    """[NOTE dual-levels] [NOTE no-cycles]"""
    with no_garbage():
        for _ in range(2):
            with fw.dual_level():
                x = leaf()
                dual = fw.make_dual(x, t(V))
                ag(checkpoint(sin_sin, dual).sum(), dual, create_graph=True)
            del x, dual


# ---------------------------------------------------------------- with transforms
def test_dual_levels_mix_with_transforms():
    """[NOTE dual-levels]"""
    x, v = t([0.5, 1.0, 2.0]), t(V)
    push = lambda x: tangent_of(sin_sin, x, v)
    expected = jvp(sin_sin, (x,), (v,))[1].tolist()
    close(jvp(lambda x: x, (x,), (push(x),))[1], expected)
    close(vmap(lambda x, v: tangent_of(sin_sin, x, v))(x, v), expected)
    close(grad(lambda x: push(x).sum())(x), grad(lambda x: jvp(sin_sin, (x,), (v,))[1].sum())(x).tolist())
    close(jvp(push, (x,), (v,))[1], jvp(lambda x: jvp(sin_sin, (x,), (v,))[1], (x,), (v,))[1].tolist())
    close(tangent_of(grad(lambda x: sin_sin(x).sum()), x, v), jvp(grad(lambda x: sin_sin(x).sum()), (x,), (v,))[1].tolist())


class Square(Function):
    """x * x, with rules of its own."""

    forward = staticmethod(lambda x: x * x)
    setup_context = staticmethod(lambda ctx, inputs, output: ctx.save_for_forward(*inputs))
    jvp = staticmethod(lambda ctx, dx: 2 * dx * ctx.saved_tensors[0])


def test_a_functions_jvp_is_called_at_a_dual_level_and_its_forward_sees_none():
    """[NOTE dual-levels] [NOTE custom-function]"""
    assert tangent_of(Square.apply, t(3.0), t(1.0)).item() == 6.0
    seen = []

    class Asks(Square):
        forward = staticmethod(lambda x: seen.append((show(), fw._is_fwd_grad_enabled())) or x * x)

    tangent_of(Asks.apply, t(3.0), t(1.0))
    assert seen == [("base", False)]


def test_gradcheck_checks_forward_mode():
    """[NOTE dual-levels]"""
    class Wrong(Square):
        jvp = staticmethod(lambda ctx, dx: 3 * dx * ctx.saved_tensors[0])

    with pytest.raises(RuntimeError, match="computed with forward mode"):
        gradcheck(Wrong.apply, (leaf(),), check_forward_ad=True, check_backward_ad=False)


# ---------------------------------------------------------------- gradients of duals, at the levels below
def test_level_0_is_as_open_at_a_dual_level_as_outside():
    """[NOTE gradients-of-duals]"""
    with fw.dual_level():
        x = t(3.0).requires_grad_()
        dual = fw.make_dual(t(2.0), t(1.0)).requires_grad_()
        (dual * x).backward()
        assert (x.grad.item(), dual.grad.item(), dual.is_leaf) == (2.0, 3.0, True)


def test_the_gradient_of_a_dual_is_a_dual():
    """[NOTE gradients-of-duals]"""
    x = leaf()
    with fw.dual_level():
        dual = fw.make_dual(x, t(V))
        primal, tangent = fw.unpack_dual(ag((dual ** 3).sum(), dual))
    close(primal, [3 * a * a for a in (0.5, 1.0, 2.0)])
    close(tangent, [6 * a * v for a, v in zip((0.5, 1.0, 2.0), V, strict=True)])


def test_a_cotangent_may_be_a_dual():
    """[NOTE gradients-of-duals]"""
    with fw.dual_level():
        x = fw.make_dual(leaf(), t(V))
        ct = fw.make_dual(t([1.0, 1.0, 1.0]), t([10.0, 10.0, 10.0]))
        tangent = fw.unpack_dual(ag(x * x, x, grad_outputs=ct)).tangent
    close(tangent, [2 * v + 20 * a for a, v in zip((0.5, 1.0, 2.0), V, strict=True)])


def test_a_given_tangent_does_not_move_with_the_input():
    """[NOTE gradients-of-duals] The tangent is 2x: a number here, as the direction of a derivative."""
    x = t(1.0, requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, x * 2) ** 3
        assert fw.unpack_dual(ag(y, x)).tangent.item() == 12.0


def test_a_given_tangent_does_not_move_at_levels_further_down_either():
    """[NOTE gradients-of-duals] 6x along 2x is 12 x x, whose derivative along 1 is 24 x."""
    x = t(1.0, requires_grad=True)
    with fw.dual_level():
        outer = fw.make_dual(x, t(1.0))
        with fw.dual_level():
            y = fw.make_dual(outer, outer * 2) ** 3
            tangent = fw.unpack_dual(ag(y, outer)).tangent
        assert fw.unpack_dual(tangent) == (12.0, 24.0)


def test_a_tangent_on_the_way_does_not_move_with_its_primal():
    """[NOTE gradients-of-duals] The rule of exp reads its output."""
    x = t(0.0, requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, t(1.0)).exp()
        assert fw.unpack_dual(ag(y * y, y)).tangent.item() == 2.0


def test_an_input_that_is_a_given_tangent_is_refused():
    """[NOTE gradients-of-duals]"""
    x = t(1.0, requires_grad=True)
    with fw.dual_level():
        y = fw.make_dual(x, x) ** 3
        with pytest.raises(Refusal, match="is an input and also a tangent"):
            ag(y, x)


@pytest.mark.parametrize("hook", [lambda h: h.register_hook(lambda g: g * g), lambda h: h.retain_grad(),
                                  lambda h: h.grad_fn.register_hook(lambda gi, go: None),
                                  lambda h: h.grad_fn.register_prehook(lambda go: None)])
def test_a_gradient_of_a_dual_through_a_hook_is_refused(hook):
    """[NOTE gradients-of-duals] The hook would be called for the gradient and for half of its tangent."""
    with fw.dual_level():
        x = fw.make_dual(leaf(), t(V))
        h = x.exp()
        hook(h.value)
        with pytest.raises(Refusal, match="goes through a hook of ExpBackward0"):
            ag((h * h).sum(), x)


def test_a_hook_on_a_dual_is_refused():
    """[NOTE gradients-of-duals]"""
    with fw.dual_level():
        y = fw.make_dual(leaf(), t(V)).exp()
        assert not y.is_leaf
        with pytest.raises(Refusal, match="has no edge of its own"):
            y.register_hook(print)
        with pytest.raises(Refusal, match="has no edge of its own"):
            y.retain_grad()


def test_a_region_is_run_twice_for_the_gradient_of_a_dual():
    """[NOTE gradients-of-duals] Once for the gradient, once for its tangent."""
    f, x = Counted(sin_sin), leaf()
    with fw.dual_level():
        dual = fw.make_dual(x, t(V))
        found = fw.unpack_dual(ag(checkpoint(f, dual).sum(), dual)).tangent
        assert f.calls == 3
        close(found, fw.unpack_dual(ag(sin_sin(dual).sum(), dual)).tangent.tolist())


def test_gradients_of_duals_of_nested_levels():
    """[NOTE gradients-of-duals]"""
    x, one = t(0.7, requires_grad=True), t(1.0)
    third = tangent_of(lambda x: tangent_of(lambda x: ag(x ** 5, x, create_graph=True), x, one), x, one)
    close(third, 60 * 0.7 ** 2)


def test_jvp_of_a_gradient_at_level_0():
    """[NOTE gradients-of-duals] [NOTE level-zero]"""
    x = t(3.0, requires_grad=True)
    assert jvp(lambda x: ag(x ** 3, x, create_graph=True), (x,), (t(1.0),))[1].item() == 18.0


def test_backward_accumulates_no_tangent():
    """[NOTE gradients-of-duals] As in torch."""
    x = t(3.0, requires_grad=True)
    with fw.dual_level():
        (fw.make_dual(x, t(1.0)) ** 2).backward()
        assert fw.unpack_dual(x.grad) == (6.0, None)


def test_the_gradient_of_a_batch_is_still_refused():
    """[NOTE gradients-of-duals]"""
    with pytest.raises(UsageError, match="gradients are taken at one grad level"):
        vmap(lambda x: ag(x * x, x))(leaf())
