"""Streams: work happens in order on each, and between two only where an event says so; save_on_cpu on a stream of its own."""

from __future__ import annotations

import pytest

import minigrad as mg
from minigrad import sim
from minigrad.autograd.graph import save_on_cpu
from minigrad.devices.simulated import SIM
from minigrad.errors import UsageError
from minigrad.func import grad
from minigrad.state import current
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import chain, forget_streams, nth, sin_sin

N = 100
BYTES = 8 * N


@pytest.fixture(autouse=True)
def _everything_is_done():
    yield
    try:
        sim.synchronize()
    finally:
        forget_streams()


def on_sim(value=1.0, **options):
    return mg.full((N,), value, dtype=mg.float64, device="sim", **options)


def pinned(value):
    return mg.full((N,), value, dtype=mg.float64, device="cpu").pin_memory("sim")


def first(x):
    """The first element; nan where it is poison."""
    return x[0].item()


def is_poison(x):
    return first(x) != first(x)


# ---------------------------------------------------------------- streams and events
def test_the_current_stream_is_part_of_the_state():
    """[NOTE streams]"""
    before, stream = current(), sim.Stream()
    assert sim.current_stream() is sim.default_stream()
    with sim.stream(stream), sim.stream(None):
        assert sim.current_stream() is stream
        assert current().device_streams == (stream,)
    assert current() is before


def test_an_error_inside_puts_the_old_stream_back():
    """[NOTE streams]"""
    before = current()
    with pytest.raises(ZeroDivisionError), sim.stream(sim.Stream()):
        raise ZeroDivisionError
    assert current() is before


def test_a_copy_happens_when_its_stream_is_waited_for_and_not_before():
    """[NOTE late-on-purpose]"""
    host = on_sim().to("cpu", non_blocking=True)
    assert is_poison(host)
    assert not sim.current_stream().query()
    sim.current_stream().synchronize()
    assert first(host) == 1.0
    assert sim.current_stream().query()


def test_a_kernel_comes_after_what_its_stream_was_asked_for():
    """[NOTE late-on-purpose]"""
    stream = sim.Stream()
    with sim.stream(stream):
        x = pinned(2.0).to("sim", non_blocking=True)
        assert first(x * 2) == 4.0


def test_another_stream_finds_poison_unless_it_waits():
    """[NOTE late-on-purpose]"""
    stream = sim.Stream()
    with sim.stream(stream):
        x = pinned(2.0).to("sim", non_blocking=True)
    assert is_poison(x * 2)
    sim.current_stream().wait_stream(stream)
    assert first(x * 2) == 4.0


def test_an_event_stands_for_what_came_before_it():
    """[NOTE streams]"""
    stream = sim.Stream()
    with sim.stream(stream):
        x = pinned(1.0).to("sim", non_blocking=True)
        event = stream.record_event()
        y = pinned(2.0).to("sim", non_blocking=True)
    event.wait()
    assert (first(x * 1), is_poison(y * 1)) == (1.0, True)
    assert (event.query(), stream.query()) == (True, False)
    stream.synchronize()


def test_an_event_that_is_recorded_again_stands_for_the_later_place_and_who_waited_for_the_earlier_is_not_held_up():
    """[NOTE streams]"""
    event, loader = sim.Event(), sim.Stream()
    assert event.query()
    with sim.stream(loader):
        x = pinned(1.0).to("sim", non_blocking=True)
        event.record()
        waiting = sim.Stream()
        waiting.wait_event(event)
        y = pinned(2.0).to("sim", non_blocking=True)
        event.record()
    waiting.synchronize()
    assert (first(x * 1), is_poison(y * 1)) == (1.0, True)
    event.synchronize()
    assert first(y * 1) == 2.0


def test_a_long_chain_of_waits_does_not_recurse():
    """[NOTE late-on-purpose]"""
    a, b = sim.Stream(), sim.Stream()
    for _ in range(5000):
        with sim.stream(a):
            x = pinned(1.0).to("sim", non_blocking=True)
        b.wait_stream(a)
        with sim.stream(b):
            host = x.to("cpu", non_blocking=True)
        a.wait_stream(b)
    a.synchronize()
    assert first(host) == 1.0


def test_memory_that_is_freed_before_its_copy_ran_is_poison_unless_the_stream_waited():
    """[NOTE late-on-purpose]"""
    def copied(*, wait):
        x, stream = on_sim(3.0), sim.Stream()
        with sim.stream(stream):
            host = x.to("cpu", non_blocking=True)
        if wait:
            sim.current_stream().wait_stream(stream)
        del x
        sim.synchronize()
        return first(host)
    assert copied(wait=True) == 3.0
    assert copied(wait=False) != copied(wait=False)


def test_a_copy_into_memory_that_was_freed_is_an_error():
    """[NOTE late-on-purpose]"""
    stream = sim.Stream()
    with sim.stream(stream):
        x = pinned(3.0).to("sim", non_blocking=True)
    del x
    with pytest.raises(UsageError, match="memory of sim that was freed before"):
        sim.synchronize()


