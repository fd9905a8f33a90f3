"""The function transforms: each puts a level on the stack, runs the function, and takes its tensors off again.

Source: torch.func (grad, grad_and_value, vjp, jvp, vmap, jacrev, jacfwd, hessian, linearize).
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from . import tree
from .autograd import engine
from .errors import UsageError
from .interpreters.grad import GradInterpreter
from .interpreters.jvp import JvpInterpreter
from .interpreters.vmap import VmapInterpreter
from .ops.batching import to_front
from .ops.creation import eye, ones_like, zeros_like
from .ops.joining import cat, split
from .ops.shape import moveaxis, reshape
from .state import level, show
from .tensor import Tensor, edge

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .interpreters.base import Interpreter
    from .nn.functional_call import functional_call, stack_module_state

__all__ = ["functional_call", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
           "stack_module_state", "vjp", "vmap"]

Argnums = int | tuple[int, ...]


def __getattr__(name: str) -> object:
    """Import what belongs to modules when a program first asks for it."""
    if name in ("functional_call", "stack_module_state"):
        from .nn import functional_call as file  # noqa: PLC0415

        return getattr(file, name)
    msg = f"module 'minigrad.func' has no attribute {name!r}"
    raise AttributeError(msg)



# ---------------------------------------------------------------- what transforms share
def _off(me: Interpreter, x: Any) -> Any:
    """A result as it is one storey down: without this level's wrapper."""
    return x.value if isinstance(x, Tensor) and x.owner is me else x


def _positions(argnums: Argnums, n: int) -> tuple[int, ...]:
    """The argument positions, not negative.  Raises UsageError where there is no such argument, or twice the same."""
    wanted = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    found = tuple(i + n if i < 0 else i for i in wanted)
    if not found or any(not 0 <= i < n for i in found) or len(set(found)) != len(found):
        msg = f"Got argnum={argnums}, but only {n} positional inputs: argnums must name distinct positional arguments."
        raise UsageError(msg)
    return found


def _chosen(args: tuple[Any, ...], argnums: Argnums) -> Any:
    positions = _positions(argnums, len(args))
    return args[positions[0]] if isinstance(argnums, int) else tuple(args[i] for i in positions)


def _replaced(args: tuple[Any, ...], argnums: Argnums, new: Any) -> tuple[Any, ...]:
    full = list(args)
    for i, value in zip(_positions(argnums, len(args)), (new,) if isinstance(argnums, int) else new, strict=True):
        full[i] = value
    return tuple(full)


def _tensors(leaves: Sequence[Any], what: str) -> None:
    for x in leaves:
        if not isinstance(x, Tensor):
            msg = f"{what}: Expected tensors, got unsupported type {type(x).__name__}. [level stack: {show()}]"
            raise UsageError(msg)


def _with_aux(out: Any, has_aux: bool, what: str) -> tuple[Any, Any]:
    if not has_aux:
        return out, None
    if not (isinstance(out, tuple) and len(out) == 2):
        msg = f"{what}: output of function f should be a tuple: (output, aux) if has_aux is True"
        raise UsageError(msg)
    return out


