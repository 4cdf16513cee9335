"""What the sentinels, and the fit of an estimate, say of a window."""

from __future__ import annotations

from typing import Any

from scipy import special

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.repeated_people import keeps_memos
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, NOTHING_UNUSUAL, Finding, examine
from uldp_transforms.rows.row_identity import name_of, reports_of_a_person
from uldp_transforms.rows.row_types import HealthFinding, WindowHealth

FIT = "fit"
_LEAST, _MOST = 1e-300, 1 - 1e-16  # probabilities whose z-scores are numbers

MISFIT = "The cohorts do not agree on these candidates: a frequent value is not listed, or clients are not honest."


def health_of_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    withheld: str | None,
    fit_p_value: float | None,
) -> WindowHealth:
    """The row of one window and pane; without findings if its numbers are withheld.

    Sentinels and fit take reports as independent of each other. There are no findings where a person may have several
    reports that repeat one memo, or where nothing is known of that.

    Args:
        collection: collection of the reports.
        counts: of all reports of the window so far.
        place: the fields that say which window and pane it is.
        withheld: the status of a window that must not have numbers; None if it may.
        fit_p_value: of the estimate; None if it has none.
    """
    status, findings = withheld, []
    if withheld is None:
        independent = not keeps_memos(collection) or reports_of_a_person(collection, place) == 1
        findings = examine(collection, counts) if independent else []
        fit = [] if fit_p_value is None or not independent else [finding_of_fit(fit_p_value)]
        status = "alarm" if any(found.fired for found in findings) else "misfit" if any(f.fired for f in fit) else "ok"
        findings += fit
    return WindowHealth(
        **name_of(collection),
        **place,
        num_reports=None if withheld else counts.total,
        status=status or "ok",
        findings=[HealthFinding(**vars(found)) for found in findings],
    )


def with_change(row: WindowHealth, change: Finding) -> WindowHealth:
    """The row with what the neighbours of its window say: whether shares moved; ``change`` if nothing worse was there.

    It is no sentinel either: what happens in the world makes it fire as well.
    """
    status = "change" if change.fired and row.status == "ok" else row.status
    return row._replace(status=status, findings=[*row.findings, HealthFinding(**vars(change))])


def finding_of_fit(p_value: float) -> Finding:
    """The fit as a finding: its statistic is the z-score that is exceeded with the same probability.

    It is no sentinel, because a list of candidates that is not complete makes it fire as well; so it has a rate of
    false alarms of its own.
    """
    fired = p_value < FALSE_ALARMS
    return Finding(
        name=FIT,
        statistic=float(-special.ndtri(min(max(p_value, _LEAST), _MOST))),
        p_value=p_value,
        fired=fired,
        sentence=MISFIT if fired else NOTHING_UNUSUAL,
    )
