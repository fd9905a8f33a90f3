"""The three derivatives of a row say the same, and what the kernel says."""

import pytest

import minigrad
from minigrad import autograd, func
from minigrad.errors import UsageError
from minigrad.state import Watcher
from tests.laws.cases import Case, array, cases, close, differentiable, gradient, inner, tensor, value
from tests.laws.samples import REFUSES_DERIVATIVE
from tests.spec.instruments import watching

STEP = 1e-4


def directional(f, xs, dxs, step=STEP):
    """Central differences of the outputs of f along dxs, of order 4."""
    def at(t):
        moved = [tensor(array(x) + t * array(dx), x.dtype, x.device) for x, dx in zip(xs, dxs, strict=True)]
        return [array(y) for y in f(*moved)]
    near, far = [(array_pair(at(h), at(-h), h)) for h in (step, 2 * step)]
    return [(4 * a - b) / 3 for a, b in zip(near, far, strict=True)]


def array_pair(high, low, h):
    return [(a - b) / (2 * h) for a, b in zip(high, low, strict=True)]


@cases(wanted=differentiable)
def test_the_vjp_is_the_adjoint_of_the_jvp(case, device):
    """<ct, J dx> = <J^T ct, dx>, with the real inner product."""
    args = case.tensors(0, device)
    f, xs = case.function(args, case.active, device), [args[i] for i in case.active]
    dxs = case.alike(xs, 0)
    outs, dys = func.jvp(f, tuple(xs), tuple(dxs))
    cts = case.alike(outs, 1)
    _, pull = func.vjp(f, *xs)
    there, back = inner(cts, dys), inner(pull(tuple(cts)), dxs)
    assert there == pytest.approx(back, rel=1e-11, abs=1e-11 * len(array(outs[0]).ravel()))


@cases(wanted=differentiable)
def test_each_input_alone_has_its_part_of_the_derivative(case, device):
    """The rule of one input does not lean on another's being differentiated."""
    args = case.tensors(0, device)
    xs = [args[i] for i in case.active]
    dxs = case.alike(xs, 0)
    outs, whole = func.jvp(case.function(args, case.active, device), tuple(xs), tuple(dxs))
    cts = case.alike(outs, 1)
    wanted = func.vjp(case.function(args, case.active, device), *xs)[1](tuple(cts))
    parts = []
    for k, i in enumerate(case.active):
        f = case.function(args, [i], device)
        close(func.vjp(f, xs[k])[1](tuple(cts)), [wanted[k]], 1e-13)
        parts.append([array(dy) for dy in func.jvp(f, (xs[k],), (dxs[k],))[1]])
    close([sum(each) for each in zip(*parts, strict=True)], whole, 1e-12)


@cases(wanted=differentiable)
def test_the_jvp_is_what_central_differences_give(case, device):
    args = case.tensors(0, device)
    f, xs = case.function(args, case.active, device), [args[i] for i in case.active]
    dxs = case.alike(xs, 0)
    close(func.jvp(f, tuple(xs), tuple(dxs))[1], directional(f, xs, dxs), 1e-8)


@cases(wanted=lambda case: case.passive)
def test_an_input_without_a_rule_cannot_be_differentiated(case, device):
    """Never a silent zero."""
    args = case.tensors(0, device)
    for i in case.passive:
        f = case.function(args, [i], device)
        with pytest.raises(UsageError, match="is not differentiable with respect to"):
            func.vjp(f, args[i])[1](f(args[i]))
        with pytest.raises(UsageError, match="is not differentiable with respect to"):
            func.jvp(f, (args[i],), (args[i],))


@pytest.mark.parametrize("name", REFUSES_DERIVATIVE)
def test_a_row_that_refuses_its_derivative_says_so(name, device):
    case = Case(name, 0, "float64")
    args = case.tensors(0, device)
    f = case.function(args, case.active, device)
    with pytest.raises(UsageError, match=REFUSES_DERIVATIVE[name]):
        func.vjp(f, *[args[i] for i in case.active])[1](f(*[args[i] for i in case.active]))
    with pytest.raises(UsageError, match=REFUSES_DERIVATIVE[name]):
        func.jvp(f, tuple(args[i] for i in case.active), tuple(args[i] for i in case.active))


@cases(wanted=lambda case: not case.op.differentiable and case.floating)
def test_a_row_without_rules_records_nothing(case, device):
    xs = case.tensors(0, device)
    for i in case.floating:
        xs[i].requires_grad_()
    out = case.call(*xs, **case.params(device))
    assert case.op.jvp is None
    assert not any(y.requires_grad for y in ((out,) if case.op.outs == 1 else out))


@cases(wanted=differentiable)
def test_level_0_and_a_grad_level_give_the_same_bits(case, device):
    """Level 0 may run a rule on the arrays themselves."""
    args = case.tensors(0, device)
    xs = [args[i] for i in case.active]
    outs, pull = func.vjp(case.function(args, case.active, device), *xs)
    cts = case.alike(outs, 1)
    wanted = pull(tuple(cts))
    leaves = [x.detach().requires_grad_() for x in xs]
    ys = case.function(args, case.active, device)(*leaves)
    kept = [(y, ct) for y, ct in zip(ys, cts, strict=True) if y.requires_grad]
    found = autograd.grad([y for y, _ in kept], leaves, [ct for _, ct in kept], materialize_grads=True)
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype is b.dtype
        assert a.tolist() == b.tolist()


@cases(wanted=lambda case: differentiable(case) and case.op.elementwise)
def test_a_rule_gives_the_same_bits_on_arrays_and_on_tensors(case, device):
    """[NOTE fast-path]: where somebody watches, rules run on tensors."""
    args = case.tensors(0, device)
    outs, pull = func.vjp(case.function(args, case.active, device), *[args[i] for i in case.active])
    cts = tuple(case.alike(outs, 1))
    found = pull(cts)
    with watching(Watcher()):
        assert [g.tolist() for g in pull(cts)] == [g.tolist() for g in found]


@cases(wanted=differentiable)
def test_second_derivatives_are_what_differences_of_the_first_give(case, device):
    """grad of grad, jvp of grad, grad of jvp and level 0 with create_graph agree with central differences of grad."""
    args = case.tensors(0, device)
    phi, xs = value(case.function(args, case.active, device), device), [args[i] for i in case.active]
    n, vs = len(xs), case.alike(xs, 2)
    first = gradient(phi, n)

    def along(*ys):
        total = None
        for g, v in zip(first(*ys), vs, strict=True):
            part = (g * v.conj()).sum()
            part = part.real if part.dtype.is_complex else part
            total = part if total is None else total + part
        return total

    wanted = directional(first, xs, vs)
    forward = func.jvp(first, tuple(xs), tuple(vs))[1]
    close(forward, wanted, 1e-7)
    close(gradient(along, n)(*xs), forward, 1e-11)
    close(gradient(lambda *ys: func.jvp(phi, ys, tuple(vs))[1], n)(*xs), forward, 1e-11)

    leaves = [x.detach().requires_grad_() for x in xs]
    grads = autograd.grad(phi(*leaves), leaves, create_graph=True)
    kept = [(g, v) for g, v in zip(grads, vs, strict=True) if g.requires_grad]
    if kept:
        found = autograd.grad([g for g, _ in kept], leaves, [v for _, v in kept], materialize_grads=True)
        close(found, forward, 1e-11)


def test_detach_has_no_derivative(device):
    x = minigrad.tensor([1.0, 2.0], device=device)
    assert func.grad(lambda x: (x.detach() * x).sum())(x).tolist() == [1.0, 2.0]
