"""Pytrees: nests of tuples, lists, dicts and namedtuples, with anything else as a leaf.

Source: torch.utils._pytree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable


class _LeafSpec:
    __slots__ = ()

    def __repr__(self) -> str:
        return "*"


LEAF_SPEC = _LeafSpec()


class Spec:
    """The shape of a nest: a container's type, its keys, and the specs of its children."""

    __slots__ = ("children", "keys", "kind")

    def __init__(self, kind: Any, keys: Any, children: tuple[Any, ...]) -> None:
        self.kind = kind
        self.keys = keys
        self.children = children

    def __eq__(self, other: object) -> bool:
        return (isinstance(other, Spec) and self.kind is other.kind and self.keys == other.keys
                and self.children == other.children)

    def __hash__(self) -> int:
        return hash((self.kind, self.children))

    def __repr__(self) -> str:
        return f"{self.kind.__name__}({', '.join(map(repr, self.children))})"


_CONTAINERS = (tuple, list, dict)


def flatten(tree: Any) -> tuple[list[Any], Any]:
    """The leaves in order, and the spec that puts them back."""
    if not isinstance(tree, _CONTAINERS):
        return [tree], LEAF_SPEC
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Spec:
    keys = tuple(tree) if isinstance(tree, dict) else None
    specs: list[Any] = []
    for child in tree if keys is None else tree.values():
        if isinstance(child, _CONTAINERS):
            specs.append(_flatten(child, leaves))
        else:
            leaves.append(child)
            specs.append(LEAF_SPEC)
    return Spec(type(tree), keys, tuple(specs))


def unflatten(leaves: Any, spec: Any) -> Any:
    """A nest of that spec with these leaves."""
    return next(iter(leaves)) if spec is LEAF_SPEC else _unflatten(iter(leaves), spec)


def _unflatten(leaves: Any, spec: Any) -> Any:
    children = [next(leaves) if child is LEAF_SPEC else _unflatten(leaves, child) for child in spec.children]
    if spec.keys is not None:
        made = dict(zip(spec.keys, children))  # noqa: B905  zip is slow with a keyword
        return made if spec.kind is dict else spec.kind(made)
    if spec.kind is tuple:
        return tuple(children)
    return spec.kind(*children) if hasattr(spec.kind, "_fields") else spec.kind(children)


def leaves_of(tree: Any) -> list[Any]:
    """The leaves in order."""
    return flatten(tree)[0]


def map(f: Callable[..., Any], tree: Any, *others: Any) -> Any:  # noqa: A001  reads as tree.map
    """The nest with f applied to every leaf (and to those of `others` at the same places)."""
    leaves, spec = flatten(tree)
    rest = [flatten(o)[0] for o in others]
    return unflatten([f(*each) for each in zip(leaves, *rest, strict=True)], spec)


def broadcast(prefix: Any, tree: Any, what: str) -> list[Any]:
    """One entry of `prefix` for each leaf of `tree`: a leaf of prefix stands for a whole subtree."""
    found: list[Any] = []
    _broadcast(prefix, flatten(tree)[1], found, what)
    return found


def _broadcast(prefix: Any, spec: Any, found: list[Any], what: str) -> None:
    inner = isinstance(prefix, _CONTAINERS)
    if spec is LEAF_SPEC or not inner:
        if inner:
            msg = f"{what} has the structure {prefix!r}, deeper than the structure of what it is for."
            raise UsageError(msg)
        found.extend([prefix] * count(spec))
        return
    keyed = isinstance(prefix, dict)
    if type(prefix) is not spec.kind or len(prefix) != len(spec.children) or (keyed and set(prefix) != set(spec.keys or ())):
        msg = f"{what} {prefix!r} does not have the structure of what it is for: {spec!r}."
        raise UsageError(msg)
    for child, sub in zip([prefix[k] for k in spec.keys] if keyed else prefix, spec.children, strict=True):
        _broadcast(child, sub, found, what)


def count(spec: Any) -> int:
    """The number of leaves."""
    return 1 if spec is LEAF_SPEC else sum(count(child) for child in spec.children)
