"""What is done to all parameters at once.  Source: torch.nn.utils."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

from ..autograd.grad_mode import no_grad
from ..errors import UsageError
from ..ops.choice import clamp
from ..ops.creation import tensor
from ..ops.joining import cat, narrow, stack
from ..ops.norm import vector_norm
from ..ops.shape import reshape
from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["clip_grad_norm_", "clip_grad_value_", "parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """All elements of the parameters in one dimension, with their graph.  Source: torch.nn.utils.parameters_to_vector."""
    return cat([reshape(x, -1) for x in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Make slices of a vector the contents of the parameters.  Source: torch.nn.utils.vector_to_parameters."""
    at = 0
    for x in parameters:
        x.data = reshape(narrow(vec, 0, at, x.numel()), x.shape).data
        at += x.numel()


@no_grad()
def clip_grad_norm_(parameters: Tensor | Iterable[Tensor], max_norm: float, norm_type: float = 2.0,
                    error_if_nonfinite: bool = False) -> Tensor:
    """Scale all gradients, so that the norm of them together is at most max_norm; returns the norm before.

    Source: torch.nn.utils.clip_grad_norm_.
    """
    grads = _gradients(parameters)
    if not grads:
        return tensor(0.0)
    total = vector_norm(stack([vector_norm(g, norm_type) for g in grads]), norm_type)
    if error_if_nonfinite and not abs(total.item()) < inf:
        msg = (f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so it cannot be clipped. "
               "To disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`")
        raise UsageError(msg)
    factor = clamp(max_norm / (total + 1e-6), max=1.0)
    for g in grads:
        g.mul_(factor.to(g.dtype))
    return total


@no_grad()
def clip_grad_value_(parameters: Tensor | Iterable[Tensor], clip_value: float) -> None:
    """Bring all elements of the gradients into [-clip_value, clip_value].  Source: torch.nn.utils.clip_grad_value_."""
    for g in _gradients(parameters):
        g.clamp_(-clip_value, clip_value)


def _gradients(parameters: Tensor | Iterable[Tensor]) -> list[Tensor]:
    given = (parameters,) if isinstance(parameters, Tensor) else parameters
    return [x.grad for x in given if x.grad is not None]
