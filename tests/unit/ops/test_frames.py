"""minigrad/ops/frames.py: a signal goes to frequencies of frames and comes back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.func import vmap
from tests.spec.instruments import t


@pytest.mark.parametrize("center", [True, False], ids=["around places", "from places"])
@pytest.mark.parametrize("onesided", [True, False], ids=["half", "all"])
def test_a_signal_comes_back_from_its_frames(center, onesided):
    x, window = t(np.sin(np.arange(40.0))), t(np.linspace(1, 2, 8))
    frames = mg.stft(x, 8, hop_length=4, window=window, center=center, onesided=onesided, normalized=True, return_complex=True)
    back = mg.istft(frames, 8, hop_length=4, window=window, center=center, onesided=onesided, normalized=True)
    np.testing.assert_allclose(back.cpu().numpy(), x.cpu().numpy(), atol=1e-12)


@pytest.mark.filterwarnings("ignore:The length of signal is shorter")  # torch's own
@pytest.mark.parametrize("length", [30, 50])
def test_a_length_cuts_and_fills_up_as_in_torch(length):
    def program(lib):
        window = lib.ones(8, dtype=lib.float64)
        frames = lib.stft(lib.arange(40, dtype=lib.float64), 8, window=window, return_complex=True)
        return lib.istft(frames, 8, window=window, length=length)
    for y in (program(mg), program(torch)):
        assert y.shape == (length,)
    np.testing.assert_allclose(program(mg).cpu().numpy()[:39], program(torch).cpu().numpy()[:39], atol=1e-10)


def test_signals_of_a_batch_are_cut_as_each_of_them():
    x = t(np.random.default_rng(0).standard_normal((3, 20)))
    one_by_one = mg.stft(x, 4, return_complex=False)
    np.testing.assert_allclose(vmap(lambda x: mg.stft(x, 4, return_complex=False))(x).cpu().numpy(), one_by_one.cpu().numpy(), atol=1e-14)


@pytest.mark.filterwarnings("ignore:A window was not provided")  # torch's own
@pytest.mark.parametrize("program", [
    lambda lib: lib.stft(lib.ones(3, 3, 3), 2, return_complex=True),
    lambda lib: lib.stft(lib.ones(8), 4),
    lambda lib: lib.stft(lib.ones(8), 9, center=False, return_complex=True),
    lambda lib: lib.stft(lib.ones(8), 4, hop_length=0, return_complex=True),
    lambda lib: lib.stft(lib.ones(8), 4, win_length=5, return_complex=True),
    lambda lib: lib.stft(lib.ones(8), 4, window=lib.ones(3), return_complex=True),
    lambda lib: lib.stft(lib.ones(8) + 0j, 4, onesided=True),
    lambda lib: lib.istft(lib.ones(3, 5), 4),
    lambda lib: lib.istft(lib.ones(4, 5) + 0j, 4, onesided=True),
    lambda lib: lib.istft(lib.ones(3, 5) + 0j, 4, return_complex=True),
    lambda lib: lib.istft(lib.ones(3, 5) + 0j, 4, window=lib.zeros(4)),
], ids=["rank", "no return_complex", "long frames", "no hop", "long window", "window of another size", "half of complex",
        "real frames", "too many frequencies", "half to complex", "gaps"])
def test_a_mistake_is_refused_by_both(program):
    for lib in (torch, mg):
        with pytest.raises(RuntimeError) as error:
            program(lib)
        assert len(str(error.value).split()) > 3


def test_slopes_of_a_parabola_are_exact_between_and_at_the_ends():
    at = t([0.0, 1, 3, 4, 7])
    (slopes,) = mg.gradient(at * at, spacing=(at,), edge_order=2)
    np.testing.assert_allclose(slopes.cpu().numpy(), 2 * at.cpu().numpy(), atol=1e-12)
