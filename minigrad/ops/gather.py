"""Rows that read and write along one dimension: an index for each element, or for whole entries.

Everything that is read at indices is differentiated by adding at them, and the other way round.

Upstream: derivatives.yaml (gather, scatter, index_select, index_add, ...); ScatterGatherKernel.cpp.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from ..dtypes import bool_, int32, int64
from ..errors import Refusal, UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import along_dim, elementwise
from .choice import where
from .creation import new_full, new_zeros, zeros_like
from .indexing import fill_at, index_batch, put, put_batch
from .linalg import broadcast_shapes
from .rearrange import expand_as
from .shape import basic_index, normal_dim, reshape, sum_dims, widened
from .special import add_at

if TYPE_CHECKING:
    from ..op import Op
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- kernels
def _in_range(xp: Any, index: Any, n: int, dim: int, error: type[Exception] = UsageError) -> Any:
    """The index, where all of it lies in 0 .. n - 1; these ops do not count from the end."""
    if index.size and index.view(f"u{index.itemsize}").max() >= n:  # as unsigned, a negative one is large
        wrong = index[(index < 0) | (index >= n)][0]
        msg = f"index {int(wrong)} is out of bounds for dimension {dim} with size {n}"
        raise error(msg)
    return index


def along_key(xp: Any, index: Any, dim: int) -> tuple[Any, ...]:
    """The key that names, for each element of `index`, the place at that index along `dim`."""
    rank = index.ndim
    return tuple([index if k == dim else xp.arange(extent).reshape([-1 if d == k else 1 for d in range(rank)])
                  for k, extent in enumerate(index.shape)])


def place_key(xp: Any, index: Any, n: int, dim: int) -> tuple[Any, ...]:
    """The key of along_key, of an index that a program gave and that must lie in 0 .. n - 1."""
    return along_key(xp, _in_range(xp, index, n, dim), dim)


def flat_places(xp: Any, key: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """The places that a key names in an array of that shape, counted in order: found so, elements take half the time."""
    parts, step = [key[-1]], 1
    for index, n in zip(key[-2::-1], shape[:0:-1], strict=True):
        step *= n
        parts.append(index * xp.int64(step))
    first, *others = sorted(parts, key=lambda part: part.size)  # those that broadcast meet the large one once
    return sum(others, first)


def elements(xp: Any, x: Any, key: tuple[Any, ...]) -> Any:
    """The elements that a key names, one index for each dimension."""
    return x.reshape(-1)[flat_places(xp, key, x.shape)] if x.flags.c_contiguous else x[key]


def _entries(xp: Any, index: Any, n: int, dim: int, error: type[Exception] = UsageError) -> tuple[Any, ...]:
    """The key of whole entries along `dim`."""
    return (*[slice(None)] * dim, _in_range(xp, index, n, dim, error))


def _spread_kernel(xp: Any, x0: Any, x1: Any, shape: tuple[int, ...], dim: int, distinct: bool) -> Any:
    """Zeros, with the elements added at the index; where a kernel chose it and names no place twice, `distinct`, written."""
    key = along_key(xp, x1, dim) if distinct else place_key(xp, x1, shape[dim], dim)
    places, values = flat_places(xp, key, shape).reshape(-1), x0.reshape(-1)
    if not distinct and x0.dtype.kind == "f" and x0.size:  # counting with weights takes half as long as adding at places
        return xp.bincount(places, values, math.prod(shape)).reshape(shape).astype(x0.dtype, copy=False)
    out = xp.zeros(math.prod(shape), x0.dtype)
    if distinct:
        out[places] = values
    else:
        add_at(xp, out, places, values)
    return out.reshape(shape)


def _scatter_add_kernel(xp: Any, x0: Any, x1: Any, x2: Any, dim: int) -> Any:
    out = _spread_kernel(xp, x2, x1, x0.shape, dim, distinct=False)
    return xp.add(x0, out, out=out)


def _spread_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    return along_dim(op, size, values, bdims, {**params, "shape": (size, *params["shape"])})


# ---------------------------------------------------------------- one index for each element
gather_at: OpFunction = row(
    "gather", lambda xp, x0, x1, dim: elements(xp, x0, place_key(xp, x1, x0.shape[dim], dim)), saves=("x1", "x0"),
    batch=along_dim, vjp=(lambda ct, x0, x1, dim: spread_at(ct, x1, shape=x0.shape, dim=dim, distinct=False), None),
    jvp=(lambda dx, x1, dim: gather_at(dx, x1, dim=dim), None))

spread_at: OpFunction = row(
    "gather_backward", _spread_kernel, saves=("x1",), batch=_spread_batch, node="ScatterAddBackward0",
    vjp=(lambda ct, x1, dim: gather_at(ct, x1, dim=dim), None),
    jvp=(lambda dx, x1, shape, dim, distinct: spread_at(dx, x1, shape=shape, dim=dim, distinct=distinct), None),
    doc="The transpose of gather: zeros of a shape, with the elements of a tensor added at the index.")

scatter_add_at: OpFunction = row(
    "scatter_add", _scatter_add_kernel,
    saves=("x1",), batch=along_dim, vjp=(lambda ct: ct, None, lambda ct, x1, dim: gather_at(ct, x1, dim=dim)),
    jvp=(lambda dx: dx, None, lambda dx, x0, x1, dim: spread_at(dx, x1, shape=x0.shape, dim=dim, distinct=False)))

scatter_at: OpFunction = row(
    "scatter", lambda xp, x0, x1, x2, dim: put(xp, x0, place_key(xp, x1, x0.shape[dim], dim), x2, accumulate=False),
    saves=("x1",), batch=along_dim,
    vjp=(lambda ct, x1, dim: scatter_at(ct, x1, 0, dim=dim), None, lambda ct, x1, dim: gather_at(ct, x1, dim=dim)),
    jvp=(lambda dx, x1, dim: scatter_at(dx, x1, 0, dim=dim), None,
         lambda dx, x0, x1, dim: scatter_at(zeros_like(x0), x1, dx, dim=dim)))


def one_rank(name: str, x: Tensor, dim: int, index: Tensor, src: Any = None) -> tuple[Any, ...]:
    """Checked arguments with at least one dimension: (x, index, src, dim, whether a dimension was added)."""
    if not index.numel():
        index = index.to(int64)
    if index.dtype not in (int64, int32):
        msg = f"{name}(): Expected dtype int32/int64 for index"
        raise UsageError(msg)
    at, added = normal_dim(dim, x.ndim), x.ndim == 0
    x, index, src = (reshape(t, 1) if isinstance(t, Tensor) and t.ndim == 0 else t for t in (x, index, src))
    if index.ndim != x.ndim and index.numel():
        msg = "Index tensor must have the same number of dimensions as input tensor"
        raise UsageError(msg)
    if any(i > n for d, (i, n) in enumerate(zip(index.shape, x.shape, strict=False)) if d != at):
        msg = (f"Size does not match at dimension {at} expected index {list(index.shape)} to be no larger than self "
               f"{list(x.shape)} apart from dimension {at}")
        raise UsageError(msg)
    if isinstance(src, Tensor):
        if src.dtype is not x.dtype:
            msg = f"{name}(): Expected self.dtype to be equal to src.dtype"
            raise UsageError(msg)
        if src.ndim != index.ndim or any(i > n for i, n in zip(index.shape, src.shape, strict=True)):
            msg = (f"Expected index {list(index.shape)} to be no larger than self {list(x.shape)} apart from dimension {at} "
                   f"and to be no larger size than src {list(src.shape)}")
            raise UsageError(msg)
        if src.shape != index.shape:
            src = basic_index(src, tuple(slice(n) for n in index.shape))
    return x, index, src, at, added


def gather(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The elements whose place along `dim` the index says; the result has the index's shape.

    index: of x's rank, int64, 0 <= index < x.shape[dim], not larger than x in other dimensions.
    Raises UsageError, as torch, where an index is out of bounds.  Source: torch.gather.
    """
    was_scalar = index.ndim == 0
    x, index, _, at, _ = one_rank("gather", x, dim, index)
    if not index.numel():  # of any rank
        return reshape(gather_at(reshape(x, -1), reshape(index, -1), dim=0), index.shape)
    out = gather_at(x, index, dim=at)
    return reshape(out, ()) if was_scalar else out


