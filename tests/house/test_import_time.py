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


def loaded_after(program):
    return run(f"import sys, minigrad; {program}; print(*[m for m in sys.modules if m.startswith('minigrad.')])").split()


def test_no_op_and_no_transform_is_imported():
    families = ("minigrad.ops", "minigrad.graph", "minigrad.autograd", "minigrad.interpreters", "minigrad.func", "minigrad.nn")
    assert not [m for m in loaded_after("0") if m.startswith(families)]


def test_a_program_that_asks_for_one_op_imports_no_other_family():
    loaded = loaded_after("minigrad.tensor(1.0).sin()")
    assert "minigrad.ops.pointwise" in loaded
    assert not [m for m in loaded if m.startswith(("minigrad.ops.linalg", "minigrad.autograd", "minigrad.func"))]


@pytest.mark.slow
def test_the_import_takes_few_milliseconds(tmp_path, monkeypatch):
    """Beyond numpy's, from compiled files."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert min(float(run(SECONDS)) for _ in range(5)) < 0.03
