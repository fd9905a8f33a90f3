"""A kernel asks its device for work and goes on, so that the host can run ahead; those that wait for a number are listed."""

import pytest

from tests import cupy_standin
from tests.laws.cases import cases

CHECKS, SIZE, FAILS = "raises for an element that makes no sense", "its shape depends on elements", "raises where it fails"
ORDER = "of equal elements the order says which it is"
WAITS = {
    "gather.gather_at": CHECKS, "gather.scatter_at": CHECKS, "gather.scatter_add_at": CHECKS, "gather._index_select": CHECKS,
    "gather._index_add": CHECKS, "gather._index_copy": CHECKS, "picking._take": CHECKS, "embedding._lookup": CHECKS,
    "loss.probable_loss": CHECKS, "loss.class_loss": CHECKS, "loss.class_loss_2d": CHECKS, "loss._nll_backward": CHECKS,
    "eigen._eig": CHECKS, "random._bernoulli": CHECKS, "random._multinomial": CHECKS,
    "indexing._argwhere": SIZE, "picking._masked_select": SIZE, "picking._masked_scatter": SIZE, "picking._repeated": SIZE,
    "picking._one_hot": SIZE, "picking._masked_gather": SIZE,
    "extremes._median": ORDER, "extremes._kthvalue": ORDER, "ranks._nanmedian": ORDER, "ranks._nanmedian_all": ORDER,
    "factors.solve_triangle": FAILS, "factors._solved": FAILS, "factors.inverse": FAILS, "factors.lu_solve_row": FAILS,
    "solving.no_failure": FAILS, "definite.cholesky_row": FAILS, "definite.cholesky_solve_row": FAILS, "definite.cholesky_inverse_row": FAILS,
    "spectra._matrix_exp": "the number of squarings depends on the norm",
}
"""Rows whose kernels wait, and what for."""
SOMETIMES = {"distributions._sinc": "elements near 0 are apart from the others in its derivatives",
             "gather.spread_at": "places that a program named are looked at, those that a kernel chose are not",
             "segments._scatter_reduce": "a product is taken in as many turns as a place is named, of which there is a largest"}


@cases()
@pytest.mark.usefixtures("cuda_stand_in")
def test_a_kernel_waits_for_its_device_where_it_must(case):
    args, params = case.tensors(0, "cuda"), case.params("cuda")
    before = cupy_standin.LOOKS[0]
    case.call(*args, **params)
    assert case.name in SOMETIMES or (cupy_standin.LOOKS[0] == before) == (case.name not in WAITS), (
        "the host waits for an element (bool, int, item, a mask as an index, ...): do without, or say in WAITS what for")
