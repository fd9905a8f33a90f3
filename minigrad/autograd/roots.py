"""What a backward starts from: outputs and their cotangents, checked, as the engine takes them.

Source: torch.autograd._make_grads.
"""

from __future__ import annotations

from itertools import count, repeat
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..graph.edge import GradientEdge, end_of
from ..lines import warn
from ..ops.creation import ones, ones_like
from ..subclass import inner
from ..tensor import Tensor
from .engine import below

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..graph.edge import End
    from ..storage import Kind


def roots(outputs: Sequence[End], cts: Sequence[Tensor | None], what: str) -> list[tuple[Any, int, Tensor]]:
    """Each output as (target, output number, cotangent); ones, where a scalar was given none; of a subclass the tensor inside.

    Raises UsageError where an output requires no grad, a cotangent has another shape, or there is not one for each.
    """
    if len(outputs) != len(cts):
        msg = f"{what}: got {len(outputs)} tensors and {len(cts)} gradients. Give one for each, or None for a scalar."
        raise UsageError(msg)
    return list(map(_root, count(), outputs, cts, repeat(what)))


def _root(i: int, output: End, ct: Tensor | None, what: str) -> tuple[Any, int, Tensor]:
    target, nr = end_of(output)
    ct = inner(ct)
    if target is None:
        msg = (f"element {i} of tensors does not require grad and does not have a grad_fn: {what} was asked for the gradient "
               f"of {output!r}.")
        raise UsageError(msg)
    shape, kind = (output.meta or (None, None)) if isinstance(output, GradientEdge) else (output.shape, output.kind)
    if shape is None or kind is None:
        if ct is None:
            msg = (f"{what}: grad_outputs must be given for a GradientEdge that was made by hand, as nothing is known of its "
                   "tensor. Make it with get_gradient_edge.")
            raise UsageError(msg)
        return target, nr, ct
    if ct is None:
        return target, nr, _one(output, shape, kind)
    if ct.shape != shape:
        raise UsageError(mismatched(i, ct.shape, shape))
    return target, nr, ct if ct.dtype is kind.dtype else _cast(i, ct, kind)


def _cast(i: int, ct: Tensor, kind: Kind) -> Tensor:
    if ct.dtype.is_complex != kind.dtype.is_complex:
        msg = ("For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: "
               f"grad_output[{i}] has a dtype of {ct.dtype} and output[{i}] has a dtype of {kind.dtype}.")
        raise UsageError(msg)
    return ct.to(kind.dtype)  # type: ignore[no-any-return]


def given(cts: Sequence[Any]) -> Sequence[Any]:
    """What a program gave for cotangents.  Raises TypeError unless each is a tensor or None."""
    for ct in cts:
        if ct is not None and not isinstance(ct, Tensor):
            msg = f"gradients can be either Tensors or None, but got {type(ct).__name__}"
            raise TypeError(msg)
    return cts


def cotangent(i: int, ct: Tensor | None, value: Tensor) -> Tensor:
    """The cotangent of an output of a transformed function, of which there is the value."""
    if ct is None:
        _check_implied(value.shape, value.kind)
        return ones_like(value)
    if ct.shape != value.shape:
        msg = f"vjp: a cotangent of shape {list(ct.shape)} was given for an output of shape {list(value.shape)}."
        raise UsageError(msg)
    return ct if ct.dtype is value.dtype else _cast(i, ct, value.kind)


def mismatched(i: int, given: tuple[int, ...], wanted: tuple[int, ...]) -> str:
    """What is wrong with the shape of a cotangent; nothing where it is that of its output."""
    return "" if given == wanted else (f"Mismatch in shape: grad_output[{i}] has a shape of {given} and output[{i}] has a "
                                       f"shape of {wanted}.")


def _one(output: End, shape: tuple[int, ...], kind: Kind) -> Tensor:
    """The cotangent of a scalar that was given none."""
    _check_implied(shape, kind)
    if isinstance(output, GradientEdge):
        return ones(shape, dtype=kind.dtype, device=kind.device)
    return ones_like(below(output))


def _check_implied(shape: tuple[int, ...], kind: Kind) -> None:
    if any(n != 1 for n in shape):
        msg = f"grad can be implicitly created only for scalar outputs, and this one has shape {list(shape)}."
        raise UsageError(msg)
    if kind.dtype.is_complex:
        msg = f"grad can be implicitly created only for real scalar outputs but got {kind.dtype}"
        raise UsageError(msg)


def warn_of_cycle() -> None:
    """Warn of the one cycle there is, the user's. [NOTE no-cycles]"""
    warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which "
         "can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use "
         "this function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid "
         "the leak.")
