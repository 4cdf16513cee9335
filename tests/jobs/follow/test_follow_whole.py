"""``uldp estimate --follow`` has what a stream has: Parquet files, each report id once, smoothed shares."""

from __future__ import annotations

import contextlib
import dataclasses
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.jobs.follow.spools import Followed, kill_at
from tests.jobs.follow.test_follow_gate import HOUR, MINUTE, Hours, now
from tests.support.messages_cases import KRR, NOON, URR
from uldp_transforms.jobs.follow import known_ids_state, spool_reading
from uldp_transforms.jobs.gateway.spool_file import SpoolFile
from uldp_transforms.ldp import SpecError
from uldp_transforms.messages import wire


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


# ---------------------------------------------------------------------- each report id once


ONCE = [("--deduplicate",), ("--deduplicate", "--deduplicate_by", "fingerprints")]


def _add(followed: Followed, messages: Sequence[bytes]) -> None:
    """Finish a file of these messages."""
    file = SpoolFile(followed.spool)
    for message in messages:
        file.append([message])
    assert file.finish() is not None


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


def _of_one_id(times: int) -> list[bytes]:
    """Packs of one report each, which differ but have the same id."""
    values, rng = KRR.alphabet.known_values, np.random.default_rng(5)
    batches = [
        KRR.perturb([values[number % len(values)]], rng, [NOON // MINUTE * MINUTE + number]) for number in range(times)
    ]
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


def test_a_directory_keeps_to_how_it_counts(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "--deduplicate", of=(KRR,))
    followed.steps(1)
    followed.window.remove("--deduplicate")
    with pytest.raises(SpecError, match="--output must be a directory for the same windows"):
        followed.steps(1)


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
