"""Python loads this module at its start if its folder is on the path: ``time.time`` is off by the seconds in a file.

It stands for a clock that is set, by NTP or in a restored virtual machine; ``time.monotonic`` goes on as it does then.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

_SHIFT, _time = Path(os.environ["ULDP_TEST_CLOCK"]), time.time


def _shifted() -> float:
    return _time() + float(_SHIFT.read_text(encoding="ascii") or 0)


time.time = _shifted
time.time_ns = lambda: int(_shifted() * 1e9)
