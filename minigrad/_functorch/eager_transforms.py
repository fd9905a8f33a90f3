"""How the transforms choose arguments.  Source: torch._functorch.eager_transforms."""

from __future__ import annotations

from typing import Any

from ..arguments import Argnums, chosen


def _slice_argnums(args: tuple[Any, ...], argnums: Argnums, as_tuple: bool = True) -> Any:
    """Return the arguments at argnums.  Source: torch._functorch.eager_transforms._slice_argnums."""
    return chosen(args, argnums, as_tuple=as_tuple)
