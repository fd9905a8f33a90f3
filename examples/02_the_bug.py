"""Why grad(grad(checkpoint(f))) gave 0, and what a save has to cut.

Here the derivative of sin is written out, so that it says what it saves: y and cos(y), each behind a cut.  detach cuts the
edges of every level, and the outer derivative finds none.  A save must cut the edge of its own level and no other.

Prints:

    plain                0.6166728891
    cut at every level   0.0000000000
    cut at one level     0.6166728891
    hooks that detach    0.6166728891
    checkpoint           0.6166728891
"""

import minigrad as torch
from minigrad.autograd import shallow_detach
from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.func import grad
from minigrad.utils.checkpoint import checkpoint


def f(x):
    return x.sin().sin()


def saving(cut):
    """f, with a gradient that reads what `cut` kept and nothing else."""
    def sin(y):
        return cut(y.sin()) + (y - cut(y)) * cut(y.cos())
    return lambda x: sin(sin(x))


def hooked(x):
    with saved_tensors_hooks(lambda base: base.detach(), lambda base: base):  # no level is left in base that could be cut
        return f(x)


def checkpointed(x):
    return checkpoint(f, x, use_reentrant=False)


for what, program in (("plain", f),
                      ("cut at every level", saving(torch.detach)),
                      ("cut at one level", saving(shallow_detach)),
                      ("hooks that detach", hooked),
                      ("checkpoint", checkpointed)):
    print(f"{what:20} {grad(grad(program))(torch.tensor(5.0, dtype=torch.float64)).item():.10f}")
