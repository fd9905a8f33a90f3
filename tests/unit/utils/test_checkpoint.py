"""minigrad/utils/checkpoint.py and the frames behind it: the interface, and what a frame holds."""

import weakref

import pytest

import minigrad as mg
from minigrad.errors import Refusal
from minigrad.regions.recompute import Frame, Slot
from minigrad.state import current
from minigrad.utils.checkpoint import (
    checkpoint,
    checkpoint_sequential,
    is_recomputing,
    set_checkpoint_early_stop,
    set_checkpoint_remat,
)


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device).requires_grad_()


def test_the_region_runs_with_a_frame_for_hooks(x):
    seen = []
    checkpoint(lambda v: seen.append(current().hooks) or v.sin(), x)
    assert isinstance(seen[0], Frame)
    assert current().hooks is None


def test_a_node_in_the_region_keeps_a_slot(x):
    y = checkpoint(lambda v: v.sin(), x)
    (kept,) = y.grad_fn.saved
    assert isinstance(kept, Slot)
    assert (kept.index, kept.site.owner) == (0, None)


def test_slots_are_numbered_in_the_order_of_saving(x):
    slots = []

    def f(v):
        y = v.sin()
        slots.append(y.grad_fn.saved[0].index)
        z = y.cos()
        slots.append(z.grad_fn.saved[0].index)
        return z

    checkpoint(f, x)
    assert slots == [0, 1]


def test_nothing_of_the_region_is_kept_alive(x, no_gc):
    kept = []

    def f(v):
        y = v.sin()
        kept.append(weakref.ref(y.untyped_storage()))
        return y.cos()

    y = checkpoint(f, x)
    assert kept[0]() is None
    y.sum().backward()
    assert kept[1]() is None


def test_a_frame_dies_with_its_graph(x, no_gc):
    frames = []
    y = checkpoint(lambda v: frames.append(weakref.ref(current().hooks)) or v.sin(), x)
    assert frames[0]() is not None
    del y
    assert frames[0]() is None


def test_as_a_decorator(x):
    @checkpoint(early_stop=False)
    def f(v):
        return v.sin()

    assert f.__name__ == "f"
    f(x).sum().backward()
    assert x.grad is not None


def test_where_nothing_records_it_is_a_call(x):
    seen = []
    with mg.no_grad():
        checkpoint(lambda v: seen.append(current().hooks) or v.sin(), x)
    assert seen == [None]


def test_the_reentrant_variant_is_refused_under_a_transform_with_the_way_out(x):
    with pytest.raises(Refusal, match="Use use_reentrant=False") as refused:
        mg.func.grad(lambda v: checkpoint(lambda v: v.sin().sum(), v, use_reentrant=True))(x)
    assert refused.value.refusal


def test_an_unknown_determinism_check_is_an_error(x):
    with pytest.raises(ValueError, match="determinism_check must be"):
        checkpoint(lambda v: v.sin(), x, determinism_check="some")


def test_a_function_can_ask_whether_it_runs_again(x):
    seen = []
    checkpoint(lambda v: seen.append(is_recomputing()) or v.sin(), x).sum().backward()
    assert seen == [False, True]
    assert not is_recomputing()


def test_early_stop_can_be_set_for_all(x):
    seen = []
    with set_checkpoint_early_stop(False):
        checkpoint(lambda v: (v.sin(), seen.append("end"))[0], x).sum().backward()
    assert seen == ["end", "end"]
    assert current().early_stop is None


@pytest.mark.parametrize("segments", [0, 4])
def test_segments_are_between_one_and_the_number_of_functions(x, segments):
    with pytest.raises(ValueError, match="segments must be between 1 and the number of functions"):
        checkpoint_sequential([mg.sin] * 3, segments, x)


def test_the_last_segment_runs_plainly(x):
    y = checkpoint_sequential([mg.sin, mg.cos, mg.exp], 2, x)
    assert not isinstance(y.grad_fn.saved[0], Slot)
    y.sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("name", ["remat", "determinism_check"])
@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_misspelt_argument_is_refused_by_both_variants(x, name, use_reentrant):
    with pytest.raises(ValueError, match=f"{name} must be"):
        checkpoint(mg.sin, x, use_reentrant=use_reentrant, **{name: "evry"})


def test_the_reentrant_variant_refuses_remat_which_it_cannot_do(x):
    with pytest.raises(ValueError, match=r"remat='every'\) is only supported when use_reentrant=False") as refused:
        checkpoint(mg.sin, x, use_reentrant=True, remat="every")
    assert refused.value.refusal


def test_a_misspelt_remat_is_refused_where_its_context_is_made():
    with pytest.raises(ValueError, match="remat must be"):
        set_checkpoint_remat("evry")
