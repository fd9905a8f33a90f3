"""The scoreboard, and the trace of one program, as text or JSON.

    python -m minigrad [--json] [--torch]
    python -m minigrad show [NAME | FILE.py:FUNCTION] [--graph]
    python -m minigrad ops [NAME]

The exit status is 0 only where minigrad is right everywhere.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import __version__
from ..fx.experimental.proxy_tensor import make_fx
from ..fx.graph import columns
from ..fx.kept import kept
from ..tracing import recorded as traced
from . import nestings, ops
from .judge import Outcome, account, attempt, judged, library, ported
from .programs import PROGRAMS, Program, text_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .judge import Account

RECORDED = "torch 2.13"
"""Whose verdicts are written down in programs.py and nestings.py, and those with minigrad.upstream in it."""


# ---------------------------------------------------------------- running everything
class Row(NamedTuple):
    """One program: what minigrad gave and did, torch's verdict, and that with minigrad.upstream in torch."""

    program: Program
    mine: Outcome
    did: Account
    theirs: str
    ported: str

    @property
    def verdicts(self) -> tuple[str, str, str]:
        """On minigrad, torch, and torch with minigrad.upstream."""
        return self.mine.verdict, self.theirs, self.ported


class Board(NamedTuple):
    """All that was run."""

    groups: dict[str, list[Row]]
    nestings: dict[str, tuple[str, str, str]]
    """Of each, the letters of minigrad, torch, and torch with minigrad.upstream, one for each region."""
    failures: list[str]
    """What minigrad does not do right."""
    theirs: str

    @property
    def rows(self) -> list[Row]:
        """The rows of all groups."""
        return [row for group in self.groups.values() for row in group]


def board(torch: Any = None, port: Any = None) -> Board:
    """Run everything on minigrad; and on torch and on torch with the port, where they are given."""
    minigrad = library("minigrad")
    found = Board({}, {}, [], RECORDED if torch is None else f"torch {torch.__version__}")
    for title, programs in PROGRAMS.items():
        found.groups[title] = [_row(found, program, minigrad, torch, port) for program in programs]
    for nesting, recorded in nestings.NESTINGS.items():
        mine = nestings.outcomes(minigrad, nesting, "sim")
        theirs = recorded if torch is None else nestings.letters(nestings.outcomes(torch, nesting, "cpu"))
        ported = nestings.PORTED if port is None else nestings.letters(nestings.outcomes(port, nesting, "cpu"))
        found.nestings[nesting] = nestings.letters(mine), theirs, ported
        for region, each in zip(nestings.REGIONS, mine, strict=True):
            found.failures.extend(f"{nesting}, W is {region}, {body}: {o.value} {o.text}"
                                  for body, o in zip(nestings.BODIES, each, strict=True) if o.verdict != "right")
    return found


def _row(found: Board, program: Program, minigrad: Any, torch: Any, port: Any) -> Row:
    with traced() as log:
        answer = attempt(program.run, minigrad, program.device)
    mine = judged(answer, program.right)
    if mine.verdict != "right":
        found.failures.append(f"{program.name}: {mine.value} {mine.text}")
    theirs, ported = (recorded if there is None else judged(attempt(program.run, there, "cpu"), program.right).verdict
                      for there, recorded in ((torch, program.today), (port, program.ported)))
    return Row(program, mine, account(log), theirs, ported)


# ---------------------------------------------------------------- as text
def _short(value: Any) -> str:
    """A value in a column: of a list the first element."""
    if isinstance(value, list) and value:
        return _short(value[0]) + " .."
    return f"{value + 0.0:.8f}" if isinstance(value, (int, float)) else str(value)


