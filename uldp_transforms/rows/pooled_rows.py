"""The rows of a question in one window and pane, from the counts of all its versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimator
from uldp_transforms.ldp.estimators.estimator import Decoder
from uldp_transforms.ldp.estimators.number_sums import NumberReports
from uldp_transforms.ldp.repeated_people import keeps_memos
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, NOTHING_UNUSUAL, Finding
from uldp_transforms.ldp.versions import PooledWindow, VersionedQuestion
from uldp_transforms.rows.row_identity import name_of, reports_of_a_person
from uldp_transforms.rows.row_types import HealthFinding, WindowedEstimate, WindowHealth
from uldp_transforms.rows.window_health import finding_of_fit
from uldp_transforms.rows.windowed_estimate import ON_TIME, Entries, confidence_of_row, number_figures, row_of_estimate

AGREEMENT = "agreement"

LEAST_LOSS = 0.05
"""A pooled variance that is larger than that of the most precise version by less than this share is not mentioned."""

DISAGREE = (
    "The versions do not agree: clients of one version do not do what it declares, or other people use it than the "
    "others."
)

TOO_FEW = "Not tested: all versions but one have too few reports to be compared."


def estimate_question(
    question: VersionedQuestion,
    counts: Mapping[bytes, CohortCounts],
    place: dict[str, Any],
    estimator: Estimator,
    candidates: tuple[str, ...] | None,
    withheld: str | None,
    show: int | None = None,
    anytime_scale: int | None = None,
    entries: Entries | None = None,
    limits: Sequence[float] | None = None,
    quantiles: Sequence[float] | None = None,
) -> tuple[WindowedEstimate, WindowHealth]:
    """The pooled rows of one window and pane; without numbers if reports are too few, or no estimate is possible.

    Args:
        question: the question.
        counts: of the window so far, by the fingerprint of a collection; only ``question.pooled`` take part.
        place: the fields that identify window and pane, see ``place_of``.
        estimator: a ``Decoder``.
        candidates: canonical values to estimate in open alphabets.
        withheld: status of a window whose numbers are withheld; None if they are not.
        show, anytime_scale, entries, limits, quantiles: as for ``estimate_window``.
    """
    assert isinstance(estimator, Decoder), "VersionedQuestion.check_estimator"
    window: PooledWindow | None = None
    status = withheld or "ok"
    times = {one.fingerprint: reports_of_a_person(one, place) for one in question.pooled}
    newest = question.pooled[-1].alphabet
    if withheld is None and newest.estimated_values(candidates):
        try:
            window = question.estimate(counts, estimator, candidates, times)
        except EstimationError as error:
            status = error.status
    estimate = window.estimate if window else None
    if estimate and anytime_scale is not None:
        estimate = estimate.anytime(anytime_scale, planned=place["pane_timing"] == ON_TIME)
    total = sum(counts[one.fingerprint].total for one in question.pooled if one.fingerprint in counts)
    shown = None if withheld else estimate.num_reports if estimate else total
    row = row_of_estimate(question, place, estimator.id, estimate, status, shown, show, entries)
    if window and estimate:
        used = _used(question, window, counts, times)
        level = confidence_of_row(total, anytime_scale, place)
        row = row._replace(numbers=number_figures(used, limits, quantiles, level))
    independent = all(not keeps_memos(one) or times[one.fingerprint] == 1 for one in question.pooled)
    health = _health(question, place, window if independent else None, withheld, shown)
    return row._replace(pooled=True), health._replace(pooled=True)


def _used(
    question: VersionedQuestion,
    window: PooledWindow,
    counts: Mapping[bytes, CohortCounts],
    times: Mapping[bytes, int | None],
) -> list[NumberReports]:
    """The reports of the versions that the estimate is from; none if texts beside numbers differ in their order."""
    present = [one for one in question.pooled if one.fingerprint in counts]
    used = [present[place] for place in window.used]
    if len({one.alphabet.known_values for one in used}) != 1:
        return []
    return [NumberReports(one, counts[one.fingerprint], times[one.fingerprint] or 1) for one in used]


def _health(
    question: VersionedQuestion,
    place: dict[str, Any],
    window: PooledWindow | None,
    withheld: str | None,
    num_reports: int | None,
) -> WindowHealth:
    """Findings about the versions together; sentinels judge each version in its own row."""
    findings: list[Finding] = []
    status = withheld or "ok"
    if window is not None and len(window.used) > 1:
        findings.append(finding_of_agreement(window))
        status = "alarm" if findings[0].fired else status
    if window is not None and window.estimate.fit_p_value is not None:
        fit = finding_of_fit(window.estimate.fit_p_value)
        findings.append(fit)
        status = "misfit" if fit.fired and status == "ok" else status
    return WindowHealth(
        **name_of(question),
        **place,
        num_reports=num_reports,
        status=status,
        findings=[HealthFinding(**vars(found)) for found in findings],
    )


def finding_of_agreement(window: PooledWindow) -> Finding:
    """Whether two or more versions of a window agree, as a finding, with how many of them could be pooled."""
    test = window.agreement
    statistic, p_value = (0.0, 1.0) if test is None else (test.statistic, test.p_value)
    fired = p_value < FALSE_ALARMS
    sentence = TOO_FEW if test is None else DISAGREE if fired else NOTHING_UNUSUAL
    if window.left_out:
        number = len(window.left_out)
        sentence += f" Not pooled, because they cannot be estimated: {number} of {number + len(window.used)} versions."
    loss = float(window.loss.max(initial=0.0))
    if loss > 1 + LEAST_LOSS:
        sentence += (
            f" With these numbers of reports, the pooled variance of a value can be up to {loss:.2g} times that of the "
            "most precise version."
        )
    return Finding(
        name=AGREEMENT,
        statistic=statistic,
        p_value=p_value,
        fired=fired,
        sentence=sentence,
    )