# ---------------------------------------------------------------- reverse mode
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return f(*primals) and a function from cotangents of the output to cotangents of the primals.

    primals and output: any pytrees of tensors.  The function may be called any number of times, also after other levels
    have come and gone, and under further transforms.  With has_aux, f returns (output, aux) and aux is returned last.
    Source: torch.func.vjp.
    """
    leaves, spec = tree.flatten(primals)
    _tensors(leaves, "vjp(f, *primals)")
    with level(GradInterpreter()) as me:
        assert isinstance(me, GradInterpreter)
        wrapped = [me.leaf(x) for x in leaves]
        out, aux = _with_aux(f(*tree.unflatten(wrapped, spec)), has_aux, "vjp(f, *primals)")
    outs, out_spec = tree.flatten(out)
    _tensors(outs, "vjp(f, *primals): f's output")
    edges = [edge(y) if y.owner is me else (None, 0) for y in outs]
    values = [_off(me, y) for y in outs]

    def pull(*cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given = cotangents[0] if len(cotangents) == 1 and out_spec is tree.LEAF_SPEC else (
            cotangents[0] if len(cotangents) == 1 else cotangents)
        cts, ct_spec = tree.flatten(given)
        if ct_spec != out_spec:
            msg = (f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                   f"cotangents: {ct_spec}, primal output: {out_spec}")
            raise UsageError(msg)
        roots = []
        for y, ct, (target, nr) in zip(values, cts, edges, strict=True):
            if ct.shape != y.shape:
                msg = f"vjp: a cotangent of shape {list(ct.shape)} was given for an output of shape {list(y.shape)}."
                raise UsageError(msg)
            if target is not None:
                roots.append((target, nr, ct if ct.dtype is y.dtype else ct.to(y.dtype)))
        found = engine.backward(me, roots, inputs=wrapped, retain_graph=retain_graph)
        cts_in = [zeros_like(x.value) if g is None else g for g, x in zip(found, wrapped, strict=True)]
        return tree.unflatten(cts_in, spec)

    result = tree.unflatten(values, out_spec)
    return (result, pull, tree.map(lambda x: _off(me, x), aux)) if has_aux else (result, pull)


def grad_and_value(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function, and its value: (gradient, value).

    argnums: the positional arguments (pytrees of tensors) to differentiate.  With has_aux, (gradient, (value, aux)).
    Raises UsageError unless f returns one tensor of shape ().  Source: torch.func.grad_and_value.
    """
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten(_chosen(args, argnums))
        _tensors(leaves, "grad")
        with level(GradInterpreter()) as me:
            assert isinstance(me, GradInterpreter)
            wrapped = [me.leaf(x) for x in leaves]
            out, aux = _with_aux(f(*_replaced(args, argnums, tree.unflatten(wrapped, spec)), **kwargs), has_aux, "grad")
            if not isinstance(out, Tensor):
                msg = f"Expected f(*args) to return a tensor, got {type(out).__name__}."
                raise UsageError(msg)
            if out.shape != ():
                msg = (f"Expected f(*args) to return a scalar tensor, got tensor with {len(out.shape)} dims. Maybe you "
                       f"forgot to sum it, or want jacrev? [level stack: {show()}]")
                raise UsageError(msg)
            value = _off(me, out)
            target, nr = edge(out) if out.owner is me else (None, 0)
            roots = [] if target is None else [(target, nr, ones_like(value))]
            found = engine.backward(me, roots, inputs=wrapped)
        grads = [zeros_like(x.value) if g is None else g for g, x in zip(found, wrapped, strict=True)]
        gradient = tree.unflatten(grads, spec)
        return gradient, ((value, tree.map(lambda x: _off(me, x), aux)) if has_aux else value)
    return wrapper


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function; with has_aux, (gradient, aux).

    Source: torch.func.grad.
    """
    both = grad_and_value(f, argnums, has_aux)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient
    return wrapper


# ---------------------------------------------------------------- forward mode
def jvp(f: Callable[..., Any], primals: tuple[Any, ...], tangents: tuple[Any, ...], *, strict: bool = False,
        has_aux: bool = False) -> Any:
    """Return f(*primals) and its directional derivative along `tangents`.

    primals, tangents: tuples of the same pytree structure and shapes.  With has_aux, f returns (output, aux).
    Source: torch.func.jvp.
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple) or not primals:
        msg = "jvp(f, primals, tangents): Expected primals and tangents to be non-empty tuples."
        raise UsageError(msg)
    xs, spec = tree.flatten(primals)
    dxs, dspec = tree.flatten(tangents)
    if spec != dspec:
        msg = f"jvp(f, primals, tangents): Expected primals and tangents to have the same python structure: {spec}, {dspec}."
        raise UsageError(msg)
    _tensors(xs, "jvp(f, primals, tangents)")
    for x, dx in zip(xs, dxs, strict=True):
        if x.shape != dx.shape:
            msg = f"jvp: a tangent of shape {list(dx.shape)} was given for a primal of shape {list(x.shape)}."
            raise UsageError(msg)
    with level(JvpInterpreter()) as me:
        assert isinstance(me, JvpInterpreter)
        duals = [me.give(x, dx) for x, dx in zip(xs, dxs, strict=True)]
        out, aux = _with_aux(f(*tree.unflatten(duals, spec)), has_aux, "jvp")
    outs, out_spec = tree.flatten(out)
    _tensors(outs, "jvp: f's output")
    if strict and any(y.owner is not me for y in outs):
        msg = "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs."
        raise UsageError(msg)
    values = tree.unflatten([_off(me, y) for y in outs], out_spec)
    pushed = tree.unflatten([y.note if y.owner is me and y.note is not None else zeros_like(y) for y in outs], out_spec)
    return (values, pushed, tree.map(lambda x: _off(me, x), aux)) if has_aux else (values, pushed)


