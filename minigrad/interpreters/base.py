"""What every interpreter is: the meaning of ops, and of tensors, at one level.

No interpreter has a case for an op, and an op's row names no interpreter.  To add one, write these methods.

Upstream: FuncTorchInterpreter in torch/_functorch/pyfunctorch.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..tensor import NO_PARAMS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..autograd.function_call import Call
    from ..op import Op
    from ..state import State
    from ..tensor import Tensor


class Interpreter:
    """One level.  Compared by identity; `number` is for people."""

    __slots__ = ("__weakref__", "grad_off_outside", "number")
    name = "level"
    transparent = True
    """Whether `requires_grad` of a wrapper is that of the tensor below: the level has no graph."""
    immutable = False
    """Whether no memory is written under this level: it takes every assignment to itself."""
    readable = True
    """Whether python may look at a wrapper's one value."""
    by_hand = False
    """Whether a program entered it itself: it is no transform, and level 0 stays as open as outside."""

    def enter(self, outside: State) -> None:
        """Take a place on top of the stack."""
        self.number = len(outside.levels) + 1
        self.grad_off_outside = outside.grad_off

    def __str__(self) -> str:
        return f"{self.name}@{self.number}"

    def __repr__(self) -> str:
        return f"<{self}>"

    def process(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        """Give `op` its meaning here: unwrap, run one storey down, wrap."""
        raise NotImplementedError

    def unary(self, op: Op, x: Tensor, state: State, params: dict[str, Any] = NO_PARAMS) -> Any:
        """`process` for one wrapper of this level: an interpreter may know a shorter way."""
        return self.process(op, (x,), params)

    def binary(self, op: Op, x: Tensor, y: Any, state: State) -> Any:
        """`process` for two tensors, or for a wrapper and a python number, and no parameters."""
        return self.process(op, (x, y), {})

    def process_call(self, call: Call, args: tuple[Any, ...]) -> Any:
        """Give a call that has its own rules its meaning here, by the rule that is for this kind of level."""
        raise NotImplementedError

    def draw(self, op: Op, params: dict[str, Any]) -> Any:
        """Give an op without arguments, that draws random numbers, its meaning here."""
        raise NotImplementedError

    def describe(self, x: Tensor) -> str:
        """What a wrapper of this level remembers, for `repr`."""
        return ""

    def gradients(self, run: Callable[..., Any], outputs: Sequence[Any], inputs: Sequence[Any], cts: Sequence[Any],
                  retain_graph: bool) -> Sequence[Any]:
        """The gradients, in the graph of a level below, of outputs of this level, which has none; `run` gives those below."""
        raise self._not_here()

    def primal(self, x: Tensor) -> Tensor:
        """The tensor in whose graph a wrapper of this level, which has none, is differentiated."""
        raise self._not_here()

    def _not_here(self) -> UsageError:
        return UsageError(f"autograd: a tensor belongs to {self}, and gradients are taken at one grad level: call it outside "
                          f"of {self.name}, on outputs of one level.")

    def detach_(self, x: Tensor) -> None:
        """Make `x`, a wrapper of this level, forget what it was computed from at this level."""
        x.node = None

    def holds(self, x: Tensor) -> bool:
        """Whether `x` is inside a wrapper of this level, so that it cannot become one."""
        return False

    def assign(self, x: Tensor, new: Any) -> None:
        """Make `x`, a wrapper of this level, hold `new`: the end of every in-place op. [NOTE in-place]"""
        raise NotImplementedError

    def adopt(self, x: Tensor, inside: Tensor) -> None:
        """Turn the handle `x` into a wrapper of this level around `inside`, that remembers nothing yet."""
        x.owner = self
        x.value = inside
        x.kind = inside.kind.above
        x.node = None
        x.note = None

    def escaped(self, x: Tensor) -> Any:
        """What a wrapper means after this level has gone: the tensor one storey down. [NOTE escaped-tensor]"""
        return x.value

    def shallow_detach(self, x: Tensor, further: Callable[[Tensor], Tensor]) -> Tensor:
        """`x` without what its innermost differentiating level remembers; `further` asks the tensor below."""
        return x.value  # type: ignore[no-any-return]

    def hidden(self, x: Tensor) -> int | None:
        """The dimension of the tensor one storey down that a wrapper of this level does not show."""
        return None

    def parts(self, x: Tensor) -> tuple[Tensor, ...]:
        """The tensors one storey down that a wrapper is made of."""
        return (x.value,)

    def rewrap(self, x: Tensor) -> Callable[..., Tensor]:
        """A function of new parts that makes a wrapper with the metadata of `x`, its edge too, and none of its data."""
        raise NotImplementedError

    def renew(self, x: Tensor) -> Callable[..., Tensor]:
        """A function of new parts that makes a fresh wrapper with the metadata of `x`: its flags, and no edge."""
        raise NotImplementedError
