"""Ordinary autograd: level 0, and the same calls on the tensors of any other grad level.

Source: torch.autograd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..modes import publish
from ..ops.creation import zeros_like
from ..state import show
from ..tensor import LEAF, Tensor, alias
from . import engine
from .grad_mode import enable_grad, no_grad, set_grad_enabled
from .grad_mode import is_grad_enabled as is_grad_enabled
from .gradcheck import gradcheck, gradgradcheck
from .gradients import gradients, owner_of, primal
from .hooks import retain_grad

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .anomaly_mode import detect_anomaly, set_detect_anomaly
    from .function import Function

__all__ = ["Function", "Variable", "backward", "detect_anomaly", "enable_grad", "grad", "gradcheck", "gradgradcheck", "no_grad",
           "set_detect_anomaly", "set_grad_enabled", "shallow_detach"]

Variable = Tensor
_LATE = {"Function": "function", "detect_anomaly": "anomaly_mode", "set_detect_anomaly": "anomaly_mode",
         **{name: name for name in ("anomaly_mode", "inference_mode", "forward_ad", "function", "functional", "graph")}}


def __getattr__(name: str) -> object:
    """Import what few programs need when one asks for it."""
    if name in _LATE:
        from importlib import import_module  # noqa: PLC0415

        module = import_module(f".{_LATE[name]}", __name__)
        return module if name == _LATE[name] else getattr(module, name)
    msg = f"module 'minigrad.autograd' has no attribute {name!r}"
    raise AttributeError(msg)


def backward(tensors: Tensor | Sequence[Tensor], grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None) -> None:
    """Accumulate the gradient of `tensors` into the `.grad` of leaves, or of `inputs` only.

    grad_tensors: one cotangent for each tensor, of its shape; may be left out for scalars.
    Raises UsageError where a tensor requires no grad, or where the graph has been freed.
    Source: torch.autograd.backward.
    """
    outputs = tuple([primal(y) for y in _tuple(tensors)])
    cts = [c if c is None else primal(c) for c in _tuple((None,) * len(outputs) if grad_tensors is None else grad_tensors)]
    owner = owner_of(outputs, "backward()")
    roots = [engine.root_of(y, ct, "backward()") for y, ct in zip(outputs, cts, strict=True)]
    targets = None
    if inputs is not None:
        targets = tuple([primal(x) for x in _tuple(inputs)])
        if not targets:
            msg = "inputs argument to backward() cannot be empty."
            raise UsageError(msg)
        for x in targets:
            if x.node is not LEAF:
                retain_grad(x)  # as torch does, for good
    keep = create_graph if retain_graph is None else retain_graph
    engine.backward(owner, roots, inputs=targets, retain_graph=keep, create_graph=create_graph, accumulate=True)


def grad(outputs: Tensor | Sequence[Tensor], inputs: Tensor | Sequence[Tensor], grad_outputs: Any = None,
         retain_graph: bool | None = None, create_graph: bool = False, allow_unused: bool | None = None,
         is_grads_batched: bool = False, materialize_grads: bool = False) -> tuple[Any, ...]:
    """Return the gradients of `outputs` with respect to `inputs`, summed over outputs.

    grad_outputs: one cotangent for each output, of its shape (with is_grads_batched: one more dimension in front, and
    in the result too); may be left out for scalars.  Raises UsageError for an input that was not used, unless
    allow_unused or materialize_grads.  Source: torch.autograd.grad.
    """
    ys, xs = _tuple(outputs), _tuple(inputs)
    cts = _tuple(grad_outputs) if grad_outputs is not None else (None,) * len(ys)
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    if materialize_grads and not allow_unused:
        msg = "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        raise ValueError(msg)
    keep = create_graph if retain_graph is None else retain_graph

    def run(*cts: Any) -> tuple[Any, ...]:
        found = gradients(ys, xs, cts, retain_graph=keep, create_graph=create_graph)
        return tuple(_used(g, x, allow_unused=allow_unused, materialize=materialize_grads)
                     for g, x in zip(found, xs, strict=True))

    if not is_grads_batched:
        return run(*cts)
    from ..func import vmap  # noqa: PLC0415  the transforms are above this file

    return vmap(run)(*cts)  # type: ignore[no-any-return]


def _used(g: Tensor | None, x: Tensor, *, allow_unused: bool, materialize: bool) -> Tensor | None:
    if g is None and materialize:
        return zeros_like(engine.below(x))
    if g is None and not allow_unused:
        msg = ("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if "
               f"this is the desired behavior. It is {x!r}. [level stack: {show()}]")
        raise UsageError(msg)
    return g


def _tuple(x: Any) -> tuple[Any, ...]:
    return (x,) if isinstance(x, Tensor) else tuple(x)


def shallow_detach(x: Tensor) -> Tensor:
    """Cut the edge of one level, the innermost that `x` belongs to; the levels below keep theirs. [NOTE shallow-detach]

    torch, JAX and MLX cut every level; they have no such function.
    """
    return alias(x) if x.owner is None else x.owner.shallow_detach(x, shallow_detach)


# ---------------------------------------------------------------- methods of tensors
def tensor_backward(x: Tensor, gradient: Tensor | None = None, retain_graph: bool | None = None,
                    create_graph: bool = False, inputs: Any = None) -> None:
    """Accumulate the gradient of `x` into the leaves it was computed from.  Source: torch.Tensor.backward."""
    backward(x, gradient, retain_graph, create_graph, inputs)


publish(globals())
