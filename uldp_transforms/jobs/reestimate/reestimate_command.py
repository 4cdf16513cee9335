"""Estimates stored counts again: with other candidates, another estimator, better background knowledge, for longer
windows, or for the whole period as one.

Reads the counts that ``uldp estimate --write_counts`` wrote, takes the latest pane of each window, adds up the counts
of several directories, and writes rows of the same form (estimates.jsonl and estimates.avro). The runs in one directory
are added up if their source resumes where the last run stopped; otherwise the latest run is taken. With --window it
adds up the counts of the stored windows that make up each longer one. With --discover it also searches for frequent
unlisted values (discovered.jsonl).

With --window all it adds up all windows, prints one number with an interval for each value, and writes one row for each
collection, and with --by one for each group (totals.jsonl, and totals-discovered.jsonl). Partial windows, some of whose
reports are in another run, are omitted and counted. A person who reports in several windows counts several times; if
the collection declares a client window, intervals allow for this.
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.records.row_file_options import OPTIONS
from uldp_transforms.jobs.records.row_forms import RowForms
from uldp_transforms.jobs.records.run_records import RunRecord, collections_of, read_records, zone_of
from uldp_transforms.jobs.records.unknown_repeats import warnings_of
from uldp_transforms.jobs.records.whole_period import FILE
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import (
    Row,
    StoredCounts,
    counts_of,
    files_of_counts,
    simulated_of,
    stored_counts,
)
from uldp_transforms.jobs.reestimate.total_texts import lines_of_period
from uldp_transforms.jobs.reestimate.whole_periods import Period, periods
from uldp_transforms.jobs.spec_options import check_options_agree, given, options_of_samples, spec_option
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.figures.alarm_history import Account
from uldp_transforms.rows.figures.window_names import WindowNames, clock
from uldp_transforms.rows.row_types import DISCOVERED_SCHEMA, ESTIMATE_SCHEMA, WindowedEstimate
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.rows.samples.smoothed_owners import smooth_windows
from uldp_transforms.spec.row_forecast import RowForecast
from uldp_transforms.spec.spec_fields import ALARM_EVERY
from uldp_transforms.windows import rfc3339

ALL = "all"
"""Argument of --window for the whole period."""

_ESTIMATES = options_of_samples()
_WINDOWS = ("window", "slide", "window_offset", "timezone")
_OF_WINDOWS = (*_WINDOWS[1:], "smooth", "alarm_every")
"""Options that are about several windows."""

_OTHERWISE: dict[str, dict[str, Any]] = {
    "window": {
        "help": f"length of a window to estimate, a whole number of stored windows; {ALL}: the whole period as one "
        "(default: as stored)",
        "type": cli.window_length_or("--window", ALL),
    },
    "smooth": {"help": "also estimate each window from all windows of its collection"},
}
"""What is different about options for stored counts."""


_FORMS: cli.Options = {
    "--write_json": OPTIONS["--write_json"],
    "--write_parquet": {
        **OPTIONS["--write_parquet"],
        "help": "also write Parquet files: the rows (default: true if no JSON lines are written, else false)",
    },
}
"""Options of the forms of rows; rows of single values are written by jobs only."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reestimation:
    """Options of a re-estimation.

    Attributes:
        spec: what to estimate.
        files: files of counts of each job.
        records: of the runs of each job.
        output: directory for the rows.
        totals: file for the rows of the whole period; None: rows are of windows.
        smooth, write_json, write_parquet, alarm_every: as the options.
    """

    spec: JobSpec
    files: list[list[str]]
    records: list[list[RunRecord]]
    output: str
    totals: str | None = None
    smooth: bool = False
    write_json: bool | None = None
    write_parquet: bool | None = None
    alarm_every: int = ALARM_EVERY

    @property
    def zone(self) -> datetime.tzinfo:
        """The time zone in which windows are named: that of the job, or of new windows."""
        asked = self.spec.windows.to_json()["timezone"] if self.spec.windows else None
        return clock(asked) if asked else zone_of(self.records[0])

    @property
    def jobs(self) -> list[tuple[list[str], list[RunRecord]]]:
        """Files and records of each job."""
        return list(zip(self.files, self.records))


