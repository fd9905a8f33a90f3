"""Linear algebra under torch's names.  Source: torch.linalg."""

from .modes import publish
from .ops.determinants import det, slogdet
from .ops.eigen import eig, eigvals
from .ops.infos import cholesky_ex, inv_ex, lu_factor_ex, solve_ex
from .ops.leastsquares import lstsq
from .ops.linalg import matmul
from .ops.norm import matrix_norm, vector_norm
from .ops.norm import of_vector_or_matrix as norm
from .ops.products import cross_along as cross
from .ops.products import vander, vecdot
from .ops.rearrange import matrix_diagonal as diagonal
from .ops.reflections import householder_product
from .ops.solving import (
    cholesky,
    inv,
    lu,
    lu_factor,
    lu_solve,
    matrix_power,
    multi_dot,
    solve,
    solve_triangular,
    tensorinv,
    tensorsolve,
)
from .ops.spectra import cond, eigh, eigvalsh, matrix_exp, matrix_rank, pinv, qr, svd, svdvals

__all__ = [
    "cholesky", "cholesky_ex", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh",
    "householder_product", "inv", "inv_ex", "lstsq", "lu", "lu_factor", "lu_factor_ex", "lu_solve", "matmul", "matrix_exp",
    "matrix_norm", "matrix_power", "matrix_rank", "multi_dot", "norm", "pinv", "qr", "slogdet", "solve", "solve_ex",
    "solve_triangular", "svd", "svdvals", "tensorinv", "tensorsolve", "vander", "vecdot", "vector_norm",
]

publish(globals())
