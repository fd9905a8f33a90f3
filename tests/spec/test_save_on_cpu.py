"""save_on_cpu: one host copy for each storage, whatever the number of saves, levels and views."""

from __future__ import annotations

import math
from weakref import ref

import pytest

import minigrad as mg
from minigrad import sim
from minigrad.autograd.graph import save_on_cpu
from minigrad.errors import UsageError
from minigrad.func import grad, hessian, jacrev, jvp, vmap
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import Alive, Packed, chain, nth, sin_sin


def on_sim(data, **options):
    return mg.tensor(data, dtype=mg.float64, device="sim", **options)


def to_host():
    return sim.memory_stats()["copied_bytes.to_host"]


def to_device():
    return sim.memory_stats()["copied_bytes.to_device"]


def copies(f, *args, **options):
    """How many host copies f makes of what it saves."""
    with (context := save_on_cpu(**options)):
        f(*args)
    return context.host_copies


# ---------------------------------------------------------------- O1: one host copy for each storage and version
@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_number_of_host_copies_does_not_depend_on_the_order(order):
    """[NOTE one-copy] O1: grad^k of sin(sin x) makes 2k saves in two storages.  torch: 2k copies."""
    context, hooks = save_on_cpu(), Packed()

    def f(x, memory):
        with memory:
            return sin_sin(x)
    x = on_sim(5.0)
    nth(order, lambda x: f(x, hooks))(x)
    nth(order, lambda x: f(x, context))(x)
    assert (hooks.count, context.host_copies) == (2 * order, 2)


def test_a_tensor_that_is_saved_twice_is_copied_once():
    """[NOTE one-copy] O1."""
    x = on_sim([1.0, 2.0], requires_grad=True)
    assert copies(lambda: x * x) == 1
    assert copies(lambda: mg.sin(x) + mg.cos(x) + mg.exp(x)) == 2         # x, and exp's output
    assert copies(lambda: x * x, dedupe=False) == 2


