"""Tensors without data, beside torch's and beside the same program on the host."""

from __future__ import annotations

import resource

import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import grad, vmap
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import sin_sin


def mlp(lib, where):
    x = lib.ones(3, 4, device=where, requires_grad=True)
    return lib.nn.functional.softmax(lib.nn.functional.linear(x, lib.ones(5, 4, device=where)), -1).t()


def gradient(lib, where):
    x = lib.ones(3, 4, device=where, requires_grad=True)
    (x * lib.ones(4, device=where)).sin().sum().backward()
    return x.grad


def recomputed(lib, where):
    x = lib.ones(3, device=where, requires_grad=True)
    f = lambda x: lib.nn.functional.dropout(x.sin(), 0.5).cos()
    lib.utils.checkpoint.checkpoint(f, x, use_reentrant=False).sum().backward()
    return x.grad


def batched(lib, where):
    return lib.func.vmap(lib.func.grad(lambda x: x.exp().sum()), 1, 1)(lib.ones(2, 5, device=where))


def written(lib, where):
    x = lib.zeros(3, 2, device=where, dtype=lib.float64)
    x[0].add_(1)
    return x.t()


PROGRAMS = [
    mlp, gradient, recomputed, batched, written,
    lambda lib, where: lib.nn.Linear(3, 4, device=where)(lib.ones(2, 3, device=where)),
    lambda lib, where: lib.ones(2, 3, device=where).t().reshape(6),
    lambda lib, where: lib.ones(2, 3, device=where).expand(4, 2, 3),
    lambda lib, where: lib.tensor([[1, 2]], device=where).argmax(1),
    lambda lib, where: lib.ones(3).to(where, lib.float64) + lib.tensor(2.0, device="cpu"),
    lambda lib, where: lib.rand(2, 3, device=where).split(1)[1],
    lambda lib, where: lib.arange(6, device=where).reshape(2, 3)[:, ::2],
]


def looks(y):
    return tuple(y.shape), y.stride(), str(y.dtype).partition(".")[2], y.requires_grad, y.is_leaf, y._version, y.device.type


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_makes_what_it_makes_elsewhere_but_for_the_data(program):
    """[NOTE meta-tensors]"""
    assert looks(program(mg, "meta")) == looks(program(torch, "meta"))
    assert looks(program(mg, "meta"))[:-1] == looks(program(mg, "cpu"))[:-1]


def test_a_device_that_is_entered_is_where_a_module_is_made():
    """[NOTE meta-tensors]"""
    with mg.device("meta"):
        linear = mg.nn.Linear(3, 4)
    assert linear.weight.is_meta
    assert repr(linear.bias.detach()) == "tensor(..., device='meta', size=(4,))"


@pytest.mark.parametrize(("look", "words"), [
    (lambda x: x.sum().item(), "no data"), (lambda x: x.tolist(), "no data"), (lambda x: bool(x.sum()), "no data"),
    (lambda x: x.to("cpu"), "Cannot copy out of meta tensor; no data!"), (lambda x: x[x > 0], "depends on data"),
    (lambda x: x.nonzero(), "depends on data"),
    (lambda x: x.masked_select(x > 0), "depends on data"), (lambda x: mg.allclose(x, x), "no data"),
    (lambda x: x + mg.ones(3, device="cpu"), "on the same device"),
], ids=["item", "tolist", "bool", "to", "mask", "nonzero", "masked_select", "allclose", "add"])
def test_what_depends_on_data_is_an_error_that_says_so(look, words):
    """[NOTE meta-tensors]"""
    with pytest.raises(UsageError, match=words):
        look(mg.ones(3, device="meta"))


def test_transforms_and_checkpoint_recompute_without_data():
    """[NOTE meta-tensors] The function runs as often as it would with data."""
    calls = []

    def f(x):
        calls.append(x.shape)
        return sin_sin(x).sum()

    out = vmap(grad(grad(lambda x: checkpoint(f, x))))(mg.ones(5, device="meta"))
    assert (out.shape, calls) == ((5,), [()] * 3)


def test_nothing_is_held_between_ops():
    """[NOTE meta-tensors] A hundred tensors of 32 MiB, in a process that never grows by as much as ten."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    made = [mg.empty(1 << 22, dtype=mg.float64, device="meta")]
    while len(made) < 100:
        made.append(made[-1].view(1 << 11, -1).t())
        made.append(made[-1] + 1)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10 * (32 << 10)
