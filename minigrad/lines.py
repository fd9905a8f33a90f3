"""Where in the program something happens: the line that called minigrad."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

_HERE = __file__.removesuffix("lines.py")


def _frame_of_caller() -> tuple[FrameType, int]:
    """The innermost frame outside of minigrad, and how many are above the one that asks."""
    frame, depth = sys._getframe(2), 1  # noqa: SLF001
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame, depth = frame.f_back, depth + 1
    return frame, depth


def line_of_caller() -> str:
    """The innermost line outside of minigrad, as `file.py:12 (function)`."""
    frame, _ = _frame_of_caller()
    code = frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} ({code.co_name})"


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the program that called minigrad."""
    warnings.warn(text, category, stacklevel=_frame_of_caller()[1] + 1)
