"""Each job starts as a module of its own, from any folder, and says how it is used."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("job", "options"),
    [
        ("simulate", "[options] --values VALUES C.json\n"),
        ("estimate", "[options] --collection COLLECTION --output OUTPUT\n"),
    ],
)
def test_help(job: str, options: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"pipelines.{job}", "--help"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(f"usage: python -m pipelines.{job} {options}")
    assert ended.stderr == ""
