"""One row with one sample, in one dtype: what the laws are parametrised over."""

from __future__ import annotations

import functools
import zlib

import numpy as np
import pytest

import minigrad
from minigrad import func
from minigrad.backend import device as find_device
from minigrad.dtypes import BY_NAME, bool_, int64
from minigrad.ops import factors

from .rows import TABLE
from .samples import COMPLEX, CONSTANT, FACTORS, HERE, HERMITIAN, OWN, PASSIVE, REFUSES_DERIVATIVE, SAMPLES, THERE, Draw


class Case:
    """A row, the k-th sample of it, and the dtype of the run."""

    def __init__(self, name, k, dtype):
        self.name, self.k, self.dtype = name, k, BY_NAME[dtype]
        self.call = TABLE[name]
        self.op = self.call.op
        self.args, self._params = SAMPLES[name][k]

    def __repr__(self):
        return f"{self.name}-{self.k}-{self.dtype.name}"

    def params(self, device):
        stand_for = {OWN: self.dtype, COMPLEX: self.dtype.to_complex(), HERE: find_device(device),
                     THERE: find_device("sim" if device == "cpu" else "cpu")}
        return {k: stand_for.get(v, v) if isinstance(v, str) else v for k, v in self._params.items()}

    def kind_of(self, x):
        """The dtype that a draw has in this run."""
        if not x.floating:
            return bool_ if x.kind == "mask" else int64
        if x.kind == "complex":
            return self.dtype.to_complex()
        return self.dtype if x.kind == "number" or (x.kind == "definite" and not x.more) else self.dtype.to_real()

    def arrays(self, seed):
        """The arguments with an array for every draw."""
        rng = np.random.default_rng([zlib.crc32(repr(self).encode()), seed])
        return [x.draw(rng, is_complex=self.dtype.is_complex) if isinstance(x, Draw) else x for x in self.args]

    def tensors(self, seed, device):
        """The arguments with a tensor for every draw."""
        return self.factored([tensor(a, self.kind_of(x), device) if isinstance(x, Draw) else a
                              for x, a in zip(self.args, self.arrays(seed), strict=True)])

    def factored(self, args):
        """The arguments, the factors among them those of the first."""
        return [args[0], *factors.constant_factor(args[0]), *args[3:]] if self.name in FACTORS else args

    @property
    def floating(self):
        """The positions of real and complex tensors."""
        return [i for i, x in enumerate(self.args) if isinstance(x, Draw) and x.floating]

    @property
    def active(self):
        """The positions of those that have a rule."""
        op, passive = self.op, (*PASSIVE.get(self.name, ()), *CONSTANT.get(self.name, ()))
        return [i for i in self.floating if op.differentiable and i not in passive and (op.joint or op.formulas[i] is not None)]

    @property
    def passive(self):
        """The positions of real and complex tensors that cannot be differentiated."""
        return [i for i in self.floating if i not in (*self.active, *CONSTANT.get(self.name, ()))] if self.op.differentiable else []

    def function(self, args, positions, device):
        """The row as a function of the tensors at `positions`: a tuple of its differentiable outputs."""
        params = self.params(device)

        def f(*xs):
            given = list(args)
            for i, x in zip(positions, xs, strict=True):
                given[i] = (x + x.mH) / 2 if self.args[i].kind == "definite" and self.name in HERMITIAN else x
            out = self.call(*self.factored(given), **params)
            outs = (out,) if self.op.outs == 1 else tuple(out)
            return tuple(y for y in outs if y.dtype.differentiable)
        return f

    def alike(self, like, seed):
        """Random tensors of the shapes and dtypes of others."""
        rng = np.random.default_rng([zlib.crc32(repr(self).encode()), seed, 1])
        return [tensor(rng.standard_normal(x.shape) + (1j * rng.standard_normal(x.shape) if x.dtype.is_complex else 0),
                       x.dtype, x.device) for x in like]


def tensor(a, dtype, device):
    return minigrad.tensor(np.array(a), dtype=dtype, device=device)


def array(x):
    """The numbers of a tensor of any device, in double precision."""
    a = np.asarray(x.detach().cpu().numpy())
    return a.astype(np.complex128 if a.dtype.kind == "c" else np.float64) if a.dtype.kind in "fc" else a


def inner(xs, ys):
    """The real inner product of two lists of tensors."""
    return sum(float(np.sum(np.conj(array(x)) * array(y)).real) for x, y in zip(xs, ys, strict=True))


def close(found, wanted, rtol):
    """Whether two lists of tensors or numbers agree, in shape too, to rtol of the largest number."""
    for a, b in zip(found, wanted, strict=True):
        a, b = (array(x) if isinstance(x, minigrad.Tensor) else np.asarray(x) for x in (a, b))
        assert a.shape == b.shape
        scale = np.max(np.abs(b), initial=1e-3) if b.dtype.kind in "fc" else 0
        np.testing.assert_allclose(a, b, rtol=0, atol=rtol * scale)


def value(f, device):
    """A scalar function made of f, whose second derivative depends on everything in f's rules."""
    def phi(*xs):
        total = None
        rng = np.random.default_rng(7)
        for y in f(*xs):
            w = tensor(rng.standard_normal(y.shape), y.dtype, y.device)
            part = ((w + 0.5 * y).conj() * y).sum() if y.dtype.is_complex else ((w + 0.5 * y) * y).sum()
            part = part.real if part.dtype.is_complex else part
            total = part if total is None else total + part
        return total
    return phi


def gradient(f, n):
    """All n partial gradients of a scalar function."""
    return func.grad(f, tuple(range(n)))


def modes(args, *, single=False):
    """The dtypes that a sample is run in."""
    kinds = {x.kind for x in args if isinstance(x, Draw)}
    real, cplx = ("float32", "complex64") if single else ("float64", "complex128")
    return [real] if "complex" not in kinds and "number" not in kinds else [real, cplx] if "number" in kinds else [cplx]


def cases(*, single=False, wanted=lambda case: True):
    """Run a test for every row, and in it for every sample and dtype of the row; a failure notes which it was."""
    rows = {name: [case for k, (args, _) in enumerate(samples) for dtype in modes(args, single=single)
                   if wanted(case := Case(name, k, dtype))] for name, samples in SAMPLES.items() if name in TABLE}

    def decorate(test):
        @functools.wraps(test)
        def each(case, **fixtures):
            for one in case:
                try:
                    test(one, **fixtures)
                except BaseException as error:
                    error.add_note(f"the law failed for {one!r}: {one.args}, {one._params}")
                    raise
        return pytest.mark.parametrize("case", [pytest.param(row, id=name) for name, row in rows.items() if row])(each)
    return decorate


def differentiable(case):
    return bool(case.active) and case.name not in REFUSES_DERIVATIVE
