"""The contract with other systems: Avro schemas of messages and rows, JSON Schema of a collection."""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any


@functools.cache
def load(name: str) -> Any:
    """The schema in ``schemas/<name>``, for instance ``report.avsc``. Treat it as read-only."""
    return json.loads(resources.files(__name__).joinpath(name).read_text(encoding="utf-8"))
