# The public names, each from the file where it lives.  Static tools read this file, and so does minigrad: a name is imported
# when a program first asks for it (names.py).

# ---------------------------------------------------------------- functions that are methods of Tensor, too
from .autograd.inference_mode import is_inference as is_inference
from .ops.activation import logit as logit, relu as relu, sigmoid as sigmoid
from .ops.bins import (
    bincount as bincount, histc as histc, nonzero_static as nonzero_static, unique as unique,
    unique_consecutive as unique_consecutive,
)
from .ops.choice import (
    bitwise_and as bitwise_and, bitwise_left_shift as bitwise_left_shift, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
    bitwise_right_shift as bitwise_right_shift, bitwise_xor as bitwise_xor, clamp as clamp, clamp_max as clamp_max,
    clamp_min as clamp_min, clip as clip, eq as eq, ge as ge, gt as gt, isfinite as isfinite, isinf as isinf, isnan as isnan,
    isneginf as isneginf, isposinf as isposinf, isreal as isreal, le as le, logical_and as logical_and,
    logical_not as logical_not, logical_or as logical_or, logical_xor as logical_xor, lt as lt, maximum as maximum,
    minimum as minimum, nan_to_num as nan_to_num, ne as ne, signbit as signbit,
)
from .ops.complexes import (
    angle as angle, conj_physical as conj_physical, is_conj as is_conj, is_neg as is_neg, resolve_conj as resolve_conj,
    resolve_neg as resolve_neg,
)
from .ops.determinants import det as det, logdet as logdet, slogdet as slogdet
from .ops.differences import corrcoef as corrcoef, cov as cov, diff as diff
from .ops.distributions import (
    digamma as digamma, erfinv as erfinv, i0 as i0, lgamma as lgamma, mvlgamma as mvlgamma, sinc as sinc,
)
from .ops.extremes import (
    amax as amax, amin as amin, aminmax as aminmax, argmax as argmax, argmin as argmin, argsort as argsort, cummax as cummax,
    cummin as cummin, kthvalue as kthvalue, max as max, median as median, min as min, sort as sort, topk as topk,
)
from .ops.formerly import (
    cholesky as cholesky, inverse as inverse, lu as lu, lu_solve as lu_solve, pinverse as pinverse, qr as qr, svd as svd,
    triangular_solve as triangular_solve,
)
from .ops.forms import (
    diagonal_scatter as diagonal_scatter, dsplit as dsplit, hsplit as hsplit, narrow_copy as narrow_copy,
    select_scatter as select_scatter, slice_scatter as slice_scatter, vsplit as vsplit,
)
from .ops.frames import istft as istft, stft as stft
from .ops.gather import (
    gather as gather, index_add as index_add, index_copy as index_copy, index_fill as index_fill, index_select as index_select,
    scatter as scatter, scatter_add as scatter_add, take_along_dim as take_along_dim,
)
from .ops.indexing import argwhere as argwhere, masked_fill as masked_fill, nonzero as nonzero
from .ops.inplace import detach_ as detach_, fill_ as fill_, zero_ as zero_
from .ops.joining import (
    chunk as chunk, narrow as narrow, select as select, split as split, split_with_sizes as split_with_sizes,
    tensor_split as tensor_split, unbind as unbind, unsafe_chunk as unsafe_chunk, unsafe_split as unsafe_split,
)
from .ops.layout import clone as clone
from .ops.linalg import (
    addmm as addmm, adjoint as adjoint, baddbmm as baddbmm, bmm as bmm, dot as dot, kron as kron, matmul as matmul, mm as mm,
    mv as mv, outer as outer, vdot as vdot,
)
from .ops.misc import (
    is_complex as is_complex, is_floating_point as is_floating_point, is_nonzero as is_nonzero, is_signed as is_signed,
)
from .ops.norm import norm as norm
from .ops.pairs import (
    atan2 as atan2, copysign as copysign, deg2rad as deg2rad, float_power as float_power, fmax as fmax, fmin as fmin,
    frexp as frexp, gcd as gcd, heaviside as heaviside, hypot as hypot, lcm as lcm, ldexp as ldexp, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, nextafter as nextafter, positive as positive, rad2deg as rad2deg,
    xlogy as xlogy,
)
from .ops.picking import (
    masked_scatter as masked_scatter, masked_select as masked_select, put as put, repeat_interleave as repeat_interleave,
    take as take,
)
from .ops.pointwise import (
    abs as abs, absolute as absolute, acos as acos, acosh as acosh, add as add,
    asin as asin, asinh as asinh, atan as atan, atanh as atanh, ceil as ceil, conj as conj, cos as cos, cosh as cosh,
    div as div, divide as divide, erf as erf, erfc as erfc, exp as exp, exp2 as exp2, expm1 as expm1, floor as floor,
    floor_divide as floor_divide, fmod as fmod, frac as frac, log as log, log10 as log10, log1p as log1p,
    log2 as log2, mul as mul, multiply as multiply, neg as neg, negative as negative, pow as pow,
    reciprocal as reciprocal, remainder as remainder, round as round, rsqrt as rsqrt, sgn as sgn, sign as sign, sin as sin,
    sinh as sinh, sqrt as sqrt, square as square, sub as sub, subtract as subtract, tan as tan, tanh as tanh,
    true_divide as true_divide, trunc as trunc,
)
from .ops.products import (
    addbmm as addbmm, addmv as addmv, addr as addr, cross as cross, dist as dist, inner as inner, renorm as renorm,
)
from .ops.random import bernoulli as bernoulli, multinomial as multinomial
from .ops.ranks import (
    mode as mode, msort as msort, nanmedian as nanmedian, nanquantile as nanquantile, quantile as quantile,
)
from .ops.rearrange import (
    broadcast_to as broadcast_to, diag as diag, diag_embed as diag_embed, diagflat as diagflat, fliplr as fliplr,
    flipud as flipud, ravel as ravel, roll as roll, rot90 as rot90, tile as tile, trace as trace, unflatten as unflatten,
)
from .ops.reduction import (
    all as all, allclose as allclose, any as any, count_nonzero as count_nonzero, equal as equal, isclose as isclose,
    mean as mean, nanmean as nanmean, nansum as nansum, prod as prod, std as std, sum as sum, var as var,
)
from .ops.reflections import geqrf as geqrf, orgqr as orgqr, ormqr as ormqr
from .ops.scan import cumprod as cumprod, cumsum as cumsum, logcumsumexp as logcumsumexp
from .ops.segments import index_reduce as index_reduce, scatter_reduce as scatter_reduce
from .ops.shape import (
    detach as detach, diagonal as diagonal, flatten as flatten, flip as flip, moveaxis as moveaxis, movedim as movedim,
    permute as permute, reshape as reshape, squeeze as squeeze, swapaxes as swapaxes,
    swapdims as swapdims, t as t, transpose as transpose, tril as tril, triu as triu, unsqueeze as unsqueeze,
)
from .ops.softmax import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax
from .ops.solving import cholesky_inverse as cholesky_inverse, cholesky_solve as cholesky_solve, matrix_power as matrix_power
from .ops.spectra import matrix_exp as matrix_exp
from .ops.strides import (
    as_strided as as_strided, as_strided_ as as_strided_, as_strided_scatter as as_strided_scatter, resize_as_ as resize_as_,
)
from .ops.subscript import index_put as index_put, index_put_ as index_put_
from .ops.triples import addcdiv as addcdiv, addcmul as addcmul, lerp as lerp
from .methods import (
    abs_ as abs_, acos_ as acos_, acosh_ as acosh_, addmv_ as addmv_, asin_ as asin_, asinh_ as asinh_, atan_ as atan_,
    atanh_ as atanh_, ceil_ as ceil_, clamp_ as clamp_, clamp_max_ as clamp_max_, clamp_min_ as clamp_min_, clip_ as clip_,
    conj_physical_ as conj_physical_, cos_ as cos_, cosh_ as cosh_, deg2rad_ as deg2rad_, erf_ as erf_, erfc_ as erfc_,
    exp2_ as exp2_, exp_ as exp_, expm1_ as expm1_, floor_ as floor_, frac_ as frac_, gcd_ as gcd_, i0_ as i0_, lcm_ as lcm_,
    ldexp_ as ldexp_, log10_ as log10_, log1p_ as log1p_, log2_ as log2_, log_ as log_, logit_ as logit_,
    nan_to_num_ as nan_to_num_, neg_ as neg_, negative_ as negative_, rad2deg_ as rad2deg_, reciprocal_ as reciprocal_,
    relu_ as relu_, round_ as round_, rsqrt_ as rsqrt_, sigmoid_ as sigmoid_, sin_ as sin_, sinc_ as sinc_, sinh_ as sinh_,
    sqrt_ as sqrt_, square_ as square_, tan_ as tan_, tanh_ as tanh_, trunc_ as trunc_, xlogy_ as xlogy_,
)

