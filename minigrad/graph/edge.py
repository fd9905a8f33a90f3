"""A place in a graph that a program can hold on to, without the tensor whose gradient is computed there.

Source: torch.autograd.graph.GradientEdge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from ..errors import UsageError
from ..tensor import Tensor, edge
from .node import AccumulateGrad, Node

if TYPE_CHECKING:
    from ..interpreters.base import Interpreter
    from ..storage import Kind


class GradientEdge(NamedTuple):
    """An output of a node, by its number; may stand for the tensor among the inputs or outputs of autograd.grad.

    Source: torch.autograd.graph.GradientEdge.
    """

    node: Node
    output_nr: int
    ownership_token: Any = None
    """torch's; a node of minigrad keeps its graph alive by itself."""
    meta: tuple[tuple[int, ...], Kind] | None = None
    """Shape and kind of the tensor, where get_gradient_edge was told."""

    @property
    def owner(self) -> Interpreter | None:
        """The level of the graph."""
        return self.node.owner


End = Tensor | GradientEdge
"""What a backward may start from or end at."""


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Return where the gradient of `tensor` is computed.

    What is later written to the tensor in place does not move it.
    Raises UsageError where it requires no grad.  Source: torch.autograd.graph.get_gradient_edge.
    """
    target, nr = edge(tensor)
    if target is None:
        msg = "It is not possible to get the gradient edge for a Tensor that does not require gradients"
        raise UsageError(msg)
    return GradientEdge(AccumulateGrad(target) if isinstance(target, Tensor) else target, nr, None, (tensor.shape, tensor.kind))


def end_of(x: End) -> tuple[Any, int]:
    """Where a cotangent goes: (a node or a leaf tensor, output number)."""
    if isinstance(x, Tensor):
        return edge(x)
    return (x.node.variable if isinstance(x.node, AccumulateGrad) else x.node), x.output_nr
