"""Ratios of two programs, measured in turn: what slows the machine down slows both."""

from __future__ import annotations

import gc
from statistics import median
from time import process_time  # other programs on the machine cost less on this clock


def seconds(f, repeat):
    start = process_time()
    for _ in range(repeat):
        f()
    return (process_time() - start) / repeat


def repeats(f, at_least=0.01):
    """How often to run f for a turn to take that many seconds."""
    took = seconds(f, 1)
    return max(1, int(at_least / max(took, 1e-7)))


def ratio(f, base, rounds=11):
    """The median over rounds of (time of f / time of base), and the least time of f in seconds."""
    f()
    base()
    m, n = repeats(f), repeats(base)
    ratios, best = [], float("inf")
    gc.disable()
    try:
        for turn in range(rounds):
            pair = [(f, m), (base, n)] if turn % 2 else [(base, n), (f, m)]
            took = {g: seconds(g, k) for g, k in pair}
            ratios.append(took[f] / took[base])
            best = min(best, took[f])
    finally:
        gc.enable()
    return median(ratios), best
