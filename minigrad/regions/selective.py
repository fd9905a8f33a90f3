"""Selective checkpointing: a policy says which values of a region are kept, and what made them is not run again.

    forward    a dispatch mode asks the policy about each op at the base, and keeps the memory that a chosen output lies in
    again      a dispatch mode gives out what is kept instead of running the op that made it; all else runs

Both know a value by how it was computed, not by when, so a run may do more or less than the other. [NOTE kept-by-value]
They stand at the base, under every level: nothing here names a transform.  What is kept is a save of whoever stands around
the region: of hooks, of a region outside.  It lives as long as anybody could ask for a recomputation. [NOTE selective-policies]

Upstream: _CachingTorchDispatchMode and _CachedTorchDispatchMode in torch/utils/checkpoint.py; jax.checkpoint_policies.
"""

from __future__ import annotations

from types import FunctionType
from typing import TYPE_CHECKING, Any

from ..errors import CheckpointError
from ..graph.saved import Hooks, PackedTensor, Site
from ..offload import Offload, Offloading
from ..ops.aten import Kinds, Packet
from ..ops.inplace import overwrite
from ..ops.shape import detach_row
from ..random import Generator
from ..scope import Scope
from ..state import State, current, show, tell
from ..tensor import Tensor, alias, base_tensor, next_number, storage_of
from ..utils._python_dispatch import TorchDispatchMode
from .numbering import Numbers
from .policies import OFFLOADS, SAVES, CheckpointPolicy, Policy, SelectiveCheckpointContext, save_these, verdict_of
from .recompute import INPUTS, Refill

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..op import Op


def create_selective_checkpoint_contexts(policy_fn_or_list: Any, allow_cache_entry_mutation: bool = False) -> tuple[Any, Any]:
    """Return the two contexts of a region, for `context_fn`; each region needs its own.

    policy_fn_or_list: policy(ctx, op, *args, **kwargs) -> CheckpointPolicy or bool, asked about each op that reaches the base
    (under vmap, ops on batches); or a list of ops to save.  A value that is kept and written to in the region is an error in
    the backward, or with `allow_cache_entry_mutation` computed again.
    Raises ValueError for a list of anything else, TypeError for what is neither.
    Source: torch.utils.checkpoint.create_selective_checkpoint_contexts.
    """
    if isinstance(policy_fn_or_list, list):
        policy = save_these([_checked(op) for op in policy_fn_or_list])
    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        msg = "policy_fn_or_list must be either a function or a list of ops."
        raise TypeError(msg)
    kept = Kept(lenient=allow_cache_entry_mutation)
    return _Forward(kept, policy), _Again(kept)


def _checked(op: Any) -> Any:
    if isinstance(op, (FunctionType, Kinds)):
        return op
    hint = (f" Please update the OpOverloadPacket to a specific OpOverload. For example, if you have `{op}`, change it to "
            f"`{op}.default`." if isinstance(op, Packet) else "")
    msg = f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{hint}"
    raise ValueError(msg)


# ---------------------------------------------------------------- what is kept
class Kept:
    """The values that a policy keeps of a region, by their numbers."""

    __slots__ = ("__weakref__", "ended", "lenient", "numbers", "outs", "values")

    def __init__(self, *, lenient: bool) -> None:
        self.lenient = lenient
        self.numbers = Numbers()
        self.values: dict[int, KeptValue | None] = {}
        """None stands for what cannot be kept."""
        self.outs: dict[int, int] = {}
        """How many outputs each call of the forward has."""
        self.ended: int | None = None
        """The moment the forward ended."""

    def found(self, call: int, state: State) -> tuple[Tensor, ...] | None:
        """The outputs of a call, where all of them are kept."""
        found: list[Tensor] = []
        for value in [self.values.get(self.numbers.of((call, k))) for k in range(self.outs.get(call, 0))]:
            out = None if value is None else value.taken(self, state)
            if out is None:
                return None
            found.append(out)
        return tuple(found) or None

    def overwritten(self, number: int, x: Tensor) -> None:
        """Memory that holds this value is written to: where a run is given what is kept for it, it would write to that."""
        value = self.values.get(number)
        if value is None or value.base is None or value.base.store is not storage_of(x):
            self.values[number] = None


class KeptValue:
    """A memory as an op made it: itself, or what hooks made of it."""

    __slots__ = ("base", "op", "packed")

    def __init__(self, base: Tensor, op: Op, hooks: Hooks | None) -> None:
        self.op = op
        self.base = base if hooks is None or hooks.passes(base) else None
        self.packed = (None if self.base is not None or hooks is None else
                       PackedTensor(base, hooks, Site(INPUTS, "checkpoint", op.name)))

    def taken(self, kept: Kept, state: State) -> Tensor | None:
        """The value for a run in that state; None where it has been lost, and the op is to run."""
        if self.packed is not None:
            return self.packed.unpack(_asking(state))
        assert self.base is not None
        store = storage_of(self.base)
        if not store.version:
            return alias(self.base)
        if kept.lenient or (kept.ended is not None and store.last_write > kept.ended):
            return None
        msg = ("Tensor cached during selective activation checkpoint has been mutated: the output of "
               f"{self.op.name}, {store.kind.dtype} {list(store.array.shape)}, was written to in the region after the policy "
               "kept it. Let the policy recompute it, write out of place, or pass allow_cache_entry_mutation=True, which "
               f"computes it again. [level stack: {show(state)}] [NOTE selective-policies]")
        raise CheckpointError(msg)


