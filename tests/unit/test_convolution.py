"""Modules of convolution and pooling give what torch's give, with torch's weights."""

import numpy as np
import pytest
import torch

import minigrad
from minigrad import nn

MODULES = [
    ("Conv1d", (4, 6, 3), {"stride": 2, "padding": 1, "groups": 2}, (2, 4, 9)),
    ("Conv2d", (2, 3, (2, 3)), {"dilation": 2, "padding": "same"}, (2, 2, 7, 8)),
    ("Conv2d", (2, 3, 3), {"padding": 1, "padding_mode": "circular", "bias": False}, (2, 2, 5, 6)),
    ("Conv2d", (2, 3, (2, 4)), {"padding": "same", "padding_mode": "reflect"}, (2, 2, 5, 6)),
    ("Conv3d", (2, 2, 2), {}, (1, 2, 3, 4, 3)),
    ("ConvTranspose1d", (4, 6, 3), {"stride": 2, "output_padding": 1, "groups": 2}, (2, 4, 5)),
    ("ConvTranspose2d", (2, 3, 3), {"stride": 2, "padding": 1}, (2, 2, 4, 5)),
    ("ConvTranspose3d", (2, 2, 2), {}, (1, 2, 3, 4, 3)),
    ("MaxPool2d", (3,), {"stride": 2, "padding": 1, "ceil_mode": True}, (2, 2, 6, 7)),
    ("AvgPool2d", (2,), {"count_include_pad": False, "padding": 1}, (2, 2, 6, 7)),
    ("AdaptiveAvgPool2d", ((3, None),), {}, (2, 2, 6, 7)),
]


@pytest.mark.parametrize(("name", "args", "options", "shape"), MODULES)
def test_a_module_gives_what_torchs_gives(name, args, options, shape):
    theirs, mine = getattr(torch.nn, name)(*args, **options), getattr(nn, name)(*args, **options)
    assert [(k, tuple(v.shape)) for k, v in theirs.state_dict().items()] == [(k, v.shape) for k, v in mine.state_dict().items()]
    mine.load_state_dict({k: minigrad.tensor(v.numpy()) for k, v in theirs.state_dict().items()})
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.testing.assert_allclose(mine(minigrad.tensor(x)).detach().cpu().numpy(), theirs(torch.tensor(x)).detach().numpy(), atol=1e-5)


@pytest.mark.parametrize(("name", "args", "options"), [m[:3] for m in MODULES if m[0].startswith("Conv")])
def test_a_convolution_begins_within_torchs_bound(name, args, options):
    weight = getattr(nn, name)(*args, **options).weight
    bound = float(np.prod(weight.shape[1:])) ** -0.5
    assert weight.abs().max().item() <= bound
    assert weight.abs().max().item() > 0.8 * bound


def test_a_convolution_is_shown_as_torchs():
    assert repr(nn.Conv2d(2, 4, 3, padding=1, groups=2)) == repr(torch.nn.Conv2d(2, 4, 3, padding=1, groups=2))


def test_a_transposed_convolution_pads_with_zeros_only():
    with pytest.raises(ValueError, match='Only "zeros" padding mode is supported for ConvTranspose1d'):
        nn.ConvTranspose1d(1, 1, 1, padding_mode="circular")
