"""A tensor inside nested transforms is an array with one layer for each level; a star says that a layer has an edge.

Prints:

    outside          base
    inside           base < vmap@1 < grad@2
    x                grad@2*(vmap@1(tensor([[1., 2.], [3., 4.]]), bdim=0))
    one storey down  vmap@1(tensor([[1., 2.], [3., 4.]]), bdim=0)
    the array        tensor([[1., 2.], [3., 4.]])
    shapes           (2,) (2,) (2, 2)
    x * w            grad@2*(vmap@1(tensor([[10., 40.], [30., 80.]]), bdim=0))
    w                tensor([10., 20.])
    per sample       tensor([[10., 20.], [10., 20.]])
"""

import minigrad as torch
from minigrad.func import grad, vmap
from minigrad.state import show

w = torch.tensor([10.0, 20.0])


def say(what, x):
    print(what.ljust(16), " ".join(str(x).split()))


def f(x):
    say("inside", show())
    say("x", x)
    say("one storey down", x.value)
    say("the array", x.value.value)
    say("shapes", f"{x.shape} {x.value.shape} {x.value.value.shape}")
    say("x * w", x * w)
    say("w", w)  # belongs to no level, and costs none anything
    return (x * w).sum()


say("outside", show())
say("per sample", vmap(grad(f))(torch.tensor([[1.0, 2.0], [3.0, 4.0]])))
