"""The file of verdicts is about tests that exist."""

from tests.differential.expressions import ERRORS, EXPRESSIONS
from tests.differential.harness import VERDICTS
from tests.differential.policies import POLICIES
from tests.differential.programs import FEATURED, FEATURES, PROGRAMS
from tests.differential.traced import FEATURED as FEATURED_TRACES
from tests.differential.traced import TRACED


def test_every_verdict_is_on_a_test():
    tests = {f.__name__ for f in (*PROGRAMS, *TRACED, *POLICIES)}
    tests |= {f"{f.__name__}[{feature}]" for f in (*FEATURED, *FEATURED_TRACES) for feature in FEATURES}
    tests |= set(EXPRESSIONS) | {f"saves: {line}" for line in EXPRESSIONS}
    tests |= {row.partition("|")[0].strip() for row in ERRORS.strip().splitlines()}
    assert not sorted(VERDICTS.keys() - tests)


def test_program_names_are_distinct():
    names = [f.__name__ for f in (*PROGRAMS, *FEATURED, *TRACED, *FEATURED_TRACES, *POLICIES)]
    assert len(names) == len(set(names))
