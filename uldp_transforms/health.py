"""What the sentinels, and the fit of an estimate, say of a window."""

from __future__ import annotations

import dataclasses
from typing import Any

from scipy import special

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, NOTHING_UNUSUAL, Finding, examine
from uldp_transforms.rows import WindowHealth, name_of

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

    Args:
        collection: what the reports were made for.
        counts: of all reports of the window so far.
        place: the fields that say which window and pane it is.
        withheld: the status of a window that must not have numbers; None if it may.
        fit_p_value: of the estimate; None if it has none.
    """
    status, findings = withheld, []
    if withheld is None:
        findings = examine(collection, counts)
        fit = [] if fit_p_value is None else [finding_of_fit(fit_p_value)]
        status = "alarm" if any(found.fired for found in findings) else "misfit" if any(f.fired for f in fit) else "ok"
        findings += fit
    return WindowHealth(
        **name_of(collection),
        **place,
        num_reports=None if withheld else counts.total,
        status=status or "ok",
        findings=[dataclasses.asdict(found) for found in findings],
    )


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
