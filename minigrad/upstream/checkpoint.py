"""checkpoint, under every transform of torch.func."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import torch
import torch.utils.checkpoint
from torch.utils.checkpoint import noop_context_fn

from .captured import bookkeeping
from .frames import Frame, Settings
from .private import debug_contexts, metadata, untraced
from .remat import every

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

_REMAT: ContextVar[str | None] = ContextVar("remat", default=None)


@contextmanager
def set_checkpoint_remat(remat: str) -> Iterator[None]:
    """Within this context every checkpoint has remat="first", or "every", whatever its own remat says.

    As torch.utils.checkpoint.set_checkpoint_early_stop for its option, but a second run is in the context of its forward.
    """
    token = _REMAT.set(remat)
    try:
        yield
    finally:
        _REMAT.reset(token)


@untraced
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]] = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    preserve_rng_state: bool = True,
    remat: str = "first",
    **kwargs: Any,
) -> Any:
    """Call function, keep nothing of what it saves, and run it again where a backward needs that: at any level of torch.func.

    Args:
        function: what to run; it must do the same when it runs again
        *args: its arguments; tensors in any pytree of them are saved through the hooks outside, and their versions are checked
        use_reentrant: False or None; with True, torch's own checkpoint is called
        context_fn: returns the contexts of the forward and of the recomputation
        determinism_check: "default" compares shape, dtype and device of what is recomputed, "none" nothing
        debug: log the ops of both runs, and print them in a CheckpointError
        early_stop: stop a recomputation as soon as all that is needed is there
        preserve_rng_state: draw the same random numbers when it runs again
        remat: "first" keeps what the backward of the region saves, "every" makes that backward a region too: of order k the
            inputs and k cotangents are kept, and the function has run k + 1 times, up to 2 ** k where its value or its
            gradient goes on to other ops: once for each node that stands for the region
        **kwargs: more arguments, treated alike

    Raises:
        CheckpointError: the recomputation did something else than the forward
        RuntimeError: an argument was written to since

    Source: torch.utils.checkpoint.checkpoint

    """
    remat = _REMAT.get() or remat
    if remat not in ("first", "every"):
        msg = f"remat must be 'first' or 'every', found {remat!r}."
        raise ValueError(msg)
    if use_reentrant:
        return torch.utils.checkpoint.checkpoint(
            function, *args, use_reentrant=True, context_fn=context_fn, determinism_check=determinism_check, debug=debug,
            early_stop=early_stop, preserve_rng_state=preserve_rng_state, **kwargs)
    if not torch.is_grad_enabled():
        return function(*args, **kwargs)
    here, settings = _settings(
        context_fn, determinism_check, debug=debug, early_stop=early_stop, preserve_rng_state=preserve_rng_state)
    with bookkeeping():
        frame = Frame(function, args, kwargs, settings)
    return (every if remat == "every" else Frame.run)(frame, here, args, kwargs)


def _settings(context_fn: Any, determinism_check: str, *, debug: bool, early_stop: bool,
              preserve_rng_state: bool) -> tuple[AbstractContextManager[Any], Settings]:
    """The context of the forward, and how to run the region again."""
    if determinism_check not in metadata:
        msg = f"determinism_check should be one of {list(metadata)}, but got {determinism_check}"
        raise ValueError(msg)
    explain = None
    if _else(torch.utils.checkpoint._checkpoint_debug_enabled, debug):
        if context_fn is not noop_context_fn:
            msg = "debug=True is incompatible with non-default context_fn"
            raise ValueError(msg)
        context_fn, explain = debug_contexts()
    here, again = (nullcontext(), None) if context_fn is noop_context_fn else context_fn()
    stop = _else(torch.utils.checkpoint._enable_checkpoint_early_stop, early_stop)
    return here, Settings(again=again, early_stop=stop, explain=explain, look=metadata[determinism_check],
                          preserve_rng_state=preserve_rng_state)


def _else(everywhere: bool | None, here: bool) -> bool:
    return here if everywhere is None else everywhere
