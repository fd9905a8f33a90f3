"""What a traced graph keeps from a forward to its backward: what is computed before and taken from then on.

    print(kept(gm.graph))

In the graph nothing is hidden any more: a save is an edge that leads from a node of the forward to one of the backward, a
checkpointed region leads none but from its inputs, and save_on_cpu leads one from a copy on the host.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .graph import columns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .graph import Graph
    from .node import Node


class Kept(NamedTuple):
    """A value that outlives the forward of a level."""

    node: Node
    users: tuple[Node, ...]
    """Who takes it in the backward, or in a recomputation."""
    nbytes: int
    """Of its memory; 0 where an earlier line has counted that."""

    @property
    def given(self) -> bool:
        """Whether the graph did not compute it: an argument, or an attribute."""
        return self.node.op in ("placeholder", "get_attr")


class Table:
    """Of each level that a graph runs backward, in that order, what is kept for it."""

    def __init__(self, levels: dict[str, list[Kept]]) -> None:
        self.levels = levels

    def nbytes(self, level: str) -> int:
        """Bytes that the forward computed and that are kept for the backward of a level."""
        return sum(k.nbytes for k in self.levels[level] if not k.given)

    def __str__(self) -> str:
        parts = []
        for level, rows in self.levels.items():
            lines = [["kept for " + level, "value", "bytes", "from", "for"]]
            lines += [[k.node.name, str(k.node.meta["tensor_meta"]), str(k.nbytes), _origin(k), ", ".join(map(str, k.users))]
                      for k in rows]
            head, *body = columns(lines, right=(2,))
            total = f"computed: {self.nbytes(level)} bytes, given: {sum(k.nbytes for k in rows if k.given)} bytes"
            parts.append("\n".join([head, "-" * max(map(len, [head, *body])), *body, total]))
        return "\n\n".join(parts) or "nothing is run backward"


def kept(graph: Graph) -> Table:
    """The table of a traced graph, whose nodes must be in the order of the trace."""
    nodes = list(graph.nodes)
    levels = dict.fromkeys(node.meta["level"] for node in nodes if node.meta.get("pass") == "backward")
    return Table({level: _kept(nodes, level) for level in levels})


def _kept(nodes: Sequence[Node], level: str) -> list[Kept]:
    begins = next(i for i, node in enumerate(nodes) if node.meta.get("pass") == "backward" and node.meta["level"] == level)
    begins = _with_recomputations(nodes, begins)
    after = set(nodes[begins:])
    counted: set[int] = set()
    found = []
    for node in nodes[:begins]:
        users = tuple([user for user in node.users if user in after and user.op != "output"])
        if users and "memory" in node.meta:
            number, nbytes = node.meta["memory"]
            found.append(Kept(node, users, 0 if number in counted else nbytes))
            counted.add(number)
    return found


def _with_recomputations(nodes: Sequence[Node], begins: int) -> int:
    """A backward that begins with a recomputation begins there."""
    while begins and nodes[begins - 1].meta.get("pass") == "recomputation":
        begins -= 1
    return begins


def _origin(k: Kept) -> str:
    return {"placeholder": "argument", "get_attr": "attribute"}.get(
        k.node.op, ", ".join(filter(None, [k.node.meta.get("pass"), k.node.meta.get("region")])))
