"""A traced program: a list of nodes, each of which takes older ones.

Source: torch.fx.graph.
"""

from __future__ import annotations

import builtins
from contextlib import contextmanager
from keyword import iskeyword
from re import sub
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .node import OPCODES, Node, map_nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence


class Graph:
    """Nodes in the order in which they run.  Source: torch.fx.Graph."""

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self.users: dict[Node, dict[Node, None]] = {}
        """Of each node, those that take it."""
        self._names: dict[str, int] = {}
        self._at: int | None = None

    @property
    def nodes(self) -> Sequence[Node]:
        """The nodes, in order."""
        return self._nodes

    # ---------------------------------------------------------------- building
    def create_node(self, op: str, target: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None,
                    name: str | None = None) -> Node:
        """Add a node, at the end or where inserting_before says.  Raises UsageError for an unknown op.

        Source: torch.fx.Graph.create_node.
        """
        if op not in OPCODES:
            msg = f"invalid node op {op!r}: it is one of {', '.join(OPCODES)}."
            raise UsageError(msg)
        node = Node(self, self._named(name or str(getattr(target, "__name__", target))), op, target, tuple(args), kwargs or {})
        self.connect(node)
        self.users[node] = {}
        if self._at is None:
            self._nodes.append(node)
        else:
            self._nodes.insert(self._at, node)
            self._at += 1
        return node

    def placeholder(self, name: str) -> Node:
        """Add a parameter."""
        return self.create_node("placeholder", name, name=name)

    def get_attr(self, name: str) -> Node:
        """Add an attribute of the module that owns the graph."""
        return self.create_node("get_attr", name, name=name)

    def call_function(self, function: Callable[..., Any], args: tuple[Any, ...] = (),
                      kwargs: dict[str, Any] | None = None) -> Node:
        """Add a call of a function."""
        return self.create_node("call_function", function, args, kwargs)

    def call_method(self, name: str, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Node:
        """Add a call of a method of the first argument."""
        return self.create_node("call_method", name, args, kwargs)

    def output(self, value: Any) -> Node:
        """Add what the graph returns: a node, a constant, or a nest of them."""
        return self.create_node("output", "output", (value,))

    @contextmanager
    def inserting_before(self, node: Node) -> Iterator[None]:
        """Within this context nodes are added in front of `node`."""
        outside, self._at = self._at, self._nodes.index(node)
        try:
            yield
        finally:
            self._at = outside

    def erase_node(self, node: Node) -> None:
        """Remove a node that nobody takes.  Raises UsageError where somebody does."""
        if self.users[node]:
            msg = f"Tried to erase Node {node} but it still had {len(self.users[node])} users in the graph: {self.users[node]}!"
            raise UsageError(msg)
        self.disconnect(node)
        del self.users[node]
        self._nodes.remove(node)

    def connect(self, node: Node) -> None:
        """Note that it takes its arguments."""
        for used in node.all_input_nodes:
            self.users[used][node] = None

    def disconnect(self, node: Node) -> None:
        """Note that it takes them no longer."""
        for used in node.all_input_nodes:
            self.users[used].pop(node, None)

    def _named(self, wanted: str) -> str:
        """A name that no other node has, and that python leaves to us."""
        base = sub(r"\W", "_", wanted) or "node"
        if base[0].isdigit():
            base = "_" + base
        count = self._names.get(base)
        if count is None and not iskeyword(base) and not hasattr(builtins, base) and base not in _TAKEN:
            self._names[base] = 0
            return base
        self._names[base] = (count or 0) + 1
        return self._named(f"{base}_{self._names[base]}")

    # ---------------------------------------------------------------- changing and checking
    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] = Node.is_impure) -> bool:
        """Remove what nobody takes, unless it does more than compute a value; returns whether anything went.

        Draws from a random stream stay: without one, those after it would draw other numbers.
        Source: torch.fx.Graph.eliminate_dead_code.
        """
        kept: list[Node] = []
        for node in reversed(self._nodes):
            if self.users[node] or is_impure_node(node):
                kept.append(node)
            else:
                self.disconnect(node)
                del self.users[node]
        gone = len(kept) < len(self._nodes)
        self._nodes[:] = reversed(kept)
        return gone

    def lint(self) -> None:
        """Raise UsageError unless every node takes older nodes of this graph, under names of their own."""
        seen: set[Node] = set()
        for node in self._nodes:
            for used in node.all_input_nodes:
                if used not in seen:
                    msg = (f"Argument '{used}' of Node '{node}' was used before it has been defined! Please check that Nodes "
                           "in the graph are topologically ordered.")
                    raise UsageError(msg)
            seen.add(node)
        if len({node.name for node in seen}) < len(seen):
            msg = "two nodes of the graph have one name."
            raise UsageError(msg)

    def find_nodes(self, *, op: str, target: Any = None) -> list[Node]:
        """The nodes of an op; of a target, where one is given."""
        return [node for node in self._nodes if node.op == op and (target is None or node.target == target)]

    # ---------------------------------------------------------------- for people
    def __str__(self) -> str:
        return "graph():\n" + "\n".join("    " + node.format_node() for node in self._nodes)

    def tabular(self) -> str:
        """The nodes as a table, with where each was traced.  torch.fx.Graph.print_tabular prints such a one."""
        lines = [["op", "name", "target", "args", "kwargs", "level", "pass", "region"]]
        lines += [[node.op, node.name, str(node.target), str(node.args), str(node.kwargs),
                   *(str(node.meta.get(key) or "") for key in lines[0][5:])] for node in self._nodes]
        return "\n".join(columns(lines))

    def print_tabular(self) -> None:
        """Print the nodes as a table.  Source: torch.fx.Graph.print_tabular."""
        print(self.tabular())  # noqa: T201  torch's name says so


def columns(lines: Sequence[Sequence[str]], right: Sequence[int] = ()) -> list[str]:
    """Lines of cells as text, in columns as wide as they need to be; those in `right` are aligned to the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.rjust(width) if i in right else cell.ljust(width)
                      for i, (cell, width) in enumerate(zip(line, widths, strict=True))).rstrip() for line in lines]


_TAKEN = {"self", "rows", "functions", "minigrad", "inf", "nan", "view_scatter", "leaves_of"}
"""The names that generated code knows."""
map_arg = map_nodes