def scatter(x: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None) -> Tensor:
    """`x` with `src`, a tensor or a number, written where the index says.  Source: torch.scatter."""
    if reduce is not None:
        if reduce != "add":
            msg = f"scatter(reduce={reduce!r}) has no derivative: only reduce='add' is supported, as scatter_add."
            raise Refusal(msg)
        given = value if src is None else src
        src = given if isinstance(given, Tensor) else new_full(x, index.shape, given)
        return scatter_add(x, dim, index, src)
    x, index, src, at, added = one_rank("scatter", x, dim, index, value if src is None else src)
    out = scatter_at(x, index, src, dim=at)
    return reshape(out, ()) if added else out


def scatter_add(x: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """`x` with `src` added where the index says, as often as it does.  Source: torch.scatter_add."""
    x, index, src, at, added = one_rank("scatter_add", x, dim, index, src)
    out = scatter_add_at(x, index, src, dim=at)
    return reshape(out, ()) if added else out


def take_along_dim(x: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """As gather, but x and the indices are first broadcast, and may be negative; of the flat tensor without `dim`.

    Source: torch.take_along_dim.
    """
    if dim is None:
        return take_along_dim(reshape(x, -1), reshape(indices, -1), 0)
    if x.ndim != indices.ndim:
        msg = (f"torch.take_along_dim(): input and indices should have the same number of dimensions, but got {x.ndim} "
               f"dimensions for input, and {indices.ndim} dimensions for indices")
        raise UsageError(msg)
    at = normal_dim(dim, x.ndim)
    indices = where(indices < 0, indices + x.shape[at], indices)
    like = broadcast_shapes(*[(*y.shape[:at], 1, *y.shape[at + 1:]) for y in (x, indices)])
    x, indices = (widened(y, *like[:at], y.shape[at], *like[at + 1:]) for y in (x, indices))
    return gather(x, at, indices)


# ---------------------------------------------------------------- whole entries
def _by_index(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """Reading: index_select of a batch is indexing."""
    return index_batch(op, size, values, bdims, {"places": (*[False] * params["dim"], True)})


def _by_put(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """Writing: (x, index, source) of a batch is index_put of (x, source, index)."""
    return put_batch(op, size, [values[0], values[2], values[1]], [bdims[0], bdims[2], bdims[1]],
                     {"places": (*[False] * params["dim"], True), "accumulate": op.name == "index_add"})


def _fill_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """As masked_fill: an entry that is named twice is written once, also when its cotangent is read."""
    x, index, value = values
    if not isinstance(value, Tensor):
        return _by_put(op, size, values, bdims, params)
    mask, bdim = _by_put(op, size, [zeros_like(x, dtype=bool_), index, True], [bdims[0], bdims[1], None], params)
    return elementwise(fill_at.op, size, [x, mask, value], [bdims[0], bdim, bdims[2]], {})


def _select_kernel(xp: Any, x0: Any, x1: Any, dim: int) -> Any:
    return xp.take(x0, _in_range(xp, x1, x0.shape[dim], dim), axis=dim)  # which copies whole rows


_index_select: OpFunction = row(
    "index_select", _select_kernel, saves=("x1",), batch=_by_index,
    vjp=(lambda ct, shape0, x1, dim: _index_add(new_zeros(ct, shape0), x1, ct, dim=dim), None),
    jvp=(lambda dx, x1, dim: _index_select(dx, x1, dim=dim), None))

_index_add: OpFunction = row(
    "index_add", lambda xp, x0, x1, x2, dim: put(xp, x0, _entries(xp, x1, x0.shape[dim], dim), x2, accumulate=True),
    saves=("x1", "x2"), batch=_by_put,
    vjp=(lambda ct: ct, None, lambda ct, x1, x2, dim: expand_as(_index_select(ct, x1, dim=dim), x2)),
    jvp=(lambda dx: dx, None, lambda dx, x0, x1, dim: _index_add(zeros_like(x0), x1, dx, dim=dim)))

_index_copy: OpFunction = row(
    "index_copy",
    lambda xp, x0, x1, x2, dim: put(xp, x0, _entries(xp, x1, x0.shape[dim], dim, IndexError), x2, accumulate=False),
    saves=("x1", "x2"), batch=_by_put,
    vjp=(lambda ct, x1, dim: _index_fill(ct, x1, 0, dim=dim), None,
         lambda ct, x1, x2, dim: expand_as(_index_select(ct, x1, dim=dim), x2)),
    jvp=(lambda dx, x1, dim: _index_fill(dx, x1, 0, dim=dim), None,
         lambda dx, x0, x1, dim: _index_copy(zeros_like(x0), x1, dx, dim=dim)))


def _filled(ct: Tensor, index: Tensor, dim: int) -> Tensor:
    """The sum over the entries that index_fill writes, each once."""
    rest = _index_fill(ct, index, 0, dim=dim)
    return sum_dims(ct - rest, dims=tuple(range(ct.ndim)), keepdim=False)  # type: ignore[no-any-return]


_index_fill: OpFunction = row(
    "index_fill",
    lambda xp, x0, x1, x2, dim: put(xp, x0, (*[slice(None)] * dim, x1), x2, accumulate=False),
    saves=("x1",), batch=_fill_batch,
    vjp=(lambda ct, x1, dim: _index_fill(ct, x1, 0, dim=dim), None, lambda ct, x1, dim: _filled(ct, x1, dim)),
    jvp=(lambda dx, x1, dim: _index_fill(dx, x1, 0, dim=dim), None,
         lambda dx, x0, x1, dim: _index_fill(zeros_like(x0), x1, dx, dim=dim)))


def index_vector(name: str, index: Tensor) -> Tensor:
    """An index that is a vector, or a number as one."""
    if index.ndim > 1:
        msg = f"{name}(): Index is supposed to be a vector"
        raise IndexError(msg)
    if index.dtype not in (int64, int32):
        msg = f"{name}(): Expected dtype int32 or int64 for index"
        raise UsageError(msg)
    return index if index.ndim else reshape(index, 1)


def index_select(x: Tensor, dim: int, index: Tensor) -> Tensor:
    """The entries along `dim` that a vector of indices names.  Source: torch.index_select."""
    at, index = normal_dim(dim, x.ndim), index_vector("index_select", index)
    if not x.ndim:
        if index.numel() != 1:
            msg = f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)"
            raise UsageError(msg)
        return reshape(_index_select(reshape(x, 1), index, dim=0), ())
    return _index_select(x, index, dim=at)  # type: ignore[no-any-return]


def _writing(f: OpFunction, x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Call index_add or index_copy; a 0-d x or source counts as one entry."""
    at, index, name = normal_dim(dim, x.ndim), index_vector(f.__name__, index), f.__name__
    if not x.ndim:
        return reshape(_writing(f, reshape(x, 1), 0, index, source), ())
    if source.dtype is not x.dtype:
        msg = f"{name}_(): self ({x.dtype}) and source ({source.dtype}) must have the same scalar type"
        raise UsageError(msg)
    if not source.ndim:
        source = reshape(source, *[1] * x.ndim)
    if index.numel() != source.shape[at]:
        msg = (f"{name}_(): Number of indices ({index.numel()}) should be equal to source.size(dim): ({source.shape[at]}), for "
               f"dim: {at}")
        raise UsageError(msg)
    if source.shape != (*x.shape[:at], index.numel(), *x.shape[at + 1:]):
        msg = ("source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
               f"{list(x.shape)} source.shape = {list(source.shape)}")
        raise UsageError(msg)
    return f(x, index, source, dim=at)  # type: ignore[no-any-return]


def index_add(x: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """`x` with the entries of `source`, times alpha, added to those that the index names.  Source: torch.index_add."""
    return _writing(_index_add, x, dim, index, source if alpha == 1 else source * alpha)


def index_copy(x: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """`x` with the entries of `source` in place of those that the index names.  Source: torch.index_copy."""
    return _writing(_index_copy, x, dim, index, source)


def index_fill(x: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    """`x` with a number, or a 0-d tensor, in the entries that the index names.  Source: torch.index_fill."""
    if isinstance(value, Tensor) and value.ndim:
        msg = f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        raise UsageError(msg)
    at, index = normal_dim(dim, x.ndim), index_vector("index_fill", index)
    if isinstance(value, Tensor):
        value = value.to(x.dtype)
    if not x.ndim:
        return reshape(_index_fill(reshape(x, 1), index, value, dim=0), ())
    return _index_fill(x, index, value, dim=at)  # type: ignore[no-any-return]
