"""Directories of rows, made by hand: any number of values and windows, and values that mean harm."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from uldp_transforms.jobs.records.run_records import RunRecord
from uldp_transforms.ldp import Collection
from uldp_transforms.windows import rfc3339

DAY = 86_400_000
BEGAN = 11_267 * DAY  # 2000-11-06, a Monday
RUN = "20261122T081503.042Z-4f2a9c"

HARMFUL = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "</style><script>alert(1)</script>",
    "{{ 7 * 7 }}",
    "a\x00b\x1b[31mc\nd",
    "\u202eevil",
    "",
    " ",
    "]]>&lt;",
    "x" * 4000,
    "javascript:alert(1)",
    "\N{FAMILY}\u200d \u05e9\u05dc\u05d5\u05dd",
)


def collection(values: Sequence[str], epsilon: float = 1.0, sensitive: Sequence[str] | None = None) -> Collection:
    alphabet = {"id": "closed", "values": list(values)} | ({} if sensitive is None else {"sensitive": list(sensitive)})
    mechanism = {"id": "krr" if sensitive is None else "urr", "epsilon": epsilon}
    return Collection.from_json({"id": "survey", "version": 1, "alphabet": alphabet, "mechanism": mechanism})


def span(window: int) -> dict[str, Any]:
    """The times of the window of a day."""
    return {"window_start": rfc3339(BEGAN + window * DAY), "window_end": rfc3339(BEGAN + (window + 1) * DAY)}


def entry(value: str, share: float, error: float = 0.01, smooth: bool = True) -> dict[str, Any]:
    low, high = max(0.0, share - 1.96 * error), min(1.0, share + 1.96 * error)
    found = {"value": value, "frequency": share, "standard_error": error, "ci_low": low, "ci_high": high}
    found |= {"raw_frequency": share, "display_low": low, "display_high": high, "common_variance": None}
    smoothed = {"smoothed_frequency": share, "smoothed_low": low, "smoothed_high": high}
    return found | (smoothed if smooth else dict.fromkeys(smoothed))


def estimate(of: Collection, window: int | None, entries: Sequence[Any] = (), **other: Any) -> dict[str, Any]:
    """A row of estimates."""
    times = dict.fromkeys(("window_start", "window_end")) if window is None else span(window)
    place = {"collection_id": of.id, "collection_version": of.version, "fingerprint": of.fingerprint.hex()}
    row = {**place, **times, "pane_index": 0, "pane_timing": "ON_TIME", "num_reports": 1000, "simulated": None}
    row |= {"estimator": "eb", "unexplained_mass": 0.0, "unexplained_low": None, "unexplained_high": None}
    row |= {"status": "ok", "run": RUN, "num_values": len(entries), "estimates": list(entries)}
    return row | other


def waves(values: Sequence[str], window: int) -> list[dict[str, Any]]:
    """Entries of a window whose shares go up and down."""
    weights = [1.5 + math.sin(window / 9 + place) for place in range(len(values))]
    total = sum(weights)
    return [entry(value, weight / total, 0.3 / len(values)) for value, weight in zip(values, weights)]


def finding(of: Collection, window: int, sentence: str, name: str = "change", run: str = RUN) -> dict[str, Any]:
    """A row of health in which something fired."""
    place = {"collection_id": of.id, "collection_version": of.version, "fingerprint": of.fingerprint.hex()}
    fired = {"name": name, "statistic": 9.0, "p_value": 1e-9, "fired": True, "sentence": sentence}
    row = {**place, **span(window), "pane_index": 0, "num_reports": 1000, "status": "change", "run": run}
    return row | {"findings": [fired, fired | {"name": "floor", "fired": False, "sentence": "Nothing unusual."}]}


def write(folder: Path, name: str, rows: Iterable[Any]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")


def record(folder: Path, *collections: Collection, run: str = RUN, end: str | None = "complete", **more: Any) -> None:
    """The record of a run."""
    folder.mkdir(parents=True, exist_ok=True)
    specification = {"collections": [of.to_json() for of in collections], "candidates": None, "timezone": None}
    specification |= {"max_rejected_share": None, "allowed_lateness": "60m", "partial_before": None} | more
    RunRecord(
        run=run,
        started=rfc3339(BEGAN),
        ended=None if end is None else rfc3339(BEGAN + 60_000),
        source={"option": "--input", "name": "R.avro", "bounded": True, "resumes": False},
        specification=specification,
        end=end,
        sentence=None if end is None else "1000 received = 1000 accepted + 0 rejected",
    ).write(str(folder))


def survey(folder: Path, values: Sequence[str], windows: int) -> Collection:
    """A directory of so many values and windows, with everything that a job writes."""
    of = collection(values)
    record(folder, of)
    write(folder, "estimates.jsonl", (estimate(of, at, waves(values, at)) for at in range(windows)))
    numbers = {"received": 1000, "accepted": 990, "duplicates": 0, "rejected": {"malformed": 10}, "in_transit": 0}
    place = {"collection_id": of.id, "collection_version": 1, "fingerprint": of.fingerprint.hex(), "run": RUN}
    write(folder, "ledger.jsonl", ({**place, **span(at), **numbers} for at in range(windows)))
    write(folder, "health.jsonl", [])
    return of
