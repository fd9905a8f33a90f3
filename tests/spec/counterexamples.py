"""Switches that break one clause of the design each, at the one place where it is kept.

Each is a context manager.  What follows from it, a wrong number, is what `test_counterexamples.py` and the notes show.
Several of them are designs that were tried upstream; their docstrings say where.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from importlib import import_module
from weakref import WeakKeyDictionary

from minigrad import offload, residuals, state, streamed, subclass
from minigrad.amp import autocast_mode
from minigrad.autograd import (
    accumulated,
    anomaly_mode,
    descent,
    engine,
    forward_ad,
    function_call,
    function_node,
    grad_mode,
    mutation,
)
from minigrad.backend import CPU
from minigrad.devices import accelerator, meta, pinned, simulated
from minigrad.fx import memory, tracer
from minigrad.graph import bare, saved
from minigrad.graph import node as nodes
from minigrad.interpreters import functional
from minigrad.interpreters.base import Interpreter
from minigrad.interpreters.grad import GradInterpreter
from minigrad.interpreters.jvp import JvpInterpreter
from minigrad.interpreters.vmap import VmapInterpreter
from minigrad.ops import inplace
from minigrad.random import Generator
from minigrad.regions import numbering, recompute, reentrant, region, remat, selective
from minigrad.storage import Storage
from minigrad.tensor import Tensor, alias, next_number
from minigrad.utils import checkpoint

tensor, record, ops, row = map(import_module, ("minigrad.tensor", "minigrad.graph.record", "minigrad.op", "minigrad.row"))
_MISSING = object()


@contextmanager
def replaced(owner, **attributes):
    """Put other attributes on a module or class, and the old ones back."""
    before = {name: vars(owner).get(name, _MISSING) for name in attributes}
    for name, value in attributes.items():
        setattr(owner, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is _MISSING:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


# ---------------------------------------------------------------- the State and its levels
def states_forgotten_when_their_block_ends():
    """That a State has modes is known while its block runs, and forgotten then, whoever may still put it in force."""
    leave = state.using.__exit__

    def forgetful(self, *error):
        leave(self, *error)
        state.watched.discard(id(self.new))
    return replaced(state.using, __exit__=forgetful)


def tangents_kept_beside_what_is_packed():
    """Hooks see primals only, and a saved tensor holds on to its tangent, as in torch (pytorch/pytorch#129293)."""
    return replaced(JvpInterpreter, parts=lambda self, x: (x.value,),
                    rewrap=lambda self, x: lambda primal, tangent=x.note: self.dual(primal, tangent))


def given_tangents_that_move():
    """The gradient of a dual is taken through everything, the tangents that programs gave too."""
    backward = engine.backward
    return replaced(engine, backward=lambda *args, fixed=(), **options: backward(*args, **options))


def one_forward_mode_for_all_levels():
    """Turning forward mode off turns it off for levels entered inside too."""
    mode = forward_ad.with_forward_mode
    return replaced(forward_ad, with_forward_mode=lambda now, on: mode(now, on) if on else now._replace(forward_off=_Everything()))


def primals_that_become_duals():
    """A dual may be written to the memory of a primal of its level."""
    return replaced(JvpInterpreter, holds=Interpreter.holds)


def levels_left_by_popping():
    """Leaving a level undoes its entry, a pop, instead of putting the old State back."""
    def leave(self, *error):
        now = state.current()
        state._STATE.set(now._replace(levels=now.levels[:-1]))
    return replaced(state.level, __exit__=leave)


def levels_compared_by_number():
    """Two levels are the same where their numbers are, as in torch's DynamicLayer stack."""
    return replaced(Interpreter, __eq__=lambda a, b: isinstance(b, Interpreter) and a.number == b.number,
                    __hash__=lambda a: hash(a.number))


def ops_processed_by_the_level_of_the_first_argument():
    """An op meets the level of its first argument that has one, and not the highest of them."""
    def first(op, args, params):
        owners = [x.owner for x in args if isinstance(x, tensor.Tensor) and x.owner in state.current().levels]
        return owners[0].process(op, args, params) if owners else ops._run(op, args, params, state.current())
    return replaced(row, bind=first)


def watchers_told_of_the_top_alone():
    """A watcher is told of an op where it meets the top of the stack, and not at the storeys below."""
    return replaced(ops, tell=lambda watchers, event, owner, *rest: owner is None or state.tell(watchers, event, owner, *rest))


def leaves_cut_off_from_level_0():
    """A transform makes its leaves as a program would at level 0: `x.detach().requires_grad_()`."""
    leaf = GradInterpreter.leaf
    return replaced(GradInterpreter, leaf=lambda self, x: leaf(self, x.detach()))


class _Everything(frozenset):
    """A set of levels that every level is in."""

    __contains__ = lambda self, level: True
    __or__ = __sub__ = lambda self, other: self


def one_grad_mode_for_all_levels():
    """`no_grad` turns recording off everywhere, also for levels entered inside it."""
    enabled = grad_mode.with_grad_mode
    return replaced(grad_mode, with_grad_mode=lambda now, mode: (
        enabled(now, mode) if mode else now._replace(grad_off=_Everything())))


def backward_with_all_grad_modes_off():
    """A backward without create_graph runs under a no-grad guard for all levels, as torch packs saved variables."""
    backward = engine.backward

    def guarded(owner, roots, **options):
        with state.using(state.current()._replace(grad_off=_Everything())):
            return backward(owner, roots, **options)
    return replaced(engine, backward=guarded)


def escaped_batches_mean_their_value():
    """A tensor that escaped from vmap is taken for the tensor one storey down, as one of grad is."""
    return replaced(VmapInterpreter, escaped=Interpreter.escaped)


def nodes_in_depth_first_order():
    """The engine runs nodes in the order in which a depth-first walk meets them."""
    reachable = engine.reachable

    def walk(roots, *fixed, **since):
        _, ends = reachable(roots, *fixed, **since)
        order, todo = {}, list(reversed(roots))
        while todo:
            node = todo.pop()
            if type(node) is not tensor.Tensor and node not in order:
                order[node] = None
                todo.extend(reversed([target for target, _ in node.edges]))
        return list(reversed(order)), ends
    return replaced(engine, reachable=walk)


def hooks_that_may_return_anything():
    """What a hook returned goes on whatever its shape, dtype and number."""
    return replaced(engine, replaced=lambda hook, old, new: old if new is None else new)


def views_that_are_not_told():
    """An in-place op gives the written tensor its new edge, and its views keep their old one."""
    return replaced(inplace, views_of=lambda root: [])


def writes_to_any_view():
    """A view that was made under no_grad is written to like another."""
    return replaced(inplace, unrecorded=lambda x, root: False)


def forward_that_means_values():
    """A Function's code runs with the levels taken off, and a tensor of theirs that it captured means its value."""
    return replaced(function_call.Call, inside=lambda self, now, levels: now._replace(levels=levels))


def intermediates_without_history():
    """What a Function's forward computed and kept is a constant to the derivatives of its backward (#76185)."""
    origin = function_node.FunctionNode._origin

    def forgetful(self, x, args, outs):
        target, nr = origin(self, x, args, outs)
        return (None if target == "lost" else target), nr
    return replaced(function_node.FunctionNode, _origin=forgetful)


# ---------------------------------------------------------------- saving
def detach_every_level():
    """Packing detaches the tensor, at every level.  `x.detach()` in torch's `_recomputation_hook`: the 0 of the seeds."""
    peel = tensor.peel
    return replaced(saved, peel=lambda x, *, edges: peel(x.detach() if edges else x, edges=edges))


def save_the_outermost():
    """Save the outermost tensor of each storage and unwrap it; which save is outermost is guessed: the first (#89159)."""
    peel, guessed = tensor.peel, WeakKeyDictionary()

    def first_seen(x, *, edges):
        bases, rebuild = peel(x, edges=edges)
        return bases, guessed.setdefault(bases[0].untyped_storage(), rebuild)
    return replaced(saved, peel=first_seen)


def hooks_in_one_graph():
    """Hooks are asked about the saves of the innermost level alone; the graphs below it save plainly."""
    def innermost(self, owner):
        levels = state.current().levels
        return self if owner is (levels[-1] if levels else None) else None
    return replaced(saved.UserHooks, manager=innermost)


def checkpoint_in_one_graph():
    """A region manages the saves of the innermost level it was entered at; the graphs below it save plainly."""
    return replaced(recompute.Frame, manager=lambda self, owner: (
        self if owner is (self.levels[-1] if self.levels else None) else None))


def leaves_packed_as_aliases():
    """A pack hook is handed another tensor for a leaf too, as for an output."""
    return replaced(saved.Hooks, save_base=lambda self, base, site: saved.PackedTensor(alias(base), self, site))


def outermost_hooks_asked():
    """Of the hooks in force the outermost manage a save."""
    def from_outside(hooks):
        manager = vars(hooks).get("manager", saved.Hooks.manager)
        return lambda self, owner: (None if self.outer is None else self.outer.manager(owner)) or manager(self, owner)
    stack = ExitStack()
    for hooks in (saved.Hooks, recompute.Frame):
        stack.enter_context(replaced(hooks, manager=from_outside(hooks)))
    return stack


def pack_hooks_unwatched():
    """Nobody looks whether a pack hook wrote to what it was given."""
    def pack(self, base, site):
        with state.using(state.underneath(state.current())):
            return self.pack_hook(base)
    return replaced(saved.UserHooks, pack=pack)


def unpacked_tensors_unchecked():
    """What an unpack hook gives back is taken as it is, whatever its shape and dtype."""
    def bases(self, asking):
        return (self.hooks.unpack(packed, asking) for packed in self.packed)
    return replaced(saved.PackedTensor, _bases=bases)


def levels_that_hide_hooks():
    """A level starts without saved-tensor hooks: those around a transform do not see what happens inside it."""
    def enter(self):
        outside = state.current()
        self.me.enter(outside)
        self.new = outside._replace(levels=(*outside.levels, self.me), hooks=None)
        state.using.__enter__(self)
        return self.me
    return replaced(state.level, __enter__=enter)


class _Handle:
    """A saved tensor that is the very handle the program has, with its edge."""

    def __init__(self, x):
        self.x = x

    def unpack(self):
        return self.x


def outputs_saved_with_their_node():
    """A node keeps the output as the program has it, which owns the node (#115255)."""
    return replaced(record, keep_base=_Handle)


def composed_hooks_unpack_outwards():
    """Where pairs compose, each unpacks before the next one outside does, in the order in which they packed."""
    def unpack(self, packed, asking):
        if isinstance(packed, saved.PackedTensor):
            return packed.hooks.unpack(self.unpack_hook(packed.packed[0]), asking)
        return self.unpack_hook(packed)
    return replaced(saved.UserHooks, unpack=unpack)


def sites_of_the_top():
    """A hook is told the level on top of the stack, which need not be the one that saves."""
    init = saved.Site.__init__
    return replaced(saved.Site, __init__=lambda self, owner, *rest: init(self, (state.current().levels or (owner,))[-1], *rest))


def writes_without_a_copy():
    """Writes are not seen by who keeps what was saved."""
    return replaced(mutation.CopyBeforeWrite, __torch_dispatch__=lambda self, func, types, args=(), kwargs=None: (
        func(*args, **(kwargs or {}))))


def packed_tensors_unwatched():
    """What hooks return has no version check, as in torch."""
    return replaced(saved, _memory=lambda packed, base: [])


# ---------------------------------------------------------------- checkpoint
class _Here:
    """In the place of the captured context: the one where the backward runs, with grad mode on, as torch does."""

    def copy(self):
        return self

    def run(self, f):
        with state.using(state.current()._replace(grad_off=frozenset())):
            return f()


def recompute_where_the_backward_runs():
    """The recomputation runs in the backward's State and context variables, not in the forward's."""
    return replaced(region, copy_context=_Here)


@contextmanager
def one_list_of_slots():
    """Saves are numbered as they come, whatever their level: `_CheckpointFrame.weak_holders` is one list."""
    def pack(self, base, site):
        return packed(self, base, saved.Site(None, site.node, site.name))
    packed = recompute.Frame.pack

    class AnyLevel(recompute.Refill):
        def __init__(self, frame, level, table):
            super().__init__(frame, None, table)

        def manager(self, owner):
            return self

        def pack(self, base, site):
            return super().pack(base, saved.Site(None, site.node, site.name))

    with replaced(recompute.Frame, pack=pack, save_base=pack), replaced(recompute, Refill=AnyLevel):
        yield


def frames_that_manage_every_level():
    """A region also manages the saves of levels that are entered, and differentiated, inside it."""
    return replaced(recompute.Frame, manager=lambda self, owner: self)


def own_levels_saves_kept():
    """What the levels that are entered inside a region save is kept, though there are hooks outside."""
    return replaced(recompute.Frame, manager=lambda self, owner: (
        self if owner is None or owner in self.levels or owner is recompute.INPUTS else None))


def inputs_of_every_level():
    """A recomputation counts the input of every region inside it, also of those at a level of the region's own."""
    return replaced(recompute.Refill, manager=lambda self, owner: (
        self if owner is self.level or owner is recompute.INPUTS else None))


def arguments_with_edges():
    """The arguments of a recomputation are those of the forward, with their edges."""
    return replaced(recompute, _kept=lambda x, state, edges: lambda asking: x)


def arguments_beside_the_hooks():
    """The arguments of a region are kept as they are, whatever hooks are around it."""
    keep = recompute._kept
    return replaced(recompute, _kept=lambda x, outside, *, edges: keep(x, outside._replace(hooks=None), edges=edges))


def captured_tensors_unchecked():
    """Nobody looks whether what the region read was written to since."""
    return replaced(region.Region, outdates=lambda self, store, began: False)


def streams_not_replayed():
    """The recomputation draws on from where the streams stand."""
    return replaced(region.Region, streams=lambda self, outside: outside)


def streams_replayed_where(wanted):
    """The streams that are replayed are those of the generators that are wanted."""
    streams = region.Region.streams

    def some(self, outside):
        return tuple(pair for pair in streams(self, outside) if wanted(pair[0]))
    return replaced(region.Region, streams=some)


def streams_replayed_in_place():
    """The recomputation winds the generators themselves back, which is what torch's fork_rng does (#96764)."""
    def rewind(self, outside):
        for generator, place in (self.draws or {}).items():
            generator.place = place
        return outside
    return replaced(region.Region, streams=rewind)


class _StopException(Exception):
    def __init__(self, refill):
        super().__init__()
        self.refill = refill


def early_stop_is_an_exception():
    """The end of a recomputation is an ordinary Exception, as torch's _StopRecomputationError."""
    return replaced(recompute, Stop=_StopException)


def outputs_saved_before_they_are_written():
    """An op makes room for its output, and computes into that after it has been saved (pytorch/pytorch#193671)."""
    save = row.record_unary

    def early(op, owner, x, out, *rest):
        value, out.value = out.value, out.value.copy()
        out.value[...] = 0
        save(op, owner, x, out, *rest)
        out.value[...] = value
    return replaced(row, record_unary=early)


def gradients_added_unseen():
    """The engine adds a gradient to another where it stands also where a mode sees all that reaches the base."""
    return replaced(accumulated, watched=())


def nodes_noted_as_they_run():
    """Anomaly mode notes the stack of a node when it runs."""
    notice = anomaly_mode.Anomaly.notice

    def late(self, event, owner, subject, detail):
        if event == "run":
            notice(self, "node", owner, subject, None)
        if event != "node":
            notice(self, event, owner, subject, detail)
    return replaced(anomaly_mode.Anomaly, notice=late)


def rules_asked_about():
    """Those ahead of the levels are asked about what a backward computes, like about the calls of the program."""
    replace = state.State._replace
    return replaced(state.State, _replace=lambda self, **changes: replace(self, **{
        name: value for name, value in changes.items() if name != "ahead" or "run" not in changes}))


def casts_kept_where_nothing_records():
    """Autocast keeps the cast of a leaf also where it is not recorded."""
    def careless(self, x, target):
        if id(x) not in self.casts:
            self.casts[id(x)] = x.to(target)
        return self.casts[id(x)]
    return replaced(autocast_mode.Casting, _cast=careless)


def recomputed_in_inference_mode():
    """A recomputation that runs in inference mode wherever the backward does."""
    watch = state.using.__enter__

    def enter(self):
        outside = state.current()
        if self.new.recomputing is not None and outside.recomputing is None:
            levels = frozenset({None, *self.new.levels})
            self.new = self.new._replace(inference=levels, grad_off=levels)
        return watch(self)
    return replaced(state.using, __enter__=enter)


def looks_unchecked():
    """A recomputed value may have any shape, dtype and device."""
    return replaced(recompute.Frame, look=lambda self, base: ())


def values_unchecked():
    """determinism_check="values" compares what "default" does."""
    return replaced(recompute.Frame, look=lambda self, base: (base.value.shape, base.dtype, base.device))


def accumulate_again():
    """A backward inside a region accumulates into leaves also when the region runs again."""
    return replaced(engine, done_before=lambda leaf: False)


def hooks_registered_again():
    """A region that runs again puts its hooks once more on the tensors that it found, as in torch."""
    return replaced(nodes, done_before=lambda target: False)


class _Lasting(dict):
    def pop(self, key):
        return self[key]


def recomputed_values_kept():
    """A recomputed value stays after it was handed out, until the backward run ends."""
    unpack = recompute.Frame.unpack

    def lasting(self, packed, asking):
        if (run := state.current().run) is not None:
            run.tables(self).setdefault(packed.site.owner, _Lasting())
        return unpack(self, packed, asking)
    return replaced(recompute.Frame, unpack=lasting)


def groups_that_do_nothing():
    """Each backward run inside a GraphExecGroup recomputes for itself."""
    return replaced(checkpoint.GraphExecGroup, inside=lambda self, outside: setattr(self, "_run", engine.Run()) or outside)


def a_second_graph_without_border():
    """The graph that a reentrant region records when it runs again leads on into what it captured."""
    return replaced(reentrant, _end=lambda target, nr, began, ends: (target, nr))


def reentrant_regions_below_the_levels():
    """A reentrant region under a transform is not refused: it runs where its graph is, at level 0, on the tensors inside."""
    run = reentrant.reentrant

    def unrefused(function, args, kwargs, **options):
        with state.using(state.current()._replace(levels=())):
            return run(function, tuple(map(tensor.bottom, args)), kwargs, **options)
    return replaced(checkpoint, reentrant=unrefused)


def reentrant_gradients_that_are_constants():
    """A second derivative goes round a reentrant region without an error, as in torch (openai/guided-diffusion#144)."""
    backward = grad_mode.no_grad()(reentrant.CheckpointFunction.backward.__wrapped__)
    return replaced(reentrant.CheckpointFunction, backward=staticmethod(backward))


# ---------------------------------------------------------------- remat="every"
def backwards_that_save_plainly():
    """The backward of a region is no region: what torch does, and remat="first"."""
    return replaced(remat, _as_region=lambda like, function, *args: function(*args))


class _Recorded(remat.RegionNode):
    """It keeps the nodes that the forward recorded, and walks those."""

    __slots__ = ("recorded",)

    def release(self):
        pass


@contextmanager
def recorded_nodes_cut_into_regions():
    """The nodes of the first run are not recorded again: the region's backward walks them, and takes what they saved."""
    cut = remat._cut

    def _cut(frame, owner, out, began, given):
        ends = remat._ends(out, owner, began)
        edges = remat._edges(ends)
        cut(frame, owner, out, began, given)
        if ends and isinstance(ends[0].node, _Recorded):
            ends[0].node.recorded = edges, began

    def backward(frame, owner, slots, outs, border, given, asked, *, create_graph):
        node = next(node for node in made if node.frame is frame and node.owner is owner)
        edges, began = node.recorded

        def back(*cts):
            nodes, leaves = engine.reachable([target for target, _ in edges], since=began)
            walk = remat._Local(nodes, leaves, asked, create_graph=create_graph, retain_graph=True)
            walk.run(owner, [(*edges[nr], ct) for nr, ct in zip(given, cts, strict=True)])
            return [walk.arrived.get((target, nr) if nr else target) for target, nr in asked]
        return back

    class Noted(_Recorded):
        def __init__(self, *args):
            super().__init__(*args)
            made.append(self)

    made = []
    with replaced(remat, _cut=_cut, RegionNode=Noted, _backward=backward):
        yield


def walks_that_leave_the_region():
    """The walk of a region's backward does not end where the region began, but goes on to the leaves."""
    def further(roots, *fixed, since=0):
        inside.append(engine.reachable(roots, *fixed, since=since)[0])
        return engine.reachable(roots, *fixed)
    border, inside = remat._border, []
    return replaced(remat, reachable=further, _border=lambda nodes: border(inside.pop()))


def second_runs_that_may_save_more():
    """More saves than the forward made are no error where the second run could have stopped early, as with remat="first"."""
    return replaced(remat.Recording, exact=False)


def second_runs_that_keep_for_every_level():
    """In a second run the levels below keep their saves too, instead of saving with the region that the backward is."""
    return replaced(remat.Recording, manager=lambda self, owner: self if owner is self.level else None)


def second_runs_for_one_node_each():
    """Each node of a region has it run again, also where the walk comes to the next one at once."""
    return replaced(remat, _comes_next=lambda region, walk: False)


def second_runs_that_stay_to_the_end():
    """A region that was run again stays until the backward ends, whatever regions come in between."""
    def second(frame):
        region = frame.of or frame
        return stayed.setdefault(state.current().run, {}).setdefault(region, remat.SecondRun(region))
    stayed = WeakKeyDictionary()
    return replaced(remat, _second=second, _comes_next=lambda region, walk: True)


# ---------------------------------------------------------------- fast paths
def straight_stretches_unchecked():
    """A cotangent is handed on along a chain of nodes without a look at the versions of what they saved."""
    def straight(walk, node, ct):
        kept = node.saved[0] if type(node) is record.OpNode and node.saved else None
        if not isinstance(kept, Storage) or node.plan.one is None:
            return node, ct
        walk.arrive(node.target, node.nr, node.plan.one(bare.bare(ct), kept.array))
        if isinstance(node.target, Tensor):
            walk.came(node.target)
        return None, None
    return replaced(descent, straight=straight)


def shared_cotangents_as_arrays():
    """What two edges know travels as an array too, which each leaf takes for its own."""
    def on_arrays(self, ct):
        grads = bare.on_arrays(self, ct)
        return grads and [bare.bare(g) for g in grads]
    return replaced(record.OpNode, on_arrays=on_arrays)


# ---------------------------------------------------------------- save_on_cpu
def host_copies_keyed_by(key):
    """One host copy for each `key(tensor)`, kept for good: `id`, the address, the first element (#89166)."""
    def pack(self, base, owner=None):
        made, k = vars(self).setdefault("made", {}), key(base)
        if k not in made:
            self.count += 1
            on_host = base.device is CPU
            made[k] = base.clone() if on_host else offload.OnHost(offload.HostCopy(base.value, tensor.storage_of(base)),
                                                                  base.value, base)
        return made[k]
    return replaced(offload.Offloading, pack=pack)


def host_copies_of_any_version():
    """A storage that was copied once is not copied again, whatever was written to it."""
    copied = offload.Offloading.pack

    class Whatever(dict):
        get = lambda self, version: next(iter(self.values()), None)

    def pack(self, base, owner=None):
        self.copies.setdefault(tensor.storage_of(base), Whatever())
        return copied(self, base, owner)
    return replaced(offload.Offloading, pack=pack)


def device_copies_for_each_save():
    """What comes back for one save is not there for another of the same storage."""
    restored = offload.HostCopy.restored

    def anew(self):
        self.back = None
        return restored(self)
    return replaced(offload.HostCopy, restored=anew)


@contextmanager
def host_tensors_copied():
    """A tensor that is on the host already is copied, as with pin_memory."""
    with host_copies_keyed_by(lambda x: object()), replaced(offload.Offload, passes=lambda self, x: False):
        yield


def contiguous_copies():
    """A tensor comes back in the standard strides (ms-swift#10157)."""
    restored = offload.OnHost.restored
    return replaced(offload.OnHost, restored=lambda self: restored(self).contiguous())


# ---------------------------------------------------------------- streams
def copies_that_wait_for_nothing():
    """A copy on another stream does not wait for what was computed so far, and for the memory that was freed."""
    return replaced(accelerator.Accelerator, after_computing=lambda self, stream: None)


def memory_let_go_at_once():
    """The memory at the device's end of a copy is let go without waiting for the copy."""
    return replaced(streamed.Crossing, __del__=lambda self: None)


def copies_back_not_waited_for():
    """A backward reads what comes back without waiting for it."""
    return replaced(streamed.StreamedCopy, wait=lambda self: None)


def pinned_memory_given_away_early():
    """A pinned block goes to the next who asks while a copy from it is under way."""
    return replaced(pinned.Pool, is_free=staticmethod(lambda last: True))


def writes_under_a_copy_unchecked():
    """Nobody asks whether the memory was written to while its copy was under way."""
    def let_go(self):
        self.leaving = None
    return replaced(streamed.StreamedCopy, let_go=let_go)


def nothing_asked_for_ahead():
    """A copy back is asked for when a backward needs it, and not before."""
    return replaced(streamed.Streamed, _start_next=lambda self, packed: None)


def copies_without_a_window():
    """Any number of copies to the host is under way, and their memory is held."""
    return replaced(streamed.Streamed, window=1 << 30)


def pinned_memory_never_reused():
    """Every copy gets pinned memory of its own, as without a pool."""
    return replaced(pinned.Pool, _is_there=lambda self, nbytes: False)


def nothing_skipped():
    """What `skip` names is copied too."""
    return replaced(offload.Offloading, stays=lambda self, base: base.device is CPU)


def frees_that_do_not_wait():
    """Memory is somebody else's as soon as it is freed, whatever its stream was asked for before."""
    return replaced(simulated.SimStream, after=lambda self, work: work())


def meta_tensors_of_one_element():
    """A tensor without data is one element, seen at every place: strides of 0."""
    return replaced(meta, _unwritten=lambda like: CPU.xp.broadcast_to(CPU.xp.zeros((), like.dtype), like.shape))


# ---------------------------------------------------------------- traces and functionalize
def values_known_by_handle():
    """A trace knows a value by the tensor object that holds it, as ProxyTorchDispatchMode does."""
    def find(self, x):
        handle = self.handles.get(id(x))
        return handle[1] if handle is not None and handle[0]() is x else None
    return replaced(memory.Memories, find=find)


def draws_that_a_trace_forgets():
    """A trace takes every draw for a new one, wherever its stream stands."""
    return replaced(tracer, stream_of=lambda generator: Generator().standing_at((next_number(), 0)))


def saved_wrappers_that_change():
    """A node keeps the wrapper itself, which a write at a level without memory gives another value."""
    return replaced(saved, peel=lambda x, *, edges: ([], lambda new: x))


def detached_tensors_apart():
    """At the functional level a detached tensor is no view of what it was made of."""
    return replaced(functional, relate=lambda view, of, step: None)


# ---------------------------------------------------------------- policies
def values_known_by_their_turn():
    """A kept value is that of the n-th call of its op, as in torch.utils.checkpoint."""
    turns = {}

    def call(self, function, args, kwargs):
        run = state.current().above.recomputing
        turns[self, run, function] = turns.get((self, run, function), 0) + 1
        return self.of((function, turns[self, run, function]))
    return replaced(numbering.Numbers, call=call)


def arguments_known_by_their_memory():
    """Arguments that hooks gave back in other memory are others."""
    return replaced(checkpoint, knowing_arguments=lambda function: function)


def equal_values_in_one_memory():
    """A run is given what is kept also for a value that it writes to."""
    return replaced(selective.Kept, overwritten=lambda self, number, x: None)


def kept_values_that_change():
    """What is kept is given out whatever was written to it, as with allow_cache_entry_mutation in torch."""
    return replaced(selective.KeptValue, taken=lambda self, kept, state: alias(self.base))


def draws_not_stepped_over():
    """Random numbers that are kept leave the stream where it stood."""
    return replaced(Generator, next_draw=lambda self, draw=Generator.next_draw: (
        None if state.current().recomputing and state.current().above else draw(self)))


def policies_that_keep_beside_the_hooks():
    """What a policy keeps is given to no hooks and no region outside, as in torch."""
    init = selective._CachingTorchDispatchMode.__init__
    return replaced(selective._CachingTorchDispatchMode, __init__=lambda self, kept, policy, outside: init(
        self, kept, policy, outside._replace(hooks=None)))


def policies_of_every_level_at_once():
    """What is kept is let go of as it is given out, as in torch, though other levels are still to come."""
    found = selective.Kept.found

    def once(self, call, state):
        outs = found(self, call, state)
        for k in range(len(outs or ())):
            self.values[self.numbers.of((call, k))] = None
        return outs
    return replaced(selective.Kept, found=once)


# ---------------------------------------------------------------- subclasses
def subclasses_that_are_not_remembered():
    """What is peeled of a tensor of a subclass comes back as a tensor of none, as in a hook of torch's."""
    return replaced(subclass.Subclassed, renew=lambda self, x: lambda value: value)


# ---------------------------------------------------------------- what is kept
def saves_never_dropped():
    """Whatever was saved is listed, also where its node is dead or was released."""
    return replaced(residuals._Keeper, _lives=lambda self, keeper: True)
