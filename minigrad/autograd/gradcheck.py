"""gradcheck: derivatives compared with central differences, element by element.

Every number counts by itself, so a complex element is two: a column of a Jacobian is what moving one of them does to all
numbers of an output, a row is the gradient of one of them.

Source: torch.autograd.gradcheck.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from ..dtypes import complex128, float64, promote_types
from ..errors import UsageError
from ..ops.creation import eye, zeros_like
from ..ops.joining import cat, stack
from ..ops.pointwise import imag, real
from ..ops.random import randn_like
from ..ops.reduction import allclose
from ..ops.shape import detach, reshape
from ..tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]


def _grad(*args: Any, **options: Any) -> tuple[Any, ...]:
    from . import grad  # noqa: PLC0415  that file needs this one

    return grad(*args, **options)


class GradcheckError(UsageError):
    """A derivative is not what differences say.  Source: torch.autograd.gradcheck.GradcheckError."""


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
              raise_exception: bool = True, nondet_tol: float = 0.0, check_undefined_grad: bool = True,
              check_grad_dtypes: bool = False, check_batched_grad: bool = False, check_batched_forward_grad: bool = False,
              check_forward_ad: bool = False, check_backward_ad: bool = True, fast_mode: bool = False,
              masked: bool | None = None) -> bool:
    """Whether reverse mode, and forward mode if asked, agree with central differences of step eps for inputs that require grad.

    func returns tensors (others, and outputs without gradient, do not count).  nondet_tol: how far two backwards may differ.
    check_batched_...: whether vmap over derivatives gives what a loop gives.  check_undefined_grad, fast_mode and masked are
    accepted as torch's: each output is differentiated alone, every element is checked, and all tensors are dense.
    Raises GradcheckError, unless not raise_exception; ValueError where no input requires grad; AssertionError without a mode.
    Source: torch.autograd.gradcheck.
    """
    if not (check_forward_ad or check_backward_ad):
        msg = "Expected at least one of check_forward_ad or check_backward_ad to be True"
        raise AssertionError(msg)
    check = _Check(func, _tuple(inputs), eps, atol, rtol)
    try:
        check.inputs_make_sense()
        if not check.outputs(*check.leaves()):
            check.constant()
            return True
        numerical = check.numerical()
        if check_backward_ad:
            check.agree(numerical, check.reverse(nondet_tol, dtypes=check_grad_dtypes), "")
            check.multiplied_by_grad_output()
        if check_forward_ad:
            check.agree(numerical, check.forward(), "computed with forward mode ")
        if check_batched_grad:
            check.batched_reverse()
        if check_batched_forward_grad:
            check.batched_forward()
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5,
                  rtol: float = 1e-3, gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True,
                  nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False,
                  check_batched_grad: bool = False, check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True,
                  fast_mode: bool = False, masked: bool = False) -> bool:
    """Whether the gradients of gradients do: a gradcheck of the function that gives func's gradients.

    grad_outputs: the cotangents to do it at, random ones without.  Source: torch.autograd.gradgradcheck.
    """
    xs = _tuple(inputs)
    outputs = _differentiable(func(*xs))
    cts = _tuple(grad_outputs) if grad_outputs is not None else tuple([randn_like(y).requires_grad_() for _, y in outputs])
    wanted = _requiring(xs)

    def gradients(*args: Any) -> tuple[Tensor, ...]:
        own, cts = args[:len(xs)], args[len(xs):]

        def outputs_of(*chosen: Tensor) -> tuple[Tensor, ...]:
            out = _tuple(func(*_with(own, wanted, chosen)))
            return tuple([out[i] for i, _ in outputs])

        chosen = [own[i] for i in wanted]
        if any(isinstance(a, Tensor) and a.owner is not None for a in args):  # forward mode over this
            from ..func import vjp  # noqa: PLC0415  the transforms are above this file

            return vjp(outputs_of, *chosen)[1](cts)  # type: ignore[no-any-return]
        found = _grad(outputs_of(*chosen), chosen, cts, create_graph=True, allow_unused=True)
        return tuple([g for g in found if g is not None])

    return gradcheck(gradients, xs + cts, eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception,
                     nondet_tol=nondet_tol, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev)


Jacobians = dict[tuple[int, int], Tensor]
"""By (output, input): a matrix with a row for each number of the input, and a column for each of the output."""


class _Check:
    """One call of gradcheck: a function, and where its derivatives are looked at."""

    def __init__(self, func: Callable[..., Any], inputs: tuple[Any, ...], eps: float, atol: float, rtol: float) -> None:
        self.func = func
        self.inputs = inputs
        self.wanted = _requiring(inputs)
        self.eps, self.atol, self.rtol = eps, atol, rtol
        self.complex: set[int] = set()
        """The outputs that were found to be complex."""

    def inputs_make_sense(self) -> None:
        """Raise ValueError where nothing requires grad, and warn where differences will be too coarse."""
        if not self.wanted:
            msg = ("gradcheck expects at least one input tensor to require gradient, but none of them have "
                   "requires_grad=True.")
            raise ValueError(msg)
        for i in self.wanted:
            if self.inputs[i].dtype not in (float64, complex128):
                warnings.warn(f"Input #{i} requires gradient and is not a double precision floating point or complex. This "
                              "check will likely fail if all the inputs are not of double precision floating point or "
                              "complex. ",
                              stacklevel=3)

    def outputs(self, *chosen: Tensor) -> list[tuple[int, Tensor]]:
        """The numbered outputs that require grad, of the inputs with `chosen` at the wanted places."""
        return _differentiable(self.func(*_with(self.inputs, self.wanted, chosen)))

    def leaves(self) -> list[Tensor]:
        return [detach(self.inputs[i]).clone().requires_grad_() for i in self.wanted]

    def constant(self) -> None:
        """Raise GradcheckError where outputs change with the inputs, and none of them requires grad."""
        if any((jacobian != 0).any() for jacobian in self.numerical(_numeric).values()):
            msg = "Numerical gradient for function expected to be zero"
            raise GradcheckError(msg)

    def numerical(self, outputs_of: Callable[[Any], list[tuple[int, Tensor]]] | None = None) -> Jacobians:
        """Central differences; of the outputs that require grad, or those that a function of all outputs names."""
        chosen = outputs_of or _differentiable
        leaves = self.leaves()
        rows: dict[tuple[int, int], list[Tensor]] = {}
        for at, i in enumerate(self.wanted):
            for step in _directions(leaves[at]):
                ends = []
                for sign in (1, -1):
                    moved = list(leaves)
                    moved[at] = (detach(leaves[at]) + sign * self.eps * step).requires_grad_()
                    ends.append(chosen(self._all_outputs(tuple(moved))))
                for (o, above), (_, below) in zip(*ends, strict=True):
                    _same(above, below)
                    self.complex |= {o} if above.dtype.is_complex else set()
                    rows.setdefault((o, i), []).append(_numbers((detach(above) - detach(below)) / (2 * self.eps)))
        return {key: stack(found) for key, found in rows.items()}

    def reverse(self, nondet_tol: float, *, dtypes: bool) -> Jacobians:
        """One backward for each number of each output; each is run twice."""
        leaves = self.leaves()
        found: Jacobians = {}
        for o, y in self.outputs(*leaves):
            columns = [[self._pulled(y, leaves, ct, dtypes=dtypes) for ct in _directions(y)] for _ in range(2)]
            for at, i in enumerate(self.wanted):
                first, again = (stack([gs[at] for gs in each], 1) if each else None for each in columns)
                if first is None or again is None:
                    continue
                if not allclose(first, again, rtol=0.0, atol=nondet_tol, equal_nan=True):
                    msg = ("Backward is not reentrant, i.e., running backward with same input and grad_output multiple times "
                           "gives different values, although analytical gradient matches numerical gradient. The tolerance "
                           f"for nondeterminism was {nondet_tol}.")
                    raise GradcheckError(msg)
                found[o, i] = first
        return found

    def _pulled(self, y: Tensor, leaves: list[Tensor], ct: Tensor, *, dtypes: bool) -> list[Tensor]:
        grads = _grad(y, leaves, ct, retain_graph=True, allow_unused=True)
        full = []
        for g, x in zip(grads, leaves, strict=True):
            if g is not None and g.shape != x.shape:
                msg = "Analytical gradient has incorrect size"
                raise GradcheckError(msg)
            if g is not None and dtypes and g.dtype is not x.dtype:
                msg = "Gradient has dtype mismatch"
                raise GradcheckError(msg)
            full.append(_numbers(zeros_like(x) if g is None else g.to(x.dtype)))
        return full

    def forward(self) -> Jacobians:
        """One tangent, by hand, for each number of each input."""
        from .forward_ad import dual_level, make_dual, unpack_dual  # noqa: PLC0415

        leaves = [detach(x) for x in self.leaves()]
        rows: dict[tuple[int, int], list[Tensor]] = {}
        known = [o for o, _ in self.outputs(*self.leaves())]
        for at, i in enumerate(self.wanted):
            for step in _directions(leaves[at]):
                with dual_level():
                    duals = [make_dual(x, step if k == at else zeros_like(x)) for k, x in enumerate(leaves)]
                    out = self._all_outputs(tuple(duals))
                    for o in known:
                        primal, tangent = unpack_dual(out[o])
                        rows.setdefault((o, i), []).append(_numbers(zeros_like(primal) if tangent is None else tangent))
        return {key: stack(found) for key, found in rows.items()}

    def _all_outputs(self, chosen: tuple[Tensor, ...]) -> tuple[Any, ...]:
        return _tuple(self.func(*_with(self.inputs, self.wanted, chosen)))

    def agree(self, numerical: Jacobians, analytical: Jacobians, how: str) -> None:
        """Raise GradcheckError where two Jacobians differ."""
        for (o, i), expected in numerical.items():
            found = analytical.get((o, i))
            if found is None:
                found = zeros_like(expected)
            common = promote_types(found.dtype, expected.dtype)
            for part, columns in self._parts(o, expected.shape[1]):
                got, want = found.to(common)[:, columns], expected.to(common)[:, columns]
                if not allclose(got, want, self.rtol, self.atol):
                    msg = (f"{part}Jacobian {how}mismatch for output {o} with respect to input {i},\n"
                           f"numerical:{want!r}\nanalytical:{got!r}\n")
                    raise GradcheckError(msg)

    def _parts(self, o: int, width: int) -> list[tuple[str, slice]]:
        """The columns of an output's numbers, and what they are: of a complex one, imaginary parts, and real ones."""
        if o not in self.complex:
            return [("", slice(None))]
        says = "While considering the {} part of complex outputs only, "
        return [(says.format("imaginary"), slice(width // 2, None)), (says.format("real"), slice(width // 2))]

    def multiplied_by_grad_output(self) -> None:
        """Raise GradcheckError where a cotangent of zeros gives a gradient that is not zero."""
        leaves = self.leaves()
        ys = [y for _, y in self.outputs(*leaves)]
        grads = _grad(ys, leaves, [zeros_like(y) for y in ys], allow_unused=True) if ys else ()
        if any(g is not None and (g != 0).any() for g in grads):
            msg = "backward not multiplied by grad_output"
            raise GradcheckError(msg)

    def batched_reverse(self) -> None:
        """Raise GradcheckError where a batch of cotangents gives other gradients than each by itself."""
        leaves = self.leaves()
        for o, y in self.outputs(*leaves):
            def pull(ct: Tensor, y: Tensor = y) -> tuple[Tensor, ...]:
                return _grad(y, leaves, ct, retain_graph=True, materialize_grads=True)

            self._batch_equals_loop(pull, y, f"output {o}", "vmap over autograd.grad")

    def batched_forward(self) -> None:
        """Raise GradcheckError where a batch of tangents gives other tangents than each by itself."""
        from .forward_ad import dual_level, make_dual, unpack_dual  # noqa: PLC0415

        leaves = [detach(x) for x in self.leaves()]
        for at, i in enumerate(self.wanted):
            def push(tangent: Tensor, at: int = at) -> tuple[Tensor, ...]:
                with dual_level():
                    out = self._all_outputs(tuple([make_dual(x, tangent) if k == at else x for k, x in enumerate(leaves)]))
                    pushed = [unpack_dual(y) for y in out if isinstance(y, Tensor) and y.dtype.differentiable]
                return tuple([zeros_like(primal) if dy is None else dy for primal, dy in pushed])

            self._batch_equals_loop(push, leaves[at], f"input {i}", "vmap over jvp")

    def _batch_equals_loop(self, f: Callable[[Tensor], tuple[Tensor, ...]], like: Tensor, where: str, what: str) -> None:
        from ..func import vmap  # noqa: PLC0415

        given = [randn_like(detach(like)) for _ in range(2)]
        expected = [stack(parts) for parts in zip(*[f(v) for v in given], strict=True)]
        try:
            found = vmap(f)(stack(given))
        except RuntimeError as reason:
            msg = f"While computing batched gradients, got: {reason}\n\ngradcheck failed while testing {what}."
            raise GradcheckError(msg) from reason
        for k, (got, want) in enumerate(zip(found, expected, strict=True)):
            if not allclose(got, want):
                msg = f"For {where} ({what}, result {k}):\n\nGot:\n{got!r}\n\nExpected:\n{want!r}"
                raise GradcheckError(msg)


# ---------------------------------------------------------------- numbers of a tensor
def _directions(x: Tensor) -> Iterator[Tensor]:
    """Tensors like x that are 1, or then i where x is complex, at one element, and 0 elsewhere."""
    for unit in (1, 1j) if x.dtype.is_complex else (1,):
        for one in eye(x.numel(), dtype=x.dtype, device=x.device):
            yield reshape(one * unit, x.shape)


def _numbers(x: Tensor) -> Tensor:
    """All numbers in one dimension: real parts, then imaginary ones."""
    flat = reshape(x, -1)
    return cat([real(flat), imag(flat)]) if x.dtype.is_complex else flat


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, (tuple, list)) else (x,)


def _requiring(xs: tuple[Any, ...]) -> list[int]:
    return [i for i, x in enumerate(xs) if isinstance(x, Tensor) and x.requires_grad]


def _with(args: tuple[Any, ...], places: list[int], new: Any) -> tuple[Any, ...]:
    full = list(args)
    for i, x in zip(places, new, strict=True):
        full[i] = x
    return tuple(full)


def _numeric(out: Any) -> list[tuple[int, Tensor]]:
    """The outputs that could require grad, with their positions."""
    return [(i, y) for i, y in enumerate(_tuple(out)) if isinstance(y, Tensor) and y.dtype.differentiable]


def _same(above: Tensor, below: Tensor) -> None:
    """Raise AssertionError where an output's shape or dtype depends on what the inputs are."""
    for what in ("shape", "dtype"):
        if getattr(above, what) != getattr(below, what):
            msg = (f"Expected `func` to return outputs with the same {what} when inputs are perturbed, but got: "
                   f"{getattr(above, what)} and {getattr(below, what)}.")
            raise AssertionError(msg)


def _differentiable(out: Any) -> list[tuple[int, Tensor]]:
    """The outputs that require grad, with their positions."""
    return [(i, y) for i, y in enumerate(_tuple(out)) if isinstance(y, Tensor) and y.requires_grad]
