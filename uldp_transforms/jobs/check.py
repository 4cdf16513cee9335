"""Whether the rows in a directory of ``uldp estimate`` are well: for cron and alarms.

Reads the records of runs, the ledger, the estimates and what sentinels say, prints a short table, and one sentence for
each thing that is wrong. Exit code 0: all is well; 1: something is wrong. A line "memos" names a collection in which
nobody knows how often a person reports, which changes no exit code. Numbers are those of the latest run; if the
source goes on where the last run stopped (Pub/Sub), those of all runs.
"""

from __future__ import annotations

import dataclasses
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from uldp_transforms.jobs import cli
from uldp_transforms.jobs.records.ledger_sums import add_up, periods_out_of_balance, summary, sums_of
from uldp_transforms.jobs.records.run_directory import is_in_use
from uldp_transforms.jobs.records.run_records import (
    COMPLETE,
    STOPPED,
    RunRecord,
    files_of,
    of_jobs,
    read_lines,
    read_records,
)
from uldp_transforms.jobs.records.unknown_repeats import warnings_of
from uldp_transforms.jobs.report.collection_facts import collections_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.refusal_causes import allowed_share, sentence_of_sums
from uldp_transforms.windows import LATENESS_SLACK, milliseconds, moment_of, now, rfc3339

WRONG = 1

RUNNING, KILLED, LAUNCHED, UNKNOWN = "running", "killed", "launched", "running or killed"
"""What a run is whose record has no end."""

_WELL = (COMPLETE, STOPPED, RUNNING, LAUNCHED, UNKNOWN)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """Options of the check; ``max_age`` in milliseconds (None: any age)."""

    directory: str
    max_age: int | None


def configure(argv: Sequence[str]) -> Check:
    """Parse the command line; raises SpecError."""
    parser = cli.Parser("check", description=__doc__)
    parser.add_argument("directory", metavar="DIR", help="output directory of uldp estimate")
    parser.add_argument(
        "--max_age",
        type=cli.duration("--max_age"),
        help="largest age of the latest window with numbers, such as 2h; older alarms are not repeated (default: any "
        "age)",
    )
    args = parser.parse_args(argv)
    if "://" not in args.directory and not os.path.isdir(args.directory):
        raise SpecError(f"DIR must be a directory, got {args.directory!r}")
    return Check(directory=args.directory, max_age=args.max_age)


def job(check: Check) -> int:
    """Print the table and the findings; returns the exit code."""
    records = read_records(check.directory)
    if not records:
        print(f"check: {check.directory} has no record of a run")
        return WRONG
    latest = records[-1]
    state = state_of(latest, check.directory)
    seen = [record for record in records if record.run == latest.run or (latest.resumes and record.resumes)]
    findings = [] if state in _WELL else [f"run {latest.run}: {latest.sentence or 'it was killed'}"]
    lines = [("run", f"{latest.run} {state}, {latest.started} to {latest.ended or 'now'}")]
    with of_jobs(check.directory):
        for section in (_ledger, _windows, _alarms):
            line, found = section(check, seen, state)
            lines.append(line)
            findings += found
    lines += [("memos", warning) for warning in warnings_of(collections_of(seen, ()).values())]
    width = max(len(name) for name, _ in lines)
    print(*(_harmless(f"{name:{width}}  {what}") for name, what in lines), sep="\n")
    for finding in findings:
        print(_harmless(f"check: {finding}"))
    return WRONG if findings else cli.DONE


