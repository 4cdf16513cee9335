"""Checks the results in an output directory of ``uldp estimate``, for cron jobs and alerts.

Reads the run records, the ledger, the estimates and the sentinels' findings, and prints a short table and one sentence
for each problem. Exit code 0: no problem; 1: at least one problem. A line "memos" names a collection for which the
number of reports per person is unknown; it does not change the exit code. Numbers are those of the latest run. If the
source resumes where the last run stopped (Pub/Sub), they are those of all runs, and each killed run is reported until
it is acknowledged.
"""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import fastavro

from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.files.text_table import printable
from uldp_transforms.jobs.records.killed_runs import acknowledge, acknowledged, killed_runs, without_end
from uldp_transforms.jobs.records.ledger_sums import (
    UNREAD_FILES,
    UNREAD_MESSAGES,
    add_up,
    periods_out_of_balance,
    sentence_of_times,
    summary,
    sums_of,
)
from uldp_transforms.jobs.records.row_reading import read_rows, row_files
from uldp_transforms.jobs.records.run_directory import is_in_use, unfinished_folders
from uldp_transforms.jobs.records.run_records import (
    COMPLETE,
    STOPPED,
    RunRecord,
    collections_of,
    files_of,
    of_jobs,
    read_records,
    zone_of,
)
from uldp_transforms.jobs.records.unknown_repeats import warnings_of
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.messages.refusal_causes import allowed_share, sentence_of_files, sentence_of_sums
from uldp_transforms.rows.figures.window_names import moment_in_zone, name_of_moment
from uldp_transforms.rows.row_types import CHANGE, REPEATS
from uldp_transforms.windows import LATENESS_SLACK, milliseconds, moment_of, now, rfc3339

WRONG = 1

RUNNING, KILLED, LAUNCHED, UNKNOWN = "running", "killed", "launched", "running or killed"
"""State of a run whose record has no end."""

_WELL = (COMPLETE, STOPPED, RUNNING, LAUNCHED, UNKNOWN)


_COUNTS = ("num_reports", "pane_index", "received", "accepted", "duplicates", "in_transit")


@dataclasses.dataclass(kw_only=True)
class Told:
    """Results of the check.

    Attributes:
        lines: of the table, by name.
        findings: one sentence for each problem.
        memos: collections in which it is not known how often a person reports; no problem.
        numbers: by name, for programs; times in seconds since 1970.
    """

    lines: dict[str, str] = dataclasses.field(default_factory=dict)
    findings: list[str] = dataclasses.field(default_factory=list)
    memos: Sequence[str] = ()
    numbers: dict[str, float] = dataclasses.field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """The results as one object; ``well`` is true if the exit code is 0."""
        return {"well": not self.findings, **dataclasses.asdict(self)}

    def for_prometheus(self, time: int) -> str:
        """The numbers in the text format of Prometheus, with the time of the check in milliseconds since 1970."""
        numbers = self.numbers | {"problems": len(self.findings), "time_seconds": time / 1000}
        return "".join(f"# TYPE uldp_check_{n} gauge\nuldp_check_{n} {v:.15g}\n" for n, v in sorted(numbers.items()))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Check:
    """Options of the check; ``max_age`` in milliseconds (None: any age)."""

    directory: str
    max_age: int | None
    acknowledge: tuple[str, ...]
    as_json: bool
    prometheus: str | None


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
    parser.add_argument(
        "--acknowledge",
        metavar="RUN",
        action="append",
        default=[],
        help="name of a killed run to stop reporting; may be given several times",
    )
    parser.add_argument("--print_json", action="store_true", help="print one JSON object instead of the table")
    parser.add_argument(
        "--prometheus",
        metavar="FILE",
        help="also write the numbers to FILE, which the textfile collector of a node exporter reads",
    )
    args = parser.parse_args(argv)
    if "://" not in args.directory and not os.path.isdir(args.directory):
        raise SpecError(f"DIR must be a directory, got {args.directory!r}")
    return Check(
        directory=args.directory,
        max_age=args.max_age,
        acknowledge=tuple(args.acknowledge),
        as_json=args.print_json,
        prometheus=args.prometheus,
    )


