"""A run over files with reports that come late."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from apache_beam.testing.test_stream import Event

from tests.support import cases, replay
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.sinks import RowFiles
from uldp_transforms.messages import wire
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
MINUTE = 60_000
HOUR = 60 * MINUTE
BEGIN = 400_000 * HOUR


def reports(number: int, moment: int) -> list[bytes]:
    return wire.encode_reports(ANIMALS.perturb(["ant"] * number, np.random.default_rng(1), [moment] * number))


def bundles(number: int, arrival: int, moment: int) -> list[Event]:
    """So many reports of one moment, each of which arrives in a bundle of its own."""
    return [replay.arrive(arrival, reports(1, moment)) for _ in range(number)]


def write(
    folder: Path, events: Sequence[Event], flush_every: int, *, with_parquet: bool = False, **fields: Any
) -> Path:
    """The files of a stream."""
    job = replay.streaming_job([ANIMALS], Windows(size=HOUR), allowed_lateness=HOUR, **fields)
    sink = RowFiles(
        str(folder),
        unbounded=True,
        forms=RowForms(counts=True, parquet=with_parquet),
        flush_every=flush_every,
        final=fields.get("release") == FINAL,
    )
    replay.run(dataclasses.replace(job, sinks=(sink,)), events)
    return folder


LATE = [
    *bundles(3, BEGIN + MINUTE, BEGIN),
    replay.watermark(BEGIN + HOUR + MINUTE),
    *bundles(20, BEGIN + HOUR + MINUTE, BEGIN),
]
"""A window that is corrected twenty times."""
