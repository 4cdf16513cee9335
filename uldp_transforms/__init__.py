"""Apache Beam transforms that turn streams of locally private reports into windowed distribution estimates.

The array layer ``uldp_transforms.ldp`` needs no Beam; the names below are imported when they are first used, so that
using it does not import Beam either.
"""

from __future__ import annotations

import importlib
from typing import Any

__version__ = "0.1.0"

__all__ = [
    "CountReports",
    "CountsRows",
    "DecodeReports",
    "EstimateDistribution",
    "ReadReportFiles",
    "ReleaseOnce",
    "SummarizeLedger",
    "TimeGate",
    "WindowedEstimate",
    "Windows",
]

_HOME = {
    "CountReports": "count",
    "CountsRows": "estimate",
    "DecodeReports": "decode",
    "EstimateDistribution": "estimate",
    "ReadReportFiles": "files",
    "ReleaseOnce": "release",
    "SummarizeLedger": "ledger",
    "TimeGate": "windows",
    "WindowedEstimate": "rows",
    "Windows": "windows",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has the names {', '.join(__all__)}, got {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
