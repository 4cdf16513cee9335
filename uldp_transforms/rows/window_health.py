"""Rows with the findings of the sentinels and of the goodness of fit for a window."""

from __future__ import annotations

from typing import Any

from scipy import special

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, NOTHING_UNUSUAL, Finding, examine
from uldp_transforms.rows.row_identity import name_of, reports_of_a_person
from uldp_transforms.rows.row_types import REPEATS, HealthFinding, WindowedEstimate, WindowHealth

FIT = "fit"
_LEAST, _MOST = 1e-300, 1 - 1e-16  # limits of probabilities, so that z-scores are finite

UNKNOWN_REPEATS = Finding(
    name=REPEATS,
    statistic=0.0,
    p_value=1.0,
    fired=False,
    sentence="Not tested: the number of reports per person is not known, and they share noise (memos). Intervals are "
    "valid only if nobody reports twice in this window; if people do, they are too short. Name a client_window in the "
    "next version of the collection.",
)
"""The finding about windows of collections with memos in which people may report any number of times."""

MISFIT = "The cohorts do not agree on these candidates: a frequent value is not listed, or clients are not honest."


def health_of_window(
    collection: Collection,
    counts: CohortCounts,
    place: dict[str, Any],
    withheld: str | None,
    fit_p_value: float | None,
) -> WindowHealth:
    """The row of one window and pane; without findings if the window's numbers are withheld.

    Sentinels and goodness of fit assume independent reports. They are off if a person can have several reports with the
    same memo. If it is unknown whether a person can, the only finding says so.

    Args:
        collection: collection of the reports.
        counts: of all reports of the window so far.
        place: the fields that identify window and pane.
        withheld: status of a window whose numbers are withheld; None if they are not.
        fit_p_value: p-value of the estimate's goodness of fit; None if it has none.
    """
    status, findings = withheld, []
    if withheld is None:
        times = reports_of_a_person(collection, place)
        independent = not keeps_memos(collection) or times == 1
        findings = examine(collection, counts) if independent else [UNKNOWN_REPEATS] * (times is None)
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


def health_of_group(row: WindowedEstimate, withheld: str | None) -> WindowHealth:
    """The row of a group, without findings: sentinels look at all reports, and only smoothing looks at groups.

    Args:
        row: of the group's estimate.
        withheld: status of a window whose numbers are withheld; None if they are not.
    """
    shared = {name: getattr(row, name) for name in WindowHealth._fields if name in WindowedEstimate._fields}
    return WindowHealth(**shared | {"status": withheld or "ok"}, findings=[])


def with_change(row: WindowHealth, change: Finding) -> WindowHealth:
    """The row with the finding whether shares changed; it decides the status only if no other finding fired.

    It is not a sentinel, because changes in the population trigger it too.
    """
    status = "change" if change.fired and row.status == "ok" else row.status
    return row._replace(status=status, findings=[*row.findings, HealthFinding(**vars(change))])


def finding_of_fit(p_value: float) -> Finding:
    """The goodness of fit as a finding, whose statistic is the z-score with the same tail probability.

    It is not a sentinel, because an incomplete list of candidates triggers it too; so it has its own false-alarm rate.
    """
    fired = p_value < FALSE_ALARMS
    return Finding(
        name=FIT,
        statistic=float(-special.ndtri(min(max(p_value, _LEAST), _MOST))),
        p_value=p_value,
        fired=fired,
        sentence=MISFIT if fired else NOTHING_UNUSUAL,
    )
