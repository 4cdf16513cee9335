"""How a run of the main job ends: what it prints, returns and records, and which rows are there afterwards."""

from __future__ import annotations

import dataclasses
import errno
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import apache_beam as beam
import pytest
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.runner import PipelineState

from tests.support import replay
from tests.support.messages_cases import KRR, container, single, write_files
from uldp_transforms.beam.runtime import metrics
from uldp_transforms.jobs.engines.signals import CUT_OFF, Signals
from uldp_transforms.jobs.estimate import run
from uldp_transforms.jobs.estimate.options import Job, read_arguments
from uldp_transforms.jobs.estimate.run import build
from uldp_transforms.jobs.records.run_records import (
    CANCELLED,
    COMPLETE,
    FAILED,
    STOPPED,
    RunRecord,
    read_records,
)
from uldp_transforms.jobs.sinks import Output, Sink
from uldp_transforms.ldp import SpecError
from uldp_transforms.rows import row_types
from uldp_transforms.windows import Windows

FILES = "--collection krr.json --input in.avro --output out --window 1h"
STREAM = "--collection krr.json --subscription projects/my-project/subscriptions/s --output out --window 1h"
OF_KRR = {
    "collection_id": KRR.id,
    "collection_version": KRR.version,
    "window_start": "2001-09-09T01:00:00Z",
    "window_end": "2001-09-09T02:00:00Z",
    "received": 10,
    "accepted": 9,
    "duplicates": 0,
    "rejected": {"too_old": 1},
    "in_transit": 0,
}
BALANCED = "10 received = 9 accepted + 1 rejected (too_old 1)"
LOST = OF_KRR | {"accepted": 8}
REJECTED = OF_KRR | {"accepted": 0, "rejected": {"too_old": 10}}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(metrics, "SEEN", Counter())
    write_files(tmp_path, {"krr.json": KRR, "in.avro": container([(1, single())])})
    return tmp_path


def job_of(words: str, ledger: dict[str, Any] | str | None = OF_KRR) -> tuple[Job, RunRecord]:
    """A job that was prepared, and has written its ledger and a row."""
    job = read_arguments(words.split())
    job.directory.prepare()
    rows = Path(job.directory.rows)
    if ledger is not None:
        name = "ledger.jsonl" if job.spec.bounded else f"ledger-{job.spec.run}-1.jsonl"
        (rows / name).write_text(ledger if isinstance(ledger, str) else f"{json.dumps(ledger)}\n", "utf-8")
    (rows / "estimates.jsonl").write_text("{}\n", "utf-8")
    record = run._record(job)
    record.write("out")
    return job, record


def ended(words: str, end: str, ledger: dict[str, Any] | str | None = OF_KRR, cause: str = "") -> tuple[Job, int]:
    job, record = job_of(words, ledger)
    code = run._ended(job, record, end, cause)
    job.directory.close()
    return job, code


# ---------------------------------------------------------------------- the outcome

NOTHING = "cancelled: nothing was written; any results in the directory are from an earlier run"
IN_NO_ROW = "cancelled: reports that were not yet written are in no row"


