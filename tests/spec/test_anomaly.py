"""Anomaly mode names the line of the forward."""

from __future__ import annotations

import warnings

import pytest

import minigrad as mg
from minigrad.autograd import Function, detect_anomaly, set_detect_anomaly
from minigrad.func import grad, vjp
from minigrad.state import current, watched
from minigrad.utils.checkpoint import checkpoint
from tests.spec.instruments import t

pytestmark = pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning", "ignore:Anomaly Detection has been enabled")


def fails(x):
    y = x * 0
    return mg.sqrt(y) * 0                                  # the derivative of sqrt is 0 * inf


def told(run):
    """The error of `run`, and the texts of the warnings before it."""
    with warnings.catch_warnings(record=True) as found, pytest.raises(RuntimeError) as error:
        warnings.simplefilter("always")
        run()
    texts = [str(w.message) for w in found if w.category is UserWarning]
    return str(error.value), [text for text in texts if "Anomaly Detection" not in text]


def at_level_0(f):
    f(t(1.0, requires_grad=True)).backward()


@pytest.mark.parametrize("differentiate", [at_level_0, lambda f: grad(f)(t(1.0)), lambda f: vjp(f, t(1.0))[1](t(1.0))])
@pytest.mark.parametrize("wrap", [lambda f: f, lambda f: lambda x: checkpoint(f, x),
                                  lambda f: lambda x: checkpoint(lambda x: checkpoint(f, x), x)])
def test_the_line_of_the_forward_is_named_at_every_level_and_in_a_region(differentiate, wrap):
    """[NOTE anomaly] The innermost line of the program, not one of a recomputation."""
    with detect_anomaly():
        error, texts = told(lambda: differentiate(wrap(fails)))
    assert "returned nan values in its 0th output." in error
    assert texts[0].startswith("Error detected in ")
    assert "in fails" in texts[0].rstrip().splitlines()[-2]
    assert "_run" not in texts[0].rstrip().splitlines()[-2]


def test_a_node_that_raises_is_named_with_its_line():
    """[NOTE anomaly] The error itself is the one it would be."""
    def run():
        x = t(1.0, requires_grad=True)
        y = mg.sin(x.clone())
        z = mg.exp(y)
        with mg.no_grad():
            z.add_(1)
        z.backward()

    with detect_anomaly():
        error, texts = told(run)
    assert "modified by an inplace operation" in error
    assert texts[0].startswith("Error detected in ExpBackward0")
    assert texts[0].rstrip().endswith("z = mg.exp(y)")


def test_a_node_made_in_a_backward_names_the_node_that_made_it():
    """[NOTE anomaly]"""
    with detect_anomaly():
        x = t(0.0, requires_grad=True)
        y = mg.pow(x, 1.5)
        g, = mg.autograd.grad(y, x, create_graph=True)
        error, texts = told(lambda: mg.autograd.grad(g * 0, x))
    assert "PowBackward0" in error
    assert texts[1].lstrip().startswith("Previous calculation was induced by PowBackward0.")
    assert texts[1].rstrip().endswith("y = mg.pow(x, 1.5)")


def test_without_the_forward_under_the_mode_there_is_no_line():
    """[NOTE anomaly]"""
    y = fails(t(1.0, requires_grad=True))
    with detect_anomaly():
        _, texts = told(y.backward)
    assert texts[0].endswith("Enable detect anomaly during forward pass for more information.")


def test_a_custom_function_is_named():
    """[NOTE anomaly]"""
    class Nan(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, ct):
            return ct, ct * float("nan")

    x = t(1.0, requires_grad=True)
    with detect_anomaly():
        error, texts = told(lambda: Nan.apply(x, x).backward())
    assert "Function 'NanBackward' returned nan values in its 1th output." in error
    assert "Nan.apply(x, x)" in texts[0]


def test_the_innermost_mode_decides_whether_nan_is_looked_for():
    """[NOTE anomaly] [NOTE state-is-a-value]"""
    outside = current()
    with detect_anomaly(check_nan=True):
        with detect_anomaly(check_nan=False):
            assert (mg.is_anomaly_enabled(), mg.is_anomaly_check_nan_enabled()) == (True, False)
            at_level_0(fails)
        assert mg.is_anomaly_check_nan_enabled()
        with set_detect_anomaly(False):
            assert not mg.is_anomaly_enabled()
            at_level_0(fails)
    assert current() is outside
    setting = set_detect_anomaly(True)
    assert mg.is_anomaly_enabled()
    setting.__exit__(None, None, None)
    assert not watched


def test_a_warning_that_is_an_error_is_printed(capsys):
    """[NOTE anomaly] The error under way stays."""
    with detect_anomaly(), warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        with pytest.raises(RuntimeError, match="returned nan"):
            at_level_0(fails)
    assert "Error detected in" in capsys.readouterr().err


def test_what_a_node_notes_lives_as_long_as_it_does(no_gc):
    """[NOTE anomaly] [NOTE no-cycles]"""
    from minigrad.graph.node import _METADATA

    before = len(_METADATA)
    with detect_anomaly():
        x = t(1.0, requires_grad=True)
        g, = mg.autograd.grad(mg.exp(x), x, create_graph=True)
    assert len(_METADATA) > before
    del g
    assert len(_METADATA) == before
