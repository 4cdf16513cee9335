"""The health of a question in one window: whether its versions agree."""

from __future__ import annotations

from uldp_transforms.ldp.model import keeps_memos
from uldp_transforms.ldp.sentinels import FALSE_ALARMS, NOTHING_UNUSUAL, Finding
from uldp_transforms.ldp.versions import PooledWindow
from uldp_transforms.rows.row_identity import name_of
from uldp_transforms.rows.row_types import HealthFinding, WindowHealth
from uldp_transforms.rows.samples.sample import Sample
from uldp_transforms.rows.samples.solutions import Solution
from uldp_transforms.rows.window_health import finding_of_fit

AGREEMENT = "agreement"

LEAST_LOSS = 0.05
"""A pooled variance that is larger than that of the most precise version by less than this share is not mentioned."""

DISAGREE = (
    "The versions do not agree: clients of one version do not do what it declares, or other people use it than the "
    "others."
)

TOO_FEW = "Not tested: all versions but one have too few reports to be compared."


def health_of_versions(sample: Sample, solution: Solution, num_reports: int | None) -> WindowHealth:
    """The row of a question: findings about the versions together; sentinels judge each version in its own row.

    Agreement and goodness of fit assume independent reports. They are off if a person can have several reports with the
    same memo.

    Args:
        sample: of a question.
        solution: of the sample.
        num_reports: of the estimate; None if they are withheld.
    """
    findings: list[Finding] = []
    status, window = solution.withheld or "ok", solution.pooled
    if any(keeps_memos(one) and sample.times[one.fingerprint] != 1 for one in sample.owner.versions):
        window = None
    if window is not None and len(window.used) > 1:
        findings.append(finding_of_agreement(window))
        status = "alarm" if findings[0].fired else status
    if window is not None and window.estimate.fit_p_value is not None:
        fit = finding_of_fit(window.estimate.fit_p_value)
        findings.append(fit)
        status = "misfit" if fit.fired and status == "ok" else status
    return WindowHealth(
        **name_of(sample.owner.named),
        **sample.place,
        num_reports=num_reports,
        status=status,
        findings=[HealthFinding(**vars(found)) for found in findings],
        pooled=True,
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
