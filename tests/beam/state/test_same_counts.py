"""The law of the whole library: a stream, a batch and plain numpy give the same counts, bit for bit.

    final pane of a window == collection.count(all reports of that window)

whatever the order of the reports, their packing into messages and bundles, and the engine; also where reports come
more than once and each id is counted once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions

from tests.support import replay
from tests.support.beam.same_counts import (
    DAY,
    MINUTE,
    WINDOWS,
    as_messages,
    check,
    count,
    random_events,
    random_reports,
    sent_twice,
    specification,
)
from uldp_transforms.windows import Windows

ENGINES = {
    "one worker": ["--runner=FnApiRunner"],
    "two threads": ["--runner=FnApiRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=2"],
    "five threads": ["--runner=FnApiRunner", "--direct_running_mode=multi_threading", "--direct_num_workers=5"],
    "bundles": ["--runner=BundleBasedDirectRunner"],
}


def windows_of(names: Iterable[str]) -> list[Any]:
    """Those with an offset in all combinations: make slow."""
    return [
        pytest.param(WINDOWS[name], id=name, marks=[pytest.mark.slow] if name == "fixed, offset" else [])
        for name in names
    ]


@pytest.mark.parametrize("windows", windows_of(WINDOWS))
@pytest.mark.parametrize(
    ("packing", "engine", "deduplicate"),
    [
        ("single", "two threads", False),
        ("packed", "one worker", False),
        ("mixed", "five threads", False),
        ("mixed", "bundles", False),
        ("mixed", "one worker", True),
        ("single", "two threads", True),
        ("mixed", "bundles", True),
    ],
)
def test_batch_equals_numpy(windows: Windows | None, packing: str, engine: str, deduplicate: bool) -> None:
    rng = np.random.default_rng([len(packing), len(engine), 1 if windows is None else windows.step])
    batches = random_reports(rng, 0)
    sent = sent_twice(batches, rng) if deduplicate else batches
    messages = as_messages(sent, packing, rng)
    with replay.collector() as (collect_counts, panes), replay.collector() as (collect_ledger, ledger):
        with beam.Pipeline(options=PipelineOptions(ENGINES[engine])) as pipeline:
            spec = specification(windows, deduplicate=deduplicate, bounded=True)
            counted = count(pipeline | beam.Create(messages) | beam.Reshuffle(), spec)
            _ = counted.counts | "Counts" >> collect_counts
            _ = counted.ledger | "Ledger" >> collect_ledger
        check(panes, ledger, sent, windows)


@pytest.mark.parametrize("windows", windows_of(name for name in WINDOWS if WINDOWS[name]))
@pytest.mark.parametrize(
    ("packing", "early_every", "middle", "deduplicate"),
    [
        pytest.param("packed", None, 0, False, id="packed, around 1970"),
        pytest.param("mixed", None, 0, False, id="mixed, around 1970"),
        pytest.param("mixed", None, 0, True, id="mixed, around 1970, each id once"),
        # later than 1970: when an early pane is due, the local engine takes its clock for the watermark
        pytest.param("mixed", MINUTE, 12_000 * DAY, False, id="mixed, early panes, around 2002"),
        pytest.param("mixed", MINUTE, 12_000 * DAY, True, id="mixed, early panes, around 2002, each id once"),
    ],
)
def test_stream_equals_numpy(
    windows: Windows, packing: str, early_every: int | None, middle: int, deduplicate: bool
) -> None:
    rng = np.random.default_rng([len(packing), middle, windows.step])
    batches = random_reports(rng, middle)
    sent = sent_twice(batches, rng) if deduplicate else batches
    messages = as_messages(sent, packing, rng)
    spec = specification(windows, early_every=early_every, deduplicate=deduplicate, bounded=False)
    with replay.collector() as (collect_counts, panes), replay.collector() as (collect_ledger, ledger):
        with beam.Pipeline(options=replay.stream_options()) as pipeline:
            source = replay.stream(list(random_events(messages, rng, middle)))
            counted = count(pipeline | source, spec)
            _ = counted.counts | "Counts" >> collect_counts
            _ = counted.ledger | "Ledger" >> collect_ledger
        check(panes, ledger, sent, windows)
