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
from apache_beam.transforms.window import GlobalWindows
from apache_beam.typehints import Tuple

import uldp_transforms
from tests.support import cases, replay
from tests.support.estimated import estimate_window
from uldp_transforms import (
    CountReports,
    CountsRows,
    DecodeReports,
    EstimateDistribution,
    EstimatedValue,
    EstimateReports,
    ReadReportFiles,
    ReleaseOnce,
    SummarizeLedger,
    Windows,
)
from uldp_transforms.collector.ledger_entries import LedgerEntry
from uldp_transforms.jobs.estimate.run import configure
from uldp_transforms.jobs.records.ledger_sums import missing
from uldp_transforms.ldp import CohortCounts, Collection, ReportBatch
from uldp_transforms.ldp.estimators import ESTIMATORS, expectation_maximization
from uldp_transforms.messages import wire
from uldp_transforms.messages.rejection import Rejection
from uldp_transforms.rows import json_and_avro as forms
from uldp_transforms.rows.row_types import (
    LedgerRow,
    RejectedReport,
    ValueEstimate,
    WindowCounts,
    WindowedEstimate,
    WindowHealth,
)
from uldp_transforms.rows.windowed_estimate import value_estimates
from uldp_transforms.spec.job_spec import JobSpec

ANIMALS = cases.COLLECTIONS["closed-sensitive-urr"]
PLACES = Collection.from_json(cases.COLLECTIONS["hashed-krr"].to_json() | {"id": "places", "version": 7})
MINUTE = 60_000
SLIDING = Windows(size=20 * MINUTE, slide=10 * MINUTE)


def spec_of(*collections: Collection, windows: Windows | None = None, **fields: Any) -> JobSpec:
    return JobSpec(collections=collections, windows=windows, candidates=cases.VALUES, **fields)


SPEC = spec_of(ANIMALS, windows=SLIDING)
ONCE = spec_of(ANIMALS, windows=SLIDING, deduplicate=True)


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
    with pytest.raises(
        AttributeError, match=r"module 'uldp_transforms' has the names CalendarWindows, .*, got 'Decode'"
    ):
        _ = uldp_transforms.Decode


# ---------------------------------------------------------------- labels, types and display data


def test_every_step_can_stand_twice_in_a_pipeline_under_its_own_label() -> None:
    messages = beam.Pipeline(options=replay.stream_options()) | replay.stream([])
    for label in ("first", "second"):
        decoded = messages | f"{label} decode" >> DecodeReports(ONCE)
        counted = decoded.reports | f"{label} count" >> CountReports(ONCE)
        once = counted.counts | f"{label} release" >> ReleaseOnce(ONCE)
        _ = once | f"{label} estimate" >> EstimateDistribution(ONCE)
        _ = once | f"{label} counts" >> CountsRows(ONCE)
        _ = (decoded.ledger, counted.ledger, decoded.rejected) | f"{label} ledger" >> SummarizeLedger(ONCE)
        _ = messages | f"{label} all" >> EstimateReports(ONCE)
    with pytest.raises(RuntimeError, match='label "first decode" already exists'):
        _ = messages | "first decode" >> DecodeReports(ONCE)


@pytest.mark.parametrize("deduplicate", [False, True])
def test_outputs_have_types(deduplicate: bool) -> None:
    pipeline = bounded()
    spec = ONCE if deduplicate else SPEC
    files = pipeline | ReadReportFiles("*.avro")
    decoded = files.messages | DecodeReports(spec)
    counted = decoded.reports | CountReports(spec)
    inputs = (files.ledger, decoded.ledger, counted.ledger, decoded.rejected, files.rejected)
    windows = counted.counts | EstimateDistribution(spec)
    rows = files | EstimateReports(spec, with_counts=True)
    types = [
        (files.messages, bytes),
        (files.rejected, Rejection),
        (files.ledger, LedgerEntry),
        (decoded.reports, ReportBatch),
        (decoded.rejected, Rejection),
        (decoded.ledger, LedgerEntry),
        (counted.ledger, LedgerEntry),
        (counted.counts, Tuple[bytes, CohortCounts]),
        (counted.counts | ReleaseOnce(spec), Tuple[bytes, CohortCounts]),
        (windows.estimates, WindowedEstimate),
        (windows.health, WindowHealth),
        (counted.counts | CountsRows(spec), WindowCounts),
        (inputs | SummarizeLedger(spec), LedgerRow),
        (rows.estimates, WindowedEstimate),
        (rows.values, EstimatedValue),
        (rows.health, WindowHealth),
        (rows.ledger, LedgerRow),
        (rows.rejected, RejectedReport),
        (rows.counts, WindowCounts),
    ]
    assert [output.element_type for output, _ in types] == [expected for _, expected in types]


