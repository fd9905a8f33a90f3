"""Running a program, comparing what it gives, and counting what it does.

Verdicts: `right`; `wrong: 200` (a number that differs), `wrong` (an element does); `refuses` (the library says that it does
not support this), `lacks it` (a name is missing), `error` (any other).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from .. import tracing
    from .programs import Value

TOLERANCE = 1e-12
BAN = "don't yet support saved tensor hooks"


def library(name: str) -> Any:
    """A library, with the modules that programs reach through it."""
    for module in ("utils.checkpoint", "autograd.graph", "nn.functional", "func"):
        import_module(f"{name}.{module}")
    return import_module(name)


class With:
    """A module in which some names mean something else."""

    def __init__(self, module: Any, **names: Any) -> None:
        self._module = module
        vars(self).update(names)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def ported() -> Any:
    """torch, with minigrad.upstream's functions in the place of its own."""
    torch, port = library("torch"), import_module("minigrad.upstream")
    graph = With(torch.autograd.graph, save_on_cpu=port.save_on_cpu, saved_tensors_hooks=port.saved_tensors_hooks)
    checkpoint = With(torch.utils.checkpoint, checkpoint=port.checkpoint, set_checkpoint_remat=port.set_checkpoint_remat)
    return With(torch, autograd=With(torch.autograd, graph=graph), utils=With(torch.utils, checkpoint=checkpoint))


class Outcome(NamedTuple):
    """What a program gave: a verdict, and the value or the error's type and text."""

    verdict: str
    value: Value
    text: str = ""


def attempt(function: Callable[..., Any], *args: Any) -> Any:
    """What a function returns, or the exception that it raises."""
    try:
        return function(*args)
    except Exception as error:  # noqa: BLE001  whatever a library raises is its answer
        return error


def judged(answer: Any, right: Value) -> Outcome:
    """Compare what a program returned or raised with what is right; None is whatever it returns."""
    if isinstance(answer, Exception):
        return Outcome(_kind(answer, right), type(answer).__name__, str(answer))
    value = answer.detach().tolist() if hasattr(answer, "detach") else answer
    if right is None or same(value, right):
        return Outcome("right", value)
    return Outcome(f"wrong: {value:.5g}" if isinstance(value, float) else "wrong", value)


def _kind(error: Exception, right: Value) -> str:
    if type(error).__name__ == right:
        return "right"
    if getattr(error, "refusal", False) or BAN in str(error):
        return "refuses"
    return "lacks it" if isinstance(error, AttributeError) else "error"


def same(a: Value, b: Value) -> bool:
    """Whether two values agree to TOLERANCE, relative where they are larger than 1."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    return isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= TOLERANCE * max(1.0, abs(b))


# ---------------------------------------------------------------- counting
class Account(NamedTuple):
    """What a program did: recomputations; what each backward found kept on its device; bytes copied to the host."""

    recomputed: int
    kept: list[Kept]
    copies: int
    copied: int


class Kept(NamedTuple):
    """What is kept for the graph of a level when its backward begins: distinct memories, a region's inputs among them."""

    where: str
    tensors: int
    nbytes: int


def account(log: tracing.Log) -> Account:
    """Add up a trace."""
    copies = [e.nbytes for e in log.of("copy") if e.what.endswith("to host")]
    return Account(len(log.of("recompute")), _kept(log), len(copies), sum(copies))


def _kept(log: tracing.Log) -> list[Kept]:
    alive: dict[Any, tracing.Event] = {}
    found = []
    again = 0
    for e in log.events:
        again += (e.kind == "recompute") - (e.kind == "recomputed")
        if e.kind in ("save", "checkpoint"):
            alive[e.numbers or e.what] = e
        elif e.kind == "free":
            for n in e.numbers:
                alive.pop((n,), None)
            alive.pop(e.what, None)
        elif e.kind == "backward" and not again:
            mine = [k for k in alive.values() if k.kind == "checkpoint" or k.where == e.where]
            memories = {m for k in mine for m in k.memories}
            found.append(Kept(e.where, len(memories), sum(log.sizes[m] for m in memories)))
    return found
