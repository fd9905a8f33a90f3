"""Where minigrad deviates on purpose: verdicts.toml, read.  A row names entries, checks and samples; it is strict both ways.

    reason = "why"
    issue = "where upstream knows of it"           (may be left out)
    within = "rounding"                            (may be left out) whether they agree depends on the BLAS: see rounding.py
    on = ["sort | value [uint8, bool] | 0",         entry | check [dtypes] | samples: numbers, ranges, or all
          "dropout* | value, gradient | all"]       patterns and several checks; without dtypes: in all that the check has
"""

from __future__ import annotations

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

_LINE = re.compile(r"(?P<entry>[^|]+?)\s*\|\s*(?P<checks>[^|\[]+?)\s*(\[(?P<dtypes>[^\]]+)\])?\s*\|\s*(?P<samples>[\d\s,-]+|all)")


class Rule(NamedTuple):
    """One line of a row."""

    text: str
    reason: str
    entry: str
    checks: frozenset[str]
    dtypes: frozenset[str] | None
    samples: frozenset[int] | None
    """None for all."""
    rounding: bool
    """Whether both libraries are held to the answer in float64 instead."""

    def covers(self, entry, check, dtype):
        return fnmatchcase(entry, self.entry) and check in self.checks and (self.dtypes is None or dtype in self.dtypes)


def _words(text):
    return frozenset(text.replace(",", " ").split())


def _samples(text):
    found = set()
    for part in _words(text):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def read(path=Path(__file__).with_name("verdicts.toml")):
    """All rules of the file."""
    found = []
    for row in tomllib.loads(path.read_text())["verdict"]:
        assert {"reason", "on"} <= row.keys() <= {"reason", "on", "issue", "within"}, row
        assert row.get("within", "rounding") == "rounding", row
        for text in row["on"]:
            line = _LINE.fullmatch(text.strip())
            assert line, f"not a rule: {text!r}"
            found.append(Rule(text, row["reason"], line["entry"],
                              frozenset(check.strip() for check in line["checks"].split(",")),
                              _words(line["dtypes"]) if line["dtypes"] else None,
                              None if line["samples"] == "all" else _samples(line["samples"]), "within" in row))
    return found


RULES = read()


def expected(entry, check, dtype):
    """sample -> rule, of the deviations that the file has for a check of an entry; the key None stands for all samples."""
    found = {}
    for rule in RULES:
        if rule.covers(entry, check, dtype):
            for sample in [None] if rule.samples is None else rule.samples:
                assert sample not in found and None not in found, f"two verdicts on {entry}, {check} {dtype}"
                found[sample] = rule
    return found
