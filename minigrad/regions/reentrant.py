"""checkpoint(use_reentrant=True): a graph inside a graph, as torch first had it. [NOTE reentrant]

    forward    the function runs with nothing recorded; one node keeps its arguments
    backward   the node runs it again, recorded, and sends its gradients back through that graph

The node is an autograd.Function.  Among its inputs is also what the function captured and differentiates, as a watcher saw: so
that gets its gradient as every input does, once, and the second graph ends where the first run began.

Upstream: CheckpointFunction in torch/utils/checkpoint.py, whose limits hold.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from .. import tree
from ..autograd import engine
from ..autograd.function import Function, once_differentiable
from ..autograd.roots import roots
from ..errors import CheckpointError, Refusal, UsageError, refused
from ..graph.node import age
from ..state import State, Watcher, current, using
from ..tensor import LEAF, Tensor, alias, edge, next_number, storage_of
from .region import Region

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ..graph.node import Edge
    from ..interpreters.base import Interpreter
    from ..storage import Storage

TENSOR = object()
"""Where a tensor stood among the arguments."""
LOST: WeakSet[Any] = WeakSet()
"""Memory that a region computed from what it differentiates, and did not return."""


def reentrant(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], *, preserve_rng_state: bool,
              plain: bool) -> Any:
    """Return function(*args), a tensor or a tuple; its tensors require grad where anything that it differentiates does.

    kwargs and what is not `plain` (contexts, debug) are refused, as ValueError too.
    """
    if kwargs:
        msg = ("Unexpected keyword arguments: " + ",".join(kwargs) + ". With use_reentrant=True a tensor among them would get "
               "no gradient: pass it by position, or use use_reentrant=False, which takes keywords. [NOTE reentrant]")
        raise refused(msg)
    if not plain:
        msg = ("Passing `context_fn` or `debug` is only supported when use_reentrant=False. With use_reentrant=True the first "
               "run records nothing that another could be held against. [NOTE reentrant]")
        raise refused(msg)
    state = current()
    if state.levels:
        msg = ("checkpoint(use_reentrant=True) runs a graph of level 0 inside a graph of level 0, which no level above sees: "
               "it composes with no transform. Use use_reentrant=False, which composes with all of them and needs no change to "
               "the function. [NOTE reentrant]")
        raise Refusal(msg)
    if None in state.grad_off:
        return function(*args)
    inputs = _tensors(args)
    versions = [x._version for x in inputs]  # noqa: SLF001
    rerun = Rerun(function, args, preserve_rng_state=preserve_rng_state)
    outs = rerun.forward(inputs, state)
    if versions != [x._version for x in inputs]:  # noqa: SLF001
        msg = ("the function of checkpoint(use_reentrant=True) modified an argument by an inplace operation, and would start "
               "from the new value when it runs again. Clone it first. [NOTE captured-tensors]")
        raise CheckpointError(msg)
    captured = tuple(rerun.captured.values())
    if not captured:
        check_backward_validity(inputs)
    return CheckpointFunction.apply(rerun, (outs,), captured, *inputs, *captured)


class CheckpointFunction(Function):
    """The node of a region: it gives out what the region computed.  Source: torch.utils.checkpoint.CheckpointFunction."""

    @staticmethod
    def forward(ctx: Any, rerun: Rerun, computed: tuple[Any], captured: tuple[Tensor, ...], *inputs: Tensor) -> Any:
        ctx.rerun, ctx.captured = rerun, captured
        ctx.save_for_backward(*inputs[:len(inputs) - len(captured)])
        return computed[0]

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Any) -> Any:
        run = current().run
        if run is not None and run.partial:
            msg = ("When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                   "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                   ".backward() without passing the `inputs` argument. [NOTE reentrant]")
            raise Refusal(msg)
        return None, None, None, *ctx.rerun.gradients(ctx.saved_tensors, grads)


class Rerun(Region):
    """A call that can be made again, recorded."""

    __slots__ = ("args", "captured", "function")

    def __init__(self, function: Callable[..., Any], args: Any, *, preserve_rng_state: bool) -> None:
        super().__init__(preserve_rng_state=preserve_rng_state)
        self.function = function
        self.args = tree.map(lambda x: TENSOR if isinstance(x, Tensor) else x, args)
        self.captured: dict[Edge, Tensor] = {}
        """What the function differentiates and was not given, by its edge at level 0."""

    def forward(self, inputs: list[Tensor], state: State) -> Any:
        """Call the function with nothing recorded."""
        reads = Reads(self.captured)
        try:
            with using(state._replace(grad_off=state.grad_off | {None}, watchers=(reads, *state.watchers),
                                      regions=(self, *state.regions))):
                outs = self._call(detach_variable(tuple(inputs)))
        finally:
            self.ended = next_number()
        LOST.update(reads.computed - {storage_of(y) for y in _tensors(outs)})
        return outs

    def _call(self, inputs: tuple[Any, ...]) -> Any:
        given = iter(inputs)
        return self.function(*tree.map(lambda x: next(given) if x is TENSOR else x, self.args))

    def gradients(self, saved: tuple[Any, ...], grads: tuple[Any, ...]) -> list[Tensor | None]:
        """Call it again, recorded, and return the gradients of the inputs and of what it captured."""
        began = next_number()

        def run() -> tuple[tuple[Any, ...], Any]:
            inputs = detach_variable(saved)
            return inputs, self._call(inputs)
        inputs, outs = self.again(began, run, current().hooks)
        pairs = [(y, g) for y, g in zip(outs if isinstance(outs, tuple) else (outs,), grads, strict=True)
                 if isinstance(y, Tensor) and y.requires_grad]
        if not pairs:
            msg = "none of output has requires_grad=True, this checkpoint() is not necessary"
            raise UsageError(msg)
        ends = {e: alias(x, LEAF, next_number()) for e, x in self.captured.items()}
        starts = [(*_end(target, nr, began, ends), ct)
                  for target, nr, ct in roots([y for y, _ in pairs], [g for _, g in pairs], "backward()")]
        _cut([target for target, _, _ in starts], began, ends)
        asked = [x for x in (*inputs, *ends.values()) if x.requires_grad]
        found = iter(engine.backward(None, starts, inputs=asked))
        return [next(found) if x.requires_grad else None for x in (*inputs, *ends.values())]


class Reads(Watcher):
    """Notes which tensors from before now are differentiated, and the memory that is computed from such tensors."""

    __slots__ = ("began", "captured", "computed", "follows")

    def __init__(self, captured: dict[Edge, Tensor]) -> None:
        self.began = next_number()
        self.captured = captured
        self.computed: WeakSet[Storage] = WeakSet()
        self.follows = False

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if owner is None and event == "op" and subject.differentiable:
            self.follows = True in [self._differentiated(x) for x in detail if type(x) is Tensor]  # all of them are noted
        elif owner is None and event == "made" and self.follows:
            self.computed.add(storage_of(subject))

    def _differentiated(self, x: Tensor) -> bool:
        if x.node is not None:
            if age(edge(x)[0]) < self.began:
                self.captured.setdefault(edge(x), x)
            return True
        if x.store in LOST:
            msg = ("a region of checkpoint(use_reentrant=True) reads a tensor that another such region computed and did not "
                   "return: nothing recorded how, and the gradient would be without that part. Return it and pass it on, or "
                   "use use_reentrant=False. [NOTE reentrant]")
            raise UsageError(msg)
        return x.store in self.computed


# ---------------------------------------------------------------- where the second graph ends
def _cut(roots: list[Any], began: int, ends: dict[Edge, Tensor]) -> None:
    """Let every edge of the graph recorded since `began` that leads out of it lead to the end that stands for it."""
    for node in engine.reachable(roots, since=began)[0]:
        node.edges = [_end(target, nr, began, ends) for target, nr in node.edges]


def _end(target: Any, nr: int, began: int, ends: dict[Edge, Tensor]) -> Edge:
    if age(target) > began:
        return target, nr
    if (target, nr) not in ends:
        msg = (f"the recomputation of a region differentiates {target!r}, which its forward did not: the gradient would be "
               "without that part. The function must read the same tensors when it runs again.")
        raise CheckpointError(msg)
    return ends[target, nr], 0


# ---------------------------------------------------------------- as torch.utils.checkpoint
def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the tensors among `inputs` as fresh leaves with the same flags, and all else as it is.

    Source: torch.utils.checkpoint.detach_variable.
    """
    if not isinstance(inputs, tuple):
        msg = f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}"
        raise UsageError(msg)
    return tuple([x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs])


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn where no tensor among `inputs` requires grad.  Source: torch.utils.checkpoint.check_backward_validity."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


def _tensors(nest: Any) -> list[Tensor]:
    return [x for x in tree.leaves_of(nest) if isinstance(x, Tensor)]
