"""Rows of numbers, as the page reads them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from tests.support import report_rows as rows
from tests.support.estimated import estimate_window
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import Empirical
from uldp_transforms.rows.json_and_avro import to_json

PLACE: dict[str, Any] = {"pane_index": 0, "pane_timing": "ON_TIME", "run": rows.RUN}
SHARES = np.array([0.05, 0.1, 0.25, 0.25, 0.15, 0.1, 0.06, 0.04])


def collection(mechanism: str = "sw", **alphabet: Any) -> Collection:
    spec = {"id": "ordered", "low": -60, "high": 180, "num_bins": 8, "unit": "<b>min</b>"} | alphabet
    return Collection.from_json(
        {"id": "survey", "version": 1, "alphabet": spec, "mechanism": {"id": mechanism, "epsilon": 2.0}}
    )


def row(item: Collection, window: int, people: int = 20_000) -> dict[str, Any]:
    """The row of a window with expected counts; the later, the more people are in the last bins."""
    shares = SHARES + 0.004 * window * np.linspace(-1, 1, 8)
    cells = np.rint(people * item.mechanism.response(shares)).astype(np.int64)[np.newaxis]
    number = np.array([cells.sum() if item.mechanism.one_place else people])
    made = estimate_window(
        item,
        CohortCounts(number, cells),
        PLACE | rows.span(window),
        Empirical(),
        None,
        withheld=None,
        limits=(60.0,),
        quantiles=(0.5, 0.98),
    )
    return json.loads(to_json(made))
