"""Hooks of several gradients, and of the AccumulateGrad node at the end of a graph."""

from __future__ import annotations

import gc
import weakref

import pytest
import torch

import minigrad as mg


@pytest.fixture(params=["minigrad", "torch"])
def lib(request):
    return {"minigrad": mg, "torch": torch}[request.param]


def leaves(lib, n):
    return [lib.tensor(float(k + 1), requires_grad=True) for k in range(n)]


# ---------------------------------------------------------------- register_multi_grad_hook
def test_all_gradients_come_in_one_list_when_the_last_is_there(lib):
    a, b, c = leaves(lib, 3)
    seen = []
    lib.autograd.graph.register_multi_grad_hook((a, b, c), lambda grads: seen.append([g.item() for g in grads]))
    (a * b * c).backward()
    assert seen == [[6.0, 3.0, 2.0]]


def test_what_the_run_does_not_compute_is_none(lib):
    a, b, c = leaves(lib, 3)
    seen = []
    lib.autograd.graph.register_multi_grad_hook((a, b, c), lambda grads: seen.append([g is not None for g in grads]))
    (a * b).backward()
    (a * b * c).backward(inputs=(c,))
    assert seen == [[True, True, False], [False, False, True]]


def test_autograd_grad_is_a_run_too():
    """torch refuses it where one of the tensors is a leaf."""
    a, b = leaves(mg, 2)
    seen = []
    mg.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append([g is not None for g in grads]))
    mg.autograd.grad(a * b, b)
    assert seen == [[False, True]]


def test_each_run_is_counted_alone(lib):
    a, b = leaves(lib, 2)
    seen = []
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append(1))
    y = a * b
    for _ in range(3):
        y.backward(retain_graph=True)
    assert len(seen) == 3


def test_intermediate_tensors_too(lib):
    (a,) = leaves(lib, 1)
    u, v = a * 2, a * 3
    seen = []
    lib.autograd.graph.register_multi_grad_hook((u, v), lambda grads: seen.append([g.item() for g in grads]))
    (u * v).backward()
    assert seen == [[3.0, 2.0]]


def test_any_means_the_first_gradient_of_each_run(lib):
    a, b = leaves(lib, 2)
    seen = []
    lib.autograd.graph.register_multi_grad_hook((a, b), lambda g: seen.append(1), mode="any")
    y = a * b
    for _ in range(2):
        y.backward(retain_graph=True)
    assert len(seen) == 2


def test_removed_hooks_do_not_run(lib):
    a, b = leaves(lib, 2)
    seen = []
    with lib.autograd.graph.register_multi_grad_hook((a, b), lambda grads: seen.append(1)):
        (a * b).backward()
    (a * b).backward()
    assert len(seen) == 1


def test_another_mode_is_an_error(lib):
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got some"):
        lib.autograd.graph.register_multi_grad_hook(leaves(lib, 2), lambda grads: None, mode="some")


def test_they_keep_no_tensor_alive(no_gc):
    a, b = leaves(mg, 2)
    u = a * b
    node = weakref.ref(u.grad_fn)
    mg.autograd.graph.register_multi_grad_hook((a, u), lambda grads: None)
    (u * 2).backward()
    del u
    assert node() is None
    assert not gc.isenabled()


# ---------------------------------------------------------------- AccumulateGrad
def accumulate_grad(x):
    return x.view_as(x).grad_fn.next_functions[0][0]


def test_the_order_is_tensor_node_accumulation_tensor_node(lib):
    (a,) = leaves(lib, 1)
    log = []
    node = accumulate_grad(a)
    node.register_hook(lambda inputs, outputs: log.append(("after", len(inputs), outputs[0].item(), a.grad.item())))
    node.register_prehook(lambda outputs: log.append(("before", outputs[0].item())) or (outputs[0] / 4,))
    a.register_post_accumulate_grad_hook(lambda x: log.append(("accumulated", x.grad.item())))
    a.register_hook(lambda g: log.append(("tensor", g.item())) or g * 2)
    (a * 6).backward()
    assert log == [("tensor", 6.0), ("before", 12.0), ("accumulated", 3.0), ("after", 0, 3.0, 3.0)]


def test_they_do_not_run_where_nothing_accumulates(lib):
    (a,) = leaves(lib, 1)
    log = []
    node = accumulate_grad(a)
    node.register_hook(lambda *given: log.append(1))
    node.register_prehook(lambda *given: log.append(1))
    lib.autograd.grad(a * 6, a)
    assert log == []


def test_metadata_lasts_as_long_as_the_leaf():
    (a,) = leaves(mg, 1)
    accumulate_grad(a).metadata["seen"] = 1
    assert accumulate_grad(a).metadata == {"seen": 1}


def test_a_post_accumulate_hook_that_returns_something_is_an_error(lib):
    (a,) = leaves(lib, 1)
    a.register_post_accumulate_grad_hook(lambda x: x.grad)
    with pytest.raises(RuntimeError, match=r"hooks should return None\."):
        (a * 2).backward()
