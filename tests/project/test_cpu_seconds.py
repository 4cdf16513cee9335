"""The table of what tests cost adds up cases of a function and functions of a file."""

from __future__ import annotations

import pytest

from tests.campaigns.cpu_seconds import PROPERTY, Plugin, Tables


def test_cases_are_added_up() -> None:
    tables = Tables()
    for case, seconds in (("a.py::one[1]", 1.0), ("a.py::one[2::3]", 0.25), ("a.py::two", 0.5), ("b.py::one", 1.5)):
        tables.add(case, seconds)
    assert tables.files == {"a.py": 1.75, "b.py": 1.5}
    assert tables.functions == {"a.py::one": 1.25, "a.py::two": 0.5, "b.py::one": 1.5}
    assert list(tables.lines())[:3] == ["CPU s  file", "  1.8  a.py", "  1.5  b.py"]


def test_reports_of_all_phases_count() -> None:
    """Of a case that another process ran: its set-up, itself, its end."""
    plugin = Plugin()
    for seconds, when in ((0.5, "setup"), (1.0, "call"), (0.25, "teardown")):
        known = [("else", "1"), (PROPERTY, seconds)]
        plugin.pytest_runtest_logreport(
            pytest.TestReport("a.py::one[1]", ("a.py", 1, "one"), {}, "passed", None, when, user_properties=known)  # type: ignore[arg-type]
        )
    assert plugin.tables.functions == {"a.py::one": 1.75}
