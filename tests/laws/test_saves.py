"""What a node keeps is what its row declares, and nothing else: hooks see all of it."""

import weakref

import pytest

from minigrad import Tensor, autograd, func
from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.graph.formula import expand
from tests.laws.cases import array, cases, close, differentiable


def recorded(case, device):
    """The row run at level 0 on tensors that are no leaves: (arguments, outputs, node)."""
    args = case.tensors(0, device)
    for i in case.active:
        args[i] = args[i].requires_grad_().clone()
    out = case.call(*args, **case.params(device))
    outs = (out,) if case.op.outs == 1 else tuple(out)
    return args, outs, next(y.grad_fn for y in outs if y.requires_grad)


def declared(case, n):
    return [name for given in case.op.saves for name in expand(given, n)]


def named(name, args, outs):
    """What a declared name stands for."""
    return args[int(name[1:])] if name[0] == "x" else outs[int(name[3:] or 0)]


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(name in rest for name in part)


@cases(wanted=differentiable)
def test_hooks_see_the_declared_saves_in_order(case, device):
    packed = []
    with saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
        args, outs, node = recorded(case, device)
    assert is_subsequence(node.plan.saves, declared(case, len(args)))
    wanted = [t for t in (named(name, args, outs) for name in node.plan.saves) if isinstance(t, Tensor)]
    assert [p.dtype for p in packed] == [t.dtype for t in wanted]
    close(packed, wanted, 0)


@cases(wanted=differentiable)
def test_a_node_captures_nothing_but_its_saves(case, device, no_gc):
    args, outs, node = recorded(case, device)
    kept = {id(t.untyped_storage()) for t in (named(name, args, outs) for name in node.plan.saves) if isinstance(t, Tensor)}
    stores = [(weakref.ref(t.untyped_storage()), id(t.untyped_storage())) for t in (*args, *outs) if isinstance(t, Tensor)]
    assert not any(isinstance(v, Tensor) for v in node.params.values())
    del args, outs
    assert {i for r, i in stores if r() is not None} == kept
    node.release()
    assert not any(r() is not None for r, _ in stores)


@cases(wanted=differentiable)
def test_a_backward_frees_what_was_saved(case, device, no_gc):
    args, outs, node = recorded(case, device)
    stores = [weakref.ref(t.untyped_storage()) for t in (*args, *outs) if isinstance(t, Tensor)]
    ys = [y for y in outs if y.requires_grad]
    cts = case.alike(ys, 1)
    autograd.backward(ys, cts)
    del args, outs, ys
    assert not any(r() is not None for r in stores)
    assert node.saved is None or node.saved == ()


@cases(wanted=differentiable)
def test_a_grad_level_saves_what_level_0_saves(case, device):
    def packed_by(run):
        packed = []
        with saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
            run()
        return packed

    args = case.tensors(0, device)
    above = packed_by(lambda: func.vjp(case.function(args, case.active, device), *[args[i] for i in case.active]))
    below = packed_by(lambda: recorded(case, device))[-len(above):] if above else []
    close(above, below, 0)


@cases(wanted=differentiable)
def test_rules_read_their_saves_only_through_hooks(case, device):
    """Saved tensors that went away as arrays and came back give the same bits, also where the backward is recorded."""
    args = case.tensors(0, device)
    xs = [args[i] for i in case.active]
    f = case.function(args, case.active, device)

    def grads(*, through_hooks, create_graph):
        leaves = [x.detach().requires_grad_() for x in xs]
        if through_hooks:
            with saved_tensors_hooks(lambda x: x.detach().clone(), lambda x: x.clone()):
                outs = f(*leaves)
        else:
            outs = f(*leaves)
        ys = [y for y in outs if y.requires_grad]
        return autograd.grad(ys, leaves, case.alike(ys, 1), materialize_grads=True, create_graph=create_graph)

    for create_graph in (False, True):
        found, wanted = (grads(through_hooks=h, create_graph=create_graph) for h in (True, False))
        assert [array(g).tolist() for g in found] == [array(g).tolist() for g in wanted]


@cases(wanted=differentiable)
def test_a_freed_node_says_so(case, device):
    _, outs, node = recorded(case, device)
    ys = [y for y in outs if y.requires_grad]
    autograd.backward(ys, case.alike(ys, 1))
    if node.saved is None:
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            autograd.backward(ys, case.alike(ys, 1))
