"""What four blocks of four sines leave on the device for their backward, and what that costs.  A tensor has 8000 bytes.

Prints:

                                 kept    peak  runs of a block  to host
    nothing                     120000  136016                4        0
    checkpoint                  24000   64016                8        0
    save_on_cpu                     0   32016                4   128000
    save_on_cpu of checkpoint       0   56016                8    32000
"""

from contextlib import nullcontext

import minigrad as torch
from minigrad import memory, sim
from minigrad.autograd.graph import save_on_cpu
from minigrad.utils.checkpoint import checkpoint

runs = 0


def block(x):
    global runs
    runs += 1
    return x.sin().sin().sin().sin()


def checkpointed(x):
    return checkpoint(block, x, use_reentrant=False)


def measure(what, block, region=nullcontext):
    global runs
    runs, x = 0, torch.ones(1000, dtype=torch.float64, device="sim", requires_grad=True)
    before = sim.memory_stats()["copied_bytes.to_host"]
    with memory.measured("sim") as used:  # besides x
        with region():
            y = block(block(block(block(x)))).sum()
        kept = used.live - y.element_size()
        y.backward()
    print(f"{what:27} {kept:5} {used.peak:7} {runs:16} {sim.memory_stats()['copied_bytes.to_host'] - before:8}")


print(f"{'':27} {'kept':>5} {'peak':>7} {'runs of a block':>16} {'to host':>8}")
measure("nothing", block)
measure("checkpoint", checkpointed)
measure("save_on_cpu", block, save_on_cpu)
measure("save_on_cpu of checkpoint", checkpointed, save_on_cpu)
