"""A rule of a row, and what its parameter names say it reads.

ct, dx      the cotangent of the output, the tangent of its input (the first parameter, whatever its name)
x0 x1 ..    inputs              out, out0 out1 ..    outputs         rest (rest2)    inputs from x1 (x2) on, as a tuple
shape0 ..   logical shapes of the inputs, `shapes` all of them       needs    whether each input requires grad
any other name is a keyword parameter of the op
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBERED = re.compile(r"(x|out|rest|shape)(\d+)")
_ALONE = {"out": None, "rest": 1, "shapes": None, "needs": None}


@cache
def meaning(name: str) -> tuple[str, Any]:
    """What a name stands for: its sort, and which of that sort; ("out", None) is the only output."""
    if name in _ALONE:
        return name, _ALONE[name]
    found = _NUMBERED.fullmatch(name)
    return (found[1], int(found[2])) if found else ("param", name)


def expand(name: str, n: int) -> tuple[str, ...]:
    """The inputs that a name stands for in an op with n inputs; any other name as it is."""
    sort, which = meaning(name)
    return tuple(f"x{i}" for i in range(which, n)) if sort == "rest" else (name,)


class Formula:
    """A rule, and what it reads."""

    __slots__ = ("function", "names", "reads")

    def __init__(self, function: Callable[..., Any]) -> None:
        code = function.__code__
        self.function = function
        self.names = code.co_varnames[1:code.co_argcount]
        self.reads = [meaning(name) for name in self.names]

    def tensors(self, n: int) -> list[str]:
        """The inputs and outputs that it reads, of an op with n inputs."""
        return [name for given in self.names for name in expand(given, n) if meaning(name)[0] in ("x", "out")]

    def compiled(self, place: dict[str, int], n: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function and its sources in a node: the position of a saved tensor, or a function of the node."""
        return self.function, tuple(place[name] if name in place else _source(name, place, n) for name in self.names)

    def __call__(self, ct: Any, inputs: list[Any], outs: Any, params: dict[str, Any]) -> Any:
        """Apply it to values at hand, as forward mode does."""
        return self.function(ct, *[_at_hand(sort, which, inputs, outs, params) for sort, which in self.reads])


def _source(name: str, place: dict[str, int], n: int) -> Callable[[Any, bool], Any]:
    match meaning(name):
        case "rest", _:
            positions = [place[given] for given in expand(name, n)]
            return lambda node, cg: tuple(node._unpack(k, cg) for k in positions)  # noqa: SLF001
        case "shape", i:
            return lambda node, cg: node.shapes[i]
        case "shapes", _:
            return lambda node, cg: node.shapes
        case "needs", _:
            return lambda node, cg: node.plan.needs
        case _:
            return lambda node, cg: node.params[name]


def _at_hand(sort: str, which: Any, inputs: list[Any], outs: Any, params: dict[str, Any]) -> Any:
    match sort:
        case "x":
            return inputs[which]
        case "out":
            return outs if which is None else outs[which]
        case "rest":
            return tuple(inputs[which:])
        case "shape":
            return inputs[which].shape
        case "shapes":
            return tuple(x.shape for x in inputs)
        case _:
            return params[which]
