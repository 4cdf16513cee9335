"""How each program of the table runs a job, and what its rows are."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import apache_beam as beam
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import Event
from apache_beam.yaml.yaml_transform import YamlTransform

from packages.follow.tests.support.followed_rows import follow
from tests.support.capabilities.jobs import COMPARE, EARLY, ESTIMATE, FOLLOW, LATE, REESTIMATE, STREAM, TOTAL, YAML, Job
from tests.support.capabilities.runs import (
    ALWAYS,
    Refused,
    Rows,
    check_outcome,
    lines_of,
    read_rows_of,
    words_of,
    write_study,
)
from tests.support.capabilities.studies import HOUR, START, STUDIES, WINDOWS, messages
from tests.support.replay import arrive, clock, collector, replay, stream, stream_options, streaming_job, watermark
from uldp_transforms.jobs import uldp
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.spec.plain_values import fields_of
from uldp_transforms.yaml import EstimateReports

END = START + WINDOWS * HOUR
PROVIDERS = {"EstimateReports": EstimateReports}


def _events(job: Job) -> list[Event]:
    """A stream: everything in time; or the second half when windows are over, or when a clock has gone on before."""
    if job.way == EARLY:
        sent = messages(job.study, windows=1)[:-1] * 2
        return [arrive(START, sent), clock(60_000), arrive(START, sent), clock(60_000), watermark(END)]
    sent = messages(job.study) * (2 if job.copies else 1)
    if job.way == LATE:
        return [arrive(END, sent), watermark(END + HOUR), clock(60_000), arrive(END + HOUR, sent), clock(60_000)]
    return [arrive(END, sent), watermark(END + HOUR)]


def _run(program: str, words: Iterable[str]) -> None:
    """Run a program of ``uldp``; raises Refused."""
    check_outcome(program, lambda: uldp.main([program, *words]))


def _as_rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [as_dict(row) for row in rows]


# ---------------------------------------------------------------------- programs


def estimate(job: Job, folder: Path) -> Rows:
    """``uldp estimate`` over a file, with a window of an hour."""
    of = write_study(job, folder)
    options = words_of({"window": "1h"} | ALWAYS | job.values, folder)
    _run("estimate", [*of, f"--input={folder / 'in.avro'}", f"--output={folder / 'out'}", *options])
    return read_rows_of(folder / "out")


def replayed(job: Job, folder: Path) -> Rows:
    """The main job over a stream that is replayed."""
    values = {"window": "1h", "allowed_lateness": "20d", "run": "night"} | ALWAYS | job.values
    try:
        fields = fields_of({"collections": list(STUDIES[job.study].of)} | values)
        built = streaming_job(fields.pop("collections"), fields.pop("windows"), **fields)
        built.spec.check_candidates()
    except SpecError as error:
        raise Refused(f"estimate: {error}") from None
    return {kind: _as_rows(rows) for kind, rows in replay(built, _events(job)).items()}


def in_yaml(job: Job, folder: Path) -> Rows:
    """A pipeline of Beam YAML, over a file or a stream."""
    is_stream = job.way in (EARLY, LATE)
    config = {"collections": [one.to_json() for one in STUDIES[job.study].of], "window": "1h", "run": "night"}
    config |= ALWAYS | job.values
    if is_stream:
        config["allowed_lateness"] = "20d"
    else:
        write_study(job, folder)
        config["files"] = str(folder / "in.avro")
    kinds = ["estimates", "health", "ledger", *(["discovered"] if job.values.get("discover") else [])]
    step = {"type": "EstimateReports", "config": config} | ({"input": "input"} if is_stream else {})
    text = {"type": "composite", "transforms": [step], "output": {kind: f"EstimateReports.{kind}" for kind in kinds}}
    options = stream_options() if is_stream else PipelineOptions(["--runner=FnApiRunner"])
    with contextlib.ExitStack() as stack:
        lists = {kind: stack.enter_context(collector()) for kind in kinds}
        try:
            with beam.Pipeline(options=options) as pipeline:
                source = pipeline | stream(_events(job)) if is_stream else pipeline
                text |= {"input": "input"} if is_stream else {}
                outputs = source | YamlTransform(
                    yaml.safe_dump(_plain(text)), providers={"EstimateReports": EstimateReports}
                )
                for kind, (collect, _) in lists.items():
                    _ = outputs[kind] | f"Collect_{kind}" >> collect
        except (SpecError, ValueError) as error:
            raise Refused(f"EstimateReports: {_cause(error)}") from None
        return {kind: _as_rows(row for row, _, _ in rows) for kind, (_, rows) in lists.items()}


def _plain(value: Any) -> Any:
    """Lists for tuples."""
    return json.loads(json.dumps(value))


def _cause(error: BaseException) -> str:
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error).splitlines()[-1]


@functools.cache
def _stored(study: str) -> Path:
    """A directory of stored counts, by group where people have some."""
    folder = Path(tempfile.mkdtemp(prefix="stored-"))
    of = write_study(Job(study), folder)
    groups = {"by": ["arm"]} if STUDIES[study].of[0].dimensions else {}
    needs = {"hosts": {"candidates": STUDIES[study].values}, "words": {"discover": True}}.get(study, {})
    options = words_of({"window": "1h"} | ALWAYS | groups | needs, folder)
    out = folder / "counts"
    _run("estimate", [*of, f"--input={folder / 'in.avro'}", f"--output={out}", "--write_counts", *options])
    return out


def reestimate(job: Job, folder: Path) -> Rows:
    """``uldp reestimate``."""
    of = write_study(job, folder)
    options = words_of(ALWAYS | job.values, folder)
    _run("reestimate", [*of, str(_stored(job.study)), f"--output={folder / 'out'}", *options])
    return read_rows_of(folder / "out")


def total(job: Job, folder: Path) -> Rows:
    """``uldp reestimate --window all``."""
    options = words_of(ALWAYS | job.values, folder)
    words = [str(_stored(job.study)), "--window=all", f"--totals={folder / 'totals.jsonl'}", *options]
    _run("reestimate", words)
    found = {"estimates": lines_of(folder / "totals.jsonl")}
    discovered = folder / "totals-discovered.jsonl"
    return found | {"discovered": lines_of(discovered)} if discovered.exists() else found


def compare(job: Job, folder: Path) -> Rows:
    """``uldp compare`` by groups."""
    options = words_of({"by": ["arm"]} | ALWAYS | job.values, folder)
    _run("compare", [str(_stored(job.study)), f"--output={folder / 'comparisons.jsonl'}", *options])
    return read_rows_of(folder)


RUNS: Mapping[str, Callable[[Job, Path], Rows]] = {
    ESTIMATE: estimate,
    STREAM: replayed,
    YAML: in_yaml,
    FOLLOW: follow,
    REESTIMATE: reestimate,
    TOTAL: total,
    COMPARE: compare,
}


@functools.cache
def rows_of(program: str, job: Job) -> Rows | str:
    """The rows of a job, or the sentence with which the program refuses it."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            return RUNS[program](job, Path(folder))
        except Refused as refused:
            return str(refused)