def test_a_write_comes_after_what_its_stream_was_asked_for():
    """[NOTE late-on-purpose]"""
    x, stream = on_sim(3.0), sim.Stream()
    with sim.stream(stream):
        host = x.to("cpu", non_blocking=True)
    sim.current_stream().wait_stream(stream)
    x.copy_(on_sim(4.0))
    sim.synchronize()
    assert (first(host), first(x)) == (3.0, 4.0)


@pytest.mark.parametrize("dtype", [mg.float32, mg.complex64, mg.int64, mg.uint8, mg.bool])
def test_poison_is_nothing_that_a_program_would_compute(dtype):
    """[NOTE late-on-purpose]"""
    x = mg.zeros(3, dtype=dtype, device="sim").to("cpu", non_blocking=True)
    assert (x != 0).all()
    sim.synchronize()
    assert (x == 0).all()


def test_pinned_memory_is_kept_for_the_next_and_never_more_than_was_in_use_at_once():
    """[NOTE streams]"""
    held = []
    for _ in range(3):
        a, b = on_sim(1.0).to("cpu", non_blocking=True), on_sim(2.0).to("cpu", non_blocking=True)
        sim.synchronize()
        held.append(SIM.pool.held)
        del a, b
    assert held[0] == held[1] == held[2]
    assert SIM.pool.held <= SIM.pool.live.peak


def test_the_pinned_memory_of_a_copy_under_way_is_given_to_nobody():
    """[NOTE streams]"""
    loader = sim.Stream()
    with sim.stream(loader):
        x = pinned(3.0).to("sim", non_blocking=True)              # its pinned memory is dead already
    host = on_sim(4.0).to("cpu", non_blocking=True)
    sim.current_stream().synchronize()
    sim.current_stream().wait_stream(loader)
    assert (first(x * 1), first(host)) == (3.0, 4.0)


# ---------------------------------------------------------------- O3: save_on_cpu
@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("options", [{"pin_memory": True}, {"non_blocking": True}, {"non_blocking": True, "dedupe": False}],
                         ids=["pinned", "non-blocking", "each save a copy"])
def test_the_derivatives_are_those_of_the_plain_program(order, options):
    """[NOTE copies-on-a-stream] O3."""
    def f(x):
        with save_on_cpu(**options):
            return chain(5)(x)
    x = mg.tensor(0.7, dtype=mg.float64, device="sim")
    assert nth(order, f)(x).item() == nth(order, chain(5))(x).item()


@pytest.mark.parametrize("order", [1, 2, 3])
def test_one_copy_for_each_storage_on_a_stream_too(order):
    """[NOTE one-copy] O1 O3."""
    context = save_on_cpu(non_blocking=True)

    def f(x):
        with context:
            return sin_sin(x)
    nth(order, f)(mg.tensor(0.7, dtype=mg.float64, device="sim"))
    assert context.host_copies == 2


def test_the_host_waits_for_nothing():
    """[NOTE copies-on-a-stream] O3: after the forward the last copies are still to come."""
    x = on_sim(requires_grad=True)
    with save_on_cpu(non_blocking=True):
        y = chain(10)(x)
    assert not SIM.copy_stream.query()
    y.sum().backward()
    assert first(x.grad) == first(plain_gradient(10))


def plain_gradient(n):
    x = on_sim(requires_grad=True)
    chain(n)(x).sum().backward()
    return x.grad


def test_two_copies_are_under_way_and_their_memory_is_all_that_the_device_keeps(no_gc):
    """[NOTE copies-on-a-stream] O3 [NOTE bytes-are-counted]"""
    x = on_sim(requires_grad=True)
    start = sim.memory_allocated()
    with save_on_cpu(non_blocking=True):
        y = chain(20)(x)
    assert sim.memory_allocated() - start == 3 * BYTES              # y, and two that are leaving
    y.sum().backward()
    del y
    assert sim.memory_allocated() - start == BYTES                  # x.grad


def test_two_copies_are_asked_for_ahead_in_backward_order():
    """[NOTE copies-on-a-stream] O3."""
    x = on_sim(requires_grad=True)
    with save_on_cpu(non_blocking=True):
        y = chain(6)(x)
    saves = []
    node = y.grad_fn
    while hasattr(node, "saved"):
        saves.append(node.saved[0].packed[0].copy)
        node = node.target
    node = y.grad_fn
    back = node._saved_self
    assert [copy.coming is not None for copy in saves] == [False, True, True, False, False, False]
    del back, node
    y.sum().backward()
    assert first(x.grad) == first(plain_gradient(6))


