"""Public names are torch's: the same program text runs on both."""

import importlib
import inspect
import types

import pytest
import torch

import minigrad
from tests.house.public import NAMESPACES, OWN, public_methods

NAMES = [f"{where}.{name}" for where, namespace in NAMESPACES.items() for name in namespace]


def torchs(where):
    return importlib.import_module(where.replace("minigrad", "torch", 1))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OWN])
def test_torch_has_the_name(name):
    where, _, last = name.rpartition(".")
    assert hasattr(torchs(where), last), f"{name} is no name of torch: make it private, or write it into OWN with a reason"


@pytest.mark.parametrize("name", OWN)
def test_a_name_of_our_own_is_not_torchs(name):
    where, _, last = name.rpartition(".")
    assert name in NAMES
    assert not hasattr(torchs(where), last)


@pytest.mark.parametrize("name", public_methods())
def test_a_method_of_tensor_is_torchs(name):
    assert hasattr(torch.Tensor, name), f"Tensor.{name} is no name of torch"


DEPRECATED = {"size_average", "reduce", "grad_variables", "only_inputs"}
MISSING_KEYWORDS = {
    "normalize": {"out"},
    "l1_loss": {"weight"}, "mse_loss": {"weight"}, "huber_loss": {"weight"},
}
"""What torch's function takes beside, and ours does not."""


def keywords(f):
    """The names that arguments after the first can be given by; the first, f or x here, is positional."""
    rest = list(inspect.signature(f).parameters.values())[1:]
    return {p.name for p in rest if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name[0] != "_"}


@pytest.mark.parametrize("where", ["minigrad.func", "minigrad.utils.checkpoint", "minigrad.autograd", "minigrad.autograd.graph",
                                   "minigrad.autograd.functional", "minigrad.nn.functional"])
def test_keywords_are_torchs(where):
    """Of the functions that torch writes in python: every keyword after the first argument is ours, or listed."""
    missing = {}
    for name, f in NAMESPACES[where].items():
        theirs = getattr(torchs(where), name, None)
        if inspect.isfunction(theirs) and inspect.isfunction(f):
            lost = keywords(theirs) - keywords(f) - DEPRECATED
            if lost:
                missing[name] = lost
    assert missing == {name: lost for name, lost in MISSING_KEYWORDS.items() if name in missing}


def test_version_is_there():
    assert minigrad.__version__


@pytest.mark.parametrize("where", ["minigrad", "minigrad.linalg", "minigrad.fft", "minigrad.special", "minigrad.nn.functional"])
def test_function_modes_are_asked_about_every_function(where):
    """A row asks by itself; any other function is published (minigrad/modes.py)."""
    unasked = [name for name, f in NAMESPACES[where].items() if type(f) is types.FunctionType and name != "publish"
               and not hasattr(f, "op") and not hasattr(f, "__published__")]
    assert unasked == []
