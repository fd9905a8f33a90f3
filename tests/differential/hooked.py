"""Random programs as in statements.py, of hooks of every kind, and of backwards from several roots to some of the inputs.

Compared is what else hooks hear: of nodes, of accumulations and of several gradients, in their order.  torch keeps the hooks of an
accumulation with a node that lives as long as a graph that leads to it, or as somebody holds it; here somebody does.
"""

from __future__ import annotations

from tests.differential.statements import BINARY, Maker, Side, numbers

ALIKE = ("Sin", "Cos", "Tanh", "Sigmoid", "Exp", "Mul", "Neg", "Clone", "Square", "Sine", "Seen")
"""Nodes that have the same edges in both libraries, but for those that lead nowhere."""
FREED_ALIKE = [line for line in BINARY if "alpha" not in line and "lerp" not in line]
"""Without those whose number minigrad saves, and lets go of, with the tensors: a second backward is an error then."""


class Hooked(Side):
    """A library with hooks that note what they hear; `times` is what they return it multiplied by, where not None."""

    def __init__(self, t):
        super().__init__(t)
        self.held = []
        self.names |= {"before": self.before, "after": self.after, "accumulated": self.accumulated, "several": self.several,
                       "end": self.end, "joint": t.autograd.graph.register_multi_grad_hook, "roots": t.autograd.backward}

    def end(self, x):
        """The node that accumulates into a leaf."""
        self.held.append(x.view_as(x).grad_fn.next_functions[0][0])
        return self.held[-1]

    def before(self, name, times=None):
        return lambda cts: self._heard(name, "before", cts) or _scaled(cts, times)

    def after(self, name, times=None):
        return lambda grads, cts: self._heard(name, "after", grads, cts) or _scaled(grads, times)

    def accumulated(self, name):
        return lambda x: self._heard(name, "accumulated", [x.grad])

    def several(self, name):
        return lambda found: self._heard(name, "several", found if isinstance(found, (list, tuple)) else [found])

    def _heard(self, *what):
        self.log.append(tuple(x if isinstance(x, str) else tuple(numbers(g) for g in x if g is not None) for x in what))


def _scaled(grads, times):
    return None if times is None else tuple(None if g is None else g * times for g in grads)


class HookMaker(Maker):
    """Makes such a program."""

    side_of = Hooked

    def kinds(self):
        return {"leaf": 5, "unary": 8, "binary": 8, "view": 4, "reduced": 3, "write": 3, "hook": 6, "flags": 1, "backward": 4, "grad": 2,
                "node_hook": 6, "end_hook": 5, "roots": 9, "joint": 3}

    def make_binary(self, name, x):
        return self.under(f"{self.new()} = {self.filled(FREED_ALIKE, name, x)}")

    def make_node_hook(self, name, x):
        if x.grad_fn is None or not x.grad_fn.name().startswith(ALIKE):
            return f"{name}.retain_grad()"
        times = self.random.choice(["None", "None", "2"])
        if times == "2":
            self.scaled.add(name)
        return self.random.choice([f"{name}.grad_fn.register_prehook(before('{name}', {times}))",
                                   f"{name}.grad_fn.register_hook(after('{name}', {times}))"])

    def make_end_hook(self, name, x):
        if not x.is_leaf or not x.requires_grad:
            return f"{name}.retain_grad()"
        return self.random.choice([f"{name}.register_post_accumulate_grad_hook(accumulated('{name}'))",
                                   f"end({name}).register_prehook(before('{name}', {self.random.choice(['None', '2'])}))",
                                   f"end({name}).register_hook(after('{name}'))"])

    def make_roots(self, name, x):
        """From at least two: what torch does with an only root is a verdict."""
        found = list(dict.fromkeys(self.one()[0] for _ in range(3)))
        found = found * 2 if len(found) == 1 else found
        cts = [f"t.ones_like({y}) * {self.random.randint(1, 3)}" for y in found]
        ends = ", ".join(dict.fromkeys(self.one()[0] for _ in range(self.random.randint(1, 3))))
        options = self.random.choice(["", "retain_graph=True", "create_graph=True"]), self.random.choice(["", f"inputs=[{ends}]"])
        arguments = [f"[{', '.join(found)}]", f"[{', '.join(cts)}]", *filter(None, options)]
        return f"roots({', '.join(arguments)})"

    def make_joint(self, name, x):
        ends = dict.fromkeys(self.one(lambda x: x.requires_grad and x.numel() <= 24)[0] for _ in range(self.random.randint(1, 3)))
        if None in ends:
            return f"{name}.retain_grad()"
        return f"joint([{', '.join(ends)}], several('{' '.join(ends)}'), mode='{self.random.choice(['all', 'all', 'any'])}')"
