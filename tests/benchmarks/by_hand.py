"""Ops against numpy written by hand, forward and backward, at a million elements: `python tests/benchmarks/by_hand.py [word ...]`.

Prints the ratio of every op, the worst first, the ten worst marked; then the rows of the op table that none of them runs.
By hand means what one would write for this op alone, with the same numbers kept, and no more memory than that.  Where the
first ratio is near or above the limit it is measured again, and the least is taken: other programs only ever add time.
Memory that is freed stays with the process, where the C library can be told so: else an op is charged for fresh pages, or is
not, by how much was in use before it.  An op whose own work at a million elements is small has other shapes: see `diagonal`.

--rows  only the rows that are not measured, with the reason         --quick  fewer rounds
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
sys.path[:0] = [str(Path(__file__).parents[2])]

import numpy as np  # noqa: E402

import minigrad as mg  # noqa: E402
from minigrad import autograd  # noqa: E402
from minigrad.state import Watcher, current, using  # noqa: E402
from tests.benchmarks.hand import elementwise, matrices, networks, placing, reductions  # noqa: E402
from tests.benchmarks.pairs import ratio  # noqa: E402
from tests.laws.rows import TABLE  # noqa: E402

OPS = {**elementwise.OPS, **reductions.OPS, **placing.OPS, **networks.OPS, **matrices.OPS}
LIMIT = 1.3


def program(name):
    """What runs an op forward and backward, and what does so by hand: functions that return values, then gradients."""
    op, arrays, ct, hand = OPS[name]
    leaves = [mg.from_numpy(a) for a in arrays]
    if ct is None:
        return lambda: (op(*leaves),), lambda: (hand(*arrays),)
    cts = ct if isinstance(ct, tuple) else (ct,)
    given = [mg.from_numpy(np.asarray(c)) for c in cts]
    for leaf in leaves:
        leaf.requires_grad_()

    def both():
        out = op(*leaves)
        outs = out if isinstance(out, tuple) else (out,)
        return *outs, *autograd.grad(outs, leaves, given)

    return both, lambda: hand(*arrays, *cts)


def measure(name, rounds):
    """(ratio, seconds) of one op, after it was seen to give what is written by hand."""
    both, by_hand = program(name)
    for mine, wanted in zip(both(), by_hand(), strict=True):
        np.testing.assert_allclose(mine.detach().numpy(), wanted, rtol=1e-7, atol=1e-9, err_msg=name)
    found = [ratio(both, by_hand, rounds)]
    while found[-1][0] > LIMIT * 0.9 and len(found) < 3:
        found.append(ratio(both, by_hand, rounds))
    return min(found)


class Seen(Watcher):
    """Notes which rows run."""

    def __init__(self):
        self.rows = set()

    def notice(self, event, owner, subject, detail):
        if event == "op":
            self.rows.add(subject)


def rows_run(names):
    """The rows that these ops run, forward or backward."""
    seen = Seen()
    with using(current()._replace(watchers=(seen,))):
        for name in names:
            program(name)[0]()
    return seen.rows


WITHOUT = {  # rows that have no entry, and why
    "a view or a label: no work for an element": "shape.detach_row shape._permute shape.view_row naming.named strides._as_strided "
                                                 "strides._as_strided_backward complexes._view_as_real complexes._view_as_complex",
    "a factorization: its work grows faster than its elements": "factors.factor factors.lu_row factors.lu_solve_row "
        "factors.order_matrix definite.cholesky_inverse_row definite.cholesky_solve_row eigen._eig reflections._geqrf "
        "spectra._matrix_exp spectra._pinv spectra._size",
    "many reductions in one, for which numpy has no function": "segments._scatter_reduce",
    "a stream of numbers that numpy has no generator for": "random._uniform random._normal random._exponential random._integers "
                                                            "random._permutation random._coins random._bernoulli random._multinomial",
    "a look at how a factorization went": "solving.no_failure",
    "a copy between devices": "transfer._transfer",
}


def unmeasured(seen):
    """Rows that no entry runs: (those with a reason, by reason; those without)."""
    left = {name for name, f in TABLE.items() if f.op not in seen}
    why = {reason: sorted(left & set(rows.split())) for reason, rows in WITHOUT.items()}
    return why, sorted(left.difference(*why.values()))


def keep_memory():
    """Tell glibc to map no array by itself and to give nothing back."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 1 << 30)
        mallopt(mmap_threshold, 1 << 30)


def main():
    keep_memory()
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    names = [name for name in OPS if all(w in name for w in words)]
    with np.errstate(all="ignore"):
        if "--rows" not in sys.argv:
            found = {name: measure(name, 3 if "--quick" in sys.argv else 7) for name in names}
            for place, name in enumerate(sorted(found, key=lambda name: -found[name][0])):
                print(f"{found[name][0]:6.2f}  {found[name][1] * 1e3:8.2f} ms  {'*' if place < 10 else ' '} {name}")
        if not words:
            why, left = unmeasured(rows_run(names))
            for reason, rows in why.items():
                print(f"not measured, {reason}: {', '.join(rows)}")
            print(f"not measured: {', '.join(left) or 'nothing else'}")


if __name__ == "__main__":
    main()
