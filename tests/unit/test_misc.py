"""Torch's names beside the table of ops: questions, conversions, devices, dtypes, memory formats, data, retained gradients."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
from contextvars import copy_context
from importlib import import_module

import pytest
import torch

import minigrad
from minigrad.errors import UsageError
from minigrad.testing import assert_close

LIBRARIES = pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])


@LIBRARIES
def test_views_know_the_tensor_they_were_made_from(library):
    x = library.zeros(4)
    view = x[1:]
    assert (x._is_view(), x._base, view._is_view(), view._base is x) == (False, None, True, True)
    assert view[1:]._base is x


@LIBRARIES
@pytest.mark.filterwarnings("ignore:TypedStorage is deprecated")
def test_the_storage_of_a_view_is_that_of_all_the_memory(library):
    x = library.zeros(5, dtype=library.float64)
    found = x[1:3].storage()
    assert (len(found), found.size(), found.nbytes(), found.dtype) == (5, 5, 40, library.float64)
    assert found.data_ptr() == x.data_ptr() == found.untyped().data_ptr()


# ---------------------------------------------------------------- private names that PyTorch's own tests use
@LIBRARIES
def test_private_names_of_forward_mode_and_of_transforms(library):
    import_module(f"{library.__name__}._vmap_internals")
    slices = import_module(f"{library.__name__}._functorch.eager_transforms")._slice_argnums

    def modes():
        for mode in (False, True):
            library._C._set_fwd_grad_enabled(mode)
            yield library._C._is_fwd_grad_enabled()

    assert copy_context().run(lambda: list(modes())) == [False, True]
    x = library.ones(2)
    known = library._C._WeakTensorRef(x)
    assert not known.expired()
    del x
    assert known.expired()
    assert (slices((1, 2, 3), -1), slices((1, 2, 3), (0, -2)), slices((1, 2), 0, as_tuple=False)) == ((3,), (1, 2), 1)
    assert library._vmap_internals._vmap(lambda x: x.sum(), 0, 0)(library.ones(2, 3)).tolist() == [3, 3]


@LIBRARIES
def test_what_a_tensor_is_at_its_outermost_level(library):
    c = import_module(f"{library.__name__}._C._functorch")
    seen = []

    def look(x):
        seen.append((c.is_batchedtensor(x), c.is_gradtrackingtensor(x), c.is_functorch_wrapped_tensor(x), c.maybe_get_level(x),
                     c.maybe_get_bdim(x), c.maybe_current_level()))
        return x.sum()

    x = library.ones(2, 3)
    look(x)
    library.func.vmap(lambda x: library.func.grad(look)(x) + look(x), 1, 1)(x)
    assert seen == [(False, False, False, -1, -1, None), (False, True, True, 2, -1, 2), (True, False, True, 1, 1, 1)]
    library.func.vmap(lambda x: seen.append(c.get_unwrapped(x).shape) or x)(x)
    assert tuple(seen[-1]) == (2, 3)
    with pytest.raises((ValueError, RuntimeError), match="No wrappers present!"):
        c.get_unwrapped(x)


# ---------------------------------------------------------------- torch.testing
@LIBRARIES
@pytest.mark.parametrize(("name", "low", "high"), [("float32", -9, 9), ("float64", -9, 9), ("int64", -9, 9), ("uint8", 0, 9),
                                                   ("bool", 0, 1)])
def test_made_tensors_are_in_torchs_interval(library, name, low, high):
    x = library.testing.make_tensor(300, dtype=getattr(library, name), device="cpu").to(library.float64)
    assert low <= x.min().item() < x.max().item() <= high
    assert x.max().item() - x.min().item() > 0.8 * (high - low)


@LIBRARIES
def test_a_made_tensor_is_what_was_asked_for(library):
    x = library.testing.make_tensor((2, 3), dtype=library.complex64, device="cpu", requires_grad=True, noncontiguous=True)
    assert (tuple(x.shape), x.stride(), x.requires_grad, x.dtype) == ((2, 3), (6, 2), True, library.complex64)
    y = library.testing.make_tensor(50, dtype=library.int64, device="cpu", low=0, high=2, exclude_zero=True)
    assert y.tolist() == [1] * 50
    z = library.testing.make_tensor(50, dtype=library.float32, device="cpu", low=-3, high=-2)
    assert -3 <= z.min().item() <= z.max().item() <= -2
    with pytest.raises(ValueError, match="`low` must be less than `high`"):
        library.testing.make_tensor(2, dtype=library.float32, device="cpu", low=2, high=1)


# ---------------------------------------------------------------- questions
@LIBRARIES
def test_questions_about_a_tensor_have_torchs_answers(library):
    x = library.zeros(2, 3, dtype=library.float64)
    assert library.is_tensor(x)
    assert not library.is_tensor([1])
    assert isinstance(x, library.Tensor)
    assert isinstance(x.shape, library.Size)
    assert (library.numel(x), x.nelement(), x.ndimension(), x.nbytes, x.itemsize) == (6, 6, 2, 48, 8)
    assert library.is_floating_point(x)
    assert x.is_floating_point()
    assert not library.is_complex(x)
    assert library.zeros(1, dtype=library.complex64).is_complex()
    assert x.is_signed()
    assert not library.is_nonzero(library.tensor(0))
    assert x.layout is library.strided


def test_conjugates_are_computed_at_once():
    x = minigrad.tensor([1 + 2j])
    y = x.conj()
    assert (x.is_conj(), y.is_conj(), minigrad.is_neg(y.imag)) == (False, False, False)
    assert (y.resolve_conj() is y, y.tolist()) == (True, [1 - 2j])


def test_a_tensor_on_the_host_is_not_on_a_gpu():
    x = minigrad.zeros(1, device="cpu")
    assert x.is_cpu
    assert not x.is_cuda


@LIBRARIES
def test_the_offset_of_a_view_is_counted_in_elements(library):
    x = library.arange(12).reshape(3, 4)
    assert x.storage_offset() == 0
    assert x[1:, 2:].storage_offset() == 6


@LIBRARIES
def test_equality_and_closeness_are_torchs(library):
    x = library.tensor([1.0, 2.0])
    assert library.equal(x, x.clone())
    assert not library.equal(x, library.tensor([1.0]))
    assert library.allclose(x, x + 1e-9)
    assert library.isclose(x, library.tensor([1.0, 3.0])).tolist() == [True, False]
    nan = library.tensor(float("nan"))
    assert library.allclose(nan, nan, equal_nan=True)
    assert not library.allclose(nan, nan)


# ---------------------------------------------------------------- conversions
@LIBRARIES
@pytest.mark.parametrize(("method", "dtype"), [
    ("half", "float16"), ("float", "float32"), ("double", "float64"), ("cfloat", "complex64"), ("cdouble", "complex128"),
    ("bool", "bool"), ("byte", "uint8"), ("char", "int8"), ("short", "int16"), ("int", "int32"), ("long", "int64")])
def test_conversions_by_name_give_torchs_dtypes(library, method, dtype):
    x = getattr(library.tensor([0, 2]), method)()
    assert x.dtype is getattr(library, dtype)
    if hasattr(library, method):
        assert getattr(library, method) is x.dtype


@LIBRARIES
def test_a_conversion_is_differentiated(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    (x.double() * 3).sum().backward()
    assert x.grad.dtype is library.float32
    assert x.grad.tolist() == [3, 3]


@LIBRARIES
def test_type_names_and_type_as_are_torchs(library):
    x = library.zeros(1, device="cpu")
    assert x.type() == "torch.FloatTensor"
    assert x.type(library.float64).type() == "torch.DoubleTensor"
    assert x.type("torch.LongTensor").dtype is library.int64
    assert x.type_as(library.tensor(1)).dtype is library.int64


@LIBRARIES
def test_new_tensors_take_dtype_from_an_old_one(library):
    x = library.zeros(2, dtype=library.float64)
    assert x.new_zeros(2, 3).dtype is library.float64
    assert x.new_ones((3,)).tolist() == [1, 1, 1]
    assert x.new_full((2,), 5).tolist() == [5, 5]
    assert tuple(x.new_empty(2, 1).shape) == (2, 1)
    assert x.new_tensor([1, 2]).dtype is library.float64


@LIBRARIES
def test_the_limits_of_dtypes_are_torchs(library):
    for name in ("float16", "float32", "float64"):
        mine, other = library.finfo(getattr(library, name)), torch.finfo(getattr(torch, name))
        assert [mine.bits, mine.eps, mine.max, mine.min, mine.tiny, mine.smallest_normal, mine.dtype] == [
            other.bits, other.eps, other.max, other.min, other.tiny, other.smallest_normal, other.dtype]
        assert mine.resolution == pytest.approx(other.resolution)
    for name in ("uint8", "int8", "int16", "int32", "int64"):
        mine, other = library.iinfo(getattr(library, name)), torch.iinfo(getattr(torch, name))
        assert [mine.bits, mine.max, mine.min, mine.dtype] == [other.bits, other.max, other.min, other.dtype]
    with pytest.raises(TypeError):
        library.finfo(library.int32)
    with pytest.raises(TypeError):
        library.iinfo(library.float32)


# ---------------------------------------------------------------- dtypes and devices by default
def test_the_default_dtype_is_that_of_python_floats(restored):
    minigrad.set_default_dtype(minigrad.float64)
    assert minigrad.get_default_dtype() is minigrad.tensor(1.0).dtype is minigrad.float64
    assert minigrad.tensor(1j).dtype is minigrad.complex128


@pytest.fixture
def restored():
    with minigrad.state.using(minigrad.state.current()):
        yield


def test_a_device_is_one_object_that_its_type_finds():
    assert minigrad.device("cpu") is minigrad.zeros(1, device="cpu").device
    assert minigrad.device("sim", 0) is minigrad.device("sim")
    assert isinstance(minigrad.device("cpu"), minigrad.device)
    assert minigrad.device(minigrad.device("sim")).type == "sim"
    assert pickle.loads(pickle.dumps(minigrad.device("sim"))) is minigrad.device("sim")
    with pytest.raises(UsageError, match="is unknown"):
        minigrad.device("tpu")


def test_a_device_as_a_context_is_where_tensors_are_made():
    outside = minigrad.get_default_device()
    with minigrad.device("sim") as where:
        assert minigrad.zeros(1).device is where
        with minigrad.device("cpu"):
            assert minigrad.zeros(1).device.type == "cpu"
        assert minigrad.zeros(1).device is where
    assert minigrad.zeros(1).device is outside


def test_a_device_is_left_after_an_error_and_by_each_thread_alone():
    outside, inside = minigrad.get_default_device(), []

    def other():
        with minigrad.device("cpu"):
            inside.append(minigrad.get_default_device())

    with pytest.raises(ZeroDivisionError), minigrad.device("sim"):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert minigrad.get_default_device().type == "sim"
        raise ZeroDivisionError
    assert minigrad.get_default_device() is outside
    assert [d.type for d in inside] == ["cpu"]


def test_the_default_device_can_be_set(restored):
    minigrad.set_default_device("sim")
    assert minigrad.zeros(1).device.type == "sim"


@LIBRARIES
def test_grad_mode_can_be_asked_and_set(library):
    assert library.is_grad_enabled()
    with library.set_grad_enabled(False):
        assert not library.is_grad_enabled()
    assert library.is_grad_enabled()


# ---------------------------------------------------------------- memory formats
@LIBRARIES
def test_channels_last_reorders_memory_and_nothing_else(library):
    x = library.arange(36, device="cpu").reshape(1, 4, 3, 3)
    y = x.to(memory_format=library.channels_last)
    assert y.stride() == (36, 1, 12, 4)
    assert y.tolist() == x.tolist()
    assert y.is_contiguous(memory_format=library.channels_last)
    assert not y.is_contiguous()
    assert x.is_contiguous()
    assert y.clone().stride() == y.stride()
    assert y.clone(memory_format=library.contiguous_format).stride() == x.stride()
    assert y.contiguous().stride() == x.stride()
    assert y.contiguous(memory_format=library.channels_last) is y
    assert x.clone(memory_format=library.preserve_format).stride() == x.stride()
    assert x.to(memory_format=library.preserve_format) is x


@LIBRARIES
def test_channels_last_wants_four_dimensions(library):
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        library.zeros(2, 3).contiguous(memory_format=library.channels_last)


def test_a_memory_format_is_differentiated():
    x = minigrad.randn(1, 2, 3, 3, requires_grad=True)
    (x.to(memory_format=minigrad.channels_last) * 2).sum().backward()
    assert (x.grad == 2).all()


def test_formats_are_pickled_by_name():
    assert pickle.loads(pickle.dumps(minigrad.channels_last)) is minigrad.channels_last


# ---------------------------------------------------------------- data
@LIBRARIES
def test_data_shares_memory_and_has_no_graph(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    x.data.mul_(3)
    assert x.tolist() == [3, 6]
    assert not x.data.requires_grad


@LIBRARIES
def test_data_replaces_what_a_tensor_holds_and_not_what_it_is(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    y = library.zeros(3, dtype=library.float64)
    x.data = y
    assert x.is_leaf
    assert x.requires_grad
    assert tuple(x.shape) == (3,)
    assert x.dtype is library.float64
    y.fill_(4)
    assert x.tolist() == [4, 4, 4]


def test_data_of_another_kind_than_gradients_have_is_an_error():
    x = minigrad.tensor([1.0], requires_grad=True)
    with pytest.raises(UsageError, match="must be floating point or complex"):
        x.data = minigrad.tensor([1])


def test_data_is_not_replaced_inside_a_transform():
    def f(x):
        x.data = minigrad.zeros(1)
        return x.sum()

    with pytest.raises(UsageError, match=r"use x.copy_\(y\)"):
        minigrad.func.grad(f)(minigrad.ones(1))


def test_a_write_through_data_is_seen_by_version_checks():
    """torch gives the gradient at the new value."""
    x = minigrad.tensor(2.0, requires_grad=True)
    y = x * x
    x.data.fill_(5.0)
    with pytest.raises(UsageError, match="modified by an inplace operation"):
        y.backward()


def test_views_of_replaced_data_stay_with_the_old_memory():
    x = minigrad.zeros(2)
    view = x[:1]
    x.data = minigrad.ones(2)
    view.fill_(7)
    assert x.tolist() == [1, 1]
    assert view.tolist() == [7]


# ---------------------------------------------------------------- in-place: fill, copy, retained gradients
@LIBRARIES
def test_fill_and_copy_keep_a_graph(library):
    x, z = (library.tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    y = x * 1
    y.fill_(library.tensor(3.0, requires_grad=True))
    y.copy_(z)
    (y * 2).sum().backward()
    assert x.grad.tolist() == [0, 0]
    assert z.grad.tolist() == [2, 2]


@LIBRARIES
def test_zeros_require_grad_where_the_tensor_did(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    y = (x * 1).zero_()
    assert y.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [0, 0]


@LIBRARIES
def test_a_copy_has_a_gradient_of_its_own(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    y = library.zeros(2)
    y.copy_(x)
    y.retain_grad()
    (y * 2 + x * 3).sum().backward()
    assert y.grad.tolist() == [2, 2]
    assert x.grad.tolist() == [5, 5]


@LIBRARIES
def test_a_hook_stays_with_the_old_value_and_a_retained_gradient_moves_to_the_new_one(library):
    seen = []
    x = library.tensor([1.0], requires_grad=True).clone()
    x.register_hook(lambda g: seen.append(g.item()))
    x.retain_grad()
    assert x.retains_grad
    x.mul_(2)
    assert x.retains_grad
    (x.clone() + 1).sum().backward()
    assert seen == [2]
    assert x.grad.item() == 1


@LIBRARIES
def test_retained_gradients_of_a_view_and_its_base_follow_an_in_place_op_on_either(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    y = x * 1
    view = y[0:1]
    view.retain_grad()
    y.retain_grad()
    view.mul_(3)
    y.mul_(2)
    (y * library.tensor([5.0, 7.0]) + view).sum().backward()
    assert view.grad.tolist() == [2]
    assert y.grad.tolist() == [7, 7]
    assert x.grad.tolist() == [42, 14]


# ---------------------------------------------------------------- assert_close
def test_assert_close_passes_what_torchs_passes():
    assert_close(minigrad.ones(2), minigrad.ones(2) + 1e-6)
    assert_close([1, {"a": minigrad.ones(1)}], (1, {"a": minigrad.ones(1)}))
    assert_close(minigrad.tensor(float("nan")), minigrad.tensor(float("nan")), equal_nan=True)
    assert_close(minigrad.ones(2), minigrad.ones(2, dtype=minigrad.float64), check_dtype=False)
    assert_close(1.0, 1.0 + 1e-9)
    assert_close(None, None)


@pytest.mark.parametrize(("actual", "expected", "text"), [
    ([1.0, 2.0], [1.0, 3.0], (
        "Tensor-likes are not close!\n\nMismatched elements: 1 / 2 (50.0%)\n"
        "Greatest absolute difference: 1.0 at index (1,) (up to 1e-05 allowed)\nGreatest relative difference: 0.3333333")),
    ([1, 2], [1, 3], "Tensor-likes are not equal!\n\nMismatched elements: 1 / 2 (50.0%)\n"),
    (1.0, 2.0, "Scalars are not close!\n\nExpected 2.0 but got 1.0.\n"),
    ([1.0], [1.0, 2.0], "The values for attribute 'shape' do not match: "),
    ([1.0], [1], "The values for attribute 'dtype' do not match: "),
])
def test_assert_close_says_what_torchs_says(actual, expected, text):
    for library, check in ((minigrad, assert_close), (torch, torch.testing.assert_close)):
        with pytest.raises(AssertionError) as error:
            check(library.tensor(actual), library.tensor(expected))
        assert str(error.value).startswith(text)


def test_assert_close_names_the_item_and_takes_a_message():
    with pytest.raises(AssertionError, match=r"The failure occurred for item \[1\]\['a'\]"):
        assert_close([1, {"a": 2}], [1, {"a": 3}])
    with pytest.raises(AssertionError, match=r"^mine$"):
        assert_close(1, 2, msg="mine")
    with pytest.raises(AssertionError, match="length of the sequences do not match"):
        assert_close([1], [1, 2])
    with pytest.raises(ValueError, match="both be specified"):
        assert_close(1, 1, rtol=0.1)


# ---------------------------------------------------------------- importing
def test_packages_are_imported_when_a_program_asks_for_them():
    program = ("import sys, minigrad; early = [n for n in sys.modules if n.startswith('minigrad.')];"
               "assert not [n for n in early if n.startswith(('minigrad.nn', 'minigrad.testing', 'minigrad.autograd.functional'))];"
               "minigrad.nn.functional, minigrad.testing.assert_close, minigrad.utils, minigrad.autograd.functional.jacobian;"
               "from minigrad.func import functional_call; import minigrad.nn.functional as F; assert minigrad.nn.functional is F")
    subprocess.run([sys.executable, "-c", program], check=True)


def fresh(program):
    """What a program prints, in an interpreter that has only imported minigrad."""
    return subprocess.run([sys.executable, "-c", f"import minigrad as mg\n{program}"], check=True, capture_output=True, text=True).stdout


def test_a_method_stands_in_its_place_once_it_was_reached():
    late = "type(vars(mg.Tensor)['sin']).__name__"
    assert fresh(f"print({late}); mg.ones(1).sin(); print({late}, mg.Tensor.sin is mg.sin)").split() == ["Late", "function", "True"]


@pytest.mark.parametrize("reach", ["mg.Tensor.kthvalue", "getattr(mg.ones(1), 'kthvalue')", "hasattr(mg.Tensor, 'kthvalue')", "mg.kthvalue",
                                   "inspect.signature(mg.Tensor.kthvalue)", "pydoc.render_doc(mg.Tensor)", "super(P, P).kthvalue"])
def test_a_method_may_be_reached_in_any_way(reach):
    program = f"import inspect, pydoc\nclass P(mg.Tensor): pass\n{reach}\nprint(mg.Tensor.kthvalue is mg.kthvalue)"
    assert fresh(program) == "True\n"


def test_a_method_that_is_reached_first_under_a_mode_is_told_by_its_name():
    program = ("from minigrad.overrides import TorchFunctionMode\nclass M(TorchFunctionMode):\n    def __torch_function__(self, f, types, args, kwargs):\n"
               "        print(f.__name__)\n        return f(*args, **(kwargs or {}))\n"
               "x = mg.ones(2)\nwith M(): x.type_as(x).kthvalue(1); x.cumsum_(0); x.squeeze_(); x.type(); str(x)")
    assert fresh(program).split() == ["type_as", "kthvalue", "cumsum_", "squeeze_", "type", "__repr__"]


def test_properties_can_be_assigned_to_before_they_were_read():
    assert fresh("x = mg.ones(2, requires_grad=True); x.data = mg.zeros(2); x.grad = mg.ones(2); print(x.tolist(), x.grad.tolist())") == (
        "[0.0, 0.0] [1.0, 1.0]\n")


def test_a_property_without_a_setter_says_so_before_it_was_read():
    assert "has no setter" in fresh("try: mg.ones(1).is_cuda = 1\nexcept AttributeError as e: print(e)")


def test_every_method_is_where_its_table_says():
    assert fresh("for name in list(vars(mg.Tensor)): getattr(mg.Tensor, name)\n"
                 "print([name for name, f in vars(mg.Tensor).items() if type(f).__name__.startswith('Late')])") == "[]\n"


def test_a_star_brings_every_public_name():
    assert fresh("names = set(mg.__all__); from minigrad import *; print(names - set(globals()), names - set(dir(mg)))") == "set() set()\n"


def test_the_version_is_that_of_the_project():
    assert minigrad.__version__ == "0.1.0"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'minigrad' has no attribute 'nothing'"):
        minigrad.nothing


@pytest.mark.parametrize(("where", "name", "way_out"), [
    ("minigrad", "bfloat16", "use float16"), ("minigrad", "compile", "leave the call out"), ("minigrad", "optim", "write the step"),
    ("minigrad.autograd", "set_multithreading_enabled", "leave the call out"), ("minigrad.func", "debug_unwrap", "use print")])
def test_a_name_of_torch_that_is_left_out_on_purpose_says_why_and_what_to_do(where, name, way_out):
    assert hasattr(import_module(where.replace("minigrad", "torch")), name)
    with pytest.raises(AttributeError, match=f"{where} has no {name}, because .*: {way_out}"):
        getattr(import_module(where), name)
