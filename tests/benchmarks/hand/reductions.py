"""Reductions, norms, order, running sums, softmax: ops along a dimension."""

from __future__ import annotations

import numpy as np

import minigrad as mg
from tests.benchmarks.hand.arrays import MASK, PLACES, ROW, ROW2, SCALAR, G, P, X
from tests.benchmarks.hand.elementwise import sign

ALL = np.arange(1000)


def wide(g, x):
    return np.broadcast_to(g[:, None], x.shape)


def var(x, g):
    d = x - x.mean(-1, keepdims=True)
    return (d * d).sum(-1) / 999, (x - x.mean(-1, keepdims=True)) * (g * (2 / 999))[:, None]


def std(x, g):
    d = x - x.mean(-1, keepdims=True)
    s = np.sqrt((d * d).sum(-1) / 999)
    return s, (x - x.mean(-1, keepdims=True)) * (g / (999 * s))[:, None]


def var_mean(x, g, h):
    m = x.mean(-1, keepdims=True)
    d = x - m
    out = (x - x.mean(-1, keepdims=True)) * (g * (2 / 999))[:, None]
    out += (h / 1000)[:, None]
    return (d * d).sum(-1) / 999, m[:, 0], out


def std_mean(x, g, h):
    m = x.mean(-1, keepdims=True)
    d = x - m
    s = np.sqrt((d * d).sum(-1) / 999)
    out = (x - x.mean(-1, keepdims=True)) * (g / (999 * s))[:, None]
    out += (h / 1000)[:, None]
    return s, m[:, 0], out


def prod(x, g):
    y = x.prod(-1)
    return y, (g * y)[:, None] / x


def amax(x, g):
    y = x.max(-1)
    ties = x == y[:, None]
    return y, ties * (g / ties.sum(-1))[:, None]


def amin(x, g):
    y = x.min(-1)
    ties = x == y[:, None]
    return y, ties * (g / ties.sum(-1))[:, None]


def aminmax(x, g, h):
    low, high = x.min(-1), x.max(-1)
    ties = x == low[:, None]
    out = ties * (g / ties.sum(-1))[:, None]
    ties = x == high[:, None]
    out += ties * (h / ties.sum(-1))[:, None]
    return low, high, out


def shared(x, y, g):
    """An element of all, and the cotangent for those that equal it, or are nan as it is."""
    ties = np.isnan(x) if np.isnan(y) else x == y
    return y, ties * (g / np.count_nonzero(ties))


def median_of_all(x, g):
    """nan where there is one."""
    k = (x.size - 1) // 2
    return shared(x, np.nan if np.isnan(x.max()) else np.partition(x.reshape(-1), k)[k], g)


def nanmedian_of_all(x, g):
    """nan is sorted to the end."""
    k = (x.size - np.count_nonzero(np.isnan(x)) - 1) // 2
    return shared(x, np.partition(x.reshape(-1), k)[k], g)


def at(x, i, g):
    """Elements at one place of each row, and the way back."""
    out = np.zeros_like(x)
    out[ALL, i] = g
    return x[ALL, i], out


def nth(k):
    """The k-th smallest of each row, the first of equal ones."""
    return lambda x, g: at(x, (x == np.partition(x, k, -1)[:, k:k + 1]).argmax(-1), g)


def nanmedian_of_rows(x, g):
    """nan is sorted to the end, and a row has as many fewer as it has of it."""
    k = (999 - np.isnan(x).sum(-1)) // 2
    return at(x, (x == np.partition(x, np.unique(k), -1)[ALL, k][:, None]).argmax(-1), g)


def median_of_rows(x, g):
    """The first nan where there is one."""
    lost = np.isnan(x)
    middle = (x == np.partition(x, 499, -1)[:, 499:500]).argmax(-1)
    return at(x, np.where(lost.any(-1), lost.argmax(-1), middle), g)


