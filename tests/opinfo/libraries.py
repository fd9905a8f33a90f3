"""One sample, two libraries: torch's arguments as a program that torch and minigrad can both run.

An entry's callable is found in minigrad by the entry's name.  Where torch's database has a lambda for it, the lambda is the
program, and minigrad runs it with `torch` read as `minigrad`.
"""

from __future__ import annotations

import random
import warnings
from contextlib import contextmanager
from copy import copy
from functools import partial
from types import FunctionType

import numpy as np
import torch
import torch.func

import minigrad
import minigrad.autograd.graph
import minigrad.func
import minigrad.nn.functional
import minigrad.utils.checkpoint
from minigrad import dtypes

DTYPES = {getattr(torch, name): d for name, d in dtypes.BY_NAME.items()}
"""Every element type that both have: torch's -> minigrad's."""


class NotExpressible(Exception):
    """Minigrad has no such thing: a sparse layout, a quantized type, another device."""


# ---------------------------------------------------------------- nests
def leaves(x):
    """All leaves of what an op takes or returns, in order."""
    if isinstance(x, (tuple, list)):
        return [leaf for item in x for leaf in leaves(item)]
    if isinstance(x, dict):
        return [leaf for item in x.values() for leaf in leaves(item)]
    return [x]


def mapped(f, x):
    """The nest with f applied to every leaf; slices are containers too."""
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, (tuple, list)):
        return type(x)(mapped(f, item) for item in x)
    if isinstance(x, dict):
        return {key: mapped(f, item) for key, item in x.items()}
    if isinstance(x, slice):
        return slice(mapped(f, x.start), mapped(f, x.stop), mapped(f, x.step))
    return f(x)


# ---------------------------------------------------------------- the two sides
class Torch:
    """What a program needs of torch."""

    name, module, Tensor = "torch", torch, torch.Tensor

    @staticmethod
    def tensor(array, requires_grad=False):
        return torch.from_numpy(np.copy(array, order="K")).requires_grad_(requires_grad)

    @staticmethod
    def constant(x):
        return x

    @staticmethod
    def numpy(x):
        return x.detach().resolve_conj().resolve_neg().numpy(force=True)

    @staticmethod
    @contextmanager
    def quiet():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield


class Minigrad:
    """The same of minigrad."""

    name, module, Tensor = "minigrad", minigrad, minigrad.Tensor

    @staticmethod
    def tensor(array, requires_grad=False, device="cpu"):
        x = minigrad.from_numpy(np.copy(array, order="K")).to(device)
        return x.requires_grad_() if requires_grad else x

    @staticmethod
    def constant(x):
        """What an argument that is no tensor is called here."""
        if isinstance(x, torch.dtype):
            if x not in DTYPES:
                raise NotExpressible(x)
            return DTYPES[x]
        if isinstance(x, torch.device):
            return minigrad.device(str(x))
        if isinstance(x, (torch.memory_format, torch.layout)):
            return named(str(x).removeprefix("torch."))
        return read_as_minigrad(x) if callable(x) else x

    @staticmethod
    def numpy(x):
        return np.asarray(x.detach().cpu().numpy())

    @staticmethod
    @contextmanager
    def quiet():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # what torch warns of, too
            yield


def named(path, module=minigrad):
    """What a module has under a dotted name, or NotExpressible."""
    found = module
    for part in path.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise NotExpressible(path) from None
    return found


# ---------------------------------------------------------------- torch's programs, read as minigrad's
def _seeded(op, *args, seed=42, **kwargs):
    minigrad.manual_seed(seed)
    return op(*args, **kwargs)


