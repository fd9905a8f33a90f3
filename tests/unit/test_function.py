"""autograd.Function against torch: what a program gets from either, in both styles and under every transform."""

from __future__ import annotations

import pytest
import torch

import minigrad as mg
from minigrad.errors import Refusal, UsageError

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning:torch"),
              pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")]  # which torch.func.jvp loads

LIBRARIES = [mg, torch]


def t(lib, data, **options):
    return lib.tensor(data, dtype=lib.float64, **options)


def plain(x):
    if isinstance(x, (tuple, list)):
        return [plain(y) for y in x]
    return x.tolist() if isinstance(x, (mg.Tensor, torch.Tensor)) else x


def flat(x):
    return [z for y in x for z in flat(y)] if isinstance(x, list) else [x]


def agree(program):
    """Both libraries give the same numbers and structure."""
    got, want = plain(program(mg)), plain(program(torch))
    assert flat(got) == pytest.approx(flat(want), rel=1e-10), (got, want)
    return got


def outcome(program, lib):
    try:
        return plain(program(lib))
    except Exception as error:  # noqa: BLE001
        return type(error) if lib is torch else next(k for k in type(error).__mro__ if not k.__module__.startswith("minigrad"))


def same_outcome(program):
    got, want = outcome(program, mg), outcome(program, torch)
    assert got == want or flat(got) == pytest.approx(flat(want)), (got, want)


# ---------------------------------------------------------------- the functions of the tests
def function(lib, name, **methods):
    """A Function of either library."""
    options = {k: v for k, v in methods.items() if not callable(v)}
    return type(name, (lib.autograd.Function,), options | {k: staticmethod(v) for k, v in methods.items() if callable(v)})


def cube(lib):
    """The cube, in the combined style, saving its input."""
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * 3 * x * x
    return function(lib, "Cube", forward=forward, backward=backward)


def product(lib, **options):
    """x times y to the power n, with rules for everything, generated under vmap."""
    def setup_context(ctx, inputs, output):
        x, y, n = inputs
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, y)
        ctx.n = n

    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return (g * y**ctx.n if ctx.needs_input_grad[0] else None,
                g * x * ctx.n * y**(ctx.n - 1) if ctx.needs_input_grad[1] else None, None)

    def jvp(ctx, dx, dy, _):
        x, y = ctx.saved_tensors
        return dx * y**ctx.n + dy * x * ctx.n * y**(ctx.n - 1)
    return function(lib, "Product", forward=lambda x, y, n: x * y**n, setup_context=setup_context, backward=backward, jvp=jvp,
                    **{"generate_vmap_rule": True, **options})


def exponential(lib):
    """exp, saving its output."""
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)
        ctx.save_for_forward(output)
    return function(lib, "Exponential", generate_vmap_rule=True, forward=lambda x: x.exp(), setup_context=setup_context,
                    backward=lambda ctx, g: g * ctx.saved_tensors[0], jvp=lambda ctx, d: d * ctx.saved_tensors[0])


def sums(lib):
    """(x.sum(), x * y summed over y's broadcast): outputs of different shapes, y the same for every sample."""
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g.expand(x.shape) + h * y, h * x

    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        return dx.sum(), dx * y + x * dy
    return function(lib, "Sums", generate_vmap_rule=True, forward=lambda x, y: (x.sum(), x * y), setup_context=setup_context,
                    backward=backward, jvp=jvp)


# ---------------------------------------------------------------- level 0
def test_both_styles_and_a_double_backward():
    def program(lib):
        x = t(lib, [1.0, 2.0], requires_grad=True)
        found = []
        for f in (cube(lib).apply, lambda x: product(lib).apply(x, x, 2), exponential(lib).apply):
            g, = lib.autograd.grad(f(x).sum(), x, create_graph=True)
            h, = lib.autograd.grad((g * x).sum(), x, create_graph=True)
            k, = lib.autograd.grad(h.sum(), x)
            found += [g, h, k]
        return found
    agree(program)


