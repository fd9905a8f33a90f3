"""The forms that a view has beside itself: a copy of it, and the tensor with something else where the view was.

    select(x, 0, 1)               a view
    select_copy(x, 0, 1)          the same elements in memory of their own
    select_scatter(x, v, 0, 1)    a copy of x that holds v there

Source: torch.*_copy, torch.*_scatter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..row import OpFunction, row
from ..views import order_of
from .batching import to_front
from .inplace import embedded
from .joining import narrow, select, split_with_sizes, tensor_split, unbind
from .layout import clone, contiguous_format
from .shape import basic_index, diagonal, expand, normal_dim, permute, squeeze, t, transpose, unsqueeze, view

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Array
    from ..op import Op
    from ..tensor import Tensor
    from .batching import Batched, Bdims, Params, Values


# ---------------------------------------------------------------- windows, as a view
def _unfold_kernel(xp: Any, x0: Array, dim: int, size: int, step: int) -> Array:
    stride, count = x0.strides[dim], (x0.shape[dim] - size) // step + 1
    shape = (*x0.shape[:dim], count, *x0.shape[dim + 1:], size)
    return xp.lib.stride_tricks.as_strided(x0, shape, (*x0.strides[:dim], stride * step, *x0.strides[dim + 1:], stride))


def _folded_kernel(xp: Any, x0: Array, shape: tuple[int, ...], dim: int, size: int, step: int) -> Array:
    """Every window added where it was read."""
    out = xp.zeros(shape, x0.dtype)
    for k in range(size):
        out[(*[slice(None)] * dim, slice(k, k + step * (x0.shape[dim] - 1) + 1, step))] += x0[..., k]
    return out


def _unfold_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    shape = {"shape": (size, *params["shape"])} if "shape" in params else {}
    return op.call(to_front(values[0], bdims[0]), **{**params, **shape, "dim": params["dim"] + 1}), 0


_unfold: OpFunction = row(
    "unfold", _unfold_kernel, arity=1, view=True, batch=_unfold_batch, jvp="linear",
    vjp=(lambda ct, shape0, dim, size, step: unfold_backward(ct, shape=shape0, dim=dim, size=size, step=step),))

unfold_backward: OpFunction = row(
    "unfold_backward", _folded_kernel, arity=1, batch=_unfold_batch, jvp="linear",
    vjp=(lambda ct, dim, size, step: _unfold(ct, dim=dim, size=size, step=step),))


def unfold(x: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """All windows of a dimension, in a last one, a view.  Source: torch.Tensor.unfold."""
    at = normal_dim(dimension, x.ndim)
    n = x.shape[at] if x.ndim else 1
    if size > n or size < 0 or step < 1:
        msg = f"maximum size for tensor at dimension {at} is {n} but size is {size} (and step {step})"
        raise UsageError(msg)
    if not x.ndim:
        return basic_index(unsqueeze(x, 0), (slice(size),))
    return _unfold(x, dim=at, size=size, step=step)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- copies of views
def _copy_of(f: Callable[..., Any], name: str) -> Callable[..., Any]:
    def copied(x: Tensor, *args: Any, **options: Any) -> Any:
        found = f(x, *args, **options)
        return tuple(map(_own, found)) if isinstance(found, tuple) else _own(found)

    copied.__name__ = name
    copied.__doc__ = f"As {name.removesuffix('_copy')}, in memory of its own.  Source: torch.{name}."
    return copied


def _own(x: Tensor) -> Tensor:
    return clone(x, memory_format=contiguous_format)


expand_copy = _copy_of(expand, "expand_copy")
permute_copy = _copy_of(permute, "permute_copy")
squeeze_copy = _copy_of(squeeze, "squeeze_copy")
t_copy = _copy_of(t, "t_copy")
transpose_copy = _copy_of(transpose, "transpose_copy")
unbind_copy = _copy_of(unbind, "unbind_copy")
unfold_copy = _copy_of(unfold, "unfold_copy")
unsqueeze_copy = _copy_of(unsqueeze, "unsqueeze_copy")
view_copy = _copy_of(view, "view_copy")
narrow_copy = _copy_of(narrow, "narrow_copy")
diagonal_copy = _copy_of(diagonal, "diagonal_copy")
alias_copy = _copy_of(lambda x: x, "alias_copy")
split_with_sizes_copy = _copy_of(split_with_sizes, "split_with_sizes_copy")


# ---------------------------------------------------------------- a copy in which a view holds something else
def _scattered(x: Tensor, src: Tensor, look: Callable[[Tensor], Tensor]) -> Tensor:
    part = look(x)
    if part.shape != src.shape:
        msg = (f"expected src to have a size equal to the slice of self. src size = {list(src.shape)}, slice size = "
               f"{list(part.shape)}")
        raise UsageError(msg)
    return embedded(x, (look,), src, order_of(x))


def select_scatter(x: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """`x` with `src` for one entry of a dimension.  Source: torch.select_scatter."""
    return _scattered(x, src, lambda out: select(out, dim, index))


def diagonal_scatter(x: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """`x` with `src` on its diagonals.  Source: torch.diagonal_scatter."""
    return _scattered(x, src, lambda out: diagonal(out, offset, dim1, dim2))


def slice_scatter(x: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None,
                  step: int = 1) -> Tensor:
    """`x` with `src` for a slice of a dimension.  Source: torch.slice_scatter."""
    at = normal_dim(dim, x.ndim)
    return _scattered(x, src, lambda out: basic_index(out, (*[slice(None)] * at, slice(start, end, step))))


# ---------------------------------------------------------------- splits with a dimension of their own
def _split_along(name: str, least: int, dim: Callable[[Tensor], int]) -> Callable[..., tuple[Tensor, ...]]:
    def split(x: Tensor, indices_or_sections: int | Sequence[int]) -> tuple[Tensor, ...]:
        if x.ndim < least:
            msg = f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {x.ndim} dimensions!"
            raise UsageError(msg)
        n = x.shape[dim(x)]
        if isinstance(indices_or_sections, int) and (indices_or_sections <= 0 or n % indices_or_sections):
            msg = (f"torch.{name} attempted to split along dimension {dim(x)}, but the size of the dimension {n} is not "
                   f"divisible by the split_size {indices_or_sections}!")
            raise UsageError(msg)
        return tensor_split(x, indices_or_sections, dim(x))

    split.__name__ = name
    split.__doc__ = f"As tensor_split, along a dimension of its own.  Source: torch.{name}."
    return split


hsplit = _split_along("hsplit", 1, lambda x: 0 if x.ndim == 1 else 1)
vsplit = _split_along("vsplit", 2, lambda x: 0)
dsplit = _split_along("dsplit", 3, lambda x: 2)
