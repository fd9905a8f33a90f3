"""The table of samples is the table of rows."""

import subprocess
import sys

from minigrad.ops.batching import elementwise
from tests.laws.rows import TABLE
from tests.laws.samples import NO_INPUTS, SAMPLES

COUNT = """
import gc
from minigrad.op import Op
from tests.laws.rows import TABLE
made, found = {o for o in gc.get_objects() if isinstance(o, Op)}, {f.op for f in TABLE.values()}
print(*sorted(o.name for o in made - found))
"""


def test_every_row_has_samples():
    without = sorted(set(TABLE) - set(SAMPLES) - NO_INPUTS)
    assert not without, "write sample inputs for these rows in tests/laws/samples.py"


def test_every_sample_has_a_row():
    gone = sorted((set(SAMPLES) | NO_INPUTS) - set(TABLE))
    assert not gone
    assert all(SAMPLES.values())


def test_what_is_elementwise_is_batched_so():
    """vmap passes such a row straight on, without asking its batching rule.  [NOTE fast-path]"""
    assert not [name for name, f in TABLE.items() if f.op.elementwise and f.op.batch is not elementwise]


def test_no_row_hides_from_the_table():
    found = subprocess.run([sys.executable, "-c", COUNT], capture_output=True, text=True, check=True)
    assert not found.stdout.strip(), "rows that no module variable holds"
