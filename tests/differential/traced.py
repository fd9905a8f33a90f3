"""Programs that are traced by make_fx on one input and run on another; and programs under functionalize.

What is compared is what graphs compute, not how they read.
"""

from __future__ import annotations

import importlib

from tests.differential.programs import error, mat, scalar, vec

TRACED, FEATURED = [], []


def program(f):
    TRACED.append(f)
    return f


def featured(f):
    FEATURED.append(f)
    return f


def make_fx(t, f):
    return importlib.import_module(f"{t.__name__}.fx.experimental.proxy_tensor").make_fx(f)


def traced(t, f, *there, here=None):
    """What the graph of f gives that was traced at other inputs."""
    return make_fx(t, f)(*[x * 0.25 + 0.5 for x in there] if here is None else here)(*there)


def body(x):
    return (x.sin() * x).tanh().sin()


def writing(x):
    y = x * 2
    y.sin_()
    y[1:].mul_(x[1:])
    return y.cos() * x


# ---------------------------------------------------------------- with a feature round the body
@featured
def trace_of_a_function(t, wrap):
    return traced(t, wrap(body), vec(t))


@featured
def trace_of_a_backward(t, wrap):
    def gradient(x):
        x = x.detach().requires_grad_()
        return t.autograd.grad(wrap(body)(x).sum(), x)[0]
    return traced(t, gradient, vec(t))


@featured
def trace_of_a_backward_of_what_is_written(t, wrap):
    def gradient(x):
        x = x.detach().requires_grad_()
        return t.autograd.grad(wrap(writing)(x).sum(), x)[0]
    return traced(t, gradient, vec(t))


@featured
def trace_of_a_double_backward(t, wrap):
    def gradient(x):
        x = x.detach().requires_grad_()
        g, = t.autograd.grad(wrap(body)(x).sum(), x, create_graph=True)
        return t.autograd.grad((g * g).sum(), x)[0]
    return traced(t, gradient, vec(t)).detach()            # torch's double backwards by hand leave the flag


@featured
def trace_of_grad(t, wrap):
    return traced(t, t.func.grad(lambda x: wrap(body)(x).sum()), vec(t))


@featured
def trace_of_grad_of_grad(t, wrap):
    return traced(t, t.func.grad(lambda x: t.func.grad(lambda x: wrap(body)(x).sum())(x).sum()), vec(t))


@featured
def trace_of_vmap_of_grad(t, wrap):
    return traced(t, t.func.vmap(t.func.grad(lambda x: wrap(body)(x).sum())), mat(t))


@featured
def trace_of_hessian(t, wrap):
    return traced(t, t.func.hessian(lambda x: wrap(body)(x).sum()), vec(t))


@featured
def functionalize_of_grad(t, wrap):
    return t.func.functionalize(t.func.grad(lambda x: wrap(writing)(x).sum()))(vec(t))


@featured
def grad_of_functionalize(t, wrap):
    return t.func.grad(lambda x: t.func.functionalize(wrap(writing))(x).sum())(vec(t))


# ---------------------------------------------------------------- traces
@program
def trace_of_jvp(t):
    return traced(t, lambda x, v: t.func.jvp(body, (x,), (v,)), vec(t), vec(t) * 2)


@program
def trace_of_writes_to_an_argument(t):
    def f(x):
        x[0] = x[1] * 3
        x.mul_(2)
        return x.sum()
    x = vec(t)
    return traced(t, f, x, here=(vec(t),)), x


@program
def trace_of_a_captured_weight(t):
    w = t.nn.Parameter(vec(t))
    gm = make_fx(t, lambda x: (w * x).sin())(vec(t))
    before = gm(vec(t))
    with t.no_grad():
        w.mul_(2)
    return before, gm(vec(t))


@program
def trace_of_pytrees(t):
    def f(p, pair):
        return {"a": p["w"] * pair[0], "b": [pair[1], p["w"].sum()]}
    here = {"w": vec(t)}, (vec(t), vec(t))
    there = {"w": vec(t) * 2}, (vec(t) + 1, vec(t) * 3)
    return make_fx(t, f)(*here)(*there)


@program
def trace_of_several_outputs(t):
    return traced(t, lambda x: tuple(x.max(1)), mat(t))


@program
def trace_of_data(t):
    return traced(t, lambda x: x + t.tensor([1.0, 2.0, 3.0], dtype=t.float64) + t.arange(3), vec(t))


@program
def trace_of_where(t):
    return traced(t, lambda x: t.where(x > 0.6, x, -x), vec(t), here=(vec(t),))


@program
def trace_of_indices(t):
    return traced(t, lambda x, i: x[i] * x[:, 1], mat(t), t.tensor([1, 0]), here=(mat(t), t.tensor([0, 0])))


@program
def trace_of_an_mlp(t):
    def loss(w, b, x):
        return (t.tanh(x @ w.t() + b) ** 2).sum()
    return traced(t, t.func.grad(loss, argnums=(0, 1)), mat(t), vec(t)[:2] * 1, mat(t) * 3)


@program
def trace_that_looks(t):
    return error(lambda: make_fx(t, lambda x: x * 2 if x.sum() > 0 else x)(vec(t)), "data-dependent control flow")


@program
def a_graph_is_a_list_of_nodes(t):
    gm = make_fx(t, lambda x: (x.sin(), x.cos())[0])(vec(t))
    ops = [node.op for node in gm.graph.nodes]
    found = gm.graph.eliminate_dead_code()
    gm.recompile()
    node = next(node for node in gm.graph.nodes if node.op == "call_function")
    return (ops, found, [node.op for node in gm.graph.nodes], len(node.users), len(node.all_input_nodes), gm(vec(t)),
            gm.graph.eliminate_dead_code())


@program
def a_graph_by_hand(t):
    graph = t.fx.Graph()
    x = graph.placeholder("x")
    y = graph.call_function(t.mul, (x, 3))
    out = graph.output(y)
    with graph.inserting_before(y):
        z = graph.call_function(t.add, (x, 1))
    y.replace_input_with(x, z)
    graph.lint()
    taken = error(lambda: graph.erase_node(z), "still had 1 users")
    return t.fx.GraphModule({}, graph)(vec(t)), [n.name for n in graph.nodes], taken, out.op, [*z.users] == [y]


# ---------------------------------------------------------------- functionalize
@program
def functionalize_gives_the_same(t):
    return [t.func.functionalize(writing, remove=remove)(vec(t)) for remove in ("mutations", "mutations_and_views")]


@program
def functionalize_writes_to_its_argument(t):
    def f(x):
        x[1:].add_(1)
        return x * 2
    x = vec(t)
    return t.func.functionalize(f)(x), x


@program
def functionalize_under_transforms(t):
    f = t.func.functionalize(writing)
    return t.func.vmap(f)(mat(t)), t.func.jvp(f, (vec(t),), (vec(t),)), t.func.jacrev(f)(vec(t))


@program
def functionalize_is_asked_for_something_else(t):
    return error(lambda: t.func.functionalize(writing, remove="views")(vec(t)), "Valid options are")


@program
def functionalize_of_a_write_to_what_was_saved(t):
    return t.func.functionalize(t.func.grad(lambda x: x.exp().mul_(2)))(scalar(t))


@program
def functionalize_of_a_write_to_what_is_captured(t):
    w = vec(t)
    return t.func.functionalize(lambda x: w.add_(x) * 1)(vec(t)), w


@program
def trace_of_functionalize(t):
    return traced(t, t.func.functionalize(writing), vec(t), here=(vec(t),))