def _programs(found: Board) -> list[str]:
    lines = [["program", "value", "", "right value", "reruns", "tensors", "bytes", "to host", found.theirs, "ported", "report"]]
    for row in found.rows:
        program, mine, did = row.program, row.mine, row.did
        lines.append([
            "  " + program.name, _short(mine.value), "ok" if mine.verdict == "right" else mine.verdict.upper(),
            "an error" if isinstance(program.right, str) else _short(program.right), str(did.recomputed or ""),
            " ".join(str(k.tensors) for k in did.kept), " ".join(str(k.nbytes) for k in did.kept),
            f"{did.copies}, {did.copied} B" if did.copies else "", row.theirs,
            row.ported.partition(":")[0], program.issue])
    head, *body = columns(lines, right=(1, 3, 4))
    text = [" " * head.index("tensors") + "kept", head, "-" * max(map(len, body))]
    for title, group in found.groups.items():
        text += [title, *body[:len(group)]]
        body = body[len(group):]
    return [*text, "", "reruns   of regions; f runs once more than that (under `every`, at order k: k + 1 times)",
            "kept     on the device when each backward begins, the innermost first, each memory once",
            "to host  copies that save_on_cpu made", "ported   torch with minigrad.upstream in it"]


def _nestings(found: Board) -> list[str]:
    letters = "abcdef"
    lines = [["nesting", "minigrad", found.theirs, "ported"], ["", *[" ".join(letters)] * 3]]
    lines += [["  " + nesting, *map(" ".join, each)] for nesting, each in found.nestings.items()]
    head, under, *body = columns(lines)
    names = [f"  {letter}  {title}" for letter, title in zip(letters, nestings.REGIONS, strict=True)]
    legend = ".  equal to the plain program    r  refused    E  an error    W  wrong"
    return [head, under, "-" * len(under), *body, "",
            f"W stands around the innermost body ({', '.join(nestings.BODIES)}), or around transforms of it, and is",
            *columns([names[:2], names[2:4], names[4:]]), legend]


def _summary(found: Board) -> str:
    rows, cells = found.rows, list(found.nestings.values())
    mine, theirs, ported = (
        (sum(row.verdicts[k] == "right" for row in rows), sum(each[k].count(".") for each in cells)) for k in range(3))
    wrong = sum(row.theirs.startswith("wrong") for row in rows)
    return (f"minigrad: {mine[0]} of {len(rows)} programs right, {mine[1]} of {len(cells) * len(nestings.REGIONS)} nestings.   "
            f"{found.theirs}: {theirs[0]} programs right ({wrong} silently wrong), {theirs[1]} nestings; "
            f"ported {ported[0]} and {ported[1]}.")


def as_text(found: Board) -> str:
    """The scoreboard as text."""
    how = "as recorded on cpu; --torch runs it here" if found.theirs == RECORDED else "run here"
    failures = ["", "NOT RIGHT", *("  " + failure for failure in found.failures)] if found.failures else []
    title = f"minigrad {__version__}; {found.theirs} {how}"
    return "\n".join([title, "", *_programs(found), "", *_nestings(found), *failures, "", _summary(found)])


def as_json(found: Board) -> str:
    """The scoreboard as JSON."""
    from json import dumps  # noqa: PLC0415

    programs = [{
        "group": title, "program": row.program.name, "value": row.mine.value, "right": row.program.right,
        "verdict": row.mine.verdict, "error": row.mine.text, "recomputations": row.did.recomputed,
        "kept": [k._asdict() for k in row.did.kept], "host_copies": row.did.copies, "host_bytes": row.did.copied,
        "torch": row.theirs, "ported": row.ported, "report": row.program.issue}
        for title, group in found.groups.items() for row in group]
    cells = [{"nesting": nesting, "region": region, "minigrad": a, "torch": b, "ported": c}
             for nesting, each in found.nestings.items() for region, a, b, c in zip(nestings.REGIONS, *each, strict=True)]
    return dumps({"minigrad": __version__, "torch": found.theirs, "failures": found.failures, "programs": programs,
                  "nestings": cells, "summary": _summary(found)}, indent=1)


