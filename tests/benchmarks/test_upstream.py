"""The port at level 0 against torch's own, call for call: paired, on the process's clock."""

import pytest
import torch

from minigrad.upstream import checkpoint, save_on_cpu
from tests.benchmarks.pairs import ratio
from tests.upstream.instruments import chain

pytestmark = pytest.mark.slow
X = torch.rand(8, requires_grad=True)


def region(checkpoint, n):
    return lambda: checkpoint(chain(n), X, use_reentrant=False)


def step(checkpoint, n):
    return lambda: checkpoint(chain(n), X, use_reentrant=False).sum().backward()


def offload(save_on_cpu):
    def run():
        with save_on_cpu():
            y = chain(32)(X)
        y.sum().backward()

    return run


@pytest.mark.parametrize("n", [1, 32])
@pytest.mark.parametrize("program", [region, step])
def test_a_checkpointed_call_costs_at_most_half_more_than_torchs(program, n):
    found, _ = ratio(program(checkpoint, n), program(torch.utils.checkpoint.checkpoint, n))
    assert found < 1.5


def test_offloading_costs_at_most_half_more_than_torchs():
    found, _ = ratio(offload(save_on_cpu), offload(torch.autograd.graph.save_on_cpu))
    assert found < 1.5
