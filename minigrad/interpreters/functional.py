"""The functional interpreter: no memory is written at its level. [NOTE functionalize]

An in-place op gives the wrapper another value; a view that was written gives one to the tensor it is a view of, whose other
views are then made again.  A tensor that the function did not make is brought in by the first write to it, and put back, with
that write, when the level ends.

Upstream: FunctionalizeInterpreter, FunctionalTensorWrapper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

from ..op import draw_below
from ..ops.inplace import along, assign, snapshot, views_of
from ..ops.shape import clone
from ..state import below, using
from ..tensor import LEAF, Tensor, bottom, wrapper
from ..views import relate, root_of
from .base import Interpreter

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..autograd.function_call import Call
    from ..op import Op


FIELDS = tuple(name for name in Tensor.__slots__ if not name.startswith("__"))


class FunctionalInterpreter(Interpreter):
    """One level without writes; its tensors are `wrapper(me, value)`.  With `copies`, views are copies too."""

    __slots__ = ("brought_in", "copies")
    name = "functionalize"
    immutable = True

    def __init__(self, *, copies: bool) -> None:
        self.copies = copies
        self.brought_in: list[tuple[Tensor, Tensor, Any, int]] | None = []
        """The tensors from outside that were written to: the handle, what it held, its edge.  None when the level has ended."""

    def process(self, op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        out = op.call(*[x.value if type(x) is Tensor and x.owner is self else x for x in args], **params)
        if op.outs != 1:
            return tuple([wrapper(self, o) for o in out])
        if not op.view:
            return wrapper(self, out)
        view = wrapper(self, clone(out) if self.copies else out)
        if bottom(out).store is bottom(args[0]).store:  # a detached tensor too is written with what it shares memory with
            relate(view, args[0], lambda x: op.call(x, *args[1:], **params))
        return view

    def process_call(self, call: Call, args: tuple[Any, ...]) -> Any:
        return call.at_functional(self, args)

    def draw(self, op: Op, params: dict[str, Any]) -> Any:
        return draw_below(self, op, params)

    def rewrap(self, x: Tensor) -> Callable[..., Tensor]:
        return lambda value: wrapper(self, value)

    renew = rewrap

    def assign(self, x: Tensor, new: Tensor) -> None:
        value = new.value if new.owner is self else new
        root = root_of(x)
        steps = x.extra.steps if root is not x and x.extra is not None else ()
        with using(below(self)):  # it is a copy that is written to, which nobody else knows
            root.value = snapshot(root.value)
            assign(along(root.value, steps), value)
        for view, again in views_of(root):
            view.value = again(root).value

    def adopt(self, x: Tensor, inside: Tensor) -> None:
        if self.brought_in is not None:  # a recomputation keeps what it makes
            self.brought_in.append((x, inside, inside.node, getattr(inside, "nr", 0)))
        if inside.node is LEAF:
            inside.node, inside.nr = x, 0  # cotangents go to the handle that the program knows
        super().adopt(x, inside)

    def value(self, x: Any) -> Any:
        """What a tensor of this level holds, also below levels that were entered since; of all else, what it is."""
        found = x
        while isinstance(found, Tensor) and found.owner is not None:
            if found.owner is self:
                return found.value
            found = found.value
        return x

    def give_back(self) -> None:
        """Make the tensors that were brought in what they were again, and write to them what was written here."""
        brought_in, self.brought_in = self.brought_in or (), None
        handles = {id(inside): handle for handle, inside, _, _ in brought_in}
        written = [(handle, self.value(handle)) for handle, inside, _, _ in brought_in if self.value(handle) is not inside]
        for handle, inside, node, nr in brought_in:
            for name in FIELDS:
                if hasattr(inside, name):
                    setattr(handle, name, getattr(inside, name))
            handle.node, handle.nr = node, nr
            extra = handle.extra
            if extra is not None and extra.root is not None:
                extra.root = handles[id(extra.root)]
            elif extra is not None and extra.views:
                extra.views = [ref(handles[id(v)]) for v in (r() for r in extra.views) if v is not None]
        for handle, value in written:
            if root_of(handle) is handle:  # views lie in the same memory
                assign(handle, value)
