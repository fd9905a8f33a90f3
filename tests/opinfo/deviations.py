"""`python -m tests.opinfo.deviations [PATTERN ...]`: what deviates and no verdict covers, as lines for verdicts.toml.

Before each line, as a comment, what the first of its samples gave.
"""

from __future__ import annotations

import sys
from fnmatch import fnmatchcase

from .checks import CHECKS
from .entries import QUESTIONS, answers
from .verdicts import expected


def ranges(numbers):
    """0, 1, 2, 5 as "0-2, 5"."""
    found = []
    for n in sorted(numbers):
        if found and found[-1][1] == n - 1:
            found[-1][1] = n
        else:
            found.append([n, n])
    return ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def deviations(patterns):
    """(entry, check, dtype, samples as text, the first deviation) of every question that has some."""
    for entry, check, dtype in QUESTIONS:
        if any(fnmatchcase(entry, pattern) for pattern in patterns):
            rules = expected(entry, check, dtype)
            found = [(program.index, e) for program, e in answers(entry, check, dtype)]
            bad = {k: e for k, e in found if e is not None and k not in rules and None not in rules}
            if bad:
                yield entry, check, dtype, "all" if len(bad) == len(found) else ranges(bad), next(iter(bad.values()))


def lines(patterns):
    """The same, those joined that differ only in the dtype, then those that differ only in the check."""
    joined: dict = {}
    for entry, check, dtype, samples, error in deviations(patterns):
        joined.setdefault((entry, check, samples), (error, []))[1].append(dtype)
    again: dict = {}
    for (entry, check, samples), (error, dtypes) in joined.items():
        key = entry, "" if tuple(dtypes) == CHECKS[check].dtypes else ", ".join(dtypes), samples
        again.setdefault(key, (error, []))[1].append(check)
    for (entry, dtypes, samples), (error, checks) in again.items():
        text = " ".join(f"{type(error).__name__}: {error}".split())
        yield f"# {text[:150]}", f"{entry} | {', '.join(checks)}{dtypes and f' [{dtypes}]'} | {samples}"


if __name__ == "__main__":
    for comment, line in lines(sys.argv[1:] or ["*"]):
        print(comment, f'"{line}",', sep="\n", flush=True)