def linearize(f: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., Any]]:
    """Return f(*primals) and the linear function of its tangents; f itself runs once.

    The linear part is the transpose of the vjp, which is linear too.  Source: torch.func.linearize.
    """
    out, pull = vjp(f, *primals)

    def push(*tangents: Any) -> Any:
        if tree.flatten(tangents)[1] != tree.flatten(primals)[1]:
            msg = (f"Expected the tangents {tree.flatten(tangents)[1]} to have the same argspec as the primals "
                   f"{tree.flatten(primals)[1]}.")
            raise UsageError(msg)
        for x, dx in zip(tree.leaves_of(primals), tree.leaves_of(tangents), strict=True):
            if x.shape != dx.shape or x.dtype is not dx.dtype:
                msg = f"Expected a tangent of shape {list(x.shape)} and type {x.dtype}, found {list(dx.shape)}, {dx.dtype}."
                raise UsageError(msg)
        return vjp(pull, tree.map(zeros_like, out))[1](tangents)[0]
    return out, push


# ---------------------------------------------------------------- batches
def vmap(f: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
         chunk_size: int | None = None) -> Callable[..., Any]:
    """Return f applied to every slice of its arguments, computed as one batch.

    in_dims: for each argument (a pytree prefix) the dimension to map over, None for none; out_dims: where the batch goes.
    randomness: "error", "same" or "different" draws for the samples.  chunk_size: samples computed at a time.
    Raises UsageError where no argument has a batch dimension, or their sizes differ.  Source: torch.func.vmap.
    """
    if chunk_size is not None and chunk_size <= 0:
        msg = f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})"
        raise ValueError(msg)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        leaves, spec = tree.flatten(args)
        dims = _in_dims(in_dims, args, leaves)
        sizes = {x.shape[d] for x, d in zip(leaves, dims, strict=True) if d is not None}
        if len(sizes) != 1:
            msg = (f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sorted(sizes)} for "
                   f"the mapped dimension (in_dims={in_dims})." if sizes else
                   f"vmap({getattr(f, '__name__', f)}, in_dims={in_dims}, ...)(<inputs>): at least one input must have a batch "
                   "dimension: its in_dims are all None.")
            raise ValueError(msg)
        size = sizes.pop()
        if chunk_size is None or chunk_size >= size:
            return _vmap_once(f, leaves, spec, dims, out_dims, size, randomness, kwargs)
        return _vmap_chunks(f, leaves, spec, dims, out_dims, chunk_size, randomness, kwargs)
    return wrapper


def _in_dims(in_dims: Any, args: tuple[Any, ...], leaves: list[Any]) -> list[int | None]:
    if not isinstance(in_dims, (int, tuple, list)):
        msg = (f"vmap: expected `in_dims` to be int or a (potentially nested) tuple matching the structure of inputs, got: "
               f"{type(in_dims)}.")
        raise ValueError(msg)
    if not args:
        msg = "vmap: got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no inputs."
        raise ValueError(msg)
    try:
        dims = tree.broadcast(in_dims if isinstance(in_dims, int) else tuple(in_dims), args, "vmap: in_dims")
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


def _vmap_once(f: Callable[..., Any], leaves: list[Any], spec: Any, dims: list[int | None], out_dims: Any, size: int,
               randomness: str, kwargs: dict[str, Any]) -> Any:
    with level(VmapInterpreter(size, randomness)) as me:
        assert isinstance(me, VmapInterpreter)
        args = tree.unflatten([x if d is None else me.batched(x, d) for x, d in zip(leaves, dims, strict=True)], spec)
        out = f(*args, **kwargs)
    outs, out_spec = tree.flatten(out)
    try:
        places = tree.broadcast(tuple(out_dims) if isinstance(out_dims, list) else out_dims, out, "vmap: out_dims")
    except UsageError as error:
        raise ValueError(*error.args) from None
    return tree.unflatten([_unbatched(me, y, d) for y, d in zip(outs, places, strict=True)], out_spec)


def _unbatched(me: VmapInterpreter, y: Any, place: int | None) -> Any:
    if not isinstance(y, Tensor):
        if place is None:
            return y
        msg = f"vmap: `f` must only return Tensors, got type {type(y)}. Did you mean to set out_dims= to None for output?"
        raise ValueError(msg)
    mine = y.owner is me
    if place is None:
        if not mine:
            return y
        msg = "vmap: `f` can not return a BatchedTensor when out_dim is None: the samples have different values."
        raise ValueError(msg)
    rank = y.ndim + 1
    if not -rank <= place < rank:
        msg = f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {place})"
        raise IndexError(msg)
    if not mine:
        return moveaxis(to_front(y, None, me.size), 0, place % rank)
    return y.value if y.note == place % rank else moveaxis(y.value, y.note, place % rank)


