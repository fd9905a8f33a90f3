"""remat="every": the backward of a region is itself a region, so at every order only inputs and cotangents are kept.

    forward    the region runs as every region does; then its outputs are cut off from the graph that they hang on, at each
               level: one node stands for it, and saves the region's inputs: arguments and what was captured
    backward   B(inputs, cotangents): run the region again on these, and walk down the graph of that one level; B is a region
               of the levels that record while it runs

B is a function of what it is given, so the levels below find their edges in its inputs. Where the level is still there, the
region runs at it, on aliases of its inputs, where the walk ends; where it has exited, at a fresh one.
What cannot be cut off is left as it is, and recomputed as remat="first" does: an edge that leads to a tensor which was not
seen to come in, an intermediate whose gradient is to be retained, an input that was written to, a level of functionalize,
tangents of a dual level at level 0; and a backward that another thread runs, as nodes have ages within one thread.

Upstream: a higher-order operator for checkpoint, whose rule for grad calls that operator again, as JAX's remat does.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from threading import get_ident
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.checkpoint import CheckpointError

from .captured import Again, bookkeeping
from .effects import rerunning
from .frames import Frame, Holding, Settings, enclosing
from .hooks import INPUTS, Entry, Hooks
from .layers import one_down, rewrapped
from .levels import depth, standing, tangent_of
from .private import (
    forward_mode_context,
    get_stack,
    is_dead,
    is_wrapped,
    level_of,
    single_level,
    single_level_function,
    tree_flatten,
    tree_map_only,
    tree_unflatten,
    wrap_for_grad,
)
from .reads import Reads, above, edge, is_at, leads_outside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from contextlib import AbstractContextManager

    from .reads import Build


def every(frame: Frame, here: AbstractContextManager[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run a region for the first time, and cut its outputs off."""
    for outside in enclosing():
        outside.tells_apart = True
    with bookkeeping():
        reads = Reads(_tensors((args, kwargs)), frame.depth)
    with reads:
        out = frame.run(here, args, kwargs)
    cut = Cut()
    with bookkeeping(), Entry(Nobody()):  # which lifts the ban of torch.func
        if reads.awaited or not reads.unchanged or _is_functional(frame.depth):
            return out
        for number in range(frame.depth + 1):
            cut.at(Region(frame, (args, kwargs), number, reads), out, reads)
        return tree_map_only(torch.Tensor, cut.rebuilt, out)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [x for x in tree_flatten(tree)[0] if isinstance(x, torch.Tensor)]


def _is_functional(depth: int) -> bool:
    return depth > 0 and any(i.key().name == "Functionalize" for i in get_stack())


# ---------------------------------------------------------------- forward
class Cut:
    """What takes the place of the outputs of a region, and of the tensors that they are made of."""

    def __init__(self) -> None:
        self._new: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

    def at(self, region: Region, out: Any, reads: Reads) -> None:
        """Let one node stand for the graph of a level between the outputs and the inputs."""
        number = region.number
        old, inputs = region.ends(out, reads), region.takes(reads.inputs)
        differentiated = [x for x, flag in zip(inputs, region.flags, strict=True) if flag]
        known = {edge(x, number) for x in differentiated}
        if not known or leads_outside([x.grad_fn for x in old], known, reads) or _dual(old, number):
            return
        with standing(number), forward_mode_context(mode=False), single_level():
            values = [wrap_for_grad(self.rebuilt(one_down(x)), number) if number else x.detach() for x in old]
            new = RegionNode.apply(region, values, inputs, *differentiated)
        self._new.update({id(x): (x, y) for x, y in zip(old, new, strict=True)})

    def rebuilt(self, x: torch.Tensor) -> torch.Tensor:
        """A tensor of what took the place of its parts; the tensor itself, where that is nothing new."""
        if id(x) in self._new:
            return self._new[id(x)][1]
        if not is_wrapped(x):
            return x
        inner = one_down(x)
        new = self.rebuilt(inner)
        if is_dead(x):
            return new
        tangent = tangent_of(x, level_of(x))
        moved = None if tangent is None else self.rebuilt(tangent)
        return x if new is inner and moved is tangent else rewrapped(x, new, moved)


