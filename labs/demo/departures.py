"""The departures of the demo: a table of counts by airport and hour, read as one row per person."""

from __future__ import annotations

import bz2
import csv
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet


def read_departures(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Airports and event times (milliseconds, int64) of all departures, sorted by time, then by airport.

    Args:
        path: a compressed CSV table with a row per airport and a column per hour, named by its start in UTC.
    """
    with bz2.open(path, "rt", encoding="ascii", newline="") as file:
        (_, *hours), *rows = csv.reader(file)
    times = np.array(hours, dtype="datetime64[ms]").astype(np.int64)
    airports, counts = np.array([row[0] for row in rows]), np.array([row[1:] for row in rows]).astype(np.int64)
    order = np.argsort(times)
    departures = counts[:, order].T.ravel()
    return np.repeat(np.tile(airports, len(times)), departures), np.repeat(
        np.repeat(times[order], len(airports)), departures
    )


def write_departures(path: Path, airports: np.ndarray, times: np.ndarray) -> None:
    """Write departures as a file of values for ``uldp simulate``."""
    moments = pa.array(times, pa.int64()).cast(pa.timestamp("ms", "UTC"))
    pyarrow.parquet.write_table(pa.table({"value": pa.array(airports), "event_time": moments}), path)
