"""Which node computes what a tensor holds: values are found by the memory they lie in. [NOTE traces-are-pure]

Handles are made anew all the time: a saved tensor, a detached one, a tensor taken out of its layers.  What stays is the memory.
So a value is known by its storage, the place in it, and the version.  Writing makes another version: the tensor that owns the
memory has a new node, and its views are made again from that when they are next read.  No node ever writes.

Upstream: FunctionalStorageImpl, at::functionalization (aten/src/ATen/FunctionalStorageImpl.cpp).
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakKeyDictionary, ref

from ..backend import address
from ..errors import InternalError, Refusal
from ..ops.inplace import embedded, overwrite
from ..tensor import storage_of
from ..views import order_of
from . import rows

if TYPE_CHECKING:

    from ..dtypes import dtype
    from ..op import Op
    from ..storage import Storage
    from ..tensor import Tensor
    from .graph import Graph
    from .node import Node
    from .rows import Row


class Place(NamedTuple):
    """Where in a memory a tensor lies."""

    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: dtype


def place_of(x: Tensor, store: Storage) -> Place:
    """The place of a base tensor in its memory."""
    return Place(address(x.value) - address(store.array), x.value.shape, x.value.strides, x.dtype)


class View:
    """A place in a memory: the node that computed it, at which version; and how it is made from another place."""

    __slots__ = ("node", "of", "step", "version")

    def __init__(self, node: Node, version: int, of: Place | None, step: tuple[Row, dict[str, Any]] | None) -> None:
        self.node = node
        self.version = version
        self.of = of
        self.step = step


class Memory:
    """What is known of one storage."""

    __slots__ = ("number", "outside", "views", "written")

    def __init__(self, number: int) -> None:
        self.number = number
        self.outside = False
        """Whether the trace did not make it."""
        self.views: dict[Place, View] = {}
        self.written = False


class Memories:
    """The nodes of all values that are alive.  Storages and handles are referred to weakly."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.known: WeakKeyDictionary[Storage, Memory] = WeakKeyDictionary()
        self.handles: dict[int, tuple[ref[Tensor], Node, ref[Storage], int]] = {}
        """By id, as tensors are compared by value: the tensor, its node, and the memory and version for which that holds."""
        self.count = 0

    def add(self, x: Tensor, node: Node, *, of: Tensor | None = None, step: tuple[Op, dict[str, Any]] | None = None) -> None:
        """Note that `node` computes `x`, which may be a view: what `step` makes of another tensor in the same memory."""
        store = storage_of(x)
        memory, here = self.memory(store), place_of(x, store)
        view = memory.views.get(here)
        if view is None and of is not None and step is not None and storage_of(of) is store:
            memory.views[here] = View(node, store.version, place_of(of, store), (rows.of(step[0]), step[1]))
        elif view is None:
            memory.views[here] = View(node, store.version, None, None)
        elif view.version != store.version:
            view.node, view.version = node, store.version
        self.handles[id(x)] = ref(x), node, ref(store), store.version
        node.meta.setdefault("memory", (memory.number, store.nbytes()))

    def memory(self, store: Storage) -> Memory:
        """What is known of a storage, from now on."""
        found = self.known.get(store)
        if found is None:
            found = self.known[store] = Memory(self.count)
            self.count += 1
        return found

    def find(self, x: Tensor) -> Node | None:
        """The node that computes what `x` holds now, or None for a tensor of memory that nobody knows."""
        store = storage_of(x)
        handle = self.handles.get(id(x))
        if handle is not None and handle[0]() is x and handle[2]() is store and handle[3] == store.version:
            return handle[1]  # the very tensor that an op gave, which may be a detached one
        memory, here = self.known.get(store), place_of(x, store)
        if memory is None or here not in memory.views:
            if memory is not None and (memory.written or not memory.outside):
                raise _torn(x) if memory.outside else _unknown(x)
            return None
        return self._current(memory, here, store, x)

    def _current(self, memory: Memory, here: Place, store: Storage, x: Tensor) -> Node:
        """The node of a place at the version the memory has now: where it is a stale view, made again."""
        todo = []
        view = memory.views[here]
        while view.version != store.version:
            if view.of is None or view.step is None:
                raise _torn(x)
            todo.append(view)
            view = memory.views[view.of]
        node = view.node
        while todo:
            view = todo.pop()
            assert view.step is not None
            node = self.graph.call_function(view.step[0], (node,), view.step[1])
            node.meta["memory"] = memory.number, store.nbytes()
            view.node, view.version = node, store.version
        return node

    def restored(self, store: Storage, copied: Memory, owners: dict[Place, Node]) -> None:
        """Note that a new memory holds what another one held: the nodes of the tensors in it, and of views the way to them."""
        memory = self.memory(store)
        for here, view in copied.views.items():
            if view.of is not None:
                memory.views[here] = View(view.node, -1, view.of, view.step)
            elif here in owners:
                memory.views[here] = View(owners[here], store.version, None, None)
                owners[here].meta["memory"] = memory.number, store.nbytes()

    def write(self, x: Tensor, new: Tensor, value: Node) -> None:
        """Write, and note what that means: another value of the tensor that owns the memory, in which this part is `value`."""
        store, whole = storage_of(x), value
        memory, here = self.known[store], place_of(x, store)
        root, steps = here, []
        while (step := memory.views[root].step) is not None:
            steps.append(step)
            root = memory.views[root].of or root
        if steps:
            before = self._current(memory, root, store, x)
            whole = self.graph.call_function(view_scatter, (before, value, *reversed(steps)))
            whole.meta.update({**value.meta, "tensor_meta": before.meta["tensor_meta"], "memory": before.meta["memory"]})
        overwrite(x, new)
        memory.written = True
        for place, node in ((root, whole), (here, value)):
            memory.views[place].node, memory.views[place].version = node, store.version


def view_scatter(x: Tensor, src: Tensor, *views: tuple[Row, dict[str, Any]]) -> Tensor:
    """A copy of `x` in which a view of it holds `src`; `views`: the rows, with their parameters, that lead to the view.

    Source: torch.slice_scatter, torch.select_scatter, torch.diagonal_scatter, of which it is the general form.
    """
    return embedded(x, tuple([partial(row, **params) for row, params in views]), src, order_of(x))


def _torn(x: Tensor) -> Refusal:
    return Refusal(
        f"a traced function writes to memory that it meets as two tensors, neither of them a view of the other that was made "
        f"in the trace (one is {x.dtype}{list(x.shape)}): what the other then holds cannot be told. Pass the tensor that owns "
        "the memory, and take the views inside. [NOTE traces-are-pure]")


def _unknown(x: Tensor) -> InternalError:
    return InternalError(f"a trace met a tensor ({x.dtype}{list(x.shape)}) in memory that it made, and no op made the tensor.")
