"""Joining tensors, and taking them apart into views.

Source: torch.cat, torch.stack, torch.split and others beside them.
"""

from __future__ import annotations

from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from ..dtypes import FLOAT, result_type
from ..errors import UsageError
from ..row import row
from ..tensor import Tensor
from .batching import along_dim
from .shape import basic_index, normal_dim, reshape, unsqueeze

if TYPE_CHECKING:
    from collections.abc import Sequence


# ---------------------------------------------------------------- joining
def _cat_vjp(ct: Tensor, shapes: tuple[tuple[int, ...], ...], dim: int) -> list[Tensor]:
    parts, at = [], 0
    for shape in shapes:
        parts.append(basic_index(ct, (*[slice(None)] * dim, slice(at, at + shape[dim]))))
        at += shape[dim]
    return parts


_cat = row("cat", lambda xp, *arrays, dim: xp.concatenate(arrays, axis=dim), vjp=_cat_vjp, jvp="linear", batch=along_dim)


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along a dimension that they have.  Source: torch.cat."""
    if not tensors:
        msg = "torch.cat(): expected a non-empty list of Tensors"
        raise ValueError(msg)
    shapes = [x.shape for x in tensors]
    if () in shapes:
        msg = "zero-dimensional tensor (at position 0) cannot be concatenated"
        raise UsageError(msg)
    if (0,) in shapes:  # which adds nothing, beside any rank
        tensors = [x for x in tensors if x.shape != (0,)] or tensors[:1]
    dtypes = {x.dtype for x in tensors}
    if len(dtypes) > 1:
        common = result_type(dtypes, [], [])
        tensors = [x.to(common) for x in tensors]
    return _cat(*tensors, dim=normal_dim(dim, tensors[0].ndim))  # type: ignore[no-any-return]


concat = concatenate = cat


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension.  Source: torch.stack."""
    if not tensors:
        msg = "stack expects a non-empty TensorList"
        raise UsageError(msg)
    if len({x.shape for x in tensors}) > 1:
        msg = f"stack expects each tensor to be equal size, but got {[list(x.shape) for x in tensors]}"
        raise UsageError(msg)
    at = normal_dim(dim, tensors[0].ndim + 1)
    return cat([unsqueeze(x, at) for x in tensors], at)


# ---------------------------------------------------------------- dimensions that joining needs
def atleast_1d(*tensors: Any) -> Any:
    """0-d tensors as vectors.  Source: torch.atleast_1d."""
    return _each(lambda x: reshape(x, 1) if x.ndim == 0 else x, tensors)


def atleast_2d(*tensors: Any) -> Any:
    """Vectors as matrices of one row.  Source: torch.atleast_2d."""
    return _each(lambda x: unsqueeze(atleast_1d(x), 0) if x.ndim < 2 else x, tensors)


def atleast_3d(*tensors: Any) -> Any:
    """Matrices with a last dimension of 1.  Source: torch.atleast_3d."""
    return _each(lambda x: unsqueeze(atleast_2d(x), -1) if x.ndim < 3 else x, tensors)


def _each(f: Any, tensors: tuple[Any, ...]) -> Any:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return f(tensors[0])
    return tuple(f(x) for x in (tensors[0] if len(tensors) == 1 else tensors))


def _not_empty(name: str, tensors: Sequence[Tensor]) -> None:
    if not tensors:
        msg = f"{name} expects a non-empty TensorList"
        raise UsageError(msg)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along columns (vectors end to end).  Source: torch.hstack."""
    _not_empty("hstack", tensors)
    parts = atleast_1d(*tensors) if len(tensors) > 1 else (atleast_1d(tensors[0]),)
    return cat(parts, 0 if parts[0].ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along rows.  Source: torch.vstack."""
    _not_empty("vstack", tensors)
    return cat([atleast_2d(x) for x in tensors], 0)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along the third dimension.  Source: torch.dstack."""
    _not_empty("dstack", tensors)
    return cat([atleast_3d(x) for x in tensors], 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Joined along columns; vectors are columns.  Source: torch.column_stack."""
    return cat([reshape(x, -1, 1) if x.ndim < 2 else x for x in tensors], 1)


