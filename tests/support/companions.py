"""A package that adds programs to ``uldp``, installed for one test."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from uldp_transforms.jobs.uldp import ENTRY_POINTS

PROGRAMS = "def main(words):\n    print(words)\n    return 7\n"


def companion(folder: Path, monkeypatch: pytest.MonkeyPatch, entry_points: str, module: str = PROGRAMS) -> None:
    """Install a package that registers programs, as an installer writes it.

    Args:
        folder: where it is installed.
        monkeypatch: of the test.
        entry_points: lines of the group.
        module: text of the module ``more_programs``.
    """
    info = folder / "uldp_more-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: uldp-more\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{entry_points}\n", encoding="utf-8")
    (folder / "more_programs.py").write_text(module, encoding="utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "more_programs", raising=False)
