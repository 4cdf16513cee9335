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
import itertools
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from scipy import special

from uldp_transforms import JobSpec
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.compare.figure_rows import (
    ONLY_SMOOTH,
    difference_texts,
    figure_rows,
    shows_only_smooth,
    smooth_text,
)
from uldp_transforms.jobs.compare.sides import Family, Side, groups_of, windows_of
from uldp_transforms.jobs.compare.two_directories import names_of, sides_of_both
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.records.run_records import RunRecord, read_records
from uldp_transforms.jobs.reestimate.reestimate_command import files_of_counts
from uldp_transforms.jobs.reestimate.stored_counts import StoredCounts, stored_counts
from uldp_transforms.jobs.report.collection_facts import collections_of
from uldp_transforms.jobs.report.compared.compared_rows import FILE, FOUND
from uldp_transforms.jobs.sinks.row_files import file_of
from uldp_transforms.jobs.spec_options import check_options_agree, given, spec_option
from uldp_transforms.ldp import SpecError, compare, homogeneity
from uldp_transforms.ldp.comparisons.compare import (
    MAX_PAIRS,
    difference_at,
    noticeable_difference,
    q_values,
    selected_confidence,
)
from uldp_transforms.ldp.comparisons.compare_numbers import MEAN, SHARE_ABOVE, compare_numbers
from uldp_transforms.ldp.comparisons.homogeneity import noticeable_shift
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, limits_within
from uldp_transforms.rows.row_types import COMPARED_SCHEMA, ComparedValue
from uldp_transforms.windows import rfc3339

MOST_PRINTED = 20
_ESTIMATES = ("candidates", "limits", "quantiles", "min_reports")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparing:
    """Options of a command line."""

    spec: JobSpec
    jobs: list[tuple[list[str], list[RunRecord]]]
    names: tuple[str, str] | None
    output: str
    by: tuple[str, ...] | None
    against: str | None
    anytime: bool

    @property
    def scale(self) -> int | None:
        """Of intervals for many looks; None: one look."""
        return self.spec.min_reports if self.anytime else None


def configure(argv: Sequence[str]) -> Comparing:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("compare", description=__doc__)
    parser.add_argument(
        "directory", metavar="DIR", help="output of uldp estimate --write_counts; a, of which b is subtracted"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--by", **spec_option("by", help="compare the groups by these dimensions, such as country,arm"))
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
        help="JSON file of a collection to compare; may be given several times (default: those of the runs in DIR)",
    )
    parser.add_argument(
        "--liars",
        **spec_option(
            "liars",
            help="largest share of false reports, such as 0.01, for which intervals and p-values allow; they are then "
            "of the shares among honest people (default: that of the runs in DIR)",
        ),
    )
    parser.add_argument("--output", metavar="FILE", help=f"file for the rows (default: {FILE} in DIR)")
    for name in _ESTIMATES:
        parser.add_argument(f"--{name}", **spec_option(name))
    args = parser.parse_args(argv)
    _check(args)
    check_options_agree(args)
    values = given(args)
    directories = [args.directory] if args.other is None else [args.directory, args.other]
    records_of = [list(read_records(directory)) for directory in directories]
    records = records_of[0]
    values = {"liars": _declared(list(itertools.chain(*records_of)))} | values
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
        output=args.output or stores.joined(args.directory, FILE),
        by=spec.by,
        against=args.against,
        anytime=args.anytime,
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
    found = _families(task, [stored_counts([job], known, None, task.by) for job in task.jobs])
    families = [(family, _pairs(task, family)) for family in found]
    if task.anytime:
        _check_looks(family for family, _ in families)
    rows = _with_q_values([list(_rows(task, family, pairs)) for family, pairs in families])
    rows = _with_selected(task, families, rows)
    content = file_of(list(itertools.chain(*rows)), "jsonl", COMPARED_SCHEMA)
    with stores.created(task.output) if stores.in_store(task.output) else whole_file(task.output) as file:
        file.write(content)
    for family, _ in families:
        for sentence in family.left_out:
            print(f"compare: {family.name}: {sentence}", file=sys.stderr)
    texts = [_lines(family, pairs, own) for (family, pairs), own in zip(families, rows)]
    print("\n\n".join("\n".join(lines) for lines in texts))
    return cli.DONE


def _families(task: Comparing, stored: Sequence[StoredCounts]) -> Iterator[Family]:
    if task.names is not None:
        return sides_of_both(task.spec, stored, task.names, task.by)
    return groups_of(task.spec, stored[0], task.by) if task.by else windows_of(task.spec, stored[0])


def _pairs(task: Comparing, family: Family) -> list[tuple[Side, Side]]:
    """The pairs (a, b) to compare: b is the baseline, or comes first."""
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
        if any(side.sums is not None for side in family.sides):
            raise SpecError(f"--anytime needs collections without numbers, got {family.name!r}")
        if family.times != 1:
            raise SpecError(
                f"--anytime needs collections whose people report once, because later reports of a person depend on "
                f"earlier ones, got {family.name!r}, whose people report {family.times} times"
            )


