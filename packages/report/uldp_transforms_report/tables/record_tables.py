"""Tables of what became of a job: coverage, costs, the ledger, and runs."""

from __future__ import annotations

from collections.abc import Sequence

from uldp_transforms.rows.figures.figure_words import NumberFormat
from uldp_transforms_report.facts import Account, Cost, Coverage
from uldp_transforms_report.tables import columns as of
from uldp_transforms_report.texts_for_readers import shown

_INFINITE, _LARGE = 1e300, 10_000


def coverage_table(caption: str, coverage: Sequence[Coverage]) -> of.Table:
    """Intervals that contain the truth."""
    return of.Table(
        caption=caption,
        columns=[
            of.texts("intervals", "intervals", (line.what for line in coverage), of.LABEL),
            of.counts("contain the truth", "contain_the_truth", (line.held for line in coverage)),
            of.counts("number", "number", (line.number for line in coverage)),
            of.values("share", "share", (line.share for line in coverage), [NumberFormat()] * len(coverage)),
        ],
        sorts=False,
    )


def costs_table(caption: str, costs: Sequence[Cost]) -> of.Table:
    """Total epsilon of a person's reports."""
    cells = [of.Cell(text=_epsilon(cost.epsilon), exact=of.exact(cost.epsilon)) for cost in costs]
    reports = of.texts("reports sent", "reports_sent", (cost.reports for cost in costs), of.LABEL)
    epsilon = of.Column(title="epsilon", fields="epsilon", kind=of.NUMBER, cells=cells)
    return of.Table(caption=caption, columns=[reports, epsilon], sorts=False)


def _epsilon(epsilon: float) -> str:
    if epsilon < _LARGE:
        return f"{epsilon:,.4g}"
    return "infinite" if epsilon > _INFINITE else f"{epsilon:,.0f}"


def accounts_table(caption: str, accounts: Sequence[Account]) -> of.Table:
    """Sums of the ledger."""
    return of.Table(
        caption=caption,
        columns=[
            of.texts("collection", "collection", (shown(line.name, 60) for line in accounts), of.LABEL),
            *(
                of.counts(name, name, (getattr(line, name) for line in accounts))
                for name in ("received", "accepted", "duplicates")
            ),
            of.counts("rejected", "rejected", (sum(line.rejected.values()) for line in accounts)),
            of.texts("reasons", "reasons", map(_reasons, accounts)),
        ],
        sorts=False,
    )


def _reasons(line: Account) -> str:
    return ", ".join(f"{shown(reason, 60)} {number:,}" for reason, number in line.rejected.items()) or "none"


def runs_table(caption: str, runs: Sequence[tuple[str, str, str, str, str]]) -> of.Table:
    """Starts of a job: name, begin, end, state and sentence of each."""
    names, *middle, sentences = zip(*runs)
    words = zip(("started", "ended", "end"), middle)
    return of.Table(
        caption=caption,
        columns=[
            of.texts("run", "run", names, of.LABEL),
            *(of.texts(title, title, map(_known, told), of.WORD) for title, told in words),
            of.texts("message", "message", map(_known, sentences)),
        ],
        sorts=False,
    )


def _known(text: str) -> str:
    return shown(text, 600) if text else ""
