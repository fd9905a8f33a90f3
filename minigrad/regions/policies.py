"""Policies: what of a region is kept, by op and by name. [NOTE selective-policies]

Upstream: CheckpointPolicy in torch/utils/checkpoint.py; jax.checkpoint_policies.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from .. import tree
from ..ops.naming import named
from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Iterable

Policy = Any
"""A function of (context, op, *args, **kwargs) that returns a CheckpointPolicy, or whether to save."""


class CheckpointPolicy(Enum):
    """What becomes of an op's output: kept, kept on the host, or computed again.

    MUST and PREFER are the same here: nobody overrules a policy.  Source: torch.utils.checkpoint.CheckpointPolicy.
    """

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


SAVES = CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE
OFFLOADS = CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD


class SelectiveCheckpointContext:
    """What a policy is told of an op: its output, and the level of the program that asked for it.

    level: the number of the innermost level, 0 where there is only ordinary autograd.  is_recompute is always False: a policy
    is asked in the forward alone.  Source: torch.utils.checkpoint.SelectiveCheckpointContext.
    """

    def __init__(self, *, is_recompute: bool, op_output: Any = None, level: int = 0) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output
        self.level = level


def verdict_of(said: Any, op: Any) -> CheckpointPolicy:
    """What a policy says about an op; a bool, as torch has it, means MUST_SAVE or PREFER_RECOMPUTE."""
    if isinstance(said, bool):
        return CheckpointPolicy.MUST_SAVE if said else CheckpointPolicy.PREFER_RECOMPUTE
    if not isinstance(said, CheckpointPolicy):
        msg = f"a policy must return a CheckpointPolicy or a bool, found {said!r} for {op.__name__}."
        raise TypeError(msg)
    return said


def save_these(ops: list[Any]) -> Policy:
    """A policy: keep the outputs of these ops."""
    return lambda ctx, op, *args, **kwargs: op in ops


# ---------------------------------------------------------------- policies by name
def checkpoint_name(x: Any, name: str) -> Any:
    """Return the tensors of `x`, any pytree, under a name that policies go by.  What made them is then not run again.

    Source: jax.ad_checkpoint.checkpoint_name.
    """
    return tree.map(lambda leaf: named(leaf, name=name) if isinstance(leaf, Tensor) else leaf, x)


def save_only_these_names(*names: str) -> Policy:
    """A policy: keep what bears one of these names.  Source: jax.checkpoint_policies.save_only_these_names."""
    return save_and_offload_only_these_names(names_which_can_be_saved=names, names_which_can_be_offloaded=())


def save_any_names_but_these(*names: str) -> Policy:
    """A policy: keep what bears another name.  Source: jax.checkpoint_policies.save_any_names_but_these."""
    return lambda ctx, op, *args, **kwargs: op is named and kwargs["name"] not in names


def save_and_offload_only_these_names(*, names_which_can_be_saved: Iterable[str],
                                      names_which_can_be_offloaded: Iterable[str]) -> Policy:
    """A policy: keep what bears one of these names, some of it on the host.

    Source: jax.checkpoint_policies.save_and_offload_only_these_names.
    """
    verdicts = {**dict.fromkeys(names_which_can_be_saved, CheckpointPolicy.MUST_SAVE),
                **dict.fromkeys(names_which_can_be_offloaded, CheckpointPolicy.MUST_CPU_OFFLOAD)}
    return lambda ctx, op, *args, **kwargs: verdicts.get(
        kwargs["name"] if op is named else "", CheckpointPolicy.PREFER_RECOMPUTE)
