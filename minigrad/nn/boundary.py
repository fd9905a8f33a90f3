"""Where a module's tensors cross its border: what full backward hooks see.

Both borders are identities with one node for all tensors that cross there.  A backward meets the outputs' node first, which
notes their gradients, and the inputs' node after the module's own; there the hooks are called with both.

Upstream: torch/utils/hooks.py, BackwardHook.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..graph.node import Node
from ..state import current, tell
from ..tensor import Tensor, alias, edge, next_number, wrapper

if TYPE_CHECKING:
    from collections.abc import Callable

Gradients = tuple[Tensor | None, ...]


class Boundary:
    """One call of a module that has backward hooks."""

    __slots__ = ("after", "args", "before", "entered", "grad_outputs", "left", "module", "outs")

    def __init__(self, module: Any, before: list[Any], after: list[Any]) -> None:
        self.module = module
        self.before = list(before)
        self.after = list(after)
        self.grad_outputs: Gradients | None = None

    def enter(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments, with the border behind those that require grad."""
        self.args = len(args)
        self.entered, args = _crossed(args, self._inputs_arrived) if self.after else ([], args)
        return args

    def leave(self, out: Any) -> Any:
        """The output, a tensor or a tuple, with the border before those that require grad."""
        if not self.before and not self.after:
            return out
        outs = out if isinstance(out, tuple) else (out,)
        self.outs = len(outs)
        self.left, outs = _crossed(outs, self._outputs_arrived)
        return outs if isinstance(out, tuple) else outs[0]

    def _outputs_arrived(self, cts: list[Tensor | None]) -> list[Tensor | None]:
        grads = _full(cts, self.left, self.outs)
        for hook in self.before:
            changed = hook(self.module, grads)
            if changed is not None:
                grads = _checked(changed, grads, "pre hook returned an invalid number of grad_output")
        self.grad_outputs = grads
        if self.after and not self.entered:
            warnings.warn("Full backward hook is firing when gradients are computed with respect to module outputs since no "
                          "inputs require gradients.", stacklevel=2)
            self._call((None,) * self.args)
        return [grads[i] for i in self.left]

    def _inputs_arrived(self, cts: list[Tensor | None]) -> list[Tensor | None]:
        if self.grad_outputs is None:  # they came another way: in a double backward, from what the module saved
            return cts
        grads = self._call(_full(cts, self.entered, self.args))
        return [grads[i] for i in self.entered]

    def _call(self, grads: Gradients) -> Gradients:
        for hook in self.after:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is not None:
                grads = _checked(changed, grads, "hook returned an invalid number of grad_input")
        self.grad_outputs = None
        return grads


class Crossing(Node):
    """The identity on several tensors; `look` sees their cotangents together, and may change them."""

    __slots__ = ("look",)

    look: Callable[[list[Tensor | None]], list[Tensor | None]]

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        return self.look([ct] if self.outs == 1 else ct)

    def name(self) -> str:
        return "BackwardHookFunctionBackward"


def _crossed(xs: tuple[Any, ...], look: Any) -> tuple[list[int], tuple[Any, ...]]:
    """The places of the tensors that require grad at the innermost level that any does, and all of xs with those crossed."""
    state = current()
    levels = [None, *state.levels]
    owners = {x.owner for x in xs if isinstance(x, Tensor) and x.node is not None and x.owner in levels} - state.grad_off
    if not owners:
        return [], xs
    owner = max(owners, key=levels.index)
    places = [i for i, x in enumerate(xs) if isinstance(x, Tensor) and x.node is not None and x.owner is owner]
    node = Crossing()
    node.owner = owner
    node.look = look
    node.edges = [edge(xs[i]) for i in places]
    node.number = next_number()
    node.hooks = None
    node.metas = None
    node.outs = len(places)
    tell(state.watchers, "node", owner, node)
    full = list(xs)
    for nr, i in enumerate(places):
        full[i] = alias(xs[i], node, nr) if owner is None else wrapper(owner, xs[i].value, node, nr)
    return places, tuple(full)


def _full(cts: list[Tensor | None], places: list[int], n: int) -> Gradients:
    full: list[Tensor | None] = [None] * n
    for i, ct in zip(places, cts, strict=True):
        full[i] = ct
    return tuple(full)


def _checked(changed: Any, grads: Gradients, what: str) -> Gradients:
    given = changed if isinstance(changed, tuple) else (changed,)
    if len(given) != len(grads):
        msg = f"Backward {what}, got {len(given)}, but expected {len(grads)}"
        raise UsageError(msg)
    return given
