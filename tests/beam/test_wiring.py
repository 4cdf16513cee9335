"""Transforms that are wired wrongly say so when the pipeline is built, in one sentence that tells what was seen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import PipelineVisitor
from apache_beam.testing.util import assert_that, equal_to
from apache_beam.transforms.window import FixedWindows, GlobalWindows, SlidingWindows, WindowFn

from tests.support import replay
from tests.support.messages_cases import KRR, container, write_files
from tests.support.refusals.jobs.wiring import FIXED, SLIDING, WHOLE, counts, endless, reports, some
from uldp_transforms import (
    CountReports,
    CountsRows,
    EstimateDistribution,
    EstimateReports,
    JobSpec,
    ReadReportFiles,
)
from uldp_transforms.beam.transforms.gather_messages import GATHERED
from uldp_transforms.collector.ledger_entries import LedgerEntry
from uldp_transforms.messages import wire
from uldp_transforms.windows import LATENESS_SLACK

# ---------------------------------------------------------------------- what is no error


@pytest.mark.parametrize("spec", [FIXED, SLIDING, WHOLE], ids=["fixed", "sliding", "none"])
def test_right_wiring_is_taken(spec: JobSpec) -> None:
    """Also through steps that keep the windows, and elements of unknown type."""
    batches = reports(spec) | beam.Reshuffle() | "Same" >> beam.Map(lambda batch: batch).with_output_types(Any)
    assert batches.element_type is beam.typehints.Any
    pairs = (batches | CountReports(spec)).counts | "Keep" >> beam.Filter(bool)
    _ = pairs | EstimateDistribution(spec)
    _ = pairs | CountsRows(spec)


@pytest.mark.parametrize(
    ("window_fn", "window", "slide", "offset"),
    [
        (FixedWindows(60), "60s", None, None),
        (FixedWindows(60, 7), "60s", None, "7s"),
        (SlidingWindows(60, 20), "60s", "20s", None),
        (SlidingWindows(60, 20, 7), "60s", "20s", "7s"),
        (GlobalWindows(), None, None, None),
    ],
)
def test_counts_are_in_the_windows_of_beam(window_fn: WindowFn, window: Any, slide: Any, offset: Any) -> None:
    values = {"collections": [KRR], "window": window, "slide": slide, "window_offset": offset}
    for spec in (JobSpec.of(**values), JobSpec.of(collections=[KRR], window=window_fn)):
        assert counts(spec).windowing.windowfn == window_fn
        assert reports(spec).windowing.windowfn == GlobalWindows()
        assert (
            some() | f"All {spec.windows}" >> EstimateReports(spec, with_counts=True)
        ).counts.windowing.windowfn == window_fn


def test_each_step_learns_from_its_input_whether_it_ends() -> None:
    """In a stream windows have triggers and lateness, of files they have none; one specification makes both."""
    streamed, of_files = counts(FIXED, endless()).windowing, counts(FIXED).windowing
    seconds = (FIXED.allowed_lateness + 10 * 365 * 86_400_000) / 1000  # on an engine whose watermark is the clock
    assert float(streamed.allowed_lateness) == seconds
    assert float(of_files.allowed_lateness) == 0
    assert streamed.triggerfn != of_files.triggerfn == beam.transforms.trigger.DefaultTrigger()


@pytest.mark.parametrize(
    ("options", "slack"),
    [
        (["--streaming"], 10 * 365 * 86_400_000),
        (["--runner=BundleBasedDirectRunner", "--streaming"], 10 * 365 * 86_400_000),
        (["--runner=BundleBasedDirectRunner"], LATENESS_SLACK),
        (["--runner=FnApiRunner", "--streaming"], LATENESS_SLACK),
        (["--runner=PrismRunner", "--streaming"], LATENESS_SLACK),
    ],
)
def test_slack_is_as_the_engine_needs(options: list[str], slack: int) -> None:
    """Local engines of streams take the clock for the watermark: it runs ahead of messages of the past by years."""
    messages = beam.Pipeline(options=PipelineOptions(options)) | replay.stream([])
    lateness = counts(FIXED, messages).windowing.allowed_lateness
    assert lateness.micros == 1000 * (FIXED.allowed_lateness + slack)


@pytest.mark.parametrize("grouped", [False, True])
def test_the_output_of_files_goes_through_the_pipe_as_it_is(tmp_path: Path, grouped: bool) -> None:
    """And its messages alone are taken too."""
    batch = KRR.perturb(["1"] * 5, event_times=[0] * 5)
    write_files(tmp_path, {"a.avro": container([(1, m) for m in wire.encode_reports(batch)]), "b.avro": b"none"})
    with beam.Pipeline(options=PipelineOptions([])) as pipeline:
        files = pipeline | ReadReportFiles(f"{tmp_path}/*.avro", grouped=grouped)
        whole, part = files | "Whole" >> EstimateReports(FIXED), files.messages | "Part" >> EstimateReports(FIXED)
        unread = (0, {"bad_magic": 1})
        for name, outputs, expected in (("whole", whole, [(5, {}), unread]), ("part", part, [(5, {})])):
            numbers = outputs.ledger | f"Numbers {name}" >> beam.Map(lambda row: (row.received, row.unread_files))
            assert_that(numbers, equal_to(expected), label=f"Check {name}")


class _Flattened(PipelineVisitor):  # type: ignore[misc]  # Beam has no types here
    """Collects the types of elements that pass a ``Flatten``."""

    def __init__(self) -> None:
        self.types: list[Any] = []

    def visit_transform(self, node: Any) -> None:
        if isinstance(node.transform, beam.Flatten):
            self.types += [elements.element_type for elements in node.inputs]


def test_messages_of_files_in_groups_pass_no_flatten(tmp_path: Path) -> None:
    """Beam's local engine holds all that passes one: the messages of a whole job, several times over."""
    write_files(tmp_path, {"a.avro": container([])})
    pipeline = beam.Pipeline(options=PipelineOptions([]))
    _ = pipeline | ReadReportFiles(f"{tmp_path}/*.avro", grouped=True) | EstimateReports(FIXED)
    seen = _Flattened()
    pipeline.visit(seen)
    assert LedgerEntry in seen.types
    assert GATHERED not in seen.types
