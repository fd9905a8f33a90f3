"""allow_mutation_on_saved_tensors: hooks and a dispatch mode, which compose with levels as all hooks do."""

from __future__ import annotations

import math

import pytest
import torch

import minigrad as mg
from minigrad.autograd.graph import allow_mutation_on_saved_tensors
from minigrad.errors import UsageError
from minigrad.func import grad, vjp, vmap
from minigrad.state import current
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import nth, t

WRITES = {
    "in place": lambda lib, b: b.sin_(),
    "a view": lambda lib, b: b[:1].mul_(10),
    "a row": lambda lib, b: b.__setitem__(0, 5.0),
    "all": lambda lib, b: b.zero_(),
    "twice": lambda lib, b: b.mul_(2).add_(1),
}
SAVES = {
    "itself": lambda b: (b ** 2).sum(),
    "a view": lambda b: (b[:] ** 2).sum(),
    "twice": lambda b: (b * b).sum(),
    "its output": lambda b: b.exp().sum(),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("save", SAVES)
def test_a_saved_tensor_may_be_written_to(save, write):
    """[NOTE write-after-save] H5."""
    def program(lib):
        x = lib.tensor([0.5, 2.0], dtype=lib.float64, requires_grad=True)
        with lib.autograd.graph.allow_mutation_on_saved_tensors() as saves:
            b = x * 1
            y = SAVES[save](b)
            WRITES[write](lib, b)
            copies = len(saves.cloned)
            y.backward()
            return x.grad.tolist(), copies, len(saves.cloned)
    got, copies, left = program(mg)
    want, its, _ = program(torch)
    assert got == pytest.approx(want)
    assert (copies, left) == (its, 0)


@pytest.mark.parametrize("order", [1, 2, 3])
def test_at_every_level_what_was_saved_is_what_comes_back(order):
    """[NOTE write-after-save] H5: each in-place op of each level comes to one write at the base."""
    def f(x):
        b = mg.exp(x)
        y = b * b
        b.mul_(10)
        return y * b
    with allow_mutation_on_saved_tensors():
        got = nth(order, f)(t(0.5))
    assert got.item() == pytest.approx(10 * 3**order * math.exp(1.5))


def test_under_vmap_and_in_a_vjp_that_is_called_later():
    """[NOTE write-after-save] H5."""
    def f(x):
        b = x * 1
        y = b * b
        b.sin_()
        return y
    x = t([1.0, 2.0, 3.0])
    with allow_mutation_on_saved_tensors():
        assert vmap(grad(f))(x).tolist() == [2.0, 4.0, 6.0]
        y, pull = vjp(f, x)
        assert pull(mg.ones_like(y))[0].tolist() == [2.0, 4.0, 6.0]


def test_what_a_checkpointed_region_saves_is_the_regions_and_a_write_to_it_an_error():
    """[NOTE write-after-save] H5 [NOTE whose-saves]: the frame is the innermost.  torch gives a wrong gradient, silently."""
    def region(x):
        b = x * 1
        y = b * b
        b.mul_(10)
        return mg.sin(y)
    x = t(0.5, requires_grad=True)
    with allow_mutation_on_saved_tensors(), pytest.raises(UsageError, match="modified by an inplace operation"):
        checkpoint(region, x).backward()
    with allow_mutation_on_saved_tensors():
        b = x * 1
        y = checkpoint(mg.sin, b) + b * b
        b.mul_(10)
        y.backward()                                       # an argument is saved by who is outside of the region
    assert x.grad.item() == pytest.approx(math.cos(0.5) + 2 * 0.5)


def test_copies_are_made_once_and_die_with_what_needs_them(no_gc):
    """[NOTE write-after-save] H5: not for what was saved once and is saved no more."""
    with allow_mutation_on_saved_tensors() as saves:
        a = t([1.0, 2.0], requires_grad=True) * 1
        y = (a ** 2).sum()
        y.backward()
        a.sin_()
        assert len(saves.cloned) == 0
        b, c = a ** 2, a ** 2
        a.mul_(2)
        assert len(saves.cloned) == 1
        d = a ** 2
        a.mul_(2)
        assert len(saves.cloned) == 2
        del b, c
        assert len(saves.cloned) == 1
        del d
        assert len(saves.cloned) == 0


def test_a_backward_outside_of_its_context_is_an_error():
    """[NOTE write-after-save]"""
    with allow_mutation_on_saved_tensors():
        y = t(2.0, requires_grad=True) ** 2
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        y.backward()
    with allow_mutation_on_saved_tensors(), pytest.raises(AssertionError, match="Trying to backward outside"):
        y.backward()


def test_contexts_do_not_nest_and_leave_no_trace():
    """[NOTE write-after-save]"""
    before = current()
    with (pytest.raises(UsageError, match="allow_mutation_on_saved_tensors contexts cannot be nested"),
          allow_mutation_on_saved_tensors(), allow_mutation_on_saved_tensors()):
        raise AssertionError
    assert current() is before
