"""A factor that is constant for the inner derivative and not for the outer: d/dx of (d/dy of y c(xy), at y = x), at x = 3.

Prints:

    c cuts every level  0.0
    c cuts one level    6.0   2x
    c cuts nothing      12.0  4x
"""

import minigrad as torch
from minigrad.autograd import shallow_detach
from minigrad.func import grad


def program(cut):
    return grad(lambda x: grad(lambda y: y * cut(x * y))(x))(torch.tensor(3.0)).item()


print(f"c cuts every level  {program(torch.detach)}")
print(f"c cuts one level    {program(shallow_detach)}   2x")
print(f"c cuts nothing      {program(torch.clone)}  4x")