def norm(x, g):
    y = np.sqrt((x * x).sum(-1))
    return y, x * (g / y)[:, None]


def norm_1(x, g):
    return np.abs(x).sum(-1), sign(x) * g[:, None]


def norm_3(x, g):
    size = np.abs(x)
    y = (size ** 3).sum(-1) ** (1 / 3)
    return y, x * np.abs(x) * (g / y ** 2)[:, None]


def norm_inf(x, g):
    y = np.abs(x).max(-1)
    ties = np.abs(x) == y[:, None]
    return y, sign(x) * (ties * (g / ties.sum(-1))[:, None])


def softmax(x, g):
    y = np.exp(x - x.max(-1, keepdims=True))
    y /= y.sum(-1, keepdims=True)
    return y, y * (g - (g * y).sum(-1, keepdims=True))


def log_softmax(x, g):
    y = x - x.max(-1, keepdims=True)
    y -= np.log(np.exp(y).sum(-1, keepdims=True))
    return y, g - np.exp(y) * g.sum(-1, keepdims=True)


def logsumexp(x, g):
    top = x.max(-1, keepdims=True)
    y = np.log(np.exp(x - top).sum(-1, keepdims=True)) + top
    return y[:, 0], np.exp(x - y) * g[:, None]


def sort(x, g):
    i = np.argsort(x, -1, kind="stable")
    out = np.empty_like(x)
    np.put_along_axis(out, i, g, -1)
    return np.take_along_axis(x, i, -1), out


def topk(x, g):
    i = np.argpartition(x, 990, -1)[:, 990:]
    i = np.take_along_axis(i, np.argsort(-np.take_along_axis(x, i, -1), -1), -1)
    out = np.zeros_like(x)
    np.put_along_axis(out, i, g, -1)
    return np.take_along_axis(x, i, -1), out


def mode(x, g):
    """The last of a run in the order, the first of the longest runs."""
    order = np.argsort(x, -1, kind="stable")
    s = np.take_along_axis(x, order, -1)
    begins = np.ones(x.shape, bool)
    begins[:, 1:] = s[:, 1:] != s[:, :-1]
    length = ALL - np.maximum.accumulate(np.where(begins, ALL, 0), -1)
    return at(x, order[ALL, length.argmax(-1)], g)


def running(extreme):
    """Running extremes: each gets the sum of the cotangents of where it stands, the last place of equal ones."""
    def both(x, g):
        y = extreme.accumulate(x, -1)
        i = np.maximum.accumulate(np.where(x == y, ALL, 0), -1)
        return y, np.bincount((i + 1000 * ALL[:, None]).reshape(-1), g.reshape(-1), minlength=1000000).reshape(1000, 1000)
    return both


def cumprod(x, g):
    y = np.cumprod(x, -1)
    return y, np.cumsum((g * y)[:, ::-1], -1)[:, ::-1] / x


def logcumsumexp(x, g):
    """Rows, not columns, are what a step of the loop is one of."""
    y = np.logaddexp.accumulate(x, -1)
    kept = np.exp(y[:, :-1] - y[:, 1:])
    out = g.copy()
    for k in range(998, -1, -1):
        out[:, k] += kept[:, k] * out[:, k + 1]
    return y, out * np.exp(x - y)


