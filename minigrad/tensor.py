"""What a tensor is: an array with its storage, or one interpreter's layer around the tensor one storey down.

    base tensor   owner None   value: an array          node, nr: its edge in the graph of level 0
    wrapper       owner me     value: a tensor below    node, nr: its edge in my graph; note: what else I remember
    both          shape: the logical shape, as seen at its level; kind: dtype and device

A base tensor carries level 0's edge itself, because `requires_grad_()` changes a tensor where it stands; what a wrapper
remembers is its interpreter's business (a batch dim, a tangent).  Identity is the handle: an in-place op changes what
a handle holds, never which object it is.

Upstream: TensorImpl, at::functorch::TensorWrapper, BatchedTensorImpl.
"""

from __future__ import annotations

from itertools import count
from math import prod
from typing import TYPE_CHECKING, Any

from .backend import address
from .errors import UsageError, no_dimension
from .inference import mark
from .state import current, tell, watched
from .storage import Storage, counted_storage, kind_of, modified, new_storage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from weakref import ref

    from .backend import Array, Device
    from .dtypes import dtype
    from .graph.node import Node
    from .interpreters.base import Interpreter
    from .storage import Kind


class _Leaf:
    """The edge of a tensor that requires grad and was made by no op: the tensor is its own end of the graph."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "LEAF"


LEAF = _Leaf()
next_number = count(1).__next__
"""Time, as far as graphs know it: nodes and leaves are numbered as they are made (a leaf in `nr`)."""
NO_PARAMS: dict[str, Any] = {}
"""What an op without parameters is called with, and its node keeps: one for all, to which nobody writes."""


class Extra:
    """What few tensors have: a gradient, hooks, views. [NOTE in-place]"""

    grad: Tensor | None = None
    hooks: list[Callable[[Tensor], Tensor | None]] | None = None
    post_hooks: list[Callable[[Tensor], None]] | None = None
    node_hooks: Any = None
    """Of a leaf: the hooks of its AccumulateGrad node."""
    name: str | None = None
    root: Tensor | None = None
    """Of a view: the tensor that owns the memory."""
    steps: tuple[Callable[[Tensor], Tensor], ...] = ()
    """Of a view: the ops that lead from its root to it."""
    views: list[ref[Tensor]] | None = None
    """Of a tensor that owns its memory: its views."""
    most_views = 16
    """How many views may be listed, dead ones too."""
    role: type | None = None
    """nn.Parameter or nn.Buffer, where it was made as one."""


class Tensor:
    """An array that can be differentiated, batched, recomputed and offloaded, at any level.  Source: torch.Tensor."""

    __slots__ = ("__weakref__", "extra", "kind", "node", "note", "nr", "owner", "shape", "store", "value")
    __array_ufunc__ = None

    owner: Interpreter | None
    value: Any
    kind: Kind
    shape: tuple[int, ...]
    node: Node | Tensor | _Leaf | None
    nr: int
    note: Any
    store: Storage | None
    extra: Extra | None

    if TYPE_CHECKING:  # the methods are named in methods.py
        def __getattr__(self, name: str) -> Any: ...
        def __add__(self, other: Any) -> Tensor: ...
        def __radd__(self, other: Any) -> Tensor: ...
        def __sub__(self, other: Any) -> Tensor: ...
        def __rsub__(self, other: Any) -> Tensor: ...
        def __mul__(self, other: Any) -> Tensor: ...
        def __rmul__(self, other: Any) -> Tensor: ...
        def __truediv__(self, other: Any) -> Tensor: ...
        def __rtruediv__(self, other: Any) -> Tensor: ...
        def __pow__(self, other: Any) -> Tensor: ...
        def __matmul__(self, other: Any) -> Tensor: ...
        def __mod__(self, other: Any) -> Tensor: ...
        def __floordiv__(self, other: Any) -> Tensor: ...
        def __neg__(self) -> Tensor: ...
        def __invert__(self) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __xor__(self, other: Any) -> Tensor: ...
        def __eq__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Tensor: ...  # type: ignore[override]
        def __gt__(self, other: Any) -> Tensor: ...
        def __lt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __getitem__(self, index: Any) -> Tensor: ...
        def __setitem__(self, index: Any, value: Any) -> None: ...
        def __iter__(self) -> Iterator[Tensor]: ...
        @property
        def grad(self) -> Tensor | None: ...
        @grad.setter
        def grad(self, new: Tensor | None) -> None: ...
        @property
        def data(self) -> Tensor: ...
        @data.setter
        def data(self, new: Tensor) -> None: ...

    __hash__ = object.__hash__

    # ---------------------------------------------------------------- what it looks like
    @property
    def dtype(self) -> dtype:
        """The element type.  Source: torch.Tensor.dtype."""
        return self.kind.dtype

    @property
    def device(self) -> Device:
        """The address space it lives in.  Source: torch.Tensor.device."""
        return self.kind.device

    @property
    def ndim(self) -> int:
        """The number of logical dimensions.  Source: torch.Tensor.ndim."""
        return len(self.shape)

    def size(self, dim: int | None = None) -> Any:
        """The logical shape, or its extent along `dim`, an IndexError where there is none.  Source: torch.Tensor.size."""
        try:
            return self.shape if dim is None else self.shape[dim]
        except IndexError:
            raise no_dimension(dim, len(self.shape)) from None  # type: ignore[arg-type]

    def dim(self) -> int:
        """The number of logical dimensions.  Source: torch.Tensor.dim."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of logical elements.  Source: torch.Tensor.numel."""
        return prod(self.shape)

    def __len__(self) -> int:
        if not self.shape:
            msg = "len() of a 0-d tensor"
            raise TypeError(msg)
        return self.shape[0]

    def element_size(self) -> int:
        """Bytes of one element.  Source: torch.Tensor.element_size."""
        return self.dtype.itemsize

    # ---------------------------------------------------------------- its place in a graph
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are recorded for it, at its own level (below it, where its level records none).

        Raises UsageError where a result is assigned True.  Source: torch.Tensor.requires_grad.
        """
        return self.node is not None or (
            self.owner is not None and self.owner.transparent and self.value.requires_grad)

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        if value and not self.is_leaf:
            msg = "you can only change requires_grad flags of leaf variables."
            raise UsageError(msg)
        self.requires_grad_(value)

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Make a base tensor a leaf of level 0, or no leaf any more; returns the tensor.

        Raises UsageError for a result, for elements that are no real or complex numbers, and inside a transform: what is
        differentiated there is said by the transform.  Source: torch.Tensor.requires_grad_.
        """
        if self.owner is not None and self.owner.by_hand:
            self.value.requires_grad_(requires_grad)
            return self
        levels = current().levels
        if self.owner is not None or (levels and not all(me.by_hand for me in levels)):
            msg = ("You are attempting to call Tensor.requires_grad_() (or perhaps using torch.autograd.functional.* APIs) "
                   "inside of a function being transformed. A transform says itself what it differentiates: pass "
                   "the tensor to minigrad.func.grad or vjp instead.")
            raise UsageError(msg)
        if requires_grad == (self.node is not None):
            return self
        if self.kind.inference is not None and current().inference is None:
            msg = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
            raise UsageError(msg)
        if self.node is not None and self.node is not LEAF:
            msg = ("you can only change requires_grad flags of leaf variables. If you want to use a computed variable in "
                   "a subgraph that doesn't require differentiation use var_no_grad = var.detach().")
            raise UsageError(msg)
        if requires_grad and not self.kind.dtype.differentiable:
            msg = f"only Tensors of floating point and complex dtype can require gradients, and this one is {self.dtype}."
            raise UsageError(msg)
        self.node = LEAF if requires_grad else None
        self.nr = next_number()
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was not made by a recorded op.  Source: torch.Tensor.is_leaf."""
        if self.node is None and self.owner is not None and self.owner.transparent:
            return self.value.is_leaf  # type: ignore[no-any-return]
        return self.node is None or self.node is LEAF

    @property
    def grad_fn(self) -> Any:
        """The node that made it, or None.  Source: torch.Tensor.grad_fn."""
        if self.node is None and self.owner is not None and self.owner.transparent:
            return self.value.grad_fn
        return None if self.is_leaf or isinstance(self.node, Tensor) else self.node

    @property
    def output_nr(self) -> int:
        """Which output of its node it is; 0 for a leaf.  Source: torch.Tensor.output_nr."""
        return 0 if self.is_leaf else self.nr

    # ---------------------------------------------------------------- its memory
    def untyped_storage(self) -> Storage:
        """The storage at the bottom of the tower, one object for each.  Source: torch.Tensor.untyped_storage."""
        return storage_of(bottom(self))

    def data_ptr(self) -> int:
        """The address of the first element, in bytes; of the innermost tensor.  Source: torch.Tensor.data_ptr."""
        return address(bottom(self).value)

    @property
    def _version(self) -> int:
        if self.kind.inference is not None:
            msg = "Inference tensors do not track version counter."
            raise UsageError(msg)
        return version_of(self)


def fresh(array: Array, d: dtype, device: Device, store: Storage | None = None) -> Tensor:
    """A base tensor around an array; without `store`, the array is memory that nobody else knows."""
    kind = kind_of(d, device)
    if store is not None:
        return base_tensor(array, kind, array.shape, store)
    x = base_tensor(array, kind, array.shape, counted_storage(array, kind) if device.counted else None)
    if watched:
        tell(current().watchers, "made", None, x)
        mark(x)
    return x


def base_tensor(array: Array, kind: Kind, shape: tuple[int, ...], store: Storage | None, node: Any = None,
                nr: int = 0) -> Tensor:
    """A base tensor from its parts."""
    x = Tensor()
    x.owner = None
    x.value = array
    x.kind = kind
    x.shape = shape
    x.node = node
    x.nr = nr
    x.store = store
    x.extra = None
    return x


def _whole(store: Storage) -> Tensor:
    """The tensor that is a whole memory, as it was before any write."""
    if store.version:
        raise modified(store.kind.dtype, store, 0)
    return base_tensor(store.array, store.kind, store.array.shape, store)


Storage.unpack = _whole  # type: ignore[assignment]


def alias(x: Tensor, node: Any = None, nr: int = 0) -> Tensor:
    """Another handle on the memory of a base tensor, with another edge at level 0, by default none."""
    return base_tensor(x.value, x.kind, x.shape, x.store or storage_of(x), node, nr)


def wrapper(owner: Interpreter, value: Tensor, node: Any = None, nr: int = 0, note: Any = None) -> Tensor:
    """One layer around the tensor one storey down, of the same shape."""
    x = Tensor()
    x.owner = owner
    x.value = value
    x.kind = value.kind.above
    x.shape = value.shape
    x.node = node
    x.nr = nr
    x.note = note
    x.extra = None
    return x


def bottom(x: Tensor) -> Tensor:
    """The base tensor at the bottom of the tower (of the primal, where a layer has a tangent)."""
    while x.owner is not None:
        x = x.value
    return x


def bases(x: Tensor) -> Iterator[Tensor]:
    """Every base tensor of the tower, tangents too."""
    if x.owner is None:
        yield x
    else:
        for part in x.owner.parts(x):
            yield from bases(part)


def peel(x: Tensor, *, edges: bool) -> tuple[list[Tensor], Callable[[Iterator[Tensor]], Tensor]]:
    """Take off all layers: the base tensors, and a function of new ones that puts the layers back.

    With `edges` every layer is as it was; without, it is a fresh leaf where it required grad.  The function keeps
    each layer's metadata and none of its data. [NOTE layers-remember]
    """
    if x.owner is None:
        if edges:
            node, nr = edge(x)
            return [x], lambda new: alias(next(new), node, nr)
        flag = None if x.node is None else LEAF
        return [x], lambda new: alias(next(new), flag, next_number())
    me = x.owner
    peeled = [peel(part, edges=edges) for part in me.parts(x)]
    rewrap = me.rewrap(x) if edges else me.renew(x)
    rebuilds = [rebuild for _, rebuild in peeled]
    return [base for found, _ in peeled for base in found], lambda new: rewrap(*[rebuild(new) for rebuild in rebuilds])


def edge(x: Tensor) -> tuple[Any, int]:
    """Where a cotangent of `x` goes in the graph of its own level: (a node or a leaf tensor, output number)."""
    node = x.node
    if node is None:
        return None, 0
    return (x, 0) if node is LEAF else (node, x.nr)


def storage_of(base: Tensor) -> Storage:
    """The storage of a base tensor, made now where it has none yet."""
    store = base.store
    if store is None:
        base.store = store = new_storage(base.value, base.kind)
    return store


class _Writes:
    __slots__ = ("latest",)

    latest: int
    """The moment of the last write to any memory."""


WRITES = _Writes()
WRITES.latest = 0


def written(base: Tensor) -> None:
    """Count a write to the memory of a base tensor, and note the moment."""
    store = storage_of(base)
    store.version += 1
    store.last_write = WRITES.latest = next_number()


def version_of(x: Tensor) -> int:
    """How often the memory at the bottom was written to."""
    store = bottom(x).store
    return 0 if store is None else store.version


def extra_of(x: Tensor) -> Extra:
    """The rare fields of a tensor, made now where it has none yet."""
    if x.extra is None:
        x.extra = Extra()
    return x.extra
