"""minigrad/memory.py, sim.py and cuda.py: bytes in use, exactly."""

import sys
from weakref import ref

import numpy as np
import pytest

import minigrad as mg
from minigrad import cuda, memory, sim
from minigrad.autograd.graph import save_on_cpu
from minigrad.backend import memory_of
from minigrad.errors import UsageError
from minigrad.func import grad
from minigrad.scoreboard import nestings
from minigrad.scoreboard.judge import library
from minigrad.scoreboard.programs import checkpointed, plain
from minigrad.state import current, watched
from minigrad.utils.checkpoint import checkpoint
from tests.laws.cases import cases

N = 1000
BOTH = pytest.mark.parametrize("where", ["cpu", "sim"])


def values(where, **options):
    return mg.ones(N, dtype=mg.float64, device=where, **options)


def chain(x, n=20):
    for _ in range(n):
        x = x.sin()
    return x


def offloaded(f):
    def g(x):
        with save_on_cpu():
            return f(x)
    return g


def through(f):
    return lambda x: checkpoint(f, x)


# ---------------------------------------------------------------- exact numbers
@BOTH
def test_an_op_costs_its_output(where):
    x = values(where)
    with memory.measured(where) as m:
        y = x.sin()
        assert (m.live, m.peak, m.allocations) == (8 * N, 8 * N, 1)
        del y
        assert (m.live, m.peak, m.allocations) == (0, 8 * N, 1)


@BOTH
def test_creation_is_counted(where):
    with memory.measured(where) as m:
        kept = [mg.zeros(3, dtype=mg.float64, device=where), mg.tensor([1.0, 2.0], dtype=mg.float32, device=where),
                mg.arange(5, device=where), mg.eye(2, dtype=mg.float64, device=where)]
        assert (m.live, m.allocations) == (24 + 8 + 40 + 32, 4)
    del kept


@BOTH
def test_views_cost_nothing(where):
    x = values(where)
    with memory.measured(where) as m:
        kept = [x[1:], x.view(10, 100).t(), x.reshape(10, 100), x.expand(7, N), x.detach(), x.unsqueeze(0), x[::2]]
        assert (m.live, m.allocations) == (0, 0)
    del kept


@BOTH
def test_a_view_keeps_all_of_its_memory(where):
    with memory.measured(where) as m:
        x = values(where)[:1]
        assert m.live == 8 * N
        del x
        assert m.live == 0


@BOTH
def test_recording_keeps_what_torch_would_save_and_no_more(where):
    x = values(where, requires_grad=True)
    with memory.measured(where) as m:
        y = chain(x)
        assert m.live == 20 * 8 * N
        del y
        assert m.live == 0


@BOTH
def test_a_checkpoint_keeps_its_input_and_output(where):
    x = values(where, requires_grad=True)
    with memory.measured(where) as m:
        y = checkpoint(chain, x)
        assert m.live == 8 * N
        assert m.peak == 16 * N
    del y


@BOTH
def test_the_recomputation_is_counted(where):
    x = values(where, requires_grad=True)
    y = checkpoint(chain, x).sum()
    with memory.measured(where) as m:
        y.backward()
        assert m.allocations > 20
        assert m.peak >= 20 * 8 * N


def test_save_on_cpu_leaves_nothing_on_the_device():
    x = values("sim", requires_grad=True)
    with memory.measured("sim") as m:
        with save_on_cpu():
            y = chain(x)
        assert m.live == 8 * N
        y.sum().backward()
    del y


# ---------------------------------------------------------------- everything is given back
@BOTH
@pytest.mark.parametrize("order", [0, 1, 2, 3])
@pytest.mark.parametrize("around", [lambda f: f, through, offloaded, lambda f: offloaded(through(f)), lambda f: through(through(f))],
                         ids=["plain", "checkpoint", "save_on_cpu", "both", "nested"])
def test_after_forward_and_backward_all_is_given_back_without_the_cyclic_collector(where, order, around, no_gc):
    with memory.measured(where) as m:
        x = values(where)
        g = around(lambda x: chain(x, 3))
        for _ in range(order):
            g = grad(lambda x, g=g: g(x).sum())
        y = g(x)
        del x, y, g
        assert m.live == 0
        assert m.peak > 0


@BOTH
def test_ordinary_autograd_gives_all_back_too(where, no_gc):
    with memory.measured(where) as m:
        x = values(where, requires_grad=True)
        g, = mg.autograd.grad(checkpoint(chain, x).sum(), x, create_graph=True)
        g.sum().backward()
        assert m.live > 0
        del x, g
        assert m.live == 0


@BOTH
def test_an_error_gives_all_back(where, no_gc):
    def f(x):
        y = chain(x)
        raise ZeroDivisionError(y.shape)

    with memory.measured(where) as m:
        x = values(where)
        with pytest.raises(ZeroDivisionError):
            grad(lambda x: checkpoint(f, x).sum())(x)
        del x
        assert m.live == 0


@pytest.mark.parametrize("nesting", [n for n in nestings.NESTINGS if not n.startswith("backward")])
@pytest.mark.parametrize("region", [plain, checkpointed])
def test_cpu_and_sim_count_the_same(nesting, region):
    """Nothing leaves the device here: one program, one count."""
    torch, counts = library("minigrad"), []
    for where in ("cpu", "sim"):
        with memory.measured(where) as m:
            for body in nestings.BODIES:
                nestings.run(torch, nesting, region, body, where)
        counts.append((m.live, m.peak, m.allocations))
    assert counts[0] == counts[1]


