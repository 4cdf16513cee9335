"""Rows of comparisons in columns: the same rows and lines as one by one."""

from __future__ import annotations

import numpy as np

from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms_compare.compare.row_columns import RowColumns

SHARED = {"collection_id": '50 % "x"', "group_a": "ä", "group_b": "", "simulated": True, "collection_version": 2}
NUMBERS = {
    "difference": [0.1, -1e-9, 3e20],
    "low": [float("nan"), float("-inf"), 1e-5],
    "high": [1.0, float("inf"), 0.0],
    "p_value": [1e-300, 0.5, 1.0],
    "q_value": [0.25, 1.0, 1e-4],
    "figure_at": [float("nan"), 0.5, 7.0],
}
TEXTS = {"value": ["a, b", "%s", 'q"\n'], "figure": [None, "quantile", "mean"]}


def test_rows_in_columns_are_the_rows_one_by_one() -> None:
    rows = list(RowColumns(SHARED, TEXTS, {name: np.array(column) for name, column in NUMBERS.items()}))
    of_one = dict.fromkeys(ComparedValue._fields) | SHARED
    expected = [
        ComparedValue(
            **of_one
            | {name: column[at] if np.isfinite(column[at]) else None for name, column in NUMBERS.items()}
            | {name: column[at] for name, column in TEXTS.items()}
        )
        for at in range(3)
    ]
    assert rows == expected
    assert [row.at for row in rows] == [None, 0.5, 7.0], "the former name of figure_at"


def test_lines_are_those_of_the_rows() -> None:
    columns = RowColumns(SHARED, TEXTS, {name: np.array(column) for name, column in NUMBERS.items()})
    assert columns.json_lines() == "".join(f"{to_json(row)}\n" for row in columns).encode()
