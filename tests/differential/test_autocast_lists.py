"""The lists of autocast are torch's: those of its dispatcher for the cpu and for cuda, and its own sample calls of them."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.autocast_test_lists import AutocastCPUTestLists, AutocastTestLists
from torch.utils._pytree import tree_map

import minigrad as mg
import minigrad.fft
import minigrad.linalg
import minigrad.nn.functional as F
from minigrad.amp.autocast_mode import _POLICIES

KEYS = {"cpu": "AutocastCPU", "sim": "AutocastCUDA"}
COMPOSED = {"cpu": {"concat", "concatenate", "cross_entropy"},
            "sim": {"__rpow__", "__rtruediv__", "cross_entropy", "interpolate", "softmin"}}
"""Names on minigrad's lists of what torch composes of calls that are on its own."""


def places(t):
    """Where functions are looked for, by the prefix of their names in torch's dispatcher."""
    return {"": (t, t.nn.functional, t.Tensor), "linalg_": (t.linalg,), "fft_": (t.fft,)}


def found(t, name):
    """A function of a library by its name in torch's dispatcher, or None."""
    for prefix, where in places(t).items():
        for place in where:
            if name.startswith(prefix) and hasattr(place, name.removeprefix(prefix)):
                return getattr(place, name.removeprefix(prefix))
    return None


@pytest.mark.parametrize("device", KEYS)
def test_a_device_lists_what_torchs_dispatcher_does(device):
    listed = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names()
              if name.startswith("aten::") and torch._C._dispatch_has_kernel_for_dispatch_key(name, KEYS[device])}
    here = {f.__name__ for f in (found(mg, name) for name in listed) if f is not None}
    assert _POLICIES[device].keys() - here == COMPOSED[device]
    assert here - _POLICIES[device].keys() == set()


def samples():
    """Torch's sample calls of what is here: (device, name, arguments, keyword arguments); bfloat16 is float16 here."""
    made = {}
    for device, lists in (("sim", AutocastTestLists(torch.device("cpu"))), ("cpu", AutocastCPUTestLists(torch.device("cpu")))):
        for name, calls in vars(lists).items():
            for call, args, *more in calls if isinstance(calls, list) else ():
                if None not in (found(mg, call), found(torch, call)) and "method" not in name and call not in LEFT_OUT:
                    options = next((m for m in more if isinstance(m, dict)), {})
                    number = sum(key.startswith(f"{device}-{call}-") for key in made)
                    made[f"{device}-{call}-{number}"] = device, call, *tree_map(halved, (args, options))
    return made


def halved(x):
    return x.half() if isinstance(x, torch.Tensor) and x.dtype is torch.bfloat16 else x


LEFT_OUT = {"einsum": "its sample has arguments of another function", "poisson_nll_loss": "called with numbers for reductions",
            "equal": "looks at data", "grid_sampler": "torch asks cuDNN, which it has not where cuda is pretended", "margin_ranking_loss": "its sample has tensors of different ranks"}
SAMPLES = samples()


def kind(y):
    y = y[0] if isinstance(y, (tuple, list)) else y
    return str(y.dtype).rpartition(".")[2] if isinstance(y, (mg.Tensor, torch.Tensor)) else type(y).__name__


def theirs(device, name, args, options):
    """The type that torch's result has: on the cpu, or on a cuda device that is pretended."""
    f = found(torch, name)
    if device == "cpu":
        with torch.autocast("cpu", torch.float16):
            return kind(f(*args, **options))
    with FakeTensorMode():
        args, options = tree_map(pretended, (args, options))
        before = torch.is_autocast_enabled("cuda"), torch.get_autocast_dtype("cuda")
        torch.set_autocast_enabled("cuda", True)
        torch.set_autocast_dtype("cuda", torch.float16)
        try:
            return kind(f(*args, **options))
        finally:
            torch.set_autocast_enabled("cuda", before[0])
            torch.set_autocast_dtype("cuda", before[1])
            torch.clear_autocast_cache()


def pretended(x):
    return torch.empty(x.shape, dtype=x.dtype, device="cuda") if isinstance(x, torch.Tensor) else x


def outcome(f, *args):
    try:
        return f(*args)
    except RuntimeError:
        return "RuntimeError"


def mine(device, name, args, options):
    def here(x):
        if isinstance(x, torch.Tensor):
            return mg.from_numpy(x.detach().numpy().copy()).to(device)
        return getattr(mg, str(x).rpartition(".")[2]) if isinstance(x, torch.dtype) else x
    args, options = tree_map(here, (args, options))
    with mg.autocast(device):
        return kind(found(mg, name)(*args, **options))


@pytest.mark.filterwarnings("ignore:Using torch.cross without specifying the dim arg")
@pytest.mark.parametrize("sample", SAMPLES)
def test_a_call_runs_in_the_type_that_it_runs_in_in_torch(sample):
    assert outcome(mine, *SAMPLES[sample]) == outcome(theirs, *SAMPLES[sample])


def test_sigmoid_and_binary_cross_entropy_apart_are_refused_on_an_accelerator_as_on_cuda():
    x = mg.tensor([0.5], device="sim")
    with mg.autocast("sim"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(x, x)
