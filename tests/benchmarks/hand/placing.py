"""Ops that move numbers: shapes, slices, indices, masks, copies."""

from __future__ import annotations

import numpy as np

import minigrad as mg
import minigrad.nn.functional as F
from tests.benchmarks.hand.arrays import CLASSES, FLAT, INDEX, MASK, PERMUTED, PLACES, G, N, R, X, Y

T = mg.from_numpy
ALL = np.arange(1000)[:, None]
SIDE, EDGES = int(MASK.sum()), np.sort(R)


def into(place, values, out=None):
    """Zeros, or a copy of something else, with values in a place."""
    out = np.zeros(N) if out is None else out.copy()
    out[place] = values
    return out


def added(place, values, out=None):
    out = np.zeros(N) if out is None else out.copy()
    np.add.at(out, place, values)
    return out


def added_flat(places, values):
    return np.bincount(places.reshape(-1), values.reshape(-1), minlength=1000000).reshape(N)


def masked_scatter(x, y, g):
    out, back = x.copy(), np.zeros_like(y)
    out[MASK] = y.reshape(-1)[:SIDE]
    back.reshape(-1)[:SIDE] = g[MASK]
    return out, np.where(MASK, 0, g), back


def overlapping(x, g):
    """Windows of 4, each 2 further on."""
    out = np.zeros(N)
    for k in range(4):
        out[:, k:k + 997:2] += g[:, :, k]
    return np.lib.stride_tricks.sliding_window_view(x, 4, 1)[:, ::2], out


def diagonals(x, g):
    """Of matrices of 2 x 2, so that half of the elements are on one: in one large matrix there would be a thousandth."""
    out = np.zeros_like(x)
    np.einsum("nii->ni", out)[...] = g
    return x.diagonal(0, 1, 2), out


def padded(x, g):
    out = np.full((1004, 1006), 0.5)
    out[2:-2, 3:-3] = x
    return out, g[2:-2, 3:-3]


def copied(x, y):
    x[...] = y
    return x


WIDE = np.random.default_rng(1).standard_normal((1004, 1006))

SHAPES = {
    "expand": (lambda x: x.expand(1000, 1000), (R,), G, lambda x, g: (np.broadcast_to(x, N), g.sum(0))),
    "x[1:, ::2]": (lambda x: x[1:, ::2], (X,), G[1:, ::2].copy(),
                   lambda x, g: (x[1:, ::2], into((slice(1, None), slice(None, None, 2)), g))),
    "unfold": (lambda x: x.unfold(1, 4, 2), (X,), np.ascontiguousarray(
        np.lib.stride_tricks.sliding_window_view(G, 4, 1)[:, ::2]), overlapping),
    "diagonal": (lambda x: mg.diagonal(x, 0, 1, 2), (X.reshape(-1, 2, 2),), G[:, :500].reshape(-1, 2), diagonals),
    "cat": (lambda x, y: mg.cat([x, y]), (X[:500], Y[:500]), G, lambda x, y, g: (np.concatenate([x, y]), g[:500], g[500:])),
    "flip": (lambda x: x.flip(1), (X,), G, lambda x, g: (x[:, ::-1].copy(), g[:, ::-1].copy())),
    "roll": (lambda x: x.roll(3, 1), (X,), G, lambda x, g: (np.roll(x, 3, 1), np.roll(g, -3, 1))),
    "tril": (mg.tril, (X,), G, lambda x, g: (np.tril(x), np.tril(g))),
    "triu": (mg.triu, (X,), G, lambda x, g: (np.triu(x), np.triu(g))),
    "repeat": (lambda x: x.repeat(2, 1), (X[:500],), G, lambda x, g: (np.tile(x, (2, 1)), g.reshape(2, 500, 1000).sum(0))),
    "clone": (mg.clone, (X,), G, lambda x, g: (x.copy(), g)),
    "contiguous": (lambda x: x.T.contiguous(), (X,), G, lambda x, g: (np.ascontiguousarray(x.T), g.T)),
    "to(float32)": (lambda x: x.to(mg.float32), (X,), G.astype("float32"),
                    lambda x, g: (x.astype("float32"), g.astype("float64"))),
    "pad": (lambda x: F.pad(x, (3, 3, 2, 2), value=0.5), (X,), WIDE, padded),
    "copy_": (lambda x, y: x.clone().copy_(y), (X, Y), G, lambda x, y, g: (copied(x.copy(), y), np.zeros_like(g), g)),
}

