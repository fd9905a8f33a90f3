"""How a row is made, and how it is called: by `bind`, or in a short way that means the same where it is known to.

A first reading may leave out the short ways. [NOTE fast-path]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from .backend import CPU, HOST_ARRAY, HOST_SCALAR, dtype_of, host_array, on_0d, share_memory
from .graph.record import record_binary, record_unary
from .op import Op, bind, mismatch, step
from .state import current, watched
from .storage import kind_of
from .tensor import Tensor, base_tensor, storage_of
from .views import link, relate

if TYPE_CHECKING:
    from collections.abc import Callable


class OpFunction(Protocol):
    """A row as the function that one calls."""

    op: Op
    __name__: str
    __qualname__: str

    def __call__(self, *args: Any, **params: Any) -> Any: ...


def row(name: str, kernel: Any, *, arity: int = 0, doc: str | None = None, **rules: Any) -> OpFunction:
    """Make a row and return the function that calls it, with `arity` 1 or 2 in a short way where it can.

    A row that has an arity and is elementwise, or promotes, takes no parameters; any other that has one takes one tensor,
    gives one, and may have parameters: what it gives is held to the long way by tests/laws/test_short_ways.py.
    """
    op = Op(name, kernel, **rules)
    call = cast("OpFunction", (_general, _unary if op.elementwise or op.promote else _single, _binary)[arity](op))
    call.__name__ = call.__qualname__ = name
    call.__doc__ = doc or f"Source: torch.{name}."
    call.op = op
    op.call = call
    op.arity = arity
    return call


# ---------------------------------------------------------------- ways to call it
def _weaken(params: dict[str, Any]) -> None:
    """Put python's numbers for numpy's, in place: to torch these are as weak among types as any number."""
    for name, value in params.items():
        if isinstance(value, HOST_SCALAR):
            params[name] = value.item()


def _general(op: Op) -> Callable[..., Any]:
    def call(*args: Any, **params: Any) -> Any:
        _weaken(params)
        return bind(op, args, params)
    return call


def _unary(op: Op) -> Callable[..., Any]:
    """One argument: a floating base tensor on the host goes straight to the kernel, a wrapper to its level. [NOTE fast-path]"""
    kernel = CPU.kernel(op.kernel)
    kernel_0d = on_0d(kernel)

    def call(x: Tensor) -> Any:
        try:
            kind = x.kind
        except AttributeError:
            return bind(op, (x,), {})
        if watched:
            return bind(op, (x,), {})
        if kind.fast:
            array = kernel(x.value) if x.shape else kernel_0d(x.value)
            out = Tensor()
            out.owner = None
            out.shape = x.shape
            out.value = array
            out.kind = kind
            out.node = None
            out.store = None
            out.extra = None
            if x.node is not None and op.differentiable:
                state = current()
                if None not in state.grad_off:
                    record_unary(op, None, x, out, state)
            return out
        state = current()
        if x.owner in state.levels:
            return x.owner.unary(op, x, state)
        return bind(op, (x,), {})
    return call


def _single(op: Op) -> Callable[..., Any]:
    """One tensor and parameters: a base tensor on the host goes straight to the kernel, a wrapper to its level."""
    kernel = CPU.kernel(op.kernel)

    def call(x: Tensor, **params: Any) -> Any:
        _weaken(params)
        if watched or type(x) is not Tensor:
            return bind(op, (x,), params)
        if not x.kind.bare:
            state = current()
            if x.owner not in state.levels:
                return bind(op, (x,), params)
            out = x.owner.unary(op, x, state, params)
            if op.view and op.differentiable:
                link(out, x, step(op, (), params))
            return out
        try:
            array = kernel(x.value, **params)
        except ValueError as error:
            raise mismatch(op, (x,), error) from error
        if type(array) is not HOST_ARRAY:
            array = host_array(array)
        kind = x.kind if array.dtype is x.value.dtype else kind_of(dtype_of(array), CPU)
        shared = op.view and share_memory(array, x.value)
        out = base_tensor(array, kind, array.shape, storage_of(x) if shared else None)
        if x.node is not None and op.differentiable:
            state = current()
            if None not in state.grad_off:
                record_unary(op, None, x, out, state, params)
        if shared:
            relate(out, x, step(op, (), params))
        return out
    return call


def _binary(op: Op) -> Callable[..., Any]:
    """Two arguments: tensors of one kind, or a python number second, go the same short ways."""
    kernel = CPU.kernel(op.kernel)

    def call(x: Any, y: Any) -> Any:
        try:
            kind = x.kind
        except AttributeError:
            return bind(op, (x, y), {})
        if type(y) is Tensor:
            value, node, plain = y.value, y.node, y.kind is kind
        else:
            value, node, plain = y, None, type(y) is float or type(y) is int
        if watched or not plain:
            return bind(op, (x, y), {})
        if kind.fast:
            try:
                array = kernel(x.value, value)
            except ValueError as error:
                raise mismatch(op, (x, y), error) from None
            out = Tensor()
            out.owner = None
            out.shape = shape = array.shape
            out.value = array if shape else host_array(array)
            out.kind = kind
            out.node = None
            out.store = None
            out.extra = None
            if x.node is not None or node is not None:
                state = current()
                if None not in state.grad_off:
                    record_binary(op, None, x, y, out, state)
            return out
        state = current()
        if x.owner in state.levels and (type(y) is not Tensor or y.owner is x.owner):
            return x.owner.binary(op, x, y, state)
        return bind(op, (x, y), {})
    return call