def _figures(spec: JobSpec, family: Family) -> tuple[Sequence[float], Sequence[float]]:
    """Limits and quantiles of the figures of numbers."""
    quantiles = QUANTILES if spec.quantiles is None else spec.quantiles
    return limits_within(spec.limits or (), family.collection.alphabet), quantiles


def _values(family: Family, a: Side) -> range:
    """Places of the values that have a row: of numbers only those that are no bins."""
    alphabet = family.collection.alphabet
    return range(alphabet.num_symbols - alphabet.num_others if a.sums is not None else 0, len(a.estimate.values))


def _rows(task: Comparing, family: Family, pairs: Sequence[tuple[Side, Side]]) -> Iterator[ComparedValue]:
    """A row for each pair and value, or figure of numbers; the q-values are those of the pair alone."""
    for a, b in pairs:
        shared = _shared(family, a, b)
        if a.sums is not None and b.sums is not None:
            for row in figure_rows(shared, a.sums, b.sums, *_figures(task.spec, family)):
                length = None if row.low is None or row.high is None else row.high - row.low
                yield row._replace(noticeable=length and noticeable_difference(length), interval=FIXED)
        found = compare(a.estimate, b.estimate, anytime_scale=task.scale)
        for at in _values(family, a):
            yield ComparedValue(
                **shared,
                value=found.values[at],
                difference=float(found.differences[at]),
                low=float(found.low[at]),
                high=float(found.high[at]),
                p_value=float(found.p_values[at]),
                q_value=float(found.q_values[at]),
                lift=_finite(found.lifts[at]),
                lift_low=_finite(found.lift_low[at]),
                lift_high=_finite(found.lift_high[at]),
                noticeable=float(found.noticeable[at]),
                interval=ANYTIME if task.anytime else FIXED,
                liars=task.spec.liars,
            )


def _shared(family: Family, a: Side, b: Side) -> dict[str, Any]:
    """The fields of all rows of a pair."""
    times = [rfc3339(end) for end in (min(_known(a.start, b.start)), max(_known(a.end, b.end)))] if a.end else None
    return {
        "collection_id": family.name,
        "collection_version": family.version,
        "window_start": times[0] if times else None,
        "window_end": times[1] if times else None,
        "group_a": a.name,
        "group_b": b.name,
    }


def _known(*moments: int | None) -> list[int]:
    return [moment for moment in moments if moment is not None]


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _with_q_values(families: Sequence[Sequence[ComparedValue]]) -> list[list[ComparedValue]]:
    """The rows with q-values over all of them."""
    p_values = np.array([row.p_value for rows in families for row in rows])
    adjusted = iter(q_values(p_values).tolist() if len(p_values) else [])
    return [[row._replace(q_value=next(adjusted)) for row in rows] for rows in families]


def _with_selected(
    task: Comparing,
    families: Sequence[tuple[Family, Sequence[tuple[Side, Side]]]],
    rows_of: Sequence[Sequence[ComparedValue]],
) -> list[list[ComparedValue]]:
    """The rows, of which those that are found have an interval after the selection from all rows."""
    level = selected_confidence(np.array([row.q_value <= FOUND for rows in rows_of for row in rows]), FOUND)
    selected = []
    for (family, pairs), rows in zip(families, rows_of):
        ends = {
            (a.name, b.name, *key): both
            for a, b in pairs
            if any(row.q_value <= FOUND for row in rows if (row.group_a, row.group_b) == (a.name, b.name))
            for key, both in _ends(task, family, a, b, level)
        }
        selected.append([_after_selection(row, ends) for row in rows])
    return selected


_Key = tuple[str | float | None, ...]
_Ends = tuple[float | None, float | None]


def _ends(task: Comparing, family: Family, a: Side, b: Side, level: float) -> Iterator[tuple[_Key, _Ends]]:
    """The intervals of a pair at another level, by figure, place of the figure, and value."""
    if a.sums is not None and b.sums is not None:
        for one in compare_numbers(a.sums, b.sums, *_figures(task.spec, family), level, smooth=False):
            yield (one.figure, one.at, None), (one.low, one.high)
    low, high = difference_at(a.estimate, b.estimate, level, task.scale)
    for at in _values(family, a):
        yield (None, None, a.estimate.values[at]), (float(low[at]), float(high[at]))


def _after_selection(row: ComparedValue, ends: Mapping[_Key, _Ends]) -> ComparedValue:
    if row.q_value > FOUND:
        return row
    key = (row.group_a, row.group_b, row.figure, row.at, None if row.figure else row.value)
    return row._replace(selected_low=ends[key][0], selected_high=ends[key][1])


