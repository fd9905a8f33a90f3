"""The seeds' programs, and other public reports: one text for every library, as `torch` is a parameter.

Each takes (torch, device) and returns a tensor; its right value is computed by hand, with `math` alone.  Where the right
answer is an error, `right` is the error's name.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib import import_module
from inspect import getsource
from math import cos, sin
from textwrap import dedent
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

if TYPE_CHECKING:
    from collections.abc import Callable

Value = Any
"""A number, a list of numbers, or the name of an error."""


class Program(NamedTuple):
    """A program, what it must give (None: whatever it gives), and what torch 2.13 gives on cpu, in the words of `judge`."""

    name: str
    run: Callable[[Any, str], Any]
    right: Value
    today: str
    issue: str = ""
    device: str = "sim"
    """Where minigrad runs it: on `sim` what save_on_cpu copies is copied indeed."""
    ported: str = "right"
    """What torch 2.13 with minigrad.upstream in it gives."""


# ---------------------------------------------------------------- regions: what is put around a function
def plain(torch: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return f


def checkpointed(torch: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the inputs only, and run it again in the backward."""
    return lambda *args: torch.utils.checkpoint.checkpoint(f, *args, use_reentrant=False)


def offloaded(torch: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Keep on the host what it saves."""
    def region(*args: Any) -> Any:
        with torch.autograd.graph.save_on_cpu(pin_memory=True):
            return f(*args)
    return region


def at_every_order(torch: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the inputs only, also for the derivatives of the backward."""
    def region(*args: Any) -> Any:
        with torch.utils.checkpoint.set_checkpoint_remat("every"):
            return checkpointed(torch, f)(*args)
    return region


def both(torch: Any, f: Callable[..., Any]) -> Callable[..., Any]:
    """Keep the inputs only, and these on the host."""
    return offloaded(torch, checkpointed(torch, f))


# ---------------------------------------------------------------- f and its derivatives
def f(x: Any) -> Any:
    """The seeds' function."""
    return x.sin().sin()


def derivative(n: int, x: float) -> float:
    """The n-th derivative of sin(sin x), worked out by hand."""
    s, c, outer, inner = sin(x), cos(x), sin(sin(x)), cos(sin(x))
    return (outer,
            inner * c,
            -outer * c**2 - inner * s,
            -inner * c**3 + 3 * outer * s * c - inner * c,
            outer * c**4 + 6 * inner * s * c**2 + outer * (4 * c**2 - 3 * s**2) + inner * s)[n]


def number(torch: Any, value: float, device: str) -> Any:
    """A float64 scalar."""
    return torch.tensor(value, dtype=torch.float64, device=device)


POINTS = [0.5, 1.0, 1.5, 2.0]


def numbers(torch: Any, device: str) -> Any:
    """The points, as a leaf of level 0."""
    return torch.tensor(POINTS, dtype=torch.float64, device=device).requires_grad_()


def nested(order: int, region: Callable[..., Any]) -> Callable[[Any, str], Any]:
    """A program of that order."""
    def nested_grad(torch: Any, device: str) -> Any:
        """grad(grad(... g)) at 5, where g is f in a region."""
        g = region(torch, f)
        for _ in range(order):
            g = torch.func.grad(g)
        return g(number(torch, 5.0, device))
    return nested_grad


# ---------------------------------------------------------------- the seeds' other programs
def autograd_of_grad(torch: Any, device: str) -> Any:
    """The gradient of grad(g) by ordinary autograd: its result must require grad, as x does."""
    x = number(torch, 5.0, device).requires_grad_()
    gx = torch.func.grad(checkpointed(torch, f))(x)
    assert gx.requires_grad
    return torch.autograd.grad(gx, x)[0]


def requires_grad_survives(torch: Any, device: str) -> Any:
    """1 where grad(g)(x) requires grad, as x does."""
    x = number(torch, 5.0, device).requires_grad_()
    return number(torch, float(torch.func.grad(checkpointed(torch, f))(x).requires_grad), device)


def create_graph(torch: Any, device: str) -> Any:
    """The second derivative of g by ordinary autograd alone."""
    x = number(torch, 5.0, device).requires_grad_()
    gx, = torch.autograd.grad(checkpointed(torch, f)(x), x, create_graph=True)
    return torch.autograd.grad(gx, x)[0]


def sandwich(torch: Any, device: str) -> Any:
    """grad_0(checkpoint(grad_1(f))): what grad_1 saves is its own business, all of it runs again for grad_0."""
    return torch.func.grad(checkpointed(torch, torch.func.grad(f)))(number(torch, 5.0, device))


def backward_inside(torch: Any, device: str) -> Any:
    """A region that differentiates f by ordinary autograd, and is differentiated itself: all of it runs again."""
    x = number(torch, 5.0, device).requires_grad_()
    g = checkpointed(torch, lambda x: torch.autograd.grad(f(x), x, create_graph=True)[0])
    return torch.autograd.grad(g(x), x)[0]


def single_layer_detach(torch: Any, device: str) -> Any:
    """d/dx of d/dy (y * sd(x * y)) at y = x: sd cuts the inner level only, so 2 x remains."""
    grad, sd = torch.func.grad, torch.autograd.shallow_detach
    return grad(lambda x: grad(lambda y: y * sd(x * y))(x))(number(torch, 5.0, device))


# ---------------------------------------------------------------- levels that have gone when the backward runs
def vmap_then_backward(torch: Any, device: str) -> Any:
    """vmap has returned when the backward runs the region again."""
    x = numbers(torch, device)
    torch.func.vmap(checkpointed(torch, f))(x).sum().backward()
    return x.grad


def vjp_later(torch: Any, device: str) -> Any:
    """The level that vjp entered has gone when its function is called."""
    _, pull = torch.func.vjp(checkpointed(torch, f), number(torch, 5.0, device))
    return pull(number(torch, 1.0, device))[0]


def dropout_in_vmap(torch: Any, device: str) -> Any:
    """The gradient less what the forward's masks make it, for every sample its own: all zero."""
    torch.manual_seed(0)
    x = numbers(torch, device)
    region = checkpointed(torch, lambda x: torch.nn.functional.dropout(x.sin(), 0.5, True))
    y = torch.func.vmap(region, randomness="different")(x)
    y.sum().backward()
    return x.grad - y.detach() / x.detach().sin() * x.detach().cos()


# ---------------------------------------------------------------- other transforms
def per_sample(torch: Any, device: str) -> Any:
    """vmap(grad(g)): per-sample gradients."""
    return torch.func.vmap(torch.func.grad(checkpointed(torch, f)))(numbers(torch, device).detach())


def jvp_of_grad(torch: Any, device: str) -> Any:
    """jvp(grad(g)), forward over reverse."""
    x = number(torch, 5.0, device)
    return torch.func.jvp(torch.func.grad(checkpointed(torch, f)), (x,), (torch.ones_like(x),))[1]


def dual_level_left(torch: Any, device: str) -> Any:
    """A dual level around g; backward of the tangent after the level was left."""
    x = number(torch, 5.0, device).requires_grad_()
    with torch.autograd.forward_ad.dual_level():
        y = checkpointed(torch, f)(torch.autograd.forward_ad.make_dual(x, torch.ones_like(x)))
        tangent = torch.autograd.forward_ad.unpack_dual(y).tangent
    tangent.backward()
    return x.grad


def jacobian(torch: Any, device: str) -> Any:
    """jacrev(g), its diagonal."""
    return torch.func.jacrev(checkpointed(torch, f))(numbers(torch, device).detach()).diagonal()


def hessian(torch: Any, device: str) -> Any:
    """hessian of the sum of g, its diagonal."""
    g = checkpointed(torch, f)
    return torch.func.hessian(lambda x: g(x).sum())(numbers(torch, device).detach()).diagonal()


# ---------------------------------------------------------------- what a second run must not change, or must notice
def accumulates_once(torch: Any, device: str) -> Any:
    """A region that calls .backward(): the second run must not add to w.grad again."""
    w = number(torch, 5.0, device).requires_grad_()

    def region(x: Any) -> Any:
        f(w).backward()
        return f(x)
    checkpointed(torch, region)(number(torch, 1.0, device).requires_grad_()).backward()
    return w.grad


def own_generator(torch: Any, device: str) -> Any:
    """The gradient of x * noise less the noise, which is drawn from a generator of one's own: all zero."""
    source = torch.Generator(device).manual_seed(0)
    x = numbers(torch, device)
    y = checkpointed(torch, lambda x: x * torch.rand(x.shape, generator=source, dtype=x.dtype, device=device))(x)
    y.sum().backward()
    return x.grad - y.detach() / x.detach()


SCALE = ContextVar("SCALE", default=1.0)


def context_variable(torch: Any, device: str) -> Any:
    """A context variable that is set around the forward only."""
    x = number(torch, 1.0, device).requires_grad_()
    token = SCALE.set(3.0)
    y = checkpointed(torch, lambda x: (x * SCALE.get()).sin())(x)
    SCALE.reset(token)
    y.backward()
    return x.grad


def captured_and_changed(torch: Any, device: str) -> Any:
    """A weight that the region captures is updated before the backward: 4, or an error; never 10000."""
    w = number(torch, 2.0, device)
    x = number(torch, 1.0, device).requires_grad_()
    y = checkpointed(torch, lambda x: x * w * w)(x)
    w.fill_(100.0)
    y.backward()
    return x.grad


def offloaded_and_changed(torch: Any, device: str) -> Any:
    """A host weight under save_on_cpu is updated before the backward: 4, or an error; never 200."""
    w = number(torch, 2.0, device).requires_grad_()
    with torch.autograd.graph.save_on_cpu():
        y = w * w
    with torch.no_grad():
        w.fill_(100.0)
    y.backward()
    return w.grad


# ---------------------------------------------------------------- other doors in
def custom_function(torch: Any, device: str) -> Any:
    """grad(grad(g)), where the sine of g is an autograd.Function."""
    class Sine(torch.autograd.Function):  # type: ignore[misc]
        generate_vmap_rule = True

        @staticmethod
        def forward(x: Any) -> Any:
            return x.sin()

        @staticmethod
        def setup_context(ctx: Any, inputs: Any, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.saved_tensors[0].cos()

    g = checkpointed(torch, lambda x: Sine.apply(Sine.apply(x)))
    return torch.func.grad(torch.func.grad(g))(number(torch, 5.0, device))


def trace(torch: Any, device: str) -> Any:
    """The graph of grad(grad(g)), traced at 1 and run at 5."""
    make_fx = import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx
    graph = make_fx(torch.func.grad(torch.func.grad(checkpointed(torch, f))))(number(torch, 1.0, device))
    return graph(number(torch, 5.0, device))


def autocast_left(torch: Any, device: str) -> Any:
    """autocast around the forward only: 1 where the second run saves what the first one saved."""
    x = torch.ones(2, 2, device=device).requires_grad_()
    with torch.autocast(device, dtype=torch.float16):
        y = checkpointed(torch, lambda x: x @ x)(x)
    y.sum().backward()
    return (x.grad == 4.0).all().to(torch.float64)


# ---------------------------------------------------------------- all of them
_REGIONS = (("plain", plain, "right", "right", ""), ("checkpoint", checkpointed, "refuses", "right", "functorch#993"),
            ("every", at_every_order, "lacks it", "right", ""),
            ("save_on_cpu", offloaded, "refuses", "right", "functorch#993"),
            ("both", both, "refuses", "right", "functorch#993"))
_EACH = [derivative(1, x) for x in POINTS]
_ZEROS = [0.0] * len(POINTS)

PROGRAMS = {
    "derivatives of sin(sin(x)) at 5": [
        Program(f"grad^{n}/{title}", nested(n, region), derivative(n, 5.0), today, issue, ported=ported)
        for title, region, today, ported, issue in _REGIONS for n in (1, 2, 3, 4)],
    "ordinary autograd around it, and inside of it": [
        Program("create-graph", create_graph, derivative(2, 5.0), "right"),
        Program("autograd-of-grad", autograd_of_grad, derivative(2, 5.0), "refuses", "functorch#993"),
        Program("requires-grad-survives", requires_grad_survives, 1.0, "refuses", "functorch#993"),
        Program("sandwich", sandwich, derivative(2, 5.0), "refuses", "pytorch#89166"),
        Program("backward-inside", backward_inside, derivative(2, 5.0), "right", "pytorch#89166"),
        Program("single-layer-detach", single_layer_detach, 10.0, "lacks it", "functorch#993", ported="lacks it")],
    "other transforms, and levels that have gone when the backward runs": [
        Program("per-sample", per_sample, _EACH, "refuses", "pytorch#146036"),
        Program("jacrev", jacobian, _EACH, "refuses", "pytorch#141845"),
        Program("hessian", hessian, [derivative(2, x) for x in POINTS], "refuses", "pytorch#141845"),
        Program("jvp-of-grad", jvp_of_grad, derivative(2, 5.0), "refuses", "pytorch#187316"),
        Program("dual-level-left", dual_level_left, derivative(2, 5.0), "error", "pytorch#129293"),
        Program("vjp-later", vjp_later, derivative(1, 5.0), "refuses", "pytorch#122729"),
        Program("vmap-then-backward", vmap_then_backward, _EACH, "error", "pytorch#165880"),
        Program("dropout-in-vmap", dropout_in_vmap, _ZEROS, "error", "pytorch#165880")],
    "what a second run must not change, and what it must notice": [
        Program("accumulates-once", accumulates_once, derivative(1, 5.0), "wrong: 0.32587"),
        Program("own-generator", own_generator, _ZEROS, "wrong", "pytorch#26013", ported="wrong"),
        Program("context-variable", context_variable, 3 * cos(3.0), "wrong: 1.6209", "pytorch#184018"),
        Program("captured-and-changed", captured_and_changed, "CheckpointError", "wrong: 10000"),
        Program("offloaded-and-changed", offloaded_and_changed, "UsageError", "wrong: 200", "pytorch#128545", "cpu", "error")],
    "other doors in: custom functions, traces, modes": [
        Program("custom-function", custom_function, derivative(2, 5.0), "refuses", "functorch#993"),
        Program("trace", trace, derivative(2, 5.0), "refuses", "functorch#993"),
        Program("autocast-left", autocast_left, 1.0, "right")],
}


def text_of(program: Callable[..., Any]) -> str:
    """A program's source, after that of what it calls in its file."""
    found: dict[Any, None] = {}
    seen: set[Any] = set()

    def look(function: FunctionType) -> None:
        seen.add(function)
        cells = [cell.cell_contents for cell in function.__closure__ or ()]
        for used in [*(function.__globals__.get(name) for name in function.__code__.co_names), *cells]:
            if isinstance(used, FunctionType) and used.__module__ == program.__module__ and used not in seen:
                look(used)
        found[function] = None

    look(cast("FunctionType", program))
    return "\n\n".join(dedent(getsource(function)).rstrip() for function in found)
