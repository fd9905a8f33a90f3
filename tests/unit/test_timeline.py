"""minigrad/timeline.py: live bytes from op to op."""

import json
from weakref import ref

import pytest

import minigrad as mg
from minigrad import memory
from minigrad.autograd.graph import save_on_cpu
from minigrad.func import grad
from minigrad.state import current, watched
from minigrad.utils.checkpoint import checkpoint

N = 100
BYTES = 8 * N
BOTH = pytest.mark.parametrize("where", ["cpu", "sim"])


def values(where, **options):
    return mg.ones(N, dtype=mg.float64, device=where, **options)


def chain(x, n=5):
    for _ in range(n):
        x = x.sin()
    return x


@BOTH
def test_bytes_go_up_with_each_op_and_down_when_its_output_dies(where):
    x = values(where)
    with memory.timeline() as t:
        y = x.sin()
        z = y.cos()
        del y
        z.exp()
    assert t.live(where) == [(0, BYTES), (1, 2 * BYTES), (1, BYTES), (2, 2 * BYTES), (2, BYTES)]
    assert [op for op, _ in t.ops] == ["sin", "cos", "exp"]


@BOTH
def test_the_peak_says_when_it_was_and_what_was_alive(where):
    x = values(where)
    with memory.timeline() as t:
        y = x.sin()
        z = (y * 2).cos()
        del y
    peak = t.peak(where)
    assert (peak.nbytes, peak.at) == (3 * BYTES, 2)
    assert [(m.op, m.at, m.look, m.nbytes) for m in peak.alive] == [
        (op, k, f"float64[{N}]", BYTES) for k, op in enumerate(["sin", "mul", "cos"])]
    line = test_the_peak_says_when_it_was_and_what_was_alive.__code__.co_firstlineno
    name = "test_the_peak_says_when_it_was_and_what_was_alive"
    assert [m.line for m in peak.alive] == [f"test_timeline.py:{line + n} ({name})" for n in (4, 5, 5)]
    del z


PROGRAMS = {
    "plain": lambda x: chain(x).sum().backward(),
    "checkpoint": lambda x: checkpoint(chain, x).sum().backward(),
    "offload": lambda x: offloaded(x).sum().backward(),
    "offload on a stream": lambda x: offloaded(x, non_blocking=True).sum().backward(),
    "grad grad": lambda x: grad(lambda x: grad(lambda x: chain(x).sum())(x).sum())(x.detach()),
}


def offloaded(x, **options):
    with save_on_cpu(**options):
        return chain(x)


@BOTH
@pytest.mark.parametrize("program", PROGRAMS)
def test_the_peak_is_that_of_the_devices_own_count(where, program):
    x = values(where, requires_grad=True)
    with memory.measured(where) as m, memory.timeline() as t:
        PROGRAMS[program](x)
        assert t.live(where)[-1][1] == m.live
    assert t.peak(where).nbytes == m.peak
    assert sum(memory.nbytes for memory in t.peak(where).alive) == m.peak
    assert sum(change.made for change in t.changes) == m.allocations


def test_what_comes_back_from_the_host_is_named():
    x = values("sim", requires_grad=True)
    with memory.timeline() as t:
        offloaded(x).sum().backward()
    assert [c.memory.op for c in t.changes if c.made].count("from host") == 5


def test_each_device_has_a_line():
    with memory.timeline() as t:
        a, b = values("cpu"), values("sim")
    assert t.devices == ["cpu", "sim"]
    assert str(t).splitlines()[0] == f"cpu: peak {BYTES} B at op 0 of 2"
    del a, b


def test_nothing_made_is_no_peak():
    with memory.timeline() as t:
        pass
    assert t.peak("cpu") == (0, 0, ())
    assert str(t) == "nothing was made"


def test_a_timeline_ends_with_its_block_and_keeps_nothing_alive(no_gc):
    with memory.timeline() as t:
        x = values("sim")
        alive = ref(x.untyped_storage())
        y = values("sim")
        del x
        assert alive() is None
    before = list(t.changes)
    del y
    assert t.changes == before
    seen = ref(t)
    del t
    assert seen() is None


def test_a_block_leaves_the_state_as_it_was():
    before = current()
    with pytest.raises(ZeroDivisionError), memory.timeline():
        raise ZeroDivisionError
    assert current() is before
    assert not watched


# ---------------------------------------------------------------- Chrome's format
@pytest.fixture
def trace(tmp_path):
    x = values("sim", requires_grad=True)
    with memory.timeline() as t:
        y = checkpoint(chain, x)
        y.sum().backward()
        del y
    t.export_chrome_trace(tmp_path / "trace.json")
    return t, json.loads((tmp_path / "trace.json").read_text())


def test_every_event_of_the_trace_has_what_its_phase_needs(trace):
    _, found = trace
    needed = {"M": {"name", "pid", "args"}, "X": {"name", "cat", "pid", "tid", "ts", "dur"},
              "b": {"name", "cat", "id", "pid", "tid", "ts"}, "e": {"name", "cat", "id", "pid", "tid", "ts"},
              "C": {"name", "pid", "ts", "args"}}
    assert set(found) == {"traceEvents", "displayTimeUnit"}
    assert {e["ph"] for e in found["traceEvents"]} == set(needed)
    for event in found["traceEvents"]:
        assert needed[event["ph"]] <= set(event)
        assert all(type(event[key]) is int for key in ("pid", "tid", "ts", "dur", "id") if key in event)


def test_slices_of_memories_begin_once_and_end_once_and_not_before(trace):
    _, found = trace
    begins = {e["id"]: e["ts"] for e in found["traceEvents"] if e["ph"] == "b"}
    ends = {e["id"]: e["ts"] for e in found["traceEvents"] if e["ph"] == "e"}
    assert len(begins) == sum(e["ph"] == "b" for e in found["traceEvents"])
    assert ends.keys() <= begins.keys()
    assert len(begins) - len(ends) == 1                              # x.grad
    assert all(begins[k] <= end for k, end in ends.items())


def test_the_counter_is_the_live_bytes_and_the_ops_are_slices(trace):
    t, found = trace
    counter = [(e["ts"], e["args"]["bytes"]) for e in found["traceEvents"] if e["ph"] == "C"]
    assert counter == t.live("sim")
    assert [e["name"] for e in found["traceEvents"] if e["ph"] == "X"] == [op for op, _ in t.ops]
    assert {e["args"]["name"] for e in found["traceEvents"] if e["ph"] == "M"} == {"ops", "sim"}
