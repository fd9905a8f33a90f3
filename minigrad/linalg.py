"""Norms and products under torch's name for them.  Source: torch.linalg."""

from .modes import publish
from .ops.linalg import matmul
from .ops.norm import matrix_norm, vector_norm
from .ops.norm import of_vector_or_matrix as norm
from .ops.products import cross, vander, vecdot
from .ops.shape import diagonal

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "norm", "vander", "vecdot", "vector_norm"]

publish(globals())
