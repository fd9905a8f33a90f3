"""The op table: every op under torch's name, what it is made of, what it saves, and where it deviates from torch.

It is measured, not written: `ops.json` beside this file holds what a run over torch's own sample inputs found
(`python -m tests.opinfo.record`, which needs torch), and this file prints it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

HEAD = """# Ops

What minigrad has of torch {torch}'s own database of sample inputs: {count} entries, {differentiable} of them
differentiable in float64.  Written by `python -m minigrad ops`, from a run over all samples (`python -m tests.opinfo.record`).

rows: what the op runs, in the order they first run on any sample. saves: what is packed, by the rows' names for it (x0, x1:
inputs; out: output). asked: samples in float64, and questions (an entry, a check, a dtype). deviates: the reasons, below.

| op | rows | saves | asked | deviates |
|---|---|---|---|---|
"""


def record() -> dict[str, Any]:
    """What was measured."""
    from json import loads  # noqa: PLC0415

    found: dict[str, Any] = loads(Path(__file__).with_name("ops.json").read_text(encoding="utf-8"))
    return found


def table() -> str:
    """Every op, as a table in Markdown."""
    found = record()
    reasons: list[str] = found["reasons"]
    used = sorted({number for op in found["ops"].values() for _, number in op["deviates"]})
    numbers = {number: place for place, number in enumerate(used, 1)}
    lines = [f"| {name} | {' '.join(op['rows'])} | {'; '.join(op['saves'])} | {op['samples']}, {op['questions']} | "
             f"{', '.join(map(str, sorted({numbers[n] for _, n in op['deviates']})))} |" for name, op in found["ops"].items()]
    count = len(lines), sum(op["differentiable"] for op in found["ops"].values())
    text = HEAD.format(torch=found["torch"], count=count[0], differentiable=count[1]) + "\n".join(lines)
    return "\n".join([text, "", "Reasons:", "", *[f"{numbers[n]}. {reasons[n]}" for n in used]])


def one(name: str) -> str:
    """All entries of an op.  Raises LookupError where there is none."""
    found = record()
    chosen = {key: op for key, op in found["ops"].items()
              if name in (key, key.rpartition(".")[2]) or key.startswith(f"{name}.")}
    if not chosen:
        msg = f"there is no op {name!r}: `python -m minigrad ops` lists them."
        raise LookupError(msg)
    lines = []
    for key, op in chosen.items():
        lines += [key, f"  rows      {' '.join(op['rows']) or 'none'}", f"  saves     {'; '.join(op['saves']) or 'nothing'}",
                  f"  asked     {op['questions']} questions, {op['samples']} samples in float64"]
        lines += [f"  deviates  {rule}: {found['reasons'][number]}" for rule, number in op["deviates"]]
    return "\n".join(lines)
