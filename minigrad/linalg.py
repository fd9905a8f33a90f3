"""Norms and products under torch's name for them.  Source: torch.linalg."""

from .modes import publish
from .ops.linalg import matmul
from .ops.norm import matrix_norm, vector_norm
from .ops.norm import of_vector_or_matrix as norm
from .ops.shape import diagonal

__all__ = ["diagonal", "matmul", "matrix_norm", "norm", "vector_norm"]

publish(globals())
