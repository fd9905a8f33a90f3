"""One op is one row, and `bind` is how an op meets the stack.

A row holds the kernel, what it saves, and the three ways it changes: vjp, jvp, batch.  A row without one of them cannot
be made.  Rules are ordinary functions of ops on tensors, so they nest; what a rule reads is said by its parameter names
(graph/formula.py): ct, x0, out, shape0, dim.

A vjp may read only what `saves` declares (in the order torch saves it), so nothing is kept that hooks cannot see.
[NOTE what-is-saved]

`bind` finds the highest level that an argument belongs to and lets its interpreter process the op; where no argument
belongs to a level, the kernel runs and level 0 records.  Levels that no argument belongs to cost nothing.

Upstream: derivatives.yaml, BatchRules*.cpp; DynamicLayer.cpp (dispatch).
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from .backend import HOST_ARRAY, HOST_SCALAR, NUMPY_DTYPE, as_array, dtype_of, host_type, share_memory
from .dtypes import BOOL, FLOAT, dtype, of_scalar, result_type
from .errors import LevelError, Refusal, UsageError
from .graph.formula import Formula, expand
from .graph.plan import Plans
from .graph.record import record
from .inference import retyped
from .modes import meet, row_at_base
from .state import State, below, current, tell, using
from .subclass import ask, classes
from .tensor import Tensor, base_tensor, fresh, storage_of
from .views import link

if TYPE_CHECKING:
    from collections.abc import Callable

    from .backend import Array, Device
    from .interpreters.base import Interpreter
    from .row import OpFunction

Rule = Any

ANY_BOOL = -1
"""A key of `refuses` beside the categories of dtypes."""


class Op:
    """One row.

    kernel    f(xp, *arrays, **params), or the name of such a function in the array namespace
    vjp, jvp  a tuple with one rule for each input (None: no derivative), or one rule for all inputs together, which
              gets tangents and gives cotangents as lists; jvp="linear" applies the op itself; None: not differentiable
    batch     f(op, size, values, bdims, params) -> (out, bdim), see ops/batching.py
    promote   "arith" brings inputs to one dtype, "float" to a floating one, "first" to that of the first, None leaves them
    outs      how many outputs; 0 means a tuple of as many as the kernel gives
    view      the output may share memory with the first input
    elementwise  its rules are made of operators and elementwise ops alone, so that they mean the same on arrays; batched so
    fits      cotangents are brought back to each input's shape and dtype (what promote implies)
    summed    f(ct, what the vjp reads, shape): the vjp, and then the sum over what broadcasting an input of that shape repeated
    refuses   categories of the common dtype that torch has no kernel for (ANY_BOOL: any bool input), with its words, or ""
              for its usual ones
    """

    __slots__ = ("arity", "batch", "broadcasts", "call", "differentiable", "elementwise", "formulas", "joint", "jvp", "kernel",
                 "name", "node_name", "outs", "plans", "promote", "reads_shapes", "refuses", "saves", "summed", "view")

    call: OpFunction
    arity: int
    """How many arguments the fast path takes; 0 where there is none."""

    def __init__(self, name: str, kernel: Any, *, vjp: Rule, jvp: Rule, batch: Callable[..., Any],
                 saves: tuple[str, ...] = (), promote: str | None = None, outs: int = 1, view: bool = False,
                 fits: bool = False, elementwise: bool = False, node: str | None = None,
                 refuses: dict[int, str] | None = None, summed: Callable[..., Tensor] | None = None) -> None:
        self.name = name
        self.node_name = node or "".join(part.capitalize() for part in name.strip("_").split("_")) + "Backward0"
        self.kernel = kernel
        self.saves = saves
        self.promote = promote
        self.refuses = refuses or {}
        self.outs = outs
        self.view = view
        self.batch = batch
        self.summed = summed
        self.differentiable = vjp is not None
        self.joint = Formula(vjp) if callable(vjp) else None
        self.formulas = [f and Formula(f) for f in vjp] if isinstance(vjp, tuple) else []
        self.jvp = (jvp if jvp is None or jvp == "linear" else Formula(jvp) if callable(jvp)
                    else [f and Formula(f) for f in jvp])
        self.elementwise = elementwise
        self.broadcasts = fits or promote is not None
        self.plans = Plans(self)
        rules = [f for f in [self.joint, *self.formulas] if f]
        self.reads_shapes = any(sort in ("shape", "shapes") for f in rules for sort, _ in f.reads)
        most = 8  # inputs, where there may be any number of them: more than a rule names
        unsaved = {n for f in rules for n in f.tensors(most)} - {e for s in saves for e in expand(s, most)}
        if unsaved:
            msg = f"the vjp of {name} reads {sorted(unsaved)}, which its row does not declare in `saves`."
            raise TypeError(msg)

    def __repr__(self) -> str:
        return f"<row {self.name}>"


# ---------------------------------------------------------------- binding: an op meets the stack
def bind(op: Op, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
    """Run `op` at the highest level that one of its arguments belongs to. [NOTE who-processes-an-op]"""
    state = current()
    if state.ahead:
        return meet(op.call, op.call, args, params, state)
    top = None
    for x in args:
        if type(x) is not Tensor:
            if isinstance(x, Tensor):
                return ask(op.call, args, params, classes(args))
        elif x.owner is not None and x.owner is not top:
            if x.owner not in state.levels:
                return bind(op, tuple(revive(a, state) if type(a) is Tensor else a for a in args), params)
            if top is None or state.levels.index(x.owner) > state.levels.index(top):
                top = x.owner
    if top is None:
        out = _run(op, args, params, state)
    else:
        if state.watchers:
            tell(state.watchers, "op", top, op, args)
        out = top.process(op, args, params)
    if op.view and op.differentiable:
        link(out, args[0], step(op, args[1:], params))
    return out


def step(op: Op, rest: tuple[Any, ...], params: dict[str, Any]) -> Callable[[Tensor], Tensor]:
    """How to make the view again.  It keeps nothing of the tensor viewed, whose node may come to hold it. [NOTE in-place]"""
    return lambda x: op.call(x, *rest, **params)


def draw(op: Op, params: dict[str, Any]) -> Any:
    """Run an op that has no arguments and draws random numbers: every level on the stack has a say, the top first."""
    state = current()
    if not state.levels:
        return _run(op, (), params, state)
    return state.levels[-1].draw(op, params)


def draw_below(me: Interpreter, op: Op, params: dict[str, Any]) -> Any:
    """Go on with `draw` one storey down."""
    with using(below(me)):
        return draw(op, params)


def revive(x: Tensor, state: State) -> Tensor:
    """The tensor that a wrapper means whose level has gone, through every such layer. [NOTE escaped-tensor]"""
    while x.owner is not None and x.owner not in state.levels:
        if x.owner in state.closed:
            msg = (f"{state.closed_by} uses a tensor of {x.owner} that is not among its arguments: what it computes from it "
                   "would not be differentiated or batched. Pass the tensor as an argument. [NOTE custom-function]")
            raise Refusal(msg)
        if state.strict_levels:
            msg = (f"a tensor of {x.owner} was used after its level has gone. Return it from the "
                   "transformed function instead. [NOTE escaped-tensor]")
            raise LevelError(msg)
        x = x.owner.escaped(x)
    return x


# ---------------------------------------------------------------- the base: kernels on arrays, recorded by level 0
def _run(op: Op, args: tuple[Any, ...], params: dict[str, Any], state: State) -> Any:
    out = _kernel(op, args, params, state) if not state.dispatch_modes else row_at_base(op, args, params, state)
    if op.differentiable and (not state.grad_off or None not in state.grad_off):
        for x in args:
            if type(x) is Tensor and x.node is not None and (op.outs != 1 or out.dtype.category >= FLOAT):
                record(op, None, args, out, params, state)
                break
    return out


def _kernel(op: Op, args: tuple[Any, ...], params: dict[str, Any], state: State) -> Any:
    device, arrays = _arrays(op, args, params, state)
    if state.watchers:
        tell(state.watchers, "op", None, op, args)
    try:
        made = device.kernel(op.kernel)(*arrays, **params)
    except ValueError as error:
        raise mismatch(op, args, error) from error
    return _wrap(op, made, args, device) if op.outs == 1 else tuple([_wrap(op, m, args, device) for m in made])


def _arrays(op: Op, args: tuple[Any, ...], params: dict[str, Any], state: State) -> tuple[Device, list[Any]]:
    """Where the op runs, and on which arrays: on one device, in one dtype where the row says so."""
    if args and type(args[0]) is Tensor:
        kind = args[0].kind
        if (kind.dtype.category == FLOAT and FLOAT not in op.refuses) or not op.promote:
            for x in args:
                if type(x) is not Tensor or (x.kind is not kind and (op.promote or x.kind.device is not kind.device)):
                    break
            else:
                return kind.device, [x.value for x in args]
    device = params["device"] if not args and "device" in params else _common_device(op, args)
    if op.promote:
        return device, _promoted(op, args, state, device)
    return device, [_value(x, device) if type(x) is Tensor else x for x in args]


def _value(x: Tensor, device: Device) -> Array:
    """The array; where the op runs elsewhere the number in it, which kernels of any device take."""
    return x.value if x.kind.device is device else x.value[()]


def _wrap(op: Op, made: Array, args: tuple[Any, ...], device: Device) -> Tensor:
    if type(made) is Tensor:
        return made
    array = made if type(made) is HOST_ARRAY else as_array(made, device)
    if op.view and share_memory(array, args[0].value):
        kind = args[0].kind if array.dtype is args[0].value.dtype else retyped(args[0].kind, dtype_of(array))
        return base_tensor(array, kind, array.shape, storage_of(args[0]))
    return fresh(array, dtype_of(array), device)


def _common_device(op: Op, args: tuple[Any, ...]) -> Device:
    first: Tensor | None = None
    for x in args:
        if type(x) is Tensor:
            if first is None or (first.device is not x.device and not first.value.shape and first.device.kind == "cpu"):
                first = x
            elif x.device is not first.device and (x.value.shape or x.device.kind != "cpu"):
                msg = (f"{op.name}: Expected all tensors to be on the same device, but found at least two devices, "
                       f"{first.device} and {x.device}! Move one with Tensor.to().")
                raise UsageError(msg)
    if first is None:
        msg = f"{op.name}(): expected a Tensor, but got {', '.join(type(x).__name__ for x in args) or 'no argument'}."
        raise TypeError(msg)
    return first.device


def _promoted(op: Op, args: tuple[Any, ...], state: State, on: Device) -> list[Any]:
    """Arrays in the op's common dtype, by torch's rules; python numbers stay numbers, which numpy treats as weak."""
    shaped: list[dtype] = []
    zero_dim: list[dtype] = []
    scalars: list[dtype] = []
    numbers = list(args)
    for i, x in enumerate(args):
        if type(x) is Tensor:
            (shaped if x.value.shape else zero_dim).append(x.dtype)
        elif isinstance(x, HOST_SCALAR):  # before float, which numpy.float64 is too: to torch it is as weak as any number
            numbers[i] = x.item()
            scalars.append(of_scalar(numbers[i], state.default_dtype))
        elif isinstance(x, (bool, int, float, complex)):
            scalars.append(of_scalar(x, state.default_dtype))
        else:
            msg = f"{op.name}(): argument {i} must be Tensor or Number, not {type(x).__name__}."
            raise TypeError(msg)
    common = args[0].dtype if op.promote == "first" else result_type(shaped, zero_dim, scalars)
    if op.promote == "float" and common.category < FLOAT:
        common = state.default_dtype
    if op.refuses:
        _refuse(op, common, [*shaped, *zero_dim, *scalars])
    target = NUMPY_DTYPE[common]
    # a ufunc that comes to the type by itself casts piece by piece, without an array for it
    casts = isinstance(op.kernel, str) and host_type(*[NUMPY_DTYPE[d] for d in shaped + zero_dim]) == target
    arrays = []
    for x in numbers:
        if type(x) is Tensor:
            value = _value(x, on)
            arrays.append(value if casts or x.dtype is common else on.kernel(_astype)(value, target))
        elif common.category < FLOAT or isinstance(x, bool):  # an int that does not fit wraps round, as in torch
            arrays.append(on.xp.asarray(x).astype(target))
        else:
            arrays.append(x)
    return arrays


def _astype(xp: Any, array: Array, target: Any) -> Array:
    return array.astype(target)


def _refuse(op: Op, common: dtype, given: list[dtype]) -> None:
    found = op.refuses.get(common.category)
    if found is None and any(d.category == BOOL for d in given):
        found = op.refuses.get(ANY_BOOL)
    if found is not None:
        raise UsageError(found or f"\"{op.name}\" not implemented for '{common.name}'")


def mismatch(op: Op, args: tuple[Any, ...], error: Exception) -> UsageError:
    """Torch's text for shapes that do not broadcast, else what the kernel said, with shapes and stack."""
    shapes = [x.shape for x in args if type(x) is Tensor]
    for a, b in combinations(shapes, 2) if op.broadcasts else ():
        for k in range(1, min(len(a), len(b)) + 1):
            if a[-k] != b[-k] and 1 not in (a[-k], b[-k]):
                return UsageError(
                    f"The size of tensor a ({a[-k]}) must match the size of tensor b ({b[-k]}) at non-singleton dimension "
                    f"{max(len(a), len(b)) - k} ({op.name} of {list(a)} and {list(b)}).")
    return UsageError(f"{op.name}: {error} (found shapes {', '.join(map(str, map(list, shapes)))}).")
