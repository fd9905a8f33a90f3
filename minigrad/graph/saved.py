"""What a node keeps of a tensor from forward to backward, and the hooks around keeping it.

    save     the value one storey down is kept as it is, or its base arrays go through the hooks in force
    unpack   an array comes back and the layers are put around it again, each with its own edge

[NOTE layers-remember] Layers remember, the bottom forgets: hooks see base tensors only, below every transform, with
nothing recorded, and every derivative at every level treats them as the identity.

Upstream: SavedVariable in torch/csrc/autograd/saved_variable.cpp; torch.autograd.graph.saved_tensors_hooks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import HOST_SCALAR
from ..errors import UsageError
from ..inference import saving
from ..state import State, current, tell, underneath, using
from ..storage import Storage, modified
from ..tensor import LEAF, Tensor, alias, base_tensor, bottom, peel, storage_of
from ..tree import leaves_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..backend import Array
    from ..interpreters.base import Interpreter
    from ..storage import Kind
    from .node import Node


class Site:
    """Which save a hook is asked about: the level that saves, the node, and which of its saves. [NOTE told-of-the-site]"""

    __slots__ = ("name", "node", "number", "owner", "slot")

    node: str
    """The name of the node, torch's: SinBackward0."""
    slot: int
    """Which of the node's saves it is."""
    name: str
    """The name of the save in the row: x0, x1, out."""

    def __init__(self, owner: Interpreter | None, node: str, name: str, keeper: Node | None = None, slot: int = 0) -> None:
        self.owner = owner
        self.node = node
        self.name = name
        self.slot = slot
        self.number = 0 if keeper is None else keeper.number

    @property
    def level(self) -> int | None:
        """The number of the level that saves; 0 is ordinary autograd, None an argument of a region, which is every level's."""
        return 0 if self.owner is None else getattr(self.owner, "number", None)

    def __str__(self) -> str:
        return f"{self.name} of {self.node} at {self.owner or 'level 0'}"


class Hooks:
    """One entry of the hook stack: where saved base tensors go, and how they come back."""

    __slots__ = ("__weakref__", "outer")
    title = "hooks"
    """What they are, for people."""
    numbered = False
    """Whether they know a save by its place among all, so that no two runs may differ in how many there are."""

    def __init__(self, outer: Hooks | None) -> None:
        self.outer = outer

    def manager(self, owner: Interpreter | None) -> Hooks | None:
        """Who manages a save of that level: these hooks, ones further out, or nobody. [NOTE hooks-at-every-level]"""
        return self

    def passes(self, x: Tensor) -> bool:
        """Whether they would keep `x` as it is: then it is saved as without hooks."""
        return False

    def save_base(self, base: Tensor, site: Site) -> Any:
        """What a node of level 0 keeps: anything with `unpack`.  A leaf that requires grad is packed as it is.

        Of all else torch packs the tensor itself, with its edge; here it is an alias without, so that nothing that is
        saved can own a node. [NOTE layers-remember]
        """
        return PackedTensor(alias(base), self, site, leaf=base if base.node is LEAF else None)

    def save_value(self, value: Tensor, site: Site) -> Any:
        """What a node of another level keeps of a value one storey down."""
        return PackedTensor(value, self, site)

    def before(self, owner: Interpreter | None, node: str, inputs: dict[str, Tensor]) -> None:
        """A function, whose node will be of that name, is about to run on these inputs, and may be expensive."""

    def pack(self, base: Tensor, site: Site) -> Any:
        """Take a base tensor, return anything."""
        raise NotImplementedError

    def unpack(self, packed: Any, asking: Any) -> Any:
        """Take what pack returned, return a base tensor of the same shape and dtype; `asking` is the level that needs it."""
        raise NotImplementedError


