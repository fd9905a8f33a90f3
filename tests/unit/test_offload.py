"""minigrad/offload.py"""

import weakref

import pytest

import minigrad as mg
from minigrad.offload import Offloading, OnHost
from minigrad.tensor import storage_of


@pytest.fixture
def offloading():
    return Offloading(dedupe=True, skip=None)


@pytest.fixture
def x():
    return mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device="sim")


def test_a_tensor_on_the_host_stays(offloading):
    x = mg.tensor([1.0], device="cpu")
    packed = offloading.pack(x)
    assert storage_of(packed) is storage_of(x)


def test_a_tensor_on_a_device_goes_to_the_host(offloading, x):
    packed = offloading.pack(x)
    assert isinstance(packed, OnHost)
    assert (offloading.count, packed.restored().tolist()) == (1, x.tolist())


def test_one_copy_for_a_storage_whatever_its_views(offloading, x):
    packed = [offloading.pack(v) for v in (x, x.t(), x[1], x[:, ::2], x.expand(4, 2, 3))]
    assert offloading.count == 1
    assert packed[2].restored().tolist() == [4.0, 5.0, 6.0]


def test_views_come_back_with_their_strides(offloading, x):
    for view in (x.t(), x[:, 1], x[:, ::2], x.expand(4, 2, 3)):
        back = offloading.unpack(offloading.pack(view))
        assert (back.shape, back.stride(), back.tolist()) == (view.shape, view.stride(), view.tolist())


def test_what_comes_back_shares_memory_as_before_while_it_lives(offloading, x):
    a, b = (offloading.unpack(offloading.pack(v)) for v in (x, x.t()))
    assert storage_of(a) is storage_of(b)


def test_a_write_makes_another_copy(offloading, x):
    first = offloading.pack(x)
    x.add_(1)
    second = offloading.pack(x)
    assert offloading.count == 2
    assert (first.restored()[0, 0].item(), second.restored()[0, 0].item()) == (1.0, 2.0)


def test_a_copy_does_not_outlive_what_it_is_of(offloading, x, no_gc):
    packed = offloading.pack(x)
    host = weakref.ref(packed.copy.array)
    del packed, x
    assert len(offloading.copies) <= 1
    offloading.copies.clear()
    assert host() is None


def test_without_dedupe_each_has_its_own(x):
    offloading = Offloading(dedupe=False, skip=None)
    offloading.pack(x)
    offloading.pack(x)
    assert offloading.count == 2


def test_skip_is_asked_of_base_tensors(x):
    seen = []
    offloading = Offloading(dedupe=True, skip=lambda v: seen.append(v.owner) or True)
    assert storage_of(offloading.pack(x)) is storage_of(x)
    assert seen == [None]


def test_bytes_on_the_device_are_those_that_are_alive(offloading):
    sim = mg.device("sim")
    before = sim.stats.bytes.live
    x = mg.zeros(100, device="sim")
    packed = offloading.pack(x)
    del x
    assert sim.stats.bytes.live == before
    back = packed.restored()
    assert sim.stats.bytes.live == before + 400
    del back
    assert sim.stats.bytes.live == before
