"""minigrad/tensor.py and minigrad/storage.py"""

import copy
import gc
import pickle
import weakref

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.interpreters.grad import GradInterpreter
from minigrad.interpreters.jvp import JvpInterpreter
from minigrad.interpreters.vmap import VmapInterpreter
from minigrad.state import level
from minigrad.storage import kind_of
from minigrad.tensor import LEAF, alias, bases, bottom, edge, fresh, peel, storage_of, version_of, wrapper


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0, 3.0], device=device)


@pytest.fixture
def tower(x):
    """A tensor of grad@2 around one of jvp@1; the levels are on the stack while the test runs."""
    with level(JvpInterpreter()) as inner, level(GradInterpreter()) as outer:
        yield outer.leaf(inner.dual(x, x * 2))


def test_there_is_one_kind_for_a_dtype_on_a_device(x):
    assert kind_of(x.dtype, x.device) is x.kind
    assert (x * 2).kind is x.kind


def test_only_floating_tensors_of_the_host_are_fast():
    assert mg.tensor([1.0], device="cpu").kind.fast
    assert not mg.tensor([1], device="cpu").kind.fast
    assert not mg.tensor([1.0], device="sim").kind.fast


def test_the_kind_of_a_wrapper_is_never_fast(tower):
    assert not tower.kind.fast
    assert (tower.dtype, tower.kind.above) == (mg.float32, tower.kind)


def test_storages_are_made_when_they_are_needed():
    x = mg.tensor([1.0], device="cpu")
    assert x.store is None
    assert storage_of(x) is x.store is storage_of(x)


def test_an_alias_shares_memory_and_has_no_edge(x):
    x.requires_grad_()
    y = alias(x)
    assert y.untyped_storage() is x.untyped_storage()
    assert not y.requires_grad


def test_the_edge_of_a_leaf_is_the_leaf(x):
    assert edge(x) == (None, 0)
    x.requires_grad_()
    assert edge(x) == (x, 0)
    y = x * 2
    assert edge(y) == (y.grad_fn, 0)


def test_bottom_and_bases_of_a_tower(tower, x):
    assert bottom(tower) is x
    assert [b.tolist() for b in bases(tower)] == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]


def test_peel_with_edges_rebuilds_each_layer_with_its_edge(tower):
    y = tower * 3
    found, rebuild = peel(y, edges=True)
    again = rebuild(iter([alias(b) for b in found]))
    assert (again.owner, edge(again), again.value.owner) == (y.owner, edge(y), y.value.owner)


def test_peel_without_edges_gives_fresh_leaves(tower):
    y = tower * 3
    found, rebuild = peel(y, edges=False)
    again = rebuild(iter(found))
    assert again.node is LEAF
    assert again.value.node is None


def test_peel_keeps_none_of_the_data(x, no_gc):
    with level(GradInterpreter()) as me:
        y = me.leaf(x * 2)
        store = weakref.ref(y.untyped_storage())
        rebuild = peel(y, edges=True)[1]
        del y
    assert store() is None or rebuild is not None
    rebuild = None
    assert store() is None


def test_peel_of_a_batch_remembers_its_dim(x):
    with level(VmapInterpreter(3, "error")) as me:
        y = me.batched(x, 0)
        _, rebuild = peel(y, edges=True)
        assert rebuild(iter([x])).shape == ()


def test_versions_are_those_of_the_memory(tower, x):
    assert version_of(tower) == 0
    with mg.no_grad():
        x.add_(1)
    assert version_of(tower) == version_of(x) == 1


def test_views_share_version_and_storage(x):
    v = x[1:]
    v.zero_()
    assert x._version == v._version == 1
    assert v.untyped_storage() is x.untyped_storage()


def test_a_storage_says_its_bytes_and_address(x):
    store = x[1:].untyped_storage()
    assert store.nbytes() == 12
    assert store.data_ptr() == x.data_ptr()
    assert x[1:].data_ptr() == x.data_ptr() + 4


def test_requires_grad_makes_a_leaf_where_the_tensor_stands(x):
    assert x.requires_grad_() is x
    assert (x.requires_grad, x.is_leaf, x.node) == (True, True, LEAF)
    assert not x.requires_grad_(False).requires_grad


def test_requires_grad_is_refused_in_a_transform(x):
    with level(GradInterpreter()), pytest.raises(UsageError, match="inside of a function being transformed"):
        x.requires_grad_()


def test_ints_cannot_require_grad():
    with pytest.raises(UsageError, match="floating point and complex dtype"):
        mg.tensor([1]).requires_grad_()


def test_a_tensor_can_be_compared_and_is_hashed_by_identity(x):
    assert (x == x).all()
    assert {x: 1}[x] == 1


def test_conversions_to_python(x):
    assert (float(x[0]), int(x[1]), bool(x[0]), x.tolist(), len(x)) == (1.0, 2, True, [1.0, 2.0, 3.0], 3)
    with pytest.raises(TypeError, match="0-d tensor"):
        len(x[0])


