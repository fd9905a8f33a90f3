"""The package's own text, parsed."""

from __future__ import annotations

import ast
import io
import tokenize
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "minigrad"


def name_of(path):
    """minigrad/ops/shape.py -> ops.shape; a package is named as itself."""
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


MODULES = {name_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree(module):
    return ast.parse(MODULES[module].read_text())


def for_types_only(module):
    """The nodes below `if TYPE_CHECKING:`."""
    return {id(inner) for node in ast.walk(tree(module)) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)
            for inner in ast.walk(node)}


def inside_functions(module):
    return {id(inner) for node in ast.walk(tree(module)) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
            for inner in ast.walk(node)}


@cache
def imports(module, *, late=False):
    """What a module imports from the package when it is loaded, or later, inside functions: {module: names}."""
    types, functions = for_types_only(module), inside_functions(module)
    package = MODULES[module].relative_to(ROOT).parent.parts
    found: dict[str, set[str]] = {}
    for node in ast.walk(tree(module)):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in types or (id(node) in functions) != late:
            continue
        base = [*package[1:len(package) - node.level + 1], *(node.module.split(".") if node.module else [])]
        for alias in node.names:
            inner = ".".join([*base, alias.name])
            target, name = (inner, "*") if inner in MODULES else (".".join(base) or "__init__", alias.name)
            found.setdefault(target, set()).add(name)
    return found


def foreign_imports(module):
    """The top-level packages that a module imports from elsewhere, at any time, for types or not."""
    found = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
    return found


def words(module):
    """The names in a module's code: no comments, docstrings or other texts."""
    found = tokenize.generate_tokens(io.StringIO(MODULES[module].read_text()).readline)
    return [token.string for token in found if token.type == tokenize.NAME]
