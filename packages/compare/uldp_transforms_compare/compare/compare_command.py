"""Compares groups, consecutive windows, or two output directories: which differences are real.

Adds up the counts that ``uldp estimate --write_counts`` stored. With --by it compares the groups over the whole period,
each pair or all with one (--against); with --windows each window with the one before; with --with another directory,
such as that of the quarter before, as a whole or (with --by) group by group. Prints whether the groups differ
at all and the clearest differences, and writes a row for each value and pair: difference and lift with intervals,
p-value, and q-value over all rows. Of collections of numbers, rows are about means, quantiles, and shares above
limits. Partial windows are omitted.
"""

from __future__ import annotations

import dataclasses
import datetime
import itertools
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import IO, Any

from uldp_transforms import JobSpec
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.records.row_directory import COMPARISONS
from uldp_transforms.jobs.records.run_records import RunRecord, collections_of, read_records, zone_of
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts, files_of_counts
from uldp_transforms.jobs.spec_options import check_options_agree, given, options_of_samples, spec_option
from uldp_transforms.ldp import SpecError
from uldp_transforms.rows.figures.compared_figures import MAX_PAIRS
from uldp_transforms.rows.figures.window_names import WindowNames, starts_in
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms_compare.compare.findings import MOST_PRINTED
from uldp_transforms_compare.compare.found_in_words import lines_of_family
from uldp_transforms_compare.compare.kept_windows import kept
from uldp_transforms_compare.compare.pair_rows import rows_of_pairs
from uldp_transforms_compare.compare.row_columns import RowColumns
from uldp_transforms_compare.compare.sides import Family, Pair, groups_of, windows_of
from uldp_transforms_compare.compare.two_directories import names_of, sides_of_both

_EVERY = 10.0
"""Seconds between lines of progress."""

BORROWED = (
    "the groups' own shares are compared, not the borrowed ones that a run shows, whose differences are drawn towards 0"
)
"""Sentence where rows of the groups have borrowed shares."""

_OWN = ("by", "liars")
_ESTIMATES = options_of_samples(*_OWN, "estimator", "show", "discover", "borrow", "smooth", "alarm_every")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparing:
    """Options of a command line; ``is_borrowed`` is whether rows of the groups in a directory have borrowed shares."""

    spec: JobSpec
    jobs: list[tuple[list[str], list[RunRecord]]]
    names: tuple[str, str] | None
    output: str
    by: tuple[str, ...] | None
    against: str | None
    anytime: bool
    is_borrowed: bool = False

    @property
    def zone(self) -> datetime.tzinfo:
        """The time zone in which windows are named, that of the job."""
        return zone_of(self.jobs[0][1])

    @property
    def scale(self) -> int | None:
        """Of intervals for many looks; None: one look."""
        return self.spec.min_reports if self.anytime else None


