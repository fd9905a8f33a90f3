"""Ordinary autograd: level 0, and the same calls on the tensors of any other grad level.

Source: torch.autograd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..graph.edge import GradientEdge
from ..graph.raw import SavedTensor as SavedTensor
from ..modes import publish
from ..names import absent
from ..tensor import Tensor, alias
from . import engine
from .grad_mode import enable_grad, no_grad, set_grad_enabled
from .grad_mode import is_grad_enabled as is_grad_enabled
from .gradcheck import gradcheck, gradgradcheck
from .gradients import check_batched, gradients, owner_of, primal, unused, zeros_for
from .hooks import retain_grad
from .roots import given, roots, warn_of_cycle

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..graph.edge import End
    from .anomaly_mode import detect_anomaly, set_detect_anomaly
    from .function import Function
    from .variable import Variable

__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck", "no_grad",
           "set_detect_anomaly", "set_grad_enabled", "shallow_detach"]

_LATE = {"Variable": "variable", "Function": "function", "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
         **{name: name for name in ("anomaly_mode", "inference_mode", "forward_ad", "function", "functional", "graph")}}


def __getattr__(name: str) -> object:
    """Import what few programs need when one asks for it."""
    if name in _LATE:
        from importlib import import_module  # noqa: PLC0415

        module = import_module(f".{_LATE[name]}", __name__)
        return module if name == _LATE[name] else getattr(module, name)
    raise absent(__name__, name)


def backward(tensors: End | Sequence[End], grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False, inputs: End | Sequence[End] | None = None) -> None:
    """Accumulate the gradient of `tensors` into the `.grad` of leaves, or of `inputs` only.

    tensors, inputs: tensors, or gradient edges.
    grad_tensors: one cotangent for each, of its shape; may be left out for scalars.
    Raises UsageError where a tensor requires no grad, or where the graph has been freed.
    Source: torch.autograd.backward.
    """
    outputs = _tuple(tensors)
    cts = (None,) * len(outputs) if grad_tensors is None else _tuple(grad_tensors)
    _accumulate(outputs, cts, retain_graph, create_graph, inputs)


def _accumulate(outputs: Sequence[Any], cts: Sequence[Any], retain_graph: bool | None, create_graph: bool,
                inputs: End | Sequence[End] | None) -> None:
    if not outputs:
        return
    outputs = list(map(primal, outputs))
    owner = owner_of(outputs, "backward()")
    starts = roots(outputs, list(map(primal, given(cts))), "backward()")
    targets = None
    if inputs is not None:
        targets = [primal(x) for x in _tuple(inputs)]
        if not targets:
            msg = "`inputs` argument to `backward()` cannot be empty."
            raise UsageError(msg)
        for x in targets:
            if isinstance(x, Tensor):
                retain_grad(x)  # as torch does, for good; a leaf does anyway
    if create_graph:
        warn_of_cycle()
    keep = create_graph if retain_graph is None else retain_graph
    engine.backward(owner, starts, inputs=targets, retain_graph=keep, create_graph=create_graph, accumulate=True)


def grad(outputs: End | Sequence[End], inputs: End | Sequence[End], grad_outputs: Any = None,
         retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Any, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, tensors or gradient edges, summed over outputs.

    grad_outputs: one cotangent for each output, of its shape (with is_grads_batched: one more dimension in front, and
    in the result too); may be left out for scalars.  Raises UsageError for an input that was not used, unless
    allow_unused or materialize_grads.  Source: torch.autograd.grad.
    """
    ys, xs = _tuple(outputs), _tuple(inputs)
    cts = given(_tuple(grad_outputs)) if grad_outputs is not None else (None,) * len(ys)
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if materialize_grads and not allow_unused:
        msg = "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        raise ValueError(msg)
    if not xs:
        msg = "`inputs` argument to `grad()` cannot be empty."
        raise UsageError(msg)
    keep = create_graph if retain_graph is None else retain_graph

    if not is_grads_batched:
        return _complete(ys, xs, cts, keep, create_graph, allow_unused, materialize_grads)
    check_batched(ys, cts)
    from ..func import vmap  # noqa: PLC0415  the transforms are above this file

    return vmap(lambda *cts: _complete(  # type: ignore[no-any-return]
        ys, xs, cts, keep, create_graph, allow_unused, materialize_grads))(*cts)


def _complete(ys: Sequence[Any], xs: Sequence[Any], cts: Sequence[Any], retain_graph: bool, create_graph: bool,
              allow_unused: bool | None, materialize: bool) -> tuple[Any, ...]:
    """The gradients, where one that there is not is an error, None or zeros."""
    found = gradients(ys, xs, cts, retain_graph=retain_graph, create_graph=create_graph)
    if materialize:
        return tuple([zeros_for(x, create_graph=create_graph) if g is None else g for g, x in zip(found, xs, strict=True)])
    for i, g in enumerate(found):
        if g is None and not allow_unused:
            raise unused(i)
    return tuple(found)


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, (Tensor, GradientEdge)) else tuple(x)


def shallow_detach(x: Tensor) -> Tensor:
    """Cut the edge of one level, the innermost that `x` belongs to; the levels below keep theirs. [NOTE shallow-detach]

    torch, JAX and MLX cut every level; they have no such function.
    """
    return alias(x) if x.owner is None else x.owner.shallow_detach(x, shallow_detach)


# ---------------------------------------------------------------- methods of tensors
def tensor_backward(x: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None,
                    create_graph: bool = False, inputs: Any = None) -> None:
    """Accumulate the gradient of `x` into the leaves it was computed from.  Source: torch.Tensor.backward."""
    _accumulate((x,), (gradient,), retain_graph, create_graph, inputs)


publish(globals())
