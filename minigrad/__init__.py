"""minigrad."""
from . import methods
from .ops.creation import *  # noqa
from .ops.activation import logit as logit, relu as relu, sigmoid as sigmoid, threshold as threshold
from .ops.choice import *  # noqa: F403
from .ops.pointwise import *  # noqa: F403
from .ops.extremes import (
    amax as amax, amin as amin, aminmax as aminmax, argmax as argmax, argmin as argmin, argsort as argsort, cummax as cummax,
    cummin as cummin, kthvalue as kthvalue, max as max, median as median, min as min, sort as sort, topk as topk,
)
from .ops.gather import (
    gather as gather, index_add as index_add, index_copy as index_copy, index_fill as index_fill,
    index_select as index_select, masked_scatter as masked_scatter, masked_select as masked_select, scatter as scatter,
    scatter_add as scatter_add, take as take, take_along_dim as take_along_dim,
)
from .ops.indexing import argwhere as argwhere, masked_fill as masked_fill, nonzero as nonzero
from .ops.norm import norm as norm
from .ops.rearrange import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d,
    broadcast_tensors as broadcast_tensors, broadcast_to as broadcast_to,
    column_stack as column_stack, diag as diag, diag_embed as diag_embed, diagflat as diagflat, dstack as dstack,
    fliplr as fliplr, flipud as flipud, hstack as hstack, meshgrid as meshgrid, repeat_interleave as repeat_interleave,
    rot90 as rot90, tensor_split as tensor_split, tile as tile, trace as trace, unflatten as unflatten, vstack as vstack,
)
from .ops.reduction import (
    all as all, any as any, count_nonzero as count_nonzero, mean as mean, nanmean as nanmean, nansum as nansum, prod as prod,
    std as std, std_mean as std_mean, sum as sum, var as var, var_mean as var_mean,
)
from .ops.scan import cumprod as cumprod, cumsum as cumsum, logcumsumexp as logcumsumexp
from .ops.shape import (
    cat as cat, chunk as chunk, clone as clone, detach as detach, diagonal as diagonal, flatten as flatten, flip as flip,
    moveaxis as moveaxis, movedim as movedim, narrow as narrow, permute as permute, reshape as reshape, roll as roll,
    select as select, split as split, squeeze as squeeze, stack as stack, t as t, transpose as transpose, tril as tril,
    triu as triu, unbind as unbind, unsqueeze as unsqueeze,
)
from .ops.softmax import log_softmax as log_softmax, logsumexp as logsumexp, softmax as softmax
from .ops.subscript import index_put as index_put
from . import autograd, func
from .dtypes import float64, float32, int64
from .autograd import no_grad, enable_grad
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
