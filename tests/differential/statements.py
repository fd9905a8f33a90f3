"""Programs of one statement a line, which torch and minigrad run side by side, compared after every line.

A program is text over tensors x1, x2, ...: ops, views, writes through views, hooks, backwards, regions, functions and
transforms, some of them under another grad mode.  It is made while torch runs it, so that its statements fit the shapes that
there are.  Compared are values, flags, gradients, what hooks heard, which memory was written to, and what was raised.
"""

from __future__ import annotations

import random
import re
import warnings
from contextvars import copy_context

import numpy as np
import torch

import minigrad
from tests.differential.harness import BUILTIN, is_tensor
from tests.differential.programs import ckpt

TORCH_IS_STRICTER = {
    "unsupported operation": "arguments may overlap what is written to: a result is computed, then assigned",
    "a function that returns multiple views": "a piece of several is a view like any other",
    "A view was created in no_grad mode": "a view of a constant may be written to, wherever it was made",
    "modified by an inplace operation": "an op in place keeps its result as computed, and not the tensor that is written to next",
    "A different number of tensors was saved": "what was no longer a leaf at the recomputation was one in the forward",
    "the graph a second time": "a node that saves nothing has nothing to release",
    "_will_engine_execute_node": "a hook of several gradients may hear a leaf's in autograd.grad",
}
MINIGRAD_IS_STRICTER = {
    "more than one element of the written-to tensor": "index_fill_ and the like, too",
    "modified by an inplace operation": "also where only a view with a new history was asked for, and through hooks of a region",
    "custom Function": "when a view that a function returned is written to, and not when its history is asked for",
    "Can't detach views": "an in-place view is a view of what the tensor was",
    "a cotangent of shape": "of an output without a history, too",
    "doesn't match the broadcast shape": "of a gradient and a leaf that was given another shape since",
}
"""Words of errors that only one of the two raises, with the reason; a program ends there."""