def _dual(xs: list[torch.Tensor], number: int) -> bool:
    """Whether they carry tangents of a dual level, whose graphs hang on the same level."""
    return any(tangent_of(x, number) is not None for x in xs)


class Region:
    """How to run a region again for the graph of one level; of tensors, it keeps none."""

    flags: list[bool]
    """Which inputs the level differentiates."""
    _builds: list[Build]
    _foreign: list[bool]
    _numbers: list[int]
    _places: list[int]
    _looks: list[Any]

    def __init__(self, frame: Frame, tree: Any, number: int, reads: Reads) -> None:
        self.number = number
        self.settings, self.thread = frame.settings, get_ident()
        self._function, self._around, self._stack, self._hooks = frame.function, frame.around, frame.stack, frame.hooks
        leaves, self._spec = tree_flatten(tree)
        self._leaves = [(reads.places[id(x)], None) if isinstance(x, torch.Tensor) else (None, x) for x in leaves]
        self._sources = reads.sources

    def takes(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """What the inputs are at this level, each once."""
        parts: list[torch.Tensor] = []
        self._builds = [above(x, self.number, parts) for x in inputs]
        once = {id(x): x for x in parts}
        self._numbers = [list(once).index(id(x)) for x in parts]
        self._foreign = [not is_at(x, self.number) for x in once.values()]
        self.flags = [is_at(x, self.number) and x.requires_grad for x in once.values()]
        return list(once.values())

    def ends(self, out: Any, reads: Reads) -> list[torch.Tensor]:
        """What the outputs are at this level, those that the region gave a history, each once."""
        ends = {id(x): (place, x) for place, x in enumerate(self._parts(out))
                if is_at(x, self.number) and x.grad_fn is not None and reads.is_young(x.grad_fn)}
        self._places = [place for place, _ in ends.values()]
        self._looks = [self.settings.look(x) for _, x in ends.values()]
        return [x for _, x in ends.values()]

    def _parts(self, out: Any) -> list[torch.Tensor]:
        found: list[torch.Tensor] = []
        for x in _tensors(out):
            above(x, self.number, found)
        return found

    def lifted(self, inputs: list[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs as a level can save them: wrapped for it, those of levels below too."""
        return [wrap_for_grad(x, self.number) if foreign else x for x, foreign in zip(inputs, self._foreign, strict=True)]

    # ------------------------------------------------------------ backward
    def lowered(self, saved: Iterable[torch.Tensor]) -> list[torch.Tensor]:
        """The inputs again, as what they mean where levels have exited."""
        return [_living(one_down(x) if foreign else x) for x, foreign in zip(saved, self._foreign, strict=True)]

    def alive(self) -> int:
        """How many levels are as they were, up to this one."""
        levels = self._stack.levels[:min(self.number, depth())]
        return next((i for i, one in enumerate(levels) if not one.alive), len(levels))

    def again(self, parts: list[torch.Tensor], floor: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        """Run it with new inputs, the lowest levels being what they are: the outputs at this level, and the inputs there."""
        with standing(floor):
            found: tuple[list[torch.Tensor], list[torch.Tensor]] = self._around.again(self._again, parts, floor)
            return found

    def _again(self, parts: list[torch.Tensor], floor: int) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        with ExitStack() as exits:
            exits.enter_context(self._stack.entered(floor))
            again = Again()
            exits.enter_context(rerunning(self._hooks, again.fresh.values))
            with bookkeeping():
                inputs = [self._input(x, floor) if flag else x for x, flag in zip(parts, self.flags, strict=True)]
                given = iter([inputs[nr] for nr in self._numbers])
                new = [build(given) for build in self._builds]
            exits.enter_context(again)
            for source, x in zip(self._sources, new, strict=True):
                if (old := source()) is not None:
                    again.fresh[old] = x
                again.fresh[x] = x
            exits.enter_context(Entry(Own(self.number)))
            exits.enter_context(self.settings.again or nullcontext())
            leaves = [x if place is None else new[place] for place, x in self._leaves]
            args, kwargs = tree_unflatten(leaves, self._spec)
            return self._checked(self._function(*args, **kwargs)), inputs
        msg = "torch.utils.checkpoint: the context of the recomputation suppressed an exception"
        raise RuntimeError(msg)

    def _input(self, x: torch.Tensor, floor: int) -> torch.Tensor:
        """Where the walk ends: an alias at a level that is there, a leaf of a fresh one."""
        with standing(self.number):
            if self.number == floor:
                return x.view_as(x)
            x = wrap_for_grad(x, self.number)
            x.requires_grad = True
            return x

    def _checked(self, out: Any) -> list[torch.Tensor]:
        parts = self._parts(out)
        ends = [parts[place] for place in self._places if place < len(parts)]
        now = [self.settings.look(x) if x.requires_grad else "no history" for x in ends]
        if now != self._looks:
            raise CheckpointError(_DIFFERENT.format(number=self.number, was=self._looks, now=now))
        return ends


class Own(Holding):
    """While a region runs again for the graph of a level: that level keeps its saves for the walk, as do those above."""

    def __init__(self, number: int) -> None:
        self._number = number

    def manages(self, level: int) -> bool:
        return level == INPUTS or level >= self._number


class Nobody(Hooks):
    """Manages nothing: what is saved goes to the hooks outside."""

    def manages(self, level: int) -> bool:
        return False


# ---------------------------------------------------------------- backward
class RegionNode(single_level_function):  # type: ignore[misc]
    """A region in the graph of one level: its edges lead to those of the region's inputs that the level differentiates."""

    @staticmethod
    def forward(ctx: Any, region: Region, values: list[torch.Tensor], inputs: list[torch.Tensor],
                *differentiated: torch.Tensor) -> tuple[torch.Tensor, ...]:
        ctx.region = region
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*region.lifted(inputs))
        return tuple(values)

    @staticmethod
    def backward(ctx: Any, *cts: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        given = [i for i, ct in enumerate(cts) if ct is not None]
        wanted = [i for i, need in enumerate(ctx.needs_input_grad[3:]) if need]
        walk = Walk(ctx.region, given, wanted)
        found = _as_region(ctx.region, walk, ctx.region.lowered(ctx.saved_tensors), *[ct for ct in cts if ct is not None])
        grads = dict(zip(wanted, found, strict=True))
        return None, None, None, *[grads.get(i) for i in range(len(ctx.needs_input_grad) - 3)]


def _living(x: torch.Tensor) -> torch.Tensor:
    """What a tensor means when levels have exited."""
    while is_dead(x):
        x = one_down(x)
    return x


class Walk:
    """B: from a region's inputs and the cotangents of the outputs `given`, those of the inputs `wanted`."""

    def __init__(self, region: Region, given: list[int], wanted: list[int]) -> None:
        self._region = region
        self._floor = region.alive()  # as of now: when B runs again, at levels of the same numbers
        self._given = given
        self._wanted = wanted

    def __call__(self, parts: list[torch.Tensor], *cts: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        ends, inputs = self._region.again(parts, self._floor)
        inputs = [x for x, flag in zip(inputs, self._region.flags, strict=True) if flag]
        return torch.autograd.grad([ends[i] for i in self._given], [inputs[i] for i in self._wanted], cts,
                                   allow_unused=True, create_graph=torch.is_grad_enabled())


def _as_region(like: Region, function: Callable[..., Any], *args: Any) -> Any:
    """Run a function as a region that is checked as another one is."""
    if not torch.is_grad_enabled():
        return function(*args)
    was = like.settings
    settings = Settings(again=None, early_stop=was.early_stop, explain=was.explain, look=was.look,
                        preserve_rng_state=was.preserve_rng_state)
    with bookkeeping():
        frame = Frame(function, args, {}, settings)
    if get_ident() != like.thread:  # ages of nodes are comparable within a thread
        return frame.run(nullcontext(), args, {})
    return every(frame, nullcontext(), args, {})


_DIFFERENT = ("torch.utils.checkpoint: the outputs of the region at level {number} are not those of its forward.\n"
              "metadata of the forward: {was}\nmetadata of the recomputation: {now}")
