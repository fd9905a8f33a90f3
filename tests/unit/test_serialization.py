"""minigrad/serialization.py: tensors in files."""

from __future__ import annotations

import io
from pathlib import Path
from pickle import UnpicklingError

import numpy as np
import pytest
import torch

import minigrad
from minigrad import nn

LIBRARIES = pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])


@LIBRARIES
def test_a_nest_of_tensors_comes_back_from_a_path(library, tmp_path):
    library.save({"x": [library.arange(3), library.ones(2, 2).t()], "n": 1}, tmp_path / "nest.pt")
    found = library.load(tmp_path / "nest.pt")
    assert [x.tolist() for x in found["x"]] == [[0, 1, 2], [[1, 1], [1, 1]]]
    assert found["n"] == 1


@LIBRARIES
def test_what_an_open_file_holds_is_read_from_where_it_stands(library):
    file = io.BytesIO()
    library.save(library.tensor([1.5, 2.5], dtype=library.float64), file)
    file.seek(0)
    found = library.load(file)
    assert (found.tolist(), found.dtype) == ([1.5, 2.5], library.float64)


@LIBRARIES
def test_the_state_of_a_module_goes_to_a_file_and_back(library):
    old, new, file = library.nn.Linear(2, 3), library.nn.Linear(2, 3), io.BytesIO()
    library.save(old.state_dict(), file)
    file.seek(0)
    found = library.load(file)
    assert list(found) == ["weight", "bias"]
    new.load_state_dict(found)
    assert new.weight.tolist() == old.weight.tolist()


@LIBRARIES
@pytest.mark.parametrize("computed", [False, True])
def test_a_tensor_that_requires_grad_comes_back_as_a_leaf(library, computed):
    x, file = library.ones(2, requires_grad=True), io.BytesIO()
    library.save(x * 2 if computed else x, file)
    file.seek(0)
    found = library.load(file)
    assert (found.requires_grad, found.is_leaf) == (True, True)


class Caller:
    """A pickle of it calls a function."""

    def __reduce__(self):
        return Path.cwd, ()


@LIBRARIES
def test_a_file_that_calls_something_is_refused_unless_it_is_trusted(library):
    file = io.BytesIO()
    library.save([Caller()], file)
    file.seek(0)
    with pytest.raises(UnpicklingError, match=r"weights_only|Weights only"):
        library.load(file)
    file.seek(0)
    assert library.load(file, weights_only=False) == [Path.cwd()]


def test_tensors_are_loaded_to_another_device():
    file = io.BytesIO()
    minigrad.save([minigrad.ones(2, device="cpu"), nn.Parameter(minigrad.ones(2, device="sim"))], file)
    file.seek(0)
    assert [x.device.type for x in minigrad.load(file)] == ["cpu", "sim"]
    file.seek(0)
    found = minigrad.load(file, map_location="cpu")
    assert [x.device.type for x in found] == ["cpu", "cpu"]
    assert isinstance(found[1], nn.Parameter)


@LIBRARIES
def test_saved_tensors_that_hooks_keep_in_files_give_the_gradient(library, tmp_path):
    paths = []

    def pack(x):
        path = tmp_path / f"{len(paths)}.pt"
        paths.append(path)
        library.save(x, path)
        return path

    x = library.tensor([1.0, 2.0], requires_grad=True)
    with library.autograd.graph.saved_tensors_hooks(pack, library.load):
        y = (x * x).exp().sum()
    y.backward()
    assert paths
    np.testing.assert_allclose(x.grad.tolist(), [2 * np.e, 4 * np.e ** 4], rtol=1e-6)
