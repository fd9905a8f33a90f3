"""Programs over a library `t`, minigrad or torch: each returns what it observed, as tensors and python values.

`@program` is one that both run.  `@featured` is one with a feature to be wrapped round a function of tensors: `wrap(f)` is f,
or f under checkpoint, save_on_cpu or hooks; the oracle is what torch gives with `wrap(f) = f`.
"""

from __future__ import annotations

import warnings
from weakref import WeakSet

PROGRAMS, FEATURED = [], []


def program(f):
    PROGRAMS.append(f)
    return f


def featured(f):
    FEATURED.append(f)
    return f


# ---------------------------------------------------------------- what programs are made of
def vec(t, *, requires_grad=False):
    return t.tensor([0.5, -1.0, 2.0], dtype=t.float64, requires_grad=requires_grad)


def mat(t, *, requires_grad=False):
    return t.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], dtype=t.float64, requires_grad=requires_grad)


def scalar(t, *, requires_grad=False, value=0.7):
    return t.tensor(value, dtype=t.float64, requires_grad=requires_grad)


def error(f, words=""):
    """The builtin kind of what f raises, and whether its text has these words."""
    try:
        f()
    except Exception as e:  # noqa: BLE001  reported
        kind = next(k for k in (IndexError, TypeError, ValueError, RuntimeError, AttributeError, Exception) if isinstance(e, k))
        return kind.__name__, words in str(e)
    return None


def ckpt(t, f, *args, **options):
    return t.utils.checkpoint.checkpoint(f, *args, use_reentrant=False, **options)


def counted(f):
    """f, and how often it was called, as a list of one number."""
    calls = [0]

    def g(*args, **kwargs):
        calls[0] += 1
        return f(*args, **kwargs)
    return g, calls


def observed(t, log):
    """Saved-tensor hooks that note what happens."""
    def pack(x):
        log.append(("pack", tuple(x.shape), x.detach().tolist()))
        return x

    def unpack(x):
        log.append(("unpack", tuple(x.shape)))
        return x
    return t.autograd.graph.saved_tensors_hooks(pack, unpack)


def names_from(node, seen=None):
    """The names of a graph's nodes, depth first."""
    if node is None:
        return [None]
    return [node.name(), [names_from(n) for n, _ in node.next_functions]]


# ---------------------------------------------------------------- leaves and flags
@program
def flags_of_leaves_and_results(t):
    x, y = vec(t, requires_grad=True), vec(t)
    z = x * y
    return [(v.requires_grad, v.is_leaf, v.grad_fn is None, v.output_nr) for v in (x, y, z, y + 1, z.detach(), (z > 0))]


@program
def names_of_nodes(t):
    x, m = vec(t, requires_grad=True), mat(t, requires_grad=True)
    outs = [x + 1, x * x, -x, x / 2, x ** 2, x ** x.abs(), x.sin(), x.exp(), x.sum(), x.mean(), m @ x, m @ m.T, x[1:],
            x.reshape(1, 3), x.expand(2, 3), x.clone(), t.cat([x, x]),
            x.max(), m.max(1)[0], x.softmax(0), x.log_softmax(0), x.relu(), x.tanh(), x.sigmoid(), x.clamp(0, 1),
            t.where(x > 0, x, -x), x.cumsum(0), m.permute(1, 0), x.to(t.float32), x.abs(), x.prod(),
            m.logsumexp(1), x.norm(), x.sqrt(), x.index_select(0, t.tensor([0, 2])), x.masked_fill(x > 0, 0.0), x.var()]
    return [y.grad_fn.name() for y in outs]


@program
def names_of_overloads(t):
    m = mat(t, requires_grad=True)
    return [y.grad_fn.name() for y in (m.sum(0), m.mean(0), m.prod(0), m.clamp(min=0), m[0], m.t(), m.transpose(0, 1),
                                       m.unsqueeze(0), t.stack([m, m]))]


