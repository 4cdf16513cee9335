"""A test that hangs ends as a red one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HANGING = "import time\n\n\ndef test_that_hangs():\n    time.sleep(3600)\n"


def test_the_limit_is_set(pytestconfig: pytest.Config) -> None:
    assert float(pytestconfig.getini("faulthandler_timeout")) <= 1800
    assert pytestconfig.getini("faulthandler_exit_on_timeout") is True


def test_a_test_that_hangs_fails(tmp_path: Path) -> None:
    """With this project's settings, but a shorter limit."""
    (tmp_path / "test_hang.py").write_text(HANGING, encoding="utf-8")
    options = ["-c", str(ROOT / "pyproject.toml"), "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *options, "-n", "1", "-o", "faulthandler_timeout=2", "test_hang.py"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert ended.returncode == 1, ended.stdout
    assert "test_that_hangs" in ended.stdout and "1 failed" in ended.stdout
