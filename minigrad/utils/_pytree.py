"""Nests of tensors under torch's names, which programs with transforms use to hold parameters as lists.

Source: torch.utils._pytree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import tree
from ..tree import Spec as TreeSpec
from ..tree import flatten as tree_flatten
from ..tree import leaves_of as tree_leaves

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["TreeSpec", "tree_flatten", "tree_leaves", "tree_map", "tree_map_only", "tree_structure", "tree_unflatten"]


def tree_unflatten(leaves: Any, treespec: Any) -> Any:
    """The nest of that structure with these leaves.

    Raises ValueError where there are more leaves, or fewer.  Source: torch.utils._pytree.tree_unflatten.
    """
    leaves = list(leaves)
    if len(leaves) != tree.count(treespec):
        msg = (f"tree_unflatten(leaves, treespec): `leaves` has length {len(leaves)} but the spec refers to a pytree that "
               f"holds {tree.count(treespec)} items ({treespec})")
        raise ValueError(msg)
    return tree.unflatten(leaves, treespec)


def tree_structure(tree_: Any) -> Any:
    """The structure of a nest, without its leaves.  Source: torch.utils._pytree.tree_structure."""
    return tree_flatten(tree_)[1]


def tree_map(func: Callable[..., Any], tree_: Any, *rests: Any) -> Any:
    """The nest with `func` applied to each leaf, and to what stands at its place in `rests`, a leaf there or a nest.

    Raises ValueError where those have another structure.  Source: torch.utils._pytree.tree_map.
    """
    leaves, spec = tree_flatten(tree_)
    others = [_at_leaves(spec, other) for other in rests]
    return tree.unflatten([func(*each) for each in zip(leaves, *others, strict=True)], spec)


def _at_leaves(spec: Any, other: Any) -> list[Any]:
    """What stands in `other` where a nest of that structure has its leaves."""
    if spec is tree.LEAF_SPEC:
        return [other]
    keyed = spec.keys is not None
    if type(other) is not spec.kind or len(other) != len(spec.children) or (keyed and set(other) != set(spec.keys)):
        msg = f"tree_map: found {other!r} beside {spec}. Give trees of one structure, down to the leaves of the first."
        raise ValueError(msg)
    parts = [other[key] for key in spec.keys] if keyed else other
    return [x for child, part in zip(spec.children, parts, strict=True) for x in _at_leaves(child, part)]


def tree_map_only(kind: type | tuple[type, ...], func: Callable[[Any], Any], tree_: Any) -> Any:
    """The nest with func applied to leaves of that kind, others as they are.  Source: torch.utils._pytree.tree_map_only."""
    return tree.map(lambda x: func(x) if isinstance(x, kind) else x, tree_)
