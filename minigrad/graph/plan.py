"""What recording an op and running its node need to know, worked out once for a row and those of its inputs that require grad.

So neither looks anything up: the shorter ways of graph/record.py are chosen here. [NOTE fast-path]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from .bare import compiled

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
        order = [name for kept in op.saves for name in op.expand(kept, len(needs))]
        # torch leaves out a save for want of requires_grad only where a single formula reads it, and never an output
        reads = [f.tensors(len(needs)) for f in op.formulas if f]
        used |= {name for name in order if name[0] == "o" or sum(name in names for names in reads) > 1}
        self.saves = tuple(name for name in order if name in used)
        place = {name: k for k, name in enumerate(self.saves)}
        self.steps: tuple[Any, ...] = tuple(f and f.compiled(place, len(needs)) for f in formulas)
        # of each save: which input it is, or None and which output
        self.places = tuple((None, int(name[3:] or 0)) if name[0] == "o" else (int(name[1:]), 0) for name in self.saves)
        # of each save: the place of its own edge among the node's, None where it has none, "out" where it is the node's output
        self.origins = tuple("out" if i is None else active.index(i) if needs[i] else None for i, _ in self.places)
        # of a single save: which input it is, or the number of inputs; and whether there are two, crossed, as of a product
        self.alone = None if len(self.places) != 1 else len(needs) if self.places[0][0] is None else self.places[0][0]
        self.crossed = self.places == ((1, 0), (0, 0))
        self.arrays = compiled(self.steps, "on_reals") if op.elementwise else None
        self.complexes = compiled(self.steps, "on_complexes") if op.elementwise else None
        # the rule on arrays, where it is one and reads what is saved or nothing: most of a chain
        single = self.arrays is not None and len(self.arrays) == 1 and len(self.saves) < 2 and self.arrays[0]
        self.one = single[0] if single and len(single[1]) == len(self.saves) else None
        # one rule that reads at most one saved tensor and nothing else
        self.lean = self.steps[0] if (len(self.steps) == 1 and self.steps[0] and not self.joint and len(self.saves) < 2
                                      and self.steps[0][1] in ((), (0,))) else None
