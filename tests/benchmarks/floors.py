"""What an op and a region cannot cost less than: `python tests/benchmarks/floors.py` prints a table.

Each step adds one thing that the meaning asks for to the step before, written with nothing else in it; the last of each part is
minigrad.  (docs/decisions/0038)
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402
import torch  # noqa: E402
from torch.utils.checkpoint import checkpoint as torch_checkpoint  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad import func  # noqa: E402
from minigrad.state import current, using  # noqa: E402
from minigrad.utils.checkpoint import checkpoint  # noqa: E402
from tests.benchmarks.pairs import ratio  # noqa: E402

LENGTH = 1000
ARRAY = np.linspace(0.1, 1, 8)


# ---------------------------------------------------------------- a chain of ops that nobody records
class Box:
    """A value in an object of its own."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __mul__(self, other):
        return Box(np.multiply(self.value, other.value))


class Full:
    """A value with all that a tensor says of itself."""

    __slots__ = ("extra", "kind", "node", "owner", "shape", "store", "value")

    def __mul__(self, other):
        return filled(np.multiply(self.value, other.value), self.kind)


def filled(value, kind):
    out = Full()
    out.value = value
    out.owner = None
    out.shape = value.shape
    out.kind = kind
    out.node = None
    out.store = None
    out.extra = None
    return out


def chain(sin, x, c):
    def run():
        y = x
        for _ in range(LENGTH // 2):
            y = sin(y) * c
        return y
    return run


def ops():
    c = np.full(8, 1.01)
    base = chain(np.sin, ARRAY, c)
    for what, sin, make in (("a call and an object of one slot", lambda x: Box(np.sin(x.value)), Box),
                            ("an object with a tensor's slots", lambda x: filled(np.sin(x.value), x.kind),
                             lambda array: filled(array, "float64")),
                            ("the op", mg.sin, mg.from_numpy)):
        yield f"chain of {LENGTH} / numpy: {what}", chain(sin, make(ARRAY), make(c)), base


# ---------------------------------------------------------------- a level of grad
class Step:
    """A node with what a backward has to know of it."""

    __slots__ = ("hooks", "metas", "more", "nr", "number", "outs", "owner", "params", "plan", "saved", "shapes", "target")


class Memory:
    """What is kept of a value: its array, and how to see that it was written to."""

    __slots__ = ("array", "kind", "last_write", "version")


def recorded(x):
    below = filled(np.sin(x.value.value), "float64")
    node = Step()
    node.target, node.nr, node.more = x.node, 0, ()
    node.hooks = node.metas = node.shapes = node.params = node.plan = node.owner = None
    node.number, node.outs = 1, 1
    node.saved = store = Memory()
    store.array = x.value.value
    store.kind = "float64"
    store.version = store.last_write = 0
    out = filled(below, "float64")
    out.node = node
    return out


def recorded_gradient():
    """A chain one storey up, and its backward: no level, no dispatch, no State, no check."""
    inner = filled(np.array(0.7), "float64")
    y = filled(inner, "float64")
    for _ in range(20):
        y = recorded(y)
    ct, node = np.float64(1.0), y.node
    while node is not None:
        ct = ct * np.cos(node.saved.array[()])
        node = node.target
    return filled(np.asarray(ct), "float64")


def levels():
    def sines(sin):
        def f(x):
            for _ in range(20):
                x = sin(x)
            return x
        return f

    x, y = mg.tensor(0.7, dtype=mg.float64), torch.tensor(0.7, dtype=torch.float64)
    ours, theirs = func.grad(sines(mg.sin)), torch.func.grad(sines(torch.sin))
    assert abs(ours(x).item() - theirs(y).item()) < 1e-12
    assert abs(recorded_gradient().value.item() - theirs(y).item()) < 1e-12
    for what, run in (("its objects and a walk", recorded_gradient), ("the transform", lambda: ours(x))):
        yield f"grad of sin^20 / torch.func.grad: {what}", run, lambda: theirs(y)


# ---------------------------------------------------------------- a region of one op
def backward(T, wrap, x, ct):
    def run():
        leaf = x.detach().requires_grad_()
        wrap(T.sin, leaf).backward(ct)
    return run


def regions():
    x, y = mg.from_numpy(ARRAY), torch.from_numpy(ARRAY)
    ct = mg.ones_like(x)
    base = backward(torch, lambda f, v: torch_checkpoint(f, v, use_reentrant=False), y, torch.ones_like(y))
    leaf = x.detach().requires_grad_()
    plain = backward(mg, lambda f, v: f(v), x, ct)

    def twice():
        mg.sin(leaf)
        plain()

    def under():
        """A State for the forward, and one for the recomputation; that of the backward is in `plain`."""
        with using(current()._replace(hooks=None)), using(current()._replace(hooks=None)):
            twice()

    for what, run in (("no region", plain), ("the forward twice", twice), ("each under its State", under),
                      ("the region", backward(mg, checkpoint, x, ct))):
        yield f"checkpoint of one sin, forward and backward / torch's: {what}", run, base


def main():
    print(f"{'ratio':>8}  {'time':>10}  what")
    for what, run, base in (*ops(), *levels(), *regions()):
        found, best = ratio(run, base)
        print(f"{found:8.2f}  {best * 1e6:8.1f} us  {what}", flush=True)


if __name__ == "__main__":
    main()
