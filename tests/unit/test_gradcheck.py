"""gradcheck finds wrong derivatives and passes right ones; autograd.functional is torch's."""

from __future__ import annotations

import pytest
import torch

import minigrad
from minigrad.autograd import functional, gradcheck, gradgradcheck
from minigrad.autograd.gradcheck import GradcheckError
from minigrad.ops.batching import elementwise
from minigrad.row import row

LIBRARIES = pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])


def leaf(*shape, dtype=minigrad.float64):
    return minigrad.randn(*shape, dtype=dtype, requires_grad=True)


ALL = {"check_forward_ad": True, "check_batched_grad": True, "check_batched_forward_grad": True}


# ---------------------------------------------------------------- right derivatives pass
@pytest.mark.parametrize("f", [
    lambda x, y: x * y.sin(),
    lambda x, y: (x @ y.t(), x.sum() * y),
    lambda x, y: (x.exp(), x > 0, "text", y.detach()),
    lambda x, y: x.sum(),
    lambda x, y: x[:, 1:] / (1 + y[:, :2] ** 2),
], ids=["product", "two outputs", "other outputs", "one input unused", "slices"])
def test_right_derivatives_pass_every_check(f):
    assert gradcheck(f, (leaf(2, 3), leaf(2, 3)), **ALL)


def test_right_derivatives_of_second_order_pass():
    assert gradgradcheck(lambda x, y: x.sin() * y ** 2, (leaf(2), leaf(2)), check_fwd_over_rev=True, check_batched_grad=True)


def test_complex_inputs_and_outputs_are_checked_number_by_number():
    z = leaf(2, dtype=minigrad.complex128)
    assert gradcheck(lambda z: z * z.conj() * z, z, check_forward_ad=True)
    assert gradcheck(lambda z: z.abs(), z, check_forward_ad=True)
    assert gradcheck(lambda x: x * (2 + 1j), leaf(3), check_forward_ad=True)
    assert gradgradcheck(lambda z: z * z.conj() * z, z)


def test_inputs_that_require_no_grad_are_constants():
    assert gradcheck(lambda x, y, n: x * y * n, (leaf(2), minigrad.ones(2), 3), **ALL)


def test_a_function_without_differentiable_outputs_passes():
    assert gradcheck(lambda x: x > 0, leaf(2))


def test_inputs_are_left_as_they_were():
    x = leaf(2)
    before, version = x.tolist(), x._version
    gradcheck(lambda x: x.sin(), x)
    assert x.tolist() == before
    assert x._version == version
    assert x.grad is None


# ---------------------------------------------------------------- wrong ones are found
def bad(**rules):
    """sin with some of its rules replaced."""
    right = {"vjp": (lambda ct, x0: ct * minigrad.cos(x0),), "jvp": (lambda dx, x0: dx * minigrad.cos(x0),)}
    return row("bad", lambda xp, x0: xp.sin(x0), saves=("x0",), batch=elementwise, **{**right, **rules})


def test_a_wrong_vjp_is_found():
    with pytest.raises(GradcheckError) as error:
        gradcheck(bad(vjp=(lambda ct, x0: ct * x0,)), leaf(2))
    assert str(error.value).startswith("Jacobian mismatch for output 0 with respect to input 0,\nnumerical:tensor(")
    assert "\nanalytical:tensor(" in str(error.value)


def test_a_wrong_jvp_is_found_where_forward_mode_is_checked():
    f = bad(jvp=(lambda dx, x0: dx * x0,))
    assert gradcheck(f, leaf(2))
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradcheck(f, leaf(2), check_forward_ad=True)


def test_a_wrong_second_derivative_is_found_by_gradgradcheck():
    f = bad(vjp=(lambda ct, x0: ct * minigrad.cos(x0).detach(),))
    assert gradcheck(f, leaf(2))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(f, leaf(2))


def test_a_backward_that_forgets_its_cotangent_is_found():
    with pytest.raises(GradcheckError, match=r"Jacobian mismatch|not multiplied by grad_output"):
        gradcheck(bad(vjp=(lambda ct, x0: minigrad.cos(x0),)), leaf(2))


def test_a_gradient_of_another_size_is_found():
    with pytest.raises(GradcheckError, match="Analytical gradient has incorrect size"):
        gradcheck(bad(vjp=(lambda ct, x0: ct[:1],)), leaf(2))


