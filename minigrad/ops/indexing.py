"""Rows that index with tensors: `index_at` reads, `put_at` writes; and masks.

    index_at(x, i, mask, places=(False, True, False, True))     is     x[:, i, :, mask]

`places` says which entries of a key are index tensors; the others are whole dimensions.  Where the result's index
dimensions go is numpy's and torch's rule: where the first index tensor stands, or in front if a dimension is between.

Upstream: TensorAdvancedIndexing.cpp; BatchRulesScatterOps.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..backend import CPU, NUMPY_DTYPE
from ..dtypes import INT, bool_, int64
from ..errors import Refusal, UsageError
from ..row import OpFunction, row
from ..tensor import Tensor
from .batching import elementwise, padded, rank, to_front
from .creation import arange, checked, new_zeros, ones, zeros_like
from .inplace import in_place
from .joining import stack, unbind
from .shape import movedim, reshape, sum_to, tril, triu
from .special import add_at

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..backend import Device
    from ..dtypes import dtype
    from ..op import Op
    from .batching import Batched, Bdims, Params, Values

Places = tuple[bool, ...]


def one_value(x: Tensor) -> bool:
    """Whether python may look at it: it is no batch, at any level."""
    while x.owner is not None:
        if not x.owner.readable:
            return False
        x = x.value
    return True


# ---------------------------------------------------------------- masks
def _dynamic(what: str) -> Refusal:
    msg = ("vmap: We do not support batching operators that can output dynamic shape. "
           f"{what} gives each sample a shape of its own. Use where() or masked_fill(), which keep the shape.")
    return Refusal(msg)


def no_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """The batching rule of an op whose result has as many elements as a value says."""
    what = f"{op.name} of a batched tensor"
    raise _dynamic(what)


_argwhere = row("nonzero", lambda xp, x0: xp.argwhere(x0), arity=1, vjp=None, jvp=None, batch=no_batch)


def nonzero(x: Tensor, *, as_tuple: bool = False) -> Any:
    """The indices of what is not zero: (count, x.ndim), or with as_tuple a vector for each dimension.

    Raises Refusal for a batched tensor, under vmap.  Source: torch.nonzero.
    """
    return unbind(_argwhere(x if x.ndim else reshape(x, 1)), 1) if as_tuple else _argwhere(x)


argwhere = nonzero


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device: str | Device | None = None) -> Tensor:
    """The indices (2, n) of the lower triangle of a matrix of so many rows and columns.  Source: torch.tril_indices."""
    return _triangle(tril, row, col, offset, dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: dtype = int64, device: str | Device | None = None) -> Tensor:
    """The indices (2, n) of the upper triangle of a matrix of so many rows and columns.  Source: torch.triu_indices."""
    return _triangle(triu, row, col, offset, dtype, device)


def _triangle(f: Callable[..., Tensor], row: int, col: int, offset: int, dtype: dtype,
              device: str | Device | None) -> Tensor:
    return stack(nonzero(f(ones(row, col, device=device), offset), as_tuple=True)).to(dtype)  # type: ignore[no-any-return]


def _masked_fill_kernel(xp: Any, x0: Any, x1: Any, x2: Any) -> Any:
    return xp.where(x1, xp.asarray(x2).astype(x0.dtype), x0)


fill_at: OpFunction = row(
    "masked_fill", _masked_fill_kernel, saves=("x1",), fits=True, batch=elementwise,
    vjp=(lambda ct, x1: fill_at(ct, x1, 0), None, lambda ct, x1: fill_at(ct, ~x1, 0)),
    jvp=(lambda dx, x1: fill_at(dx, x1, 0), None, lambda dx, x1: fill_at(dx, ~x1, 0)))


def _filling(x: Tensor, mask: Tensor, value: Any) -> tuple[Tensor, Any]:
    if mask.dtype is not bool_:
        msg = f"masked_fill_ only supports boolean masks, but got mask with dtype {mask.dtype}"
        raise UsageError(msg)
    if isinstance(value, Tensor) and value.ndim:
        msg = f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
        raise UsageError(msg)
    if not isinstance(value, Tensor) and (isinstance(value, complex) or x.dtype.category == INT):
        checked(CPU.xp, value, NUMPY_DTYPE[x.dtype])
    return mask, value


def masked_fill(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`x` with `value`, a number or a 0-d tensor, where the mask is true.  Source: torch.masked_fill."""
    return fill_at(x, *_filling(x, mask, value))  # type: ignore[no-any-return]


