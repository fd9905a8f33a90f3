"""What a level is: an object, with a grad mode of its own, that tensors belong to; ordinary autograd is level 0."""

from __future__ import annotations

import math
import threading

import pytest
import torch

import minigrad as mg
from minigrad.autograd import is_grad_enabled, shallow_detach
from minigrad.errors import LevelError, UsageError
from minigrad.func import grad, hessian, jacrev, jvp, linearize, strict_levels, vjp, vmap
from minigrad.state import State, current, show, using
from tests.spec.instruments import OpsByLevel, nth, sin_sin, t, watching


# ---------------------------------------------------------------- S1: a level is an object
def test_two_levels_with_one_number_are_two_levels():
    """[NOTE levels-are-objects] S1."""
    owners = []
    for _ in range(2):
        grad(lambda x: owners.append(x.owner) or x * x)(t(3.0))
    assert [str(o) for o in owners] == ["grad@1", "grad@1"]
    assert owners[0] is not owners[1]


def test_perturbations_of_two_levels_are_not_confused():
    """[NOTE levels-are-objects] S1.  d/dx (x d/dy (x + y)) is 1, not 2.  Upstream: Siskind and Pearlmutter, 2005."""
    assert grad(lambda x: x * grad(lambda y: x + y)(t(1.0)))(t(1.0)).item() == 1.0
    assert jvp(lambda x: x * jvp(lambda y: x + y, (t(1.0),), (t(1.0),))[1], (t(1.0),), (t(1.0),))[1].item() == 1.0


@pytest.mark.parametrize("later", [lambda f: f(), vmap, lambda f: f], ids=["plain", "vmap", "grad"])
def test_a_vjp_function_works_under_whatever_levels_are_there_later(later):
    """[NOTE levels-are-objects] S1: its level has gone, others have come, some with the same number."""
    _, pull = vjp(sin_sin, t(5.0))
    want = math.cos(math.sin(5)) * math.cos(5)
    if later is vmap:
        assert vmap(lambda ct: pull(ct)[0])(t([1.0, 2.0])).tolist() == pytest.approx([want, 2 * want])
    else:
        assert pull(t(1.0))[0].item() == pytest.approx(want)
        assert grad(lambda ct: pull(ct)[0])(t(1.0)).item() == pytest.approx(want)


def test_linearize_runs_the_function_once_and_is_linear():
    """[NOTE levels-are-objects] S1.  torch.func.linearize runs it twice."""
    calls = []
    _, push = linearize(lambda x: calls.append(1) or sin_sin(x), t(5.0))
    slope = math.cos(math.sin(5)) * math.cos(5)
    assert [push(t(a)).item() for a in (1.0, -2.0)] == pytest.approx([slope, -2 * slope])
    assert len(calls) == 1


# ---------------------------------------------------------------- S2: level 0 is ordinary autograd
def test_backward_and_grad_agree_at_every_mix_of_level_0_and_grad():
    """[NOTE level-zero] S2: the same machine, so it does not matter which storey differentiates which time."""
    def at_level_0(f):
        def derivative(x):
            x = x.detach().requires_grad_()
            return mg.autograd.grad(f(x), x, create_graph=True)[0]
        return derivative

    want = nth(2, sin_sin)(t(5.0)).item()
    assert want == pytest.approx(torch.func.grad(torch.func.grad(lambda x: x.sin().sin()))(torch.tensor(5.0).double()).item())
    assert at_level_0(at_level_0_inner)(t(5.0)).item() == pytest.approx(want)
    x = t(5.0, requires_grad=True)
    grad(sin_sin)(x).backward()
    assert x.grad.item() == pytest.approx(want)


def at_level_0_inner(x):
    """The first derivative at level 0, of a tensor that requires grad there."""
    return mg.autograd.grad(sin_sin(x), x, create_graph=True)[0]


def test_autograd_grad_is_also_the_engine_of_a_grad_level():
    """[NOTE level-zero] S2: inside grad, `autograd.grad` differentiates at that level."""
    def inner(x):
        (g,) = mg.autograd.grad(sin_sin(x), x, create_graph=True)
        return g
    assert grad(inner)(t(5.0)).item() == pytest.approx(nth(2, sin_sin)(t(5.0)).item())


def test_a_leaf_of_level_0_is_not_differentiated_by_grad_and_still_has_its_edge_inside():
    """[NOTE level-zero] S2."""
    w = t(2.0, requires_grad=True)
    g = grad(lambda x: x * x * w)(t(3.0))
    assert g.requires_grad
    g.backward()
    assert (g.item(), w.grad.item()) == (12.0, 6.0)


