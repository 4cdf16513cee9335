"""Results of the demo: the collector's estimates and the true shares."""

from __future__ import annotations

import collections
import dataclasses
import datetime
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from uldp_transforms.jobs.check import latest_rows
from uldp_transforms.jobs.records.run_records import read_lines
from uldp_transforms.ldp import Collection

Departures = dict[str, collections.Counter[Any]]
"""Start of a window -> departures by airport."""


def read_estimates(output: Path, collection_id: str) -> list[Mapping[str, Any]]:
    """The valid row of each window, in order of time, chosen by the rule for all consumers."""
    rows = (row for row in read_lines([str(output / "estimates.jsonl")]) if row["collection_id"] == collection_id)
    return sorted(latest_rows(rows), key=lambda row: row["window_start"])


def read_ledger(output: Path, sent: dict[str, int]) -> dict[str, collections.Counter[Any]]:
    """Numbers of sent, received, accepted and rejected reports of each collection, over all windows."""
    ledger = {collection_id: collections.Counter(sent=number) for collection_id, number in sent.items()}
    for row in read_lines([str(output / "ledger.jsonl")]):
        account = ledger.setdefault(row["collection_id"] or "unknown", collections.Counter())
        rejected = row["duplicates"] + sum(row["rejected"].values())
        account.update(received=row["received"], accepted=row["accepted"], rejected=rejected)
    return ledger


@dataclasses.dataclass(frozen=True, kw_only=True)
class Outcome:
    """Estimates and true shares of one collection; D days, S values, 1 means everybody.

    Attributes:
        collection: the collection.
        days: dates of the windows.
        values: the estimated values.
        sensitive: (S,) bool.
        num_reports: (D,) number of reports per day.
        estimate, low, high: (D, S) unbiased estimate and its interval, clipped to [0, 1].
        distribution: (D, S) the estimator's result, which is a distribution.
        smoothed, smoothed_low, smoothed_high: (D, S) smoothed estimate and its interval.
        changes: days on which shares changed -> description of the change.
        unexplained: (D,) the estimated share of people with an unlisted value.
        truth: (D, S) true shares.
    """

    collection: Collection
    days: list[datetime.date]
    values: list[str]
    sensitive: np.ndarray
    num_reports: np.ndarray
    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    distribution: np.ndarray
    smoothed: np.ndarray
    smoothed_low: np.ndarray
    smoothed_high: np.ndarray
    changes: dict[datetime.date, str]
    unexplained: np.ndarray
    truth: np.ndarray

    @property
    def epsilon(self) -> float:
        return self.collection.mechanism.epsilon

    @property
    def unlisted(self) -> np.ndarray:
        """(D,) the true share of people with an unlisted value."""
        return 1 - self.truth.sum(axis=1)

    @property
    def covered(self) -> np.ndarray:
        """(D, S) bool: whether the interval contains the truth."""
        return (self.low <= self.truth) & (self.truth <= self.high)

    @property
    def covered_smoothed(self) -> np.ndarray:
        """(D, S) bool: whether the smoothed interval contains the truth."""
        return (self.smoothed_low <= self.truth) & (self.truth <= self.smoothed_high)

    @property
    def gain(self) -> float:
        """Factor by which smoothing reduces the squared l2 distance, over all days."""
        alone, smoothed = (((shares - self.truth) ** 2).sum() for shares in (self.distribution, self.smoothed))
        return float(alone / smoothed)

    @property
    def total_variation(self) -> np.ndarray:
        """(D,) total variation distance between the estimated and the true distribution."""
        return (np.abs(self.distribution - self.truth).sum(axis=1) + np.abs(self.unexplained - self.unlisted)) / 2

    @property
    def groups(self) -> dict[str, np.ndarray]:
        """Groups of values that are evaluated separately: name -> (S,) bool."""
        if self.sensitive.all():
            return {"all values": self.sensitive}
        return {"clear values": ~self.sensitive, "sensitive values": self.sensitive}


def read_changes(output: Path, collection_id: str) -> dict[datetime.date, str]:
    """Detected changes in the health rows, by day."""
    rows = [row for row in read_lines([str(output / "health.jsonl")]) if row["collection_id"] == collection_id]
    found = {row["window_start"]: entry for row in rows for entry in row["findings"] if entry["name"] == "change"}
    return {_day_of(start): entry["sentence"] for start, entry in sorted(found.items()) if entry["fired"]}


def _day_of(window_start: str) -> datetime.date:
    return datetime.date.fromisoformat(window_start[:10])


def compare(
    collection: Collection, rows: list[Mapping[str, Any]], truth: Departures, changes: dict[datetime.date, str]
) -> Outcome:
    """Join the estimates of all windows with the truth."""

    def column(name: str) -> np.ndarray:
        return np.array([[entry[name] for entry in row["estimates"]] for row in rows])

    values = [entry["value"] for entry in rows[0]["estimates"]]
    windows = [truth[row["window_start"]] for row in rows]
    return Outcome(
        collection=collection,
        days=[_day_of(row["window_start"]) for row in rows],
        values=values,
        sensitive=np.isin(values, collection.alphabet.to_json().get("sensitive") or values),
        num_reports=np.array([row["num_reports"] for row in rows]),
        estimate=column("raw_frequency").clip(0, 1),
        low=column("ci_low"),
        high=column("ci_high"),
        distribution=column("frequency"),
        smoothed=column("smoothed_frequency"),
        smoothed_low=column("smoothed_low"),
        smoothed_high=column("smoothed_high"),
        changes=changes,
        unexplained=np.array([row["unexplained_mass"] for row in rows], dtype=float),  # nan: too uncertain
        truth=np.array([[window[value] / window.total() for value in values] for window in windows]),
    )
