"""What an estimator is, and what it returns."""

from __future__ import annotations

import abc
import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.estimators.linear import LinearEstimate, estimate_linear
from uldp_transforms.ldp.estimators.question import MAX_CANDIDATES, Question, ask
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.reports import ReportBatch

CONFIDENCE = 0.95
"""Confidence of all intervals."""

TOLERANCE = 0.01
"""An iterative estimator stops when the log-likelihood is proved to be within this of its maximum."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A distribution with its uncertainty; all arrays have one entry per value, S of them.

    Attributes:
        values: the texts.
        frequencies: shares in [0, 1] scale as this estimator gives them.
        raw_frequencies: unbiased and unclipped.
        standard_errors: of ``raw_frequencies``, for independent people drawn from a population.
        ci_low, ci_high: 95 % confidence interval of each share, from ``raw_frequencies``, cut to [0, 1].
        num_reports: n.
        unexplained_mass: share of people whose value is none of ``values``; 0 if the list is complete.
        unexplained_standard_error: its standard error before post-processing.
        redistributed_mass: share of people who sent a tag and were shared out by background knowledge. Wrong
            knowledge moves the estimate by at most twice that (in the sum of absolute differences), however many
            reports there are, and no interval knows of it.
        fit_p_value: of hashed alphabets, the probability that residuals are as large as they are if nobody holds an
            unlisted value and all clients are honest; near 0 means one of the two. None elsewhere.
        likelihood_gap: of an iterative estimator, a bound on how far the log-likelihood is below its maximum.
        common_variances: of hashed alphabets, the part of the squared standard errors that hash functions add. It is
            the same in all windows; an unbiased estimate, so it may be below 0. None elsewhere.
        estimator: id of the estimator.
    """

    values: tuple[str, ...]
    frequencies: np.ndarray
    raw_frequencies: np.ndarray
    standard_errors: np.ndarray
    ci_low: np.ndarray
    ci_high: np.ndarray
    num_reports: int
    unexplained_mass: float
    unexplained_standard_error: float
    redistributed_mass: float
    fit_p_value: float | None = None
    likelihood_gap: float | None = None
    common_variances: np.ndarray | None = None
    estimator: str

    @property
    def converged(self) -> bool:
        """False if an iterative estimator ran out of steps: ``frequencies`` are not known to be the most likely."""
        return self.likelihood_gap is None or self.likelihood_gap <= TOLERANCE


@dataclasses.dataclass(frozen=True, kw_only=True)
class Estimator(abc.ABC):
    """Turns counts into an ``Estimate``: the linear, unbiased one, and beside it the shares that are shown."""

    id: ClassVar[str]
    max_candidates: ClassVar[int] = MAX_CANDIDATES
    """Values of an open alphabet, public ones among them, that can be estimated together."""

    def refusal(self, model: Model, *, reports: bool = False) -> str | None:
        """Why this estimator cannot be used with counts (or with the reports themselves); None if it can."""
        return None

    def supports(self, model: Model) -> bool:
        """Whether this estimator can be used with counts of the model."""
        return self.refusal(model) is None

    @abc.abstractmethod
    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        """What is shown for the unknowns, (U,), or (U + 1,) with the unlisted values last if the question is open.

        Returns:
            shares, likelihood gap (None unless iterative).
        """

    def estimate(self, model: Model, counts: CohortCounts, candidates: tuple[str, ...] | None = None) -> Estimate:
        """The estimate of one window.

        Args:
            model: what the reports were made for.
            counts: of its reports.
            candidates: the values to estimate. None: all values of a closed alphabet, the public ones of an open one.

        Raises:
            SpecError: if an open alphabet gets no candidates, or a closed one a stranger.
            EstimationError: if these counts cannot give an estimate; its ``status`` says why.
        """
        question = ask(model, counts, candidates)
        linear = estimate_linear(question, CONFIDENCE)
        return self._assemble(question, linear, *self.shares(question, linear))

    def estimate_reports(
        self, model: Model, counts: CohortCounts, batch: ReportBatch, candidates: tuple[str, ...] | None = None
    ) -> Estimate:
        """The same from the counts and the reports themselves, for estimators that need more than counts."""
        return self.estimate(model, counts, candidates)

    def _assemble(
        self, question: Question, linear: LinearEstimate, shares: np.ndarray, likelihood_gap: float | None
    ) -> Estimate:
        alphabet, picked = question.model.alphabet, question.picked
        unknowns = len(question.own)
        shown = alphabet.redistribute(shares[:unknowns])
        return Estimate(
            values=question.values,
            frequencies=shown[picked],
            raw_frequencies=linear.frequencies[picked],
            standard_errors=linear.standard_errors[picked],
            ci_low=np.clip(linear.low[picked], 0, 1),
            ci_high=np.clip(linear.high[picked], 0, 1),
            num_reports=question.counts.total,
            unexplained_mass=float(shown[question.left_out].sum() + shares[unknowns:].sum()),
            unexplained_standard_error=linear.rest_standard_error,
            redistributed_mass=alphabet.redistributed_mass(linear.raw),
            fit_p_value=linear.fit_p_value,
            likelihood_gap=likelihood_gap,
            common_variances=None if linear.common is None else linear.common[picked],
            estimator=self.id,
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class PostProcessed(Estimator):
    """The linear estimate and a named map of it. In an open alphabet the unlisted values are one more entry."""

    @abc.abstractmethod
    def post_process(self, raw: np.ndarray) -> np.ndarray:
        """Map raw frequencies (S,), complete in the sense that they stand for everybody, to the shown ones (S,)."""

    def shares(self, question: Question, linear: LinearEstimate) -> tuple[np.ndarray, float | None]:
        return self.post_process(everybody(question, linear)), None


def everybody(question: Question, linear: LinearEstimate) -> np.ndarray:
    """Raw frequencies (U,), and those of the unlisted values of an open question behind them.

    Where nothing is known of the latter they are taken as nobody: a rest of -5 or 7 would decide all other shares.
    """
    raw = linear.raw
    if not question.open:
        return raw
    return np.append(raw, 0.0 if linear.rest_is_noise else 1 - raw.sum())