def job(check: Check) -> int:
    """Print the table and the findings; returns the exit code."""
    records = read_records(check.directory)
    if not records:
        findings = [f"{check.directory} contains no run record", *_without_record(check.directory, records)]
        return _told(check, Told(findings=findings))
    for run in check.acknowledge:
        _acknowledge(check.directory, run, records)
    latest = records[-1]
    state = state_of(latest, check.directory)
    seen = [record for record in records if record.run == latest.run or (latest.resumes and record.resumes)]
    ended = latest.sentence or ("" if latest.resumes else "it was killed")
    told = Told(findings=[f"run {latest.run}: {ended}"] if state not in _WELL and ended else [])
    zone = zone_of([latest])
    began, over = (name_of_moment(moment, zone) if moment else "now" for moment in (latest.started, latest.ended))
    told.lines["run"] = f"{latest.run} {state}, {began} to {over} ({zone})"
    with of_jobs(check.directory):
        for section in (_ledger, _windows, _alarms, _killed):
            section(check, seen, state, told)
    told.findings += _without_record(check.directory, records)
    told.memos = warnings_of(collections_of(seen, ()).values())
    return _told(check, told)


def _without_record(directory: str, records: Sequence[RunRecord]) -> list[str]:
    """Sentences about runs that began and ended without a record, as on a full disk; the next run removes what they
    left."""
    if is_in_use(directory):
        return []
    known = {record.run for record in records}
    began = [folder.rpartition("unfinished-")[2] for folder in unfinished_folders(directory)]
    return [f"run {run} began and could not write its record: is the disk full?" for run in began if run not in known]


def _told(check: Check, told: Told) -> int:
    """Print the results, and write them to the Prometheus file if one is named; returns the exit code."""
    if check.prometheus is not None:
        with whole_file(check.prometheus) as file:
            file.write(told.for_prometheus(now()).encode())
    if check.as_json:
        print(json.dumps(told.as_json(), ensure_ascii=False))
    else:
        lines = [*told.lines.items(), *(("memos", warning) for warning in told.memos)]
        width = max((len(name) for name, _ in lines), default=0)
        for line in (*(f"{name:{width}}  {what}" for name, what in lines), *(f"check: {f}" for f in told.findings)):
            print(printable(line))
    return WRONG if told.findings else cli.DONE


def _acknowledge(directory: str, run: str, records: Sequence[RunRecord]) -> None:
    """Raises SpecError for a run that was not killed."""
    killed = without_end(records, latest_is_killed=state_of(records[-1], directory) == KILLED)
    names = [record.run for record in killed]
    if run not in names:
        raise SpecError(f"--acknowledge must name a killed run ({', '.join(names) or 'there is none'}), got {run!r}")
    acknowledge(directory, run)


def state_of(record: RunRecord, directory: str) -> str:
    """Status of the latest run of a directory: how it ended, or that it is running or was killed."""
    if record.end is not None:
        return record.end
    if record.launched:
        return LAUNCHED
    return {True: RUNNING, False: KILLED, None: UNKNOWN}[is_in_use(directory)]


