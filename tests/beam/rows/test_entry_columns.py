"""Entries as columns are the entries; and both rows of a window come back from their bytes."""

from __future__ import annotations

import json

import numpy as np
import pytest
from apache_beam import coders
from apache_beam.utils.timestamp import MIN_TIMESTAMP

from tests.support.rows.smoothed_rows import DAY, HASHED, KRR, VALUES, rows_of
from tests.support.tolerance import generator
from uldp_transforms.beam.transforms.smooth_estimates import _in_window
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.estimators import ESTIMATORS
from uldp_transforms.rows.entry_columns import EntryColumns, packed, unpacked
from uldp_transforms.rows.row_identity import span_of
from uldp_transforms.rows.row_types import ValueEstimate, WindowedEstimate
from uldp_transforms.rows.smoothed_rows import smooth_rows
from uldp_transforms.rows.window_health import health_of_window
from uldp_transforms.rows.windowed_estimate import value_estimates

PLACE = span_of(0, DAY) | {"pane_index": 0, "pane_timing": "ON_TIME", "run": None}


@pytest.mark.parametrize("of", [KRR, HASHED])
@pytest.mark.parametrize("show", [None, 3])
def test_columns_of_an_estimate_are_its_entries(of: Collection, show: int | None) -> None:
    counts = of.count(of.perturb(["v1"] * 300, generator("columns")))
    asked = None if of.alphabet.known_values else VALUES
    estimate = ESTIMATORS["projected"]().estimate(of, counts, asked)
    low, high = estimate.display_intervals(show or len(VALUES))
    stated = [
        {
            "value": estimate.values[place],
            "frequency": float(estimate.frequencies[place]),
            "standard_error": float(estimate.standard_errors[place]),
            "ci_low": float(estimate.ci_low[place]),
            "ci_high": float(estimate.ci_high[place]),
            "raw_frequency": float(estimate.raw_frequencies[place]),
            "display_low": float(low[number]),
            "display_high": float(high[number]),
            "common_variance": None if estimate.common_variances is None else float(estimate.common_variances[place]),
        }
        for number, place in enumerate(estimate.largest(show or len(VALUES)).tolist())
    ]
    columns = value_estimates(estimate, show)
    assert isinstance(columns, EntryColumns)
    entries = list(columns)
    assert [{name: getattr(entry, name) for name in stated[0]} for entry in entries] == stated
    assert columns == entries
    assert columns == EntryColumns.of(entries)
    assert len(columns) == len(entries)
    assert [columns[place] for place in (0, 1, -1)] == [entries[0], entries[1], entries[-1]]
    with pytest.raises(IndexError):
        _ = columns[len(entries)]
    assert columns[1:] == entries[1:]
    assert all(type(entry) is ValueEstimate for entry in columns)
    assert columns != entries[1:]


def test_what_only_some_entries_have_stays_so() -> None:
    entry = ValueEstimate("a", 0.5, 0.1, 0.3, 0.7, 0.5)
    entries = [entry, entry._replace(value="b", common_variance=0.25)]
    columns = EntryColumns.of(entries)
    assert list(columns) == entries
    assert columns.names == (*ValueEstimate._fields[1:6], "common_variance")
    assert np.isnan(columns.column("smoothed_low")).all()
    wider = columns.with_columns(("smoothed_low", "frequency"), np.array([[0.1, 0.2], [0.0, 1.0]]))
    assert list(wider) == [
        entries[0]._replace(smoothed_low=0.1, frequency=0.0),
        entries[1]._replace(smoothed_low=0.2, frequency=1.0),
    ]


@pytest.mark.parametrize("of", [KRR, HASHED])
def test_both_rows_come_back_from_their_bytes(of: Collection) -> None:
    [row] = rows_of(of, [3], generator("packed"))
    health = health_of_window(of, of.count(of.perturb(["v1"] * 200)), PLACE, None, 0.5)
    empty = row._replace(status="suppressed", estimates=[], num_reports=None, run="später")
    for one in (row, empty, row._replace(estimates=EntryColumns.of(row.estimates))):
        again, again_health = unpacked(packed(one, health))
        assert again == one
        assert again_health == health
        assert json.dumps(again._replace(estimates=list(again.estimates))) == json.dumps(
            one._replace(estimates=list(one.estimates))
        )


def test_rows_that_are_handed_through_have_lists_again() -> None:
    """A window of no reports has entries, but takes no part; alone, and among others."""
    health = health_of_window(KRR, KRR.count(KRR.perturb(["v1"] * 200)), PLACE, None, None)
    rows = [
        row._replace(estimates=EntryColumns.of(row.estimates)) for row in rows_of(KRR, range(3), generator("lists"))
    ]
    rows[1] = rows[1]._replace(num_reports=0)
    for some in (rows, rows[1:2]):
        smooth = [_in_window(row, health, None, MIN_TIMESTAMP) for row, _ in smooth_rows(some, 1.0, 1000)]
        found = [both.value[0].estimates for both in smooth]
        assert [type(entries) for entries in found] == [list] * len(some)
        assert [len(entries) for entries in found] == [20] * len(some)


def test_other_versions_are_refused() -> None:
    [row] = rows_of(KRR, [3], generator("version"))
    encoded = packed(row, health_of_window(KRR, KRR.count(KRR.perturb(["v1"] * 200)), PLACE, None, None))
    with pytest.raises(ValueError, match=r"^unpacked reads version 1, got version 2$"):
        unpacked(bytes([2]) + encoded[1:])


def test_an_engine_that_parts_the_steps_sends_them_in_their_schema() -> None:
    [row] = rows_of(KRR, [3], generator("schema"))
    coder = coders.registry.get_coder(WindowedEstimate)
    columns = row._replace(estimates=EntryColumns.of(row.estimates))
    assert coder.encode(columns) == coder.encode(row)
