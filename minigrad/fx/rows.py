"""Every row by name, as the functions that traced graphs call: `rows.sin(x)`.

A row is named as torch names its op; where several rows are kinds of one op, by what tells them apart: `rows.max_all`.
A row that draws random numbers asks every level on the stack, as the program that was traced did.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..op import draw
from ..ops.aten import held

if TYPE_CHECKING:
    from ..op import Op


class Row:
    """A row as the target of a node."""

    __slots__ = ("__name__", "draws", "row")

    def __init__(self, name: str, op: Op) -> None:
        self.__name__ = name
        self.row = op
        self.draws = "generator" in getattr(getattr(op.kernel, "__code__", None), "co_varnames", ())

    def __call__(self, *args: Any, **params: Any) -> Any:
        return draw(self.row, params) if self.draws else self.row.call(*args, **params)

    def __repr__(self) -> str:
        return f"rows.{self.__name__}"

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return named, (self.__name__,)


_BY_NAME: dict[str, Row] = {}
_BY_OP: dict[Op, Row] = {}


def of(op: Op) -> Row:
    """The row of an op."""
    _find()
    found = _BY_OP.get(op)
    if found is None:  # of a program's own
        found = _BY_OP[op] = _BY_NAME[op.name] = Row(op.name, op)
    return found


def named(name: str) -> Row:
    """The row of that name.  Raises UsageError where there is none."""
    _find()
    if name not in _BY_NAME:
        msg = f"there is no row {name!r}: a graph can be kept as code where minigrad has all its ops."
        raise UsageError(msg)
    return _BY_NAME[name]


def __getattr__(name: str) -> Row:
    if name.startswith("__"):
        raise AttributeError(name)
    try:
        return named(name)
    except UsageError as error:
        raise AttributeError(*error.args) from None


def _find() -> None:
    """Name the rows, once."""
    if _BY_NAME:
        return
    several = [op.name for op, _ in held()]
    for op, variable in held():
        name = (op.name if several.count(op.name) == 1 else variable).rstrip("_")
        _BY_NAME[name] = _BY_OP[op] = Row(name, op)
