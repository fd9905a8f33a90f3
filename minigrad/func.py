"""The function transforms: each puts a level on the stack, runs the function, and takes its tensors off again.

Source: torch.func (grad, grad_and_value, vjp, jvp, vmap, jacrev, jacfwd, hessian, linearize).
"""

from __future__ import annotations

import functools
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Any

from . import arguments, tree
from .autograd import engine
from .autograd.grad_mode import set_grad_enabled
from .autograd.roots import cotangent, given
from .errors import UsageError, no_dimension
from .functionalization import functionalize
from .interpreters.grad import GradInterpreter
from .interpreters.jvp import JvpInterpreter
from .interpreters.vmap import VmapInterpreter
from .names import absent
from .ops.batching import to_front
from .ops.creation import eye, ones_like, zeros_like
from .ops.joining import cat, split, stack
from .ops.shape import moveaxis, reshape
from .state import current, level, using
from .tensor import Tensor, edge

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .arguments import Argnums
    from .interpreters.base import Interpreter
    from .nn.functional_call import functional_call, replace_all_batch_norm_modules_, stack_module_state

__all__ = ["functional_call", "functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "linearize",
           "replace_all_batch_norm_modules_", "stack_module_state", "strict_levels", "vjp", "vmap"]


def __getattr__(name: str) -> object:
    """Import what belongs to modules when a program first asks for it."""
    if name in ("functional_call", "stack_module_state", "replace_all_batch_norm_modules_"):
        from .nn import functional_call as file  # noqa: PLC0415

        return getattr(file, name)
    raise absent(__name__, name)


# ---------------------------------------------------------------- what transforms share
def _off(me: Interpreter, x: Any) -> Any:
    """A result as it is one storey down: without this level's wrapper."""
    return x.value if isinstance(x, Tensor) and x.owner is me else x


