"""What ``uldp survey`` and ``uldp regress`` estimate, as named figures of a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath
from typing import Any

from uldp_transforms.files.whole_file import whole_file
from uldp_transforms.ldp.confidence import INTERVAL
from uldp_transforms.rows.figures.figure import Figure
from uldp_transforms_report.figures_page import NamedFigures, page_of
from uldp_transforms_survey.survey.covariates import INTERCEPT
from uldp_transforms_survey.survey.inattention_rows import Model
from uldp_transforms_survey.survey.regression_rows import disagreement_of
from uldp_transforms_survey.survey.survey_table import design_of, problems_of

_QUESTION, _YES = "question", "share of yes"
_CATEGORY = "category"
"""The scale of all categories; each column of numbers has a scale of its own, because it has its own unit."""


def write_page(path: str, table: str, title: str, parts: Sequence[NamedFigures], accounts: Sequence[str]) -> None:
    """Write the page of the figures of a table of answers.

    Args:
        path: file of the page.
        table: file of the answers.
        title: heading of the page.
        parts: the figures.
        accounts: sentences about the rows that are used and left out.
    """
    name = PurePath(table).name
    sentence = f"Estimates from the randomized answers in {name}; bars are {INTERVAL}s."
    with whole_file(path) as file:
        file.write(page_of(title, sentence, name, parts, accounts).encode("utf-8", "replace"))


def shares(rows: Sequence[dict[str, Any]]) -> NamedFigures:
    """Rows of ``share_rows``: the unbiased shares of yes by question and design."""
    return NamedFigures(
        title="Shares of yes",
        caption="Unbiased shares of people whose truthful answer is yes",
        heads=(_QUESTION, "design"),
        names=[(row["question"], design_of(row)) for row in rows],
        estimate=_YES,
        figures=[_share(row, "raw_frequency") for row in rows],
        people=[row["num_reports"] for row in rows],
        notes=problems_of(rows),
    )


def shares_by_model(rows: Sequence[dict[str, Any]], model: Model) -> NamedFigures:
    """Rows of ``inattention_rows``: shares of people who do not follow a design, and of yes among the others."""
    both = [(row, what) for row in rows for what in ("inattentive", "yes")]
    return NamedFigures(
        title="People who do not follow the design",
        caption="Shares of inattentive people, and of yes among the others",
        heads=(_QUESTION, "design", "share of"),
        names=[(row["question"], design_of(row), what) for row, what in both],
        estimate="share",
        figures=[
            _share(row, "frequency") if what == "yes" else _share(row, "inattentive_share", "inattentive_")
            for row, what in both
        ],
        notes=[model.assumption, *problems_of(rows)],
    )


def regression(result: dict[str, Any]) -> Iterator[NamedFigures]:
    """A result of ``regression_rows``: coefficients around 0, without the intercept, and predicted shares."""
    begin = f"{result['question']}: " if result["question"] else ""
    bases = [f"{base['covariate']}: compared with {base['base']}" for base in result["compared"]]
    categories = tuple(f"{base['covariate']}: " for base in result["compared"])
    rows = [row for row in result["coefficients"] if row["covariate"] != INTERCEPT]
    if rows:
        names = [row["covariate"] for row in rows]
        yield NamedFigures(
            title=f"{begin}Coefficients",
            caption="Log odds of yes per unit, or of a category compared with the base",
            heads=("covariate",),
            names=[(name,) for name in names],
            estimate="coefficient",
            figures=[_number(row) for row in rows],
            scales=[_CATEGORY if name.startswith(categories) else f"number {name}" for name in names],
            is_signed=True,
            notes=bases,
        )
    yield NamedFigures(
        title=f"{begin}Predicted shares",
        caption="Shares of yes of all people, and if all people had a value",
        heads=("predicted for", "value"),
        names=[(row["covariate"], row["value"]) for row in result["predicted"]],
        estimate=_YES,
        figures=[_share(row, "share") for row in result["predicted"]],
        notes=[f"{result['num_people']:,} people.", *disagreement_of(result["agreement_p_value"])],
    )


def _share(row: dict[str, Any], name: str, prefix: str = "") -> Figure:
    low, high = row[f"{prefix}ci_low"], row[f"{prefix}ci_high"]
    return Figure(name=name, is_share=True, value=row[name], low=low, high=high)


def _number(row: dict[str, Any]) -> Figure:
    value, low, high = (row[part] for part in ("coefficient", "ci_low", "ci_high"))
    return Figure(name=row["covariate"], is_share=False, value=value, low=low, high=high)
