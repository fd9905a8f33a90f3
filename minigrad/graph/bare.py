"""Backward on bare arrays: where nothing records and only arrays are below, rules of elementwise rows run on those.

A short cut that means the same; a first reading may leave it out. [NOTE fast-path]  A cotangent that one edge alone knows
travels as an array, or as numpy's scalar where it is 0-d; what two edges know is a tensor: no leaf takes it for its own.
"""

from __future__ import annotations

from types import CellType, FunctionType
from typing import TYPE_CHECKING, Any

from ..backend import CPU, HOST_ARRAY, HOST_SCALAR, NUMPY_DTYPE, host_array
from ..dtypes import ALL
from ..storage import Storage, kind_of
from ..tensor import Tensor, base_tensor
from .saved import Constant, PackedTensor, SavedValue

if TYPE_CHECKING:
    from ..backend import Array
    from .record import OpNode


# ---------------------------------------------------------------- cotangents
def bare(ct: Any) -> Array | None:
    """The array of a cotangent that is nothing more: floating, on the host, without an edge; None where it is more."""
    if type(ct) is HOST_ARRAY or isinstance(ct, HOST_SCALAR):
        return ct
    return ct.value if ct.kind.fast and ct.node is None else None


def around(ct: Any) -> Tensor:
    """The tensor around an array that nobody else knows; a tensor itself."""
    if isinstance(ct, Tensor):
        return ct
    array = host_array(ct)
    return base_tensor(array, _KINDS[array.dtype.char], array.shape, None)


_KINDS = {NUMPY_DTYPE[d].char: kind_of(d, CPU) for d in ALL if d.differentiable}


# ---------------------------------------------------------------- nodes
def on_arrays(node: OpNode, ct: Any) -> list[Any] | None:
    """The cotangents of a node's edges, or None where the node takes more than arrays."""
    if not node.plan.op.elementwise:
        return None
    rules, array = node.plan.arrays, bare(ct)
    if array is None and ct.kind.complex and ct.shape and ct.node is None:
        # numpy rounds products of complex scalars, which is what comes of 0-d arrays, otherwise than those of arrays
        rules, array = node.plan.complexes, ct.value
    if rules is None or array is None or node.metas is not None or node.held is None:
        return None
    values = []
    number = type(array) is not HOST_ARRAY  # numpy is faster on its scalars than on 0-d arrays
    for kept in node.saved:
        if type(kept) is Storage and not kept.version:
            values.append(kept.array[()] if number else kept.array)
        elif type(kept) is Constant:
            values.append(kept.value)
        elif type(kept) is PackedTensor or type(kept) is SavedValue:
            return None
        else:
            values.append(kept.unpack().value)
    grads = []
    for rule, reads in rules:
        if len(reads) == 1 and type(reads[0]) is int:  # as most rules, where a list would be a good part of the price
            made = rule(array, values[reads[0]])
        else:
            made = rule(array, *[values[k] if type(k) is int else k(node, False) for k in reads])
        if made is array:
            made = ct = around(ct)
        grads.append(made)
    return grads if rules is node.plan.arrays else [around(g) for g in grads]


# ---------------------------------------------------------------- rules
def as_kernels(steps: tuple[Any, ...], on: str) -> tuple[Any, ...] | None:
    """The rules of an elementwise row with every row they name read as its kernel, or None where they name something else.

    on: "on_reals" or "on_complexes", the attribute of what means something else on such arrays.
    """
    rules = [None if step is None else _as_kernel(step[0], on) for step in steps]
    return None if None in rules else tuple([(rule, step[1]) for rule, step in zip(rules, steps, strict=True)])


def _as_kernel(f: Any, on: str) -> Any:
    """A row as its kernel, a number as it is, any other function with what it names read so; None where that fails."""
    f = getattr(f, on, f)
    op = getattr(f, "op", None)
    if op is not None:
        return CPU.kernel(op.kernel) if op.elementwise else None
    if type(f) is not FunctionType:
        return f if type(f) in (int, float) else None
    named = {name: _as_kernel(f.__globals__.get(name), on) for name in f.__code__.co_names}
    closed = [_as_kernel(cell.cell_contents, on) for cell in f.__closure__ or ()]
    if None in named.values() or None in closed:
        return None
    # code of its own: CPython adapts code to what it meets, and the original meets tensors
    cells = tuple([CellType(c) for c in closed])
    return FunctionType(f.__code__.replace(), {"__name__": f.__module__, **named}, None, f.__defaults__, cells)