# ---------------------------------------------------------------- functions alone
from .nn.functional import celu_ as celu_, selu as selu, selu_ as selu_, threshold_ as threshold_
from .ops.activation import threshold as threshold
from .ops.bins import bucketize as bucketize, isin as isin, searchsorted as searchsorted
from .ops.choice import result_type as result_type, where as where
from .ops.complexes import complex as complex, polar as polar, view_as_complex as view_as_complex, view_as_real as view_as_real
from .ops.creation import (
    arange as arange, as_tensor as as_tensor, empty as empty, empty_like as empty_like, eye as eye, from_dlpack as from_dlpack,
    from_numpy as from_numpy, full as full, full_like as full_like, linspace as linspace, logspace as logspace, ones as ones,
    ones_like as ones_like, scalar_tensor as scalar_tensor, tensor as tensor, zeros as zeros, zeros_like as zeros_like,
)
from .ops.differences import (
    cumulative_trapezoid as cumulative_trapezoid, gradient as gradient, trapezoid as trapezoid, trapz as trapz,
)
from .ops.distances import cdist as cdist, pdist as pdist
from .ops.distributions import polygamma as polygamma
from .ops.embedding import constant_pad_nd as constant_pad_nd
from .ops.forms import (
    alias_copy as alias_copy, diagonal_copy as diagonal_copy, expand_copy as expand_copy, permute_copy as permute_copy,
    split_with_sizes_copy as split_with_sizes_copy, squeeze_copy as squeeze_copy, t_copy as t_copy,
    transpose_copy as transpose_copy, unbind_copy as unbind_copy, unfold_copy as unfold_copy, unsqueeze_copy as unsqueeze_copy,
    view_copy as view_copy,
)
from .ops.grid import grid_sampler as grid_sampler, grid_sampler_2d as grid_sampler_2d, grid_sampler_3d as grid_sampler_3d
from .ops.indexing import tril_indices as tril_indices, triu_indices as triu_indices
from .ops.joining import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, cat as cat, column_stack as column_stack,
    concat as concat, concatenate as concatenate, dstack as dstack, hstack as hstack, stack as stack, vstack as vstack,
)
from .ops.linalg import broadcast_shapes as broadcast_shapes, einsum as einsum, tensordot as tensordot
from .ops.lowrank import pca_lowrank as pca_lowrank, svd_lowrank as svd_lowrank
from .ops.misc import is_tensor as is_tensor, numel as numel
from .ops.normalization import (
    native_batch_norm as native_batch_norm, native_group_norm as native_group_norm, native_layer_norm as native_layer_norm,
)
from .ops.pairs import rsub as rsub
from .ops.picking import unravel_index as unravel_index
from .ops.pieces import celu as celu, hardshrink as hardshrink, prelu as prelu
from .ops.pixels import channel_shuffle as channel_shuffle, pixel_shuffle as pixel_shuffle, pixel_unshuffle as pixel_unshuffle
from .ops.pointwise import imag as imag, real as real
from .ops.products import (
    bilinear as bilinear, block_diag as block_diag, cartesian_prod as cartesian_prod, combinations as combinations,
    pairwise_distance as pairwise_distance,
)
from .ops.random import (
    normal as normal, rand as rand, rand_like as rand_like, randint as randint, randint_like as randint_like, randn as randn,
    randn_like as randn_like, randperm as randperm,
)
from .ops.rearrange import broadcast_tensors as broadcast_tensors, fill as fill, meshgrid as meshgrid
from .ops.reduction import std_mean as std_mean, var_mean as var_mean
from .ops.solving import lu_unpack as lu_unpack
from .ops.strides import as_strided_copy as as_strided_copy, empty_permuted as empty_permuted, empty_strided as empty_strided

