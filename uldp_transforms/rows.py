"""The rows that other programs read, and their JSON and Avro forms."""

from __future__ import annotations

import dataclasses
import datetime
import json
from typing import Any

import schemas
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.windows import rfc3339

ESTIMATE_SCHEMA = schemas.load("windowed_estimate.avsc")
REJECTED_SCHEMA = schemas.load("rejected_report.avsc")
LEDGER_SCHEMA = schemas.load("ledger.avsc")
COUNTS_SCHEMA = schemas.load("counts.avsc")
HEALTH_SCHEMA = schemas.load("health.avsc")

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
_TIMES = ("window_start", "window_end", "received_at")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Row:
    """A record whose fields are those of an Avro schema; times are integers in milliseconds."""

    def times(self) -> dict[str, str]:
        """The times that this row has, as RFC 3339, UTC."""
        return {name: rfc3339(vars(self)[name]) for name in _TIMES if vars(self).get(name) is not None}

    def to_json(self) -> str:
        """One line of JSON; times as RFC 3339, UTC."""
        return json.dumps(self._with_times(rfc3339), ensure_ascii=False, allow_nan=False)

    def to_avro(self) -> dict[str, Any]:
        """A record for an Avro writer; times as datetime, UTC."""
        return self._with_times(lambda ms: _EPOCH + datetime.timedelta(milliseconds=ms))

    def _with_times(self, form: Any) -> dict[str, Any]:
        record = dataclasses.asdict(self)
        for name in _TIMES:
            if record.get(name) is not None:
                record[name] = form(record[name])
        return record


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowedEstimate(Row):
    """The estimated distribution of one collection in one window; the fields are those of the Avro schema."""

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: int | None
    window_end: int | None
    pane_index: int
    pane_timing: str
    num_reports: int | None
    estimator: str
    unexplained_mass: float | None
    unexplained_standard_error: float | None
    redistributed_mass: float | None
    fit_p_value: float | None
    status: str
    software: str
    estimates: list[dict[str, Any]]

    @staticmethod
    def values_of(estimate: Estimate) -> list[dict[str, Any]]:
        """One entry per value, in the estimate's order."""
        columns = (
            estimate.values,
            estimate.frequencies.tolist(),
            estimate.standard_errors.tolist(),
            estimate.ci_low.tolist(),
            estimate.ci_high.tolist(),
            estimate.raw_frequencies.tolist(),
        )
        names = ("value", "frequency", "standard_error", "ci_low", "ci_high", "raw_frequency")
        return [dict(zip(names, entry)) for entry in zip(*columns)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowCounts(Row):
    """The counts of one collection in one window; the fields are those of the Avro schema."""

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: int | None
    window_end: int | None
    pane_index: int
    pane_timing: str
    complete: bool
    num_reports: list[int]
    cells: list[int]


@dataclasses.dataclass(frozen=True, kw_only=True)
class WindowHealth(Row):
    """What the sentinels say of one window; the fields are those of the Avro schema."""

    collection_id: str
    collection_version: int
    fingerprint: str
    window_start: int | None
    window_end: int | None
    pane_index: int
    pane_timing: str
    num_reports: int | None
    status: str
    findings: list[dict[str, Any]]


@dataclasses.dataclass(frozen=True, kw_only=True)
class RejectedReport(Row):
    """Reports that were not counted; the fields are those of the Avro schema."""

    reason: str
    num_reports: int
    collection_id: str | None
    collection_version: int | None
    fingerprint: str | None
    window_start: int | None
    window_end: int | None
    received_at: int | None
    message_bytes: int
    source: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class LedgerRow(Row):
    """What became of the reports of one collection and period; the fields are those of the Avro schema."""

    collection_id: str | None
    collection_version: int | None
    fingerprint: str | None
    window_start: int | None
    window_end: int | None
    received: int
    accepted: int
    duplicates: int
    rejected: dict[str, int]


def name_of(collection: Collection | None) -> dict[str, Any]:
    """The fields by which a row names its collection."""
    if collection is None:
        return {"collection_id": None, "collection_version": None, "fingerprint": None}
    return {
        "collection_id": collection.id,
        "collection_version": collection.version,
        "fingerprint": collection.fingerprint.hex(),
    }