def test_the_node_is_the_functions():
    for lib in LIBRARIES:
        x = t(lib, 2.0, requires_grad=True)
        y = cube(lib).apply(x)
        assert y.grad_fn.name() == "CubeBackward"
        assert len(y.grad_fn.next_functions) == 1
        assert y.grad_fn.next_functions[0][0].variable is x
        assert y.grad_fn.saved_tensors[0].item() == 2.0
        seen = []
        y.grad_fn.register_prehook(lambda g, seen=seen: seen.append(g[0].item()))
        y.grad_fn.register_hook(lambda out, _, seen=seen: seen.append(out[0].item()))
        y.backward()
        assert seen == [1.0, 12.0]
        assert x.grad.item() == 12.0
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()


def test_defaults_and_keywords_are_inputs_of_setup_context():
    def program(lib):
        def setup_context(ctx, inputs, output):
            ctx.k = inputs[1]
        f = function(lib, "Scaled", forward=lambda x, k=3: x * k, setup_context=setup_context,
                     backward=lambda ctx, g: (g * ctx.k, None))
        x = t(lib, 2.0, requires_grad=True)
        return [lib.autograd.grad(f.apply(x, *args, **kwargs), x)[0] for args, kwargs in (((), {}), ((5,), {}), ((), {"k": 7}))]
    agree(program)


def test_needs_input_grad_and_none_gradients():
    def program(lib):
        seen = []

        def backward(ctx, g):
            seen.append(list(ctx.needs_input_grad))
            return g, None, None
        f = function(lib, "F", forward=lambda ctx, x, y, k: x * 1, backward=backward)
        x, y = t(lib, 1.0, requires_grad=True), t(lib, 2.0, requires_grad=True)
        f.apply(x, y, 3).backward()
        return [x.grad, y.grad is None, seen]
    agree(program)


@pytest.mark.parametrize(("returned", "args"), [
    (lambda g: g, 2), (lambda g: (g, g, g), 2), (lambda g: (g, g, None), 2), (lambda g: (g, g), "number"), (lambda g: 3.0, 1),
    (lambda g: [g], 1), (lambda g: g.expand(3, 2), 1), (lambda g: g.to(g.dtype).reshape(1, 1), 1), (lambda g: None, 1)])
def test_what_backward_may_return(returned, args):
    def program(lib):
        x = t(lib, 2.0, requires_grad=True)
        more = {1: (), 2: (t(lib, 3.0, requires_grad=True),), "number": (3.0,)}[args]
        f = function(lib, "F", forward=lambda ctx, x, *more: x * 2, backward=lambda ctx, g: returned(g))
        return lib.autograd.grad(f.apply(x, *more), x)[0]
    same_outcome(program)


@pytest.mark.parametrize(("returned", "says"), [
    (lambda g: (g, g), r"function FBackward returned an incorrect number of gradients \(expected 1, got 2\)"),
    (lambda g: 3.0, r"expected Variable or None \(got float\)"),
    (lambda g: g.expand(5, 3).sum(1), r"Function FBackward returned an invalid gradient at index 0 - got \[5\] but expected shape"),
])
def test_the_errors_are_torchs_words(returned, says):
    for lib in LIBRARIES:
        x = t(lib, [1.0, 2.0, 3.0], requires_grad=True)
        f = function(lib, "F", forward=lambda ctx, x: x * 2, backward=lambda ctx, g, lib=lib: returned(g))
        with pytest.raises(RuntimeError, match=says):
            f.apply(x).sum().backward()


def test_missing_gradients_are_zeros_or_none():
    def program(lib):
        seen = []

        def make(materialize):
            def forward(ctx, x):
                ctx.set_materialize_grads(materialize)
                return x * 2, x.sum(), (x > 0), 3

            def backward(ctx, *gs):
                seen.append([None if g is None else g.tolist() for g in gs])
                return gs[0]
            return function(lib, "F", forward=forward, backward=backward)
        x = t(lib, [1.0, -2.0], requires_grad=True)
        for materialize in (True, False):
            out = make(materialize).apply(x)
            seen.append([isinstance(y, int) or y.requires_grad for y in out])
            out[0].sum().backward()
        return x.grad, [str(s) for s in seen]
    got, want = plain(program(mg)), plain(program(torch))
    assert got[0] == want[0]
    assert [s.replace("False", "0.0") for s in got[1]] == [s.replace("False", "0.0") for s in want[1]]


