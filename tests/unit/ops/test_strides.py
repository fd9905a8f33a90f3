"""minigrad/ops/strides.py: windows on memory, and the views that look at memory as another type."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad import autograd
from minigrad.autograd import forward_ad
from minigrad.errors import UsageError
from minigrad.func import grad, vmap
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import nth, t


def numbers(*shape):
    return np.arange(1.0, 1 + np.prod(shape, dtype=int)).reshape(shape)


def both(f):
    """What a program gives in torch and in minigrad."""
    return [np.asarray(f(lib, lambda a, lib=lib: lib.tensor(a, dtype=lib.float64)).tolist()) for lib in (torch, mg)]


# ---------------------------------------------------------------- memory
def test_a_window_is_a_view_of_the_same_memory():
    x = t(numbers(3, 4))
    window = x.as_strided((2, 3), (4, 1), 5)
    window.zero_()
    assert window.untyped_storage() is x.untyped_storage()
    assert (window._base is x, window.stride(), window.storage_offset(), x._version) == (True, (4, 1), 5, 1)
    assert x.tolist() == [[1, 2, 3, 4], [5, 0, 0, 0], [9, 0, 0, 0]]


def test_a_window_on_a_detached_part_shows_the_whole_memory():
    part = t(numbers(6))[2:4].detach()
    assert part.as_strided((6,), (1,), 0).tolist() == [1, 2, 3, 4, 5, 6]
    assert part.as_strided((2,), (1,)).tolist() == [3, 4]


def test_a_tensor_in_place_becomes_a_window_on_what_it_was():
    x = t(numbers(3, 4))
    y = x.as_strided_((2, 2), (1, 4))
    assert y is x
    assert x.tolist() == [[1, 5], [2, 6]]


@pytest.mark.parametrize("shape", [(2, 3), (0,)], ids=str)
@pytest.mark.parametrize("size", [(3, 0), (0,)], ids=str)
def test_a_window_that_shows_nothing_is_a_view_as_in_torch(shape, size):
    for lib in (mg, torch):
        x = lib.zeros(shape, requires_grad=True).clone()
        window = x.as_strided(size, (2,) * len(size), 0)
        assert window._base is x and tuple(window.shape) == size
        part = x.view(shape)
        part.as_strided_(size, (2,) * len(size))
        assert part._base is x and tuple(part.shape) == size


@pytest.mark.parametrize(("size", "stride", "offset", "text"), [
    ((2,), (1, 1), None, "mismatch in length of strides and shape"),
    ((2,), (-1,), None, "Negative strides are not supported"),
    ((2,), (1,), -1, "invalid storage offset -1"),
    ((2, 2), (4, 1), 7, "setStorage: sizes .2, 2., strides .4, 1., storage offset 7, and itemsize 8 requiring a storage size of"),
], ids=["lengths", "negative stride", "negative offset", "too far"])
def test_a_window_that_memory_has_not_is_refused_in_torchs_words(size, stride, offset, text):
    for lib in (torch, mg):
        with pytest.raises(RuntimeError, match=text):
            lib.zeros(12, dtype=lib.float64).as_strided(size, stride, offset)


def test_strides_that_are_asked_for_are_those_of_the_tensor():
    for x in (mg.empty_strided((2, 3), (1, 4)), t(0.0).new_empty_strided((2, 3), (1, 4)), mg.empty_permuted((2, 3), (1, 0))):
        assert x.shape == (2, 3)
        assert not x._is_view()
    assert mg.empty_strided((2, 3), (1, 4)).stride() == (1, 4)
    assert mg.empty_permuted((2, 3, 4), (1, 2, 0)).stride() == torch.empty_permuted((2, 3, 4), (1, 2, 0)).stride()


# ---------------------------------------------------------------- derivatives
WINDOWS = {
    "apart": ((6,), (2, 2), (3, 2), 0), "overlapping": ((6,), (4, 3), (1, 1), 0), "one element, many times": ((6,), (2, 3), (0, 0), 2),
    "a matrix in another order": ((2, 3), (3, 2), (1, 3), 0), "with an offset": ((3, 4), (2, 2), (5, 1), 1), "none": ((6,), (0, 2), (1, 1), 0),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_a_cotangent_is_added_where_it_was_read_as_torch_does(window):
    shape, *place = WINDOWS[window]

    def program(lib, tensor):
        x = tensor(numbers(*shape)).requires_grad_()
        y = (x * 1).as_strided(*place)
        (y.sin() * y).sum().backward()
        return x.grad
    want, got = both(program)
    assert got == pytest.approx(want, rel=1e-12)


def test_elements_in_one_place_share_what_comes_there_as_torch_does():
    def program(lib, tensor):
        x = tensor(numbers(1)).requires_grad_()
        wide = x.expand(4)
        y = wide.as_strided((3,), (0,))
        return lib.autograd.grad((y * tensor(numbers(3))).sum(), [wide])[0]
    want, got = both(program)
    assert got == pytest.approx(want, rel=1e-12)


def test_a_window_that_leaves_the_view_it_is_made_of_is_written_and_read():
    """f(x) = 2 x^2 + 15 x^4 + x^6 + 6 x^3; torch's second derivative is another one, 115.66 at 0.7."""
    def f(x):
        a = mg.stack([x, x * 2, x * 3, x, x, x * x]) * 1
        window = a[2:4].as_strided((2, 2), (3, 1), 1)
        window.mul_(x)
        return (a * a).sum() + (window * x).sum()
    x = 0.7
    want = [4 * x + 60 * x**3 + 6 * x**5 + 18 * x**2, 4 + 180 * x**2 + 30 * x**4 + 36 * x]
    for run in (f, lambda x: checkpoint(f, x)):
        assert [nth(n, run)(t(x)).item() for n in (1, 2)] == pytest.approx(want, rel=1e-12)
    assert vmap(grad(f))(t([x, x])).tolist() == pytest.approx(want[:1] * 2, rel=1e-12)


