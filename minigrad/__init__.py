"""minigrad."""
from . import methods
from .ops.creation import *  # noqa
from .ops.activation import logit as logit, relu as relu, sigmoid as sigmoid, threshold as threshold
from .ops.choice import *  # noqa: F403
from .ops.pointwise import *  # noqa: F403
from . import autograd, func
from .dtypes import float64, float32, int64
from .autograd import no_grad, enable_grad
