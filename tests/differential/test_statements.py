"""Random programs at level 0, line by line beside torch's."""

from contextvars import copy_context

import pytest

from tests.differential.statements import Maker, check, smallest


def agrees(seed, length=14):
    lines = copy_context().run(lambda: Maker(seed).program(length))
    if check(lines) is not None:
        few = smallest(lines)
        pytest.fail("\n".join([f"seed {seed}:", *few, "# " + check(few)[1]]), pytrace=False)


@pytest.mark.parametrize("seed", range(60))
def test_a_program_does_line_by_line_what_it_does_in_torch(seed):
    agrees(seed)


@pytest.mark.slow
def test_many_programs_do_line_by_line_what_they_do_in_torch():
    for seed in range(60, 4000):
        agrees(seed)
