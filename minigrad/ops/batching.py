"""Batching rules that rows share.

A rule is f(op, size, values, bdims, params) -> (out, bdim): `values` are one storey down, `bdims[i]` is the physical
dimension that holds the batch of `values[i]`, None where it is the same for every sample.

    logical   (a,    b)        what the program sees
    physical  (a, B, b)        bdim = 1: logical dims at or after it are one further on
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..dtypes import result_type
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..op import Op

Batched = tuple[Any, Any]
Values = list[Any]
Bdims = list[int | None]
Params = dict[str, Any]


def to_front(x: Tensor, bdim: int | None, size: int | None = None) -> Tensor:
    """Move the batch to physical dimension 0; with `size`, an unbatched tensor is expanded to have one."""
    if bdim == 0 or (bdim is None and size is None):
        return x
    from .shape import moveaxis, unsqueeze, widened  # noqa: PLC0415  shape's own rows need this file

    return widened(unsqueeze(x, 0), (size, *x.shape)) if bdim is None else moveaxis(x, bdim, 0)


def padded(front: Tensor, missing: int) -> Tensor:
    """A tensor with its batch in front, and as many extents of 1 after that as other tensors have more dimensions."""
    return front.reshape(front.shape[0], *[1] * missing, *front.shape[1:]) if missing else front


def rank(x: Any, bdim: int | None) -> int:
    """The number of logical dimensions."""
    return (x.ndim - (bdim is not None)) if isinstance(x, Tensor) else 0


def physical(dim: int, bdim: int) -> int:
    """The physical dimension of a logical one (not negative)."""
    return dim + (dim >= bdim)


def elementwise(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """Bring batches to the front and pad logical ranks, so that broadcasting lines up logical dimensions."""
    batched = [(x.ndim, b) for x, b in zip(values, bdims, strict=True) if b is not None]
    others = [x for x, b in zip(values, bdims, strict=True) if b is None and isinstance(x, Tensor) and x.ndim]
    if op.promote in ("arith", "float"):
        values = _agree(values, bdims)
    if not others and len(set(batched)) == 1:
        return op.call(*values, **params), batched[0][1]
    ranks = max(rank(x, b) for x, b in zip(values, bdims, strict=True))
    fronts = [x if b is None else padded(to_front(x, b), ranks - (x.ndim - 1)) for x, b in zip(values, bdims, strict=True)]
    return op.call(*fronts, **params), 0


def _agree(values: Values, bdims: Bdims) -> Values:
    """Promote by logical ranks: a batch of 0-d tensors is as weak as one of them."""
    tensors = [(x, rank(x, b)) for x, b in zip(values, bdims, strict=True) if isinstance(x, Tensor)]
    if all(x.dtype is tensors[0][0].dtype for x, _ in tensors):
        return values
    common = result_type([x.dtype for x, n in tensors if n], [x.dtype for x, n in tensors if not n], [])
    if common is result_type([x.dtype for x, _ in tensors if x.ndim], [x.dtype for x, _ in tensors if not x.ndim], []):
        return values  # the op comes to it by itself, and sees what types it was given
    return [x.to(common) if isinstance(x, Tensor) else x for x in values]


def over_dims(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """A reduction over `dims`, a tuple of logical dimensions (not negative), with `keepdim`."""
    (x,), (bdim,) = values, bdims
    assert bdim is not None
    dims = tuple([physical(d, bdim) for d in params["dims"]])
    out = op.call(x, **{**params, "dims": dims})
    return out, bdim if params.get("keepdim") else bdim - sum(d < bdim for d in dims)


def along_dim(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """Inputs of one rank, worked on along `dim` (logical, not negative): batches go to the front, dim goes one up."""
    fronts = [to_front(x, b, size) if isinstance(x, Tensor) and (b is not None or x.ndim) else x
              for x, b in zip(values, bdims, strict=True)]
    return op.call(*fronts, **{**params, "dim": params["dim"] + 1}), 0


def same_bdim(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """One input; the op treats every dimension alike and keeps the shape."""
    return op.call(values[0], **params), bdims[0]


def with_batch_shape(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """One input and a `shape` for the output: the batch goes in front of both."""
    x = to_front(values[0], bdims[0])
    return op.call(x, **{**params, "shape": (size, *params["shape"])}), 0


def leading(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """A rule for rows whose inputs have the same leading dimensions: the batch is one more of them."""
    fronts = [to_front(x, b, size) if isinstance(x, Tensor) else x for x, b in zip(values, bdims, strict=True)]
    return op.call(*fronts, **params), 0


def aligned(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """A rule for rows whose inputs' leading dimensions broadcast: the batch goes in front of the longest of them."""
    ranks = [rank(x, b) for x, b in zip(values, bdims, strict=True)]
    fronts = [x if b is None else padded(to_front(x, b), max(ranks) - r) for x, b, r in zip(values, bdims, ranks, strict=True)]
    return op.call(*fronts, **params), 0