def test_a_gradient_of_another_dtype_is_found_where_dtypes_are_checked():
    f = bad(vjp=(lambda ct, x0: (ct * minigrad.cos(x0)).to(minigrad.complex128),))
    assert gradcheck(f, leaf(2))
    with pytest.raises(GradcheckError, match="Gradient has dtype mismatch"):
        gradcheck(f, leaf(2), check_grad_dtypes=True)


def test_a_backward_that_differs_from_run_to_run_is_found():
    noise = iter(range(100))
    f = bad(vjp=(lambda ct, x0: ct * minigrad.cos(x0) + 1e-9 * ct * next(noise),))
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(f, leaf(2))
    assert gradcheck(f, leaf(2), nondet_tol=1e-6)


def test_a_wrong_batching_rule_is_found_where_batches_are_checked():
    twisted = row("twisted", lambda xp, x0: x0.copy(), vjp=(lambda ct: twisted(ct),), jvp="linear",
                  batch=lambda op, size, values, bdims, params: (values[0].flip(bdims[0]), bdims[0]))
    assert gradcheck(twisted, leaf(3))
    with pytest.raises(GradcheckError, match=r"vmap over autograd\.grad"):
        gradcheck(twisted, leaf(3), check_batched_grad=True)
    with pytest.raises(GradcheckError, match="vmap over jvp"):
        gradcheck(twisted, leaf(3), check_batched_forward_grad=True)


def test_without_raising_a_failure_is_false():
    assert gradcheck(bad(vjp=(lambda ct, x0: ct * x0,)), leaf(2), raise_exception=False) is False


@LIBRARIES
def test_something_must_require_grad(library):
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        library.autograd.gradcheck(lambda x: x, library.ones(2))


@LIBRARIES
def test_single_precision_is_warned_of(library):
    x = library.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="is not a double precision floating point or complex"):
        library.autograd.gradcheck(lambda x: x * 2, x, eps=1e-2, atol=1e-2)


# ---------------------------------------------------------------- autograd.functional
def ours(value):
    return tuple(map(ours, value)) if isinstance(value, tuple) else minigrad.tensor(value.detach().numpy())


def same(mine, other):
    assert isinstance(mine, tuple) is isinstance(other, tuple)
    if isinstance(other, tuple):
        assert len(mine) == len(other)
        for a, b in zip(mine, other, strict=True):
            same(a, b)
    else:
        assert tuple(mine.shape) == tuple(other.shape)
        torch.testing.assert_close(torch.tensor(mine.tolist(), dtype=other.dtype), other.detach())
        assert mine.requires_grad is other.requires_grad


def by_rows(options):
    """The options without forward mode: torch's gives lists, and a graph that nobody asked for."""
    return {key: value for key, value in options.items() if "strategy" not in key}


def randn(*shape):
    return torch.randn(*shape, dtype=torch.float64)


FUNCTIONS = {
    "one to one": (lambda x: x.sin() * x.sum(), lambda: (randn(2, 3),)),
    "two to one": (lambda x, y: x.sin() * y, lambda: (randn(3), randn(3))),
    "one to two": (lambda x: (x ** 2, x.sum()), lambda: (randn(3),)),
    "two to two": (lambda x, y: (x * y.sum(), (x * 1).detach() * 2), lambda: (randn(2), randn(3))),
}


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"vectorize": True},
                                     {"vectorize": True, "strategy": "forward-mode"}], ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_jacobians_are_torchs(name, options):
    torch.manual_seed(0)
    f, make = FUNCTIONS[name]
    inputs = make()
    given = inputs if len(inputs) > 1 else inputs[0]
    same(functional.jacobian(f, ours(given), **options), torch.autograd.functional.jacobian(f, given, **by_rows(options)))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_products_with_the_jacobian_are_torchs(name, create_graph):
    torch.manual_seed(0)
    f, make = FUNCTIONS[name]
    inputs = make()
    given = inputs if len(inputs) > 1 else inputs[0]
    like = f(*inputs)
    v = tuple(map(torch.randn_like, like)) if isinstance(like, tuple) else torch.randn_like(like)
    u = tuple(map(torch.randn_like, inputs)) if len(inputs) > 1 else torch.randn_like(given)
    same(functional.vjp(f, ours(given), ours(v), create_graph), torch.autograd.functional.vjp(f, given, v, create_graph))
    same(functional.jvp(f, ours(given), ours(u), create_graph), torch.autograd.functional.jvp(f, given, u, create_graph))


