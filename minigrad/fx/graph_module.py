"""A traced graph as a module: it runs, prints as code, and is pickled as code.

Source: torch.fx.graph_module.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from ..nn.module import Module
from ..tensor import Tensor
from .code import compiled, functions_of, graph_of, python_code
from .meta import note

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .graph import Graph


class GraphModule(Module):
    """A module whose forward is the code of a graph; what the graph reads with get_attr are its attributes.

    root: a module, or a mapping, that has these attributes.  parameters: of each argument of forward its name, and how many
    placeholders it fills where it is a nest of tensors; without, each placeholder is an argument.
    Running it is running a program: any transform applies, and levels, hooks and modes see it.
    Source: torch.fx.GraphModule.
    """

    graph: Graph
    code: str

    def __init__(self, root: Module | Mapping[str, Any], graph: Graph, class_name: str = "GraphModule", *,
                 parameters: Mapping[str, int | None] | None = None) -> None:
        super().__init__()
        self.__dict__.update(graph=graph, class_name=class_name, parameters_of_forward=dict(parameters or {
            node.name: None for node in graph.find_nodes(op="placeholder")}))
        for node in graph.find_nodes(op="get_attr"):
            value = root[node.target] if not isinstance(root, Module) else getattr(root, node.target)
            if isinstance(value, Tensor) and (value.extra is None or value.extra.role is None):
                self.register_buffer(node.target, value)
            else:
                setattr(self, node.target, value)
        self.recompile()

    def recompile(self) -> None:
        """Make `forward` of the graph as it is now.  Source: torch.fx.GraphModule.recompile."""
        self.__dict__["code"] = python_code(self.graph, self.parameters_of_forward)
        self.__dict__["_compiled"] = compiled(self.code, SimpleNamespace(**functions_of(self.graph)))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Run the code."""
        return self._compiled(self, *args, **kwargs)

    def print_readable(self, print_output: bool = True) -> str:
        """The code, with a comment on each line that says where it was traced; printed unless told otherwise.

        Source: torch.fx.GraphModule.print_readable.
        """
        code = python_code(self.graph, self.parameters_of_forward, notes=note)
        text = f"class {self.class_name}(minigrad.nn.Module):\n" + "".join(f"    {line}\n" for line in code.splitlines())
        if print_output:
            print(text)  # noqa: T201  torch's name says so
        return text

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        attributes = {node.target: getattr(self, node.target) for node in self.graph.find_nodes(op="get_attr")}
        traced = [(node.name, node.meta) for node in self.graph.nodes]
        code = python_code(self.graph, self.parameters_of_forward)
        return _rebuilt, (code, self.parameters_of_forward, functions_of(self.graph), attributes, traced, self.class_name)

    def __str__(self) -> str:
        return f"{self.class_name}()\n\n\n\n{self.code}"


def _rebuilt(code: str, parameters: dict[str, int | None], functions: dict[str, Callable[..., Any]], attributes: dict[str, Any],
             traced: list[tuple[str, dict[str, Any]]], class_name: str) -> GraphModule:
    graph = graph_of(code, parameters, functions)
    for node, (name, meta) in zip(graph.nodes, traced, strict=True):
        node.name = name
        node.meta.update(meta)
    return GraphModule(attributes, graph, class_name, parameters=parameters)