# ---------------------------------------------------------------- types, numbers, state and modes
from .amp.autocast_mode import (
    autocast as autocast, get_autocast_dtype as get_autocast_dtype, is_autocast_enabled as is_autocast_enabled,
)
from .autograd import shallow_detach as shallow_detach
from .autograd.anomaly_mode import (
    is_anomaly_check_nan_enabled as is_anomaly_check_nan_enabled, is_anomaly_enabled as is_anomaly_enabled,
)
from .autograd.grad_mode import (
    enable_grad as enable_grad, is_grad_enabled as is_grad_enabled, no_grad as no_grad, set_grad_enabled as set_grad_enabled,
)
from .autograd.inference_mode import inference_mode as inference_mode, is_inference_mode_enabled as is_inference_mode_enabled
from .dtypes import (
    complex64 as complex64, complex128 as complex128, dtype as dtype, float16 as float16, float32 as float32,
    float64 as float64, int8 as int8, int16 as int16, int32 as int32, int64 as int64, promote_types as promote_types,
    uint8 as uint8,
)
from .ops.layout import (
    channels_last as channels_last, channels_last_3d as channels_last_3d, contiguous_format as contiguous_format,
    memory_format as memory_format, preserve_format as preserve_format,
)
from .ops.misc import Size as Size, finfo as finfo, iinfo as iinfo, layout as layout, strided as strided
from .random import (
    Generator as Generator, default_generator as default_generator, get_rng_state as get_rng_state,
    initial_seed as initial_seed, manual_seed as manual_seed, seed as seed, set_rng_state as set_rng_state,
)
from .serialization import load as load, save as save
from .state import (
    get_default_device as get_default_device, get_default_dtype as get_default_dtype, set_default_device as set_default_device,
    set_default_dtype as set_default_dtype,
)
from math import e as e, inf as inf, nan as nan, pi as pi
from .tensor import Tensor as Tensor

from .backend import Device as _Device
from .dtypes import bool_ as _bool

bool = _bool
cdouble = complex128
cfloat = complex64
device = _Device
double = float64
float = float32
half = float16
int = int32
long = int64
short = int16

# ---------------------------------------------------------------- packages
from . import (
    _C as _C, _functorch as _functorch, _vmap_internals as _vmap_internals, amp as amp, autograd as autograd, cuda as cuda,
    fft as fft, func as func, fx as fx, linalg as linalg, masked as masked, memory as memory, nn as nn, overrides as overrides,
    random as random, sim as sim, special as special, testing as testing, tracing as tracing, utils as utils,
)

__version__: str