def test_released_counts_have_a_type() -> None:
    """Of a stream, where they are held; of files they are the counts themselves."""
    decoded = beam.Pipeline(options=replay.stream_options()) | replay.stream([]) | DecodeReports(SPEC)
    counts = (decoded.reports | CountReports(SPEC)).counts
    released = counts | ReleaseOnce(SPEC)
    assert released is not counts
    assert released.element_type == Tuple[bytes, CohortCounts]


def test_what_is_grouped_is_never_pickled() -> None:
    """State of a running job outlives the versions of Python and numpy that wrote it."""
    pipeline = beam.Pipeline(options=replay.stream_options())
    decoded = pipeline | replay.stream([]) | DecodeReports(ONCE)
    counted = decoded.reports | CountReports(ONCE)
    _ = counted.counts | ReleaseOnce(ONCE)
    _ = (decoded.ledger, counted.ledger, decoded.rejected) | SummarizeLedger(ONCE)
    proto = pipeline.to_runner_api()
    context = PipelineContext(proto.components)
    keyed = {
        transform.unique_name: str(context.coders.get_by_id(proto.components.pcollections[inputs].coder_id))
        for transform in proto.components.transforms.values()
        if transform.spec.urn == common_urns.primitives.GROUP_BY_KEY.urn or _has_state(transform)
        for inputs in transform.inputs.values()
    }
    assert keyed == {
        "CountReports/CountNewReports/CountOnce/ParDo(_CountOnceFn)": "TupleCoder[BytesCoder, BytesCoder]",
        "CountReports/SumPeriods/GroupByKey": "TupleCoder[BytesCoder, CohortCountsCoder]",
        "CountReports/SumEachWindow/GroupByKey": "TupleCoder[BytesCoder, CohortCountsCoder]",
        "ReleaseOnce/HoldInNoWindow": "TupleCoder[BytesCoder, BytesCoder]",
        "SummarizeLedger/Sum/GroupByKey": "TupleCoder[StrUtf8Coder, MapCoder[StrUtf8Coder, VarIntCoder]]",
    }


def test_a_window_that_expires_says_nothing_again() -> None:
    """Engines in Java give a pane more of each window whose strategy asks for one, as Beam's Python does by itself."""
    pipeline = beam.Pipeline(options=replay.stream_options())
    decoded = pipeline | replay.stream([]) | DecodeReports(ONCE)
    counted = decoded.reports | CountReports(ONCE)
    _ = (decoded.ledger, counted.ledger, decoded.rejected) | SummarizeLedger(ONCE)
    parts = pipeline.to_runner_api().components
    grouped = {
        transform.unique_name: parts.windowing_strategies[parts.pcollections[inputs].windowing_strategy_id]
        for transform in parts.transforms.values()
        if transform.spec.urn == common_urns.primitives.GROUP_BY_KEY.urn
        for inputs in transform.inputs.values()
    }
    assert len(grouped) == 3
    quiet = beam_runner_api_pb2.ClosingBehavior.EMIT_IF_NONEMPTY
    assert {name for name, strategy in grouped.items() if strategy.closing_behavior != quiet} == set()
    assert all(strategy.allowed_lateness for strategy in grouped.values())


def _has_state(transform: Any) -> bool:
    pardo = common_urns.primitives.PAR_DO.urn
    return transform.spec.urn == pardo and bool(
        beam_runner_api_pb2.ParDoPayload.FromString(transform.spec.payload).state_specs
    )


@pytest.mark.parametrize(
    ("transform", "expected"),
    [
        (DecodeReports(spec_of(ANIMALS, PLACES)), {"collections": "animals v1, places v7"}),
        (
            CountReports(spec_of(ANIMALS)),
            {"allowed_lateness": "3600000ms", "deduplicate": False, "bit_patterns": False},
        ),
        (
            CountReports(spec_of(ANIMALS, windows=SLIDING, allowed_lateness=7, deduplicate=True, bit_patterns=True)),
            {
                "window": "1200000ms",
                "slide": "600000ms",
                "window_offset": "0ms",
                "allowed_lateness": "7ms",
                "deduplicate": True,
                "bit_patterns": True,
            },
        ),
        (EstimateDistribution(spec_of(ANIMALS, min_reports=5)), {"estimator": "eb", "min_reports": 5}),
    ],
)
def test_display_data(transform: beam.PTransform, expected: dict[str, Any]) -> None:
    items = DisplayData.create_from(transform).items
    assert {item.key: item.value for item in items} == expected


