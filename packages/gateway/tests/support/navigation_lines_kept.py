"""A line of navigations, and the lines that a gateway has stored."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

LINE = b'{"confidence": "high", "rate": 0.5, "duration": 12.5}'


def kept(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_bytes().splitlines()]
