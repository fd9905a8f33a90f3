"""functionalize: a function without writes. [NOTE functionalize]

Source: torch.func.functionalize.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import tree
from .errors import UsageError
from .interpreters.functional import FunctionalInterpreter
from .ops.inplace import assign
from .state import level
from .tensor import Tensor, wrapper

if TYPE_CHECKING:
    from collections.abc import Callable

REMOVE = ("mutations", "mutations_and_views")


def functionalize(func: Callable[..., Any], *, remove: str = "mutations") -> Callable[..., Any]:
    """Return a function with func's results in which no memory is written: in-place ops compute values instead.

    What func writes to its arguments, and to tensors that it captures, is written to them when it has returned.
    remove: "mutations", or "mutations_and_views", where views are copies too.  An autograd.Function runs as it is.
    Raises UsageError for another `remove`.  Source: torch.func.functionalize.
    """
    if remove not in REMOVE:
        msg = (f"functionalize(f, remove='mutations'): received invalid argument for remove={remove}. Valid options are: "
               f"{' or '.join(f'remove={r!r}' for r in REMOVE)}")
        raise UsageError(msg)

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten((args, kwargs))
        me = FunctionalInterpreter(copies=remove == "mutations_and_views")
        given = {id(x): (x, wrapper(me, x)) for x in leaves if isinstance(x, Tensor)}
        mine = {id(inside): x for x, inside in given.values()}
        args, kwargs = tree.unflatten([given[id(x)][1] if id(x) in given else x for x in leaves], spec)
        try:
            with level(me):
                out = func(*args, **kwargs)
        finally:
            me.give_back()
            for x, inside in given.values():
                if me.value(inside) is not x:
                    assign(x, me.value(inside))
        return tree.map(lambda y: mine.get(id(y), y) if id(y) in mine else me.value(y), out)
    return wrapped