def _harmless(line: str) -> str:
    """A line of a table for terminals, which obey control characters."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)


def state_of(record: RunRecord, directory: str) -> str:
    """How the latest run of a directory ended, or what else it is."""
    if record.end is not None:
        return record.end
    if record.launched:
        return LAUNCHED
    return {True: RUNNING, False: KILLED, None: UNKNOWN}[is_in_use(directory)]


Section = tuple[tuple[str, str], list[str]]
"""A line of the table, and sentences about what is wrong."""


def _ledger(check: Check, seen: Sequence[RunRecord], state: str) -> Section:
    """Sums of all runs; out of balance is wrong for a run that ended well, and for periods that a live one is past."""
    of_run: dict[str, list[dict[str, Any]]] = {record.run: [] for record in seen}
    for row in _rows(check.directory, "ledger", seen):
        of_run[row["run"]].append(row)
    findings = []
    for record in seen:
        rows = of_run[record.run]
        if record is seen[-1] and state in (RUNNING, LAUNCHED, UNKNOWN):
            over = now() - milliseconds(record.specification["allowed_lateness"], "allowed_lateness") - LATENESS_SLACK
            rows = [row for row in rows if row["window_end"] is not None and moment_of(row["window_end"]) < over]
        elif record.end not in (COMPLETE, STOPPED):
            continue
        if wrong := periods_out_of_balance(rows):
            findings.append(f"the ledger of run {record.run} does not balance in {len(wrong)} period(s)")
    if not any(of_run.values()):
        return ("ledger", "no rows"), findings
    sums = add_up(map(sums_of, of_run.values()))
    share = allowed_share(seen[-1].specification.get("max_rejected_share"), bounded=seen[-1].bounded)
    cause = sentence_of_sums(sums["rejected"], sums["received"], share)
    findings += [] if cause is None else [cause]
    return ("ledger", f"{summary(sums)}, {'balanced' if sums['balanced'] else 'NOT balanced'}"), findings


def _windows(check: Check, seen: Sequence[RunRecord], state: str) -> Section:
    """Windows by status, and when the latest one with numbers ended."""
    rows = latest_rows(_rows(check.directory, "estimates", seen))
    statuses = Counter(row["status"] for row in rows)
    words = ", ".join(f"{status} {number}" for status, number in sorted(statuses.items())) or "none"
    ends = [moment_of(row["window_end"]) for row in rows if row["status"] == "ok" and row["window_end"] is not None]
    if not ends and statuses["ok"] and seen[-1].ended is not None:
        ends = [moment_of(seen[-1].ended)]  # one window for everything
    if not ends:
        stale = [] if check.max_age is None else ["no window has numbers"]
        return ("windows", f"{words}; no numbers"), stale
    age, end = now() - max(ends), rfc3339(max(ends))
    stale = []
    if check.max_age is not None and age > check.max_age:
        stale = [f"the latest window with numbers ended at {end}, {_words(age)} ago, more than {_words(check.max_age)}"]
    return ("windows", f"{words}; numbers up to {end}, {_words(age)} ago"), stale


def _alarms(check: Check, seen: Sequence[RunRecord], state: str) -> Section:
    """Windows in which a sentinel fired; with ``max_age`` only recent ones are wrong."""
    rows = [row for row in latest_rows(_rows(check.directory, "health", seen)) if row["status"] == "alarm"]
    since = None if check.max_age is None else now() - check.max_age
    recent: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if since is None or row["window_end"] is None or moment_of(row["window_end"]) >= since:
            recent[row["collection_id"]].append(row["window_start"] or "all of time")
    sentences = [
        f"sentinels fired for collection {name!r} in {len(starts)} window(s), the last from {max(starts)}"
        for name, starts in sorted(recent.items())
    ]
    return ("alarms", f"{len(rows)} window(s)"), sentences


def _rows(directory: str, name: str, seen: Sequence[RunRecord]) -> list[dict[str, Any]]:
    """The rows of one kind that these runs wrote."""
    runs = {record.run for record in seen}
    paths = files_of(directory, f"{name}.jsonl") + files_of(directory, f"{name}-*.jsonl")
    return [row for row in read_lines(paths) if row.get("run") in runs]


def latest_rows(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of each window the row that readers take, by the rule of docs/consume.md: no partial one if there is another; of
    the latest run; of that the one with the most reports; of these the last pane."""
    latest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        window = (row["fingerprint"], row["window_start"], row["window_end"])
        if window not in latest or _place(row) >= _place(latest[window]):
            latest[window] = row
    return list(latest.values())


def _place(row: Mapping[str, Any]) -> tuple[bool, str, int, int]:
    reports = row.get("num_reports")  # not in a row without numbers, which comes before those with some
    return row["status"] != "partial", row.get("run") or "", -1 if reports is None else reports, row["pane_index"]


def _words(length: int) -> str:
    """Milliseconds in hours and minutes."""
    minutes = length // 60_000
    return f"{minutes // 60}h{minutes % 60:02}m" if minutes >= 60 else f"{minutes}m"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("check", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    sys.exit(main())
