"""In-place ops: compute, then assign. [NOTE in-place]

`x.sin_()` is `assign(x, sin(x))`.  Assigning writes the array at the bottom, so that every view sees it and the version
grows, and gives each layer of `x` what that layer of the new value remembers; a view hands that on to the tensor it is a
view of, whose other views are then told.

Upstream: VariableTypeManual.cpp; CopySlices in torch/csrc/autograd/functions/tensor.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from ..backend import Array, address, is_dense, is_writable, strided
from ..errors import UsageError
from ..graph.node import Node, hooks_of
from ..graph.record import record
from ..inference import writing
from ..modes import at_base
from ..op import revive
from ..row import OpFunction, row
from ..state import State, current, tell, using, watched
from ..tensor import LEAF, Extra, Tensor, alias, bottom, edge, extra_of, next_number, peel, storage_of, written
from ..views import lies_in, order_of, root_of
from .batching import elementwise, rank, to_front
from .creation import tensor, zeros_like
from .shape import clone, contiguous_row, permute, sum_dims, widened

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..graph.node import Edge
    from ..interpreters.base import Interpreter
    from ..op import Op
    from .batching import Batched, Bdims, Params, Values


def in_place(f: Callable[..., Any], name: str, *, reads_input: bool = True) -> Callable[..., Tensor]:
    """The in-place form of a function whose first argument is a tensor of the result's shape.

    reads_input: whether its derivative may read that argument, of which a copy is then kept; a row says so itself.
    """
    reads_input = "x0" in f.op.saves if hasattr(f, "op") else reads_input

    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        x_now = _unheard(_writable(x, name))
        keep = snapshot(x_now) if reads_input and _recorded(x_now, *args) else x_now
        assign_checked(x, f(keep, *args, **kwargs), name)
        return x

    method.__name__ = name
    method.__doc__ = f"The in-place form of {name[:-1]}.  Source: torch.Tensor.{name}."
    return method


def in_place_view(f: Callable[..., Tensor], name: str) -> Callable[..., Tensor]:
    """The in-place form of a function that gives a view: `x` becomes that view of what it was.

    Its memory stays what it is; the version grows, as in torch.
    """
    def method(x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        _writable(x, name)
        writing(bottom(x).kind)
        with using(current()._replace(grad_off=frozenset())):  # it stays what it is, also where nothing is recorded
            new = f(_moved(x), *args, **kwargs)
        old = root_of(new)
        if old.shape == x.shape and old is new:
            return x
        for view, _ in views_of(old):
            assert view.extra is not None
            view.extra.root = old
        x.shape, x.value = new.shape, new.value
        if x.node is not LEAF:
            x.node, x.nr = new.node, new.nr
        if hasattr(new, "note"):
            x.note = new.note
        assert new.extra is not None
        if x.extra is not None:
            for what in ("grad", "hooks", "post_hooks", "node_hooks", "role"):
                setattr(new.extra, what, getattr(x.extra, what))
                setattr(x.extra, what, None)
        x.extra = new.extra
        extra_of(old).views = [ref(x), *[ref(v) for v, _ in views_of(old) if v is not new and v is not x]]
        written(bottom(x))
        return x

    method.__name__ = name
    method.__doc__ = f"The in-place form of {name[:-1]}: `x` becomes a view of what it was.  Source: torch.Tensor.{name}."
    return method


def assign_checked(x: Tensor, new: Tensor, name: str) -> None:
    """Assign a result that must have x's shape and a type that x's can hold."""
    if new.shape != x.shape:
        msg = f"output with shape {list(x.shape)} doesn't match the broadcast shape {list(new.shape)} ({name})."
        raise UsageError(msg)
    if new.dtype.category > x.dtype.category:
        msg = f"result type {new.dtype} can't be cast to the desired output type {x.dtype} ({name})."
        raise UsageError(msg)
    assign(x, new if new.dtype is x.dtype else new.to(x.dtype))


def _copied_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x, source = values
    return elementwise(op, size, [to_front(x, bdims[0], size), source], [0, bdims[1]], params)


_copied: OpFunction = row("copy_", lambda xp, x0, x1: xp.array(xp.broadcast_to(x1, x0.shape)), node="CopyBackwards", fits=True,
                          vjp=(zeros_like, lambda ct: ct), jvp=(zeros_like, lambda dx: dx), batch=_copied_batch)


def copy_(x: Tensor, source: Any, non_blocking: bool = False) -> Tensor:
    """Write `source`, broadcast and converted, into `x`.  Source: torch.Tensor.copy_."""
    x_now = _writable(x, "copy_")
    if not isinstance(source, Tensor):
        source = tensor(source, dtype=x.dtype, device=x.device)
    source = source.to(x.dtype).to(x.device)
    if (x_now.requires_grad or source.requires_grad) and (x.extra is None or x.extra.root is None):
        source = _with_node(x_now, source)
    assign(x, source if source.shape == x.shape else source.expand(x.shape))
    return x


def _with_node(x: Tensor, source: Tensor) -> Tensor:
    """What is written to `x`, with a node of its own, for hooks, which requires grad as soon as one of them does.

    It is read once, to be written: where nobody is told of it, it need not be a copy.
    """
    if watched or x.owner is not None or source.owner is not None or None in current().grad_off:
        return _copied(x, source)  # type: ignore[no-any-return]
    return record(_copied.op, None, (x, source), widened(alias(source), x.shape), {}, current())  # type: ignore[no-any-return]


def fill_(x: Tensor, value: Any) -> Tensor:
    """Write one value everywhere.  Source: torch.Tensor.fill_."""
    if dims := rank(value, None):
        msg = f"fill_ only supports 0-dimension value tensor but got tensor with {dims} dimensions."
        raise UsageError(msg)
    return copy_(x, value)


def zero_(x: Tensor) -> Tensor:
    """Write zeros.  Source: torch.Tensor.zero_."""
    return copy_(x, 0)


def detach_(x: Tensor) -> Tensor:
    """Cut the edges of every level, where the tensor stands.  Source: torch.Tensor.detach_."""
    if x.extra is not None and x.extra.root is not None:
        msg = "Can't detach views in-place. Use detach() instead."
        raise UsageError(msg)
    layer: Any = x
    while True:
        if layer.owner is None:
            layer.node = None
            return x
        layer.owner.detach_(layer)
        layer = layer.value


def snapshot(x: Tensor) -> Tensor:
    """The layers of `x` with their edges around a copy of its data, for rules that read what is overwritten."""
    found, rebuild = peel(x, edges=True)
    return rebuild(iter([clone(base.detach()) for base in found]))


def _unheard(x: Tensor) -> Tensor:
    """`x`, or where it is a view with hooks, that view made again: its hooks hear of what read it before, not of this write."""
    if x.extra is None or x.extra.root is None or not isinstance(x.node, Node) or x.node.hooks is None:
        return x
    return along(x.extra.root, x.extra.steps)


def _recorded(*args: Any) -> bool:
    state = current()
    return bool(state.levels) or (
        None not in state.grad_off and any(isinstance(a, Tensor) and a.node is not None for a in args))


def unrecorded(x: Tensor, root: Tensor) -> bool:
    """Whether `x` is a view of what is recorded, and was made where nothing was: what it was has no gradient."""
    return x.node is None and root.node is not None and root is not x


def _writable(x: Tensor, name: str) -> Tensor:
    """Raise UsageError where a leaf that requires grad, or a view of one, would be overwritten while that is recorded."""
    state = current()
    layer: Any = revive(x, state)
    while layer is not None:
        root = root_of(layer)
        if unrecorded(layer, root) and layer.owner not in state.grad_off:
            msg = (f"A view was created in no_grad mode and is being modified inplace with grad mode enabled ({name}). Given "
                   "that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
                   "the view and the inplace either both inside the no_grad block (if you don't want the inplace to be "
                   "tracked) or both outside (if you want the inplace to be tracked). [NOTE in-place]")
            raise UsageError(msg)
        if (root.node is LEAF or (root.node is None and layer.node is not None)) and layer.owner not in state.grad_off:
            what = "a leaf Variable that requires grad" if root is layer else "a view of a leaf Variable that requires grad"
            msg = f"{what} is being used in an in-place operation ({name}). Do it under no_grad(), or on a clone."
            raise UsageError(msg)
        layer = layer.value if layer.owner is not None else None
    return x


# ---------------------------------------------------------------- assign
def assign(x: Tensor, new: Tensor) -> None:
    """Make `x` hold `new`, which has its shape, dtype and device, at every level."""
    state = current()
    x, new = revive(x, state), revive(new, state)
    owners = [y.owner for y in (x, new) if y.owner is not None] + [me for me in state.levels if me.immutable]
    if not owners:
        _write(x, new, state)
        return
    top = max(owners, key=state.levels.index)
    if x.owner is not top:
        promote(x, top)
    top.assign(x, new)


def _write(x: Tensor, new: Tensor, state: State) -> None:
    """At the base: the data, the version, and level 0's edge."""
    overwrite(x, new)
    relink(None, x, new, state)


