"""Traced programs: graphs of base ops that print as code, run, and are pickled as code.

Source: torch.fx.
"""

from .graph import Graph as Graph
from .graph_module import GraphModule as GraphModule
from .node import Node as Node
