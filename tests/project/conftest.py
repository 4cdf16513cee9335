"""What tests of the repository's own files share."""

from __future__ import annotations

from typing import Any

import pytest

from requirements.companions import companions
from tests.project.documents import ROOT
from tests.support.setups import said_by


@pytest.fixture(scope="module")
def package() -> dict[str, Any]:
    """What setup.py tells setuptools."""
    return said_by(ROOT / "setup.py")


@pytest.fixture(scope="module")
def needs_of_companions() -> list[str]:
    """What all companions require."""
    return [need for each in companions() for need in said_by(each.folder / "setup.py")["install_requires"]]
