"""minigrad/graph/saved.py"""

import weakref

import pytest

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.graph.saved import Constant, Hooks, PackedTensor, SavedBase, SavedValue, Site, UserHooks, keep, keep_base
from minigrad.interpreters.grad import GradInterpreter
from minigrad.interpreters.jvp import JvpInterpreter
from minigrad.state import current, level, using
from minigrad.storage import Storage
from minigrad.tensor import edge, storage_of

SITE = Site(None, "SinBackward0", "x0")


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0], device=device)


def identity(value):
    return value


def test_the_whole_of_an_unwritten_memory_is_kept_as_its_storage(x):
    assert isinstance(keep_base(x), Storage)


def test_a_view_is_kept_with_its_shape(x):
    kept = keep_base(x[1:])
    assert isinstance(kept, SavedBase)
    assert kept.unpack().tolist() == [2.0]


def test_what_was_written_to_before_is_kept_with_its_version(x):
    x.add_(1)
    kept = keep_base(x)
    assert (type(kept), kept.version) == (SavedBase, 1)


@pytest.mark.parametrize("way", [keep, keep_base])
def test_writing_afterwards_is_an_error(x, way):
    kept = way(x)
    x.add_(1)
    with pytest.raises(UsageError, match="is at version 1; expected version 0"):
        kept.unpack()


def test_keeping_does_not_keep_the_tensor(x, no_gc):
    y = x * 2
    kept, gone = keep_base(y), weakref.ref(y)
    del y
    assert gone() is None
    assert kept.unpack().tolist() == [2.0, 4.0]


def test_unpacking_a_base_gives_no_edge(x):
    x.requires_grad_()
    assert not keep_base(x).unpack().requires_grad


def test_a_tensor_of_a_level_is_kept_as_it_is(x):
    with level(GradInterpreter()) as me:
        y = me.leaf(x) * 2
        kept = keep(y)
        assert isinstance(kept, SavedValue)
        assert kept.unpack() is y


def test_a_constant_is_asked_of_no_hook():
    assert Constant(3).unpack() == 3


def test_a_site_says_level_node_and_name():
    assert str(SITE) == "x0 of SinBackward0 at level 0"


def test_hooks_get_base_tensors_below_every_level(x):
    seen = []
    with level(JvpInterpreter()) as me:
        packed = PackedTensor(me.dual(x, x * 2), UserHooks(lambda v: seen.append((v.owner, current().levels)) or v, identity, None), SITE)
        again = packed.unpack()
        assert (again.owner, again.note.tolist()) == (me, [2.0, 4.0])
    assert seen == [(None, ()), (None, ())]


def test_packing_remembers_each_layers_edge(x):
    with level(GradInterpreter()) as me:
        y = me.leaf(x) * 2
        packed = PackedTensor(y, UserHooks(identity, identity, None), SITE)
        assert edge(packed.unpack()) == edge(y)


def test_packing_without_edges_gives_a_fresh_leaf(x):
    with level(GradInterpreter()) as me:
        y = me.leaf(x) * 2
        again = PackedTensor(y, UserHooks(identity, identity, None), SITE, edges=False).unpack()
        assert again.requires_grad
        assert again.grad_fn is None


def test_hooks_run_with_nothing_recorded_and_no_hooks(x):
    seen = []
    with using(current()._replace(hooks=Hooks(None))):
        UserHooks(lambda v: seen.append((current().hooks, current().grad_off)), identity, None).pack(x, SITE)
    assert seen == [(None, frozenset({None}))]


def test_composed_hooks_hand_on_what_they_packed(x):
    outer = UserHooks(lambda v: v * 10, lambda v: v / 10, None)
    inner = UserHooks(lambda v: v + 1, lambda v: v - 1, outer, compose=True)
    packed = PackedTensor(x, inner, SITE)
    assert packed.unpack().tolist() == x.tolist()
    assert packed.packed[0].packed[0].tolist() == [20.0, 30.0]


def test_the_version_check_holds_for_hooks_that_alias(x):
    packed = PackedTensor(x, UserHooks(identity, identity, None), SITE)
    x.add_(1)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        packed.unpack()


def test_a_pack_hook_that_writes_is_an_error(x):
    with pytest.raises(UsageError, match=r"pack hook is modifying its input in place \(x0 of SinBackward0"):
        PackedTensor(x, UserHooks(lambda v: v.add_(1), identity, None), SITE)


def test_an_unpack_hook_that_writes_is_an_error(x):
    packed = PackedTensor(x, UserHooks(lambda v: v.clone(), lambda v: v.add_(1), None), SITE)
    with pytest.raises(UsageError, match="unpack hook modified what pack returned"):
        packed.unpack()


@pytest.mark.parametrize("wrong", [lambda v: v[:1], lambda v: v.double()])
def test_an_unpack_hook_must_give_back_shape_and_type(x, wrong):
    packed = PackedTensor(x, UserHooks(identity, wrong, None), SITE)
    with pytest.raises(UsageError, match="hooks must give back a tensor of the same shape and dtype"):
        packed.unpack()


def test_an_unpack_hook_must_give_back_a_tensor(x):
    packed = PackedTensor(x, UserHooks(identity, lambda v: 3, None), SITE)
    with pytest.raises(TypeError, match="expected to be a Tensor but got result of type int"):
        packed.unpack()


def test_what_pack_returns_does_not_own_its_graph(x):
    y = x.requires_grad_() * 2
    packed = PackedTensor(y, UserHooks(lambda v: y, identity, None), SITE)
    assert packed.packed[0] is not y
    assert storage_of(packed.packed[0]) is storage_of(y)


def test_hooks_may_leave_a_save_to_nobody(x):
    class Nobody(Hooks):
        __slots__ = ()

        def manager(self, owner):
            return None

    with using(current()._replace(hooks=Nobody(None))):
        y = x.requires_grad_().sin()
    y.sum().backward()
    assert x.grad is not None
