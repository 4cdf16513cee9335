"""The transforms as a user of Beam meets them: names, types, labels, what goes in and out, and on which runners."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import apache_beam as beam
import numpy as np
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.portability import common_urns
from apache_beam.portability.api import beam_runner_api_pb2
from apache_beam.runners.pipeline_context import PipelineContext
from apache_beam.testing.util import assert_that, equal_to, is_empty
from apache_beam.transforms import trigger
from apache_beam.transforms.display import DisplayData
from apache_beam.transforms.window import FixedWindows, GlobalWindows
from apache_beam.typehints import Tuple

import uldp_transforms
from tests.support import cases
from uldp_transforms import (
    CountReports,
    CountsRows,
    DecodeReports,
    EstimateDistribution,
    ReadReportFiles,
    ReleaseOnce,
    SummarizeLedger,
    Windows,
    wire,
)
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch, SpecError
from uldp_transforms.ldp.estimators import ESTIMATORS, expectation_maximization
from uldp_transforms.ledger import LedgerEntry
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.pipelines import estimate
from uldp_transforms.rows.ledger_row import LedgerRow
from uldp_transforms.rows.window_counts import WindowCounts
from uldp_transforms.rows.window_health import WindowHealth
from uldp_transforms.rows.windowed_estimate import Row, WindowedEstimate, estimate_window

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
PLACES = Collection.from_json(cases.COLLECTIONS["hashed-krr"].to_json() | {"id": "places", "version": 7})
MINUTE = 60_000
SLIDING = Windows(size=20 * MINUTE, slide=10 * MINUTE)


def reports(n: int, collection: Collection = ANIMALS, first: int = 0) -> ReportBatch:
    """Seeded reports, one a minute."""
    rng = np.random.default_rng(n)
    times = first + np.arange(n) * MINUTE
    return collection.perturb(rng.choice(cases.VALUES, n).tolist(), rng, times)


def bounded() -> beam.Pipeline:
    return beam.Pipeline(options=PipelineOptions(["--runner=FnApiRunner"]))


# ---------------------------------------------------------------- the package


@pytest.mark.parametrize("name", uldp_transforms.__all__)
def test_public_names_are_classes_of_that_name(name: str) -> None:
    assert getattr(uldp_transforms, name).__name__ == name


def test_there_are_no_other_names() -> None:
    assert uldp_transforms.__all__ == sorted(uldp_transforms.__all__)
    with pytest.raises(AttributeError, match=r"module 'uldp_transforms' has the names CountReports, .*, got 'Decode'"):
        _ = uldp_transforms.Decode


# ---------------------------------------------------------------- labels, types and display data


def test_every_step_can_stand_twice_in_a_pipeline_under_its_own_label() -> None:
    pipeline = bounded()
    messages = pipeline | beam.Create([b""])
    for label in ("first", "second"):
        decoded = messages | f"{label} decode" >> DecodeReports([ANIMALS])
        counted = decoded.reports | f"{label} count" >> CountReports([ANIMALS], SLIDING, deduplicate=True)
        once = counted.counts | f"{label} release" >> ReleaseOnce(SLIDING)
        _ = once | f"{label} estimate" >> EstimateDistribution([ANIMALS])
        _ = once | f"{label} counts" >> CountsRows([ANIMALS])
        _ = (decoded.received, counted.ledger, decoded.rejected) | f"{label} ledger" >> SummarizeLedger(
            [ANIMALS], SLIDING
        )
    with pytest.raises(RuntimeError, match='label "first decode" already exists'):
        _ = messages | "first decode" >> DecodeReports([ANIMALS])


@pytest.mark.parametrize("deduplicate", [False, True])
def test_outputs_have_types(deduplicate: bool) -> None:
    pipeline = bounded()
    files = pipeline | ReadReportFiles("*.avro")
    decoded = files.messages | DecodeReports([ANIMALS])
    counted = decoded.reports | CountReports([ANIMALS], SLIDING, deduplicate=deduplicate)
    inputs = (files.received, decoded.received, counted.ledger, decoded.rejected, files.rejected)
    windows = counted.counts | EstimateDistribution([ANIMALS])
    types = [
        (files.messages, bytes),
        (files.rejected, Rejection),
        (files.received, LedgerEntry),
        (decoded.reports, ReportBatch),
        (decoded.rejected, Rejection),
        (decoded.received, LedgerEntry),
        (counted.ledger, LedgerEntry),
        (counted.counts, Tuple[bytes, CohortCounts]),
        (counted.counts | ReleaseOnce(SLIDING), Tuple[bytes, CohortCounts]),
        (windows.estimates, WindowedEstimate),
        (windows.health, WindowHealth),
        (counted.counts | CountsRows([ANIMALS]), WindowCounts),
        (inputs | SummarizeLedger([ANIMALS], SLIDING), LedgerRow),
    ]
    assert [output.element_type for output, _ in types] == [expected for _, expected in types]


def test_what_is_grouped_is_never_pickled() -> None:
    """State of a running job outlives the versions of Python and numpy that wrote it."""
    pipeline = bounded()
    decoded = pipeline | beam.Create([b""]) | DecodeReports([ANIMALS])
    counted = decoded.reports | CountReports([ANIMALS], SLIDING, deduplicate=True)
    _ = counted.counts | ReleaseOnce(SLIDING)
    _ = (decoded.received, counted.ledger, decoded.rejected) | SummarizeLedger([ANIMALS], SLIDING)
    proto = pipeline.to_runner_api()
    context = PipelineContext(proto.components)
    keyed = {
        transform.unique_name: str(context.coders.get_by_id(proto.components.pcollections[inputs].coder_id))
        for transform in proto.components.transforms.values()
        if transform.spec.urn == common_urns.primitives.GROUP_BY_KEY.urn or _has_state(transform)
        for inputs in transform.inputs.values()
    }
    assert keyed == {
        "CountReports/CountNewReports/CountNew/ParDo(_CountNewFn)": "TupleCoder[BytesCoder, BytesCoder]",
        "CountReports/SumBasePeriods/GroupByKey": "TupleCoder[BytesCoder, CohortCountsCoder]",
        "CountReports/SumWindows/GroupByKey": "TupleCoder[BytesCoder, CohortCountsCoder]",
        "ReleaseOnce/Hold": "TupleCoder[BytesCoder, CohortCountsCoder]",
        "SummarizeLedger/Sum/GroupByKey": "TupleCoder[StrUtf8Coder, MapCoder[StrUtf8Coder, VarIntCoder]]",
    }


def _has_state(transform: Any) -> bool:
    pardo = common_urns.primitives.PAR_DO.urn
    return transform.spec.urn == pardo and bool(
        beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload).state_specs
    )


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (DecodeReports([ANIMALS, PLACES]), {"collections": "animals v1, places v7"}),
        (CountReports([ANIMALS]), {"windows": "None", "deduplicate": False, "bit_patterns": False}),
        (
            CountReports([ANIMALS], SLIDING, deduplicate=True, bit_patterns=True),
            {"windows": str(SLIDING), "deduplicate": True, "bit_patterns": True},
        ),
        (EstimateDistribution([ANIMALS], min_reports=5), {"estimator": "projected", "min_reports": 5}),
    ],
)
def test_display_data(transform: beam.PTransform, expected: dict[str, Any]) -> None:
    items = DisplayData.create_from(transform).items
    assert {item.key: item.value for item in items} == expected


# ---------------------------------------------------------------- what they do with odd inputs


def test_decode_refuses_messages_in_windows() -> None:
    messages = bounded() | beam.Create([b""])
    with pytest.raises(SpecError) as error:
        _ = messages | beam.WindowInto(FixedWindows(60)) | DecodeReports([ANIMALS])
    expected = "DecodeReports needs messages in the global window (reports carry their own time), got FixedWindows"
    assert str(error.value).startswith(expected)


def test_decode_takes_the_global_window_with_any_trigger() -> None:
    every_message = trigger.Repeatedly(trigger.AfterCount(1))
    windowing = beam.WindowInto(
        GlobalWindows(), trigger=every_message, accumulation_mode=trigger.AccumulationMode.DISCARDING
    )
    batch = reports(3)
    with bounded() as pipeline:
        messages = pipeline | beam.Create(wire.encode_reports(batch)) | windowing
        decoded = messages | DecodeReports([ANIMALS])
        assert_that(decoded.reports | beam.FlatMap(lambda part: part.event_times.tolist()), equal_to(batch.event_times))
        assert_that(decoded.rejected, is_empty(), label="nothing is rejected")


@pytest.mark.parametrize("deduplicate", [False, True])
@pytest.mark.parametrize("windows", [None, SLIDING], ids=["none", "sliding"])
def test_no_messages_make_no_rows(windows: Windows | None, deduplicate: bool) -> None:
    with bounded() as pipeline:
        decoded = pipeline | beam.Create([], reshuffle=False).with_output_types(bytes) | DecodeReports([ANIMALS])
        counted = decoded.reports | CountReports([ANIMALS], windows, deduplicate=deduplicate)
        ledger = (decoded.received, counted.ledger, decoded.rejected) | SummarizeLedger([ANIMALS], windows)
        windows = counted.counts | EstimateDistribution([ANIMALS])
        assert_that(windows.estimates, is_empty(), label="no estimates")
        assert_that(windows.health, is_empty(), label="no findings")
        assert_that(ledger, is_empty(), label="no ledger")


ONE_COHORT = np.array([50] + [0] * (PLACES.num_cohorts - 1))
NOT_ENOUGH = CohortCounts(ONE_COHORT, np.outer(ONE_COHORT, [1, 0, 0, 0]))


@pytest.mark.parametrize(
    ("collection", "counts", "min_reports", "status"),
    [
        pytest.param(ANIMALS, ANIMALS.count(reports(50)), 50, "ok", id="enough reports"),
        pytest.param(ANIMALS, ANIMALS.count(reports(50)), 51, "suppressed", id="one report is missing"),
        pytest.param(PLACES, PLACES.count(reports(900, PLACES)), 1, "ok", id="enough cohorts"),
        pytest.param(PLACES, NOT_ENOUGH, 1, "insufficient_cohorts", id="one cohort cannot tell six values apart"),
        pytest.param(PLACES, NOT_ENOUGH, 51, "suppressed", id="suppressed says nothing else"),
    ],
)
def test_every_count_makes_a_row(collection: Collection, counts: CohortCounts, min_reports: int, status: str) -> None:
    """And only a row that is ok has numbers."""

    def check(rows: list[WindowedEstimate]) -> None:
        (row,) = rows
        assert row.status == status
        assert (row.collection_id, row.collection_version) == (collection.id, collection.version)
        assert (row.fingerprint, row.estimator) == (collection.fingerprint.hex(), "normalized")
        assert (row.window_start, row.window_end, row.pane_index, row.pane_timing) == (None, None, 0, "ON_TIME")
        assert row.num_reports == (None if status == "suppressed" else counts.total)
        for number in (row.unexplained_mass, row.unexplained_standard_error, row.redistributed_mass):
            assert (number is None) == (status != "ok")
        assert (row.fit_p_value is None) == (status != "ok" or collection is ANIMALS)  # of hashed alphabets only
        assert row.software == f"uldp_transforms {uldp_transforms.__version__}"
        expected: list[dict[str, Any]] = []
        if status == "ok":
            candidates = cases.VALUES if collection is PLACES else None
            expected = WindowedEstimate.values_of(collection.estimate(counts, "normalized", candidates))
        assert row.estimates == expected

    with bounded() as pipeline:
        windows = (
            pipeline
            | beam.Create([(collection.fingerprint, counts)])
            | EstimateDistribution([ANIMALS, PLACES], "normalized", cases.VALUES, min_reports)
        )
        assert_that(windows.estimates, check)


PLACE = {"window_start": 0, "window_end": 1, "pane_index": 0, "pane_timing": "ON_TIME"}


def test_an_estimate_that_ran_out_of_steps_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = PLACES.count(reports(900, PLACES))
    for steps, expected in ((2_000, "ok"), (1, "not_converged")):
        monkeypatch.setattr(expectation_maximization, "MAX_STEPS", steps)
        row = estimate_window(PLACES, counts, PLACE, ESTIMATORS["em"](), tuple(cases.VALUES), None)
        assert (row.status, row.num_reports, bool(row.estimates)) == (expected, 900, expected == "ok")
        assert (row.unexplained_mass is None) == (expected != "ok")


# ---------------------------------------------------------------- runners


RUNNERS = {
    "two processes": ["--runner=FnApiRunner", "--direct_running_mode=multi_processing", "--direct_num_workers=2"],
    "portable": ["--runner=PortableRunner", "--job_endpoint=embed", "--environment_type=LOOPBACK"],
}


@pytest.mark.parametrize(
    ("options", "deduplicate"),
    [(RUNNERS["two processes"], False), (RUNNERS["two processes"], True), (RUNNERS["portable"], True)],
    ids=["two processes", "two processes, each id once", "portable, each id once"],
)
def test_other_workers_give_the_same_rows(options: list[str], deduplicate: bool, tmp_path: Path) -> None:
    """All that is sent to another process, or through the portable form of a pipeline, arrives there."""
    animals, places = reports(40), reports(400, PLACES)
    messages = [*wire.encode_reports(animals), wire.encode_batch(places), b"\x02garbage"]
    messages += wire.encode_reports(places[:30]) * deduplicate
    collections = [ANIMALS, PLACES]
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        decoded = pipeline | beam.Create(messages) | DecodeReports(collections, windows=SLIDING)
        counted = decoded.reports | CountReports(collections, SLIDING, deduplicate=deduplicate)
        estimates, _ = counted.counts | EstimateDistribution(collections, candidates=cases.VALUES, min_reports=1)
        ledger = (decoded.received, counted.ledger, decoded.rejected) | SummarizeLedger(collections, SLIDING)
        for name, rows in (("estimates", estimates), ("ledger", ledger)):
            lines = rows | f"{name} as JSON" >> beam.Map(Row.to_json)
            _ = lines | f"Write {name}" >> beam.io.WriteToText(str(tmp_path / name))

    def read(name: str) -> list[dict[str, Any]]:
        return [json.loads(line) for path in tmp_path.glob(f"{name}-*") for line in path.read_text().splitlines()]

    totals = {"animals": 0, "places": 0}
    for row in read("estimates"):
        totals[row["collection_id"]] += row["num_reports"]
    assert totals == {"animals": 2 * 40, "places": 2 * 400}, "each report is in two windows"
    ledger_rows = read("ledger")
    assert sum(row["accepted"] for row in ledger_rows) == 440
    assert sum(row["duplicates"] for row in ledger_rows) == 30 * deduplicate
    assert all(not estimate.unbalanced([row]) for row in ledger_rows)
    assert [row["rejected"] for row in ledger_rows if row["rejected"]] == [{"malformed": 1}]


TOPIC = "projects/demo-project/topics/rows"


def steps_on_dataflow(folder: Path, options: list[str]) -> list[str]:
    """Names of all steps of the streaming job as Dataflow gets it; nothing is sent."""
    collection = folder / "animals.json"
    collection.write_text(json.dumps(ANIMALS.to_json()), encoding="utf-8")
    output = [f"--output={folder / 'output'}", f"--output_topic={TOPIC}"]
    # a bucket must have a possible name, and a region be given: Beam would ask the network otherwise
    storage = ["--temp_location=gs://demo-bucket/tmp", "--staging_location=gs://demo-bucket/stg"]
    dataflow = ["--runner=DataflowRunner", "--project=demo-project", "--region=us-central1", "--dry_run=True", *storage]
    source = [f"--collection={collection}", "--subscription=projects/demo-project/subscriptions/reports"]
    _, pipeline = estimate.configure([*source, *output, *options, *dataflow])
    result = pipeline.run()
    assert (result.state, result.job.proto.type.name) == ("DONE", "JOB_TYPE_STREAMING")
    steps = result.job.proto_pipeline.components.transforms.values()
    return sorted(step.unique_name for step in steps if not step.unique_name.startswith("ref_"))  # not the root


def test_steps_keep_their_names(tmp_path: Path) -> None:
    """A running Dataflow job can be updated only if the steps with state keep their names."""
    options = {
        "fixed": ["--window=1h"],
        "sliding": ["--window=1h", "--slide=15m", "--early_every=1m"],
        "once": ["--window=1h", "--deduplicate", "--release=final", "--write_counts", f"--rejected_topic={TOPIC}"],
    }
    jobs = {name: steps_on_dataflow(tmp_path, chosen) for name, chosen in options.items()}
    steps = [
        {"step": step, "jobs": [name for name, names in jobs.items() if step in names]}
        for step in sorted({step for names in jobs.values() for step in names})
    ]
    assert steps == cases.golden("transforms.json", lambda: steps)
