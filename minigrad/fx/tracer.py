"""Tracing: a dispatch mode that writes down every op that reaches the base. [NOTE traces-are-pure]

It stands below every level, level 0 too, so one trace holds the forward, the recomputations and the backwards of whatever
transforms were nested, as the base ops that they came to.

Upstream: ProxyTorchDispatchMode in torch/fx/experimental/proxy_tensor.py.
"""

from __future__ import annotations

from operator import getitem
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from .. import tree
from ..backend import CPU
from ..errors import Refusal
from ..ops.inplace import along, overwrite
from ..random import Generator, stream_of
from ..state import Watcher, current, show, using
from ..tensor import Tensor, bottom, storage_of
from . import rows
from .code import is_text
from .graph import Graph
from .memory import Memories, Memory, Place
from .meta import Regions, TensorMetadata, place

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Device
    from ..op import Op
    from .node import Node

CONSTANT = "lift_fresh"
"""The row of data that a program wrote down."""


class Tracer(Watcher):
    """One trace: the graph so far, and which node computes what."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.values = Memories(self.graph)
        self.attributes: dict[str, Any] = {}
        self.outside: list[tuple[Tensor, Node]] = []
        """The tensors that the trace did not make, with their nodes: what is written to them is written back."""
        self.draws: dict[Any, Node] = {}
        """Of each place of a stream, what was drawn there: a recomputation draws the same again. [NOTE one-draw-in-a-trace]"""
        self.constants: dict[int, Node] = {}
        self.hosts: WeakKeyDictionary[Any, tuple[Memory, dict[Place, Node]]] = WeakKeyDictionary()
        """Of each host copy of save_on_cpu the memory, and by place the nodes of the copies."""
        self.regions = Regions()

    # ---------------------------------------------------------------- values from outside
    def argument(self, x: Any, name: str) -> None:
        """Add a parameter of the traced function."""
        node = self.graph.placeholder(name)
        if isinstance(x, Tensor):
            self._from_outside(x, node)

    def _from_outside(self, x: Tensor, node: Node) -> None:
        self._look(node, x)
        self.values.add(x, node)
        self.values.memory(storage_of(x)).outside = True
        self.outside.append((x, node))

    def node_of(self, x: Tensor) -> Node:
        """The node that computes what a base tensor holds now; for one from outside, a node made now."""
        node = self.values.find(x)
        if node is None or (x.node is not None and self._without_history(node, x)):
            node = self._lift(x)
        return node

    def _without_history(self, node: Node, x: Tensor) -> bool:
        """Whether a captured tensor was met first as another handle, without its edge: what is kept of it, or its data."""
        held = self.attributes.get(node.target) if node.op == "get_attr" else None
        return isinstance(held, Tensor) and held.node is None and self.values.memory(storage_of(x)).outside

    def _lift(self, x: Tensor) -> Node:
        """The node of a tensor that the function captured: an attribute, the tensor itself, or a view of the one it is of."""
        if x.extra is not None and x.extra.root is not None:
            state = current()
            with using(state._replace(dispatch_modes=(*state.dispatch_modes, self))):
                return self.node_of(along(x.extra.root, x.extra.steps))
        node = self._attribute("_param_constant" if x.extra is not None and x.extra.role else "_tensor_constant", x)
        self._from_outside(x, node)
        return node

    def _attribute(self, prefix: str, value: Any) -> Node:
        name = f"{prefix}{sum(known.startswith(prefix) for known in self.attributes)}"
        self.attributes[name] = value
        return self.graph.get_attr(name)

    @staticmethod
    def _look(node: Node, x: Tensor) -> None:
        node.meta["tensor_meta"] = TensorMetadata(x.value.shape, x.dtype)

    # ---------------------------------------------------------------- what reaches the base
    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        op = getattr(func, "op", None)
        if op is not None:
            return self._row(op, func, args, kwargs)
        if func is overwrite:
            x, new = args
            self.node_of(x)
            self.values.write(x, new, self.node_of(new))
            return x
        self._look_at(args[0], func.__name__)
        return func(*args, **kwargs)

    def notice(self, event: str, owner: Any, subject: Any, detail: Any) -> None:
        if event == "read":
            self._look_at(subject, detail)
        elif event == "offload":
            memory = self.values.memory(detail)
            self.hosts[subject] = memory, {here: self._moved(view.node, subject.kind.device, CPU)
                                           for here, view in memory.views.items() if view.of is None}
        elif event == "restore" and subject in self.hosts:
            memory, owners = self.hosts[subject]
            self.values.restored(detail, memory, {
                here: self._moved(node, CPU, subject.kind.device) for here, node in owners.items()})

    def _moved(self, node: Node, source: Device, target: Device) -> Node:
        """A copy on another device, as the row makes it that a program would call."""
        made = self.graph.call_function(rows.named("_to_copy_device"), (node,), {"source": source, "target": target})
        made.meta.update({"tensor_meta": node.meta["tensor_meta"]}, **self._place())
        return made

    def _row(self, op: Op, func: Callable[..., Any], args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        drawn = None
        if "generator" in params:
            drawn = (stream_of(params["generator"]).place, op, *params.items())
        out = func(*args, **params)
        if op.name == CONSTANT:
            self._add(self._attribute("_tensor_constant", out.clone()), out)
        elif drawn is not None and drawn in self.draws:
            self.values.add(out, self.draws[drawn])
        else:
            self._called(op, args, params, out)
            if drawn is not None:
                self.draws[drawn] = self.node_of(out)
        return out

    def _called(self, op: Op, args: tuple[Any, ...], params: dict[str, Any], out: Any) -> None:
        taken = tuple([self.node_of(x) if type(x) is Tensor else self._constant(x) for x in args])
        node = self.graph.call_function(rows.of(op), taken, {k: self._constant(v) for k, v in params.items()})
        if op.outs == 1:
            view = op.view and type(args[0]) is Tensor
            self._add(node, out, of=args[0] if view else None, step=(op, params) if view else None)
            return
        node.meta.update(self._place())
        for nr, o in enumerate(out):
            part = self.graph.call_function(getitem, (node, nr))
            self._add(part, o)

    def _add(self, node: Node, out: Tensor, **how: Any) -> None:
        self._look(node, out)
        node.meta.update(self._place())
        self.values.add(out, node, **how)

    def _place(self) -> dict[str, Any]:
        state = current()
        return place(state.above or state, self.regions)

    def _constant(self, value: Any) -> Any:
        """A constant as it is, or as an attribute where it cannot be written down."""
        if is_text(value):
            return value
        node = self.constants.get(id(value))
        if node is None:
            node = self._attribute("_generator" if isinstance(value, Generator) else "_constant", value)
            self.constants[id(value)] = node  # the attribute keeps it alive
        return node

    def _look_at(self, x: Tensor, what: str) -> None:
        """Raise Refusal where python looks at a value that another run will not have."""
        if _varies(self.node_of(bottom(x))):
            msg = (f"It appears that you're trying to get value out of a tracing tensor with {what}() - erroring out! It's "
                   "likely that this is caused by data-dependent control flow or similar: the trace would hold the branch that "
                   "these inputs take. Use where, clamp, ... instead, or trace the parts. "
                   f"[level stack: {show(current().above)}] [NOTE traces-are-pure]")
            raise Refusal(msg)

    # ---------------------------------------------------------------- the end
    def finish(self, out: Any) -> None:
        """Write back what was written to tensors from outside, and add the output: a nest of tensors."""
        leaves, spec = tree.flatten(out)
        returned = tree.unflatten([self.node_of(bottom(x)) if isinstance(x, Tensor) else x for x in leaves], spec)
        for x, node in self.outside:
            if self.values.memory(storage_of(x)).written:
                self.graph.call_method("copy_", (node, self.node_of(x)))
        self.graph.output(returned)


def _varies(node: Node) -> bool:
    """Whether a value depends on an argument, or on a draw."""
    seen, todo = {node}, [node]
    while todo:
        node = todo.pop()
        if node.op == "placeholder" or getattr(node.target, "draws", False):
            return True
        new = set(node.all_input_nodes) - seen
        seen |= new
        todo += new
    return False
