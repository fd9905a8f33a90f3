"""What the ops of a run were: to say where a recomputation parts from its forward. [NOTE recomputation-is-checked]"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..state import Watcher
from ..tensor import Tensor

if TYPE_CHECKING:
    from ..interpreters.base import Interpreter


class OpLog(Watcher):
    """The ops of one run, with what they read and gave; for checkpoint's debug, and with checksums for its check of values."""

    __slots__ = ("ops", "values")

    def __init__(self, *, values: bool) -> None:
        self.values = values
        self.ops: list[tuple[str, list[int]]] = []
        """What people see of each op, and the checksums of what it read and gave."""

    def notice(self, event: str, owner: Interpreter | None, subject: Any, detail: Any) -> None:
        if owner is None and event == "op":
            self.ops.append((f"{subject.name}({', '.join([_seen(x) for x in detail])})", self._sums(detail)))
        elif event == "kept":  # by a policy: no kernel ran
            read, gave = detail
            self.ops.append((f"{subject.name}({', '.join([_seen(x) for x in read])})", self._sums(read) + self._sums(gave)))
        elif owner is None and event == "made" and self.values and self.ops:
            self.ops[-1][1].extend(self._sums([subject]))

    def _sums(self, parts: Any) -> list[int]:
        return [checksum(x) for x in parts if type(x) is Tensor] if self.values else []

    def against(self, other: OpLog) -> str:
        """Where both runs part, as far as both went."""
        for at, (mine, its) in enumerate(zip(self.ops, other.ops, strict=False)):
            if mine != its:
                how = "on other values" if mine[0] == its[0] else f"in the forward, {its[0]} in the recomputation"
                return f" The runs differ from op {at} on: {mine[0]}{', ' if mine[0] == its[0] else ' '}{how}."
        return ""

    def beside(self, other: OpLog) -> str:
        """Both runs, op by op."""
        return "".join([f"\n\nOperations executed during {run}:\n\n" + "\n".join([text for text, _ in log.ops])
                        for run, log in (("the original forward", self), ("recomputation", other))]) + "\n\n"


def checksum(base: Tensor) -> int:
    """A number that differs where the elements of a base tensor do, but for chance."""
    return hash(base.device.look(base.value).tobytes())


def _seen(x: Any) -> str:
    return f"{x.dtype.name}{list(x.shape)}" if isinstance(x, Tensor) else repr(x)
