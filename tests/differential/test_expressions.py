"""Public ops and torch's: values, dtypes, gradients, and what is saved for them."""

import numpy as np
import pytest

from tests.differential.expressions import ERRORS, EXPRESSIONS, arrays
from tests.differential.harness import LIBRARIES, RTOL, Raised, is_tensor, judge, outcome

ARRAYS = arrays()


def environment(t, code):
    """The tensors that an expression names, fresh; floating ones require grad."""
    found = {"t": t, "F": t.nn.functional, "np": np}
    for name in code.co_names:
        if name in ARRAYS:
            found[name] = t.tensor(ARRAYS[name], requires_grad=ARRAYS[name].dtype.kind in "fc")
    return found


def flat(x):
    return [leaf for item in x for leaf in flat(item)] if isinstance(x, (tuple, list)) else [x]


def evaluated(line):
    """A program: the value of an expression, and the gradients of all it names."""
    code = compile(line, "<expression>", "eval")

    def program(t):
        env = environment(t, code)
        value = eval(code, env)  # noqa: S307
        roots = [y for y in flat(value) if is_tensor(y) and y.requires_grad and not y.is_leaf]
        inputs = {name: x for name, x in env.items() if is_tensor(x) and x.requires_grad}
        grads = {}
        if roots:
            weights = [np.cos(np.arange(y.numel()) + k).reshape(tuple(y.shape)) for k, y in enumerate(roots)]
            loss = sum((y * t.tensor(w, dtype=y.dtype)).abs().square().sum() for y, w in zip(roots, weights, strict=True))
            loss.backward()
            grads = {name: x.grad for name, x in inputs.items()}
        return value, grads
    return program


def saved(line):
    """A program: shape, dtype and bytes of every save, in order."""
    code = compile(line, "<expression>", "eval")

    def program(t):
        env, packed = environment(t, code), []

        def pack(x):
            packed.append((tuple(x.shape), str(x.dtype).rpartition(".")[2], x.numel() * x.element_size()))
            return x

        with t.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
            eval(code, env)  # noqa: S307
        return packed
    return program


@pytest.mark.parametrize("line", EXPRESSIONS)
def test_value_and_gradients(line):
    names = compile(line, "<expression>", "eval").co_names
    coarsest = max([RTOL[ARRAYS[n].dtype.name] for n in names if n in ARRAYS and ARRAYS[n].dtype.name in RTOL], default=0)
    judge(line, *[outcome(evaluated(line), t) for t in LIBRARIES.values()], rtol=coarsest)


@pytest.mark.parametrize("line", EXPRESSIONS)
def test_saves(line):
    """H1: what is saved, how often, in which order and with how many bytes."""
    judge(f"saves: {line}", *[outcome(saved(line), t) for t in LIBRARIES.values()])


@pytest.mark.parametrize("row", ERRORS.strip().splitlines(), ids=lambda row: row.split("|")[0].strip())
def test_errors_are_of_torchs_kind_and_words(row):
    line, _, words = (part.strip() for part in row.partition("|"))
    mine, theirs = (outcome(evaluated(line), t) for t in LIBRARIES.values())
    judge(line, mine, theirs)
    if isinstance(theirs, Raised) and isinstance(mine, Raised):
        assert words in str(theirs.error)
        assert words in str(mine.error)