def test_mark_non_differentiable():
    def program(lib):
        def forward(ctx, x):
            y, index = x * 2, x * 3
            ctx.mark_non_differentiable(index)
            return y, index
        f = function(lib, "F", forward=forward, backward=lambda ctx, g, h: g * 2 + h)
        x = t(lib, 2.0, requires_grad=True)
        y, z = f.apply(x)
        y.backward()
        return x.grad, z.requires_grad, y.requires_grad
    agree(program)


def doubling(lib, **more):
    def forward(x):
        x.mul_(2)
        return x

    def setup_context(ctx, inputs, output):
        ctx.mark_dirty(inputs[0])
    return function(lib, "Doubling", forward=forward, setup_context=setup_context, backward=lambda ctx, g: g * 2,
                    jvp=lambda ctx, d: d.mul_(2), **more)


def test_mark_dirty_gives_the_input_its_new_edge():
    def program(lib):
        x = t(lib, [1.0, 2.0], requires_grad=True)
        y = x * x
        z = doubling(lib).apply(y)
        assert z is y
        assert y.grad_fn.name() == "DoublingBackward"
        (y * y).sum().backward()
        return x.grad, y
    agree(program)


def test_mark_dirty_of_a_view():
    def program(lib):
        x = t(lib, [1.0, 2.0, 3.0], requires_grad=True)
        y = x * x
        doubling(lib).apply(y[1:])
        (y * y).sum().backward()
        return x.grad, y
    agree(program)


