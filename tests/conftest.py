"""Options, fixtures and checks that every test shares.

    --device cpu|sim|cuda   where tensors that name no device are made, and what the fixture `device` says
    --stand-in              a cupy made of numpy, to see that the code for cupy runs

A test must leave the State as it found it, and a failure shows the levels that were on the stack when it was raised.
"""

from __future__ import annotations

import gc
import sys

import pytest

import minigrad
import minigrad.cuda
from minigrad import backend
from minigrad.backend import device as find_device
from minigrad.devices import gpu
from minigrad.interpreters.base import Interpreter
from minigrad.state import current, using, watched


def pytest_addoption(parser):
    parser.addoption("--device", choices=("cpu", "sim", "cuda"), default="cpu", help="the device that the tests run on")
    parser.addoption("--stand-in", action="store_true", help="let a cupy made of numpy stand for cupy")


def pytest_configure(config):
    if config.getoption("--stand-in"):
        from tests.cupy_standin import MODULES
        sys.modules.update(MODULES)


def pytest_collection_modifyitems(config, items):
    """Leave out the heavy campaigns, unless they are asked for: `-m slow`, `-m opinfo`."""
    if not config.option.markexpr:
        heavy = [item for item in items if item.get_closest_marker("slow") or item.get_closest_marker("opinfo")]
        if heavy:
            config.hook.pytest_deselected(items=heavy)
            items[:] = [item for item in items if item not in set(heavy)]


@pytest.fixture(scope="session")
def device(request):
    """The name of the device that the tests run on."""
    name = request.config.getoption("--device")
    if name == "cuda" and not minigrad.cuda.is_available():
        pytest.skip("no CUDA device that cupy can use: see docs/cuda.md")
    return name


@pytest.fixture
def cuda_stand_in(monkeypatch):
    """A cupy made of numpy in the place of cupy, on devices that are found anew."""
    from tests.cupy_standin import MODULES
    for name, module in MODULES.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(gpu, "_FOUND", {})
    monkeypatch.setattr(backend, "_FOUND", {k: v for k, v in backend._FOUND.items() if not k.startswith("cuda")})


@pytest.fixture(autouse=True)
def _same_state(device):
    """The State after a test is the very object that it was before, its default dtype and device with it."""
    with using(current()._replace(default_device=find_device(device))) as before:
        yield
        after = current()
    assert after is before, f"the test left the State changed: {vars(after)}, was {vars(before)}"
    if watched:
        gc.collect()  # an error that was caught holds the frames that it went through
    assert not watched, "the test left a watcher behind"


@pytest.fixture
def no_gc():
    """Without the cyclic collector: what is freed is freed by reference counting alone."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed and call.excinfo is not None:
        report.sections.append(("level stack", _levels_in(call.excinfo.tb)))


def _levels_in(traceback):
    """The levels that the frames of a traceback had entered: the State itself was put back when they were left."""
    found = []
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(minigrad.__path__[0]):
            me = traceback.tb_frame.f_locals.get("me")
            if isinstance(me, Interpreter) and me not in found:
                found.append(me)
        traceback = traceback.tb_next
    return " < ".join(["base", *map(str, found)])