def _parser() -> cli.Parser:
    parser = cli.Parser("reestimate", description=__doc__)
    add = parser.add_argument
    add(
        "directories",
        metavar="DIR",
        nargs="+",
        help="output directory of uldp estimate --write_counts, or a pattern of files counts*.avro; the counts of "
        "several directories are added up",
    )
    add(
        "--collection",
        action="append",
        help="JSON file of a collection; may be given several times (default: those of the runs in DIR)",
    )
    add("--output", help=f"where to write the rows: a directory (default: with --window {ALL}, DIR)")
    add("--totals", metavar="FILE", help=f"with --window {ALL}: file for the rows (default: {FILE} in --output)")
    for name in _ESTIMATES:
        add(f"--{name}", **spec_option(name, **_OTHERWISE.get(name, {})))
    cli.add_options(parser, _FORMS)
    for name in _WINDOWS:
        add(f"--{name}", **spec_option(name, **_OTHERWISE.get(name, {})))
    return parser


def configure(argv: Sequence[str]) -> Reestimation:
    """Parse the command line; raises SpecError or OSError."""
    args = _parser().parse_args(argv)
    is_whole = args.window == ALL
    _check(args, is_whole)
    if is_whole:
        args.window = None
    check_options_agree(args, exempt=["smooth"])  # stored windows can be smoothed
    values = given(args)
    smooth, alarm_every = values.pop("smooth", False), values.pop("alarm_every", ALARM_EVERY)
    spec = JobSpec.of(collections=args.collection or _recorded(args.directories), **values)
    spec.check_candidates()
    if smooth:
        spec.check_all_shown()
    files = [files_of_counts(_pattern(counts)) for counts in args.directories]
    _check_files(files)
    records = [list(itertools.chain(*map(read_records, sorted(set(map(stores.folder_of, names)))))) for names in files]
    output = args.output or args.directories[0]
    if not stores.in_store(output):
        os.makedirs(output, exist_ok=True)
    return Reestimation(
        spec=spec,
        files=files,
        records=records,
        output=output,
        totals=(args.totals or stores.joined(output, FILE)) if is_whole else None,
        smooth=smooth,
        write_json=args.write_json,
        write_parquet=args.write_parquet,
        alarm_every=alarm_every,
    )


def _check(args: argparse.Namespace, is_whole: bool) -> None:
    """Refuse options that contradict each other; raises SpecError."""
    for name in _OF_WINDOWS if is_whole else ():
        if getattr(args, name) not in (None, False):
            raise SpecError(f"--{name} needs windows, got --window {ALL}")
    if is_whole and args.write_json is not None:
        raise SpecError(f"--write_json needs windows, got --window {ALL}")
    if args.totals is not None and not is_whole:
        raise SpecError(f"--totals needs --window {ALL}, got {args.window or 'stored windows'}")
    if args.output is None and not (is_whole and (args.totals or len(args.directories) == 1)):
        raise SpecError(f"--output must be given, except with --window {ALL} of one DIR, got none")
    if args.output is not None and os.path.isfile(args.output):
        raise SpecError(f"--output must be a directory, got the file {args.output!r}")


def _names_files(counts: str) -> bool:
    """Whether an argument DIR is a pattern or a file of counts."""
    return bool(set("*?[") & set(counts)) or counts.endswith(".avro")


def _pattern(counts: str) -> str:
    """An argument DIR, of which a directory of a store ends with a slash."""
    return counts.rstrip("/") + "/" if stores.in_store(counts) and not _names_files(counts) else counts


def _check_files(files: Sequence[Sequence[str]]) -> None:
    """Refuse a file that is named twice; raises SpecError."""
    for name, number in Counter(map(os.path.realpath, itertools.chain(*files))).items():
        if number > 1:
            raise SpecError(
                f"DIR must name each file once, because its reports would count twice, got {name!r} {number} times"
            )


