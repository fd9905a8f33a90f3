"""Bodies, nestings of torch's transforms around them, and the features of the port, to be put anywhere in a nesting."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch.autograd import forward_ad as fwd
from torch.func import functional_call, functionalize, grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from torch.fx.experimental.proxy_tensor import make_fx

from minigrad.upstream import checkpoint, save_on_cpu, saved_tensors_hooks


def T(values):
    return torch.tensor(values, dtype=torch.float64)


X, V = T([0.3, -0.7, 1.1]), T([0.9, 0.4, -0.6])
B = T([[0.3, -0.7, 1.1], [0.8, 0.2, -0.4]])
W1, W2 = T([[0.4, -0.3, 0.2], [0.1, 0.8, -0.5]]).requires_grad_(), T([[0.7, 0.2], [-0.6, 0.3], [0.5, 0.9]]).requires_grad_()
M = T([[0.4, -0.3, 0.2], [0.1, 0.8, -0.5], [0.6, 0.2, 0.9]])
BODIES = {}


def body(f):
    BODIES[f.__name__] = f
    return f


# ---------------------------------------------------------------- bodies: (feature, x) -> y of the shape of x
@body
def sinsin(wrap, x):
    return wrap(lambda x: x.sin().sin())(x)


@body
def outputs_are_saved(wrap, x):
    return wrap(lambda x: torch.exp(torch.tanh(torch.exp(x * 0.3))).reshape(1, -1).sum(0))(x)


@body
def parameters_are_captured(wrap, x):
    return wrap(lambda x: torch.tanh(x @ W1.t()) @ W2.t())(x)


@body
def a_tensor_of_the_level_is_captured(wrap, x):
    c = x.cos()
    return wrap(lambda z: (z * c).sin() * c)(x)


@body
def dropout(wrap, x):
    return wrap(lambda x: F.dropout(x.sin(), 0.5, training=True).sin() + x)(x)


@body
def in_place(wrap, x):
    def f(x):
        y = x * 2
        y.sin_()
        y[1:].mul_(x[1:])
        return y.cos() * x

    return wrap(f)(x)


@body
def pytrees(wrap, x):
    def f(tree, *, scale):
        return {"y": (tree["a"] * scale[0]).sin() * tree["b"][0].cos()}

    return wrap(f)({"a": x, "b": (x.sin(), 3)}, scale=[x.cos()])["y"]


@body
def a_level_of_its_own(wrap, x):
    return wrap(lambda x: vjp(torch.sin, x)[1](x.cos())[0])(x)


@body
def a_gradient_inside(wrap, x):
    def f(x):
        g, = torch.autograd.grad(x.sin().sin().sum(), x, create_graph=True)
        return x.cos() * g

    return wrap(f)(x)


class Sine(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x):
        return x * x.sin()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        return g * (x.sin() + x * x.cos())

    @staticmethod
    def jvp(ctx, t):
        x, = ctx.saved_tensors
        return t * (x.sin() + x * x.cos())


@body
def an_autograd_function(wrap, x):
    return wrap(lambda x: Sine.apply(x.sin()).exp())(x)


class Layer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(3, 3, dtype=torch.float64)

    def forward(self, x, wrap):
        return wrap(lambda x: self.linear(x).sin())(x)


LAYER = Layer()


@body
def an_argument_is_a_swapped_parameter_too(wrap, x):
    return functional_call(LAYER, {"linear.weight": M * x, "linear.bias": x}, (x, wrap))


@body
def one_tensor_is_two_arguments(wrap, x):
    return wrap(lambda a, b, c: a.sin() * b.cos() + c * (1 + (a is b)))(x, x, x.exp())


@body
def softmax(wrap, x):
    return wrap(lambda x: F.softmax(x.unsqueeze(-1) * V, -1).sin().sum(-1))(x)


# ---------------------------------------------------------------- nestings: function -> tensors
def leaf(x):
    return x.clone().requires_grad_()


def total(f):
    return lambda x: f(x).pow(2).sum()


def eager(f, x):
    x = leaf(x)
    return torch.autograd.grad(total(f)(x), x)[0]


def eager_twice(f):
    x = leaf(X)
    g, = torch.autograd.grad(total(f)(x), x, create_graph=True)
    return torch.autograd.grad(g.pow(2).sum(), x)[0]


def many(f, **dims):
    return vmap(f, randomness="different", **dims)


def batched_backward(f):
    x = leaf(X)
    return torch.autograd.grad(f(x), x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)[0]


def a_dual_level_left(f):
    x = leaf(X)
    with fwd.dual_level():
        y = fwd.unpack_dual(f(fwd.make_dual(x, V))).primal
    return torch.autograd.grad(y.pow(2).sum(), x)[0]


def a_dual_level_under_a_gradient(f):
    x = leaf(X)
    with fwd.dual_level():
        y = fwd.unpack_dual(f(fwd.make_dual(x, V))).tangent
        return torch.autograd.grad(y.sum(), x)[0]


def a_dual_level_around_grad(f):
    with fwd.dual_level():
        return fwd.unpack_dual(grad(total(f))(fwd.make_dual(X, V))).tangent


def a_dual_level_around_grad_left(f):
    x = leaf(X)
    with fwd.dual_level():
        y = fwd.unpack_dual(grad(total(f))(fwd.make_dual(x, V))).tangent
    return torch.autograd.grad(y.pow(2).sum(), x)[0]


def a_dual_level_inside_grad(f):
    def directional(x):
        with fwd.dual_level():
            return fwd.unpack_dual(f(fwd.make_dual(x, x * V))).tangent.sum()

    return grad(directional)(X)


def another_dual_level_in_the_backward(f):
    x = leaf(X)
    with fwd.dual_level():
        y = fwd.unpack_dual(f(fwd.make_dual(x, V))).primal
    with fwd.dual_level():
        return fwd.unpack_dual(torch.autograd.grad(y, x, fwd.make_dual(X, V))[0]).tangent


def grad_in_the_cotangent(f):
    fn = vjp(f, X)[1]
    return grad(lambda v: fn(v)[0].pow(2).sum())(V)


NESTINGS = {
    "backward": lambda f: eager(f, X),
    "backward of backward": eager_twice,
    "is_grads_batched": batched_backward,
    "grad": lambda f: grad(total(f))(X),
    "grad.grad": lambda f: grad(total(grad(total(f))))(X),
    "grad.grad.grad": lambda f: grad(total(grad(total(grad(total(f))))))(X),
    "vmap.grad": lambda f: many(grad(total(f)))(B),
    "vmap.grad over another dim": lambda f: many(grad(total(f)), in_dims=1, out_dims=1)(B.t()),
    "grad.vmap": lambda f: grad(total(many(f)))(B),
    "grad.vmap.grad": lambda f: grad(total(many(grad(total(f)))))(B),
    "jvp.grad": lambda f: jvp(grad(total(f)), (X,), (V,))[1],
    "jvp.grad.jvp": lambda f: jvp(grad(lambda x: jvp(f, (x,), (V,))[1].sum()), (X,), (V,))[1],
    "grad.jvp": lambda f: grad(lambda x: jvp(f, (x,), (x * V,))[1].sum())(X),
    "jacrev": lambda f: jacrev(f)(X),
    "jacrev.jacrev": lambda f: jacrev(jacrev(f))(X),
    "jacfwd.jacrev": lambda f: jacfwd(jacrev(f), randomness="different")(X),
    "hessian": lambda f: hessian(total(f))(X),
    "vjp, later": lambda f: vjp(f, X)[1](V)[0],
    "grad of vjp, later": lambda f: grad(lambda x: vjp(f, x)[1](V)[0].sum())(X),
    "vmap of a vjp function": lambda f: vmap(vjp(f, X)[1])(torch.eye(3, dtype=torch.float64))[0],
    "grad in the cotangent": grad_in_the_cotangent,
    "backward over grad": lambda f: eager(grad(total(f)), X),
    "backward over grad.vmap": lambda f: eager(grad(total(many(f))), B),
    "backward over vmap": lambda f: eager(many(f), B),
    "backward over vmap.grad": lambda f: eager(many(grad(total(f))), B),
    "backward over jvp": lambda f: eager(lambda x: jvp(f, (x,), (V,))[1], X),
    "vmap.jacrev.grad": lambda f: many(jacrev(grad(total(f))))(B),
    "a dual level left": a_dual_level_left,
    "a dual level around grad": a_dual_level_around_grad,
    "a dual level around grad, left": a_dual_level_around_grad_left,
    "a dual level inside grad": a_dual_level_inside_grad,
    "another dual level in the backward": another_dual_level_in_the_backward,
    "a dual level under a gradient": a_dual_level_under_a_gradient,
    "make_fx(grad)": lambda f: make_fx(grad(total(f)))(X)(X),
    "grad.functionalize": lambda f: grad(total(functionalize(f)))(X),
    "functionalize.grad": lambda f: functionalize(grad(total(f)))(X),
}
PLAIN_FAILS = {
    ("grad.functionalize", "an_autograd_function"), ("functionalize.grad", "an_autograd_function"),  # no rule for them
    ("a dual level under a gradient", "softmax"), ("a dual level around grad, left", "softmax"),  # overwrites what it saved
    ("hessian", "dropout"),  # torch.func.hessian has no randomness
    *((nesting, "a_gradient_inside") for nesting in (  # the input requires no gradient at its level
        "grad.vmap", "backward over grad.vmap", "grad.jvp", "jvp.grad.jvp", "backward over vmap", "backward over jvp",
        "grad.functionalize")),
}
NOT_ALIKE = {("make_fx(grad)", "dropout")}  # a trace holds draws, not that a stream was put back


# ---------------------------------------------------------------- features
def within(context):
    def feature(f):
        def run(*args, **kwargs):
            with context():
                return f(*args, **kwargs)

        return run

    return feature


def region(f):
    return lambda *args, **kwargs: checkpoint(f, *args, use_reentrant=False, **kwargs)


def region_of_every_order(f):
    return lambda *args, **kwargs: checkpoint(f, *args, use_reentrant=False, remat="every", **kwargs)


offloaded = within(lambda: save_on_cpu(pin_memory=True))  # which copies on the host, too
hooked = within(lambda: saved_tensors_hooks(lambda x: x.clone().numpy(), torch.from_numpy))
FEATURES = {
    "checkpoint": region,
    "checkpoint of every order": region_of_every_order,
    "checkpoint(checkpoint)": lambda f: region(region(f)),
    "save_on_cpu": offloaded,
    "checkpoint(checkpoint) of every order": lambda f: region_of_every_order(region_of_every_order(f)),
    "checkpoint(checkpoint of every order)": lambda f: region(region_of_every_order(f)),
    "save_on_cpu(checkpoint of every order)": lambda f: offloaded(region_of_every_order(f)),
    "checkpoint of every order(save_on_cpu)": lambda f: region_of_every_order(offloaded(f)),
    "save_on_cpu(checkpoint)": lambda f: offloaded(region(f)),
    "checkpoint(save_on_cpu)": lambda f: region(offloaded(f)),
    "saved_tensors_hooks": hooked,
}
AROUND_TRANSFORMS = {
    "backward of a region with grad": lambda wrap, f: eager(wrap(grad(total(f))), X),
    "grad of a region with grad": lambda wrap, f: grad(total(wrap(grad(total(f)))))(X),
    "grad of a region with vmap": lambda wrap, f: grad(total(wrap(many(f))))(B),
    "grad of a region with jvp": lambda wrap, f: grad(total(wrap(lambda x: jvp(f, (x,), (V,))[1])))(X),
    "grad of a region with jacrev": lambda wrap, f: grad(total(wrap(jacrev(f))))(X),
    "vmap of a region with grad": lambda wrap, f: many(wrap(grad(total(f))))(B),
    "jvp of a region with grad": lambda wrap, f: jvp(wrap(grad(total(f))), (X,), (V,))[1],
    "grad of a region with grad of a region": lambda wrap, f: grad(total(wrap(grad(total(wrap(f))))))(X),
    "vjp, later, of a region with grad": lambda wrap, f: vjp(wrap(grad(total(f))), X)[1](V)[0],
    "grad.grad of a region with grad": lambda wrap, f: grad(total(grad(total(wrap(grad(total(f)))))))(X),
}