# ---------------------------------------------------------------- what they do with odd inputs


def test_decode_takes_the_global_window_with_any_trigger() -> None:
    every_message = trigger.Repeatedly(trigger.AfterCount(1))
    windowing = beam.WindowInto(
        GlobalWindows(), trigger=every_message, accumulation_mode=trigger.AccumulationMode.DISCARDING
    )
    batch = reports(3)
    with bounded() as pipeline:
        messages = pipeline | beam.Create(wire.encode_reports(batch)) | windowing
        decoded = messages | DecodeReports(SPEC)
        assert_that(decoded.reports | beam.FlatMap(lambda part: part.event_times.tolist()), equal_to(batch.event_times))
        assert_that(decoded.rejected, is_empty(), label="nothing is rejected")
        assert decoded.reports.windowing.is_default()  # later sums would fire whenever the trigger says so


@pytest.mark.parametrize(("windows", "deduplicate"), [(None, False), (SLIDING, True)], ids=["none", "sliding"])
def test_no_messages_make_no_rows(windows: Windows | None, deduplicate: bool) -> None:
    with bounded() as pipeline:
        spec = spec_of(ANIMALS, windows=windows, deduplicate=deduplicate)
        messages = pipeline | beam.Create([], reshuffle=False).with_output_types(bytes)
        decoded = messages | DecodeReports(spec)
        counted = decoded.reports | CountReports(spec)
        ledger = (decoded.ledger, counted.ledger, decoded.rejected) | SummarizeLedger(spec)
        estimated = counted.counts | EstimateDistribution(spec)
        assert_that(estimated.estimates, is_empty(), label="no estimates")
        assert_that(estimated.health, is_empty(), label="no findings")
        assert_that(ledger, is_empty(), label="no ledger")
        for name, rows in (messages | EstimateReports(spec, with_counts=True))._asdict().items():
            if rows is None:
                continue
            assert_that(rows, is_empty(), label=f"no {name} at all")


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
        for number in (row.unexplained_standard_error, row.redistributed_mass, row.num_values):
            assert (number is None) == (status != "ok")
        assert (row.unexplained_mass is None) == (row.unexplained_status == "too_uncertain" or status != "ok")
        for number in (row.unexplained_low, row.unexplained_high, row.unexplained_status):
            assert (number is None) == (status != "ok" or collection is ANIMALS)  # its list is complete
        assert (row.fit_p_value is None) == (status != "ok" or collection is ANIMALS)  # of hashed alphabets only
        assert row.software == f"uldp_transforms {uldp_transforms.__version__}"
        expected: list[ValueEstimate] = []
        if status == "ok":
            candidates = cases.VALUES if collection is PLACES else None
            expected = value_estimates(collection.estimate(counts, "normalized", candidates))
        assert row.estimates == expected

    with bounded() as pipeline:
        windows = (
            pipeline
            | beam.Create([(collection.fingerprint, counts)])
            | EstimateDistribution(spec_of(ANIMALS, PLACES, estimator="normalized", min_reports=min_reports))
        )
        assert_that(windows.estimates, check)


PLACE = {"window_start": None, "window_end": None, "pane_index": 0, "pane_timing": "ON_TIME"}


def test_an_estimate_that_ran_out_of_steps_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = PLACES.count(reports(900, PLACES))
    for steps, expected in ((2_000, "ok"), (1, "not_converged")):
        monkeypatch.setattr(expectation_maximization, "MAX_STEPS", steps)
        row = estimate_window(PLACES, counts, PLACE, ESTIMATORS["em"](), tuple(cases.VALUES), None)
        assert (row.status, row.num_reports, bool(row.estimates)) == (expected, 900, expected == "ok")
        assert (row.num_values is None) == (expected != "ok")


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
    spec = spec_of(ANIMALS, PLACES, windows=SLIDING, deduplicate=deduplicate, min_reports=1)
    with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
        outputs = pipeline | beam.Create(messages) | EstimateReports(spec, with_counts=True)
        for name, rows in (("estimates", outputs.estimates), ("ledger", outputs.ledger)):
            lines = rows | f"{name} as JSON" >> beam.Map(forms.to_json)
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
    assert not any(map(missing, ledger_rows))
    assert [row["unread_messages"] for row in ledger_rows if row["unread_messages"]] == [{"malformed": 1}]


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
    _, pipeline = configure([*source, *output, *options, *dataflow])
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