def overwrite(x: Tensor, new: Tensor) -> Tensor:
    """Write the elements of a base tensor over those of another of its shape: all that changes memory comes to this."""
    state = current()
    if state.dispatch_modes:
        at_base(overwrite, (x, new), {}, state)
        return x
    writing(x.kind)
    target = x.value if is_writable(x.value) else _apart(x)
    x.device.kernel(_put)(target, new.value)
    written(x)
    return x


overwrite.__name__ = "copy_"


def _apart(x: Tensor) -> Array:
    """The elements of `x` where they may be written, though numpy says no: a part of an expanded tensor need not be one."""
    root, target = storage_of(x).array, x.value
    itself = any(stride == 0 and n > 1 for stride, n in zip(target.strides, target.shape, strict=True))
    if itself or not is_writable(root) or not is_dense(root):
        msg = ("unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
               "Please clone() the tensor before performing the operation.")
        raise UsageError(msg)
    return strided(root, target.shape, target.strides, address(target) - address(root))


def _put(xp: Any, target: Array, source: Array) -> None:
    target[...] = source


def relink(owner: Interpreter | None, x: Tensor, new: Tensor, state: State) -> None:
    """Give `x` the edge that `new` has in the graph of `owner`; through its root, where it is a view."""
    if owner in state.grad_off:
        return
    to = edge(new) if new.owner is owner else (None, 0)
    if to[0] is x:  # what was written to a leaf where nothing records
        return
    root = root_of(x)
    if root.node is to[0] is None:  # a constant as before; a view of it may be a leaf
        return
    if root is x:
        set_edge(x, to)
    elif root.node is not None or to[0] is not None:
        assert x.extra is not None
        set_edge(root, (Overwritten(owner, edge(root), to, x.extra.steps, order_of(root)), 0))
        tell(state.watchers, "node", owner, root.node)
    for view, again in views_of(root):
        set_edge(view, edge(again(root)) if root.node is not None else (None, 0))


