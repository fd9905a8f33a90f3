"""Random nestings of transforms and regions, with what they capture."""

import pytest

from tests.differential.nestings import Maker, check, smallest

WRONG_IN_TORCH = ("linearize", "layer_norm")
"""The linear part of a Jacobian is 0 there, and the third derivative of layer_norm is another function's."""


def holds(seed, *, all_of_it):
    text = Maker(seed, all_of_it=all_of_it).program()
    options = {"level_0": seed % 2 == 0, "with_torch": not all_of_it and not any(name in text for name in WRONG_IN_TORCH)}
    if check(text, **options) is not None:
        few = smallest(text, **options)
        pytest.fail(f"seed {seed}, {options}:\n{few}\n# {check(few, **options)}", pytrace=False)


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("all_of_it", [False, True], ids=["transforms", "modes and draws too"])
def test_a_nesting_gives_with_regions_what_it_gives_without(seed, all_of_it):
    holds(seed, all_of_it=all_of_it)


@pytest.mark.slow
@pytest.mark.parametrize("all_of_it", [False, True], ids=["transforms", "modes and draws too"])
def test_many_nestings_give_with_regions_what_they_give_without(all_of_it):
    for seed in range(40, 1500):
        holds(seed, all_of_it=all_of_it)