@pytest.mark.parametrize(
    ("words", "end", "code", "sentence"),
    [
        (FILES, COMPLETE, 0, BALANCED),
        (FILES, CANCELLED, CUT_OFF, NOTHING),
        (FILES, FAILED, 1, "the run failed: no bread"),
        (STREAM, STOPPED, 0, f"stopped: {BALANCED}"),
        (STREAM, COMPLETE, 0, BALANCED),
        (STREAM, CANCELLED, CUT_OFF, IN_NO_ROW),
        (STREAM, FAILED, 1, "the run failed: no bread"),
    ],
)
def test_an_end_has_a_code_a_sentence_and_a_record(
    words: str, end: str, code: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    job, found = ended(words, end, cause="no bread")
    assert (found, capsys.readouterr().err) == (code, f"estimate: {sentence}\n")
    [record] = read_records("out")
    assert (record.run, record.end, record.sentence) == (job.spec.run, end, sentence)
    assert record.ended is not None
    known = end == COMPLETE or words == STREAM
    assert record.ledger == (run.sums_of([OF_KRR]) if known else None)


@pytest.mark.parametrize(("end", "published"), [(COMPLETE, True), (CANCELLED, False), (FAILED, False)])
def test_only_a_complete_job_over_files_replaces_rows(end: str, published: bool) -> None:
    job, _ = ended(FILES, end)
    assert Path("out/estimates.jsonl").exists() is published
    assert not Path(job.directory.rows).exists()


@pytest.mark.parametrize(
    ("words", "ledger", "code", "said"),
    [
        (FILES, LOST, 3, "the ledger does not balance for collection 'krr', window 2001-09-09T01:00:00Z to "),
        (STREAM, LOST, 3, "the ledger does not balance for collection 'krr', window 2001-09-09T01:00:00Z to "),
        (FILES, REJECTED, 4, "10 of 10 reports were rejected as too_old: "),
        (f"{FILES} --max_rejected_share 1", REJECTED, 0, None),
        (STREAM, REJECTED, 0, None),
        (FILES, OF_KRR | {"window_start": None, "window_end": None}, 0, None),
        (FILES, "", 0, None),
    ],
)
def test_a_finished_run_says_what_is_wrong_with_its_ledger(
    words: str, ledger: Any, code: int, said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    _, found = ended(words, COMPLETE if words.startswith(FILES) else STOPPED, ledger)
    _, *more = capsys.readouterr().err.splitlines()
    assert found == code
    assert [line[: len(f"estimate: {said}")] for line in more] == ([] if said is None else [f"estimate: {said}"])


def test_windows_that_were_cut_short_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    metrics.SEEN["windows_partial"] = 2
    ended(STREAM, STOPPED)
    said = f"estimate: stopped: {BALANCED}; windows that were cut short (status partial): 2\n"
    assert capsys.readouterr().err == said


def test_a_ledger_that_cannot_be_read_matters_to_a_run_that_ended_well() -> None:
    with pytest.raises(ValueError, match="ledger"):
        ended(STREAM, STOPPED, "{\n")
    assert ended(STREAM, CANCELLED, "{\n")[1] == CUT_OFF


@pytest.mark.parametrize("end", [COMPLETE, STOPPED, CANCELLED, FAILED])
def test_a_page_is_written_of_results_that_are_there(
    end: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And its failure is no failure of the job."""
    written: list[str] = []

    def write(directory: str) -> None:
        written.append(directory)
        raise OSError(errno.EACCES, "Permission denied", "report.html")

    monkeypatch.setattr(run, "drawing", {"report": write}.__getitem__)
    job, record = job_of(STREAM)
    for report in (False, True):
        run._ended(dataclasses.replace(job, report=report), record, end)
    job.directory.close()
    assert written == ([job.directory.path] if end in (COMPLETE, STOPPED) else [])
    said = capsys.readouterr().err.count("estimate: no report was written: report.html: Permission denied\n")
    assert said == len(written)


# ---------------------------------------------------------------------- what may happen on the way


class _Ends:
    """Stands for the engine: a way to end."""

    def __init__(self, how: Any):
        self._how = how

    def __call__(self, *_: Any) -> Any:
        if isinstance(self._how, BaseException):
            raise self._how
        return self._how


FULL = OSError(errno.ENOSPC, "No space left on device", "out/x")
WRAPPED = RuntimeError("bundle")
WRAPPED.__cause__ = FULL


@pytest.mark.parametrize(
    ("how", "code", "end"),
    [
        (COMPLETE, 0, COMPLETE),
        (STOPPED, 0, STOPPED),
        (None, 0, None),
        (KeyboardInterrupt(), CUT_OFF, CANCELLED),
        (ValueError("no"), 1, FAILED),
        (FULL, 6, FAILED),
        (WRAPPED, 6, FAILED),
    ],
    ids=str,
)
def test_whatever_an_engine_does_the_record_says(
    how: Any, code: int, end: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An engine that goes on elsewhere, whose end is not observed, has no end in the record."""
    monkeypatch.setattr(run, "_wait", _Ends(how))
    job, _ = job_of(STREAM)
    monkeypatch.setattr(type(job.source), "check_access", _Ends(None))
    assert run.run((job, None)) == code
    [record] = read_records("out")
    assert (record.end, record.launched) == (end, how is None)
    assert job.directory._lock is None, "released"


def test_an_interrupt_that_an_engine_reports_as_an_error_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "_wait", _Ends(RuntimeError("interrupted")))
    job, _ = job_of(STREAM)
    monkeypatch.setattr(type(job.source), "check_access", _Ends(None))
    signals = Signals("estimate")
    signals.cancelled = True
    assert run.run((job, None), signals) == CUT_OFF
    assert [record.end for record in read_records("out")] == [CANCELLED]


@pytest.mark.parametrize(("number", "code"), [(errno.ENOSPC, 6), (errno.EACCES, 1)])
def test_a_run_without_a_record_does_not_begin(
    number: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = read_arguments(FILES.split())
    monkeypatch.setattr(RunRecord, "write", _Ends(OSError(number, "why")))
    monkeypatch.setattr(run, "_wait", _Ends(AssertionError("it began")))
    assert run.run((job, None)) == code
    said = f"estimate: the run failed before its first row, without a record: [Errno {number}] why\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize(("words", "code"), [(STREAM, 5), (FILES, 0)])
def test_a_stream_that_filled_the_memory_ended_for_that_reason(
    words: str, code: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the local engine for streams keeps all that it was given."""
    watched: list[Any] = []

    class Full(run.MemoryWatch):
        def __init__(self, stop: Any):
            super().__init__(stop)
            watched.append(self)

        def watching(self) -> Any:
            self.full = True
            return run.contextlib.nullcontext()

    monkeypatch.setattr(run, "MemoryWatch", Full)
    monkeypatch.setattr(run, "_wait", _Ends(COMPLETE if words == FILES else STOPPED))
    job, _ = job_of(words)
    monkeypatch.setattr(type(job.source), "check_access", _Ends(None))
    signals = Signals("estimate")
    assert run.run((job, None), signals) == code
    watched[0]._stop("enough")
    assert signals.stop.is_set()


class Result:
    """Of an engine: how waiting for it ends."""

    def __init__(self, how: Any):
        self.wait_until_finish = _Ends(how)
        self.state = "FAILED"
        self.cancelled = 0

    def run(self) -> Result:
        return self

    def cancel(self) -> None:
        self.cancelled += 1


@pytest.mark.parametrize(
    ("state", "stopped", "end"),
    [
        (PipelineState.DONE, False, COMPLETE),
        (PipelineState.DONE, True, STOPPED),
        (PipelineState.DRAINED, False, STOPPED),
        (PipelineState.CANCELLED, False, CANCELLED),
    ],
)
def test_the_end_of_an_engine_is_that_of_the_run(state: str, stopped: bool, end: str) -> None:
    """A stream that was told to stop ended well, however its engine calls that."""
    job, _ = job_of(FILES)
    signals = Signals("estimate")
    if stopped:
        signals.stop.set()
    assert run._wait(job, Result(state), signals) == end
    assert signals.can_drain is False, "files are read to their end"
    signals.cancelled = True
    with pytest.raises(KeyboardInterrupt):
        run._wait(job, Result(state), signals)
    job.directory.close()


@pytest.mark.parametrize(("error", "cancelled"), [(KeyboardInterrupt(), 1), (RuntimeError("no"), 0)])
def test_an_engine_in_this_process_is_cancelled_by_an_interrupt(error: BaseException, cancelled: int) -> None:
    job, _ = job_of(FILES)
    result = Result(error)
    with pytest.raises(type(error)):
        run._wait(job, result, Signals("estimate"))
    assert result.cancelled == cancelled
    job.directory.close()


def test_only_a_local_stream_keeps_all_that_it_was_given() -> None:
    kept = {words: run._keeps_all(read_arguments(words.split())) for words in (FILES, STREAM)}
    assert kept == {FILES: False, STREAM: True}


# ---------------------------------------------------------------------- runs before


@pytest.mark.parametrize(("words", "source"), [(STREAM, "--subscription"), (FILES, "--input")])
def test_windows_that_an_earlier_run_saw_are_cut_and_this_is_said(
    words: str, source: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Only if the source resumes; a run that was killed is told apart from one that ended."""
    Path("out").mkdir()
    facts = {"option": source, "name": "s", "bounded": words == FILES, "resumes": words == STREAM}
    job = read_arguments(words.split())
    assert run._after_earlier_runs(job).spec.partial_before is None
    for name, end in (("1", STOPPED), ("2", STOPPED), ("3", None)):
        RunRecord(run=name, started="2026-01-01T00:00:00Z", source=facts, specification={}, end=end).write("out")
    later = run._after_earlier_runs(job)
    job.directory.close()
    if words == FILES:
        assert (later, capsys.readouterr().err) == (job, "")
        return
    cut, killed = capsys.readouterr().err.splitlines()
    assert later.spec.partial_before is not None
    before = run.moment_in_zone(run.rfc3339(later.spec.partial_before), run.clock(None))
    assert cut.startswith(f"estimate: windows that begin before {before} are partial, because run 3 counted some of ")
    assert killed.startswith("estimate: run 3 was killed: the reports that it had acknowledged for open windows are ")


def test_a_resumed_run_began_when_it_first_began() -> None:
    job, record = job_of(STREAM)
    dataclasses.replace(record, started="2026-01-01T00:00:00Z").write("out")
    assert run._record(job).started == "2026-01-01T00:00:00Z"
    job.directory.close()
    assert record.source == {
        "option": "--subscription",
        "name": "projects/my-project/subscriptions/s",
        "bounded": False,
        "resumes": True,
    }


# ---------------------------------------------------------------------- what a command line makes


def test_a_job_is_made_of_its_options() -> None:
    job = read_arguments(f"{FILES} --progress 5s --write_counts".split())
    assert (job.source_name, job.report, job.progress) == ("in.avro", False, 5_000)
    assert (job.spec.bounded, job.spec.collections, job.spec.run) == (True, (KRR,), job.directory.run)
    assert [type(sink).__name__ for sink in job.sinks] == ["RowFiles"]
    assert (job.directory.path, job.directory.rows) == ("out", f"out/unfinished-{job.spec.run}")
    assert (job.sinks[0]._rows, job.sinks[0].takes_counts) == (job.directory.rows, True)
    stream = read_arguments(STREAM.split())
    assert (stream.spec.bounded, stream.directory.rows, stream.progress) == (False, stream.directory.path, None)
    assert stream.spec.run != job.spec.run


def test_a_page_needs_a_job_that_this_program_waits_for() -> None:
    elsewhere = "--report --runner PortableRunner --job_endpoint localhost:1 --no_wait_until_finish"
    with pytest.raises(SpecError, match=r"^--report needs a job that this program waits for, got one that it only "):
        read_arguments(f"{FILES} {elsewhere}".split())


class Seen(Sink):
    """Keeps what it is asked to write."""

    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, *, takes_counts: bool):
        self.takes_counts = takes_counts  # type: ignore[misc]  # of this one
        self.outputs: list[Output] = []

    @classmethod
    def of(cls, args: Any, source: Any, options: Any) -> None:
        return None

    def write(self, outputs: Sequence[Output]) -> None:
        self.outputs += outputs


LOCAL = ["--runner=BundleBasedDirectRunner", "--streaming"]
ELSEWHERE = ["--runner=PortableRunner", "--job_endpoint=embed", "--streaming"]
SCHEMAS = {
    "estimates": row_types.ESTIMATE_SCHEMA,
    "values": row_types.VALUE_SCHEMA,
    "rejected": row_types.REJECTED_SCHEMA,
    "ledger": row_types.LEDGER_SCHEMA,
    "health": row_types.HEALTH_SCHEMA,
}


@pytest.mark.parametrize(("engine", "late"), [(LOCAL, None), (ELSEWHERE, 600_000)])
@pytest.mark.parametrize("takes", [[False], [False, True]])
def test_every_sink_is_given_every_kind_of_row(engine: list[str], late: int | None, takes: list[bool]) -> None:
    """Counts only if one takes them; rows of the ledger may be late where an engine repeats work."""
    sinks = tuple(Seen(takes_counts=one) for one in takes)
    job = dataclasses.replace(
        replay.streaming_job([KRR], Windows(size=3_600_000)), sinks=sinks, options=PipelineOptions(engine)
    )
    build(beam.Pipeline(options=job.options), job)
    expected = SCHEMAS | ({"counts": row_types.COUNTS_SCHEMA} if any(takes) else {})
    for sink in sinks:
        assert {output.name: output.schema for output in sink.outputs} == expected
        assert {output.name: output.late for output in sink.outputs} == dict.fromkeys(expected) | {"ledger": late}
        assert [output.name for output in sink.outputs if not output.keyed] == ["rejected"]
