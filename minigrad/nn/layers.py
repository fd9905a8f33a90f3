"""Modules with parameters: linear maps, norms, embeddings.  Source: torch.nn.modules."""

from __future__ import annotations

from math import sqrt
from typing import TYPE_CHECKING, Any

from ..dtypes import int64
from ..errors import Refusal
from ..ops.creation import empty, ones, tensor, zeros
from ..state import current
from . import functional as F  # noqa: N812  torch's habit
from . import init
from .module import Module
from .parameter import Parameter

if TYPE_CHECKING:
    from ..backend import Device
    from ..dtypes import dtype
    from ..tensor import Tensor


class Linear(Module):
    """x @ weight.T + bias; weight (out_features, in_features) and bias begin uniform within 1 / sqrt(in_features).

    Source: torch.nn.Linear.
    """

    def __init__(self, in_features: int, out_features: int, bias: bool = True, device: str | Device | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        self.in_features = in_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        if self.in_features:
            bound = 1 / sqrt(self.in_features)
            for x in self.parameters():
                init.uniform_(x, -bound, bound)

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)

    def extra_repr(self) -> str:
        return f"in_features={self.in_features}, out_features={self.out_features}, bias={self.bias is not None}"


class Bilinear(Module):
    """x1 weight x2 + bias; weight (out_features, in1_features, in2_features) begins uniform within 1 / sqrt(in1_features).

    Source: torch.nn.Bilinear.
    """

    def __init__(self, in1_features: int, in2_features: int, out_features: int, bias: bool = True,
                 device: str | Device | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.in1_features = in1_features
        self.in2_features = in2_features
        self.out_features = out_features
        self.weight = Parameter(empty(out_features, in1_features, in2_features, device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / sqrt(self.in1_features)
        for x in self.parameters():
            init.uniform_(x, -bound, bound)

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        return (f"in1_features={self.in1_features}, in2_features={self.in2_features}, out_features={self.out_features}, "
                f"bias={self.bias is not None}")


class Embedding(Module):
    """The row of `weight` (num_embeddings, embedding_dim) for every number; the row padding_idx is 0 and gets no gradient.

    Source: torch.nn.Embedding.
    """

    def __init__(self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
                 max_norm: float | None = None, norm_type: float = 2.0, scale_grad_by_freq: bool = False,
                 sparse: bool = False, device: str | Device | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq or sparse:
            msg = "Embedding: max_norm, scale_grad_by_freq and sparse are not supported: gradients are dense and plain."
            raise Refusal(msg)
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            msg = f"Padding_idx must be within num_embeddings ({num_embeddings}), got {padding_idx}"
            raise ValueError(msg)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(init.normal_(empty(num_embeddings, embedding_dim, device=device, dtype=dtype)))
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def forward(self, x: Tensor) -> Tensor:
        return F.embedding(x, self.weight, self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}{padding}"


class EmbeddingBag(Module):
    """The sum, mean or largest of the rows of `weight` in each bag of numbers.  Source: torch.nn.EmbeddingBag."""

    def __init__(self, num_embeddings: int, embedding_dim: int, max_norm: float | None = None, norm_type: float = 2.0,
                 scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False, *,
                 include_last_offset: bool = False, padding_idx: int | None = None, device: str | Device | None = None,
                 dtype: dtype | None = None) -> None:
        super().__init__()
        if max_norm is not None or scale_grad_by_freq or sparse:
            msg = "EmbeddingBag: max_norm, scale_grad_by_freq and sparse are not supported: gradients are dense and plain."
            raise Refusal(msg)
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.mode = mode
        self.include_last_offset = include_last_offset
        self.padding_idx = None if padding_idx is None else padding_idx % num_embeddings
        self.weight = Parameter(init.normal_(empty(num_embeddings, embedding_dim, device=device, dtype=dtype)))
        if self.padding_idx is not None:
            init.zeros_(self.weight[self.padding_idx])

    def forward(self, x: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        return F.embedding_bag(x, self.weight, offsets, mode=self.mode, per_sample_weights=per_sample_weights,
                               include_last_offset=self.include_last_offset, padding_idx=self.padding_idx)

    def extra_repr(self) -> str:
        padding = "" if self.padding_idx is None else f", padding_idx={self.padding_idx}"
        return f"{self.num_embeddings}, {self.embedding_dim}, mode={self.mode!r}{padding}"


# ---------------------------------------------------------------- norms of each sample
class LayerNorm(Module):
    """Over the last dimensions, whose shape is normalized_shape.  Source: torch.nn.LayerNorm."""

    def __init__(self, normalized_shape: Any, eps: float = 1e-5, elementwise_affine: bool = True, bias: bool = True,
                 device: str | Device | None = None, dtype: dtype | None = None) -> None:
        super().__init__()
        self.normalized_shape = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _affine(self, self.normalized_shape, weight=elementwise_affine, bias=elementwise_affine and bias, device=device,
                dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return F.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
                f"bias={self.bias is not None}")


class GroupNorm(Module):
    """Over each group of channels.  Source: torch.nn.GroupNorm."""

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True,
                 device: str | Device | None = None, dtype: dtype | None = None, *, bias: bool = True) -> None:
        super().__init__()
        if num_channels % num_groups:
            msg = f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})"
            raise ValueError(msg)
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        _affine(self, (num_channels,), weight=affine, bias=affine and bias, device=device, dtype=dtype)

    def forward(self, x: Tensor) -> Tensor:
        return F.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.weight is not None}, "
                f"bias={self.bias is not None}")


