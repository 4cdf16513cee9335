"""How each program of the table runs a job, and what its rows are."""

from __future__ import annotations

import contextlib
import functools
import io
import json
import secrets
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import apache_beam as beam
import yaml
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.testing.test_stream import Event
from apache_beam.yaml.yaml_transform import YamlTransform

from tests.support.capabilities.jobs import COMPARE, EARLY, ESTIMATE, FOLLOW, LATE, REESTIMATE, STREAM, TOTAL, YAML, Job
from tests.support.capabilities.studies import HOUR, START, STUDIES, WINDOWS, messages
from tests.support.messages_cases import BATCH, container, write_files
from tests.support.replay import arrive, clock, collector, replay, stream, stream_options, streaming_job, watermark
from tests.support.spool_writer import finished
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.estimate.options import command_line
from uldp_transforms.jobs.follow.follow_job import FollowJob, follow_job, follower_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.messages.containers import RANDOMNESS, SEEDED
from uldp_transforms.messages.files.spool_names import manifest_path
from uldp_transforms.messages.manifest import listed_file, manifest_text
from uldp_transforms.rows.json_and_avro import as_dict
from uldp_transforms.spec.plain_values import fields_of
from uldp_transforms.yaml import EstimateReports

Rows = Mapping[str, Sequence[dict[str, Any]]]
"""Rows by kind, as in JSON lines."""

ALWAYS: dict[str, Any] = {"min_reports": 15}
LONG_AGO = "20000d"
"""An allowed lateness for reports of 2001 that arrive now."""

END = START + WINDOWS * HOUR
PROVIDERS = {"EstimateReports": EstimateReports}


class Refused(Exception):
    """A program does not run a job; the message is the sentence that its user reads."""


# ---------------------------------------------------------------------- what goes in


def _words(options: Mapping[str, Any], folder: Path) -> list[str]:
    """Options of a command line."""
    words: list[str] = []
    for name, value in options.items():
        if name == "candidates":
            (folder / name).write_text("\n".join(value), encoding="utf-8")
            words.append(f"--{name}={folder / name}")
        elif value is True:
            words.append(f"--{name}")
        else:
            words.append(f"--{name}={','.join(map(str, value)) if isinstance(value, (list, tuple)) else value}")
    return words


def _container(sent: Sequence[bytes]) -> bytes:
    """A file of messages that says that they are simulated."""
    blocks = [(1, message) for message in sent]
    return container(blocks, BATCH, sync=secrets.token_bytes(16), **{RANDOMNESS: SEEDED.encode()})


def _write(job: Job, folder: Path) -> list[str]:
    """Write the collections and reports of a study; returns the options that name the collections."""
    files: dict[str, Any] = {"in.avro": _container(messages(job.study) * (2 if job.copies else 1))}
    of = {f"{number}.json": one for number, one in enumerate(STUDIES[job.study].of)}
    write_files(folder, files | of)
    return [f"--collection={folder / name}" for name in of]


def _events(job: Job) -> list[Event]:
    """A stream: everything in time; or the second half when windows are over, or when a clock has gone on before."""
    if job.way == EARLY:
        sent = messages(job.study, windows=1)[:-1] * 2
        return [arrive(START, sent), clock(60_000), arrive(START, sent), clock(60_000), watermark(END)]
    sent = messages(job.study) * (2 if job.copies else 1)
    if job.way == LATE:
        return [arrive(END, sent), watermark(END + HOUR), clock(60_000), arrive(END + HOUR, sent), clock(60_000)]
    return [arrive(END, sent), watermark(END + HOUR)]


# ---------------------------------------------------------------------- what comes out


