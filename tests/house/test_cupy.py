"""Kernels use of the array namespace only what cupy has, so that they are written once."""

import json
import re

import numpy as np
import pytest

from minigrad.ops import special
from tests import cupy_standin
from tests.house.cupy_record import PATH, interface
from tests.house.sources import MODULES
from tests.laws.rows import TABLE

USED = re.compile(r"(?<!CPU\.)\bxp\.([a-zA-Z_]\w*(?:\.[a-z]\w*)*)")
CUPY = json.loads(PATH.read_text())
NAMES = {*CUPY["ufuncs"], *CUPY["functions"], *CUPY["others"], *CUPY["helpers"], *CUPY["classes"],
         "add.reduce"}                                     # of ufuncs: reduce and accumulate for sums and products only


OWN = {"devices.gpu": ["cuda"], "ops.special": ["add.at"]}
"""What one module alone may use: there is a function around it for the others."""


@pytest.mark.parametrize("module", [m for m in MODULES if not m.startswith("upstream")])
def test_a_module_uses_names_that_cupy_has(module):
    for name in USED.findall(MODULES[module].read_text()):
        class_, _, attribute = name.rpartition(".")
        assert name in NAMES or name in OWN.get(module, ()) or attribute in CUPY["classes"].get(class_, ()), f"cupy has no {name}: see ops/special.py for ways round"


@pytest.mark.parametrize("row", TABLE)
def test_a_kernel_that_is_a_name_is_one_that_cupy_has(row):
    kernel = TABLE[row].op.kernel
    assert not isinstance(kernel, str) or kernel in NAMES


@pytest.mark.parametrize("name", ["ndarray", "cuda.Device", "cuda.Stream", "cuda.Event", "cuda.MemoryPointer"])
def test_the_stand_in_has_nothing_that_cupy_has_not(name):
    own = {n for n, v in vars(getattr(cupy_standin, name.rpartition(".")[2])).items() if callable(v) or isinstance(v, property)}
    assert [n for n in own - set(CUPY["classes"][name]) if n.endswith("__") or not n.startswith("_")] == []


def test_what_is_written_down_about_cupy_is_what_it_says():
    """Where it is installed; no GPU is needed."""
    cupy = pytest.importorskip("cupy")
    if cupy is cupy_standin.CUPY or cupy.__version__ != CUPY["version"]:
        pytest.skip(f"written down from cupy {CUPY['version']}")
    assert interface() == CUPY


# ---------------------------------------------------------------- ways round
class Poor:
    """numpy as cupy is: functions have no `accumulate` and no `at`."""

    def __getattr__(self, name):
        found = getattr(np, name)
        return _Function(found) if isinstance(found, np.ufunc) else found


class _Function:
    def __init__(self, function):
        self.function = function

    def __call__(self, *args):
        return self.function(*args)

    def accumulate(self, *args, **params):
        raise NotImplementedError

    at = accumulate


@pytest.mark.parametrize("name", ["maximum", "minimum", "logaddexp"])
@pytest.mark.parametrize(("shape", "axis"), [((7,), 0), ((3, 8), 1), ((5, 2, 3), 0), ((2, 1), 1), ((2, 0), 1)])
def test_running_results_by_doubling_are_numpys(name, shape, axis):
    x = np.random.default_rng(0).standard_normal(shape)
    found = special.accumulate(Poor(), name, x, axis)
    np.testing.assert_allclose(found, getattr(np, name).accumulate(x, axis=axis), rtol=1e-14)
    assert found.flags.c_contiguous


@pytest.mark.parametrize("name", ["multiply", "maximum"])
@pytest.mark.parametrize("places", [[0, 0, 1, 0, 3, 1], [2], []], ids=["several", "one", "none"])
def test_what_is_combined_in_turns_is_numpys(name, places):
    places = np.array(places, dtype=np.int64)
    found, wanted = np.arange(1.0, 5), np.arange(1.0, 5)
    values = np.linspace(2, 3, len(places))
    special.combine_at(Poor(), name, found, (places,), values)
    getattr(np, name).at(wanted, places, values)
    np.testing.assert_allclose(found, wanted)


@pytest.mark.parametrize("counts", [[2, 0, 3], [0], [0, 0, 1], [], [1, 1, 1]])
def test_repetitions_are_numpys(counts):
    counts = np.array(counts, dtype=np.int64)
    np.testing.assert_array_equal(special.repeated(np, counts, len(counts)), np.repeat(np.arange(len(counts)), counts))
