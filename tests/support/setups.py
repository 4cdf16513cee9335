"""What a setup.py says, without building anything."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import setuptools


def said_by(setup: Path) -> dict[str, Any]:
    """What a setup.py tells setuptools, in its folder."""
    said: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(setup.parent)
        patch.setattr(setuptools, "setup", lambda **fields: said.update(fields))
        runpy.run_path(str(setup))
    return said
