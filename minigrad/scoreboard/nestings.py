"""A slice of the composition matrix: each nesting of transforms, around each body in each region, equals its plain program.

A nesting is written as what stands around the body, outermost first: `grad W grad` differentiates a region (W) around the
gradient of the body.  The plain program is the same with a W that does nothing.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from .judge import Outcome, attempt, judged
from .programs import both, checkpointed, offloaded, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    Around = Callable[[Any, Callable[..., Any]], Callable[..., Any]]


# ---------------------------------------------------------------- bodies: from three numbers to three numbers
def data(torch: Any, device: str, *shape: int) -> Any:
    """A tensor of that shape, with numbers that are the same in any library."""
    numbers = [((7 * i) % 11) / 6 - 0.8 for i in range(1, prod(shape) + 1)]
    return torch.tensor(numbers, dtype=torch.float64, device=device).reshape(shape)


def captured(torch: Any, device: str) -> Callable[..., Any]:
    """Parameters, leaves of level 0, that the region captures."""
    w = data(torch, device, 4, 3).requires_grad_()
    b = data(torch, device, 4).requires_grad_()
    return lambda x: (torch.tanh(x @ w.t() + b) @ w).sin()


def dropout(torch: Any, device: str) -> Callable[..., Any]:
    """Random numbers, which the second run must draw again."""
    return lambda x: torch.nn.functional.dropout(x.sin() * 2, 0.5, True).cos()


def in_place(torch: Any, device: str) -> Callable[..., Any]:
    """Writes into a tensor of its own, through a view too."""
    def body(x: Any) -> Any:
        y = x * 2
        y.sin_()
        y[1:].mul_(x[1:])
        return y.cos() * x
    return body


BODIES = {f.__name__: f for f in (captured, dropout, in_place)}


# ---------------------------------------------------------------- regions
def identity_hooks(torch: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Hooks that pack what they are given."""
    def region(*args: Any) -> Any:
        with torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            return f(*args)
    return region


REGIONS: dict[str, Around] = {
    "checkpoint": checkpointed,
    "checkpoint(checkpoint)": lambda torch, f: checkpointed(torch, checkpointed(torch, f)),
    "save_on_cpu": offloaded,
    "save_on_cpu(checkpoint)": both,
    "checkpoint(save_on_cpu)": lambda torch, f: checkpointed(torch, offloaded(torch, f)),
    "identity hooks": identity_hooks,
}


# ---------------------------------------------------------------- what stands around them
def _energy(h: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x: h(x).pow(2).sum()


def _backward(torch: Any, h: Callable[..., Any]) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        _energy(h)(x).backward()
        return x.grad
    return run


TRANSFORMS: dict[str, Around] = {
    "backward": _backward,
    "autograd": lambda torch, h: lambda x: torch.autograd.grad(_energy(h)(x), x, create_graph=True)[0],
    "grad": lambda torch, h: torch.func.grad(_energy(h)),
    "vjp": lambda torch, h: lambda x: torch.func.vjp(h, x)[1](x)[0],
    "jvp": lambda torch, h: lambda x: torch.func.jvp(h, (x,), (x,))[1],
    "jacrev": lambda torch, h: lambda x: torch.func.jacrev(h)(x) @ x,
    "jacfwd": lambda torch, h: lambda x: torch.func.jacfwd(h, randomness="different")(x) @ x,
    "vmap": lambda torch, h: torch.func.vmap(h, randomness="different"),
}

NESTINGS = {
    "backward W": "......", "autograd autograd W": "......", "backward W autograd": "......",
    "grad W": "rrrrrr", "grad grad W": "rrrrrr", "grad grad grad W": "rrrrrr", "grad W grad": "rrrrrr",
    "grad W grad W": "rrrrrr", "vjp W": "rrrrrr",
    "jacrev W": "rrrrrr", "jacrev jacrev W": "rrrrrr", "jacfwd jacrev W": "rrrrrr",
    "jvp W": "......", "jvp grad W": "rrrrrr", "grad jvp W": "rrrrrr", "grad W jvp": "rrrrrr",
    "vmap W": "...E..", "vmap grad W": "rrrrrr", "grad vmap W": "rrrrrr", "vmap grad grad W": "rrrrrr", "vmap W grad": "rrrErr",
    "backward vmap W": "EE.E..", "backward grad W": "rrrrrr", "backward vmap grad W": "rrrrrr", "backward jvp W": "EE.E..",
}
"""Each with what torch 2.13 does on cpu: a letter for each of REGIONS, the same for every body."""
PORTED = "......"
"""What torch 2.13 with minigrad.upstream in it does with each of them."""


def run(torch: Any, nesting: str, region: Around, body: str, device: str) -> Any:
    """The value of one cell."""
    torch.manual_seed(0)
    words = nesting.split()
    h = BODIES[body](torch, device)
    for word in reversed(words):
        h = region(torch, h) if word == "W" else TRANSFORMS[word](torch, h)
    x = data(torch, device, *[2] * words.count("vmap"), 3)
    return h(x.requires_grad_() if words[0] in ("backward", "autograd") else x)


def outcomes(torch: Any, nesting: str, device: str) -> list[list[Outcome]]:
    """For each region its outcomes, body by body, judged by the plain program."""
    plainly = {body: run(torch, nesting, plain, body, device).detach().tolist() for body in BODIES}
    return [[judged(attempt(run, torch, nesting, region, body, device), right) for body, right in plainly.items()]
            for region in REGIONS.values()]


def letter(of: list[Outcome]) -> str:
    """The worst of some outcomes: `.` right, `r` refused, `E` an error, `W` wrong."""
    verdicts = {o.verdict for o in of} - {"right"}
    return "." if not verdicts else "W" if "wrong" in verdicts else "r" if verdicts == {"refuses"} else "E"


def letters(of: list[list[Outcome]]) -> str:
    """A letter for each region."""
    return "".join(map(letter, of))