@cases(wanted=lambda case: case.name != "pointwise.conj")
def test_the_output_of_a_row_is_a_view_or_has_memory_of_its_own_and_no_more(case, device):
    """So that bytes by storage, as a device counts them, are the bytes that are in use.  conj is asked of complex tensors only."""
    args = case.tensors(0, "cpu")
    outs = case.call(*args, **case.params("cpu"))
    for out in outs if isinstance(outs, tuple) else (outs,):
        if out.device.kind == "cpu" and out.store is None:
            memory = memory_of(out.value)
            assert memory.nbytes == out.value.nbytes
            assert not any(memory_of(x.value) is memory for x in args if isinstance(x, mg.Tensor))


# ---------------------------------------------------------------- what a block counts
def test_cpu_counts_nothing_outside_of_a_block():
    before = memory.stats("cpu")
    x = values("cpu").sin()
    assert memory.stats("cpu") == before
    del x


def test_what_was_there_before_is_not_counted():
    x = values("cpu")
    with memory.measured("cpu") as m:
        x += 1
        del x
        assert m.live == 0


def test_what_was_made_in_a_block_is_counted_until_it_dies():
    before = memory.live_bytes("cpu")
    with memory.measured("cpu"):
        x = values("cpu")
    assert memory.live_bytes("cpu") == before + 8 * N
    del x
    assert memory.live_bytes("cpu") == before


def test_memory_of_somebody_else_is_not_counted():
    array = np.ones(N)
    with memory.measured("cpu") as m:
        x = mg.from_numpy(array)
        assert m.allocations == 0
    del x


@BOTH
def test_a_measure_stands_still_when_its_block_has_ended(where):
    with memory.measured(where) as m:
        x = values(where)
    y = values(where)
    del x
    assert (m.live, m.peak, m.allocations) == (8 * N, 8 * N, 1)
    assert repr(m) == f"<live {8 * N} B, peak {8 * N} B, 1 allocations>"
    del y


@BOTH
def test_blocks_nest(where):
    with memory.measured(where) as outer:
        x = values(where)
        with memory.measured(where) as inner:
            y = values(where)
            del y
        assert (inner.live, inner.peak, inner.allocations) == (0, 8 * N, 1)
        del x
        assert (outer.live, outer.peak, outer.allocations) == (0, 16 * N, 2)


def test_a_block_leaves_the_state_as_it_was():
    before = current()
    with pytest.raises(ZeroDivisionError), memory.measured("cpu"):
        raise ZeroDivisionError
    assert current() is before
    assert not watched


def test_counting_keeps_nothing_alive():
    with memory.measured("cpu"):
        x = values("cpu")
        alive = ref(x.numpy())
        del x
        assert alive() is None


# ---------------------------------------------------------------- torch's names
def test_the_statistics_have_torchs_keys():
    found = sim.memory_stats()
    assert list(found) == [f"{what}.all.{key}" for what in ("allocated_bytes", "allocation")
                           for key in ("current", "peak", "allocated", "freed")] + ["copied_bytes.to_host", "copied_bytes.to_device"]
    assert all(type(n) is int for n in found.values())


def test_the_statistics_of_sim_go_up_and_down_by_what_is_made():
    sim.reset_peak_memory_stats()
    before = sim.memory_stats()
    x = values("sim")
    made = sim.memory_stats()
    del x
    after = sim.memory_stats()

    def change(a, b, key):
        return b[key] - a[key]

    assert change(before, made, "allocated_bytes.all.current") == 8 * N
    assert change(before, made, "allocation.all.current") == 1
    assert change(before, after, "allocated_bytes.all.current") == 0
    assert change(before, after, "allocated_bytes.all.freed") == 8 * N
    assert change(before, after, "allocated_bytes.all.allocated") == 8 * N
    assert change(before, after, "allocation.all.allocated") == 1
    assert change(before, after, "allocated_bytes.all.peak") == 8 * N


def test_the_peak_starts_again_when_it_is_reset():
    x = values("sim")
    del x
    assert sim.max_memory_allocated() > sim.memory_allocated()
    sim.reset_peak_memory_stats()
    assert sim.max_memory_allocated() == sim.memory_allocated() == memory.live_bytes("sim") == memory.peak_bytes("sim")


def test_transfers_count_the_bytes_that_they_copy():
    x = values("cpu")
    before = sim.memory_stats()
    y = x.to("sim")
    y.cpu()
    after = sim.memory_stats()
    assert after["copied_bytes.to_device"] - before["copied_bytes.to_device"] == 8 * N
    assert after["copied_bytes.to_host"] - before["copied_bytes.to_host"] == 8 * N


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_offloading_copies_as_many_bytes_at_every_order(order):
    x = values("sim")
    g = offloaded(lambda x: x.sin().sin())
    for _ in range(order):
        g = grad(lambda x, g=g: g(x).sum())
    before = sim.memory_stats()["copied_bytes.to_host"]
    g(x)
    assert sim.memory_stats()["copied_bytes.to_host"] - before == 2 * 8 * N


def test_sim_is_there_and_has_nothing_to_wait_for():
    assert sim.is_available()
    assert sim.synchronize() is None


def test_cuda_is_imported_when_it_is_asked_for():
    assert "cupy" not in sys.modules or cuda.is_available()
    if not cuda.is_available():
        with pytest.raises(UsageError, match="cannot be used"):
            cuda.memory_stats()
