"""Saved-tensor hooks and the nodes of a graph, under torch's names.

Source: torch.autograd.graph.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..errors import Refusal, UsageError
from ..graph.edge import GradientEdge, get_gradient_edge
from ..graph.node import Node
from ..graph.saved import Hooks, UserHooks
from ..offload import Offload
from ..scope import Scope
from ..streamed import offloading
from ..tensor import Tensor, bottom, written
from .hooks import register_multi_grad_hook
from .mutation import allow_mutation_on_saved_tensors

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..state import State

__all__ = ["GradientEdge", "Node", "allow_mutation_on_saved_tensors", "disable_saved_tensors_hooks", "get_gradient_edge",
           "increment_version", "register_multi_grad_hook", "save_on_cpu", "saved_tensors_hooks"]


def _hooked(outside: State, hooks: Hooks) -> State:
    if outside.hooks_disabled is not None:
        raise Refusal(outside.hooks_disabled)
    return outside._replace(hooks=hooks)


class saved_tensors_hooks(Scope):  # noqa: N801  torch spells it so
    """Within this context, what any level saves goes through `pack_hook`, and comes back through `unpack_hook`.

    pack_hook takes a base tensor, below every transform (a batch has its physical shape), and returns anything;
    unpack_hook takes that and returns a tensor of the same shape and dtype.  The innermost pair in force when the save
    happens is used; with compose, what it packed (a tensor) goes on to the next pair outside.
    A pack_hook with a keyword `site` is told which save it is: site.level (0 is ordinary autograd), site.node, .slot, .name.
    Raises UsageError where a hook modifies what it was given, or returns something else.
    Source: torch.autograd.graph.saved_tensors_hooks.
    """

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Any], *,
                 compose: bool = False) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self.compose = compose

    def inside(self, outside: State) -> State:
        for hook in (self.pack_hook, self.unpack_hook):
            if not callable(hook):
                msg = f"saved_tensors_hooks(pack_hook, unpack_hook): both must be functions, found {hook!r}."
                raise TypeError(msg)
        return _hooked(outside, UserHooks(self.pack_hook, self.unpack_hook, outside.hooks, compose=self.compose,
                                          told=_takes_site(self.pack_hook)))


def _takes_site(hook: Callable[..., Any]) -> bool:
    """Whether a hook has a keyword `site`; asked when its context is entered, not for each save."""
    if type(hook) is FunctionType:
        code = hook.__code__
        return "site" in code.co_varnames[code.co_argcount:code.co_argcount + code.co_kwonlyargcount]
    import inspect  # noqa: PLC0415  few hooks are no functions, and it takes 10 ms

    try:
        site = inspect.signature(hook).parameters.get("site")
    except (TypeError, ValueError):  # a builtin
        return False
    return site is not None and site.kind is site.KEYWORD_ONLY


class save_on_cpu(Scope):  # noqa: N801  torch spells it so
    """Within this context, what any level saves lives on the host until backward, and comes back to its device.

    One host copy for each distinct storage and version, unless dedupe is off; a host tensor is kept as it is, with its
    version check.  pin_memory: in pinned memory; non_blocking: there, by copies on a stream of their own, which the host does
    not wait for.  skip: what stays where it is: a predicate of tensors, a number of bytes (smaller ones stay), or tensors
    (the parameters).  `host_copies` counts the copies made so far.
    Source: torch.autograd.graph.save_on_cpu.
    """

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda", *, non_blocking: bool = False,
                 dedupe: bool = True, skip: Any = None) -> None:
        self._offloading = offloading(pinned=pin_memory, streamed=non_blocking, dedupe=dedupe, skip=skip)
        self.pack_hook = self._offloading.pack
        self.unpack_hook = self._offloading.unpack

    @property
    def host_copies(self) -> int:
        """How many copies to the host this context has made."""
        return self._offloading.count

    def inside(self, outside: State) -> State:
        return _hooked(outside, Offload(self._offloading, outside.hooks))


class disable_saved_tensors_hooks(Scope):  # noqa: N801  torch spells it so
    """Within this context, entering hooks, save_on_cpu or checkpoint is refused with `message`.

    Source: torch.autograd.graph.disable_saved_tensors_hooks.
    """

    def __init__(self, message: str) -> None:
        self.message = message

    def inside(self, outside: State) -> State:
        if outside.hooks is not None:
            msg = (f"saved tensor hooks cannot be disabled while some are in force ({self.message!r}): leave their context "
                   "first.")
            raise UsageError(msg)
        return outside._replace(hooks_disabled=self.message)


def increment_version(tensors: Any) -> None:
    """Count a write to the memory of a tensor, or of several, that happened elsewhere.

    Source: torch.autograd.graph.increment_version.
    """
    for x in (tensors,) if isinstance(tensors, Tensor) else tensors:
        written(bottom(x))
