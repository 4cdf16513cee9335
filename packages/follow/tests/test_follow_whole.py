"""``uldp estimate --follow`` has what a stream has: Parquet files, each report id once, smoothed shares."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from packages.follow.tests.support.followed_hours import HOUR, MINUTE, Hours, now
from packages.follow.tests.support.spools import Followed, kill_at
from tests.support.messages_cases import KRR, NOON, URR, collection
from tests.support.spool_writer import finished
from uldp_transforms.jobs.records.row_directory import RowDirectory
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages import wire
from uldp_transforms.rows.smoothed_rows import filter_row
from uldp_transforms.rows.window_history import Neighbours, traits_of
from uldp_transforms.spec.job_spec import JobSpec
from uldp_transforms_follow import follower, known_ids_state, spool_reading


def _parquet(folder: Path, kind: str) -> list[dict[str, Any]]:
    """The rows of a kind in Parquet files."""
    return [row for path in sorted(folder.glob(f"{kind}*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_parquet_files_have_the_rows_of_the_other_files(tmp_path: Path) -> None:
    """One file of each kind in a transaction, and one row per value; also in those of the job over files."""
    followed = Followed(tmp_path, "--write_parquet", "--min_reports", "10")
    for _ in range(2):
        followed.add_file()
        followed.steps(2)
    for kind, numbers in (("estimates", "num_reports"), ("health", "num_reports"), ("ledger", "received")):
        names = ["collection_id", "fingerprint", numbers]
        rows = [[row[name] for name in names] for row in _parquet(followed.output, kind)]
        assert rows == [[row[name] for name in names] for row in followed.rows(kind)] != [], kind
    shares = [row["estimates"] for row in followed.rows("estimates")]
    assert [row["estimates"] for row in _parquet(followed.output, "estimates")] == shares
    entries = [entry["value"] for row in followed.rows("estimates") for entry in row["estimates"]]
    assert sorted(row["value"] for row in _parquet(followed.output, "values")) == sorted(entries)
    assert len(_parquet(followed.output, "rejected")) == 2
    assert not list(followed.output.glob("counts*.parquet"))
    followed.run_batch()
    kinds = {path.stem for path in followed.batch.glob("*.parquet")}
    assert kinds == {path.stem.partition("-")[0] for path in followed.output.glob("*.parquet")}


@pytest.mark.parametrize("parquet", [(), ("--write_parquet", "false")])
def test_a_directory_without_json_lines_is_read_and_stays_without(parquet: tuple[str, ...], tmp_path: Path) -> None:
    """Programs read it from another form, in which all rows of the run must be."""
    followed = Followed(tmp_path, "--min_reports", "10", "--write_json", "false", *parquet)
    followed.add_file()
    followed.steps(2)
    forms = {path.suffix for path in followed.output.glob("estimates-*")}
    assert forms == ({".avro"} if parquet else {".avro", ".parquet"})
    windows = RowDirectory(str(followed.output)).windows()
    assert {bool(row["num_shown"]) for row in windows if row["status"] == "ok"} == {True}
    at = followed.window.index("--write_json")
    followed.window[at : at + 2] = []
    with pytest.raises(SpecError, match=r'^--output must be a directory for the same windows, .*"estimates": '):
        followed.steps(1)


def _files(followed: Followed) -> dict[str, int]:
    """Number of row files by kind and form."""
    paths = (path for path in followed.output.glob("*-*-*.*") if not path.name.startswith("run-"))
    return dict(Counter(f"{path.name.partition('-')[0]}{path.suffix}" for path in paths))


def test_rows_of_a_while_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute after the first; a kill between writing and emptying writes them again, with those that came since."""
    time = [0.0]
    monkeypatch.setattr(follower, "_seconds", lambda: time[0])
    followed = Followed(tmp_path, "--flush_every", "1m", "--write_parquet", of=(KRR,))

    def seen(point: str) -> None:
        if point in ("after counts are committed", "after estimates are committed"):
            files.append(_files(followed))
            time[0] += 25.0
            if len(files) < 5:
                followed.add_file(minutes=1)

    files: list[dict[str, int]] = []
    followed.add_file(minutes=1)
    followed.steps(4, seen)
    assert files[:4] == [{}] * 4, "75 seconds after the first rows"
    once = dict.fromkeys(("estimates.avro", "estimates.jsonl", "ledger.jsonl", "rejected.avro", "counts.avro"), 1)
    parquet = dict.fromkeys((f"{kind}.parquet" for kind in ("estimates", "values", "ledger", "rejected", "health")), 1)
    assert files[4] == once | parquet | {"health.jsonl": 1}
    number = sum(1 for _ in followed.rows("estimates"))
    followed.add_file(minutes=1)
    assert followed.killed(1, kill_at("before emptying", 1))
    followed.add_file(minutes=1)
    followed.steps(2)
    followed.window = ["--window", "1m", "--min_reports", "1"]  # files have no time between files
    followed.assert_exact()
    rows = [(row["window_start"], row["pane_index"]) for row in followed.rows("estimates")]
    assert len(rows) == len(set(rows)) > number
    for kind in ("estimates", "health", "ledger"):
        assert len(_parquet(followed.output, kind)) == len(followed.rows(kind)), kind


