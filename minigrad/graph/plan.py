"""What recording an op and running its node need to know, worked out once for a row and those of its inputs that require grad.

So neither looks anything up: the shorter ways of graph/record.py are chosen here. [NOTE fast-path]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .bare import as_kernels
from .formula import expand, meaning

if TYPE_CHECKING:
    from ..op import Op

UNARY = 0b11
"""The key of the plan for one input, which requires grad."""


class Plans(dict[int, "Plan"]):
    """The plans of a row, made when first needed; the key has a bit for each input, set where it requires grad, after a 1."""

    __slots__ = ("op",)

    def __init__(self, op: Op) -> None:
        self.op = op

    def __missing__(self, needs: int) -> Plan:
        made = self[needs] = Plan(self.op, tuple(bit == "1" for bit in bin(needs)[3:]))
        return made


class Plan:
    """A row seen from its inputs that require grad: what to save, which formulas to run, and on what."""

    __slots__ = ("alone", "arrays", "complexes", "crossed", "joint", "lean", "needs", "one", "op", "origins", "places", "saves",
                 "steps")

    saves: tuple[str, ...]
    """The names of what is saved, in the order of the row."""
    places: tuple[tuple[int | None, int], ...]
    """Of each save: the number of the input that it is and 0, or None and the number of the output."""
    origins: tuple[Any, ...]
    """Of each save: which of the node's edges is its own, None where it has none, "out" where it is an output of the node."""
    steps: tuple[Any, ...]
    """Of each edge the formula, and what it reads: the number of a save, or a function of the node."""

    # short ways, where a row is such that there are any [NOTE fast-path]
    alone: int | None
    """Of a single save: the number of the input that it is, or one more than the last where it is the output."""
    crossed: bool
    """Whether two inputs are saved in the other order, as those of a product."""
    arrays: tuple[Any, ...] | None
    """The steps on arrays of real numbers; None where a formula takes tensors."""
    complexes: tuple[Any, ...] | None
    """The steps on arrays of complex numbers; None where a formula takes tensors."""
    one: Any
    """The one formula on arrays that reads what is saved, if anything: most of a chain."""
    lean: Any
    """Of the one step the formula, whether it reads what is saved, and what it reads after that."""

    def __init__(self, op: Op, needs: tuple[bool, ...]) -> None:
        self.op = op
        self.needs = needs
        active = [i for i, need in enumerate(needs) if need]
        self.joint = op.joint
        formulas: list[Any] = [op.joint] if op.joint else [op.formulas[i] for i in active]
        if None in formulas:
            msg = (f"The function '{op.name}' is not differentiable with respect to argument {active[formulas.index(None)]}. "
                   "This input cannot have requires_grad True: detach it.")
            raise UsageError(msg)
        used = {name for f in formulas if f for name in f.tensors(len(needs))}
        order = [name for kept in op.saves for name in expand(kept, len(needs))]
        # torch leaves out a save for want of requires_grad only where a single formula reads it, and never an output
        reads = [f.tensors(len(needs)) for f in op.formulas if f]
        used |= {name for name in order if meaning(name)[0] == "out" or sum(name in names for names in reads) > 1}
        self.saves = tuple(name for name in order if name in used)
        place = {name: k for k, name in enumerate(self.saves)}
        self.steps = tuple(f and f.compiled(place, len(needs)) for f in formulas)
        self.places = tuple((None, which or 0) if sort == "out" else (which, 0) for sort, which in map(meaning, self.saves))
        self.origins = tuple("out" if i is None else active.index(i) if needs[i] else None for i, _ in self.places)
        self._shorten()

    def _shorten(self) -> None:
        """Find the short ways."""
        single, only = len(self.saves) < 2, self.steps[0] if len(self.steps) == 1 else None
        numbers = [len(self.needs) if i is None else i for i, _ in self.places]
        self.alone = numbers[0] if len(numbers) == 1 else None
        self.crossed = self.places == ((1, 0), (0, 0))
        self.lean = _lean(*only) if only and single and not self.joint else None
        self.arrays = as_kernels(self.steps, "on_reals") if self.op.elementwise else None
        self.complexes = as_kernels(self.steps, "on_complexes") if self.op.elementwise else None
        rule = self.arrays[0] if self.arrays and single and len(self.arrays) == 1 else None
        self.one = rule[0] if rule and len(rule[1]) == len(self.saves) else None


def _lean(formula: Any, sources: tuple[Any, ...]) -> Any:
    """What `lean` is of a formula that reads the only save, number 0, first or not at all; None of any other."""
    reads = sources[:1] == (0,)
    others = sources[1:] if reads else sources
    return None if 0 in others else (formula, reads, others)
