"""Gradients, in a graph below a level of forward mode, of tensors of that level. [NOTE gradients-of-duals]

Upstream: nothing; torch runs the formulas of the backward on saved duals.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from ..ops.creation import zeros_like
from ..tensor import Tensor, edge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from .jvp import JvpInterpreter


class Given:
    """The primals that a program gave tangents at one level, and the edges of those tangents; it keeps nothing alive."""

    __slots__ = ("_primals", "_targets")

    def __init__(self) -> None:
        self._primals: list[ref[Tensor]] = []
        self._targets: list[ref[Any]] = []

    def add(self, primal: Tensor, tangent: Tensor) -> None:
        self._primals.append(ref(primal))
        self._targets += [ref(target) for target in _targets(tangent)]

    def __contains__(self, x: Tensor) -> bool:
        return any(r() is x for r in self._primals)

    def directions(self, tangents: Sequence[Tensor | None]) -> frozenset[Any]:
        """The edges of all tangents that do not move: those given, and these of the inputs."""
        return frozenset([*(target for r in self._targets if (target := r()) is not None),
                          *(target for dx in tangents if dx is not None for target in _targets(dx))])


def _targets(x: Tensor) -> Iterator[Any]:
    """Where cotangents of `x` go, at each level that it belongs to."""
    if x.node is not None:
        yield edge(x)[0]
    for part in () if x.owner is None else x.owner.parts(x):
        yield from _targets(part)


def gradients(me: JvpInterpreter, run: Callable[..., Any], outputs: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any],
              retain_graph: bool) -> Sequence[Any]:
    """Each with its tangent: for `ct . y` the gradient of `ct . dy + dct . y`, as second derivatives are symmetric."""
    (ys, dys), (xs, dxs), (plain, dcts) = (_halves(me, tensors) for tensors in (outputs, inputs, cts))
    pairs = [(dy, ct) for dy, ct in zip(dys, plain, strict=True) if dy is not None and dy.requires_grad]
    pairs += [(y, dct) for y, dct in zip(ys, dcts, strict=True) if dct is not None]
    pushed: Sequence[Any] = [None] * len(xs)
    if pairs:
        pushed = run([y for y, _ in pairs], xs, [ct for _, ct in pairs], retain_graph=True, directions=me.given.directions(dxs))
    found = run(ys, xs, plain, retain_graph=retain_graph)
    return [g if dg is None else me.dual(zeros_like(dg) if g is None else g, dg)
            for g, dg in zip(found, pushed, strict=True)]


def _halves(me: JvpInterpreter, tensors: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The primals, and the tangents, None where there is none."""
    mine = [type(x) is Tensor and x.owner is me for x in tensors]
    return ([x.value if m else x for x, m in zip(tensors, mine, strict=True)],
            [x.note if m else None for x, m in zip(tensors, mine, strict=True)])
