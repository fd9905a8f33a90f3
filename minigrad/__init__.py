"""minigrad: an autograd engine and transforms in which checkpoint and save_on_cpu compose with everything.

The public names, under torch's; nothing else.  Start reading at docs/reading.md.
"""

import gc

_collecting = gc.isenabled()
gc.disable()  # a collection here would cost a third of the import, and nothing that is imported is garbage

from math import e as e, inf as inf, nan as nan, pi as pi

from . import methods as methods
from .ops.creation import (
    arange as arange, as_tensor as as_tensor, empty as empty, empty_like as empty_like, eye as eye, from_dlpack as from_dlpack,
    from_numpy as from_numpy, full as full, full_like as full_like, linspace as linspace, logspace as logspace,
    ones as ones, ones_like as ones_like, scalar_tensor as scalar_tensor, tensor as tensor, zeros as zeros,
    zeros_like as zeros_like,
)
from .ops.activation import logit as logit, relu as relu, sigmoid as sigmoid, threshold as threshold
from .ops.choice import (
    bitwise_and as bitwise_and, bitwise_left_shift as bitwise_left_shift, bitwise_right_shift as bitwise_right_shift,
    bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    clamp as clamp, clamp_max as clamp_max, clamp_min as clamp_min, clip as clip, eq as eq, ge as ge, gt as gt,
    isfinite as isfinite, isinf as isinf, isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal,
    le as le, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor,
    lt as lt, maximum as maximum, minimum as minimum, nan_to_num as nan_to_num, ne as ne, result_type as result_type,
    signbit as signbit, where as where,
)
from .ops.pointwise import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add, addcdiv as addcdiv, addcmul as addcmul,
    asin as asin, asinh as asinh, atan as atan, atanh as atanh, ceil as ceil, conj as conj, cos as cos,
    cosh as cosh, div as div, divide as divide, erf as erf, erfc as erfc, exp as exp, exp2 as exp2, expm1 as expm1,
    floor as floor, floor_divide as floor_divide, fmod as fmod, frac as frac, imag as imag, lerp as lerp, log as log,
    log10 as log10, log1p as log1p, log2 as log2, mul as mul, multiply as multiply, neg as neg,
    negative as negative, pow as pow, real as real, reciprocal as reciprocal, remainder as remainder, round as round,
    rsqrt as rsqrt, sgn as sgn, sign as sign, sin as sin, sinh as sinh, sqrt as sqrt, square as square, sub as sub,
    subtract as subtract, tan as tan, tanh as tanh, true_divide as true_divide, trunc as trunc,
)
from .ops.extremes import (
    amax as amax, amin as amin, aminmax as aminmax, argmax as argmax, argmin as argmin, argsort as argsort, cummax as cummax,
    cummin as cummin, kthvalue as kthvalue, max as max, median as median, min as min, sort as sort, topk as topk,
)
from .ops.gather import (
    gather as gather, index_add as index_add, index_copy as index_copy, index_fill as index_fill,
    index_select as index_select, scatter as scatter, scatter_add as scatter_add, take_along_dim as take_along_dim,
)
from .ops.indexing import (
    argwhere as argwhere, masked_fill as masked_fill, nonzero as nonzero, tril_indices as tril_indices,
    triu_indices as triu_indices,
)
from .ops.norm import norm as norm
from .ops.complexes import (
    angle as angle, complex as complex, conj_physical as conj_physical, is_conj as is_conj, is_neg as is_neg, polar as polar,
    resolve_conj as resolve_conj, resolve_neg as resolve_neg, view_as_complex as view_as_complex, view_as_real as view_as_real,
)
from .ops.differences import (
    corrcoef as corrcoef, cov as cov, cumulative_trapezoid as cumulative_trapezoid, diff as diff, gradient as gradient,
    trapezoid as trapezoid, trapz as trapz,
)
from .ops.distributions import (
    digamma as digamma, erfinv as erfinv, i0 as i0, lgamma as lgamma, mvlgamma as mvlgamma, polygamma as polygamma,
    sinc as sinc,
)
from .ops.forms import (
    alias_copy as alias_copy, diagonal_copy as diagonal_copy, diagonal_scatter as diagonal_scatter, dsplit as dsplit,
    expand_copy as expand_copy, hsplit as hsplit, narrow_copy as narrow_copy, permute_copy as permute_copy,
    select_scatter as select_scatter, slice_scatter as slice_scatter, split_with_sizes_copy as split_with_sizes_copy,
    squeeze_copy as squeeze_copy, t_copy as t_copy, transpose_copy as transpose_copy, unbind_copy as unbind_copy,
    unfold_copy as unfold_copy, unsqueeze_copy as unsqueeze_copy, view_copy as view_copy, vsplit as vsplit,
)
from .ops.joining import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, cat as cat, chunk as chunk,
    column_stack as column_stack, concat as concat, concatenate as concatenate, dstack as dstack, hstack as hstack,
    narrow as narrow, select as select, split as split, split_with_sizes as split_with_sizes, stack as stack,
    tensor_split as tensor_split, unbind as unbind, unsafe_chunk as unsafe_chunk, unsafe_split as unsafe_split,
    vstack as vstack,
)
from .ops.pairs import (
    atan2 as atan2, copysign as copysign, deg2rad as deg2rad, float_power as float_power, fmax as fmax, fmin as fmin,
    frexp as frexp,
    gcd as gcd, heaviside as heaviside, hypot as hypot, lcm as lcm, ldexp as ldexp, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, nextafter as nextafter, positive as positive, rad2deg as rad2deg, rsub as rsub,
)
from .ops.picking import (
    masked_scatter as masked_scatter, masked_select as masked_select, repeat_interleave as repeat_interleave, take as take,
    unravel_index as unravel_index,
)
from .ops.embedding import constant_pad_nd as constant_pad_nd
from .ops.pixels import channel_shuffle as channel_shuffle, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from .ops.pieces import celu as celu, hardshrink as hardshrink, prelu as prelu
from .ops.products import (
    addbmm as addbmm, addmv as addmv, addr as addr, block_diag as block_diag, cartesian_prod as cartesian_prod,
    combinations as combinations, cross_of_first as cross, dist as dist, inner as inner, pairwise_distance as pairwise_distance,
    renorm as renorm,
)
from .ops.ranks import (
    fill as fill, mode as mode, msort as msort, nanmedian as nanmedian, nanquantile as nanquantile, put as put,
    quantile as quantile,
)
from .ops.rearrange import (
    broadcast_tensors as broadcast_tensors, broadcast_to as broadcast_to, diag as diag, diag_embed as diag_embed,
    diagflat as diagflat, fliplr as fliplr, flipud as flipud, meshgrid as meshgrid, rot90 as rot90, tile as tile,
    trace as trace, unflatten as unflatten,
)
from .ops.reduction import (
    all as all, allclose as allclose, any as any, count_nonzero as count_nonzero, equal as equal, isclose as isclose,
    mean as mean, nanmean as nanmean, nansum as nansum, prod as prod, std as std, std_mean as std_mean, sum as sum,
    var as var, var_mean as var_mean,
)
from .ops.scan import cumprod as cumprod, cumsum as cumsum, logcumsumexp as logcumsumexp
from .ops.shape import (
    detach as detach, diagonal as diagonal, flatten as flatten, flip as flip, moveaxis as moveaxis,
    movedim as movedim, permute as permute, ravel as ravel, reshape as reshape, roll as roll, squeeze as squeeze,
    swapaxes as swapaxes, swapdims as swapdims, t as t, transpose as transpose, tril as tril, triu as triu,
    unsqueeze as unsqueeze,
)
from .ops.softmax import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax
from .ops.subscript import index_put as index_put
from . import autograd as autograd, func as func
from .autograd import (
    enable_grad as enable_grad, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
    shallow_detach as shallow_detach,
)
from .backend import Device as device
from .dtypes import (
    bool_ as bool, complex64 as cfloat, complex64 as complex64, complex128 as cdouble, complex128 as complex128,
    dtype as dtype, float16 as float16, float16 as half, float32 as float, float32 as float32, float64 as double,
    float64 as float64, int8 as int8, int16 as int16, int16 as short, int32 as int, int32 as int32, int64 as int64,
    int64 as long, promote_types as promote_types, uint8 as uint8,
)
from .ops.inplace import fill_ as fill_, zero_ as zero_
from .ops.loss import xlogy as xlogy
from .ops.layout import (
    channels_last as channels_last, channels_last_3d as channels_last_3d, clone as clone,
    contiguous_format as contiguous_format, memory_format as memory_format, preserve_format as preserve_format,
)
from .modes import publish as _publish, published as _published
from .ops.misc import (
    finfo as finfo, iinfo as iinfo, is_complex as is_complex, is_floating_point as is_floating_point, is_nonzero as is_nonzero,
    is_tensor as is_tensor, layout as layout, numel as numel, strided as strided,
)
from .state import (
    get_default_device as get_default_device, get_default_dtype as get_default_dtype,
    set_default_device as set_default_device, set_default_dtype as set_default_dtype,
)
from .tensor import Tensor as Tensor
from . import random as random
from .random import (
    Generator as Generator, default_generator as default_generator, get_rng_state as get_rng_state,
    initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state,
)
from .ops.linalg import (
    addmm as addmm, adjoint as adjoint, baddbmm as baddbmm, bmm as bmm, broadcast_shapes as broadcast_shapes, dot as dot,
    einsum as einsum, kron as kron, matmul as matmul, mm as mm, mv as mv, outer as outer, tensordot as tensordot, vdot as vdot,
)
from .ops.random import (
    bernoulli as bernoulli, multinomial as multinomial, normal as normal, rand as rand, rand_like as rand_like,
    randint as randint, randint_like as randint_like, randn as randn, randn_like as randn_like, randperm as randperm,
)

