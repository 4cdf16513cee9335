"""Runs that ended early: the reports in the rows of killed runs, those that no ledger accounts for, and the windows of
which a later run of the same source has only a part.

A killed run cannot write the rest of its ledger, and its source does not deliver acknowledged messages again. So each
killed run is reported until it is acknowledged.
"""

from __future__ import annotations

import datetime
import json
import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from uldp_transforms.files import stores
from uldp_transforms.jobs.records.ledger_sums import summary
from uldp_transforms.jobs.records.row_reading import read_rows, row_files
from uldp_transforms.jobs.records.run_accounts import read_accounts
from uldp_transforms.jobs.records.run_records import STOPPED, RunRecord, files_of
from uldp_transforms.rows.figures.window_names import moment_in_zone
from uldp_transforms.windows import moment_of, now, rfc3339

Row = Mapping[str, Any]

_ALWAYS = "1970-01-01T00:00:00Z"
"""Start and end of a window that holds everything."""


class KilledRun(NamedTuple):
    """A killed run of a source that resumes where the last run stopped.

    Attributes:
        run: its name.
        held: number of reports in its estimates; a lower bound if windows overlap.
        accounted: number of accepted reports in its ledger rows.
        accounts: what it had counted when it last said so, see ``run_accounts``; None: it kept no accounts.
    """

    run: str
    held: int
    accounted: int
    accounts: Row | None = None

    @property
    def counted(self) -> int:
        """Number of reports that it certainly accepted: of its accounts or estimates, whichever is larger."""
        return max(self.held, 0 if self.accounts is None else self.accounts["accepted"])

    @property
    def lost(self) -> int | None:
        """Maximum number of reports that it had accepted and that are in no estimate; None if unknown."""
        return None if self.accounts is None else max(self.accounts["accepted"] - self.held, 0)

    def sentence(self, directory: str, zone: datetime.tzinfo) -> str:
        """Describe the run, with times in a time zone, and how to acknowledge it."""
        missing = self.held - self.accounted
        books = f", of which {missing:,} are in no ledger row" if missing > 0 else ""
        lost = "reports that it had acknowledged but not written are lost, in a number that is unknown"
        if self.accounts is not None:
            until = moment_in_zone(self.accounts["time"], zone)
            lost = (
                f"until {until} it had counted {summary(self.accounts)}, of which at most {self.lost:,} accepted "
                "reports are in no estimate and are lost, as is what it acknowledged after that"
            )
        return (
            f"run {self.run} was killed: its estimates contain {self.held:,} reports{books}; {lost}. "
            f"To accept this, run uldp check {directory} --acknowledge {self.run}"
        )


def killed_runs(
    records: Iterable[RunRecord], estimates: Iterable[Row], ledger: Iterable[Row], directory: str
) -> list[KilledRun]:
    """The known facts about each of these killed runs.

    Args:
        records: of the runs.
        estimates: rows of these runs, of each window and run the one with the most reports.
        ledger: rows of these runs.
        directory: their output directory, with the accounts that they kept.
    """
    held = _held(estimates)
    accounted: dict[str, int] = defaultdict(int)
    for row in ledger:
        accounted[row["run"]] += row["accepted"]
    return [
        KilledRun(run, held.get(run, 0), accounted[run], read_accounts(directory, run))
        for run in (record.run for record in records)
    ]


def _held(estimates: Iterable[Row]) -> dict[str, int]:
    """Number of reports in non-overlapping windows of each run, the earliest first; rows of questions repeat them."""
    windows: dict[tuple[str, str], dict[tuple[int, int], int]] = defaultdict(dict)
    for row in estimates:
        if row.get("num_reports") is not None and not row.get("pooled"):
            start, end = (moment_of(row[name] or _ALWAYS) for name in ("window_start", "window_end"))
            of_run = windows[row["run"], row["fingerprint"]]
            of_run[start, end] = max(of_run.get((start, end), 0), row["num_reports"])
    held: dict[str, int] = defaultdict(int)
    for (run, _), found in windows.items():
        over = -math.inf
        for (start, end), number in sorted(found.items()):
            if start >= over:
                held[run] += number
                over = end
    return held


def acknowledged(directory: str) -> set[str]:
    """Names of the acknowledged runs of this directory."""
    names = (stores.name_of(path) for path in files_of(directory, "acknowledged-*.json"))
    return {name.removeprefix("acknowledged-").removesuffix(".json") for name in names}


def acknowledge(directory: str, run: str) -> None:
    """Record that the kill of this run was acknowledged; raises the errors of the file system."""
    path = stores.joined(directory, f"acknowledged-{run}.json")
    with stores.created(path) as file:
        file.write(f"{json.dumps({'run': run, 'acknowledged': rfc3339(now())})}\n".encode())


def without_end(records: Sequence[RunRecord], *, latest_is_killed: bool) -> list[RunRecord]:
    """The killed runs of a resuming source: those without an end, except a latest run that is still alive."""
    ended = records if latest_is_killed else records[:-1]
    return [record for record in ended if record.resumes and record.end is None and not record.launched]


_CLOCKS = 60_000  # milliseconds by which the clocks of this machine and of the source may differ


def cut_before(records: Sequence[RunRecord], began: int, skew: int, directory: str) -> int | None:
    """The time before which windows are cut, because an earlier run received some of their reports.

    A client's clock may be ahead, so that a run receives reports of windows that begin up to ``skew`` after its end. A
    run that was stopped wrote a row of every window of which it had reports, so only those up to its last window are
    cut; of other runs, and in a store, all that begin within ``skew``.

    Args:
        records: records of earlier runs.
        began: milliseconds since 1970 at which the present run began, by which a killed run must have ended.
        skew: milliseconds by which a client's clock may be ahead.
        directory: output directory of these runs.

    Returns:
        Milliseconds since 1970; None if no earlier run acknowledged anything.

    Raises:
        SpecError, OSError: if rows of a stopped run cannot be read.
    """
    found = None
    for record in sorted((record for record in records if record.resumes), key=lambda one: -_end(one, began)):
        if found is not None and found >= _end(record, began) + skew:
            break  # of a run that ended long before
        cut = _end(record, began) + skew
        if record.end == STOPPED and not record.launched and not stores.in_store(directory):
            starts = _last_windows(record, began, skew, directory)
            cut = min(cut, max([_end(record, began), *(start + 1 for start in starts)]))
        found = cut if found is None else max(found, cut)
    return found


def _end(record: RunRecord, began: int) -> int:
    return began if record.ended is None else moment_of(record.ended)


def _last_windows(record: RunRecord, began: int, skew: int, directory: str) -> list[int]:
    """Starts of windows in the rows of a run; only files that may have rows of its last windows are read."""
    since = (_end(record, began) - skew - _CLOCKS) * 1_000_000
    own = (
        path
        for path in row_files(directory, "estimates")
        if stores.name_of(path).startswith(f"estimates-{record.run}-")
    )
    late = (path for path in own if os.stat(path).st_mtime_ns >= since)
    rows = (row for path in late for _, _, row in read_rows(path, entries=False))
    return [moment_of(row["window_start"]) for row in rows if row["window_start"] is not None]
