"""Down a graph where nothing records and nobody watches: the walk of engine.py, on arrays where a node takes nothing else.

A short cut that means the same; a first reading may leave it out. [NOTE fast-path]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import HOST_ARRAY
from ..graph.bare import bare
from ..graph.record import OpNode
from ..graph.saved import Constant
from ..storage import Storage
from ..tensor import Tensor

if TYPE_CHECKING:
    from .engine import Walk

_NO_EDGE = None, 0


def descend(walk: Walk) -> None:
    """Run the nodes of a walk from the youngest to the oldest."""
    nodes, arrived, wanted, special, retained = walk.nodes, walk.arrived, walk.wanted, walk.special, walk.retained
    while nodes:
        node: Any = nodes.pop()
        ct = arrived.pop(node, None) if node.outs == 1 else walk.taken(node)
        grads = None  # those of the node before are not needed any more
        if ct is not None and node.outs == 1:
            if not node.more and type(node) is OpNode and node.plan.one:
                node, ct = straight(walk, node, ct)
                if node is None:
                    continue
            if node.hooks is None and node not in special:
                grads = node.on_arrays(ct)
                if grads is not None and node.number > retained:
                    node.release()
        if grads is None and ct is not None:
            grads = walk.ran(node, ct)
        target, nr, others = node.target, node.nr, iter(node.more)
        for ct in grads or [None] * len(node.edges):
            if ct is not None and (wanted is None or target in wanted):
                if nr or target in arrived:
                    walk.arrive(target, nr, ct)
                else:
                    arrived[target] = ct
            if type(target) is Tensor:
                walk.came(target)
            target, nr = next(others, _NO_EDGE)


def straight(walk: Walk, node: Any, ct: Any) -> tuple[Any, Any]:
    """Go down from a node while there is one edge and at most one saved array, as in most of a chain.

    Returns the node that takes more, and its cotangent; None where there is no such node: what came out has been sent on.
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
            node.held = None  # its release, where nobody watches
        target = node.target
        if not nodes or target is not nodes[-1] or target.outs > 1 or target in arrived:
            walk.arrive(target, node.nr, ct)
            if type(target) is Tensor:
                walk.came(target)
            return None, None
        node = nodes.pop()
    return node, ct
