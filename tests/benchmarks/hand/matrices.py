"""Products of matrices, factors and solutions of systems, Fourier transforms."""

from __future__ import annotations

import numpy as np

import minigrad as mg
from tests.benchmarks.hand.arrays import BATCH, CG, R2, SCALAR, C, G, R, W, X, rng

HALF = (G[:, :501] + 1j * W[:, :501]).copy()
DEFINITE = W @ W.T + np.eye(1000)
SQUARE = W + 2 * np.eye(1000)
RIGHT = rng.standard_normal((1000, 100))
SMALL, SMALL_G = rng.standard_normal((300, 300)) / 17 + np.eye(300), rng.standard_normal((300, 300))
SPD = SMALL @ SMALL.T + np.eye(300)
VALUES = rng.standard_normal(300)
THREE, THREE_Y, THREE_G = (rng.standard_normal((333333, 3)) for _ in range(3))


def half(x):
    out = np.tril(x)
    np.einsum("ii->i", out)[:] *= 0.5
    return out


def cholesky(a, g):
    low = np.linalg.cholesky(a)
    inner = half(low.T @ g)
    inner = (inner + inner.T) / 2
    return low, np.linalg.solve(low.T, np.linalg.solve(low.T, inner.T).T)


def solve(a, b, g):
    x = np.linalg.solve(a, b)
    gb = np.linalg.solve(a.T, g)
    return x, -gb @ x.T, gb


def solve_triangular(a, b, g):
    low = np.tril(a)
    x = np.linalg.solve(low, b)
    gb = np.linalg.solve(low.T, g)
    return x, -np.tril(gb @ x.T), gb


def inverse(a, g):
    x = np.linalg.inv(a)
    return x, -x.T @ (g @ x.T)


def det(a, g):
    d = np.linalg.det(a)
    return d, g * d * np.linalg.inv(a).T


def logdet(a, g):
    return np.linalg.slogdet(a)[1], g * np.linalg.inv(a).T


def eigh(a, g):
    values, v = np.linalg.eigh(a)
    return values, (v * g) @ v.T


def svd(a, g):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return s, (u * g) @ vh


def qr(a, g):
    q, r = np.linalg.qr(a)
    inner = np.triu(g @ r.T)
    inner += np.triu(inner, 1).T
    return r, np.linalg.solve(r, (q @ inner).T).T


def rfft(x, g):
    full = np.zeros(x.shape, complex)
    full[:, :501] = g
    return np.fft.rfft(x), np.fft.ifft(full, norm="forward").real.copy()


def irfft(x, g):
    back = np.fft.rfft(g, norm="forward")
    back[:, 1:-1] *= 2
    return np.fft.irfft(x), back


def cdist(x, y, g):
    d = x[:, None] - y
    out = np.sqrt((d * d).sum(-1))
    d = x[:, None] - y
    d *= (g / out)[:, :, None]
    return out, d.sum(1), -d.sum(0)


OPS = {
    "cdist": (lambda x, y: mg.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist"), (X[:100, :100].copy(), W[:100, :100].copy()),
              G[:100, :100].copy(), cdist),
    "mm": (mg.mm, (X, W), G, lambda x, y, g: (x @ y, g @ y.T, x.T @ g)),
    "bmm": (mg.bmm, (BATCH.reshape(300, 100, 100)[:100], BATCH.reshape(300, 100, 100)[100:200]),
            BATCH.reshape(300, 100, 100)[200:],
            lambda x, y, g: (x @ y, g @ y.swapaxes(1, 2), x.swapaxes(1, 2) @ g)),
    "addmm": (mg.addmm, (G, X, W), G, lambda z, x, y, g: (z + x @ y, g, g @ y.T, x.T @ g)),
    "baddbmm": (mg.baddbmm, (BATCH[0], BATCH[1], BATCH[2]), BATCH[0],
                lambda z, x, y, g: (z + x @ y, g, g @ y.swapaxes(1, 2), x.swapaxes(1, 2) @ g)),
    "mv": (mg.mv, (X, R), R2, lambda x, y, g: (x @ y, g[:, None] * y, x.T @ g)),
    "outer": (mg.outer, (R, R2), G, lambda x, y, g: (x[:, None] * y, g @ y, x @ g)),
    "dot": (lambda x, y: mg.dot(x.view(-1), y.view(-1)), (X, W), SCALAR,
            lambda x, y, g: (x.reshape(-1) @ y.reshape(-1), g * y, g * x)),
    "vdot": (lambda x, y: mg.vdot(x.view(-1), y.view(-1)), (X, W), SCALAR,
             lambda x, y, g: (np.vdot(x, y), g * y, g * x)),
    "cross": (lambda x, y: mg.cross(x, y, 1), (THREE, THREE_Y), THREE_G,
              lambda x, y, g: (np.cross(x, y), np.cross(y, g), np.cross(g, x))),
    "fft": (mg.fft.fft, (C,), CG, lambda x, g: (np.fft.fft(x), np.fft.ifft(g, norm="forward"))),
    "fft2": (mg.fft.fft2, (C,), CG, lambda x, g: (np.fft.fft2(x), np.fft.ifft2(g, norm="forward"))),
    "rfft": (mg.fft.rfft, (X,), HALF, rfft),
    "irfft": (mg.fft.irfft, (HALF,), G, irfft),
    "cholesky": (mg.linalg.cholesky, (DEFINITE,), G, cholesky),
    "solve": (mg.linalg.solve, (SQUARE, RIGHT), RIGHT, solve),
    "solve_triangular": (lambda a, b: mg.linalg.solve_triangular(a, b, upper=False), (SQUARE, RIGHT), RIGHT, solve_triangular),
    "inv": (mg.linalg.inv, (SQUARE,), G, inverse),
    "det": (mg.linalg.det, (SMALL,), SCALAR, det),
    "logdet": (mg.logdet, (SPD,), SCALAR, logdet),
    "eigvalsh": (mg.linalg.eigvalsh, (SPD,), VALUES, eigh),
    "svdvals": (mg.linalg.svdvals, (SMALL,), VALUES, svd),
    "qr": (lambda a: mg.linalg.qr(a)[1], (SMALL,), SMALL_G, qr),
}
