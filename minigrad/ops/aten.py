"""Rows under the names by which programs for torch call them: `minigrad.ops.aten.mm.default`.

What is called `aten.mm` is every row of that name, with an underscore before it too.  A row has no overloads, so `default`,
`Tensor` and the like all mean the row itself, as a policy or a dispatch mode meets it; where several rows are kinds of one
op (`max` of all, `max` along a dimension), they mean any of them.

Upstream: torch.ops.aten, which torch generates from native_functions.yaml.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any

from .. import ops
from ..op import Op

if TYPE_CHECKING:
    from collections.abc import Iterator


class Packet:
    """The rows of one name.  Source: torch._ops.OpOverloadPacket."""

    __slots__ = ("__name__", "_rows")

    def __init__(self, name: str, rows: tuple[Any, ...]) -> None:
        self.__name__ = name
        self._rows = rows

    def __getattr__(self, overload: str) -> Any:
        if overload[:1] == "_":
            raise AttributeError(overload)
        return self._rows[0] if len(self._rows) == 1 else Kinds(f"{self}.{overload}", self._rows)

    def __repr__(self) -> str:
        return f"minigrad.ops.aten.{self.__name__}"


class Kinds:
    """Equal to each of several rows."""

    __slots__ = ("_rows", "_text")

    def __init__(self, text: str, rows: tuple[Any, ...]) -> None:
        self._text = text
        self._rows = rows

    def __eq__(self, other: object) -> bool:
        return other in self._rows

    def __hash__(self) -> int:
        msg = f"{self} is equal to several rows, which have hashes of their own: look for it in a list."
        raise TypeError(msg)

    def __repr__(self) -> str:
        return self._text


@cache
def packet(name: str) -> Packet:
    """The rows of that name.  Raises AttributeError where there is none."""
    for given in (name, name.lstrip("_")):
        rows = tuple([op.call for op, _ in held() if op.name == given])
        if rows:
            return Packet(name, rows)
    msg = (f"no row is called {name!r}: at the base there are the rows of minigrad/ops, and `copy_`, which every in-place op "
           "comes to.")
    raise AttributeError(msg)


@cache
def held() -> tuple[tuple[Op, str], ...]:
    """Every row, and the name by which the modules of ops hold it: a variable that is called like the row, if there is one."""
    found: dict[Op, str] = {}
    for info in iter_modules(ops.__path__):
        for variable, value in vars(import_module(f"{ops.__name__}.{info.name}")).items():
            for key, op in _rows(value):
                if op not in found or found[op] != op.name:
                    found[op] = f"{op.name}_{key}" if key else variable.strip("_")
    return tuple(found.items())


def _rows(value: Any) -> Iterator[tuple[str, Op]]:
    """The rows that a module variable holds, itself or in a container, by their keys there."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    for key, f in value.items() if isinstance(value, dict) else [("", value)]:
        if isinstance(getattr(f, "op", None), Op):
            yield str(key), f.op


def __getattr__(name: str) -> Packet:
    if name[:2] == "__":
        raise AttributeError(name)
    return packet(name)
