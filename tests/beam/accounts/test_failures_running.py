"""Time, configuration and the running job: rows of ``docs/failures.md`` that no other file covers."""

from __future__ import annotations

import ast
import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import numpy as np
import pytest
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.pipeline import PipelineVisitor
from apache_beam.utils.timestamp import Timestamp
from google.cloud.pubsub_v1 import PublisherClient, SubscriberClient
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.pubsub.pubsub_server import PubsubServer
from tests.support import cases, replay
from tests.support.messages_cases import KRR, NOON, container, decoder, long, single, write_files
from tests.support.project.sources import tree_of
from tests.support.together import together
from tests.support.tolerance import generator
from uldp_transforms import CountReports, DecodeReports, Windows
from uldp_transforms.beam.transforms.count_reports import _CountBundleFn
from uldp_transforms.jobs import estimate
from uldp_transforms.jobs.estimate import run
from uldp_transforms.jobs.estimate.run import build
from uldp_transforms.jobs.records.run_records import read_records
from uldp_transforms.jobs.sources import PubSubSubscription
from uldp_transforms.ldp import Collection, SpecError
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.messages import wire
from uldp_transforms.windows import MAX_EVENT_TIME, MIN_EVENT_TIME, BasePeriods, TimeGate

ROOT = Path(__file__).parents[3]
SOURCES = {
    str(path.relative_to(ROOT)): path
    for name in ("uldp_transforms", "pipelines")
    for path in (ROOT / name).rglob("*.py")
}
HOUR = 3_600_000
DAY = 24 * HOUR


def nodes(name: str) -> Iterator[ast.AST]:
    return ast.walk(tree_of(SOURCES[name]))


# ---------------------------------------------------------------------- time


@pytest.mark.parametrize(
    ("unit", "reason"),
    [(1_000, Reason.TOO_OLD), (1, None), (1 / 1_000, Reason.TIME_RANGE), (1 / 1_000_000, Reason.TIME_RANGE)],
    ids=["seconds", "milliseconds", "microseconds", "nanoseconds"],
)
def test_a_clock_of_another_unit_is_refused_in_a_stream(unit, reason):
    """Seconds taken for milliseconds are January 1970; in files they count there, for nothing in a file is late."""
    message = single(event_time=long(int(NOON / unit)))
    gate = TimeGate(periods=BasePeriods(HOUR), allowed_lateness=365 * DAY)
    assert [found.reason for found in decoder(gate=gate).decode([message], np.array([NOON]))[1]] == [reason] * bool(
        reason
    )
    assert [found.reason for found in decoder().decode([message])[1]] == [reason] * (reason is Reason.TIME_RANGE)


def test_a_watermark_that_stands_still_releases_nothing():
    """However long the worker's clock goes on; when the watermark comes, without a message, there is one row."""
    parts = [wire.encode_reports(KRR.perturb(["0"] * 3, generator("still", moment), [moment] * 3)) for moment in (0, 1)]
    events = [replay.arrive(0, parts[0]), replay.clock(7 * DAY), replay.arrive(1, parts[1]), replay.clock(7 * DAY)]
    for more in ([], [replay.watermark(HOUR)]):
        rows = replay.replay(replay.streaming_job([KRR], Windows(size=HOUR)), [*events, *more])["estimates"]
        assert [(row.num_reports, row.pane_timing) for row in rows] == [(6, "ON_TIME")]


def test_nothing_that_a_sender_chooses_stamps_or_names_a_message():
    """No attribute is read: neither as a time, nor as an id, nor at all."""
    found = []

    class Visitor(PipelineVisitor):
        def visit_transform(self, node):
            self.enter_composite_transform(node)

        def enter_composite_transform(self, node):
            if isinstance(node.transform, beam.io.ReadFromPubSub):
                found.append(node.transform)

    pipeline = beam.Pipeline(options=replay.stream_options())
    source = PubSubSubscription("projects/my-project/subscriptions/s")
    build(pipeline, dataclasses.replace(replay.streaming_job([KRR], Windows(size=HOUR)), source=source))
    pipeline.visit(Visitor())
    [read] = found
    assert (read.with_attributes, read._source.timestamp_attribute, read._source.id_label) == (False, None, None)


@together("name", SOURCES)
def test_no_pane_is_believed_to_be_the_last(name):
    """Beam's flag is true for panes that are not, and false for panes that are; the release goes by a timer."""
    assert not [node for node in nodes(name) if isinstance(node, ast.Attribute) and node.attr == "is_last"]


# ---------------------------------------------------------------------- configuration


@given(st.text(max_size=70))
def test_names_are_of_few_letters(text):
    """No path, no other alphabet, no sign that changes the direction of a line: names stand in rows and files."""
    allowed = 1 <= len(text) <= 64 and not set(text) - set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    try:
        Collection.from_json(KRR.to_json() | {"id": text})
    except SpecError as error:
        assert not allowed and str(error).startswith("Collection.id must be ")
    else:
        assert allowed


