"""minigrad/ops/infos.py: factorizations that say how each matrix went."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import minigrad as mg
from minigrad.errors import UsageError
from minigrad.func import grad, vmap
from tests.spec.instruments import t

SINGULAR, REGULAR, INDEFINITE = [[1.0, 2], [2, 4]], [[2.0, 0], [0, 4]], [[4.0, 2], [2, -1]]
MATRICES = {"singular": SINGULAR, "zero": [[0.0, 0], [0, 0]], "regular": REGULAR, "indefinite": INDEFINITE,
            "a batch": [SINGULAR, REGULAR, INDEFINITE]}
FORMS = {
    "inv_ex": lambda lib, a, **options: lib.linalg.inv_ex(a, **options),
    "solve_ex": lambda lib, a, **options: lib.linalg.solve_ex(a, lib.ones(2, 1, dtype=lib.float64), **options),
    "solve_ex of a vector": lambda lib, a, **options: lib.linalg.solve_ex(a, lib.ones(2, dtype=lib.float64), **options),
    "cholesky_ex": lambda lib, a, **options: lib.linalg.cholesky_ex(a, **options),
    "cholesky_ex, upper": lambda lib, a, **options: lib.linalg.cholesky_ex(a, upper=True, **options),
    "lu_factor_ex": lambda lib, a, **options: lib.linalg.lu_factor_ex(a, **options),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("which", MATRICES)
def test_what_failed_is_what_torch_says_and_the_others_are_what_they_are(form, which):
    want, got = (FORMS[form](lib, lib.tensor(MATRICES[which], dtype=lib.float64)) for lib in (torch, mg))
    assert (got.info.tolist(), got.info.dtype) == (want.info.tolist(), mg.int32)
    good = np.atleast_1d(want.info.cpu().numpy() == 0)
    found, wanted = (x.cpu().numpy().reshape(len(good), -1)[good] for x in (got[0], want[0]))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("form", FORMS)
def test_errors_are_raised_where_that_is_asked_for(form):
    for lib in (torch, mg):
        with pytest.raises(RuntimeError):
            FORMS[form](lib, lib.tensor([REGULAR, SINGULAR], dtype=lib.float64), check_errors=True)


def test_the_gradient_of_a_matrix_that_went_well_is_what_it_is():
    a = t([SINGULAR, REGULAR], requires_grad=True)
    mg.linalg.inv_ex(a).inverse[1].sum().backward()
    assert a.grad[1].tolist() == [[-0.25, -0.125], [-0.125, -0.0625]]


def test_a_sample_that_fails_leaves_the_others_alone():
    def f(a):
        return mg.linalg.cholesky_ex(a).L.sum()
    found = vmap(grad(f))(t([REGULAR, INDEFINITE]))
    want = torch.tensor(REGULAR, dtype=torch.float64).requires_grad_()
    torch.linalg.cholesky(want).sum().backward()
    np.testing.assert_allclose(found[0].cpu().numpy(), want.grad.cpu().numpy(), rtol=1e-12)
    assert found[1].isnan().all()


def test_factors_of_a_singular_matrix_are_refused_in_torchs_words():
    for given, text in ((SINGULAR, "torch.linalg.lu_factor: U.2,2. is zero and using it on lu_solve would result in a division by zero"),
                        ([REGULAR, SINGULAR], "torch.linalg.lu_factor: .Batch element 1.: U.2,2. is zero")):
        for lib in (torch, mg):
            with pytest.raises(RuntimeError, match=text):
                lib.linalg.lu_factor(lib.tensor(given, dtype=lib.float64))
    with pytest.raises(UsageError, match=r"Batch element 1.: U.2,2. is zero"):
        vmap(mg.linalg.lu_factor)(t([REGULAR, SINGULAR]))
