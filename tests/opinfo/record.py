"""`python -m tests.opinfo.record` runs every entry and writes what it is made of: minigrad/scoreboard/ops.json, docs/ops.md."""

from __future__ import annotations

import json
from pathlib import Path

import torch

from minigrad.autograd.graph import saved_tensors_hooks
from minigrad.dtypes import BY_NAME
from minigrad.scoreboard import ops
from minigrad.state import Watcher, current, using

from . import verdicts
from .entries import COVERED, ENTRIES, QUESTIONS, differentiable, samples
from .libraries import Minigrad

ROOT = Path(__file__).parents[2]


class Rows(Watcher):
    """Notes the rows that run at the base, and what they save."""

    def __init__(self):
        self.rows, self.saves = {}, {}

    def notice(self, event, owner, subject, detail):
        if event == "op" and owner is None:
            self.rows[subject.name] = None

    def pack(self, x, *, site):
        node = site.node.removesuffix("0").removesuffix("1").removesuffix("2").removesuffix("Backward")
        self.saves.setdefault(node, {})[site.name] = None
        return x


def dtype_of(name):
    """The dtype that an entry is looked at in: float64, or the first that it has."""
    return next(d for d in ("float64", *BY_NAME) if getattr(torch, d) in ENTRIES[name].supported_dtypes("cpu"))


def measured(name):
    """(rows, saves) of an entry, over all samples that run."""
    seen = Rows()
    for program, _ in samples(name, dtype_of(name)):
        tensors = program.tensors(Minigrad, recorded=True)
        with using(current()._replace(watchers=(seen,))), saved_tensors_hooks(seen.pack, lambda x: x):
            try:
                program.call(Minigrad, tensors)
            except Exception:  # noqa: BLE001, S112  a verdict says so
                continue
    return list(seen.rows), [f"{' '.join(names)} of {node}" for node, names in seen.saves.items()]


def deviations(name):
    """The rules on an entry, shortened to check, dtypes and samples, each with its reason."""
    checks = {check for entry, check, _ in QUESTIONS if entry == name}
    return [(rule.text.partition("|")[2].strip(), rule.reason) for rule in verdicts.RULES
            if verdicts.fnmatchcase(name, rule.entry) and rule.checks & checks]


def written():
    """All that is not measured: names, counts and deviations."""
    reasons = list(dict.fromkeys(rule.reason for rule in verdicts.RULES))
    found = {}
    for name in COVERED:
        found[name] = {
            "samples": len(samples(name, dtype_of(name))),
            "questions": sum(entry == name for entry, *_ in QUESTIONS),
            "differentiable": differentiable(name),
            "deviates": [[rule, reasons.index(reason)] for rule, reason in deviations(name)],
        }
    return {"torch": torch.__version__.partition("+")[0], "reasons": reasons, "ops": found}


def main():
    found = written()
    for name, op in found["ops"].items():
        op["rows"], op["saves"] = measured(name)
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(op)}" for name, op in found["ops"].items())
    head = json.dumps({"torch": found["torch"], "reasons": found["reasons"]}, indent=0)[:-2]
    (ROOT / "minigrad/scoreboard/ops.json").write_text(f'{head},\n"ops": {{\n{lines}\n}}}}\n')
    (ROOT / "docs/ops.md").write_text(ops.table() + "\n")


if __name__ == "__main__":
    main()
