"""Notes and decisions: they run, they are short, and code, notes and tests cite each other."""

from __future__ import annotations

import ast
import doctest
import re
from functools import cache
from pathlib import Path

import pytest

import minigrad as mg

ROOT = Path(__file__).parents[2]
NOTES = {path.stem: path for path in sorted((ROOT / "docs" / "notes").glob("*.md"))}
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))
HEADINGS = ["Puzzle", "Rule", "Program", "Where", "Tests", "Upstream"]
CLAUSES = ([f"S{n}" for n in range(1, 7)] + [f"H{n}" for n in range(1, 9)] + [f"C{n}" for n in range(1, 13)]
           + ["O1", "O2", "O3", "O4"])
LINES = 60
CITED = re.compile(r"\[NOTE ([a-z0-9-]+)\]")


def source(folder):
    return {path: path.read_text() for path in sorted((ROOT / folder).rglob("*.py"))}


def section(text, heading):
    """The text under a heading."""
    return re.search(rf"^## {heading}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL).group(1)


def entries(text, heading):
    """The `- file::name` lines under a heading, as pairs."""
    return [tuple(line.split("::")) for line in re.findall(r"^- (\S+::\S+)$", section(text, heading), re.MULTILINE)]


@cache
def parsed(path):
    """The statements of a python file."""
    return ast.parse(path.read_text()).body


def names_in(path):
    """What a python file defines, a method as Class.method."""
    found = set()
    for node in parsed(path):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
            found |= {f"{node.name}.{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


@pytest.mark.parametrize("slug", NOTES)
def test_the_programs_of_a_note_give_what_it_says(slug):
    with mg.device("cpu"):                                 # a note is written for one machine
        failed, tried = doctest.testfile(str(NOTES[slug]), module_relative=False, optionflags=doctest.FAIL_FAST)
    assert tried > 0
    assert failed == 0


@pytest.mark.parametrize("slug", NOTES)
def test_a_note_has_its_headings_and_is_short(slug):
    text = NOTES[slug].read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == HEADINGS
    assert len(text.splitlines()) <= LINES
    assert re.search(r"^1\. ", section(text, "Rule"), re.MULTILINE)
    for heading in ("Puzzle", "Program"):
        assert ">>>" in section(text, heading)


@pytest.mark.parametrize("slug", NOTES)
def test_the_code_and_the_tests_that_a_note_names_exist(slug):
    text = NOTES[slug].read_text()
    for heading in ("Where", "Tests"):
        found = entries(text, heading)
        assert found, f"{heading} of {slug} names nothing"
        for file, name in found:
            assert name in names_in(ROOT / file), f"{file} defines no {name}"


def test_what_the_code_cites_has_a_note_and_every_note_is_cited_where_its_rule_is_kept():
    cited = {slug for text in source("minigrad").values() for slug in CITED.findall(text)}
    assert cited - NOTES.keys() == set(), "cited in the code, without a note"
    assert NOTES.keys() - cited == set(), "not cited in the code"


def test_what_tests_cite_has_a_note():
    cited = {slug for text in source("tests").values() for slug in CITED.findall(text)}
    assert cited - NOTES.keys() == set()


def test_every_spec_test_cites_a_note():
    silent = []
    for path in source("tests/spec"):
        if path.name == Path(__file__).name:
            continue
        for node in parsed(path):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                cited = CITED.findall(ast.get_docstring(node) or "")
                silent += [] if cited else [f"{path.name}::{node.name}"]
    assert silent == []


def test_every_note_is_cited_by_a_test_that_it_names():
    """A counterexample too, where the rule can be broken alone."""
    without = []
    for slug, path in NOTES.items():
        named = [(ROOT / file, name) for file, name in entries(path.read_text(), "Tests")]
        docs = [ast.get_docstring(node) or "" for file, name in named for node in parsed(file)
                if isinstance(node, ast.FunctionDef) and node.name == name]
        if not any(slug in CITED.findall(doc) for doc in docs):
            without.append(slug)
    assert without == []


def test_every_clause_of_the_design_has_a_note_that_names_it():
    rules = " ".join(section(path.read_text(), "Rule") for path in NOTES.values())
    assert [clause for clause in CLAUSES if not re.search(rf"\({clause}\)", rules)] == []


def test_every_counterexample_is_used():
    path = ROOT / "tests" / "spec" / "counterexamples.py"
    switches = {name for name in names_in(path) if "." not in name and not name.startswith("_") and name.islower()}
    switches -= {"replaced", "tensor", "record", "ops"}
    used = set(re.findall(r"broken\.(\w+)", (path.parent / "test_counterexamples.py").read_text()))
    assert switches - used == set()


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_says_question_choice_cost_and_what_torch_does(path):
    text = path.read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Question", "Choice", "Cost", "What torch does"]
    assert len(text.splitlines()) <= LINES
    cited = set(CITED.findall(text))
    assert cited <= NOTES.keys()


def test_decisions_are_numbered_without_gaps():
    assert [int(path.stem[:4]) for path in DECISIONS] == list(range(1, len(DECISIONS) + 1))
