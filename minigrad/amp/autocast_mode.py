"""Autocast: which floating type a call of the program runs in, by lists of names. [NOTE autocast]

It stands ahead of the levels, so a cast is an op like any other: recorded, batched and differentiated at every level that its
tensor belongs to.

Source: torch.amp.autocast_mode; aten/src/ATen/autocast_mode.h, whose lists for the cpu and for cuda these are.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any
from weakref import ref

from .. import tree
from ..backend import device as find_device
from ..dtypes import dtype, float16, float32, float64
from ..errors import UsageError
from ..modes import Ahead
from ..scope import Scope
from ..state import State, current
from ..tensor import LEAF, Tensor, version_of

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]

_PRODUCTS = ("addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d "
             "linear matmul mm prelu scaled_dot_product_attention vecdot")
_LOSSES = ("binary_cross_entropy_with_logits cosine_embedding_loss cross_entropy hinge_embedding_loss huber_loss "
           "kl_div l1_loss margin_ranking_loss mse_loss multi_margin_loss multilabel_margin_loss nll_loss poisson_nll_loss "
           "smooth_l1_loss soft_margin_loss triplet_margin_loss")
_CPU = {
    "lower": _PRODUCTS,
    "float32": f"{_LOSSES} adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy cdist cholesky "
               "cholesky_ex cholesky_inverse cholesky_solve cond ctc_loss eig eigh eigvals eigvalsh fft fft2 fftn "
               "fractional_max_pool2d fractional_max_pool3d geqrf grid_sampler grid_sampler_2d grid_sampler_3d hfft "
               "householder_product ifft ifft2 ifftn ihfft inv inv_ex inverse irfft irfft2 irfftn lstsq lu_solve "
               "matrix_rank max_pool3d max_unpool2d max_unpool3d nanquantile orgqr ormqr pinverse polar prod qr quantile "
               "rfft rfft2 rfftn solve stft svd svdvals tensorinv tensorsolve trace triangular_solve view_as_complex",
    "widest": "cat concat concatenate index_copy stack",
}
_CUDA = {
    "lower": f"{_PRODUCTS} addmv addr einsum multi_dot mv",
    "float32": f"{_LOSSES} acos asin cdist cosh cosine_similarity cumprod cumsum dist erfinv exp expm1 group_norm interpolate "
               "layer_norm log log10 log1p log2 log_softmax logsumexp matrix_norm native_layer_norm norm pdist pow prod "
               "reciprocal renorm rms_norm rsqrt sinh softmax softmin softplus sum tan vector_norm __rpow__ __rtruediv__",
    "widest": "addcdiv addcmul atan2 bilinear cross dot grid_sampler index_put scatter_add tensordot vdot",
    "refused": "binary_cross_entropy",
}
_COMPOSITES = frozenset({"column_stack", "dstack", "einsum", "hstack", "kron", "normalize", "tensordot",
                         "vstack"})
"""Of the calls on no list, those that torch composes of calls; all others are one op to it."""


def _by_name(lists: dict[str, str]) -> dict[str, str]:
    return {name: policy for policy, names in lists.items() for name in names.split()}


_POLICIES = {"cpu": _by_name(_CPU), "cuda": _by_name(_CUDA), "sim": _by_name(_CUDA)}


class Casting(Ahead):
    """One autocast block: its device, its lower type, and the casts of parameters that it has made."""

    __slots__ = ("casts", "device_type", "lower")

    def __init__(self, device_type: str, lower: dtype, casts: dict[int, Any] | None) -> None:
        self.device_type = device_type
        self.lower = lower
        self.casts = casts

    def takes(self, call: Callable[..., Any]) -> bool:
        return call.__name__ in _POLICIES[self.device_type]

    def sees_into(self, call: Callable[..., Any]) -> bool:
        return call.__name__ in _COMPOSITES

    def run(self, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        policy = _POLICIES[self.device_type][call.__name__]
        if policy == "refused":
            msg = (f"{call.__name__} is unsafe to autocast: what precedes it, a sigmoid, may run in {self.lower}. Use "
                   "binary_cross_entropy_with_logits, or leave autocast for it.")
            raise UsageError(msg)
        if policy == "widest" and all(x.dtype is self.lower for x in tree.flatten((args, kwargs))[0] if self._concerns(x)):
            return call(*args, **kwargs)
        args, kwargs = self.cast((args, kwargs), self.lower if policy == "lower" else float32)
        return call(*args, **kwargs)

    def cast(self, arguments: Any, target: dtype) -> Any:
        """A pytree with those tensors cast that autocast concerns."""
        leaves, spec = tree.flatten(arguments)
        return tree.unflatten([self._cast(x, target) if self._concerns(x) else x for x in leaves], spec)

    def _concerns(self, x: Any) -> bool:
        return (isinstance(x, Tensor) and x.device.kind == self.device_type and x.dtype.is_floating_point
                and x.dtype is not float64)

    def _cast(self, x: Tensor, target: dtype) -> Tensor:
        """`x` in another type; of a leaf that the cast is recorded for, the cast that was made before."""
        state = current()
        kept = x.node is LEAF and target is not float32 and x.owner not in state.grad_off and state.recomputing is None
        if self.casts is None or not kept:
            return x.to(target)  # type: ignore[no-any-return]
        known = self.casts.get(id(x))
        if known is None or known[0]() is not x or known[1] != version_of(x):
            known = self.casts[id(x)] = ref(x), version_of(x), x.to(target)
        return known[2]  # type: ignore[no-any-return]


class autocast(Scope):  # noqa: N801  torch spells it so
    """Within it, each call of the program on a device runs in the type that its list says; double stays double.

    dtype: the lower type, float16; numpy has no bfloat16.  With `enabled=False` calls run in the types of their arguments.
    cache_enabled: whether one cast of a leaf serves until the outermost block ends.
    Raises UsageError for a device or a type that it does not know.  Source: torch.amp.autocast.
    """

    def __init__(self, device_type: str, dtype: dtype | None = None, enabled: bool = True,
                 cache_enabled: bool | None = None) -> None:
        super().__init__()
        if device_type not in _POLICIES:
            msg = f"User specified an unsupported autocast device_type '{device_type}': it is one of {', '.join(_POLICIES)}."
            raise UsageError(msg)
        find_device(device_type)
        self.device = device_type
        self.fast_dtype = dtype or get_autocast_dtype(device_type)
        self._enabled = enabled
        self._cache_enabled = cache_enabled is not False
        if enabled and self.fast_dtype is not float16:
            msg = (f"In {device_type} autocast, but the target dtype {self.fast_dtype} is not supported: autocast casts to "
                   "minigrad.float16 (numpy, which holds the arrays, has no bfloat16).")
            raise UsageError(msg)

    def inside(self, outside: State) -> State:
        others = tuple([who for who in outside.ahead if not _is_for(who, self.device)])
        if not self._enabled:
            return outside._replace(ahead=others)
        found = _casting(outside, self.device)
        casts = None if not self._cache_enabled else found.casts if found is not None and found.casts is not None else {}
        return outside._replace(ahead=(Casting(self.device, self.fast_dtype, casts), *others))

    def __exit__(self, *error: Any) -> None:
        assert self._scopes
        made = _casting(self._scopes[-1].new, self.device)
        super().__exit__(*error)
        outer = _casting(current(), self.device)
        if made is not None and made.casts is not None and (outer is None or outer.casts is not made.casts):
            made.casts.clear()  # a checkpointed region goes on holding the State

    def __call__(self, f: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(f)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with autocast(self.device, self.fast_dtype, self._enabled, self._cache_enabled):
                return f(*args, **kwargs)
        return inside


def _is_for(who: Any, device_type: str) -> bool:
    return isinstance(who, Casting) and who.device_type == device_type


def _casting(state: State, device_type: str) -> Casting | None:
    return next((who for who in state.ahead if _is_for(who, device_type)), None)


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether calls on that kind of device are cast.  Source: torch.is_autocast_enabled."""
    return _casting(current(), device_type) is not None


