"""Estimates stored counts again: with other candidates, another estimator, better background knowledge, or for longer
windows.

Reads the counts that ``uldp estimate --write_counts`` wrote, takes the latest pane of each window, adds up the counts
of several jobs, and writes rows of the same form (estimates.jsonl and estimates.avro). The runs in one directory are
added up if their source resumes where the last run stopped; otherwise the latest run is taken. With --window it adds up
the counts of the stored windows that make up each longer one. With --discover it also searches for frequent unlisted
values (discovered.jsonl).
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.records.run_records import RunRecord, read_records
from uldp_transforms.jobs.records.unknown_repeats import warnings_of
from uldp_transforms.jobs.reestimate.regroup import GROUP, Key
from uldp_transforms.jobs.reestimate.stored_counts import (
    Row,
    StoredCounts,
    counts_of,
    files_of_counts,
    simulated_of,
    stored_counts,
)
from uldp_transforms.jobs.spec_options import check_options_agree, given, options_of_samples, spec_option
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.versions import VersionedQuestion
from uldp_transforms.rows.entry_columns import EntryColumns
from uldp_transforms.rows.row_types import DISCOVERED_SCHEMA, ESTIMATE_SCHEMA, WindowedEstimate
from uldp_transforms.rows.samples.rows_of_samples import rows_of
from uldp_transforms.rows.samples.sample import Owner, Sample
from uldp_transforms.rows.samples.smoothed_owners import smooth_windows
from uldp_transforms.spec.spec_fields import ALARM_EVERY
from uldp_transforms.windows import rfc3339

_ESTIMATES = options_of_samples()
_OTHERWISE: dict[str, dict[str, str]] = {
    "window": {"help": "length of the windows to estimate, a whole number of stored windows (default: as stored)"},
    "smooth": {"help": "also estimate each window from all windows of its collection"},
}
"""Help of options whose meaning is different for stored counts."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Reestimation:
    """Options of a re-estimation."""

    spec: JobSpec
    files: list[list[str]]  # per job
    records: list[list[RunRecord]]  # of the runs of each job
    output: str
    smooth: bool = False
    write_parquet: bool = False
    alarm_every: int = ALARM_EVERY


def configure(argv: Sequence[str]) -> Reestimation:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("reestimate", description=__doc__)
    add = parser.add_argument
    add("--collection", required=True, action="append", help="JSON file of a collection; may be given several times")
    add(
        "--counts",
        required=True,
        action="append",
        help="directory with counts*.avro of a job, or a pattern of such files; may be given several times to add the "
        "counts of several jobs",
    )
    add("--output", required=True, help="directory for the results")
    for name in _ESTIMATES:
        add(f"--{name}", **spec_option(name, **_OTHERWISE.get(name, {})))
    add("--write_parquet", **cli.SWITCH, help="also write estimates.parquet")
    for name in ("window", "slide", "window_offset", "timezone"):
        add(f"--{name}", **spec_option(name, **_OTHERWISE.get(name, {})))
    args = parser.parse_args(argv)
    check_options_agree(args, exempt=["smooth"])  # stored windows can be smoothed
    values = given(args)
    smooth, alarm_every = values.pop("smooth", False), values.pop("alarm_every", ALARM_EVERY)
    spec = JobSpec.of(collections=args.collection, **values)
    spec.check_candidates()
    if smooth:
        spec.check_all_shown()
    files = [files_of_counts(counts) for counts in args.counts]
    for name, number in Counter(map(os.path.realpath, itertools.chain(*files))).items():
        if number > 1:
            raise SpecError(
                f"--counts must name each file once, because its reports would count twice, got {name!r} {number} times"
            )
    if os.path.isfile(args.output):
        raise SpecError(f"--output must be a directory, got the file {args.output!r}")
    os.makedirs(args.output, exist_ok=True)
    records = [list(itertools.chain(*map(read_records, sorted(set(map(stores.folder_of, names)))))) for names in files]
    return Reestimation(
        spec=spec,
        files=files,
        records=records,
        output=args.output,
        smooth=smooth,
        write_parquet=args.write_parquet,
        alarm_every=alarm_every,
    )


def job(task: Reestimation) -> int:
    """Estimate and write rows; prints the number of windows of other collections."""
    known = {collection.fingerprint.hex(): collection for collection in task.spec.collections}
    stored = stored_counts(zip(task.files, task.records), known, task.spec.windows, task.spec.by)
    samples = list(samples_of(task.spec, stored))
    asked = task.spec.asked(EntryColumns.of_estimate if task.smooth else None)
    rows, discovered = [], []
    for each in rows_of(samples, dataclasses.replace(asked, anytime_scale=None)):
        rows.append(each.estimate)
        discovered += each.discovered
    if task.smooth:
        rows = _smoothed(task, samples, rows)
    for form in ("jsonl", "avro", *(["parquet"] if task.write_parquet else [])):
        with whole_file(os.path.join(task.output, f"estimates.{form}")) as file:
            file.write(file_of(rows, form, ESTIMATE_SCHEMA))
    if task.spec.discover:
        with whole_file(os.path.join(task.output, "discovered.jsonl")) as file:
            file.write(file_of(discovered, "jsonl", DISCOVERED_SCHEMA))
    others = f", {stored.strangers} row(s) of other collections left out" if stored.strangers else ""
    number = sum(map(len, task.files))
    for warning in warnings_of(task.spec.collections):
        print(f"reestimate: {warning}", file=sys.stderr)
    print(f"reestimate: {len(rows)} windows from {number} file(s){others}", file=sys.stderr)
    return cli.DONE


def _smoothed(
    task: Reestimation, samples: Sequence[Sample], rows: Sequence[WindowedEstimate]
) -> list[WindowedEstimate]:
    """Smooth the rows of each owner in both directions, in their order; prints the windows with changes."""
    results: list[WindowedEstimate] = []
    for _, found in itertools.groupby(zip(samples, rows), key=lambda pair: pair[0].owner.key):
        of_owner, series = zip(*found)
        _check_windows(series)
        for row, change in smooth_windows(of_owner[0].owner, series, task.alarm_every):
            results.append(row)
            if change is not None and change.fired:
                whose = f"collection {row.collection_id!r}" + (f", {row.group}" if row.group else "")
                window = f"window {row.window_start} to {row.window_end}"
                print(f"reestimate: {whose}, {window}: {change.sentence}", file=sys.stderr)
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
