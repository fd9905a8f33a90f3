"""What torch says about a program: values, gradients, products with the Hessian, saves; each asked for once."""

from __future__ import annotations

from functools import cached_property

import torch
from torch.autograd.graph import saved_tensors_hooks

from .compare import RTOL
from .libraries import Torch, leaves


def scalar(library, outputs, weights):
    """Re sum conj(w + y / 2) y over all outputs: a number whose second derivative depends on everything in an op's rules."""
    total = None
    for y, w in zip(outputs, weights, strict=True):
        w = library.tensor(w).to(y.device)
        y = y.to(w.dtype)  # in double precision, whatever the op's is
        part = ((w + 0.5 * y).conj() * y).sum() if y.is_complex() else ((w + 0.5 * y) * y).sum()
        part = part.real if part.is_complex() else part
        total = part if total is None else total + part
    return total


def along(library, grads, directions):
    """Re <gradient, direction>, summed over the inputs."""
    total = 0
    for g, v in zip(grads, directions, strict=True):
        part = (g * library.tensor(v).to(g.device).conj()).sum()
        total = total + (part.real if part.is_complex() else part)
    return total


class NoAnswer(Exception):
    """Torch cannot do it either."""


def answer(f):
    """A property that asks torch once; where torch fails, NoAnswer."""
    def ask(self):
        try:
            with Torch.quiet():
                return f(self)
        except Exception as error:
            raise NoAnswer(f"{type(error).__name__}: {error}") from error
    ask.__doc__ = f.__doc__
    return cached_property(ask)


class Oracle:
    """Torch's answers for one program."""

    def __init__(self, program, weights=None):
        self.program = program
        if weights is not None:
            self.weights = weights

    @answer
    def value(self):
        """What the op returns, and what its memory is: (leaves, for each whether it is a view of an input)."""
        tensors = self.program.tensors(Torch)
        storages = {t.untyped_storage().data_ptr() for t in tensors if t.numel()}
        outs = leaves(self.program.call(Torch, tensors))
        return outs, [isinstance(y, torch.Tensor) and y.untyped_storage().data_ptr() in storages for y in outs]

    @answer
    def recorded(self):
        """(leaves that require grad, outputs, for each output whether it does)."""
        tensors = self.program.tensors(Torch, recorded=True)
        outs = self.program.outputs(Torch, tensors)
        return tensors, outs, [y.requires_grad for y in outs]

    @property
    def roots(self):
        return self.recorded[2]

    @property
    def rtol(self):
        """The tolerance of the least precise output."""
        return max((RTOL[str(y.dtype).removeprefix("torch.")] for y in self.recorded[1]), default=0.0)

    @answer
    def weights(self):
        """A random array for each output that requires grad."""
        return self.program.weights([(tuple(y.shape), "complex128" if y.is_complex() else "float64") for y in self.recorded[1]
                                     if y.requires_grad])

    def _scalar(self, tensors):
        return scalar(Torch, [y for y in self.program.outputs(Torch, tensors) if y.requires_grad], self.weights)

    @answer
    def gradient(self):
        """The gradient of `scalar` by each active input."""
        tensors = self.program.tensors(Torch, recorded=True)
        return self._grads(self._scalar(tensors), [tensors[k] for k in self.program.active])

    @answer
    def hessian(self):
        """The product of the Hessian of `scalar` with the program's directions."""
        tensors = self.program.tensors(Torch, recorded=True)
        xs = [tensors[k] for k in self.program.active]
        first = self._grads(self._scalar(tensors), xs, create_graph=True)
        total = along(Torch, first, self.program.directions())
        return self._grads(total, xs) if total.requires_grad else [torch.zeros_like(x) for x in xs]

    @answer
    def tangent(self):
        """The derivative of the outputs along the program's directions, by forward mode; None where torch has none."""
        if not self.program.entry.supports_forward_ad:
            return None
        tensors, roots = self.program.tensors(Torch), self.roots

        def f(*xs):
            given = list(tensors)
            for k, x in zip(self.program.active, xs, strict=True):
                given[k] = x
            return tuple(y for y, root in zip(self.program.outputs(Torch, given), roots, strict=True) if root)
        xs = tuple(tensors[k] for k in self.program.active)
        return torch.func.jvp(f, xs, tuple(map(Torch.tensor, self.program.directions())))[1]

    @answer
    def packs(self):
        """What was packed, in order: (shape, dtype) of each."""
        found = []
        tensors = self.program.tensors(Torch, recorded=True)
        with saved_tensors_hooks(lambda x: found.append((tuple(x.shape), str(x.dtype).removeprefix("torch."))) or x, lambda x: x):
            self.program.call(Torch, tensors)
        return found

    @staticmethod
    def _grads(y, xs, **options):
        found = torch.autograd.grad(y, xs, allow_unused=True, **options)
        return [torch.zeros_like(x) if g is None else g for g, x in zip(found, xs, strict=True)]
