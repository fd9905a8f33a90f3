"""How fast minigrad is, as ratios of times measured in turn: `python tests/benchmarks/run.py [--rounds N] [--rows]`.

Each line is one program against what it is compared with, in one process, on the process's CPU clock, in turns, so that a slow
phase of the machine hits both; the ratio is that of the minimums, with the quartiles of the paired ratios beside it.  Nothing is
judged: a timed test would say more about the machine than about the program.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import time

import numpy as np

import minigrad as mg
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.func import grad, hessian, vmap
from minigrad.utils.checkpoint import checkpoint

PAIRS = 500
SIZE = 8


def timed(f, repeat):
    gc.collect()
    gc.disable()
    start = time.process_time()
    for _ in range(repeat):
        f()
    taken = (time.process_time() - start) / repeat
    gc.enable()
    return taken


def race(f, base, rounds):
    """Minimum ratio and quartiles of f to base."""
    f()
    base()
    repeat = max(1, int(0.01 / max(timed(base, 1), 1e-7)))
    pairs = [(timed(f, repeat), timed(base, repeat)) for _ in range(rounds)]
    low, high = np.percentile([a / b for a, b in pairs], (25, 75))
    return min(a for a, _ in pairs) / min(b for _, b in pairs), low, high, min(a for a, _ in pairs)


def chains():
    x, c, ones = np.full(SIZE, 0.3), np.full(SIZE, 1.01), np.ones(SIZE)
    tx, tc, tones = mg.from_numpy(x), mg.from_numpy(c), mg.from_numpy(ones)
    leaf = tx.detach().requires_grad_()

    def by_hand():
        z = x
        for _ in range(PAIRS):
            z = np.multiply(np.sin(z), c)
        return z

    def both_by_hand():
        z, saved = x, []
        for _ in range(PAIRS):
            saved.append(z)
            z = np.multiply(np.sin(z), c)
        g = ones
        for z in reversed(saved):
            g = np.multiply(np.multiply(g, c), np.cos(z))
        return g

    def chain(z):
        for _ in range(PAIRS):
            z = mg.sin(z) * tc
        return z

    yield "1000 small ops, nothing recorded / numpy", lambda: chain(tx), by_hand
    yield "1000 small ops, recorded / numpy", lambda: chain(leaf), by_hand
    yield "1000 small ops, forward and backward / numpy by hand", lambda: mg.autograd.grad(chain(leaf), leaf, tones), both_by_hand

    def idle():
        return grad(lambda z: (z.sum(), chain(tx)), has_aux=True)(tx)[1]

    yield "1000 small ops inside a level that nothing belongs to / alone", idle, lambda: chain(tx)


def nested():
    x = mg.from_numpy(np.array(0.7))

    def order(n, length):
        def f(z):
            for _ in range(length):
                z = mg.sin(z)
            return z
        for _ in range(n):
            f = grad(f)
        return lambda: f(x)

    for n in (1, 2, 3, 4):
        yield f"grad^{n} of sin^20 / grad^{n - 1}" if n > 1 else "grad of sin^20 / its forward", order(n, 20), order(n - 1, 20)


def memory():
    x = mg.from_numpy(np.full(SIZE, 0.3))
    w = mg.randn(256, 256, dtype=mg.float64).requires_grad_()
    rows = mg.randn(64, 256, dtype=mg.float64)

    def layer(z):
        for _ in range(8):
            z = mg.tanh(z @ w / 16)
        return z

    def net(wrap):
        z = rows
        for _ in range(8):
            z = wrap(z)
        z.sum().backward()

    yield "8 segments of 8 layers, checkpointed / plain", lambda: net(lambda z: checkpoint(layer, z)), lambda: net(layer)

    def sins(context):
        z = x.detach().requires_grad_()
        y = z
        with context():
            for _ in range(100):
                y = mg.sin(y)
        y.sum().backward()

    yield "100 sins under save_on_cpu on the host / without", lambda: sins(save_on_cpu), lambda: sins(mg.enable_grad)
    yield "100 sins under identity hooks / without", lambda: sins(
        lambda: saved_tensors_hooks(lambda t: t, lambda t: t)), lambda: sins(mg.enable_grad)
    one = x.detach().requires_grad_()
    yield "checkpoint(sin), forward and backward / sin", lambda: checkpoint(mg.sin, one).sum().backward(), (
        lambda: mg.sin(one).sum().backward())


def transforms():
    w1, w2 = mg.randn(32, 32, dtype=mg.float64), mg.randn(32, 4, dtype=mg.float64)
    xs = mg.randn(64, 32, dtype=mg.float64)
    one = grad(lambda row: (mg.tanh(row @ w1) @ w2).sum())
    yield "64 per-sample gradients, vmap(grad) / one gradient", lambda: vmap(one)(xs), lambda: one(xs[0])
    f = lambda row: (mg.tanh(row @ w1) @ w2).sum()
    yield "hessian of 32 inputs / gradient", lambda: hessian(f)(xs[0]), lambda: grad(f)(xs[0])


def rows():
    """Forward and backward of each differentiable elementwise row at 10^6 elements, against its kernel run twice."""
    from minigrad.ops import activation, pointwise
    x = np.random.default_rng(0).uniform(0.1, 0.9, 10**6)
    leaf = mg.from_numpy(x).requires_grad_()
    ones = mg.ones(10**6, dtype=mg.float64)
    for module in (pointwise, activation):
        for name, f in sorted(vars(module).items()):
            op = getattr(f, "op", None)
            if op is None or not op.vjp or op.elementwise is False or len(op.formulas) != 1 or name.startswith("_"):
                continue
            kernel = leaf.device.kernel(op.kernel)
            yield f"row {name}: forward and backward at 1e6 / its kernel", (
                lambda f=f: mg.autograd.grad(f(leaf), leaf, ones)), lambda k=kernel: k(x)


def imports(rounds):
    """CPU seconds of `import minigrad` above bare python, against numpy's."""
    def once(code):
        before = os.times()
        subprocess.run([sys.executable, "-c", code], check=True)
        after = os.times()
        return after.children_user + after.children_system - before.children_user - before.children_system

    best = {code: min(once(code) for _ in range(rounds)) for code in ("pass", "import numpy", "import minigrad")}
    return (best["import minigrad"] - best["pass"]) / (best["import numpy"] - best["pass"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split(":")[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--rows", action="store_true", help="every elementwise row too, the ten worst last")
    args = parser.parse_args()
    print("| program / compared with | ratio | quartiles | microseconds |\n|---|---|---|---|")
    for family in (chains, nested, memory, transforms):
        for name, f, base in family():
            ratio, low, high, taken = race(f, base, args.rounds)
            print(f"| {name} | {ratio:.2f} | {low:.2f} to {high:.2f} | {taken * 1e6:.0f} |", flush=True)
    print(f"| import minigrad / import numpy | {imports(args.rounds):.2f} | | |")
    if args.rows:
        found = sorted((race(f, base, 5)[0], name) for name, f, base in rows())
        for ratio, name in found[-10:]:
            print(f"| {name} | {ratio:.2f} | | |")


if __name__ == "__main__":
    main()
