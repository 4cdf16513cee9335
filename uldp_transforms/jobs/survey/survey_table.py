"""The text that ``uldp survey`` prints for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uldp_transforms.jobs.files.p_values import p_text
from uldp_transforms.jobs.files.text_table import aligned, printable

_TITLES = ("question", "design", "people", "yes", "error", "95 % interval", "epsilon")
_AGREEMENT = "p (agreement)"


def lines_of(rows: Sequence[dict[str, Any]], *, named: bool) -> list[str]:
    """A table, and a line for each row without a share.

    Args:
        rows: of ``share_rows``.
        named: whether questions have names.
    """
    if not rows:
        return []
    first = 0 if named else 1
    several = any(row["num_designs"] > 1 for row in rows)
    titles = (*_TITLES, *[_AGREEMENT] * several)
    cells = [(*cells_of(row), *[_agreement(row)] * several) for row in rows]
    table = aligned([line[first:] for line in (titles, *cells)], left=range(2 - first))
    problems = [
        f"{', '.join(filter(None, cells_of(row)[:2]))}: {row['problem']}" for row in rows if row["problem"] is not None
    ]
    return [*table, *[""] * bool(problems), *problems]


def cells_of(row: dict[str, Any]) -> tuple[str, ...]:
    """The cells of a row; a dash stands for a number that it does not have."""
    shown = row["problem"] is None
    return (
        printable(row["question"]),
        row["design"] if row["num_designs"] == 1 else f"{row['design']}, {row['num_designs']} designs",
        f"{row['num_reports']:,}",
        f"{row['raw_frequency']:.4f}" if shown else "-",
        f"{row['standard_error']:.4f}" if shown else "-",
        f"{row['ci_low']:.4f} to {row['ci_high']:.4f}" if shown else "-",
        "inf" if row["epsilon"] is None else f"{row['epsilon']:.2f}",
    )


def _agreement(row: dict[str, Any]) -> str:
    return "" if row["agreement_p_value"] is None else p_text(row["agreement_p_value"])