INDICES = {
    "x[index]": (lambda x: x[T(INDEX)], (X,), G, lambda x, g: (x[INDEX], added(INDEX, g))),
    "x[index] = y": (lambda x, y: x.index_put((T(INDEX),), y), (X, Y), G,
                     lambda x, y, g: (into(INDEX, y, x), into(INDEX, 0, g), g[INDEX])),
    "x[mask]": (lambda x: x[T(MASK)], (X,), G.reshape(-1)[:SIDE].copy(), lambda x, g: (x[MASK], into(MASK, g))),
    "masked_select": (lambda x: mg.masked_select(x, T(MASK)), (X,), G.reshape(-1)[:SIDE].copy(),
                      lambda x, g: (x[MASK], into(MASK, g))),
    "masked_scatter": (lambda x, y: mg.masked_scatter(x, T(MASK), y), (X, Y), G, masked_scatter),
    "take": (lambda x: mg.take(x, T(FLAT)), (X,), G,
             lambda x, g: (x.reshape(-1)[FLAT], added_flat(np.where(FLAT < 0, FLAT + x.size, FLAT), g))),
    "index_select": (lambda x: mg.index_select(x, 0, T(INDEX)), (X,), G, lambda x, g: (x[INDEX], added(INDEX, g))),
    "index_add": (lambda x, y: mg.index_add(x, 0, T(INDEX), y), (X, Y), G,
                  lambda x, y, g: (added(INDEX, y, x), g, g[INDEX])),
    "index_copy": (lambda x, y: mg.index_copy(x, 0, T(INDEX), y), (X, Y), G,
                   lambda x, y, g: (into(INDEX, y, x), into(INDEX, 0, g), g[INDEX])),
    "index_fill": (lambda x: mg.index_fill(x, 0, T(INDEX[:500]), 0.5), (X,), G,
                   lambda x, g: (into(INDEX[:500], 0.5, x), into(INDEX[:500], 0, g))),
    "gather": (lambda x: mg.gather(x, 1, T(PLACES)), (X,), G,
               lambda x, g: (np.take_along_axis(x, PLACES, 1), added_flat(PLACES + 1000 * ALL, g))),
    "scatter": (lambda x, y: mg.scatter(x, 1, T(PERMUTED), y), (X, Y), G,
                lambda x, y, g: (into((ALL, PERMUTED), y, x), into((ALL, PERMUTED), 0, g), np.take_along_axis(g, PERMUTED, 1))),
    "scatter_add": (lambda x, y: mg.scatter_add(x, 1, T(PLACES), y), (X, Y), G,
                    lambda x, y, g: (x + added_flat(PLACES + 1000 * ALL, y), g, np.take_along_axis(g, PLACES, 1))),
    "embedding": (lambda w: F.embedding(T(CLASSES), w), (X,), G, lambda w, g: (w[CLASSES], added(CLASSES, g))),
    "searchsorted": (lambda x: mg.searchsorted(T(EDGES), x), (X,), None, lambda x: np.searchsorted(EDGES, x)),
    "nonzero": (mg.nonzero, (MASK,), None, np.argwhere),
    "one_hot": (lambda i: F.one_hot(i, 1000), (CLASSES,), None, lambda i: np.eye(1000, dtype=int)[i]),
    "repeat_interleave": (lambda x, n: mg.repeat_interleave(x, n, 0), (X, np.full(1000, 1)), None,
                          lambda x, n: np.repeat(x, n, 0)),
}

MADE = {
    "full": (lambda: mg.full(N, 0.5, dtype=mg.float64), (), None, lambda: np.full(N, 0.5)),
    "full_like": (lambda x: mg.full_like(x, 0.5), (X,), None, lambda x: np.full_like(x, 0.5)),
    "ones_like": (mg.ones_like, (X,), None, np.ones_like),
    "arange": (lambda: mg.arange(1000000), (), None, lambda: np.arange(1000000)),
    "linspace": (lambda: mg.linspace(0, 1, 1000000, dtype=mg.float64), (), None, lambda: np.linspace(0, 1, 1000000)),
    "logspace": (lambda: mg.logspace(0, 1, 1000000, dtype=mg.float64), (), None, lambda: np.logspace(0, 1, 1000000)),
    "eye": (lambda: mg.eye(1000, dtype=mg.float64), (), None, lambda: np.eye(1000)),
}

OPS = {**SHAPES, **INDICES, **MADE}