def _lines(family: Family, pairs: Sequence[tuple[Side, Side]], rows: Sequence[ComparedValue]) -> list[str]:
    name, sides = family.name, family.sides
    if len(sides) < 2:
        return [f"{name}: fewer than two can be compared"]
    found = sum(row.q_value <= FOUND for row in rows)
    declared = next((row.liars for row in rows if row.liars is not None), None)
    lines = [
        f"{name}: {len(sides):,} compared, {len(pairs):,} {'pair' if len(pairs) == 1 else 'pairs'}, "
        f"{sum(side.num_reports for side in sides):,} reports",
        _do_they_differ(family, declared),
        f"{found:,} of {len(rows):,} differences are found (q at most {FOUND}).",
        *_smallest(rows),
    ]
    if declared is not None:
        lines.append(
            "Intervals, p and q are of the shares among honest people, whatever liars send, who are at most "
            f"{100 * declared:.4g} % of each side."
        )
    if any(row.interval == ANYTIME for row in rows):
        lines.append("Intervals, p and q hold at all looks while reports arrive; the chi-square test is for one look.")
    numbers = [("smooth interval",)] if any(row.figure for row in rows) else []
    table = [("", "value", "a", "b", "difference", "95 % interval", *itertools.chain(*numbers), "q")]
    for row in sorted(rows, key=lambda row: row.p_value)[:MOST_PRINTED]:
        mark = "*" if row.q_value <= FOUND else ONLY_SMOOTH if shows_only_smooth(row) else ""
        value, a, b = map(printable, (row.value, row.group_a, row.group_b))
        smooth = [smooth_text(row) for _ in numbers]
        table.append((mark, value, a, b, *difference_texts(row), *smooth, f"{row.q_value:.2g}"))
    lines += aligned(table, left=(0, 1, 2, 3))
    if any(mark == ONLY_SMOOTH for mark, *_ in table):
        lines.append(f"{ONLY_SMOOTH} only the smooth interval is without 0; it takes neighbouring bins to be alike.")
    return lines + [f"and {len(rows) - MOST_PRINTED:,} more"] * (len(rows) > MOST_PRINTED)


def _do_they_differ(family: Family, liars: float | None) -> str:
    """One sentence: the test of homogeneity of all sides, or of all pairs, whose statistics are added up."""
    whys = {
        "that test takes all reports as honest": liars is not None,
        "people report several times": family.times != 1,
        "versions of a question are pooled": family.question is not None,
    }
    why = next((why for why, is_so in whys.items() if is_so), None)
    if why is not None:
        return f"Whether they differ at all is not tested, because {why}."
    pairs = [family.sides] if family.pairs is None else family.pairs
    tables = [[side.counts[family.fingerprint] for side in sides] for sides in pairs]
    try:
        tests = [homogeneity(family.collection, table) for table in tables]
    except SpecError:
        return "Whether they differ at all is not tested, because values share symbols."
    known = [test for test in tests if test is not None]
    if not known:
        return "Whether they differ at all is not tested, because too few have reports."
    statistic, degrees = sum(test.statistic for test in known), sum(test.degrees for test in known)
    p_value = float(special.chdtrc(degrees, statistic))
    said = f"chi-square {statistic:.1f}, {degrees} degrees of freedom, p {p_value:.2g}"
    if p_value <= FOUND:
        return f"Do they differ at all? Yes ({said})."
    nothing = f"Do they differ at all? No difference was found ({said}); that does not show that they are equal."
    if len(tables) > 1:
        return nothing
    return f"{nothing} {_noticed(noticeable_shift(family.collection, tables[0]))}"


def _noticed(shift: float) -> str:
    """The power of the test of homogeneity."""
    if shift > 1:
        return "The test usually misses a shift of one value in one group."
    return f"A shift of {shift:.2g} in any one value of one group is noticed (p below .05) in about 80 of 100 cases."


def _smallest(rows: Sequence[ComparedValue]) -> list[str]:
    """The power of the comparisons, from the longest intervals."""
    means, shares = (
        [row.noticeable for row in rows if row.figure in kinds and row.noticeable is not None]
        for kinds in ((MEAN,), (None, SHARE_ABOVE))
    )
    where = "any one share" if any(row.figure for row in rows) else "any one value"
    if shares and not means and max(shares) > 1:
        return [f"Even a difference of 1 in {where} may be missed: there are too few reports, or too many liars."]
    smallest = [
        f"of {max(differences):.2g} in {name}"
        for differences, name in ((means, "the mean"), (shares, where))
        if differences
    ]
    if not smallest:
        return []
    return [
        f"A difference {' or '.join(smallest)} would have a p-value below .05 in at least about 80 of 100 "
        "such cases; smaller ones are often missed."
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns the exit code."""
    return cli.run("compare", configure, job, argv, faults_of_job=(SpecError, OSError))
