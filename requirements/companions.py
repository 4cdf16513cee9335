"""The companions: packages of their own in packages/, which are installed beside the core.

Each folder has ``setup.py``, ``pyproject.toml``, ``README.md``, ``LICENSE``, ``tests/`` and one import package. A new
companion needs no line here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]


class Companion(NamedTuple):
    """A package beside the core.

    Attributes:
        folder: of its setup.py.
        package: what is imported, such as ``uldp_transforms_gateway``.
    """

    folder: Path
    package: str

    @property
    def distribution(self) -> str:
        """The name under which it is installed."""
        return self.package.replace("_", "-")

    @property
    def sources(self) -> Path:
        """The folder of the import package."""
        return self.folder / self.package

    @property
    def tests(self) -> Path:
        return self.folder / "tests"


def companions(root: Path = ROOT) -> tuple[Companion, ...]:
    """The companions of a checkout, in the order of their folders."""
    return tuple(
        Companion(setup.parent, package.parent.name)
        for setup in sorted(root.glob("packages/*/setup.py"))
        for package in setup.parent.glob("*/__init__.py")
    )


def search_path(root: Path = ROOT) -> str:
    """``PYTHONPATH`` of a checkout: the core and its companions."""
    return os.pathsep.join(map(str, (root, *(each.folder for each in companions(root)))))
