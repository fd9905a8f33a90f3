"""What transforms ask of functions, arguments and outputs, and say where it is something else, in torch's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import tree
from .errors import UsageError
from .tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Sequence

Argnums = int | tuple[int, ...]


# ---------------------------------------------------------------- which arguments
def positions(argnums: Argnums, n: int) -> tuple[int, ...]:
    """The argument positions, not negative.  Raises UsageError where there is no such argument, or twice the same."""
    if isinstance(argnums, int):
        return (_position(argnums, n),)
    if not isinstance(argnums, tuple):
        msg = f"argnums must be int or Tuple[int, ...], got: {type(argnums)}"
        raise UsageError(msg)
    found = tuple([_position(i, n) for i in argnums])
    if not found:
        msg = "argnums must be non-empty"
        raise UsageError(msg)
    if len(set(found)) != len(found):
        msg = f"argnums elements must be unique, got {argnums}"
        raise UsageError(msg)
    return found


def _position(i: Any, n: int) -> int:
    if not isinstance(i, int):
        msg = f"argnum must be int, got: {type(i)}"
        raise UsageError(msg)
    if not -n <= i < n:
        msg = f"Got argnum={i}, but only {n} positional inputs"
        raise UsageError(msg)
    return i % n


def chosen(args: tuple[Any, ...], argnums: Argnums, *, as_tuple: bool = False) -> Any:
    """The arguments at argnums: one, or a tuple."""
    if isinstance(argnums, int) and not as_tuple:
        return args[_position(argnums, len(args))]
    return tuple([args[i] for i in positions(argnums, len(args))])


def replaced(args: tuple[Any, ...], argnums: Argnums, new: Any) -> tuple[Any, ...]:
    """The arguments with new ones at argnums, which have been chosen from."""
    full = list(args)
    for i, value in ((argnums, new),) if isinstance(argnums, int) else zip(argnums, new, strict=True):
        full[i] = value
    return tuple(full)


# ---------------------------------------------------------------- what they are
def tensors(leaves: Sequence[Any], what: str) -> None:
    """Raise UsageError unless all are tensors."""
    for x in leaves:
        if not isinstance(x, Tensor):
            msg = f"{what}: Expected tensors, got unsupported type {type(x).__name__}."
            raise UsageError(msg)


def primals(leaves: Sequence[Any], what: str) -> None:
    """Raise UsageError unless all are tensors that may have a gradient."""
    tensors(leaves, what)
    for x in leaves:
        if not x.dtype.differentiable:
            msg = f"{what}: only Tensors of floating point dtype can require gradients, found one of {x.dtype}"
            raise UsageError(msg)


def primals_and_tangents(primals: Any, tangents: Any) -> tuple[list[Tensor], list[Tensor], Any]:
    """The leaves of jvp's arguments and their structure, which is the same."""
    what = "jvp(f, primals, tangents)"
    if not isinstance(primals, tuple):
        msg = f"{what}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        raise UsageError(msg)
    xs, spec = tree.flatten(primals)
    dxs, other = tree.flatten(tangents)
    if spec != other:
        msg = f"{what}: Expected primals and tangents to have the same python structure: {spec}, {other}."
        raise UsageError(msg)
    if not xs:
        msg = f"{what}: Expected primals to contain at least one Tensor."
        raise UsageError(msg)
    for name, leaves in (("primals", xs), ("tangents", dxs)):
        for x in leaves:
            if not isinstance(x, Tensor):
                msg = f"{what}: Expected {name} to only contain Tensors, got {type(x)}"
                raise UsageError(msg)
    for x, dx in zip(xs, dxs, strict=True):
        for name, given in (("primal", x), ("tangent", dx)):
            if not given.dtype.differentiable:
                msg = f"Expected {name} to be floating point or complex, but got: {given.dtype}"
                raise ValueError(msg)
        if x.shape != dx.shape:
            msg = f"jvp: a tangent of shape {list(dx.shape)} was given for a primal of shape {list(x.shape)}."
            raise UsageError(msg)
    return xs, dxs, spec


