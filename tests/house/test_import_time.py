"""Importing minigrad brings in little that numpy has not brought in already."""

import subprocess
import sys

import pytest

ALLOWED = {"__future__", "_contextvars", "contextvars", "weakref", "warnings", "inspect", "typing", "functools", "re", "math", "itertools",
           "contextlib", "enum", "operator", "types", "collections", "copyreg", "_weakrefset", "abc", "gc", "keyword", "reprlib"}
"""Standard modules that are cheap, and that numpy imports, too, in some of its versions."""

DIFFERENCE = """
import sys
import numpy
before = set(sys.modules)
import minigrad
print(*sorted({m.partition(".")[0] if not m.startswith("numpy") else m for m in set(sys.modules) - before} - {"minigrad"}))
"""

SECONDS = """
import numpy, time
start = time.perf_counter()
import minigrad
print(time.perf_counter() - start)
"""


def run(program):
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout


def test_no_module_beyond_numpys():
    assert set(run(DIFFERENCE).split()) <= ALLOWED


def test_neither_numpy_random_nor_cupy_nor_torch_is_imported():
    program = "import minigrad, sys; print(*[m for m in ('torch', 'cupy', 'scipy', 'dataclasses') if m in sys.modules])"
    assert not set(run(program).split()) & {"torch", "cupy", "scipy"}


@pytest.mark.slow
def test_the_import_takes_few_milliseconds(tmp_path, monkeypatch):
    """Beyond numpy's, from compiled files."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert min(float(run(SECONDS)) for _ in range(5)) < 0.06