OPS = {
    "sum": (lambda x: x.sum(-1), (X,), ROW, lambda x, g: (x.sum(-1), wide(g, x))),
    "sum(0)": (lambda x: x.sum(0), (X,), ROW, lambda x, g: (x.sum(0), np.broadcast_to(g, x.shape))),
    "mean": (lambda x: x.mean(-1), (X,), ROW, lambda x, g: (x.mean(-1), wide(g / 1000, x))),
    "nansum": (lambda x: x.nansum(-1), (X,), ROW, lambda x, g: (np.nansum(x, -1), np.where(np.isnan(x), 0, g[:, None]))),
    "prod": (lambda x: x.prod(-1), (P,), ROW, prod),
    "var": (lambda x: x.var(-1), (X,), ROW, var),
    "std": (lambda x: x.std(-1), (X,), ROW, std),
    "var_mean": (lambda x: mg.var_mean(x, -1), (X,), (ROW, ROW2), var_mean),
    "std_mean": (lambda x: mg.std_mean(x, -1), (X,), (ROW, ROW2), std_mean),
    "amax": (lambda x: x.amax(-1), (X,), ROW, amax),
    "amin": (lambda x: x.amin(-1), (X,), ROW, amin),
    "aminmax": (lambda x: tuple(mg.aminmax(x, dim=-1)), (X,), (ROW, ROW2), aminmax),
    "max": (mg.max, (X,), SCALAR, lambda x, g: shared(x, x.max(), g)),
    "min": (mg.min, (X,), SCALAR, lambda x, g: shared(x, x.min(), g)),
    "median": (mg.median, (X,), SCALAR, median_of_all),
    "nanmedian": (mg.nanmedian, (X,), SCALAR, nanmedian_of_all),
    "max(dim)": (lambda x: x.max(-1).values, (X,), ROW, lambda x, g: at(x, x.argmax(-1), g)),
    "min(dim)": (lambda x: x.min(-1).values, (X,), ROW, lambda x, g: at(x, x.argmin(-1), g)),
    "median(dim)": (lambda x: x.median(-1).values, (X,), ROW, median_of_rows),
    "nanmedian(dim)": (lambda x: mg.nanmedian(x, -1).values, (X,), ROW, nanmedian_of_rows),
    "kthvalue": (lambda x: x.kthvalue(100, -1).values, (X,), ROW, nth(99)),
    "mode": (lambda x: x.mode(-1).values, (PLACES.astype(float),), ROW, mode),
    "sort": (lambda x: x.sort(-1).values, (X,), G, sort),
    "topk": (lambda x: x.topk(10, -1).values, (X,), G[:, :10].copy(), topk),
    "argmax": (lambda x: x.argmax(-1), (X,), None, lambda x: x.argmax(-1)),
    "argmin": (lambda x: x.argmin(-1), (X,), None, lambda x: x.argmin(-1)),
    "all": (lambda x: x.all(-1), (MASK,), None, lambda x: x.all(-1)),
    "any": (lambda x: x.any(-1), (MASK,), None, lambda x: x.any(-1)),
    "norm": (lambda x: mg.norm(x, dim=-1), (X,), ROW, norm),
    "norm(1)": (lambda x: mg.norm(x, 1, dim=-1), (X,), ROW, norm_1),
    "norm(3)": (lambda x: mg.norm(x, 3, dim=-1), (X,), ROW, norm_3),
    "norm(inf)": (lambda x: mg.norm(x, float("inf"), dim=-1), (X,), ROW, norm_inf),
    "logsumexp": (lambda x: mg.logsumexp(x, -1), (X,), ROW, logsumexp),
    "softmax": (lambda x: mg.softmax(x, -1), (X,), G, softmax),
    "safe_softmax": (lambda x: mg.ops.attention.safe_softmax(x, dim=1), (X,), G, softmax),
    "log_softmax": (lambda x: mg.log_softmax(x, -1), (X,), G, log_softmax),
    "cumsum": (lambda x: x.cumsum(-1), (X,), G, lambda x, g: (np.cumsum(x, -1), np.cumsum(g[:, ::-1], -1)[:, ::-1])),
    "cumprod": (lambda x: x.cumprod(-1), (P,), G, cumprod),
    "logcumsumexp": (lambda x: mg.logcumsumexp(x, -1), (X,), G, logcumsumexp),
    "cummax": (lambda x: x.cummax(-1).values, (X,), G, running(np.maximum)),
    "cummin": (lambda x: x.cummin(-1).values, (X,), G, running(np.minimum)),
}
