"""Values that parameters begin with; each function writes into its tensor, with nothing recorded, and returns it.

Source: torch.nn.init.
"""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING

from ..autograd.grad_mode import no_grad
from ..ops.creation import eye

if TYPE_CHECKING:
    from ..random import Generator
    from ..tensor import Tensor

__all__ = [
    "calculate_gain", "constant_", "eye_", "kaiming_normal_", "kaiming_uniform_", "normal_", "ones_", "uniform_",
    "xavier_normal_", "xavier_uniform_", "zeros_",
]

GAINS = {"linear": 1.0, "conv1d": 1.0, "conv2d": 1.0, "conv3d": 1.0, "sigmoid": 1.0, "tanh": 5 / 3, "relu": sqrt(2),
         "selu": 3 / 4}


@no_grad()
def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from [a, b).  Source: torch.nn.init.uniform_."""
    return tensor.uniform_(a, b, generator=generator)  # type: ignore[no-any-return]


@no_grad()
def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw from a normal distribution.  Source: torch.nn.init.normal_."""
    return tensor.normal_(mean, std, generator=generator)  # type: ignore[no-any-return]


@no_grad()
def constant_(tensor: Tensor, val: float) -> Tensor:
    """Write one value.  Source: torch.nn.init.constant_."""
    return tensor.fill_(val)  # type: ignore[no-any-return]


def ones_(tensor: Tensor) -> Tensor:
    """Write ones.  Source: torch.nn.init.ones_."""
    return constant_(tensor, 1.0)  # type: ignore[no-any-return]


def zeros_(tensor: Tensor) -> Tensor:
    """Write zeros.  Source: torch.nn.init.zeros_."""
    return constant_(tensor, 0.0)  # type: ignore[no-any-return]


@no_grad()
def eye_(tensor: Tensor) -> Tensor:
    """Write the identity matrix.  Source: torch.nn.init.eye_."""
    if tensor.ndim != 2:
        msg = "Only tensors with 2 dimensions are supported"
        raise ValueError(msg)
    return tensor.copy_(eye(*tensor.shape, dtype=tensor.dtype, device=tensor.device))  # type: ignore[no-any-return]


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which a nonlinearity is made up for.  Source: torch.nn.init.calculate_gain."""
    if nonlinearity == "leaky_relu":
        slope = 0.01 if param is None else param
        return sqrt(2 / (1 + slope ** 2))
    if nonlinearity not in GAINS:
        msg = f"Unsupported nonlinearity {nonlinearity}"
        raise ValueError(msg)
    return GAINS[nonlinearity]


def _fans(tensor: Tensor) -> tuple[int, int]:
    """How many inputs one output has, and how many outputs one input."""
    if tensor.ndim < 2:
        msg = "Fan in and fan out can not be computed for tensor with fewer than 2 dimensions"
        raise ValueError(msg)
    area = prod(tensor.shape[2:])
    return tensor.shape[1] * area, tensor.shape[0] * area


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw uniformly, so that variances stay forwards and backwards.  Source: torch.nn.init.xavier_uniform_."""
    bound = gain * sqrt(6 / sum(_fans(tensor)))
    return uniform_(tensor, -bound, bound, generator)  # type: ignore[no-any-return]


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Draw normally, so that variances stay forwards and backwards.  Source: torch.nn.init.xavier_normal_."""
    return normal_(tensor, 0.0, gain * sqrt(2 / sum(_fans(tensor))), generator)  # type: ignore[no-any-return]


def _kaiming(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float:
    if mode not in ("fan_in", "fan_out"):
        msg = f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        raise ValueError(msg)
    return calculate_gain(nonlinearity, a) / sqrt(_fans(tensor)[mode == "fan_out"])


def kaiming_uniform_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                     generator: Generator | None = None) -> Tensor:
    """Draw uniformly, so that variances stay behind a (leaky) relu.  Source: torch.nn.init.kaiming_uniform_."""
    bound = sqrt(3) * _kaiming(tensor, a, mode, nonlinearity)
    return uniform_(tensor, -bound, bound, generator)  # type: ignore[no-any-return]


def kaiming_normal_(tensor: Tensor, a: float = 0.0, mode: str = "fan_in", nonlinearity: str = "leaky_relu",
                    generator: Generator | None = None) -> Tensor:
    """Draw normally, so that variances stay behind a (leaky) relu.  Source: torch.nn.init.kaiming_normal_."""
    return normal_(tensor, 0.0, _kaiming(tensor, a, mode, nonlinearity), generator)  # type: ignore[no-any-return]
