"""Files are short enough to be read: the long ones are listed, with the reason why nobody should split them by counting."""

import ast
import io
import tokenize

from tests.house.sources import MODULES

LIMIT = 400
CORE = ("state", "storage", "tensor", "op", "graph.node", "graph.plan", "graph.record", "graph.saved",
        "interpreters.base", "interpreters.grad", "interpreters.jvp", "interpreters.vmap", "autograd", "autograd.engine",
        "autograd.grad_mode", "autograd.graph", "func", "utils.checkpoint", "regions.region", "regions.recompute", "offload")
CORE_LIMIT = 2800

LONG = {
    "ops.linalg": "a row for each rank, then what is composed of them",
    "nn.functional": "torch.nn.functional is one module",
}
"""Files over the limit."""


def lines(module):
    return len(MODULES[module].read_text().splitlines())


def test_files_over_the_limit_are_listed_with_a_reason():
    found = {m: lines(m) for m in MODULES if lines(m) > LIMIT}
    assert not {m: n for m, n in found.items() if m not in LONG}, "split by idea, or write a reason into LONG"


def test_the_list_of_long_files_is_needed():
    assert [m for m in LONG if lines(m) <= LIMIT] == []


def code_lines(module):
    """Lines that hold code: not blank, no comment, no docstring."""
    text = MODULES[module].read_text()
    docs = {line for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
            for line in range(node.lineno, node.end_lineno + 1)}
    empty = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER)
    found = {line for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in empty
             for line in range(token.start[0], token.end[0] + 1)}
    return len(found - docs)


def test_the_readers_core_stays_small():
    """What one must read to know how everything composes."""
    assert sum(code_lines(m) for m in CORE) < CORE_LIMIT
