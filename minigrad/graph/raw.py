"""One save of a node, and hooks for it alone.

Source: torch.autograd.SavedTensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..storage import Storage
from .saved import PackedTensor, SavedBase, SavedValue, Site, UserHooks

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..tensor import Tensor


class SavedTensor:
    """What `node._raw_saved_self` and its like are: a save, before anything is unpacked.

    Source: torch.autograd.SavedTensor.
    """

    __slots__ = ("_node", "_slot")

    _node: Any
    """Of the level's graph: it has `kept(slot)`, and `keep(slot, packed)` to put something else there."""
    _slot: int

    def __init__(self, *args: Any) -> None:
        msg = "Trying to create a SavedTensor object from Python is forbidden."
        raise UsageError(msg)

    def register_hooks(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        """Let this save go through a pair of hooks, as in a saved_tensors_hooks context; pack_hook is called at once.

        Raises UsageError where the save has hooks already, is None, or was freed.
        Source: torch.autograd.SavedTensor.register_hooks.
        """
        if not (callable(pack_hook) and callable(unpack_hook)):
            msg = (f"register_hooks(): incompatible function arguments: it takes two functions, found "
                   f"{type(pack_hook).__name__} and {type(unpack_hook).__name__}.")
            raise TypeError(msg)
        node, k = self._node, self._slot
        kept, leaf, name = node.kept(k)
        if kept is None:
            msg = "Calling register_hooks on a saved tensor with value None is forbidden"
            raise UsageError(msg)
        if not isinstance(kept, (Storage, SavedBase, SavedValue)):
            msg = ("Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                   "is allowed at a time.")
            raise UsageError(msg)
        site = Site(node.owner, node.name(), name, node, k)
        node.keep(k, PackedTensor(kept.unpack(), UserHooks(pack_hook, unpack_hook, None), site, leaf=leaf))


def raw(node: Any, k: int) -> SavedTensor:
    """The k-th save of a node."""
    made = object.__new__(SavedTensor)
    made._node, made._slot = node, k
    return made
