"""Programs with selective policies at level 0: what runs, how often, and what comes out.

A program counts by a dispatch mode around its forward and its backward.  Counted are ops that no rule of the other ops runs.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

COUNTED = ("tanh", "exp", "cosh", "sigmoid")


def counter(t):
    """A dispatch mode that counts how often each op ran, and what a policy keeps did not."""
    base = import_module(f"{t.__name__}.utils._python_dispatch").TorchDispatchMode

    class Counter(base):
        def __init__(self):
            super().__init__()
            self.runs = dict.fromkeys(COUNTED, 0)

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            name = getattr(func, "overloadpacket", func).__name__
            if name in self.runs:
                self.runs[name] += 1
            return func(*args, **(kwargs or {}))
    return Counter()


def leaf(t, *data):
    return t.tensor(data, dtype=t.float64, requires_grad=True)


def body(t):
    return lambda x: (t.tanh(x).sin() * t.exp(x.cos())).cosh().sin() * t.sigmoid(x).cos().cos()


def run(t, f, policy, *, backwards=1, **options):
    """The runs of each op, and the gradient."""
    contexts = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, policy, **options)
    x = leaf(t, 0.7, -0.3)
    with counter(t) as seen:
        y = t.utils.checkpoint.checkpoint(f, x, use_reentrant=False, context_fn=contexts)
        for k in range(backwards):
            y.sum().backward(retain_graph=k + 1 < backwards)
    return seen.runs, x.grad


def saving_one_op(t):
    return run(t, body(t), [t.ops.aten.tanh.default])


def saving_several_ops(t):
    return run(t, body(t), [t.ops.aten.tanh.default, t.ops.aten.cosh.default, t.ops.aten.sigmoid.default])


def saving_no_op(t):
    return run(t, body(t), [])


def saving_by_a_bool(t):
    return run(t, body(t), lambda ctx, op, *args, **kwargs: op == t.ops.aten.exp.default)


def saving_by_each_policy(t):
    policies = t.utils.checkpoint.CheckpointPolicy
    verdicts = (policies.MUST_SAVE, policies.PREFER_SAVE, policies.MUST_RECOMPUTE, policies.PREFER_RECOMPUTE)
    ops = [getattr(t.ops.aten, name).default for name in COUNTED]

    def policy(ctx, op, *args, **kwargs):
        return verdicts[ops.index(op)] if op in ops else policies.PREFER_RECOMPUTE
    return [policy_.value for policy_ in policies], run(t, body(t), policy)


def saving_everything(t):
    return run(t, body(t), lambda ctx, op, *args, **kwargs: True)


def saving_a_part_of_equal_ops(t):
    turns = iter(range(10))
    ops = [t.ops.aten.tanh.default]
    return run(t, lambda x: t.tanh(t.tanh(t.tanh(x).sin()).sin()).sin(),
               lambda ctx, op, *args, **kwargs: op in ops and next(turns) % 2 == 0)


def what_a_policy_is_told(t):
    told = []

    def policy(ctx, op, *args, **kwargs):
        name = getattr(op, "overloadpacket", op).__name__
        if name in COUNTED:
            told.append((name, ctx.is_recompute, list(ctx.op_output.shape), len(args), bool(ctx.op_output.requires_grad)))
        return False
    return run(t, body(t), policy), told


def saving_two_matrix_products(t):
    w = t.tensor([[0.5, -1.0], [2.0, 0.25]], dtype=t.float64, requires_grad=True)
    runs, grad = run(t, lambda x: t.tanh(t.mm(t.mm(x.reshape(1, 2), w).exp(), w)).sum().sin(), [t.ops.aten.mm.default])
    return runs, grad, w.grad


def saving_two_outputs(t):
    return run(t, lambda x: t.var_mean(t.tanh(x))[0].exp() * t.var_mean(t.exp(x))[1].sin(), [t.ops.aten.var_mean.correction])


def saving_in_a_region_in_a_region(t):
    def f(x):
        contexts = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, [t.ops.aten.tanh.default])
        return t.utils.checkpoint.checkpoint(body(t), x * 2, use_reentrant=False, context_fn=contexts).sin()
    return run(t, f, [t.ops.aten.exp.default])


def a_saved_value_that_the_region_overwrites(t):
    return run(t, lambda x: x.cos().mul_(2).sin().tanh(), [t.ops.aten.cos.default])


def a_saved_value_that_the_region_overwrites_as_is_allowed(t):
    return run(t, lambda x: x.cos().mul_(2).sin().tanh(), [t.ops.aten.cos.default], allow_cache_entry_mutation=True)


def a_saved_output_that_the_program_overwrites(t):
    contexts = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, [t.ops.aten.cos.default])
    x = leaf(t, 0.7, -0.3)
    y = t.utils.checkpoint.checkpoint(lambda x: x.tanh().cos(), x, use_reentrant=False, context_fn=contexts)
    y.mul_(2)
    y.sum().backward()
    return x.grad


def two_backwards_of_one_region(t):
    return run(t, body(t), [t.ops.aten.tanh.default], backwards=2)


def a_second_derivative_through_saved_values(t):
    contexts = partial(t.utils.checkpoint.create_selective_checkpoint_contexts, [t.ops.aten.tanh.default])
    x = leaf(t, 0.7, -0.3)
    y = t.utils.checkpoint.checkpoint(body(t), x, use_reentrant=False, context_fn=contexts)
    (g,) = t.autograd.grad(y.sum(), x, create_graph=True)
    return g, t.autograd.grad(g.sum(), x)[0]


def running_statistics_beside_saved_values(t):
    """The gradient: that the statistics are updated once is minigrad's."""
    mean, var = t.zeros(2, dtype=t.float64), t.ones(2, dtype=t.float64)
    return run(t, lambda x: t.nn.functional.batch_norm(
        t.stack([x, x * x, x.sin()]).tanh(), mean, var, training=True).sin(), [t.ops.aten.tanh.default])[1]


def offloading_on_the_host(t):
    policies = t.utils.checkpoint.CheckpointPolicy
    return run(t, body(t), lambda ctx, op, *args, **kwargs: (
        policies.MUST_CPU_OFFLOAD if op == t.ops.aten.tanh.default else policies.PREFER_RECOMPUTE))


def errors_of_op_lists(t):
    texts = []
    for ops in ([2], [t.ops.aten.sin], 2):
        try:
            t.utils.checkpoint.create_selective_checkpoint_contexts(ops)
        except (TypeError, ValueError) as error:
            texts.append((type(error).__name__, str(error)[:52]))
    return texts


POLICIES = [f for f in list(globals().values()) if callable(f) and getattr(f, "__module__", "") == __name__
            and f not in (counter, leaf, body, run)]
