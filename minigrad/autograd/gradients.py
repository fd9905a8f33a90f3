"""Gradients of tensors of any level: they are taken in the graph of one, and levels above it that have none say how.

[NOTE gradients-of-duals]

Upstream: nothing; torch runs backward formulas on duals, and has no edge under vmap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import Refusal, UsageError
from ..graph.edge import GradientEdge, end_of
from ..ops.creation import zeros_like
from ..state import current
from ..tensor import LEAF, Tensor, alias, next_number, wrapper
from . import engine
from .roots import mismatched, roots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..interpreters.base import Interpreter


def gradients(ys: Sequence[Tensor], xs: Sequence[Tensor], cts: Sequence[Any], *, retain_graph: bool, create_graph: bool,
              fixed: frozenset[Any] = frozenset(), along: bool = False) -> Sequence[Tensor | None]:
    """The gradients in the graph of the level that all outputs belong to; a level without a graph above it has its say.

    along: these are tangents of gradients, where nothing goes to `fixed` targets.
    """
    ys, xs, cts = list(map(_live, ys)), list(map(_live, xs)), list(map(_live, cts))
    above = [x.owner for x in (*ys, *xs) if x.owner is not None and x.owner.transparent]
    if above:
        top = max(above, key=current().levels.index)
        return _said_by(top, ys, xs, cts, retain_graph=retain_graph, create_graph=create_graph, fixed=fixed, along=along)
    if not ys:
        return [None] * len(xs)
    owner = owner_of(ys, "autograd.grad")
    for i, x in enumerate(xs):
        if x.owner is not owner or x.node is None:
            raise _no_input(i, x, owner)
        if fixed and end_of(x)[0] in fixed:
            msg = (f"{x!r} is an input and also a tangent: the derivative of its gradient cannot tell them apart. Give a clone "
                   "to make_dual or jvp. [NOTE gradients-of-duals]")
            raise Refusal(msg)
    starts = roots(ys, cts, "autograd.grad")
    if along:
        _no_hooks([target for target, _, _ in starts], fixed)
    return engine.backward(owner, starts, inputs=xs, retain_graph=retain_graph, create_graph=create_graph, fixed=fixed)


def _said_by(top: Interpreter, ys: Sequence[Tensor], xs: Sequence[Tensor], cts: Sequence[Any], *, retain_graph: bool,
             create_graph: bool, fixed: frozenset[Any], along: bool) -> Sequence[Tensor | None]:
    """The gradients as a level without a graph has them, which asks for those of the levels below it."""
    def below(ys: Sequence[Tensor], xs: Sequence[Tensor], cts: Sequence[Any], *, retain_graph: bool,
              directions: frozenset[Any] | None = None) -> Any:
        return gradients(ys, xs, cts, retain_graph=retain_graph, create_graph=create_graph,
                         fixed=fixed | (directions or frozenset()), along=along or directions is not None)

    return top.gradients(below, ys, xs, cts, retain_graph)


def _no_input(i: int, x: Tensor, owner: Interpreter | None) -> UsageError:
    mine, theirs = (str(o or "level 0") for o in (x.owner, owner))
    found = f"the one at index {i} is a constant of {mine}" if x.owner is owner else (
        f"the one at index {i} belongs to {mine}, and the outputs to {theirs}")
    way_out = (f"Pass it as an argument of the function that {owner} transforms." if owner is not None else
               "Call requires_grad_() on it, before the outputs are computed from it." if x.owner is None else
               f"Differentiate inside {mine} what is computed there, or with respect to a tensor of level 0.")
    return UsageError(f"One of the differentiated Tensors does not require grad: {found}. {way_out}")


def unused(i: int) -> UsageError:
    """The error of an input that has no gradient."""
    return UsageError(f"The differentiated Tensor at index {i} appears to not have been used in the graph. Set "
                      "allow_unused=True if this is the desired behavior.")


def zeros_for(x: Any, *, create_graph: bool) -> Tensor:
    """The gradient of an input that has none, where it is asked for: with create_graph a leaf, which can be differentiated."""
    if isinstance(x, GradientEdge):
        msg = "materialize_grads cannot be used when the given input is a GradientEdge"
        raise UsageError(msg)
    zeros: Tensor = zeros_like(engine.below(x))
    if not create_graph:
        return zeros
    return alias(zeros, LEAF, next_number()) if x.owner is None else wrapper(x.owner, zeros, LEAF, next_number())


def check_batched(ys: Sequence[Any], cts: Sequence[Any]) -> None:
    """Raise UsageError where a cotangent is no batch of cotangents of its output."""
    for i, (y, ct) in enumerate(zip(ys, cts, strict=True)):
        shape = y.shape if isinstance(y, Tensor) else y.meta and y.meta[0]
        if ct is not None and shape is not None and mismatched(i, ct.shape[1:], shape):
            msg = ("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. "
                   "The sizes of the remaining dimensions are expected to match the shape of corresponding output, but a "
                   f"mismatch was detected: grad_output[{i}] has a shape of {ct.shape} and output[{i}] has a shape of {shape}. "
                   "If you only want some tensors in `grad_output` to be considered batched, consider using vmap.")
            raise UsageError(msg)


def _no_hooks(todo: list[Any], fixed: frozenset[Any]) -> None:
    """Raise Refusal where a hook would see, or change, what is half of the tangent of a gradient."""
    seen = set(fixed)
    while todo:
        target = todo.pop()
        if target in seen:
            continue
        seen.add(target)
        if _hooked(target):
            what = "a leaf" if isinstance(target, Tensor) else target.name()
            msg = (f"the gradient of a dual goes through a hook of {what}, which sees one thing at a time: use func.grad "
                   "inside the dual level. [NOTE gradients-of-duals]")
            raise Refusal(msg)
        todo += () if isinstance(target, Tensor) else [further for further, _ in target.edges]


def _hooked(target: Any) -> bool:
    if isinstance(target, Tensor):
        return target.extra is not None and bool(target.extra.hooks)
    hooks = target.hooks
    return hooks is not None and any((hooks.pre, hooks.post, hooks.retains, *hooks.tensor.values()))


def _live(x: Any) -> Any:
    """What a wrapper means whose level has no graph and has gone; anything else as it is."""
    while x is not None and x.owner is not None and x.owner.transparent and x.owner not in current().levels:
        x = x.owner.escaped(x)
    return x


def primal(x: Any) -> Any:
    """The tensor in whose graph `.backward()` runs, which accumulates no tangents; None as it is."""
    while x is not None and x.owner is not None and x.owner.transparent:
        x = x.owner.primal(x) if x.owner in current().levels else x.owner.escaped(x)
    return x


def owner_of(outputs: Sequence[Tensor], what: str) -> Interpreter | None:
    """The grad level that all outputs belong to; None is level 0."""
    owners = {y.owner for y in outputs}
    if len(owners) != 1:
        found = ", ".join(str(o or "level 0") for o in owners)
        msg = f"{what}: the outputs belong to {found}, and gradients are taken at one grad level."
        raise UsageError(msg)
    return owners.pop()
