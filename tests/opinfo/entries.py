"""Which entries of torch's database minigrad covers, and which samples a check is asked of."""

from __future__ import annotations

import functools

import torch
from torch.testing._internal.common_methods_invocations import op_db

from .checks import CHECKS
from .libraries import DTYPES, counterpart, programs
from .oracle import NoAnswer, Oracle

ENTRIES = {entry.full_name: entry for entry in op_db}
COVERED = [name for name, entry in ENTRIES.items()
           if counterpart(entry) is not None and entry.supported_dtypes("cpu") & DTYPES.keys()]


def differentiable(name, dtype="float64"):
    """Whether torch differentiates the entry in that dtype."""
    return ENTRIES[name].supports_autograd and getattr(torch, dtype) in ENTRIES[name].supported_backward_dtypes("cpu")


def asked(name, check, dtype):
    """Whether a check is asked of an entry, in a dtype."""
    entry = ENTRIES[name]
    if check.differentiates:
        return differentiable(name, dtype)
    return entry.supports_dtype(getattr(torch, dtype), "cpu")


@functools.lru_cache(maxsize=8)
def samples(name, dtype):
    """(program, oracle) of every sample; what torch differentiates requires grad in them."""
    entry = ENTRIES[name]
    made = programs(entry, lambda: entry.sample_inputs_func(entry, "cpu", getattr(torch, dtype), differentiable(name, dtype)))
    return [(program, Oracle(program)) for program in made]


@functools.lru_cache(maxsize=8)
def wrong_samples(name):
    """The same of the samples that torch refuses."""
    entry = ENTRIES[name]
    if entry.error_inputs_func is None:
        return []
    made = programs(entry, lambda: (wrong.sample_input for wrong in entry.error_inputs_func(entry, "cpu")))
    return [(program, Oracle(program)) for program in made]


QUESTIONS = [(name, key, dtype) for name in COVERED for key, check in CHECKS.items() for dtype in check.dtypes
             if asked(name, check, dtype)]
"""(entry, check, dtype)."""


LARGE = {"grid_sampler_3d"}
"""Entries of whose samples one is enough where a check does not ask about all: they take minutes."""


def answers(name, key, dtype, most=None):
    """(program, how it deviates or None) of every sample that a question is asked of, at most so many; none where torch fails."""
    check = CHECKS[key]
    found = wrong_samples(name) if key == "errors" else samples(name, dtype)
    if check.differentiates:
        found = [(program, oracle) for program, oracle in found if program.active]
    limit = 1 if name in LARGE and check.most < len(found) else check.most
    for program, oracle in thinned(found, min(most or limit, limit)):
        try:
            check.ask(program, oracle)
        except NoAnswer:
            continue
        except Exception as error:  # noqa: BLE001  a deviation, whatever it is
            yield program, error
        else:
            yield program, None


def thinned(found, most):
    """At most so many of them, evenly spaced, the first and the last among them."""
    n = len(found)
    return found if n <= most else [found[round(k * (n - 1) / max(most - 1, 1))] for k in range(most)]
