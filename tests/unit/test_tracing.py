"""minigrad/tracing.py: the log of what happens at every level."""

from weakref import ref

import pytest

import minigrad as mg
from minigrad import tracing
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.func import grad, vmap
from minigrad.state import current
from minigrad.utils.checkpoint import CheckpointError, checkpoint


def sin_sin(x):
    return x.sin().sin()


def number(value=5.0, **options):
    return mg.tensor(value, dtype=mg.float64, **options)


def trace(f, *args):
    with tracing.recorded() as log:
        f(*args)
    return log


def test_an_op_is_a_line_for_each_level_that_it_passes():
    assert str(trace(grad(grad(mg.sin)), number())) == """\
sin grad@2
  sin grad@1
    sin base
  save 1: x0 of SinBackward0 grad@1, float64[] 8 B
save 2: x0 of SinBackward0 grad@2, float64[] 8 B
  ones_like grad@1
    ones_like base
backward grad@2
unpack 2: x0 of SinBackward0 grad@2
  cos grad@1
    cos base
  save 3: x0 of CosBackward0 grad@1, float64[] 8 B
  mul grad@1
    mul base
  save 4: x0 of MulBackward0 grad@1, float64[] 8 B
free 2
  free 1
    ones_like base
  backward grad@1
  unpack 4: x0 of MulBackward0 grad@1
    mul base
  free 4
  unpack 3: x0 of CosBackward0 grad@1
    sin base
    neg base
    mul base
  free 3"""


def test_a_recomputation_stands_behind_a_bar_and_names_the_saves_that_it_brings_back():
    assert str(trace(grad(lambda x: checkpoint(sin_sin, x)), number())) == """\
checkpoint 1 keeps float64[] 8 B
sin grad@1
  sin base
save 1: x0 of SinBackward0 grad@1, float64[] 8 B packed by checkpoint 1
sin grad@1
  sin base
save 2: x0 of SinBackward0 grad@1, float64[] 8 B packed by checkpoint 1
  ones_like base
backward grad@1
recompute checkpoint 1 for grad@1
| sin grad@1
|   sin base
| sin grad@1
|   sin base
recomputed checkpoint 1: saves 1, 2
unpack 2: x0 of SinBackward0 grad@1
  cos base
  mul base
free 2
unpack 1: x0 of SinBackward0 grad@1
  cos base
  mul base
free checkpoint 1
free 1"""


def test_level_0_is_told_by_that_name():
    x = number(requires_grad=True, device="cpu")
    assert str(trace(lambda: mg.sin(x).backward())) == """\
sin base
save 1: x0 of SinBackward0 level 0, float64[] 8 B
ones_like base
backward level 0
unpack 1: x0 of SinBackward0 level 0
cos base
mul base
free 1"""


def test_copies_to_the_host_and_back_are_told():
    def f(x):
        with save_on_cpu():
            return mg.sin(x)

    assert str(trace(grad(f), number(device="sim"))) == """\
sin grad@1
  sin base
  copy sim to host, 8 B
save 1: x0 of SinBackward0 grad@1, float64[] 8 B packed by save_on_cpu
  ones_like base
backward grad@1
  copy sim from host, 8 B
unpack 1: x0 of SinBackward0 grad@1
  cos base
  mul base
free 1"""


def test_a_pair_of_functions_is_told_as_hooks():
    def f(x):
        with saved_tensors_hooks(lambda x: x, lambda x: x):
            return mg.sin(x)

    assert [e.by for e in trace(grad(f), number()).of("save")] == ["hooks"]


def test_an_inner_regions_inputs_are_packed_by_the_outer_one():
    log = trace(grad(lambda x: checkpoint(lambda x: checkpoint(sin_sin, x).sin(), x)), number())
    assert [(e.what, e.by) for e in log.of("checkpoint")][:2] == [("checkpoint 1", ""), ("checkpoint 2", "checkpoint 1")]
    assert [(e.what, e.numbers) for e in log.of("recomputed")] == [("checkpoint 1", (3,)), ("checkpoint 2", (1, 2))]


