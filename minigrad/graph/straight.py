"""Down a straight stretch: nodes of one edge and at most one saved array, most of a chain, run one after the other on arrays.

A short cut that means the same; a first reading may leave it out. [NOTE fast-path]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import HOST_ARRAY
from ..storage import Storage
from ..tensor import Tensor
from .bare import bare
from .record import OpNode
from .saved import Constant

if TYPE_CHECKING:
    from ..autograd.engine import Walk


def straight(walk: Walk, node: Any, ct: Any) -> tuple[Any, Any]:
    """Go down from a node as far as that is all there is: the node that takes more, and its cotangent.

    None where there is no such node: what came out has been sent on.  For a walk that nobody watches.
    """
    nodes, arrived, special, retained = walk.nodes, walk.arrived, walk.special, walk.retained
    array = bare(ct)
    number = type(array) is not HOST_ARRAY  # numpy is faster on its scalars than on 0-d arrays
    while array is not None and type(node) is OpNode and not node.more and node.hooks is None and node not in special:
        held, rule = node.held, node.plan.one
        if rule is None or node.metas is not None:
            break
        if type(held) is Storage and not held.version:
            new = rule(array, held.array[()] if number else held.array)
        elif held == ():
            new = rule(array)
        elif type(held) is Constant:
            new = rule(array, held.value)
        else:
            break
        if new is not array:
            ct = array = new
        if held and node.number > retained:
            node.held = None
        target = node.target
        if not nodes or target is not nodes[-1] or target.outs > 1 or target in arrived:
            walk.arrive(target, node.nr, ct)
            if type(target) is Tensor:
                walk.came(target)
            return None, None
        node = nodes.pop()
    return node, ct
