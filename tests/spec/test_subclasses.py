"""Subclasses of Tensor: a layer whose class is asked about each call.  The same programs on both libraries."""

from __future__ import annotations

import pytest
import torch

import minigrad as mg
from minigrad.func import grad, jvp, vmap
from minigrad.state import current
from tests.spec.instruments import sin_sin, t

LIBRARIES = pytest.mark.parametrize("library", [mg, torch], ids=["minigrad", "torch"])


def listening(library):
    """A subclass that lists the calls on its tensors."""
    class Listening(library.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            if not getattr(func, "__name__", "__get__").startswith("__"):  # properties are no calls in minigrad
                cls.calls.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

        @property
        def twice(self):
            return self + self

    Listening.calls = []
    return Listening


@LIBRARIES
def test_a_call_asks_the_class_and_gives_a_tensor_of_it(library):
    """[NOTE subclasses] A row, a composite as the one call it is, a method, and a method of the class."""
    cls = listening(library)
    x = library.tensor([1.0, 2.0]).as_subclass(cls)
    ys = [library.sin(x), library.nn.functional.softplus(x), x.exp(), library.ones(2) * x, x.twice, library.cat([x, x])]
    assert [type(y) is cls for y in ys] == [True] * 6
    assert cls.calls[:3] == ["sin", "softplus", "exp"]
    assert cls.calls[-1] == "cat"
    assert x.tolist() == [1.0, 2.0]
    assert not isinstance(x.tolist()[0], library.Tensor)


@LIBRARIES
def test_a_subclass_is_called_as_torchs_are(library):
    """[NOTE subclasses]"""
    class Plain(library.Tensor):
        pass

    class Tagged(Plain):
        def __init__(self, data, tag="x"):
            super().__init__()
            self.tag = tag

    x = library.ones(2, dtype=library.float64, requires_grad=True)
    y = Plain(x)
    assert (type(y) is Plain, y.dtype, y.requires_grad, y.is_leaf) == (True, library.float64, True, False)
    (y * 3).sum().backward()
    assert x.grad.tolist() == [3, 3]
    numbers = Plain([1, 2])
    assert (numbers.tolist(), numbers.dtype, type(numbers + 1) is Plain) == ([1, 2], library.float32, True)
    assert [tuple(z.shape) for z in (Plain(), Plain(5), Plain(2, 3))] == [(0,), (5,), (2, 3)]
    assert (Tagged(x).tag, Tagged(x).tolist()) == ("x", [1, 1])


@LIBRARIES
def test_gradients_go_to_the_tensor_inside(library):
    """[NOTE subclasses]"""
    cls = listening(library)
    leaf = library.tensor([0.5, 1.0], requires_grad=True)
    (library.sin(leaf.as_subclass(cls)) * 2).sum().backward()
    assert library.equal(leaf.grad, 2 * leaf.detach().cos())
    x = library.tensor([0.5]).as_subclass(cls).requires_grad_()
    assert (x.requires_grad, x.is_leaf) == (True, True)
    assert library.autograd.grad(x.exp().sum(), x)[0].tolist() == x.detach().exp().tolist()


@LIBRARIES
def test_the_class_that_knows_more_is_asked_first_and_may_decline(library):
    """[NOTE subclasses]"""
    class Base(library.Tensor):
        pass

    class Derived(Base):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return NotImplemented if func is library.cos else f"{func.__name__} of {[c.__name__ for c in types]}"

    class Other(library.Tensor):
        pass

    base, derived, other = (library.ones(2).as_subclass(cls) for cls in (Base, Derived, Other))
    assert library.atan2(base, derived) == "atan2 of ['Derived', 'Base']"
    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        library.atan2(base, other)
    with pytest.raises(TypeError, match="all __torch_function__ handlers returned NotImplemented"):
        library.cos(derived)


@LIBRARIES
def test_where_subclasses_are_turned_off_nobody_is_asked(library):
    """[NOTE subclasses]"""
    cls = listening(library)
    x = library.ones(2).as_subclass(cls)
    with library._C.DisableTorchFunctionSubclass():
        y = x.sin()
    assert (type(y) is library.Tensor, cls.calls) == (True, [])

    class Silent(library.Tensor):
        __torch_function__ = library._C._disabled_torch_function_impl

    assert type(library.ones(2).as_subclass(Silent).sin()) is library.Tensor


@LIBRARIES
def test_a_tensor_of_a_subclass_is_one_of_another_or_of_none(library):
    """[NOTE subclasses]"""
    cls = listening(library)

    class Derived(cls):
        pass

    x = library.ones(2, requires_grad=True)
    y = x.as_subclass(cls)
    assert [type(y.as_subclass(c)) for c in (library.Tensor, Derived, cls)] == [library.Tensor, Derived, cls]
    assert type(x.as_subclass(library.Tensor)) is library.Tensor
    (y.as_subclass(library.Tensor) * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(TypeError, match="Creating a Tensor subclass from a class that does not inherit from Tensor"):
        x.as_subclass(int)


def test_a_region_that_runs_again_is_given_tensors_of_the_class():
    """[NOTE subclasses] Attributes too.  Upstream: pytorch/pytorch#167223."""
    cls = listening(mg)
    x = t([1.0, 2.0]).as_subclass(cls).requires_grad_()
    x.name = "weight"
    names = []

    def f(x):
        names.append(x.name)
        return mg.sin(mg.sin(x))

    y = mg.utils.checkpoint.checkpoint(f, x).sum()
    assert cls.calls.count("sin") == 2
    y.backward()
    assert cls.calls.count("sin") == 4
    assert names == ["weight"] * 2
    plain = t([1.0, 2.0], requires_grad=True)
    sin_sin(plain).sum().backward()
    assert x.grad.tolist() == plain.grad.tolist()


def test_a_transform_wraps_it_like_any_tensor_and_the_class_is_asked_below():
    """[NOTE subclasses]"""
    cls, plain = listening(mg), t([0.5, 1.5])
    x, f = plain.as_subclass(cls), lambda x: sin_sin(x).sum()
    for transformed in (grad(f), vmap(grad(grad(sin_sin))), lambda x: jvp(sin_sin, (x,), (mg.ones_like(x),))[1],
                        vmap(lambda x: (x * x.sin()).exp())):
        cls.calls.clear()
        assert transformed(x).tolist() == transformed(plain).tolist()
        assert cls.calls.count("sin") > 0


def test_every_batching_rule_finds_the_batch_of_a_tensor_of_a_subclass():
    """[NOTE subclasses] A batch of matrices that is not in front: with as many samples as rows, its absence would be silent."""
    plain = t([[[2.0, 1.0], [4.0, 0.0]], [[1.0, 3.0], [1.0, 1.0]]])
    x = plain.as_subclass(listening(mg))
    for f in (mg.linalg.inv, lambda x: mg.outer(x[0], x[1]), lambda x: mg.softmax(x, 0), lambda x: x.sum(0)):
        assert vmap(f, in_dims=1)(x).tolist() == vmap(f, in_dims=1)(plain).tolist()


def test_a_captured_tensor_of_a_subclass_meets_one_of_a_level():
    """[NOTE subclasses] What comes out of both is of the level."""
    s = t([2.0, 3.0]).as_subclass(listening(mg))
    assert grad(lambda x: (x * s * x).sum())(t([1.0, 1.0])).tolist() == [4.0, 6.0]
    assert vmap(lambda x: x * s)(mg.ones(3, 2)).shape == (3, 2)


def test_a_function_of_autograd_is_given_the_tensor_inside():
    """[NOTE subclasses]"""
    class Double(mg.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, ct):
            return ct * 2

    x = t([1.0]).as_subclass(listening(mg)).requires_grad_()
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0]


@LIBRARIES
def test_a_gradient_may_become_a_subclass_on_its_way(library):
    """[NOTE subclasses]"""
    cls = listening(library)
    x = library.tensor([1.0, 2.0], requires_grad=True)
    y = x.sin()
    z = y.cos()
    z.grad_fn.register_hook(lambda grads, cts: (grads[0].as_subclass(cls),))
    z.sum().backward()
    assert x.grad.tolist() == pytest.approx((-y.sin() * x.cos()).tolist())


def test_a_handler_that_fails_leaves_no_trace():
    """[NOTE subclasses]"""
    class Failing(mg.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise KeyError(func.__name__)

    outside = current()
    with pytest.raises(KeyError, match="sin"):
        grad(lambda x: x.sin())(t(1.0).as_subclass(Failing))
    assert current() is outside