def only_real(leaves: Sequence[Any], what: str, which: str) -> None:
    """Raise UsageError where one is complex: a Jacobian of real numbers is what is computed."""
    for i, x in enumerate(leaves):
        if isinstance(x, Tensor) and x.dtype.is_complex:
            msg = f"{what}: Expected all {which} to be real but received complex tensor at flattened input idx: {i}"
            raise UsageError(msg)


def in_dims_of(in_dims: Any, args: tuple[Any, ...], leaves: list[Any]) -> list[int | None]:
    """For each leaf of vmap's arguments the dimension to map over, not negative, or None."""
    if not isinstance(in_dims, (int, tuple)):
        msg = ("vmap: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
               f"{type(in_dims)}.")
        raise ValueError(msg)
    if not args:
        msg = "vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs."
        raise ValueError(msg)
    try:
        dims = tree.broadcast(in_dims, args, "vmap: in_dims")
    except UsageError as error:
        raise ValueError(*error.args) from None
    found: list[int | None] = []
    for x, d in zip(leaves, dims, strict=True):
        if d is not None and not isinstance(x, Tensor):
            if isinstance(in_dims, int):
                msg = (f"vmap: Got in_dim={d} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor "
                       "arguments, please use None as the respective in_dim")
                raise ValueError(msg)
            msg = f"vmap: Got in_dim={d} for an input of type {type(x)}; please use None as the respective in_dim."
            raise ValueError(msg)
        if d is not None and (not isinstance(d, int) or not -x.ndim <= d < x.ndim):
            msg = (f"vmap: Got in_dim={d} for some input, but that input is a Tensor of dimensionality {x.ndim} so expected "
                   f"in_dim to satisfy -{x.ndim} <= in_dim < {x.ndim}.")
            raise ValueError(msg)
        found.append(d % x.ndim if d is not None else None)
    return found


# ---------------------------------------------------------------- what came out
def out_dims_of(out_dims: Any, out: Any) -> list[Any]:
    """For each leaf of vmap's output the dimension where its batch goes, or None."""
    if isinstance(out, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        return list(out_dims)
    try:
        return tree.broadcast(out_dims, out, "vmap: out_dims")
    except UsageError as error:
        raise ValueError(*error.args) from None


def with_aux(out: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    """The output, and the auxiliary one."""
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        msg = f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        raise UsageError(msg)
    tensors(tree.leaves_of(out[1]), f"{what}: aux")
    return out


def outputs(out: Any, what: str) -> tuple[list[Tensor], Any]:
    """The leaves of an output, which are tensors, at least one."""
    leaves, spec = tree.flatten(out)
    if not any(x is not None for x in leaves):
        msg = f"{what}: Expected f to be a function that has non-empty output (got output = {leaves})"
        raise UsageError(msg)
    for y in leaves:
        if not isinstance(y, Tensor):
            msg = f"{what}: expected f(*primals) to return only tensors, got unsupported type {type(y)}"
            raise UsageError(msg)
    return leaves, spec


def differentiable(leaves: Sequence[Tensor], what: str) -> None:
    """Raise UsageError unless all outputs may have a gradient."""
    for y in leaves:
        if not y.dtype.differentiable:
            msg = f"{what}: All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {y.dtype}"
            raise UsageError(msg)


def scalar(out: Any, what: str) -> None:
    """Raise UsageError unless the output is one tensor of shape ()."""
    if not isinstance(out, Tensor):
        msg = f"{what}: Expected f(*args) to return a Tensor, got {type(out)}"
        raise UsageError(msg)
    if out.shape != ():
        msg = (f"{what}: Expected f(*args) to return a scalar Tensor, got tensor with {len(out.shape)} dims. Maybe you wanted "
               "to use the vjp or jacrev APIs instead?")
        raise UsageError(msg)
