"""minigrad/func.py: arguments, structures and errors; what the transforms compute is in spec and differential."""

import pytest
import torch

import minigrad as mg
from minigrad import func
from minigrad.errors import Refusal, UsageError


@pytest.fixture
def x(device):
    return mg.tensor([1.0, 2.0, 3.0], device=device)


def test_a_transformed_function_keeps_its_name():
    def f(x):
        """Say it."""
    assert [g.__name__ for g in (func.grad(f), func.vmap(f), func.jacrev(f), func.grad_and_value(f))] == ["f"] * 4


def test_gradients_have_the_structure_of_the_argument(x):
    g = func.grad(lambda d: (d["a"] * d["b"][0]).sum())({"a": x, "b": [x * 2]})
    assert (g["a"].tolist(), g["b"][0].tolist()) == ([2.0, 4.0, 6.0], [1.0, 2.0, 3.0])


def test_argnums_choose_arguments(x):
    assert isinstance(func.grad(lambda a, b: (a * b).sum(), 1)(x, x), mg.Tensor)
    assert len(func.grad(lambda a, b: (a * b).sum(), (0, 1))(x, x)) == 2


@pytest.mark.parametrize(("argnums", "words"), [
    (2, "Got argnum=2, but only 2 positional inputs"), ((0, -3), "Got argnum=-3"), ((0, 0), "must be unique"),
    ((0, -2), "must be unique"), ((), "must be non-empty"), ([0], "int or Tuple"), (0.0, "int or Tuple"), (("0",), "must be int")])
def test_argnums_must_name_distinct_arguments(x, argnums, words):
    with pytest.raises(UsageError, match=words):
        func.grad(lambda a, b: (a * b).sum(), argnums)(x, x)


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd])
def test_a_jacobian_is_one_of_real_numbers(x, transform):
    with pytest.raises(UsageError, match="Expected all inputs to be real"):
        transform(lambda a: a.conj())(x.to(mg.complex64))
    with pytest.raises(UsageError, match="Expected all outputs to be real"):
        transform(lambda a: a * 1j)(x)


@pytest.mark.parametrize("transform", [func.jacrev, func.jacfwd, lambda f: lambda x: func.vjp(f, x)])
@pytest.mark.parametrize(("output", "words"), [(None, "has non-empty output"), ((), "has non-empty output"),
                                               (1.0, "to return only tensors")])
def test_an_output_is_made_of_tensors(x, transform, output, words):
    with pytest.raises(UsageError, match=words):
        transform(lambda a: output)(x)


def test_a_jacobian_by_single_rows_is_a_loop(x):
    def f(a):
        return Gathered.apply(a)

    class Gathered(mg.autograd.Function):
        forward = staticmethod(lambda a: a * 2)
        setup_context = staticmethod(lambda ctx, inputs, output: None)
        backward = staticmethod(lambda ctx, g: g + g[g != 0].sum() * 0 + g)
        generate_vmap_rule = True

    assert func.jacrev(f, chunk_size=1)(x).tolist() == (2 * mg.eye(3)).tolist()
    with pytest.raises(Refusal):
        func.jacrev(f)(x)


def test_an_argument_that_is_not_used_has_gradient_zero(x):
    assert func.grad(lambda a, b: a.sum(), 1)(x, x).tolist() == [0.0, 0.0, 0.0]
    assert func.grad(lambda a: mg.zeros(()))(x).tolist() == [0.0, 0.0, 0.0]


def test_keyword_arguments_go_through(x):
    assert func.grad(lambda a, *, k: (a * k).sum())(x, k=3).tolist() == [3.0, 3.0, 3.0]


def test_what_is_no_tensor_cannot_be_differentiated():
    with pytest.raises(UsageError, match="got unsupported type float"):
        func.grad(lambda a: a)(1.0)


def test_has_aux_needs_a_pair(x):
    with pytest.raises(UsageError, match="should be a tuple"):
        func.grad(lambda a: a.sum(), has_aux=True)(x)


def test_aux_comes_out_of_the_level(x):
    _, aux = func.grad(lambda a: (a.sum(), {"k": a * 2}), has_aux=True)(x)
    assert aux["k"].owner is None


@pytest.mark.parametrize("transform", [
    lambda f, x: func.grad(f, has_aux=True)(x), lambda f, x: func.vjp(f, x, has_aux=True),
    lambda f, x: func.jvp(f, (x,), (x,), has_aux=True), lambda f, x: func.jacrev(f, has_aux=True)(x),
    lambda f, x: func.jacfwd(f, has_aux=True)(x)], ids=["grad", "vjp", "jvp", "jacrev", "jacfwd"])
def test_aux_is_made_of_tensors(transform, x):
    with pytest.raises(UsageError, match="Expected tensors, got unsupported type int"):
        transform(lambda a: (a.sum(), {"k": a * 2, "n": 3}), x)


def test_the_function_of_vjp_checks_structure_and_shape(x):
    _, pull = func.vjp(lambda a: (a, a.sum()), x)
    with pytest.raises(UsageError, match="pytree structure of cotangents"):
        pull((x,))
    with pytest.raises(UsageError, match="a cotangent of shape"):
        pull((x, x))


