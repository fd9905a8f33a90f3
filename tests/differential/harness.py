"""One program text, two libraries: run it in both, and compare what came of it.

Upstream: torch 2.13; see verdicts.toml for where it refuses or differs.
"""

from __future__ import annotations

import tomllib
import warnings
from contextvars import copy_context
from pathlib import Path

import numpy as np
import torch
import torch.autograd.graph
import torch.func
import torch.nn.functional
import torch.utils.checkpoint

import minigrad
import minigrad.autograd.graph
import minigrad.func
import minigrad.nn.functional
import minigrad.utils.checkpoint

LIBRARIES = {"minigrad": minigrad, "torch": torch}
RTOL = {"float64": 1e-12, "complex128": 1e-12, "float32": 2e-6, "complex64": 2e-6, "float16": 2e-3}
BUILTIN = (IndexError, TypeError, ValueError, RuntimeError)  # torch's NotImplementedError is a RuntimeError, too


# ---------------------------------------------------------------- outcomes
def is_tensor(x):
    return isinstance(x, (minigrad.Tensor, torch.Tensor))


def dtype_name(x):
    return str(x.dtype).rpartition(".")[2]


def plain(x):
    """What a program returned, as numpy arrays and python values."""
    if is_tensor(x):
        return Array(x)
    if isinstance(x, (tuple, list)):
        return [plain(item) for item in x]
    if isinstance(x, dict):
        return {key: plain(item) for key, item in x.items()}
    if type(x).__name__ == "dtype":
        return dtype_name_of(x)
    return x


def dtype_name_of(dtype):
    return str(dtype).rpartition(".")[2]


class Array:
    """A tensor as numbers, with all that both libraries must agree in."""

    def __init__(self, x):
        self.dtype = dtype_name(x)
        self.shape = tuple(x.shape)
        self.requires_grad = bool(x.requires_grad)
        host = x.detach().cpu()
        self.numbers = np.array(host.numpy(force=True) if isinstance(x, torch.Tensor) else host.numpy())

    def __repr__(self):
        return f"{self.dtype}{list(self.shape)}{'*' if self.requires_grad else ''} {self.numbers.tolist()}"


class Raised:
    """An error, by its builtin kind."""

    def __init__(self, error):
        self.error = error
        self.kind = next((kind for kind in BUILTIN if isinstance(error, kind)), type(error))

    def __repr__(self):
        return f"{type(self.error).__name__}: {self.error}"


def outcome(program, library, *args):
    """What the program returned, or how it failed."""
    try:
        with warnings.catch_warnings():
            if library is torch:  # its own use of its own deprecated parts
                warnings.simplefilter("ignore")
            return copy_context().run(lambda: plain(program(library, *args)))  # whatever State a program leaves
    except Exception as error:  # noqa: BLE001  an outcome like any other
        return Raised(error)


# ---------------------------------------------------------------- comparing
def difference(mine, theirs, where="", *, requires_grad=True, rtol=0.0):
    """Why two outcomes differ, or None; numbers may differ by what their dtype allows, or by rtol of the largest."""
    more = {"requires_grad": requires_grad, "rtol": rtol}
    if isinstance(mine, Raised) or isinstance(theirs, Raised):
        if isinstance(mine, Raised) and isinstance(theirs, Raised) and issubclass(mine.kind, theirs.kind):
            return None
        return f"{where}: minigrad {mine!r}, torch {theirs!r}"
    if isinstance(mine, list) and isinstance(theirs, list) and len(mine) == len(theirs):
        each = (difference(a, b, f"{where}[{i}]", **more) for i, (a, b) in enumerate(zip(mine, theirs, strict=True)))
        return next((found for found in each if found), None)
    if isinstance(mine, dict) and isinstance(theirs, dict) and mine.keys() == theirs.keys():
        each = (difference(mine[k], theirs[k], f"{where}[{k!r}]", **more) for k in mine)
        return next((found for found in each if found), None)
    if isinstance(mine, Array) and isinstance(theirs, Array):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            return f"{where}: minigrad {mine!r}, torch {theirs!r}"
        if requires_grad and mine.requires_grad != theirs.requires_grad:
            return f"{where}: requires_grad is {mine.requires_grad} in minigrad, {theirs.requires_grad} in torch"
        rtol = max(RTOL[mine.dtype], rtol) if mine.dtype in RTOL else 0
        finite = np.isfinite(theirs.numbers)
        scale = max(np.max(np.abs(theirs.numbers), initial=0, where=finite), 1e-3) if rtol else 0
        if np.allclose(mine.numbers, theirs.numbers, rtol=0, atol=rtol * scale, equal_nan=True):
            return None
        return f"{where}: minigrad {mine!r}, torch {theirs!r}"
    if isinstance(mine, float) and isinstance(theirs, float):
        same = mine == theirs or (mine != mine and theirs != theirs) or abs(mine - theirs) <= 1e-12 * max(abs(theirs), 1e-3)
        return None if same else f"{where}: minigrad {mine!r}, torch {theirs!r}"
    return None if type(mine) is type(theirs) and mine == theirs else f"{where}: minigrad {mine!r}, torch {theirs!r}"


# ---------------------------------------------------------------- verdicts
def _verdicts():
    found = {}
    for row in tomllib.loads(Path(__file__).with_name("verdicts.toml").read_text())["verdict"]:
        assert {"tests", "says", "reason"} <= row.keys() <= {"tests", "features", "says", "text", "issue", "reason"}, row
        assert row["says"] in ("refuses", "differs"), row
        for test in row["tests"]:
            for name in [f"{test}[{feature}]" for feature in row["features"]] if "features" in row else [test]:
                assert name not in found, f"two verdicts on {name}"
                found[name] = row
    return found


VERDICTS = _verdicts()


def judge(test, mine, theirs, *, oracle=None, **more):
    """minigrad and torch agree, or a verdict says how they do not; a verdict that no longer holds fails, too.

    oracle: what torch gives for the same program without the feature, which minigrad's must equal where torch refuses.
    """
    verdict = VERDICTS.get(test)
    found = difference(mine, theirs, **more)
    if verdict is None:
        assert found is None, f"{found}\n(if torch is wrong or refuses: a row for {test!r} in verdicts.toml)"
        return
    assert found is not None, f"torch and minigrad agree now: remove the verdict on {test!r}"
    if verdict["says"] == "refuses":
        assert isinstance(theirs, Raised), f"torch no longer refuses {test!r}, it gives {theirs!r}"
        assert not isinstance(mine, Raised), f"minigrad fails: {mine!r}"
    if "text" in verdict:
        said = theirs if isinstance(theirs, Raised) else mine
        assert isinstance(said, Raised), f"nothing was raised, and the verdict on {test!r} has a text"
        assert verdict["text"] in str(said.error)
    if oracle is not None:
        found = difference(mine, oracle, **more)
        assert found is None, f"not even what torch gives for the plain program: {found}"
