"""The op table that is shipped and printed is what the harness finds."""

import pytest

from minigrad.scoreboard import ops, report

from . import record
from .entries import COVERED

FOUND = ops.record()


def test_the_table_of_the_docs_is_what_the_command_prints(capsys):
    assert report.main(["ops"]) == 0
    assert capsys.readouterr().out == (record.ROOT / "docs/ops.md").read_text()


def test_names_counts_and_deviations_are_those_of_the_harness():
    """`python -m tests.opinfo.record` writes them anew."""
    measured = {name: {key: op[key] for key in op if key not in ("rows", "saves")} for name, op in FOUND["ops"].items()}
    assert {**FOUND, "ops": measured} == record.written()


@pytest.mark.opinfo
@pytest.mark.parametrize("name", COVERED)
def test_rows_and_saves_are_what_is_measured(name):
    rows, saves = record.measured(name)
    assert (FOUND["ops"][name]["rows"], FOUND["ops"][name]["saves"]) == (rows, saves)


def test_one_op_is_told_in_full(capsys):
    assert report.main(["ops", "sort"]) == 0
    out = capsys.readouterr().out
    assert "rows      sort" in out
    assert "saves     out1 of Sort" in out


def test_an_op_that_is_not_there_is_said_so(capsys):
    assert report.main(["ops", "no_such_op"]) == 2
    assert "there is no op 'no_such_op'" in capsys.readouterr().out
