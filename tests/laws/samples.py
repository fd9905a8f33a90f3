"""Sample inputs for every row: name -> list of (arguments, keyword parameters).

A tensor argument is a `Draw`: what numbers, in which shape.  `number` stands for real and for complex numbers, for rows that
take both: the laws are checked with each.  Anything else is handed on as it is; OWN and COMPLEX stand for the dtype of the
run and its complex form, HERE and THERE for its device and another one.
"""

from __future__ import annotations

from math import inf

import numpy as np

from minigrad.ops.resampling import cells, linear, nearest

OWN, COMPLEX, HERE, THERE = "own dtype", "complex dtype", "here", "there"


class Draw:
    """Numbers of a kind, in a shape; drawn anew for every sample of a batch."""

    def __init__(self, kind, shape, *more):
        self.kind, self.shape, self.more = kind, shape, more

    def __repr__(self):
        return f"{self.kind}{list(self.shape)}"

    @property
    def floating(self):
        return self.kind not in ("index", "permutation", "mask", "integer", "pivots")

    def draw(self, rng, *, is_complex=False):
        """A numpy array in double precision; int64 and bool where the kind is no number."""
        sign = rng.choice([-1.0, 1.0], self.shape)
        if self.kind == "complex" or (self.kind == "number" and is_complex):
            return sign * rng.uniform(0.3, 2, self.shape) + 1j * rng.uniform(0.3, 2, self.shape)
        if self.kind in ("real", "number"):
            return sign * rng.uniform(0.3, 2, self.shape)
        if self.kind == "ascending":
            return np.sort(rng.uniform(-2, 2, self.shape), -1)
        if self.kind == "between":
            return rng.uniform(*self.more, self.shape)
        if self.kind == "index":
            return rng.integers(0, self.more[0], self.shape)
        if self.kind == "permutation":
            return rng.permuted(np.broadcast_to(np.arange(self.more[0]), (*self.shape[:-1], self.more[0])), axis=-1)[
                ..., :self.shape[-1]]
        if self.kind == "integer":
            return rng.integers(1, 9, self.shape) * sign.astype(int)
        if self.kind == "definite":
            return _definite(rng, self.shape[-1], is_complex=is_complex and not self.more)
        if self.kind == "pivots":  # counted from 1, none above its own row
            return np.array([rng.integers(k + 1, self.shape[-1] + 1) for k in range(self.shape[-1])])
        assert self.kind == "mask", self.kind
        if "half" in self.more:  # as many true ones in every sample
            return rng.permuted(np.arange(self.shape[-1]) % 2 == 0)
        return rng.random(self.shape) < 0.6


def _definite(rng, n, *, is_complex):
    """A Hermitian, positive definite matrix, its eigenvalues well apart."""
    q, _ = np.linalg.qr(rng.standard_normal((n, n)) + (1j * rng.standard_normal((n, n)) if is_complex else 0))
    x = q * (1 + np.arange(n)) @ q.conj().T
    return (x + x.conj().T) / 2


def real(*shape):
    return Draw("real", shape)


def definite(n, *more):
    return Draw("definite", (n, n), *more)


def pivots(n):
    return Draw("pivots", (n,))


def number(*shape):
    return Draw("number", shape)


def cplx(*shape):
    return Draw("complex", shape)


def between(low, high, *shape):
    return Draw("between", shape, low, high)


def ascending(*shape):
    return Draw("ascending", shape)


def positive(*shape):
    return between(0.4, 2.5, *shape)


def unit(*shape):
    return between(0.1, 0.9, *shape)


def index(n, *shape):
    return Draw("index", shape, n)


def permutation(n, *shape):
    """Distinct indices along the last dimension: where two would write to one place, which one wins is not said."""
    return Draw("permutation", shape, n)


def mask(*shape):
    return Draw("mask", shape)


def half(n):
    return Draw("mask", (n,), "half")


def integer(*shape):
    return Draw("integer", shape)


UNARY = [((number(2, 3),), {}), ((number(),), {})]
REAL = [((real(2, 3),), {}), ((real(),), {})]
POSITIVE = [((positive(2, 3),), {}), ((cplx(2, 3),), {})]
INSIDE = [((between(-0.8, 0.8, 2, 3),), {}), ((cplx(2, 3),), {})]
BINARY = [((number(2, 3), number(2, 3)), {}), ((number(2, 3), number(3)), {}), ((number(3), number()), {}),
          ((number(2, 1), number(1, 3)), {}), ((number(2, 3), 0.7), {})]
REALS = [((real(2, 3), real(2, 3)), {}), ((real(2, 3), real(3)), {}), ((real(3), real()), {}), ((real(2, 3), 0.7), {})]
INTEGERS = [((integer(2, 3), integer(2, 3)), {}), ((integer(2, 3), integer(3)), {})]


def over(*draws, **params):
    """Samples of a reduction over dims: one, several, all; with and without keepdim."""
    draws = draws or (real(2, 3, 2),)
    return [((draws[0],), {"dims": dims, "keepdim": keepdim, **params})
            for dims, keepdim in [((1,), False), ((0, 2), True), ((0, 1, 2), False)]]