def _vmap_chunks(f: Callable[..., Any], leaves: list[Any], spec: Any, dims: list[int | None], out_dims: Any, chunk: int,
                 randomness: str, kwargs: dict[str, Any]) -> Any:
    pieces = [[x] if d is None else list(split(x, chunk, d)) for x, d in zip(leaves, dims, strict=True)]
    count = max(map(len, pieces))
    results = []
    for i in range(count):
        part = [p[0] if d is None else p[i] for p, d in zip(pieces, dims, strict=True)]
        size = next(x.shape[d] for x, d in zip(part, dims, strict=True) if d is not None)
        results.append(tree.flatten(_vmap_once(f, part, spec, dims, out_dims, size, randomness, kwargs)))
    out_spec = results[0][1]
    places = tree.broadcast(out_dims, tree.unflatten(results[0][0], out_spec), "vmap: out_dims")
    joined = [ys[0] if d is None else cat(ys, d) for d, *ys in zip(places, *[r[0] for r in results], strict=True)]
    return tree.unflatten(joined, out_spec)


# ---------------------------------------------------------------- Jacobians
def _basis(leaves: list[Tensor]) -> list[Tensor]:
    """For each tensor the standard basis of all of them together: shape (total, *its shape)."""
    total = sum(x.numel() for x in leaves)
    if len(leaves) == 1:
        x = leaves[0]
        return [reshape(eye(total, dtype=x.dtype, device=x.device), total, *x.shape)]
    found, at = [], 0
    for x in leaves:
        n = x.numel()
        one = eye(total, dtype=x.dtype, device=x.device)[:, at:at + n]
        found.append(reshape(one, total, *x.shape))
        at += n
    return found


def _rows(stacked: Tensor, like: list[Tensor], dim: int) -> list[Tensor]:
    """Split the dimension that runs over all of `like`, and give each piece its shape."""
    parts = split(stacked, [x.numel() for x in like], dim) if len(like) > 1 else (stacked,)
    return [reshape(p, *p.shape[:dim], *x.shape, *p.shape[dim + 1:]) for p, x in zip(parts, like, strict=True)]


def jacrev(f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
           chunk_size: int | None = None) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of f by reverse mode: output shape + input shape, for each pair.

    Output and the arguments at argnums may be pytrees: the result is a nest of the output's structure holding nests of the
    argument's.  chunk_size: rows computed at a time.  Source: torch.func.jacrev.
    """
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        def of_chosen(chosen: Any) -> Any:
            return f(*_replaced(args, argnums, chosen), **kwargs)

        chosen = _chosen(args, argnums)
        out, pull, *aux = vjp(of_chosen, chosen, has_aux=has_aux)
        outs, out_spec = tree.flatten(out)
        xs, spec = tree.flatten(chosen)
        rows = vmap(lambda *cts: tuple(tree.leaves_of(pull(tree.unflatten(cts, out_spec)))), chunk_size=chunk_size)(
            *_basis(outs))
        by_input = [_rows(r, outs, 0) for r in rows]
        result = tree.unflatten([tree.unflatten([by_input[i][o] for i in range(len(xs))], spec) for o in range(len(outs))],
                                out_spec)
        return (result, *aux) if has_aux else result
    return wrapper


def jacfwd(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """Return a function that computes the Jacobian of f by forward mode; the result is shaped as jacrev's.

    Source: torch.func.jacfwd.
    """
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        def of_chosen(chosen: Any) -> Any:
            return f(*_replaced(args, argnums, chosen), **kwargs)

        chosen = _chosen(args, argnums)
        xs, spec = tree.flatten(chosen)
        _tensors(xs, "jacfwd")
        seen: list[Any] = []

        def push(*dxs: Any) -> Any:
            _, dout, *aux = jvp(of_chosen, (chosen,), (tree.unflatten(dxs, spec),), has_aux=has_aux)
            douts, out_spec = tree.flatten(dout)
            seen[:] = [out_spec]
            return (tuple(douts), *aux)

        columns, *aux = vmap(push, out_dims=(-1, *([None] if has_aux else [])), randomness=randomness)(*_basis(xs))
        by_output = [_rows(c, xs, c.ndim - 1) for c in columns]
        result = tree.unflatten([tree.unflatten(parts, spec) for parts in by_output], seen[0])
        return (result, *aux) if has_aux else result
    return wrapper


def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian of f, forward over reverse.  Source: torch.func.hessian."""
    return jacfwd(jacrev(f, argnums), argnums)


