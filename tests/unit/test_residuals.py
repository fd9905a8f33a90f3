"""minigrad/residuals.py: what is kept, of each level."""

import pytest

import minigrad as mg
from minigrad.autograd.graph import save_on_cpu, saved_tensors_hooks
from minigrad.func import grad, vmap
from minigrad.memory import saved_residuals
from minigrad.state import current, watched
from minigrad.utils.checkpoint import checkpoint


def chain(x):
    for _ in range(10):
        x = x.sin()
    return x


def scalar(device="cpu"):
    return mg.tensor(0.7, dtype=mg.float64, device=device)


def region(x):
    return checkpoint(chain, x)


def offloaded(x):
    with save_on_cpu():
        return chain(x)


# ---------------------------------------------------------------- how much
@pytest.mark.parametrize(("order", "arrays"), [(0, 10), (1, 29)])
def test_what_each_derivative_of_a_chain_of_ten_keeps_is_what_torch_and_jax_keep(order, arrays):
    """10 and 29 arrays: torch's count of the plain program, and JAX's."""
    found = saved_residuals(chain, scalar(), order=order, level=1)
    assert (found.arrays, found.nbytes) == (arrays, 8 * arrays)


def test_the_inner_level_of_a_second_derivative_keeps_what_a_first_one_does():
    found = saved_residuals(chain, scalar(), order=1)
    assert {r.level for r in found} == {1, 2}
    assert [r[1:6] for r in found.of(2)] == [r[1:6] for r in saved_residuals(chain, scalar())]


def test_a_checkpoint_keeps_its_input_and_the_rest_is_recomputed():
    found = saved_residuals(region, scalar())
    assert (found.arrays, len(found)) == (1, 11)
    assert [r.verdict for r in found] == ["kept"] + ["recomputed"] * 10
    assert found[0][1:3] == ("checkpoint", "input")


def test_what_is_offloaded_is_on_the_host():
    found = saved_residuals(offloaded, scalar("sim"))
    assert [r.verdict for r in found] == ["on host"] * 10
    assert (found.arrays, found.nbytes) == (0, 0)


def test_a_host_tensor_under_save_on_cpu_is_kept_where_it_is():
    assert {r.verdict for r in saved_residuals(offloaded, scalar())} == {"kept"}


def test_a_tensor_that_is_skipped_is_kept():
    def f(x):
        with save_on_cpu(skip=lambda s: True):
            return chain(x)
    assert {r.verdict for r in saved_residuals(f, scalar("sim"))} == {"kept"}


def test_a_region_inside_save_on_cpu_has_its_input_on_the_host():
    def f(x):
        with save_on_cpu():
            return region(x.exp())
    found = saved_residuals(f, scalar("sim"))
    assert [r.verdict for r in found] == ["on host", "on host"] + ["recomputed"] * 10


def test_other_hooks_are_named():
    def f(x):
        with saved_tensors_hooks(lambda s: s.clone(), lambda s: s):
            return x.sin()
    (only,) = saved_residuals(f, scalar())
    assert only.verdict == "hooks"


def test_a_memory_that_is_saved_twice_counts_once():
    found = saved_residuals(lambda x: x * x, scalar())
    assert (len(found), found.arrays, found.nbytes) == (2, 1, 8)


def test_an_expanded_tensor_counts_its_memory():
    (only,) = saved_residuals(lambda x: x.expand(100).sin(), scalar())
    assert (only.shape, only.nbytes) == ((100,), 8)


def test_under_vmap_bytes_are_those_of_the_batch():
    found = saved_residuals(vmap(mg.sin), mg.ones(5, dtype=mg.float64))
    assert [(r.shape, r.nbytes) for r in found] == [((5,), 40)]


# ---------------------------------------------------------------- what each is
def test_a_residual_says_what_it_is_where_it_is_from_and_which_line_saved_it():
    def f(x, w):
        y = x * w
        return y.exp()
    a, b, c = saved_residuals(f, mg.ones(2, 3, dtype=mg.float32), mg.ones(3, dtype=mg.float32))
    assert [(r.op, r.name, r.dtype, r.shape, r.nbytes, r.source, r.verdict) for r in (a, b, c)] == [
        ("MulBackward0", "x1", "float32", (3,), 12, "argument 1", "kept"),
        ("MulBackward0", "x0", "float32", (2, 3), 24, "argument 0", "kept"),
        ("ExpBackward0", "out", "float32", (2, 3), 24, "output of exp", "kept")]
    first = f.__code__.co_firstlineno
    assert [r.line for r in (a, b, c)] == [f"test_residuals.py:{first + n} (f)" for n in (1, 1, 2)]


def test_what_a_closure_brings_is_from_outside():
    w = scalar()
    (only,) = saved_residuals(lambda x: x * w, scalar())
    assert only.source == "from outside"


def test_it_prints_a_line_for_each_and_a_line_for_each_level():
    lines = str(saved_residuals(region, scalar())).splitlines()
    assert lines[0] == "level 1: 11 saves, 1 arrays kept, 8 B"
    assert lines[1].startswith("  float64[] 8 B, input of checkpoint: argument 0, kept, test_residuals.py:")
    assert len(lines) == 12
    assert str(saved_residuals(lambda x: x + 1, scalar())) == "nothing"


def test_keyword_arguments_are_handed_on():
    found = saved_residuals(lambda x, *, n: x ** n, scalar(), n=3)
    assert [(r.op, r.name) for r in found] == [("PowBackward0", "x0")]


def test_it_works_inside_a_transform_and_counts_levels_from_there():
    seen = []

    def f(x):
        seen.append(saved_residuals(chain, x.detach(), level=1).arrays)
        return x.sin()
    grad(f)(scalar())
    assert seen == [10]


def test_it_leaves_the_state_as_it_was():
    before = current()
    with pytest.raises(ZeroDivisionError):
        saved_residuals(lambda x: 1 / 0, scalar())
    assert current() is before
    assert not watched
