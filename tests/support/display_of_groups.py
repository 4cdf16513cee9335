"""What display intervals of groups must be."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.ldp.dimensions import GROUPED
from uldp_transforms.ldp import CohortCounts, Estimate
from uldp_transforms.ldp.estimators import ESTIMATORS

GROUPS_OF_COUNTRIES = len(GROUPED.dimensions[0].all_values)


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def estimate_of(row: dict[str, Any]) -> Estimate:
    """The estimate of the row's counts, which its raw frequencies determine; intervals for as many looks."""
    n, raw = row["num_reports"], np.array([entry["raw_frequency"] for entry in row["estimates"]])
    rates = GROUPED.mechanism.response(raw)
    counts = CohortCounts(np.array([n]), np.rint(n * rates).astype(np.int64)[np.newaxis])
    estimate = ESTIMATORS[row["estimator"]]().estimate(GROUPED, counts)
    if row["interval"] == "fixed":
        return estimate
    return estimate.anytime(1, planned=row["pane_timing"] == "ON_TIME")


def assert_counts_all_groups(rows: list[dict[str, Any]]) -> None:
    """The i-th largest of S values has the level 1 - .05 i / (S G), in the total 1 - .05 i / S."""
    assert {row["group"] for row in rows} >= {"", "country=DE", "country=other"}
    for row in rows:
        estimate, entries = estimate_of(row), row["estimates"]
        order = sorted(range(len(entries)), key=lambda at: -entries[at]["frequency"])
        cells = len(entries) * (GROUPS_OF_COUNTRIES if row["group"] else 1)
        for rank, at in enumerate(order, 1):
            low, high = estimate.intervals(1 - 0.05 * rank / cells, strict=True)
            assert entries[at]["display_low"] == pytest.approx(min(low[at], entries[at]["ci_low"]), abs=1e-9)
            assert entries[at]["display_high"] == pytest.approx(max(high[at], entries[at]["ci_high"]), abs=1e-9)