def test_a_node_that_dies_unwalked_frees_what_it_kept():
    x = number(requires_grad=True)
    with tracing.recorded() as log:
        y = mg.sin(x)
        assert not log.of("free")
        del y
        assert [e.numbers for e in log.of("free")] == [(1,)]


def test_a_retained_graph_is_freed_when_it_dies_and_once():
    x = number(requires_grad=True)
    with tracing.recorded() as log:
        y = mg.sin(x)
        y.backward(retain_graph=True)
        y.backward()
        del y
    assert [e.kind for e in log.events if e.kind in ("unpack", "free")] == ["unpack", "unpack", "free"]


def test_what_is_kept_as_it_is_has_its_logical_shape_and_all_its_bytes():
    saved, = trace(vmap(grad(mg.sin)), mg.ones(3, dtype=mg.float64)).of("save")
    assert (saved.where, saved.look, saved.nbytes) == ("grad@2", "float64[]", 24)


def test_an_expanded_tensor_costs_its_memory():
    x = number(requires_grad=True)
    saved, = trace(lambda: mg.sin(x.expand(1000))).of("save")
    assert (saved.look, saved.nbytes) == ("float64[1000]", 8)


def test_memories_tell_which_saves_share_one():
    saves = trace(grad(grad(lambda x: x * x)), number()).of("save")
    assert len({m for e in saves for m in e.memories}) < len(saves)


def test_a_recomputation_draws_from_the_same_place_of_the_stream():
    def f(x):
        return (x * mg.rand(3, dtype=mg.float64, device="cpu")).sin().sum()

    log = trace(grad(lambda x: checkpoint(f, x)), mg.ones(3, dtype=mg.float64, device="cpu"))
    first, second = log.of("draw")
    assert first.numbers == second.numbers
    assert str(first).endswith("of cpu")


def test_a_recomputation_that_fails_ends_its_bar():
    runs = []

    def f(x):
        runs.append(1)
        return mg.sin(x) if len(runs) == 1 else x

    with tracing.recorded() as log, pytest.raises(CheckpointError):
        grad(lambda x: checkpoint(f, x))(number())
    assert [str(e) for e in log.events if e.kind.startswith("recompute")] == [
        "recompute checkpoint 1 for grad@1", "recomputed checkpoint 1: saves none"]


def test_every_log_in_force_is_told():
    x = number()
    with tracing.recorded() as outer:
        mg.sin(x)
        with tracing.recorded() as inner:
            mg.cos(x)
    assert [e.what for e in outer.of("op")] == ["sin", "cos"]
    assert [e.what for e in inner.of("op")] == ["cos"]


def test_a_log_that_has_ended_is_told_nothing_more():
    x = number(requires_grad=True)
    with tracing.recorded() as log:
        y = mg.sin(x)
    before = list(log.events)
    y.backward()
    del y
    assert log.events == before


def test_recording_leaves_the_state_as_it_was():
    before = current()
    with pytest.raises(ZeroDivisionError), tracing.recorded():
        raise ZeroDivisionError
    assert current() is before


def test_a_log_keeps_nothing_alive(no_gc):
    with tracing.recorded() as log:
        x = number(requires_grad=True)
        y = checkpoint(sin_sin, x)
        y.backward()
        alive = [ref(x), ref(y), ref(x.untyped_storage()), ref(x.grad)]
        del x, y
        assert [r() for r in alive] == [None] * 4
    assert log.events


def test_a_trace_changes_no_value():
    x = mg.tensor([0.3, 1.2], dtype=mg.float64)
    f = grad(lambda x: grad(lambda x: checkpoint(sin_sin, x).sum())(x).sum())
    plain = f(x).tolist()
    with tracing.recorded():
        assert f(x).tolist() == plain
