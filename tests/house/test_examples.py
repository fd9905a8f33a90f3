"""Every example prints what its docstring says; and its text with torch's imports prints the same on torch, as far as torch goes."""

from __future__ import annotations

import runpy
from pathlib import Path
from textwrap import dedent

import pytest

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(FOLDER.glob("[0-9]*.py"))
FOR_TORCH = sorted(FOLDER.glob("torch_*.py"))
BAN = "don't yet support saved tensor hooks"
ON_TORCH = {  # lines printed, and the error that comes after them
    "02_the_bug": (2, BAN),
    "04_backward_inside": (3, BAN),
    "05_per_sample_gradients": (1, BAN),
    "06_shallow_detach": (2, ""),
}
ONLY_HERE = ("shallow_detach", "one level")


def promised(path):
    """The lines under `Prints:` in a file's docstring."""
    docstring = path.read_text().split('"""')[1]
    return dedent(docstring.partition("Prints:\n\n")[2]).splitlines()


def test_there_are_examples():
    assert [path.name[:2] for path in EXAMPLES] == [f"{i:02}" for i in range(1, len(EXAMPLES) + 1)]
    assert {*EXAMPLES, *FOR_TORCH} == {*FOLDER.glob("*.py")}


@pytest.mark.parametrize("path", EXAMPLES + FOR_TORCH, ids=lambda path: path.stem)
def test_it_prints_what_it_says(path, capsys, device):
    if device != "cpu":
        pytest.skip("examples name the devices they use")
    if path in FOR_TORCH:
        pytest.importorskip("torch")
    runpy.run_path(str(path), run_name="__main__")
    assert [line.rstrip() for line in capsys.readouterr().out.splitlines()] == promised(path)


@pytest.mark.parametrize("name", ON_TORCH)
def test_torch_prints_the_same_as_far_as_it_goes(name, capsys, tmp_path):
    path = next(path for path in EXAMPLES if path.stem == name)
    text = path.read_text().replace("import minigrad as torch", "import torch").replace("from minigrad", "from torch")
    copy = tmp_path / path.name
    copy.write_text("\n".join(line for line in text.splitlines() if ONLY_HERE[0] not in line))
    lines, ban = ON_TORCH[name]
    if ban:
        with pytest.raises(RuntimeError, match=ban):
            runpy.run_path(str(copy), run_name="__main__")
    else:
        runpy.run_path(str(copy), run_name="__main__")
    expected = [line for line in promised(path) if ONLY_HERE[1] not in line]
    assert capsys.readouterr().out.splitlines() == expected[:lines]