@pytest.mark.parametrize("nesting", ["grad", "vmap", "vmap grad", "grad grad", "jacrev jacrev", "jvp", "hessian", "grad vmap"])
def test_mark_dirty_under_transforms(nesting):
    """The oracle is the program of ops: torch refuses dirty inputs in a generated vmap rule."""
    def dirty(x):
        y = x * x
        z = doubling(mg, generate_vmap_rule=True).apply(y)
        assert z is y
        return y * z * x

    data = [[0.3, 0.8], [-0.4, 0.5]]
    got = plain(nestings(mg)[nesting](dirty, t(mg, data)))
    want = plain(nestings(torch)[nesting](lambda x: 4 * x**5, t(torch, data)))
    assert flat(got) == pytest.approx(flat(want), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("case", ["leaf", "view of a leaf", "not returned"])
def test_what_may_not_be_dirty(case):
    def program(lib):
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x * 1 if case == "not returned" else x
        f = function(lib, "F", forward=forward, backward=lambda ctx, g: g)
        x = t(lib, [1.0, 2.0], requires_grad=True)
        return f.apply(x if case == "leaf" else x[:1] if case == "view of a leaf" else x * 1)
    assert outcome(program, mg) is outcome(program, torch) is RuntimeError


@pytest.mark.parametrize("returned", [lambda x: x, lambda x: x.reshape(2, 1), lambda x: x[:1]])
def test_an_input_returned_as_it_is_or_as_a_view(returned):
    """Forward is the identity to some, backward is not: three times what the identity would give."""
    def program(lib):
        f = function(lib, "F", forward=lambda ctx, x: returned(x),
                     backward=lambda ctx, g: (g.sum() * 3).expand(2))
        x = t(lib, [1.0, 2.0], requires_grad=True)
        y = x * 1
        z = f.apply(y)
        assert z is not y
        z.sum().backward()
        return x.grad, z

    def changed(lib):
        f = function(lib, "F", forward=lambda ctx, x: returned(x), backward=lambda ctx, g: g)
        z = f.apply(t(lib, [1.0, 2.0], requires_grad=True) * 1)
        z.mul_(2)
        return z
    agree(program)
    for lib in LIBRARIES:
        with pytest.raises(RuntimeError, match="This view was created inside a custom Function"):
            changed(lib)


def test_nothing_is_recorded_in_forward_nor_without_need():
    def program(lib):
        seen = []

        def forward(ctx, x):
            seen.extend([(x * 2).requires_grad, lib.is_grad_enabled()])
            ctx.save_for_backward(x)
            return x * 2
        f = function(lib, "F", forward=forward, backward=lambda ctx, g: g)
        x = t(lib, 1.0, requires_grad=True)
        with lib.no_grad():
            seen.append(f.apply(x).requires_grad)
        seen.append(f.apply(x).requires_grad)
        seen.append(f.apply(t(lib, 1.0)).requires_grad)
        return seen
    agree(program)


def test_a_backward_that_runs_a_graph_of_its_own():
    """What a reentrant checkpoint is made of."""
    def program(lib):
        w = t(lib, 3.0, requires_grad=True)

        def forward(ctx, x):
            ctx.save_for_backward(x)
            return (x * w).sin()

        def backward(ctx, g):
            x = ctx.saved_tensors[0].detach()
            x.requires_grad_(ctx.saved_tensors[0].requires_grad)
            with lib.enable_grad():
                y = (x * w).sin()
            lib.autograd.backward(y, g)
            return x.grad
        x = t(lib, 0.5, requires_grad=True)
        function(lib, "Again", forward=forward, backward=backward).apply(x * 2).backward()
        return x.grad, w.grad
    agree(program)


# ---------------------------------------------------------------- every transform
def nestings(lib):
    grad, vjp, jvp, vmap, jacrev, jacfwd, hessian = (getattr(lib.func, n) for n in (
        "grad", "vjp", "jvp", "vmap", "jacrev", "jacfwd", "hessian"))
    return {
        "grad": lambda f, x: grad(lambda x: f(x).sum())(x),
        "grad grad": lambda f, x: grad(lambda x: grad(lambda x: f(x).sum())(x).pow(2).sum())(x),
        "grad grad grad": lambda f, x: grad(lambda x: grad(lambda x: grad(lambda x: f(x).sum())(x).sum())(x).pow(2).sum())(x),
        "vjp": lambda f, x: vjp(f, x)[1](x.cos())[0],
        "vjp vjp": lambda f, x: vjp(lambda x: vjp(f, x)[1](x.cos())[0], x)[1](x.sin())[0],
        "jvp": lambda f, x: jvp(f, (x,), (x.cos(),))[1],
        "jvp grad": lambda f, x: jvp(grad(lambda x: f(x).sum()), (x,), (x.cos(),))[1],
        "grad jvp": lambda f, x: grad(lambda x: jvp(f, (x,), (x.cos(),))[1].sum())(x),
        "vmap": lambda f, x: vmap(f)(x),
        "vmap grad": lambda f, x: vmap(grad(lambda x: f(x).sum()))(x),
        "grad vmap": lambda f, x: grad(lambda x: vmap(f)(x).pow(2).sum())(x),
        "vmap vmap": lambda f, x: vmap(vmap(f), in_dims=1, out_dims=1)(x),
        "vmap jvp": lambda f, x: vmap(lambda x: jvp(f, (x,), (x.cos(),))[1])(x),
        "jvp vmap": lambda f, x: jvp(vmap(f), (x,), (x.cos(),))[1],
        "jacrev": lambda f, x: jacrev(f)(x),
        "jacfwd": lambda f, x: jacfwd(f)(x),
        "hessian": lambda f, x: hessian(lambda x: f(x).sum())(x),
        "jacrev jacrev": lambda f, x: jacrev(jacrev(f))(x),
        "vmap grad grad": lambda f, x: vmap(grad(lambda x: grad(lambda x: f(x).sum())(x).pow(2).sum()))(x),
        "grad vmap grad": lambda f, x: grad(lambda x: vmap(grad(lambda x: f(x).sum()))(x).pow(2).sum())(x),
        "vmap of vjp": lambda f, x: vmap(lambda c: vjp(f, x)[1](c)[0])(lib.stack([x.sin(), x.cos()])),
    }


def weighted(a, y, z):
    return y * a + z


NAMES = list(nestings(mg))
BODIES = {
    "product": lambda lib: lambda x: product(lib).apply(x.sin(), x, 3) * x,
    "product by one tensor": lambda lib: lambda x: product(lib).apply(t(lib, 2.0), x.exp(), 2),
    "exponential": lambda lib: lambda x: exponential(lib).apply(x * x),
    "sums": lambda lib: lambda x: weighted(x, *sums(lib).apply(x.sin(), x)),
    "sums, y broadcast": lambda lib: lambda x: weighted(1, *sums(lib).apply(x, t(lib, 0.7))),
    "twice": lambda lib: lambda x: exponential(lib).apply(product(lib).apply(x, x, 2)),
}


@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("nesting", NAMES)
def test_transforms_agree_with_the_program_of_ops(nesting, body):
    """torch's value of the program without Function is the oracle: its own, nested in forward mode, may be wrong."""
    plain_bodies = {
        "product": lambda lib: lambda x: x.sin() * x**3 * x,
        "product by one tensor": lambda lib: lambda x: t(lib, 2.0) * x.exp()**2,
        "exponential": lambda lib: lambda x: (x * x).exp(),
        "sums": lambda lib: lambda x: x.sin().sum() * x + x.sin() * x,
        "sums, y broadcast": lambda lib: lambda x: x.sum() + x * t(lib, 0.7),
        "twice": lambda lib: lambda x: (x * x**2).exp(),
    }
    data = [[0.3, 0.8], [-0.4, 0.5]]
    got = plain(nestings(mg)[nesting](BODIES[body](mg), t(mg, data)))
    want = plain(nestings(torch)[nesting](plain_bodies[body](torch), t(torch, data)))
    assert flat(got) == pytest.approx(flat(want), rel=1e-9, abs=1e-12)


def test_jvp_of_jvp():
    """1: of x^3, d/dx and d2/dx2.  torch gives 0 for the second, pytorch#197867."""
    x = t(mg, 2.0)
    f = lambda x: product(mg).apply(x, x, 2)
    first = lambda x: mg.func.jvp(f, (x,), (t(mg, 1.0),))[1]
    assert [first(x).item(), mg.func.jvp(first, (x,), (t(mg, 1.0),))[1].item()] == [12.0, 12.0]


def test_closures_of_other_levels_and_of_level_zero():
    """An outer level's tensor as an argument is a constant to the inner level and none to the outer."""
    def program(lib):
        def outer(w):
            return lib.func.grad(lambda x: product(lib).apply(x, w, 2))(t(lib, 3.0)) * w
        return [lib.func.grad(outer)(t(lib, 2.0)), lib.func.vmap(outer)(t(lib, [1.0, 2.0])),
                lib.func.jacfwd(outer)(t(lib, 2.0)), lib.func.grad(lambda w: lib.func.vmap(
                    lambda x: product(lib).apply(x, w, 2))(t(lib, [1.0, 2.0])).sum())(t(lib, 2.0))]
    agree(program)


def test_a_level_zero_graph_through_transforms():
    def program(lib):
        w = t(lib, 2.0, requires_grad=True)
        y = lib.func.vmap(lambda x: product(lib).apply(x, w, 2))(t(lib, [1.0, 2.0]))
        z = lib.func.grad(lambda x: product(lib).apply(x, w, 2).sum())(t(lib, [1.0, 2.0]))
        g, = lib.autograd.grad(y.sum() + z.sum(), w, create_graph=True)
        return g, lib.autograd.grad(g, w)[0]
    agree(program)


def vmapped(lib, rule, **more):
    return function(lib, "Ruled", forward=lambda x, y: x * y, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs),
                    backward=lambda ctx, g: (g * ctx.saved_tensors[1], g * ctx.saved_tensors[0]), vmap=rule, **more)


