"""Programs whose gradient could be another one in silence: writes, hooks, streams and contexts around checkpoints and hooks.

Each returns a gradient, or that there is an error; the right number is a closed form of the unchanged program.
"""

from __future__ import annotations

from contextvars import ContextVar

from tests.differential.programs import ckpt, counted, error, program, scalar


def gradient(x, y):
    """What a backward gives, or the kind of its error."""
    found = error(y.backward)
    return x.grad if found is None else found[0]


# ---------------------------------------------------------------- C5: what a region reads
@program
def a_write_to_what_a_region_captured(t):
    x, w = scalar(t, requires_grad=True), scalar(t)
    y = ckpt(t, lambda x: (x * w).sin(), x)
    w.mul_(10)
    return gradient(x, y)


@program
def a_write_to_a_keyword_of_a_region(t):
    x, w = scalar(t, requires_grad=True), scalar(t)
    y = ckpt(t, lambda x, w: (x * w).sin(), x, w=w)
    w.mul_(10)
    return gradient(x, y)


@program
def a_write_to_a_tensor_nested_in_an_argument_of_a_region(t):
    x, w = scalar(t, requires_grad=True), scalar(t)
    y = ckpt(t, lambda x, nest: (x * nest["w"][0]).sin(), x, {"w": [w]})
    w.mul_(10)
    return gradient(x, y)


@program
def other_data_for_what_a_region_captured(t):
    x, w = scalar(t, requires_grad=True), scalar(t)
    y = ckpt(t, lambda x: (x * w).sin(), x)
    w.data = scalar(t, value=7.0)
    return gradient(x, y)


@program
def weights_that_functional_call_swaps_in_for_a_region(t):
    m = t.nn.Linear(1, 1, bias=False).to(t.float64)
    with t.no_grad():
        m.weight.fill_(3.0)

    class Region(t.nn.Module):
        def __init__(self):
            super().__init__()
            self.m = m

        def forward(self, x):
            return ckpt(t, lambda x: self.m(x).sin(), x)
    x = scalar(t, requires_grad=True).reshape(1, 1)
    x.retain_grad()
    return gradient(x, t.func.functional_call(Region(), {"m.weight": x.detach() * 0 + 2}, (x,)).sum())


# ---------------------------------------------------------------- C6, S5: where it runs
@program
def a_generator_of_the_users_own_in_a_region(t):
    own = t.Generator().manual_seed(3)
    x = t.ones(16, dtype=t.float64).requires_grad_()
    y = ckpt(t, lambda x: x.sin() * (t.rand(16, generator=own) > 0.5), x)
    y.sum().backward()
    return bool(((y != 0) == (x.grad != 0)).all())


@program
def a_context_variable_that_is_reset_after_a_region(t):
    scale, x = ContextVar("scale", default=1.0), scalar(t, requires_grad=True)
    before = scale.set(3.0)
    y = ckpt(t, lambda x: (x * scale.get()).sin(), x)
    scale.reset(before)
    return gradient(x, y)


# ---------------------------------------------------------------- C8, C9: what happens once
@program
def a_hook_that_a_region_puts_on_what_it_captured(t):
    x, w = scalar(t, requires_grad=True), scalar(t, requires_grad=True)

    def f(x):
        w.register_hook(lambda g: g * 2)
        return x.sin() * w
    ckpt(t, f, x).backward()
    return w.grad


@program
def a_region_with_a_handler_for_every_exception(t):
    x, (fallback, calls) = scalar(t, requires_grad=True), counted(lambda x: x)

    def f(x):
        try:
            return x.sin().sin()
        except Exception:  # noqa: BLE001  what is asked
            return fallback(x)
    ckpt(t, f, x).backward()
    return x.grad, calls


@program
def a_region_that_writes_to_what_it_has_saved(t):
    """Of sin(2 tanh x), whose tanh saves its output and is doubled in place."""
    x = scalar(t, requires_grad=True)
    return gradient(x, ckpt(t, lambda x: x.tanh().mul_(2).sin(), x))


# ---------------------------------------------------------------- H5, H6: hooks
def under_hooks(t, pack, unpack, change=lambda a: None):
    """The gradient of a * a where a is changed before the backward, twice."""
    x = scalar(t, requires_grad=True)
    a = x * 1
    with t.autograd.graph.saved_tensors_hooks(pack, unpack):
        y = a * a
    with t.no_grad():
        change(a)
    found = []

    def both():
        found.extend(t.autograd.grad(y, x, retain_graph=True)[0].item() for _ in range(2))
    failed = error(both)
    return failed[0] if failed else found


@program
def a_write_to_what_a_hook_gave_back_as_it_is(t):
    return under_hooks(t, lambda s: s, lambda s: s, lambda a: a.mul_(10))


@program
def a_write_to_what_a_hook_packed_in_a_pair(t):
    return under_hooks(t, lambda s: (s.device, s), lambda pair: pair[1], lambda a: a.mul_(10))


@program
def an_unpack_hook_that_writes(t):
    return under_hooks(t, lambda s: s.clone(), lambda s: s.mul_(2))


@program
def an_unpack_hook_that_writes_to_what_is_in_a_pair(t):
    return under_hooks(t, lambda s: (s.device, s.clone()), lambda pair: pair[1].mul_(2))


@program
def a_hook_that_copies_and_a_write(t):
    return under_hooks(t, lambda s: (s.device, s.clone()), lambda pair: pair[1], lambda a: a.mul_(10))
