"""The type of a result, for every pair of types and every mix of dimensions: torch's table."""

import operator

import pytest
import torch

import minigrad
from minigrad.dtypes import ALL
from tests.differential.harness import Raised, dtype_name, outcome

NAMES = [d.name for d in ALL]
SCALARS = [True, 2, 1.5, 2j]
OPS = {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "true_div": operator.truediv, "pow": operator.pow,
       "floor_divide": operator.floordiv, "eq": operator.eq, "lt": operator.lt, "and": operator.and_, "mod": operator.mod}


def operands(t):
    """Every type with a dimension, without one, and python numbers."""
    found = {}
    for name in NAMES:
        found[f"{name}[2]"] = t.tensor([1, 1], dtype=getattr(t, name))
        found[f"{name}[]"] = t.tensor(1, dtype=getattr(t, name))
    return found | {repr(s): s for s in SCALARS}


def result(f, x, y):
    """The type of f's result, or the kind of its error."""
    found = outcome(lambda t: dtype_name(f(x, y)), torch)
    return found.kind.__name__ if isinstance(found, Raised) else found


def of_half_a_complex(x, y):
    """Whether torch works in complex32, which numpy and minigrad lack (there it is complex64)."""
    return torch.result_type(x, y) is torch.complex32


def differences(f):
    mine, theirs = operands(minigrad), operands(torch)
    found = {}
    for a in mine:
        for b in mine:
            if ("[" in a or "[" in b) and not of_half_a_complex(theirs[a], theirs[b]):
                pair = result(f, mine[a], mine[b]), result(f, theirs[a], theirs[b])
                if pair[0] != pair[1]:
                    found[a, b] = pair
    return found


@pytest.mark.parametrize("name", OPS)
def test_the_type_of_a_result(name):
    assert not differences(OPS[name])


@pytest.mark.parametrize("name", ["where", "maximum", "atan2", "cat", "stack", "result_type"])
def test_the_type_of_a_result_of_a_function(name):
    def of(t):
        def f(x, y):
            if name == "result_type":
                return t.zeros(1, dtype=t.result_type(x, y))
            if name == "where":
                return t.where(t.tensor(True), x, y)
            if name in ("cat", "stack"):
                return getattr(t, name)([x.expand(2), y.expand(2)])
            return getattr(t, name)(x, y)
        return f

    mine, theirs = operands(minigrad), operands(torch)
    found = {(a, b): pair for a in mine for b in mine if "[" in a and "[" in b and not of_half_a_complex(theirs[a], theirs[b])
             and (pair := (result(of(minigrad), mine[a], mine[b]), result(of(torch), theirs[a], theirs[b])))[0] != pair[1]}
    assert not found


def test_promote_types():
    mine = {(a, b): minigrad.promote_types(getattr(minigrad, a), getattr(minigrad, b)).name for a in NAMES for b in NAMES}
    theirs = {(a, b): str(torch.promote_types(getattr(torch, a), getattr(torch, b)))[6:] for a in NAMES for b in NAMES}
    assert mine == theirs


def test_what_an_in_place_op_may_cast():
    def f(x, y):
        return x.add_(y) if not isinstance(x, (bool, int, float, complex)) else y
    assert not differences(f)


@pytest.mark.parametrize("name", ["sum", "prod", "cumsum", "mean", "var", "norm", "abs", "neg", "sign", "exp", "sqrt", "round",
                                  "floor", "all", "max", "argmax", "logical_not", "square", "reciprocal", "relu", "sigmoid",
                                  "bitwise_not", "isnan", "sort", "softmax"])
def test_the_type_of_a_result_of_one_tensor(name):
    def f(x):
        args = (0,) if name in ("cumsum", "softmax") else ()
        out = getattr(x, name)(*args)
        return out[0] if isinstance(out, tuple) else out

    found = {}
    for d in NAMES:
        pair = [result(lambda x, _: f(x), t.tensor([1, 1], dtype=getattr(t, d)), None) for t in (minigrad, torch)]
        if pair[0] != pair[1]:
            found[d] = pair
    assert not found


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "complex64", "complex128"])
def test_gradients_have_the_type_of_what_they_belong_to(name):
    for other in ("float32", "float64", "complex64", "int64"):
        found = []
        for t in (minigrad, torch):
            x = t.tensor([1.0, 2.0], dtype=getattr(t, name), requires_grad=True)
            y = t.tensor([1, 2], dtype=getattr(t, other))
            (x * y).abs().sum().backward()
            found.append(dtype_name(x.grad))
        assert found[0] == found[1] == name
