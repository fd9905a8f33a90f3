"""Random programs at level 0, line by line beside torch's."""

from contextvars import copy_context

import pytest

from tests.differential.hooked import HookMaker
from tests.differential.statements import Maker, check, smallest


def agrees(seed, length=14, maker=Maker):
    lines = copy_context().run(lambda: maker(seed).program(length))
    if check(lines, maker.side_of) is not None:
        few = smallest(lines, maker.side_of)
        pytest.fail("\n".join([f"seed {seed}:", *few, "# " + check(few, maker.side_of)[1]]), pytrace=False)


@pytest.mark.parametrize("seed", range(60))
def test_a_program_does_line_by_line_what_it_does_in_torch(seed):
    agrees(seed)


@pytest.mark.slow
def test_many_programs_do_line_by_line_what_they_do_in_torch():
    for seed in range(60, 4000):
        agrees(seed)


@pytest.mark.parametrize("seed", range(60))
def test_hooks_hear_line_by_line_what_they_hear_in_torch(seed):
    agrees(seed, maker=HookMaker)


@pytest.mark.slow
def test_hooks_of_many_programs_hear_what_they_hear_in_torch():
    for seed in range(60, 2000):
        agrees(seed, maker=HookMaker)
