"""Faults of the infrastructure: code that raises, sinks that fail before and after they wrote, killed processes.

What holds on the local engines, and is tested here:

* an exception in any hook of the library, once to three times for a bundle: the engine tries again, and every number is
  the same; one that never goes away fails the job, and nothing is silently left out;
* a sink that fails at any step of a write: each row of each keyed file is there once;
* a job over files, killed at any moment and started again: the same rows, and no final file is ever half written;
* a job over a subscription, killed and started again with ``--deduplicate``, to which everything is sent again: every
  report counts exactly once, in a directory of its own.

What cannot be promised there: the local engine acknowledges a message before it is processed, and holds its state in
memory. So what was taken in but not written when the process died is lost unless its sender sends it again, and a new
process does not know what an old one counted. A killed job never counts a report twice by itself.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pytest
from apache_beam.testing.test_stream import Event

from tests.rigs.compare import rows as rows_of_output
from tests.support import live, replay
from tests.support.messages_cases import KRR, NOON, RAPPOR, STRANGER, Row, long, packed, single, write_files
from uldp_transforms.beam.transforms import count_reports as count
from uldp_transforms.beam.transforms import decode_reports as decode
from uldp_transforms.beam.transforms import deduplicate, ledger
from uldp_transforms.beam.transforms import estimate_distribution as estimates
from uldp_transforms.beam.transforms import gather_messages as gather
from uldp_transforms.beam.transforms import release_once as release
from uldp_transforms.files import stores
from uldp_transforms.jobs.estimate.options import Job
from uldp_transforms.messages import wire
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.spec.spec_fields import FINAL
from uldp_transforms.windows import Windows

HOUR = 3_600_000
START = NOON // HOUR * HOUR
WINDOWS = Windows(size=2 * HOUR, slide=HOUR)
COLLECTIONS = [KRR, RAPPOR]


class Planted(Exception):
    """The fault."""


class Plan:
    """Raises at some calls of some places, and counts what it did; called from all threads of an engine."""

    def __init__(self, at: dict[str, set[int]]):
        self.raised: Counter[str] = Counter()
        self._at = at
        self._calls: Counter[str] = Counter()
        self._lock = threading.Lock()

    def pass_by(self, place: str) -> None:
        with self._lock:
            self._calls[place] += 1
            if self._calls[place] in self._at.get(place, ()):
                self.raised[place] += 1
                raise Planted(place)


# ---------------------------------------------------------------------- exceptions in every hook

HOOKS: dict[str, tuple[type, Sequence[str]]] = {
    "gather": (gather._TimedGatherFn, ("start_bundle", "process", "finish_bundle")),
    "decode": (decode._DecodeFn, ("start_bundle", "process")),
    "count": (count._CountBundleFn, ("start_bundle", "process", "finish_bundle")),
    "sum": (count.SumCountsFn, ("create_accumulator", "add_input", "merge_accumulators", "extract_output")),
    "deduplicate": (deduplicate._CountOnceFn, ("process", "forget")),
    "release": (release._HoldFn, ("process", "release")),
    "ledger": (ledger.SumByReasonFn, ("create_accumulator", "add_input", "merge_accumulators", "extract_output")),
    "estimate": (estimates._EstimateFn, ("start_bundle", "process", "finish_bundle")),
    "counts": (estimates._CountsRowsFn, ("process",)),
}
MOMENTS = ("before", "after")
PLACES = [f"{name}.{hook} {moment}" for name, (_, hooks) in HOOKS.items() for hook in hooks for moment in MOMENTS]


def with_faults(method: Callable[..., Any], place: str, plan: Plan) -> Callable[..., Any]:
    """The method, which may raise before it does anything and after its work (or behind the first output)."""

    def generate(outputs: Iterator[Any]) -> Iterator[Any]:
        plan.pass_by(f"{place} before")
        first = list(itertools.islice(outputs, 1))
        yield from first
        plan.pass_by(f"{place} after")
        yield from outputs

    @functools.wraps(method)
    def faulty(*arguments: Any, **named: Any) -> Any:
        if inspect.isgeneratorfunction(method):
            return generate(method(*arguments, **named))
        plan.pass_by(f"{place} before")
        result = method(*arguments, **named)
        plan.pass_by(f"{place} after")
        return result

    return faulty


def plant(monkeypatch: pytest.MonkeyPatch, plan: Plan) -> None:
    """Let every hook of the library pass by the plan."""
    for name, (owner, hooks) in HOOKS.items():
        for hook in hooks:
            faulty = with_faults(getattr(owner, hook), f"{name}.{hook}", plan)
            for timer in vars(owner).values():
                if getattr(timer, "_attached_callback", None) is vars(owner).get(hook, 0):
                    monkeypatch.setattr(timer, "_attached_callback", faulty)
            monkeypatch.setattr(owner, hook, faulty)


def events() -> list[Event]:
    """A few bundles: singles, batches, copies, conflicting ids, late and bad messages."""
    reports = [single(event_time=long(START + i * HOUR // 4), report_id=bytes([i] * 16)) for i in range(12)]
    rows: list[Row] = [(i % 3, START + i * HOUR // 5, bytes([40 + i] * 16), b"\xff\x03") for i in range(10)]
    others: list[Row] = [(0, START + i * HOUR // 5, bytes([40 + i] * 16), b"\x01\x00") for i in range(3)]
    return [
        replay.arrive(START + HOUR, [*reports[:6], packed(RAPPOR, rows[:5]), b"", reports[0]]),
        replay.watermark(START + HOUR),
        replay.arrive(START + 2 * HOUR, [*reports[4:9], packed(RAPPOR, rows[3:]), single(STRANGER)]),
        replay.watermark(START + 2 * HOUR),
        replay.arrive(START + 2 * HOUR, [*reports[9:], packed(RAPPOR, others), reports[1], b"\x02garbage"]),
        replay.watermark(START + 3 * HOUR),
        replay.arrive(START + 3 * HOUR, [*reports, packed(RAPPOR, rows)]),
    ]


def job_of(place: str, **fields: Any) -> Job:
    """The main job with the options under which this place is passed."""
    deduplicated = not place.startswith("count.")
    more = {"deduplicate": deduplicated, "write_counts": True, "allowed_lateness": HOUR}
    if place.startswith("release."):
        more["release"] = FINAL
    return replay.streaming_job(COLLECTIONS, WINDOWS, **(more | fields))


def results(job: Job) -> dict[str, Counter[str]]:
    """All rows by kind, and of the ledger the sums: its rows may come in other portions."""
    found = replay.replay(job, events())
    books: Counter[str] = Counter()
    for row in found.pop("ledger"):
        where = f"{row.fingerprint} {row.window_start}"
        books.update({f"{where} {reason}": number for reason, number in row.rejected.items()})
        books.update({f"{where} {name}": getattr(row, name) for name in ("received", "accepted", "duplicates")})
    return {name: Counter(to_json(row) for row in rows) for name, rows in found.items()} | {"ledger": +books}


@functools.cache
def without_faults(options: str) -> dict[str, Counter[str]]:
    return results(job_of(options))


def options_of(place: str) -> str:
    """One place for all that run under the same options."""
    return place.partition(".")[0] + "." if place.startswith(("count.", "release.")) else ""


def hooks_together() -> list[list[str]]:
    """One hook of each part at a time, of those that run under the same options."""
    rows: dict[tuple[str, int], list[str]] = {}
    for name, (_, hooks) in HOOKS.items():
        for number, hook in enumerate(hooks):
            rows.setdefault((options_of(f"{name}."), number), []).append(f"{name}.{hook}")
    return list(rows.values())


@pytest.mark.parametrize("hooks", hooks_together(), ids=", ".join)
def test_an_exception_in_a_hook_changes_nothing(hooks: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Before and after the hook did its work; two of the three of a part may meet the same bundle."""
    expected = without_faults(options_of(hooks[0]))
    assert expected["ledger"] and expected["estimates"]
    plan = Plan({f"{hook} {moment}": at for hook in hooks for moment, at in zip(MOMENTS, ({1}, {1, 4}))})
    plant(monkeypatch, plan)
    assert results(job_of(hooks[0])) == expected
    assert min(plan.raised[f"{hook} {moment}"] for hook in hooks for moment in MOMENTS) >= 1


