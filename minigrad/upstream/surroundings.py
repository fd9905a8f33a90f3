"""What a region ran under besides its levels: random streams, autocast, modes, context variables, swapped parameters.

Upstream: recompute_fn in torch/utils/checkpoint.py restores the first two, and a default device.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack, contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import get_device_states, set_device_states

from .private import autocast_settings, device_module, device_type_of, dispatch_modes, function_modes, functional_call, swapped

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import FrameType


class Surroundings:
    """What is around a region at its entry, to be there again when it is run again."""

    def __init__(self, leaves: list[Any], *, preserve_rng_state: bool) -> None:
        self._context = copy_context()
        self._device = device_type_of(*leaves)
        self._autocast = autocast_settings(self._device)
        self._modes = [mode for mode in (*dispatch_modes(), *function_modes()) if not getattr(mode, "of_one_run", False)]
        self.swaps = _swaps()
        self._random = Streams(self._device, leaves) if preserve_rng_state else None

    def again(self, run: Callable[..., Any], *args: Any) -> Any:
        """Run as if it were then; modes that were entered since stay."""
        return self._context.copy().run(self._restored, run, args)

    def _restored(self, run: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        with ExitStack() as exits:
            if self._random is not None:
                exits.enter_context(self._random.replayed())
            device, cpu = self._autocast
            if device is not None:
                exits.enter_context(torch.amp.autocast(self._device, **device))
            exits.enter_context(torch.amp.autocast("cpu", **cpu))
            now = {id(mode) for mode in (*dispatch_modes(), *function_modes())} if self._modes else ()
            for mode in self._modes:
                if id(mode) not in now:
                    exits.enter_context(mode)
            for swap in self.swaps:
                exits.enter_context(swap.again())
            return run(*args)
        msg = "a context around a region suppressed an exception of its second run"
        raise RuntimeError(msg)


class Streams:
    """Where the random streams stood: the host's, and those of the devices that the arguments are on."""

    def __init__(self, device: str, leaves: list[Any]) -> None:
        self._device = device
        self._host = torch.get_rng_state()
        self._devices: tuple[list[int], list[torch.Tensor]] = ([], [])
        if getattr(device_module(device), "_initialized", False):
            self._devices = get_device_states(*leaves)

    @contextmanager
    def replayed(self) -> Iterator[None]:
        """Draw what was drawn from there on; afterwards they stand where they stood."""
        devices, states = self._devices
        with torch.random.fork_rng(devices, device_type=self._device):
            torch.set_rng_state(self._host)
            set_device_states(devices, states, device_type=self._device)
            yield


# ---------------------------------------------------------------- parameters that functional_call has swapped
class Swap:
    """A call of torch.func.functional_call in progress: its module's parameters are others until it returns."""

    __slots__ = ("_members", "_module", "_options")

    def __init__(self, module: torch.nn.Module, members: dict[str, torch.Tensor], **options: bool) -> None:
        self._module = module
        self._members = members
        self._options = options

    def again(self) -> AbstractContextManager[None]:
        """Swap the same in again."""
        return swapped(self._module, dict(self._members), **self._options)


def _swaps() -> list[Swap]:
    """The calls in progress, outermost first, also those that are made again: nothing but Python's own stack knows of them."""
    found: list[Swap] = []
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code is functional_call.__code__:
            named = frame.f_locals
            options = {name: named[name] for name in ("tie_weights", "strict")}
            found.append(Swap(named["module"], named["parameters_and_buffers"], **options))
        elif frame.f_code is Surroundings._restored.__code__:
            found += reversed(frame.f_locals["self"].swaps)
        frame = frame.f_back
    return found[::-1]
