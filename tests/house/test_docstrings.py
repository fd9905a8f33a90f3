"""Every public name says what it means, and where it is from."""

import ast
import inspect

import pytest

import minigrad
from tests.house.public import NAMESPACES, OWN, public_methods
from tests.house.sources import MODULES, tree

PLAIN = (bool, int, float, str, tuple, minigrad.dtype)


def functions():
    """(name, object) of all that is public, a function or a class."""
    for where, namespace in NAMESPACES.items():
        for name, value in namespace.items():
            if (callable(value) or isinstance(value, property)) and not isinstance(value, PLAIN):
                yield f"{where}.{name}", value


@pytest.mark.parametrize("name", [name for name, _ in functions()])
def test_a_public_name_has_a_docstring(name):
    value = dict(functions())[name]
    assert (inspect.getdoc(value) or "").strip(), f"{name} says nothing"


@pytest.mark.parametrize("name", [name for name, _ in functions() if name not in OWN])
def test_what_is_torchs_names_its_source(name):
    doc = inspect.getdoc(dict(functions())[name]) or ""
    assert "Source: torch." in doc, f"{name} does not say which function of torch it is"


@pytest.mark.parametrize("name", public_methods())
def test_a_method_of_tensor_says_what_it_means_and_names_its_source(name):
    doc = inspect.getdoc(getattr(minigrad.Tensor, name)) or ""
    assert "Source: torch." in doc, f"Tensor.{name} does not say which function of torch it is"


@pytest.mark.parametrize("module", MODULES)
def test_a_docstring_can_be_read_alone(module):
    """help() shows one without its neighbours: none goes on where another ended, or is the same as it."""
    found = [node.value.value.strip() for node in ast.walk(tree(module))
             if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)]
    assert not [text for text in found if text.startswith(("...", "The same")) or text.endswith("...")]
