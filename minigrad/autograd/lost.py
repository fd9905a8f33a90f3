"""What a Function keeps of the values that its forward computed, and what becomes of their history.

Forward is not recorded, so a value on the way from inputs to outputs has no edge: a derivative of backward that goes through
it would silently be without that part.  It is an error instead. [NOTE custom-function]

Upstream: nothing; pytorch#76185.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from ..errors import UsageError
from ..graph.node import Node
from ..state import Watcher
from ..tensor import Tensor, bases, next_number, storage_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..interpreters.base import Interpreter
    from ..storage import Storage


class Descent(Watcher):
    """Memory that was computed from some tensors by differentiable ops, while it watched."""

    __slots__ = ("follows", "stores")

    def __init__(self, tensors: Sequence[Tensor]) -> None:
        self.stores: WeakSet[Storage] = WeakSet([storage_of(base) for x in tensors for base in bases(x)])
        self.follows = False

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "op" and owner is None:
            self.follows = subject.differentiable and any(type(x) is Tensor and storage_of(x) in self.stores for x in detail)
        elif event == "made" and self.follows:
            self.stores.add(storage_of(subject))

    def made(self, x: Tensor) -> bool:
        """Whether `x` is among it."""
        return any(storage_of(base) in self.stores for base in bases(x))


class Lost(Node):
    """The edge of what forward computed with nothing recorded and kept: a derivative through it is an error, not 0."""

    __slots__ = ("function",)

    def __init__(self, node: Node, function: str) -> None:
        self.function = function
        self.owner, self.edges, self.metas = node.owner, node.edges, None
        self.number = next_number()
        self.hooks = None
        self.outs = 1

    def name(self) -> str:
        return "LostHistory"

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        msg = (f"{self.function} kept a tensor that its forward computed from its inputs, and a derivative of its backward "
               "needs how it did: that was not recorded. Keep inputs and outputs only (return the tensor as one more output), "
               "or mark backward with once_differentiable. [NOTE custom-function]")
        raise UsageError(msg)
