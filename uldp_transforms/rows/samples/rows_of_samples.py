"""The rows of samples: the one place that decides what is withheld, repeated, borrowed, bounded, pooled and shown.

A capability is a field of ``Asked`` and a step here, and then every program that makes rows has it, for collections and
questions, for everybody and for groups.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from uldp_transforms.ldp.borrowing import BorrowedShares, borrowed_shares
from uldp_transforms.ldp.estimators import Estimate
from uldp_transforms.ldp.estimators.estimator import ANYTIME, FIXED, Decoder, find_intervals
from uldp_transforms.ldp.estimators.number_sums import NumberSums
from uldp_transforms.ldp.false_reports import Lies
from uldp_transforms.ldp.share_sums import ShareSums
from uldp_transforms.ldp.share_sums.sum_estimate import estimate_of_sums
from uldp_transforms.ldp.versions import borrowed_of_versions
from uldp_transforms.rows.discovered_value import discover_window
from uldp_transforms.rows.row_types import DiscoveredValue, WindowedEstimate, WindowHealth
from uldp_transforms.rows.samples.asked import Asked
from uldp_transforms.rows.samples.sample import Sample
from uldp_transforms.rows.samples.solutions import Solution, number_reports, solve, used_reports
from uldp_transforms.rows.samples.version_health import health_of_versions
from uldp_transforms.rows.window_health import health_of_group, health_of_window
from uldp_transforms.rows.windowed_estimate import (
    ON_TIME,
    confidence_of_row,
    number_figures,
    row_of_estimate,
    row_sums,
)

TOGETHER = 256
"""Maximum number of samples that are solved together."""


@dataclasses.dataclass(frozen=True, eq=False)
class SampleRows:
    """What is shown of a sample, and its rows, which are made when they are asked for.

    Attributes:
        sample: the sample.
        asked: what is estimated.
        solution: of the sample.
        shown: the estimate that is shown; None if the status of the solution says why there is none.
        find_intervals: computes those of the samples that were solved together; the first row needs them.
    """

    sample: Sample
    asked: Asked
    solution: Solution
    shown: Estimate | None
    find_intervals: Callable[[], None]

    @functools.cached_property
    def numbers(self) -> NumberSums | None:
        """What figures of numbers come from; None without numbers, or if versions differ in the order of the texts
        beside them."""
        reports = number_reports(self.sample, self.solution)
        return NumberSums(reports) if reports and reports[0].model.alphabet.bin_edges is not None else None

    @functools.cached_property
    def sums(self) -> ShareSums | None:
        """The sums over chosen values; None without sums that this collection can have, or without an estimate."""
        if self.shown is None or not self.asked.sums:
            return None
        found = ShareSums(used_reports(self.sample, self.solution), self.asked.sums, self.shown.values)
        return found if found.sums else None

    @functools.cached_property
    def sums_as_shares(self) -> Estimate:
        """The sums as shares of their ranges; only with sums."""
        assert self.shown is not None and self.sums is not None, "there are sums"
        return _allowing(self.sample, self.asked, estimate_of_sums(self.sums, self.shown), self.sums.lies)

    @functools.cached_property
    def estimate(self) -> WindowedEstimate:
        """The row of the estimate."""
        self.find_intervals()
        row = _row(self.sample, self.asked, self.solution, self.shown)
        if self.shown is None or self.sums is None:
            return row
        return row._replace(sums=row_sums(self.sums, self.sums_as_shares))

    @functools.cached_property
    def health(self) -> WindowHealth:
        """Sentinels judge a collection; of a question, whether its versions agree; and nothing judges groups."""
        sample, row = self.sample, self.estimate
        if sample.owner.group:
            found = health_of_group(row, self.solution.withheld)
        elif sample.owner.question is not None:
            found = health_of_versions(sample, self.solution, row.num_reports)
        else:
            [model] = sample.owner.versions
            counts = sample.counts[model.fingerprint]
            found = health_of_window(model, counts, sample.place, self.solution.withheld, row.fit_p_value)
        return found._replace(**sample.owner.fields)

    @functools.cached_property
    def discovered(self) -> list[DiscoveredValue]:
        """The rows of frequent unlisted values; none unless asked for, and none of questions and groups."""
        sample, owner = self.sample, self.sample.owner
        if not self.asked.discover or owner.question is not None or owner.group:
            return []
        [model] = owner.versions
        counts, withheld = sample.counts[model.fingerprint], self.solution.withheld
        found = discover_window(model, counts, sample.place, withheld, self.asked.confidence)
        return [value._replace(simulated=sample.simulated) for value in found]


def rows_of(samples: Iterable[Sample], asked: Asked) -> Iterator[SampleRows]:
    """The rows of each sample, in their order; without numbers if reports are too few or missing, or no estimate is
    possible.

    Args:
        samples: read in parts, but all at once if groups borrow: then a total and its groups must be among them.
        asked: what is estimated.
    """
    borrowed: Mapping[Sample, BorrowedShares] = {}
    if asked.borrow:
        samples = list(samples)
        borrowed = borrowed_of(samples, asked)
    rest = iter(samples)
    while part := list(itertools.islice(rest, TOGETHER)):
        solutions = solve(part, asked)
        estimates = [
            solution.estimate and _shown(sample, asked, solution, solution.estimate, borrowed.get(sample))
            for sample, solution in zip(part, solutions)
        ]
        find = functools.cache(functools.partial(find_intervals, [one for one in estimates if one], asked.show))
        for sample, solution, estimate in zip(part, solutions, estimates):
            yield SampleRows(sample, asked, solution, estimate, find)


def borrowed_of(samples: Sequence[Sample], asked: Asked) -> dict[Sample, BorrowedShares]:
    """The shares that groups show if they borrow from the total of their window."""
    windows: dict[object, list[Sample]] = {}
    for sample in samples:
        if not sample.partial:
            windows.setdefault(sample.together, []).append(sample)
    found: dict[Sample, BorrowedShares] = {}
    for window in windows.values():
        totals = [sample for sample in window if not sample.owner.group]
        groups = [sample for sample in window if sample.owner.group]
        if totals and groups:
            found |= _borrowed(totals[0], groups, asked)
    return found


def _borrowed(total: Sample, groups: Sequence[Sample], asked: Asked) -> dict[Sample, BorrowedShares]:
    """The shares of the groups of one window; in the order of their names for a question, whose groups have none."""
    estimator, versions = asked.estimator, total.owner.versions
    if total.owner.question is None:
        [mark] = {model.fingerprint for model in versions}
        own = {sample: sample.counts[mark] for sample in groups}
        return borrowed_shares(versions[-1], total.counts[mark], own, estimator, asked.min_reports)
    assert isinstance(estimator, Decoder), "VersionedQuestion.check_estimator"
    named = sorted(groups, key=lambda sample: tuple(sample.owner.group))
    counts = {sample: sample.counts for sample in named}
    return borrowed_of_versions(versions, total.counts, counts, estimator, asked.min_reports)


def _row(sample: Sample, asked: Asked, solution: Solution, estimate: Estimate | None) -> WindowedEstimate:
    """The row of one sample."""
    owner, place = sample.owner, sample.place
    total = None if solution.withheld else estimate.num_reports if estimate else sample.total
    row = row_of_estimate(owner.named, place, asked.estimator.id, estimate, solution.status, total, asked.show)
    if estimate:
        level = confidence_of_row(asked.confidence, sample.total, asked.anytime_scale, place)
        numbers = number_figures(number_reports(sample, solution), asked.limits, asked.quantiles, level)
        row = row._replace(numbers=numbers)
    return row._replace(
        interval=FIXED if asked.anytime_scale is None else ANYTIME,
        confidence=asked.confidence,
        simulated=sample.simulated,
        pooled=True if owner.question is not None else row.pooled,
        **owner.fields,
    )


def _shown(
    sample: Sample, asked: Asked, solution: Solution, estimate: Estimate, borrowed: BorrowedShares | None
) -> Estimate:
    """The estimate that is shown, from that of the sample's own reports: one step for each capability."""
    if borrowed is not None:
        estimate = estimate.with_borrowed(borrowed.frequencies, borrowed.weight)
    return _allowing(sample, asked, estimate, solution.lies)


def _allowing(sample: Sample, asked: Asked, estimate: Estimate, lies: Callable[[float], Lies]) -> Estimate:
    """An estimate whose intervals allow for what is asked: groups, lies, and many looks."""
    estimate = dataclasses.replace(estimate, num_groups=sample.owner.num_groups, confidence=asked.confidence)
    if asked.liars is not None:
        estimate = estimate.with_lies(lies(asked.liars))
    if asked.anytime_scale is not None:
        estimate = estimate.anytime(asked.anytime_scale, planned=sample.place["pane_timing"] == ON_TIME)
    return estimate
