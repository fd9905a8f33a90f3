"""Every row of the op table, by the name of the module variable that holds it: {"pointwise.sin": <function>}."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil

import minigrad
from minigrad.op import Op


def modules():
    """All modules of the package."""
    names = [info.name for info in pkgutil.walk_packages(minigrad.__path__, "minigrad.")]
    return [minigrad, *[importlib.import_module(name) for name in names if not name.endswith("__main__")]]


def _imported(module):
    """The names that a module has from elsewhere."""
    return {alias.asname or alias.name for node in ast.walk(ast.parse(inspect.getsource(module)))
            if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}


def _functions(name, value):
    """The rows that a module variable holds, itself or in a container."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        value = list(value.items())
    elif isinstance(value, (tuple, list)):
        value = list(enumerate(value))
    else:
        value = [(None, value)]
    for key, f in value:
        if isinstance(getattr(f, "op", None), Op):
            yield (name if key is None else f"{name}.{key}"), f


def _home(op):
    """The module that a row's own functions were written in."""
    functions = [f.function for f in (op.joint, *op.formulas) if f] + [op.kernel]
    return next((f.__module__ for f in functions if hasattr(f, "__module__")), None)


def _table():
    names = {}
    for module in modules():
        if module.__name__.count(".") == 0 or module.__name__ == "minigrad.operators":
            continue
        imported = _imported(module)
        for name, value in list(vars(module).items()):
            if name not in imported:
                for key, f in _functions(name, value):
                    names.setdefault(f.op, []).append((module.__name__ != _home(f.op), module.__name__, key, f))
    found = {}
    for op, known in names.items():
        _, module, key, f = min(known, key=lambda entry: entry[0])
        found[f"{module.rpartition('.')[2]}.{key}"] = f
        assert op is f.op
    return found


TABLE = _table()
