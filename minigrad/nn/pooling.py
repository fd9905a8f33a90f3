"""Modules of windows: pooling and its inverse.  Source: torch.nn.modules.pooling."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ops.convolution import tupled
from . import functional as F  # noqa: N812  torch's habit
from .module import Module

if TYPE_CHECKING:
    from ..tensor import Tensor

Extent = int | tuple[int, ...]


class _Windows(Module):
    """What a module of windows shows of itself."""

    def extra_repr(self) -> str:
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


# ---------------------------------------------------------------- the largest
class _MaxPool(_Windows):
    """The largest element of each window; with return_indices also where it is."""

    rank: int

    def __init__(self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0, dilation: Extent = 1,
                 return_indices: bool = False, ceil_mode: bool = False) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Any:
        return (F.max_pool1d, F.max_pool2d, F.max_pool3d)[self.rank - 1](
            x, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, dilation={self.dilation}, ceil_mode={self.ceil_mode}"


class MaxPool1d(_MaxPool):
    """Of (N, C, L).  Source: torch.nn.MaxPool1d."""

    rank = 1


class MaxPool2d(_MaxPool):
    """Of (N, C, H, W).  Source: torch.nn.MaxPool2d."""

    rank = 2


class MaxPool3d(_MaxPool):
    """Of (N, C, D, H, W).  Source: torch.nn.MaxPool3d."""

    rank = 3


class _MaxUnpool(_Windows):
    """What a max pooling chose, at its place, and zeros elsewhere; output_size chooses among what gives the same windows."""

    rank: int

    def __init__(self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0) -> None:
        super().__init__()
        self.kernel_size = tupled("kernel_size", kernel_size, self.rank)
        self.stride = self.kernel_size if stride is None else tupled("stride", stride, self.rank)
        self.padding = tupled("padding", padding, self.rank)

    def forward(self, x: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = (F.max_unpool1d, F.max_unpool2d, F.max_unpool3d)[self.rank - 1]
        return unpool(x, indices, self.kernel_size, self.stride, self.padding, output_size)


class MaxUnpool1d(_MaxUnpool):
    """Of (N, C, L).  Source: torch.nn.MaxUnpool1d."""

    rank = 1


class MaxUnpool2d(_MaxUnpool):
    """Of (N, C, H, W).  Source: torch.nn.MaxUnpool2d."""

    rank = 2


class MaxUnpool3d(_MaxUnpool):
    """Of (N, C, D, H, W).  Source: torch.nn.MaxUnpool3d."""

    rank = 3


class _FractionalMaxPool(Module):
    """The largest element of each of so many windows, of one size and at a random distance."""

    rank: int

    def __init__(self, kernel_size: Extent, output_size: Extent | None = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> None:
        super().__init__()
        if (output_size is None) == (output_ratio is None):
            msg = f"{type(self).__name__} requires specifying either an output size, or a pooling ratio, and not both"
            raise ValueError(msg)
        self.kernel_size = kernel_size
        self.output_size = output_size
        self.output_ratio = output_ratio
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)

    def forward(self, x: Tensor) -> Any:
        return (F.fractional_max_pool2d, F.fractional_max_pool3d)[self.rank - 2](
            x, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples)


class FractionalMaxPool2d(_FractionalMaxPool):
    """Of (N, C, H, W).  Source: torch.nn.FractionalMaxPool2d."""

    rank = 2


class FractionalMaxPool3d(_FractionalMaxPool):
    """Of (N, C, D, H, W).  Source: torch.nn.FractionalMaxPool3d."""

    rank = 3


# ---------------------------------------------------------------- means
class AvgPool1d(_Windows):
    """The mean of each window of (N, C, L).  Source: torch.nn.AvgPool1d."""

    def __init__(self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True) -> None:
        super().__init__()
        self.kernel_size = tupled("kernel_size", kernel_size, 1)
        self.stride = self.kernel_size if stride is None else tupled("stride", stride, 1)
        self.padding = tupled("padding", padding, 1)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, x: Tensor) -> Tensor:
        return F.avg_pool1d(x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)


class _AvgPool(_Windows):
    """The mean of each window."""

    rank: int

    def __init__(self, kernel_size: Extent, stride: Extent | None = None, padding: Extent = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = kernel_size if stride is None else stride
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, x: Tensor) -> Tensor:
        return (F.avg_pool2d, F.avg_pool3d)[self.rank - 2](
            x, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad, self.divisor_override)


class AvgPool2d(_AvgPool):
    """Of (N, C, H, W).  Source: torch.nn.AvgPool2d."""

    rank = 2


class AvgPool3d(_AvgPool):
    """Of (N, C, D, H, W).  Source: torch.nn.AvgPool3d."""

    rank = 3


class _LPPool(Module):
    """The p-norm of each window, p the norm_type."""

    rank: int

    def __init__(self, norm_type: float, kernel_size: Extent, stride: Extent | None = None, ceil_mode: bool = False) -> None:
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, x: Tensor) -> Tensor:
        return (F.lp_pool1d, F.lp_pool2d, F.lp_pool3d)[self.rank - 1](
            x, self.norm_type, self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return (f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
                f"ceil_mode={self.ceil_mode}")


class LPPool1d(_LPPool):
    """Of (N, C, L).  Source: torch.nn.LPPool1d."""

    rank = 1


class LPPool2d(_LPPool):
    """Of (N, C, H, W).  Source: torch.nn.LPPool2d."""

    rank = 2


class LPPool3d(_LPPool):
    """Of (N, C, D, H, W).  Source: torch.nn.LPPool3d."""

    rank = 3


# ---------------------------------------------------------------- as many windows as are wanted
class _Adaptive(Module):
    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def extra_repr(self) -> str:
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_Adaptive):
    """The mean of each of output_size windows.  Source: torch.nn.AdaptiveAvgPool1d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool1d(x, self.output_size)


class AdaptiveAvgPool2d(_Adaptive):
    """The mean of each of output_size windows of (N, C, H, W).  Source: torch.nn.AdaptiveAvgPool2d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool2d(x, self.output_size)


class AdaptiveAvgPool3d(_Adaptive):
    """The mean of each of output_size windows of (N, C, D, H, W).  Source: torch.nn.AdaptiveAvgPool3d."""

    def forward(self, x: Tensor) -> Tensor:
        return F.adaptive_avg_pool3d(x, self.output_size)


class _AdaptiveMax(_Adaptive):
    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__(output_size)
        self.return_indices = return_indices


class AdaptiveMaxPool1d(_AdaptiveMax):
    """The largest element of each of output_size windows.  Source: torch.nn.AdaptiveMaxPool1d."""

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_max_pool1d(x, self.output_size, self.return_indices)


class AdaptiveMaxPool2d(_AdaptiveMax):
    """The largest element of each of output_size windows of (N, C, H, W).  Source: torch.nn.AdaptiveMaxPool2d."""

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_max_pool2d(x, self.output_size, self.return_indices)


class AdaptiveMaxPool3d(_AdaptiveMax):
    """The largest element of each of output_size windows of (N, C, D, H, W).  Source: torch.nn.AdaptiveMaxPool3d."""

    def forward(self, x: Tensor) -> Any:
        return F.adaptive_max_pool3d(x, self.output_size, self.return_indices)