def _affine(module: Module, shape: tuple[int, ...], *, weight: bool, bias: bool, device: Any, dtype: Any) -> None:
    """Give a norm the parameters that its result is multiplied by, and moved by."""
    module.register_parameter("weight", Parameter(ones(shape, device=device, dtype=dtype)) if weight else None)
    module.register_parameter("bias", Parameter(zeros(shape, device=device, dtype=dtype)) if bias else None)


# ---------------------------------------------------------------- norms that may remember what they saw
class _Running(Module):
    """A norm of each channel, dimension 1, with running statistics that training moves where they stand."""

    ranks: tuple[int, ...]

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float | None = 0.1, affine: bool = True,
                 track_running_stats: bool = True, device: str | Device | None = None, dtype: dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__()
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        _affine(self, (num_features,), weight=affine, bias=affine and bias, device=device, dtype=dtype)
        track = track_running_stats
        self.register_buffer("running_mean", zeros(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("running_var", ones(num_features, device=device, dtype=dtype) if track else None)
        self.register_buffer("num_batches_tracked", tensor(0, dtype=int64, device=device) if track else None)

    def _check(self, x: Tensor) -> None:
        if x.ndim not in self.ranks:
            msg = f"expected {' or '.join(f'{n}D' for n in self.ranks)} input (got {x.ndim}D input)"
            raise ValueError(msg)

    def extra_repr(self) -> str:
        return (f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
                f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}")


class _BatchNorm(_Running):
    def forward(self, x: Tensor) -> Tensor:
        """In training by the batch, which counts once however often a checkpoint runs again. [NOTE side-effects-once]

        Source: torch.nn.functional.batch_norm.
        """
        self._check(x)
        track, mean, var = self.track_running_stats, self.running_mean, self.running_var
        if self.training and track and current().recomputing is None:
            self.num_batches_tracked.add_(1)
        momentum = self.momentum
        if momentum is None:
            momentum = 1 / self.num_batches_tracked.item() if self.training and track else 0.0
        if self.training and not track:
            mean = var = None
        return F.batch_norm(x, mean, var, self.weight, self.bias, self.training or mean is None, momentum, self.eps)


class BatchNorm1d(_BatchNorm):
    """Of (N, C) or (N, C, L).  Source: torch.nn.BatchNorm1d."""

    ranks = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Of (N, C, H, W).  Source: torch.nn.BatchNorm2d."""

    ranks = (4,)


class BatchNorm3d(_BatchNorm):
    """Of (N, C, D, H, W).  Source: torch.nn.BatchNorm3d."""

    ranks = (5,)


class _InstanceNorm(_Running):
    """Each channel of each sample, or of one sample; by default without parameters and statistics."""

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = False,
                 track_running_stats: bool = False, device: str | Device | None = None, dtype: dtype | None = None, *,
                 bias: bool = True) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        self._check(x)
        if x.ndim == self.ranks[0]:
            return self.forward(x.unsqueeze(0)).squeeze(0)  # type: ignore[no-any-return]
        return F.instance_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                               self.training or not self.track_running_stats,
                               0.0 if self.momentum is None else self.momentum, self.eps)


class InstanceNorm1d(_InstanceNorm):
    """Of (N, C, L) or (C, L).  Source: torch.nn.InstanceNorm1d."""

    ranks = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """Of (N, C, H, W) or (C, H, W).  Source: torch.nn.InstanceNorm2d."""

    ranks = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """Of (N, C, D, H, W) or (C, D, H, W).  Source: torch.nn.InstanceNorm3d."""

    ranks = (4, 5)


class LocalResponseNorm(Module):
    """x / (k + alpha times the mean square of `size` channels around) ** beta.  Source: torch.nn.LocalResponseNorm."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, x: Tensor) -> Tensor:
        return F.local_response_norm(x, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
