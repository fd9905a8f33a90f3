"""Importing minigrad brings in little that numpy has not brought in already."""

import subprocess
import sys

import pytest

ALLOWED = {"__future__", "_contextvars", "contextvars", "weakref", "warnings", "inspect", "typing", "functools", "re", "math", "itertools",
           "contextlib", "enum", "operator", "types", "collections", "copyreg", "_weakrefset", "abc", "gc", "keyword", "reprlib",
           "importlib"}
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


RACE = """
import os, sys, threading, minigrad
sys.setswitchinterval(1e-6)
ASKED = ("inference_mode", "set_grad_enabled", "autograd", "relu", "adjoint", "addmv_", "nn", "utils")
BOTH = [name for name in ASKED if hasattr(minigrad.Tensor, name)]


def ask(i):
    together.wait()
    for name in ASKED[i:] + ASKED[:i]:
        getattr(minigrad, name)
    for name in BOTH:
        found[i].append(getattr(minigrad.Tensor, name))


together, found = threading.Barrier(len(ASKED)), [[] for _ in ASKED]
threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(ASKED))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert found == [[getattr(minigrad, name) for name in BOTH]] * len(ASKED)
"""


def test_threads_that_ask_for_names_at_once_find_the_same():
    for _ in range(4):
        assert subprocess.run([sys.executable, "-c", RACE], capture_output=True, text=True, check=True).stderr == ""


def test_a_method_of_two_names_is_called_the_same_whichever_is_asked_for_first():
    for first in ("__rdiv__", "__rtruediv__"):
        program = f"from minigrad import Tensor; Tensor.{first}; print(Tensor.__rdiv__.__name__, Tensor.__rtruediv__.__name__)"
        assert run(program).split() == ["__rdiv__", "__rdiv__"]


def test_no_file_asks_for_a_late_name_while_it_is_imported():
    """Who does would wait for another thread that finds one, and hold what that waits for."""
    program = """
import importlib, minigrad, pkgutil, sys

class Loud:
    def __enter__(self):
        frame = sys._getframe(1)
        while frame := frame.f_back:
            if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"].startswith("minigrad."):
                print(frame.f_globals["__name__"])
    def __exit__(self, *error):
        pass

minigrad.names.FINDING = minigrad.methods.FINDING = Loud()
for module in pkgutil.walk_packages(minigrad.__path__, "minigrad."):
    if not module.name.startswith(("minigrad.upstream", "minigrad.__main__")):
        importlib.import_module(module.name)
"""
    assert run(program) == ""


@pytest.mark.slow
def test_the_import_takes_few_milliseconds(tmp_path, monkeypatch):
    """Beyond numpy's, from compiled files."""
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", str(tmp_path))
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert min(float(run(SECONDS)) for _ in range(5)) < 0.03
