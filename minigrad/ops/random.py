"""Rows that draw random numbers, and what is composed of them.

Such a row has no tensor argument, so `op.draw` asks every level on the stack: under vmap the samples draw differently (one
more dimension in `shape`), alike, or not at all.  Probabilities in a tensor meet their draw in a row of their own.

Upstream: aten/src/ATen/native/Distributions.cpp, aten/src/ATen/functorch/BatchRulesRandomness.cpp.
"""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from ..backend import CPU, NUMPY_DTYPE
from ..backend import device as find_device
from ..dtypes import FLOAT, dtype, float16, float32, float64, int64
from ..errors import UsageError
from ..op import draw
from ..random import generator_of
from ..row import OpFunction, row
from ..state import current
from ..tensor import Tensor
from .batching import elementwise, leading, same_bdim
from .creation import zeros_like
from .inplace import copy_
from .linalg import broadcast_shapes
from .shape import varargs

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..backend import Array, Device
    from ..random import Generator


def _drawing(name: str, numbers: Callable[..., Array]) -> OpFunction:
    """The row of numbers(random, shape, dtype, ...), which are drawn on the host and brought to their device."""
    def kernel(xp: Any, shape: tuple[int, ...], dtype: dtype, device: Device, generator: Generator, **params: Any) -> Array:
        drawn = numbers(generator.next_draw(), shape, dtype, **params)
        return xp.asarray(drawn.astype(NUMPY_DTYPE[dtype], copy=False))

    return row(name, kernel, vjp=None, jvp=None, batch=same_bdim)  # without arguments, it never has a batch of them


def _drawn(made: OpFunction, shape: tuple[int, ...], d: dtype | None, device: str | Device | None,
           generator: Generator | None, requires_grad: bool = False, **params: Any) -> Tensor:
    where = current().default_device if device is None else find_device(device)
    if generator is not None and generator.device is not where:
        msg = f"Expected a '{where}' device type for generator but found '{generator.device}'"
        raise UsageError(msg)
    out: Tensor = draw(made.op, {"shape": shape, "dtype": d or current().default_dtype, "device": where,
                                 "generator": generator or generator_of(where), **params})
    return out.requires_grad_() if requires_grad else out


def _floating(name: str, d: dtype) -> None:
    if d.category < FLOAT:
        msg = f"\"{name}\" not implemented for '{d.name}'"
        raise UsageError(msg)


# ---------------------------------------------------------------- real numbers
def _uniform_numbers(random: Any, shape: tuple[int, ...], dtype: dtype, low: float, high: float) -> Array:
    _floating("uniform", dtype)
    if dtype.is_complex:
        unit = random.random((*shape, 2), NUMPY_DTYPE[dtype.to_real()]).view(NUMPY_DTYPE[dtype])[..., 0]
    elif dtype is float16:
        unit = random.integers(0, 1 << 11, shape) / float(1 << 11)  # a float32 below 1 may round up to 1
    else:
        unit = random.random(shape, NUMPY_DTYPE[dtype])
    return unit if (low, high) == (0, 1) else unit * (high - low) + low


def _normal_numbers(random: Any, shape: tuple[int, ...], dtype: dtype, mean: float, std: float) -> Array:
    _floating("normal", dtype)
    if dtype.is_complex:
        pairs = random.standard_normal((*shape, 2), NUMPY_DTYPE[dtype.to_real()])
        standard = pairs.view(NUMPY_DTYPE[dtype])[..., 0] * sqrt(0.5)
    else:
        standard = random.standard_normal(shape, NUMPY_DTYPE[float64 if dtype is float64 else float32])
    return standard if (mean, std) == (0, 1) else standard * std + mean


def _exponential_numbers(random: Any, shape: tuple[int, ...], dtype: dtype, rate: float) -> Array:
    _floating("exponential", dtype)
    return random.standard_exponential(shape, NUMPY_DTYPE[float64 if dtype is float64 else float32]) / rate


_uniform = _drawing("uniform", _uniform_numbers)
_normal = _drawing("normal", _normal_numbers)
_exponential = _drawing("exponential", _exponential_numbers)


