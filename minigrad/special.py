"""Special functions under torch's names for them; those of the gamma, Bessel and normal families need scipy.

Source: torch.special.
"""

from .modes import publish
from .ops.activation import logit, sigmoid
from .ops.distributions import (
    digamma,
    entr,
    erfcx,
    erfinv,
    i0,
    i0e,
    i1,
    i1e,
    log_ndtr,
    ndtr,
    ndtri,
    polygamma,
    sinc,
)
from .ops.distributions import lgamma as gammaln
from .ops.distributions import mvlgamma as multigammaln
from .ops.pairs import xlog1py, xlogy
from .ops.pointwise import erf, erfc, exp2, expm1, log1p, round
from .ops.softmax import log_softmax, logsumexp, softmax

expit = sigmoid
psi = digamma

__all__ = [
    "digamma", "entr", "erf", "erfc", "erfcx", "erfinv", "exp2", "expit", "expm1", "gammaln", "i0", "i0e", "i1", "i1e",
    "log1p", "log_ndtr", "log_softmax", "logit", "logsumexp", "multigammaln", "ndtr", "ndtri", "polygamma", "psi",
    "round", "sinc", "softmax", "xlog1py", "xlogy",
]

publish(globals())
