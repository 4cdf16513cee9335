"""What a browser really answered, through the job: the alarm rings when what it says about itself changes."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import numpy as np
import pytest

from tests.support import replay
from tests.support.messages_cases import container
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages import wire
from uldp_transforms.rows.window_history import bounds_of
from uldp_transforms.windows import Windows

ANSWERS = Path(__file__).parents[1] / "data" / "browser_confidence.csv.gz"
AT_RANDOM = 0.4994798  # the rate that the browser publishes, at which it answers either value
WINDOW = 10_000
SWITCH = 180_000  # about when it begins to say "high"
VALUES = ("low", "high")


def browser() -> Collection:
    truth = 1 - AT_RANDOM / 2
    alphabet, mechanism = (
        {"id": "closed", "values": list(VALUES)},
        {"id": "krr", "epsilon": math.log(truth / (1 - truth))},
    )
    return Collection.from_json({"id": "browser", "version": 1, "alphabet": alphabet, "mechanism": mechanism})


def recorded(of: Collection) -> ReportBatch:
    """Its answers are reports already."""
    lines = list(csv.DictReader(gzip.decompress(ANSWERS.read_bytes()).decode().splitlines()))
    assert of.alphabet.known_values == VALUES
    return ReportBatch(
        fingerprint=of.fingerprint,
        cohorts=np.zeros(len(lines), np.uint16),
        payloads=np.array([[VALUES.index(line["value"])] for line in lines], np.uint8),
        event_times=np.array([round(1000 * float(line["seconds"])) for line in lines], np.int64),
        report_ids=np.arange(len(lines), dtype=np.uint64).repeat(2).view(np.uint8).reshape(-1, 16),
    )


@pytest.mark.parametrize("bounded", [True, False], ids=["files", "stream"])
def test_the_switch_of_a_browser_rings_within_two_windows(tmp_path: Path, bounded: bool) -> None:
    of = browser()
    batch = recorded(of)
    windows = Windows(size=WINDOW)
    if bounded:
        path = tmp_path / "in.avro"
        path.write_bytes(container([(1, message) for message in wire.encode_reports(batch)]))
        rows = replay.replay(replay.file_job([of], windows, str(path), smooth=True))
    else:
        events = []
        for end in range(WINDOW, int(batch.event_times.max()) + WINDOW, WINDOW):
            here = (batch.event_times >= end - WINDOW) & (batch.event_times < end)
            messages = [wire.encode_batch(batch[here])]
            events += [replay.arrive(end - 1, messages), replay.watermark(end + 1)]
        rows = replay.replay(replay.streaming_job([of], windows, smooth=True), events)
    health = sorted(rows["health"], key=bounds_of)
    rang = [row for row in health if row.findings[-1].fired]
    assert len(health) == 33
    assert [row.findings[-1].name for row in rang] == ["change"]
    assert SWITCH <= bounds_of(rang[0])[0] < SWITCH + 2 * WINDOW
    assert "'high' +" in rang[0].findings[-1].sentence
