"""minigrad/op.py"""

import numpy as np
import pytest

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import grad, jvp, vmap
from minigrad.interpreters.base import Interpreter
from minigrad.op import bind, draw, revive
from minigrad.ops.batching import elementwise
from minigrad.ops.pointwise import mul, sin
from minigrad.row import row
from minigrad.state import Watcher, current, level, using


def a_row(name="twice", **options):
    return row(name, lambda xp, x0: x0 * 2, **{"vjp": (lambda ct: ct * 2,), "jvp": "linear", "batch": elementwise, **options})


def test_a_row_needs_its_three_rules():
    with pytest.raises(TypeError, match="missing 3 required keyword-only arguments: 'vjp', 'jvp', and 'batch'"):
        row("half", lambda xp, x0: x0 / 2)


def test_a_rule_may_only_read_what_is_saved():
    with pytest.raises(TypeError, match=r"the vjp of twice reads \['x0'\], which its row does not declare"):
        a_row(vjp=(lambda ct, x0: ct * x0,))


def test_a_row_is_a_function_with_its_record():
    twice = a_row()
    assert (twice.__name__, twice.op.name, twice.op.call) == ("twice", "twice", twice)
    assert repr(twice.op) == "<row twice>"


def test_a_row_of_ones_own_works_under_every_transform(device):
    twice, x = a_row(), mg.tensor([1.0, 2.0], device=device)
    assert twice(x).tolist() == [2.0, 4.0]
    assert grad(lambda v: twice(v).sum())(x).tolist() == [2.0, 2.0]
    assert vmap(twice)(x).tolist() == [2.0, 4.0]
    assert [y.tolist() for y in jvp(twice, (x,), (x,))] == [[2.0, 4.0], [2.0, 4.0]]


def test_node_names_are_made_of_the_rows_name():
    assert sin.op.node_name == "SinBackward0"
    assert a_row("log_of_it").op.node_name == "LogOfItBackward0"


def test_plans_are_made_once_for_each_set_of_inputs_that_need_grad():
    x = mg.tensor([1.0]).requires_grad_()
    a, b = (x * x.detach()).grad_fn, (x * x.detach()).grad_fn
    assert a.plan is b.plan
    assert (x * x).grad_fn.plan is not a.plan


def test_bind_asks_the_highest_level_of_the_arguments(device):
    asked = []

    class Noting(Interpreter):
        def process(self, op, args, params):
            asked.append(str(self))
            return op.call(*[x.value if x.owner is self else x for x in args], **params)

    from minigrad.tensor import wrapper
    x = mg.tensor([1.0], device=device)
    with level(Noting()) as low, level(Noting()) as high:
        bind(mul.op, (wrapper(low, x), wrapper(high, wrapper(low, x))), {})
        bind(mul.op, (wrapper(low, x), x), {})
        bind(mul.op, (x, x), {})
    assert asked == ["level@2", "level@1", "level@1"]


def test_the_short_ways_and_bind_agree(device):
    class Silent(Watcher):
        __slots__ = ()

    x = mg.tensor([1.0, 2.0], device=device)
    short = sin(x), mul(x, 2.0), mul(x, x)
    with using(current()._replace(watchers=(Silent(),))):
        long = sin(x), mul(x, 2.0), mul(x, x)
    assert [y.tolist() for y in short] == [y.tolist() for y in long]
    assert [y.dtype for y in short] == [y.dtype for y in long]


def test_watchers_hear_of_an_op_and_of_what_it_made(device):
    heard = []

    class Noting(Watcher):
        __slots__ = ()

        def notice(self, event, owner, subject, detail):
            heard.append((event, owner, getattr(subject, "name", subject)))

    x = mg.tensor([1.0], device=device)
    with using(current()._replace(watchers=(Noting(),))):
        sin(x)
    assert heard[0] == ("op", None, "sin")
    assert [event for event, *_ in heard] == ["op", "made"]


def test_revive_takes_off_layers_whose_level_has_gone(device):
    x, kept = mg.tensor(1.0, device=device), []
    grad(lambda v: kept.append(v) or v * 2)(x)
    assert revive(kept[0], current()) is x


def test_numbers_of_numpy_are_as_weak_as_pythons(device):
    x = mg.tensor([1.0], device=device)
    assert (x * np.float64(2)).dtype is mg.float32
    assert (x + np.int64(2)).dtype is mg.float32


def test_shapes_that_do_not_broadcast_are_told_in_torchs_words(device):
    a, b = mg.zeros(2, 3, device=device), mg.zeros(4, device=device)
    with pytest.raises(UsageError, match=r"size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 1"):
        a + b


def test_devices_do_not_mix():
    with pytest.raises(UsageError, match="found at least two devices, cpu and sim"):
        mg.zeros(2, device="cpu") + mg.zeros(2, device="sim")


def test_a_0d_tensor_of_the_host_mixes_with_any_device():
    assert (mg.ones(2, device="sim") * mg.tensor(3.0, device="cpu")).tolist() == [3.0, 3.0]


def test_what_is_no_tensor_is_a_type_error(device):
    with pytest.raises(TypeError):
        mul(mg.ones(2, device=device), "2")
    with pytest.raises(TypeError):
        sin(2.0)


def test_a_draw_without_levels_runs_at_the_base(device):
    from minigrad.ops.random import _uniform
    params = {"shape": (3,), "dtype": mg.float32, "device": mg.device(device), "generator": mg.random.generator_of(mg.device(device)),
              "low": 0, "high": 1}
    assert draw(_uniform.op, params).shape == (3,)


@pytest.mark.parametrize("op", [
    lambda x, n: mg.addcmul(x, x, x, value=n), mg.nn.functional.elu, mg.nn.functional.leaky_relu, mg.nn.functional.softshrink])
def test_a_numpy_number_among_the_parameters_is_as_weak_as_any(op):
    x = mg.tensor([0.5, -0.5], requires_grad=True)
    y = op(x, np.float64(0.25))
    assert y.dtype is mg.float32
    assert mg.autograd.grad(y.sum(), x)[0].dtype is mg.float32
