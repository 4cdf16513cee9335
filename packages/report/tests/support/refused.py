"""What the companion refuses: the kind of error, the call, and its sentence."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from uldp_transforms.ldp.errors import SpecError
from uldp_transforms_report import charts, report_command
from uldp_transforms_report.truth_file import Truth
from uldp_transforms_tables.values_file import ValuesFile


def shares_of(column: str, *values: str) -> Any:
    """The true shares of a window by a table without times."""
    Path("V.csv").write_text("\n".join([column, *values, ""]), encoding="utf-8")
    return Truth(ValuesFile("V.csv", column)).shares("2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", values)


REFUSED: list[tuple[type[Exception], Callable[[], Any], str]] = [
    (
        SpecError,
        lambda: charts.svg_of({"data": {"values": [{}]}, "mark": "point", "title": "toString"}),
        "charts must be drawn by vl-convert with all of their 1 marks, got 0",
    ),
    (
        SpecError,
        lambda: report_command.configure([".", "--output", "p.html", "--serve", "0"]),
        "--serve needs --follow, got DIR alone",
    ),
    (
        SpecError,
        lambda: report_command.configure([".", "--output", "p.html", "--style", "paper"]),
        "--style needs --charts, got none",
    ),
    (argparse.ArgumentTypeError, lambda: report_command._port("65536"), "must be a port from 0 to 65535, got '65536'"),
    (SpecError, lambda: shares_of("value"), "V.csv must have at least one value, got none"),
    (
        SpecError,
        lambda: shares_of("values", "0"),
        "V.csv must have the column event_time for rows with windows, got none",
    ),
]
