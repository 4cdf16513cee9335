"""A batch whose reports all fall into base periods of their own must not take memory for all of these at once."""

from __future__ import annotations

import tracemalloc

import numpy as np
from apache_beam.utils.timestamp import Timestamp

from tests.support import replay
from uldp_transforms.beam.transforms.count_reports import _CountBundleFn
from uldp_transforms.ldp import Collection, ReportBatch
from uldp_transforms.windows import Windows


def test_a_batch_of_many_periods_takes_bounded_memory():
    of = Collection.from_json(
        {
            "id": "h",
            "version": 1,
            "alphabet": {"id": "hashed", "num_buckets": 64},
            "mechanism": {"id": "krr", "epsilon": 1.0},
            "num_cohorts": 256,
        }
    )
    n, day = 20_000, 86_400_000
    batch = ReportBatch(
        of.fingerprint,
        np.zeros(n, np.uint16),
        np.zeros((n, 1), np.uint8),
        np.arange(n) * day,
        np.zeros((0, 16), np.uint8),
    )
    counter = _CountBundleFn(replay.spec([of], Windows(size=day)))
    counter.start_bundle()
    tracemalloc.start()
    for _ in counter.process(batch, Timestamp(0)):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256 << 20
