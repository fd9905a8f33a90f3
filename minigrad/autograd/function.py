"""autograd.Function, and backwards that are not to be differentiated. [NOTE custom-function]

Source: torch.autograd.function.
"""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..ops.shape import clone
from ..state import current
from ..tensor import Tensor
from ..tree import leaves_of
from .function_call import DOCS, Call, VmapInfo
from .function_node import FunctionCtx, mapped
from .grad_mode import no_grad

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Function", "FunctionCtx", "VmapInfo", "once_differentiable"]


class Function:
    """Subclass it, with staticmethods forward and backward (or vjp), jvp, vmap, setup_context; call `apply`.

    forward(ctx, *args), or forward(*args) with setup_context(ctx, inputs, output), which transforms need: they set up a context
    for each level.  Source: torch.autograd.Function.
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refuse: instances are of the days before static methods."""
        msg = ("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function "
               f"with static forward method: call {type(self).__name__}.apply(...).")
        raise UsageError(msg)

    generate_vmap_rule = False
    """Whether vmap may run the staticmethods themselves on a batched level."""

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the output, a tensor or a tuple; nothing is recorded here."""
        msg = "You must implement the forward function for custom autograd.Function."
        raise NotImplementedError(msg)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note in `ctx` what backward or jvp need."""
        msg = "setup_context is not implemented."
        raise NotImplementedError(msg)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """From a gradient for each output, return one for each input, or None."""
        msg = ("You must implement either the backward or vjp method for your custom autograd.Function to use it with backward "
               "mode AD.")
        raise NotImplementedError(msg)

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """From a tangent for each input, or None, return one for each output."""
        msg = "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        raise NotImplementedError(msg)

    @staticmethod
    def vmap(info: VmapInfo, in_dims: tuple[int | None, ...], *args: Any) -> Any:
        """From batched arguments, return (output, out_dims)."""
        raise NotImplementedError

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        separate = cls.setup_context is not Function.setup_context
        if separate and (kwargs or getattr(cls.forward, "__defaults__", None)):
            bound = inspect.signature(cls.forward).bind(*args, **kwargs)
            bound.apply_defaults()
            if bound.kwargs:
                msg = (f"{cls.__name__}.apply: autograd.Function with kwarg-only Tensor args, or any kwarg-only argument, is "
                       f"not supported: setup_context and vmap would not be given it. Got: {', '.join(bound.kwargs)}")
                raise NotImplementedError(msg)
            args = bound.args
        elif kwargs:
            msg = f"{cls.__name__}.apply() takes no keyword arguments"
            raise TypeError(msg)
        return Call(cls.__name__, forward=cls.forward, setup_context=cls.setup_context if separate else None,
                    backward=_backward(cls), jvp=cls.jvp, vmap=_vmap(cls))(args)


def _backward(cls: type[Function]) -> Callable[..., Any]:
    if cls.vjp is Function.vjp:
        return cls.backward
    if cls.backward is not Function.backward:
        msg = ("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement one of "
               "them.")
        raise UsageError(msg)
    return cls.vjp


def _vmap(cls: type[Function]) -> Callable[..., Any] | None:
    """The vmap staticmethod, None where it is generated; where neither or both, a function that says so."""
    own = cls.vmap is not Function.vmap
    if own != cls.generate_vmap_rule:
        return cls.vmap if own else None

    def refused(*args: Any) -> Any:
        fault = ("it has both generate_vmap_rule=True and an overridden vmap staticmethod. Please set generate_vmap_rule=False "
                 "or delete the overridden vmap staticmethod to avoid ambiguity." if own else
                 "it does not have vmap support. Please override and implement the vmap staticmethod or set "
                 "generate_vmap_rule=True.")
        msg = f"You tried to vmap over {cls.__name__}, but {fault} {DOCS}"
        raise UsageError(msg)
    return refused


# ---------------------------------------------------------------- backwards that are not differentiable


def once_differentiable(backward: Callable[..., Any]) -> Callable[..., Any]:
    """Run a backward with nothing recorded; a derivative of what it returns is an error, at every level that would record it.

    Source: torch.autograd.function.once_differentiable.
    """
    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        with no_grad():
            out = backward(ctx, *grads)
        state = current()
        if None in state.grad_off and all(me.transparent or me in state.grad_off for me in state.levels):
            return out
        read = [x for x in leaves_of((grads, ctx.saved_tensors, list(vars(ctx).values()))) if isinstance(x, Tensor)]
        return mapped(out, lambda g: Once.apply(g, *read) if g.dtype.differentiable else g)
    return wrapper


class Once(Function):
    """The first of its arguments; its derivative with respect to any is an error."""

    generate_vmap_rule = True

    @staticmethod
    def forward(g: Tensor, *read: Tensor) -> Tensor:
        return clone(g)  # type: ignore[no-any-return]

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        msg = ("trying to differentiate twice a function that was marked with @once_differentiable. Without the mark its "
               "backward is recorded; of checkpoint, with use_reentrant=False.")
        raise UsageError(msg)

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        return grad_inputs[0]