class UserHooks(Hooks):
    """A pair of functions.  They run below every transform, with nothing recorded and no hooks in force.

    Neither may write to what it is given. [NOTE hooks-do-not-mutate]
    With `compose`, what pack returns (a tensor) goes on to the next hooks outside. [NOTE hooks-compose]
    With `told`, pack_hook is given the site of the save too. [NOTE told-of-the-site]
    """

    __slots__ = ("compose", "pack_hook", "told", "unpack_hook")

    def __init__(self, pack_hook: Callable[..., Any], unpack_hook: Callable[[Any], Any], outer: Hooks | None, *,
                 compose: bool = False, told: bool = False) -> None:
        super().__init__(outer)
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook
        self.compose = compose
        self.told = told

    def pack(self, base: Tensor, site: Site) -> Any:
        before = storage_of(base).version
        with using(underneath(current())):
            packed = self.pack_hook(base, site=site) if self.told else self.pack_hook(base)
        if storage_of(base).version != before:
            msg = (f"A saved tensor pack hook is modifying its input in place ({site}). Tensors provided as input to pack "
                   "hook can not be modified by in-place operations: the forward still uses them. Clone the input first.")
            raise UsageError(msg)
        if self.compose and isinstance(packed, Tensor) and self.outer is not None:
            further = self.outer.manager(site.owner)
            if further is not None:
                return PackedTensor(alias(bottom(packed)), further, site)
        return packed

    def unpack(self, packed: Any, asking: Any) -> Any:
        if isinstance(packed, PackedTensor):
            packed = packed.unpack(asking)
        with using(underneath(current())):
            return self.unpack_hook(packed)


class SavedValue:
    """A tensor kept as it is: the value one storey down, and the version its memory had."""

    __slots__ = ("store", "value", "version")

    value: Tensor
    store: Storage
    version: int

    def unpack(self) -> Tensor:
        """The value one storey down, without the edge at its own level."""
        if self.store.version != self.version:
            raise modified(self.value.dtype, self.store, self.version)
        return self.value


class SavedBase:
    """A base tensor kept as it is: its array, the version its memory had, and what it takes to make the tensor again."""

    __slots__ = ("array", "kind", "shape", "store", "version")

    array: Array
    kind: Kind
    shape: tuple[int, ...]
    store: Storage
    version: int

    def unpack(self) -> Tensor:
        """The base tensor, without an edge."""
        if self.store.version != self.version:
            raise modified(self.kind.dtype, self.store, self.version)
        return base_tensor(self.array, self.kind, self.shape, self.store)