def _recorded(directories: Sequence[str]) -> list[Collection]:
    """The collections that the runs of the directories name; raises SpecError if there are none."""
    folders = dict.fromkeys(stores.folder_of(one) if _names_files(one) else one for one in directories)
    found = list(collections_of(list(itertools.chain(*map(read_records, folders))), ()).values())
    if not found:
        where = ", ".join(directories)
        raise SpecError(f"--collection must be given, because no run in {where} names a collection, got none")
    return found


def job(task: Reestimation) -> int:
    """Estimate, write rows, and print what was estimated."""
    if task.totals is None:
        return _of_windows(task)
    found = write_periods(task)
    _warn(task)
    names = _names(task, [period.row for period in found])
    print("\n\n".join("\n".join(lines_of_period(task.spec, period, names)) for period in found))
    return cli.DONE


def _names(task: Reestimation, rows: Iterable[WindowedEstimate]) -> WindowNames:
    """How the windows of all rows are called."""
    return WindowNames.among(itertools.chain(*((row.window_start, row.window_end) for row in rows)), task.zone)


def write_periods(task: Reestimation) -> list[Period]:
    """Estimate the whole period and write its rows; returns what was written.

    Raises:
        SpecError: if windows overlap, or a file has other content.
        OSError: if a file cannot be read or written.
    """
    found = list(periods(task.spec, task.jobs))
    rows = [period.row for period in found]
    stem, form = os.path.splitext(task.totals or "")
    _write(str(task.totals), file_of(rows, "jsonl", ESTIMATE_SCHEMA))
    if task.write_parquet:
        _write(f"{stem}.parquet", file_of(rows, "parquet", ESTIMATE_SCHEMA))
    discovered = f"{stem}-discovered{form}"
    if task.spec.discover:
        values = [value for period in found for value in period.discovered]
        _write(discovered, file_of(values, "jsonl", DISCOVERED_SCHEMA))
    elif stores.exists(discovered):  # of an earlier total
        stores.delete(discovered)
    return found


def _of_windows(task: Reestimation) -> int:
    """Estimate and write a row for each window; prints the number of windows of other collections."""
    known = {collection.fingerprint.hex(): collection for collection in task.spec.collections}
    stored = stored_counts(task.jobs, known, task.spec.windows, task.spec.by)
    samples = list(samples_of(task.spec, stored))
    forms = _forms(task, samples)
    asked = dataclasses.replace(task.spec.asked(), anytime_scale=None)
    rows, discovered = [], []
    for each in rows_of(samples, asked):
        rows.append(each.estimate)
        discovered += each.discovered
    if task.smooth:
        rows = _smoothed(task, samples, rows)
    for form in forms.of_kind("estimates"):
        _write(stores.joined(task.output, f"estimates.{form}"), file_of(rows, form, ESTIMATE_SCHEMA))
    if task.spec.discover:
        _write(stores.joined(task.output, "discovered.jsonl"), file_of(discovered, "jsonl", DISCOVERED_SCHEMA))
    others = f", {stored.strangers} row(s) of other collections left out" if stored.strangers else ""
    number = sum(map(len, task.files))
    _warn(task, *([] if forms.notice is None else [forms.notice]))
    print(f"reestimate: {len(rows)} windows from {number} file(s){others}", file=sys.stderr)
    return cli.DONE


def _forms(task: Reestimation, samples: Sequence[Sample]) -> RowForms:
    """The forms of rows, by the forecast of a job over files; raises SpecError as ``RowForms.check_earlier``.

    Counts in the same directory stay: the rows are made of them.
    """
    windows = {(sample.place["window_start"], sample.place["window_end"]) for sample in samples}
    entries = RowForecast.of(task.spec).entries if len(windows) > 1 else 0
    forms = RowForms.of(task.write_json, task.write_parquet, counts=True, entries=entries)
    forms.check_earlier(task.output)
    return forms


