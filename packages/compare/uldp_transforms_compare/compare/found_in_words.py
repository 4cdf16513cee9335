"""What a comparison found, as text: whether the sides differ at all, the clearest differences, and the power."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

from scipy import special

from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.ldp import SpecError
from uldp_transforms.ldp.alphabets.noun import REPORT
from uldp_transforms.ldp.confidence import percent
from uldp_transforms.ldp.solvers.pooled_versions import Agreement
from uldp_transforms.rows.figures.compared_figures import p_text, rate_text
from uldp_transforms.rows.figures.window_names import WindowNames, clock, starts_in
from uldp_transforms.rows.row_types import ComparedValue
from uldp_transforms_compare.compare.findings import MOST_PRINTED, Findings
from uldp_transforms_compare.compare.row_texts import ONLY_SMOOTH, difference_texts, shows_only_smooth, smooth_text
from uldp_transforms_compare.compare.sides import CountsOfSides, Family, Pair
from uldp_transforms_compare.comparisons.homogeneity import Homogeneity

SINGLE = "Each interval is for its difference alone; which differences are found, among all of them, q decides."
"""Sentence where an interval is without 0 and its difference is not found."""

_IN_UTC = WindowNames(clock(None), None)
_NOT_EQUAL = "that does not show that they are equal."


def lines_of_family(
    family: Family, pairs: Sequence[Pair], rows: Iterable[ComparedValue], names: WindowNames = _IN_UTC
) -> list[str]:
    """The lines to print about one collection or question, whose rows are read once."""
    name, sides, found = family.name, family.sides, Findings.of(rows)
    if len(sides) < 2:
        return [f"{name}: fewer than two can be compared"]
    rate, has_windows = found.rate, bool(starts_in(side.name for side in sides))
    noun = family.owner.versions[-1].noun.or_else(REPORT)
    lines = [
        f"{name}: {len(sides):,} compared, {len(pairs):,} {'pair' if len(pairs) == 1 else 'pairs'}, "
        f"{noun.counted(sum(side.sample.total for side in sides))}" + f"; times are in {names.zone}" * has_windows,
        _do_they_differ(family, found.declared, found.found, rate),
        f"{found.found:,} of {found.number:,} differences are found (q at most {rate:g}).",
        *power_in_words(found),
    ]
    if found.declared is not None:
        lines.append(
            "Intervals, p and q are of the shares among honest people, whatever liars send, who are at most "
            f"{100 * found.declared:.4g} % of each side."
        )
    if found.has_looks:
        lines.append("Intervals, p and q hold at all looks while reports arrive; the chi-square test is for one look.")
    numbers = [("smooth interval",)] if found.has_figures else []
    level = percent(found.confidence)
    table = [("", "value", "a", "b", "difference", f"{level} interval", *itertools.chain(*numbers), "q")]
    for row in found.clearest():
        mark = "*" if row.q_value <= rate else ONLY_SMOOTH if shows_only_smooth(row) else ""
        a, b = (printable(names.text(name)) for name in (row.group_a, row.group_b))
        smooth = [smooth_text(row) for _ in numbers]
        table.append(
            (mark, printable(row.value), a, b, *difference_texts(row), *smooth, p_text(row.q_value, found=rate))
        )
    lines += aligned(table, left=(0, 1, 2, 3))
    if found.has_single:
        lines.append(SINGLE)
    if any(mark == ONLY_SMOOTH for mark, *_ in table):
        lines.append(f"{ONLY_SMOOTH} only the smooth interval is without 0; it takes neighbouring bins to be alike.")
    if found.number > MOST_PRINTED:
        lines.append(f"and {found.number - MOST_PRINTED:,} more")
    simulated = any(side.sample.simulated for side in sides)
    return lines + ["Some or all of these reports are simulated."] * simulated


def _do_they_differ(family: Family, liars: float | None, found: int, rate: float) -> str:
    """One sentence: the test of homogeneity of all sides, or of all pairs, whose statistics are added up.

    That test, at the level ``rate``, and the single differences, of which ``found`` are found, need not agree: it
    notices small shifts of many values, they notice a large one of a single value.
    """
    whys = {
        "that test takes all reports as honest": liars is not None,
        "people report several times": family.times != 1,
        "versions of a question are pooled": family.owner.question is not None,
    }
    why = next((why for why, is_so in whys.items() if is_so), None)
    if why is not None:
        return f"Whether they differ at all is not tested, because {why}."
    [collection] = family.owner.versions
    pairs = [family.sides] if family.pairs is None else family.pairs
    tables = [CountsOfSides(sides, collection.fingerprint) for sides in pairs]
    try:
        tests = [Homogeneity.of(collection, table) for table in tables]
    except SpecError:
        return "Whether they differ at all is not tested, because values share symbols."
    known = [test.agreement for test in tests if test.agreement is not None]
    if not known:
        return "Whether they differ at all is not tested, because too few have reports."
    answer = _answer(known, found, rate)
    is_silent = answer.endswith(_NOT_EQUAL) and len(tables) == 1
    return f"{answer} {_noticed(tests[0].noticeable_shift(rate), rate)}" if is_silent else answer


def _answer(tests: Sequence[Agreement], found: int, rate: float) -> str:
    """Whether sides differ, by the sum of some tests of all values and by the number of differences that are found."""
    statistic, degrees = sum(test.statistic for test in tests), sum(test.degrees for test in tests)
    p_value = tests[0].p_value if len(tests) == 1 else float(special.chdtrc(degrees, statistic))
    said = f"chi-square {statistic:.1f}, {degrees} degrees of freedom, p {p_text(p_value, found=rate)}"
    if p_value <= rate:
        return f"Do they differ at all? Yes ({said})."
    if found:
        return f"Do they differ at all? Single differences say so; the test of all values together does not ({said})."
    return f"Do they differ at all? No difference was found ({said}); {_NOT_EQUAL}"


def _noticed(shift: float, rate: float) -> str:
    """The power of the test of homogeneity."""
    if shift > 1:
        return "The test usually misses a shift of one value in one group."
    said = f"A shift of {shift:.2g} in any one value of one group is noticed (p below {rate_text(rate)})"
    return f"{said} in about 80 of 100 cases."


def power_in_words(found: Findings) -> list[str]:
    """The power of the comparisons, from the longest intervals."""
    where = "any one share" if found.has_figures else "any one value"
    missed = f"Even a difference of 1 in {where} may be missed: there are too few reports, or too many liars."
    is_missed = found.noticeable_share is not None and found.noticeable_share > 1
    smallest = [
        f"of {difference:.2g} in {name}"
        for difference, name in (
            (found.noticeable_mean, "the mean"),
            (None if is_missed else found.noticeable_share, where),
        )
        if difference is not None
    ]
    noticed = (
        f"A difference {' or '.join(smallest)} would have a p-value below {rate_text(found.rate)} in at least about "
        "80 of 100 such cases; smaller ones are often missed."
    )
    return [noticed] * bool(smallest) + [missed] * is_missed
