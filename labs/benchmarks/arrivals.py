"""When the rows of a stream's windows came."""

from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import NamedTuple

_BEFORE_ENTRIES, _OF_EVERYBODY = b', "estimates": ', b'"dimensions": []'


class Arrived(NamedTuple):
    """The last row of a window of everybody.

    Attributes:
        pane: its index.
        reports: that it counts.
        lag: seconds from the end of the window to the file with the row.
    """

    pane: int
    reports: int
    lag: float


class Arrivals:
    """Rows in the directory of a job, which writes each file once; entries of rows are not parsed.

    Attributes:
        windows: the last row of each window, by its start.
    """

    def __init__(self, output: Path):
        self._output, self._seen = output, set[Path]()
        self.windows: dict[str, Arrived] = {}

    @property
    def reports(self) -> int:
        """Reports in the last rows of all windows."""
        return sum(window.reports for window in self.windows.values())

    def look(self) -> None:
        """Read the files that are new."""
        for path in sorted({*self._output.glob("estimates*.jsonl")} - self._seen):
            self._seen.add(path)
            written = path.stat().st_mtime
            with path.open("rb") as lines:
                for line in lines:
                    if line.rfind(_OF_EVERYBODY) >= 0:
                        self._enter(json.loads(line[: line.index(_BEFORE_ENTRIES)] + b"}"), written)

    def _enter(self, row: dict[str, str | int], written: float) -> None:
        end = datetime.datetime.fromisoformat(str(row["window_end"]).replace("Z", "+00:00")).timestamp()
        arrived = Arrived(int(row["pane_index"]), int(row["num_reports"]), written - end)
        start = str(row["window_start"])
        self.windows[start] = max(self.windows.get(start, arrived), arrived)

    def lags(self) -> list[float]:
        """Of the windows in the order of time."""
        return [window.lag for _, window in sorted(self.windows.items())]
