"""The combined style at levels that a program entered by hand: what forward notes in its one context, each level notes again.

Forward runs once, at the base, with a context of its own.  Every level then sets up its context from that one, with its own
inputs and outputs in place of those that forward saw. [NOTE custom-function]

Upstream: python_function.cpp, where one context serves forward and reverse mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tensor import Tensor, alias
from .function_node import FunctionCtx, FunctionNode, tupled
from .lost import Lost

if TYPE_CHECKING:
    from collections.abc import Callable


class Noted:
    """One run of a combined forward, as `forward` and `setup_context` of a call."""

    def __init__(self, name: str, combined: Callable[..., Any]) -> None:
        self.name = name
        self.combined = combined

    def forward(self, *args: Any) -> Any:
        """Run it, and keep what it was given and gave until `forget`."""
        self.ctx = FunctionCtx(tuple([type(x) is Tensor and x.requires_grad for x in args]))
        out = self.combined(self.ctx, *args)
        self.seen = (*args, *tupled(out))
        return out

    def setup_context(self, ctx: FunctionCtx, inputs: tuple[Any, ...], output: Any) -> None:
        """Note the same for one level."""
        mine = (*inputs, *tupled(output))
        noted = {name: value for name, value in vars(self.ctx).items() if name != "needs_input_grad"}
        vars(ctx).update({name: self._here(value, mine) for name, value in noted.items()})

    def _here(self, x: Any, mine: tuple[Any, ...]) -> Any:
        """The tensor of a level for one of forward's (in tuples too): what was computed on the way has lost its history."""
        if isinstance(x, tuple):
            return tuple([self._here(each, mine) for each in x])
        if not isinstance(x, Tensor):
            return x
        for seen, own in zip(self.seen, mine, strict=True):
            if seen is x:
                return own
        nodes = [y.node for y in mine if isinstance(y, Tensor) and y.owner is None and isinstance(y.node, FunctionNode)]
        return alias(x, Lost(nodes[-1], self.name)) if nodes and x.node is None and x.dtype.differentiable else x

    def forget(self) -> None:
        """Let go of what forward was given and gave; the nodes refer to this."""
        self.ctx = FunctionCtx(())
        self.seen = ()
