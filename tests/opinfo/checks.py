"""What is asked of every sample: a table of functions of (program, oracle) that raise Deviation.

Each compares with torch; a check that torch cannot answer raises NoAnswer.  Where a check costs much, it is asked of `most`
samples of an entry only, evenly spaced.
"""

from __future__ import annotations

from itertools import combinations, product
from typing import NamedTuple

import numpy as np
import torch

import minigrad
from minigrad import func, sim
from minigrad.autograd import grad
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.utils.checkpoint import checkpoint

from .compare import Deviation, dtype_name, same
from .libraries import VARIANTS, Minigrad, Torch, leaves, variant
from .oracle import NoAnswer, along, scalar


class Check(NamedTuple):
    """One question."""

    ask: object
    dtypes: tuple[str, ...]
    differentiates: bool
    most: int = 1000
    """Of how many samples of an entry it is asked."""


# ---------------------------------------------------------------- forward
UNDEFINED = {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted"}
"""Entries that return memory as it is: nothing can be said of the numbers."""


def value(program, oracle):
    """Values, dtypes, shapes; strides where torch gives a view of an input, and other memory where it does not."""
    wanted, views = oracle.value
    tensors = program.tensors(Minigrad)
    found = program.call(Minigrad, tensors)
    memories = [x.untyped_storage() for x in tensors if x.numel()]
    for y, view in zip(leaves(found), views, strict=False):
        if not view and isinstance(y, minigrad.Tensor) and y.untyped_storage() in memories:
            msg = "value: in memory of an input, which torch's is not"
            raise Deviation(msg)
    if program.entry.name in UNDEFINED:
        found, wanted = minigrad.zeros_like(found), list(map(torch.zeros_like, wanted))
    same(found, wanted, "value", strides=views)


def variants(program, oracle):
    """The method, the operator and the in-place forms give the same; in-place ones return the tensor, written to once."""
    for kind in VARIANTS:
        found = None if program.entry.name in UNDEFINED else variant(program.entry, kind)
        if found is None or ("inplace" in kind and program.sample.broadcasts_input):
            continue
        theirs, mine = found
        tensors, others = program.tensors(Torch), program.tensors(Minigrad)
        try:
            wanted = program.call(Torch, tensors, theirs)
        except Exception:  # noqa: BLE001, S112  torch has no such form of this sample
            continue
        out = program.call(Minigrad, others, mine)
        same(out, wanted, kind)
        if "inplace" in kind and (out is not others[0] or out._version != wanted._version):
            msg = f"{kind}: version {out._version}, torch {wanted._version}" if out is others[0] else f"{kind}: another tensor"
            raise Deviation(msg)


# ---------------------------------------------------------------- derivatives at level 0
def recorded(program, oracle, **options):
    """(leaves, scalar of the outputs), recorded at level 0; outputs require grad where torch's do."""
    tensors = program.tensors(Minigrad, recorded=True, **options)
    outs = program.outputs(Minigrad, tensors)
    roots = [y.requires_grad for y in outs]
    if roots != oracle.roots:
        msg = f"outputs require grad: {roots}, torch {oracle.roots}"
        raise Deviation(msg)
    return [tensors[k] for k in program.active], scalar(Minigrad, [y for y in outs if y.requires_grad], oracle.weights)


def gradient(program, oracle):
    wanted = oracle.gradient
    xs, y = recorded(program, oracle)
    same(grad(y, xs, materialize_grads=True), wanted, "gradient")


def second_order(program, oracle):
    """Reverse over reverse: the gradient of <gradient, direction>."""
    wanted = oracle.hessian
    xs, y = recorded(program, oracle)
    same(_twice(xs, y, program), wanted, "Hessian product")


def _twice(xs, y, program):
    first = grad(y, xs, create_graph=True, materialize_grads=True)
    total = along(Minigrad, first, program.directions())
    return grad(total, xs, materialize_grads=True) if total.requires_grad else [x * 0 for x in xs]


# ---------------------------------------------------------------- derivatives by transforms
def function(program, oracle, tensors, positions=None, wrap=lambda f: f):
    """The program as a function of the tensors at `positions` (the active ones), which returns the outputs that have derivatives."""
    positions = program.active if positions is None else positions

    def f(*xs):
        given = list(tensors)
        for k, x in zip(positions, xs, strict=True):
            given[k] = x
        outs = program.outputs(Minigrad, given)
        sim.synchronize()  # a sample of `to` asks for a copy that does not wait
        return tuple(y for y, root in zip(outs, oracle.roots, strict=True) if root)
    return wrap(f)


def _parts(program, oracle, wrap=lambda f: f, device="cpu"):
    """(phi, xs, directions): the scalar function of the active inputs, a point and a direction."""
    tensors = program.tensors(Minigrad, device=device)
    f = function(program, oracle, tensors, wrap=wrap)
    return (lambda *xs: scalar(Minigrad, f(*xs), oracle.weights), tuple(tensors[k] for k in program.active),
            tuple(Minigrad.tensor(v).to(device) for v in program.directions()))


def forward_mode(program, oracle):
    """jvp: torch's, or where it has none the adjoint of its gradient."""
    oracle.roots
    wanted = oracle.tangent
    phi, xs, vs = _parts(program, oracle)
    if wanted is None:
        same(func.jvp(phi, xs, vs)[1], along(Torch, oracle.gradient, program.directions()), "tangent of the scalar",
             rtol=oracle.rtol)
    else:
        same(func.jvp(function(program, oracle, program.tensors(Minigrad)), xs, vs)[1], wanted, "tangent")


def mixed_modes(program, oracle):
    """Forward over reverse, reverse over forward, forward over forward: all give the product with the Hessian."""
    wanted = oracle.hessian
    phi, xs, vs = _parts(program, oracle)
    every = tuple(range(len(xs)))
    same(func.jvp(func.grad(phi, every), xs, vs)[1], wanted, "forward over reverse")
    same(func.grad(lambda *xs: func.jvp(phi, xs, vs)[1], every)(*xs), wanted, "reverse over forward")
    others = program.directions(2)
    found = func.jvp(lambda *xs: func.jvp(phi, xs, vs)[1], xs, tuple(map(Minigrad.tensor, others)))[1]
    same(found, along(Torch, wanted, others), "forward over forward", rtol=oracle.rtol)


# ---------------------------------------------------------------- batches
def _other(a):
    """Another array like one of a sample: other numbers in other places; index tensors and masks are as they were."""
    return np.flip(a) * a.dtype.type(0.75) if a.dtype.kind in "fc" else a


class Batches:
    """Two variants of every array, and what torch gives for each choice of them."""

    def __init__(self, program, oracle):
        self.program = program
        self.arrays = [(a, _other(a)) for a in program.arrays]
        oracle.value

    def wanted(self, choice):
        """Torch's results where tensor k is its variant choice[k]."""
        tensors = [Torch.tensor(pair[c]) for pair, c in zip(self.arrays, choice, strict=True)]
        try:
            return leaves(self.program.call(Torch, tensors))
        except Exception as error:
            raise NoAnswer(str(error)) from error

    def stacked(self, k, dims, twist=0):
        """Tensor k with a batch of its two variants along each dimension of dims, outermost first."""
        a = self.arrays[k]
        if len(dims) == 1:
            return minigrad.from_numpy(np.stack([a[twist], a[1 - twist]], axis=dims[0]))
        inner = [np.stack([a[t], a[1 - t]], axis=dims[1]) for t in (0, 1)]
        return minigrad.from_numpy(np.stack(inner, axis=dims[0]))

    def run(self, positions, dims):
        """Check vmap over the tensors at `positions`, with batches at `dims`, outermost first."""
        plain = self.program.tensors(Minigrad)

        def f(*xs):
            given = list(plain)
            for k, x in zip(positions, xs, strict=True):
                given[k] = x
            return tuple(leaves(self.program.call(Minigrad, given)))

        for dim in reversed(dims):
            f = func.vmap(f, in_dims=(dim,) * len(positions))
        out = f(*[self.stacked(k, dims) for k in positions])
        for place in product((0, 1), repeat=len(dims)):
            variant_of = [sum(place) % 2 if k in positions else 0 for k in range(len(self.arrays))]
            same([y[place] for y in out], self.wanted(variant_of), f"vmap of {positions} at {dims}, sample {place}")


def vmap(program, oracle):
    """Over every tensor alone and all together, from the first and the last dimension, and nested."""
    if program.entry.name in UNDEFINED:
        raise NoAnswer
    batches = Batches(program, oracle)
    everything = tuple(range(len(program.arrays)))
    if not everything:
        raise NoAnswer
    for positions in dict.fromkeys([*((k,) for k in everything), everything]):
        for dims in ((0,), (-1,)):
            batches.run(positions, dims)
    batches.run(everything, (0, -1))
    batches.run(everything[:1], (-1, 0))


def vmap_of_gradient(program, oracle):
    """Per-sample gradients, over the active inputs."""
    oracle.roots
    other = program.with_arrays([_other(a) if k in program.active else a for k, a in enumerate(program.arrays)])
    wanted = [oracle.gradient, type(oracle)(other, oracle.weights).gradient]
    tensors = program.tensors(Minigrad)
    f = function(program, oracle, tensors)
    every = tuple(range(len(program.active)))
    g = func.grad(lambda *xs: scalar(Minigrad, f(*xs), oracle.weights), every)
    found = func.vmap(g)(*[minigrad.from_numpy(np.stack([program.arrays[k], other.arrays[k]])) for k in program.active])
    for b in (0, 1):
        same([y[b] for y in found], wanted[b], f"gradient of sample {b}")


# ---------------------------------------------------------------- wrapped and plain arguments
def _under(kind, f, positions):
    """f with the tensors at `positions` wrapped by one level of a kind; results are plain again."""
    def run(*tensors):
        chosen = [tensors[k] for k in positions]

        def inside(*xs):
            given = list(tensors)
            for k, x in zip(positions, xs, strict=True):
                given[k] = x
            return f(*given)
        if kind == "vmap":
            return [y.squeeze(0) for y in func.vmap(inside)(*[x.unsqueeze(0) for x in chosen])]
        if kind == "jvp":
            return func.jvp(inside, tuple(chosen), tuple(minigrad.ones_like(x) for x in chosen))[0]
        return _values_of_vjp(inside, chosen)
    return run


def _values_of_vjp(f, xs):
    """All outputs of f, which has at least one that is a real or complex number; the others go beside, as vjp asks."""
    differentiable = []

    def apart(*xs):
        outs = f(*xs)
        differentiable[:] = [y.dtype.differentiable for y in outs]
        return tuple(y for y in outs if y.dtype.differentiable), tuple(y for y in outs if not y.dtype.differentiable)
    values, _, others = func.vjp(apart, *xs, has_aux=True)
    given = {True: iter(values), False: iter(others)}
    return [next(given[d]) for d in differentiable]


def compliance(program, oracle):
    """Every mix of wrapped and plain tensors, under every kind of level and under pairs of them, gives the same values.

    Levels that differentiate wrap what torch differentiates.
    """
    wanted = oracle.value[0]
    if not all(isinstance(y, torch.Tensor) for y in wanted) or program.entry.name in UNDEFINED:
        raise NoAnswer
    tensors = program.tensors(Minigrad)
    everything = list(range(len(tensors)))

    def f(*xs):
        return tuple(leaves(program.call(Minigrad, xs)))

    def mixes(kind):
        ks = everything if kind == "vmap" else program.active
        return [mix for n in range(1, len(ks) + 1) for mix in combinations(ks, n)] if len(ks) < 4 else [*((k,) for k in ks), tuple(ks)]

    kinds = ("grad", "jvp", "vmap")
    for kind in kinds:
        for mix in mixes(kind):
            same(_under(kind, f, mix)(*tensors), wanted, f"{kind} of {mix}")
    for outer, inner in product(kinds, kinds):
        for mix, other in product(mixes(outer), mixes(inner)):
            same(_under(outer, _under(inner, f, other), mix)(*tensors), wanted, f"{outer} of {mix} around {inner} of {other}")


# ---------------------------------------------------------------- saves and memory features
def saves(program, oracle):
    """As many packs as torch, in its order, of its shapes and dtypes, hence bytes."""
    wanted = oracle.packs
    found = []
    tensors = program.tensors(Minigrad, recorded=True)
    with saved_tensors_hooks(lambda x: found.append((tuple(x.shape), dtype_name(x))) or x, lambda x: x):
        program.call(Minigrad, tensors)
    if found != wanted:
        msg = f"saves {found}, torch {wanted}"
        raise Deviation(msg)


def checkpointed(f):
    return lambda *xs: checkpoint(f, *xs, use_reentrant=False)


def offloaded(f):
    def run(*xs):
        with save_on_cpu():
            return f(*xs)
    return run


FEATURES = {
    "checkpoint": checkpointed,
    "save_on_cpu": offloaded,
    "checkpoint(save_on_cpu)": lambda f: checkpointed(offloaded(f)),
    "save_on_cpu(checkpoint)": lambda f: offloaded(checkpointed(f)),
}


def with_feature(wrap, device):
    """The gradient and the second order under a memory feature: at level 0, and forward over reverse."""
    def ask(program, oracle):
        first, second = oracle.gradient, oracle.hessian if program.entry.supports_gradgrad else None
        tensors = program.tensors(Minigrad, recorded=True, device=device)
        xs = [tensors[k] for k in program.active]
        f = function(program, oracle, tensors, wrap=wrap)
        same(grad(scalar(Minigrad, f(*xs), oracle.weights), xs, materialize_grads=True), first, "gradient")
        if second is not None:
            same(_twice(xs, scalar(Minigrad, f(*xs), oracle.weights), program), second, "reverse over reverse")
            phi, xs, vs = _parts(program, oracle, wrap, device)
            same(func.jvp(func.grad(phi, tuple(range(len(xs)))), xs, vs)[1], second, "forward over reverse")
    return ask


# ---------------------------------------------------------------- errors
BUILTIN = (IndexError, TypeError, ValueError, NotImplementedError, RuntimeError)


def kind_of(error):
    return next((kind for kind in BUILTIN if isinstance(error, kind)), type(error))


def errors(program, oracle):
    """Minigrad raises an error of torch's kind, with a text."""
    try:
        with Torch.quiet():
            program.call(Torch, program.tensors(Torch))
    except Exception as error:  # noqa: BLE001  an outcome like any other
        wanted = error
    else:
        raise NoAnswer
    try:
        out = program.call(Minigrad, program.tensors(Minigrad))
    except Exception as error:
        kind = kind_of(wanted)
        if not isinstance(error, RuntimeError if kind is NotImplementedError else kind):
            msg = f"{type(error).__name__}: {error}; torch {type(wanted).__name__}: {wanted}"
            raise Deviation(msg) from error
        if len(str(error).split()) < 2:
            msg = f"says only {str(error)!r}"
            raise Deviation(msg) from error
    else:
        msg = f"no error, but {out!r}; torch {type(wanted).__name__}: {wanted}"
        raise Deviation(msg)


NUMBERS = ("float64", "complex128")
CHECKS = {
    "value": Check(value, ("float64", "float32", "complex128", "int64", "int32", "uint8", "bool"), differentiates=False),
    "variants": Check(variants, ("float64", "complex128", "int64", "bool"), differentiates=False, most=8),
    "gradient": Check(gradient, ("float64", "float32", "complex128"), differentiates=True),
    "second order": Check(second_order, NUMBERS, differentiates=True, most=8),
    "jvp": Check(forward_mode, NUMBERS, differentiates=True, most=8),
    "mixed modes": Check(mixed_modes, NUMBERS, differentiates=True, most=4),
    "vmap": Check(vmap, ("float64",), differentiates=False, most=4),
    "vmap of gradient": Check(vmap_of_gradient, ("float64",), differentiates=True, most=4),
    "compliance": Check(compliance, ("float64",), differentiates=False, most=2),
    "saves": Check(saves, NUMBERS, differentiates=True),
    **{name: Check(with_feature(wrap, "cpu"), ("float64",), differentiates=True, most=4) for name, wrap in FEATURES.items()},
    **{f"{name} on sim": Check(with_feature(wrap, "sim"), ("float64",), differentiates=True, most=2) for name, wrap in FEATURES.items()},
    "errors": Check(errors, ("float64",), differentiates=False),
}
