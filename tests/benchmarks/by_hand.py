"""Ops against numpy written by hand, forward and backward, at a million elements: `python tests/benchmarks/by_hand.py [word ...]`.

Prints the ratio of every op, the worst ten first among them marked.  By hand means what one would write for this op alone, with the
same numbers kept, and no more memory than that.
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
import minigrad.nn.functional as F  # noqa: E402
from minigrad import autograd  # noqa: E402
from tests.benchmarks.pairs import ratio  # noqa: E402

N = (1000, 1000)
rng = np.random.default_rng(0)
X, Y, G = rng.standard_normal(N), rng.standard_normal(N), rng.standard_normal(N)
P = np.abs(X) + 0.1
R = rng.standard_normal(1000)
INDEX = rng.permutation(1000)
PLACES = rng.integers(0, 1000, N)
MASK = X > 0
W = rng.standard_normal(N) / 30


def _softmax(x, g):
    e = np.exp(x - x.max(-1, keepdims=True))
    y = e / e.sum(-1, keepdims=True)
    return y, y * (g - (g * y).sum(-1, keepdims=True))


def _log_softmax(x, g):
    y = x - x.max(-1, keepdims=True)
    y = y - np.log(np.exp(y).sum(-1, keepdims=True))
    return y, g - np.exp(y) * g.sum(-1, keepdims=True)


def _logsumexp(x, g):
    top = x.max(-1, keepdims=True)
    y = np.log(np.exp(x - top).sum(-1, keepdims=True)) + top
    return y[:, 0], g[:, None] * np.exp(x - y)


def _sigmoid(x, g):
    y = 1 / (1 + np.exp(-x))
    return y, g * y * (1 - y)


def _tanh(x, g):
    y = np.tanh(x)
    return y, g * (1 - y * y)


def _var(x, g):
    d = x - x.mean(-1, keepdims=True)
    return (d * d).sum(-1) / 999, g[:, None] * d * (2 / 999)


def _prod(x, g):
    y = x.prod(-1)
    return y, (g * y)[:, None] / x


def _amax(x, g):
    y = x.max(-1)
    ties = x == y[:, None]
    return y, ties * (g / ties.sum(-1))[:, None]


def _max_dim(x, g):
    i = x.argmax(-1)
    out = np.zeros_like(x)
    out[np.arange(1000), i] = g
    return x[np.arange(1000), i], out


def _sort(x, g):
    i = np.argsort(x, -1, kind="stable")
    out = np.empty_like(x)
    np.put_along_axis(out, i, g, -1)
    return np.take_along_axis(x, i, -1), out


def _index(x, g):
    out = np.zeros_like(x)
    np.add.at(out, INDEX, g)
    return x[INDEX], out


def _index_select(x, g):
    return _index(x, g)


def _gather(x, g):
    out = np.zeros_like(x)
    np.add.at(out, (np.arange(1000)[:, None], PLACES), g)
    return np.take_along_axis(x, PLACES, 1), out


def _layer_norm(x, w, b, g):
    mean = x.mean(-1, keepdims=True)
    rstd = 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    n = (x - mean) * rstd
    gn = g * w
    gx = rstd * (gn - gn.mean(-1, keepdims=True) - n * (gn * n).mean(-1, keepdims=True))
    return n * w + b, gx, (g * n).sum(0), g.sum(0)


def _maximum(x, y, g):
    half = np.where(x == y, g / 2, g)
    return np.maximum(x, y), np.where(x >= y, half, 0), np.where(y >= x, half, 0)


def _norm(x, g):
    y = np.sqrt((x * x).sum(-1))
    return y, x * (g / y)[:, None]


def _cumprod(x, g):
    y = np.cumprod(x, -1)
    return y, np.cumsum((g * y)[:, ::-1], -1)[:, ::-1] / x


def _mse(x, y, g):
    d = x - y
    s = d * (2 * g / d.size)
    return (d * d).mean(), s, -s


ROW, SCALAR = G[:, 0].copy(), np.float64(1.3)
OPS = {  # name -> (op, arguments, cotangent, by hand of (*arguments, cotangent))
    "add": (mg.add, (X, Y), G, lambda x, y, g: (x + y, g, g)),
    "mul": (mg.mul, (X, Y), G, lambda x, y, g: (x * y, g * y, g * x)),
    "mul, broadcast": (mg.mul, (X, R), G, lambda x, y, g: (x * y, g * y, (g * x).sum(0))),
    "div": (mg.div, (X, P), G, lambda x, y, g: (x / y, g / y, -g * x / (y * y))),
    "maximum": (mg.maximum, (X, Y), G, _maximum),
    "atan2": (mg.atan2, (X, Y), G, lambda x, y, g: (np.arctan2(x, y), g * y / (x * x + y * y), -g * x / (x * x + y * y))),
    "pow(2)": (lambda x: x ** 2, (X,), G, lambda x, g: (x ** 2, 2 * g * x)),
    "pow(3)": (lambda x: x ** 3, (X,), G, lambda x, g: (x ** 3, 3 * g * x ** 2)),
    "sin": (mg.sin, (X,), G, lambda x, g: (np.sin(x), g * np.cos(x))),
    "exp": (mg.exp, (X,), G, lambda x, g: ((y := np.exp(x)), g * y)),
    "log": (mg.log, (P,), G, lambda x, g: (np.log(x), g / x)),
    "sqrt": (mg.sqrt, (P,), G, lambda x, g: ((y := np.sqrt(x)), g / (2 * y))),
    "tanh": (mg.tanh, (X,), G, _tanh),
    "sigmoid": (mg.sigmoid, (X,), G, _sigmoid),
    "relu": (mg.relu, (X,), G, lambda x, g: ((y := np.maximum(x, 0)), np.where(y <= 0, 0, g))),
    "abs": (mg.abs, (X,), G, lambda x, g: (np.abs(x), g * np.sign(x))),
    "clamp": (lambda x: mg.clamp(x, -1, 1), (X,), G, lambda x, g: (np.clip(x, -1, 1), np.where((x >= -1) & (x <= 1), g, 0))),
    "where": (lambda x, y: mg.where(mg.from_numpy(MASK), x, y), (X, Y), G,
              lambda x, y, g: (np.where(MASK, x, y), np.where(MASK, g, 0), np.where(MASK, 0, g))),
    "masked_fill": (lambda x: mg.masked_fill(x, mg.from_numpy(MASK), 0), (X,), G,
                    lambda x, g: (np.where(MASK, 0, x), np.where(MASK, 0, g))),
    "sum": (lambda x: x.sum(-1), (X,), ROW, lambda x, g: (x.sum(-1), np.broadcast_to(g[:, None], N))),
    "mean": (lambda x: x.mean(-1), (X,), ROW, lambda x, g: (x.mean(-1), np.broadcast_to(g[:, None], N) / 1000)),
    "prod": (lambda x: x.prod(-1), (P,), ROW, _prod),
    "var": (lambda x: x.var(-1), (X,), ROW, _var),
    "amax": (lambda x: x.amax(-1), (X,), ROW, _amax),
    "max(dim)": (lambda x: x.max(-1).values, (X,), ROW, _max_dim),
    "norm": (lambda x: mg.norm(x, dim=-1), (X,), ROW, _norm),
    "logsumexp": (lambda x: mg.logsumexp(x, -1), (X,), ROW, _logsumexp),
    "softmax": (lambda x: mg.softmax(x, -1), (X,), G, _softmax),
    "log_softmax": (lambda x: mg.log_softmax(x, -1), (X,), G, _log_softmax),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (1000,), w, b), (X, R, R), G, _layer_norm),
    "mse_loss": (F.mse_loss, (X, Y), SCALAR, _mse),
    "cumsum": (lambda x: x.cumsum(-1), (X,), G, lambda x, g: (np.cumsum(x, -1), np.cumsum(g[:, ::-1], -1)[:, ::-1])),
    "cumprod": (lambda x: x.cumprod(-1), (P,), G, _cumprod),
    "sort": (lambda x: x.sort(-1).values, (X,), G, _sort),
    "x[index]": (lambda x: x[mg.from_numpy(INDEX)], (X,), G, _index),
    "index_select": (lambda x: mg.index_select(x, 0, mg.from_numpy(INDEX)), (X,), G, _index_select),
    "gather": (lambda x: mg.gather(x, 1, mg.from_numpy(PLACES)), (X,), G, _gather),
    "x[1:, ::2]": (lambda x: x[1:, ::2], (X,), G[1:, ::2].copy(), lambda x, g: (x[1:, ::2], _put_slice(g))),
    "cat": (lambda x, y: mg.cat([x, y]), (X[:500], Y[:500]), G, lambda x, y, g: (np.concatenate([x, y]), g[:500], g[500:])),
    "flip": (lambda x: x.flip(1), (X,), G, lambda x, g: (x[:, ::-1].copy(), g[:, ::-1].copy())),
    "tril": (mg.tril, (X,), G, lambda x, g: (np.tril(x), np.tril(g))),
    "mm": (mg.mm, (X, W), G, lambda x, y, g: (x @ y, g @ y.T, x.T @ g)),
    "gelu": (lambda x: F.gelu(x, approximate="tanh"), (X,), G, lambda x, g: _gelu(x, g)),
    "silu": (F.silu, (X,), G, lambda x, g: ((s := 1 / (1 + np.exp(-x))) * x, g * s * (1 + x * (1 - s)))),
    "hypot": (mg.hypot, (X, Y), G, lambda x, y, g: ((h := np.hypot(x, y)), g * x / h, g * y / h)),
    "logaddexp": (mg.logaddexp, (X, Y), G, lambda x, y, g: (np.logaddexp(x, y), g / (1 + np.exp(y - x)), g / (1 + np.exp(x - y)))),
}


def _put_slice(g):
    out = np.zeros(N)
    out[1:, ::2] = g
    return out


def _gelu(x, g):
    c = np.sqrt(2 / np.pi)
    t = np.tanh(c * (x + 0.044715 * x * x * x))
    return 0.5 * x * (1 + t), g * (0.5 * (1 + t) + 0.5 * c * x * (1 - t * t) * (1 + 3 * 0.044715 * x * x))


def measure(name, rounds):
    """(ratio, seconds) of one op, after it was seen to give what is written by hand."""
    op, arrays, ct, hand = OPS[name]
    leaves = [mg.from_numpy(a).requires_grad_() for a in arrays]
    ct_tensor = mg.from_numpy(np.asarray(ct))

    def both():
        out = op(*leaves)
        return out, *autograd.grad(out, leaves, ct_tensor)

    for mine, wanted in zip(both(), hand(*arrays, ct), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), wanted, rtol=1e-9, atol=1e-9)
    return ratio(both, lambda: hand(*arrays, ct), rounds)


def main():
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    with np.errstate(all="ignore"):
        found = {name: measure(name, 3 if "--quick" in sys.argv else 7) for name in OPS if all(w in name for w in words)}
    order = sorted(found, key=lambda name: -found[name][0])
    for place, name in enumerate(order):
        print(f"{found[name][0]:6.2f}  {found[name][1] * 1e3:7.2f} ms  {'*' if place < 10 else ' '} {name}")


if __name__ == "__main__":
    main()
