"""Losses, normalizations, convolutions, pooling, interpolation, attention."""

from __future__ import annotations

import numpy as np

import minigrad as mg
import minigrad.nn.functional as F
from tests.benchmarks.hand.arrays import IMAGES, R2, SCALAR, G, R, U, V, X, Y, rng

T = mg.from_numpy


# ---------------------------------------------------------------- losses
def mse(x, y, g):
    d = x - y
    s = (x - y) * (2 * g / x.size)
    return (d * d).mean(), s, -s


def smooth_l1(x, y, g):
    d = x - y
    size = np.abs(d)
    s = np.clip(x - y, -1, 1) * (g / x.size)
    return np.where(size < 1, 0.5 * d * d, size - 0.5).mean(), s, -s


def bce(p, t, g):
    loss = -(t * np.maximum(np.log(p), -100) + (1 - t) * np.maximum(np.log1p(-p), -100)).mean()
    return loss, (p - t) / np.maximum((1 - p) * p, 1e-12) * (g / p.size)


def bce_logits(x, t, g):
    loss = ((1 - t) * x + np.log1p(np.exp(-np.abs(x))) + np.maximum(-x, 0)).mean()
    return loss, (1 / (1 + np.exp(-x)) - t) * (g / x.size)


def nll(x, g):
    """Of four classes: with a thousand there would be a thousandth of the work.  One that says to ignore a sample is none."""
    kept = FOUR != -100
    place = np.arange(len(x))[kept], FOUR[kept]
    out = np.zeros_like(x)
    out[place] = -g / len(place[0])
    return -x[place].mean(), out


# ---------------------------------------------------------------- normalizations
def normalized(x, axes, w, b, g):
    """(out, cotangents of x, w and b), the moments over axes; w and b as they broadcast; sums where they do."""
    n = np.prod([x.shape[d] for d in axes])
    mean = x.mean(axes, keepdims=True)
    y = x - mean
    rstd = 1 / np.sqrt((y * y).sum(axes, keepdims=True) / n + 1e-5)
    y *= rstd
    y *= w
    y += b
    normal = x - mean
    normal *= rstd
    over = tuple(d for d in range(x.ndim) if w.shape[d] == 1)
    gw, gb = (g * normal).sum(over), g.sum(over)
    gn = g * w
    ours = (gn * normal).sum(axes, keepdims=True) / n
    gn -= gn.mean(axes, keepdims=True)
    normal *= ours
    gn -= normal
    gn *= rstd
    return y, gn, gw, gb


def layer_norm(x, w, b, g):
    return normalized(x, (1,), w[None], b[None], g)


def batch_norm(x, w, b, g):
    return normalized(x, (0, 2, 3), w[:, None, None][None], b[:, None, None][None], g)


def group_norm(x, w, b, g):
    y, gx, gw, gb = normalized(x.reshape(4, 4, 4, 125, 125), (2, 3, 4), w.reshape(1, 4, 4, 1, 1), b.reshape(1, 4, 4, 1, 1),
                               g.reshape(4, 4, 4, 125, 125))
    return y.reshape(x.shape), gx.reshape(x.shape), gw.reshape(16), gb.reshape(16)


def normalized_by(x, w, b, g):
    """By running statistics."""
    scale = (w / np.sqrt(VAR + 1e-5))[:, None, None]
    normal = (x - MEAN[:, None, None]) / np.sqrt(VAR + 1e-5)[:, None, None]
    return ((x - MEAN[:, None, None]) * scale + b[:, None, None], g * scale, (g * normal).sum((0, 2, 3)), g.sum((0, 2, 3)))


# ---------------------------------------------------------------- convolutions: a product of weights and columns
def columns(x, k, pad):
    """(n, c, k, k, h, w) of what each of k x k places of a window sees."""
    n, c, h, w = x.shape
    wide = np.zeros((n, c, h + 2 * pad, w + 2 * pad))
    wide[:, :, pad:pad + h, pad:pad + w] = x
    out = np.empty((n, c, k, k, h + 2 * pad - k + 1, w + 2 * pad - k + 1))
    for i in range(k):
        for j in range(k):
            out[:, :, i, j] = wide[:, :, i:i + out.shape[4], j:j + out.shape[5]]
    return out


