"""The text that ``uldp survey`` prints for its rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from uldp_transforms.jobs.files.text_table import aligned, printable
from uldp_transforms.ldp.confidence import INTERVAL
from uldp_transforms.ldp.estimators.display import interval_text
from uldp_transforms.rows.figures.compared_figures import p_text
from uldp_transforms_survey.survey.inattention_rows import Model
from uldp_transforms_survey.survey.share_rows import is_pooled

_TITLES = ("question", "design", "people", "yes", "error", INTERVAL, "epsilon")
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
    several = any(map(is_pooled, rows))
    titles = (*_TITLES, *[_AGREEMENT] * several)
    cells = [(*cells_of(row), *[_agreement(row)] * several) for row in rows]
    table = aligned([line[first:] for line in (titles, *cells)], left=range(2 - first))
    problems = problems_of(rows)
    return [*table, *[""] * bool(problems), *problems]


def lines_of_model(rows: Sequence[dict[str, Any]], model: Model, *, named: bool) -> list[str]:
    """A table of people who do not follow a design, the assumption, and a line for each row without numbers.

    Args:
        rows: of ``inattention_rows``.
        model: what is assumed.
        named: whether questions have names.
    """
    first = 0 if named else 1
    cells = [
        (
            *cells_of(row)[:3],
            *_estimate(row, "inattentive_share", "inattentive_"),
            *_estimate(row, "frequency"),
            _agreement(row),
        )
        for row in rows
    ]
    titles = (*_TITLES[:3], "inattentive", *_TITLES[4:6], *_TITLES[3:6], _AGREEMENT)
    return [
        *aligned([line[first:] for line in (titles, *cells)], left=range(2 - first)),
        model.assumption,
        *problems_of(rows),
    ]


def problems_of(rows: Sequence[dict[str, Any]]) -> list[str]:
    """A sentence for each row without numbers."""
    return [
        f"{', '.join(filter(None, cells_of(row)[:2]))}: {row['problem']}" for row in rows if row["problem"] is not None
    ]


def cells_of(row: dict[str, Any]) -> tuple[str, ...]:
    """The cells of a row; a dash stands for a number that it does not have."""
    return (
        printable(row["question"]),
        design_of(row),
        f"{row['num_reports']:,}",
        *_estimate(row, "raw_frequency"),
        "inf" if row["epsilon"] is None else f"{row['epsilon']:.2f}",
    )


def design_of(row: dict[str, Any]) -> str:
    """Its design, with the number of designs if there are several."""
    return row["design"] if row.get("num_designs", 1) == 1 else f"{row['design']}, {row['num_designs']} designs"


def _estimate(row: dict[str, Any], name: str, prefix: str = "") -> tuple[str, str, str]:
    """A number, its error and interval."""
    if row[name] is None:
        return "-", "-", "-"
    interval = interval_text(row[name], row[f"{prefix}ci_low"], row[f"{prefix}ci_high"])
    return f"{round(row[name], 4) + 0.0:.4f}", f"{row[f'{prefix}standard_error']:.4f}", interval


def _agreement(row: dict[str, Any]) -> str:
    return "" if row.get("agreement_p_value") is None else p_text(row["agreement_p_value"])
