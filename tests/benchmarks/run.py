"""How much minigrad adds to numpy: `python tests/benchmarks/run.py [--quick] [--rows] [word ...]` prints a table.

Each line is a ratio to a base in the same process, the median of paired rounds.  Words choose lines by what they contain;
--rows adds every row of the op table at a million elements, against its own kernel.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad import autograd, func  # noqa: E402
from minigrad.autograd.graph import save_on_cpu  # noqa: E402
from minigrad.backend import CPU  # noqa: E402
from minigrad.ops.batching import along_dim, elementwise, over_dims, same_bdim  # noqa: E402
from minigrad.utils.checkpoint import checkpoint  # noqa: E402
from tests.benchmarks.pairs import ratio  # noqa: E402
from tests.laws.rows import TABLE  # noqa: E402
from tests.laws.samples import HERE, OWN, REFUSES_DERIVATIVE, SAMPLES, Draw, index, mask, number, permutation, real  # noqa: E402

LENGTH, MILLION = 1000, (1000, 1000)


# ---------------------------------------------------------------- chains of small ops
def chain(x, sin, cos):
    for _ in range(LENGTH // 2):
        x = cos(sin(x))
    return x


def chains():
    a = np.linspace(0.1, 1, 8)
    x, leaf = mg.from_numpy(a), mg.from_numpy(a).requires_grad_()
    ct = mg.ones_like(x)

    def by_hand():
        """numpy, forward and backward, with a list for a tape."""
        y, tape = a, []
        for _ in range(LENGTH // 2):
            tape.append(y)
            y = np.sin(y)
            tape.append(y)
            y = np.cos(y)
        g = np.ones(8)
        for k in range(LENGTH - 1, -1, -1):
            g = g * (-np.sin(tape[k]) if k % 2 else np.cos(tape[k]))
        return g

    def forward():
        return chain(a, np.sin, np.cos)

    yield f"chain of {LENGTH}, forward / numpy", lambda: chain(x, mg.sin, mg.cos), forward
    yield f"chain of {LENGTH}, recording / numpy", lambda: chain(leaf, mg.sin, mg.cos), forward
    yield (f"chain of {LENGTH}, forward and backward / numpy by hand",
           lambda: autograd.grad(chain(leaf, mg.sin, mg.cos), leaf, ct), by_hand)
    plain = func.grad(lambda v: chain(v, mg.sin, mg.cos).sum())
    yield f"chain of {LENGTH}, func.grad / level 0", lambda: plain(x), lambda: autograd.grad(chain(leaf, mg.sin, mg.cos), leaf, ct)


# ---------------------------------------------------------------- memory features
def layers(x, w, wrap=lambda f: f):
    def segment(v):
        for _ in range(4):
            v = mg.tanh(v @ w)
        return v

    for _ in range(8):
        x = wrap(segment)(x)
    return x


def features():
    rng = np.random.default_rng(0)
    x = mg.from_numpy(rng.standard_normal((256, 256)) / 16).requires_grad_()
    w = mg.from_numpy(rng.standard_normal((256, 256)) / 16).requires_grad_()

    def step(wrap=lambda f: f):
        return autograd.grad(layers(x, w, wrap).sum(), [x, w])

    def offloaded():
        with save_on_cpu():
            return step()

    yield "checkpoint, 32 layers in 8 segments / plain (a third more is the forward)", lambda: step(
        lambda f: lambda v: checkpoint(f, v)), step
    yield "save_on_cpu on the host / plain", offloaded, step
    small = mg.from_numpy(np.linspace(0.1, 1, 8)).requires_grad_()
    yield "checkpoint of one sin of 8 numbers / plain", lambda: checkpoint(mg.sin, small).sum().backward(), lambda: mg.sin(
        small).sum().backward()

    on_device, weight = (mg.from_numpy(v.numpy()).to("sim").requires_grad_() for v in (x.detach(), w.detach()))

    def step_on_device():
        return autograd.grad(layers(on_device, weight).sum(), [on_device, weight])

    def offloaded_from_device():
        with save_on_cpu():
            y = layers(on_device, weight).sum()
        return autograd.grad(y, [on_device, weight])

    yield "save_on_cpu on sim / plain on sim", offloaded_from_device, step_on_device


# ---------------------------------------------------------------- every row, a million elements
LARGE = {  # name -> (arguments, parameters), for rows whose shapes are not all alike
    "linalg.mm_rows.plain": ((real(*MILLION), real(*MILLION)), {}),
    "linalg.bmm_rows.plain": ((real(10, 300, 300), real(10, 300, 300)), {}),
    "linalg._addmm": ((real(1000), real(*MILLION), real(*MILLION)), {"beta": 1, "alpha": 1}),
    "linalg._mv": ((real(*MILLION), real(1000)), {}),
    "shape._permute": ((real(*MILLION),), {"dims": (1, 0)}),
    "shape.view_row": ((real(*MILLION),), {"shape": (10, 100, 1000)}),
    "shape._expand": ((real(1000, 1),), {"shape": MILLION}),
    "shape._slice": ((real(*MILLION),), {"index": (slice(0, 900), slice(None))}),
    "shape.flip_dims": ((real(*MILLION),), {"dims": (1,)}),
    "shape._tril": ((real(*MILLION),), {"diagonal": 0}),
    "joining._cat": ((real(500, 1000), real(500, 1000)), {"dim": 0}),
    "indexing.index_at": ((real(*MILLION), index(1000, 1000)), {"places": (True,)}),
    "indexing.put_at": ((real(*MILLION), real(*MILLION), permutation(1000, 1000)), {"places": (True,), "accumulate": False}),
    "indexing.fill_at": ((real(*MILLION), mask(*MILLION), 0.0), {}),
    "gather.gather_at": ((real(*MILLION), index(1000, *MILLION)), {"dim": 1}),
    "gather.scatter_add_at": ((real(*MILLION), index(1000, *MILLION), real(*MILLION)), {"dim": 1}),
    "gather._index_select": ((real(*MILLION), index(1000, 1000)), {"dim": 0}),
    "embedding._lookup": ((number(5000, 200), index(5000, 5000)), {"padding": -1, "period": 5000}),
    "normalization._layer_norm": ((real(*MILLION), real(1000), real(1000)), {"rank": 1, "eps": 1e-5}),
    "loss.square_loss": ((real(*MILLION), real(*MILLION)), {"reduction": "mean", "rank": 2, "width": 0.0}),
    "loss.class_loss": ((real(*MILLION), index(1000, 1000), None),
                        {"reduction": "mean", "rank": 1, "ignore_index": -100}),
    "attention.attention": ((real(8, 250, 250), real(8, 250, 250), real(8, 250, 250), None), {"is_causal": False, "scale": 0.1}),
}


def large(name):
    """A large sample of a row, or None where nobody wrote one."""
    op = TABLE[name].op
    if name in LARGE:
        return LARGE[name]
    if not op.differentiable or name in REFUSES_DERIVATIVE:
        return None
    real_ones = [(a, p) for a, p in SAMPLES[name] if all(x.kind != "complex" for x in a if isinstance(x, Draw))]
    if not real_ones:
        return None
    args, params = real_ones[0]
    params = {k: mg.float64 if v == OWN else v for k, v in params.items()}
    if HERE in params.values():
        return None
    full = [Draw(x.kind, MILLION, *x.more) if isinstance(x, Draw) else x for x in args]
    if op.batch in (elementwise, same_bdim):
        return full, params
    if op.batch is over_dims:
        return full, {**params, "dims": (1,)}
    if op.batch is along_dim and all(isinstance(x, Draw) and x.kind in ("real", "number") for x in args):
        return full, {**params, "dim": 1}
    return None


def rows():
    for name in SAMPLES:
        sample = large(name) if name in TABLE else None
        if sample is None:
            continue
        args, params = sample
        rng, op, call = np.random.default_rng(0), TABLE[name].op, TABLE[name]
        arrays = [x.draw(rng) if isinstance(x, Draw) else x for x in args]
        tensors = [mg.from_numpy(a) if isinstance(a, np.ndarray) else a for a in arrays]
        active = [i for i, x in enumerate(args) if isinstance(x, Draw) and x.floating and (op.joint or op.formulas[i])]
        for i in active:
            tensors[i].requires_grad_()
        kernel = CPU.kernel(op.kernel)

        def forward(call=call, tensors=tensors, params=params):
            out = call(*tensors, **params)
            return out if isinstance(out, tuple) else (out,)

        roots = [k for k, y in enumerate(forward()) if y.requires_grad]
        cts = [mg.ones_like(forward()[k].detach()) for k in roots]
        if not roots:
            continue

        def both(forward=forward, roots=roots, cts=cts, leaves=[tensors[i] for i in active]):
            outs = forward()
            return autograd.grad([outs[k] for k in roots], leaves, cts, materialize_grads=True)

        def base(kernel=kernel, arrays=arrays, params=params):
            return kernel(*arrays, **params)

        yield f"row {name}, recording / kernel", forward, base
        yield f"row {name}, forward and backward / kernel", both, base


def main():
    options = {word for word in sys.argv[1:] if word.startswith("--")}
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    lines = [*chains(), *features()]
    print(f"{'ratio':>8}  {'time':>10}  what")
    for what, f, base in [*lines, *(rows() if "--rows" in options else ())]:
        if all(word in what for word in words):
            with np.errstate(all="ignore"):
                found, best = ratio(f, base, rounds=3 if "--quick" in options else 11)
            print(f"{found:8.2f}  {best * 1e6:8.0f} us  {what}", flush=True)
    if "--rows" in options:
        print("not measured:", ", ".join(sorted(n for n in SAMPLES if n in TABLE and TABLE[n].op.differentiable and large(n) is None)))


if __name__ == "__main__":
    main()
