"""On torch itself: a hessian-vector product, backward over backward, through ten layers in one region.

Kept: what the layers made, and is alive when the second derivative is about to be taken.  One is the region's output, whose
square is the loss; its gradient makes the region run for the first order once more, besides once for each of its two backwards.

Prints:

    plain          kept 10   layers run 10   largest difference 0
    remat="first"  kept 10   layers run 28   largest difference 0
    remat="every"  kept  1   layers run 40   largest difference 0
"""

import weakref

import torch
from torch.func import vjp

from minigrad.upstream import checkpoint
from minigrad.upstream.reads import base_of

x, v = torch.linspace(0.1, 0.9, 50, dtype=torch.float64), torch.linspace(-1, 1, 50, dtype=torch.float64)
expected = None


def product(what, wrap):
    global expected
    memories = []

    def layers(x):
        for _ in range(10):
            x = x.sin()
            memories.append(weakref.ref(base_of(x).untyped_storage()))
        return x

    def gradient(x):
        y, pull = vjp(lambda x: wrap(layers, x).pow(2).sum(), x)
        return pull(torch.ones_like(y))[0]

    pull = vjp(gradient, x)[1]
    kept = sum(memory() is not None for memory in memories)
    hv, = pull(v)
    expected = hv if expected is None else expected
    difference = (hv - expected).abs().max().item()
    print(f"{what:14} kept {kept:2}   layers run {len(memories)}   largest difference {difference:.0f}")
    assert difference < 1e-15


product("plain", lambda f, x: f(x))
product('remat="first"', checkpoint)
product('remat="every"', lambda f, x: checkpoint(f, x, remat="every"))
