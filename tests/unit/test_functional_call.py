"""functional_call: other tensors in a module's place, for one call, in the State and nowhere else."""

from __future__ import annotations

import threading
import weakref

import pytest
import torch

import minigrad
from minigrad import nn
from minigrad.autograd import grad
from minigrad.func import functional_call, stack_module_state
from minigrad.utils.checkpoint import checkpoint

LIBRARIES = pytest.mark.parametrize("library", [minigrad, torch], ids=["minigrad", "torch"])


def net(library=minigrad):
    """Two layers whose parameters are all ones."""
    m = library.nn.Sequential(library.nn.Linear(2, 2), library.nn.Linear(2, 1))
    for p in m.parameters():
        library.nn.init.ones_(p)
    return m


@LIBRARIES
def test_the_module_computes_with_what_is_given_and_with_its_own_for_the_rest(library):
    m, x = net(library), library.ones(1, 2)
    assert library.func.functional_call(m, {"0.weight": library.zeros(2, 2)}, x).item() == 3
    assert library.func.functional_call(m, {"0.weight": library.zeros(2, 2), "1.bias": library.zeros(1)}, (x,)).item() == 2
    assert m(x).item() == 7


@LIBRARIES
def test_several_dicts_and_keyword_arguments_are_accepted(library):
    class M(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.w = library.nn.Parameter(library.tensor(2.0))
            self.register_buffer("b", library.tensor(3.0))

        def forward(self, x, *, scale=1):
            return x * self.w * scale + self.b

    x, new = library.tensor(1.0), library.tensor(10.0)
    assert library.func.functional_call(M(), ({"w": new}, {"b": new}), x, {"scale": 2}).item() == 30


@LIBRARIES
@pytest.mark.parametrize(("given", "text"), [
    (3, "to be a dict, or a list/tuple of dicts"),
    (({}, 3), "all elements of parameter_and_buffer_dicts to be dictionaries"),
    (({"0.bias": 1}, {"0.bias": 2}), "appeared in multiple dictionaries"),
])
def test_dicts_that_make_no_sense_are_errors(library, given, text):
    with pytest.raises(ValueError, match=text):
        library.func.functional_call(net(library), given, library.ones(1, 2))


@LIBRARIES
def test_strict_wants_every_name_and_no_other(library):
    with pytest.raises(RuntimeError) as error:
        library.func.functional_call(net(library), {"0.weight": library.ones(2, 2), "x": library.ones(1)}, library.ones(1, 2),
                                     strict=True)
    text = str(error.value)
    assert text.startswith("Error(s) in reparametrizing for Sequential:\n\tUnexpected key(s): 'x'.\n\tMissing key(s): ")
    assert all(f"'{name}'" in text for name in ("0.bias", "1.weight", "1.bias"))


@LIBRARIES
def test_an_unknown_name_is_an_attribute_for_the_call(library):
    class M(library.nn.Module):
        def forward(self, x):
            return x + self.extra

    assert library.func.functional_call(M(), {"extra": library.ones(())}, library.ones(())).item() == 2
    with pytest.raises(AttributeError):
        library.func.functional_call(M(), {"no.extra": library.ones(())}, library.ones(()))


def tied(library):
    m = net(library)
    m[1] = library.nn.Linear(2, 2)
    m[1].weight = m[0].weight
    library.nn.init.zeros_(m[1].bias)
    return m


@LIBRARIES
def test_tied_parameters_are_given_once(library):
    m, x, two = tied(library), library.ones(1, 2), library.full((2, 2), 2.0)
    assert library.func.functional_call(m, {"0.weight": two}, x).tolist() == [[20, 20]]
    assert library.func.functional_call(m, {"1.weight": two}, x).tolist() == [[20, 20]]
    assert library.func.functional_call(m, {"0.weight": two}, x, tie_weights=False).tolist() == [[10, 10]]


@LIBRARIES
def test_two_values_for_tied_parameters_are_an_error(library):
    m, x = tied(library), library.ones(1, 2)
    with pytest.raises(ValueError, match="which are tied"):
        library.func.functional_call(m, {"0.weight": library.ones(2, 2), "1.weight": library.zeros(2, 2)}, x)
    same = library.ones(2, 2)
    assert library.func.functional_call(m, {"0.weight": same, "1.weight": same}, x).tolist() == [[6, 6]]


@LIBRARIES
def test_the_own_parameters_are_back_after_an_error(library):
    class M(library.nn.Linear):
        def forward(self, x):
            raise ZeroDivisionError

    m = M(1, 1)
    before = m.weight
    with pytest.raises(ZeroDivisionError):
        library.func.functional_call(m, {"weight": library.zeros(1, 1)}, library.ones(1))
    assert m.weight is before


@LIBRARIES
def test_lists_of_parameters_show_the_given_ones(library):
    class M(library.nn.Linear):
        def forward(self, x):
            return sum((p * p).sum() for p in self.parameters()) + sum(p.sum() for p in self.state_dict().values())

    given = {"weight": library.full((1, 1), 2.0), "bias": library.full((1,), 3.0)}
    assert library.func.functional_call(M(1, 1), given, library.ones(1)).item() == 4 + 9 + 2 + 3


@LIBRARIES
def test_what_forward_writes_into_a_given_buffer_is_seen_in_the_buffer(library):
    m = library.nn.BatchNorm1d(2)
    mean, count = library.zeros(2), library.tensor(0)
    library.func.functional_call(m, {"running_mean": mean, "num_batches_tracked": count}, library.ones(3, 2))
    assert mean.tolist() == [pytest.approx(0.1)] * 2
    assert count.item() == 1
    assert m.running_mean.tolist() == [0, 0]


@LIBRARIES
def test_what_forward_assigns_to_a_given_buffer_lasts_as_long_as_the_call(library):
    class M(library.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", library.zeros(()))

        def forward(self, x):
            self.b = self.b + x
            return self.b

    m = M()
    assert library.func.functional_call(m, {"b": library.ones(())}, library.ones(())).item() == 2
    assert m.b.item() == 0


def test_a_call_inside_a_call_covers_the_outer_one():
    inner = nn.Linear(1, 1, bias=False)

    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = inner

        def forward(self, x):
            covered = functional_call(self.inner, {"weight": minigrad.full((1, 1), 5.0)}, x)
            return covered * 100 + self.inner(x)

    assert functional_call(M(), {"inner.weight": minigrad.full((1, 1), 2.0)}, minigrad.ones(1)).item() == 502


def test_another_thread_sees_the_own_parameters():
    seen = []

    class M(nn.Linear):
        def forward(self, x):
            other = threading.Thread(target=lambda: seen.append(self.weight.item()))
            other.start()
            other.join()
            return self.weight.item()

    m = M(1, 1)
    nn.init.ones_(m.weight)
    assert functional_call(m, {"weight": minigrad.zeros(1, 1)}, minigrad.ones(1)) == 0
    assert seen == [1]


# ---------------------------------------------------------------- derivatives
def test_gradients_with_respect_to_given_parameters_are_torchs():
    torch.manual_seed(0)
    w, x = torch.randn(1, 2, dtype=torch.float64), torch.randn(4, 2, dtype=torch.float64)

    def gradient(library, w, x):
        m = library.nn.Linear(2, 1, bias=False).double()
        return library.func.grad(lambda p: (library.func.functional_call(m, p, x) ** 2).sum())({"weight": w})["weight"]

    got = gradient(minigrad, minigrad.tensor(w.numpy()), minigrad.tensor(x.numpy()))
    assert got.tolist() == [pytest.approx(v) for v in gradient(torch, w, x).tolist()]


def test_an_ensemble_is_a_vmap_over_stacked_states():
    models = [nn.Linear(2, 3) for _ in range(4)]
    params, buffers = stack_module_state(models)
    x = minigrad.randn(5, 2)
    y = minigrad.func.vmap(lambda p, b: functional_call(models[0], (p, b), x))(params, buffers)
    want = minigrad.stack([m(x) for m in models])
    assert minigrad.allclose(y, want)
    assert params["weight"].is_leaf
    assert params["weight"].requires_grad


@LIBRARIES
@pytest.mark.parametrize(("models", "text"), [
    (lambda nn: [], "Expected at least one model, got 0"),
    (lambda nn: [nn.Linear(1, 1), nn.Linear(1, 1).eval()], "same training/eval mode"),
    (lambda nn: [nn.Linear(1, 1), nn.ReLU()], "the same class"),
    (lambda nn: [nn.Linear(1, 1), nn.Linear(1, 1).requires_grad_(False)], "same .requires_grad"),
])
def test_models_that_cannot_be_stacked_are_errors(library, models, text):
    with pytest.raises(RuntimeError, match=text):
        library.func.stack_module_state(models(library.nn))


# ---------------------------------------------------------------- checkpoint: the recomputation finds the same parameters
class Checkpointed(nn.Module):
    """sum(sin(sin(w x))), recomputed."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(minigrad.tensor(0.0))
        self.calls = []

    def forward(self, x):
        def region(t):
            self.calls.append(self.w)
            return (self.w * t).sin().sin().sum()

        return checkpoint(region, x)


def plain(w, x):
    return (w * x).sin().sin().sum()


def test_a_recomputation_sees_the_swapped_parameters():
    """C5: torch silently mixes old and new ones (pytorch#165880)."""
    m, w, x = Checkpointed(), minigrad.tensor(2.0, requires_grad=True), minigrad.tensor([0.3, 0.4])
    y = functional_call(m, {"w": w}, x)
    got, = grad(y, w)
    assert got.item() == grad(plain(w, x), w)[0].item()
    assert m.calls == [w, w]
    assert m.w is not w


@pytest.mark.parametrize("order", [1, 2, 3])
def test_a_recomputation_sees_swapped_parameters_of_every_level(order):
    x = minigrad.tensor([0.3, 0.4])

    def f(w):
        return functional_call(Checkpointed(), {"w": w}, x)

    def want(w):
        return plain(w, x)

    for _ in range(order):
        f, want = minigrad.func.grad(f), minigrad.func.grad(want)
    w = minigrad.tensor(2.0)
    assert f(w).item() == pytest.approx(want(w).item(), rel=1e-5)


def test_a_recomputation_under_vmap_sees_swapped_parameters_after_the_level_has_gone():
    ws, x = minigrad.tensor([1.0, 2.0, 3.0], requires_grad=True), minigrad.tensor([0.3, 0.4])
    ys = minigrad.func.vmap(lambda w: functional_call(Checkpointed(), {"w": w}, x))(ws)
    got, = grad(ys.sum(), ws)
    want, = grad(sum(plain(w, x) for w in ws), ws)
    assert minigrad.allclose(got, want)


def test_swapped_parameters_that_were_written_to_are_an_error():
    m, w, x = Checkpointed(), minigrad.tensor(2.0), minigrad.tensor([0.3, 0.4], requires_grad=True)
    y = functional_call(m, {"w": w}, x)
    w.mul_(2)
    with pytest.raises(RuntimeError, match="modified"):
        y.backward()


def test_a_region_that_assigned_a_swapped_buffer_is_freed_without_the_collector(no_gc):
    class M(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("b", minigrad.zeros(2))

        def forward(self, x):
            def region(t):
                self.b = t.sin().sin()
                return self.b * 2
            return checkpoint(region, x)

    y = functional_call(M(), {"b": minigrad.ones(2)}, minigrad.ones(2, requires_grad=True))
    dead = weakref.ref(y.untyped_storage())
    del y
    assert dead() is None


@LIBRARIES
def test_batch_norms_that_are_replaced_go_by_the_batch_of_each_sample_under_vmap(library):
    net = library.nn.Sequential(library.nn.BatchNorm1d(2, affine=False), library.nn.Sequential(library.nn.BatchNorm1d(2)))
    assert library.func.replace_all_batch_norm_modules_(net) is net
    assert dict(net.named_buffers()) == {}
    x = library.tensor([[[1.0, 5.0], [3.0, 9.0]], [[0.0, 0.0], [2.0, -2.0]]], dtype=library.float64)
    found = library.func.vmap(net.double())(x)
    expected = [[[-1, -1], [1, 1]], [[-1, 1], [1, -1]]]
    torch.testing.assert_close(torch.tensor(found.tolist()), torch.tensor(expected, dtype=torch.float64).float(), atol=2e-5, rtol=0)


@LIBRARIES
def test_a_batch_norm_alone_is_replaced_and_an_instance_norm_left(library):
    norm = library.func.replace_all_batch_norm_modules_(library.nn.BatchNorm2d(3))
    assert (norm.running_mean, norm.num_batches_tracked, norm.track_running_stats) == (None, None, False)
    other = library.func.replace_all_batch_norm_modules_(library.nn.InstanceNorm2d(3, track_running_stats=True))
    assert other.track_running_stats