# ---------------------------------------------------------------------- each report id once


ONCE = [("--deduplicate",), ("--deduplicate", "--deduplicate_by", "fingerprints")]


def _add(followed: Followed, messages: Sequence[bytes]) -> None:
    """Finish a file of these messages."""
    finished(followed.spool, messages)


def _duplicates(followed: Followed) -> int:
    return sum(row["duplicates"] for row in followed.rows("ledger"))


@pytest.mark.parametrize("once", ONCE)
def test_retries_count_once_as_in_the_job_over_files(once: tuple[str, ...], tmp_path: Path) -> None:
    """Copies in one file, in files that are counted together, and after a restart."""
    followed = Followed(tmp_path, *once)
    first, second = followed.messages(), followed.messages(reports=30)
    for messages in (first * 2, [*first, *second]):
        _add(followed, messages)
    followed.steps(2)
    _add(followed, [*second[:2], *first])
    followed.steps(2)
    followed.assert_exact()
    reports = 60 * len(followed.of)
    assert _duplicates(followed) == 3 * reports + 60


def _of_one_id(number_of_reports: int) -> list[bytes]:
    """Packs of one report each, which differ but have the same id."""
    values, rng = KRR.alphabet.known_values, np.random.default_rng(5)
    times = [NOON // MINUTE * MINUTE + number for number in range(number_of_reports)]
    batches = [KRR.perturb([values[place % len(values)]], rng, [time]) for place, time in enumerate(times)]
    same = batches[0].report_ids
    return [wire.encode_batch(dataclasses.replace(batch, report_ids=same)) for batch in batches]


def test_of_two_reports_with_one_id_the_smaller_one_counts(tmp_path: Path) -> None:
    """Whichever comes first: the larger one is subtracted, also from the groups and in a later pane."""
    packs, found = _of_one_id(4), []
    for number, order in enumerate(([0, 1, 2, 3], [3, 2, 1, 0])):
        followed = Followed(tmp_path / str(number), "--deduplicate", of=(KRR,))
        for place in order:
            _add(followed, [packs[place], *followed.messages(reports=5, minutes=1)])
            followed.steps(1)
        followed.assert_exact()
        assert _duplicates(followed) == 3
        found.append(followed)
    assert found[0].counts(found[0].output) == found[1].counts(found[1].output)


def test_what_memory_lets_go_is_read_again(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "--deduplicate", of=(KRR, URR))
    first = followed.messages(reports=200)
    for messages in (first, followed.messages(reports=3000), first):
        _add(followed, messages)
    with mock.patch.object(known_ids_state, "MOST_BYTES", 0), mock.patch.object(spool_reading, "FILES_OF_REPORTS", 1):
        followed.steps(2)
    assert _duplicates(followed) == 400
    followed.assert_exact()


@pytest.mark.parametrize("once", ONCE)
def test_ids_are_forgotten_as_in_a_stream_and_nothing_counts_twice(once: tuple[str, ...], tmp_path: Path) -> None:
    """The lateness and ten minutes after a base period; an old file that comes still later is too old, not new."""
    followed, time = Hours(tmp_path, *once), now() // HOUR * HOUR
    followed.add_reports([time + 1, time + 2], begun=time)
    last = time + 2 * HOUR + 10 * MINUTE
    for clock, rows in ((time, 1), (last - 1, 1), (last, 0)):
        followed.steps(1, clock=lambda clock=clock: clock)
        with contextlib.closing(sqlite3.connect(followed.output / "follow.sqlite")) as database:
            assert database.execute("SELECT count(*) FROM known_ids").fetchone() == (rows,), clock - time
    followed.add_reports([time + 1, time + 2, last], begun=time)
    followed.steps(1, clock=lambda: last)
    assert followed.verdicts() == {"received": 5, "accepted": 2, "too_old": 2, "too_early": 1}


# ---------------------------------------------------------------------- smoothing


def _smoothed(followed: Followed) -> list[Any]:
    """What rows say of smoothed shares and changes, in the order in which they were written."""
    health = {(row["fingerprint"], row["window_start"], row["pane_index"]): row for row in followed.rows("health")}
    found = []
    for row in followed.rows("estimates"):
        findings = health[row["fingerprint"], row["window_start"], row["pane_index"]]["findings"]
        changes = [(one["p_value"], one["sentence"]) for one in findings if one["name"] == "change"]
        names = ("smoothed_frequency", "smoothed_low", "smoothed_high")
        found.append((changes, [[each[name] for name in names] for each in row["estimates"]]))
    return found


def test_windows_are_smoothed_as_those_of_a_stream(tmp_path: Path) -> None:
    """From the windows before them, after restarts too; a late pane replaces its window; a jump is found."""
    followed, plain, rng = Followed(tmp_path, "--smooth"), list[Any](), np.random.default_rng(3)
    whole = follower.rows_of_windows

    def spied(spec: JobSpec, samples: Any, **named: Any) -> Any:
        found = whole(spec, samples, **named)
        plain.extend((spec, bytes.fromhex(row.fingerprint), row) for row in found["estimates"])
        return found

    with mock.patch.object(follower, "rows_of_windows", spied):
        for number in range(3):
            _add(followed, followed.messages(reports=200, minutes=4))
            for minute in ([*range(5, 15)], [15], [16])[number]:
                same = [KRR.alphabet.known_values[2 * (number > 0)]] * 2000
                times = [NOON // MINUTE * MINUTE + minute * MINUTE] * 2000
                _add(followed, [wire.encode_batch(KRR.perturb(same, rng, times))])
            followed.steps(1)
    held: dict[bytes, Neighbours] = {}
    expected = []
    for spec, fingerprint, row in plain:
        before = held.get(fingerprint) or Neighbours.of([], *traits_of(spec.models_of(fingerprint)))
        held[fingerprint], smooth, change = filter_row(before, row, spec.alarm_every)
        cells = [[each.smoothed_frequency, each.smoothed_low, each.smoothed_high] for each in smooth.estimates]
        expected.append(([(change.p_value, change.sentence)] if change else [], cells))
    assert _smoothed(followed) == expected
    said = [change[1] for changes, _ in expected for change in changes]
    assert len(said) > 10 and any("Shares moved" in sentence for sentence in said)


def _windows_of_smoothing(followed: Followed) -> dict[bytes, bytes]:
    with contextlib.closing(sqlite3.connect(followed.output / "follow.sqlite")) as database:
        return dict(database.execute("SELECT fingerprint, windows FROM smoothing"))


def test_kills_leave_the_windows_of_smoothing_as_they_are_in_the_rows(tmp_path: Path) -> None:
    """They are those of a job that counted the same files at once."""
    followed = Followed(tmp_path, "--smooth")
    for point in ("before estimates are committed", "after estimates are committed", "before estimates"):
        for number in (1, 2):
            followed.add_file(reports=20, minutes=2)
            assert followed.killed(2, kill_at(point, number)) or number == 2, point
    followed.steps(2)
    found, followed.output = _windows_of_smoothing(followed), tmp_path / "again"
    followed.steps(1)
    assert len(found) == len(followed.of) + 1, "the versions of a question, and their pool"
    assert found == _windows_of_smoothing(followed)


def test_a_directory_of_an_earlier_program_goes_on(tmp_path: Path) -> None:
    """It has none of the tables of ids, of smoothing and of early rows."""
    followed = Followed(tmp_path, of=(KRR,))
    followed.add_file()
    followed.steps(2)
    with contextlib.closing(sqlite3.connect(followed.output / "follow.sqlite")) as database:
        database.execute("DROP TABLE early")
        tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert tables == {"meta", "files", "counts", "windows", "outbox", "offsets", "last_records"}
    followed.window += ["--smooth", "--write_parquet"]
    followed.add_file()
    followed.steps(2)
    late = [row for row in followed.rows("estimates") if row["pane_index"] == 1]
    assert late and all(each["smoothed_frequency"] is not None for row in late for each in row["estimates"])


# ---------------------------------------------------------------------- kills

NEW_POINTS = ("after ids are remembered", "in the transaction of counts", "after counts are committed", "before values")


@pytest.mark.parametrize("once", ONCE)
def test_kills_remember_exactly_what_is_counted(once: tuple[str, ...], tmp_path: Path) -> None:
    """With copies of everything in later files, some of which are counted after the kill."""
    followed, before = Followed(tmp_path, *once, "--write_parquet"), list[bytes]()
    for point in NEW_POINTS:
        for number in (1, 2):
            messages = followed.messages(reports=20, minutes=2)
            _add(followed, [*messages, *before])
            before = messages
            assert followed.killed(2, kill_at(point, number)) or number == 2, point
    followed.steps(2)
    assert _duplicates(followed) == (2 * len(NEW_POINTS) - 1) * 20 * len(followed.of)
    followed.assert_exact()


def test_unlisted_values_are_found_once_over_kills(tmp_path: Path) -> None:
    """The same as by the job over the files, with the numbers of the last row of each window."""
    alphabet = {"id": "prefixes", "num_buckets": 24, "tokens": ["ba", "na", "che", "rry"], "lengths": [1, 2, None]}
    words = collection("words", alphabet, "krr", 64, epsilon=4.0)
    followed = Followed(tmp_path, "--discover", of=(words,), values=["banana", "banana", "cherry"])
    for point in ("before discovered", "after discovered", "before emptying"):
        followed.add_file(reports=3000, minutes=2)
        assert followed.killed(2, kill_at(point, 1)), point
    followed.steps(2)
    followed.run_batch()
    rows = followed.rows("discovered")
    places = Counter((row["window_start"], row["pane_index"], row["value"]) for row in rows)
    assert set(places.values()) == {1}
    panes: dict[str, int] = {}
    for row in rows:
        panes[row["window_start"]] = max(panes.get(row["window_start"], 0), row["pane_index"])
    last = [row for row in rows if row["pane_index"] == panes[row["window_start"]]]
    assert set(map(_found, last)) == set(map(_found, followed.rows("discovered", followed.batch)))
    assert {row["value"] for row in last} >= {"banana", "cherry"} and len(panes) == 2


def _found(row: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("window_start", "num_reports", "value", "frequency", "ci_low", "ci_high"))
