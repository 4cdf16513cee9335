"""What tests of the repository's own files share."""

from __future__ import annotations

import runpy
from typing import Any

import pytest
import setuptools

from tests.project.documents import ROOT


@pytest.fixture(scope="module")
def package() -> dict[str, Any]:
    """What setup.py tells setuptools."""
    said: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setuptools, "setup", lambda **fields: said.update(fields))
        runpy.run_path(str(ROOT / "setup.py"))
    return said
