"""On torch itself: vmap(grad(loss)) of a model with a checkpointed block, against the same without; and what runs again.

Prints:

    plain       block runs 1
    checkpoint  block runs 2   largest difference 0
"""

import torch
from torch.func import functional_call, grad, vmap

from minigrad.upstream import checkpoint

torch.manual_seed(0)
block = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 4)).double()
parameters = {name: p.detach() for name, p in block.named_parameters()}
samples = torch.rand(5, 4, dtype=torch.float64)
runs = 0
block.register_forward_pre_hook(lambda *_: count())


def count():
    global runs
    runs += 1


def per_sample(wrap):
    def loss(parameters, x):
        return wrap(lambda x: functional_call(block, parameters, x), x).pow(2).sum()

    return vmap(grad(loss), in_dims=(None, 0))(parameters, samples)


def plain(f, x):
    return f(x)


expected = per_sample(plain)
print(f"plain       block runs {runs}")
runs = 0
found = per_sample(checkpoint)
difference = max((found[name] - expected[name]).abs().max().item() for name in expected)
print(f"checkpoint  block runs {runs}   largest difference {difference:.0f}")
assert difference == 0
