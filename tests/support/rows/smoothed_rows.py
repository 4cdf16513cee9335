"""Rows of windows in which only the noise differs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tests.support.estimated import estimate_window
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import WindowedEstimate

DAY = 86_400_000
VALUES = tuple(f"v{i}" for i in range(20))
SHARES = np.array([0.3, 0.2, 0.1, *([0.4 / 17] * 17)])


def closed(mechanism: str = "krr", epsilon: float = 1.0) -> Collection:
    spec = {"id": mechanism, "version": 1, "alphabet": {"id": "closed", "values": list(VALUES)}, "num_cohorts": 1}
    return Collection.from_json(spec | {"mechanism": {"id": mechanism, "epsilon": epsilon}})


KRR = closed()
HASHED = Collection.from_json(
    {
        "id": "open",
        "version": 1,
        "alphabet": {"id": "hashed", "num_buckets": 8},
        "mechanism": {"id": "krr", "epsilon": 2.0},
        "num_cohorts": 16,
    }
)


def rows_of(
    of: Collection, days: Sequence[int], rng: np.random.Generator, *, people: int = 2000, moved: int | None = None
) -> list[WindowedEstimate]:
    """Estimates of some days; from the day ``moved`` on, 5 % of the reports say ``v7``."""
    rows = []
    for day in days:
        batch = of.perturb(rng.choice(VALUES, people, p=SHARES).tolist(), rng)
        counts = of.count(batch)
        if moved is not None and day >= moved:
            fakes = np.zeros_like(counts.cells)
            fakes[0, 7] = people // 20
            counts = CohortCounts(counts.num_reports + people // 20, counts.cells + fakes)
        place = span_of(day * DAY, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}
        asked = None if of.alphabet.known_values else VALUES
        rows.append(estimate_window(of, counts, place, ESTIMATORS["projected"](), asked, None))
    return rows
