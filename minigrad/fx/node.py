"""A node of a traced graph: one call of a base op, and which older nodes it takes.

Source: torch.fx.node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

if TYPE_CHECKING:
    from collections.abc import Callable

    from .graph import Graph

OPCODES = ("placeholder", "get_attr", "call_function", "call_method", "output")


class Node:
    """One step: what is called, on what.  Arguments are nodes, constants, or nests of them.  Source: torch.fx.Node.

    op        placeholder, get_attr, call_function, call_method or output
    target    the parameter's name, the attribute's, the function, the method's name, "output"
    meta      where it was traced: tensor_meta, memory, level, stack, pass, region (see minigrad/fx/meta.py)
    """

    __slots__ = ("__weakref__", "_args", "_graph", "_kwargs", "meta", "name", "op", "target")

    def __init__(self, graph: Graph, name: str, op: str, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self._graph = ref(graph)  # a graph owns its nodes, and nothing leads back [NOTE no-cycles]
        self.name = name
        self.op = op
        self.target = target
        self.meta: dict[str, Any] = {}
        self._args, self._kwargs = args, kwargs

    @property
    def graph(self) -> Graph:
        """The graph that it belongs to.  Raises ReferenceError where that has gone."""
        graph = self._graph()
        if graph is None:
            msg = f"the graph of node {self.name} has gone: keep the Graph, or its GraphModule."
            raise ReferenceError(msg)
        return graph

    @property
    def args(self) -> tuple[Any, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, new: tuple[Any, ...]) -> None:
        self._replace(new, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Any]:
        """The keyword arguments."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, new: dict[str, Any]) -> None:
        self._replace(self._args, new)

    def _replace(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.graph.disconnect(self)
        self._args, self._kwargs = args, kwargs
        self.graph.connect(self)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once."""
        found: dict[Node, None] = {}
        map_nodes((self._args, self._kwargs), lambda node: found.setdefault(node))
        return list(found)

    @property
    def users(self) -> dict[Node, None]:
        """The nodes that take it."""
        return self.graph.users[self]

    def replace_all_uses_with(self, other: Node) -> list[Node]:
        """Have whoever takes this node take another one; returns those nodes."""
        takers = list(self.users)
        for taker in takers:
            taker.replace_input_with(self, other)
        return takers

    def replace_input_with(self, old: Node, new: Node) -> None:
        """Take `new` wherever this node takes `old`."""
        args, kwargs = map_nodes((self._args, self._kwargs), lambda node: new if node is old else node)
        self._replace(args, kwargs)

    def is_impure(self) -> bool:
        """Whether it does more than compute a value: a parameter, the output, a write, a draw from a stream."""
        return self.op in ("placeholder", "output", "call_method") or getattr(self.target, "draws", False)

    def format_node(self) -> str:
        """The node as a line of text."""
        rest = ", ".join([*map(repr, self._args), *(f"{name}={value!r}" for name, value in self._kwargs.items())])
        if self.op in ("placeholder", "get_attr"):
            return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={self.target}]"
        if self.op == "output":
            return f"return {self._args[0]!r}"
        return f"%{self.name} : [num_users={len(self.users)}] = {self.op}[target={self.target}]({rest})"

    def __repr__(self) -> str:
        return self.name


def map_nodes(value: Any, f: Callable[[Node], Any]) -> Any:
    """A nest of arguments with f of every node in it.  Source: torch.fx.node.map_arg."""
    kind = type(value)
    if kind is Node:
        return f(value)
    if isinstance(value, (tuple, list)):
        made = [map_nodes(v, f) for v in value]
        return kind(*made) if hasattr(value, "_fields") else kind(made)
    if isinstance(value, dict):
        return {k: map_nodes(v, f) for k, v in value.items()}
    return value
