"""What an estimator is, and what it returns."""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Callable
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.estimators.anytime import confidence_of_look
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.reports import ReportBatch
from uldp_transforms.ldp.solvers.intervals import quantile, reaching
from uldp_transforms.ldp.solvers.linear import CONFIDENCE, Intervals, LinearEstimate, estimate_linear, picked_intervals
from uldp_transforms.ldp.solvers.question import MAX_CANDIDATES, Question, ask

OK, TOO_UNCERTAIN = "ok", "too_uncertain"
"""Whether what a list leaves unexplained is known."""

FIXED, ANYTIME = "fixed", "anytime"
"""Kinds of intervals: for one look at the data, and for all looks together while reports come in."""

Level = Callable[[Confidence], np.ndarray]

TOLERANCE = 0.01
"""An iterative estimator stops when the log-likelihood is proved to be within this of its maximum."""


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Estimate:
    """A distribution with its uncertainty; all arrays have one entry per value, S of them.

    Attributes:
        values: the texts.
        frequencies: shares in [0, 1] scale as this estimator gives them.
        raw_frequencies: unbiased and unclipped.
        standard_errors: of ``raw_frequencies``, for independent people drawn from a population; above 0.
        intervals: of a confidence, such as 0.99: the ends (S,), (S,) of intervals of each share, from
            ``raw_frequencies``, cut to [0, 1] and then made longer where they would not hold ``frequencies``.
        num_reports: n.
        left_over: what ``frequencies`` leave to people whose value is none of ``values``, so that all sum to 1; 0 if
            the list is complete.
        raw_unexplained_mass: the share of these people, unbiased and unclipped.
        unexplained_standard_error: of ``raw_unexplained_mass``; 0 if the list is complete.
        unexplained_intervals: of a confidence: the ends of the interval of that share, cut to [0, 1].
        unexplained_status: ``"ok"`` if that share is known, ``"too_uncertain"`` if its 95 % interval for one look,
            before it is cut, is longer than ``MOST_UNCERTAIN``; None if the list is complete.
        redistributed_mass: share of people who sent a tag and were shared out by background knowledge. Wrong
            knowledge moves the estimate by at most twice that (in the sum of absolute differences), however many
            reports there are, and no interval knows of it.
        fit_p_value: of hashed alphabets, the probability that residuals are as large as they are if nobody holds an
            unlisted value and all clients are honest; near 0 means one of the two. None elsewhere.
        likelihood_gap: of an iterative estimator, a bound on how far the log-likelihood is below its maximum.
        common_variances: of hashed alphabets, the part of the squared standard errors that hash functions add. It is
            the same in all windows; an unbiased estimate, so it may be below 0. None elsewhere.
        estimator: id of the estimator.
        interval: the kind of all intervals, FIXED or, of what ``anytime`` made, ANYTIME.
    """

    values: tuple[str, ...]
    frequencies: np.ndarray
    raw_frequencies: np.ndarray
    standard_errors: np.ndarray
    intervals: Intervals
    num_reports: int
    left_over: float
    raw_unexplained_mass: float
    unexplained_standard_error: float
    unexplained_intervals: Callable[[float], tuple[float, float]]
    unexplained_status: str | None
    redistributed_mass: float
    fit_p_value: float | None = None
    likelihood_gap: float | None = None
    common_variances: np.ndarray | None = None
    estimator: str
    interval: str = FIXED

    def anytime(self, scale: float, planned: bool | None = None) -> Estimate:
        """The same with intervals that hold together at all looks at the reports that come in.

        If such an estimate is made again and again, even after every report, all intervals of a value together miss its
        share in at most 5 % of cases (or one less the confidence asked for). Reports must come in random order; if the
        share changes, it is its mean so far that is held. From ``scale`` to 10,000 ``scale`` reports these intervals
        are 1.5 to 2 times as long as those for one look, and shortest at 8 ``scale``. One look may be planned: its
        intervals are 1.14 times as long as those for one look, and those of all others 1.6 to 2.1 times.

        Args:
            scale: reports, above 0, chosen before any is seen and the same at all looks, for instance how many there
                are at the first one.
            planned: True: this is the one look that was planned before any report was seen, such as that at the end of
                a window. False: it is another one, and one is planned. None (default): no look is planned.

        Raises:
            SpecError: if ``scale`` is not above 0.
        """
        if not scale > 0:
            raise SpecError(f"Estimate.anytime needs a scale above 0, got {scale!r}")
        at_all_looks = functools.partial(confidence_of_look, num_reports=self.num_reports, scale=scale, planned=planned)
        return dataclasses.replace(
            self,
            intervals=functools.partial(_at_levels, self.intervals, at_all_looks),
            unexplained_intervals=functools.partial(_at_level, self.unexplained_intervals, at_all_looks),
            interval=ANYTIME,
        )

    @property
    def unexplained_low(self) -> float:
        """Lower end of the 95 % interval of the share of people whose value is none of ``values``, cut to [0, 1]."""
        return self.unexplained_intervals(CONFIDENCE)[0]

    @property
    def unexplained_high(self) -> float:
        """Upper end of that interval."""
        return self.unexplained_intervals(CONFIDENCE)[1]

    @functools.cached_property
    def _plain(self) -> tuple[np.ndarray, np.ndarray]:
        return self.intervals(CONFIDENCE)

    @property
    def ci_low(self) -> np.ndarray:
        """(S,): lower end of the 95 % interval of each share, see ``intervals``; at most ``frequencies``."""
        return self._plain[0]

    @property
    def ci_high(self) -> np.ndarray:
        """(S,): upper end of that interval; at least ``frequencies``."""
        return self._plain[1]

    @functools.cached_property
    def _descending(self) -> np.ndarray:
        return np.argsort(-self.frequencies, kind="stable")

    def largest(self, number: int) -> np.ndarray:
        """(R,) int64: positions of the R = min(number, S) values with the largest ``frequencies``, in their order."""
        return np.sort(self._descending[:number])

    def display_intervals(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Intervals of the R = min(number, S) values that are shown because they are ``largest``: (R,), (R,).

        Of values that were chosen by their noisy estimates the plain intervals miss far more than 5 %. Here the i-th
        largest of all S that were estimated has the level 1 - 0.05 i / S (of equal ``frequencies`` the first is the
        larger one), whatever R is. So of the first 1, of the first 2, of the first R, of every number that somebody
        looks at, at most 5 % are expected to miss: docs/estimation.md has the proof. These intervals hold the plain
        ones, and leave nothing of an observed count out.

        Source: a false coverage rate (Benjamini and Yekutieli 2005) for all R at once.
        """
        shown, chosen, size = self.largest(number), self._descending[:number], len(self.values)
        levels = np.full(size, np.nan)
        levels[chosen] = 1 - (1 - CONFIDENCE) * np.arange(1, len(chosen) + 1) / size
        low, high = self.intervals(levels, strict=True)
        return np.minimum(low, self.ci_low)[shown], np.maximum(high, self.ci_high)[shown]

    @property
    def unexplained_mass(self) -> float | None:
        """Share of people whose value is none of ``values``; 0 if the list is complete, None if it is too uncertain."""
        return None if self.unexplained_status == TOO_UNCERTAIN else self.left_over

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
        linear = estimate_linear(question)
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
        rest = float(linear.frequencies[question.left_out].sum()) if linear.rest_standard_error else 0.0
        rest += float(1 - linear.frequencies.sum()) if question.open else 0.0
        status = TOO_UNCERTAIN if linear.rest_is_noise else OK
        return Estimate(
            values=question.values,
            frequencies=shown[picked],
            raw_frequencies=linear.frequencies[picked],
            standard_errors=linear.standard_errors[picked],
            intervals=functools.partial(
                _intervals_of, picked_intervals(linear.intervals, picked, len(linear.frequencies)), shown[picked]
            ),
            num_reports=question.counts.total,
            left_over=float(shown[question.left_out].sum() + shares[unknowns:].sum()),
            raw_unexplained_mass=rest,
            unexplained_standard_error=linear.rest_standard_error,
            unexplained_intervals=functools.partial(_around, rest, linear.rest_standard_error, linear.rest_spare),
            unexplained_status=status if linear.rest_standard_error else None,
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


def _intervals_of(
    intervals: Intervals, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Those of the values asked for, cut to what a share can be, and reaching the share that is shown."""
    low, high = intervals(confidence, strict)
    return reaching(np.clip(low, 0, 1), np.clip(high, 0, 1), frequencies)


def _around(share: float, error: float, spare: float, confidence: float) -> tuple[float, float]:
    """The interval around a share whose error is known from so many degrees of freedom, cut to [0, 1]."""
    half = quantile(spare, confidence) * error
    return float(np.clip(share - half, 0, 1)), float(np.clip(share + half, 0, 1))


def _at_levels(
    intervals: Intervals, level: Level, confidence: Confidence, strict: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """The intervals of another confidence, which is a function of the one asked for."""
    return intervals(level(confidence), strict)


def _at_level(ends: Callable[[float], tuple[float, float]], level: Level, confidence: float) -> tuple[float, float]:
    """The ends of that confidence."""
    return ends(float(level(confidence)))
