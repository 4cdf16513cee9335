"""Values of each kind of state that a running stream keeps, and their bytes.

``python -m tests.support.kept_state FILE`` writes the bytes of this tree.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.messages_cases import KRR, NOON, RAPPOR
from uldp_transforms.beam.runtime.coders import (
    CohortCountsCoder,
    MixedReportsCoder,
    ReportBatchCoder,
    RunningSumCoder,
)
from uldp_transforms.beam.transforms.gather_messages import GatheredCoder
from uldp_transforms.beam.transforms.ledger import ReasonCountsCoder
from uldp_transforms.collector.known_ids import KnownIds
from uldp_transforms.collector.known_reports import KnownReports, to_rows
from uldp_transforms.ldp import CohortCounts, ReportBatch
from uldp_transforms.ldp.counts.running_sum import RunningSum
from uldp_transforms.messages.joined_messages import JoinedMessages
from uldp_transforms.messages.mixed_reports import MixedReports
from uldp_transforms.rows.row_types import ValueEstimate, WindowedEstimate
from uldp_transforms.rows.smoothed_rows import filter_row
from uldp_transforms.rows.window_history import Neighbours
from uldp_transforms.windows import rfc3339

HOUR = 3_600_000
SECRET = bytes(range(16))

CODERS = {
    "counts": CohortCountsCoder(),
    "sum": RunningSumCoder(),
    "batch": ReportBatchCoder(),
    "mixed": MixedReportsCoder(),
    "messages": GatheredCoder(),
    "reasons": ReasonCountsCoder(),
}


def batch() -> ReportBatch:
    """Fifty reports with ids, of which ten come twice."""
    found = KRR.perturb(["0", "1"] * 25, np.random.default_rng(7), [NOON + 1000 * place for place in range(50)])
    return ReportBatch.concatenate([found, found[:10]])


def counts() -> dict[str, CohortCounts]:
    """Counts in each layout of their coder: in full, sparse, with patterns, negative, and in bits."""
    full, rng = KRR.count(batch()), np.random.default_rng(8)
    sparse = np.zeros((4, 1000), dtype=np.int64)
    sparse[2, 17] = 300
    rappor = RAPPOR.perturb(list(RAPPOR.alphabet.known_values or ()) * 9, rng)
    return {
        "full": full,
        "sparse": CohortCounts(np.array([0, 0, 300, 0]), sparse),
        "patterns": RAPPOR.count(rappor, bit_patterns=True),
        "negative": CohortCounts(-full.num_reports, -full.cells),
        "bits": CohortCounts(np.full(64, 40), rng.integers(0, 5, (64, 200))),
    }


def row(number: int) -> WindowedEstimate:
    """The estimate of a window."""
    rng = np.random.default_rng(number)
    shares = np.array([0.5, 0.3, 0.2]) + rng.normal(0, 0.01, 3)
    entries = [
        ValueEstimate(str(k), f, 0.01, f - 0.02, f + 0.02, f, common_variance=1e-5) for k, f in enumerate(shares)
    ]
    span = {"window_start": rfc3339(NOON + number * HOUR), "window_end": rfc3339(NOON + (number + 1) * HOUR)}
    blank: dict[str, Any] = dict.fromkeys(WindowedEstimate._fields) | WindowedEstimate._field_defaults
    return WindowedEstimate(**blank | span | {"status": "ok", "num_reports": 3000, "estimates": entries})


def windows(number: int) -> Neighbours:
    """What a stream keeps of smoothed windows, of which it has forgotten all but six."""
    kept = Neighbours.of([], 2.0, memos=True)
    for place in range(number):
        kept = filter_row(kept, row(place), 1000.0, horizon=6)[0]
    return kept


def state() -> dict[str, str]:
    """Kind -> bytes in base64."""
    rows = to_rows(batch())
    reports, ids = KnownReports(rows.shape[1]), KnownIds(SECRET)
    found = {f"counts {name}": CODERS["counts"].encode(value) for name, value in counts().items()}
    found |= {
        "sum": CODERS["sum"].encode(RunningSum(counts()["full"])),
        "batch": CODERS["batch"].encode(batch()),
        "mixed": CODERS["mixed"].encode(MixedReports.of(batch())),
        "messages": CODERS["messages"].encode((JoinedMessages.join([b"one", b"", b"three"]), np.array([1, 2, NOON]))),
        "reasons": CODERS["reasons"].encode({"received": 7, "unread_files/corrupt_block": 1}),
        "known reports": reports.stored(reports.add(rows).added),
        "known ids": ids.stored(ids.add(rows).added),
        "windows": windows(12).to_bytes(),
    }
    return {name: base64.b64encode(value).decode("ascii") for name, value in found.items()}


if __name__ == "__main__":
    text = json.dumps({"state": state()}, indent=1)
    Path(sys.argv[1]).write_text(f"{text}\n", encoding="utf-8")
