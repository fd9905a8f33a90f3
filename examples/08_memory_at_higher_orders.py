"""Ten sines f, differentiated again and again: tensors that the next derivative needs, and how many sines have run so far.

Prints:

    kept, and sines run                      f          f'         f''        f'''
    nothing                            10   10     29   10     76   10    186   10
    remat="first"                       1   10     29   20     84   30    202   40
    remat="every"                       1   10      2   20      3   30      4   40
    remat="every", each layer          10   10     20   20     39   39     76   76
    remat="every", both                 1   10      2   30      3   69      4  145
"""

import minigrad as torch
from minigrad import memory
from minigrad.utils.checkpoint import checkpoint

runs = 0


def sin(x):
    global runs
    runs += 1
    return x.sin()


def ten(f):
    def chain(x):
        for _ in range(10):
            x = f(x)
        return x
    return chain


def region(f, remat):
    return lambda x: checkpoint(f, x, use_reentrant=False, remat=remat)


def measure(what, f):
    global runs
    runs, kept = 0, []
    weights = torch.linspace(0.1, 0.9, 1000, dtype=torch.float64).to("sim")
    with memory.measured("sim") as used:  # besides the weights
        x = torch.linspace(0.1, 0.9, 1000, dtype=torch.float64).to("sim").requires_grad_()
        orders = [(weights * f(x)).sum()]
        for _ in range(3):
            kept.append((used.live // 8000, runs))
            (derivative,) = torch.autograd.grad(orders[-1], x, create_graph=True)
            orders.append((weights * derivative).sum())
            del derivative
        kept.append((used.live // 8000, runs))
    print(f"{what:30}" + "".join(f"{tensors:7} {n:4}" for tensors, n in kept))


print(f"{'kept, and sines run':30}" + "".join(f"{name:>12}" for name in ("f", "f'", "f''", "f'''")))
measure("nothing", ten(sin))
measure('remat="first"', region(ten(sin), "first"))
measure('remat="every"', region(ten(sin), "every"))
measure('remat="every", each layer', ten(region(sin, "every")))
measure('remat="every", both', region(ten(region(sin, "every")), "every"))