class Constant:
    """A python number among the inputs: no hook is asked about it, as in torch."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value.item() if isinstance(value, HOST_SCALAR) else value  # as weak among types as any number

    def unpack(self) -> Any:
        return self.value


class PackedTensor:
    """A tensor whose base arrays went through hooks: what pack returned, and how to put the layers back.

    With `edges` unpacking gives each layer as it was, else each is a fresh leaf where it required grad.
    """

    __slots__ = ("checks", "hooks", "packed", "rebuild", "site")

    def __init__(self, value: Tensor, hooks: Hooks, site: Site, *, leaf: Tensor | None = None, edges: bool = True) -> None:
        bases, self.rebuild = peel(value, edges=edges)
        self.hooks = hooks
        self.site = site
        self.packed: list[Any] = []
        self.checks: list[tuple[tuple[int, ...], Any, Any]] = []
        for base in bases:
            packed = hooks.pack(leaf if leaf is not None else alias(base), site)
            self.packed.append(_unlinked(packed))
            self.checks.append((base.value.shape, base.dtype, _memory(packed, base)))

    def unpack(self, *asking: Any) -> Tensor:
        """The tensor, with its layers around the data from the unpack hook; `asking`: the level, if not the one that saved."""
        return self.rebuild(self._bases(asking[0] if asking else self.site.owner))

    def _bases(self, asking: Any) -> Iterator[Tensor]:
        for packed, (shape, dtype, memory) in zip(self.packed, self.checks, strict=True):
            for store, version in memory:
                if store.version != version and version is not None:
                    raise modified(store.kind.dtype, store, version)
            before = [store.version for store, _ in memory]
            base = self.hooks.unpack(packed, asking)
            if before != [store.version for store, _ in memory]:
                msg = (f"A saved tensor unpack hook modified what pack returned in place ({self.site}): a second backward "
                       "would see another value. Clone it in the unpack hook first.")
                raise UsageError(msg)
            if not isinstance(base, Tensor):
                msg = ("Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                       f"{type(base).__name__} ({self.site}).")
                raise TypeError(msg)
            base = bottom(base)
            if base.value.shape != shape or base.dtype is not dtype:
                msg = (f"The saved tensor unpack_hook returned {base.dtype}{list(base.value.shape)} where {dtype}{list(shape)} "
                       f"was saved ({self.site}): hooks must give back a tensor of the same shape and dtype.")
                raise UsageError(msg)
            yield base


def save(owner: Interpreter | None, x: Tensor, node: str, name: str, state: State,
         keeper: Node | None = None, slot: int = 0) -> Any:
    """Keep `x` for a node of the level of `owner`, with its edge at that level left out. [NOTE shallow-detach]

    Nothing is copied; `x` may also be a tensor of a level further down, that `owner` treats as a constant.
    """
    hooks = None if state.hooks is None else state.hooks.manager(owner)
    if hooks is not None and not hooks.passes(x):
        site = Site(owner, node, name, keeper, slot)
        kept = hooks.save_base(x, site) if owner is None else hooks.save_value(x.value if x.owner is owner else x, site)
        if state.watchers:
            tell(state.watchers, "pack", owner, site, (hooks, keeper, x))
        return kept
    if state.watchers:
        tell(state.watchers, "save", owner, Site(owner, node, name, keeper, slot), (x, keeper))
    return keep_base(x) if owner is None else keep(x.value if x.owner is owner else x)


def keep(value: Tensor) -> SavedValue | SavedBase | Storage:
    """Keep a tensor of any level as it is."""
    if value.owner is None and value.node is None:
        return keep_base(value)
    base = value
    values = False
    while base.owner is not None:
        values = values or base.owner.immutable
        base = base.value
    if values:  # a write there gives a wrapper another value, and no memory another version [NOTE functionalize]
        found, rebuild = peel(value, edges=True)
        value = rebuild(iter(found))
    saving(base.kind)
    saved = SavedValue()
    saved.value = value
    saved.store = store = base.store if base.store is not None else storage_of(base)
    saved.version = store.version
    return saved


def keep_base(x: Tensor) -> SavedBase | Storage:
    """Keep what a base tensor holds, and not the tensor: an in-place op may give that a node which leads here.

    Where it is all of its memory, and that was never written to, the storage says everything. [NOTE outputs-own-nothing]
    """
    store = x.store
    if store is None:  # storage_of, written out: every recorded op of a chain comes by here
        x.store = store = Storage()
        store.array = x.value
        store.kind = x.kind
        store.version = 0
        store.last_write = 0
        return store
    if store.version == 0 and store.array is x.value:
        return store
    saving(x.kind)
    saved = SavedBase()
    saved.array = x.value
    saved.kind = x.kind
    saved.shape = x.shape
    saved.store = store
    saved.version = store.version
    return saved


def _unlinked(packed: Any) -> Any:
    """Keep an alias of a tensor that has a graph: what is saved must not own a node. [NOTE outputs-own-nothing]"""
    if isinstance(packed, Tensor) and packed.owner is None and packed.node is not None and packed.node is not LEAF:
        return alias(packed)
    return packed


def _memory(packed: Any, base: Tensor) -> list[tuple[Storage, int | None]]:
    """The memory that pack returned, and the version of it that plain saving would ask for. [NOTE aliasing-hooks]

    A tensor among other things may be a place in memory that pack goes on to fill: its version is None if it is not `base`'s.
    """
    found = [packed] if isinstance(packed, Tensor) else leaves_of(packed) if isinstance(packed, (tuple, list, dict)) else []
    stores = [storage_of(bottom(x)) for x in found if isinstance(x, Tensor)]
    return [(s, s.version if s is storage_of(base) or isinstance(packed, Tensor) else None) for s in stores]
