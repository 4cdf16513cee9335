"""The estimates of many samples, solved together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import EstimationError
from uldp_transforms.ldp.estimators import Estimate, Estimator
from uldp_transforms.ldp.estimators.estimator import Decoder
from uldp_transforms.ldp.estimators.number_sums import NumberReports
from uldp_transforms.ldp.false_reports import Lies
from uldp_transforms.ldp.repeated_people import with_repeated_people
from uldp_transforms.ldp.versions import PooledWindow
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.sample import Sample

Solved = tuple["Estimate | None", str]
"""An estimate, if there is one, and the status of its row."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Solution:
    """What is known of one sample.

    Attributes:
        status: of its row.
        estimate: from its reports alone, with what is known of people who report several times; None if there is none.
        withheld: the status, if numbers are withheld; None if they are not.
        used: the versions from whose reports the estimate is.
        pooled: how the versions of a question were pooled; None for a collection.
    """

    status: str
    estimate: Estimate | None = None
    withheld: str | None = None
    used: Sequence[Collection] = ()
    pooled: PooledWindow | None = None

    def lies(self, share: float) -> Lies:
        """What liars can do to the estimate if at most ``share`` of the reports are lies."""
        if self.pooled is not None:
            return self.pooled.lies(share)
        [model] = self.used
        assert self.estimate is not None, "there is an estimate"
        return Lies.of(model, self.estimate.values, share)


def solve(samples: Sequence[Sample], asked: Asked) -> list[Solution]:
    """The solution of each sample; it is the same, bit for bit, whichever samples are solved with it.

    Args:
        samples: in any order.
        asked: what is estimated.
    """
    reasons = [sample.reason_to_withhold(asked.min_reports) for sample in samples]
    found = [Solution(status=reason or "ok", withheld=reason) for reason in reasons]
    shown = [place for place, reason in enumerate(reasons) if reason is None]
    alone = [place for place in shown if samples[place].owner.question is None]
    windows = [(samples[place].owner.versions[-1], next(iter(samples[place].counts.values()))) for place in alone]
    for place, (estimate, status) in zip(alone, solve_windows(windows, asked.estimator, asked.candidates)):
        found[place] = _alone(samples[place], estimate, status)
    for place in shown:
        if samples[place].owner.question is not None:
            found[place] = _pooled(samples[place], asked)
    return found


def _alone(sample: Sample, estimate: Estimate | None, status: str) -> Solution:
    """The solution of a collection, from its estimate if everybody reported once."""
    [model] = sample.owner.versions
    if estimate is not None:
        estimate = with_repeated_people(model, estimate, sample.times[model.fingerprint])
    return Solution(status=status, estimate=estimate, used=[model])


def _pooled(sample: Sample, asked: Asked) -> Solution:
    """The solution of a question, from all its versions."""
    question, estimator = sample.owner.question, asked.estimator
    assert question is not None and isinstance(estimator, Decoder), "VersionedQuestion.check_estimator"
    if not question.pooled[-1].alphabet.estimated_values(asked.candidates):
        return Solution(status="ok")
    try:
        window = question.estimate(sample.counts, estimator, asked.candidates, sample.times)
    except EstimationError as error:
        return Solution(status=error.status)
    present = sample.present
    return Solution(
        status="ok", estimate=window.estimate, used=[present[place] for place in window.used], pooled=window
    )


def number_reports(sample: Sample, solution: Solution) -> list[NumberReports]:
    """The reports that the numbers of a sample are from; none if texts beside numbers differ in their order."""
    if len({one.alphabet.known_values for one in solution.used}) != 1:
        return []
    return used_reports(sample, solution)


def used_reports(sample: Sample, solution: Solution) -> list[NumberReports]:
    """The reports that the estimate of a sample is from, by version."""
    return [
        NumberReports(one, sample.counts[one.fingerprint], sample.times[one.fingerprint] or 1) for one in solution.used
    ]


def solve_windows(
    windows: Sequence[tuple[Collection, CohortCounts]], estimator: Estimator, candidates: tuple[str, ...] | None
) -> list[Solved]:
    """The estimates of windows of collections and the status of each row; windows with as many values are solved
    together.

    There is no estimate if it is not possible, or if there is no value to estimate.

    Args:
        windows: collection and counts of each window whose numbers are not withheld.
        estimator, candidates: as in ``Asked``.
    """
    solved: list[Solved] = [(None, "ok")] * len(windows)
    known = [place for place, (collection, _) in enumerate(windows) if collection.alphabet.known_values]
    others = [
        place
        for place, (collection, _) in enumerate(windows)
        if not collection.alphabet.known_values and collection.alphabet.estimated_values(candidates)
    ]
    for places, asked in ((known, None), (others, candidates)):
        for place, found in zip(places, estimator.estimate_each([windows[place] for place in places], asked)):
            solved[place] = _with_status(found)
    return solved


def _with_status(found: Estimate | EstimationError) -> Solved:
    if isinstance(found, EstimationError):
        return None, found.status
    return (found, "ok") if found.converged else (None, "not_converged")