def along(*args, **params):
    """Samples of an op along a dimension: the last, and the first."""
    args = args or (real(2, 3),)
    return [(args, {"dim": 1, **params}), (args, {"dim": 0, **params})]


WINDOW = {"size": (2, 2), "stride": (3, 2), "offset": 1, "given": (4, 1), "kept": 0}
"""Of a matrix of three rows, in which two elements of the window are one."""
SHARED = {"size": (4,), "stride": (1,), "offset": 0, "given": (1, 1), "kept": 0}
"""Of a tensor whose rows overlap."""
GAPS = {"size": (3,), "stride": (3,), "offset": -1, "given": (2,), "kept": 0}
"""Of every second place of a memory; the window also shows places that are none of the tensor's."""
NOTHING = {"size": (0,), "stride": (1,), "offset": 0, "given": (), "kept": 0}


def losses(*args, rank, **params):
    return [(args, {"reduction": reduction, "rank": rank, **params}) for reduction in ("none", "mean", "sum")]


SAMPLES = {
    # ------------------------------------------------------------ pointwise
    "pointwise.add_row": BINARY,
    "pointwise.sub_row": BINARY,
    "pointwise.mul": BINARY,
    "pointwise.true_div": [*BINARY, ((0.3, number(9)), {})],
    "pointwise._ROUNDED.floor": REALS,
    "pointwise._ROUNDED.trunc": REALS,
    "pointwise.floor_divide": REALS,
    "pointwise.remainder": REALS,
    "pointwise.fmod": REALS,
    "pointwise.neg": UNARY,
    "pointwise.conj": UNARY,
    "triples.lerp": [((number(2, 3), number(2, 3), real(2, 3)), {}), ((real(2, 3), real(3), 0.3), {}),
                       ((real(2, 3), real(3), unit()), {})],
    "triples._addcmul": [((number(2, 3), number(2, 3), number(3)), {"value": 1}),
                           ((number(3), number(2, 3), number()), {"value": 0.5}), ((number(9), number(9), number(9)), {"value": 3})],
    "triples._addcdiv": [((number(2, 3), number(2, 3), number(3)), {"value": 1}),
                           ((number(3), number(2, 3), number()), {"value": 0.5}), ((number(9), number(9), number(9)), {"value": 3})],
    "pointwise._pow": [((positive(2, 3), real(2, 3)), {}), ((positive(3), real(2, 1)), {}), ((2.5, real(2, 3)), {}),
                       ((cplx(2, 3), between(1, 3, 3)), {}), ((positive(2, 3), real()), {}), ((cplx(2, 3), cplx(2, 3)), {})],
    "pointwise._pow_number": [((number(2, 3), 2), {}), ((number(2, 3), 3), {}), ((number(3), -1), {}),
                              ((positive(2, 3), 0.5), {}), ((number(2), 1), {}), ((number(2), 0), {})],
    # ------------------------------------------------------------ special functions, and functions of two numbers
    "distributions.lgamma": [((positive(2, 3),), {})],
    "distributions.digamma": [((positive(2, 3),), {})],
    "distributions._polygamma": [((positive(2, 3),), {"n": 1}), ((positive(2, 3),), {"n": 2})],
    "distributions.i0": REAL,
    "distributions.i0e": REAL,
    "distributions.i1": REAL,
    "distributions.i1e": REAL,
    "distributions.erfinv": [((between(-0.8, 0.8, 2, 3),), {})],
    "distributions.erfcx": REAL,
    "distributions.log_ndtr": REAL,
    "distributions.ndtri": [((unit(2, 3),), {})],
    "distributions.entr": [((positive(2, 3),), {})],
    "distributions._sinc": [((number(2, 3),), {"order": 0}), ((real(2, 3),), {"order": 2})],
    "pairs.logaddexp": REALS,
    "pairs.logaddexp2": REALS,
    "pairs.xlogy": [((real(2, 3), positive(2, 3)), {}), ((real(2, 3), positive(3)), {}), ((real(3), 0.7), {}),
                    ((0.3, positive(9)), {})],
    "pairs.xlog1py": [((real(2, 3), positive(2, 3)), {}), ((real(2, 3), positive()), {}), ((real(3), 0.5), {}),
                      ((0.3, positive(9)), {})],
    "pairs.hypot": REALS,
    "pairs.copysign": REALS,
    "pairs.heaviside": REALS,
    "pairs.nextafter": [((real(2, 3), real(2, 3)), {})],
    "pairs.gcd": INTEGERS,
    "pairs.lcm": INTEGERS,
    "choice.isposinf": REAL,
    "choice.isneginf": REAL,
    "choice.isreal": UNARY,
    "choice.signbit": REAL,
    "pairs.fmax": REALS,
    "pairs.fmin": REALS,
    "complexes._complex": [((real(2, 3), real(2, 3)), {}), ((real(2, 3), real(3)), {})],
    "complexes._view_as_real": [((cplx(2, 3),), {}), ((cplx(),), {})],
    "complexes._view_as_complex": [((real(2, 3, 2),), {}), ((real(2),), {})],
    "complexes._polar": [((positive(2, 3), real(2, 3)), {})],
    "complexes.angle": [((cplx(2, 3),), {}), ((real(3),), {})],
    # ------------------------------------------------------------ activations of pieces
    "pieces.hardsigmoid": REAL,
    "pieces.hardswish": REAL,
    "pieces._hardshrink": [((real(2, 3),), {"lambd": 0.5})],
    "pieces._softshrink": [((real(2, 3),), {"lambd": 0.5})],
    "pieces._glu": [((real(2, 4),), {"dim": 1}), ((real(2, 4),), {"dim": 0})],
    "pieces._prelu": [((real(2, 3), real(3)), {}), ((real(2, 3), real(1)), {})],
    # ------------------------------------------------------------ windows, cross products, chosen elements
    "strides._as_strided": [((number(3, 4),), WINDOW), ((number(2, 3),), SHARED), ((number(5),), GAPS), ((real(),), NOTHING)],
    "strides._as_strided_backward": [((number(2, 2),), {**WINDOW, "shape": (3, 4)}), ((number(4),), {**SHARED, "shape": (2, 3)}),
                                     ((number(3),), {**GAPS, "shape": (5,)}), ((real(0),), {**NOTHING, "shape": ()})],
    "bins._searchsorted": [((ascending(5), real(2, 3)), {"side": "left"}), ((ascending(2, 5), real(2, 3)), {"side": "right"})],
    "pairs._frexp": [((real(2, 3),), {}), ((real(),), {})],
    "choice.bitwise_left_shift": INTEGERS,
    "choice.bitwise_right_shift": INTEGERS,
    "solving.no_failure": [((index(1, 3),), {"failure": ""}), ((index(1),), {"failure": ""})],
    "segments._scatter_reduce": [
        ((real(3, 4), index(3, 2, 4), real(2, 4)), {"dim": 0, "reduce": reduce, "include_self": include_self})
        for reduce in ("sum", "prod", "mean", "amax", "amin") for include_self in (True, False)],
    "forms._unfold": [((number(5, 3),), {"dim": 0, "size": 2, "step": 1}), ((real(2, 6),), {"dim": 1, "size": 3, "step": 2})],
    "forms.unfold_backward": [((number(4, 3, 2),), {"shape": (5, 3), "dim": 0, "size": 2, "step": 1}),
                      ((real(2, 2, 3),), {"shape": (2, 6), "dim": 1, "size": 3, "step": 2})],
    "products._cross": [((number(3, 3), number(3, 3)), {"dim": 0}), ((number(3, 3), number(3, 3)), {"dim": 1})],
    "ranks._mode": along(real(3, 3), keepdim=False),
    "ranks._nanmedian": along(real(3, 4), keepdim=True),
    "ranks._nanmedian_all": over(),
    "pointwise.sin": UNARY,
    "pointwise.cos": UNARY,
    "pointwise.tan": [((between(-1.2, 1.2, 2, 3),), {}), ((cplx(2),), {})],
    "pointwise.asin": INSIDE,
    "pointwise.acos": INSIDE,
    "pointwise.atan": UNARY,
    "pointwise.sinh": UNARY,
    "pointwise.cosh": UNARY,
    "pointwise.tanh": UNARY,
    "pointwise.asinh": UNARY,
    "pointwise.acosh": [((between(1.2, 3, 2, 3),), {}), ((cplx(2),), {})],
    "pointwise.atanh": INSIDE,
    "pointwise.exp": UNARY,
    "pointwise.exp2": UNARY,
    "pointwise.expm1": UNARY,
    "pointwise.log": POSITIVE,
    "pointwise.log2": POSITIVE,
    "pointwise.log10": POSITIVE,
    "pointwise.log1p": POSITIVE,
    "pointwise.sqrt": POSITIVE,
    "pointwise.rsqrt": POSITIVE,
    "pointwise.reciprocal": UNARY,
    "pointwise.erf": REAL,
    "pointwise.erfc": REAL,
    "pointwise.abs_backward": [((real(2, 3), cplx(2, 3)), {})],
    "pointwise.tanh_backward": [((number(2, 3), number(2, 3)), {})],
    "pairs.atan2": REALS,
    "pointwise.floor": REAL,
    "pointwise.ceil": REAL,
    "pointwise.trunc": REAL,
    "pointwise._round": [((real(2, 3),), {"decimals": 0}), ((real(2, 3),), {"decimals": 1})],
    "pointwise.frac": REAL,
    "pointwise.sign": REAL,
    "pointwise.sgn": UNARY,
    "pointwise.abs": UNARY,
    "pointwise._real": [((cplx(2, 3),), {})],
    "pointwise._imag": [((cplx(2, 3),), {})],
    # ------------------------------------------------------------ choice
    **{f"choice.{name}": [((real(2, 3), real(2, 3)), {}), ((real(2, 3), real(3)), {}), ((integer(3), 2), {})]
       for name in ("eq", "ne", "lt", "le", "gt", "ge")},
    **{f"choice.{name}": [((mask(2, 3), mask(2, 3)), {}), ((real(2, 3), mask(3)), {})]
       for name in ("logical_and", "logical_or", "logical_xor")},
    "choice.logical_not": [((mask(2, 3),), {}), ((real(2),), {})],
    **{f"choice.{name}": [((mask(2, 3), mask(3)), {}), ((integer(2, 3), integer(2, 3)), {})]
       for name in ("bitwise_and", "bitwise_or", "bitwise_xor")},
    "choice.bitwise_not": [((mask(2, 3),), {}), ((integer(2),), {})],
    "choice.isnan": REAL,
    "choice.isinf": REAL,
    "choice.isfinite": REAL,
    "choice.choose": [((mask(2, 3), number(2, 3), number(2, 3)), {}), ((mask(2, 1), number(3), number(2, 3)), {}),
                      ((mask(3), number(), number(2, 3)), {})],
    "choice.maximum": REALS,
    "choice.minimum": REALS,
    "choice.clamp_min": [((real(2, 3), real(3)), {}), ((real(2, 3), 0.1), {})],
    "choice.clamp_max": [((real(2, 3), real(3)), {}), ((real(2, 3), 0.1), {})],
    "choice._clamp": [((real(2, 3), -1.0, 1.0), {}), ((real(2, 3), between(-1.5, -0.5, 3), between(0.5, 1.5, 2, 1)), {})],
    "choice._nan_to_num": [((real(2, 3),), {"nan": 0.0, "posinf": None, "neginf": None})],
    # ------------------------------------------------------------ activation
    "activation.relu": REAL,
    "activation.relu_backward": [((real(2, 3), real(2, 3)), {})],
    "activation._threshold": [((real(2, 3),), {"threshold": 0.5, "value": -1.0})],
    "activation._leaky_relu": [((real(2, 3),), {"negative_slope": 0.1})],
    "activation._hardtanh": [((real(2, 3),), {"min_val": -1.0, "max_val": 1.1})],
    "activation._elu": [((real(2, 3),), {"alpha": 1.5, "scale": 1.1, "input_scale": 0.7})],
    "activation.sigmoid": UNARY,
    "activation.sigmoid_backward": [((number(2, 3), number(2, 3)), {})],
    "activation._logit": [((unit(2, 3),), {"eps": None}), ((unit(2, 3),), {"eps": 0.3})],
    "activation.silu": UNARY,
    "activation.mish": REAL,
    "activation._gelu": [((real(2, 3),), {"approximate": "none"}), ((real(2, 3),), {"approximate": "tanh"})],
    "activation._softplus": [((real(2, 3),), {"beta": 2.0, "threshold": 3.0})],
    "activation._log_sigmoid": [((real(2, 3),), {})],
    # ------------------------------------------------------------ creation and shape
    "creation._full_like": [((real(2, 3),), {"shape": (2, 3), "fill_value": 2.0, "dtype": OWN}),
                            ((real(2),), {"shape": (4,), "fill_value": 2.0, "dtype": OWN})],
    "creation._zeros_like": UNARY,
    "creation._ones_like": UNARY,
    "shape._permute": [((number(2, 3, 4),), {"dims": (2, 0, 1)}), ((number(),), {"dims": ()})],
    "shape.view_row": [((number(2, 3),), {"shape": (3, 2)}), ((number(1),), {"shape": ()}), ((number(2, 3),), {"shape": (6,)})],
    "shape._expand": [((number(2, 1),), {"shape": (4, 2, 3)}), ((number(),), {"shape": (3,)})],
    "shape._slice": [((number(4, 3),), {"index": (slice(0, 4, 2), 1)}), ((number(4, 3),), {"index": (Ellipsis, None, -1)}),
                     ((number(4, 3),), {"index": (2, 0)}), ((number(4),), {"index": (slice(1, 3),)})],
    "shape.slice_backward": [((number(2),), {"shape": (4, 3), "index": (slice(0, 4, 2), 1)}),
                     ((number(),), {"shape": (4, 3), "index": (2, 0)})],
    "shape._diagonal": [((number(3, 4),), {"offset": 1, "dim1": 0, "dim2": 1}),
                        ((number(2, 3, 3),), {"offset": 0, "dim1": 2, "dim2": 0})],
    "shape.diagonal_backward": [((number(3),), {"shape": (3, 4), "offset": 1, "dim1": 0, "dim2": 1}),
                              ((number(2, 3),), {"shape": (3, 2, 3), "offset": 0, "dim1": 2, "dim2": 0})],
    "shape.detach_row": UNARY,
    "naming.named": [((number(2, 3),), {"name": "a"})],
    "shape.sum_dims": over(number(2, 3, 2)),
    "shape.restore_row": [((number(3),), {"shape": (2, 3, 4), "dims": (0, 2)}), ((number(2, 3),), {"shape": (2, 3, 4), "dims": (2,)})],
    "shape.clone": UNARY,
    "shape.contiguous_row": UNARY,
    "shape.cast": [((number(2, 3),), {"dtype": OWN}), ((real(2, 3),), {"dtype": COMPLEX})],
    "shape.flip_dims": [((number(2, 3),), {"dims": (1,)}), ((number(2, 3),), {"dims": (0, 1)})],
    "rearrange.roll_dims": [((number(2, 3),), {"shifts": (1,), "dims": (1,)}),
                        ((number(2, 3),), {"shifts": (1, -1), "dims": (0, 1)})],
    "shape._tril": [((number(3, 4),), {"diagonal": 0}), ((number(2, 3, 3),), {"diagonal": -1})],
    "shape._triu": [((number(3, 4),), {"diagonal": 0}), ((number(2, 3, 3),), {"diagonal": 1})],
    "joining._cat": [((number(2, 3), number(1, 3)), {"dim": 0}), ((number(2, 1), number(2, 2), number(2, 1)), {"dim": 1})],
    "inplace._copied": [((number(2, 3), number(2, 3)), {}), ((number(2, 3), number(3)), {}), ((number(2, 3), number()), {})],
    "rearrange._repeat": [((number(2, 3),), {"repeats": (2, 1)}), ((number(3),), {"repeats": (2, 2)})],
    "transfer._transfer": [((number(2, 3),), {"source": HERE, "target": THERE})],
    # ------------------------------------------------------------ reductions, norms, order, scans, softmax
    "reduction._mean": over(number(2, 3, 2)),
    "reduction._nansum": over(),
    "reduction._prod": over(number(2, 3, 2), dtype=OWN),
    "reduction._var": over(number(2, 3, 2), correction=1),
    "reduction._std": over(number(2, 3, 2), correction=1),
    "reduction._var_mean": over(number(2, 3, 2), correction=0),
    "reduction._std_mean": over(number(2, 3, 2), correction=0),
    "reduction._all": over(mask(2, 3, 2)),
    "reduction._any": over(mask(2, 3, 2)),
    "reduction.counted": over(mask(2, 3, 2)),
    "norm._vector_norm": [sample for order in (2, 1, 3, inf, -inf, 0, 0.5, 1.5)
                          for sample in over(dtype=OWN, order=order)[:2]],
    "softmax._softmax": along(number(2, 3)),
    "softmax._log_softmax": along(number(2, 3)),
    "softmax._logsumexp": over(),
    **{f"extremes.{name}": over() for name in ("_amax", "_amin", "_max_all", "_min_all", "_median_all", "_aminmax")},
    **{f"extremes.{name}": along(keepdim=False) + along(keepdim=True) for name in ("_max", "_min", "_median")},
    "extremes._kthvalue": along(keepdim=False, k=2) + along(keepdim=True, k=1),
    "extremes._sort": along(descending=False, keepdim=True) + along(descending=True, keepdim=True),
    "extremes._topk": along(k=2, largest=True, keepdim=True) + along(k=1, largest=False, keepdim=True),
    "extremes.the_same": REALS[:2],
    "extremes._cummax": along(),
    "extremes._cummin": along(),
    "extremes._argmax": along(keepdim=False) + along(keepdim=True),
    "extremes._argmin": along(keepdim=False),
    "scan._cumsum": along(number(2, 3), reverse=False) + along(number(2, 3), reverse=True),
    "scan._cumprod": along(number(2, 3)),
    "scan._logcumsumexp": along(),
    "scan.recurrence": along(number(2, 3), number(2, 3), reverse=False) + along(number(2, 3), number(2, 3), reverse=True),
    # ------------------------------------------------------------ indexing
    "indexing._argwhere": [((mask(2, 3),), {})],
    "indexing.fill_at": [((number(2, 3), mask(2, 3), 0.5), {}), ((number(2, 3), mask(3), number()), {})],
    "indexing.index_at": [((number(3, 4), index(3, 2)), {"places": (True,)}),
                          ((number(3, 4), index(4, 2, 2)), {"places": (False, True)}),
                          ((number(3, 4), index(3, 2, 1), index(4, 3)), {"places": (True, True)}),
                          ((number(2, 3, 4), index(2, 2), index(4, 2)), {"places": (True, False, True)})],
    "indexing.put_at": [((number(3, 4), number(2, 4), permutation(3, 2)), {"places": (True,), "accumulate": False}),
                        ((number(3, 4), number(2, 4), index(3, 2)), {"places": (True,), "accumulate": True}),
                        ((number(3, 4), number(2), index(3, 2), permutation(4, 2)),
                         {"places": (True, True), "accumulate": False}),
                        ((number(2, 3, 4), number(3), index(2, 2), index(4, 2)),
                         {"places": (True, False, True), "accumulate": True})],
    "gather.gather_at": along(number(3, 3), index(3, 3, 3)),
    "gather.scatter_add_at": along(number(3, 3), index(3, 3, 3), number(3, 3)),
    "gather.spread_at": [((number(2, 3), index(4, 2, 3)), {"shape": (3, 4), "dim": 1, "distinct": False}),
                         ((number(2, 3), permutation(4, 2, 3)), {"shape": (2, 4), "dim": 1, "distinct": True})],
    "gather.scatter_at": [((number(3, 3), permutation(3, 3, 3), number(3, 3)), {"dim": 1}),
                        ((number(3, 3), permutation(3, 3, 2), 0.5), {"dim": 1})],
    "gather._index_select": along(number(3, 3), index(3, 2)),
    "gather._index_add": [((number(3, 4), index(3, 2), number(2, 4)), {"dim": 0}),
                          ((number(3, 4), index(4, 2), number(3, 2)), {"dim": 1})],
    "gather._index_copy": [((number(3, 4), permutation(3, 2), number(2, 4)), {"dim": 0}),
                           ((number(3, 4), permutation(4, 2), number(3, 2)), {"dim": 1})],
    "gather._index_fill": [((number(3, 4), index(3, 2), 0.5), {"dim": 0}), ((number(3, 4), index(4, 2), number()), {"dim": 1})],
    "picking._take": [((number(3, 4), index(12, 2, 2)), {})],
    "picking._masked_select": [((number(4), half(4)), {})],
    "picking._masked_scatter": [((number(4), mask(4), number(5)), {"dim": 0})],
    "picking._masked_gather": [((number(4), mask(4)), {"dim": 0, "n": 5})],
    "picking._repeated": [((index(3, 3),), {"n": 3})],
    "picking._one_hot": [((index(3, 2, 2),), {"num_classes": 4})],
    # ------------------------------------------------------------ products
    "linalg.mm_rows.plain": [((number(2, 3), number(3, 4)), {}), ((number(2, 1), number(1, 4)), {})],
    "linalg.mm_rows.right": [((number(2, 3), number(4, 3)), {}), ((number(2, 1), number(4, 1)), {})],
    "linalg.mm_rows.left": [((number(3, 2), number(3, 4)), {}), ((number(1, 2), number(1, 4)), {})],
    "linalg.bmm_rows.plain": [((number(2, 2, 3), number(2, 3, 2)), {})],
    "linalg.bmm_rows.right": [((number(2, 2, 3), number(2, 4, 3)), {})],
    "linalg.bmm_rows.left": [((number(2, 3, 2), number(2, 3, 4)), {})],
    "linalg._mv": [((number(2, 3), number(3)), {})],
    "linalg._mv_left": [((number(3, 2), number(3)), {})],
    "linalg._outer": [((number(3), number(2)), {})],
    "linalg._dot": [((number(3), number(3)), {})],
    "linalg._vdot": [((number(3), number(3)), {})],
    "linalg._addmm": [((number(2, 4), number(2, 3), number(3, 4)), {"beta": 1, "alpha": 1}),
                      ((number(4), number(2, 3), number(3, 4)), {"beta": 0.5, "alpha": 2}),
                      ((number(2, 1), number(2, 3), number(3, 4)), {"beta": 1, "alpha": 1})],
    "linalg._baddbmm": [((number(2, 2, 2), number(2, 2, 3), number(2, 3, 2)), {"beta": 1, "alpha": 1}),
                        ((number(2), number(2, 2, 3), number(2, 3, 2)), {"beta": 0.5, "alpha": 2})],
    # ------------------------------------------------------------ networks
    "embedding._lookup": [((number(5, 3), index(5, 2)), {"padding": -1, "period": 5}),
                          ((number(5, 3), index(5, 2, 2)), {"padding": -1, "period": 5})],
    "embedding._spread": [((number(2, 3), index(5, 2)), {"rows": 5, "padding": -1, "period": 5}),
                          ((number(4, 3), index(5, 4)), {"rows": 5, "padding": 1, "period": 5})],
    "embedding._pad": [((number(2, 3),), {"extents": (3, 5), "index": (slice(1, 3), slice(0, 3)), "value": 0.5})],
    "normalization._layer_norm": [((real(2, 3), real(3), real(3)), {"rank": 1, "eps": 1e-5}),
                                  ((real(2, 2, 3), real(2, 3), None), {"rank": 2, "eps": 1e-5}),
                                  ((real(2, 3), None, None), {"rank": 1, "eps": 1e-5})],
    "normalization._group_norm": [((real(2, 4, 3), real(4), real(4)), {"groups": 2, "eps": 1e-5}),
                                  ((real(2, 4), None, real(4)), {"groups": 2, "eps": 1e-5})],
    "normalization._batch_norm": [
        ((real(3, 2, 2), real(2), real(2), None, None), {"training": True, "momentum": 0.1, "eps": 1e-5, "update": False}),
        ((real(3, 2), None, None, None, None), {"training": True, "momentum": 0.1, "eps": 1e-5, "update": False}),
        ((real(3, 2), real(2), real(2), real(2), positive(2)),
         {"training": False, "momentum": 0.1, "eps": 1e-5, "update": False})],
    "loss.square_loss": losses(real(2, 3), real(2, 3), rank=2, width=0.0),
    "loss.smooth_l1": losses(real(2, 3), real(2, 3), rank=2, width=1.0),
    "loss.huber": losses(real(2, 3), real(2, 3), rank=2, width=1.5),
    "loss.probable_loss": losses(unit(2, 3), unit(2, 3), None, rank=2) + losses(unit(2, 3), unit(2, 3), real(3), rank=2),
    "loss.logit_loss": losses(real(2, 3), unit(2, 3), None, None, rank=2)
    + losses(real(2, 3), unit(2, 3), real(3), positive(3), rank=2),
    "loss.class_loss": losses(real(3, 4), index(4, 3), None, rank=1, ignore_index=-100)
    + losses(real(3, 4), index(4, 3), positive(4), rank=1, ignore_index=2)
    + losses(real(4), index(4), None, rank=0, ignore_index=-100)[:1],
    "loss.class_loss_2d": losses(real(2, 3, 2, 2), index(3, 2, 2, 2), positive(3), rank=3, ignore_index=-100),
    "loss._nll_backward": [((real(3), index(4, 3), positive(4), between(3.0, 3.0)),
                            {"reduction": "none", "ignore_index": -100, "rank": 1, "extents": (3, 4)}),
                           ((real(), index(4, 3), None, between(3.0, 3.0)),
                            {"reduction": "mean", "ignore_index": -100, "rank": 1, "extents": (3, 4)})],
    "attention.attention": [
        ((real(2, 3, 4), real(2, 5, 4), real(2, 5, 4), None), {"is_causal": False, "scale": 0.5}),
        ((real(2, 3, 4), real(2, 3, 4), real(2, 3, 2), None), {"is_causal": True, "scale": 0.5}),
        ((real(2, 3, 4), real(2, 5, 4), real(2, 5, 4), real(3, 5)), {"is_causal": False, "scale": 0.5})],
    "attention.safe_softmax": along(),
    # ------------------------------------------------------------ factors of matrices
    "factors.factor": [((number(3, 3),), {}), ((real(4, 2),), {}), ((real(2, 4),), {})],
    "factors.constant_factor": [((number(3, 3),), {})],
    "factors.lu_row": [((number(3, 3),), {}), ((real(4, 2),), {}), ((real(2, 4),), {})],
    "factors.order_matrix": [((pivots(3), real(3, 3)), {"m": 3})],
    "factors.add_eye": [((number(3, 3),), {})],
    "factors.solve_triangle": [((definite(3), number(3, 2)), {"upper": False, "left": True, "unit": False}),
                               ((definite(3), number(2, 3)), {"upper": True, "left": False, "unit": True})],
    "factors._solved": [((definite(3), definite(3), pivots(3), number(3, 2)), {"adjoint": False, "vector": False}),
                        ((definite(3), definite(3), pivots(3), number(3)), {"adjoint": True, "vector": True})],
    "factors.inverse": [((definite(3),), {})],
    "factors.lu_solve_row": [((definite(3), pivots(3), number(3, 2)), {"left": True, "adjoint": False}),
                             ((definite(3), pivots(3), number(2, 3)), {"left": False, "adjoint": True})],
    "definite.cholesky_row": [((definite(3),), {"upper": False}), ((definite(3, "real"),), {"upper": True})],
    "definite.cholesky_solve_row": [((number(3, 2), definite(3)), {"upper": False}),
                                   ((number(3, 2), definite(3)), {"upper": True})],
    "definite.cholesky_inverse_row": [((definite(3),), {"upper": False}), ((definite(3),), {"upper": True})],
    "determinants._regular": [((number(3, 3),), {})],
    "determinants._det_of": [((definite(3), pivots(3)), {})],
    "determinants._det": [((definite(3), definite(3), pivots(3)), {})],
    "determinants._slogdet": [((definite(3), definite(3), pivots(3)), {})],
    "spectra._qr": [((real(3, 3),), {"mode": "reduced"}), ((real(4, 2),), {"mode": "reduced"}),
                    ((real(2, 4),), {"mode": "complete"})],
    "spectra._eigh": [((definite(3, "real"),), {"uplo": "L"}), ((definite(3, "real"),), {"uplo": "U"})],
    "distances._cdist": [((real(3, 2), real(4, 2)), {"order": order}) for order in (2.0, 1.0, 3.0, 0.5, inf)]
    + [((real(2, 3, 2), real(4, 2)), {"order": 2.0})],
    "eigen._eig": [((definite(3, "real"),), {"is_real": True})],
    "reflections._geqrf": [((number(3, 3),), {}), ((real(4, 2),), {})],
    "spectra._svd": [((real(3, 3),), {"full": False}), ((real(4, 2),), {"full": False}), ((real(2, 4),), {"full": False})],
    "spectra._pinv": [((number(3, 2), 0.0, 1e-12), {"hermitian": False}), ((definite(3), 0.0, 1e-12), {"hermitian": True})],
    "spectra._matrix_exp": [((number(3, 3),), {})],
    "spectra._size": [((number(3, 3),), {})],
    # ------------------------------------------------------------ convolutions and windows
    "convolution._conv": [
        ((number(2, 2, 5), number(4, 1, 3)), {"stride": (2,), "padding": (1,), "dilation": (1,), "groups": 2, "extents": (3,)}),
        ((real(1, 2, 4, 5), real(2, 2, 2, 3)),
         {"stride": (1, 2), "padding": (0, 1), "dilation": (2, 1), "groups": 1, "extents": (2, 3)})],
    "convolution._conv_input": [
        ((number(2, 4, 3), number(4, 1, 3)), {"stride": (2,), "padding": (1,), "dilation": (1,), "groups": 2, "extents": (6,)})],
    "convolution._conv_weight": [
        ((number(2, 2, 5), number(2, 4, 3)), {"stride": (2,), "padding": (1,), "dilation": (1,), "groups": 2, "extents": (3,)})],
    "convolution._im2col": [((real(2, 4, 5),), {"size": (2, 3), "stride": (2, 1), "padding": (0, 1), "dilation": (1, 1)})],
    "convolution._col2im": [((real(2, 2, 3, 2, 5),), {"extents": (4, 5), "stride": (2, 1), "padding": (0, 1),
                                                      "dilation": (1, 1)})],
    "resampling.resample": [((real(2, 3, 4),), {"taps": (linear(3, 5, 0.6, False), cells(4, 3))})],
    "resampling.pool": [((real(2, 3, 4),), {"taps": (cells(3, 2), nearest(4, 2, 2.0, False))})],
    "pooling._largest": [((real(2, 3, 4),), {"places": (((0, 1), (1, 2)), ((0, 1, 1), (2, 3, 3)))})],
    # ------------------------------------------------------------ Fourier transforms
    "fourier._c2c": [((cplx(3, 4),), {"dims": (1,), "norm": "none", "forward": True}),
                     ((cplx(2, 3, 4),), {"dims": (0, 2), "norm": "root", "forward": False}),
                     ((cplx(3, 4),), {"dims": (1, 0), "norm": "all", "forward": True})],
    "fourier._r2c": [((real(3, 4),), {"dims": (1,), "norm": "none", "onesided": True}),
                     ((real(3, 5),), {"dims": (0, 1), "norm": "root", "onesided": True}),
                     ((real(3, 5),), {"dims": (0,), "norm": "all", "onesided": False})],
    "fourier._c2r": [((cplx(3, 3),), {"dims": (1,), "norm": "none", "n": 4}),
                     ((cplx(3, 3),), {"dims": (0, 1), "norm": "root", "n": 5}),
                     ((cplx(2, 3),), {"dims": (0,), "norm": "all", "n": 2})],
    # ------------------------------------------------------------ random numbers: probabilities that meet their draw
    "random._bernoulli": [((unit(2, 3), unit(2, 3)), {})],
    "random._multinomial": [((unit(2, 4), unit(2, 3)), {"num_samples": 3, "replacement": True}),
                            ((unit(2, 4), unit(2, 4)), {"num_samples": 2, "replacement": False})],
}

