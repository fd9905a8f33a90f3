"""minigrad/dtypes.py"""

import copy
import pickle

import pytest

from minigrad import dtypes
from minigrad.dtypes import ALL, BY_NAME, of_scalar, promote_types, result_type

f16, f32, f64 = dtypes.float16, dtypes.float32, dtypes.float64
c64, c128 = dtypes.complex64, dtypes.complex128


def test_names_are_torchs():
    assert repr(f32) == "minigrad.float32"
    assert BY_NAME["int64"] is dtypes.int64


def test_there_is_one_object_for_each():
    assert all(pickle.loads(pickle.dumps(d)) is d and copy.deepcopy(d) is d for d in ALL)


def test_the_flags_of_a_type():
    assert [(d.is_floating_point, d.is_complex, d.is_signed, d.differentiable) for d in (f32, c64, dtypes.uint8, dtypes.bool_)] == [
        (True, False, True, True), (False, True, True, True), (False, False, False, False), (False, False, False, False)]


def test_item_sizes():
    assert [d.itemsize for d in ALL] == [1, 1, 1, 2, 4, 8, 2, 4, 8, 8, 16]


@pytest.mark.parametrize("a", ALL, ids=str)
def test_a_type_with_itself_is_itself(a):
    assert promote_types(a, a) is a


@pytest.mark.parametrize("a", ALL, ids=str)
def test_promotion_is_symmetric(a):
    assert all(promote_types(a, b) is promote_types(b, a) for b in ALL)


@pytest.mark.parametrize("a", ALL, ids=str)
def test_promotion_is_associative(a):
    """But for int8 with uint8, which meet in int16."""
    for b in ALL:
        for c in ALL:
            if {dtypes.uint8, dtypes.int8} <= {a, b, c}:
                continue
            assert promote_types(promote_types(a, b), c) is promote_types(a, promote_types(b, c))


def test_an_int_takes_the_width_of_a_float():
    assert promote_types(dtypes.int64, f16) is f16


def test_a_double_makes_a_complex_wide():
    assert promote_types(f64, c64) is c128
    assert promote_types(f32, c64) is c64


def test_unsigned_with_signed_of_one_byte_needs_two():
    assert promote_types(dtypes.uint8, dtypes.int8) is dtypes.int16


def test_python_numbers_have_the_default_type():
    assert [of_scalar(s, f32) for s in (True, 1, 1.0, 1j)] == [dtypes.bool_, dtypes.int64, f32, c64]
    assert of_scalar(1j, f64) is c128


def test_tensors_with_dimensions_rule():
    assert result_type([f32], [f64], []) is f32
    assert result_type([f32], [], [f64]) is f32


def test_a_weaker_operand_of_a_higher_category_changes_the_category():
    assert result_type([dtypes.int32], [f64], []) is f64
    assert result_type([dtypes.int32], [], [f32]) is f32
    assert result_type([f64], [], [c64]) is c128


def test_scalars_do_not_widen_ints():
    assert result_type([dtypes.int8], [], [dtypes.int64]) is dtypes.int8


def test_to_complex_and_back():
    assert [d.to_complex() for d in (f16, f32, f64, c64)] == [c64, c64, c128, c64]
    assert [d.to_real() for d in (c64, c128, f32)] == [f32, f64, f32]
