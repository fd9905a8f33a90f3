"""Value numbering: which value of one run of a region is which value of another. [NOTE kept-by-value]

What a base op computes has a number, which is made of the op, of its parameters and of the numbers of what it reads.  So two
runs agree about a value wherever both compute it in the same way from the same beginnings, whatever else one of them does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, ref

from .. import tree
from ..backend import HOST_ARRAY, address
from ..random import Generator, stream_of
from ..state import current
from ..tensor import Tensor, bases, storage_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..storage import Storage


class Numbers:
    """The numbers of one region, in all its runs."""

    __slots__ = ("_arguments", "_held", "_known", "computed")

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._held: WeakKeyDictionary[Storage, tuple[int, int]] = WeakKeyDictionary()
        """Of a memory: the number of what it held at which version."""
        self._arguments: list[int] = []
        """Of the base tensors among the region's arguments."""
        self.computed: set[int] = set()
        """The numbers of what ops left in memory of their own."""

    def of(self, what: Any) -> int:
        """The number of what can be said of a value; one of its own, where that cannot be compared."""
        try:
            return self._known.setdefault(what, len(self._known))
        except TypeError:  # unhashable
            return self._known.setdefault(object(), len(self._known))

    def given(self, arguments: Any) -> None:
        """The region is called: its arguments are those of every run, in whatever memory they lie now."""
        given = [base for x in tree.leaves_of(arguments) if isinstance(x, Tensor) for base in bases(x)]
        if not self._arguments:
            self._arguments = [self.memory(base) for base in given]
        for base, number in zip(given, self._arguments, strict=False):
            self.holds(base, number)

    def memory(self, x: Tensor) -> int:
        """The number of what the memory of `x` holds; where it is not known, that memory at that version is itself."""
        store = storage_of(x)
        number, version = self._held.get(store, (0, -1))
        return number if version == store.version else self.holds(x, self.of((ref(store), store.version)))

    def holds(self, x: Tensor, number: int) -> int:
        """The memory of `x` holds the value of that number now."""
        store = storage_of(x)
        self._held[store] = number, store.version
        return number

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
        """The number of a call."""
        said = [self._said(x) for x in args], [(name, self._said(x)) for name, x in kwargs.items()]
        return self.of((function, current().default_dtype, *map(tuple, said)))

    def made(self, call: int, outs: tuple[Tensor, ...]) -> None:
        """A call gave these: new memory holds them, a view lies in memory that is known."""
        for k, out in enumerate(outs):
            if storage_of(out) not in self._held:
                self.computed.add(self.holds(out, self.of((call, k))))

    def _said(self, x: Any) -> Any:
        if isinstance(x, Tensor):
            place = address(x.value) - address(storage_of(x).array)
            return self.memory(x), place, x.value.shape, x.value.strides, x.dtype
        if isinstance(x, (tuple, list)):
            return tuple([self._said(y) for y in x])
        if isinstance(x, slice):
            return slice, x.start, x.stop, x.step
        if isinstance(x, Generator):
            return x, stream_of(x).place
        if isinstance(x, HOST_ARRAY):
            return x.dtype.str, x.shape, x.tobytes()
        return type(x), repr(x) if isinstance(x, (float, complex)) else x  # 0.0 and -0.0 are equal, and not the same