@program
def a_graph_by_its_names(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    return names_from(((x * y).sin() + x.exp()).sum().grad_fn)


@program
def requires_grad_can_be_taken_back(t):
    x = vec(t, requires_grad=True)
    x.requires_grad_(False)
    first = (x * 2).requires_grad
    x.requires_grad = True
    return first, (x * 2).requires_grad, error(lambda: setattr(x * 2, "requires_grad", False), "you can only change")


@program
def ints_and_bools_require_no_grad(t):
    x = vec(t, requires_grad=True)
    return [y.requires_grad for y in (x > 0, x.argmax(), x.long(), x.bool(), x.to(t.float32), x.sort()[1], x.sort()[0], x.sign())]


@program
def logaddexp_is_bent_where_its_inputs_are_equal(t):
    x, found = vec(t, requires_grad=True), []
    for f in (t.logaddexp, t.logaddexp2):
        (slope,) = t.autograd.grad(f(x, x.detach()).sum(), x, create_graph=True)
        found += t.autograd.grad(slope.sum(), x)
    return found


@program
def an_exponential_unit_is_straight_at_0(t):
    x, found = t.tensor([0.0, -1.0, 1.0], dtype=t.float64, requires_grad=True), []
    for f in (t.nn.functional.elu, t.nn.functional.selu, t.nn.functional.celu):
        (slope,) = t.autograd.grad(f(x).sum(), x, create_graph=True)
        found += [slope, *t.autograd.grad(slope.sum(), x)]
    return found


@program
def a_margin_that_is_just_kept_moves_nothing(t):
    F, found = t.nn.functional, []
    for f, target in (F.multi_margin_loss, [1, 2]), (F.multilabel_margin_loss, [[1, 0, -1], [2, -1, 0]]):
        x = t.tensor([[1.0, 2.0, 2.0], [0.0, 0.0, -1.0]], dtype=t.float64, requires_grad=True)
        found += t.autograd.grad(f(x, t.tensor(target)), x)
    return found


@program
def what_is_as_long_as_it_may_be_is_not_scaled(t):
    x = t.tensor([[0.0, 1.0], [3.0, 4.0]], dtype=t.float64)
    return bool((x.renorm(2, 0, 5.0) == x).all()), x.renorm(2, 0, 1.0)


@program
def detach_shares_memory(t):
    x = vec(t, requires_grad=True)
    y = x.detach()
    y[0] = 9.0
    return x, y, y.requires_grad


@program
def data_is_a_back_door(t):
    x = vec(t, requires_grad=True)
    y = x * x
    x.data.mul_(2)
    y.sum().backward()
    return x, x.grad


# ---------------------------------------------------------------- grad mode
@program
def no_grad_as_context_decorator_and_nested(t):
    x, seen = vec(t, requires_grad=True), []

    @t.no_grad()
    def inside(y):
        return (y * 2).requires_grad

    with t.no_grad():
        seen += [t.is_grad_enabled(), (x * 2).requires_grad]
        with t.enable_grad():
            seen += [t.is_grad_enabled(), (x * 2).requires_grad]
        seen.append(t.is_grad_enabled())
    return [*seen, t.is_grad_enabled(), inside(x), t.enable_grad()(lambda: t.is_grad_enabled())()]


@program
def set_grad_enabled_takes_effect_at_once(t):
    seen = []
    with t.set_grad_enabled(False):
        seen.append(t.is_grad_enabled())
        with t.set_grad_enabled(True):
            seen.append(t.is_grad_enabled())
        seen.append(t.is_grad_enabled())
    before = t.is_grad_enabled()
    t.set_grad_enabled(False)
    seen.append(t.is_grad_enabled())
    t.set_grad_enabled(before)
    return [*seen, t.is_grad_enabled()]


@program
def grad_mode_survives_an_error(t):
    try:
        with t.no_grad():
            raise KeyError
    except KeyError:
        pass
    return t.is_grad_enabled()


@program
def in_place_under_no_grad(t):
    x = vec(t, requires_grad=True)
    with t.no_grad():
        x.add_(1)
    return x, x.is_leaf, x._version


# ---------------------------------------------------------------- backward and grad
@program
def backward_accumulates(t):
    x = vec(t, requires_grad=True)
    (x * x).sum().backward()
    first = x.grad.clone()
    (x * 3).sum().backward()
    return first, x.grad, x.grad.requires_grad


@program
def backward_with_a_gradient(t):
    x = vec(t, requires_grad=True)
    (x * x).backward(t.tensor([1.0, 2.0, 3.0], dtype=t.float64))
    return x.grad


@program
def backward_twice_is_an_error_where_something_was_saved(t):
    x = vec(t, requires_grad=True)
    y, z = (x * x).sum(), (x + x).sum()
    y.backward()
    z.backward()
    second = error(y.backward, "Trying to backward through the graph a second time")
    z.backward()
    return second, x.grad


@program
def retain_graph_allows_it(t):
    x = vec(t, requires_grad=True)
    y = (x.sin() * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, error(y.backward, "Specify retain_graph=True")


@program
def backward_into_inputs_only(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    (x * y).sum().backward(inputs=[x])
    z = x * y
    w = z.sin()
    w.sum().backward(inputs=[z, y])
    return x.grad, y.grad


@program
def backward_of_several_outputs(t):
    x = vec(t, requires_grad=True)
    t.autograd.backward([(x * x).sum(), x * 2], [None, t.ones(3, dtype=t.float64)])
    return x.grad


@program
def grad_of_several_outputs_and_inputs(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    return t.autograd.grad([(x * y).sum(), x.sin().sum()], [x, y]), x.grad, y.grad


@program
def grad_with_grad_outputs(t):
    x = vec(t, requires_grad=True)
    ones = t.ones(3, dtype=t.float64)
    return t.autograd.grad(x * x, x, ones * 2), error(lambda: t.autograd.grad(x * x, x, t.ones(2)), "Mismatch in shape")


@program
def grad_of_unused_inputs(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    z = x.sum()
    return (t.autograd.grad(z, [x, y], allow_unused=True, retain_graph=True),
            t.autograd.grad(z, [x, y], materialize_grads=True, retain_graph=True),
            error(lambda: t.autograd.grad(z, [x, y], retain_graph=True), "appears to not have been used in the graph"),
            error(lambda: t.autograd.grad(z, [y], allow_unused=False, materialize_grads=True), "allow_unused"),
            error(lambda: t.autograd.grad(z, vec(t)), "does not require grad"))


@program
def grad_of_an_intermediate(t):
    x = vec(t, requires_grad=True)
    y = x.sin()
    z = (y * y).sum()
    return t.autograd.grad(z, [y, x])


@program
def grad_of_the_output_itself(t):
    x = vec(t, requires_grad=True)
    y = x.sum()
    return t.autograd.grad(y, y), t.autograd.grad(x, x, t.ones(3, dtype=t.float64))


@program
def create_graph_gives_higher_orders(t):
    x = scalar(t, requires_grad=True)
    y, found = x.sin() * x, []
    for _ in range(4):
        (y,) = t.autograd.grad(y, x, create_graph=True)
        found.append(y)
    return found


@program
def backward_with_create_graph(t):
    x = vec(t, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # torch: it may be a reference cycle
        (x ** 3).sum().backward(create_graph=True)
    g = x.grad
    x.grad = None
    (g * g).sum().backward()
    return g, x.grad


@program
def grads_batched(t):
    x = vec(t, requires_grad=True)
    basis = t.eye(3, dtype=t.float64)
    return t.autograd.grad(x.sin() * x, x, basis, is_grads_batched=True)


@program
def a_gradient_of_another_dtype(t):
    x = vec(t, requires_grad=True)
    y = x.to(t.float32) * 2
    y.sum().backward()
    return x.grad, x.grad.dtype


@program
def the_grad_attribute_can_be_set(t):
    x = vec(t, requires_grad=True)
    x.grad = t.ones(3, dtype=t.float64)
    (2 * x).sum().backward()
    kept = x.grad
    x.grad = None
    return kept, x.grad, error(lambda: setattr(x, "grad", t.ones(2, dtype=t.float64)))


@program
def gradients_do_not_share_memory(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    (x + y).sum().backward()
    x.grad.add_(1)
    return x.grad, y.grad


@program
def dead_branches_are_not_run(t):
    x, log = vec(t, requires_grad=True), []
    a, b = x.sin(), x.cos()
    a.register_hook(lambda g: log.append("a"))
    b.register_hook(lambda g: log.append("b"))
    t.autograd.grad((a * 2).sum(), x)
    return log


@program
def diamonds_run_each_node_once(t):
    x, log = scalar(t, requires_grad=True), []
    y = x.sin()
    y.register_hook(lambda g: log.append(g.item()))
    ((y * 2) + (y * 3) + y.exp()).backward()
    return log, x.grad


# ---------------------------------------------------------------- hooks of tensors and nodes
@program
def tensor_hooks_run_in_order_and_may_replace(t):
    x, log = vec(t, requires_grad=True), []
    y = x * 2
    y.register_hook(lambda g: log.append(("first", g.tolist())))
    y.register_hook(lambda g: g * 10)
    handle = y.register_hook(lambda g: log.append("removed"))
    y.register_hook(lambda g: log.append(("last", g.tolist())))
    handle.remove()
    x.register_hook(lambda g: g + 1)
    y.sum().backward()
    return log, x.grad


@program
def a_hook_of_a_leaf_is_seen_by_grad(t):
    x = vec(t, requires_grad=True)
    x.register_hook(lambda g: g * 5)
    return t.autograd.grad((x * x).sum(), x)


@program
def retain_grad_keeps_what_hooks_made(t):
    x = vec(t, requires_grad=True)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 3)
    y.sum().backward()
    return y.grad, x.grad, y.retains_grad, x.retains_grad


@program
def post_accumulate_grad_hooks(t):
    x, log = vec(t, requires_grad=True), []
    x.register_post_accumulate_grad_hook(lambda p: log.append(p.grad.tolist()))
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    return log, error(lambda: (x * 2).register_post_accumulate_grad_hook(print))


@program
def node_hooks_before_and_after(t):
    x, log = vec(t, requires_grad=True), []
    y = x.sin()
    y.grad_fn.register_prehook(lambda cts: log.append(("pre", [c.tolist() for c in cts])))
    y.grad_fn.register_hook(lambda grads, cts: log.append(("post", len(grads), len(cts))))
    (y * 2).sum().backward()
    return log, x.grad


@program
def a_node_hook_may_replace_gradients(t):
    x = vec(t, requires_grad=True)
    y = x.sin()
    y.grad_fn.register_hook(lambda grads, cts: (grads[0] * 2,))
    y.grad_fn.register_prehook(lambda cts: (cts[0] * 5,))
    y.sum().backward()
    return x.grad


# ---------------------------------------------------------------- in place, and views
@program
def versions_count_writes(t):
    x = vec(t)
    seen = [x._version]
    x.add_(1)
    seen.append(x._version)
    y = x[:2]
    y.mul_(2)
    seen += [x._version, y._version]
    x.detach().add_(1)
    seen.append(x._version)
    with t.no_grad():
        x.zero_()
    return [*seen, x._version]


@program
def a_saved_tensor_that_was_modified_is_an_error(t):
    x = vec(t, requires_grad=True)
    y = x.sin()
    z = (y * y).sum()
    y.add_(1)
    return error(z.backward, "has been modified by an inplace operation")


@program
def modifying_what_was_not_saved_is_fine(t):
    x = vec(t, requires_grad=True)
    y = x * 2
    z = y + 1
    y.mul_(3)
    (z.sum() + y.sum()).backward()
    return x.grad


@program
def an_output_that_is_saved_and_modified(t):
    x = vec(t, requires_grad=True)
    y = x.exp()
    y.add_(1)
    return error(y.sum().backward, "modified by an inplace operation")


@program
def in_place_ops_are_differentiated(t):
    x = vec(t, requires_grad=True)
    y = x.clone()
    y.sin_().mul_(x).add_(2)
    y.sum().backward()
    return y, x.grad


@program
def in_place_through_a_view(t):
    x = mat(t, requires_grad=True)
    y = x * 1
    y[0].mul_(3)
    y[:, 1].exp_()
    (y * y).sum().backward()
    return y, x.grad


@program
def a_view_sees_what_is_written_to_its_base(t):
    x, w = vec(t, requires_grad=True), vec(t, requires_grad=True)
    y = x * 1
    v = y[1:]
    y.mul_(w)
    (v * v).sum().backward()
    return v, x.grad, w.grad, v.grad_fn is not None


@program
def setitem_with_numbers_tensors_and_masks(t):
    x, w = mat(t, requires_grad=True), vec(t, requires_grad=True)
    y = x * 1
    y[0, 0] = 5.0
    y[1] = w
    y[y < 0] = 0.0
    y[:, t.tensor([2])] = w[0]
    (y * y).sum().backward()
    return y, x.grad, w.grad


@program
def copy_is_differentiated(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    z = x * 1
    z.copy_(y)
    (z * z).sum().backward()
    return z, x.grad, y.grad


@program
def fill_and_zero_cut_the_gradient(t):
    x = vec(t, requires_grad=True)
    y = x * 1
    y[:2].zero_()
    y.sum().backward()
    z = x * 1
    z.fill_(2.0)
    return y, x.grad, z, z.requires_grad


@program
def in_place_on_leaves_is_refused(t):
    x = vec(t, requires_grad=True)
    return (error(lambda: x.add_(1), "a leaf Variable that requires grad"),
            error(lambda: x[0].add_(1), "a view of a leaf Variable that requires grad"),
            error(lambda: x.detach().add_(1)), x)


@program
def in_place_makes_a_constant_require_grad(t):
    x, y = vec(t, requires_grad=True), vec(t)
    y.mul_(x)
    y.sum().backward()
    return y.requires_grad, y.is_leaf, x.grad


@program
def in_place_on_a_row_and_an_element_of_an_expanded_tensor(t):
    b = t.ones(3, dtype=t.float64, requires_grad=True)
    x = (b * 2).expand(4, 3)
    x[0].mul_(b)
    x[1, 1].mul_(5)
    x[2, 0] = 7.0
    (x * x).sum().backward()
    return x, b.grad


@program
def in_place_on_an_expanded_tensor_is_refused(t):
    x = t.zeros(1, dtype=t.float64).expand(3)
    return error(lambda: x.add_(1), "refers to a single memory location")


@program
def detach_in_place(t):
    x = vec(t, requires_grad=True)
    y = x * 2
    y.detach_()
    return y.requires_grad, y.is_leaf, y.grad_fn is None


@program
def views_share_storage_and_copies_do_not(t):
    x = mat(t)
    views = [x[0], x[:, 1], x.t(), x.view(6), x.reshape(3, 2), x.expand(2, 2, 3), x.unsqueeze(0), x.diagonal(), x.detach(),
             x.flatten(), x.narrow(0, 0, 1), x.permute(1, 0), x.squeeze(), x.T.reshape(6), x.clone(), x[[0, 1]], x + 0, x.flip(0)]
    return [v.untyped_storage().data_ptr() == x.untyped_storage().data_ptr() for v in views]


@program
def increment_version_by_hand(t):
    x = vec(t, requires_grad=True)
    y = x * 1
    z = (y * y).sum()
    t.autograd.graph.increment_version(y)
    return y._version, error(z.backward, "modified by an inplace operation")


# ---------------------------------------------------------------- saved-tensor hooks
@program
def hooks_are_called_in_the_order_of_saving_and_reading(t):
    log, x, w = [], mat(t, requires_grad=True), vec(t, requires_grad=True)
    with observed(t, log):
        y = ((x * w).sin() @ w).exp().sum()
    y.backward()
    return log, x.grad


@program
def the_innermost_hooks_win(t):
    outer, inner, x = [], [], vec(t, requires_grad=True)
    with observed(t, outer):
        a = x.sin()
        with observed(t, inner):
            b = a.exp()
        c = b.cos()
    c.sum().backward()
    return outer, inner, x.grad


@program
def hooks_at_saving_time_count(t):
    log, x = [], vec(t, requires_grad=True)
    y = x.sin()
    with observed(t, log):
        y.sum().backward()
    return log


@program
def hooks_may_pack_anything(t):
    x, kept = vec(t, requires_grad=True), {}

    def pack(v):
        kept[len(kept)] = v.detach().clone()
        return len(kept) - 1

    with t.autograd.graph.saved_tensors_hooks(pack, lambda k: kept[k]):
        y = (x.sin() * x).sum()
    y.backward()
    return x.grad, len(kept)


@program
def hooks_may_change_values(t):
    x = vec(t, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v * 2):
        y = (x * x).sum()
    y.backward()
    return x.grad


@program
def unpack_runs_again_for_each_backward(t):
    log, x = [], vec(t, requires_grad=True)
    with observed(t, log):
        y = x.sin().sum()
    y.backward(retain_graph=True)
    y.backward()
    return [event for event, *_ in log]


@program
def pack_gets_the_leaf_itself_and_outputs_detached(t):
    seen, x = [], vec(t, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda v: seen.append((v is x, v.requires_grad, v.is_leaf)) or v, lambda v: v):
        x.sin()
        x.exp()
        (x * 2).sin()
    return seen


def _keeping_leaves(t):
    """The gradient where hooks keep leaves as they are and put all else away, and what was put away: its node, if it shows one."""
    away, x = [], scalar(t, requires_grad=True)

    def pack(v):
        if v.is_leaf:
            return v
        away.append(v.grad_fn.name())
        return v.tolist()

    with t.autograd.graph.saved_tensors_hooks(pack, lambda p: p if isinstance(p, t.Tensor) else t.tensor(p, dtype=t.float64)):
        y = (x.exp() * x).sin()
    y.backward()
    return x.grad, away


@program
def hooks_that_keep_leaves_as_they_are(t):
    return _keeping_leaves(t)[0]


@program
def what_hooks_that_keep_leaves_put_away(t):
    return _keeping_leaves(t)[1]


def _arrays_kept(t, f, n):
    """How many arrays hooks keep to differentiate f once, its gradient, ... n times; numbers not counted."""
    kept, x = WeakSet(), vec(t, requires_grad=True)

    class Packed:
        def __init__(self, v):
            self.v = v.detach()
            kept.add(self)

    found = []
    with t.autograd.graph.saved_tensors_hooks(Packed, lambda packed: packed.v):
        orders = [f(x).sum()]
        for _ in range(n):
            found.append(len({packed.v.data_ptr() for packed in kept if packed.v.ndim}))
            orders.append(t.autograd.grad(orders[-1], x, create_graph=True)[0].sum())
    return found


@program
def arrays_that_ten_sines_keep_with_and_without_a_region(t):
    def ten(x):
        for _ in range(10):
            x = x.sin()
        return x
    return _arrays_kept(t, ten, 3), _arrays_kept(t, lambda x: ckpt(t, ten, x), 3)


@program
def hooks_of_constants_and_numbers(t):
    log, x, c = [], vec(t, requires_grad=True), vec(t)
    with observed(t, log):
        (x * c).sum() + (x * 2).sum() + (x / c).sum() + (2 / x).sum() + (x ** 2).sum()
    return log


@program
def unpack_must_return_a_tensor(t):
    x = vec(t, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: 3):
        y = x.sin().sum()
    return error(y.backward, "expected to be a Tensor")


@program
def pack_must_not_modify(t):
    x = vec(t, requires_grad=True)

    def f():
        with t.autograd.graph.saved_tensors_hooks(lambda v: v.mul_(2), lambda v: v):
            (x * 1).sin()
    return error(f, "A saved tensor pack hook is modifying its input")


@program
def hooks_can_be_disabled(t):
    x = vec(t, requires_grad=True)
    hooks = t.autograd.graph.saved_tensors_hooks
    with t.autograd.graph.disable_saved_tensors_hooks("not now"):
        plain = x.sin().sum()
        refused = error(lambda: hooks(lambda v: v, lambda v: v).__enter__(), "not now")
    plain.backward()
    with hooks(lambda v: v, lambda v: v):
        x.sin()
    return refused, x.grad


@program
def disabling_inside_hooks_is_an_error(t):
    def f():
        with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):  # noqa: SIM117
            with t.autograd.graph.disable_saved_tensors_hooks("not now"):
                pass
    return error(f)


@program
def errors_in_hooks_come_out(t):
    x = vec(t, requires_grad=True)

    def bad(v):
        raise ValueError("from a hook")

    with t.autograd.graph.saved_tensors_hooks(lambda v: v, bad):
        y = x.sin().sum()

    def packing():
        with t.autograd.graph.saved_tensors_hooks(bad, lambda v: v):
            x.sin()
    return error(y.backward, "from a hook"), error(packing, "from a hook"), t.is_grad_enabled()


@program
def grad_mode_inside_hooks_is_off(t):
    seen, x = [], vec(t, requires_grad=True)
    with t.autograd.graph.saved_tensors_hooks(lambda v: seen.append((v * 2).requires_grad) or v, lambda v: v):
        (x * 1).sin()
    return seen


@program
def saved_attributes_of_nodes(t):
    x, y = vec(t, requires_grad=True), vec(t)
    z, s = (x * y).grad_fn, x.exp().grad_fn
    m = x.sum().grad_fn
    return z._saved_other, z._saved_self, s._saved_result, error(lambda: m._saved_other)


@program
def saved_attributes_go_with_the_backward(t):
    x = vec(t, requires_grad=True)
    y = x.sin()
    y.sum().backward()
    return error(lambda: y.grad_fn._saved_self, "second time")


@program
def save_on_cpu_at_level_0(t):
    x, w = mat(t, requires_grad=True), vec(t, requires_grad=True)
    with t.autograd.graph.save_on_cpu():
        y = ((x * w).sin() @ w).exp().sum()
    y.backward()
    return x.grad, w.grad


@program
def hooks_with_create_graph(t):
    log, x = [], vec(t, requires_grad=True)
    with observed(t, log):
        y = (x.sin() * x).sum()
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (gg,) = t.autograd.grad(g.sum(), x)
    return g, gg, [event for event, *_ in log]


# ---------------------------------------------------------------- checkpoint at level 0: torch's rules
@program
def checkpoint_runs_its_function_twice(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(lambda v: v.sin().cos())
    y = ckpt(t, f, x)
    before = calls[0]
    y.sum().backward()
    return y, x.grad, before, calls[0]


@program
def checkpoint_of_nothing_saved_runs_once(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(lambda v: v + 1)
    ckpt(t, f, x).sum().backward()
    return x.grad, calls[0]


@program
def checkpoint_saves_nothing_but_its_inputs(t):
    log, x = [], vec(t, requires_grad=True)
    with observed(t, log):
        ckpt(t, lambda v: (v * 1).sin().cos().exp(), x * 2)
    return log


@program
def nested_checkpoints_run_as_often_as_in_torch(t):
    x, counts = vec(t, requires_grad=True), []
    inner, inner_calls = counted(lambda v: v.sin().cos())
    middle, middle_calls = counted(lambda v: ckpt(t, inner, v.exp()).sin())
    outer, outer_calls = counted(lambda v: ckpt(t, middle, v * 2).tanh())
    y = ckpt(t, outer, x)
    y.sum().backward()
    return x.grad, [inner_calls[0], middle_calls[0], outer_calls[0]], counts


@program
def checkpoints_in_a_row_and_nested_with_and_without_early_stop(t):
    found = []
    for early in (True, False):
        log = []

        def layer(k):
            def f(v, k=k):
                log.append(k)
                return (v * k).sin()
            return f

        x = vec(t, requires_grad=True)
        with t.utils.checkpoint.set_checkpoint_early_stop(early):
            y = ckpt(t, lambda v: ckpt(t, layer(2), ckpt(t, layer(1), v)), x)
            z = ckpt(t, layer(3), y)
        z.sum().backward()
        found.append((x.grad, log))
    return found


@program
def early_stop_leaves_out_the_rest(t):
    log, x = [], vec(t, requires_grad=True)

    def f(v):
        y = v.sin()
        log.append("saved")
        z = y + 1
        log.append("rest")
        return z

    ckpt(t, f, x).sum().backward()
    ckpt(t, f, x, early_stop=False).sum().backward()
    return log


@program
def checkpoint_with_kwargs_and_other_arguments(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)

    def f(v, power, *, other=None, scale=1):
        return (v ** power * other).sin() * scale

    out = ckpt(t, f, x, 2, other=y, scale=3)
    out.sum().backward()
    return out, x.grad, y.grad


@program
def checkpoint_with_several_outputs(t):
    x = vec(t, requires_grad=True)

    def f(v):
        return v.sin(), {"b": v.cos(), "c": 3}

    a, rest = ckpt(t, f, x)
    (a * rest["b"]).sum().backward()
    return a, rest["c"], x.grad


@program
def checkpoint_of_captured_tensors(t):
    w, x = vec(t, requires_grad=True), vec(t)
    ckpt(t, lambda v: (v * w).sin(), x).sum().backward()
    return w.grad, x.grad


@program
def checkpoint_without_grad(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(lambda v: v.sin())
    with t.no_grad():
        y = ckpt(t, f, x)
    z = ckpt(t, f, x.detach())
    return y.requires_grad, z.requires_grad, calls[0]


@program
def checkpoint_with_retain_graph_runs_again_each_time(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(lambda v: v.sin().exp())
    y = ckpt(t, f, x).sum()
    y.backward(retain_graph=True)
    y.backward()
    return x.grad, calls[0], error(y.backward)


@program
def checkpoint_with_double_backward(t):
    x = vec(t, requires_grad=True)
    y = ckpt(t, lambda v: (v.sin() * v).exp(), x).sum()
    (g,) = t.autograd.grad(y, x, create_graph=True)
    (gg,) = t.autograd.grad((g * g).sum(), x)
    return g, gg


@program
def backward_inside_a_checkpoint(t):
    x = vec(t, requires_grad=True)

    def f(v):
        y = v.sin()
        with t.enable_grad():
            w = v.detach().requires_grad_()
            (g,) = t.autograd.grad(w.exp().sum(), w)
        return y * g

    ckpt(t, f, x).sum().backward()
    return x.grad


@program
def a_graph_outside_used_inside(t):
    x = vec(t, requires_grad=True)
    a = x * 2

    def f(v):
        (g,) = t.autograd.grad(a.sin().sum(), a, retain_graph=True)
        return v.sin() * g.detach()

    ckpt(t, f, x).sum().backward()
    return x.grad


@program
def two_backwards_into_parts_of_a_checkpoint(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(lambda v: (v.sin(), v.cos()))
    a, b = ckpt(t, f, x)
    a.sum().backward()
    after = calls[0]
    b.sum().backward()
    return x.grad, after, calls[0]


@program
def checkpoint_under_hooks_and_hooks_under_checkpoint(t):
    outer, inner, x = [], [], vec(t, requires_grad=True)

    def f(v):
        with observed(t, inner):
            y = v.sin()
        return y.exp()

    with observed(t, outer):
        y = ckpt(t, f, x * 1)
    y.sum().backward()
    return outer, inner, x.grad


@program
def checkpoint_notices_fewer_and_more_and_other_saves(t):
    def run(first, second):
        turns = iter([first, second, second])
        x = vec(t, requires_grad=True)
        y = ckpt(t, lambda v: next(turns)(v), x, early_stop=False)
        return error(y.sum().backward, "torch.utils.checkpoint")

    return (run(lambda v: v.sin().cos(), lambda v: v.sin()), run(lambda v: v.sin(), lambda v: v.sin().cos()),
            run(lambda v: v.sin(), lambda v: v[:2].sin()), run(lambda v: v.sin(), lambda v: v.float().sin().double()),
            run(lambda v: v.sin(), lambda v: v.sin()))


@program
def checkpoint_without_determinism_check(t):
    turns, x = iter([2.0, 3.0, 3.0]), vec(t, requires_grad=True)
    y = ckpt(t, lambda v: (v * next(turns)).sin(), x, determinism_check="none")
    y.sum().backward()
    return x.grad


@program
def an_error_in_the_function_comes_out(t):
    x = vec(t, requires_grad=True)
    turn = [0]

    def f(v):
        turn[0] += 1
        if turn[0] > 1:
            raise ValueError("second time")
        return v.sin()

    def always(v):
        raise KeyError("first time")

    y = ckpt(t, f, x)
    return error(lambda: ckpt(t, always, x)), error(y.sum().backward, "second time"), t.is_grad_enabled()


@program
def checkpoint_sequential_in_segments(t):
    x, log = vec(t, requires_grad=True), []

    def layer(k):
        def f(v):
            log.append(k)
            return (v * k).sin()
        return f

    y = t.utils.checkpoint.checkpoint_sequential([layer(k) for k in range(1, 6)], 2, x, use_reentrant=False)
    forward = list(log)
    y.sum().backward()
    return y, x.grad, forward, log


@program
def context_fn_gives_both_contexts(t):
    log, x = [], vec(t, requires_grad=True)

    class Note:
        def __init__(self, name):
            self.name = name

        def __enter__(self):
            log.append(f"enter {self.name}")

        def __exit__(self, *error):
            log.append(f"exit {self.name}")

    y = ckpt(t, lambda v: v.sin(), x, context_fn=lambda: (Note("forward"), Note("again")), early_stop=False)
    y.sum().backward()
    return log, x.grad


@program
def dropout_is_the_same_the_second_time(t):
    t.manual_seed(3)
    x = t.ones(64, dtype=t.float64).requires_grad_()
    y = ckpt(t, lambda v: t.nn.functional.dropout(v.sin(), 0.5), x)
    y.sum().backward()
    return ((x.grad != 0) == (y != 0)).all().item()


@program
def a_stream_goes_on_after_a_checkpoint_as_without_one(t):
    def draws(wrap):
        t.manual_seed(5)
        x = t.ones(4, dtype=t.float64).requires_grad_()
        y = wrap(lambda v: t.nn.functional.dropout(v, 0.5), x)
        a = t.rand(2)
        y.sum().backward()
        return a, t.rand(2)

    with_it, without = draws(lambda f, x: ckpt(t, f, x)), draws(lambda f, x: f(x))
    return [(a == b).all().item() for a, b in zip(with_it, without, strict=True)]


@program
def gradients_accumulate_once_in_a_region(t):
    w = vec(t, requires_grad=True)
    x = vec(t, requires_grad=True)

    def f(v):
        (w * 2).sum().backward()
        return v.sin()

    ckpt(t, f, x).sum().backward()
    return w.grad


@program
def checkpoint_of_an_int_input_and_none(t):
    x, i = vec(t, requires_grad=True), t.tensor([0, 2])
    y = ckpt(t, lambda v, k, n: v[k].sin() if n is None else v, x, i, None)
    y.sum().backward()
    return y, x.grad


@program
def checkpoint_twice_of_one_function(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(lambda v: v.sin().cos())
    y = ckpt(t, f, ckpt(t, f, x))
    y.sum().backward()
    return x.grad, calls[0]


@program
def checkpoint_with_in_place_ops_inside(t):
    x = vec(t, requires_grad=True)

    def f(v):
        y = v * 2
        y.sin_()
        y[0] = 1.0
        return y.exp()

    ckpt(t, f, x).sum().backward()
    return x.grad


@program
def checkpoint_asked_for_one_input_only(t):
    x, y = vec(t, requires_grad=True), vec(t, requires_grad=True)
    z = ckpt(t, lambda a, b: (a * b).sin(), x, y).sum()
    return t.autograd.grad(z, y, retain_graph=True), t.autograd.grad(z, x)


# ---------------------------------------------------------------- custom functions
def cube(t, *, separate=False):
    """x ** 3, whose backward is written by hand."""
    class Cube(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return 3 * x * x * g

        @staticmethod
        def jvp(ctx, dx):
            return 3 * ctx.x * ctx.x * dx

    def setup_context(ctx, inputs, output):
        (x,) = inputs
        ctx.save_for_backward(x)
        ctx.save_for_forward(x)
        ctx.x = x

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    if separate:
        Cube.forward, Cube.setup_context = staticmethod(lambda x: x * x * x), staticmethod(setup_context)
    else:
        Cube.forward = staticmethod(forward)
    return Cube.apply


@program
def a_custom_function_at_level_0(t):
    x = vec(t, requires_grad=True)
    y = cube(t)(x)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return y, y.grad_fn.name(), g, t.autograd.grad(g.sum(), x)


@program
def a_custom_function_under_transforms(t):
    f, x = cube(t, separate=True), vec(t)
    return (t.func.grad(lambda v: f(v).sum())(x), t.func.grad(lambda v: t.func.grad(lambda u: f(u).sum())(v).sum())(x), t.func.vmap(f)(mat(t)),
            t.func.vmap(t.func.grad(lambda v: f(v).sum()))(mat(t)), t.func.jacrev(f)(x))


@program
def hooks_see_what_a_custom_function_saves(t):
    log, x = [], vec(t, requires_grad=True)
    with observed(t, log):
        y = cube(t)(x)
    y.sum().backward()
    return log, x.grad


@program
def a_custom_function_in_a_checkpoint(t):
    x = vec(t, requires_grad=True)
    f, calls = counted(cube(t))
    y = ckpt(t, lambda v: f(v.sin()).cos(), x)
    y.sum().backward()
    return y, x.grad, calls[0]


@program
def needs_input_grad_and_none_for_constants(t):
    seen = []

    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, n):
            ctx.save_for_backward(x, y)
            return x * y * n

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx.needs_input_grad)
            _, y = ctx.saved_tensors
            return g * y * 2, None, None

    x, y = vec(t, requires_grad=True), vec(t)
    Product.apply(x, y, 2).sum().backward()
    return list(seen[0]), x.grad


@program
def outputs_of_a_custom_function_that_have_no_derivative(t):
    class Sorted(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, indices = x.sort()
            ctx.mark_non_differentiable(indices)
            ctx.save_for_backward(indices)
            return values, indices

        @staticmethod
        def backward(ctx, g, _):
            (indices,) = ctx.saved_tensors
            return t.zeros_like(g).scatter(0, indices, g)

    x = vec(t, requires_grad=True)
    values, indices = Sorted.apply(x)
    (values * vec(t)).sum().backward()
    return values, indices, indices.requires_grad, x.grad


@program
def a_wrong_number_of_gradients_is_an_error(t):
    class Wrong(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g, g

    x = vec(t, requires_grad=True)
    return error(lambda: Wrong.apply(x).sum().backward(), "returned an incorrect number of gradients")


@program
def a_backward_that_is_once_differentiable(t):
    class Once(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @t.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = vec(t, requires_grad=True)
    (g,) = t.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    return g.detach(), error(lambda: t.autograd.grad(g.sum(), x))


# ---------------------------------------------------------------- transforms, without features
def smooth(t):
    return lambda x: (x.sin() * x + (x * x).exp() * 0.1).sum()


@program
def grad_and_its_orders(t):
    x = scalar(t)
    g, found = lambda v: v.sin() * v, []
    for _ in range(4):
        g = t.func.grad(g)
        found.append(g(x))
    return found


@program
def grad_of_pytrees_and_argnums(t):
    a, b = vec(t), vec(t) + 1

    def f(tree, y, k=1):
        return (tree["a"] * tree["b"][0] * y).sum() * k

    tree = {"a": a, "b": (b, 3)}
    return (t.func.grad(lambda d, y: f({**d, "b": (d["b"], 0)}, y))({"a": a, "b": b}, a),
            t.func.grad(lambda d, y: f(tree, y), 1)(tree, b), t.func.grad(lambda x, y: (x * y).sum(), (0, 1))(a, b),
            t.func.grad(lambda x, y: (x * y).sum(), argnums=-1)(a, b))


@program
def grad_with_aux_and_value(t):
    x = vec(t)
    f = smooth(t)
    return (t.func.grad(lambda v: (f(v), v * 2), has_aux=True)(x), t.func.grad_and_value(f)(x),
            t.func.grad_and_value(lambda v: (f(v), {"k": v}), has_aux=True)(x))


@program
def vjp_of_several_outputs(t):
    x, y = vec(t), vec(t) + 1
    (a, b), pull = t.func.vjp(lambda u, v: (u * v, u.sum()), x, y)
    ct = (t.ones(3, dtype=t.float64), scalar(t))
    return a, b, pull(ct), pull(ct), error(lambda: pull(ct[0]))


@program
def jvp_of_several_inputs(t):
    x, y = vec(t), vec(t) + 1
    return (t.func.jvp(lambda u, v: (u.sin() * v, u), (x, y), (y, x)),
            t.func.jvp(lambda u: (u.exp(), u * 2), (x,), (y,), has_aux=True))


@program
def jvp_and_grad_nested_both_ways(t):
    x, v = vec(t), vec(t) + 1
    f = smooth(t)
    return (t.func.jvp(t.func.grad(f), (x,), (v,)), t.func.grad(lambda u: t.func.jvp(f, (u,), (v,))[1])(x),
            t.func.jvp(lambda u: t.func.jvp(f, (u,), (v,))[1], (x,), (v,)))


@program
def jacobians_and_hessians(t):
    x, w = vec(t), mat(t)

    def f(v):
        return (w @ v).sin()

    return (t.func.jacrev(f)(x), t.func.jacfwd(f)(x), t.func.hessian(smooth(t))(x), t.func.jacrev(t.func.jacfwd(f))(x),
            t.func.jacfwd(t.func.jacrev(f))(x), t.func.jacrev(f, chunk_size=1)(x))


@program
def jacobians_of_pytrees(t):
    x, y = vec(t), vec(t) + 1

    def f(u, v):
        return {"a": u * v, "b": u.sum()}

    return t.func.jacrev(f, (0, 1))(x, y), t.func.jacfwd(f, (0, 1))(x, y), t.func.jacrev(
        lambda u: (u * 2, u), has_aux=True)(x)


@program
def linearize_and_its_function(t):
    x = vec(t)
    y, push = t.func.linearize(lambda v: v.sin() * v, x)
    return y, push(t.ones(3, dtype=t.float64)), push(x)


@program
def vmap_in_and_out_dims(t):
    m, v = mat(t), vec(t)
    return (t.func.vmap(t.dot)(m, m), t.func.vmap(t.dot, in_dims=(0, None))(m, v),
            t.func.vmap(lambda a: a * 2, in_dims=1)(m), t.func.vmap(lambda a: a * 2, in_dims=1, out_dims=1)(m),
            t.func.vmap(lambda a: (a.sum(), a * 2), out_dims=(0, 1))(m),
            t.func.vmap(lambda d: d["a"] * d["b"], in_dims=({"a": 0, "b": None},))({"a": m, "b": v}),
            t.func.vmap(t.func.vmap(lambda a, b: a * b, in_dims=(0, None)), in_dims=(None, 0))(v, v),
            t.func.vmap(lambda a: a.sum(), chunk_size=1)(m))


@program
def vmap_of_constants_and_indices(t):
    m, i = mat(t), t.tensor([2, 0])
    return (t.func.vmap(lambda a: t.ones(2))(m), t.func.vmap(lambda a, k: a[k])(m, i),
            t.func.vmap(lambda a: a[t.tensor([0, 2])])(m), t.func.vmap(lambda a: t.where(a > 0, a, 0.0))(m))


@program
def vmap_out_dims_of_what_is_no_batch(t):
    return t.func.vmap(lambda a: t.ones(3), out_dims=1)(mat(t))


@program
def per_sample_gradients(t):
    w, xs = vec(t), mat(t)
    return t.func.vmap(t.func.grad(lambda v, x: (v * x).sin().sum()), in_dims=(None, 0))(w, xs)


@program
def nested_vmap_grad_jvp(t):
    m = mat(t)

    def f(v):
        return (v.sin() * v).sum()

    return (t.func.vmap(t.func.grad(f))(m), t.func.grad(lambda a: t.func.vmap(f)(a).sum())(m),
            t.func.vmap(lambda v: t.func.jvp(t.func.grad(f), (v,), (v,))[1])(m),
            t.func.jvp(lambda a: t.func.vmap(t.func.grad(f))(a), (m,), (m,)), t.func.vmap(t.func.hessian(f))(m))


@program
def transforms_under_level_0(t):
    x = vec(t, requires_grad=True)
    g = t.func.grad(smooth(t))(x)
    g.sum().backward()
    y = t.func.vmap(lambda v: v.sin())(x)
    (h,) = t.autograd.grad(y.sum(), x)
    return g, x.grad, h


@program
def jvp_of_grad_of_norm_under_level_0(t):
    x = vec(t, requires_grad=True)
    y = t.func.jvp(t.func.grad(lambda v: (v / (v.norm() + 1)).sum()), (x,), (vec(t) + 1,))[1]
    return t.autograd.grad(y.sum(), x)


@program
def grad_mode_and_transforms(t):
    x = vec(t)

    def inside(v):
        with t.no_grad():
            c = v * 2
        return (v * c).sum()

    with t.no_grad():
        outside = t.func.grad(lambda v: (v * v).sum())(x)
    return t.func.grad(inside)(x), outside, t.func.grad(lambda v: (v * v.detach()).sum())(x)


@program
def perturbation_confusion(t):
    x = scalar(t, value=3.0)
    return (t.func.grad(lambda a: a * t.func.grad(lambda b: a + b)(scalar(t)))(x),
            t.func.grad(lambda a: t.func.grad(lambda b: a * b * b)(a))(x),
            t.func.jvp(lambda a: a * t.func.jvp(lambda b: a * b, (a,), (a,))[1], (x,), (x,)))


@program
def in_place_under_transforms(t):
    x = vec(t)

    def f(v):
        y = v * 1
        y.sin_()
        y[0] = v[1] * 2
        y[1:] *= v[0]
        return (y * y).sum()

    return (t.func.grad(f)(x), t.func.jvp(f, (x,), (x,)), t.func.vmap(f)(mat(t)), t.func.hessian(f)(x),
            t.func.vmap(t.func.grad(f))(mat(t)))


@program
def in_place_on_a_tangent_that_is_the_same_for_all_samples(t):
    def f(v):
        y = v + 1
        y[1:].mul_(v[:2])
        return y

    return t.func.vmap(t.func.jacfwd(f))(mat(t)), t.func.vmap(lambda v: t.func.jvp(f, (v,), (v,))[1])(mat(t))


@program
def vmap_errors(t):
    m = mat(t)
    return (error(lambda: t.func.vmap(lambda v: v.item())(m), "vmap: It looks like you're calling .item()"),
            error(lambda: t.func.vmap(lambda v: t.rand(2))(m), "randomness"),
            error(lambda: t.func.vmap(lambda v: v, in_dims=5)(m)), error(lambda: t.func.vmap(lambda v: v, out_dims=5)(m)),
            error(lambda: t.func.vmap(lambda v: 3)(m), "must only return Tensors"),
            error(lambda: t.func.vmap(lambda v: t.zeros(3, dtype=t.float64).add_(v))(m)),
            error(lambda: t.func.vmap(lambda v: v if v.sum() > 0 else -v)(m)),
            error(lambda: t.func.vmap(lambda v: v.nonzero())(m)))


@program
def escaped_tensors_mean_their_value(t):
    kept, x = [], vec(t)
    t.func.grad(lambda v: kept.append(v * 2) or v.sum())(x)
    return kept[0] + 1


@program
def mlp_with_parameters(t):
    w1, b1, w2 = mat(t).T.contiguous(), mat(t)[:, 0], vec(t)[:2]
    x = mat(t)

    def loss(params, x):
        a, b, c = params
        return (((x @ a + b).tanh() @ c) ** 2).mean()

    params = (w1, b1, w2)
    return (t.func.grad(loss)(params, x), t.func.vmap(t.func.grad(loss), in_dims=(None, 0))(params, x),
            t.func.jacfwd(loss)(params, x), t.func.hessian(loss)(params, x))


@program
def what_is_no_real_number_has_no_tangent(t):
    x, i = vec(t), t.tensor([0, 2, 1])
    d = t.ones_like(x)
    return (t.func.jvp(lambda x: x.long().to(t.float64) * 2, (x,), (d,)), t.func.jvp(lambda x: x * x.long(), (x,), (d,)),
            t.func.jacfwd(lambda x: (x.long(), x > 0, x[i]))(x), t.func.vmap(lambda x: t.func.jvp(lambda x: x.to(t.int32) * x, (x,), (x,)))(mat(t)))


@program
def what_transforms_take_and_give_are_real_or_complex_numbers(t):
    x, i = vec(t), t.tensor([0, 2, 1])
    real, words = "only Tensors of floating point dtype can require gradients", "to be floating point or complex, but got:"
    return (error(lambda: t.func.grad(lambda i: i.sum())(i), real), error(lambda: t.func.vjp(lambda x, i: x * i, x, i), real),
            error(lambda: t.func.jacrev(lambda i: i * 2)(i), real),
            error(lambda: t.func.vjp(lambda x: x.long(), x), "All outputs of f must be floating-point or complex Tensors"),
            error(lambda: t.func.jvp(lambda i: i, (i,), (i,)), words), error(lambda: t.func.jvp(lambda x: x, (x,), (i,)), words),
            t.func.grad(lambda x: x.long().sum())(x), t.func.grad(lambda x, i: (x * i).sum())(x, i))


@program
def dims_of_vmap_are_tuples_and_lists_as_the_trees_are(t):
    m = mat(t)
    vmap, words = t.func.vmap, "structure of"
    return (vmap(lambda x: x * 2, out_dims=(1,))(m), vmap(lambda x: [x, x], out_dims=[0, 1])(m),
            vmap(lambda x: x[0], in_dims=([1],))([m]), vmap(lambda x: {"a": x, "b": [x]}, out_dims={"a": 1, "b": 0})(m),
            error(lambda: vmap(lambda x: (x, x), out_dims=[0, 1])(m), words), error(lambda: vmap(lambda x: [x, x], out_dims=(0, 1))(m), words),
            error(lambda: vmap(lambda x: x[0], in_dims=((0,),))([m]), words), error(lambda: vmap(lambda x: x, in_dims=[0])(m), words),
            error(lambda: vmap(lambda x: x, out_dims=(0, 0))(m), words))


# ---------------------------------------------------------------- transforms with features: torch refuses most of these
@featured
def level_0(t, wrap):
    x = vec(t, requires_grad=True)
    wrap(lambda v: v.sin().cos())(x).sum().backward()
    return x.grad


@featured
def level_0_twice(t, wrap):
    x = vec(t, requires_grad=True)
    (g,) = t.autograd.grad(wrap(lambda v: (v.sin() * v).exp())(x).sum(), x, create_graph=True)
    return g, t.autograd.grad((g * g).sum(), x)


@featured
def grad(t, wrap):
    return t.func.grad(wrap(lambda v: v.sin().cos().sum()))(vec(t))


@featured
def grad_of_a_part(t, wrap):
    return t.func.grad(lambda v: (wrap(lambda u: u.sin())(v * 2) * v).sum())(vec(t))


@featured
def grad_grad(t, wrap):
    """The seed: it silently gave 0 once."""
    return t.func.grad(t.func.grad(wrap(lambda v: v.sin().sin())))(scalar(t))


@featured
def grad_grad_grad(t, wrap):
    return t.func.grad(t.func.grad(t.func.grad(wrap(lambda v: v.sin() * v))))(scalar(t))


@featured
def grad_outside_of_the_feature_grad_inside(t, wrap):
    inner = wrap(lambda v: t.func.grad(lambda u: (u.sin() * u).sum())(v))
    return t.func.grad(lambda v: inner(v).exp().sum())(vec(t))


@featured
def grad_and_value(t, wrap):
    return t.func.grad_and_value(wrap(lambda v: v.sin().cos().sum()))(vec(t))


@featured
def vjp(t, wrap):
    y, pull = t.func.vjp(wrap(lambda v: v.sin().cos()), vec(t))
    ct = vec(t) + 1
    return y, pull(ct), pull(ct)


@featured
def jvp(t, wrap):
    return t.func.jvp(wrap(lambda v: v.sin().cos()), (vec(t),), (vec(t) + 1,))


@featured
def jvp_of_grad(t, wrap):
    return t.func.jvp(t.func.grad(wrap(lambda v: (v.sin() * v).sum())), (vec(t),), (vec(t) + 1,))


@featured
def grad_of_jvp(t, wrap):
    f = wrap(lambda v: (v.sin() * v).sum())
    return t.func.grad(lambda v: t.func.jvp(f, (v,), (vec(t) + 1,))[1])(vec(t))


@featured
def vmap(t, wrap):
    return t.func.vmap(wrap(lambda v: v.sin().cos()))(mat(t))


@featured
def vmap_of_grad(t, wrap):
    return t.func.vmap(t.func.grad(wrap(lambda v: (v.sin() * v).sum())))(mat(t))


@featured
def grad_of_vmap(t, wrap):
    f = wrap(lambda v: (v.sin() * v).sum())
    return t.func.grad(lambda a: t.func.vmap(f)(a).sum())(mat(t))


@featured
def vmap_under_level_0(t, wrap):
    """The backward runs after vmap has gone."""
    x = mat(t, requires_grad=True)
    t.func.vmap(wrap(lambda v: (v.sin() * v).exp()))(x).sum().backward()
    return x.grad


@featured
def jacrev(t, wrap):
    return t.func.jacrev(wrap(lambda v: v.sin() * v.sum()))(vec(t))


@featured
def jacfwd(t, wrap):
    return t.func.jacfwd(wrap(lambda v: v.sin() * v.sum()))(vec(t))


@featured
def hessian(t, wrap):
    return t.func.hessian(wrap(lambda v: (v.sin() * v.sum()).sum()))(vec(t))


@featured
def jacrev_of_jacrev(t, wrap):
    return t.func.jacrev(t.func.jacrev(wrap(lambda v: (v.sin() * v.sum()).sum())))(vec(t))


@featured
def per_sample_gradients_of_an_mlp(t, wrap):
    w, b, xs = mat(t), mat(t)[:, 0], mat(t)

    def loss(params, x):
        w, b = params
        return wrap(lambda u: (u @ w.T + b).tanh())(x).pow(2).sum()

    return t.func.vmap(t.func.grad(loss), in_dims=(None, 0))((w, b), xs)


@featured
def linearized(t, wrap):
    y, push = t.func.linearize(wrap(lambda v: v.sin() * v), vec(t))
    return y, push(vec(t) + 1)


@featured
def level_0_around_grad(t, wrap):
    x = vec(t, requires_grad=True)
    g = t.func.grad(wrap(lambda v: (v.sin() * v).sum()))(x)
    g.sum().backward()
    return g, x.grad


@featured
def captured_by_the_region(t, wrap):
    w, x = vec(t), vec(t) + 1
    return t.func.grad(lambda u: wrap(lambda v: (v * u).sin().sum())(x))(w)


@featured
def in_place_in_the_region(t, wrap):
    def f(v):
        y = v * 2
        y.sin_()
        y[0] = 1.0
        return y.exp().sum()

    return t.func.grad(wrap(f))(vec(t))


@featured
def nested_regions(t, wrap):
    inner = wrap(lambda v: v.sin())
    outer = wrap(lambda v: inner(v * 2).cos())
    return t.func.grad(lambda v: outer(v).sum())(vec(t)), t.func.hessian(lambda v: outer(v).sum())(vec(t))


def checkpointed(t):
    return lambda f: lambda *args: ckpt(t, f, *args)


def offloaded(t):
    def wrap(f):
        def g(*args):
            with t.autograd.graph.save_on_cpu():
                return f(*args)
        return g
    return wrap


def hooked(t):
    def wrap(f):
        def g(*args):
            with t.autograd.graph.saved_tensors_hooks(lambda v: v, lambda v: v):
                return f(*args)
        return g
    return wrap


def both(t):
    return lambda f: checkpointed(t)(offloaded(t)(f))


FEATURES = {"checkpoint": checkpointed, "save_on_cpu": offloaded, "hooks": hooked, "checkpoint of save_on_cpu": both}


# ---------------------------------------------------------------- forward mode by hand
def dual_tangent(t, f, x, v):
    with t.autograd.forward_ad.dual_level():
        return t.autograd.forward_ad.unpack_dual(f(t.autograd.forward_ad.make_dual(x, v))).tangent


@program
def a_tangent_by_hand(t):
    fw = t.autograd.forward_ad
    with fw.dual_level() as level:
        x = fw.make_dual(vec(t), vec(t) * 2)
        y = fw.unpack_dual((x.sin() * x).exp())
        plain = fw.unpack_dual(vec(t))
        seen = level, fw._current_level, y.primal, y.tangent, plain.tangent is None
    return seen, fw._current_level, fw.unpack_dual(x).tangent is None


@program
def levels_by_call(t):
    fw = t.autograd.forward_ad
    level = fw.enter_dual_level()
    tangent = fw.unpack_dual(fw.make_dual(vec(t), vec(t)).cos()).tangent
    fw.exit_dual_level(level=level)
    return level, tangent, error(lambda: fw.make_dual(vec(t), vec(t)), "no level exists, make sure to enter_dual_level() first")


@program
def what_cannot_be_a_dual(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        x, n = vec(t), t.ones(3, dtype=t.int64)
        d = fw.make_dual(x, x)
        return [error(lambda: fw.make_dual(d, x), "already has a forward gradient at the same level"),
                error(lambda: fw.make_dual(x, d), "itself has a forward gradient at the same level"),
                error(lambda: fw.make_dual(x, t.ones(2, dtype=t.float64)), "different size than that of the original Tensor"),
                error(lambda: fw.make_dual(x, n), "Expected tangent to be floating point or complex"),
                error(lambda: fw.make_dual(n, x), "Expected primal to be floating point or complex")]


@program
def a_dual_in_place_and_through_a_view(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(vec(t), vec(t)).clone()
        x[0].mul_(3)
        x.narrow(0, 1, 2).sin_()
        y = t.zeros(3, dtype=t.float64)
        y[1] = x[1] * 2
        return [tuple(fw.unpack_dual(v)) for v in (x, x[1:], y)]


@program
def a_dual_detached_or_without_grad(t):
    fw = t.autograd.forward_ad
    x = vec(t, requires_grad=True)
    with fw.dual_level():
        d = fw.make_dual(x, vec(t))
        with t.no_grad():
            y = fw.unpack_dual(d * 3)
        gone = d.clone()
        gone.detach_()
        return (y.tangent, y.primal.requires_grad, fw.unpack_dual(d.detach() * 2).tangent is None,
                fw.unpack_dual(gone * 2).tangent is None, d.requires_grad)


@program
def forward_mode_turned_off(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        x = fw.make_dual(vec(t), vec(t))
        with fw._set_fwd_grad_enabled(False):
            off = fw._is_fwd_grad_enabled(), fw.unpack_dual(x).tangent is None
            y = x.sin()
        return off, fw._is_fwd_grad_enabled(), fw.unpack_dual(y).tangent is None, fw.unpack_dual(x * y).tangent


@program
def forward_mode_turned_off_around_and_inside_jvp(t):
    fw = t.autograd.forward_ad

    def f(x):
        with fw._set_fwd_grad_enabled(False):
            y = x.sin()
        return x * y

    with fw._set_fwd_grad_enabled(False):
        around = t.func.jvp(t.sin, (vec(t),), (vec(t),))[1]
    return around, t.func.jvp(f, (vec(t),), (vec(t),))[1]


@program
def leaves_made_at_a_dual_level(t):
    fw = t.autograd.forward_ad
    with fw.dual_level():
        w = vec(t).requires_grad_()
        d = fw.make_dual(vec(t) * 2, vec(t)).requires_grad_()
        (d * w).sum().backward()
        return w.grad, d.grad, d.is_leaf, fw.unpack_dual(w.grad).tangent is None


@program
def a_cotangent_that_is_a_dual(t):
    fw = t.autograd.forward_ad
    x = vec(t, requires_grad=True)
    with fw.dual_level():
        d = fw.make_dual(x, vec(t))
        ct = fw.make_dual(vec(t) * 2, vec(t) * 3)
        return tuple(fw.unpack_dual(t.autograd.grad(d.exp() * d, d, ct)[0]))


@program
def the_gradient_of_an_intermediate_dual(t):
    fw = t.autograd.forward_ad
    x = vec(t, requires_grad=True)
    with fw.dual_level():
        h = fw.make_dual(x, vec(t)).exp()
        return tuple(fw.unpack_dual(t.autograd.grad((h * h).sum(), h, create_graph=True)[0]))


@program
def a_given_tangent_that_depends_on_the_input(t):
    fw = t.autograd.forward_ad
    x = vec(t, requires_grad=True)
    with fw.dual_level():
        g, = t.autograd.grad((fw.make_dual(x, x * 2) ** 3).sum(), x, create_graph=True)
        return tuple(fw.unpack_dual(g))


@program
def a_function_with_a_jvp_at_a_dual_level(t):
    class Cube(t.autograd.Function):
        @staticmethod
        def forward(x):
            return x ** 3

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_forward(*inputs)
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 3 * g * ctx.saved_tensors[0] ** 2

        @staticmethod
        def jvp(ctx, d):
            return 3 * d * ctx.saved_tensors[0] ** 2

    x = vec(t, requires_grad=True)
    return (dual_tangent(t, Cube.apply, x, vec(t)),
            t.autograd.gradcheck(Cube.apply, (x,), check_forward_ad=True, check_batched_forward_grad=True))


@program
def packs_of_duals(t):
    seen = []
    with t.autograd.graph.saved_tensors_hooks(lambda v: seen.append(v.numel()) or v, lambda v: v):
        dual_tangent(t, lambda x: x.sin() * x, vec(t, requires_grad=True), vec(t, requires_grad=True))
    return seen


@program
def forward_strategies_of_functional(t):
    f = lambda x, y: (x * y).sin().sum() + (x ** 3).sum()
    args = vec(t), vec(t) * 2
    rows = t.autograd.functional.hessian(f, args, vectorize=True, outer_jacobian_strategy="forward-mode")
    return (t.autograd.functional.jacobian(f, args, vectorize=True, strategy="forward-mode"),
            [[block.detach() for block in row] for row in rows])


@program
def nested_dual_levels(t):
    return dual_tangent(t, lambda x: dual_tangent(t, lambda x: x.sin(), x, vec(t)), vec(t), vec(t))


@program
def a_given_tangent_and_an_in_place_op(t):
    fw = t.autograd.forward_ad
    v = vec(t)
    with fw.dual_level():
        x = fw.make_dual(vec(t), v)
        x.mul_(2)
        return fw.unpack_dual(x).tangent, v


@featured
def forward_mode_by_hand(t, wrap):
    return dual_tangent(t, wrap(lambda v: v.sin().sin()), vec(t), mat(t)[0])


@featured
def by_hand_over_a_gradient(t, wrap):
    x = vec(t, requires_grad=True)
    f = wrap(lambda v: v.sin().sin())
    with t.autograd.forward_ad.dual_level():
        d = t.autograd.forward_ad.make_dual(x, mat(t)[0])
        g, = t.autograd.grad(f(d).sum(), d, create_graph=True)
        return tuple(t.autograd.forward_ad.unpack_dual(g))


@featured
def a_gradient_over_forward_mode_by_hand(t, wrap):
    x = vec(t, requires_grad=True)
    return t.autograd.grad(dual_tangent(t, wrap(lambda v: v.sin().sin()), x, mat(t)[0]).sum(), x)


@featured
def by_hand_over_func_grad(t, wrap):
    f = wrap(lambda v: v.sin().sin())
    return dual_tangent(t, t.func.grad(lambda v: f(v).sum()), vec(t), mat(t)[0])


# ---------------------------------------------------------------- the reentrant variant; groups of backward runs; writing after a save
def reentrant(t, f, *args, **options):
    return t.utils.checkpoint.checkpoint(f, *args, use_reentrant=True, **options)


@program
def reentrant_regions_in_a_row_and_nested(t):
    x, f = vec(t, requires_grad=True), lambda v: v.sin() * v
    y = reentrant(t, lambda v: v.exp() + reentrant(t, f, v * 1), reentrant(t, f, x))
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward()
    return y, first, x.grad


@program
def reentrant_outputs_that_are_no_tensors_or_constants(t):
    x, m = vec(t, requires_grad=True), mat(t)
    y, text, c, none = reentrant(t, lambda v, m, k: (v.sin() * k, "text", m.sum(0), None), x, m, 3)
    (y.sum() + c.sum()).backward()
    return y.requires_grad, text, c.requires_grad, none, x.grad, m.grad


@program
def reentrant_limits(t):
    x = vec(t, requires_grad=True)
    words = "torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter"
    y = reentrant(t, lambda v: v.sin(), x)
    return (error(lambda: t.autograd.grad(y.sum(), x), words), error(lambda: y.sum().backward(inputs=[x]), words),
            error(lambda: reentrant(t, lambda v, k: v * k, x, k=2), "Unexpected keyword arguments: k"),
            error(lambda: reentrant(t, lambda v: v, x, debug=True), "is only supported when use_reentrant=False"),
            error(reentrant(t, lambda v: v.sin().detach(), x).sum().backward, "none of output has requires_grad=True"))


@program
def reentrant_in_segments(t):
    x = vec(t, requires_grad=True)
    layers = [lambda v: v.sin(), lambda v: v * v, lambda v: v.exp(), lambda v: v.cos()]
    t.utils.checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=True).sum().backward()
    return x.grad


@program
def reentrant_weights_alone(t):
    w, x = vec(t, requires_grad=True), vec(t)
    y = reentrant(t, lambda v: (v * w).sin(), x)
    return y.requires_grad, error(lambda: y.sum().backward()), w.grad


@program
def reentrant_hooks_of_a_shared_weight(t):
    w, x, log = vec(t, requires_grad=True), vec(t, requires_grad=True), []
    w.register_post_accumulate_grad_hook(lambda w: log.append(w.grad.clone()))
    f = lambda v: (v * w).sin()
    reentrant(t, f, reentrant(t, f, x)).sum().backward()
    return log


@program
def reentrant_second_derivatives(t):
    x = vec(t, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # it may be a reference cycle
        (reentrant(t, lambda v: v.sin(), x * 1) + x ** 3).sum().backward(create_graph=True)
    g, x.grad = x.grad, None
    g.sum().backward()
    return x.grad


@program
def reentrant_side_channel(t):
    w, x, box = vec(t, requires_grad=True), vec(t, requires_grad=True), {}

    def first(v):
        box["k"] = (v * w).sin()
        return v * 1
    y = reentrant(t, first, x)
    reentrant(t, lambda v: (v * box["k"]).sin(), y).sum().backward()
    return x.grad


@program
def disjoint_backwards_in_a_group(t):
    a, b = vec(t, requires_grad=True), vec(t, requires_grad=True)
    f, calls = counted(lambda a, b: (a.sin().sin(), b.exp().sin()))
    y, z = ckpt(t, f, a, b)
    with t.utils.checkpoint.GraphExecGroup():
        y.sum().backward()
        z.sum().backward()
    return a.grad, b.grad, calls[0]


@program
def overlapping_backwards_in_a_group(t):
    x = vec(t, requires_grad=True)
    y = ckpt(t, lambda v: v.sin().sin(), x).sum()
    with t.utils.checkpoint.GraphExecGroup():
        y.backward(retain_graph=True)
        y.backward()
    return x.grad


@program
def groups_in_groups(t):
    def nest():
        with t.utils.checkpoint.GraphExecGroup(), t.utils.checkpoint.GraphExecGroup():
            pass
    return error(nest, "GraphExecGroup contexts cannot be nested")


@program
def writing_to_what_was_saved_once(t):
    x = mat(t, requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors() as saves:
        b = x * 1
        y = (b ** 2).sum() + (b * b).sum()
        b.sin_()
        copies = len(saves.cloned)
        y.backward()
        return x.grad, copies, len(saves.cloned)


@program
def writing_to_what_was_saved(t):
    x = mat(t, requires_grad=True)
    with t.autograd.graph.allow_mutation_on_saved_tensors() as saves:
        b = x * 1
        y = (b ** 2).sum() + (b[0] * b[1]).sum()
        b[0] *= 10
        b.sin_()
        copies = len(saves.cloned)
        z = b.exp().sum()
        b.zero_()
        (y + z).backward()
        return x.grad, copies, len(saves.cloned)


@program
def hooks_of_several_gradients(t):
    a, b, log = vec(t, requires_grad=True), vec(t, requires_grad=True), []
    c = a * 2
    t.autograd.graph.register_multi_grad_hook((a, b, c), lambda grads: log.append([None if g is None else g.clone() for g in grads]))
    t.autograd.graph.register_multi_grad_hook((a, c), lambda g: log.append(g.clone()), mode="any")
    (c * b).sum().backward()
    (a * 3).sum().backward()
    return log


# ---------------------------------------------------------------- a linear layer and its loss, a chunk of rows at a time
def _in_chunks(t):
    weight, target = mat(t), t.tensor([0, 1, 1])
    options = t.nn.LinearCrossEntropyOptions(batch_chunk_size=2, allow_retain_graph=True)
    return lambda x: t.nn.functional.linear_cross_entropy(x, weight, target, options=options)


def _rows(t, **options):
    return t.tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75], [0.3, 0.2, 0.1]], dtype=t.float64, **options)


@program
def a_loss_in_chunks(t):
    x = _rows(t, requires_grad=True)
    y = _in_chunks(t)(x)
    y.backward()
    return y, x.grad


@program
def a_loss_in_chunks_under_grad(t):
    return t.func.grad(_in_chunks(t))(_rows(t))


@program
def a_loss_in_chunks_under_vmap_of_grad(t):
    return t.func.vmap(t.func.grad(_in_chunks(t)))(t.stack([_rows(t), _rows(t) * 2]))


@program
def a_loss_in_chunks_under_jvp(t):
    return t.func.jvp(_in_chunks(t), (_rows(t),), (_rows(t) * 2,))


@program
def a_loss_in_chunks_twice(t):
    x = _rows(t, requires_grad=True)
    first, = t.autograd.grad(_in_chunks(t)(x), x, create_graph=True)
    return t.autograd.grad((first ** 2).sum(), x)