def schedule(seed: int) -> dict[str, set[int]]:
    """At most three faults in each part of the job, at random calls of random hooks: a bundle is tried four times."""
    rng = random.Random(seed)
    at: dict[str, set[int]] = {}
    for name in HOOKS:
        places = [place for place in PLACES if place.startswith(f"{name}.")]
        for _ in range(3):
            at.setdefault(rng.choice(places), set()).add(rng.randrange(1, 12))
    return at


@pytest.mark.parametrize("seed", [pytest.param(n, marks=[pytest.mark.slow] if n >= 3 else []) for n in range(200)])
def test_random_exceptions_change_nothing(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    options = ("", "count.", "release.")[seed % 3]
    expected = without_faults(options)
    plan = Plan(schedule(seed))
    plant(monkeypatch, plan)
    assert results(job_of(options)) == expected
    assert plan.raised.total() >= 3


@pytest.mark.parametrize(
    "place", ["gather.process after", "decode.process before", "deduplicate.process after", "estimate.process before"]
)
def test_an_exception_that_stays_fails_the_job(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(monkeypatch, Plan({place: set(range(1, 1000))}))
    with pytest.raises(Planted):
        results(job_of(place))


# ---------------------------------------------------------------------- sinks

STEPS = ("create", "write", "close", "rename", "renamed")


class _FaultyFile:
    """Writes half of the content where it is told to fail while writing."""

    def __init__(self, file: Any, plan: Plan):
        self._file = file
        self._plan = plan

    def __enter__(self) -> _FaultyFile:
        return self

    def flush(self) -> None:
        self._file.flush()

    def fileno(self) -> int:
        return int(self._file.fileno())

    def __exit__(self, *error: object) -> None:
        self._file.close()
        if not any(error):
            self._plan.pass_by("close")

    def write(self, content: bytes) -> None:
        try:
            self._plan.pass_by("write")
        except Planted:
            self._file.write(content[: len(content) // 2])
            raise
        self._file.write(content)


def plant_in_files(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that may fail at each step of a write, the last being that it succeeded."""
    created, replace = stores.created, stores.replace

    def create(path: str) -> Any:
        plan.pass_by("create")
        return _FaultyFile(created(path), plan)

    def rename(old: str, new: str) -> None:
        plan.pass_by("rename")
        replace(old, new)
        plan.pass_by("renamed")

    monkeypatch.setattr(stores, "created", create)
    monkeypatch.setattr(stores, "replace", rename)


def stored(folder: Path) -> dict[str, Counter[str]]:
    """Rows by kind, from the files that readers look for."""
    found: dict[str, Counter[str]] = {}
    for path in sorted(folder.glob("*-*.*")):
        if path.suffix not in (".jsonl", ".avro"):
            continue
        kind = found.setdefault(path.name.partition("-")[0] + path.suffix, Counter())
        if path.suffix == ".avro":
            with path.open("rb") as file:
                kind.update(map(repr, fastavro.reader(file)))
        else:
            kind.update(path.read_text("utf-8").splitlines())
    return found


@pytest.fixture(scope="module")
def stored_without_faults(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Counter[str]]:
    folder = tmp_path_factory.mktemp("sink")
    replay.run(job_of("", output=str(folder)), events())
    return stored(folder)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("calls", [{1, 2, 3}, pytest.param({2, 5, 9}, marks=pytest.mark.slow)], ids=["first", "some"])
def test_a_sink_that_fails_loses_and_doubles_nothing(
    step: str, calls: set[int], stored_without_faults: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused rows have no key: where a write was done but not known to be, they may stand there twice."""
    plan = Plan({step: calls})
    plant_in_files(plan, monkeypatch)
    replay.run(job_of("", output=str(tmp_path)), events())
    assert plan.raised[step] == len(calls)
    found, expected = stored(tmp_path), dict(stored_without_faults)
    refused, expected_refused = found.pop("rejected.avro"), expected.pop("rejected.avro")
    assert found == expected
    assert set(refused) == set(expected_refused)
    assert refused >= expected_refused
    if step != "renamed":
        assert refused == expected_refused


def test_a_sink_that_fails_for_good_fails_the_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant_in_files(Plan({"create": set(range(1, 1000))}), monkeypatch)
    with pytest.raises(Planted):
        replay.run(job_of("", output=str(tmp_path)), events())
    assert stored(tmp_path) == {}


# ---------------------------------------------------------------------- killed: files


def write_reports(folder: Path, number: int) -> list[str]:
    """Files of reports, and the options of a job over them."""
    rng = np.random.default_rng(1)
    write_files(folder, {"krr.json": KRR})
    for part in range(4):
        values = rng.choice(["0", "1", "2"], number // 4).tolist()
        batch = KRR.perturb(values, rng, START + rng.integers(0, 48 * HOUR, number // 4))
        records = [wire.batch_record(batch[i : i + 500]) for i in range(0, len(batch), 500)]
        with (folder / f"reports-{part}.avro").open("wb") as file:
            fastavro.writer(file, wire.BATCH_SCHEMA, records)
    options = [f"--collection={folder / 'krr.json'}", f"--input={folder / 'reports-*.avro'}", "--window=1h"]
    return [*options, "--deduplicate", "--min_reports=1", "--write_counts"]


@pytest.mark.parametrize("kills", [1, pytest.param(40, marks=pytest.mark.slow)])
def test_a_killed_job_over_files_started_again_writes_the_same(kills: int, tmp_path: Path) -> None:
    options = write_reports(tmp_path, 12_000 if kills == 1 else 60_000)
    log = tmp_path / "log"
    begin = time.monotonic()
    with live.job([*options, f"--output={tmp_path / 'whole'}"], log) as process:
        assert process.wait(live.PATIENCE) == 0, log.read_text()
    seconds = time.monotonic() - begin
    expected = rows_of_output(tmp_path / "whole")
    assert len(expected["estimates.jsonl"]) == 48
    rng = random.Random(kills)
    for number in range(kills):
        with live.job([*options, f"--output={tmp_path / 'killed'}"], log) as process:
            time.sleep(seconds * (0.5 + 0.5 * (number + rng.random()) / kills))
            process.send_signal(signal.SIGKILL)
            assert process.wait(live.PATIENCE) in (-signal.SIGKILL, 0)
        started = (tmp_path / "killed").is_dir()  # on a busy machine a job may be killed before it has an output
        for name, rows in rows_of_output(tmp_path / "killed").items() if started else ():
            assert rows == expected[name], "a file with its final name is half written"
    with live.job([*options, f"--output={tmp_path / 'killed'}"], log) as process:
        assert process.wait(live.PATIENCE) == 0, log.read_text()
    assert rows_of_output(tmp_path / "killed") == expected


# ---------------------------------------------------------------------- killed: a subscription

REPORTS, BAD = 400, 20


@pytest.mark.parametrize("part", [0.5, *(pytest.param(p / 10, marks=pytest.mark.slow) for p in range(0, 11, 2))])
def test_a_killed_stream_counts_everything_once_when_it_is_sent_again(part: float, tmp_path: Path) -> None:
    """Killed after part of the reports was sent: what the first process took in counts at most once; then all again."""
    now = time.time_ns() // 1_000_000
    batch = KRR.perturb(["0", "1"] * (REPORTS // 2), np.random.default_rng(5), [now - 60_000] * REPORTS)
    messages = wire.encode_reports(batch)
    write_files(tmp_path, {"krr.json": KRR})
    options = [f"--collection={tmp_path / 'krr.json'}", f"--subscription={live.SUBSCRIPTION}", "--streaming"]
    options += ["--window=1s", "--allowed_lateness=1h", "--min_reports=1", "--deduplicate", "--write_counts"]
    options += live.SOON
    log = tmp_path / "log"
    first, second = tmp_path / "first", tmp_path / "second"
    sent = max(10, int(REPORTS * part))
    with live.broker(ack_deadline_seconds=10) as broker:
        with live.job([*options, f"--output={first}"], log) as process:
            broker.publish(messages[:10])
            live.wait_until(lambda: live.books(first)["accepted"] == 10, process, log)
            broker.publish(messages[10:sent])
            time.sleep(random.Random(sent).random())
            process.send_signal(signal.SIGKILL)
            assert process.wait(live.PATIENCE) == -signal.SIGKILL
        broker.publish(messages[sent:])
        before = live.books(first)
        assert before["duplicates"] == 0
        assert 10 <= before["accepted"] <= sent
        with live.job([*options, f"--output={second}"], log) as process:
            broker.publish(messages)  # their senders were told nothing, and send again
            broker.publish([b"\x02garbage"] * BAD)
            seen: list[Counter[str]] = []  # stopping it may cut short what the first process had on lease

            def is_finished() -> bool:
                seen.append(live.books(second))
                unread = live.unread_messages(second)
                return live.balance(seen[-1]) == 0 and (seen[-1]["accepted"], unread.total()) >= (REPORTS, BAD)

            live.wait_until(is_finished, process, log)
            process.send_signal(signal.SIGTERM)
            assert process.wait(live.PATIENCE) == 0, log.read_text()
    after = seen[-1]
    assert live.balance(after) == 0
    assert live.unread_messages(second) == {"malformed": BAD}
    assert after == Counter(received=REPORTS + after["duplicates"], accepted=REPORTS, duplicates=after["duplicates"])
    assert before["accepted"] + after["duplicates"] <= REPORTS  # redelivered is only what the first did not count
    whole = KRR.count(batch)
    assert last_counts(second) == (whole.num_reports.tolist(), whole.cells.ravel().tolist())


def last_counts(output: Path) -> tuple[list[int], list[int]]:
    """Of the only window the counts of its last pane."""
    records: list[Any] = []
    for path in output.glob("counts-*.avro"):
        with path.open("rb") as file:
            records += fastavro.reader(file)
    assert len({record["window_start"] for record in records}) == 1
    last = max(records, key=lambda record: record["pane_index"])
    return last["num_reports"], last["cells"]
