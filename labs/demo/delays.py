"""The delays of the demo: arrival delays of its flights, estimated as numbers and compared with the truth."""

from __future__ import annotations

import bz2
import csv
import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

from uldp_transforms.rows.figures.figure import name_of_quantile, name_of_share
from uldp_transforms.windows import rfc3339

LIMITS = (15, 60)
"""Delays in minutes, as ``--limits``."""

STEP = 5
"""Width of the bins of the data, in minutes; those of the collection are the same."""

GUARANTEED, SMOOTH = ("low", "high"), ("display_low", "display_high")


@dataclasses.dataclass(frozen=True, eq=False)
class Delays:
    """Numbers of flights by delay and day.

    Attributes:
        minutes: (B,) int64, lower edges of the bins; the first and the last bin contain all beyond them.
        days: (D,) int64, starts in milliseconds.
        counts: (D, B) int64.
    """

    minutes: np.ndarray
    days: np.ndarray
    counts: np.ndarray

    @classmethod
    def read(cls, path: Path, days: int | None) -> Delays:
        """From a compressed CSV table with a row per bin and a column per day; the first ``days`` of them."""
        with bz2.open(path, "rt", encoding="ascii", newline="") as file:
            (_, *dates), *rows = csv.reader(file)
        table = np.array(rows).astype(np.int64)
        starts = np.array(dates, dtype="datetime64[ms]").astype(np.int64)
        return cls(table[:, 0], starts[:days], table[:, 1:].T[:days])

    def write(self, path: Path) -> None:
        """Write one row per flight, as a file of values for ``uldp simulate``."""
        flights = self.counts.ravel()
        values = np.repeat(np.tile(self.minutes, len(self.days)), flights)
        times = np.repeat(np.repeat(self.days, len(self.minutes)), flights)
        moments = pa.array(times, pa.int64()).cast(pa.timestamp("ms", "UTC"))
        pyarrow.parquet.write_table(pa.table({"value": pa.array(values), "event_time": moments}), path)

    def truth(self, quantiles: Sequence[float]) -> dict[str, dict[str, float]]:
        """Start of a day -> name of a figure -> its true value, spread evenly within bins."""
        edges = np.append(self.minutes, self.minutes[-1] + STEP)
        found = {}
        for start, counts in zip(self.days.tolist(), self.counts):
            shares = counts / counts.sum()
            below = np.append(0.0, np.cumsum(shares))
            figures = {"mean": float(shares @ (self.minutes + STEP / 2))}
            figures |= {name_of_quantile(q): float(np.interp(q, below, edges)) for q in quantiles}
            figures |= {name_of_share(one, "min"): float(shares[self.minutes >= one].sum()) for one in LIMITS}
            found[rfc3339(start)] = figures
        return found


def delay_lines(collection_id: str, rows: Sequence[Mapping[str, Any]], delays: Delays) -> Iterator[str]:
    """How many intervals of each figure contain the truth, over all days."""
    first = rows[0]["numbers"]
    truth = delays.truth([one["q"] for one in first["quantiles"]])
    days = [(truth[row["window_start"]], dict(_figures(row["numbers"]))) for row in rows]
    for name in days[0][0]:
        held = [sum(_holds(told[name], ends, true[name]) for true, told in days) for ends in (GUARANTEED, SMOOTH)]
        yield f"{collection_id}, {name}: {held[0]} of {len(days)} intervals contain the truth, {held[1]} smooth ones"


def _figures(numbers: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, float | None]]]:
    yield "mean", numbers["mean"]
    yield from ((name_of_quantile(one["q"]), one) for one in numbers["quantiles"])
    yield from ((name_of_share(one["limit"], "min"), one) for one in numbers["shares_above"])


def _holds(told: Mapping[str, float | None], ends: tuple[str, str], truth: float) -> bool:
    """Whether an interval contains the truth; an open end is everything beyond."""
    low, high = (told[end] for end in ends)
    return (low is None or low <= truth) and (high is None or truth <= high)
