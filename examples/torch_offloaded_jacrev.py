"""On torch itself: jacrev of jacrev of sin(sin(x)) with what is saved on the host, one copy for each memory at any order.

pin_memory=True makes copies of host tensors too, so that there is something to count without an accelerator.

Prints:

    jacrev          host copies 2   largest difference 0
    jacrev, jacrev  host copies 2   largest difference 0
"""

import torch
from torch.func import jacrev

from minigrad.upstream import save_on_cpu

x = torch.linspace(0.1, 0.9, 4, dtype=torch.float64)


def f(x):
    return x.sin().sin()


def copies(what, derivative):
    contexts = []

    def offloaded(x):
        contexts.append(save_on_cpu(pin_memory=True))
        with contexts[-1]:
            return f(x)

    difference = (derivative(offloaded)(x) - derivative(f)(x)).abs().max().item()
    print(f"{what:15} host copies {contexts[0].host_copies}   largest difference {difference:.0f}")
    assert difference == 0


copies("jacrev", jacrev)
copies("jacrev, jacrev", lambda f: jacrev(jacrev(f)))
