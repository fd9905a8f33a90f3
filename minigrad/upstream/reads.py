"""Closure conversion: the tensors that a region reads from outside, told by the age of their edges.

    above(x, floor, parts)   a tensor as its parts at a level, and the layers above that, to be put around other parts
    Reads                    while a region runs, note the captured tensors that are differentiated at some level

Upstream: no function of torch knows what a closure holds; for a higher-order operator Dynamo makes arguments of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import torch

from .captured import Notes, program, substitute
from .layers import Batch, one_down, with_tangent
from .levels import standing, tangent_of
from .private import accumulator, is_batched, is_dead, is_wrapped, level_of, sequence_number, wrap_for_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Build = Callable[[Iterator[torch.Tensor]], torch.Tensor]


def above(x: torch.Tensor, floor: int, parts: list[torch.Tensor]) -> Build:
    """Append what a tensor is at a level, its tangents' parts last; return what puts fresh layers above it around others."""
    if not is_wrapped(x) or (not is_dead(x) and level_of(x) <= floor):
        parts.append(x)
        return next
    inner = above(one_down(x), floor, parts)
    if is_dead(x):
        return inner
    if is_batched(x):
        around = Batch(x).around
        return lambda given: around(inner(given), None)
    number, flag, tangent = level_of(x), x.requires_grad, tangent_of(x, level_of(x))
    under = None if tangent is None else above(tangent, floor, parts)

    def build(given: Iterator[torch.Tensor]) -> torch.Tensor:
        y = wrap_for_grad(inner(given), number)
        y.requires_grad = flag
        return y if under is None else with_tangent(y, under(given), number)

    return build


def base_of(x: torch.Tensor) -> torch.Tensor:
    """The tensor below every wrapper."""
    while is_wrapped(x):
        x = one_down(x)
    return x


def is_at(x: torch.Tensor, number: int) -> bool:
    """Whether a tensor belongs to a level."""
    return level_of(x) == number if is_wrapped(x) else number == 0


def storeys(x: torch.Tensor) -> Iterator[torch.Tensor]:
    """A tensor and those that it is made of, down to its base, with their tangents."""
    yield x
    if not is_wrapped(x):
        return
    if not is_dead(x) and (tangent := tangent_of(x, level_of(x))) is not None:
        yield from storeys(tangent)
    yield from storeys(one_down(x))


def edge(x: torch.Tensor, number: int) -> tuple[Any, int]:
    """The node and the output number that a tensor has at its level; a leaf has the node that accumulates for it."""
    if x.grad_fn is not None:
        return x.grad_fn, x.output_nr
    with standing(number):
        return accumulator(x), 0


class Reads(Notes):
    """What a region is given and what it captures, as it was at first sight."""

    of_one_run = True

    def __init__(self, arguments: list[torch.Tensor], depth: int) -> None:
        super().__init__()
        self._began = sequence_number()
        self._depth = depth
        self._versions: list[tuple[torch.Tensor, int]] = []
        self.inputs: list[torch.Tensor] = []
        self.sources: list[ref[torch.Tensor]] = []
        """What the region's function holds of each: another tensor, where a region outside is run again."""
        self.awaited = False
        """Whether the region asked for the gradient of an intermediate to be retained."""
        once = {id(x): x for x in arguments}
        self.places = {nr: place for place, nr in enumerate(once)}
        """Where among the inputs an argument is, by its id."""
        for x in once.values():
            self._add(x, substitute(x))

    def __torch_function__(self, func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.awaited = self.awaited or (program.runs and func is torch.Tensor.retain_grad)
        return super().__torch_function__(func, types, args, kwargs)

    def note(self, x: torch.Tensor) -> None:
        """Note what some level differentiates and the region did not make; of a level entered inside, what is wrapped."""
        while x not in self.known:
            now = substitute(x)
            if not is_wrapped(now) or (not is_dead(now) and level_of(now) <= self._depth):
                recorded = [s for s in storeys(now) if s.requires_grad]
                made_here = now is x and any(self.is_young(s.grad_fn) for s in recorded)
                if not made_here and (recorded or _has_tangent(now)):
                    self._add(x, now)
                return
            x = one_down(x)

    def _add(self, x: torch.Tensor, now: torch.Tensor) -> None:
        self.known[x] = None
        self.inputs.append(now)
        self.sources.append(ref(x))
        base = base_of(now)
        self._versions.append((base, base._version))

    def is_young(self, node: Any) -> bool:
        """Whether a node was made since the region began, in this thread."""
        return node is not None and not hasattr(node, "variable") and node._sequence_nr() >= self._began

    @property
    def unchanged(self) -> bool:
        """Whether all is as it was when the region first saw it."""
        return all(base._version == version for base, version in self._versions)


def leads_outside(nodes: list[Any], known: set[tuple[Any, int]], reads: Reads) -> bool:
    """Whether a graph, followed from some nodes down to known edges, has another edge that leads out of the region."""
    nodes, seen = list(nodes), set(nodes)
    while nodes:
        for node, nr in nodes.pop().next_functions:
            if node is None or node in seen or (node, nr) in known:
                continue
            if not reads.is_young(node):
                return True
            seen.add(node)
            nodes.append(node)
    return False


def _has_tangent(x: torch.Tensor) -> bool:
    """Whether a level of forward mode knows a tangent of it."""
    return any(is_wrapped(s) and not is_dead(s) and tangent_of(s, level_of(s)) is not None for s in storeys(x))
