"""A graph as python code, and code as a graph again.

The code is a function of the module that owns the graph: it reads attributes, calls rows, and returns a nest of what they gave.
Run on the real rows it computes; run on recorders it builds the graph that it was written from.
"""

from __future__ import annotations

from math import inf, nan
from operator import getitem
from typing import TYPE_CHECKING, Any

import minigrad

from ..backend import Device
from ..random import default_generator
from ..tree import leaves_of
from . import rows
from .graph import Graph
from .memory import view_scatter
from .node import Node

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .rows import Row


def python_code(graph: Graph, parameters: Mapping[str, int | None], notes: Callable[[Node], str] | None = None) -> str:
    """The source of `forward`.

    parameters: of each its name, and how many leaves it holds, where it is a nest; notes: a comment for each node.
    """
    given = iter(graph.find_nodes(op="placeholder"))
    lines = [f"def forward({', '.join(['self', *parameters])}):"]
    for name, count in parameters.items():
        if count is not None:
            lines.append(f"    {''.join(next(given).name + ', ' for _ in range(count))}= leaves_of({name})" if count else "")
        elif (node := next(given)).name != name:
            lines.append(f"    {node.name} = {name}")
    names = {function: name for name, function in functions_of(graph).items()}
    for node in graph.nodes:
        if node.op != "placeholder":
            line, note = _statement(node, names), notes(node) if notes is not None else ""
            lines.append(f"    {line:55}  # {note}".rstrip() if note else f"    {line}")
    return "\n".join(filter(None, lines)) + "\n"


def functions_of(graph: Graph) -> dict[str, Callable[..., Any]]:
    """The functions that are no rows, by the names that code has for them."""
    found: dict[str, Callable[..., Any]] = {}
    for node in graph.find_nodes(op="call_function"):
        if row_of(node.target) is None and node.target not in (getitem, view_scatter, *found.values()):
            name = node.target.__name__ if node.target.__name__.isidentifier() else "function"
            found[name if name not in found else f"{name}_{len(found)}"] = node.target
    return found


def row_of(target: Any) -> Row | None:
    """The row that a function is."""
    return target if type(target) is rows.Row else rows.of(target.op) if hasattr(target, "op") else None


def _statement(node: Node, names: Mapping[Any, str]) -> str:
    if node.op == "output":
        return f"return {text(node.args[0])}"
    if node.op == "get_attr":
        return f"{node.name} = self.{node.target}"
    if node.target is getitem:
        return f"{node.name} = {node.args[0]}[{node.args[1]!r}]"
    rest = ", ".join([*map(text, node.args[node.op == "call_method":]), *(f"{k}={text(v)}" for k, v in node.kwargs.items())])
    if node.op == "call_method":
        return f"{node.name} = {node.args[0]}.{node.target}({rest})"
    called = names.get(node.target)
    function = f"functions.{called}" if called else "view_scatter" if node.target is view_scatter else row_of(node.target)
    return f"{node.name} = {function}({rest})"


def text(value: Any) -> str:
    """A constant, or a nest of nodes and constants, as python code."""
    kind = type(value)
    if kind in (tuple, list):
        inner = ", ".join(map(text, value))
        return f"[{inner}]" if kind is list else f"({inner}{',' * (len(value) == 1)})"
    if kind is dict:
        return "{" + ", ".join(f"{k!r}: {text(v)}" for k, v in value.items()) + "}"
    if isinstance(value, Device):
        return f"minigrad.device({str(value)!r})"
    if value is default_generator:
        return "minigrad.default_generator"
    return repr(value)


def is_text(value: Any) -> bool:
    """Whether a constant can be written down; what cannot becomes an attribute of the module."""
    kind = type(value)
    if kind in (tuple, list):
        return all(map(is_text, value))
    if kind is dict:
        return all(isinstance(k, (str, int)) for k in value) and all(map(is_text, value.values()))
    if kind is slice:
        return all(map(is_text, (value.start, value.stop, value.step)))
    return (kind in (bool, int, float, complex, str, type(None), type(Ellipsis), Node, rows.Row) or isinstance(value, Device)
            or value is default_generator or repr(value).startswith("minigrad."))


def compiled(code: str, functions: Any, **others: Any) -> Callable[..., Any]:
    """The function that the source of `forward` defines; `functions` has those that are no rows, `others` replace names."""
    known: dict[str, Any] = {"functions": functions, "rows": rows, "view_scatter": view_scatter, "leaves_of": leaves_of,
                             "minigrad": minigrad, "inf": inf, "nan": nan, **others}
    exec(compile(code, "<traced graph>", "exec"), known)  # noqa: S102  the code was written by python_code
    return known.pop("forward")  # type: ignore[no-any-return]  # whose globals must not hold it [NOTE no-cycles]


# ---------------------------------------------------------------- back
class _Recorded:
    """A value while a graph is rebuilt: what is done with it becomes a node."""

    def __init__(self, node: Node) -> None:
        self.node = node

    def __getitem__(self, index: int) -> _Recorded:
        return _Recorded(self.node.graph.call_function(getitem, (self.node, index)))

    def copy_(self, source: _Recorded) -> _Recorded:
        return _Recorded(self.node.graph.call_method("copy_", (self.node, source.node)))


class _Attributes:
    """The module, while a graph is rebuilt."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def __getattr__(self, name: str) -> _Recorded:
        return _Recorded(self._graph.get_attr(name))


class _Namespace:
    """Functions by name, while a graph is rebuilt."""

    def __init__(self, graph: Graph, find: Callable[[str], Any]) -> None:
        self._graph = graph
        self._find = find

    def __getattr__(self, name: str) -> _Recorder:
        return _Recorder(self._graph, self._find(name))


class _Recorder:
    """A function while a graph is rebuilt."""

    def __init__(self, graph: Graph, target: Row | Callable[..., Any]) -> None:
        self.graph = graph
        self.target = target

    def __call__(self, *args: Any, **kwargs: Any) -> _Recorded:
        return _Recorded(self.graph.call_function(self.target, _plain(args), _plain(kwargs)))


def _plain(value: Any) -> Any:
    if isinstance(value, _Recorded):
        return value.node
    if isinstance(value, _Recorder):
        return value.target
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    return {k: _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def graph_of(code: str, parameters: Mapping[str, int | None], functions: Mapping[str, Callable[..., Any]]) -> Graph:
    """The graph that some code was written from; its nodes are named anew."""
    graph = Graph()
    given = [_Recorded(graph.placeholder(name)) if count is None else [
        _Recorded(graph.placeholder(f"{name}_{i}")) for i in range(count)] for name, count in parameters.items()]
    forward = compiled(code, _Namespace(graph, functions.__getitem__), rows=_Namespace(graph, rows.named),
                       view_scatter=_Recorder(graph, view_scatter), leaves_of=list)
    graph.output(_plain(forward(_Attributes(graph), *given)))
    return graph
