"""Connectionist temporal classification: how likely a sequence is, whatever its alignment.

Labels are read with blanks between and around them; in each step an alignment stays where it is, goes on by one, or passes a
blank between two labels that differ.  One scan over time sums over all alignments.

Source: Graves, Fernández, Gomez, Schmidhuber, Connectionist temporal classification (2006), (5) to (8);
torch.nn.functional.ctc_loss.
"""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING, Any

from ..dtypes import int64
from ..errors import UsageError
from ..modes import publish
from ..ops.choice import clamp_min, where
from ..ops.creation import arange, as_tensor, full_like
from ..ops.embedding import pad
from ..ops.gather import gather
from ..ops.indexing import masked_fill
from ..ops.joining import narrow, split, stack
from ..ops.shape import reshape, squeeze, unsqueeze, widened
from ..ops.softmax import logsumexp
from ..tensor import Tensor
from .reductions import check_reduction, reduced

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["ctc_loss"]

NEVER = -1e30
"""The logarithm of what cannot be: finite, so that derivatives are numbers."""


def ctc_loss(log_probs: Tensor, targets: Tensor, input_lengths: Tensor | Sequence[int], target_lengths: Tensor | Sequence[int],
             blank: int = 0, reduction: str = "mean", zero_infinity: bool = False) -> Tensor:
    """Minus the logarithm of the probability of each target sequence, inf (or 0 with zero_infinity) where it does not fit.

    log_probs (T, N, C), or (T, C); targets (N, S), or all of them in one vector; a mean divides by their lengths first.
    The derivative is log_probs' own, that of the sum over alignments.  Source: torch.nn.functional.ctc_loss.
    """
    if log_probs.ndim == 2:
        out = ctc_loss(unsqueeze(log_probs, 1), reshape(targets, 1, -1), reshape(_lengths(input_lengths, log_probs), 1),
                       reshape(_lengths(target_lengths, log_probs), 1), blank, reduction, zero_infinity)
        return squeeze(out, 0) if reduction == "none" else out
    _check(log_probs, targets, reduction, blank)
    steps = log_probs.shape[0]
    ends, sizes = _lengths(input_lengths, log_probs), _lengths(target_lengths, log_probs)
    labels = _with_blanks(_padded(targets, sizes) if targets.ndim == 1 else targets, sizes, blank)
    passes = pad((labels[:, 2:] != labels[:, :-2]) & (labels[:, 2:] != blank), (2, 0))
    seen = gather(log_probs, 2, widened(unsqueeze(labels, 0), steps, *labels.shape))
    total = pad(seen[0, :, :2], (0, labels.shape[1] - 2), value=NEVER) if labels.shape[1] > 1 else seen[0]
    for t in range(1, steps):
        ways = [total, _later(total, 1), where(passes, _later(total, 2), NEVER)]
        moved = logsumexp(stack(ways), 0) + seen[t]
        total = where(unsqueeze(t < ends, 1), moved, total)
    last = unsqueeze(sizes * 2, 1)
    final = stack([gather(total, 1, last), where(last > 0, gather(total, 1, clamp_min(last - 1, 0)), NEVER)])
    loss = -squeeze(logsumexp(final, 0), 1)
    loss = masked_fill(loss, loss > -NEVER / 2, 0 if zero_infinity else inf)
    return reduced(loss / clamp_min(sizes, 1) if reduction == "mean" else loss, reduction)


def _check(log_probs: Tensor, targets: Tensor, reduction: str, blank: int) -> None:
    check_reduction(reduction)
    if not 0 <= blank < log_probs.shape[2]:
        msg = f"blank must be in label range, 0 to {log_probs.shape[2] - 1}, but it is {blank}"
        raise UsageError(msg)
    if targets.ndim not in (1, 2) or targets.dtype.is_floating_point:
        msg = f"targets must be a vector or a matrix of integers, but got {list(targets.shape)} of {targets.dtype}"
        raise UsageError(msg)


def _lengths(given: Any, like: Tensor) -> Tensor:
    return as_tensor(given if isinstance(given, Tensor) else list(given), dtype=int64, device=like.device)


def _padded(targets: Tensor, sizes: Tensor) -> Tensor:
    """Sequences one after the other as rows of a matrix."""
    extents = sizes.tolist()
    return stack([pad(row, (0, max(extents) - row.shape[0])) for row in split(narrow(targets, 0, 0, sum(extents)), extents)])


def _with_blanks(labels: Tensor, sizes: Tensor, blank: int) -> Tensor:
    """Blanks between and around labels, and in place of what is in a row after the last one."""
    blanks = full_like(labels, blank)
    labels = where(arange(labels.shape[1], device=labels.device) < unsqueeze(sizes, 1), labels, blanks)
    pairs = reshape(stack([blanks, labels], 2), labels.shape[0], labels.shape[1] * 2)
    return pad(pairs, (0, 1), value=blank).to(int64)  # type: ignore[no-any-return]


def _later(x: Tensor, n: int) -> Tensor:
    """What was n labels before."""
    return pad(x, (n, 0), value=NEVER)[:, :x.shape[1]]


publish(globals())
