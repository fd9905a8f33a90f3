"""Anomaly mode: a node that fails, or that gives nan, names the line of the forward that made it. [NOTE anomaly]

Who watches notes the stack of each node as it is made, and which node ran then; it is kept beside the node, for as long.

Source: torch.autograd.anomaly_mode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..scope import Scope
from ..state import State, Watcher, current
from ..tensor import Tensor, bases

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..interpreters.base import Interpreter

__all__ = ["detect_anomaly", "set_detect_anomaly"]


_PACKAGE = __file__.removesuffix("autograd/anomaly_mode.py")


class Anomaly(Watcher):
    """Notes where nodes come from, and looks at what they give."""

    __slots__ = ("check_nan", "running")

    def __init__(self, *, check_nan: bool) -> None:
        self.check_nan = check_nan
        self.running: list[Node] = []

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if event == "node":
            _remember(subject, self.running[-1] if self.running else None)
        elif event == "run":
            self.running.append(subject)
        elif event == "failed":
            self.running.pop()
            _report(subject)
        elif event == "ran":
            self.running.pop()
            if self.check_nan:
                _look(subject, detail)


def _remember(node: Node, parent: Node | None) -> None:
    from traceback import StackSummary, walk_stack  # noqa: PLC0415  only where a program looks for an error

    stack = StackSummary.extract(walk_stack(None), lookup_lines=False)
    stack.reverse()
    while stack and stack[-1].filename.startswith(_PACKAGE):
        stack.pop()
    metadata = node.metadata
    metadata["traceback_"] = stack
    if parent is not None:
        metadata["parent_"] = parent


def _look(node: Node, grads: list[Any]) -> None:
    for nr, grad in enumerate(grads):
        if isinstance(grad, Tensor) and grad.dtype.differentiable and any(map(_has_nan, bases(grad))):
            _report(node)
            msg = f"Function '{node.name()}' returned nan values in its {nr}th output."
            raise UsageError(msg)


def _has_nan(base: Tensor) -> bool:
    return bool(base.device.xp.isnan(base.value).any())


def _report(node: Node) -> None:
    """Warn with the stack of the node's forward, then with those of the nodes in whose backward it was made."""
    metadata = node.metadata
    _warn(f"Error detected in {node.name()}. " + (
        f"Traceback of forward call that caused the error:\n{_text(metadata)}" if "traceback_" in metadata else
        "No forward pass information available. Enable detect anomaly during forward pass for more information."))
    while "parent_" in metadata:
        parent = metadata["parent_"]
        metadata = parent.metadata
        _warn(f"\n\nPrevious calculation was induced by {parent.name()}. " + (
            f"Traceback of forward call that induced the previous calculation:\n{_text(metadata)}" if "traceback_" in metadata
            else "No forward pass information available."))


def _text(metadata: dict[Any, Any]) -> str:
    return "".join(metadata["traceback_"].format())


def _warn(text: str) -> None:
    """Warn, and where warnings are errors, print: the error that is under way is not replaced."""
    import sys  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    try:
        warnings.warn(text, stacklevel=1)
    except UserWarning:
        print(text, file=sys.stderr)  # noqa: T201  what torch does


def _anomaly(state: State) -> Anomaly | None:
    return next((w for w in state.watchers if isinstance(w, Anomaly)), None)


def is_anomaly_enabled() -> bool:
    """Whether nodes are watched.  Source: torch.is_anomaly_enabled."""
    return _anomaly(current()) is not None


def is_anomaly_check_nan_enabled() -> bool:
    """Whether their gradients are looked at.  Source: torch.is_anomaly_check_nan_enabled."""
    found = _anomaly(current())
    return found is None or found.check_nan


class detect_anomaly(Scope):  # noqa: N801  torch spells it so
    """Within it, nodes remember where they were made, and a backward through one that fails or gives nan says it.

    check_nan: whether a gradient with a nan in it is an error.  Source: torch.autograd.detect_anomaly.
    """

    _mode = True

    def __init__(self, check_nan: bool = True) -> None:
        import warnings  # noqa: PLC0415

        super().__init__()
        self.check_nan = check_nan
        warnings.warn("Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for "
                      "debugging.", stacklevel=2)

    def inside(self, outside: State) -> State:
        others = tuple([w for w in outside.watchers if not isinstance(w, Anomaly)])
        return outside._replace(watchers=(Anomaly(check_nan=self.check_nan), *others) if self._mode else others)


class set_detect_anomaly(detect_anomaly):  # noqa: N801  torch spells it so
    """Turn anomaly mode on or off: at once, and as a context manager until its end.

    Source: torch.autograd.set_detect_anomaly.
    """

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        Scope.__init__(self)
        self._mode, self.check_nan = mode, check_nan
        super().__enter__()

    def __enter__(self) -> None:
        """Nothing: it is in force since it was made."""
