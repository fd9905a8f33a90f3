"""Writing to what was saved: hooks that keep tensors, and a dispatch mode that copies them first. [NOTE write-after-save]

Upstream: _swap_with_cloned and _CloneArgBeforeMutateMode in torch/autograd/graph.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary, ref

from ..backend import address
from ..errors import UsageError
from ..graph.saved import Hooks, Site
from ..ops.shape import clone
from ..scope import Scope
from ..state import State, current, show
from ..tensor import Tensor, alias, storage_of
from ..utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from ..storage import Storage


class allow_mutation_on_saved_tensors(Scope):  # noqa: N801  torch spells it so
    """Within this context a saved tensor may be written to: what it was is copied first, once, and backward gets that.

    Forward and backward run under the same context, which is entered as an object that counts: `cloned` has the copies that
    are alive.  Raises UsageError inside another one, AssertionError where a backward runs outside of its own.
    Source: torch.autograd.graph.allow_mutation_on_saved_tensors.
    """

    def inside(self, outside: State) -> State:
        if any(isinstance(mode, CopyBeforeWrite) for mode in outside.dispatch_modes):
            msg = "allow_mutation_on_saved_tensors contexts cannot be nested."
            raise UsageError(msg)
        self._mode = mode = CopyBeforeWrite()
        return outside._replace(hooks=Keeping(mode, outside.hooks), dispatch_modes=(*outside.dispatch_modes, mode))

    def __enter__(self) -> CopyBeforeWrite:
        super().__enter__()
        return self._mode

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._mode.forget()


class Kept:
    """What is saved: the tensor itself, until it is written to."""

    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class CopyBeforeWrite(TorchDispatchMode):
    """Copies what is saved of a memory before that is written to; knows the saves as long as they live."""

    def __init__(self) -> None:
        self.cloned: WeakKeyDictionary[Kept, Tensor] = WeakKeyDictionary()
        """The copies."""
        self.tid_to_weakhandle: WeakValueDictionary[Any, Kept] = WeakValueDictionary()
        """Of each tensor, by its memory, version and place there: its save."""
        self._of: WeakKeyDictionary[Storage, WeakSet[Kept]] = WeakKeyDictionary()

    def kept(self, base: Tensor) -> Kept:
        """The save of a tensor, which is one however often it is saved."""
        store = storage_of(base)
        key = ref(store), store.version, address(base.value), base.shape, base.value.strides
        kept = self.tid_to_weakhandle.get(key)
        if kept is None:
            kept = self.tid_to_weakhandle[key] = Kept(alias(base))
            self._of.setdefault(store, WeakSet()).add(kept)
        return kept

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ == "copy_":
            for kept in self._of.pop(storage_of(args[0]), ()):
                kept.tensor = self.cloned[kept] = clone(kept.tensor)
        return func(*args, **(kwargs or {}))

    def forget(self) -> None:
        """Drop all copies: the context has been left."""
        for table in (self.cloned, self.tid_to_weakhandle, self._of):
            table.clear()


class Keeping(Hooks):
    """The hooks beside the mode."""

    __slots__ = ("mode",)
    title = "allow_mutation_on_saved_tensors"

    def __init__(self, mode: CopyBeforeWrite, outer: Hooks | None) -> None:
        super().__init__(outer)
        self.mode = mode

    def pack(self, base: Tensor, site: Site) -> Kept:
        return self.mode.kept(base)

    def unpack(self, packed: Kept, asking: Any) -> Tensor:
        if not any(mode is self.mode for mode in current().dispatch_modes):
            msg = ("Trying to backward outside of the 'allow_mutation_on_saved_tensors' context in which the graph was "
                   f"originally recorded. [level stack: {show()}]")
            raise AssertionError(msg)
        return packed.tensor
