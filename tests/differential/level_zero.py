"""Programs over level 0's public corners: gradient edges, hooks of one save, `.grad`, contexts around generators."""

from __future__ import annotations

import warnings

from tests.differential.programs import error, mat, program, scalar, vec


def warned(f):
    """The kinds and first words of what f warns of."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        f()
    return [(w.category.__name__, str(w.message)[:60]) for w in found]


# ---------------------------------------------------------------- gradient edges
@program
def an_edge_stands_for_its_tensor_among_the_inputs(t):
    x, w = vec(t, requires_grad=True), vec(t, requires_grad=True)
    y = x * w
    edges = [t.autograd.graph.get_gradient_edge(v) for v in (x, y, w)]
    return t.autograd.grad(y.sin().sum(), edges)


@program
def an_edge_stays_where_it_was_when_its_tensor_is_written_to(t):
    x = vec(t, requires_grad=True).clone()
    before = t.autograd.graph.get_gradient_edge(x)
    x *= 2
    return t.autograd.grad(x.sum(), (before, x))


@program
def a_backward_starts_from_an_edge(t):
    x = vec(t, requires_grad=True)
    edge = t.autograd.graph.get_gradient_edge(x.sin())
    scalar_edge = t.autograd.graph.get_gradient_edge(x.sin().sum())
    return (t.autograd.grad(edge, x, grad_outputs=vec(t)), t.autograd.grad(scalar_edge, x),
            error(lambda: t.autograd.grad(edge, x), "grad can be implicitly created only for scalar outputs"),
            error(lambda: t.autograd.grad(edge, x, grad_outputs=mat(t)), "Mismatch in shape: grad_output[0] has a shape of"))


@program
def an_edge_made_by_hand(t):
    x = vec(t, requires_grad=True).exp()
    edge = t.autograd.graph.GradientEdge(x.grad_fn, x.output_nr)
    return t.autograd.grad((x * x).sum(), edge)


@program
def backward_takes_edges_for_inputs(t):
    x, w = vec(t, requires_grad=True), vec(t, requires_grad=True)
    y = x.exp() * w
    y.sum().backward(inputs=[t.autograd.graph.get_gradient_edge(x)])
    return x.grad, w.grad


@program
def what_has_no_edge(t):
    return error(lambda: t.autograd.graph.get_gradient_edge(vec(t)), "It is not possible to get the gradient edge for a Tensor")


@program
def an_edge_has_no_zeros(t):
    x, w = vec(t, requires_grad=True), vec(t, requires_grad=True)
    edge = t.autograd.graph.get_gradient_edge(w)
    return error(lambda: t.autograd.grad(x.sum(), edge, materialize_grads=True), "materialize_grads cannot be used when the given")


# ---------------------------------------------------------------- what grad and backward ask for
@program
def zeros_that_were_asked_for_can_be_differentiated(t):
    x, w = scalar(t, requires_grad=True), scalar(t, requires_grad=True)
    (zero,) = t.autograd.grad(w * w, x, create_graph=True, materialize_grads=True)
    return zero, zero.requires_grad, t.autograd.grad(zero, x, materialize_grads=True)


@program
def what_grad_refuses(t):
    x = vec(t, requires_grad=True)
    batch = t.ones(2, 2, dtype=t.float64)
    return (error(lambda: t.autograd.grad(x.sum(), []), "`inputs` argument to `grad()` cannot be empty."),
            error(lambda: x.sum().backward(inputs=[]), "`inputs` argument to `backward()` cannot be empty."),
            error(lambda: t.autograd.grad(x * 1j, x), "grad can be implicitly created only for scalar outputs"),
            error(lambda: t.autograd.grad((x * 1j).sum(), x), "grad can be implicitly created only for real scalar outputs"),
            error(lambda: t.autograd.grad((x * 1j).sum(), x, t.ones((), dtype=t.float64)),
                  "both grad_output and output are required to have the same dtype"),
            error(lambda: t.autograd.grad(x * 2, x, batch, is_grads_batched=True), "If `is_grads_batched=True`, we interpret"))


# ---------------------------------------------------------------- .grad
@program
def grad_is_a_gradient_or_none(t):
    x = vec(t, requires_grad=True)

    def assign(v):
        x.grad = v
    found = (error(lambda: assign(0), "assigned grad expected to be a Tensor or None but got grad of type int"),
             error(lambda: assign(mat(t)), "attempting to assign a gradient of size '[2, 3]' to a tensor of size '[3]'"),
             error(lambda: assign(t.ones(3, dtype=t.float32)), "attempting to assign a gradient"),
             error(lambda: assign(x), "can't assign Variable as its own grad"))
    x.sum().backward()
    del x.grad
    return found, x.grad


@program
def the_grad_of_a_computed_tensor_is_warned_of(t):
    x = vec(t, requires_grad=True)
    y = x.sin()
    kept = x.cos()
    kept.retain_grad()
    return warned(lambda: y.grad), warned(lambda: kept.grad), warned(lambda: x.grad), warned(lambda: y.detach().grad)


@program
def numpy_of_what_requires_grad_where_nothing_records(t):
    x = vec(t, requires_grad=True)
    with t.no_grad():
        found = x.cpu().numpy().tolist()
    return found, error(x.numpy, "Can't call numpy() on Tensor that requires grad")


@program
def a_gradient_has_the_layout_of_its_leaf(t):
    def stride(x, f):
        f(x).sum().backward()
        return tuple(x.grad.stride())
    m = mat(t)
    return (stride(mat(t, requires_grad=True), lambda x: x.t().sin()), stride(m.t().requires_grad_(), t.sin),
            stride(t.cat([m, m], 1)[:, ::2].requires_grad_(), t.sin), stride(t.cat([m, m], 1)[:, ::2].t().requires_grad_(), t.sin),
            stride(m.requires_grad_(), lambda x: x))


@program
def a_recorded_gradient_has_the_layout_of_its_leaf(t):
    x = mat(t, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x.t().pow(3).sum().backward(create_graph=True)
    return x.grad, tuple(x.grad.stride()), t.autograd.grad(x.grad.sum(), x)


@program
def a_recorded_gradient_is_added_to_where_nothing_is_recorded(t):
    x, w, given = vec(t, requires_grad=True), vec(t, requires_grad=True), vec(t)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w.backward(given, create_graph=True)
        x.sum().backward(create_graph=True)                # one element, expanded
        w.grad.mul_(2)
        (w * w).sum().backward(create_graph=True)
    first, recorded = x.grad, w.grad
    (x * w).sum().backward()
    return x.grad is first, x.grad, w.grad is recorded, w.grad, given


@program
def inputs_that_are_given_twice_accumulate_once(t):
    x = vec(t, requires_grad=True)
    (x * x).sum().backward(inputs=[x, x.to(t.float64), x])
    return x.grad


@program
def a_leaf_that_was_made_a_constant_accumulates_nothing(t):
    seen = []
    x, w = vec(t, requires_grad=True), vec(t, requires_grad=True)
    x.register_hook(lambda g: seen.append("gradient"))
    x.register_post_accumulate_grad_hook(lambda x: seen.append("accumulated"))
    y = (x * w).sum()
    x.requires_grad_(False)
    w.detach_()
    y.backward()
    return x.grad, w.grad, seen


@program
def the_flag_of_a_result_is_not_set(t):
    y = vec(t, requires_grad=True).sin()
    return (error(lambda: setattr(y, "requires_grad", True), "you can only change requires_grad flags of leaf variables."),
            y.requires_grad_().requires_grad)


@program
def a_gradient_is_asked_for_of_a_tensor_with_a_hook(t):
    """torch gives it before the hook where the walk goes on, after it where that is its end."""
    x = vec(t, requires_grad=True)
    y = x * 3
    y.register_hook(lambda g: 2 * g)
    return t.autograd.grad((y * y).sum(), [y], retain_graph=True), t.autograd.grad((y * y).sum(), [x, y])


# ---------------------------------------------------------------- hooks of one save
@program
def hooks_of_one_save(t):
    x = vec(t, requires_grad=True)
    y = x * x
    y.grad_fn._raw_saved_self.register_hooks(lambda v: 2 * v, lambda v: v)
    seen = y.grad_fn._saved_self.tolist()
    y.sum().backward()
    return seen, x.grad


@program
def hooks_of_a_saved_output_and_second_order(t):
    x = vec(t, requires_grad=True)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda v: v.tolist(), lambda v: t.tensor(v, dtype=t.float64))
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return g, t.autograd.grad(g.sum(), x)


@program
def hooks_of_a_save_of_a_function(t):
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, None)
            return x * x

        @staticmethod
        def backward(ctx, g):
            x, _ = ctx.saved_tensors
            return 2 * g * x

    x = vec(t, requires_grad=True)
    y = Square.apply(x)
    saved = y.grad_fn._raw_saved_tensors
    saved[0].register_hooks(lambda v: -v, lambda v: v)
    found = error(lambda: saved[1].register_hooks(lambda v: v, lambda v: v), "with value None is forbidden")
    y.sum().backward()
    return len(saved), found, x.grad


@program
def hooks_of_a_save_that_are_refused(t):
    y = vec(t, requires_grad=True).exp()
    raw = y.grad_fn._raw_saved_result
    found = (error(lambda: raw.register_hooks(1, 1), "incompatible function arguments"),
             error(lambda: raw.register_hooks(lambda v: v.add_(1), lambda v: v), "A saved tensor pack hook is modifying its input"))
    raw.register_hooks(lambda v: v, lambda v: v)
    return (found, error(lambda: raw.register_hooks(lambda v: v, lambda v: v), "hooks have already been set"),
            error(t.autograd.SavedTensor, "Trying to create a SavedTensor object from Python is forbidden"))


# ---------------------------------------------------------------- contexts around what is not called once
@program
def a_generator_runs_under_its_context_and_its_caller_does_not(t):
    log = []

    @t.no_grad()
    def steps():
        for i in range(3):
            log.append(("inside", t.is_grad_enabled()))
            try:
                got = yield i
            except ValueError:
                log.append(("thrown", t.is_grad_enabled()))
                got = yield "caught"
            log.append(got)
        return "end"

    made = steps()
    log.append(next(made))
    log.append(t.is_grad_enabled())
    log.append(made.send("sent"))
    log.append(made.throw(ValueError()))
    try:
        while True:
            log.append(next(made))
            log.append(t.is_grad_enabled())
    except StopIteration as end:
        log.append(end.value)
    return log


@program
def a_generator_that_is_closed_cleans_up_under_its_context(t):
    log = []

    @t.no_grad()
    def steps():
        try:
            yield 1
        finally:
            log.append(t.is_grad_enabled())
    made = steps()
    next(made)
    made.close()
    return log


@program
def a_decorated_class_is_warned_of(t):
    def run():
        @t.no_grad()
        class Made:
            def __init__(self):
                self.seen = t.is_grad_enabled()

            def later(self):
                return t.is_grad_enabled()
        made = Made()
        found.extend([made.seen, made.later()])
    found = []
    return warned(run), found


# ---------------------------------------------------------------- writes and keys
@program
def a_part_of_an_expanded_tensor_is_written_to(t):
    x = t.zeros(1, dtype=t.float64).expand(3)
    x[0] = 5.0
    return x, error(lambda: x.add_(1), "more than one element of the written-to tensor refers to a single memory location")


@program
def a_list_of_indices_and_slices_is_a_key_of_several_dimensions(t):
    x = mat(t, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = x[[[0, 1], [2, 2]]], x[[slice(None), [0, 2]]], x[[None, 1]], x[[1, 0]]
        y = x * 1
        y[[[0, 1], [2, 0]]] = 7.0
    y.sum().backward()
    return *found, y, x.grad


@program
def a_leaf_that_is_a_part_of_a_constant_is_not_written_to(t):
    def refused(f):
        x = vec(t)
        y = x[:2].requires_grad_()
        return error(lambda: f(x, y), "view of a leaf Variable that requires grad"), x
    return refused(lambda x, y: y.mul_(2)), refused(lambda x, y: y[:1].mul_(2)), refused(lambda x, y: y.detach()[:1].mul_(2))


@program
def a_leaf_stays_one_where_its_memory_is_written_to(t):
    x = vec(t)
    y = x[:2].requires_grad_()
    x.mul_(2)
    x[1:].sin_()
    with t.no_grad():
        y.mul_(3)
    y.sin().sum().backward()
    was = y.grad, y.is_leaf
    x.mul_(vec(t, requires_grad=True))
    return x, y, was, y.is_leaf


@program
def hooks_of_a_view_stay_with_what_it_was(t):
    seen = []
    x = vec(t, requires_grad=True)
    y = x * 2
    one, other = y[:2], y[1:]
    before = one.sin()
    for name, v in (("one", one), ("other", other), ("base", y)):
        v.register_hook(lambda g, name=name: seen.append((name, g.detach().clone())))
    one.mul_(3)
    y.register_hook(lambda g: seen.append(("base now", g.detach().clone())))
    one.register_hook(lambda g: seen.append(("one now", g.detach().clone())))
    for z in (y, one, other, before):
        z.sum().backward(retain_graph=True)
        seen.append("backward")
    return seen, x.grad


@program
def a_view_in_place_keeps_what_a_leaf_has(t):
    seen = []
    x = mat(t, requires_grad=True)
    x.register_hook(lambda g: seen.append(tuple(g.shape)))
    x.sum().backward()
    with t.no_grad():
        x.t_()
    found = x.grad, x.requires_grad, x.is_leaf
    x.grad = None
    (x * x).sum().backward()
    return *found, x.grad, seen


@program
def a_view_in_place_is_known_where_nothing_is_recorded(t):
    x = vec(t, requires_grad=True)
    y = x * x
    with t.no_grad():
        y.unsqueeze_(0)
    y.sum().backward()
    return y, x.grad


# ---------------------------------------------------------------- functions
@program
def an_output_that_is_returned_twice_is_one_tensor(t):
    class Twice(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            return y, y

        @staticmethod
        def backward(ctx, g, h):
            return 2 * g + 2 * h

    x = vec(t, requires_grad=True)
    a, b = Twice.apply(x)
    return a is b, t.autograd.grad((a * b).sum(), x)


@program
def a_function_takes_no_keyword_only_arguments_under_vmap(t):
    class Add(t.autograd.Function):
        @staticmethod
        def forward(x, *, y):
            return x + y

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

        @staticmethod
        def vmap(info, in_dims, x, *, y):
            return x + y, 0
    return error(lambda: t.func.vmap(Add.apply)(vec(t), y=vec(t)), "autograd.Function with kwarg-only Tensor args")


@program
def variable_is_every_tensor(t):
    x = vec(t, requires_grad=True)
    y = t.autograd.Variable(x.sin(), requires_grad=True)
    return isinstance(x, t.autograd.Variable), y.is_leaf, y.requires_grad, t.autograd.Variable(x).requires_grad


@program
def what_a_function_is_warned_of_and_refused(t):
    class Bad(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            y = 3 * x
            ctx.mark_dirty(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return 3 * g
    x = vec(t, requires_grad=True)
    return warned(lambda: Bad.apply(x.clone())), error(lambda: Bad()(x), "Legacy autograd function with non-static forward")


@program
def jvp_is_given_what_was_saved_for_forward(t):
    class Saved(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.clone()

        @staticmethod
        def jvp(ctx, dx):
            seen.append(len(ctx.saved_tensors))
            return dx
    seen, forward_ad = [], t.autograd.forward_ad
    with forward_ad.dual_level():
        Saved.apply(forward_ad.make_dual(vec(t), vec(t)))
    return seen


@program
def gradcheck_says_what_is_wrong(t):
    def tell(y):
        y.register_hook(lambda g: g + 1e-2)
        return y
    x = t.ones(2, dtype=t.float64, requires_grad=True)
    z = t.ones(2, dtype=t.complex128, requires_grad=True)
    check = t.autograd.gradcheck
    return (error(lambda: check(lambda v: tell(v.clone()), (z,)), "While considering the imaginary part of complex outputs only"),
            error(lambda: check(lambda v: tell(v.clone()), (x,)), "Jacobian mismatch for output 0 with respect to input 0"),
            error(lambda: check(lambda v: t.tensor([v.sum().item()], dtype=t.float64), (x,)),
                  "Numerical gradient for function expected to be zero"),
            error(lambda: check(lambda v: t.cat([v, v]) if (v >= 1).all() else v, (x,)), "return outputs with the same shape when"),
            check(lambda v: (), (x,)))


@program
def one_extreme_of_all_spreads_its_gradient_over_nans(t):
    found = []
    for f in (t.max, t.min, t.median, t.nanmedian):
        for values in ([1.0, float("nan"), float("nan")], [float("nan")] * 3, [2.0, 2.0, 1.0]):
            x = t.tensor(values, dtype=t.float64, requires_grad=True)
            f(x).backward()
            found.append(x.grad.tolist())
    return [[str(v) for v in g] for g in found]


# ---------------------------------------------------------------- hooks and inputs=
def _graph(t):
    """x and z, y = x z with a hook of every kind, and what they hear."""
    x, z, log = scalar(t, requires_grad=True), scalar(t, requires_grad=True, value=3.0), []
    y = x * z
    y.retain_grad()
    y.register_hook(lambda g: log.append(("y", g.item())))
    y.grad_fn.register_prehook(lambda gs: log.append(("before", gs[0].item())))
    y.grad_fn.register_hook(lambda gs, cts: log.append(("after", [g is not None for g in gs])))
    x.register_hook(lambda g: log.append(("x", g.item())))
    x.register_post_accumulate_grad_hook(lambda x: log.append(("accumulated", x.grad.item())))
    return x, z, y, log


def _grads(*tensors):
    return [None if v.grad is None else v.grad.item() for v in tensors]


@program
def backward_runs_the_node_of_a_result_among_its_inputs(t):
    x, z, y, log = _graph(t)
    (y * y).backward(inputs=[y])
    freed = error(y.backward, "second time")
    return log, _grads(x, z, y), freed


@program
def grad_runs_no_node_for_a_result_alone(t):
    x, z, y, log = _graph(t)
    t.autograd.grad(y * y, [y])
    y.backward()
    return log, _grads(x, z, y)


@program
def a_leaf_among_the_inputs_accumulates_when_its_gradient_is_whole(t):
    x, z, y, log = _graph(t)
    w = scalar(t, requires_grad=True)
    u = w * 2
    v = u * y
    u.register_hook(lambda g: log.append(("u", g.item())))
    (v + x).backward(inputs=[w, x, z])
    a, b = scalar(t, requires_grad=True), scalar(t, requires_grad=True)
    b.register_hook(lambda g: log.append(("b", g.item())))
    a.register_post_accumulate_grad_hook(lambda a: log.append(("a", a.grad.item())))
    t.autograd.backward([a + (b * 2) * 3, a], inputs=[b, a])
    return log, _grads(x, z, y, w, a, b)


@program
def of_several_roots_those_that_lead_to_no_input_are_left_alone(t):
    x, z, y, log = _graph(t)
    w = scalar(t, requires_grad=True)
    t.autograd.backward([y, x, w * 2], inputs=[w])
    found = t.autograd.grad([y, x, w * 2], [w])
    return log, _grads(x, z, y, w), found


@program
def one_root_that_leads_to_no_input(t):
    x, z, y, log = _graph(t)
    w = scalar(t, requires_grad=True)
    y.backward(inputs=[w])
    x.backward(inputs=[w])
    return log, _grads(x, z, y, w)


@program
def a_hook_of_several_gradients_that_are_leaves_at_the_root(t):
    a, b, log = scalar(t, requires_grad=True), scalar(t, requires_grad=True), []
    t.autograd.graph.register_multi_grad_hook((a, b), lambda gs: log.append([g.item() for g in gs]))
    t.autograd.backward([a, b])
    return log


@program
def a_hook_of_several_gradients_that_was_given_one_tensor_twice(t):
    x, log = scalar(t, requires_grad=True), []
    y = x * 2
    t.autograd.graph.register_multi_grad_hook((y, y), lambda gs: log.append([g.item() for g in gs]))
    (y * 3).backward()
    return log


@program
def a_hook_of_several_gradients_one_of_which_is_the_only_root(t):
    x, log = scalar(t, requires_grad=True), []
    y = x * x
    t.autograd.graph.register_multi_grad_hook((x, y), lambda gs: log.append([None if g is None else g.item() for g in gs]))
    y.backward()
    return log


@program
def grad_is_no_subclass_where_a_hook_returned_one(t):
    class Named(t.Tensor):
        pass

    kinds = []
    for twice in (False, True):
        for create_graph in (False, True):
            x = vec(t, requires_grad=True)
            y = x * x
            accumulate = y.grad_fn.next_functions[0][0]
            for v in (x, y):
                v.register_hook(lambda g: g.as_subclass(Named))
            accumulate.register_prehook(lambda gs: (gs[0].as_subclass(Named),))
            y.grad_fn.register_hook(lambda gs, cts: tuple(g.as_subclass(Named) for g in gs))
            y.retain_grad()
            for _ in range(1 + twice):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    y.backward(t.ones_like(y), create_graph=create_graph, retain_graph=True)
            kinds.append((type(x.grad).__name__, type(y.grad).__name__, x.grad))
    return kinds


@program
def a_tensor_that_is_expanded_to_its_own_shape_is_a_view_with_hooks_of_its_own(t):
    found = []
    for view in (lambda y: y.expand(3), lambda y: y.expand_as(y), lambda y: t.broadcast_to(y, (3,)), lambda y: y.ravel()):
        x = vec(t, requires_grad=True)
        y = x * 2
        e = view(y)
        e.register_hook(lambda g: g * 10)
        (e + y).sum().backward()
        found.append((e is y, e._is_view(), x.grad))
    return found


# ---------------------------------------------------------------- gradients that have a gradient, or none
def _slopes(t, functions, *values):
    """Of each function at each value whether its gradient, with create_graph, requires grad; and that gradient."""
    found = []
    for f in functions:
        for value in values:
            x = t.tensor(value, dtype=t.float64, requires_grad=True)
            y = f(x)
            (g,) = t.autograd.grad(y, x, t.ones_like(y), create_graph=True)
            found.append(g)
    return found


@program
def the_gradient_of_one_factor_is_a_constant(t):
    return _slopes(t, (t.prod, lambda x: t.cumprod(x.view(-1), 0), lambda x: x.view(1, -1).cumprod(0)), 0.7, [0.7], 0.0)


@program
def the_gradient_of_a_power_of_zero_is_zero(t):
    x, infinite = t.tensor([2.0, 0.0], dtype=t.float64, requires_grad=True), t.full((2,), float("inf"), dtype=t.float64)
    return (*_slopes(t, (lambda x: x ** 0, lambda x: x ** 0.0), 0.7, [0.0, float("nan")]), t.autograd.grad(x ** 0, x, infinite),
            t.func.jvp(lambda x: x ** 0, (x,), (infinite,)))


@program
def the_gradient_of_a_scan_of_one_number(t):
    return _slopes(t, (lambda x: t.logcumsumexp(x, 0),), 0.7)


@program
def a_slope_that_is_constant_in_pieces(t):
    f = t.nn.functional
    return _slopes(t, (f.leaky_relu, f.relu6, f.hardtanh, f.hardshrink, f.softshrink, lambda x: f.threshold(x, 0.0, 1.0)), [0.7, -0.3])


@program
def the_gradient_of_xlog1py_where_its_logarithm_is_infinite(t):
    found = []
    for op, edge in ((t.special.xlog1py, -1.0), (t.xlogy, 0.0)):
        x = t.tensor([0.0, 1.0, 2.0, 0.0, 0.0], dtype=t.float64, requires_grad=True)
        y = t.tensor([edge, edge, edge, 2.0, float("nan")], dtype=t.float64, requires_grad=True)
        for ct in (0.0, 1.0):
            found += t.autograd.grad(op(x, y), (x, y), t.full((5,), ct, dtype=t.float64), create_graph=True)
            found += t.func.jvp(op, (x, y), (t.full((5,), ct, dtype=t.float64), t.zeros(5, dtype=t.float64)))
    return found


# ---------------------------------------------------------------- memory
@program
def what_is_new_memory_is_not_that_of_the_input(t):
    f, image = t.nn.functional, t.ones(1, 4, 2, 2, dtype=t.float64)
    found = []
    for new in (lambda x: x.to(t.float64, False, True), lambda x: x.to("cpu", t.float64, False, True), lambda x: x.to(x, False, True),
                lambda x: x.to(t.float64, True), lambda x: f.pixel_shuffle(x, 1), lambda x: f.pixel_unshuffle(x, 1),
                lambda x: f.channel_shuffle(x, 1), lambda x: x[0, 0, 0, 0].sum_to_size(())):
        x = image.clone()
        new(x).zero_()
        found.append(x.sum())
    return found


# ---------------------------------------------------------------- vmap
@program
def a_float_minus_a_batch_of_bools(t):
    return t.func.vmap(lambda x, mask: x - mask)(t.ones(2, 1), t.tensor([True, False]))