def test_requires_grad_is_refused_inside_a_transform():
    """[NOTE level-zero] S2."""
    with pytest.raises(UsageError, match=r"inside of a function being transformed\..*\[level stack: base < grad@1\]"):
        grad(lambda x: x.detach().requires_grad_() * x)(t(1.0))


def test_gradients_are_taken_at_one_grad_level():
    """[NOTE level-zero] S2: vmap and jvp have no graph."""
    x = t([1.0, 2.0], requires_grad=True)
    with pytest.raises(UsageError, match="taken at one grad level"):
        vmap(lambda a: mg.autograd.grad(mg.sin(a), a)[0])(x)


# ---------------------------------------------------------------- S3: grad mode belongs to a level
def test_a_transform_ignores_no_grad_entered_outside():
    """[NOTE grad-mode-per-level] S3, case 1 of torch's note."""
    with mg.no_grad():
        assert grad(lambda x: x**3)(t(2.0)).item() == 12.0
        assert not is_grad_enabled()


def test_a_transform_obeys_no_grad_entered_inside():
    """[NOTE grad-mode-per-level] S3, case 2 of torch's note."""
    def f(x):
        with mg.no_grad():
            c = x**2
        return x * c
    g = grad(f)
    assert (g(t(3.0)).item(), grad(g)(t(3.0)).item()) == (9.0, 0.0)


@pytest.mark.parametrize("where", ["outside", "between", "inside"])
def test_no_grad_at_each_of_two_levels_means_what_it_means_in_torch(where):
    """[NOTE grad-mode-per-level] S3."""
    def program(lib, transform, x):
        def cube(y):
            if where != "inside":
                return y**3
            with lib.no_grad():
                c = y * y
            return y * c

        def slope(y):
            if where != "between":
                return transform(cube)(y)
            with lib.no_grad():
                return y * transform(cube)(y) * 1
        if where == "outside":
            with lib.no_grad():
                return transform(slope)(x).item()
        return transform(slope)(x).item()

    assert program(mg, grad, t(2.0)) == program(torch, torch.func.grad, torch.tensor(2.0).double())


def test_no_grad_reaches_the_levels_below_the_one_it_is_entered_at():
    """[NOTE grad-mode-per-level] S3: everything on the stack where it is entered, level 0 too."""
    w = t(2.0, requires_grad=True)

    def f(x):
        with mg.no_grad():
            return x * w
    out, pull = vjp(f, t(3.0))
    assert not out.requires_grad
    assert pull(t(1.0))[0].item() == 0.0


def test_enable_grad_inside_puts_the_levels_below_back_to_what_they_were():
    """[NOTE grad-mode-per-level] S3."""
    w = t(2.0, requires_grad=True)

    def f(x):
        with mg.no_grad(), mg.enable_grad():
            return x * w
    with mg.no_grad():
        off = vjp(f, t(3.0))[0]
    assert vjp(f, t(3.0))[0].requires_grad
    assert not off.requires_grad
    assert grad(f)(t(3.0)).item() == 2.0


def test_vmap_and_jvp_have_no_grad_mode_of_their_own():
    """[NOTE grad-mode-per-level] S3: jvp goes through no_grad, as in torch (#189423)."""
    def f(x):
        with mg.no_grad():
            return x**2
    assert jvp(f, (t(3.0),), (t(1.0),))[1].item() == 6.0
    x = t([1.0, 2.0], requires_grad=True)
    with mg.no_grad():
        assert not vmap(lambda a: a * a)(x).requires_grad
    assert vmap(lambda a: a * a)(x).requires_grad


def test_the_backward_of_a_level_turns_off_that_level_alone():
    """[NOTE grad-mode-per-level] S3: what makes grad of grad work at all."""
    x = t(5.0, requires_grad=True)
    y = sin_sin(x)
    seen = []
    y.grad_fn.register_hook(lambda *_: seen.append(None in current().grad_off))
    mg.autograd.grad(y, x, retain_graph=True)
    mg.autograd.grad(y, x, create_graph=True)
    assert seen == [True, False]


# ---------------------------------------------------------------- S4: tensors that escaped
def escaped(transform, *args):
    """What a function that `transform` runs has kept of its argument."""
    kept = []
    transform(lambda x: kept.append(x) or x.sum())(*args)
    return kept[0]


def test_an_escaped_tensor_of_grad_means_its_value():
    """[NOTE escaped-tensor] S4.  torch: a dead TensorWrapper is unwrapped."""
    kept = escaped(grad, t(3.0))
    assert (kept * 2).item() == 6.0
    assert grad(lambda z: z * kept * kept)(t(2.0)).item() == 9.0