def read_as_minigrad(f):
    """A function of torch's database as one of minigrad."""
    if isinstance(f, FunctionType) and f.__module__.startswith("torch.testing"):
        cells = tuple(type(c)(read_as_minigrad(c.cell_contents)) for c in f.__closure__ or ())
        names = {"torch": minigrad, "wrapper_set_seed": _seeded}
        names |= {name: read_as_minigrad(g) for name in f.__code__.co_names
                  if name not in names and isinstance(g := f.__globals__.get(name), FunctionType)}
        made = FunctionType(f.__code__, {**f.__globals__, **names}, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        return made
    if isinstance(f, partial):
        return partial(read_as_minigrad(f.func), *f.args, **f.keywords)
    for path, module in MODULES.items():
        name = getattr(f, "__name__", "")
        if getattr(module, name, None) == f:  # not `is`: a method of a type is made anew each time
            return named(f"{path}{name}")
    return f


MODULES = {"": torch, "nn.functional.": torch.nn.functional, "linalg.": torch.linalg, "fft.": torch.fft, "special.": torch.special,
           "Tensor.": torch.Tensor}


def counterpart(entry):
    """Minigrad's callable of an entry, or None where it has none of that name."""
    name = entry.name.removeprefix("torch.")
    try:
        mine = named(name if _has(minigrad, name) else f"Tensor.{name}")
        return mine if _has(torch, name) and named(name, torch) is entry.op else read_as_minigrad(entry.op)
    except NotExpressible:
        return None


def _has(module, path):
    try:
        named(path, module)
    except NotExpressible:
        return False
    return True


VARIANTS = ("method_variant", "inplace_variant", "operator_variant", "inplace_operator_variant")


def variant(entry, kind):
    """(torch's, minigrad's) other way to call an entry; None where torch has none, NotExpressible where minigrad has none."""
    theirs = getattr(entry, kind)
    if theirs is None or theirs is entry.op:
        return None
    return theirs, read_as_minigrad(theirs)


# ---------------------------------------------------------------- a sample as a program
class Slot:
    """The place of a tensor among the arguments."""

    def __init__(self, k):
        self.k = k


class Program:
    """One sample of one entry: (input, *args, **kwargs) with arrays for its tensors."""

    def __init__(self, entry, index, sample):
        self.entry, self.index, self.sample = entry, index, sample
        self.arrays, self.active = [], []
        self.arguments = mapped(self._taken, ((sample.input, *sample.args), sample.kwargs))

    def __repr__(self):
        return f"{self.entry.full_name}, sample {self.index}: {self.sample.summary()}"

    def _taken(self, x):
        if not isinstance(x, torch.Tensor):
            if isinstance(x, torch.nn.Module):
                raise NotExpressible(x)
            return x
        if (x.layout is not torch.strided or x.dtype not in DTYPES or x.device.type != "cpu" or x.ndim > 64  # as many as numpy has
                or type(x) is not torch.Tensor):
            raise NotExpressible(x)
        if x.requires_grad:
            self.active.append(len(self.arrays))
        self.arrays.append(x.detach().clone().resolve_conj().resolve_neg().numpy())
        return Slot(len(self.arrays) - 1)

    def with_arrays(self, arrays):
        """The same program on other arrays."""
        other = copy(self)
        other.arrays = arrays
        return other

    def tensors(self, library, *, recorded=False, **options):
        """Fresh tensors for the arrays; with `recorded` those that torch differentiates require grad."""
        return [library.tensor(a, recorded and k in self.active, **options) for k, a in enumerate(self.arrays)]

    def call(self, library, tensors, f=None):
        """Run the entry, or another callable of it."""
        given = mapped(lambda x: tensors[x.k] if isinstance(x, Slot) else library.constant(x), self.arguments)
        f = f or (self.entry.op if library is Torch else counterpart(self.entry))
        with library.quiet():
            return f(*given[0], **given[1])

    def outputs(self, library, tensors):
        """The tensors that a derivative can be taken of."""
        out = self.call(library, tensors)
        post = self.sample.output_process_fn_grad
        with library.quiet():
            out = post(out) if library is Torch else read_as_minigrad(post)(out)
        return tuple(y for y in leaves(out) if isinstance(y, library.Tensor) and (y.is_floating_point() or y.is_complex()))

    def weights(self, shapes_and_dtypes, salt=0):
        """Random arrays of these shapes and dtypes; the same in every run."""
        rng = np.random.default_rng([self.index, salt])
        made = []
        for shape, dtype in shapes_and_dtypes:
            a = rng.uniform(-1, 1, shape)
            made.append((a + 1j * rng.uniform(-1, 1, shape) if "complex" in dtype else a).astype(dtype))
        return made

    def directions(self, salt=1):
        """A direction for each active input."""
        return self.weights([(self.arrays[k].shape, self.arrays[k].dtype.name) for k in self.active], salt)


def programs(entry, generated):
    """The samples that torch's database generates for an entry, those that minigrad can express; the same in every run."""
    torch.default_generator.manual_seed(0)
    np.random.seed(0)  # noqa: NPY002  torch's database draws from it
    random.seed(0)
    found = []
    with Torch.quiet():
        for k, sample in enumerate(generated()):
            try:
                found.append(Program(entry, k, sample))
            except NotExpressible:
                continue
    return found
