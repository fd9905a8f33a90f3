"""The table of private names is all that the port knows of torch's inside."""

import ast
import re
import warnings
from pathlib import Path

import pytest
import torch

import minigrad.upstream
from minigrad.upstream import private

SOURCES = {path.stem: path.read_text() for path in Path(minigrad.upstream.__file__).parent.glob("*.py") if path.stem != "private"}
PATHS = [path for path, _ in private.TABLE.values()]
READ_WHERE_USED = {"version", "dual_level", "debug_everywhere", "stop_everywhere"}


def imported(source):
    return {alias.name for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module == "private"
            for alias in node.names}


def test_every_name_of_the_table_is_used():
    used = set().union(*(imported(source) for source in SOURCES.values()))
    assert used | READ_WHERE_USED == set(private.TABLE)


@pytest.mark.parametrize("module", SOURCES)
def test_a_private_name_of_torch_is_in_the_table(module):
    code = ast.unparse(ast.parse(SOURCES[module]))
    for path in re.findall(r"\b((?:torch|forward_ad)(?:\.\w+)*\._[a-z]\w*)", code):
        inside = path.replace("forward_ad", "torch.autograd.forward_ad").removeprefix("torch.")
        assert any(inside == p or inside.startswith(p + ".") for p in PATHS), f"{path} is private and not in the table"
    for line in re.findall(r"from (torch[\w.]*) import ([^\n]+)", code):
        assert "._" not in ".".join(line), f"{line} is private"


def test_a_name_that_this_torch_lacks_is_named_with_its_use(monkeypatch):
    monkeypatch.setitem(private.TABLE, "x", ("_C._functorch._no_such_thing", "to do something"))
    with pytest.raises(ImportError, match=r"torch\._C\._functorch\._no_such_thing \(to do something\)"):
        private.check()


def test_another_version_of_torch_says_that_nobody_has_tested_it(monkeypatch):
    with warnings.catch_warnings():
        private.check()
    monkeypatch.setattr(torch, "__version__", "3.0.0")
    with pytest.warns(UserWarning, match=r"tested with torch 2\.12, 2\.13, 2\.14; torch 3\.0\.0 has every private name"):
        private.check()


@pytest.mark.parametrize("name", minigrad.upstream.__all__)
def test_what_is_torchs_names_its_source(name):
    doc = getattr(minigrad.upstream, name).__doc__
    assert "Source: torch." in doc or name in ("is_recomputing", "set_checkpoint_remat")
