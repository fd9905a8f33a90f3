"""Modules of one function of one tensor.  Source: torch.nn.modules.activation, torch.nn.modules.flatten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ops.rearrange import unflatten
from ..ops.shape import flatten
from . import functional as F  # noqa: N812  torch's habit
from .module import Module

if TYPE_CHECKING:
    from ..tensor import Tensor


class Identity(Module):
    """What it is given; any arguments when it is made.  Source: torch.nn.Identity."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        return x


class _InPlace(Module):
    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def extra_repr(self) -> str:
        return "inplace=True" if self.inplace else ""


class ReLU(_InPlace):
    """Source: torch.nn.ReLU."""

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(x, self.inplace)


class SiLU(_InPlace):
    """Source: torch.nn.SiLU."""

    def forward(self, x: Tensor) -> Tensor:
        return F.silu(x, self.inplace)


class LeakyReLU(Module):
    """Source: torch.nn.LeakyReLU."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        return F.leaky_relu(x, self.negative_slope, self.inplace)

    def extra_repr(self) -> str:
        return f"negative_slope={self.negative_slope}"


class ELU(Module):
    """Source: torch.nn.ELU."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, x: Tensor) -> Tensor:
        return F.elu(x, self.alpha, self.inplace)

    def extra_repr(self) -> str:
        return f"alpha={self.alpha}"


class Tanh(Module):
    """Source: torch.nn.Tanh."""

    def forward(self, x: Tensor) -> Tensor:
        return F.tanh(x)  # type: ignore[no-any-return]


class Sigmoid(Module):
    """Source: torch.nn.Sigmoid."""

    def forward(self, x: Tensor) -> Tensor:
        return F.sigmoid(x)  # type: ignore[no-any-return]


class GELU(Module):
    """Source: torch.nn.GELU."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, x: Tensor) -> Tensor:
        return F.gelu(x, approximate=self.approximate)

    def extra_repr(self) -> str:
        return f"approximate={self.approximate!r}"


class Softplus(Module):
    """Source: torch.nn.Softplus."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, x: Tensor) -> Tensor:
        return F.softplus(x, self.beta, self.threshold)

    def extra_repr(self) -> str:
        return f"beta={self.beta}, threshold={self.threshold}"


class _Along(Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.dim = dim

    def extra_repr(self) -> str:
        return f"dim={self.dim}"


class Softmax(_Along):
    """Along `dim`.  Source: torch.nn.Softmax."""

    def forward(self, x: Tensor) -> Tensor:
        return F.softmax(x, self.dim)


class LogSoftmax(_Along):
    """Along `dim`.  Source: torch.nn.LogSoftmax."""

    def forward(self, x: Tensor) -> Tensor:
        return F.log_softmax(x, self.dim)


class Flatten(Module):
    """Source: torch.nn.Flatten."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, x: Tensor) -> Tensor:
        return flatten(x, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Source: torch.nn.Unflatten."""

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, x: Tensor) -> Tensor:
        return unflatten(x, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
