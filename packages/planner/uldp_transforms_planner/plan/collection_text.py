"""The text of a recommended collection."""

from __future__ import annotations

import json
from typing import Any


def spec_text(spec: dict[str, Any]) -> str:
    """JSON with one line per key."""
    return "{\n" + ",\n".join(f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in spec.items()) + "\n}\n"