def test_an_escaped_tensor_of_jvp_means_its_primal():
    """[NOTE escaped-tensor] S4."""
    kept = escaped(lambda f: lambda x: jvp(f, (x,), (t(1.0),)), t(3.0))
    assert (kept * 2).item() == 6.0


def test_an_escaped_tensor_is_unwrapped_through_every_dead_level():
    """[NOTE escaped-tensor] S4.  torch unwraps one level and then asserts."""
    kept = escaped(lambda f: nth(3, f), t(3.0))
    assert (kept * 2).item() == 6.0
    assert grad(lambda z: z * kept * kept)(t(2.0)).item() == 9.0
    kept = escaped(lambda f: nth(3, f), t([3.0, 3.0])[0].clone())
    assert kept.add_(1).item() == 4.0


def test_an_escaped_tensor_still_belongs_to_the_levels_that_are_alive():
    """[NOTE escaped-tensor] S4."""
    def f(x):
        kept = escaped(grad, x)
        return kept * kept
    assert grad(f)(t(3.0)).item() == 6.0


def test_an_escaped_tensor_of_vmap_is_an_error_that_names_the_level():
    """[NOTE escaped-tensor] S4."""
    kept = escaped(vmap, t([1.0, 2.0]))
    with pytest.raises(LevelError, match=r"escaped from inside a function being vmapped: it belongs to vmap@1.*\[level stack: base\]"):
        kept * 2
    with pytest.raises(LevelError, match=r"vmap@1"):
        grad(lambda z: z * kept)(t(1.0))


@pytest.mark.parametrize("use", [lambda x: x * 2, mg.sin, lambda x: mg.stack([x, x]), lambda x: grad(lambda y: y * x)(t(1.0)),
                                 lambda x: x.add_(1)], ids=["binary", "unary", "a list", "in another level", "in place"])
@pytest.mark.parametrize("transform", [grad, lambda f: lambda x: jvp(f, (x,), (x,))[1], vmap], ids=["grad", "jvp", "vmap"])
def test_in_strict_mode_every_escaped_tensor_is_an_error(transform, use):
    """[NOTE escaped-tensor] S4."""
    kept = escaped(transform, t([3.0]) if transform is vmap else t(3.0))
    before = current()
    with strict_levels(), pytest.raises(LevelError, match=r"(grad|jvp|vmap)@1"):
        use(kept)
    assert current() is before


def test_strict_mode_may_be_a_decorator_and_does_not_touch_tensors_of_living_levels():
    """[NOTE escaped-tensor] S4."""
    assert strict_levels()(lambda: nth(2, sin_sin)(t(0.7)))().item() == pytest.approx(nth(2, sin_sin)(t(0.7)).item())


# ---------------------------------------------------------------- S6: the stack can be shown
def test_the_stack_draws_itself_bottom_first():
    """[NOTE the-stack-is-shown] S6."""
    seen = []
    vmap(grad(lambda x: seen.append(show()) or x * x))(t([1.0, 2.0]))
    assert seen == ["base < vmap@1 < grad@2"]
    assert show() == "base"


def test_a_tensor_draws_its_layers_and_marks_those_with_an_edge():
    """[NOTE the-stack-is-shown] S6."""
    seen = []
    vmap(grad(lambda x: seen.append(repr(x)) or x * x))(t([1.0, 2.0]))
    assert seen[0].startswith("grad@2*(vmap@1(tensor([1., 2.]")
    assert seen[0].endswith("bdim=0))")


def test_an_error_inside_transforms_shows_the_stack():
    """[NOTE the-stack-is-shown] S6."""
    with pytest.raises(UsageError, match=r"\[level stack: base < vmap@1 < grad@2\]"):
        vmap(grad(lambda x: x + mg.zeros(3) + mg.zeros(2)))(t([1.0, 2.0]))


def test_the_state_shows_its_stack_and_what_else_is_not_as_at_the_start():
    """[NOTE the-stack-is-shown] S6."""
    seen = []
    with using(State()), mg.no_grad():
        vmap(grad(lambda x: seen.append(repr(current())) or x * x))(t([1.0]))
        assert repr(current()) == "<State base, grad_off=frozenset({None})>"
    assert seen == ["<State base < vmap@1 < grad@2, grad_off=frozenset({None})>"]