def test_a_tensor_of_ints_is_an_index():
    assert [10, 20][mg.tensor(1)] == 20
    with pytest.raises(TypeError, match="only integer tensors"):
        [10][mg.tensor(0.0)]


def test_formatting(x):
    assert f"{x[1]:.2f}" == "2.00"
    assert f"{x}" == repr(x)


def test_repr_says_what_is_unusual():
    x = mg.tensor([1.0, 2.0], device="cpu")
    assert repr(x) == "tensor([1., 2.])"
    assert repr(x.double().requires_grad_()) == "tensor([1., 2.], dtype=minigrad.float64, requires_grad=True)"
    assert "grad_fn=<SinBackward0>" in repr(x.requires_grad_().sin())


def test_repr_draws_the_layers(tower):
    text = repr(tower.sin() if tower.device.kind == "cpu" else tower)
    assert text.startswith("grad@2*(jvp@1(tensor(")


def test_numpy_shares_memory():
    x = mg.tensor([1.0, 2.0], device="cpu")
    x.numpy()[0] = 5
    assert x.tolist() == [5.0, 2.0]
    assert np.asarray(x).dtype == np.float32


def test_numpy_of_a_tensor_elsewhere_is_refused():
    with pytest.raises(TypeError, match=r"Use Tensor.cpu\(\)"):
        mg.tensor([1.0], device="sim").numpy()


def test_dlpack_shares_memory():
    x = mg.tensor([1.0, 2.0], device="cpu")
    y = mg.from_dlpack(x)
    y[0] = 7
    assert x.tolist() == [7.0, 2.0]


def test_dlpack_shares_memory_with_numpy_and_torch():
    x = mg.tensor([1.0, 2.0], device="cpu")
    np.from_dlpack(x)  # read only to numpy
    torch.from_dlpack(x)[0] = 7
    assert x.tolist() == [7.0, 2.0]
    y = torch.ones(2, 3).t()
    z = mg.from_dlpack(y)
    z[2, 1] = 5
    assert (y[2, 1].item(), z.data_ptr(), z.stride()) == (5.0, y.data_ptr(), y.stride())


@pytest.mark.parametrize(("options", "words"), [
    ({"requires_grad": True, "device": "cpu"}, "require gradient"), ({"device": "sim"}, r"Tensor.cpu\(\)")])
def test_dlpack_gives_no_tensor_that_requires_grad_or_that_nobody_else_can_read(options, words):
    with pytest.raises(BufferError, match=words):
        torch.from_dlpack(mg.tensor([1.0], **options))


def test_a_number_on_the_host_goes_with_tensors_of_any_device():
    x, two = mg.ones(3, device="sim"), mg.tensor(2.0, device="cpu")
    assert ((two * x).tolist(), str((two * x).device), (x / two).tolist()) == ([2.0] * 3, "sim", [0.5] * 3)
    assert (two.double() * x).dtype is mg.float32


def test_pickling_keeps_data_device_and_flag(x):
    y = pickle.loads(pickle.dumps(x.requires_grad_()))
    assert (y.tolist(), y.device, y.requires_grad) == (x.tolist(), x.device, True)


def test_deepcopy_of_a_leaf_is_another_leaf(x):
    x.requires_grad_()
    y = copy.deepcopy(x)
    assert y is not x
    assert y.is_leaf
    assert y.untyped_storage() is not x.untyped_storage()
    with pytest.raises((UsageError, RuntimeError), match="deep"):
        copy.deepcopy(x * 2)


def test_a_gradient_must_have_the_tensors_shape(x):
    with pytest.raises((UsageError, TypeError)):
        x.grad = mg.tensor([1.0])


@pytest.mark.parametrize("ask", ["size", "stride"])
@pytest.mark.parametrize(("shape", "dim"), [((3,), 5), ((3,), -2), ((2, 3), 2), ((), 0), ((), -1)])
def test_a_dimension_that_is_not_there_is_told_in_torchs_words(ask, shape, dim):
    with pytest.raises(IndexError) as wanted:
        getattr(torch.ones(shape), ask)(dim)
    with pytest.raises(IndexError) as found:
        getattr(mg.ones(shape), ask)(dim)
    assert str(found.value) == str(wanted.value)


def test_wrapper_has_the_shape_of_what_is_inside(x):
    with level(GradInterpreter()) as me:
        assert wrapper(me, x).shape == x.shape


def test_fresh_counts_bytes_where_the_device_does():
    sim = mg.device("sim")
    gc.collect()
    before = sim.stats.bytes.live
    x = mg.zeros(10, device="sim")
    assert sim.stats.bytes.live == before + 40
    del x
    gc.collect()
    assert sim.stats.bytes.live == before


def test_fresh_takes_a_storage(x):
    y = fresh(x.value, x.dtype, x.device, storage_of(x))
    assert y.untyped_storage() is x.untyped_storage()