_fill_in_place = in_place(fill_at, "masked_fill_")


def masked_fill_(x: Tensor, mask: Tensor, value: Any) -> Tensor:
    """The in-place form of masked_fill.  Source: torch.Tensor.masked_fill_."""
    return _fill_in_place(x, *_filling(x, mask, value))


# ---------------------------------------------------------------- kernels
def key_of(places: Places, arrays: Sequence[Any]) -> tuple[Any, ...]:
    """What to index an array with."""
    given = iter(arrays)
    return tuple([next(given) if p else slice(None) for p in places])


def retold(error: Exception) -> Exception:
    """What numpy says about an index, in torch's words."""
    text = str(error)
    for found, said in (("axis", "dimension"), ("arrays", "tensors")):
        text = text.replace(found, said)
    return type(error)(text)


def _index_kernel(xp: Any, x0: Any, *indices: Any, places: Places) -> Any:
    try:
        found = x0[key_of(places, indices)]
    except IndexError as error:
        raise retold(error) from None
    return found if any(i.ndim for i in indices) else found.copy()  # one element, which numpy sees as basic indexing


def put(xp: Any, x0: Any, key: tuple[Any, ...], values: Any, *, accumulate: bool) -> Any:
    """A copy of `x0` in which the elements at `key` are, or are increased by, `values`."""
    out = xp.array(x0)
    try:
        if accumulate:
            add_at(xp, out, key, values)
        else:
            out[key] = values
    except IndexError as error:
        raise retold(error) from None
    except (TypeError, ValueError):
        msg = (f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of shape "
               f"{list(out[key].shape)}")
        raise ValueError(msg) from None
    return out


def _index_put_kernel(xp: Any, x0: Any, x1: Any, *indices: Any, places: Places, accumulate: bool) -> Any:
    return put(xp, x0, key_of(places, indices), x1, accumulate=accumulate)


# ---------------------------------------------------------------- batches
def _integers(indices: Sequence[Tensor], bdims: Bdims, places: Places) -> tuple[list[Tensor], Bdims, Places]:
    """Masks as the index tensors that they stand for, one for each dimension of the mask."""
    if all(i.dtype is not bool_ for i in indices):
        return list(indices), bdims, places
    found: list[tuple[Tensor | None, int | None]] = []
    given = iter(zip(indices, bdims, strict=True))
    for place in places:
        i, bdim = next(given) if place else (None, None)
        if i is None or i.dtype is not bool_:
            found.append((i, bdim))
        elif bdim is None:
            found += [(column, None) for column in unbind(nonzero(i), 1)]
        else:
            what = "x[mask] with a batched mask"
            raise _dynamic(what)
    return ([i for i, _ in found if i is not None], [b for i, b in found if i is not None],
            tuple(i is not None for i, _ in found))


