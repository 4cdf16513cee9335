"""The results beside the question on the survey page: the last windows, all windows together, and the ledger."""

from __future__ import annotations

import contextlib
import datetime
import math
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labs.live.crowd import Crowd
from labs.live.sleep_question import SHOWN
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.jobs.records.row_reading import Row
from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.binomial_law import normal_quantile
from uldp_transforms.ldp.solvers.intervals import cut

WINDOWS = 12
"""Number of windows in the chart."""

AGE = 1.0
"""Seconds after which the directory is read again, at least; more if reading takes long."""

PART = 0.1
"""Share of the time that may be spent with reading."""

Z = float(normal_quantile(CONFIDENCE))


class Known:
    """The rows of a running stream, together with the truth of its crowd.

    Args:
        directory: output directory of the stream.
        crowd: the simulated people.
    """

    def __init__(self, directory: str, crowd: Crowd):
        self._directory, self._crowd = Path(directory), crowd
        self._lock = threading.Lock()
        self._next = -math.inf
        self._windows: list[dict[str, Any]] = []
        self._books: dict[str, Any] = {}

    def now(self) -> dict[str, Any]:
        """The content of ``/now.json``; shares are fractions.

        Returns:
            ``value``, the answer that is shown; ``share``, that of the people of the crowd who give it now (None: there
            is no crowd); ``windows``, the last ones; ``total``, all windows together; ``books``.
        """
        with self._lock:
            begin = time.monotonic()
            if begin >= self._next:
                with contextlib.suppress(OSError, SpecError):  # a file that the stream is just replacing
                    self._look()
                end = time.monotonic()
                self._next = end + max(AGE, (end - begin) / PART)
            share = self._crowd.shares()[SHOWN] if self._crowd.rate else None
            books = {**self._books, "acknowledged": self._crowd.acknowledged}
            return {
                "value": SHOWN,
                "share": share,
                "windows": self._windows[-WINDOWS:],
                "total": total(self._windows),
                "books": books,
            }

    def _look(self) -> None:
        if not self._directory.is_dir():
            return
        rows = RowDirectory(str(self._directory))  # which reads once
        windows = [row for row in rows.windows() if row["num_shown"]]
        self._windows = [self._window(row, entries) for row, entries in rows.entries(windows)]
        self._windows.sort(key=lambda window: window["start"])
        ledger = rows.ledger(record.run for record in rows.records())
        written = [path.stat().st_mtime for path in self._directory.glob("ledger-*.jsonl")]
        self._books = {
            "received": sum(row["received"] for row in ledger),
            "accepted": sum(row["accepted"] for row in ledger),
            "duplicates": sum(row["duplicates"] for row in ledger),
            "rejected": sum(sum(row["rejected"].values()) for row in ledger),
            "age": round(time.time() - max(written), 1) if written else None,
        }

    def _window(self, row: Row, entries: Sequence[Row]) -> dict[str, Any]:
        (entry,) = (entry for entry in entries if entry["value"] == SHOWN)
        start, end = _seconds(row["window_start"]), _seconds(row["window_end"])
        people, truth = self._crowd.truth(start, end)
        return {
            "start": start,
            "end": end,
            "early": row["pane_timing"] == "EARLY",
            "reports": row["num_reports"],
            "frequency": entry["frequency"],
            "low": entry["ci_low"],
            "high": entry["ci_high"],
            "raw": entry["raw_frequency"],
            "error": entry["standard_error"],
            "truth": truth[SHOWN] if people else None,
        }


def total(windows: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """All windows together: unbiased frequencies weighted by reports, with a normal interval.

    Windows have different people, so variances add up. The interval is that of one look. It and the mean are cut to
    [0, 1], because nobody reads a negative share.
    """
    numbers = np.array([window["reports"] for window in windows], dtype=float)
    if not numbers.sum():
        return None
    weights = numbers / numbers.sum()
    mean = float(weights @ [window["raw"] for window in windows])
    reach = Z * float(np.sqrt(weights**2 @ np.square([window["error"] for window in windows])))
    known = [window["truth"] is not None for window in windows]
    truth = float(weights @ [window["truth"] or 0.0 for window in windows]) if all(known) else None
    low, high = (float(end) for end in cut(mean - reach, mean + reach, mean))
    shown = min(max(mean, 0.0), 1.0)
    return {
        "reports": int(numbers.sum()),
        "mean": shown,
        "low": low,
        "high": high,
        "truth": truth,
        "confidence": CONFIDENCE,
    }


def _seconds(moment: str) -> int:
    return int(datetime.datetime.fromisoformat(moment.removesuffix("Z") + "+00:00").timestamp())
