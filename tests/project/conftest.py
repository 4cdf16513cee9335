"""What tests of the repository's own files share."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools

from tests.project.documents import ROOT
from tests.support.project.quickstart_folder import write_quickstart


@pytest.fixture(scope="module")
def package() -> dict[str, Any]:
    """What setup.py tells setuptools."""
    said: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", lambda **fields: said.update(fields))
        runpy.run_path(str(ROOT / "setup.py"))
    return said


@pytest.fixture
def quickstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with C.json and reports.avro, in which the examples run."""
    monkeypatch.chdir(tmp_path)
    return write_quickstart(tmp_path)