def summed(cols, h, w, pad):
    n, c, k, _, oh, ow = cols.shape
    wide = np.zeros((n, c, h + 2 * pad, w + 2 * pad))
    for i in range(k):
        for j in range(k):
            wide[:, :, i:i + oh, j:j + ow] += cols[:, :, i, j]
    return wide[:, :, pad:pad + h, pad:pad + w].copy()


def conv2d(x, w, g):
    n, c, h, b = x.shape
    flat = w.reshape(16, -1)
    y = (flat @ columns(x, 3, 1).reshape(n, 144, -1)).reshape(x.shape)
    back = g.reshape(n, 16, -1)
    gx = summed((flat.T @ back).reshape(n, c, 3, 3, h, b), h, b, 1)
    gw = sum(back[i] @ columns(x[i:i + 1], 3, 1).reshape(144, -1).T for i in range(n))
    return y, gx, gw.reshape(w.shape)


def conv_transpose2d(x, w, g):
    n, c, h, b = x.shape
    flat = w.reshape(16, -1)
    y = summed((flat.T @ x.reshape(n, c, -1)).reshape(n, 16, 3, 3, h, b), h, b, 1)
    gx = (flat @ columns(g, 3, 1).reshape(n, 144, -1)).reshape(x.shape)
    gw = sum(x[i].reshape(16, -1) @ columns(g[i:i + 1], 3, 1).reshape(144, -1).T for i in range(n))
    return y, gx, gw.reshape(w.shape)


def unfold(x, g):
    return columns(x, 3, 1).reshape(4, 144, -1), summed(g.reshape(4, 16, 3, 3, 125, 125), 125, 125, 1)


def fold(x, g):
    return summed(x.reshape(4, 16, 3, 3, 125, 125), 125, 125, 1), columns(g, 3, 1).reshape(x.shape)


# ---------------------------------------------------------------- windows of 5 x 5, side by side
def parts(x):
    return x.reshape(4, 16, 25, 5, 25, 5)


def max_pool2d(x, g):
    seen = parts(x).swapaxes(3, 4).reshape(4, 16, 25, 25, 25)
    i = seen.argmax(-1)[..., None]
    out = np.zeros(seen.shape)
    np.put_along_axis(out, i, g[..., None], -1)
    return (np.take_along_axis(seen, i, -1)[..., 0],
            np.ascontiguousarray(out.reshape(4, 16, 25, 25, 5, 5).swapaxes(3, 4)).reshape(x.shape))


def avg_pool2d(x, g):
    out = np.empty(x.shape)
    parts(out)[...] = (g / 25)[:, :, :, None, :, None]
    return parts(x).mean((3, 5)), out


# ---------------------------------------------------------------- interpolation from 125 x 125 to 100 x 150
def places(n, out):
    at = np.maximum((np.arange(out) + 0.5) * (n / out) - 0.5, 0)
    low = at.astype(int)
    return low, np.minimum(low + 1, n - 1), at - low


def matrix(n, out):
    """Linear interpolation as a matrix, of few numbers that are not 0."""
    low, high, part = places(n, out)
    m = np.zeros((out, n))
    np.add.at(m, (np.arange(out), low), 1 - part)
    np.add.at(m, (np.arange(out), high), part)
    return m


def bilinear(x, g):
    a, b = matrix(125, 100), matrix(125, 150)
    return a @ x @ b.T, a.T @ (g @ b)


def nearest(x, g):
    """Each element twice, both ways."""
    return x.repeat(2, 2).repeat(2, 3), g.reshape(4, 16, 125, 2, 125, 2).sum((3, 5))