def test_views_share_the_copy_of_their_memory():
    """[NOTE one-copy] O1."""
    x = on_sim([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    assert copies(lambda: (mg.sin(x[0]) + mg.sin(x[1]) + mg.sin(x[:, 0].sum()), mg.sin(x.t()), mg.sin(x.reshape(6)))) == 2


def test_an_expanded_tensor_costs_its_storage_and_not_its_shape():
    """[NOTE one-copy] O1.  torch copies the shape."""
    x = on_sim([[1.0]], requires_grad=True)
    before = to_host()
    with (context := save_on_cpu()):
        y = mg.sin(x.expand(1000, 1)).sum()
    assert (context.host_copies, to_host() - before) == (1, 8)
    y.backward()
    assert x.grad.item() == pytest.approx(1000 * math.cos(1))


def test_a_new_version_is_a_new_copy():
    """[NOTE one-copy] O1: the gradient is that of the value at the time of each save."""
    x = on_sim([1.0], requires_grad=True)
    a = x * 1
    with (context := save_on_cpu()):
        y = mg.sin(a)
        with mg.no_grad():
            a.mul_(2)
        z = mg.sin(a)
    assert context.host_copies == 2
    (y + z).sum().backward()
    assert x.grad.item() == pytest.approx(math.cos(1) + math.cos(2))


def test_a_copy_dies_with_the_last_save_that_needs_it(no_gc):
    """[NOTE one-copy] O1: the key dies with the storage; nothing is found by an address that is used again."""
    x = on_sim([1.0], requires_grad=True)
    with (context := save_on_cpu()):
        for k in range(1, 5):
            factor = x.detach() * k
            y = x * factor
            del factor
            (g,) = mg.autograd.grad(y.sum(), x)
            assert g.item() == k
    assert context.host_copies == 4
    assert len(context._offloading.copies) == 0


def test_the_bytes_that_go_to_the_host_do_not_depend_on_the_order():
    """[NOTE one-copy] O1 [NOTE bytes-are-counted]"""
    def summed(f):
        return lambda x: grad(f)(x).sum()

    def traffic(order):
        def f(x):
            with save_on_cpu():
                return mg.sin(mg.sin(x)).sum()
        before = to_host()
        for _ in range(order):
            f = summed(f)
        f(on_sim([1.0] * 100))
        return to_host() - before
    assert [traffic(n) for n in (1, 2, 3)] == [1600, 1600, 1600]


# ---------------------------------------------------------------- what it frees
def test_what_is_offloaded_leaves_the_device_until_backward(no_gc):
    """[NOTE bytes-are-counted]"""
    x = on_sim([1.0] * 100, requires_grad=True)
    start = sim.memory_allocated()
    y = chain(10)(x)
    plain = sim.memory_allocated() - start
    del y
    with save_on_cpu():
        y = chain(10)(x)
    offloaded = sim.memory_allocated() - start
    assert (plain, offloaded) == (8000, 800)               # ten outputs; the last one, which is y
    y.sum().backward()
    del y
    assert sim.memory_allocated() - start == 800                   # x.grad


@pytest.mark.parametrize("order", [2, 3])
def test_under_nested_grads_too(order, no_gc):
    """[NOTE bytes-are-counted]  No level keeps on the device what the hooks have taken."""
    alive, found = Alive(), []

    def body(x):
        for _ in range(6):
            x = alive.see(mg.sin(x))
        return x

    def f(x):
        with save_on_cpu():
            y = body(x * 1)
        found.append(alive.count(0, 5))
        return y
    nth(order, f)(on_sim(1.0))
    assert found[0] == 0


# ---------------------------------------------------------------- O2: back where it came from
@pytest.mark.parametrize("view", [lambda x: x.t(), lambda x: x[:, 1], lambda x: x[1:], lambda x: x.t()[1:, :1], lambda x: x],
                         ids=["transpose", "column", "rows", "corner of the transpose", "itself"])
def test_a_tensor_comes_back_with_its_device_dtype_and_strides(view):
    """[NOTE one-copy] O2.  Upstream: ms-swift#10157."""
    x = on_sim([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    seen = view(x)
    with save_on_cpu():
        y = mg.sin(seen)
    back = y.grad_fn._saved_self
    assert (str(back.device), back.dtype, back.stride(), back.tolist()) == (
        "sim", mg.float64, seen.stride(), seen.tolist())


def test_all_that_lies_in_one_storage_comes_back_as_one_device_copy():
    """[NOTE one-copy] O2."""
    x = on_sim([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    with save_on_cpu():
        y, z = mg.sin(x), mg.cos(x.t())
    before = to_device()
    first, second = y.grad_fn._saved_self, z.grad_fn._saved_self
    assert to_device() - before == 32
    assert first.untyped_storage() is second.untyped_storage()
    memory = ref(first.untyped_storage())
    del first, second
    assert memory() is None                                 # and lives no longer than it is used


def test_what_comes_back_is_not_what_went():
    """[NOTE one-copy] O2: a write to the tensor after the save does not reach the copy, so it is no error."""
    x = on_sim([2.0], requires_grad=True)
    a = x * 1
    with save_on_cpu():
        y = a * a
    with mg.no_grad():
        a.mul_(10)
    y.sum().backward()
    assert x.grad.item() == 4.0


# ---------------------------------------------------------------- skip
def test_what_is_skipped_stays_and_is_checked():
    """[NOTE one-copy] O1: parameters and small tensors may stay where they are."""
    x, w = on_sim([1.0, 2.0], requires_grad=True), on_sim([3.0, 4.0], requires_grad=True)
    assert copies(lambda: mg.sin(x) * w, skip=lambda s: s.is_leaf and s.requires_grad) == 1
    with save_on_cpu(skip=lambda s: True):
        y = w * w
    with mg.no_grad():
        w.mul_(2)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.sum().backward()


# ---------------------------------------------------------------- O4: tensors that are on the host already
@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_host_tensor_is_not_copied(order):
    """[NOTE host-tensors-stay] O4."""
    def f(x):
        with context:
            return sin_sin(x)
    context = save_on_cpu()
    x = mg.tensor(5.0, dtype=mg.float64, device="cpu")
    assert nth(order, f)(x).item() == pytest.approx(nth(order, sin_sin)(x).item())
    assert context.host_copies == 0


def test_a_host_tensor_keeps_its_version_check():
    """[NOTE host-tensors-stay] O4.  Upstream: pytorch/pytorch#128545."""
    w = mg.tensor(2.0, requires_grad=True, device="cpu")
    with save_on_cpu():
        y = w * w
    with mg.no_grad():
        w.add_(1)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


# ---------------------------------------------------------------- it composes
TRANSFORMS = {
    "grad grad": lambda f: nth(2, f),
    "vmap grad": lambda f: lambda x: vmap(grad(f))(mg.stack([x, x + 1])),
    "grad sum vmap": lambda f: grad(lambda x: vmap(f)(mg.stack([x, x * 2])).sum()),
    "jvp grad": lambda f: lambda x: jvp(grad(f), (x,), (mg.ones_like(x),))[1],
    "grad jvp": lambda f: grad(lambda x: jvp(f, (x,), (mg.ones_like(x),))[1]),
    "jacrev jacrev": lambda f: jacrev(jacrev(f)),
    "hessian": hessian,
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("where", ["inside", "around the region", "inside the region"])
def test_it_changes_no_derivative_on_a_device(transform, where):
    """[NOTE layers-remember]  torch refuses where torch.func differentiates."""
    def f(x):
        if where == "inside":
            with save_on_cpu():
                return sin_sin(x)
        if where == "around the region":
            with save_on_cpu():
                return checkpoint(sin_sin, x)

        def region(x):
            with save_on_cpu():
                return sin_sin(x)
        return checkpoint(region, x)
    x = on_sim(0.7)
    assert mg.allclose(TRANSFORMS[transform](f)(x), TRANSFORMS[transform](sin_sin)(x), rtol=1e-12)


def test_the_bytes_of_a_device_are_counted_while_they_live(no_gc):
    """[NOTE bytes-are-counted]"""
    start = sim.memory_allocated()
    x = on_sim([1.0] * 1000)
    view = x.reshape(10, 100)[3]
    assert sim.memory_allocated() - start == 8000
    del x
    assert sim.memory_allocated() - start == 8000                  # the view holds the memory
    del view
    assert sim.memory_allocated() == start
    assert sim.max_memory_allocated() >= start + 8000


def test_devices_do_not_mix():
    """[NOTE bytes-are-counted]"""
    with pytest.raises(UsageError, match=r"at least two devices, cpu and sim"):
        mg.ones(2, device="cpu") + mg.ones(2, device="sim")
