"""`python -m minigrad`: the scoreboard and the trace of one program."""

import json
import math
import subprocess
import sys

import pytest

from minigrad.scoreboard import nestings, report
from minigrad.scoreboard.judge import attempt, judged, library, ported, same
from minigrad.scoreboard.programs import PROGRAMS, Program, derivative, nested, plain

SEEDS = [0.16293581, 0.61667289, 0.49193611, 1.17263248]
ALL = {p.name: p for group in PROGRAMS.values() for p in group}


@pytest.fixture(scope="module")
def board():
    return report.board()


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_right_values_of_the_seeds_are_those_of_the_formula(order):
    assert derivative(order, 5.0) == pytest.approx(SEEDS[order - 1], abs=5e-9)


@pytest.mark.parametrize("order", [1, 2, 3, 4])
def test_the_formula_of_a_derivative_is_the_slope_of_the_one_before(order):
    h = 1e-5
    for x in (0.3, 1.7, 5.0):
        slope = (derivative(order - 1, x + h) - derivative(order - 1, x - h)) / (2 * h)
        assert derivative(order, x) == pytest.approx(slope, abs=1e-8)


@pytest.mark.parametrize("name", ALL)
def test_every_program_is_right(name, board):
    row = next(row for row in board.rows if row.program.name == name)
    assert row.mine.verdict == "right", row.mine


@pytest.mark.parametrize("nesting", nestings.NESTINGS)
def test_every_nesting_is_right_in_every_region(nesting, board):
    assert board.nestings[nesting][0] == "......"


@pytest.mark.parametrize("nesting", nestings.NESTINGS)
def test_no_plain_program_is_zero(nesting):
    for body in nestings.BODIES:
        flat = nestings.run(library("minigrad"), nesting, plain, body, "cpu").detach().reshape(-1).tolist()
        assert max(map(abs, flat)) > 1e-3


def test_a_derivative_of_order_n_recomputes_n_times(board):
    did = {row.program.name: row.did for row in board.rows}
    assert [did[f"grad^{n}/checkpoint"].recomputed for n in (1, 2, 3, 4)] == [1, 2, 3, 4]


def test_host_copies_do_not_depend_on_the_order(board):
    did = {row.program.name: row.did for row in board.rows}
    assert [(did[f"grad^{n}/save_on_cpu"].copies, did[f"grad^{n}/save_on_cpu"].copied) for n in (1, 2, 3, 4)] == [(2, 16)] * 4


def test_what_is_kept_is_counted_for_each_backward(board):
    did = {row.program.name: row.did for row in board.rows}
    assert did["grad^3/plain"].kept == [("grad@3", 2, 16), ("grad@2", 5, 40), ("grad@1", 10, 80)]
    assert did["grad^3/checkpoint"].kept == [("grad@3", 1, 8), ("grad@2", 5, 40), ("grad@1", 10, 80)]


def test_the_sandwich_recomputes_once(board):
    assert next(row.did.recomputed for row in board.rows if row.program.name == "sandwich") == 1


# ---------------------------------------------------------------- torch
def stock_torch():
    torch = pytest.importorskip("torch")
    if not torch.__version__.startswith(report.RECORDED.split()[1]):
        pytest.skip(f"verdicts are recorded for {report.RECORDED}")
    return library("torch")


@pytest.mark.filterwarnings("ignore")
def test_torch_does_with_each_program_what_is_recorded():
    torch = stock_torch()
    found = {p.name: judged(attempt(p.run, torch, "cpu"), p.right).verdict for p in ALL.values()}
    assert found == {p.name: p.today for p in ALL.values()}


@pytest.mark.filterwarnings("ignore")
def test_torch_with_the_port_does_with_each_program_what_is_recorded():
    stock_torch()
    found = {p.name: judged(attempt(p.run, ported(), "cpu"), p.right).verdict for p in ALL.values()}
    assert found == {p.name: p.ported for p in ALL.values()}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_torch_with_the_port_does_with_each_nesting_what_is_recorded():
    stock_torch()
    found = {n: nestings.letters(nestings.outcomes(ported(), n, "cpu")) for n in nestings.NESTINGS}
    assert found == dict.fromkeys(nestings.NESTINGS, nestings.PORTED)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_torch_does_with_each_nesting_what_is_recorded():
    torch = stock_torch()
    found = {n: "".join(map(nestings.letter, nestings.outcomes(torch, n, "cpu"))) for n in nestings.NESTINGS}
    assert found == nestings.NESTINGS


# ---------------------------------------------------------------- judging
@pytest.mark.parametrize(("a", "b", "equal"), [
    (1.0, 1.0 + 1e-13, True), (1.0, 1.0 + 1e-11, False), (1e3, 1e3 + 1e-10, True), ([1.0], [1.0], True), ([1.0], [1.0, 2.0], False),
    ([[1.0]], [[2.0]], False), (1.0, [1.0], False), (math.nan, math.nan, False)])
def test_values_agree_to_twelve_digits(a, b, equal):
    assert same(a, b) is equal


def test_an_error_is_right_only_where_that_error_is():
    assert judged(ValueError("no"), "ValueError").verdict == "right"
    assert judged(ValueError("no"), 1.0).verdict == "error"
    assert judged(1.0, "ValueError").verdict == "wrong: 1"