def set_edge(x: Tensor, to: tuple[Any, int]) -> None:
    """Give `x` another edge.  What retain_grad asked for is the gradient of the new value; hooks stay with the old one."""
    old = x.node
    if isinstance(old, Node) and old.hooks is not None and isinstance(to[0], Node):
        holder = old.hooks.retains.get(x.nr)
        if holder is not None and holder() is x:
            del old.hooks.retains[x.nr]
            hooks_of(to[0]).retains[to[1]] = holder
    x.node, x.nr = to


def views_of(root: Tensor) -> list[tuple[Tensor, Callable[[Tensor], Tensor]]]:
    """The views of a tensor that are alive, and how to make each again."""
    if root.extra is None or root.extra.views is None:
        return []
    alive = [v for v in (r() for r in root.extra.views) if v is not None]
    return [(v, lambda x, steps=v.extra.steps: along(x, steps)) for v in alive if v.extra is not None]  # type: ignore[misc]


def along(x: Tensor, steps: tuple[Callable[[Tensor], Tensor], ...]) -> Tensor:
    """The view of `x` that some steps lead to."""
    for step in steps:
        x = step(x)
    return x


def laid_out(x: Tensor, order: tuple[int, ...]) -> Tensor:
    """A copy whose elements lie in memory in that order of dimensions."""
    return permute(contiguous_row(permute(x, order)), sorted(order, key=order.index))