# ---------------------------------------------------------------- reverse mode
def vjp(f: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return f(*primals) and a function from cotangents of the output to cotangents of the primals.

    primals and output: any pytrees of tensors.  The function may be called any number of times, also after other levels
    have come and gone, and under further transforms.  None stands for the cotangent 1 of a scalar; with create_graph=False
    the cotangents are constants.  With has_aux, f returns (output, aux) and aux is returned last.
    Source: torch.func.vjp.
    """
    arguments.primals(tree.leaves_of(primals), "vjp(f, *primals)")
    found = _vjp(f, primals, has_aux)
    arguments.differentiable(tree.leaves_of(found[0]), "vjp(f, *primals)")
    return found


def _vjp(f: Callable[..., Any], primals: tuple[Any, ...], has_aux: bool = False) -> Any:
    leaves, spec = tree.flatten(primals)
    arguments.tensors(leaves, "vjp(f, *primals)")
    with level(me := GradInterpreter()):
        wrapped = [me.leaf(x) for x in leaves]
        out, aux = arguments.with_aux(f(*tree.unflatten(wrapped, spec)), has_aux, "vjp(f, *primals)")
    outs, out_spec = arguments.outputs(out, "vjp(f, *primals)")
    edges = [edge(y) if y.owner is me else (None, 0) for y in outs]
    values = [_off(me, y) for y in outs]

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        cts, ct_spec = tree.flatten(cotangents)
        if ct_spec != out_spec:
            msg = ("Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                   f"cotangents: {ct_spec}, primal output: {out_spec}")
            raise UsageError(msg)
        roots = []
        with nullcontext() if create_graph is None else set_grad_enabled(create_graph):
            for i, (y, ct, (target, nr)) in enumerate(zip(values, given(cts), edges, strict=True)):
                if target is not None or ct is not None:
                    checked = cotangent(i, ct, y)
                    if target is not None:
                        roots.append((target, nr, checked))
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
        leaves, spec = tree.flatten(arguments.chosen(args, argnums))
        arguments.primals(leaves, "grad")
        with level(me := GradInterpreter()):
            wrapped = [me.leaf(x) for x in leaves]
            out = f(*arguments.replaced(args, argnums, tree.unflatten(wrapped, spec)), **kwargs)
            out, aux = arguments.with_aux(out, has_aux, "grad_and_value(f)(*args)")
            arguments.scalar(out, "grad_and_value(f)(*args)")
            value = _off(me, out)
            target, nr = edge(out) if out.owner is me else (None, 0)
            roots = [] if target is None else [(target, nr, ones_like(value))]
            found = engine.backward(me, roots, inputs=wrapped)
        grads = [zeros_like(wrapped[i].value) if g is None else g for i, g in enumerate(found)]
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
    xs, dxs, spec = arguments.primals_and_tangents(primals, tangents)
    with level(me := JvpInterpreter()):
        duals = [me.give(x, dx) for x, dx in zip(xs, dxs, strict=True)]
        out, aux = arguments.with_aux(f(*tree.unflatten(duals, spec)), has_aux, "jvp(f, primals, tangents)")
    outs, out_spec = arguments.outputs(out, "jvp(f, primals, tangents)")
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
    out, pull = _vjp(f, primals)

    def push(*tangents: Any) -> Any:
        if tree.flatten(tangents)[1] != tree.flatten(primals)[1]:
            msg = (f"Expected the tangents {tree.flatten(tangents)[1]} to have the same argspec as the primals "
                   f"{tree.flatten(primals)[1]}.")
            raise UsageError(msg)
        pushed = tree.leaves_of(tangents)
        arguments.tensors(pushed, "linearize(f, *primals): tangents")
        for x, dx in zip(tree.leaves_of(primals), pushed, strict=True):
            if x.shape != dx.shape or x.dtype is not dx.dtype:
                msg = f"Expected a tangent of shape {list(x.shape)} and type {x.dtype}, found {list(dx.shape)}, {dx.dtype}."
                raise UsageError(msg)
        return _vjp(pull, (tree.map(zeros_like, out),))[1](tangents)[0]
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
        dims = arguments.in_dims_of(in_dims, args, leaves)
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


def _vmap_once(f: Callable[..., Any], leaves: list[Any], spec: Any, dims: list[int | None], out_dims: Any, size: int,
               randomness: str, kwargs: dict[str, Any]) -> Any:
    with level(me := VmapInterpreter(size, randomness)):
        args = tree.unflatten([x if d is None else me.batched(x, d) for x, d in zip(leaves, dims, strict=True)], spec)
        out = f(*args, **kwargs)
    outs, out_spec = tree.flatten(out)
    places = arguments.out_dims_of(out_dims, out)
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
        raise no_dimension(place, rank)
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
    places = arguments.out_dims_of(out_dims, tree.unflatten(results[0][0], out_spec))
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


def _of_chosen(f: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> Callable[[Any], Any]:
    """f as a function of its arguments at argnums alone."""
    return lambda chosen: f(*arguments.replaced(args, argnums, chosen), **kwargs)


def jacrev(f: Callable[..., Any], argnums: Argnums = 0, *, has_aux: bool = False,
           chunk_size: int | None = None, _preallocate_and_copy: bool = False) -> Callable[..., Any]:
    """Return a function that computes the Jacobian of f by reverse mode: output shape + input shape, for each pair.

    Output and the arguments at argnums may be pytrees: the result is a nest of the output's structure holding nests of the
    argument's.  chunk_size: rows computed at a time, 1 in a loop; they are joined, also with torch's _preallocate_and_copy.
    Raises UsageError where an argument or an output is complex.  Source: torch.func.jacrev.
    """
    if chunk_size is not None and chunk_size <= 0:
        msg = "jacrev: `chunk_size` should be greater than 0."
        raise ValueError(msg)

    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arguments.only_real(tree.leaves_of(args), "jacrev", "inputs")
        chosen = arguments.chosen(args, argnums)
        out, pull, *aux = vjp(_of_chosen(f, args, kwargs, argnums), chosen, has_aux=has_aux)
        outs, out_spec = tree.flatten(out)
        arguments.only_real(outs, "jacrev", "outputs")
        xs, spec = tree.flatten(chosen)

        def row(*cts: Tensor) -> tuple[Tensor, ...]:
            return tuple(tree.leaves_of(pull(tree.unflatten(cts, out_spec))))

        if chunk_size == 1:  # a loop, so that a backward may do what cannot be batched
            rows = [stack(parts) for parts in zip(*[row(*cts) for cts in zip(*_basis(outs), strict=True)], strict=True)]
        else:
            rows = vmap(row, chunk_size=chunk_size)(*_basis(outs))
        by_input = [_rows(r, outs, 0) for r in rows]
        result = tree.unflatten([tree.unflatten([by_input[i][o] for i in range(len(xs))], spec) for o in range(len(outs))],
                                out_spec)
        return (result, *aux) if has_aux else result
    return wrapper


def jacfwd(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *,
           randomness: str = "error") -> Callable[..., Any]:
    """Return a function that computes the Jacobian of f by forward mode; the result is shaped as jacrev's.

    Raises UsageError where an argument or an output is complex.  Source: torch.func.jacfwd.
    """
    @functools.wraps(f)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        arguments.only_real(tree.leaves_of(args), "jacfwd", "inputs")
        of_chosen, chosen = _of_chosen(f, args, kwargs, argnums), arguments.chosen(args, argnums)
        xs, spec = tree.flatten(chosen)
        seen: list[Any] = []

        def push(*dxs: Any) -> Any:
            _, dout, *aux = jvp(of_chosen, (chosen,), (tree.unflatten(dxs, spec),), has_aux=has_aux)
            douts, out_spec = tree.flatten(dout)
            arguments.only_real(douts, "jacfwd", "outputs")
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


@contextmanager
def strict_levels() -> Iterator[None]:
    """Within this context a tensor that is used after its level has gone is an error, whatever level it was.

    Elsewhere one of grad or jvp means its value; torch has no such switch. [NOTE escaped-tensor]
    """
    with using(current()._replace(strict_levels=True)):
        yield