def test_what_watchers_are_told_names_the_level():
    """[NOTE the-stack-is-shown] S6: one line of a trace for each storey that an op goes through."""
    x = t(1.0)
    with watching(OpsByLevel()) as log:
        grad(mg.sin)(x)
    assert log.names["grad@1"] == ["sin"]
    assert log.names["base"] == ["sin", "ones_like", "cos", "mul"]


# ---------------------------------------------------------------- who processes an op
def test_an_op_is_processed_by_the_levels_that_its_arguments_belong_to():
    """[NOTE who-processes-an-op]"""
    c = t(2.0)
    with watching(OpsByLevel()) as log:
        grad(lambda x: grad(lambda y: c * c + x * x + y * y)(t(1.0)))(t(1.0))
    assert log.names["base"].count("mul") >= 3
    assert log.names["grad@1"][0] == "mul"                 # x * x
    assert log.names["grad@2"][0] == "mul"                 # y * y
    assert log.names["grad@2"].count("mul") == 1


def test_a_level_that_nothing_belongs_to_sees_no_op():
    """[NOTE who-processes-an-op]"""
    x = t(3.0)
    with watching(OpsByLevel()) as log:
        vmap(lambda _: grad(lambda _: sin_sin(x))(t(1.0)))(t([1.0, 2.0]))
    assert log.names["base"].count("sin") == 2
    assert "sin" not in log.names.get("grad@2", [])
    assert "sin" not in log.names.get("vmap@1", [])


def test_what_is_made_inside_a_transform_belongs_to_no_level_until_an_op_brings_it_in():
    """[NOTE who-processes-an-op]"""
    owners = []

    def f(x):
        made = mg.ones(2)
        owners.append(made.owner)
        joined = made * x
        owners.append(str(joined.owner))
        return joined.sum()
    grad(f)(t(1.0))
    assert owners == [None, "grad@1"]


def test_the_innermost_level_decides_first_and_the_outer_ones_see_what_it_does():
    """[NOTE who-processes-an-op]"""
    x = t([[1.0, 2.0], [3.0, 4.0]])
    want = [[math.cos(a) for a in row] for row in x.tolist()]
    assert vmap(vmap(grad(mg.sin)))(x).tolist() == [pytest.approx(row) for row in want]
    assert vmap(vmap(grad(mg.sin), in_dims=0), in_dims=1, out_dims=1)(x).tolist() == [pytest.approx(row) for row in want]


# ---------------------------------------------------------------- one level can be cut alone
def test_shallow_detach_cuts_the_innermost_level_and_detach_cuts_all():
    """[NOTE shallow-detach]"""
    def program(cut):
        return grad(lambda x: grad(lambda y: (y * cut(x * y)).sum())(x).sum())(t(3.0)).item()
    assert (program(shallow_detach), program(lambda x: x.detach())) == (6.0, 0.0)


def test_shallow_detach_goes_through_vmap_to_the_level_that_differentiates():
    """[NOTE shallow-detach]"""
    def f(x):
        return grad(lambda y: vmap(lambda a: a * shallow_detach(a * x))(y.unsqueeze(0)).sum())(x)
    assert grad(f)(t(3.0)).item() == 6.0


def test_shallow_detach_at_level_0_is_detach():
    """[NOTE shallow-detach]"""
    x = t(3.0, requires_grad=True)
    y = shallow_detach(x * x)
    assert not y.requires_grad
    assert y.item() == 9.0


def test_detach_is_transparent_for_data_at_every_level():
    """[NOTE shallow-detach]  Upstream: torch's test of detach under grad of grad."""
    assert nth(2, lambda x: x * (x * x).detach())(t(3.0)).item() == 0.0
    assert nth(1, lambda x: x * (x * x).detach())(t(3.0)).item() == 9.0


# ---------------------------------------------------------------- levels and threads
def test_each_thread_has_its_own_stack():
    """[NOTE state-is-a-value]"""
    seen = []

    def f(x):
        thread = threading.Thread(target=lambda: seen.append(show()))
        thread.start()
        thread.join()
        return x * x
    grad(f)(t(1.0))
    assert seen == ["base"]


def test_higher_derivatives_do_not_depend_on_how_they_are_spelled():
    """[NOTE level-zero]"""
    x = t(5.0)
    want = nth(2, sin_sin)(x).item()
    spelled = [hessian(sin_sin)(x), jacrev(jacrev(sin_sin))(x), jvp(grad(sin_sin), (x,), (t(1.0),))[1],
               grad(lambda x: jvp(sin_sin, (x,), (t(1.0),))[1])(x), vmap(nth(2, sin_sin))(x.unsqueeze(0))[0]]
    assert [y.item() for y in spelled] == pytest.approx([want] * 5)
