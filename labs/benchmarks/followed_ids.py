"""Ids of counted reports in the database of ``uldp estimate --follow``: time, memory, file.

``python -m labs.benchmarks.followed_ids fingerprints 10000000`` counts as many reports of one base period, in
transactions of 50,000, and then the first ones again, before and after a restart.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
import time

import numpy as np

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms_follow.known_ids_state import KnownIdsState
from uldp_transforms_follow.state import NAME, FollowState

AT_ONCE = 50_000
COLLECTION = Collection.from_json(
    {
        "id": "answers",
        "version": 1,
        "alphabet": {"id": "closed", "values": ["a", "b", "c"]},
        "mechanism": {"id": "krr", "epsilon": 1.0},
    }
)


def main(by: str, number: int) -> None:
    """Print what ``number`` ids cost; ``by`` is a value of ``--deduplicate_by``."""
    spec = JobSpec.of(
        collections=[COLLECTION], bounded=True, run="run", window="1h", deduplicate=True, deduplicate_by=by
    )
    rng, before = np.random.default_rng(1), _peak()
    values = ["a"] * AT_ONCE
    with tempfile.TemporaryDirectory() as folder:
        state = FollowState(folder, "run", "windows")
        ids, cpu = KnownIdsState(state, spec), 0.0
        first = COLLECTION.perturb(values, rng, [0] * AT_ONCE)
        for place in range(number // AT_ONCE):
            cpu += _count(state, ids, COLLECTION.perturb(values, rng, [0] * AT_ONCE) if place else first)
        again, peak, size = _count(state, ids, first), _peak(), os.path.getsize(os.path.join(folder, NAME))
        ids.drop_memory()
        restarted = _count(state, ids, first)
        state.close()
    print(f"{by}: {number:,} ids, {1e6 * cpu / number:.2f} CPU us a report; copies {1e6 * again / AT_ONCE:.2f}")
    print(f"peak of memory {peak:.0f} MB ({before:.0f} before), file {size / number:.1f} bytes an id")
    print(f"read again after a restart in {restarted:.1f} CPU s")


def _count(state: FollowState, ids: KnownIdsState, batch: ReportBatch) -> float:
    """CPU seconds of a transaction."""
    began = time.process_time()
    with state:
        ids.count_new([MixedReports.of(batch)])
    return time.process_time() - began


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