@pytest.mark.parametrize(
    "text", ["a\0", "a\n", "\u202ea", "\ufeffa", "\u0430", "A", "", "a" * 65, "../a", "a b", "\ud800"]
)
def test_names_that_look_like_others_are_refused(text):
    with pytest.raises(SpecError, match=r"^Collection\.id must be 1 to 64 of the characters"):
        Collection.from_json(KRR.to_json() | {"id": text})


@pytest.mark.parametrize(
    "argv",
    [
        "simulate --values v.csv --topic projects/my-project/topics/reports",
        "estimate --subscription projects/my-project/subscriptions/reports --output out --window 1h",
    ],
)
def test_a_machine_without_credentials_is_told_so(argv, tmp_path):
    """In the last line, after at most one of Google's own, and with the exit code of a wrong configuration."""
    write_files(tmp_path, {"krr.json": KRR, "v.csv": "value\n0\n"})
    nobody = {"HOME": str(tmp_path), "CLOUDSDK_CONFIG": str(tmp_path), "NO_GCE_CHECK": "true", "PYTHONPATH": str(ROOT)}
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("GOOGLE_", "PUBSUB_", "GCE_"))}
    program, *options = argv.split()
    command = [sys.executable, "-m", f"pipelines.{program}", "--collection=krr.json", *options]
    done = subprocess.run(command, cwd=tmp_path, env=kept | nobody, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    *warnings, said = done.stderr.splitlines()
    assert len(warnings) <= 1
    assert said.startswith(f"{program}: Google Cloud needs credentials (gcloud auth application-default login), got: ")


def test_our_settings_of_flink_have_checkpoints():
    """Without an interval Flink keeps no state of a stream, and says nothing."""
    settings = yaml.safe_load((ROOT / "tests/rigs/flink/config.yaml").read_text(encoding="utf-8"))
    assert re.fullmatch(r"[1-9][0-9]* ?(ms|s|min)", settings["execution"]["checkpointing"]["interval"])


# ---------------------------------------------------------------------- the running job

HOT = cases.COLLECTIONS["closed-krr"]
COLD = Collection.from_json(cases.COLLECTIONS["closed-sensitive-urr"].to_json() | {"id": "cold"})


def test_a_hot_collection_is_one_element_a_bundle():
    """999 of 1,000 reports are of one collection: what is shuffled is a sum for each collection, not the reports."""
    counter = _CountBundleFn(replay.spec([HOT, COLD], Windows(size=DAY)))
    counter.start_bundle()
    parts = [(HOT, 999, part) for part in range(20)] + [(COLD, 1, part) for part in range(20)]
    batches = [of.perturb(["ant"] * n, generator("hot", of.id, part), [NOON] * n) for of, n, part in parts]
    assert not [element for batch in batches for element in counter.process(batch, Timestamp(0))]
    out = [element for element in counter.finish_bundle() if not isinstance(element, beam.pvalue.TaggedOutput)]
    assert sorted(element.value[1].total for element in out) == [20, 19_980]


def test_a_hot_collection_has_the_counts_of_its_reports():
    parts = [HOT.perturb(["ant"] * 9_990, generator("hot"), [NOON] * 9_990)]
    parts += [COLD.perturb(["ant"] * 10, generator("cold"), [NOON] * 10)]
    messages = [message for part in parts for message in wire.encode_reports(part)]
    spec = replay.spec([HOT, COLD], Windows(size=DAY))
    with replay.collector() as (keep, panes):
        options = ["--runner=FnApiRunner", "--direct_num_workers=2", "--direct_running_mode=multi_threading"]
        with beam.Pipeline(options=PipelineOptions(options)) as pipeline:
            spread = pipeline | beam.Create(messages) | beam.Reshuffle() | DecodeReports(spec)
            counted = spread.reports | CountReports(spec)
            _ = counted.counts | keep
        found = dict(element for element, _, _ in panes)
    assert found == {of.fingerprint: of.count(part) for of, part in zip((HOT, COLD), parts)}


def test_a_report_is_made_once_and_sent_again_as_it_is():
    """The same bytes, id and time in every retry; making it again would be another report."""
    batch = KRR.perturb(["0"])
    assert wire.encode_reports(batch) == wire.encode_reports(batch)
    assert KRR.perturb(["0"]).report_ids.tobytes() != batch.report_ids.tobytes()


UNPICKLING = {
    "pickle",
    "cPickle",
    "_pickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "joblib",
    "yaml",
    "jsonpickle",
}
EXECUTING = {"eval", "exec", "compile", "__import__", "PickleCoder", "DillCoder", "CloudpickleCoder", "allow_pickle"}


def executes(node: ast.AST) -> str | None:
    """The name by which a program would run what it reads; None if there is none."""
    names: set[str] = set()
    if isinstance(node, ast.Import):
        names = {alias.name.split(".")[0] for alias in node.names} & UNPICKLING
    elif isinstance(node, ast.ImportFrom):
        names = {(node.module or "").split(".")[0]} & UNPICKLING | {alias.name for alias in node.names} & EXECUTING
    elif isinstance(node, ast.Name):
        names = {node.id} & EXECUTING
    elif isinstance(node, ast.Attribute):
        names = {node.attr} & (EXECUTING - {"compile"})  # re.compile is no harm
    elif isinstance(node, ast.keyword):
        names = {node.arg or ""} & EXECUTING
    return min(names, default=None)


@together("name", SOURCES)
def test_no_program_runs_what_it_reads(name):
    """Neither messages nor files nor configurations are unpickled or evaluated."""
    assert not [found for node in nodes(name) if (found := executes(node))]


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from dill import loads",
        "eval(text)",
        "np.load(file, allow_pickle=True)",
        "coders.PickleCoder()",
        "from apache_beam.coders import PickleCoder",
        "builtins.exec(text)",
    ],
)
def test_the_rule_would_find_one(line):
    assert any(map(executes, ast.walk(ast.parse(line))))