SCALARS = {
    "one": (lambda x: (x.sin() ** 2).sum(), lambda: (randn(2, 2),)),
    "two": (lambda x, y: (x.sin() * y ** 3).sum(), lambda: (randn(3), randn(3))),
    "linear in one": (lambda x, y: (x * 2).sum() + (y ** 2).sum(), lambda: (randn(3), randn(2))),
}


@pytest.mark.parametrize("options", [{}, {"create_graph": True}, {"vectorize": True},
                                     {"vectorize": True, "outer_jacobian_strategy": "forward-mode"}], ids=str)
@pytest.mark.parametrize("name", SCALARS)
def test_hessians_are_torchs(name, options):
    torch.manual_seed(0)
    f, make = SCALARS[name]
    inputs = make()
    given = inputs if len(inputs) > 1 else inputs[0]
    same(functional.hessian(f, ours(given), **options), torch.autograd.functional.hessian(f, given, **by_rows(options)))


@pytest.mark.parametrize("product", ["hvp", "vhp"])
@pytest.mark.parametrize("name", SCALARS)
def test_products_with_the_hessian_are_torchs(name, product):
    torch.manual_seed(0)
    f, make = SCALARS[name]
    inputs = make()
    given = inputs if len(inputs) > 1 else inputs[0]
    v = tuple(map(torch.randn_like, inputs)) if len(inputs) > 1 else torch.randn_like(given)
    same(getattr(functional, product)(f, ours(given), ours(v)), getattr(torch.autograd.functional, product)(f, given, v))


@LIBRARIES
def test_with_create_graph_results_reach_the_inputs(library):
    x = library.tensor([1.0, 2.0], requires_grad=True)
    library.autograd.functional.jacobian(lambda t: t ** 3, x, create_graph=True).sum().backward()
    assert x.grad.tolist() == [6, 12]


@LIBRARIES
@pytest.mark.parametrize(("call", "text"), [
    (lambda lib, A: A.jacobian(lambda x: lib.ones(2), lib.ones(2), strict=True), "Output 0 .* does not require gradients"),
    (lambda lib, A: A.jacobian(lambda x, y: x * 2, (lib.ones(2), lib.ones(2)), strict=True), "is independent of input 1"),
    (lambda lib, A: A.vjp(lambda x: x * 2, lib.ones(2)), "The vector v can only be None"),
    (lambda lib, A: A.vjp(lambda x: x * 2, lib.ones(2), lib.ones(3)), "v has invalid size"),
    (lambda lib, A: A.vjp(lambda x: (x, x), lib.ones(2), lib.ones(2)), "v is a tuple of invalid length: should be 2 but got 1"),
    (lambda lib, A: A.hessian(lambda x: x * 2, lib.ones(2)), "should return a single Tensor with a single element|should contain"),
    (lambda lib, A: A.vhp(lambda x: (x.sum(), x.sum()), lib.ones(2), lib.ones(2)), "should return a single Tensor"),
    (lambda lib, A: A.jacobian(lambda x: x, lib.ones(2), strict=True, vectorize=True), "not supported together"),
])
def test_calls_that_make_no_sense_are_runtime_errors(library, call, text):
    with pytest.raises(RuntimeError, match=text):
        call(library, library.autograd.functional)


@LIBRARIES
def test_what_is_no_tensor_is_a_type_error(library):
    with pytest.raises(TypeError, match="The inputs given to jacobian must be either a Tensor or a tuple of Tensors"):
        library.autograd.functional.jacobian(lambda x: x, 3)
    with pytest.raises(TypeError, match="The outputs of the user-provided function given to vjp must be"):
        library.autograd.functional.vjp(lambda x: 3, library.ones(1))


@LIBRARIES
def test_forward_mode_needs_vectorize_and_makes_no_graph(library):
    x = library.ones(1)
    for options in ({}, {"create_graph": True, "vectorize": True}):
        with pytest.raises(NotImplementedError):
            library.autograd.functional.jacobian(lambda x: x, x, strategy="forward-mode", **options)


def test_a_variable_is_a_tensor():
    assert isinstance(minigrad.ones(1), minigrad.autograd.Variable)
