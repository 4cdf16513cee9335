"""The field ``numbers`` of a row: where it has figures, what they are in every form, and how wide in several looks."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import numpy as np
import pyarrow.parquet
import pytest
from apache_beam import coders

from tests.support.estimated import estimate_window
from tests.support.messages_cases import KRR, collection
from uldp_transforms.beam.runtime.coders import ROWS
from uldp_transforms.jobs.sinks.bigquery_tables import native_row
from uldp_transforms.ldp import CohortCounts, Collection
from uldp_transforms.ldp.estimators import Empirical
from uldp_transforms.rows.arrow_form import parquet_bytes
from uldp_transforms.rows.entry_columns import packed, unpacked
from uldp_transforms.rows.json_and_avro import as_dict, to_avro, to_json
from uldp_transforms.rows.row_types import (
    ESTIMATE_SCHEMA,
    MeanFigure,
    NumberFigures,
    SumFigure,
    WindowedEstimate,
    WindowHealth,
)

DELAYS = collection("delays", {"id": "ordered", "low": 0, "high": 1, "num_bins": 8}, "sw")
TIMES = collection("times", {"id": "ordered", "low": 1, "high": 9, "num_bins": 8, "scale": "log"}, "sw")
CELLS = np.array([[900, 950, 1000, 1010, 980, 900, 840, 800, 720, 680, 630, 590]])
PLACE: dict[str, Any] = {
    "window_start": "2001-09-09T00:00:00Z",
    "window_end": "2001-09-10T00:00:00Z",
    "pane_index": 0,
    "pane_timing": "ON_TIME",
    "run": None,
}


def row_of(item: Collection = DELAYS, cells: np.ndarray = CELLS, **options: Any) -> WindowedEstimate:
    fields = {"withheld": None, "limits": (0.5, 7.0), "quantiles": (0.5, 0.9)} | options
    counts = CohortCounts(cells.sum(axis=1), cells)
    return estimate_window(item, counts, PLACE | fields.pop("place", {}), Empirical(), None, **fields)


def test_a_row_has_the_figures_that_were_asked_for():
    numbers = row_of().numbers
    assert numbers.mean.value == pytest.approx(0.344906, abs=1e-6)
    assert numbers.mean.display_low < numbers.mean.display_value < numbers.mean.display_high
    assert (numbers.curve[0].low, numbers.curve[0].high, numbers.curve[-1].high) == (None, 0.125, None)
    assert sum(one.share for one in numbers.curve) == pytest.approx(1)
    assert [one.q for one in numbers.quantiles] == [0.5, 0.9]
    assert numbers.sum.value == pytest.approx(0.344906 * 10_000, abs=0.01)
    assert numbers.sum.low < numbers.sum.value < numbers.sum.high
    [above] = numbers.shares_above  # 7 is beyond the bins of this collection
    assert (above.limit, above.value) == (0.5, pytest.approx(0.326236, abs=1e-6))


def test_no_figures_without_numbers_or_estimates():
    krr = np.full((KRR.num_cohorts, KRR.num_cells), 50)
    assert row_of(KRR, krr).numbers == row_of(withheld="suppressed").numbers == NumberFigures()
    plain = row_of(limits=None, quantiles=None).numbers
    assert (plain.mean.half_bin, [one.q for one in plain.quantiles], plain.shares_above) == (
        1 / 16,
        [0.1, 0.5, 0.9],
        (),
    )
    assert row_of(quantiles=()).numbers.quantiles == ()
    assert row_of(TIMES).numbers.mean == MeanFigure()
    assert row_of(TIMES).numbers.sum == SumFigure()


def test_a_row_says_whether_its_intervals_hold_at_all_looks():
    assert (row_of().interval, row_of(anytime_scale=1000).interval) == ("fixed", "anytime")
    withheld = {"withheld": "suppressed"}
    assert (row_of(**withheld).interval, row_of(anytime_scale=1000, **withheld).interval) == ("fixed", "anytime")


def test_intervals_of_several_looks_are_longer():
    def length(**options: Any) -> float:
        mean = row_of(**options).numbers.mean
        return mean.high - mean.low

    planned = length(anytime_scale=100) / length()
    early = length(anytime_scale=100, place={"pane_timing": "EARLY"}) / length()
    assert planned == pytest.approx(2.241403 / 1.959964, rel=1e-5)  # normal quantiles of 97.5 % and 95 %
    assert early > planned


def test_rows_of_before_the_curve_are_read():
    """A record without the newer fields, written with the schema of then."""
    schema = json.loads(json.dumps(ESTIMATE_SCHEMA))
    numbers = next(field for field in schema["fields"] if field["name"] == "numbers")
    record = to_avro(row_of(TIMES), ESTIMATE_SCHEMA)
    inner = [field for field in numbers["type"]["fields"] if field["name"] in ("mean", "quantiles", "shares_above")]
    numbers["type"]["fields"] = inner
    numbers["default"] = {field["name"]: numbers["default"][field["name"]] for field in inner}
    for field in inner:
        kind = field["type"].get("items", field["type"])
        kind["fields"] = [
            of for of in kind["fields"] if of["name"] in ("value", "low", "high", "half_bin", "q", "limit")
        ]
    file = io.BytesIO()
    fastavro.writer(file, schema, [record])
    file.seek(0)
    [read] = fastavro.reader(file, reader_schema=ESTIMATE_SCHEMA)
    assert read["numbers"]["curve"] == read["numbers"]["below"] == []
    assert read["numbers"]["mean"]["standard_error"] is None
    assert read["numbers"]["quantiles"][0]["display_low"] is None
    assert read["numbers"]["quantiles"][0]["high"] == record["numbers"]["quantiles"][0]["high"]


@pytest.mark.parametrize("row", [row_of(), row_of(TIMES), row_of(withheld="suppressed")], ids=["all", "log", "none"])
def test_every_form_has_the_same_numbers(row: WindowedEstimate):
    expected = as_dict(row)["numbers"]
    assert json.loads(to_json(row))["numbers"] == expected
    record = to_avro(row, ESTIMATE_SCHEMA)
    file = io.BytesIO()
    fastavro.writer(file, ESTIMATE_SCHEMA, [record])
    file.seek(0)
    assert next(fastavro.reader(file))["numbers"] == expected
    table = pyarrow.parquet.read_table(io.BytesIO(parquet_bytes([record], ESTIMATE_SCHEMA)))
    assert table.to_pylist()[0]["numbers"] == expected
    assert native_row(row, ESTIMATE_SCHEMA)["numbers"] == expected
    assert WindowedEstimate in ROWS
    coder = coders.registry.get_coder(WindowedEstimate)
    assert as_dict(coder.decode(coder.encode(row)))["numbers"] == expected
    health = WindowHealth(**dict.fromkeys(WindowHealth._fields) | {"findings": [], "dimensions": []})
    assert as_dict(unpacked(packed(row, health))[0])["numbers"] == expected
