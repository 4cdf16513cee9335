"""Estimates the whole period of an output directory: one number with an interval for each value.

Adds up the counts of all windows that ``uldp estimate --write_counts`` stored, estimates them once, and prints and
writes one row for each collection, and with --by one for each group. Partial windows, some of whose reports are in
another run, are omitted and counted. A person who reports in several windows counts several times; if the collection
declares a client window, intervals allow for this. With --discover it also searches for frequent unlisted values
(totals-discovered.jsonl).
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import operator
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from uldp_transforms import JobSpec
from uldp_transforms.collector.row_bytes import file_of
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli, uldp
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.records.recorded_collections import collections_of
from uldp_transforms.jobs.records.run_records import RunRecord, read_records
from uldp_transforms.jobs.records.unknown_repeats import warnings_of
from uldp_transforms.jobs.reestimate.added_windows import AddedWindows, Overlap, added, group_of
from uldp_transforms.jobs.reestimate.regroup import GROUP
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts, files_of_counts, stored_counts
from uldp_transforms.jobs.report.numbers.number_facts import (
    NumberPart,
    numbers_of,
)
from uldp_transforms.jobs.report.whole_period import FILE
from uldp_transforms.jobs.spec_options import check_options_agree, given, options_of_samples, spec_option
from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.confidence import percent
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.display import interval_text
from uldp_transforms.ldp.utility import need_of_liars
from uldp_transforms.rows.figures.figure_words import NumberFormat, format_of
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_types import DISCOVERED_SCHEMA, ESTIMATE_SCHEMA, DiscoveredValue, WindowedEstimate
from uldp_transforms.rows.samples.rows_of_samples import rows_of

MOST_PRINTED = 20
"""Number of values of a collection that are printed; the file has all that are shown."""

_ESTIMATES = options_of_samples("smooth", "alarm_every")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Total:
    """Options of a command line."""

    spec: JobSpec
    files: list[str]
    records: list[RunRecord]
    output: str


@dataclasses.dataclass(frozen=True, kw_only=True)
class Period:
    """The windows of one collection, or of one of its groups, that are added up.

    Attributes:
        row: the estimate; its window is the time from the first to the last of them.
        number: how many.
        partial: how many are left out.
        discovered: frequent unlisted values in all of them, if they are searched.
    """

    row: WindowedEstimate
    number: int
    partial: int
    discovered: Sequence[DiscoveredValue] = ()


def configure(argv: Sequence[str]) -> Total:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("total", description=__doc__)
    parser.add_argument("directory", metavar="DIR", help="output of uldp estimate --write_counts")
    parser.add_argument(
        "--collection",
        action="append",
        help="JSON file of a collection to add up; may be given several times (default: those of the runs in DIR)",
    )
    parser.add_argument("--output", metavar="FILE", help=f"file for the rows (default: {FILE} in DIR)")
    for name in _ESTIMATES:
        parser.add_argument(f"--{name}", **spec_option(name))
    args = parser.parse_args(argv)
    check_options_agree(args)
    values = given(args)
    records = list(read_records(args.directory))
    collections = values.pop("collection", None) or args.collection
    if not collections:
        collections = list(collections_of(records, ()).values())
    if not collections:
        raise SpecError(f"--collection must be given, because no run in {args.directory} names a collection, got none")
    spec = JobSpec.of(collections=collections, **values)
    spec.check_candidates()
    directory = args.directory.rstrip("/") + "/"
    return Total(
        spec=spec,
        files=files_of_counts(directory, "DIR"),
        records=records,
        output=args.output or stores.joined(args.directory, FILE),
    )


def job(task: Total) -> int:
    """Estimate, write the rows, and print a table for each collection."""
    found = write_periods(task)
    for warning in warnings_of(task.spec.collections):
        print(f"total: {warning}", file=sys.stderr)
    print("\n\n".join("\n".join(_lines(task.spec, period)) for period in found))
    return cli.DONE


def write_periods(task: Total) -> list[Period]:
    """Estimate and write the rows; returns what was written.

    Raises:
        SpecError: as ``periods``.
        OSError: if a file cannot be read or written.
    """
    found = list(periods(task))
    _write(task.output, file_of([period.row for period in found], "jsonl", ESTIMATE_SCHEMA))
    stem, form = os.path.splitext(task.output)
    discovered = f"{stem}-discovered{form}"
    if task.spec.discover:
        values = [value for period in found for value in period.discovered]
        _write(discovered, file_of(values, "jsonl", DISCOVERED_SCHEMA))
    elif stores.exists(discovered):  # of an earlier total
        stores.delete(discovered)
    return found


def _write(name: str, content: bytes) -> None:
    with stores.created(name) if stores.in_store(name) else whole_file(name) as file:
        file.write(content)


def periods(task: Total) -> Iterator[Period]:
    """The sums of each collection that has windows, and of its groups, in the order of their names; then those of
    questions.

    Raises:
        SpecError: if windows overlap, or a file has other content.
    """
    known = {collection.fingerprint.hex(): collection for collection in task.spec.collections}
    stored = stored_counts([(task.files, task.records)], known, None, task.spec.by)
    sums = [*_of_collections(task.spec, stored), *_of_questions(task.spec, stored)]
    asked = dataclasses.replace(task.spec.asked(), anytime_scale=None)
    for one, found in zip(sums, rows_of([one.sample for one in sums], asked)):
        yield Period(row=found.estimate, number=one.number, partial=one.partial, discovered=found.discovered)


def _of_collections(spec: JobSpec, stored: StoredCounts) -> Iterator[AddedWindows]:
    """The windows of each collection and group."""
    for _, keys in itertools.groupby(sorted(stored.windows), key=group_of):
        first, *others = keys
        named = spec.catalog[bytes.fromhex(stored.windows[first][0]["fingerprint"])]
        yield added(stored, [first, *others], named)


def _of_questions(spec: JobSpec, stored: StoredCounts) -> Iterator[AddedWindows]:
    """The windows of all versions of each question and group that has complete ones."""
    for question in spec.questions:
        names = {(one.id, one.version) for one in question.pooled}
        of_question = sorted((key for key in stored.windows if key[:GROUP] in names), key=operator.itemgetter(GROUP))
        for _, keys in itertools.groupby(of_question, key=operator.itemgetter(GROUP)):
            found = added(stored, keys, question)
            if found.number:
                yield found


def rows_of_counts(
    directory: str, records: Sequence[RunRecord], collections: Iterable[Collection], settings: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """The whole period of each collection whose values are known, as rows of ``FILE``; none if windows overlap.

    Args:
        directory: output directory with stored counts.
        records: records of its runs.
        collections: the collections; those with an open alphabet are left out, because they need candidates, and with
            a share of liars those whose estimates it does not bound.
        settings: values of ``JobSpec``.

    Raises:
        SpecError: if a file has other content.
    """
    closed = [collection for collection in collections if collection.alphabet.known_values is not None]
    if settings.get("liars") is not None:
        closed = [collection for collection in closed if need_of_liars(collection) is None]
    if not closed:
        return []
    task = Total(
        spec=JobSpec.of(collections=closed, **settings),
        files=files_of_counts(directory.rstrip("/") + "/", "DIR"),
        records=list(records),
        output="",
    )
    try:
        return [json.loads(to_json(period.row)) for period in periods(task)]
    except Overlap:
        return []


def _lines(spec: JobSpec, period: Period) -> Iterator[str]:
    row = period.row
    when = "everything" if row.window_start is None else f"{row.window_start} to {row.window_end}"
    reports = f"{row.num_reports:,} reports" if row.num_reports is not None else "no number of reports"
    windows = f"{period.number:,} {'window' if period.number == 1 else 'windows'}"
    left_out = f"; partial and left out: {period.partial:,}" if period.partial else ""
    name = ", ".join(filter(None, (row.collection_id, row.group, _version(spec, row))))
    drawn = "" if row.borrowed is None else f"; shares are drawn towards those of all reports by {row.borrowed:.0%}"
    simulated = "; some or all reports are simulated" if row.simulated else ""
    yield f"{printable(name)}, {when}: {reports} in {windows}, status {row.status}{left_out}{drawn}{simulated}"
    figures = numbers_of([json.loads(to_json(row))], _unit(spec, row))
    if figures is not None:
        yield from aligned(list(_figures(figures)))
        yield from [figures.advice] * bool(figures.advice)
        return
    entries = sorted(row.estimates, key=lambda entry: -entry.frequency)
    shares = [(one.value, one.frequency, one.display_low, one.display_high) for one in entries]
    yield from _shares(spec, "value", shares)
    found = [(one.value, one.frequency, one.ci_low, one.ci_high) for one in period.discovered]
    yield from _shares(spec, "unlisted value", found)


def _shares(
    spec: JobSpec, title: str, shares: Sequence[tuple[str, float, float | None, float | None]]
) -> Iterator[str]:
    """A table of values and their shares, with both ends of their intervals; nothing without values."""
    if not shares:
        return
    table = [(title, "share", f"{percent(spec.confidence)} interval")]
    table += [(printable(name), f"{share:.4f}", _between(share, *ends)) for name, share, *ends in shares[:MOST_PRINTED]]
    yield from aligned(table)
    if len(shares) > MOST_PRINTED:
        yield f"and {len(shares) - MOST_PRINTED:,} more"


def _version(spec: JobSpec, row: WindowedEstimate) -> str:
    """Which versions a row is about, where there are several."""
    if row.pooled:
        return "all versions"
    several = sum(one.id == row.collection_id for one in spec.collections) > 1
    return f"version {row.collection_version}" if several else ""


def _between(share: float, low: float | None, high: float | None) -> str:
    if low is None or high is None:
        return "\N{EN DASH}"
    return interval_text(share, low, high)


def _unit(spec: JobSpec, row: WindowedEstimate) -> str:
    """The unit of the numbers of a collection or question; empty if there is none."""
    return spec.models_of(bytes.fromhex(row.fingerprint))[-1].alphabet.unit


def _figures(numbers: NumberPart) -> Iterator[tuple[str, ...]]:
    """A table of the figures of numbers, in their unit, and of shares of people; of few reports, the interval that does
    not depend on smoothness is first."""
    interval = f"{numbers.levels} interval"
    titles = [f"smooth {interval}" if numbers.is_smooth else interval, "without smoothness"]
    order = slice(None, None, -1 if numbers.advice else 1)
    yield "figure", numbers.unit or "value", *titles[order]
    for figure in numbers.figures:
        form = NumberFormat(False, 4) if figure.is_share else format_of(figure)
        ends = ((figure.low, figure.high), (figure.sure_low, figure.sure_high))
        spans = [form.span(*each) for each in ends]
        yield printable(figure.name), form.text(figure.value), *spans[order]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    return cli.run("total", configure, job, argv, faults_of_job=(SpecError, OSError))


if __name__ == "__main__":
    uldp.run_program("total")