class _Front:
    """An indexed tensor under vmap: batch in front, the indexed dimensions next, then the others.

    logical   x (a, i, j, b)       index (r, s)      result (a, r, s, b)
    physical  x (B, i, j, a, b)    index (B, r, s)   result (B, r, s, a, b)
    """

    def __init__(self, size: int, x: Tensor, bdim: int | None, indices: Sequence[Tensor], bdims: Bdims, places: Places) -> None:
        found, bdims, places = _integers(indices, bdims, places)
        self.dims = [d for d, place in enumerate(places) if place]
        self.rank = max(map(rank, found, bdims))
        self.at = self.dims[0] if self.dims[-1] - self.dims[0] < len(self.dims) else 0
        moved = bdim is not None
        self.x = movedim(to_front(x, bdim), [d + moved for d in self.dims], [k + moved for k in range(len(self.dims))])
        self.indices = [i if b is None else _ranked(i, b, self.rank) for i, b in zip(found, bdims, strict=True)]
        self.places = (False,) * moved + (True,) * len(self.dims)
        if moved and any(b is not None for b in bdims):
            self.indices.insert(0, reshape(arange(size, device=x.device), size, *[1] * self.rank))
            self.places = (True, *self.places[1:])

    def result(self, out: Tensor) -> Tensor:
        """The index dimensions of a result put where they belong."""
        ranks = range(1, self.rank + 1)
        return movedim(out, ranks, [self.at + k for k in ranks]) if self.at else out

    def values(self, v: Tensor, bdim: int | None, full: int) -> Tensor:
        """Values of the result's shape, of logical rank `full`, laid out as it is."""
        batched = bdim is not None
        v = _ranked(v, bdim, full) if batched else reshape(v, *[1] * (full - v.ndim), *v.shape)
        return movedim(v, [batched + self.at + k for k in range(self.rank)], [batched + k for k in range(self.rank)])

    def back(self, out: Tensor) -> Tensor:
        """A result of x's shape with the dimensions in x's order."""
        return movedim(out, [k + 1 for k in range(len(self.dims))], [d + 1 for d in self.dims])


def _ranked(x: Tensor, bdim: int | None, full: int) -> Tensor:
    """The batch in front of a logical shape that is padded to rank `full`."""
    return padded(to_front(x, bdim), full - (x.ndim - 1))


def index_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """The rule of index_at, (x, *indices); `op` may be another that reads."""
    front = _Front(size, values[0], bdims[0], values[1:], bdims[1:], params["places"])
    return front.result(index_at(front.x, *front.indices, places=front.places)), 0


def put_batch(op: Op, size: int, values: Values, bdims: Bdims, params: Params) -> Batched:
    """The rule of put_at, (x, values, *indices); `op` may be another that writes."""
    x, v, *indices = values
    full = rank(x, bdims[0])
    front = _Front(size, to_front(x, bdims[0], size), 0, indices, bdims[2:], params["places"])
    if isinstance(v, Tensor):
        v = front.values(v, bdims[1], front.rank + full - len(front.dims))
    return front.back(put_at(front.x, v, *front.indices, places=front.places, accumulate=params["accumulate"])), 0


# ---------------------------------------------------------------- rows
def _index_vjp(ct: Tensor, shape0: tuple[int, ...], rest: tuple[Tensor, ...], places: Places) -> Tensor:
    twice = any(i.dtype is not bool_ for i in rest)
    return put_at(new_zeros(ct, shape0), ct, *rest, places=places, accumulate=twice)  # type: ignore[no-any-return]


def _index_jvp(dx: list[Any], rest: tuple[Tensor, ...], places: Places) -> Any:
    return dx[0] if dx[0] is None else index_at(dx[0], *rest, places=places)


index_at: OpFunction = row("index", _index_kernel, saves=("rest",), vjp=(_index_vjp,), jvp=_index_jvp, batch=index_batch)


def _put_vjp_x(ct: Tensor, rest2: tuple[Tensor, ...], places: Places, accumulate: bool) -> Tensor:
    return ct if accumulate else put_at(ct, 0, *rest2, places=places, accumulate=False)


def _put_vjp_values(ct: Tensor, shape1: tuple[int, ...], rest2: tuple[Tensor, ...], places: Places) -> Tensor:
    return sum_to(index_at(ct, *rest2, places=places), shape1)


def _put_jvp(dx: list[Any], x0: Tensor, rest2: tuple[Tensor, ...], places: Places, accumulate: bool) -> Any:
    if dx[0] is None and dx[1] is None:
        return None
    return put_at(zeros_like(x0) if dx[0] is None else dx[0], 0 if dx[1] is None else dx[1], *rest2,
                  places=places, accumulate=accumulate)


put_at: OpFunction = row("index_put", _index_put_kernel, saves=("rest2",), vjp=(_put_vjp_x, _put_vjp_values),
                         jvp=_put_jvp, batch=put_batch)
put_at_ = in_place(put_at, "index_put_")
