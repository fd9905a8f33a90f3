"""Errors, sorted by whose fault they are.  Every text says what was found, the rule, and the fix."""

from __future__ import annotations

from typing import Any

__all__ = ["CheckpointError", "InternalError", "LevelError", "MinigradError", "Refusal", "UsageError"]


class MinigradError(RuntimeError):
    """The base of all errors that minigrad raises about its own rules: the text ends in the level stack where it was made.

    A text that shows a stack itself, because another one matters, is left as it is. [NOTE the-stack-is-shown]
    """

    refusal = False

    def __init__(self, *args: object) -> None:
        from .state import show  # noqa: PLC0415  whose devices have errors

        super().__init__(*args)
        self.stack = show()

    def __str__(self) -> str:
        text = super().__str__()
        return text if "[level stack: " in text else f"{text} [level stack: {self.stack}]"


class UsageError(MinigradError):
    """The program broke a rule; the text says which, and what to do instead."""


class LevelError(UsageError):
    """A tensor met a level that it does not belong to. [NOTE escaped-tensor]"""


class CheckpointError(UsageError):
    """A recomputation did not repeat its forward. [NOTE recomputation-is-checked]

    Source: torch.utils.checkpoint.CheckpointError.
    """


class Refusal(MinigradError):
    """A combination that is refused on purpose; the text names the rule and the way out."""

    refusal = True


class InternalError(MinigradError):
    """Something that cannot happen did: a bug in minigrad."""


def one_of(name: str, found: object, *allowed: str) -> None:
    """Raise ValueError where an argument is none of the words that it may be."""
    if found not in allowed:
        msg = f"{name} must be {', '.join(map(repr, allowed[:-1]))} or {allowed[-1]!r}, found {found!r}."
        raise ValueError(msg)


def no_dimension(dim: int, rank: int) -> IndexError:
    """The error of a dimension that a tensor has not, in torch's words."""
    if not rank:
        return IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {dim})")


def refused(msg: str) -> ValueError:
    """A refusal of an argument, where torch raises ValueError."""
    error: Any = ValueError(msg)
    error.refusal = True
    return error  # type: ignore[no-any-return]
