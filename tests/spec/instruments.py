"""What spec tests count with: packs, calls, memory that is alive, levels that do something.

All of it is integers.  Nothing here is measured, and nothing asks the code under test for its opinion.
"""

from __future__ import annotations

import gc
from contextlib import contextmanager
from types import FunctionType
from weakref import WeakSet, ref

import minigrad as mg
from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.devices.simulated import SIM
from minigrad.func import grad
from minigrad.state import Watcher, current, using
from minigrad.tensor import bottom
from minigrad.utils._python_dispatch import TorchDispatchMode
from minigrad.utils.checkpoint import checkpoint


def t(data, **options):
    """A float64 tensor on the device of the tests."""
    return mg.tensor(data, dtype=mg.float64, **options)


def sin_sin(x):
    """The body of the seeds: two ops, and two saves at each level that differentiates it."""
    return mg.sin(mg.sin(x))


def nth(n, f):
    """grad of grad of ... f, n times."""
    for _ in range(n):
        f = grad(f)
    return f


def chain(n):
    """A body of n sines, and of n saves."""
    def body(x):
        for _ in range(n):
            x = mg.sin(x)
        return x
    return body


def forget_streams():
    """Let nothing happen of what the streams of sim were asked for: a program with a mistake may leave the like."""
    for stream in list(SIM.busy):
        stream._work.clear()
        stream.done = stream.asked
    SIM.busy.clear()
    SIM.coming.clear()


class Counted:
    """A function that knows how often it was called."""

    def __init__(self, f):
        self.f = f
        self.calls = 0

    def __call__(self, *args, **kwargs):
        self.calls += 1
        return self.f(*args, **kwargs)


class Packed(saved_tensors_hooks):
    """Identity hooks that keep a list of what they saw, as (shape, bytes)."""

    def __init__(self, **options):
        self.seen, self.unpacked = [], 0
        super().__init__(self._pack, self._unpack, **options)

    def _pack(self, x):
        self.seen.append((tuple(x.shape), x.numel() * x.element_size()))
        return x

    def _unpack(self, x):
        self.unpacked += 1
        return x

    @property
    def count(self):
        return len(self.seen)


class Alive:
    """Weak references to the memory of the tensors it was shown."""

    def __init__(self):
        self.refs = []

    def see(self, x):
        """Remember the memory of `x`, and return `x`."""
        self.refs.append(ref(x.untyped_storage()))
        return x

    def count(self, first=0, last=None):
        """How many of them are alive."""
        return sum(r() is not None for r in self.refs[first:last])


def see_tangent(alive, x):
    """Show `alive` the tangent one storey under a tensor, and return the tensor."""
    alive.see(x.value.note)
    return x


class Recomputations(Watcher):
    """The level that asked, of every recomputation."""

    def __init__(self):
        self.levels = []

    def notice(self, event, owner, subject, detail):
        if event == "recompute":
            self.levels.append(str(owner or "level 0"))


class OpsByLevel(Watcher):
    """The names of the ops that each level processed; those at the bottom under `base`."""

    def __init__(self):
        self.names = {}

    def notice(self, event, owner, subject, detail):
        if event == "op":
            self.names.setdefault(str(owner or "base"), []).append(subject.name)


class Tape(TorchDispatchMode):
    """What reached the base, to be done again with other inputs; a value is known by its memory and its place there."""

    def __init__(self):
        super().__init__()
        self.calls = []
        self.memories = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.calls.append((func, [self.key(x) for x in args], kwargs or {}, self.key(out)))
        return out

    def key(self, x):
        """What a value is known by; what is no tensor is known as it is, and tensors from outside by what they hold now."""
        if isinstance(x, tuple):
            return tuple(self.key(y) for y in x)
        if not isinstance(x, mg.Tensor):
            return x
        store = bottom(x).untyped_storage()
        key = (id(store), bottom(x).data_ptr(), bottom(x).shape, bottom(x).stride(), x.dtype)
        self.memories.setdefault(id(store), store)         # alive, so that no other gets its number
        self.memories.setdefault(key, bottom(x).detach())
        return key

    def replayed(self, out, given):
        """The value of `out` when all is done again with other tensors for some."""
        values = {self.key(x): y for x, y in given.items()}

        def known(key):
            return values.setdefault(key, self.memories[key].clone()) if key in self.memories else key

        for func, args, kwargs, key in self.calls:
            made = func(*map(known, args), **kwargs)
            values.update(zip(key, made, strict=True) if isinstance(made, tuple) else [(key, made)])
        return known(self.key(out))


@contextmanager
def watching(watcher):
    """Within this context `watcher` is told of everything."""
    state = current()
    with using(state._replace(watchers=(watcher, *state.watchers))):
        yield watcher


@contextmanager
def no_garbage():
    """Fail where the block leaves something of minigrad, or memory, that only the cyclic collector can free."""
    gc.freeze()                                            # what is there already is looked at no more
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield
        gc.collect()
        found = sorted({_name(x) for x in gc.garbage if _is_ours(x)})
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.unfreeze()
        gc.enable()
    assert not found, f"only the cyclic collector can free {found}"


def _is_ours(x):
    home = x.__module__ if isinstance(x, FunctionType) else type(x).__module__
    return str(home).startswith("minigrad") or type(x).__name__ == "ndarray"


def _name(x):
    return x.__qualname__ if isinstance(x, FunctionType) else type(x).__name__


class Kept(saved_tensors_hooks):
    """Identity hooks that know which memories they keep, those of numbers (0-d tensors) not counted."""

    def __init__(self):
        self._alive = WeakSet()
        super().__init__(self._pack, lambda packed: packed.x)

    def _pack(self, x):
        packed = _Packed(x)
        self._alive.add(packed)
        return packed

    def count(self):
        """How many distinct ones."""
        return len({packed.x.untyped_storage() for packed in self._alive if packed.x.ndim})


class _Packed:
    __slots__ = ("__weakref__", "x")

    def __init__(self, x):
        self.x = x


def arrays_kept(f, n):
    """The arrays kept at level 0 to differentiate f, its gradient, the gradient of that, ... n times; all stay referenced."""
    x = mg.linspace(0.3, 0.8, 50, dtype=mg.float64).requires_grad_()
    with (kept := Kept()):
        sums, found = [f(x).sum()], [kept.count()]
        for _ in range(n):
            sums.append(mg.autograd.grad(sums[-1], x, create_graph=True)[0].sum())
            found.append(kept.count())
    return found


def first(f):
    """The region around f whose backward saves plainly, as by default."""
    return lambda *args, **kwargs: checkpoint(f, *args, **kwargs)


def every(f):
    """The region around f whose backward is a region at every order."""
    return lambda *args, **kwargs: checkpoint(f, *args, remat="every", **kwargs)
