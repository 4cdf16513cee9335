"""Access to the shipped schemas: Avro schemas of messages and rows, JSON Schema of a collection.

A checkout has these files in separate folders beside this package; the wheel contains copies inside it. This module
finds both.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parent


def shipped(folder: str) -> Path:
    """Folder of the repository that is shipped with the package.

    Args:
        folder: ``schemas``.
    """
    inside = _PACKAGE / "_shipped" / folder
    return inside if inside.is_dir() else _PACKAGE.parent / folder


@functools.cache
def load(name: str) -> Any:
    """The schema in ``schemas/<name>``, for instance ``report.avsc``. Treat it as read-only."""
    return json.loads((shipped("schemas") / name).read_text(encoding="utf-8"))
