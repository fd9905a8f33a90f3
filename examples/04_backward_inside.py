"""A region that differentiates inside itself: what a level that is entered there saves is the region's own business.

A backward run of a level from outside runs the region again, once: in the third program level 0 has two, one of them inside.
A level that the region entered itself keeps its saves and never asks: the fourth program runs f twice in all.

Prints:

    grad_0(f)                         0.1629358087  runs of f: 1
    grad_0(region(f))                 0.1629358087  runs of f: 2
    grad_0(region(autograd.grad(f)))  0.6166728891  runs of f: 3
    grad_0(region(grad(f)))           0.6166728891  runs of f: 2
    grad(grad(region(f)))             0.6166728891  runs of f: 3
    grad(region(grad(region(f))))     0.6166728891  runs of f: 5
"""

import minigrad as torch
from minigrad.func import grad
from minigrad.utils.checkpoint import checkpoint

runs = 0


def f(x):
    global runs
    runs += 1
    return x.sin().sin()


def region(f):
    return lambda x: checkpoint(f, x, use_reentrant=False)


def grad_0(f):
    """The gradient by ordinary autograd, which is level 0."""
    def of(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(f(x), x)[0]
    return of


def df(x):
    """The gradient by ordinary autograd again, inside."""
    return torch.autograd.grad(f(x), x, create_graph=True)[0]


for what, program in (("grad_0(f)", grad_0(f)),
                      ("grad_0(region(f))", grad_0(region(f))),
                      ("grad_0(region(autograd.grad(f)))", grad_0(region(df))),
                      ("grad_0(region(grad(f)))", grad_0(region(grad(f)))),
                      ("grad(grad(region(f)))", grad(grad(region(f)))),
                      ("grad(region(grad(region(f))))", grad(region(grad(region(f)))))):
    runs = 0
    print(f"{what:33} {program(torch.tensor(5.0, dtype=torch.float64)).item():.10f}  runs of f: {runs}")