def attention(q, k, v, g):
    """The logarithm of the sums is kept, and no weights."""
    s = (q @ k.swapaxes(2, 3)) * 0.1
    top = s.max(-1, keepdims=True)
    s -= top
    np.exp(s, out=s)
    total = s.sum(-1, keepdims=True)
    out = s @ v
    out /= total
    total = np.log(total) + top
    p = (q @ k.swapaxes(2, 3)) * 0.1
    p -= total
    np.exp(p, out=p)
    gv = p.swapaxes(2, 3) @ g
    gp = g @ v.swapaxes(2, 3)
    gp -= (g * out).sum(-1, keepdims=True)
    gp *= p
    gp *= 0.1
    return out, gp @ k, gp.swapaxes(2, 3) @ q, gv


IMAGE_G, POOLED, SCALED, TWICE = (rng.standard_normal(s) for s in (
    IMAGES.shape, (4, 16, 25, 25), (4, 16, 100, 150), (4, 16, 250, 250)))
FOUR = rng.integers(0, 4, 250000)
KERNEL, CHANNEL, CHANNEL2, COLUMNS = (rng.standard_normal(s) for s in ((16, 16, 3, 3), 16, 16, (4, 144, 125 * 125)))
MEAN, VAR = rng.standard_normal(16), rng.uniform(0.5, 2, 16)
Q, K, VALUES, QG = (rng.standard_normal((1, 4, 1000, 250)) for _ in range(4))

OPS = {
    "mse_loss": (F.mse_loss, (X, Y), SCALAR, mse),
    "smooth_l1_loss": (F.smooth_l1_loss, (X, Y), SCALAR, smooth_l1),
    "huber_loss": (F.huber_loss, (X, Y), SCALAR, smooth_l1),
    "binary_cross_entropy": (lambda x: F.binary_cross_entropy(x, T(V)), (U,), SCALAR, lambda x, g: bce(x, V, g)),
    "binary_cross_entropy_with_logits": (lambda x: F.binary_cross_entropy_with_logits(x, T(V)), (X,), SCALAR,
                                         lambda x, g: bce_logits(x, V, g)),
    "nll_loss": (lambda x: F.nll_loss(x, T(FOUR)), (X.reshape(-1, 4),), SCALAR, nll),
    "nll_loss2d": (lambda x: F.nll_loss(x.view(1, 4, 500, 500), T(FOUR).view(1, 500, 500)), (X.reshape(4, -1),), SCALAR,
                   lambda x, g: tuple(a.T if a.ndim else a for a in nll(x.T, g))),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (1000,), w, b), (X, R, R2), G, layer_norm),
    "batch_norm": (lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (IMAGES, CHANNEL, CHANNEL2), IMAGE_G,
                   batch_norm),
    "batch_norm(eval)": (lambda x, w, b: F.batch_norm(x, T(MEAN), T(VAR), w, b), (IMAGES, CHANNEL, CHANNEL2), IMAGE_G,
                         normalized_by),
    "group_norm": (lambda x, w, b: F.group_norm(x, 4, w, b), (IMAGES, CHANNEL, CHANNEL2), IMAGE_G, group_norm),
    "conv2d": (lambda x, w: F.conv2d(x, w, padding=1), (IMAGES, KERNEL), IMAGE_G, conv2d),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, padding=1), (IMAGES, KERNEL), IMAGE_G, conv_transpose2d),
    "unfold(3x3)": (lambda x: F.unfold(x, 3, padding=1), (IMAGES,), COLUMNS, unfold),
    "fold(3x3)": (lambda x: F.fold(x, (125, 125), 3, padding=1), (COLUMNS,), IMAGE_G, fold),
    "max_pool2d": (lambda x: F.max_pool2d(x, 5), (IMAGES,), POOLED, max_pool2d),
    "avg_pool2d": (lambda x: F.avg_pool2d(x, 5), (IMAGES,), POOLED, avg_pool2d),
    "interpolate(bilinear)": (lambda x: F.interpolate(x, (100, 150), mode="bilinear"), (IMAGES,), SCALED, bilinear),
    "interpolate(nearest)": (lambda x: F.interpolate(x, scale_factor=2), (IMAGES,), TWICE, nearest),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v, scale=0.1), (Q, K, VALUES), QG, attention),
}