def rand(*sizes: Any, size: Any = None, generator: Generator | None = None, dtype: dtype | None = None,
         device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Numbers uniform in [0, 1).  Source: torch.rand."""
    return _drawn(_uniform, varargs(sizes, size), dtype, device, generator, requires_grad, low=0, high=1)


def rand_like(x: Tensor, *, dtype: dtype | None = None, device: str | Device | None = None,
              generator: Generator | None = None, requires_grad: bool = False) -> Tensor:
    """Numbers uniform in [0, 1) in the shape of `x`.  Source: torch.rand_like."""
    return rand(x.shape, dtype=dtype or x.dtype, device=device or x.device, generator=generator, requires_grad=requires_grad)


def randn(*sizes: Any, size: Any = None, generator: Generator | None = None, dtype: dtype | None = None,
          device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Normal numbers of mean 0 and variance 1 (complex ones too: half of it in each part).  Source: torch.randn."""
    return _drawn(_normal, varargs(sizes, size), dtype, device, generator, requires_grad, mean=0, std=1)


def randn_like(x: Tensor, *, dtype: dtype | None = None, device: str | Device | None = None,
               generator: Generator | None = None, requires_grad: bool = False) -> Tensor:
    """Normal numbers of mean 0 and variance 1 in the shape of `x`.  Source: torch.randn_like."""
    return randn(x.shape, dtype=dtype or x.dtype, device=device or x.device, generator=generator, requires_grad=requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Generator | None = None,
           dtype: dtype | None = None, device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Normal numbers; mean and std are numbers, with a size, or tensors that broadcast.  No gradient goes to either.

    Source: torch.normal.
    """
    if not isinstance(std, Tensor) and std < 0:
        msg = f"normal expects std >= 0.0, but found std {std}"
        raise UsageError(msg)
    tensors = [a for a in (mean, std) if isinstance(a, Tensor)]
    if not tensors:
        if size is None:
            msg = "normal(): a size is missing where mean and std are numbers."
            raise TypeError(msg)
        return _drawn(_normal, varargs((size,)), dtype, device, generator, requires_grad, mean=mean, std=std)
    shape = broadcast_shapes(*[a.shape for a in tensors])
    standard = randn(shape, dtype=tensors[0].dtype, device=tensors[0].device, generator=generator)
    mean, std = (a.detach() if isinstance(a, Tensor) else a for a in (mean, std))
    return standard * std + mean  # type: ignore[no-any-return]


# ---------------------------------------------------------------- whole numbers
def _integer_numbers(random: Any, shape: tuple[int, ...], dtype: dtype, low: int, high: int) -> Array:
    return random.integers(low, high, shape)


def _permuted_numbers(random: Any, shape: tuple[int, ...], dtype: dtype) -> Array:
    return random.permuted(CPU.xp.broadcast_to(CPU.xp.arange(shape[-1]), shape), axis=-1)


_integers = _drawing("randint", _integer_numbers)
_permutation = _drawing("randperm", _permuted_numbers)


def _bounds(bounds: tuple[int, ...]) -> dict[str, int]:
    low, high = (0, *bounds) if len(bounds) == 1 else bounds
    if low >= high:
        msg = f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        raise UsageError(msg)
    return {"low": low, "high": high}


def randint(*bounds_and_size: Any, low: int = 0, high: int | None = None, size: Any = None, generator: Generator | None = None,
            dtype: dtype | None = None, device: str | Device | None = None, requires_grad: bool = False) -> Tensor:
    """Integers uniform in [low, high); the arguments are high, size or low, high, size.  Source: torch.randint."""
    *bounds, shape = bounds_and_size if size is None else (*bounds_and_size, size)
    if high is not None:
        bounds = [*(bounds or [low]), high]
    return _drawn(_integers, varargs((shape,)), dtype or int64, device, generator, requires_grad, **_bounds(tuple(bounds)))


def randint_like(x: Tensor, *bounds: int, dtype: dtype | None = None, device: str | Device | None = None,
                 generator: Generator | None = None, requires_grad: bool = False) -> Tensor:
    """Integers uniform in [low, high) in the shape and type of `x`.  Source: torch.randint_like."""
    return randint(*bounds, x.shape, dtype=dtype or x.dtype, device=device or x.device, generator=generator,
                   requires_grad=requires_grad)


def randperm(n: int, *, generator: Generator | None = None, dtype: dtype | None = None,
             device: str | Device | None = None) -> Tensor:
    """0 .. n - 1 in random order.  Source: torch.randperm."""
    return _drawn(_permutation, (n,), dtype or int64, device, generator)


# ---------------------------------------------------------------- draws with given probabilities
def _coin_numbers(random: Any, shape: tuple[int, ...], dtype: dtype, p: float) -> Array:
    return random.random(shape, NUMPY_DTYPE[float32]) < p


_coins = _drawing("bernoulli", _coin_numbers)


def _bernoulli_kernel(xp: Any, x0: Array, x1: Array) -> Array:
    if not xp.all((x0 >= 0) & (x0 <= 1)):
        msg = "Expected p_in >= 0 && p_in <= 1 to be true, but got false. The probabilities must lie between 0 and 1."
        raise UsageError(msg)
    return (x1 < x0).astype(x0.dtype)


_bernoulli = row("bernoulli", _bernoulli_kernel, batch=elementwise, vjp=(lambda ct: zeros_like(ct), None),
                 jvp=(lambda dx: zeros_like(dx), None))


def bernoulli(x: Tensor, p: float | None = None, *, generator: Generator | None = None) -> Tensor:
    """Ones with the probabilities in `x`, or all with probability p, else zeros; no gradient goes to `x`.

    Source: torch.bernoulli.
    """
    if p is None:
        d = float64 if x.dtype is float64 else float32
        return _bernoulli(x, rand(x.shape, dtype=d, device=x.device, generator=generator))  # type: ignore[no-any-return]
    return coins(x.shape, p, x.dtype, x.device, generator)


def coins(shape: tuple[int, ...], p: float, dtype: dtype, device: Device, generator: Generator | None = None) -> Tensor:
    """Return ones with probability p, else zeros."""
    if not 0 <= p <= 1:
        msg = f"bernoulli_ expects p to be in [0, 1], but got p={p}"
        raise UsageError(msg)
    return _drawn(_coins, shape, dtype, device, generator, p=p)


def _multinomial_kernel(xp: Any, x0: Array, x1: Array, num_samples: int, replacement: bool) -> Array:
    if not (xp.isfinite(x0) & (x0 >= 0)).all():
        msg = "probability tensor contains either `inf`, `nan` or element < 0"
        raise UsageError(msg)
    if (x0.sum(-1) == 0).any():
        msg = "invalid multinomial distribution (sum of probabilities <= 0)"
        raise UsageError(msg)
    if replacement:
        total = xp.cumsum(x0, axis=-1)
        return (total[..., None, :] <= (x1 * total[..., -1:])[..., None]).sum(-1)
    order = xp.argsort(x1 * (1 / xp.maximum(x0, xp.finfo(x0.dtype).tiny)), axis=-1)
    return order[..., :num_samples].copy()  # the first to arrive


_multinomial = row("multinomial", _multinomial_kernel, vjp=None, jvp=None, batch=leading)


def multinomial(x: Tensor, num_samples: int, replacement: bool = False, *, generator: Generator | None = None) -> Tensor:
    """Indices drawn with probabilities in proportion to each row of `x`.  Source: torch.multinomial."""
    if x.ndim not in (1, 2):
        msg = f"prob_dist must be 1 or 2 dim, but it has {x.ndim}"
        raise UsageError(msg)
    if num_samples <= 0:
        msg = "cannot sample n_sample <= 0 samples"
        raise UsageError(msg)
    if not replacement and num_samples > x.shape[-1]:
        msg = "cannot sample n_sample > prob_dist.size(-1) samples without replacement"
        raise UsageError(msg)
    if replacement:
        numbers = rand(*x.shape[:-1], num_samples, dtype=float64, device=x.device, generator=generator)
    else:
        numbers = _drawn(_exponential, x.shape, float64, x.device, generator, rate=1)
    return _multinomial(x, numbers, num_samples=num_samples, replacement=replacement)  # type: ignore[no-any-return]


# ---------------------------------------------------------------- in place
def uniform_(x: Tensor, a: float = 0, b: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with numbers uniform in [a, b).  Source: torch.Tensor.uniform_."""
    if a > b:
        msg = f"uniform_ expects to return a [from, to) range, but found from={a} > to={b}"
        raise UsageError(msg)
    return copy_(x, _drawn(_uniform, x.shape, x.dtype, x.device, generator, low=a, high=b))


def normal_(x: Tensor, mean: float = 0, std: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers.  Source: torch.Tensor.normal_."""
    return copy_(x, normal(mean, std, x.shape, dtype=x.dtype, device=x.device, generator=generator))


def exponential_(x: Tensor, lambd: float = 1, *, generator: Generator | None = None) -> Tensor:
    """Fill with exponentially distributed numbers of mean 1 / lambd.  Source: torch.Tensor.exponential_."""
    if lambd <= 0:
        msg = f"exponential_ expects lambda > 0.0, but found lambda={lambd}"
        raise UsageError(msg)
    return copy_(x, _drawn(_exponential, x.shape, x.dtype, x.device, generator, rate=lambd))


def bernoulli_(x: Tensor, p: float | Tensor = 0.5, *, generator: Generator | None = None) -> Tensor:
    """Fill with ones, with probability p, and zeros.  Source: torch.Tensor.bernoulli_."""
    if isinstance(p, Tensor):
        return copy_(x, bernoulli(p.expand(x.shape), generator=generator))
    return copy_(x, bernoulli(x, p, generator=generator))


def random_(x: Tensor, *bounds: int, generator: Generator | None = None) -> Tensor:
    """Fill with integers uniform in [from, to), in what `x` holds exactly without bounds.  Source: torch.Tensor.random_."""
    widest = {"float16": 1 << 11, "float32": 1 << 24, "float64": 1 << 53, "bool": 2}.get(
        x.dtype.name, 1 << (8 * x.dtype.itemsize - x.dtype.is_signed))
    return copy_(x, randint(*(bounds or (min(widest, (1 << 63) - 1),)), x.shape, dtype=x.dtype, device=x.device,
                            generator=generator))
