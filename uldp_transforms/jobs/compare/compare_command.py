"""Compares groups, or consecutive windows, of an output directory: which differences are real.

Adds up the counts that ``uldp estimate --write_counts`` stored. With --by it compares the groups over the whole period,
each pair or all with one (--against); with --windows each window with the one before. Prints whether the groups differ
at all and the clearest differences, and writes a row for each value and pair: difference and lift with intervals,
p-value, and q-value over all rows. Of collections of numbers, rows are about means, quantiles, and shares above
limits. Partial windows are omitted.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from uldp_transforms import JobSpec
from uldp_transforms.files import stores
from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.jobs import cli
from uldp_transforms.jobs.compare.figure_rows import difference_texts, figure_rows, smooth_text
from uldp_transforms.jobs.compare.sides import Family, Side, groups_of, windows_of
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.records.run_records import RunRecord, read_records
from uldp_transforms.jobs.reestimate.reestimate_command import files_of_counts
from uldp_transforms.jobs.reestimate.stored_counts import stored_counts
from uldp_transforms.jobs.report.collection_facts import collections_of
from uldp_transforms.jobs.sinks.row_files import file_of
from uldp_transforms.jobs.spec_options import check_options_agree, given, spec_option
from uldp_transforms.ldp import SpecError, compare, homogeneity
from uldp_transforms.ldp.comparisons.compare import q_values
from uldp_transforms.ldp.comparisons.compare_numbers import MEAN, SHARE_ABOVE
from uldp_transforms.ldp.estimators.number_estimates import QUANTILES, limits_within
from uldp_transforms.rows.row_types import COMPARED_SCHEMA, ComparedValue
from uldp_transforms.windows import rfc3339

FILE = "comparisons.jsonl"
MOST_PRINTED = 20
MOST_PAIRS = 1_000
"""Maximum number of pairs of a collection."""

FOUND = 0.05
"""Largest q-value of a difference that is called found."""

_POWER = (1.96 + 0.84) / 1.96
"""Difference that is found in 80 of 100 cases at a p-value of .05, in half lengths of a 95 % interval."""

_ESTIMATES = ("candidates", "limits", "quantiles", "min_reports")


@dataclasses.dataclass(frozen=True, kw_only=True)
class Comparing:
    """Options of a command line."""

    spec: JobSpec
    files: list[str]
    records: list[RunRecord]
    output: str
    by: tuple[str, ...] | None
    against: str | None


def configure(argv: Sequence[str]) -> Comparing:
    """Parse the command line; raises SpecError or OSError."""
    parser = cli.Parser("compare", description=__doc__)
    parser.add_argument("directory", metavar="DIR", help="output of uldp estimate --write_counts")
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--by", **spec_option("by", help="compare the groups by these dimensions, such as country,arm"))
    what.add_argument("--windows", **cli.SWITCH, help="compare each window with the one before")
    parser.add_argument(
        "--against", metavar="GROUP", help="compare all groups with this one, such as arm=control (default: each pair)"
    )
    parser.add_argument(
        "--collection",
        action="append",
        help="JSON file of a collection to compare; may be given several times (default: those of the runs in DIR)",
    )
    parser.add_argument("--output", metavar="FILE", help=f"file for the rows (default: {FILE} in DIR)")
    for name in _ESTIMATES:
        parser.add_argument(f"--{name}", **spec_option(name))
    args = parser.parse_args(argv)
    if args.against is not None and args.windows:
        raise SpecError("--against needs --by, got --windows")
    check_options_agree(args)
    values = given(args)
    records = list(read_records(args.directory))
    collections = args.collection or list(collections_of(records, ()).values())
    if not collections:
        raise SpecError(f"--collection must be given, because no run in {args.directory} names a collection, got none")
    spec = JobSpec.of(collections=collections, **values)
    spec.check_candidates()
    return Comparing(
        spec=spec,
        files=files_of_counts(args.directory.rstrip("/") + "/", "DIR"),
        records=records,
        output=args.output or stores.joined(args.directory, FILE),
        by=spec.by,
        against=args.against,
    )


def job(task: Comparing) -> int:
    """Compare, write the rows, and print what was found."""
    known = {collection.fingerprint.hex(): collection for collection in task.spec.collections}
    stored = stored_counts([(task.files, task.records)], known, None, task.by)
    found = groups_of(task.spec, stored, task.by) if task.by else windows_of(task.spec, stored)
    families = [(family, _pairs(task, family)) for family in found]
    rows = _with_q_values([list(_rows(task.spec, family, pairs)) for family, pairs in families])
    content = file_of(list(itertools.chain(*rows)), "jsonl", COMPARED_SCHEMA)
    with stores.created(task.output) if stores.in_store(task.output) else whole_file(task.output) as file:
        file.write(content)
    for family, _ in families:
        for sentence in family.left_out:
            print(f"compare: {family.collection.id}: {sentence}", file=sys.stderr)
    texts = [_lines(family, pairs, own) for (family, pairs), own in zip(families, rows)]
    print("\n\n".join("\n".join(lines) for lines in texts))
    return cli.DONE


def _pairs(task: Comparing, family: Family) -> list[tuple[Side, Side]]:
    """The pairs (a, b) to compare: b is the baseline, or comes first."""
    sides = family.sides
    if task.by is None:
        return [(after, before) for before, after in itertools.pairwise(sides)]
    if task.against is not None:
        named = [side for side in sides if side.name == task.against]
        if not named:
            names = ", ".join(side.name for side in sides[:MOST_PRINTED])
            raise SpecError(f"--against must be a group of {family.collection.id!r} ({names}), got {task.against!r}")
        return [(side, named[0]) for side in sides if side.name != task.against]
    number = len(sides) * (len(sides) - 1) // 2
    if number > MOST_PAIRS:
        raise SpecError(
            f"--by must make at most {MOST_PAIRS:,} pairs of groups, got {number:,}; use --against or fewer dimensions"
        )
    return [(after, before) for before, after in itertools.combinations(sides, 2)]


def _rows(spec: JobSpec, family: Family, pairs: Sequence[tuple[Side, Side]]) -> Iterator[ComparedValue]:
    """A row for each pair and value, or figure of numbers; the q-values are those of the pair alone."""
    alphabet = family.collection.alphabet
    limits = limits_within(spec.limits or (), alphabet)
    quantiles = QUANTILES if spec.quantiles is None else spec.quantiles
    for a, b in pairs:
        shared = _shared(family, a, b)
        if a.sums is not None and b.sums is not None:
            yield from figure_rows(shared, a.sums, b.sums, limits, quantiles)
        found = compare(a.estimate, b.estimate)
        for at in range(alphabet.num_symbols - alphabet.num_others if a.sums is not None else 0, len(found.values)):
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
            )


def _shared(family: Family, a: Side, b: Side) -> dict[str, Any]:
    """The fields of all rows of a pair."""
    times = [rfc3339(end) for end in (min(_known(a.start, b.start)), max(_known(a.end, b.end)))] if a.end else None
    return {
        "collection_id": family.collection.id,
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


def _lines(family: Family, pairs: Sequence[tuple[Side, Side]], rows: Sequence[ComparedValue]) -> list[str]:
    name, sides = family.collection.id, family.sides
    if len(sides) < 2:
        return [f"{name}: fewer than two can be compared"]
    found = sum(row.q_value <= FOUND for row in rows)
    lines = [
        f"{name}: {len(sides):,} compared, {len(pairs):,} {'pair' if len(pairs) == 1 else 'pairs'}, "
        f"{sum(side.counts.total for side in sides):,} reports",
        _do_they_differ(family),
        f"{found:,} of {len(rows):,} differences are found (q at most {FOUND}).",
        *_smallest(rows),
    ]
    numbers = [("smooth interval",)] if any(row.figure for row in rows) else []
    table = [("", "value", "a", "b", "difference", "95 % interval", *itertools.chain(*numbers), "q")]
    for row in sorted(rows, key=lambda row: row.p_value)[:MOST_PRINTED]:
        mark = "*" if row.q_value <= FOUND else ""
        value, a, b = map(printable, (row.value, row.group_a, row.group_b))
        smooth = [smooth_text(row) for _ in numbers]
        table.append((mark, value, a, b, *difference_texts(row), *smooth, f"{row.q_value:.2g}"))
    lines += aligned(table, left=(0, 1, 2, 3))
    return lines + [f"and {len(rows) - MOST_PRINTED:,} more"] * (len(rows) > MOST_PRINTED)


def _do_they_differ(family: Family) -> str:
    """One sentence: the test of homogeneity of all sides."""
    if family.times != 1:
        return "Whether they differ at all is not tested, because people report several times."
    try:
        test = homogeneity(family.collection, [side.counts for side in family.sides])
    except SpecError:
        return "Whether they differ at all is not tested, because values share symbols."
    if test is None:
        return "Whether they differ at all is not tested, because too few have reports."
    said = f"chi-square {test.statistic:.1f}, {test.degrees} degrees of freedom, p {test.p_value:.2g}"
    if test.p_value <= FOUND:
        return f"Do they differ at all? Yes ({said})."
    return f"Do they differ at all? No difference was found ({said}); that does not show that they are equal."


def _smallest(rows: Sequence[ComparedValue]) -> list[str]:
    """The power of the comparisons, from the longest intervals."""
    means, shares = (
        [row.high - row.low for row in rows if row.figure in kinds and row.low is not None and row.high is not None]
        for kinds in ((MEAN,), (None, SHARE_ABOVE))
    )
    where = "any one share" if any(row.figure for row in rows) else "any one value"
    smallest = [
        f"of {_POWER * max(lengths) / 2:.2g} in {name}"
        for lengths, name in ((means, "the mean"), (shares, where))
        if lengths
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
