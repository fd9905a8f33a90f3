"""What is public: the namespaces that a program imports from, and the few names in them that torch has not."""

from __future__ import annotations

import types

import minigrad
import minigrad.autograd.forward_ad
import minigrad.autograd.functional
import minigrad.autograd.graph
import minigrad.fft
import minigrad.func
import minigrad.fx
import minigrad.fx.experimental.proxy_tensor
import minigrad.linalg
import minigrad.masked
import minigrad.nn
import minigrad.nn.functional
import minigrad.nn.init
import minigrad.nn.utils
import minigrad.testing
import minigrad.utils.checkpoint


def of(module):
    """The public names of a module: those that it lists, or all without an underscore, submodules left out."""
    names = getattr(module, "__all__", None) or [n for n in vars(module) if not n.startswith("_")]
    found = {n: getattr(module, n) for n in names if not isinstance(getattr(module, n), types.ModuleType)}
    if module is minigrad or not hasattr(module, "__all__"):
        found = {n: v for n, v in found.items() if (getattr(v, "__module__", None) or "minigrad").startswith("minigrad")}
    return {n: v for n, v in found.items() if n not in ("annotations", "TYPE_CHECKING")}


NAMESPACES = {module.__name__: of(module) for module in (
    minigrad, minigrad.func, minigrad.autograd, minigrad.autograd.graph, minigrad.autograd.functional,
    minigrad.autograd.forward_ad, minigrad.linalg, minigrad.masked, minigrad.special, minigrad.fft, minigrad.fx,
    minigrad.fx.experimental.proxy_tensor,
    minigrad.utils.checkpoint, minigrad.nn, minigrad.nn.functional, minigrad.nn.init, minigrad.nn.utils, minigrad.testing)}

OWN = {
    "minigrad.shallow_detach": "cuts one level's edge: torch, JAX and MLX have no such function",
    "minigrad.autograd.shallow_detach": "cuts one level's edge: torch, JAX and MLX have no such function",
    "minigrad.func.strict_levels": "makes tensors that escaped their level errors, which torch does for vmap's alone",
    "minigrad.utils.checkpoint.is_recomputing": "tells a region that it runs again",
    "minigrad.utils.checkpoint.checkpoint_name": "JAX's: a name for a value, which a policy goes by",
    "minigrad.utils.checkpoint.set_checkpoint_remat": "says for all checkpoints what they keep at higher orders",
}
"""Public names that torch has not, each with its reason."""

FIELDS = {"owner", "value", "kind", "shape", "node", "nr", "note", "store", "extra"}
"""What a tensor is made of: slots, which say what they are in tensor.py."""


def public_methods():
    return [n for n in dir(minigrad.Tensor) if not n.startswith("_") and n not in FIELDS]
