"""The table of what tests cost adds up cases of a function and functions of a file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.campaigns.cpu_seconds import PROPERTY, ROOT, Plugin, Tables


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


def test_a_failure_is_printed_when_it_happens(tmp_path: Path) -> None:
    """Before the next test, which ends the process."""
    (tmp_path / "test_two.py").write_text(
        "import os\ndef test_1():\n    assert 2 < 1\ndef test_2():\n    os._exit(3)\n"
    )
    words = [sys.executable, "-m", "pytest", "-p", "tests.campaigns.cpu_seconds", "--rootdir", tmp_path, tmp_path]
    ended = subprocess.run([*words, "-n0"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 3
    assert "test_two.py::test_1\n" in ended.stdout
    assert "assert 2 < 1" in ended.stdout
