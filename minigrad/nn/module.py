"""Module: a function that owns parameters, with hooks around its calls and a state that can be moved, saved and loaded.

Source: torch.nn.Module.
"""

# ruff: noqa: SLF001  a module's tables have torch's names

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..autograd.grad_mode import no_grad
from ..dtypes import dtype, float16, float32, float64
from ..errors import UsageError
from ..graph.node import RemovableHandle
from ..tensor import Tensor
from .boundary import Boundary
from .members import Members
from .parameter import Parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Module(Members):
    """The base of all modules: define `forward`, and assign parameters, buffers and modules as attributes.

    Source: torch.nn.Module.
    """

    training: bool

    def __init__(self) -> None:
        super().__init__()
        self.__dict__.update(training=True, _forward_hooks=[], _forward_pre_hooks=[], _backward_hooks=[],
                             _backward_pre_hooks=[])

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What a call computes: to be defined."""
        msg = f'Module [{type(self).__name__}] is missing the required "forward" function'
        raise NotImplementedError(msg)

    # ---------------------------------------------------------------- calling
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        own = self.__dict__
        if own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"] or own["_backward_pre_hooks"]:
            return self._hooked(args, kwargs)
        return self.forward(*args, **kwargs)

    def _hooked(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        at_least = [entry for entry in self._forward_hooks if entry[2]]
        try:
            for hook, with_kwargs, _ in list(self._forward_pre_hooks):
                args, kwargs = _before(hook(self, args, kwargs) if with_kwargs else hook(self, args), args, kwargs, with_kwargs)
            boundary = Boundary(self, self._backward_pre_hooks, self._backward_hooks)
            out = self.forward(*boundary.enter(args), **kwargs)
            for entry in list(self._forward_hooks):
                if entry in at_least:
                    at_least.remove(entry)
                hook, with_kwargs, _ = entry
                changed = hook(self, args, kwargs, out) if with_kwargs else hook(self, args, out)
                out = out if changed is None else changed
        except BaseException:
            for hook, with_kwargs, _ in at_least:
                hook(self, args, kwargs, None) if with_kwargs else hook(self, args, None)
            raise
        return boundary.leave(out)

    def register_forward_pre_hook(self, hook: Callable[..., Any], *, prepend: bool = False,
                                  with_kwargs: bool = False) -> RemovableHandle:
        """Call `hook(module, args)`, or (module, args, kwargs), before forward; it may return others."""
        return _registered(self._forward_pre_hooks, (hook, with_kwargs, False), prepend=prepend)

    def register_forward_hook(self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False,
                              always_call: bool = False) -> RemovableHandle:
        """Call `hook(module, args, output)`, or (module, args, kwargs, output), after forward; it may return another output.

        always_call: also where something raises, with None for output.
        """
        return _registered(self._forward_hooks, (hook, with_kwargs, always_call), prepend=prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are there; it may return others."""
        return _registered(self._backward_pre_hooks, hook, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are there; it may return others.

        Where no input requires grad, it is called when those of the outputs are there, with a warning.
        """
        return _registered(self._backward_hooks, hook, prepend=prepend)

    # ---------------------------------------------------------------- its state
    def state_dict(self, *, destination: dict[str, Any] | None = None, prefix: str = "",
                   keep_vars: bool = False) -> dict[str, Any]:
        """Parameters and persistent buffers by path: detached, unless keep_vars, and not copied."""
        found: dict[str, Any] = {} if destination is None else destination
        for key, _, _, x in self._saved(prefix):
            found[key] = x if keep_vars else x.detach()
        return found

    def _saved(self, prefix: str = "") -> Iterator[tuple[str, Module, str, Tensor]]:
        for path, module in self.named_modules(remove_duplicate=False):
            for name, own in [*module._parameters.items(), *module._buffers.items()]:
                x = module._meant(name, own)
                if x is not None and name not in module._not_saved:
                    yield f"{prefix}{path}.{name}" if path else f"{prefix}{name}", module, name, x

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> Keys:
        """Copy a state_dict into the parameters and buffers; assign: take its tensors themselves.

        Raises UsageError for tensors of other shapes, and where strict for missing and unexpected keys.
        """
        errors, missing, known = [], [], set()
        for key, module, name, x in self._saved():
            known.add(key)
            source = state_dict.get(key)
            if source is None:
                missing.append(key)
            elif source.shape != x.shape:
                errors.append(f"size mismatch for {key}: copying a param with shape torch.Size({list(source.shape)}) from "
                              f"checkpoint, the shape in current model is torch.Size({list(x.shape)}).")
            elif not assign:
                with no_grad():
                    x.copy_(source)
            elif name in module._parameters:
                module._parameters[name] = source if isinstance(source, Parameter) else Parameter(source, x.requires_grad)
            else:
                module._buffers[name] = source
        unexpected = [key for key in state_dict if key not in known]
        if strict:
            for what, keys in (("Missing", missing), ("Unexpected", unexpected)):
                if keys:
                    errors.insert(0, f"{what} key(s) in state_dict: " + ", ".join(f'"{key}"' for key in keys) + ". ")
        if errors:
            raise UsageError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(errors))
        return Keys(missing, unexpected)

    def _apply(self, f: Callable[[Tensor], Tensor]) -> Self:
        """Replace the contents of parameters and of their gradients by f of them, and buffers by f of them."""
        for module in self.modules():
            for x in module._parameters.values():
                for held in () if x is None else (x,) if x.grad is None else (x, x.grad):
                    held.data = f(held.data)
            for name, x in module._buffers.items():
                module._buffers[name] = x if x is None else f(x)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move or convert parameters and buffers, as Tensor.to does; integer ones keep their dtype."""
        where = [a.device if isinstance(a, Tensor) else a for a in args if not isinstance(a, dtype)]
        options = {name: value for name, value in kwargs.items() if name != "dtype"}
        return self._apply(lambda x: x.to(*args, **kwargs) if x.dtype.differentiable else x.to(*where, **options))

    def cpu(self) -> Self:
        """Move parameters and buffers to the host."""
        return self.to("cpu")

    def double(self) -> Self:
        """Make floating parameters and buffers float64."""
        return self._floating(float64)

    def float(self) -> Self:
        """Make floating parameters and buffers float32."""
        return self._floating(float32)

    def half(self) -> Self:
        """Make floating parameters and buffers float16."""
        return self._floating(float16)

    def _floating(self, d: dtype) -> Self:
        return self._apply(lambda x: x.to(d) if x.dtype.is_floating_point else x)

    # ---------------------------------------------------------------- settings
    def train(self, mode: bool = True) -> Self:
        """Set the training flag of all modules below."""
        if not isinstance(mode, bool):
            msg = "training mode is expected to be boolean"
            raise ValueError(msg)
        for module in self.modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """Clear the training flag of all modules below."""
        return self.train(mode=False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Set whether the parameters require grad."""
        for x in self.parameters():
            x.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Drop the gradients of all parameters, or make them zeros."""
        for x in self.parameters():
            if x.grad is not None:
                x.grad = None if set_to_none else x.grad.detach().zero_()

    def apply(self, f: Callable[[Module], None]) -> Self:
        """Call f on every module, children first."""
        for module in self.children():
            module.apply(f)
        f(self)
        return self

    # ---------------------------------------------------------------- for people
    def extra_repr(self) -> str:
        """What the module's text says about itself."""
        return ""

    def __repr__(self) -> str:
        own = self.extra_repr()
        lines = [f"({name}): {module!r}".replace("\n", "\n  ") for name, module in self._modules.items()]
        if not lines:
            return f"{type(self).__name__}({own})"
        return "\n  ".join([f"{type(self).__name__}(", *[own] * bool(own), *lines]) + "\n)"


class Keys(NamedTuple):
    """What load_state_dict found amiss."""

    missing_keys: list[str]
    unexpected_keys: list[str]

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"


def _before(changed: Any, args: tuple[Any, ...], kwargs: dict[str, Any], with_kwargs: bool) -> tuple[Any, Any]:
    """What a pre-hook makes of the arguments."""
    if changed is None:
        return args, kwargs
    if not with_kwargs:
        return changed if isinstance(changed, tuple) else (changed,), kwargs
    if isinstance(changed, tuple) and len(changed) == 2:
        return changed
    msg = f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
    raise UsageError(msg)


def _registered(hooks: list[Any], entry: Any, *, prepend: bool) -> RemovableHandle:
    handle = RemovableHandle(hooks, entry)
    if prepend:
        hooks.insert(0, hooks.pop())
    return handle
