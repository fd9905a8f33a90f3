"""A row that is called a short way gives what it gives on the long way, which is taken where somebody watches. [NOTE fast-path]"""

import numpy as np

from minigrad import Tensor
from minigrad.state import Watcher, current, using
from minigrad.tensor import LEAF
from tests.laws.cases import array, cases


def seen_of(y, args):
    """All that there is to see of the output of a row; of an input that it gives back nothing but that."""
    found = place(y, args)
    if found is not None:
        return {"input": found}
    node = y.node
    return {"array": bits(y), "kind": y.kind, "shape": y.shape, "stride": y.stride(), "version": y._version, "nr": node and y.nr,
            "view of": place(y._base, args), "shares": [isinstance(x, Tensor) and np.may_share_memory(y.value, x.value) for x in args],
            "node": node and (node.name(), node.outs, node.params, node.shapes, node.metas, node.plan.saves),
            "saved": node and [bits(kept.unpack()) for kept in node.saved],
            "edges": node and [(place(target, args), nr) for target, nr in node.edges]}


def place(x, args):
    """Which of the arguments it is, or None."""
    return next((i for i, arg in enumerate(args) if arg is x), None)


def bits(x):
    return array(x).tobytes() if isinstance(x, Tensor) else x


@cases(wanted=lambda case: case.op.arity)
def test_a_short_way_gives_what_the_long_way_gives(case):
    for leaves in ([], case.active):
        args = case.tensors(0, "cpu")
        for i in leaves:
            assert args[i].requires_grad_().node is LEAF
        short = seen_of(case.call(*args, **case.params("cpu")), args)
        with using(current()._replace(watchers=(Watcher(),))):
            assert seen_of(case.call(*args, **case.params("cpu")), args) == short
