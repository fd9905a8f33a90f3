"""Ordinary autograd: level 0, and the same calls on the tensors of any other grad level.

Source: torch.autograd.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from ..errors import UsageError
from ..graph.node import RemovableHandle, hooks_of
from ..ops.creation import zeros_like
from ..state import show
from ..tensor import LEAF, Tensor, alias, edge, extra_of
from . import engine
from .grad_mode import enable_grad, no_grad, set_grad_enabled
from .grad_mode import is_grad_enabled as is_grad_enabled
from .gradcheck import gradcheck, gradgradcheck

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..interpreters.base import Interpreter
    from .function import Function

__all__ = ["Function", "Variable", "backward", "enable_grad", "grad", "gradcheck", "gradgradcheck", "no_grad",
           "set_grad_enabled", "shallow_detach"]

Variable = Tensor


def __getattr__(name: str) -> object:
    """Import what few programs need when one asks for it."""
    if name in ("Function", "function", "functional", "graph"):
        from importlib import import_module  # noqa: PLC0415

        module = import_module(f".{name.lower()}", __name__)
        return module.Function if name == "Function" else module
    msg = f"module 'minigrad.autograd' has no attribute {name!r}"
    raise AttributeError(msg)


def backward(tensors: Tensor | Sequence[Tensor], grad_tensors: Any = None, retain_graph: bool | None = None,
             create_graph: bool = False, inputs: Tensor | Sequence[Tensor] | None = None) -> None:
    """Accumulate the gradient of `tensors` into the `.grad` of leaves, or of `inputs` only.

    grad_tensors: one cotangent for each tensor, of its shape; may be left out for scalars.
    Raises UsageError where a tensor requires no grad, or where the graph has been freed.
    Source: torch.autograd.backward.
    """
    outputs = _tuple(tensors)
    cts = _tuple(grad_tensors) if grad_tensors is not None else (None,) * len(outputs)
    owner = _owner(outputs, "backward()")
    roots = [engine.root_of(y, ct, "backward()") for y, ct in zip(outputs, cts, strict=True)]
    targets = None
    if inputs is not None:
        targets = _tuple(inputs)
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
    owner = _owner(ys, "autograd.grad")
    for x in xs:
        if x.owner is not owner or x.node is None:
            msg = (f"One of the differentiated Tensors does not require grad: {x!r} is differentiated at "
                   f"{owner or 'level 0'}. [level stack: {show()}]")
            raise UsageError(msg)

    def run(*cts: Any) -> tuple[Any, ...]:
        roots = [engine.root_of(y, ct, "autograd.grad") for y, ct in zip(ys, cts, strict=True)]
        found = engine.backward(owner, roots, inputs=xs, retain_graph=keep, create_graph=create_graph)
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


def _owner(outputs: tuple[Tensor, ...], what: str) -> Interpreter | None:
    """The grad level that all outputs belong to; None is level 0."""
    owners = {y.owner for y in outputs}
    if len(owners) != 1 or any(o is not None and o.transparent for o in owners):
        found = ", ".join(str(o or "level 0") for o in owners)
        msg = (f"{what}: the outputs belong to {found}, and gradients are taken at one grad level: call it outside of vmap and "
               f"jvp, on outputs of one level. [level stack: {show()}]")
        raise UsageError(msg)
    return owners.pop()


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


def register_hook(x: Tensor, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
    """Call `hook(gradient)` when the gradient of `x` has been computed; it may return another.

    Source: torch.Tensor.register_hook.
    """
    if not x.requires_grad:
        msg = "cannot register a hook on a tensor that doesn't require gradient"
        raise UsageError(msg)
    target, nr = edge(x)
    if isinstance(target, Tensor):
        extra = extra_of(target)
        extra.hooks = [] if extra.hooks is None else extra.hooks
        return RemovableHandle(extra.hooks, hook)
    return RemovableHandle(hooks_of(target).tensor.setdefault(nr, []), hook)


def retain_grad(x: Tensor) -> None:
    """Keep the gradient of a tensor that is no leaf in its `.grad`.  Source: torch.Tensor.retain_grad."""
    if not x.requires_grad:
        msg = "can't retain_grad on Tensor that has requires_grad=False"
        raise UsageError(msg)
    if not x.is_leaf:
        target, nr = edge(x)
        hooks_of(target).retains[nr] = ref(x)


def register_post_accumulate_grad_hook(x: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Call `hook(x)` after a backward has accumulated into `x.grad`.

    Source: torch.Tensor.register_post_accumulate_grad_hook.
    """
    if not x.is_leaf or not x.requires_grad:
        msg = "post accumulate grad hooks cannot be registered on non-leaf tensors"
        raise UsageError(msg)
    extra = extra_of(x)
    extra.post_hooks = [] if extra.post_hooks is None else extra.post_hooks
    return RemovableHandle(extra.post_hooks, hook)
