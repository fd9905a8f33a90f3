"""Every private name of torch that the port needs, and what for.

The other modules import these names from here and nowhere else, so a torch that lacks one says so at import, by name.
"""

from __future__ import annotations

import warnings
from functools import reduce
from typing import TYPE_CHECKING, Any

import torch
import torch._functorch.autograd_function
import torch._functorch.eager_transforms
import torch._functorch.pyfunctorch
import torch.nn.utils.stateless
import torch.overrides
import torch.utils._python_dispatch
import torch.utils._pytree
import torch.utils.checkpoint

TESTED = ("2.12", "2.13", "2.14")
"""Versions whose private names mean what the table says: tests/upstream passes, on 2.13 at every change, on others by hand."""

TABLE = {
    # ------------------------------------------------------------ the stack of transforms
    "get_stack": ("_functorch.pyfunctorch.retrieve_all_functorch_interpreters", "which transforms are entered, bottom first"),
    "current_level": ("_C._functorch.maybe_current_level", "whose graph saves: the top of the stack inside a pack hook"),
    "pop_layer": ("_C._functorch.pop_dynamic_layer_stack", "to take a transform off for a while: it stays alive"),
    "push_layer": ("_C._functorch.push_dynamic_layer_stack", "to put it back"),
    "enter_grad": ("_C._functorch._grad_increment_nesting", "to enter a fresh grad level for a recomputation"),
    "exit_grad": ("_C._functorch._grad_decrement_nesting", "to leave it"),
    "enter_vmap": ("_C._functorch._vmap_increment_nesting", "to enter a fresh vmap level, of the same batch size"),
    "exit_vmap": ("_C._functorch._vmap_decrement_nesting", "to leave it"),
    "enter_jvp": ("_functorch.eager_transforms.enter_jvp_nesting", "to enter a fresh jvp level, counted as jvp counts"),
    "exit_jvp": ("_functorch.eager_transforms.exit_jvp_nesting", "to leave it"),
    "enter_functionalize": ("_C._functorch._func_increment_nesting", "to enter a fresh functionalize level"),
    "exit_functionalize": ("_C._functorch._func_decrement_nesting", "to leave it"),
    # ------------------------------------------------------------ wrapped tensors
    "is_wrapped": ("_C._functorch.is_functorch_wrapped_tensor", "whether a tensor belongs to a transform"),
    "is_batched": ("_C._functorch.is_batchedtensor", "whether that is vmap"),
    "is_functional": ("_C._functorch.is_functionaltensor", "whether that is functionalize; else it is grad or jvp"),
    "is_dead": ("_C._functorch.is_dead_tensor_wrapper", "whether its level has exited, so that it means its value"),
    "level_of": ("_C._functorch.maybe_get_level", "the number of its level"),
    "bdim_of": ("_C._functorch.maybe_get_bdim", "its batch dimension"),
    "unwrapped": ("_C._functorch.get_unwrapped", "the tensor one storey down, with its own edges"),
    "wrap_for_grad": ("_C._functorch._wrap_for_grad", "to wrap for a grad or jvp level"),
    "wrap_for_vmap": ("_C._functorch._add_batch_dim", "to wrap for a vmap level"),
    "wrap_functional": ("_C._functorch._wrap_functional_tensor", "to wrap for a functionalize level"),
    "unwrap_functional": ("_C._functorch._unwrap_functional_tensor", "the value of a functional tensor"),
    "sync": ("_sync", "to bring that value up to date first"),
    # ------------------------------------------------------------ saved tensors
    "push_hooks": ("_C._autograd._push_saved_tensors_default_hooks", "what torch's own saved_tensors_hooks calls"),
    "pop_hooks": ("_C._autograd._pop_saved_tensors_default_hooks", "the same"),
    "top_hooks": ("_C._autograd._top_saved_tensors_default_hooks", "the pair outside of ours"),
    "ban_hooks": ("_C._autograd._saved_tensors_hooks_disable", "to keep the ban of torch.func for every hook but ours"),
    "lift_ban": ("_C._autograd._saved_tensors_hooks_enable", "to push ours"),
    "ban_message": ("_C._autograd._saved_tensors_hooks_get_disabled_error_message", "whose ban it is"),
    "saved_tensor": ("_C._autograd._make_saved_tensor", "holds the edge of one level without the data: C++'s SavedVariable"),
    "accumulator": ("autograd.graph._get_grad_fn_or_grad_acc", "to keep the node of a leaf, to which its edge is weak"),
    "version": ("Tensor._version", "the version check of plain saving; read where it is used"),
    "hooks_of": ("Tensor._backward_hooks.__get__", "to take off what a second run put on the tensors that stand for others"),
    "graph_task": ("_C._current_graph_task_id", "which backward run asks"),
    "graph_group": ("_C._get_graph_exec_group", "the GraphExecGroup whose runs count as one"),
    "engine": ("autograd.Variable._execution_engine", "queue_callback: to drop at its end what a run did not use"),
    # ------------------------------------------------------------ remat="every"
    "single_level": ("_functorch.autograd_function.enable_single_level_autograd_function", "to make a node of one level"),
    "single_level_function": ("autograd.function._SingleLevelFunction", "its class"),
    "sequence_number": ("_C._autograd._get_sequence_nr", "the age of nodes tells what is a region's own"),
    # ------------------------------------------------------------ dispatch state and modes
    "DispatchKey": ("_C.DispatchKey", "the keys that functorch includes and excludes"),
    "DispatchKeySet": ("_C.DispatchKeySet", "sets of them"),
    "included_keys": ("_C._dispatch_tls_local_include_set", "the state inside a pack hook"),
    "excluded_keys": ("_C._dispatch_tls_local_exclude_set", "the same"),
    "force_keys": ("_C._ForceDispatchKeyGuard", "to run an op below the level whose kernel called the hook"),
    "forward_mode_context": ("autograd.forward_ad._set_fwd_grad_enabled", "to see the tangents of tensors"),
    "is_forward_mode": ("_C._is_fwd_grad_enabled", "whether forward-mode derivatives are on"),
    "set_forward_mode": ("_C._set_fwd_grad_enabled", "to turn them on as the region had them"),
    "dual_level": ("autograd.forward_ad._current_level", "whether a dual level is entered; read where it is used"),
    "function_modes": ("overrides._get_current_function_mode_stack", "modes that the forward ran under"),
    "dispatch_modes": ("utils._python_dispatch._get_current_dispatch_mode_stack", "the same"),
    "is_zerotensor": ("_is_zerotensor", "whether a tensor has no memory to copy"),
    "functional_call": ("nn.utils.stateless._functional_call", "whose calls in progress have swapped a module's parameters"),
    "swapped": ("nn.utils.stateless._reparametrize_module", "to swap them again"),
    # ------------------------------------------------------------ containers
    "tree_flatten": ("utils._pytree.tree_flatten", "tensors in any container of arguments"),
    "tree_unflatten": ("utils._pytree.tree_unflatten", "the same"),
    "tree_map_only": ("utils._pytree.tree_map_only", "the same"),
    # ------------------------------------------------------------ torch.utils.checkpoint
    "metadata": ("utils.checkpoint._allowed_determinism_checks_to_fns", "what determinism_check compares"),
    "debug_contexts": ("utils.checkpoint._get_debug_context_and_cb", "what debug=True logs and prints"),
    "debug_everywhere": ("utils.checkpoint._checkpoint_debug_enabled", "set_checkpoint_debug_enabled; read where it is used"),
    "stop_everywhere": ("utils.checkpoint._enable_checkpoint_early_stop", "set_checkpoint_early_stop; read where it is used"),
    "device_type_of": ("utils.checkpoint._infer_device_type", "which device's random stream and autocast to replay"),
    "device_module": ("utils.checkpoint._get_device_module", "the same"),
    "untraced": ("_disable_dynamo", "torch.compile runs checkpoint as it is, as it does torch's"),
    "autocast_settings": ("utils.checkpoint._get_autocast_kwargs", "the same"),
}
"""Our name: (its path below torch, what for)."""


def find(path: str) -> Any:
    """What stands at a path below torch; AttributeError where there is nothing."""
    return reduce(getattr, path.split("."), torch)


def missing() -> list[str]:
    """The names of the table that this torch has not, each with what it is for."""
    lines = []
    for path, purpose in TABLE.values():
        try:
            find(path)
        except AttributeError:
            lines.append(f"torch.{path} ({purpose})")
    return lines


def check() -> None:
    """Say what is missing, or that nobody has tested this version."""
    here = f"minigrad.upstream is tested with torch {', '.join(TESTED)}; torch {torch.__version__}"
    if absent := missing():
        msg = f"{here} lacks {'; '.join(absent)}"
        raise ImportError(msg)
    if torch.__version__.rpartition(".")[0] not in TESTED:
        warnings.warn(f"{here} has every private name that it needs, but they may mean another thing there: run tests/upstream",
                      UserWarning, stacklevel=2)


check()
globals().update({name: find(path) for name, (path, _) in TABLE.items()})

if TYPE_CHECKING:
    def __getattr__(name: str) -> Any: ...
