"""The README is run: its program on minigrad and on torch, its commands; and what the documents name exists."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
PROGRAM = re.search(r"```python\n(.*?)```", README, re.DOTALL)[1]
COMMANDS = [line.partition(" #")[0].strip() for line in README.splitlines() if line.startswith(("pip ", "python "))]
DOCUMENTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "docs/reading.md", "docs/porting.md", "docs/architecture.md",
                                     "docs/upstream.md", "docs/cuda.md", "docs/benchmarks.md")]
UPSTREAM = ("torch/", "DynamicLayer.cpp", "saved_variable.cpp")
BARE = ("", "minigrad", "minigrad/devices", "minigrad/graph", "minigrad/ops", "minigrad/autograd", "minigrad/interpreters", "tests")


# ---------------------------------------------------------------- the program
def printed(program, capsys):
    """What it prints, and the error that ends it, if any."""
    error = None
    try:
        exec(compile(program, "README.md", "exec"), {"__name__": "readme"})
    except RuntimeError as caught:
        error = caught
    return capsys.readouterr().out.split(), error


def claims(library):
    """The numbers that the comments say `library` prints."""
    return re.findall(rf"# .*{library} (\d[\d.]*)", PROGRAM)


def test_the_program_prints_what_its_comments_say(capsys, device):
    if device == "cuda":
        pytest.skip("the last digits are those of numpy")
    numbers, error = printed(PROGRAM, capsys)
    assert error is None
    assert [f"{float(number):.13f}" for number in numbers] == claims("minigrad")


def test_on_torch_the_same_text_prints_one_number_and_raises_the_error_in_its_comment(capsys):
    swapped = [re.sub(r"^(import|from) minigrad.*# +(or: )?", "", line) for line in PROGRAM.splitlines()]
    assert "minigrad" not in "\n".join(line.partition("#")[0] for line in swapped)
    numbers, error = printed("\n".join(swapped), capsys)
    assert [f"{float(number):.13f}" for number in numbers] == claims("torch")
    *_, message = PROGRAM.strip().splitlines()
    assert str(error) == message.removeprefix("#").strip()
    assert type(error).__name__ in PROGRAM


# ---------------------------------------------------------------- the commands
def test_every_command_is_known():
    """Others than these, a test below would have to run."""
    assert COMMANDS == [
        "pip install -e . && python -m minigrad",
        "pip install -e '.[test]' && pytest",
        "python -m minigrad",
        "python -m minigrad show",
        "python -m minigrad show grad.grad",
        "python -m minigrad show file.py:function",
        "python -m minigrad show grad.grad --graph",
    ]
    assert find_spec("minigrad.__main__") is not None


def test_the_extras_of_the_commands_exist():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert {*re.findall(r"\.\[(\w+)\]", README + (ROOT / "CONTRIBUTING.md").read_text()), "cuda12", "cuda13"} <= set(extras)
    assert project["dependencies"] == ["numpy>=2.2"]
    assert [need.partition("=")[0].partition(">")[0] for need in extras["test"]][:2] == ["torch", "hypothesis"]


@pytest.mark.parametrize("arguments", [["show"], ["show", "grad.grad"], ["show", "program.py:second_derivative"]], ids=" ".join)
def test_show(arguments, tmp_path):
    (tmp_path / "program.py").write_text(
        PROGRAM.partition("x = torch")[0] + "def second_derivative():\n    return grad(grad(g))(torch.tensor(5.0))\n")
    done = subprocess.run([sys.executable, "-m", "minigrad", *arguments], capture_output=True, text=True, cwd=tmp_path,
                          env={"PYTHONPATH": str(ROOT)}, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "recompute checkpoint 1 for grad@1" in done.stdout or arguments == ["show"]


# ---------------------------------------------------------------- what the documents name
def places(text):
    """The file to which each name in backquotes leads, with what is said to be in it."""
    for path, attribute in re.findall(r"`([\w./]+\.(?:py|toml|md))(?:::([\w.]+))?`", text):
        if not path.startswith(UPSTREAM) and path != "file.py":
            found = [ROOT / folder / path for folder in BARE if (ROOT / folder / path).exists()]
            yield path, attribute, found[0] if found else None


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_names_in_a_document_exist(document):
    text = document.read_text()
    for path, attribute, found in places(text):
        assert found is not None, f"{document.name} names {path}"
        for name in filter(None, attribute.split(".")):
            assert re.search(rf"^\s*(def|class) {name}\b|^{name}\b", found.read_text(), re.MULTILINE), f"{path} has no {name}"
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", text):
        assert (document.parent / target).exists(), f"{document.name} links to {target}"
    for name in re.findall(r"`(test_\w+)`", text):
        assert any(f"def {name}(" in path.read_text() for path in (ROOT / "tests").rglob("test_*.py")), f"no test {name}"
    for path in re.findall(r"`((?:minigrad|tests|docs|examples)/[\w/]*)`", text):
        assert (ROOT / path).exists(), f"{document.name} names {path}"


def test_the_walk_takes_an_hour():
    minutes = re.findall(r"^\| (\d+) \|", (ROOT / "docs/reading.md").read_text(), re.MULTILINE)
    assert sum(map(int, minutes)) == 60


def test_the_walk_is_as_long_as_it_says():
    text = (ROOT / "docs/reading.md").read_text()
    files = {path for row in re.findall(r"^\| \d+ \|.*", text, re.MULTILINE) for path in re.findall(r"minigrad/[a-z_/]*\.py", row)}
    said = int(re.search(r"about ([\d,]+) lines", text)[1].replace(",", ""))
    assert abs(sum(len((ROOT / path).read_text().splitlines()) for path in files) - said) <= 200


def test_what_is_not_there_yet_is_not_there():
    import minigrad

    assert not hasattr(minigrad.func, "make_fx")


def test_a_row_of_the_table_names_what_exists():
    import minigrad
    from minigrad.autograd import graph
    from minigrad.utils import checkpoint

    table = README.partition("## What is in it")[2]
    transforms, memory = (re.search(rf"^\| {row} \|(.*)\|$", table, re.MULTILINE)[1] for row in ("transforms", "memory"))
    for name in re.findall(r"`(\w+)`", transforms):
        assert hasattr(minigrad.func, name) or name in ("chunk_size", "backward"), name
    for name in re.findall(r"`(\w+)`", memory):
        assert hasattr(graph, name) or hasattr(checkpoint, name), name
