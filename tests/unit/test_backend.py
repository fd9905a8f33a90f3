"""minigrad/backend.py"""

import copy
import pickle

import numpy as np
import pytest

import minigrad as mg
from minigrad import backend
from minigrad.backend import CPU, address, device, dtype_of, is_dense, share_memory, strided
from minigrad.devices.counts import Count, Stats
from minigrad.devices.simulated import SIM
from minigrad.errors import UsageError


def test_there_is_one_object_for_each_device():
    assert device("cpu") is CPU
    assert device(CPU) is CPU
    assert pickle.loads(pickle.dumps(SIM)) is SIM
    assert copy.deepcopy(SIM) is SIM


def test_an_unknown_device_is_an_error_that_names_those_there_are():
    with pytest.raises(UsageError, match="the devices are cpu, sim, cuda and meta"):
        device("tpu")


def test_a_device_draws_itself_as_torchs():
    assert (repr(CPU), str(CPU), CPU.type) == ("device(type='cpu')", "cpu", "cpu")


def test_a_kernel_is_a_name_of_the_namespace_or_a_function_of_it():
    assert CPU.kernel("sin") is np.sin
    assert CPU.kernel(lambda xp, x: xp.cos(x))(0.0) == 1.0


def test_a_kernel_is_made_once():
    def f(xp, x):
        return x
    assert CPU.kernel(f) is CPU.kernel(f)


def test_numpy_types_are_known_by_their_char():
    assert dtype_of(np.zeros(1, "float32")) is mg.float32
    assert dtype_of(np.zeros(1, "longlong")) is mg.int64


def test_a_type_that_minigrad_has_not_is_an_error():
    with pytest.raises(TypeError, match="can't convert an array of type datetime64"):
        dtype_of(np.zeros(1, "datetime64[s]"))


def test_counts_know_live_peak_and_total():
    count = Count()
    count.add(3)
    count.add(4)
    count.live -= 5
    count.add(1)
    assert (count.live, count.peak, count.allocated) == (3, 7, 8)


def test_stats_count_memories_and_bytes():
    stats = Stats()
    stats.allocated(10)
    stats.allocated(5)
    stats.freed(10)
    assert (stats.bytes.live, stats.bytes.peak, stats.blocks.live, stats.blocks.peak) == (5, 15, 1, 2)


def test_copies_keep_strides():
    a = np.arange(6.0).reshape(2, 3).T
    assert SIM.to_host(a).strides == a.strides
    assert SIM.from_host(a).strides == a.strides


def test_dense_arrays_fill_a_block():
    a = np.zeros((4, 6))
    assert [is_dense(x) for x in (a, a.T, a[:2], a[:, :2], a[::2], np.broadcast_to(a[0], (4, 6)))] == [
        True, True, True, False, False, False]


@pytest.mark.parametrize("key", [np.s_[1:], np.s_[:, 2], np.s_[::2, ::3], np.s_[1, 1:]], ids=str)
def test_a_view_is_found_again_by_its_strides_and_offset(key):
    root = np.arange(24.0).reshape(4, 6)
    view = root[key]
    again = strided(root, view.shape, view.strides, address(view) - address(root))
    assert share_memory(again, root)
    np.testing.assert_array_equal(again, view)


def test_a_view_of_a_transposed_root_is_found_again():
    root = np.arange(24.0).reshape(4, 6).T
    view = root[1:, ::2]
    again = strided(root, view.shape, view.strides, address(view) - address(root))
    np.testing.assert_array_equal(again, view)


def test_as_array_makes_arrays_of_scalars():
    assert backend.as_array(np.float64(2), CPU).shape == ()


def test_an_array_without_elements_may_be_written_to():
    """Its strides are 0, and no two elements are one."""
    x = mg.zeros(1, 0, 3)
    assert x.sin_() is x


@pytest.mark.parametrize("array", [np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(3, 2).T, np.ones((2, 3))[:, ::2],
                                   np.array(2.0), np.ones((0, 3))], ids=lambda a: f"{a.shape}{a.strides}")
@pytest.mark.parametrize("dims", [(0,), (1,), (2,), (0, 2)])
def test_an_array_is_repeated_along_dimensions_that_it_does_not_have(array, dims):
    """As numpy's broadcast_to, where it lies too, and as writable as the array."""
    dims = dims if array.ndim else tuple(range(len(dims)))
    extents = iter(array.shape)
    shape = tuple(4 if d in dims else next(extents) for d in range(array.ndim + len(dims)))
    found = backend.repeated(np, array, shape, dims)
    wanted = np.broadcast_to(np.expand_dims(array, dims), shape)
    np.testing.assert_array_equal(found, wanted)
    assert array.size == 0 or found.strides == wanted.strides
    assert array.size == 0 or np.shares_memory(found, array)
    assert found.flags.writeable