# ---------------------------------------------------------------- parts, as views
def narrow(x: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` entries of a dimension from `start`, a view.  Source: torch.narrow."""
    if not x.ndim:
        msg = "narrow() cannot be applied to a 0-dim tensor."
        raise UsageError(msg)
    at = normal_dim(dim, x.ndim)
    n = x.shape[at]
    if isinstance(start, Tensor) and (start.ndim or start.dtype.category >= FLOAT):
        msg = "start must be an 0-dim integral Tensor."
        raise UsageError(msg)
    start = int(start)
    if length < 0:
        msg = "narrow(): length must be non-negative."
        raise UsageError(msg)
    if not -n <= start <= n:
        msg = f"start out of range (expected to be in range of [{-n}, {n}], but got {start})"
        raise IndexError(msg)
    start += n if start < 0 else 0
    if start + length > n:
        msg = f"start ({start}) + length ({length}) exceeds dimension size ({n})."
        raise UsageError(msg)
    return basic_index(x, (*[slice(None)] * at, slice(start, start + length)))


def select(x: Tensor, dim: int, index: int) -> Tensor:
    """One entry of a dimension, which is left out.  Source: torch.select."""
    if not x.ndim:
        msg = "select() cannot be applied to a 0-dim tensor."
        raise IndexError(msg)
    at = normal_dim(dim, x.ndim)
    if not -x.shape[at] <= index < x.shape[at]:
        msg = f"select(): index {index} out of range for tensor of size {list(x.shape)} at dimension {at}"
        raise IndexError(msg)
    return basic_index(x, (*[slice(None)] * at, int(index)))


def unbind(x: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """Every entry of a dimension.  Source: torch.unbind."""
    at = normal_dim(dim, x.ndim)
    return tuple([basic_index(x, (*[slice(None)] * at, i)) for i in range(x.shape[at])])


def _divided(name: str, x: Tensor, dim: int) -> tuple[int, int]:
    """The dimension that is cut into pieces, and its extent."""
    if not x.ndim:
        msg = f"{name} expects at least a 1-dimensional tensor"
        raise UsageError(msg)
    at = normal_dim(dim, x.ndim)
    return at, x.shape[at]


def split(x: Tensor, split_size: int | Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """Pieces of one size (the last may be smaller), or of the sizes given.  Source: torch.split."""
    at, n = _divided("split", x, dim)
    if isinstance(split_size, int):
        if split_size < 0 or (not split_size and n):
            msg = ("split expects split_size be non-negative, and 0 only where the dimension's size is 0, but got split_size="
                   f"{split_size} for a size of {n}")
            raise UsageError(msg)
        sizes: Sequence[int] = [min(split_size, n - i) for i in range(0, n, split_size or 1)] or [0]
    else:
        sizes = split_size
    if any(size < 0 for size in sizes):
        msg = f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}"
        raise UsageError(msg)
    if sum(sizes) != n:
        msg = (f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {at}), but got "
               f"split_sizes={list(sizes)}")
        raise UsageError(msg)
    ends = accumulate(sizes)
    return tuple([basic_index(x, (*[slice(None)] * at, slice(end - k, end))) for end, k in zip(ends, sizes, strict=True)])


split_with_sizes = unsafe_split = split


def chunk(x: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """At most `chunks` pieces of one size.  Source: torch.chunk."""
    at, n = _divided("chunk", x, dim)
    if chunks <= 0:
        msg = f"chunk expects `chunks` to be greater than 0, got: {chunks}"
        raise UsageError(msg)
    return split(x, -(-n // chunks) if n else [0] * chunks, at)


unsafe_chunk = chunk


def tensor_split(x: Tensor, indices_or_sections: int | Sequence[int] | Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """So many pieces, as even as can be, or pieces that end before the indices given.  Source: torch.tensor_split."""
    at, n = _divided("tensor_split", x, dim)
    where = indices_or_sections.tolist() if isinstance(indices_or_sections, Tensor) else indices_or_sections
    if isinstance(where, int):
        if where <= 0:
            msg = f"number of sections must be larger than 0, got {where}"
            raise UsageError(msg)
        each, more = divmod(n, where)
        return split(x, [each + (i < more) for i in range(where)], at)
    bounds = [0, *[slice(i).indices(n)[1] for i in where], n]
    return tuple(basic_index(x, (*[slice(None)] * at, slice(a, max(a, b)))) for a, b in pairwise(bounds))
