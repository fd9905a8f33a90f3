"""Single precision in, single precision everywhere: outputs, saved tensors, gradients, tangents."""

from minigrad import func
from minigrad.autograd.graph import saved_tensors_hooks
from tests.laws.cases import Case, cases, close, differentiable
from tests.laws.samples import NO_INPUTS

DOUBLE = ("float64", "complex128")


def outputs(case, args, device):
    out = case.call(*args, **case.params(device))
    return [out] if case.op.outs == 1 else list(out)


def of_doubles(case):
    """The same case in double precision."""
    return Case(case.name, case.k, {"float32": "float64", "complex64": "complex128"}[case.dtype.name])


@cases(single=True, wanted=lambda case: case.name not in NO_INPUTS)
def test_the_output_is_of_single_precision(case, device):
    assert all(y.dtype.name not in DOUBLE for y in outputs(case, case.tensors(0, device), device))


@cases(single=True, wanted=differentiable)
def test_gradients_saves_and_tangents_are_of_single_precision(case, device):
    args = case.tensors(0, device)
    xs, f, packed = [args[i] for i in case.active], case.function(args, case.active, device), []
    with saved_tensors_hooks(lambda x: packed.append(x) or x, lambda x: x):
        outs, pull = func.vjp(f, *xs)
    grads = pull(tuple(case.alike(outs, 1)))
    assert [g.dtype for g in grads] == [x.dtype for x in xs]
    assert not any(p.dtype.name in DOUBLE for p in packed)
    tangents = func.jvp(f, tuple(xs), tuple(case.alike(xs, 0)))[1]
    assert [d.dtype for d in tangents] == [y.dtype for y in outs]


@cases(single=True, wanted=differentiable)
def test_single_precision_is_near_to_double(case, device):
    """The same numbers, rounded."""
    double = of_doubles(case)
    args = double.tensors(0, device)
    rounded = [a.to(case.kind_of(x)) if i in case.floating else a
               for i, (a, x) in enumerate(zip(args, case.args, strict=True))]
    results = []
    for each, given in ((case, rounded), (double, args)):
        outs, pull = func.vjp(each.function(given, each.active, device), *[given[i] for i in each.active])
        cts = [ct.to(y.dtype) for ct, y in zip(double.alike(outs, 1), outs, strict=True)]
        results.append([*outs, *pull(tuple(cts))])
    close(*results, 2e-5)