def _read(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Rows of JSON lines in a directory, by the kind that the name of their file begins with."""
    found: dict[str, list[dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.jsonl")):
        found.setdefault(path.stem.partition("-")[0], []).extend(_lines(path))
    return found


def _lines(path: Path) -> list[dict[str, Any]]:
    return list(map(json.loads, path.read_text("utf-8").splitlines()))


def _run(program: str, words: Iterable[str]) -> None:
    """Run a program of ``uldp``; raises Refused."""
    _outcome(program, lambda: uldp.main([program, *words]))


def _outcome(program: str, run: Callable[[], int]) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(said):
        try:
            code = run()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
    if code != cli.DONE:
        lines = said.getvalue().splitlines()
        raise Refused(next((line for line in reversed(lines) if f"{program}: " in line), "\n".join(lines)))


def _as_rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    return [as_dict(row) for row in rows]


# ---------------------------------------------------------------------- programs


def estimate(job: Job, folder: Path) -> Rows:
    """``uldp estimate`` over a file, with a window of an hour."""
    of = _write(job, folder)
    options = _words({"window": "1h"} | ALWAYS | job.values, folder)
    _run("estimate", [*of, f"--input={folder / 'in.avro'}", f"--output={folder / 'out'}", *options])
    return _read(folder / "out")


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
        _write(job, folder)
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


def _finish_file(spool: Path, sent: Sequence[bytes]) -> None:
    """A spool file that says that its reports are simulated."""
    whole = finished(spool, sent)
    write_files(spool, {whole.name: _container(sent)})
    listed = listed_file(whole, whole.name, len(sent), sum(map(wire.reports_in, sent)))
    manifest_path(whole).write_bytes(manifest_text([listed]))


def follow(job: Job, folder: Path) -> Rows:
    """``uldp estimate --follow`` over a spool: one file, then another one if reports come late, or before the end."""
    of = _write(job, folder)
    spool = folder / "spool"
    spool.mkdir()
    (spool / "lock").touch()
    options = {"window": "1h", "allowed_lateness": LONG_AGO, "late_every": "0s"} | ALWAYS | job.values
    words = [*of, f"--input={spool}", "--follow", f"--output={folder / 'out'}", *_words(options, folder)]
    start, windows = (int(time.time() * 1000) // HOUR * HOUR, 1) if job.way == EARLY else (START, WINDOWS)
    sent = messages(job.study, start, windows)

    def configure(argv: Sequence[str]) -> FollowJob:
        parser = command_line()
        args, rest = parser.parse_known_args(argv)
        return follow_job(args, parser, rest)

    def run(following: FollowJob) -> int:
        with contextlib.closing(following.state), contextlib.closing(following.directory):
            follower = follower_of(following, late_every=0)
            for number in range(2 if job.way in (EARLY, LATE) else 1):
                _finish_file(spool, sent * (2 if job.copies else 1))
                follower.step()
                time.sleep(number)
                follower.step()
            follower.finish()
        return cli.DONE

    _outcome("estimate", lambda: cli.run("estimate", configure, run, words))
    return _read(folder / "out")


@functools.cache
def _stored(study: str) -> Path:
    """A directory of stored counts, by group where people have some."""
    folder = Path(tempfile.mkdtemp(prefix="stored-"))
    of = _write(Job(study), folder)
    groups = {"by": ["arm"]} if STUDIES[study].of[0].dimensions else {}
    needs = {"hosts": {"candidates": STUDIES[study].values}, "words": {"discover": True}}.get(study, {})
    options = _words({"window": "1h"} | ALWAYS | groups | needs, folder)
    out = folder / "counts"
    _run("estimate", [*of, f"--input={folder / 'in.avro'}", f"--output={out}", "--write_counts", *options])
    return out


def reestimate(job: Job, folder: Path) -> Rows:
    """``uldp reestimate``."""
    of = _write(job, folder)
    options = _words(ALWAYS | job.values, folder)
    _run("reestimate", [*of, str(_stored(job.study)), f"--output={folder / 'out'}", *options])
    return _read(folder / "out")


def total(job: Job, folder: Path) -> Rows:
    """``uldp reestimate --window all``."""
    options = _words(ALWAYS | job.values, folder)
    words = [str(_stored(job.study)), "--window=all", f"--totals={folder / 'totals.jsonl'}", *options]
    _run("reestimate", words)
    found = {"estimates": _lines(folder / "totals.jsonl")}
    discovered = folder / "totals-discovered.jsonl"
    return found | {"discovered": _lines(discovered)} if discovered.exists() else found


def compare(job: Job, folder: Path) -> Rows:
    """``uldp compare`` by groups."""
    options = _words({"by": ["arm"]} | ALWAYS | job.values, folder)
    _run("compare", [str(_stored(job.study)), f"--output={folder / 'comparisons.jsonl'}", *options])
    return _read(folder)


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
