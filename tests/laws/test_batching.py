"""vmap of a row is a loop of it, and so is vmap of its derivatives."""

import numpy as np
import pytest

from minigrad import func
from minigrad.errors import Refusal
from tests.laws.cases import array, cases, close, differentiable, tensor
from tests.laws.samples import DYNAMIC, NO_INPUTS, Draw

SIZE = 3


def batchable(case):
    return case.name not in NO_INPUTS


def samples(case, device, seeds):
    """The arguments of several samples, those of each position together."""
    return list(zip(*[case.tensors(seed, device) for seed in seeds], strict=True))


def stacked(xs, dim):
    """Tensors of one shape, in a new dimension."""
    return tensor(np.stack([array(x) for x in xs], dim if dim >= 0 else xs[0].ndim), xs[0].dtype, xs[0].device)


def positions(case):
    """The tensor arguments that may be batched, alone and together."""
    found = [i for i, x in enumerate(case.args) if isinstance(x, Draw) and i not in DYNAMIC.get(case.name, ())]
    return [[i] for i in found] + ([found] if len(found) > 1 else [])


def loop(f, columns, batched, size):
    """The outputs of f for every sample, stacked; what is not batched is that of the first sample."""
    outs = [f(*[column[k if i in batched else 0] for i, column in enumerate(columns)]) for k in range(size)]
    return [np.stack([array(y) for y in each]) for each in zip(*outs, strict=True)]


def mapped(f, columns, batched, dim):
    in_dims = tuple(dim if i in batched else None for i in range(len(columns)))
    given = [stacked(column, dim) if i in batched else column[0] for i, column in enumerate(columns)]
    return func.vmap(f, in_dims=in_dims)(*given)


@cases(wanted=batchable)
def test_vmap_is_a_loop(case, device):
    """Each input batched alone and all together, in the first dimension and in the last."""
    params = case.params(device)

    def f(*args):
        out = case.call(*args, **params)
        return (out,) if case.op.outs == 1 else tuple(out)

    columns = samples(case, device, range(SIZE))
    for batched in positions(case):
        wanted = loop(f, columns, batched, SIZE)
        for dim in (0, -1):
            close(mapped(f, columns, batched, dim), wanted, 1e-13)


@cases(wanted=lambda case: batchable(case) and positions(case))
def test_vmap_of_vmap_is_a_loop_of_loops(case, device):
    """All inputs mapped by both; and, where there are two, one by the outer and the others by the inner."""
    params = case.params(device)

    def f(*args):
        out = case.call(*args, **params)
        return (out,) if case.op.outs == 1 else tuple(out)

    every = positions(case)[-1]
    outer = samples(case, device, range(2))
    inner = samples(case, device, range(2, 2 + SIZE))
    for inside, outside in [(every, every)] + [(every[1:], every[:1]), (every[:1], every[1:])] * (len(every) > 1):
        # an argument mapped by both levels: rows of (outer, inner) samples
        grid = [[[inner[i][b] if i in inside and (i not in outside or a == 0) else outer[i][a] if i in outside else outer[i][0]
                  for b in range(SIZE)] for a in range(2)] for i in range(len(outer))]
        given = []
        for i, row in enumerate(grid):
            if i in inside and i in outside:
                given.append(stacked([stacked(each, 0) for each in row], -1))
            elif i in inside:
                given.append(stacked(row[0], -1))
            else:
                given.append(stacked([each[0] for each in row], 0) if i in outside else row[0][0])
        out_dims = tuple(-1 if i in inside and i in outside else 0 if i in outside else None for i in range(len(grid)))
        in_dims = tuple(0 if i in inside and i in outside else -1 if i in inside else None for i in range(len(grid)))
        found = func.vmap(func.vmap(f, in_dims=in_dims), in_dims=out_dims)(*given)
        rows = [loop(f, [row[a] for row in grid], range(len(grid)), SIZE) for a in range(2)]
        close(found, [np.stack(each) for each in zip(*rows, strict=True)], 1e-13)


@cases(wanted=lambda case: differentiable(case) and batchable(case))
def test_vmap_of_a_vjp_is_a_loop(case, device):
    """Inputs and cotangent batched; only the cotangent, as jacrev does; only the inputs."""
    active = case.active
    columns = samples(case, device, range(SIZE))

    def pull(ct, *args):
        f = case.function(args, active, device)
        return func.vjp(f, *[args[i] for i in active])[1](ct)

    first = [column[0] for column in columns]
    outs = case.function(first, active, device)(*[first[i] for i in active])
    cts = [case.alike(outs, seed) for seed in range(SIZE)]
    inputs = positions(case)[-1]
    for batched in ([-1, *inputs], [-1], inputs):
        wanted = [pull(tuple(cts[k if -1 in batched else 0]), *[c[k if i in batched else 0] for i, c in enumerate(columns)])
                  for k in range(SIZE)]
        ct = tuple(stacked(each, 0) for each in zip(*cts, strict=True)) if -1 in batched else tuple(cts[0])
        given = [stacked(c, 0) if i in batched else c[0] for i, c in enumerate(columns)]
        in_dims = (0 if -1 in batched else None, *[0 if i in batched else None for i in range(len(columns))])
        found = func.vmap(pull, in_dims=in_dims)(ct, *given)
        close(found, [np.stack([array(g) for g in each]) for each in zip(*wanted, strict=True)], 1e-12)


@cases(wanted=lambda case: differentiable(case) and batchable(case))
def test_vmap_of_a_jvp_is_a_loop(case, device):
    """Inputs and tangents batched; only the tangents, as jacfwd does."""
    active = case.active
    columns = samples(case, device, range(SIZE))
    tangents = [case.alike([columns[i][0] for i in active], seed) for seed in range(SIZE)]

    def push(dxs, *args):
        return func.jvp(case.function(args, active, device), tuple(args[i] for i in active), tuple(dxs))[1]

    every = positions(case)[-1]
    for batched in (every, []):
        wanted = [push(tangents[k], *[c[k if i in batched else 0] for i, c in enumerate(columns)]) for k in range(SIZE)]
        given = [stacked(c, 0) if i in batched else c[0] for i, c in enumerate(columns)]
        in_dims = (0, *[0 if i in batched else None for i in range(len(columns))])
        found = func.vmap(push, in_dims=in_dims)(tuple(stacked(each, 0) for each in zip(*tangents, strict=True)), *given)
        close(found, [np.stack([array(g) for g in each]) for each in zip(*wanted, strict=True)], 1e-12)


@cases(wanted=lambda case: case.name in DYNAMIC and case.dtype.name == "float64")
def test_a_batch_of_results_of_different_shapes_is_refused(case, device):
    columns = samples(case, device, range(SIZE))
    params = case.params(device)
    for i in DYNAMIC[case.name]:
        with pytest.raises(Refusal, match="dynamic shape"):
            mapped(lambda *args: case.call(*args, **params), columns, [i], 0)
