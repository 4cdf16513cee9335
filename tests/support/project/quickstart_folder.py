"""The folder in which the commands of the quickstarts run."""

from __future__ import annotations

import json
from pathlib import Path

import fastavro
import numpy as np

from uldp_transforms import schemas
from uldp_transforms.ldp import Collection

VALUES = ["flu", "cold", "asthma", "hiv"]
PEOPLE = [5000, 3500, 1000, 500]
COLLECTION = {
    "id": "diagnoses",
    "version": 1,
    "alphabet": {"id": "closed", "values": VALUES, "sensitive": ["hiv"]},
    "mechanism": {"id": "urr", "epsilon": 1.0},
}
NOON = 1_000_036_800  # 2001-09-09T12:00:00Z in seconds


def batch_record() -> dict[str, object]:
    """10,000 reports of noon as the record of a packed message."""
    values = [value for value, number in zip(VALUES, PEOPLE) for _ in range(number)]
    batch = Collection.from_json(COLLECTION).perturb(values, np.random.default_rng(7), [NOON * 1000] * len(values))
    return {
        "form": 2,
        "collection": batch.fingerprint[:8],
        "cohorts": batch.cohorts.astype("<u2").tobytes(),
        "event_times": batch.event_times.astype("<i8").tobytes(),
        "report_ids": batch.report_ids.tobytes(),
        "payloads": batch.payloads.tobytes(),
    }


def write_quickstart(folder: Path) -> Path:
    """C.json and reports.avro, where the examples look for them."""
    (folder / "C.json").write_text(json.dumps(COLLECTION), encoding="utf-8")
    with (folder / "reports.avro").open("wb") as file:
        fastavro.writer(file, schemas.load("report_batch.avsc"), [batch_record()])
    return folder
