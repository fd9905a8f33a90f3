"""Contexts that say how every checkpoint inside them is to do its work.

Source: torch.utils.checkpoint.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autograd.engine import Run
from ..errors import UsageError, one_of
from ..scope import Scope

if TYPE_CHECKING:
    from ..state import State


class set_checkpoint_early_stop(Scope):  # noqa: N801  torch spells it so
    """Within this context every checkpoint stops early, or none does, whatever its own early_stop says.

    Source: torch.utils.checkpoint.set_checkpoint_early_stop.
    """

    def __init__(self, enable: bool) -> None:
        self.enable = enable

    def inside(self, outside: State) -> State:
        return outside._replace(early_stop=self.enable)


class set_checkpoint_debug_enabled(Scope):  # noqa: N801  torch spells it so
    """Within this context every checkpoint shows the ops of its runs, or none does, whatever its own debug says.

    enabled: None leaves it to each.

    Source: torch.utils.checkpoint.set_checkpoint_debug_enabled.
    """

    def __init__(self, enabled: bool | None) -> None:
        self.enabled = enabled

    def inside(self, outside: State) -> State:
        return outside._replace(checkpoint_debug=self.enabled)


class set_checkpoint_remat(Scope):  # noqa: N801  as its siblings
    """Within this context every checkpoint has remat="first", or "every", whatever its own remat says."""

    def __init__(self, remat: str) -> None:
        one_of("remat", remat, "first", "every")
        self.remat = remat

    def inside(self, outside: State) -> State:
        return outside._replace(remat=self.remat)


class GraphExecGroup(Scope):
    """The backwards within this context are one run to checkpoint: together they run a region again once. [NOTE one-group]

    A value that two of them need is recomputed for each.  Raises UsageError inside another group.
    Source: torch.utils.checkpoint.GraphExecGroup.
    """

    def inside(self, outside: State) -> State:
        if outside.group is not None:
            msg = "GraphExecGroup contexts cannot be nested."
            raise UsageError(msg)
        self._run = Run()
        return outside._replace(group=self._run)

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._run.forget()
