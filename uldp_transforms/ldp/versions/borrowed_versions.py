"""Groups of a question that borrow from all reports of their window, see ``uldp_transforms.ldp.borrowing.borrow``."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np

from uldp_transforms.ldp.borrowing import BorrowedShares, need_of_borrowing
from uldp_transforms.ldp.borrowing.borrow import Change, Side, Source, borrow_between, changed
from uldp_transforms.ldp.collection import Collection
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import NoReportsError, SpecError
from uldp_transforms.ldp.estimators.empirical import Empirical
from uldp_transforms.ldp.estimators.estimator import Decoder
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.linear import estimate_linear
from uldp_transforms.ldp.solvers.question import LinearEstimate, Question, ask
from uldp_transforms.ldp.versions.pooled_estimate import (
    mean_of_versions,
    picked_problem,
    pooled_intervals,
    pooled_problem,
)
from uldp_transforms.ldp.versions.version_weights import version_weights

K = TypeVar("K")
ByVersion = Mapping[bytes, CohortCounts]
"""Counts by the fingerprint of a version."""


def borrow_versions(
    versions: Sequence[Collection], total: ByVersion, groups: Sequence[ByVersion], decoder: Decoder
) -> list[BorrowedShares]:
    """The shares of each group of a question, drawn towards those of all reports.

    Args:
        versions: those that are pooled, the newest last.
        total: counts of all reports.
        groups: counts of G groups of different people, each with reports, which ``total`` contains.
        decoder: estimator of the shares.

    Raises:
        SpecError: if a version or the estimator is not supported.
        NoReportsError: if there are no reports.
    """
    for version in versions:
        if need := need_of_borrowing(version, decoder):
            raise SpecError(f"borrow_versions needs {need}, got collection {version.id!r} and {decoder.id!r}")
    newest = versions[-1].alphabet
    values = newest.known_values or ()
    picked = newest.symbol_table(values, 1)[0]
    by_symbol = tuple(values[place] for place in np.argsort(picked).tolist())
    side = functools.partial(_side, decoder, versions, by_symbol)
    return borrow_between(side(total), [side(counts) for counts in groups], picked)


def borrowed_of_versions(
    versions: Sequence[Collection], total: ByVersion, groups: Mapping[K, ByVersion], decoder: Decoder, min_reports: int
) -> dict[K, BorrowedShares]:
    """The shares of the groups of one window; none for groups with too few reports, whose rows have no numbers, and
    for those that are not among all reports.

    Args:
        versions, total, decoder: as for ``borrow_versions``.
        groups: counts of the groups.
        min_reports: of the job.
    """
    shown = {}
    for group, counts in groups.items():
        present = [one.fingerprint for one in versions if one.fingerprint in counts and counts[one.fingerprint].total]
        size = sum(counts[mark].total for mark in present)
        if size >= max(min_reports, 1) and all(mark in total and total[mark].total for mark in present):
            shown[group] = counts
    return dict(zip(shown, borrow_versions(versions, total, list(shown.values()), decoder))) if shown else {}


def _side(decoder: Decoder, versions: Sequence[Collection], values: tuple[str, ...], counts: ByVersion) -> Side:
    """The pooled estimate; its unknowns are the values in this order."""
    present = [one for one in versions if one.fingerprint in counts and counts[one.fingerprint].total]
    if not present:
        raise NoReportsError("the versions of this question have no reports")
    questions = [ask(one, counts[one.fingerprint], values) for one in present]
    linears = [estimate_linear(question) for question in questions]
    models: tuple[Model, ...] = tuple(present)
    weights, _ = version_weights(models, values).of(np.array([question.counts.total for question in questions]))
    sources = {
        one.fingerprint: Source(
            mechanism=one.mechanism,
            number=question.counts.total,
            weights=of_version,
            symbols=None if (np.diff(question.picked, prepend=-1) == 1).all() else question.picked,
        )
        for one, question, of_version in zip(present, questions, weights)
    }
    found = _Pooled(decoder, questions, linears, weights)
    return Side(sources, found.raw, found.decode)


class _Pooled:
    """The pooled estimate of versions, made anew for other unbiased frequencies of each.

    Attributes:
        raw: (K,), the pooled unbiased frequencies.
    """

    def __init__(
        self, decoder: Decoder, questions: Sequence[Question], linears: Sequence[LinearEstimate], weights: np.ndarray
    ):
        self._decoder, self._questions, self._linears, self._weights = decoder, questions, linears, weights
        alone = [Empirical().of_linear(question, linear) for question, linear in zip(questions, linears)]
        self.raw: np.ndarray = mean_of_versions(weights, [each.raw_frequencies for each in alone])
        self._errors = np.sqrt(mean_of_versions(weights**2, [each.standard_errors**2 for each in alone]))
        self._intervals = functools.partial(pooled_intervals, weights, alone, self.raw, np.ones(len(self.raw)))

    def decode(self, change: Change) -> np.ndarray:
        """(K,) shares after the same change of the unbiased frequencies of each version."""
        problems = [
            picked_problem(
                self._decoder.problem(question, changed(linear, _in_places(change, question.picked))), question.picked
            )
            for question, linear in zip(self._questions, self._linears)
        ]
        if len(problems) == 1:
            return self._decoder.decode(problems[0])
        raw = mean_of_versions(self._weights, [each.linear.joint for each in problems])
        return self._decoder.decode(pooled_problem(problems, self._weights, raw, self._errors, self._intervals))


def _in_places(change: Change, picked: np.ndarray) -> Change:
    """The change for frequencies whose entries at ``picked`` (K,) are those of the values."""

    def moved(frequencies: np.ndarray) -> np.ndarray:
        placed: np.ndarray = frequencies.copy()
        placed[picked] = change(frequencies[picked])
        return placed

    return moved
