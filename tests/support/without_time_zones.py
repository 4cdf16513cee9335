"""A machine without a database of time zones."""

from __future__ import annotations

import sys
import zoneinfo
from collections.abc import Callable
from typing import Any


def without_time_zones(call: Callable[[], Any]) -> Any:
    """What happens on a machine that has no database of time zones, nor the package tzdata."""
    known = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == "tzdata"}
    sys.modules["tzdata"] = None  # type: ignore[assignment]  # so that it cannot be imported
    zoneinfo.reset_tzpath(to=())
    zoneinfo.ZoneInfo.clear_cache()
    try:
        return call()
    finally:
        zoneinfo.reset_tzpath()
        del sys.modules["tzdata"]
        sys.modules.update(known)
