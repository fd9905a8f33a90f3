"""functional_call: a module's function of other parameters than its own.

The module itself is left alone: which tensor an attribute means is part of the State, for as long as the call lasts, in
this thread, and again when a checkpoint recomputes a part of it. [NOTE captured-tensors]

Source: torch.func.functional_call, torch.func.stack_module_state, torch.func.replace_all_batch_norm_modules_.
"""

# ruff: noqa: SLF001  a module's tables have torch's names

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..ops.joining import stack
from ..state import current, using
from .layers import _BatchNorm

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..tensor import Tensor
    from .module import Module

__all__ = ["functional_call", "replace_all_batch_norm_modules_", "stack_module_state"]


def functional_call(module: Module, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: dict[str, Any] | None = None,
                    *, tie_weights: bool = True, strict: bool = False) -> Any:
    """Return module(*args, **kwargs), computed with the given tensors in place of its parameters and buffers.

    parameter_and_buffer_dicts: tensors by path, in one dict or in several that share no path.  args: a tuple, or the only
    argument.  tie_weights: a tensor given for one path is also used for the others under which the module has the same one.
    strict: all parameters and buffers must be given, and nothing else.  Raises UsageError where they are not, ValueError for
    dicts that contradict one another.  Source: torch.func.functional_call.
    """
    given = _one_dict(parameter_and_buffer_dicts)
    places = _places(module)
    if tie_weights:
        given = _tied(given, places)
    if strict:
        _check(module, given, places)
    swapped = {_place(module, path, places): x for path, x in given.items()}
    state = current()
    inside = dict(swapped)
    try:
        with using(state._replace(swaps=(*state.swaps, inside))):
            return module(*args if isinstance(args, tuple) else () if args is None else (args,), **kwargs or {})
    finally:
        inside.update(swapped)  # what forward assigned may have a graph that holds the State


def _one_dict(dicts: Any) -> dict[str, Tensor]:
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, (tuple, list)):
        msg = f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        raise ValueError(msg)
    if not all(isinstance(d, dict) for d in dicts):
        msg = "Expected all elements of parameter_and_buffer_dicts to be dictionaries"
        raise ValueError(msg)
    paths = [path for d in dicts for path in d]
    repeated = sorted({path for path in paths if paths.count(path) > 1})
    if repeated:
        msg = f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous"
        raise ValueError(msg)
    return {path: x for d in dicts for path, x in d.items()}


def _places(module: Module) -> dict[str, tuple[Module, str, Tensor | None]]:
    """By path: the module that owns a parameter or buffer, its name there, and what it means now."""
    return {f"{path}.{name}" if path else name: (owner, name, owner._meant(name, own))
            for path, owner in module.named_modules(remove_duplicate=False)
            for name, own in [*owner._parameters.items(), *owner._buffers.items()]}


def _tied(given: dict[str, Tensor], places: dict[str, Any]) -> dict[str, Tensor]:
    paths: dict[Tensor, list[str]] = {}
    for path, (_, _, x) in places.items():
        if x is not None:
            paths.setdefault(x, []).append(path)
    full = dict(given)
    for tied in paths.values():
        values = {given[path] for path in tied if path in given}
        if len(values) > 1:
            msg = (f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                   "tie_weights=False")
            raise ValueError(msg)
        full.update(dict.fromkeys(tied, *values) if values else {})
    return full


def _check(module: Module, given: dict[str, Tensor], places: dict[str, Any]) -> None:
    unexpected = [path for path in given if path not in places]
    missing = [path for path, (_, _, x) in places.items() if x is not None and path not in given]
    errors = [f"{what} key(s): {', '.join(map(repr, paths))}." for what, paths in (
        ("Unexpected", unexpected), ("Missing", missing)) if paths]
    if errors:
        raise UsageError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(errors))


def _place(module: Module, path: str, places: dict[str, Any]) -> tuple[Module, str]:
    if path in places:
        return places[path][:2]  # type: ignore[no-any-return]
    prefix, _, name = path.rpartition(".")
    return module.get_submodule(prefix), name


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one class, each stacked in a new first dimension: leaves of their own.

    Raises UsageError where the modules differ in class, training flag or requires_grad.  Source: torch.func.stack_module_state.
    """
    models = list(models)
    if not models:
        msg = "stack_module_state: Expected at least one model, got 0."
        raise UsageError(msg)
    if len({model.training for model in models}) > 1:
        msg = "stack_module_state: Expected all models to have the same training/eval mode."
        raise UsageError(msg)
    if len({type(model) for model in models}) > 1:
        msg = "stack_module_state: Expected all models to be of the same class."
        raise UsageError(msg)
    return (_stacked([dict(model.named_parameters()) for model in models]),
            _stacked([dict(model.named_buffers()) for model in models]))


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    found = {}
    for path in states[0]:
        tensors = [state[path] for state in states]
        if len({x.requires_grad for x in tensors}) > 1:
            msg = f"Expected {path} from each model to have the same .requires_grad"
            raise UsageError(msg)
        found[path] = stack(tensors).detach().requires_grad_(tensors[0].requires_grad)
    return found


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Have the batch norms in a module, itself too, forget what they saw: each call goes by its batch alone.

    Under vmap all samples would write to one running mean.  Source: torch.func.replace_all_batch_norm_modules_.
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            module.running_mean = module.running_var = module.num_batches_tracked = None
            module.track_running_stats = False
    return root