REFUSES_DERIVATIVE = {"pointwise.floor_divide": "derivative for aten::floor_divide is not implemented",
                      "reflections._geqrf": "derivative for 'geqrf' is not implemented"}
"""As torch: the op runs, and its backward is an error."""

PASSIVE = {"normalization._batch_norm": (3, 4)}
"""Floating inputs of rows with one rule for all, that this rule refuses to differentiate."""

HERMITIAN = {"definite.cholesky_row", "spectra._eigh", "spectra._pinv"}
"""Rows that read one triangle of a Hermitian matrix, and are differentiated as functions of such matrices."""

FACTORS = {"factors._solved", "determinants._det", "determinants._slogdet"}
"""Rows whose second and third inputs are the LU factors of the first, and constants to derivatives."""

CONSTANT = {"factors._solved": (1,), "determinants._det": (1,), "determinants._slogdet": (1,), "loss._nll_backward": (3,)}
"""Inputs that are outputs of another row without a derivative: the total weight does not depend on what is differentiated."""

DYNAMIC = {"indexing._argwhere": (0,), "picking._masked_select": (1,), "picking._repeated": (0,)}
"""Inputs whose batch is refused: each sample would have a shape of its own."""

NO_INPUTS = {"random._uniform", "random._normal", "random._exponential", "random._integers", "random._permutation", "random._coins",
             "creation._constant", "creation._full", "creation._arange", "creation._linspace", "creation._logspace",
             "creation._eye"}
"""Rows without a tensor argument: nothing to differentiate or to batch."""
