"""What spec tests share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture
def no_gc():
    """Without the cyclic collector; nothing is collected first, which would cost more than the tests."""
    gc.disable()
    yield
    gc.enable()
