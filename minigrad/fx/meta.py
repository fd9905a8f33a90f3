"""Where a node was traced: what its value looks like, and at which level, in which pass, in which region it was computed.

`tensor_meta`: shape and dtype.  `memory`: the number of its memory, which views share, and that memory's bytes.
`level`: the level that asked, the innermost on the stack, or in a backward the one whose graph is run; `stack`: the level
stack in force.  `pass`: forward, backward or recomputation; `region`: the checkpointed region that it is part of.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary

from ..regions.recompute import Frame, Refill
from ..state import State, show

if TYPE_CHECKING:
    from ..dtypes import dtype
    from ..graph.saved import Hooks
    from .node import Node


class TensorMetadata(NamedTuple):
    """What a value looks like.  Source: torch.fx.passes.shape_prop.TensorMetadata."""

    shape: tuple[int, ...]
    dtype: dtype

    def __str__(self) -> str:
        return f"{self.dtype.name}{list(self.shape)}"


class Regions:
    """Numbers for checkpointed regions, in the order in which a trace meets them."""

    def __init__(self) -> None:
        self._numbers: WeakKeyDictionary[Frame, str] = WeakKeyDictionary()
        self._count = 0

    def name(self, hooks: Hooks | None) -> str | None:
        """The innermost region that these hooks belong to."""
        while hooks is not None:
            frame = hooks.frame if isinstance(hooks, Refill) else hooks
            if isinstance(frame, Frame):
                if frame not in self._numbers:
                    self._count += 1
                    self._numbers[frame] = f"checkpoint {self._count}"
                return self._numbers[frame]
            hooks = hooks.outer
        return None


def place(state: State, regions: Regions) -> dict[str, Any]:
    """Where something is computed in this state."""
    levels, again = state.levels, state.recomputing is not None
    owner = levels[-1] if levels else None
    if state.run is not None and not again:
        owner = state.run.owner
    return {"level": str(owner or "level 0"), "stack": show(state),
            "pass": "recomputation" if again else "backward" if state.run is not None else "forward",
            "region": regions.name(state.hooks)}


def note(node: Node) -> str:
    """A node's place as a comment; nothing where it was traced nowhere."""
    meta = node.meta
    if "pass" not in meta:
        return ""
    return ", ".join(filter(None, [str(meta.get("tensor_meta", "")), meta["level"], meta["pass"], meta["region"]]))
