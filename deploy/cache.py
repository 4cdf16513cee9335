"""Where engines are kept that are not part of Beam's Python package."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).parent.parent
"""Of the repository; jobs and workers run there."""

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "uldp_transforms"