def test_what_is_scattered_into_a_window_takes_its_place():
    """The gradient of what is overwritten is 0; torch gives it to that, and not to the rest."""
    x, src = t(numbers(5), requires_grad=True), t(numbers(2), requires_grad=True)
    y = x.as_strided_scatter(src, (2,), (2,), 1)
    assert y.tolist() == [1, 1, 3, 2, 5]
    (y * t([1.0, 10, 100, 1000, 10000])).sum().backward()
    assert x.grad.tolist() == [1, 0, 100, 0, 10000]
    assert src.grad.tolist() == [10, 1000]


# ---------------------------------------------------------------- samples
def test_strides_under_vmap_are_those_of_a_sample_as_in_torch():
    def program(lib, tensor):
        return lib.func.vmap(lambda x: x.as_strided((2, 2), (1, 1), 0))(tensor(numbers(4, 3)))
    want, got = both(program)
    assert got.tolist() == want.tolist()


@pytest.mark.parametrize("in_dim", [0, 1, 2])
def test_a_sample_has_the_strides_that_torch_says(in_dim):
    def program(lib, tensor):
        found = []

        def look(x):
            found.append(x.stride())
            return x.sum()
        lib.func.vmap(lib.func.grad(look), in_dim)(tensor(numbers(2, 3, 4)))
        return found
    assert program(mg, t) == program(torch, torch.tensor)


def test_a_window_on_a_sample_is_written():
    x = t(numbers(4, 3))
    vmap(lambda x: x.as_strided((2,), (2,)).zero_())(x)
    assert x.tolist() == [[0, 2, 0], [0, 5, 0], [0, 8, 0], [0, 11, 0]]


def test_a_batch_between_the_elements_of_a_sample_is_stepped_over():
    x = t(numbers(3, 4))
    assert vmap(lambda x: x.as_strided((2,), (8,)), in_dims=1)(x).tolist() == [[1, 9], [2, 10], [3, 11], [4, 12]]
    with pytest.raises(UsageError, match="can access memory outside of `tensor`"):
        vmap(lambda x: x.as_strided((2,), (1,)), in_dims=1)(x)


@pytest.mark.parametrize("offset", [1, 9], ids=["partly", "wholly"])
def test_a_window_that_leaves_the_sample_is_refused_as_in_torch(offset):
    for lib in (torch, mg):
        with pytest.raises(RuntimeError, match="can access memory outside of `tensor`"):
            lib.func.vmap(lambda x: x.as_strided((3,), (1,), offset))(lib.zeros(4, 3))


# ---------------------------------------------------------------- memory as another type
def test_the_parts_of_complex_numbers_are_views():
    z = mg.tensor([1 + 2j, 3 + 4j])
    for part, at in ((z.real, 0), (z.imag, 1), (mg.view_as_real(z), 0)):
        assert part.untyped_storage() is z.untyped_storage()
        assert (part.dtype, part.storage_offset(), part._base is z) == (mg.float32, at, True)
    z.imag.zero_()
    mg.view_as_complex(mg.view_as_real(z)).mul_(2)
    assert (z.tolist(), z._version) == ([2, 6], 2)


def test_the_parts_of_an_inference_tensor_are_inference_tensors():
    with mg.inference_mode():
        z = mg.tensor([1 + 2j])
    assert z.real.is_inference()


def test_a_saved_part_of_complex_numbers_comes_back_from_the_host():
    z = mg.tensor([1 + 2j, 3 + 4j], dtype=mg.complex128, device="sim").requires_grad_()
    with autograd.graph.save_on_cpu():
        y = (z * 1).imag.sin().sum()
    y.backward()
    assert z.grad.cpu().imag.tolist() == pytest.approx(np.cos([2.0, 4.0]).tolist())


def test_parts_that_do_not_lie_side_by_side_are_no_complex_numbers():
    for lib in (torch, mg):
        with pytest.raises(RuntimeError, match="Tensor must have a last dimension with stride 1"):
            lib.view_as_complex(lib.zeros(2, 3).t())


# ---------------------------------------------------------------- a view whose root's cotangent lies otherwise
def test_a_tangent_in_another_order_is_written_where_the_view_is():
    with forward_ad.dual_level():
        x = forward_ad.make_dual(t(numbers(2, 3)), t(numbers(3, 2)).t())
        x.view(6)[1:3].mul_(10)
        assert forward_ad.unpack_dual(x).tangent.tolist() == [[1, 30, 50], [2, 4, 6]]