_publish(globals())

if _collecting:
    gc.enable()

Size: type = tuple
__version__ = "0.1.0"


_LATE = {
    "det": ".linalg", "slogdet": ".linalg", "matrix_exp": ".linalg", "matrix_power": ".linalg",
    "logdet": ".ops.determinants", "cholesky": ".ops.formerly", "inverse": ".ops.formerly", "lu": ".ops.formerly",
    "lu_solve": ".ops.formerly", "pinverse": ".ops.formerly", "qr": ".ops.formerly", "svd": ".ops.formerly",
    "triangular_solve": ".ops.formerly", "geqrf": ".ops.reflections", "ormqr": ".ops.reflections", "orgqr": ".ops.reflections",
    "cdist": ".ops.distances", "pdist": ".ops.distances", "bilinear": ".ops.products", "grid_sampler": ".ops.grid",
    "grid_sampler_2d": ".ops.grid", "grid_sampler_3d": ".ops.grid",
    "native_layer_norm": ".ops.normalization", "native_group_norm": ".ops.normalization",
    "native_batch_norm": ".ops.normalization", "svd_lowrank": ".ops.lowrank", "pca_lowrank": ".ops.lowrank",
    "cholesky_solve": ".ops.solving", "cholesky_inverse": ".ops.solving", "lu_unpack": ".ops.solving",
    "is_anomaly_enabled": ".autograd.anomaly_mode", "is_anomaly_check_nan_enabled": ".autograd.anomaly_mode",
    "inference_mode": ".autograd.inference_mode", "is_inference_mode_enabled": ".autograd.inference_mode",
    "is_inference": ".autograd.inference_mode",
    "stft": ".ops.frames", "istft": ".ops.frames",
    "bincount": ".ops.bins", "bucketize": ".ops.bins", "histc": ".ops.bins", "isin": ".ops.bins", "searchsorted": ".ops.bins",
    "nonzero_static": ".ops.bins", "unique": ".ops.bins", "unique_consecutive": ".ops.bins",
    "scatter_reduce": ".ops.segments", "index_reduce": ".ops.segments",
    "as_strided": ".ops.strides", "as_strided_copy": ".ops.strides", "as_strided_scatter": ".ops.strides",
    "resize_as_": ".ops.strides", "empty_strided": ".ops.strides", "empty_permuted": ".ops.strides",
    "selu": ".nn.functional", "selu_": ".nn.functional",
    "celu_": ".nn.functional", "threshold_": ".nn.functional", "save": ".serialization", "load": ".serialization",
    "autocast": ".amp.autocast_mode", "is_autocast_enabled": ".amp.autocast_mode", "get_autocast_dtype": ".amp.autocast_mode",
}
_METHODS = frozenset((
    "abs_", "acos_", "acosh_", "addmv_", "as_strided_", "asin_", "asinh_", "atan_", "atanh_", "ceil_", "clamp_", "clamp_max_",
    "clamp_min_", "clip_", "conj_physical_", "cos_", "cosh_", "deg2rad_", "detach_", "erf_", "erfc_", "exp2_", "exp_", "expm1_",
    "floor_", "frac_", "gcd_", "i0_", "index_put_", "lcm_", "ldexp_", "log10_", "log1p_", "log2_", "log_", "logit_",
    "nan_to_num_", "neg_", "rad2deg_", "reciprocal_", "relu_", "round_", "rsqrt_", "sigmoid_", "sin_", "sinc_", "sinh_",
    "sqrt_", "square_", "tan_", "tanh_", "trunc_", "xlogy_",
))
"""Methods that torch has as functions too."""


def __getattr__(name: str) -> object:
    """Import a package when a program first asks for it."""
    if name == "bfloat16":
        msg = "minigrad has no bfloat16, because numpy, which holds its arrays, has none: use float16 or float32."
        raise AttributeError(msg)
    if name in _LATE:
        from importlib import import_module  # noqa: PLC0415  only then

        found = getattr(import_module(_LATE[name], __name__), name)
        return _published(found) if _LATE[name].startswith(".ops") else found
    if name in _METHODS:
        return getattr(Tensor, name)
    if name in ("_C", "_functorch", "_vmap_internals", "amp", "cuda", "fft", "fx", "linalg", "masked", "memory", "nn",
                "overrides", "sim", "special", "testing", "tracing", "utils"):
        from importlib import import_module  # noqa: PLC0415  only then

        return import_module(f".{name}", __name__)
    msg = f"module 'minigrad' has no attribute {name!r}"
    raise AttributeError(msg)
