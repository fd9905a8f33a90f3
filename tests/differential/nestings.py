"""Random nestings: functions in functions that capture what is around them, under transforms and regions at any depth.

A program is text of nested functions of vectors of three numbers.  T["grad"](f) and the like are transforms, also level 0's own calls;
R["ck"](f) and the like are regions, which are left out where a program is run plain.  What must hold:

    with regions it gives what it gives without; without, what torch gives, where torch can run it
    the State is the same after an error at any of its ops; nothing is left that only the cyclic collector could free
"""

from __future__ import annotations

import random
import re
import warnings
from contextvars import copy_context
from functools import partial
from importlib import import_module

import torch

import minigrad
from minigrad.overrides import TorchFunctionMode
from minigrad.state import current
from minigrad.utils._python_dispatch import TorchDispatchMode
from tests.differential.harness import difference, outcome
from tests.differential.programs import ckpt
from tests.spec.instruments import no_garbage

DECLINED = {
    "modified by an inplace operation": "of what an op saved: a region that stops early need not come to the write",
    "has been mutated": "what a policy keeps may not be written to in the region",
    "value out of a tracing tensor with numpy()": "the hooks keep numpy arrays, which are no part of a trace",
}
"""Words of errors of regions alone, with the reason."""


# ---------------------------------------------------------------- transforms and regions
def direction(t):
    return t.tensor([1.0, -0.5, 0.25], dtype=t.float64)


def within(make):
    """A wrapper that runs a function in a context."""
    def wrap(f):
        def g(*args):
            with make():
                return f(*args)
        return g
    return wrap


def pulled_twice(t, f):
    def g(x):
        out, pull = t.func.vjp(f, x)
        return pull(direction(t))[0] + 0.1 * pull(out)[0]
    return g


def dual(t, f, part):
    def g(x):
        with t.autograd.forward_ad.dual_level():
            found = t.autograd.forward_ad.unpack_dual(f(t.autograd.forward_ad.make_dual(x, direction(t))))
            return found.primal if part == "primal" or found.tangent is None else found.tangent
    return g


def own_leaf(t, f, take):
    """Level 0 inside: of a leaf that is made here."""
    def g(x):
        y = x.detach().requires_grad_()
        out = f(y)
        return take(out, y) if out.requires_grad else y.detach() * 0
    return g


def backward(out, x):
    out.sum().backward()
    return x.grad if x.grad is not None else x.detach() * 0


def transforms(t):
    grad = partial(t.autograd.grad, allow_unused=True, materialize_grads=True)
    d, stacked = direction(t), lambda x: t.stack([x, x * 0.5])
    return {
        "grad": lambda f: t.func.grad(lambda v: f(v).sum()), "vjp": lambda f: lambda x: t.func.vjp(f, x)[1](d)[0],
        "vjp twice": partial(pulled_twice, t), "jvp": lambda f: lambda x: t.func.jvp(f, (x,), (d,))[1],
        "vmap": lambda f: lambda x: t.func.vmap(f)(stacked(x)).sum(0),
        "vmap 1": lambda f: lambda x: t.func.vmap(f, in_dims=1, out_dims=1)(stacked(x).t()).sum(1),
        "chunks": lambda f: lambda x: t.func.vmap(f, chunk_size=1)(stacked(x)).sum(0),
        "jacrev": lambda f: lambda x: t.func.jacrev(f)(x).sum(0), "jacfwd": lambda f: lambda x: t.func.jacfwd(f)(x).sum(1),
        "hessian": lambda f: lambda x: t.func.hessian(lambda v: f(v).sum())(x).sum(1),
        "linearize": lambda f: lambda x: t.func.linearize(f, x)[1](d),
        "dual": lambda f: dual(t, f, "tangent"), "primal": lambda f: dual(t, f, "primal"),
        "no_grad": within(t.no_grad), "enable_grad": within(t.enable_grad),
        "own grad": lambda f: own_leaf(t, f, lambda out, x: grad(out.sum(), x)[0]), "own backward": lambda f: own_leaf(t, f, backward),
        "batched grad": lambda f: own_leaf(t, f, lambda out, x: grad(out, x, t.stack([d, d * 2]), is_grads_batched=True)[0].sum(0)),
    }


class FunctionMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return scaled(func, func(*args, **(kwargs or {})))


class DispatchMode(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return scaled(func, func(*args, **(kwargs or {})))


class Scaled(minigrad.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return scaled(func, super().__torch_function__(func, types, args, kwargs))


def scaled(func, out):
    return out * 1.5 if getattr(func, "__name__", "") in ("sin", "tanh") else out


def more(t):
    """What changes the meaning of ops, or draws; minigrad's alone, as torch has it under few transforms."""
    make_fx = import_module("minigrad.fx.experimental.proxy_tensor").make_fx
    return {
        "function mode": within(FunctionMode), "dispatch mode": within(DispatchMode),
        "subclass": lambda f: lambda x: f(x.as_subclass(Scaled)).as_subclass(t.Tensor), "functionalize": t.func.functionalize,
        "trace": lambda f: lambda x: make_fx(f)(x * 0.9)(x), "anomaly": within(partial(t.autograd.detect_anomaly, check_nan=False)),
        "vmap different": lambda f: lambda x: t.func.vmap(f, randomness="different")(t.stack([x, x * 0.5])).sum(0),
        "vmap same": lambda f: lambda x: t.func.vmap(f, randomness="same")(t.stack([x, x * 0.5])).sum(0),
    }


def regions(t):
    graph, contexts = t.autograd.graph, getattr(t.utils.checkpoint, "create_selective_checkpoint_contexts", None)

    def region(**options):
        return lambda f: lambda *args: ckpt(t, f, *args, **options)

    def keeping(*names):
        return region(context_fn=lambda: contexts([getattr(t.ops.aten, name).default for name in names]))
    return {
        "ck": region(), "no stop": region(early_stop=False), "every": region(remat="every"),
        "ck ck": lambda f: region()(region()(f)), "keeping sin": keeping("sin"), "keeping products": keeping("mul", "tanh"),
        "hooks": within(lambda: graph.saved_tensors_hooks(lambda v: v.clone(), lambda v: v)), "offload": within(graph.save_on_cpu),
        "arrays": within(lambda: graph.saved_tensors_hooks(lambda v: (v.device, v.detach().cpu().numpy().copy()),
                                                           lambda kept: t.from_numpy(kept[1]).to(kept[0]))),
    }


def functions(t):
    class Both(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x, y):
            return x.sin() * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * x.cos() * y, g * x.sin()

        @staticmethod
        def jvp(ctx, dx, dy):
            x, y = ctx.saved_tensors
            return (0 if dx is None else dx * x.cos() * y) + (0 if dy is None else dy * x.sin())

    def item(x, b):
        x[1] = b[0] * 2
        return x

    def view(x, b):
        x[1:].mul_(b[:2])
        return x

    layer = t.nn.Linear(3, 3, dtype=t.float64)
    with t.no_grad():
        layer.weight.copy_(t.tensor([[0.5, -0.3, 0.1], [0.2, 0.4, -0.6], [-0.1, 0.3, 0.7]], dtype=t.float64))
        layer.bias.copy_(direction(t) * 0.1)
    return {"Both": Both.apply, "item": item, "view": view, "layer": layer, "F": t.nn.functional,
            "called": lambda x, bias: t.func.functional_call(layer, {"bias": bias}, (x,))}


# ---------------------------------------------------------------- making
OPS = """a.sin() a.tanh() a.cos() a*b.tanh() a.sigmoid() 0.5*a+b.sin() (-a*a).exp() a-b a.tanh()*b a.softmax(0) a.cumsum(0).tanh() a.flip(0)
a.sum()*b.tanh() (a.unsqueeze(1)*b).sum(0).tanh() t.where(a>b,a,b*2).tanh() a.detach()*b t.dot(a,b).tanh()*a Both(a,b) Both(a,b) layer(a).tanh()
called(a,b) a.clone() a.expand(2,3).mean(0) a[t.tensor([2,0,1])] t.cat([a[1:],b[:1]]) a.norm()*b.tanh() tick(a) tick(a) a.square().tanh()
t.stack([a,b]).prod(0).tanh() t.lerp(a,b,0.3) a.max()*b.tanh() F.layer_norm(a,(3,)) F.gelu(a) (a+b).mul_(b).sin_() item(a+b,b).tanh()
view(a+b,b).tanh() (a+b).unsqueeze_(0).mul_(b).squeeze_(0).tanh() (a+b).copy_(b*2) (a*1+b).clamp_(-0.9,0.9)""".split()  # noqa: SIM905
DRAWS = ["F.dropout(a, 0.4)", "a * t.rand(3, dtype=t.float64)", "a + t.randn_like(b) * 0.1", "t.bernoulli(a.sigmoid()) * a"]
AT_LEVEL_0 = ("own grad", "own backward", "batched grad")
NO_TRANSFORM = (*AT_LEVEL_0, "no_grad", "enable_grad", "dual", "primal")
REGIONS, TRANSFORMS, MORE = list(regions(minigrad)), list(transforms(minigrad)), list(more(minigrad))


class Maker:
    """Makes the text of a program."""

    def __init__(self, seed, *, all_of_it):
        self.random = random.Random(seed)  # noqa: S311
        self.wrappers = TRANSFORMS + 2 * MORE if all_of_it else TRANSFORMS
        self.ops = OPS + 2 * DRAWS if all_of_it else OPS
        self.count, self.left = 0, self.random.randint(3, 9)

    def program(self):
        return "\n".join(["def main(x0):", *self.body("x0", [], 4, 1, inside=False)])

    def new(self, letter):
        self.count += 1
        return f"{letter}{self.count}"

    def expression(self, scope):
        recent = scope[-3:] if self.random.random() < 0.6 else scope
        known = {"a": self.random.choice(recent), "b": self.random.choice(scope)}
        return re.sub(r"\b[ab]\b", lambda m: known[m[0]], self.random.choice(self.ops))

    def wrapped(self, name, *, inside):
        """A call of a function under one to three wrappers, and whether a transform is among them, or around."""
        for _ in range(self.random.choice([1, 1, 2, 2, 3])):
            if self.random.random() < 0.5:
                name = f"R[{self.random.choice(REGIONS)!r}]({name})"
            else:
                kind = self.random.choice(self.wrappers)
                name, inside = f"T[{kind!r}]({name})", inside or kind not in NO_TRANSFORM
        for kind in AT_LEVEL_0 if inside else ():
            name = name.replace(f"T[{kind!r}]", "T['grad']")
        return name, inside

    def body(self, arg, scope, depth, indent, *, inside):
        scope, lines, pad = [*scope, arg], [], "    " * indent
        for _ in range(self.random.randint(1, 3)):
            made = self.new("v")
            if depth and self.left and self.random.random() < 0.6:
                self.left -= 1
                f, x = self.new("f"), self.new("x")
                call, under = self.wrapped(f, inside=inside)
                lines += [f"{pad}def {f}({x}):", *self.body(x, scope, depth - 1, indent + 1, inside=under)]
                lines.append(f"{pad}{made} = {call}({self.random.choice(scope)})")
            else:
                lines.append(f"{pad}{made} = {self.expression(scope)}")
            scope.append(made)
        more = f" + 0.3 * {self.random.choice(scope)}" if self.random.random() < 0.4 else ""
        return [*lines, f"{pad}return {scope[-1]}{more}"]


# ---------------------------------------------------------------- running
class Ticks:
    """Counts calls, and fails at one of them."""

    def __init__(self, fails_at=None):
        self.count, self.fails_at = 0, fails_at

    def __call__(self, x):
        self.count += 1
        if self.count == self.fails_at:
            raise ZeroDivisionError
        return x


def run(text, t, *, featured, level_0, ticks=None):
    """The value of a program, and two orders of derivatives at level 0."""
    known = regions(t) if t is minigrad else {}
    names = {"t": t, "tick": ticks or Ticks(), "T": {**transforms(t), **(more(t) if t is minigrad else {})},
             "R": known if featured else dict.fromkeys(REGIONS, lambda f: f), **functions(t)}
    try:
        exec(text, names)
        t.manual_seed(7)
        x = t.tensor([0.3, -0.8, 0.6], dtype=t.float64, requires_grad=level_0)
        y = names["main"](x)
        found = [y.detach()]
        for _ in range(2 * level_0):
            y = t.autograd.grad(y.sum(), x, create_graph=True, allow_unused=True, materialize_grads=True)[0] if y.requires_grad else x * 0
            found.append(y.detach())
        return found
    finally:
        names.clear()                                      # functions hold the names that hold them


def excused(text):
    return any(words in text for words in DECLINED)


def check(text, *, level_0, with_torch):
    """What is wrong with a program's results, or None."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plain = outcome(lambda t: run(text, t, featured=False, level_0=level_0), minigrad)
        featured = outcome(lambda t: run(text, t, featured=True, level_0=level_0), minigrad)
        found = difference(featured, plain, "with regions and without", rtol=1e-9)
        if found:
            return None if excused(found) else found
        if with_torch and isinstance(plain, list):
            theirs = outcome(lambda t: run(text, t, featured=False, level_0=level_0), torch)
            found = difference(plain, theirs, "without regions", rtol=1e-7) if isinstance(theirs, list) else None
        return found or (left_behind(text, level_0) if isinstance(featured, list) else None)


def left_behind(text, level_0):
    """What a program leaves: in the State after an error, or for the collector."""
    ticks = Ticks()
    try:
        with no_garbage():
            copy_context().run(lambda: run(text, minigrad, featured=True, level_0=level_0, ticks=ticks) and None)
    except AssertionError as error:
        return str(error)

    def fails(at):
        before = current()
        try:
            run(text, minigrad, featured=True, level_0=level_0, ticks=Ticks(at))
        except ZeroDivisionError:
            return None if current() is before else f"the State after an error at tick {at} is {vars(current())}"
        return f"no error came out at tick {at}"
    for at in sorted({1, (ticks.count + 1) // 2, ticks.count}) if ticks.count else ():
        found = copy_context().run(fails, at)
        if found:
            return found
    return None


def smallest(text, **options):
    """The program without functions, lines and wrappers that it takes not to show the like."""
    kind = check(text, **options)[:25]
    lines, again = text.split("\n"), True
    while again:
        again = False
        for fewer in _fewer(lines):
            found = check("\n".join(fewer), **options)
            if found and found[:25] == kind and not re.search("NameError|is not defined|UnboundLocal|NoneType", found):
                lines, again = fewer, True
                break
    return "\n".join(lines)


def _fewer(lines):
    for i in reversed(range(1, len(lines))):
        before, line, after = lines[:i], lines[i], lines[i + 1:]
        pad = len(line) - len(line.lstrip())
        if line.lstrip().startswith("def "):
            inner = next((k for k, other in enumerate(after) if len(other) - len(other.lstrip()) <= pad), len(after))
            yield before + after[inner:]
        elif "return" not in line:
            yield before + after
        for m in re.finditer(r"[TR]\['[\w ]+'\](\()", line):
            yield [*before, line[:m.start()] + line[m.start(1):], *after]
        if " + 0.3 * " in line:
            yield [*before, line.partition(" + 0.3 * ")[0], *after]
