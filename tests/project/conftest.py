"""What tests of the repository's own files share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from requirements.companions import companions
from tests.project.documents import ROOT
from tests.support.project.quickstart_folder import write_quickstart
from tests.support.setups import said_by


@pytest.fixture(scope="module")
def package() -> dict[str, Any]:
    """What setup.py tells setuptools."""
    return said_by(ROOT / "setup.py")


@pytest.fixture(scope="module")
def needs_of_companions() -> dict[str, list[str]]:
    """What each companion requires, by its folder."""
    return {each.folder.name: said_by(each.folder / "setup.py")["install_requires"] for each in companions()}


@pytest.fixture
def quickstart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with C.json and reports.avro, in which the examples run."""
    monkeypatch.chdir(tmp_path)
    return write_quickstart(tmp_path)
