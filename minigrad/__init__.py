"""minigrad."""
from . import methods
from .ops.creation import *  # noqa
from .ops.pointwise import *  # noqa
from . import autograd, func
from .dtypes import float64, float32, int64
from .autograd import no_grad, enable_grad
