"""docs/upstream.md: each program prints on stock torch and with the port what the document says."""

import contextlib
import io
import re
import warnings
from pathlib import Path

import pytest
import torch

from minigrad import upstream

TEXT = (Path(__file__).parents[2] / "docs" / "upstream.md").read_text()
SECTION = re.compile(r"^## (.*?)\n.*?```python\n(.*?)```.*?```text\n(.*?)```.*?```text\n(.*?)```", re.MULTILINE | re.DOTALL)
SECTIONS = SECTION.findall(TEXT)
STOCK = {"checkpoint": torch.utils.checkpoint.checkpoint, "save_on_cpu": torch.autograd.graph.save_on_cpu}
PORTED = {"checkpoint": upstream.checkpoint, "save_on_cpu": upstream.save_on_cpu}
CLOSED = ["#993", "#1027", "#146036", "#141845", "#122729", "#165880", "#129293"]


def printed(code, names):
    """What a program prints, and the first sentence of the error that ends it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(code, {"__name__": "program", "torch": torch, **names})
        except RuntimeError as error:
            text = str(error).partition("\n")[0].partition(". ")[0]
            print(f"{type(error).__name__}: {text[:110]}")
    return out.getvalue()


@pytest.mark.parametrize(("code", "stock", "ported"), [s[1:] for s in SECTIONS], ids=[s[0] for s in SECTIONS])
def test_a_program_prints_what_the_document_says(code, stock, ported):
    assert printed(code, STOCK) == stock
    assert printed(code, PORTED) == ported
    assert stock != ported


def test_every_section_is_run():
    assert len(SECTIONS) == TEXT.count("\n## ")
    assert [nr for nr in CLOSED if any(nr in title for title, *_ in SECTIONS)] == CLOSED
