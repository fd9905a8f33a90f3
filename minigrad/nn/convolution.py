"""Convolutions and pooling as modules.  Source: torch.nn.modules.conv, torch.nn.modules.pooling."""

from __future__ import annotations

from math import prod, sqrt
from typing import TYPE_CHECKING

from ..ops.convolution import tupled
from ..ops.creation import empty
from . import functional as F  # noqa: N812  torch's habit
from . import init
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..backend import Device
    from ..dtypes import dtype
    from ..tensor import Tensor

Extent = int | tuple[int, ...]


class _Conv(Module):
    """Weights and bias, uniform within 1 / sqrt(what one output is a sum of) at first."""

    rank: int
    transposed = False

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Extent, stride: Extent = 1, padding: Extent | str = 0,
                 dilation: Extent = 1, groups: int = 1, bias: bool = True, padding_mode: str = "zeros",
                 device: str | Device | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        if in_channels % groups or out_channels % groups:
            msg = f"{'in' if in_channels % groups else 'out'}_channels must be divisible by groups"
            raise ValueError(msg)
        self.in_channels, self.out_channels = in_channels, out_channels
        self.kernel_size, self.stride, self.dilation = (tupled(name, given, self.rank) for name, given in (
            ("kernel_size", kernel_size), ("stride", stride), ("dilation", dilation)))
        self.padding = padding if isinstance(padding, str) else tupled("padding", padding, self.rank)
        self.groups = groups
        self.padding_mode = padding_mode
        first, second = (in_channels, out_channels) if self.transposed else (out_channels, in_channels)
        self.weight = Parameter(empty(first, second // groups, *self.kernel_size, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / sqrt(max(prod(self.weight.shape[1:]), 1))
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        conv = getattr(F, f"conv{self.rank}d")
        if self.padding_mode == "zeros":
            return conv(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)  # type: ignore[no-any-return]
        x = F.pad(x, self._around(), mode=self.padding_mode)
        return conv(x, self.weight, self.bias, self.stride, 0, self.dilation, self.groups)  # type: ignore[no-any-return]

    def _around(self) -> list[int]:
        """What F.pad is to put on both sides, the last dimension first."""
        if self.padding == "same":
            total = [d * (k - 1) for d, k in zip(self.dilation, self.kernel_size, strict=True)]
            return [n for t in reversed(total) for n in (t // 2, t - t // 2)]
        given = (0,) * self.rank if isinstance(self.padding, str) else self.padding
        return [n for p in reversed(given) for n in (p, p)]

    def extra_repr(self) -> str:
        return (f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
                + f", padding={self.padding}" * (self.padding not in (0, (0,) * self.rank))
                + f", dilation={self.dilation}" * any(d != 1 for d in self.dilation)
                + f", groups={self.groups}" * (self.groups != 1) + ", bias=False" * (self.bias is None)
                + f", padding_mode={self.padding_mode}" * (self.padding_mode != "zeros"))


class Conv1d(_Conv):
    """Of (N, C, L).  Source: torch.nn.Conv1d."""

    rank = 1


class Conv2d(_Conv):
    """Of (N, C, H, W).  Source: torch.nn.Conv2d."""

    rank = 2


class Conv3d(_Conv):
    """Of (N, C, D, H, W).  Source: torch.nn.Conv3d."""

    rank = 3


class _ConvTranspose(_Conv):
    transposed = True

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Extent, stride: Extent = 1, padding: Extent = 0,
                 output_padding: Extent = 0, groups: int = 1, bias: bool = True, dilation: Extent = 1,
                 padding_mode: str = "zeros", device: str | Device | None = None, dtype: dtype | None = None) -> None:
        if padding_mode != "zeros":
            msg = f'Only "zeros" padding mode is supported for {type(self).__name__}'
            raise ValueError(msg)
        super().__init__(in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias, device=device,
                         dtype=dtype)
        self.output_padding = tupled("output_padding", output_padding, self.rank)

    def forward(self, x: Tensor) -> Tensor:
        conv = getattr(F, f"conv_transpose{self.rank}d")
        return conv(x, self.weight, self.bias, self.stride, self.padding, self.output_padding, self.groups,  # type: ignore[no-any-return]
                    self.dilation)


class ConvTranspose1d(_ConvTranspose):
    """Of (N, C, L).  Source: torch.nn.ConvTranspose1d."""

    rank = 1


class ConvTranspose2d(_ConvTranspose):
    """Of (N, C, H, W).  Source: torch.nn.ConvTranspose2d."""

    rank = 2


class ConvTranspose3d(_ConvTranspose):
    """Of (N, C, D, H, W).  Source: torch.nn.ConvTranspose3d."""

    rank = 3
