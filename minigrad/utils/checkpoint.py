"""checkpoint: keep a region's inputs instead of what it saves, and run it again when a backward asks.

Here is the public interface.  How it works is in minigrad/regions/: recompute.py, remat.py for higher orders, and reentrant.py.

Source: torch.utils.checkpoint.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError, Refusal, one_of, refused
from ..regions import policies as checkpoint_policies
from ..regions.policies import CheckpointPolicy, SelectiveCheckpointContext, checkpoint_name
from ..regions.recompute import Frame, records
from ..regions.reentrant import CheckpointFunction, check_backward_validity, detach_variable, reentrant
from ..regions.region import NOTHING, Region
from ..regions.remat import every
from ..regions.selective import create_selective_checkpoint_contexts, knowing_arguments
from ..state import current
from .checkpoint_contexts import GraphExecGroup, set_checkpoint_debug_enabled, set_checkpoint_early_stop, set_checkpoint_remat

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["CheckpointError", "CheckpointFunction", "CheckpointPolicy", "GraphExecGroup", "SelectiveCheckpointContext",
           "check_backward_validity", "checkpoint", "checkpoint_name", "checkpoint_policies", "checkpoint_sequential",
           "create_selective_checkpoint_contexts", "detach_variable", "is_recomputing", "noop_context_fn",
           "set_checkpoint_debug_enabled", "set_checkpoint_early_stop", "set_checkpoint_remat"]


def noop_context_fn() -> tuple[Any, Any]:
    """Return two contexts that do nothing, for `context_fn`.  Source: torch.utils.checkpoint.noop_context_fn."""
    return NOTHING, NOTHING


def checkpoint(function: Callable[..., Any] | None = None, *args: Any, use_reentrant: bool = False,
               context_fn: Any = noop_context_fn, determinism_check: str = "default", debug: bool = False,
               early_stop: bool = True, preserve_rng_state: bool = True, remat: str = "first", **kwargs: Any) -> Any:
    """Return function(*args, **kwargs), saving the inputs only; a backward runs the function again.

    args, kwargs: any pytrees; tensors in them are saved (through the hooks in force), captured tensors are reached again
    through the closure.  Without a function, returns a decorator.
    determinism_check: "default" compares number, shape, dtype and device of what is saved, "values" checksums too and names the
    first op that differs, "none" nothing; debug: each recomputation, and its errors, show the ops of both runs;
    context_fn: returns two contexts, entered around the forward and around each recomputation; with those of
    create_selective_checkpoint_contexts a policy says what is kept. [NOTE selective-policies]
    early_stop: stop as soon as all that is needed is there; use_reentrant: torch's first variant, with its limits.
    remat: "first" keeps what the region's backward saves, "every" makes that backward a region too: at order k the inputs
    and k cotangents are kept, and the function has run k + 1 times, oftener where a backward comes to other regions before it
    has done with this one. [NOTE remat-every]
    Raises CheckpointError, in the backward, where the second run differs or reads what was modified meanwhile.
    Source: torch.utils.checkpoint.checkpoint.
    """
    if function is None:
        options = {"use_reentrant": use_reentrant, "context_fn": context_fn, "determinism_check": determinism_check,
                   "debug": debug, "early_stop": early_stop, "preserve_rng_state": preserve_rng_state, "remat": remat}

        def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
            @functools.wraps(f)
            def checkpointed(*args: Any, **kwargs: Any) -> Any:
                return checkpoint(f, *args, **options | kwargs)
            return checkpointed
        return decorate
    one_of("determinism_check", determinism_check, "default", "values", "none")
    one_of("remat", remat, "first", "every")
    if use_reentrant:
        if remat != "first":
            msg = (f"checkpoint(remat={remat!r}) is only supported when use_reentrant=False. With use_reentrant=True there are "
                   "no derivatives of a higher order, which it is for. [NOTE reentrant]")
            raise refused(msg)
        return reentrant(function, args, kwargs, preserve_rng_state=preserve_rng_state,
                         plain=context_fn is noop_context_fn and not debug)
    state = current()
    remat = state.remat or remat
    forward, again = context_fn()
    if not records(state):
        with forward:
            return function(*args, **kwargs)
    if state.hooks_disabled is not None:
        raise Refusal(state.hooks_disabled)
    region = Region(preserve_rng_state=preserve_rng_state, around=again)
    run = function if context_fn is noop_context_fn else knowing_arguments(function)
    frame = Frame(run, args, kwargs, state, region, determinism_check=determinism_check, edges=remat == "every",
                  debug=debug if state.checkpoint_debug is None else state.checkpoint_debug,
                  early_stop=early_stop if state.early_stop is None else state.early_stop)
    return (every if remat == "every" else Frame.run)(frame, args, kwargs, forward)


def is_recomputing() -> bool:
    """Whether the program that asks runs for a second time, inside a checkpoint's recomputation."""
    return current().recomputing is not None


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool = False, **kwargs: Any) -> Any:  # noqa: A002
    """Return the chain of functions applied to `input`, in `segments` checkpointed pieces; the last runs plainly.

    functions: callables, each taking what the one before returned.  Raises ValueError where `segments` is not between 1 and
    their number.  Source: torch.utils.checkpoint.checkpoint_sequential.
    """
    chain: Sequence[Any] = list(functions)
    if not 1 <= segments <= len(chain):
        msg = f"checkpoint_sequential: segments must be between 1 and the number of functions ({len(chain)}), found {segments}."
        raise ValueError(msg)
    size = len(chain) // segments

    def run(part: Sequence[Any]) -> Callable[[Any], Any]:
        return lambda x: functools.reduce(lambda y, f: f(y), part, x)

    for at in range(0, size * (segments - 1), size):
        input = checkpoint(run(chain[at:at + size]), input, use_reentrant=use_reentrant, **kwargs)  # noqa: A001
    return run(chain[size * (segments - 1):])(input)
