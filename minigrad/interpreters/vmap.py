"""The vmap interpreter: one op on a batch means the op on every sample.

A tensor of this level hides one physical dimension, its batch dim; a tensor that does not belong to this level is the
same for every sample.

Upstream: VmapInterpreter, BatchedTensorImpl, BatchedFallback.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import LevelError, UsageError
from ..op import draw_below
from ..ops.batching import to_front
from ..ops.inplace import assign
from ..ops.shape import moveaxis
from ..tensor import NO_PARAMS, Tensor, wrapper
from .base import Interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..autograd.function_call import Call
    from ..op import Op
    from ..state import State

RANDOMNESS = ("error", "same", "different")


class VmapInterpreter(Interpreter):
    """One batched level; its tensors are `wrapper(me, value, note=bdim)`."""

    __slots__ = ("randomness", "size")
    name = "vmap"
    readable = False

    def __init__(self, size: int, randomness: str) -> None:
        if randomness not in RANDOMNESS:
            msg = f"randomness must be one of {RANDOMNESS}, found {randomness!r}."
            raise UsageError(msg)
        self.size = size
        self.randomness = randomness

    def batched(self, value: Tensor, bdim: int) -> Tensor:
        """`value` with its physical dimension `bdim` hidden."""
        x = wrapper(self, value, note=bdim)
        x.shape = value.shape[:bdim] + value.shape[bdim + 1:]
        return x

    def process(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        values = [x.value if type(x) is Tensor and x.owner is self else x for x in args]
        bdims = [x.note if type(x) is Tensor and x.owner is self else None for x in args]
        out, bdim = op.batch(op, self.size, values, bdims, params)
        if op.outs == 1:
            return out if bdim is None else self.batched(out, bdim)
        each = bdim if isinstance(bdim, (tuple, list)) else [bdim] * len(out)
        return tuple([o if b is None else self.batched(o, b) for o, b in zip(out, each, strict=True)])

    def unary(self, op: Op, x: Tensor, state: State, params: dict[str, Any] = NO_PARAMS) -> Any:
        if op.elementwise:  # whose rule has nothing to move [NOTE fast-path]
            return self.batched(op.call(x.value), x.note)
        out, bdim = op.batch(op, self.size, [x.value], [x.note], params)
        return out if bdim is None else self.batched(out, bdim)

    def binary(self, op: Op, x: Tensor, y: Any, state: State) -> Any:
        number = type(y) is not Tensor
        if op.elementwise and (number or (x.note == y.note and len(x.shape) == len(y.shape))):
            return self.batched(op.call(x.value, y if number else y.value), x.note)
        return self.process(op, (x, y), {})

    def process_call(self, call: Call, args: tuple[Any, ...]) -> Any:
        return call.at_vmap(self, args)

    def draw(self, op: Op, params: dict[str, Any]) -> Any:
        if self.randomness == "error":
            msg = (f"vmap: called random operation while in randomness error mode ({op.name}). Please either "
                   "use the 'same' or 'different' randomness flags on vmap or perform the randomness operation out of vmap.")
            raise UsageError(msg)
        if self.randomness == "same":
            return draw_below(self, op, params)
        out = draw_below(self, op, {**params, "shape": (self.size, *params["shape"])})
        return self.batched(out, 0)

    def assign(self, x: Tensor, new: Tensor) -> None:
        value = new.value if new.owner is self else new
        assign(x.value, moveaxis(to_front(value, new.note if new.owner is self else None, self.size), 0, x.note))

    def adopt(self, x: Tensor, inside: Tensor) -> None:
        msg = ("vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor `other` in "
               "extra_args that has more elements than `self`. This happened due to `other` being vmapped over but `self` "
               f"not being vmapped over in a vmap ({self}). Please use the out-of-place version, or make `self` with "
               "zeros_like or new_zeros of a batched tensor.")
        raise UsageError(msg)

    def describe(self, x: Tensor) -> str:
        return f", bdim={x.note}"

    def hidden(self, x: Tensor) -> int | None:
        return x.note  # type: ignore[no-any-return]

    def escaped(self, x: Tensor) -> Any:
        msg = (f"Your tensor may have escaped from inside a function being vmapped: it belongs to {self}, which is not on the "
               "level stack. Return it from the function that is vmapped instead. [NOTE escaped-tensor]")
        raise LevelError(msg)

    def shallow_detach(self, x: Tensor, further: Callable[[Tensor], Tensor]) -> Tensor:
        return self.batched(further(x.value), x.note)

    def rewrap(self, x: Tensor) -> Callable[..., Tensor]:
        bdim = x.note
        return lambda value: self.batched(value, bdim)

    renew = rewrap
