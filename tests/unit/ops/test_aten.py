"""minigrad/ops/aten.py: rows by torch's names."""

import pytest

import minigrad as mg
from minigrad.ops import aten
from minigrad.ops.pointwise import sin


def test_an_overload_is_the_function_of_its_row():
    assert aten.sin.default is sin
    assert aten.sin.out is sin
    assert mg.ops.aten.mm.default.op.name == "mm"


def test_an_underscore_before_the_name_may_be_torchs():
    assert aten._softmax.default is aten.softmax.int


def test_an_overload_of_several_rows_is_equal_to_each():
    rows = [op.call for op, _ in aten.held() if op.name == "max"]
    assert len(rows) == 2
    assert all(row == aten.max.default for row in rows)
    assert aten.sin.default != aten.max.default
    with pytest.raises(TypeError, match="equal to several rows"):
        hash(aten.max.dim)


def test_a_name_that_no_row_has_is_an_error():
    for name in ("mul_", "no_such_op"):
        with pytest.raises(AttributeError, match=f"no row is called '{name}'"):
            getattr(aten, name)
    with pytest.raises(AttributeError):
        mg.ops.no_such_module
    assert repr(aten.sin) == "minigrad.ops.aten.sin"
    assert repr(aten.max.dim) == "minigrad.ops.aten.max.dim"