# ---------------------------------------------------------------- running
def functions(t):
    """Custom functions of both styles."""
    class Square(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    class Sine(t.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x.sin()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)
            ctx.save_for_forward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return ctx.saved_tensors[0].cos() * g

        @staticmethod
        def jvp(ctx, dx):
            return ctx.saved_tensors[0].cos() * dx

    class Triple(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.mul_(3)

        @staticmethod
        def backward(ctx, g):
            return 3 * g

    class Seen(t.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.view_as(x)

        @staticmethod
        def backward(ctx, g):
            return 2 * g
    return {f.__name__: f.apply for f in (Square, Sine, Triple, Seen)}


class Side:
    """A library, the names that a program has given, and what its hooks heard."""

    def __init__(self, t):
        self.log, self.versions = [], {}

        def hook(name, factor=None):
            return lambda g: self.log.append((name, numbers(g))) or (None if factor is None else g * factor)

        def counted():
            return t.autograd.graph.saved_tensors_hooks(
                lambda x: self.log.append(("pack", tuple(x.shape))) or x.detach().clone(), lambda x: x)
        self.names = {"t": t, "D": t.float64, "hook": hook, "counted": counted, "grad": t.autograd.grad, "fw": t.autograd.forward_ad,
                      "ckpt": lambda f, *args, **options: ckpt(t, f, *args, **options), **functions(t)}

    def run(self, line):
        """The error that a statement raised, or None."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                exec(line, self.names)
        except NameError:
            raise
        except Exception as error:  # noqa: BLE001  an outcome like any other
            return error
        return None

    def tensors(self):
        return {name: x for name, x in self.names.items() if re.fullmatch(r"x\d+", name) and is_tensor(x)}


def numbers(x):
    return None if x is None else np.array(x.detach().cpu().numpy())


def looks(side, name, x):
    """What both libraries must agree in; of the version, whether the statement changed it."""
    version, (known, before) = x._version, side.versions.get(name, (None, 0))
    side.versions[name] = x, version
    with warnings.catch_warnings():                        # of a tensor that is no leaf
        warnings.simplefilter("ignore")
        g = x.grad
    return {"value": numbers(x), "requires_grad": x.requires_grad, "is_leaf": x.is_leaf, "written": known is x and version != before,
            "grad": numbers(g), "grad.requires_grad": g is not None and g.requires_grad}


def unlike(a, b):
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        scale = max(1.0, np.abs(b).max(initial=0, where=np.isfinite(b)))
        return a.shape != b.shape or not np.allclose(a, b, rtol=1e-9, atol=1e-9 * scale, equal_nan=True)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return True
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) != len(b) or any(map(unlike, a, b))
    return a != b


def odd(x):
    """Whether torch says that a view requires grad because its base does, though it was made where nothing was recorded.

    Or whether its history is an error: a view that a function returned, or one of several, whose memory was written to.
    """
    try:
        return x._is_view() and x.grad_fn is None and x.requires_grad and x._base.requires_grad
    except RuntimeError:
        return True


def difference(mine, theirs):
    """What the two sides do not agree in; what torch has odd ideas of is dropped on both."""
    for name, x in theirs.tensors().items():
        if odd(x):
            del theirs.names[name]
            mine.names.pop(name, None)
    a, b = mine.tensors(), theirs.tensors()
    if a.keys() != b.keys():
        return f"the names {a.keys() ^ b.keys()}"
    for name in a:
        have, want = looks(mine, name, a[name]), looks(theirs, name, b[name])
        for what in have:
            if unlike(have[what], want[what]):
                return f"{what} of {name}: minigrad {have[what]}, torch {want[what]}"
    return f"hooks heard {mine.log}, torch's {theirs.log}" if unlike(tuple(mine.log), tuple(theirs.log)) else None


def excused(error, reasons):
    return error is not None and any(words in str(error) for words in reasons)


def check(lines, side=Side):
    """The number of the first statement that the libraries do not agree on, and what it is; None where there is no such."""
    def run():
        mine, theirs = side(minigrad), side(torch)
        for i, line in enumerate(lines):
            try:
                want = theirs.run(line)
                have = mine.run(line)
            except NameError:                              # what made it has been dropped
                continue
            if (have is None) != (want is None):
                if excused(want, TORCH_IS_STRICTER) or excused(have, MINIGRAD_IS_STRICTER):
                    return None
                return i, f"minigrad {have!r}, torch {want!r}"
            if have is not None:
                kind = next((k for k in BUILTIN if isinstance(have, k)), type(have))
                if not isinstance(want, kind):
                    return i, f"minigrad {have!r}, torch {want!r}"
                return None                                # torch has written, or not
            found = difference(mine, theirs)
            if found:
                return i, found
        return None
    return copy_context().run(run)


def smallest(lines, side=Side):
    """As few of the lines as still show the like."""
    i, found = check(lines, side)
    lines, kind = lines[:i + 1], found.split(":")[0][:20]
    for k in reversed(range(len(lines))):
        fewer = lines[:k] + lines[k + 1:]
        left = check(fewer, side)
        if left and left[1].split(":")[0][:20] == kind:
            lines = fewer[:left[0] + 1]
    return lines


# ---------------------------------------------------------------- making
UNARY = """a.sin() a.tanh() a.sigmoid() (a*a).neg().exp() a*2 a.square() -a a.clone() a.contiguous() a**3 a.cos() 1.5-a a.softmax(-1)
a.cumsum(0) a.flip(0) a.erf() t.stack([a,a]) a.tril() a.roll(1,0) a.clamp(-0.4,0.6) a.index_select(0,t.tensor([0,0])) a.masked_fill(a>0.3,2.0)
t.where(a>0,a,1.0) a.relu() a.detach() Square(a) Sine(a) Seen(a) Triple(a*1) t.nn.functional.gelu(a)""".split()  # noqa: SIM905
BINARY = "a+b a*b a-b a/(b*b+1) t.lerp(a,a*0+b,0.3) t.add(a,b,alpha=2) t.addcmul(a,a,a*0+b)".split()  # noqa: SIM905
REDUCED = "a.sum() a.mean() a.sum(-1) a.logsumexp(-1) a.norm() a.prod() (a*a).sum() a.max() a.amax(-1) a.var()".split()  # noqa: SIM905
VIEWS = """a.view_as(a) a[...] a.unsqueeze(0) a[None] a[0] a[-1] a[:1] a[1:] a[::2] a.narrow(0,0,1) a.squeeze() a.reshape(-1) a.flatten() a.unbind()[0]
a.split(1)[0] a.chunk(2)[0] a.transpose(0,-1) a.expand(2,*a.shape) a[...,0] a[...,1:] a.movedim(0,-1) a.mT a.diagonal()""".split()  # noqa: SIM905
WRITES = """a.mul_(b) a.add_(b) a.sub_(b) a+=b a*=b a.sin_() a.tanh_() a.zero_() a.fill_(0.3) a.copy_(b) a.clamp_(-0.5,0.5) a.neg_() a.sigmoid_()
a.div_(2) a.masked_fill_(a>0.2,0.1) a.square_() a.relu_() a.exp_().neg_() a[...]=b a.pow_(2) a.detach_() a.unsqueeze_(0) a.squeeze_()
a.transpose_(0,-1) a[0]=s a[:1]=s a[0].mul_(s) a[:1].add_(s) a[a>0]=0.7 a[t.tensor([0])]=s a.view_as(a).mul_(s) a.cumsum_(0) a[...,0]=s
a.index_fill_(0,t.tensor([0]),0.4) a.diagonal().mul_(2) a.tril_() a[...,0].sin_()""".split()  # noqa: SIM905
BODIES = """a.sin() a*b a+b a.tanh() (a*b).sigmoid() a.exp().neg() a*2 a-b Sine(a) a.cos() a.detach()*b (a*1).mul_(b).sin_() (a+1).tanh_() a.clone() a*a
(a*b).sum()*a""".split()  # noqa: SIM905
MODES = ("t.no_grad()", "t.no_grad()", "t.enable_grad()", "counted()", "t.no_grad(), t.enable_grad()")
TRANSFORMS = ("t.func.grad(lambda v: {f}(v, {b}).sum())({a})", "t.func.vjp({f}, {a}, {b})[1]({a}*0+1)[0]",
              "t.func.jvp({f}, ({a}, {b}), ({a}*0+1, {a}))[1]", "t.func.vmap({f})({a}, {b})",
              "t.func.hessian(lambda v: {f}(v, {b}).sum())({a}).sum()", "t.func.jacrev(lambda v: {f}(v, {b}))({a}).sum()",
              "t.func.jacfwd(lambda v: {f}(v, {b}))({a}).sum()")


class Maker:
    """Makes a program, a statement at a time, and lets torch run it."""

    side_of = Side

    def __init__(self, seed):
        self.random = random.Random(seed)  # noqa: S311
        self.side = self.side_of(torch)
        self.lines, self.hooked, self.scaled, self.count = [], set(), set(), 0

    def program(self, length):
        while len(self.lines) < length:
            line = self.statement()
            try:
                self.side.run(line)
            except NameError:
                continue
            self.lines.append(line)
            if any(not x.numel() or not bool((x.detach().abs() < 1e4).all()) for x in self.side.tensors().values()):
                break
        return self.lines

    def new(self):
        self.count += 1
        return f"x{self.count}"

    def one(self, fits=lambda x: x.numel() <= 24):
        """A tensor, the latest more often than others."""
        known = [(name, x) for name, x in self.side.tensors().items() if not odd(x) and fits(x)]
        return known[-1 - min(len(known) - 1, int(self.random.expovariate(0.35)))] if known else (None, None)

    def other(self, x):
        """What broadcasts to a tensor: another one, or a number."""
        def fits(y):
            try:
                return torch.broadcast_shapes(x.shape, y.shape) == x.shape
            except RuntimeError:
                return False
        name, _ = self.one(fits)
        return name if name and self.random.random() < 0.8 else f"t.tensor({self.random.uniform(-1.5, 1.5):.2f}, dtype=D)"

    def filled(self, templates, name, x):
        s, _ = self.one(lambda y: not y.ndim)
        known = {"a": name, "b": self.other(x), "s": s if s and self.random.random() < 0.6 else "0.6"}
        return re.sub(r"\b[abs]\b(?!\()", lambda m: known[m[0]], self.random.choice(templates))

    def under(self, line, chance=0.2):
        return f"with {self.random.choice(MODES)}: {line}" if self.random.random() < chance else line

    def leaf(self):
        shape = self.random.choice([(3,), (2, 3), (3, 3), (2,), (), (1, 3), (2, 2, 3)])
        data = np.round(np.random.default_rng(self.random.randrange(10**6)).uniform(-1.5, 1.5, shape), 2).tolist()
        return self.under(f"{self.new()} = t.tensor({data}, dtype=D, requires_grad={self.random.random() < 0.7})")

    def function(self, x):
        """The lines of a function of two tensors, which may read others."""
        self.count += 1
        names, lines = ["a", "b", *[name for name, y in (self.one(), self.one()) if name and y.shape in ((), (3,), x.shape)]], []
        for k in range(self.random.randint(1, 4)):
            known = dict(zip("ab", self.random.choices(names, k=2), strict=True))
            lines.append(f"  c{k} = " + re.sub(r"\b[ab]\b", lambda m, known=known: known[m[0]], self.random.choice(BODIES)))
            names.append(f"c{k}")
            if self.random.random() < 0.2:
                lines.append(f"  c{k}[..., :1].mul_(2)")
        return "\n".join([f"def f{self.count}(a, b):", *lines, f"  return {names[-1]}\n"]), f"f{self.count}"

    def statement(self):
        name, x = self.one()
        if name is None:
            return self.leaf()
        kinds = self.kinds()
        kind = self.random.choices(list(kinds), list(kinds.values()))[0]
        return getattr(self, f"make_{kind}")(name, x)

    def kinds(self):
        """How often each kind of statement comes."""
        return {"leaf": 6, "unary": 16, "binary": 10, "view": 15, "reduced": 4, "write": 17, "hook": 6, "flags": 3, "backward": 5,
                "grad": 6, "region": 7, "transform": 3, "dual": 2}

    def make_leaf(self, name, x):
        return self.leaf()

    def make_unary(self, name, x):
        return self.under(f"{self.new()} = {self.filled(UNARY, name, x)}")

    def make_binary(self, name, x):
        return self.under(f"{self.new()} = {self.filled(BINARY, name, x)}")

    def make_view(self, name, x):
        return self.under(f"{self.new()} = {self.filled(VIEWS, name, x)}", 0 if x.requires_grad else 0.2)

    def make_reduced(self, name, x):
        return self.under(f"{self.new()} = {self.filled(REDUCED, name, x)}")

    def make_write(self, name, x):
        leaf = x.is_leaf and x.requires_grad               # torch's accumulator remembers the shape that it had
        return self.under(self.filled([w for w in WRITES if not (leaf and re.search("squeeze_|transpose_", w))], name, x))

    def make_hook(self, name, x):
        if name in self.hooked:
            return f"{name}.retain_grad()"
        self.hooked.add(name)
        if self.random.random() < 0.3:
            self.scaled.add(name)
            return f"{name}.register_hook(hook('{name} times 2', 2))"
        return f"{name}.register_hook(hook('{name}'))"

    def make_flags(self, name, x):
        if any(y._base is x for y in self.side.tensors().values()):  # torch says that its views require grad, too
            return f"{name}.grad = None"
        return self.random.choice([
            f"{name}.requires_grad_()", f"{name}.requires_grad_(False)", f"{name}.grad = None", f"{name}.requires_grad = True", f"del {name}",
            f"{self.new()} = {name}.detach().requires_grad_()", f"with t.no_grad(): {name}.mul_(0.5)"])

    def make_backward(self, name, x):
        ends = [self.one()[0] for _ in range(2)]
        options = self.random.choice(["retain_graph=True", "retain_graph=True", "", "create_graph=True",
                                      f"inputs=[{', '.join(ends)}], retain_graph=True"])
        return f"({name}*{name}).sum().backward({options})"

    def make_grad(self, name, x):
        ends = sorted({self.one()[0] for _ in range(self.random.randint(1, 3))} - self.scaled) or [name]
        made = ", ".join(self.new() for _ in ends)
        options = f"create_graph={self.random.random() < 0.7}, allow_unused=True{self.random.choice(['', ', retain_graph=True'])}"
        loss = self.random.choice([f"{name}.sum()", f"({name}*{name}).sum()"])
        return f"{made}, = [t.zeros((), dtype=D) if g is None else g.clone() for g in grad({loss}, [{', '.join(ends)}], {options})]"

    def make_region(self, name, x):
        body, f = self.function(x)
        other = self.one(lambda y: y.shape in ((), x.shape))[0] or name
        options = self.random.choice(["", "", ", early_stop=False", ", preserve_rng_state=False"])
        call = self.random.choice([f, f, f"lambda a, b: ckpt({f}, a, b).sin() * ckpt({f}, b, a)"])
        return body + self.under(f"{self.new()} = ckpt({call}, {name}, {other}{options})")

    def make_transform(self, name, x):
        body, f = self.function(x)
        other = self.one(lambda y: y.shape == x.shape)[0] or name
        call = self.random.choice(TRANSFORMS).format(f=f, a=name, b=other)
        return f"{body}{self.new()} = ({call}).detach().clone()"

    def make_dual(self, name, x):
        return f"with fw.dual_level(): {self.new()} = fw.unpack_dual(fw.make_dual({name}, {name}*0+1).sin()).tangent"