@pytest.mark.parametrize("given", [1.0, "s"])
def test_the_function_of_vjp_takes_tensors_or_none(x, given):
    _, pull = func.vjp(mg.sin, x)
    with pytest.raises(TypeError, match=f"gradients can be either Tensors or None, but got {type(given).__name__}"):
        pull(given)


def test_none_is_the_cotangent_1_of_a_scalar_alone(x):
    _, pull = func.vjp(lambda a: (a.sum(), a), x)
    assert pull((None, mg.zeros_like(x)))[0].tolist() == [1.0, 1.0, 1.0]
    with pytest.raises(UsageError, match=r"only for scalar outputs, and this one has shape \[3\]"):
        pull((None, None))


def test_an_output_that_depends_on_nothing_needs_no_cotangent(x):
    _, pull = func.vjp(lambda a: (a.sum(), mg.ones(2)), x)
    assert pull((None, None))[0].tolist() == [1.0, 1.0, 1.0]


def test_a_complex_cotangent_of_a_real_output_is_refused(x):
    _, pull = func.vjp(mg.sin, x)
    with pytest.raises(UsageError, match="both grad_output and output are required to have the same dtype"):
        pull(x.to(mg.complex64))


@pytest.mark.parametrize("given", [1.0, None])
def test_the_function_of_linearize_takes_tensors(x, given):
    _, push = func.linearize(mg.sin, x)
    with pytest.raises(UsageError, match=f"tangents: Expected tensors, got unsupported type {type(given).__name__}"):
        push(given)


def second(create_graph, lib):
    """The derivative of x * sin'(x), where the vjp function is told."""
    def slope(x):
        _, pull = lib.func.vjp(lib.sin, x)
        return x * pull(lib.tensor(1.0), create_graph=create_graph)[0]
    return lib.func.grad(slope)(lib.tensor(0.5)).item()


def recorded(create_graph, mode, lib):
    """Whether cotangents from the vjp function have a graph of level 0, under a grad mode."""
    _, pull = lib.func.vjp(lib.sin, lib.ones(3, requires_grad=True))
    with lib.set_grad_enabled(mode):
        return pull(lib.ones(3), create_graph=create_graph)[0].requires_grad


@pytest.mark.parametrize("create_graph", [None, True, False])
def test_the_function_of_vjp_records_for_levels_below_as_it_is_told(create_graph):
    assert second(create_graph, mg) == pytest.approx(second(create_graph, torch), rel=1e-6)


@pytest.mark.parametrize("mode", [True, False])
@pytest.mark.parametrize("create_graph", [None, True, False])
def test_the_function_of_vjp_records_at_level_0_as_it_is_told(create_graph, mode):
    assert recorded(create_graph, mode, mg) is recorded(create_graph, mode, torch)


def test_tangents_must_be_like_the_primals(x):
    with pytest.raises(UsageError, match="same python structure"):
        func.jvp(lambda a: a, (x,), ((x,),))
    with pytest.raises(UsageError, match="a tangent of shape"):
        func.jvp(lambda a: a, (x,), (x[:1],))


def test_a_strict_jvp_refuses_a_constant(x):
    with pytest.raises(UsageError, match="independent of the inputs"):
        func.jvp(lambda a: mg.ones(2), (x,), (x,), strict=True)


def test_a_constant_has_tangent_zero(x):
    assert func.jvp(lambda a: mg.ones(2), (x,), (x,))[1].tolist() == [0.0, 0.0]


@pytest.mark.parametrize("chunk_size", [1, 2, 3, 7])
def test_chunks_change_nothing(x, chunk_size):
    assert func.vmap(lambda a: a * 2, chunk_size=chunk_size)(x).tolist() == [2.0, 4.0, 6.0]


def test_a_chunk_size_is_positive(x):
    with pytest.raises(ValueError, match="chunk_size should be None or greater than 0"):
        func.vmap(lambda a: a, chunk_size=0)(x)


def test_in_dims_may_be_negative(x):
    assert func.vmap(lambda a: a * 2, in_dims=-1)(x).tolist() == [2.0, 4.0, 6.0]


def test_out_dims_none_is_for_what_is_no_batch(x):
    assert func.vmap(lambda a: mg.ones(()), out_dims=None)(x).shape == ()
    with pytest.raises(ValueError, match="can not return a BatchedTensor when out_dim is None"):
        func.vmap(lambda a: a, out_dims=None)(x)


def test_jacobians_of_pairs_are_nests(x):
    j = func.jacrev(lambda a, b: (a * b, a.sum()), (0, 1))(x, x)
    assert [[m.shape for m in row] for row in j] == [[(3, 3), (3, 3)], [(3,), (3,)]]


def test_jacrev_and_jacfwd_agree_on_scalars():
    x = mg.tensor(2.0)
    assert func.jacrev(lambda a: a ** 3)(x).tolist() == func.jacfwd(lambda a: a ** 3)(x).tolist() == 12.0


def test_linearize_checks_its_tangents(x):
    _, push = func.linearize(lambda a: a * 2, x)
    with pytest.raises(UsageError, match="Expected a tangent of shape"):
        push(x[:1])


def test_results_of_a_level_come_out_without_its_wrapper(x):
    y, pull = func.vjp(lambda a: a.sin(), x)
    assert (y.owner, pull(x)[0].owner) == (None, None)