def get_autocast_dtype(device_type: str) -> dtype:
    """The type that calls on that kind of device are cast to.  Source: torch.get_autocast_dtype."""
    found = _casting(current(), device_type)
    return float16 if found is None else found.lower


is_autocast_enabled.__published__ = get_autocast_dtype.__published__ = True  # type: ignore[attr-defined]  # they ask who is ahead


def is_autocast_available(device_type: str) -> bool:
    """Whether there are lists for that kind of device.  Source: torch.amp.is_autocast_available."""
    return device_type in _POLICIES


# ---------------------------------------------------------------- custom functions
def custom_fwd(fwd: Callable[..., Any] | None = None, *, device_type: str, cast_inputs: dtype | None = None) -> Any:
    """For the forward of a Function: remember whether it ran under autocast, or run without, on inputs of one type.

    Source: torch.amp.custom_fwd.
    """
    if fwd is None:
        return lambda f: custom_fwd(f, device_type=device_type, cast_inputs=cast_inputs)

    @wraps(fwd)
    def forward(ctx: Any, *args: Any, **kwargs: Any) -> Any:
        casting = _casting(current(), device_type)
        ctx.autocast = get_autocast_dtype(device_type), casting is not None and cast_inputs is None
        if casting is None or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        args, kwargs = casting.cast((args, kwargs), cast_inputs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)
    return forward


def custom_bwd(bwd: Callable[..., Any] | None = None, *, device_type: str) -> Any:
    """For the backward of a Function whose forward is decorated with custom_fwd: run as that did.

    Source: torch.amp.custom_bwd.
    """
    if bwd is None:
        return lambda f: custom_bwd(f, device_type=device_type)

    @wraps(bwd)
    def backward(*args: Any, **kwargs: Any) -> Any:
        lower, enabled = args[0].autocast
        with autocast(device_type, dtype=lower, enabled=enabled):
            return bwd(*args, **kwargs)
    return backward
