"""minigrad/interpreters/vmap.py"""

import pytest

import minigrad as mg
from minigrad.errors import LevelError, UsageError
from minigrad.interpreters.vmap import VmapInterpreter
from minigrad.state import level


@pytest.fixture
def me():
    with level(VmapInterpreter(3, "error")) as interpreter:
        yield interpreter


@pytest.fixture
def x(device):
    return mg.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], device=device)


def test_a_batched_tensor_hides_a_dimension(me, x):
    y = me.batched(x, 1)
    assert (y.shape, y.note, y.value) == ((2,), 1, x)


def test_an_op_keeps_the_batch_where_it_is_if_it_can(me, x):
    y = me.batched(x, 1).sin()
    assert (y.note, y.value.shape, y.shape) == (1, (2, 3), (2,))


def test_two_batches_meet_in_front(me, x):
    y = me.batched(x, 1) * me.batched(x.t(), 0)
    assert (y.note, y.value.shape) == (0, (3, 2))


def test_ranks_are_logical(me, x, device):
    y = me.batched(x, 1) + mg.ones(2, device=device)
    assert y.shape == (2,)
    assert (me.batched(x, 1).sum() + mg.ones(4, device=device)).shape == (4,)


def test_several_outputs_are_batched_each(me, x):
    values, indices = me.batched(x, 1).sort()
    assert (values.owner, indices.owner, values.shape) == (me, me, (2,))


def test_python_may_not_look(me, x):
    for look in (lambda v: v.sum().item(), lambda v: v.tolist(), lambda v: bool(v.sum() > 0)):
        with pytest.raises((LevelError, UsageError), match="vmap: It looks like you're calling"):
            look(me.batched(x, 1))


def test_writing_a_batch_into_what_has_none_is_an_error(me, x, device):
    with pytest.raises(UsageError, match="inplace arithmetic"):
        mg.zeros(2, device=device).add_(me.batched(x, 1))


def test_writing_keeps_the_place_of_the_batch(me, x):
    y = me.batched(x * 1, 1)
    y.mul_(me.batched(x.t(), 0))
    assert (y.note, y.value.tolist()) == (1, (x * x).tolist())


def test_what_has_escaped_is_an_error_that_names_the_level(x):
    with level(VmapInterpreter(3, "error")) as gone:
        y = gone.batched(x, 1)
    with pytest.raises(LevelError, match=r"it belongs to vmap@1, which is not on the level stack\..*\[level stack: base\]"):
        y.sin()


@pytest.mark.parametrize(("randomness", "shape", "batched"), [("same", (2,), False), ("different", (2,), True)])
def test_draws_of_the_samples(randomness, shape, batched):
    with level(VmapInterpreter(3, randomness)) as me:
        y = mg.rand(2)
        assert (y.shape, y.owner is me) == (shape, batched)


def test_draws_are_an_error_by_default(me):
    with pytest.raises(UsageError, match="randomness error mode"):
        mg.rand(2)


def test_an_unknown_randomness_is_an_error():
    with pytest.raises(UsageError, match="randomness must be one of"):
        VmapInterpreter(3, "some")


def test_it_has_no_graph_and_is_not_readable():
    assert VmapInterpreter.transparent
    assert not VmapInterpreter.readable