def _asking(state: State) -> Any:
    """The level whose backward asked for the recomputation that is under way."""
    hooks = state.hooks
    while hooks is not None and not isinstance(hooks, Refill):
        hooks = hooks.outer
    return INPUTS if hooks is None else hooks.level


# ---------------------------------------------------------------- the two modes
class _Numbering(TorchDispatchMode):
    """Numbers what a region computes.  What hooks compute meanwhile is not the region's: it may not happen again."""

    def __init__(self, kept: Kept, outside: State) -> None:
        self.kept = kept
        self.numbers = kept.numbers
        self.region = outside.hooks
        """The hooks of the region's run, which nobody else has."""
        self._above = outside.above

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        program = self._program()
        if program is None or not (hasattr(func, "op") or func is overwrite):
            return func(*args, **kwargs)
        call = self.numbers.call(func, args, kwargs)
        if func is overwrite:
            self.kept.overwritten(self.numbers.memory(args[0]), args[0])
            out = func(*args)
            self.numbers.holds(args[0], call)
            return out
        out = self.computed(call, func, args, kwargs, program)
        self.numbers.made(call, _several(out))
        return out

    def computed(self, call: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], program: State) -> Any:
        """The output of a row, which has a number."""
        raise NotImplementedError

    def _program(self) -> State | None:
        """The state in which the region's program asked; modes entered inside the region stand between, each one down."""
        state = current().above
        while state is not None and state.above is not self._above:
            above = state.above
            if above is None or len(above.dispatch_modes) == len(state.dispatch_modes):
                return None
            state = above
        return state


class _CachingTorchDispatchMode(_Numbering):
    """Of a forward: asks the policy, and keeps."""

    def __init__(self, kept: Kept, policy: Policy, outside: State) -> None:
        super().__init__(kept, outside)
        self._policy = policy
        self._hooks = None if outside.hooks is None or outside.hooks.outer is None else outside.hooks.outer.manager(INPUTS)
        self._offload = Offload(Offloading(dedupe=True, skip=None), None)

    def computed(self, call: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], program: State) -> Any:
        if self.kept.ended is not None:  # a region inside runs again after this one has ended
            return _found_or_run(self.kept, call, func, args, kwargs, program)
        out = func(*args, **kwargs)
        if func is not detach_row:  # how many of them there are is not the program's choice
            level = program.levels[-1].number if program.levels else 0
            context = SelectiveCheckpointContext(is_recompute=False, op_output=out, level=level)
            verdict = verdict_of(self._policy(context, func, *args, **kwargs), func)
            outs = _several(out)
            self.kept.outs[call] = len(outs)
            if verdict in SAVES or verdict in OFFLOADS:
                self.numbers.made(call, outs)
                for x in outs:
                    self._keep(x, func.op, verdict, program)
        return out

    def _keep(self, x: Tensor, op: Op, verdict: CheckpointPolicy, program: State) -> None:
        """Keep the memory that `x` lies in, as the op that made it left it, if that was in this region."""
        store, number = storage_of(x), self.numbers.memory(x)
        if store.version or number not in self.numbers.computed:
            return
        hooks = self._offload if verdict in OFFLOADS else self._hooks
        known = number in self.kept.values
        if known and (hooks is None or not hooks.numbered):
            return
        base = base_tensor(store.array, store.kind, store.array.shape, store)
        value = KeptValue(base, op, hooks)
        if known:  # saved for the count: in memory that hooks gave back it may not be known when the region outside runs again
            return
        self.kept.values[number] = value
        tell(program.watchers, "policy", None, self.kept, (base, verdict.name, program.levels, value.packed))


class _CachedTorchDispatchMode(_Numbering):
    """Of a recomputation: gives out what is kept."""

    def computed(self, call: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], program: State) -> Any:
        return _found_or_run(self.kept, call, func, args, kwargs, program)


def _found_or_run(kept: Kept, call: int, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], program: State) -> Any:
    found = kept.found(call, program)
    if found is None:
        return func(*args, **kwargs)
    for x in kwargs.values():
        if isinstance(x, Generator):
            x.next_draw()  # others draw after it
    tell(program.watchers, "kept", None, func.op, (args, found))
    return found[0] if func.op.outs == 1 else found


def _several(out: Any) -> tuple[Tensor, ...]:
    return tuple(out) if isinstance(out, (tuple, list)) else (out,)


# ---------------------------------------------------------------- the two contexts
class _Forward(Scope):
    """Around a region's forward."""

    def __init__(self, kept: Kept, policy: Policy) -> None:
        self._kept = kept
        self._policy = policy

    def inside(self, outside: State) -> State:
        if self._scopes is not None:
            msg = ("these contexts belong to another region: pass a context_fn that makes new ones for each call, as "
                   "functools.partial(create_selective_checkpoint_contexts, policy) does.")
            raise CheckpointError(msg)
        return _with(outside, _CachingTorchDispatchMode(self._kept, self._policy, outside))

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._kept.ended = next_number()


class _Again(Scope):
    """Around each of its recomputations."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def inside(self, outside: State) -> State:
        return _with(outside, _CachedTorchDispatchMode(self._kept, outside))


def _with(outside: State, mode: _Numbering) -> State:
    return outside._replace(dispatch_modes=(*outside.dispatch_modes, mode))


def knowing_arguments(function: Callable[..., Any]) -> Callable[..., Any]:
    """A region's function that shows its arguments to the mode around it: hooks may give them back in other memory."""
    def run(*args: Any, **kwargs: Any) -> Any:
        state = current()
        for mode in state.dispatch_modes:
            if isinstance(mode, _Numbering) and mode.region is state.hooks:
                mode.numbers.given((args, kwargs))
        return function(*args, **kwargs)
    return run