def embedded(x: Tensor, steps: tuple[Callable[[Tensor], Tensor], ...], part: Tensor,
             order: tuple[int, ...]) -> Tensor:
    """A copy of `x` in which the view that `steps` lead to holds `part`; it belongs to every level that one of them does.

    order: of dimensions in memory, that of the tensor whose views the steps make: in another one they could make copies.
    """
    whole: Tensor = clone(x) if lies_in(x, order) else laid_out(x, order)
    if not set(_owners(part)) <= set(_owners(x)):
        whole = whole + sum_dims(zeros_like(part), dims=tuple(range(part.ndim)), keepdim=False)
        whole = whole if lies_in(whole, order) else laid_out(whole, order)
    view = along(whole, steps)
    if root_of(view) is not root_of(whole) and view.numel():
        msg = (f"a view of a tensor that does not fill its memory, {list(part.shape)} of {list(x.shape)}, was written to where "
               "that is recorded: its gradient would be lost. Write to a view of a clone.")
        raise UsageError(msg)
    assign(view, part)
    return whole


def _owners(x: Tensor) -> Iterator[Interpreter]:
    while x.owner is not None:
        yield x.owner
        x = x.value


class Overwritten(Node):
    """A tensor part of which, a view, was overwritten: the rest of the cotangent goes on, the part goes to the new value.

    Upstream: CopySlices.
    """

    __slots__ = ("order", "part", "rest", "steps")

    def __init__(self, owner: Interpreter | None, rest: Edge, part: Edge, steps: tuple[Callable[[Tensor], Tensor], ...],
                 order: tuple[int, ...]) -> None:
        self.owner = owner
        self.order = order
        self.steps = steps
        self.rest, self.part = rest[0] is not None, part[0] is not None
        self.edges = [rest] * self.rest + [part] * self.part
        self.number = next_number()
        self.hooks = None
        self.metas = None
        self.outs = 1

    def name(self) -> str:
        return "CopySlices"

    def run(self, ct: Any, wanted: set[Any] | None, create_graph: bool) -> Any:
        ct = ct if lies_in(ct, self.order) else laid_out(ct, self.order)
        part = along(ct, self.steps)
        grads = [embedded(ct, self.steps, zeros_like(part), self.order)] if self.rest else []
        return [*grads, clone(part)] if self.part else grads


def promote(x: Tensor, owner: Interpreter) -> None:
    """Bring a tensor, with the tensor it is a view of and all its views, into a level it was not in.

    The handles stay what they are; what they held moves one storey down.
    """
    root = root_of(x)
    handles = [root, *[v for v, _ in views_of(root)]]
    if any(owner.holds(h) for h in handles):
        msg = (f"an in-place operation writes what belongs to {owner} to memory of a primal of that level, which would become "
               "its own derivative: write to the dual itself, or to a clone.")
        raise UsageError(msg)
    insides = [_moved(h) for h in handles]
    for handle, inside in zip(handles, insides, strict=True):
        owner.adopt(handle, inside)
        if handle is not root:
            assert inside.extra is not None
            steps = inside.extra.steps
            handle.extra = Extra()
            handle.extra.root, handle.extra.steps = root, steps
            inside.extra.root = insides[0]
        else:
            handle.extra = Extra()
            handle.extra.views = [ref(v) for v in handles[1:]]
            extra_of(inside).views = [ref(v) for v in insides[1:]]


def _moved(x: Tensor) -> Tensor:
    """Another handle with all that `x` holds."""
    y = Tensor()
    for field in ("owner", "value", "kind", "shape", "node", "extra"):
        setattr(y, field, getattr(x, field))
    for field in ("nr", "note", "store"):
        if hasattr(x, field):
            setattr(y, field, getattr(x, field))
    if y.owner is None:
        y.store = storage_of(x)
    return y
