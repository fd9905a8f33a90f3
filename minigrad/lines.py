"""Where in the program something happens: the line that called minigrad."""

from __future__ import annotations

import sys
from pathlib import Path

_HERE = str(Path(__file__).parent)


def line_of_caller() -> str:
    """The innermost line outside of minigrad, as `file.py:12 (function)`."""
    frame = sys._getframe(1)  # noqa: SLF001
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    code = frame.f_code
    return f"{code.co_filename.rpartition('/')[2]}:{frame.f_lineno} ({code.co_name})"
