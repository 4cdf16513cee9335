"""Pages and pictures of results, which a companion draws: its functions are found by entry points."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Any

from uldp_transforms.jobs.uldp import COMPANIONS, companion_of, folders_of
from uldp_transforms.ldp.errors import SpecError

ENTRY_POINTS = "uldp_transforms.pictures"
"""The group of entry points in which the companion registers functions that draw: ``name = module:function``."""


def drawing(name: str) -> Callable[..., Any]:
    """The function that draws ``report`` (a page and a picture in a directory), ``plan`` or ``trials`` (PNG).

    Raises:
        SpecError: if the companion is not installed, or a package that it needs.
    """
    try:
        for entry in entry_points(group=ENTRY_POINTS, name=name):
            found: Callable[..., Any] = entry.load()
            return found
        missing: str | None = f"the package {companion_of('report')}"
    except ImportError as error:
        missing = error.name
    where = f"in a checkout: pip install . {folders_of(COMPANIONS['report'])}"
    raise SpecError(f"a report needs {missing}; {where}")
