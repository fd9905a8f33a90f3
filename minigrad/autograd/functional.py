"""Derivatives of functions, as composites over ordinary autograd: level 0 of tensors that the functions make requiring grad.

`inputs`, `v` and what func returns: a tensor, or a tuple of tensors, and results have that form too.  create_graph: results
can be differentiated further, also with respect to inputs that require grad.  strict: independence is an error, not a zero.
minigrad.func has the same derivatives as transforms, which nest.

Source: torch.autograd.functional.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..ops.creation import eye, zeros_like
from ..ops.joining import stack
from ..ops.rearrange import view_as
from ..ops.shape import detach, reshape
from ..tensor import Tensor
from . import grad
from .grad_mode import enable_grad

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = tuple[Tensor, ...]


# ---------------------------------------------------------------- what they share
def _tensors(x: Any, what: str, name: str) -> tuple[bool, Tensors]:
    """Whether it was a tuple, and the tuple."""
    several = isinstance(x, tuple)
    for i, y in enumerate(x if several else (x,)):
        if not isinstance(y, Tensor):
            found = f"value at index {i} has type {type(y)}" if several else f"given {what} has type {type(y)}"
            msg = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but the {found}."
            raise TypeError(msg)
    return several, x if several else (x,)


def _inputs(inputs: Any, name: str, *, create_graph: bool) -> tuple[bool, Tensors]:
    """The inputs as tensors that nobody else knows: what func captures is another tensor, and a constant."""
    several, xs = _tensors(inputs, "inputs", name)
    return several, tuple([view_as(x, x) if create_graph and x.requires_grad else detach(x).requires_grad_() for x in xs])


def _called(func: Callable[..., Any], xs: Tensors, name: str, *, strict: bool) -> tuple[bool, Tensors]:
    several, ys = _tensors(func(*xs), "outputs of the user-provided function", name)
    for i, y in enumerate(ys):
        if strict and not y.requires_grad:
            msg = (f"Output {i} of the user-provided function does not require gradients. The outputs must be computed in a "
                   "differentiable manner from the input when running in strict mode.")
            raise UsageError(msg)
    return several, ys


def _scalar(func: Callable[..., Any], xs: Tensors, *, name: str, strict: bool) -> Tensor:
    several, (y, *_) = _called(func, xs, name, strict=strict)
    if several or y.numel() != 1:
        msg = f"The function given to {name} should return a single Tensor{'' if several else ' with a single element'}."
        raise UsageError(msg)
    return reshape(y, ()) if y.ndim else y


def _pulled(ys: Tensors, xs: Tensors, cts: Tensors | None = None, *, create_graph: bool, strict: bool = False,
            what: str = "output") -> Tensors:
    """Cotangents of xs from those of ys; zeros, or with strict an error, where there is no dependence on one."""
    pairs = [(y, ct) for y, ct in zip(ys, cts or (None,) * len(ys), strict=True) if y.requires_grad]
    found: tuple[Any, ...] = (None,) * len(xs)
    if pairs:
        found = grad([y for y, _ in pairs], xs, [ct for _, ct in pairs], retain_graph=True, create_graph=create_graph,
                     allow_unused=True)
    full = []
    for i, (g, x) in enumerate(zip(found, xs, strict=True)):
        if strict and (g is None or (create_graph and not g.requires_grad)):
            when = "." if g is None else " when create_graph=True."
            msg = (f"The {what if g is None else _NEXT[what]} of the user-provided function is independent of input {i}. "
                   f"This is not allowed in strict mode{when}")
            raise UsageError(msg)
        full.append(zeros_like(x) if g is None else g)
    return tuple(full)


_NEXT = {"output": "jacobian", "jacobian": "hessian", "hessian": "hessian"}


def _vector(v: Any, like: Tensors, several: bool, name: str) -> Tensors | None:
    """`v`, checked against what it is multiplied with; None stands for 1."""
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            msg = f"The vector v can only be None if what {name} multiplies it with is a single Tensor with a single element."
            raise UsageError(msg)
        return None
    _, vs = _tensors(v, "v", name)
    if len(vs) != len(like):
        msg = f"v is a tuple of invalid length: should be {len(like)} but got {len(vs)}." if several else (
            "The given v should contain a single Tensor.")
        raise UsageError(msg)
    for i, (each, other) in enumerate(zip(vs, like, strict=True)):
        if each.shape != other.shape:
            msg = (f"{f'Entry {i} in ' if several else ''}v has invalid size: should be {list(other.shape)} but got "
                   f"{list(each.shape)}.")
            raise UsageError(msg)
    return vs


def _given(results: Any, several: bool, create_graph: bool) -> Any:
    """Results in the form of what they belong to, without a graph where none was asked for."""
    results = tuple([r if create_graph else detach(r) for r in results])
    return results if several else results[0]


# ---------------------------------------------------------------- products with the Jacobian
@enable_grad()
def vjp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), v times the Jacobian); v may be left out where the output has one element.

    Source: torch.autograd.functional.vjp.
    """
    many, xs = _inputs(inputs, "vjp", create_graph=create_graph)
    several, ys = _called(func, xs, "vjp", strict=strict)
    cts = _vector(v, ys, several, "vjp")
    pulled = _pulled(ys, xs, cts, create_graph=create_graph, strict=strict)
    return _given(ys, several, create_graph), _given(pulled, many, create_graph)


