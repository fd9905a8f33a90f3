"""Rows that move elements or look at them differently: views first, then copies.

Public functions take torch's arguments, bring dimensions to their normal form (a tuple, not negative) and call a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import NUMPY_DTYPE, expanded, repeated
from ..dtypes import FLOAT, INT
from ..errors import UsageError, no_dimension
from ..row import OpFunction, row
from ..state import watched
from ..tensor import alias
from .batching import leading, over_dims, padded, physical, same_bdim, to_front, with_batch_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- arguments in normal form
def normal_dim(dim: int, rank: int) -> int:
    """`dim`, not negative.  Raises IndexError, with torch's text, where it is out of range."""
    span = max(rank, 1)
    if not -span <= dim < span:
        raise no_dimension(dim, span)
    return dim % span


def normal_dims(dim: int | Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """A tuple of distinct dimensions, not negative; all of them for None or an empty sequence."""
    if type(dim) is int and rank:
        return (normal_dim(dim, rank),)
    if dim is None or (not isinstance(dim, int) and len(dim) == 0):
        return tuple(range(rank))
    dims = (dim,) if isinstance(dim, int) else tuple(dim)
    found = tuple([normal_dim(d, rank) for d in dims])
    if len(set(found)) != len(found):
        msg = f"dim {dims[0]} appears multiple times in the list of dims"
        raise UsageError(msg)
    return found if rank else ()


def varargs(args: tuple[Any, ...], named: Sequence[int] | None = None) -> tuple[int, ...]:
    """`f(2, 3)`, `f((2, 3))` and `f(name=(2, 3))` mean the same."""
    if named is not None:
        return tuple(map(int, named))
    if len(args) == 1 and isinstance(args[0], (tuple, list)):
        args = tuple(args[0])
    return tuple(map(int, args))


# ---------------------------------------------------------------- views
def _permute_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    (x,), (bdim,) = values, bdims
    assert bdim is not None
    return op.call(x, dims=(bdim, *[physical(d, bdim) for d in params["dims"]])), 0


def _inverse(dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(sorted(range(len(dims)), key=dims.__getitem__))


_permute: OpFunction = row("permute", lambda xp, x0, dims: xp.transpose(x0, dims), arity=1, view=True,
               vjp=(lambda ct, dims: _permute(ct, dims=_inverse(dims)),), jvp="linear", batch=_permute_batch)

view_row: OpFunction = row("view", lambda xp, x0, shape: x0.reshape(shape), arity=1, view=True,
            vjp=(lambda ct, shape0: view_row(ct, shape=shape0),), jvp="linear", batch=with_batch_shape)


def _expand_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x = to_front(values[0], bdims[0])
    return op.call(padded(x, len(params["shape"]) - (x.ndim - 1)), shape=(size, *params["shape"])), 0


_expand: OpFunction = row("expand", expanded, arity=1, view=True,
              vjp=(lambda ct, shape0: sum_to(ct, shape0),), jvp="linear", batch=_expand_batch)


def _slice_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    return op.call(to_front(values[0], bdims[0]), index=(slice(None), *params["index"])), 0


def _slice_kernel(xp: Any, x0: Any, index: tuple[Any, ...]) -> Any:
    part = x0[index]
    # numpy copies the element where every dimension is selected, unless there is an Ellipsis
    return part if part.shape or Ellipsis in index else x0[(*index, ...)]


_slice: OpFunction = row("slice", _slice_kernel, arity=1, view=True,
             vjp=(lambda ct, shape0, index: slice_backward(ct, shape=shape0, index=index),), jvp="linear", batch=_slice_batch)


def _embed_kernel(xp: Any, x0: Any, shape: tuple[int, ...], index: Any) -> Any:
    out = xp.zeros(shape, dtype=x0.dtype)
    out[index] = x0
    return out


def _embed_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x = to_front(values[0], bdims[0])
    return op.call(x, shape=(size, *params["shape"]), index=(slice(None), *params["index"])), 0


slice_backward: OpFunction = row("slice_backward", _embed_kernel, arity=1, batch=_embed_batch, jvp="linear",
                                 vjp=(lambda ct, index: _slice(ct, index=index),))


def basic_index(x: Tensor, index: tuple[Any, ...]) -> Tensor:
    """A view of `x`: ints, slices, None and Ellipsis, as numpy's basic indexing."""
    return _slice(x, index=index)  # type: ignore[no-any-return]


def _diagonal_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x = to_front(values[0], bdims[0])
    return op.call(x, **{**params, "dim1": params["dim1"] + 1, "dim2": params["dim2"] + 1}), 0


def _diagonal_embed_kernel(xp: Any, x0: Any, shape: tuple[int, ...], offset: int, dim1: int, dim2: int) -> Any:
    out = xp.zeros(shape, dtype=x0.dtype)
    _diagonal_kernel(xp, out, offset, dim1, dim2)[...] = x0
    return out


def _diagonal_embed_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    x = to_front(values[0], bdims[0])
    return op.call(x, shape=(size, *params["shape"]), offset=params["offset"], dim1=params["dim1"] + 1,
                   dim2=params["dim2"] + 1), 0


diagonal_backward: OpFunction = row("diagonal_backward", _diagonal_embed_kernel, arity=1,
                      vjp=(lambda ct, offset, dim1, dim2: _diagonal(ct, offset=offset, dim1=dim1, dim2=dim2),),
                      jvp="linear", batch=_diagonal_embed_batch)


def _diagonal_kernel(xp: Any, x0: Any, offset: int, dim1: int, dim2: int) -> Any:
    square = xp.moveaxis(x0, (dim1, dim2), (-2, -1))[..., max(-offset, 0):, max(offset, 0):]
    n = min(square.shape[-2:])
    return xp.einsum("...ii->...i", square[..., :n, :n])  # unlike xp.diagonal, a view that can be written to


_diagonal: OpFunction = row("diagonal", _diagonal_kernel, arity=1, view=True,
                vjp=(lambda ct, shape0, offset, dim1, dim2: diagonal_backward(
                    ct, shape=shape0, offset=offset, dim1=dim1, dim2=dim2),), jvp="linear", batch=_diagonal_batch)

detach_row: OpFunction = row("detach", lambda xp, x0: x0, view=True, vjp=None, jvp=None, batch=same_bdim)


def detach(x: Tensor) -> Tensor:
    """The data of `x` with no gradient at any level.  Source: torch.Tensor.detach."""
    return alias(x) if x.owner is None and not watched else detach_row(x)


detach.__published__ = True  # type: ignore[attr-defined]  # where someone is asked, its row asks


def reshape(x: Tensor, *extents: Any, shape: Sequence[int] | None = None) -> Tensor:
    """The elements in another shape, a view where the strides allow it; one extent may be -1.  Source: torch.reshape."""
    return view_row(x, shape=_filled(varargs(extents, shape), x))  # type: ignore[no-any-return]


def view(x: Tensor, *shape: Any) -> Tensor:
    """Reshape, that never copies; or, given a dtype, the same as `to`.  Source: torch.Tensor.view."""
    out = reshape(x, *shape)
    if out.untyped_storage() is not x.untyped_storage() and x.numel():
        msg = (f"view size is not compatible with input tensor's size and stride (at least one dimension of {list(x.shape)} "
               "spans across two contiguous subspaces). Use .reshape(...) instead.")
        raise UsageError(msg)
    return out


def _filled(shape: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    known, free = 1, shape.count(-1)
    for extent in shape:
        known *= extent if extent != -1 else 1
    n = x.numel()
    if free > 1 or (free and (known == 0 or n % known)) or (not free and known != n):
        msg = f"shape '{list(shape)}' is invalid for input of size {n}"
        raise UsageError(msg)
    return tuple(n // known if extent == -1 else extent for extent in shape) if free else shape


def permute(x: Tensor, *order: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Dimensions in another order.  Source: torch.permute."""
    wanted = varargs(order, dims)
    if len(wanted) != x.ndim:
        msg = ("permute: number of dimensions in the tensor input does not match the length of the desired ordering of "
               f"dimensions i.e. input.dim() = {x.ndim} is not equal to len(dims) = {len(wanted)}")
        raise UsageError(msg)
    return _permute(x, dims=normal_dims(wanted, x.ndim))  # type: ignore[no-any-return]


def transpose(x: Tensor, dim0: int, dim1: int) -> Tensor:
    """Two dimensions exchanged.  Source: torch.transpose."""
    a, b = normal_dim(dim0, x.ndim), normal_dim(dim1, x.ndim)
    order = list(range(x.ndim))
    if order:
        order[a], order[b] = b, a
    return _permute(x, dims=tuple(order))  # type: ignore[no-any-return]


swapaxes = swapdims = transpose


def t(x: Tensor) -> Tensor:
    """The transpose of a matrix; vectors as they are.  Source: torch.t."""
    if x.ndim > 2:
        msg = f"t() expects a tensor with <= 2 dimensions, but self is {x.ndim}D"
        raise UsageError(msg)
    return _permute(x, dims=tuple(range(x.ndim))[::-1])  # type: ignore[no-any-return]


def movedim(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int]) -> Tensor:
    """Dimensions moved to new places, the others in order.  Source: torch.movedim."""
    s = (source,) if isinstance(source, int) else tuple(source)
    d = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(s) != len(d):
        msg = (f"movedim: Invalid source or destination dims: source ({list(s)} dims) should contain the same number of dims "
               f"as destination ({list(d)} dims)")
        raise UsageError(msg)
    s, d = tuple([normal_dim(i, x.ndim) for i in s]), tuple([normal_dim(i, x.ndim) for i in d])
    for name, dims in (("source", s), ("destination", d)):
        if len(set(dims)) != len(dims):
            msg = f"movedim: repeated dim in `{name}` ({list(dims)})"
            raise UsageError(msg)
    order = [i for i in range(x.ndim) if i not in s]
    for to, dim in sorted(zip(d, s, strict=True)) if x.ndim else ():
        order.insert(to, dim)
    return _permute(x, dims=tuple(order))  # type: ignore[no-any-return]


moveaxis = movedim


def expand(x: Tensor, *extents: Any, size: Sequence[int] | None = None) -> Tensor:
    """Dimensions of extent 1 repeated without a copy; -1 keeps an extent.  Source: torch.Tensor.expand."""
    wanted, own = varargs(extents, size), x.shape
    pad = len(wanted) - len(own)
    if pad < 0:
        msg = (f"expand({list(own)}, size={list(wanted)}): the number of sizes provided ({len(wanted)}) must be greater or "
               f"equal to the number of dimensions in the tensor ({len(own)})")
        raise UsageError(msg)
    full = tuple([own[i - pad] if extent == -1 and i >= pad else extent for i, extent in enumerate(wanted)])
    for i, (old, new) in enumerate(zip((1,) * pad + own, full, strict=True)):
        if old not in (new, 1) or new < 0:
            msg = (f"The expanded size of the tensor ({new}) must match the existing size ({old}) at non-singleton dimension "
                   f"{i}.  Target sizes: {list(wanted)}.  Tensor sizes: {list(own)}")
            raise UsageError(msg)
    return _expand(x, shape=full)  # type: ignore[no-any-return]


def widened(x: Tensor, *extents: Any) -> Tensor:
    """`expand` inside an op, which needs no view where the shape stays."""
    wanted = varargs(extents)
    return x if wanted == x.shape else expand(x, wanted)


def unsqueeze(x: Tensor, dim: int) -> Tensor:
    """A new dimension of extent 1.  Source: torch.unsqueeze."""
    at, shape = normal_dim(dim, x.ndim + 1), x.shape
    return view_row(x, shape=(*shape[:at], 1, *shape[at:]))  # type: ignore[no-any-return]


def squeeze(x: Tensor, dim: int | Sequence[int] | None = None) -> Tensor:
    """Dimensions of extent 1 (all, or those named) left out.  Source: torch.squeeze."""
    dims = () if dim == () else normal_dims(dim, x.ndim)
    return view_row(x, shape=tuple([n for i, n in enumerate(x.shape) if i not in dims or n != 1]))  # type: ignore[no-any-return]


def flatten(x: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Dimensions start_dim to end_dim made one.  Source: torch.flatten."""
    a, b = normal_dim(start_dim, x.ndim), normal_dim(end_dim, x.ndim)
    if a > b:
        msg = "flatten() has invalid args: start_dim cannot come after end_dim"
        raise UsageError(msg)
    return x if a == b and x.ndim else reshape(x, *x.shape[:a], -1, *x.shape[b + 1:])


def diagonal(x: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonals of two dimensions, last in the result.  Source: torch.diagonal."""
    a, b = normal_dim(dim1, x.ndim), normal_dim(dim2, x.ndim)
    if a == b:
        msg = f"diagonal dimensions cannot be identical {dim1}, {dim2}"
        raise UsageError(msg)
    return _diagonal(x, offset=offset, dim1=a, dim2=b)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- sums, and the reverse of broadcasting
sum_dims: OpFunction = row(
    "sum", lambda xp, x0, dims, keepdim: xp.add.reduce(x0, axis=dims, dtype=x0.dtype, keepdims=keepdim), arity=1, jvp="linear",
    vjp=(lambda ct, shape0, dims, keepdim: restore(ct, shape0, dims, keepdim),), batch=over_dims)


def _with_dims(shape: tuple[int, ...], dims: tuple[int, ...]) -> tuple[int, ...]:
    return tuple([1 if d in dims else n for d, n in enumerate(shape)])


def _as_it_is(dims: tuple[int, ...], keepdim: bool) -> bool:
    """Whether broadcasting by itself adds the dimensions that a reduction took: they are there, or were the first."""
    return keepdim or dims == tuple(range(len(dims)))


def kept(x: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """What a reduction over `dims` gave, with the dimensions that it took as extents of 1, unless broadcasting adds them."""
    return x if _as_it_is(dims, keepdim) else view_row(x, shape=_with_dims(shape, dims))


def _restore_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    dims = tuple([d + 1 for d in params["dims"]])
    return op.call(to_front(values[0], bdims[0]), shape=(size, *params["shape"]), dims=dims), 0


restore_row: OpFunction = row(
    "broadcast_in_dim", repeated, arity=1, view=True,
    vjp=(lambda ct, dims: sum_dims(ct, dims=dims, keepdim=False),), jvp="linear", batch=_restore_batch,
    doc="The transpose of a sum over dims: a view that repeats along them.  Source: torch.ops.prims.broadcast_in_dim.")


def restore(ct: Tensor, shape: tuple[int, ...], dims: tuple[int, ...], keepdim: bool) -> Tensor:
    """What a reduction over `dims` gave, expanded to the shape that it was taken of."""
    if _as_it_is(dims, keepdim):
        return _expand(ct, shape=shape)  # type: ignore[no-any-return]
    return restore_row(ct, shape=shape, dims=dims)  # type: ignore[no-any-return]


def sum_to(x: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over what broadcasting `shape` to x's shape repeated."""
    own = x.shape
    if own == shape:
        return x
    pad = len(own) - len(shape)
    dims = tuple([i for i, n in enumerate(own) if i < pad or (shape[i - pad] == 1 and n != 1)])
    out = sum_dims(x, dims=dims, keepdim=False) if dims else x
    return out if out.shape == shape else view_row(out, shape=shape)


# ---------------------------------------------------------------- copies
clone: OpFunction = row("clone", lambda xp, x0: xp.array(x0, order="K"), arity=1, vjp=(lambda ct: ct,), jvp="linear",
                        batch=same_bdim)

contiguous_row: OpFunction = row("contiguous", lambda xp, x0: xp.array(x0, order="C"), arity=1, vjp=(lambda ct: ct,),
                                 jvp="linear", batch=leading)


def _cast_kernel(xp: Any, x0: Any, dtype: Any) -> Any:
    if x0.dtype.kind == "c" and dtype.category in (INT, FLOAT):
        x0 = x0.real
    return x0.astype(NUMPY_DTYPE[dtype])


cast: OpFunction = row("_to_copy", _cast_kernel, fits=True, vjp=(lambda ct: ct,), batch=same_bdim,
                       jvp=(lambda dx, dtype: cast(dx, dtype=dtype) if dtype.differentiable else None,))

flip_dims: OpFunction = row("flip", lambda xp, x0, dims: xp.array(xp.flip(x0, dims), order="C"), arity=1,
                vjp=(lambda ct, dims: flip_dims(ct, dims=dims),), jvp="linear",
                batch=lambda op, size, values, bdims, params: (op.call(
                    values[0], dims=tuple(physical(d, bdims[0]) for d in params["dims"])), bdims[0]))


def flip(x: Tensor, *order: Any, dims: Sequence[int] | None = None) -> Tensor:
    """Dimensions in reverse order, copied.  Source: torch.flip."""
    reverse = varargs(order, dims)
    return flip_dims(x, dims=normal_dims(reverse, x.ndim) if reverse else ())  # type: ignore[no-any-return]


def _triangle(name: str) -> OpFunction:
    made: OpFunction = row(name, lambda xp, x0, diagonal: getattr(xp, name)(x0, diagonal), arity=1, batch=leading,
                           vjp=(lambda ct, diagonal: made(ct, diagonal=diagonal),), jvp="linear")
    return made


_tril, _triu = _triangle("tril"), _triangle("triu")


def _matrices(name: str, x: Tensor) -> Tensor:
    if x.ndim < 2:
        msg = f"{name}: input tensor must have at least 2 dimensions"
        raise UsageError(msg)
    return x


def tril(x: Tensor, diagonal: int = 0) -> Tensor:
    """The lower triangle of the last two dimensions, zeros above it.  Source: torch.tril."""
    return _tril(_matrices("tril", x), diagonal=diagonal)  # type: ignore[no-any-return]


def triu(x: Tensor, diagonal: int = 0) -> Tensor:
    """The upper triangle of the last two dimensions, zeros below it.  Source: torch.triu."""
    return _triu(_matrices("triu", x), diagonal=diagonal)  # type: ignore[no-any-return]
