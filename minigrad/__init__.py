"""minigrad."""
from . import methods
from .ops.creation import *  # noqa
from .ops.activation import logit as logit, relu as relu, sigmoid as sigmoid, threshold as threshold
from .ops.choice import *  # noqa: F403
from .ops.pointwise import *  # noqa: F403
from . import autograd, func
from .dtypes import float64, float32, int64
from .autograd import no_grad, enable_grad
from . import random as random
from .random import Generator as Generator
from .random import default_generator as default_generator
from .random import get_rng_state as get_rng_state
from .random import initial_seed as initial_seed
from .random import manual_seed as manual_seed
from .random import seed as seed
from .random import set_rng_state as set_rng_state
from .ops.linalg import addmm as addmm
from .ops.linalg import adjoint as adjoint
from .ops.linalg import baddbmm as baddbmm
from .ops.linalg import bmm as bmm
from .ops.linalg import broadcast_shapes as broadcast_shapes
from .ops.linalg import dot as dot
from .ops.linalg import einsum as einsum
from .ops.linalg import kron as kron
from .ops.linalg import matmul as matmul
from .ops.linalg import mm as mm
from .ops.linalg import mv as mv
from .ops.linalg import outer as outer
from .ops.linalg import tensordot as tensordot
from .ops.linalg import vdot as vdot
from .ops.random import bernoulli as bernoulli
from .ops.random import multinomial as multinomial
from .ops.random import normal as normal
from .ops.random import rand as rand
from .ops.random import rand_like as rand_like
from .ops.random import randint as randint
from .ops.random import randint_like as randint_like
from .ops.random import randn as randn
from .ops.random import randn_like as randn_like
from .ops.random import randperm as randperm
