"""minigrad/ops/inplace.py"""

import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.ops.inplace import Overwritten, assign, embedded, in_place, snapshot, views_of
from minigrad.ops.pointwise import sin
from minigrad.state import Watcher, current, using
from minigrad.tensor import edge


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0, 3.0], device=device)


def test_the_in_place_form_returns_the_same_object(x):
    assert in_place(sin, "sin_")(x) is x


def test_the_in_place_form_has_a_name_and_a_text():
    method = in_place(sin, "sin_")
    assert (method.__name__, method.__doc__) == ("sin_", "The in-place form of sin.  Source: torch.Tensor.sin_.")


def test_assign_writes_the_memory_and_counts_it(x):
    assign(x, x * 2)
    assert (x.tolist(), x._version) == ([2.0, 4.0, 6.0], 1)


def test_assign_takes_over_the_edge(x):
    y = x * 1
    new = mg.ones_like(x).requires_grad_() * 2
    assign(y, new)
    assert edge(y) == edge(new)


def test_a_snapshot_has_the_edges_and_data_of_its_own(x):
    y = x.requires_grad_() * 1
    copy = snapshot(y)
    y.mul_(5)
    assert copy.tolist() == [1.0, 2.0, 3.0]
    assert copy.grad_fn is not None


def test_a_tensor_knows_its_living_views(x):
    v = x[1:]
    w = v[:1]
    assert [y is a for (y, _), a in zip(views_of(x), (v, w), strict=True)] == [True, True]
    del v
    assert len(views_of(x)) == 1
    assert w.extra.root is x


def test_a_view_is_made_again_by_its_steps(x):
    w = x[1:][:1]
    ((_, again),) = [pair for pair in views_of(x) if pair[0] is w]
    assert again(x * 10).tolist() == [20.0]


def test_writing_a_view_puts_a_node_on_its_base(x):
    y = x.requires_grad_() * 1
    y[1:].mul_(2)
    assert isinstance(y.grad_fn, Overwritten)
    assert y.grad_fn.name() == "CopySlices"


def test_writing_a_base_gives_its_views_new_edges(x):
    y = x.requires_grad_() * 1
    v = y[1:]
    before = v.grad_fn
    y.mul_(2)
    assert v.grad_fn is not before


def test_embedded_is_a_copy_with_the_part(x, device):
    v = x[1:]
    whole = embedded(x, v.extra.steps, mg.zeros(2, device=device), (0,))
    assert (whole.tolist(), x.tolist()) == ([1.0, 0.0, 0.0], [1.0, 2.0, 3.0])


def test_a_result_must_fit(x, device):
    with pytest.raises(UsageError, match="doesn't match the broadcast shape"):
        x.add_(mg.ones(2, 3, device=device))
    with pytest.raises(UsageError, match="can't be cast to the desired output type"):
        mg.tensor([1], device=device).add_(1.5)


def test_a_leaf_that_requires_grad_is_not_overwritten(x):
    x.requires_grad_()
    with pytest.raises(UsageError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        x.add_(1)
    with pytest.raises(UsageError, match="a view of a leaf Variable"):
        x[1:].add_(1)


def test_copy_broadcasts_and_converts(x, device):
    x.copy_(mg.tensor(2, device=device))
    assert (x.tolist(), x.dtype) == ([2.0, 2.0, 2.0], mg.float32)


def test_a_copy_that_is_recorded_reads_its_source_once_and_keeps_nothing_of_it(device):
    x, source = mg.zeros(3, device=device), mg.tensor([1.0, 2.0, 3.0], device=device, requires_grad=True)
    x.copy_(source)
    with mg.no_grad():
        source.zero_()
    x.sum().backward()
    assert (x.tolist(), source.grad.tolist(), source._version) == ([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], 1)


@pytest.mark.parametrize("watchers", [(), (Watcher(),)])
def test_a_copy_that_broadcasts_has_the_same_node_whether_or_not_somebody_watches(watchers):
    x, source = mg.zeros(2, 3).requires_grad_() * 1, mg.tensor([2.0], dtype=mg.float64, requires_grad=True)
    with using(current()._replace(watchers=watchers)):
        x.copy_(source)
    assert (x.grad_fn.name(), [f.name() for f, _ in x.grad_fn.next_functions]) == ("CopyBackwards", [
        "MulBackward0", "ToCopyBackward0"])
    assert [g.tolist() for g in mg.autograd.grad(x.sum(), source)] == [[6.0]]


def test_views_cannot_be_detached_in_place(x):
    with pytest.raises(UsageError, match="Can't detach views in-place"):
        (x.requires_grad_() * 1)[1:].detach_()


FUNCTIONS = sorted([name for name in dir(torch) if name.endswith("_") and name[0] != "_" and hasattr(mg, name)])


def test_in_place_functions_that_are_methods_too_are_there():
    missing = {name for name in dir(torch) if name.endswith("_") and name[0] != "_" and hasattr(mg.Tensor, name)} - {*FUNCTIONS}
    assert not missing


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in (
    "addmv_", "as_strided_", "clamp_", "clamp_max_", "clamp_min_", "clip_", "fill_", "gcd_", "index_put_", "lcm_", "ldexp_",
    "resize_as_", "threshold_", "xlogy_")])
def test_an_in_place_function_of_one_tensor_writes_what_torchs_writes(name):
    found = []
    for lib in (mg, torch):
        x = lib.tensor([0.25, 0.5], dtype=lib.float64)
        assert getattr(lib, name)(x) is x
        found.append(x.tolist())
    assert found[0] == pytest.approx(found[1], rel=1e-12, nan_ok=True)


@pytest.mark.parametrize(("name", "args"), [("relu_", ()), ("elu_", (0.5,)), ("celu_", (0.5,)), ("leaky_relu_", (0.5,)),
                                            ("hardtanh_", (-0.5, 0.25)), ("threshold_", (0.1, 3.0)), ("selu_", ())])
def test_an_activation_in_place_writes_and_differentiates_as_torchs(name, args):
    found = []
    for lib in (mg, torch):
        x = lib.tensor([-1.0, -0.25, 0.2, 2.0], dtype=lib.float64, requires_grad=True)
        y = x * 1
        assert getattr(lib.nn.functional, name)(y, *args) is y
        y.sum().backward()
        found.append([y.tolist(), x.grad.tolist()])
    assert found[0][0] == pytest.approx(found[1][0])
    assert found[0][1] == pytest.approx(found[1][1])