def test_each_copy_comes_back_once():
    """[NOTE copies-on-a-stream] O2 O3: what is asked for ahead is not asked for again."""
    x = on_sim(requires_grad=True)
    with save_on_cpu(non_blocking=True):
        y = chain(10)(x)
    before = sim.memory_stats()["copied_bytes.to_device"]
    y.sum().backward()
    assert sim.memory_stats()["copied_bytes.to_device"] - before == 10 * BYTES


def test_what_a_backward_jumps_over_is_let_go(no_gc):
    """[NOTE copies-on-a-stream] O3: ahead of the backward there are never more than two."""
    x, z = on_sim(requires_grad=True), on_sim(requires_grad=True)
    start = sim.memory_allocated()
    with save_on_cpu(non_blocking=True):
        a = chain(4)(x)
        b = chain(4)(z)
    b.grad_fn._saved_self                                            # asks for the next of b
    a.grad_fn._saved_self                                            # and for the next of a
    assert sim.memory_allocated() - start == 4 * BYTES               # a, b, and two of a
    (a.sum() + b.sum()).backward()
    assert first(x.grad) == first(z.grad) == first(plain_gradient(4))


def test_a_graph_that_is_dropped_lets_all_go(no_gc):
    """[NOTE copies-on-a-stream] O3 [NOTE no-cycles]"""
    x = on_sim(requires_grad=True)
    start = sim.memory_allocated()
    with (context := save_on_cpu(non_blocking=True)):
        y = chain(10)(x)
        y.grad_fn._saved_self
    del y
    assert sim.memory_allocated() == start
    sim.synchronize()
    assert context.host_copies == 10


def test_a_write_while_the_copy_is_under_way_is_an_error_and_after_it_is_none():
    """[NOTE copies-on-a-stream] O3 [NOTE aliasing-hooks]: the copy may hold the one value or the other."""
    def program(*, between):
        x = on_sim(2.0, requires_grad=True)
        with save_on_cpu(non_blocking=True):
            a = x * 1
            y = a * a
            chain(between)(x * 3)
        with mg.no_grad():
            a.mul_(10)
        y.sum().backward()
        return first(x.grad)
    assert program(between=2) == 4.0
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        program(between=0)


def test_what_is_on_its_way_can_be_saved():
    """[NOTE copies-on-a-stream] O3: the copy out waits for the copy in."""
    loader = sim.Stream()
    with sim.stream(loader):
        x = pinned(0.5).to("sim", non_blocking=True)
    sim.current_stream().wait_stream(loader)
    w = on_sim(requires_grad=True)
    with save_on_cpu(non_blocking=True):
        y = checkpoint(lambda x: (x * w).sin(), x)
    SIM.copy_stream.synchronize()
    y.sum().backward()
    assert first(w.grad) == pytest.approx(0.5 * 0.8775825618903728)


def test_a_device_that_runs_ahead_changes_nothing():
    """[NOTE copies-on-a-stream] O3: copies that happen as early as they may."""
    x = on_sim(requires_grad=True)
    with save_on_cpu(non_blocking=True):
        y = chain(6)(x)
    y.grad_fn._saved_self
    sim.synchronize()
    y.register_hook(lambda g: sim.synchronize())
    y.sum().backward()
    assert first(x.grad) == first(plain_gradient(6))


def test_a_backward_on_another_stream_waits_too():
    """[NOTE copies-on-a-stream] O3."""
    x, stream = on_sim(requires_grad=True), sim.Stream()
    with save_on_cpu(non_blocking=True):
        y = chain(6)(x).sum()
    with sim.stream(stream):
        stream.wait_stream(sim.default_stream())
        y.backward(retain_graph=True)
    y.backward()
    assert first(x.grad) == 2 * first(plain_gradient(6))


def test_a_recomputation_runs_on_the_stream_of_its_backward():
    """[NOTE streams] [NOTE recompute-under-the-same-state]"""
    seen, stream = [], sim.Stream()

    def region(x):
        seen.append(sim.current_stream())
        return x.sin()
    with sim.stream(stream):
        y = checkpoint(region, on_sim(requires_grad=True))
    y.sum().backward()
    assert seen == [stream, sim.default_stream()]


# ---------------------------------------------------------------- skip
@pytest.mark.parametrize("options", [{}, {"non_blocking": True}], ids=["waiting", "non-blocking"])
def test_parameters_and_small_tensors_stay(options):
    """[NOTE copies-on-a-stream] O3: skip takes tensors, a number of bytes, or a predicate."""
    x, w, b = on_sim(requires_grad=True), on_sim(2.0, requires_grad=True), mg.ones(1, dtype=mg.float64, device="sim", requires_grad=True)

    def copies(skip):
        with (context := save_on_cpu(skip=skip, **options)):
            (grad(lambda w: (w * b).sum())(w), (x * w).sin())
        return context.host_copies
    everything = copies(None)
    assert everything - copies([w]) == 1
    assert everything - copies(9) == 1
    assert everything - copies(lambda s: s.numel() == 1) == 1