@enable_grad()
def jvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), the Jacobian times v), by differentiating a vjp, which is linear, in its cotangent.

    Source: torch.autograd.functional.jvp.
    """
    many, xs = _inputs(inputs, "jvp", create_graph=create_graph)
    vs = _vector(v, xs, many, "jvp")
    several, ys = _called(func, xs, "jvp", strict=strict)
    cts = tuple([zeros_like(y).requires_grad_() for y in ys])
    pulled = _pulled(ys, xs, cts, create_graph=True, strict=strict)
    pushed = _pulled(pulled, cts, vs, create_graph=create_graph)
    return _given(ys, several, create_graph), _given(pushed, several, create_graph)


@enable_grad()
def jacobian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
             vectorize: bool = False, strategy: str = "reverse-mode") -> Any:
    """Return the Jacobian: for every output, for every input, a tensor of the output's shape + the input's.

    vectorize: all rows as one batch; strategy "forward-mode" needs that, and gives no graph.
    Source: torch.autograd.functional.jacobian.
    """
    if strategy not in ("forward-mode", "reverse-mode"):
        msg = f'Expected strategy to be either "forward-mode" or "reverse-mode", found {strategy!r}.'
        raise AssertionError(msg)
    if strategy == "forward-mode":
        return _forward(func, inputs, create_graph=create_graph, strict=strict, vectorize=vectorize)
    if strict and vectorize:
        msg = "torch.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together."
        raise UsageError(msg)
    many, xs = _inputs(inputs, "jacobian", create_graph=create_graph)
    several, ys = _called(func, xs, "jacobian", strict=strict)
    rows = []
    for y in ys:
        parts = _rows(y, xs, create_graph=create_graph, strict=strict, vectorize=vectorize)
        rows.append(_given([reshape(p, *y.shape, *x.shape) for p, x in zip(parts, xs, strict=True)], many, create_graph))
    return tuple(rows) if several else rows[0]


def _rows(y: Tensor, xs: Tensors, *, create_graph: bool, strict: bool, vectorize: bool) -> Sequence[Tensor]:
    """The gradients of every element of y, stacked."""
    if not y.numel() or not (y.requires_grad or strict):
        return [x.new_zeros(y.numel(), *x.shape) for x in xs]
    basis = reshape(eye(y.numel(), dtype=y.dtype, device=y.device), y.numel(), *y.shape)
    if vectorize:
        return grad(y, xs, basis, retain_graph=True, create_graph=create_graph, is_grads_batched=True, materialize_grads=True)
    each = [_pulled((y,), xs, (ct,), create_graph=create_graph, strict=strict) for ct in basis]
    return [stack(column) for column in zip(*each, strict=True)]


def _forward(func: Callable[..., Any], inputs: Any, *, create_graph: bool, strict: bool, vectorize: bool) -> Any:
    if create_graph or strict:
        msg = ('torch.autograd.functional.jacobian: `create_graph=True` or `strict=True` and `strategy="forward-mode"` are not '
               'supported together: use `strategy="reverse-mode"`, or minigrad.func.jacfwd.')
        raise NotImplementedError(msg) if create_graph else UsageError(msg)
    if not vectorize:
        msg = "Computing Jacobian using forward-AD or forward-over-reverse Hessian is only implemented for `vectorize=True`."
        raise NotImplementedError(msg)
    from ..func import jacfwd  # noqa: PLC0415  the transforms are above this file

    many, xs = _tensors(inputs, "inputs", "jacobian")
    rows = jacfwd(func, argnums=tuple(range(len(xs))))(*[detach(x) for x in xs])
    if isinstance(rows[0], tuple):
        return tuple([_given(row, many, create_graph=False) for row in rows])
    return _given(rows, many, create_graph=False)


# ---------------------------------------------------------------- second derivatives of scalar functions
def hessian(func: Callable[..., Any], inputs: Any, create_graph: bool = False, strict: bool = False,
            vectorize: bool = False, outer_jacobian_strategy: str = "reverse-mode") -> Any:
    """Return the Hessian of a function of one element: for every two inputs, a tensor of both shapes.

    Source: torch.autograd.functional.hessian.
    """
    many, xs = _tensors(inputs, "inputs", "hessian")

    def gradient(*xs: Tensor) -> Tensors:
        if outer_jacobian_strategy == "forward-mode":
            from ..func import grad as grad_of  # noqa: PLC0415

            scalar = functools.partial(_scalar, func, name="hessian", strict=strict)
            return grad_of(lambda *ys: scalar(ys), tuple(range(len(xs))))(*xs)  # type: ignore[no-any-return]
        y = _scalar(func, xs, name="hessian", strict=strict)
        return _pulled((y,), xs, create_graph=True, strict=strict)

    rows = jacobian(gradient, xs, create_graph, strict, vectorize, outer_jacobian_strategy)
    return rows if many else rows[0][0]


@enable_grad()
def vhp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), v times the Hessian) of a function of one element.  Source: torch.autograd.functional.vhp."""
    many, xs = _inputs(inputs, "vhp", create_graph=create_graph)
    vs = _vector(v, xs, many, "vhp")
    y = _scalar(func, xs, name="vhp", strict=strict)
    gradient = _pulled((y,), xs, create_graph=True, strict=strict)
    product = _pulled(gradient, xs, vs, create_graph=create_graph, strict=strict, what="jacobian")
    return _given((y,), False, create_graph), _given(product, many, create_graph)


@enable_grad()
def hvp(func: Callable[..., Any], inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> Any:
    """Return (func(*inputs), the Hessian times v) of a function of one element: a jvp of its gradient, as jvp computes it.

    vhp gives the same for less.  Source: torch.autograd.functional.hvp.
    """
    many, xs = _inputs(inputs, "hvp", create_graph=create_graph)
    vs = _vector(v, xs, many, "hvp")
    y = _scalar(func, xs, name="hvp", strict=strict)
    gradient = _pulled((y,), xs, create_graph=True, strict=strict)
    cts = tuple([zeros_like(x).requires_grad_() for x in xs])
    pulled = _pulled(gradient, xs, cts, create_graph=True, strict=strict, what="jacobian")
    product = _pulled(pulled, cts, vs, create_graph=create_graph)
    return _given((y,), False, create_graph), _given(product, many, create_graph)
