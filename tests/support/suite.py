"""What all tests share: a plugin of pytest, of tests/ and of the companions' tests."""

from __future__ import annotations

import gc
import importlib
import sys
from typing import Any

import pytest
from hypothesis import settings

from tests.plan import Divider, turn
from tests.support.golden_records import Records, advice, text_of

settings.register_profile("suite", deadline=None, max_examples=50)  # no deadline: machines are busy at times
settings.load_profile("suite")

gc.set_threshold(50_000, 20, 20)  # modules and thousands of tests stay: looking through them for garbage takes long


@pytest.hookimpl(tryfirst=True)  # before pytest selects by marks
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the tests that wait for ``make slow`` and sorts them; Beam, if it is there, is made quicker."""
    if "apache_beam" in sys.modules:
        importlib.import_module("tests.support.quick_beam").remember()
    divider = Divider()
    for item in items:
        if divider.waits(item.nodeid):
            item.add_marker("slow")
    items.sort(key=lambda item: turn(item.nodeid))  # the longest files do not come last
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    """Ends what tests left running to be shared."""
    if "tests.support.forked" in sys.modules:
        importlib.import_module("tests.support.forked").stop()


def pytest_assertrepr_compare(op: str, left: Any, right: Any) -> list[str] | None:
    """Golden records that differ are shown line by line."""
    old, new = (left, right) if isinstance(left, Records) else (right, left)
    if op != "==" or not isinstance(old, Records) or not isinstance(new, list):
        return None
    return advice(f"tests/golden/{old.name}", text_of(old), text_of(new))
