"""Streams of random numbers whose whole state is two ints.

A stream is (seed, offset): its next draw takes what a counter-based bit generator gives for the two, and adds one to the
offset.  Capturing, restoring and replaying a stream is reading and writing two ints. [NOTE random-streams]

Upstream: torch.Generator; a (Philox seed, offset) pair is also the state of CUDAGeneratorImpl.
"""

from __future__ import annotations

from _thread import allocate_lock
from contextlib import contextmanager
from os import urandom
from typing import TYPE_CHECKING, Any

from .backend import CPU, Device
from .backend import device as find_device
from .devices.simulated import SIM
from .dtypes import uint8
from .errors import UsageError
from .ops.creation import tensor
from .state import current, tell, using

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .tensor import Tensor

DEFAULT_SEED = 67280421310721
_BYTES = 8
_LOCK = allocate_lock()


class Generator:
    """A stream of random numbers of a device.  Source: torch.Generator."""

    __slots__ = ("__weakref__", "device", "place")

    place: tuple[int, int]
    """(seed, offset), of this very generator; whoever asks for its state is answered by the copy that stands for it."""

    def __init__(self, device: str | Device = CPU) -> None:
        self.device = find_device(device)
        self.place = DEFAULT_SEED, 0

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream of a seed, 0 <= seed < 2**64 (a negative one counts from 2**64); returns the generator."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            msg = "Overflow when unpacking long long"
            raise ValueError(msg)
        _stream(self).place = seed % (1 << 64), 0
        return self

    def seed(self) -> int:
        """Start a stream that nobody can foretell, and return its seed."""
        seed = int.from_bytes(urandom(_BYTES), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """Return the seed of the stream."""
        return _stream(self).place[0]

    def get_state(self) -> Tensor:
        """Return the two ints, as a tensor of 16 bytes."""
        return tensor([byte for n in _stream(self).place for byte in n.to_bytes(_BYTES, "little")], dtype=uint8, device=CPU)

    def set_state(self, new_state: Tensor) -> Generator:
        """Go on from a state that get_state returned; returns the generator."""
        if new_state.dtype is not uint8 or new_state.shape != (2 * _BYTES,):
            msg = (f"Expected a Generator state of {2 * _BYTES} bytes (dtype uint8), but found {new_state.dtype} of shape "
                   f"{list(new_state.shape)}. Pass what get_state() returned.")
            raise UsageError(msg)
        data = bytes(new_state.tolist())
        _stream(self).place = int.from_bytes(data[:_BYTES], "little"), int.from_bytes(data[_BYTES:], "little")
        return self

    def clone_state(self) -> Generator:
        """Return another generator at the same place of the same stream."""
        return self.standing_at(_stream(self).place)

    def standing_at(self, place: tuple[int, int]) -> Generator:
        """Return a generator of the same device at (seed, offset), which is what watchers are told of a draw."""
        copy = Generator(self.device)
        copy.place = place
        return copy

    def next_draw(self) -> Any:
        """Return a numpy.random.Generator for one draw, and step on."""
        stream = _stream(self)
        with _LOCK:
            seed, offset = stream.place
            stream.place = seed, offset + 1
        random = CPU.xp.random  # numpy imports it when it is first asked for
        return random.Generator(random.Philox(key=seed, counter=offset << 64))

    def __repr__(self) -> str:
        return f"<minigrad.Generator of {self.device}>"


def _stream(generator: Generator) -> Generator:
    """The private copy that stands for a generator here, if one does; whoever watches is told where it stands.

    Not only of draws: a region that sets the stream and puts it back must also find it, when it runs again, as it was.
    """
    state, stream = current(), stream_of(generator)
    for region in state.regions:
        region.drawn(generator, stream.place)
    if state.watchers:
        tell(state.watchers, "draw", None, generator, stream.place)
    return stream


def stream_of(generator: Generator) -> Generator:
    """Return the private copy that stands for a generator here, or the generator itself where none does."""
    return next((copy for original, copy in current().streams if original is generator), generator)


# ---------------------------------------------------------------- one generator for each device
default_generator = Generator(CPU)
_DEFAULTS: dict[Device, Generator] = {CPU: default_generator, SIM: Generator(SIM)}


def generator_of(device: Device) -> Generator:
    """Return the generator that draws on a device take their numbers from where they name none."""
    found = _DEFAULTS.get(device)
    if found is None:
        found = _DEFAULTS.setdefault(device, Generator(device).standing_at((default_generator.place[0], 0)))
    return found


def manual_seed(seed: int) -> Generator:
    """Seed the default generators of all devices; returns that of the cpu.  Source: torch.manual_seed."""
    for generator in tuple(_DEFAULTS.values()):
        generator.manual_seed(seed)
    return default_generator


def seed() -> int:
    """Seed the default generators with a number that nobody can foretell, and return it.  Source: torch.seed."""
    return manual_seed(int.from_bytes(urandom(_BYTES), "little")).initial_seed()


def initial_seed() -> int:
    """Return the seed of the cpu's default generator.  Source: torch.initial_seed."""
    return default_generator.initial_seed()


def get_rng_state(device: str | Device = CPU) -> Tensor:
    """Return the state of a device's default generator.  Source: torch.get_rng_state."""
    return generator_of(find_device(device)).get_state()


def set_rng_state(new_state: Tensor, device: str | Device = CPU) -> None:
    """Set the state of a device's default generator.  Source: torch.set_rng_state."""
    generator_of(find_device(device)).set_state(new_state)


@contextmanager
def fork_rng(devices: Sequence[str | Device | int] | None = None, enabled: bool = True,
             device_type: str = "cuda") -> Iterator[None]:
    """Within this context the default generators of the cpu and of `devices` (all, without) are private copies.

    Whatever is drawn from them or seeded is forgotten at its end.  An int names a device of `device_type`.
    Source: torch.random.fork_rng.
    """
    if not enabled:
        yield
        return
    named = _DEFAULTS if devices is None else {
        CPU, *(find_device(f"{device_type}:{d}" if isinstance(d, int) else d) for d in devices)}
    copies = tuple([(original, original.clone_state()) for original in map(generator_of, named)])
    state = current()
    with using(state._replace(streams=(*copies, *state.streams))):
        yield
