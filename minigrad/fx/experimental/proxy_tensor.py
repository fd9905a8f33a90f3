"""make_fx: the graph of base ops that a function comes to.

Source: torch.fx.experimental.proxy_tensor.
"""

from __future__ import annotations

import functools
from inspect import Parameter, signature
from itertools import chain
from typing import TYPE_CHECKING, Any

from ... import tree
from ...errors import LevelError, Refusal
from ...state import current, using
from ...tensor import Tensor, alias, storage_of
from ..graph_module import GraphModule
from ..tracer import Tracer

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...state import State

__all__ = ["make_fx"]


def make_fx(f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real") -> Callable[..., GraphModule]:
    """Return a function of f's arguments that runs f on them and returns the graph of base ops it came to, as a GraphModule.

    Whatever transforms f enters, and backwards it runs, at any level, are in the graph as what they compute; so are the
    recomputations of checkpointed regions.  Tensors that f captures become attributes, and numbers and shapes are those of the
    trace.  Nothing in the graph writes: in-place ops become values, and what was written to arguments or captured tensors is
    written back at its end.  Inside a transform f is traced on the value of its arguments, and may capture nothing of it.
    Raises Refusal where python looks at a value that depends on the arguments, and for other modes of tracing.
    Source: torch.fx.experimental.proxy_tensor.make_fx.
    """
    if tracing_mode != "real" or decomposition_table:
        msg = ("make_fx traces real tensors, and rows as they are: tracing_mode='real', decomposition_table=None. There are no "
               "fake or symbolic tensors here.")
        raise Refusal(msg)

    @functools.wraps(f)
    def wrapped(*args: Any) -> GraphModule:
        state = current()
        tracer = Tracer()
        leaves, spec = tree.flatten(args)
        leaves = _apart([_value(x) if isinstance(x, Tensor) else x for x in leaves])
        parameters = _parameters(f, spec)
        names = [[name] if count is None else [f"{name}_{i}" for i in range(count)] for name, count in parameters.items()]
        for x, name in zip(leaves, chain.from_iterable(names), strict=True):
            tracer.argument(x, name)
        with using(_tracing(state, tracer)):
            out = f(*tree.unflatten(leaves, spec))
        tracer.finish(out)
        return GraphModule(tracer.attributes, tracer.graph, getattr(f, "__name__", type(f).__name__), parameters=parameters)
    return wrapped


def _tracing(state: State, tracer: Tracer) -> State:
    """The state of a trace: no level of those outside, and nothing is computed on their tensors."""
    return state._replace(levels=(), closed=state.closed.union(state.levels), closed_by="a function traced by make_fx",
                          dispatch_modes=(*state.dispatch_modes, tracer), watchers=(*state.watchers, tracer))


def _value(x: Tensor) -> Tensor:
    """An argument as the trace is given it: of a tensor of a level outside, its value."""
    found = x
    while found.owner is not None:
        if not found.owner.readable:
            msg = (f"make_fx: an argument is a batch of {found.owner}, and a trace is of one sample: trace outside of the "
                   "transform, and transform the traced module.")
            raise LevelError(msg)
        found = found.value
    return found if found is x else alias(found)


def _apart(leaves: list[Any]) -> list[Any]:
    """The arguments, each in memory of its own: one that shares another's is copied, as calls of the graph may give two."""
    seen: set[Any] = set()
    apart = []
    for x in leaves:
        if isinstance(x, Tensor):
            if storage_of(x) in seen:
                x = x.detach().clone().requires_grad_(x.requires_grad)  # noqa: PLW2901
            seen.add(storage_of(x))
        apart.append(x)
    return apart


def _parameters(f: Callable[..., Any], spec: Any) -> dict[str, int | None]:
    """Of each argument the name, and how many leaves it holds where it is a nest."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    try:
        known = [p.name for p in signature(f).parameters.values() if p.kind in kinds]
    except (TypeError, ValueError):
        known = []
    names = [known[i] if i < len(known) else f"arg{i}" for i in range(len(spec.children))]
    counts = [None if child is tree.LEAF_SPEC else tree.count(child) for child in spec.children]
    return dict(zip(names, counts, strict=True))