# ---------------------------------------------------------------- one program
def show(name: str, *, graph: bool = False) -> tuple[str, bool]:
    """The text, the trace and the figures of one program, by its name or as file.py:function; and whether it is right.

    graph: also the graph of base ops that it comes to, and what that keeps for each backward.
    Raises LookupError where there is no such program.
    """
    path, colon, attribute = name.rpartition(":")
    minigrad = library("minigrad")
    program = Program(name, _function(path, attribute), None, "") if colon else _named(name)
    arguments = () if colon else (minigrad, program.device)
    with traced() as log:
        answer = attempt(program.run, *arguments)
    mine, did = judged(answer, program.right), account(log)
    found = ", ".join(f"{k.tensors} ({k.nbytes} B) for {k.where}" for k in did.kept)
    lines = [["value", f"{_short(mine.value)}{mine.text and ': '}{mine.text}"]]
    if not colon:
        lines += [["right value", _short(program.right)], [f"in {RECORDED}", f"{program.today}  {program.issue}"]]
    lines += [["recomputations", str(did.recomputed)], ["kept as each backward begins", found or "no backward"],
              ["copies to the host", f"{did.copies} ({did.copied} B)"]]
    legend = "a column is a level, the base at the right; a bar stands before what runs again"
    more = ["", _graph(program.run, *arguments)] if graph else []
    return "\n".join([text_of(program.run), "", legend, "", str(log), "", *columns(lines), *more]), mine.verdict == "right"


def _graph(run: Callable[..., Any], *arguments: Any) -> str:
    """The graph of a program, as code that says where each op was traced; or why there is none."""
    def program() -> Any:
        return run(*arguments)

    program.__name__ = run.__name__
    gm = attempt(make_fx(program))
    if isinstance(gm, Exception):
        return f"it cannot be traced: {gm}"
    return f"{gm.print_readable(print_output=False)}\n{kept(gm.graph)}"


def _named(name: str) -> Program:
    first, _, region = name.partition("/")
    if set(first.split(".")) == {"grad"}:  # grad.grad is the checkpointed grad^2
        name = f"grad^{len(first.split('.'))}/{region or 'checkpoint'}"
    found = {p.name: p for group in PROGRAMS.values() for p in group}
    if name not in found:
        msg = f"there is no program {name!r}: `python -m minigrad show` lists them, and file.py:function is one of yours."
        raise LookupError(msg)
    return found[name]


def _function(path: str, name: str) -> Callable[..., Any]:
    from runpy import run_path  # noqa: PLC0415

    try:
        return run_path(path)[name]  # type: ignore[no-any-return]
    except (OSError, KeyError) as error:
        msg = f"there is no function {name!r} in {path!r} ({type(error).__name__}: {error})."
        raise LookupError(msg) from error


def _list() -> str:
    lines = [["  " + p.name, (p.run.__doc__ or "").partition("\n")[0]] for group in PROGRAMS.values() for p in group]
    return "\n".join(["python -m minigrad show NAME, or file.py:function for a function without arguments", *columns(lines)])


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 0 where everything is right, 1 where something is not, 2 for a name that is unknown."""
    from argparse import ArgumentParser, RawDescriptionHelpFormatter  # noqa: PLC0415

    parser = ArgumentParser("python -m minigrad", description=__doc__, formatter_class=RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("show", "ops"), help="explain one program, or list them; the op table")
    parser.add_argument("name", nargs="?", help="a program of the list, or file.py:function; an op")
    parser.add_argument("--graph", action="store_true", help="with show: the graph of base ops too")
    parser.add_argument("--json", action="store_true", help="the scoreboard as JSON")
    parser.add_argument("--torch", action="store_true", help=f"run torch here, instead of showing what {RECORDED} does")
    given = parser.parse_args(arguments)
    status = 0
    if given.command is None:
        found = board(library("torch"), ported()) if given.torch else board()
        text, status = as_json(found) if given.json else as_text(found), int(bool(found.failures))
    elif given.name is None:
        text = _list() if given.command == "show" else ops.table()
    else:
        try:
            if given.command == "ops":
                text, right = ops.one(given.name), True
            else:
                text, right = show(given.name, graph=given.graph)
            status = int(not right)
        except LookupError as error:
            text, status = str(error), 2
    sys.stdout.write(text + "\n")
    return status
