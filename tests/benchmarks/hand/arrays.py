"""What the ops are measured on: a million numbers, in the shapes that a family needs."""

from __future__ import annotations

import numpy as np

rng = np.random.default_rng(0)
N = (1000, 1000)

X, Y, Z, G, H = (rng.standard_normal(N) for _ in range(5))
"""Arguments, and cotangents."""
P, Q = np.abs(X) + 0.1, np.abs(Y) + 0.1
"""Positive numbers; ..."""
U, V = (rng.uniform(0.05, 0.95, N) for _ in range(2))
"""... between 0 and 1; ..."""
S = rng.uniform(-0.9, 0.9, N)
"""... between -1 and 1."""
C, D, CG = (rng.standard_normal(N) + 1j * rng.standard_normal(N) for _ in range(3))
"""Complex numbers."""
W = rng.standard_normal(N) / 30
R, R2 = rng.standard_normal(1000), rng.standard_normal(1000)
"""One number for each column."""
ROW, ROW2, SCALAR = G[:, 0].copy(), H[:, 0].copy(), np.float64(1.3)
"""Cotangents of what is reduced."""

MASK, INTEGERS = X > 0, rng.integers(1, 100, N)
INDEX, PLACES = rng.permutation(1000), rng.integers(0, 1000, N)
PERMUTED = rng.permuted(np.broadcast_to(np.arange(1000), N), axis=1)
FLAT = rng.integers(0, 1000000, N)

IMAGES, CLASSES = rng.standard_normal((4, 16, 125, 125)), rng.integers(0, 1000, 1000)
BATCH = rng.standard_normal((3, 100, 100, 100)) / 10
"""Three batches of matrices."""