def test_a_refusal_is_told_from_an_error():
    class Refused(RuntimeError):
        refusal = True

    assert judged(Refused(), 1.0).verdict == "refuses"
    assert judged(RuntimeError("torch.func.{grad, ...} don't yet support saved tensor hooks."), 1.0).verdict == "refuses"
    assert judged(AttributeError("no such name"), 1.0).verdict == "lacks it"


# ---------------------------------------------------------------- the command line
def test_the_scoreboard_ends_with_its_summary(board):
    text = report.as_text(board)
    assert text.splitlines()[-1] == (f"minigrad: {len(ALL)} of {len(ALL)} programs right, 150 of 150 nestings.   "
                                     "torch 2.13: 7 programs right (5 silently wrong), 35 nestings; ported 39 and 150.")


def test_the_scoreboard_is_plain_text_of_one_width(board):
    lines = report.as_text(board).splitlines()
    assert report.as_text(board).isascii()
    assert max(map(len, lines)) <= 146
    assert not any(line.endswith(" ") for line in lines)


def test_the_json_says_the_same(board):
    found = json.loads(report.as_json(board))
    assert [p["program"] for p in found["programs"]] == list(ALL)
    assert len(found["nestings"]) == 150
    assert found["failures"] == []
    assert found["summary"] == report.as_text(board).splitlines()[-1]


@pytest.fixture
def small(monkeypatch):
    """A scoreboard of one program and one nesting."""
    def give(right):
        monkeypatch.setattr(report, "PROGRAMS", {"group": [Program("p", nested(1, plain), right, "right")]})
        monkeypatch.setattr(nestings, "NESTINGS", {"grad W": "rrrrrr"})
    return give


def test_the_exit_status_is_0_where_all_is_right(small, capsys):
    small(derivative(1, 5.0))
    assert report.main([]) == 0
    assert "NOT RIGHT" not in capsys.readouterr().out


def test_the_exit_status_is_1_where_something_is_not(small, capsys):
    small(0.0)
    assert report.main([]) == 1
    out = capsys.readouterr().out
    assert "NOT RIGHT\n  p: 0.16293" in out
    assert "WRONG: 0.16294" in out


def test_show_lists_the_programs(capsys):
    assert report.main(["show"]) == 0
    out = capsys.readouterr().out
    assert all(name in out for name in ALL)


def test_show_explains_a_program(capsys):
    assert report.main(["show", "sandwich"]) == 0
    out = capsys.readouterr().out
    assert "def sandwich(torch: Any, device: str) -> Any:" in out
    assert "recompute checkpoint 1 for grad@1\n| sin grad@2" in out
    assert "in torch 2.13                 refuses  pytorch#89166" in out


def test_grad_grad_is_the_checkpointed_second_derivative(capsys):
    assert report.show("grad.grad") == report.show("grad^2/checkpoint")
    assert report.show("grad.grad/plain") == report.show("grad^2/plain")


def test_show_traces_a_program(capsys):
    assert report.main(["show", "grad.grad", "--graph"]) == 0
    text = capsys.readouterr().out
    assert "grad@2, recomputation, checkpoint 1" in text
    assert "kept for grad@1" in text


def test_show_explains_a_program_that_is_named_as_what_it_calls(capsys):
    assert report.main(["show", "hessian"]) == 0
    assert capsys.readouterr().out.count("def hessian(") == 1


def test_show_says_why_a_program_has_no_graph(tmp_path, capsys):
    path = tmp_path / "looks.py"
    path.write_text("import minigrad as mg\ndef f(): return mg.tensor(mg.rand(1).item())\n")
    assert report.main(["show", f"{path}:f", "--graph"]) == 0
    assert "it cannot be traced: It appears that you're trying to get value out of a tracing tensor" in capsys.readouterr().out


def test_show_explains_a_function_of_a_file(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("import minigrad\n\n\ndef f():\n    return minigrad.tensor(0.0).cos()\n")
    assert report.main(["show", f"{path}:f"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("def f():\n    return minigrad.tensor(0.0).cos()\n")
    assert "\ncos base\n" in out
    assert "value                         1.00000000\n" in out


def test_a_function_that_fails_is_shown_up_to_there(tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text("import minigrad\n\n\ndef f():\n    return minigrad.ones(2).cos() + 1 / 0\n")
    assert report.main(["show", f"{path}:f"]) == 1
    out = capsys.readouterr().out
    assert "\ncos base\n" in out
    assert "ZeroDivisionError: division by zero" in out


@pytest.mark.parametrize("name", ["no-such-program", "no-such-file.py:f", f"{__file__}:no_such_function"])
def test_an_unknown_name_is_said_so(name, capsys):
    assert report.main(["show", name]) == 2
    assert capsys.readouterr().out.startswith("there is no ")


def test_minigrad_itself_imports_nothing_of_this():
    code = "import minigrad, sys; print([m for m in sys.modules if 'scoreboard' in m or 'tracing' in m or m in ('argparse', 'json')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("name", ["autograd.graph", "utils.checkpoint", "nn.functional", "func", "cuda", "sim", "memory", "tracing"])
def test_a_module_is_reached_from_minigrad_without_importing_it(name):
    code = f"import minigrad; print(minigrad.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == f"minigrad.{name}\n"


def test_the_module_runs():
    done = subprocess.run([sys.executable, "-m", "minigrad", "show", "vjp-later"], capture_output=True, text=True, check=True)
    assert "backward grad@1" in done.stdout