def test_the_vmap_staticmethod():
    def program(lib):
        seen = []

        def rule(info, in_dims, x, y):
            seen.append([info.batch_size, info.randomness, list(in_dims), list(x.shape)])
            x = x if in_dims[0] is None else x.movedim(in_dims[0], 0)
            y = y if in_dims[1] is None else y.movedim(in_dims[1], 0)
            return vmapped(lib, rule).apply(x, y), 0
        f = vmapped(lib, rule).apply
        x = t(lib, [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        found = [lib.func.vmap(f, in_dims=(1, None), randomness="same")(x, t(lib, [1.0, 2.0])), lib.func.vmap(f)(x, x),
                 lib.func.vmap(lib.func.vmap(f), in_dims=(1, 1))(x, x),
                 lib.func.grad(lambda x: lib.func.vmap(f)(x, x).sum())(x),
                 lib.func.vmap(lib.func.grad(lambda x, y: f(x, y).sum()))(x, x)]
        return found, [str(s) for s in seen]
    got, want = plain(program(mg)), plain(program(torch))
    assert flat(got[0]) == pytest.approx(flat(want[0]))
    assert got[1] == want[1]


@pytest.mark.parametrize("case", ["none", "both", "no tuple", "three", "no batch", "structure"])
def test_what_a_vmap_staticmethod_may_be(case):
    rules = {"no tuple": lambda info, d, x, y: x * y, "three": lambda info, d, x, y: (x * y, 0, 0),
             "no batch": lambda info, d, x, y: (x.sum(), None), "structure": lambda info, d, x, y: (x * y, (0, 0)),
             "both": lambda info, d, x, y: (x * y, 0)}

    def program(lib):
        if case == "none":
            f = function(lib, "F", forward=lambda x, y: x * y, setup_context=lambda *a: None).apply
        else:
            f = vmapped(lib, rules[case], **({"generate_vmap_rule": True} if case == "both" else {})).apply
        x = t(lib, [1.0, 2.0])
        return lib.func.vmap(f)(x, x)
    same_outcome(program)


def test_random_numbers_in_forward_follow_the_level():
    f = function(mg, "Noisy", generate_vmap_rule=True, forward=lambda x: x + mg.rand(()), setup_context=lambda *a: None)
    x = t(mg, [0.0, 0.0])
    a, b = mg.func.vmap(f.apply, randomness="different")(x).tolist()
    assert a != b
    a, b = mg.func.vmap(f.apply, randomness="same")(x).tolist()
    assert a == b
    with pytest.raises(UsageError, match="randomness"):
        mg.func.vmap(f.apply)(x)


def test_the_combined_style_is_refused_under_a_transform():
    for lib in LIBRARIES:
        for transform in (lib.func.grad, lib.func.vmap, lib.func.jacfwd):
            with pytest.raises(RuntimeError, match="it must override the setup_context staticmethod"):
                transform(lambda x, lib=lib: cube(lib).apply(x).sum())(t(lib, [1.0]))
    with pytest.raises(Refusal):
        mg.func.grad(cube(mg).apply)(t(mg, 1.0))
    assert mg.func.vmap(lambda x: x * cube(mg).apply(t(mg, 2.0)))(t(mg, [1.0])).tolist() == [8.0]  # no argument of the level


@pytest.mark.parametrize("transform", ["grad", "vmap", "jvp"])
def test_a_rule_that_is_missing_is_named(transform):
    def program(lib):
        f = function(lib, "F", forward=lambda x: x * 2, setup_context=lambda *a: None).apply
        x = t(lib, [1.0])
        return {"grad": lambda: lib.func.grad(lambda x: f(x).sum())(x), "vmap": lambda: lib.func.vmap(f)(x),
                "jvp": lambda: lib.func.jvp(f, (x,), (x,))}[transform]()
    assert outcome(program, mg) is outcome(program, torch)


def test_jvp_is_given_zeros_or_none():
    def program(lib):
        seen = []

        def make(materialize):
            def jvp(ctx, dx, dy, k):
                seen.append([dy is None or dy.tolist(), k])
                return dx, dx * 5
            return function(lib, "F", forward=lambda x, y, k: (x + y, y * 1), jvp=jvp,
                            setup_context=lambda ctx, inputs, output: ctx.set_materialize_grads(materialize))
        x = t(lib, 2.0)
        for materialize in (True, False):
            out = lib.func.jvp(lambda x, f=make(materialize): f.apply(x, t(lib, 3.0), 4), (x,), (x,))
        return [str(s) for s in seen], out[0][0], out[1][0], out[1][1]
    got, want = program(mg), program(torch)
    assert got[0] == want[0]
    assert plain(got[1:]) == plain(want[1:])


def test_jvp_may_return_none_for_zero():
    f = function(mg, "F", forward=lambda x: (x * 2, x * 3), setup_context=lambda *a: None, jvp=lambda ctx, dx: (dx * 2, None))
    x = t(mg, 2.0)
    assert plain(mg.func.jvp(f.apply, (x,), (x,))) == [[4.0, 6.0], [4.0, 0.0]]


# ---------------------------------------------------------------- once_differentiable
def once(lib):
    from importlib import import_module
    decorate = import_module(f"{lib.__name__}.autograd.function").once_differentiable

    def backward(ctx, g):
        return g * 2 * ctx.saved_tensors[0]

    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)
    return function(lib, "Once", generate_vmap_rule=True, forward=lambda x: x * x, backward=decorate(backward),
                    jvp=lambda ctx, d: d * 2 * ctx.saved_tensors[0], setup_context=setup_context)


def test_once_differentiable_is_right_once():
    def program(lib):
        x = t(lib, 3.0, requires_grad=True)
        once(lib).apply(x).backward()
        return x.grad, lib.func.grad(once(lib).apply)(t(lib, 3.0)), lib.func.vmap(lib.func.grad(once(lib).apply))(t(lib, [3.0]))
    agree(program)


@pytest.mark.parametrize("nesting", ["grad grad", "grad grad grad", "vjp vjp", "vmap grad grad", "grad vmap grad", "jacrev jacrev"])
def test_once_differentiable_raises_where_it_is_differentiated_twice(nesting):
    with pytest.raises(UsageError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        nestings(mg)[nesting](once(mg).apply, t(mg, [[1.0, 2.0]]))


def test_once_differentiable_raises_in_a_double_backward():
    x = t(mg, 3.0, requires_grad=True)
    g, = mg.autograd.grad(once(mg).apply(x) * x, x, create_graph=True)
    with pytest.raises(UsageError, match="once_differentiable"):
        mg.autograd.grad(g, x)


def test_in_forward_over_reverse_a_once_differentiable_backward_carries_tangents():
    x = t(mg, 3.0)
    assert mg.func.jvp(mg.func.grad(once(mg).apply), (x,), (x,))[1].item() == 6.0


def test_gradcheck_takes_functions():
    x = t(mg, [0.5, 1.5], requires_grad=True)
    f = lambda x: product(mg).apply(x, x.sin(), 2)
    assert mg.autograd.gradcheck(f, (x,))
    assert mg.autograd.gradgradcheck(f, (x,))
    assert mg.autograd.gradcheck(exponential(mg).apply, (x,))


def test_one_tensor_given_twice_and_tensors_that_share_memory():
    def program(lib):
        x = t(lib, [1.0, 2.0], requires_grad=True)
        found = []
        for same in (lambda y: y, lambda y: y.view(2), lambda y: y.detach()):
            y = x * 1
            z = same(y)
            g, = lib.autograd.grad(product(lib).apply(y, z, 2).sum(), x, create_graph=True)
            found += [g, lib.autograd.grad((g * x).sum(), x)[0]]
        return found
    agree(program)


def test_gradients_are_cast_and_summed_to_their_inputs():
    def program(lib):
        f = function(lib, "F", forward=lambda ctx, x, y: x * y, backward=lambda ctx, g: (g, g.double()))
        x = lib.tensor([1.0, 2.0], dtype=lib.float32, requires_grad=True)
        y = lib.tensor([3.0], dtype=lib.float32, requires_grad=True)
        f.apply(x, y).sum().backward()
        return x.grad, y.grad, str(y.grad.dtype).split(".")[-1]
    got, want = plain(program(mg)), plain(program(torch))
    assert got == want


def test_a_namedtuple_and_things_that_are_no_tensor_come_back():
    from typing import NamedTuple

    class Pair(NamedTuple):
        y: object
        k: object
    f = function(mg, "F", generate_vmap_rule=True, forward=lambda x: Pair(x * 2, "text"), setup_context=lambda *a: None,
                 backward=lambda ctx, g, _: g * 2)
    x = t(mg, [1.0, 2.0])
    out = mg.func.vmap(lambda x: f.apply(x).y)(x)
    assert out.tolist() == [2.0, 4.0]
    assert mg.func.vmap(mg.func.grad(lambda x: f.apply(x).y))(x).tolist() == [2.0, 2.0]
    assert f.apply(x).k == "text"
    with pytest.raises(UsageError, match="tensors inside of a list"):
        function(mg, "F", forward=lambda ctx, x: [x * 2]).apply(x)