def _write(name: str, content: bytes) -> None:
    with stores.created(name) if stores.in_store(name) else whole_file(name) as file:
        file.write(content)


def _warn(task: Reestimation, *notices: str) -> None:
    for warning in (*notices, *warnings_of(task.spec.collections)):
        print(f"reestimate: {warning}", file=sys.stderr)


def _smoothed(
    task: Reestimation, samples: Sequence[Sample], rows: Sequence[WindowedEstimate]
) -> list[WindowedEstimate]:
    """Smooth the rows of each owner in both directions, in their order; prints the changes, and how many
    windows were judged.
    """
    results: list[WindowedEstimate] = []
    account = Account()
    names = _names(task, rows)
    for _, found in itertools.groupby(zip(samples, rows), key=lambda pair: pair[0].owner.key):
        of_owner, series = zip(*found)
        _check_windows(series)
        for row, change in smooth_windows(of_owner[0].owner, series, task.alarm_every):
            results.append(row)
            if account.add(change) and change is not None:
                whose = f"collection {row.collection_id!r}" + (f", {row.group}" if row.group else "")
                window = names.window(row.window_start, row.window_end)
                print(f"reestimate: {whose}, {window} ({names.zone}): {change.sentence}", file=sys.stderr)
    if account:
        print(f"reestimate: {account}", file=sys.stderr)
    return results


def _check_windows(rows: Sequence[WindowedEstimate]) -> None:
    """Refuse to smooth overlapping windows, or a single global window; raises SpecError."""
    for row in rows:
        if row.window_start is None:
            raise SpecError(f"--smooth needs counts in windows, got one for everything of {row.collection_id!r}")
    for before, after in itertools.pairwise(rows):
        if str(after.window_start) < str(before.window_end):
            raise SpecError(
                f"--smooth needs windows that do not overlap, got overlapping windows of {row.collection_id!r}"
            )


def samples_of(spec: JobSpec, stored: StoredCounts) -> Iterator[Sample]:
    """The samples of all windows, in the order of their keys; and of questions, in the order of time.

    They carry the name of the latest run. A window of a question is partial as soon as one version of it is.
    """
    for key in sorted(stored.windows):
        yield _sample(spec, stored, [key], spec.catalog[bytes.fromhex(stored.windows[key][0]["fingerprint"])])
    for question in spec.questions:
        names = {(one.id, one.version) for one in question.pooled}
        of_question = sorted((key for key in stored.windows if key[:GROUP] in names), key=_apart)
        for _, keys in itertools.groupby(of_question, key=_apart):
            yield _sample(spec, stored, list(keys), question)


def _apart(key: Key) -> Key:
    """The group and window of a key."""
    return key[GROUP:]


def _sample(spec: JobSpec, stored: StoredCounts, keys: Sequence[Key], named: Collection | VersionedQuestion) -> Sample:
    """The sum of stored counts of one group and window."""
    rows = [row for key in keys for row in stored.windows[key]]
    last = max(rows, key=lambda row: (row["run"] or "", row["pane_index"]))
    if last["window_start"] is None:
        dataclasses.replace(spec, windows=None).check_asked()
    return Sample(
        owner=Owner(named=named, group=last["dimensions"]),
        place=_place_of(last),
        counts=counts_of(rows),
        partial=not stored.whole >= set(keys),
        simulated=simulated_of([row["simulated"] for row in rows]),
    )


def _place_of(row: Row) -> dict[str, Any]:
    """The fields that identify window and pane of stored counts."""
    times = {name: None if row[name] is None else rfc3339(row[name]) for name in ("window_start", "window_end")}
    return times | {name: row[name] for name in ("pane_index", "pane_timing", "run")}


def main(argv: Sequence[str] | None = None) -> int:
    return cli.run("reestimate", configure, job, argv, faults_of_job=(SpecError, OSError))