@pytest.mark.parametrize("moment", [MIN_EVENT_TIME, MAX_EVENT_TIME - 1])
@pytest.mark.parametrize("window", ["1ms", "365d", "365d --slide 1d"])
def test_the_first_and_the_last_moment_have_a_window(moment, window, tmp_path, monkeypatch):
    """Whose end has a name too, in every form of the rows."""
    monkeypatch.chdir(tmp_path)
    batch = HOT.perturb(["ant"] * 3, generator("moment", moment), [moment] * 3)
    blocks = [(1, message) for message in wire.encode_reports(batch)]
    write_files(tmp_path, {"hot.json": HOT, "in.avro": container(blocks)})
    argv = f"--collection hot.json --input in.avro --output out --window {window} --min_reports 1 --write_counts"
    assert estimate.main(argv.split()) == 0
    rows = [json.loads(line) for line in (tmp_path / "out/estimates.jsonl").read_text().splitlines()]
    assert {row["num_reports"] for row in rows} == {3}
    assert len(rows) == (365 if "slide" in window else 1)


CUT_OFF = "cancelled: reports that were not yet written are in no row"

STOPPED_WAITING = {
    "BundleBasedDirectRunner": CUT_OFF,
    "PrismRunner": CUT_OFF,
    "FlinkRunner": CUT_OFF,
    "FlinkRunner --flink_master=[local]": CUT_OFF,
    "FlinkRunner --flink_master=flink:8081": "the job goes on; stop or cancel it on Flink",
    "FlinkRunner --job_endpoint=flink:8099": "the job goes on; stop or cancel it on Flink",
    "PortableRunner --job_endpoint=embed": CUT_OFF,
    "PortableRunner --job_endpoint=flink:8099": "the job goes on; stop or cancel it on its engine",
    "DataflowRunner": "the job goes on; drain or cancel it on Dataflow",
}


@pytest.mark.parametrize(("runner", "expected"), STOPPED_WAITING.items())
def test_to_stop_waiting_is_not_to_cancel_a_job_elsewhere(runner, expected, capfd, tmp_path, monkeypatch):
    """Ctrl-C, or a limit on the program that launched it, ends local jobs only."""
    said, cancelled = [], expected == CUT_OFF

    class Result:
        def wait_until_finish(self):
            raise KeyboardInterrupt

        def cancel(self):
            said.append("cancelled")

    class Pipeline:
        def run(self):
            return Result()

    options = PipelineOptions([*f"--runner={runner}".split(), "--streaming"])
    monkeypatch.chdir(tmp_path)
    (tmp_path / "output").mkdir()
    job = replay.streaming_job([HOT], Windows(size=1000), options=options, output="output", run="replayed")
    job = dataclasses.replace(job, source=PubSubSubscription("projects/my-project/subscriptions/reports"))
    with PubsubServer() as server:
        monkeypatch.setenv("PUBSUB_EMULATOR_HOST", server.address)
        PublisherClient().create_topic(name="projects/my-project/topics/reports")
        with SubscriberClient() as subscriber:
            subscriber.create_subscription(name=job.source.subscription, topic="projects/my-project/topics/reports")
        assert run.run((job, Pipeline())) == (130 if cancelled else 0)
    assert (said == ["cancelled"]) == cancelled
    assert capfd.readouterr().err == f"estimate: {expected}\n"
    [record] = read_records("output")
    assert (record.end, record.launched) == ("cancelled" if cancelled else None, not cancelled)


@pytest.mark.parametrize(("state", "end", "code"), [("DRAINED", "stopped", 0), ("CANCELLED", "cancelled", 130)])
def test_a_job_elsewhere_that_is_drained_or_cancelled_there_has_not_failed(state, end, code, tmp_path, monkeypatch):
    """Dataflow's client takes every end but DONE for an error."""

    class Result:
        def wait_until_finish(self):
            raise RuntimeError("Dataflow pipeline failed")

    class Pipeline:
        def run(self):
            result = Result()
            result.state = state
            return result

    monkeypatch.chdir(tmp_path)
    (tmp_path / "output").mkdir()
    options = PipelineOptions(["--runner=DataflowRunner", "--streaming"])
    job = replay.streaming_job([HOT], Windows(size=1000), options=options, output="output", run="replayed")
    assert run.run((job, Pipeline())) == code
    [record] = read_records("output")
    assert record.end == end