def _ledger(check: Check, seen: Sequence[RunRecord], state: str, told: Told) -> None:
    """Sums of all runs; an imbalance is a problem in a run that ended well, and in periods that a live run has
    completed."""
    of_run: dict[str, list[Mapping[str, Any]]] = {record.run: [] for record in seen}
    for row in _rows(check.directory, "ledger", seen):
        of_run[row["run"]].append(row)
    for record in seen:
        rows = of_run[record.run]
        if record is seen[-1] and state in (RUNNING, LAUNCHED, UNKNOWN):
            over = now() - milliseconds(record.specification["allowed_lateness"], "allowed_lateness") - LATENESS_SLACK
            rows = [row for row in rows if row["window_end"] is not None and moment_of(row["window_end"]) < over]
        elif record.end not in (COMPLETE, STOPPED):
            continue
        if wrong := periods_out_of_balance(rows):
            told.findings.append(f"the ledger of run {record.run} does not balance in {len(wrong)} period(s)")
    if not any(of_run.values()):
        told.lines["ledger"] = "no rows"
        return
    sums = add_up(map(sums_of, of_run.values()))
    share = allowed_share(seen[-1].specification.get("max_rejected_share"), bounded=seen[-1].bounded)
    cause = sentence_of_sums(sums, share)
    told.findings += [] if cause is None else [cause]
    told.lines["ledger"] = f"{summary(sums)}, {'balanced' if sums['balanced'] else 'NOT balanced'}"
    of_times = sentence_of_times(itertools.chain(*of_run.values()))
    told.lines |= {} if of_times is None else {"times": of_times}
    told.numbers |= {name: sums[name] for name in ("received", "accepted", "duplicates")}
    told.numbers |= {name: sum(sums[name].values()) for name in ("rejected", UNREAD_MESSAGES, UNREAD_FILES)}
    told.numbers["balanced"] = int(sums["balanced"])
    if sums[UNREAD_FILES]:
        told.findings.append(str(sentence_of_files(sums[UNREAD_FILES], _unread_files(check.directory, seen))))


def _unread_files(directory: str, seen: Sequence[RunRecord]) -> dict[str, str]:
    """By name, why these runs did not read a file in full."""
    runs, found = {record.run for record in seen}, dict[str, str]()
    for row in _rejected(directory):
        if row.get("run") in runs and row.get("num_files"):
            found.setdefault(str(row["source"]), str(row["reason"]))
    return dict(sorted(found.items()))


def _rejected(directory: str) -> Iterator[Mapping[str, Any]]:
    """The rows of rejected reports in a directory; raises SpecError for other content."""
    for path in files_of(directory, "rejected.avro") + files_of(directory, "rejected-*.avro"):
        with stores.opened(path) as file:
            content = io.BytesIO(file.read())
        try:
            yield from [{**row} for row in fastavro.reader(content)]  # type: ignore[dict-item]  # a record
        except Exception:  # any kind, because fastavro does not validate files
            raise SpecError(f"{path} must contain rows of uldp estimate (the content is not shown)") from None


def _windows(check: Check, seen: Sequence[RunRecord], state: str, told: Told) -> None:
    """Windows by status, and when the latest one with numbers ended."""
    rows = latest_rows(_rows(check.directory, "estimates", seen))
    statuses = Counter(row["status"] for row in rows)
    words = ", ".join(f"{status} {number}" for status, number in sorted(statuses.items())) or "none"
    ends = [moment_of(row["window_end"]) for row in rows if row["status"] == "ok" and row["window_end"] is not None]
    if not ends and statuses["ok"] and seen[-1].ended is not None:
        ends = [moment_of(seen[-1].ended)]  # one window for everything
    if simulated := sum(bool(row.get("simulated")) for row in rows):
        told.lines["simulated"] = f"{simulated} window(s) have simulated reports"
    told.numbers["windows_with_numbers"] = statuses["ok"]
    if not ends:
        told.findings += [] if check.max_age is None else ["no window has numbers"]
        told.lines["windows"] = f"{words}; no numbers"
        return
    age, end = now() - max(ends), moment_in_zone(rfc3339(max(ends)), zone_of(seen))
    if check.max_age is not None and age > check.max_age:
        since, limit = _apart(age, check.max_age)
        told.findings.append(f"the latest window with numbers ended at {end}, {since} ago, more than {limit}")
    told.lines["windows"] = f"{words}; numbers up to {end}, {_words(age)} ago"
    told.numbers["latest_window_end_seconds"] = max(ends) / 1000


def _alarms(check: Check, seen: Sequence[RunRecord], state: str, told: Told) -> None:
    """Windows in which a sentinel fired; with ``max_age`` only recent ones are problems."""
    checked = [row for row in latest_rows(_rows(check.directory, "health", seen)) if _is_checked(row)]
    rows = [row for row in checked if row["status"] == "alarm"]
    since = None if check.max_age is None else now() - check.max_age
    recent: dict[str, list[str]] = defaultdict(list)
    for row in rows:
        if since is None or row["window_end"] is None or moment_of(row["window_end"]) >= since:
            recent[row["collection_id"]].append(row["window_start"] or "")
    zone = zone_of(seen)
    told.findings += [
        f"sentinels fired for collection {name!r} in {len(starts)} window(s), the last from "
        f"{moment_in_zone(max(starts), zone) if any(starts) else 'all of time'}"
        for name, starts in sorted(recent.items())
    ]
    told.lines["alarms"] = f"{len(rows)} of {len(checked)} window(s) that could be checked"
    told.numbers["windows_with_alarms"] = len(rows)


