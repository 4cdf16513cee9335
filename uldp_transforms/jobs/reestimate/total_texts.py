"""The whole period as text: a table for each collection or question and group."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from uldp_transforms import JobSpec
from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.jobs.reestimate.whole_periods import Period
from uldp_transforms.ldp.alphabets.noun import REPORT, Noun
from uldp_transforms.ldp.confidence import confidence_or_default, percent
from uldp_transforms.ldp.estimators.display import interval_text
from uldp_transforms.rows.figures.figure import Figure, figures_of, sum_figures_of
from uldp_transforms.rows.figures.figure_words import NumberFormat, advice_on_few_reports, format_of
from uldp_transforms.rows.figures.window_names import WindowNames
from uldp_transforms.rows.json_and_avro import to_json
from uldp_transforms.rows.row_types import WindowedEstimate

MOST_PRINTED = 20
"""Number of values of a collection that are printed; the file has all that are shown."""


def lines_of_period(spec: JobSpec, period: Period, names: WindowNames) -> Iterator[str]:
    """One line about the windows, then the table of its values or figures."""
    row = period.row
    when = f"{names.window(row.window_start, row.window_end)} ({names.zone})" if row.window_start else "everything"
    reports = _noun(spec, row).counted(row.num_reports) if row.num_reports is not None else "no number of reports"
    windows = f"{period.number:,} {'window' if period.number == 1 else 'windows'}"
    left_out = f"; partial and left out: {period.partial:,}" if period.partial else ""
    name = ", ".join(filter(None, (row.collection_id, row.group, _version(spec, row))))
    drawn = "" if row.borrowed is None else f"; shares are drawn towards those of all reports by {row.borrowed:.0%}"
    simulated = "; some or all reports are simulated" if row.simulated else ""
    yield f"{printable(name)}, {when}: {reports} in {windows}, status {row.status}{left_out}{drawn}{simulated}"
    plain = json.loads(to_json(row))
    unit, interval = _unit(spec, row), f"{percent(confidence_or_default(row.confidence))} interval"
    if sums := sum_figures_of(plain):
        table = _figures(sums, ("value", interval, ""), sure_first=False)
        yield from aligned([line[:3] for line in table])
    if figures := figures_of(plain, unit):
        is_smooth = bool(plain["numbers"]["curve"])
        advice = advice_on_few_reports(row.num_reports, is_smooth)
        titles = unit or "value", f"smooth {interval}" if is_smooth else interval, "without smoothness"
        yield from aligned(list(_figures(figures, titles, sure_first=bool(advice))))
        yield from [advice] * bool(advice)
        return
    entries = sorted(row.estimates, key=lambda entry: -entry.frequency)
    shares = [_cells(one.value, one.frequency, one.display_low, one.display_high) for one in entries]
    columns = ["value", "share", f"{percent(spec.confidence)} interval"]
    if row.in_blocks:
        columns += ["block", "share in block", columns[-1]]
        found = {one.value: _cells(one.block, one.share, one.display_low, one.display_high) for one in row.in_blocks}
        shares = [[*cells, *found[one.value]] for cells, one in zip(shares, entries)]
    yield from _shares(columns, shares)
    unlisted = [_cells(one.value, one.frequency, one.ci_low, one.ci_high) for one in period.discovered]
    yield from _shares(["unlisted value", *columns[1:3]], unlisted)


def _cells(name: str, share: float | None, low: float | None, high: float | None) -> list[str]:
    """A name, its share and the interval."""
    if share is None:
        return [printable(name), *["\N{EN DASH}"] * 2]
    return [printable(name), f"{share:.4f}", _between(share, low, high)]


def _shares(titles: Sequence[str], shares: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table of values, with their shares; nothing without values."""
    if not shares:
        return
    yield from aligned([titles, *shares[:MOST_PRINTED]])
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


def _noun(spec: JobSpec, row: WindowedEstimate) -> Noun:
    """What is counted: as the newest version calls it, otherwise reports."""
    return spec.models_of(bytes.fromhex(row.fingerprint))[-1].noun.or_else(REPORT)


def _figures(figures: Sequence[Figure], titles: Sequence[str], sure_first: bool) -> Iterator[tuple[str, ...]]:
    """A table of the figures of numbers, in their unit, and of shares of people.

    Args:
        figures: figures of a row.
        titles: of the value, its interval, and the interval that does not depend on smoothness.
        sure_first: whether the latter comes first, as for few reports.
    """
    order = slice(None, None, -1 if sure_first else 1)
    value, *intervals = titles
    yield "figure", value, *intervals[order]
    for figure in figures:
        form = NumberFormat(False, 4) if figure.is_share else format_of(figure)
        ends = ((figure.low, figure.high), (figure.sure_low, figure.sure_high))
        spans = [form.span(*each) for each in ends]
        yield printable(figure.name), form.text(figure.value), *spans[order]