def _parser() -> cli.Parser:
    parser = cli.Parser("compare", description=__doc__)
    parser.add_argument(
        "directory", metavar="DIR", help="output directory of uldp estimate --write_counts; a, of which b is subtracted"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--by", **spec_option("by", help="dimensions such as country,arm: compare the groups by them"))
    what.add_argument("--windows", **cli.SWITCH, help="compare each window with the one before")
    parser.add_argument(
        "--with",
        dest="other",
        metavar="OTHER",
        help="compare everything in DIR with everything in this other directory, or, with --by, each group in DIR with "
        "the same group in it; both must have the same collection",
    )
    parser.add_argument(
        "--against", metavar="GROUP", help="compare all groups with this one, such as arm=control (default: each pair)"
    )
    parser.add_argument(
        "--anytime",
        **cli.SWITCH,
        help="with --by, for comparisons that are repeated while reports arrive: intervals and p-values that hold "
        "jointly at all looks",
    )
    parser.add_argument(
        "--collection",
        action="append",
        help="JSON file of a collection; may be given several times (default: those of the runs in DIR)",
    )
    parser.add_argument(
        "--liars",
        **spec_option(
            "liars",
            help="largest share of reports that may be false, such as 0.01, for which intervals and p-values "
            "allow; they are then of the shares among honest people (default: that of the runs in DIR)",
        ),
    )
    parser.add_argument(
        "--output", metavar="FILE", help=f"where to write the rows: a file (default: {COMPARISONS} in DIR)"
    )
    for name in _ESTIMATES:
        parser.add_argument(f"--{name}", **spec_option(name))
    return parser


def configure(argv: Sequence[str]) -> Comparing:
    """Parse the command line; raises SpecError or OSError."""
    args = _parser().parse_args(argv)
    _check(args)
    check_options_agree(args)
    values = given(args)
    directories = [args.directory] if args.other is None else [args.directory, args.other]
    records_of = [list(read_records(directory)) for directory in directories]
    records, every_record = records_of[0], list(itertools.chain(*records_of))
    values = {"liars": _declared(every_record)} | values
    collections = args.collection or list(collections_of(records, ()).values())
    if not collections:
        raise SpecError(f"--collection must be given, because no run in {args.directory} names a collection, got none")
    spec = JobSpec.of(collections=collections, **values)
    spec.check_candidates()
    return Comparing(
        spec=spec,
        jobs=[
            (files_of_counts(directory.rstrip("/") + "/", option), of_runs)
            for directory, option, of_runs in zip(directories, ("DIR", "--with"), records_of)
        ],
        names=None if args.other is None else names_of(args.directory, args.other),
        output=args.output or stores.joined(args.directory, COMPARISONS),
        by=spec.by,
        against=args.against,
        anytime=args.anytime,
        is_borrowed=spec.by is not None and any(record.specification.get("borrow") for record in every_record),
    )


def _check(args: Any) -> None:
    """Refuse options that do not go together; raises SpecError."""
    if args.by is None and not args.windows and args.other is None:
        raise SpecError("--by, --windows or --with must be given, got none")
    if args.windows and args.other is not None:
        raise SpecError("--with cannot be combined with --windows")
    for name in ("against", "anytime"):
        if getattr(args, name) and (args.windows or args.other is not None):
            raise SpecError(f"--{name} needs --by alone, got {'--windows' if args.windows else '--with'}")


def _declared(records: Sequence[RunRecord]) -> float | None:
    """The largest share of liars that a run declared; None if none did."""
    shares = [record.specification.get("liars") for record in records]
    return max((share for share in shares if share is not None), default=None)


def job(task: Comparing) -> int:
    """Compare, write the rows, and print what was found."""
    known = {collection.fingerprint.hex(): collection for collection in task.spec.collections}
    found = _families(task, [kept(job, known, task.by) for job in task.jobs])
    families = [(family, _pairs(task, family)) for family in found]
    names = _names(task, [family for family, _ in families])
    if task.anytime:
        _check_looks(family for family, _ in families)
    rows_of_families = rows_of_pairs(task.spec, families, task.scale, _Progress(families).done)
    with stores.created(task.output) if stores.in_store(task.output) else whole_file(task.output) as file:
        texts = [
            lines_of_family(family, pairs, _written(rows, file), names)
            for (family, pairs), rows in zip(families, rows_of_families)
        ]
    for family, _ in families:
        for sentence in family.left_out:
            print(f"compare: {family.name}: {names.text(sentence)}", file=sys.stderr)
    if task.is_borrowed:
        print(f"compare: {BORROWED}", file=sys.stderr)
    print("\n\n".join("\n".join(lines) for lines in texts))
    return cli.DONE


def _names(task: Comparing, families: Iterable[Family]) -> WindowNames:
    """How all windows are called that are compared or left out."""
    moments: list[str | None] = []
    for family in families:
        moments += starts_in([*(side.name for side in family.sides), *family.left_out])
        if starts_in(side.name for side in family.sides):
            moments += [side.sample.place["window_end"] for side in family.sides]
    return WindowNames.among(moments, task.zone)


def _written(pairs: Iterable[RowColumns], file: IO[bytes]) -> Iterator[ComparedValue]:
    """The rows of pairs, written to a file of JSON lines on their way, pair by pair."""
    for rows in pairs:
        file.write(rows.json_lines())
        yield from rows


class _Progress:
    """A line on stderr now and then, while many pairs are compared: for p-values first, then for rows."""

    def __init__(self, families: Sequence[tuple[Family, Sequence[Pair]]]) -> None:
        self.total = 2 * sum(len(pairs) for _, pairs in families)
        self.number, self.said = 0, time.monotonic()

    def done(self) -> None:
        """Count a pair."""
        self.number += 1
        if time.monotonic() - self.said >= _EVERY:
            self.said = time.monotonic()
            print(f"compare: {self.number / self.total:.0%} of {self.total // 2:,} pairs", file=sys.stderr, flush=True)


def _families(task: Comparing, stored: Sequence[StoredCounts]) -> Iterator[Family]:
    if task.names is not None:
        return sides_of_both(task.spec, stored, task.names, task.by)
    return groups_of(task.spec, stored[0], task.by) if task.by else windows_of(task.spec, stored[0])


def _pairs(task: Comparing, family: Family) -> Sequence[Pair]:
    """The pairs to compare."""
    sides = family.sides
    if family.pairs is not None:
        return family.pairs
    if task.by is None:
        return [(after, before) for before, after in itertools.pairwise(sides)]
    if task.against is not None:
        named = [side for side in sides if side.name == task.against]
        if not named:
            names = ", ".join(side.name for side in sides[:MOST_PRINTED])
            raise SpecError(f"--against must be a group of {family.name!r} ({names}), got {task.against!r}")
        return [(side, named[0]) for side in sides if side.name != task.against]
    number = len(sides) * (len(sides) - 1) // 2
    if number > MAX_PAIRS:
        raise SpecError(
            f"--by must make at most {MAX_PAIRS:,} pairs of groups, got {number:,}; use --against or fewer dimensions"
        )
    return [(after, before) for before, after in itertools.combinations(sides, 2)]


def _check_looks(families: Iterable[Family]) -> None:
    """Refuse what has no intervals for many looks; raises SpecError."""
    for family in families:
        if any(side.numbers is not None for side in family.sides):
            raise SpecError(f"--anytime needs collections without numbers, got {family.name!r}")
        if family.times != 1:
            raise SpecError(
                f"--anytime needs collections whose people report once, because later reports of a person depend on "
                f"earlier ones, got {family.name!r}, whose people report {family.times} times"
            )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    return cli.run("compare", configure, job, argv, faults_of_job=(SpecError, OSError))