def _is_checked(row: Mapping[str, Any]) -> bool:
    """Whether a sentinel examined the window of a row."""
    return row["status"] == "alarm" or any(one["name"] not in (CHANGE, REPEATS) for one in row.get("findings", ()))


def _killed(check: Check, seen: Sequence[RunRecord], state: str, told: Told) -> None:
    """Killed runs of a source that resumes; each is a problem until it is acknowledged."""
    records, known = without_end(seen, latest_is_killed=state == KILLED), acknowledged(check.directory)
    estimates, ledger = (_rows(check.directory, name, records) for name in ("estimates", "ledger"))
    found = killed_runs(records, estimates, ledger, check.directory)
    new = [run for run in found if run.run not in known]
    told.findings += [run.sentence(check.directory, zone_of(seen)) for run in new]
    told.numbers["killed_runs"] = len(new)
    told.numbers["reports_lost_by_killed_runs"] = sum(run.lost or 0 for run in new)
    missing = sum(max(run.counted - run.accounted, 0) for run in found)
    if missing:
        told.lines["ledger"] += f"; {missing:,} accepted reports of killed runs are in no ledger row"
    if found:
        told.lines["killed"] = f"{len(found)} run(s), {len(found) - len(new)} acknowledged"


def _rows(directory: str, name: str, seen: Sequence[RunRecord]) -> list[Mapping[str, Any]]:
    """The rows of one kind that these runs wrote, of everybody and without their entries."""
    runs = {record.run for record in seen}
    found = (row for path in row_files(directory, name) for _, _, row in read_rows(path, entries=False))
    rows = [row for row in found if row.get("run") in runs and not row.get("group")]
    for row in rows:
        if any(type(row.get(name)) not in (int, type(None)) for name in _COUNTS):
            raise TypeError(f"rows of {name} must have whole numbers as counts, got other values")
    return rows


def latest_rows(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The valid row of each window by the rule of docs/consume.md: a complete row rather than a partial one, then the
    latest run, then the most reports, then the last pane. Rows of groups are left out."""
    return latest_of_groups(row for row in rows if not row.get("group"))


def latest_of_groups(rows: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The valid row of each window and group, by the same rule; everybody is the group "" or None."""
    latest: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for row in rows:
        window = (row["fingerprint"], row["window_start"], row["window_end"], row.get("group") or "")
        if window not in latest or _place(row) >= _place(latest[window]):
            latest[window] = row
    return list(latest.values())


def _place(row: Mapping[str, Any]) -> tuple[bool, str, int, int]:
    reports = row.get("num_reports")  # not in a row without numbers, which comes before those with some
    return row["status"] != "partial", row.get("run") or "", -1 if reports is None else reports, row["pane_index"]


def _words(length: int) -> str:
    """Milliseconds in hours and minutes, and from two days on in days."""
    hours, minutes = divmod(length // 60_000, 60)
    if hours >= 48:
        return f"{hours // 24}d{hours % 24:02}h{minutes:02}m"
    return f"{hours}h{minutes:02}m" if hours else f"{minutes}m"


def _apart(longer: int, shorter: int) -> tuple[str, str]:
    """Two lengths in milliseconds as texts that differ: in hours and minutes, and in seconds if these are the same."""
    words = _words(longer), _words(shorter)
    if words[0] != words[1]:
        return words
    longer, shorter = 1000 * -(-longer // 1000), 1000 * (shorter // 1000)
    return f"{_words(longer)}{longer // 1000 % 60:02}s", f"{_words(shorter)}{shorter // 1000 % 60:02}s"


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("check", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    uldp.run_program("check")
