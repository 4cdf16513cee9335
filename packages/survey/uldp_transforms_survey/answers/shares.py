"""The share of yes that is most likely, given answers to one question in several designs.

A person whose truthful answer is yes answers 1 with probability yes_a in design a, and one whose answer is no with
probability no_a. With the share t of yes, answers 1 of design a are binomial with probability

    P_a = no_a + (yes_a - no_a) t.

A sample with weights, strata or clusters changes the covariance of the fractions of answers 1, from which everything
else follows: standard errors by linearization, and likelihood ratios divided by the design effect.

Letters: A designs.

Source: Warner 1965; Yu, Tian and Tang 2008; Rao and Scott 1984 (likelihood ratios of survey samples).
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import numpy as np
import scipy
from scipy import optimize, special

from uldp_transforms.ldp.confidence import CONFIDENCE

MOST_OUTSIDE = 4.0
"""Standard errors that a share may lie outside [0, 1], by their number or by the likelihood ratio. By the latter,
answers that fit their design lie farther outside with probability at most 2 exp(-8), which is 1 in 1,490, at any number
of people (Chernoff's bound), and about 1 in 16,000 at many."""

DISAGREE = 0.001
"""Largest p-value of designs that disagree."""

FEW = 5
"""Expected answers 1, or 0, below which a design is not tested."""

_TINY = 1e-12
_CLOSE = 1e-13  # to the number at which a function is 0
_STEPS = 1000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Share:
    """A share of people.

    Attributes:
        raw: most likely number for which all designs have probabilities; it can be below 0 or above 1.
        share: ``raw``, or the nearest of 0 and 1.
        standard_error: from the expected information at ``share``, and the design of the sample.
        ci_low, ci_high: interval in [0, 1], by the likelihood ratio; as if ``raw`` were ``share``.
    """

    raw: float
    share: float
    standard_error: float
    ci_low: float
    ci_high: float


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class DesignedAnswers:
    """Answers to a question in A designs.

    Attributes:
        no, yes: (A,) float64 probabilities of answer 1 for people whose truthful answer is no, or yes.
        ones, people: (A,) float64 answers 1, and all; weighted if people have weights, with as large a sum.
        covariance: (A, A) float64, of the fractions of answers 1; None: people are independent of each other.
        effects: (A,) float64, design effects where the answers show no variance; None: 1.
        degrees: of freedom of ``covariance``.
    """

    no: np.ndarray
    yes: np.ndarray
    ones: np.ndarray
    people: np.ndarray
    covariance: np.ndarray | None = None
    effects: np.ndarray | None = None
    degrees: float = np.inf

    def of(self, designs: np.ndarray) -> DesignedAnswers:
        """Some of the designs: (A,) bool."""
        return dataclasses.replace(
            self,
            no=self.no[designs],
            yes=self.yes[designs],
            ones=self.ones[designs],
            people=self.people[designs],
            covariance=None if self.covariance is None else self.covariance[np.ix_(designs, designs)],
            effects=None if self.effects is None else self.effects[designs],
        )

    @property
    def slope(self) -> np.ndarray:
        """(A,) by how much a share of 1 changes the probability of answer 1."""
        return np.asarray(self.yes - self.no)

    def chances(self, share: float) -> np.ndarray:
        """(A,) probabilities of answer 1."""
        return np.clip(self.no + self.slope * share, _TINY, 1 - _TINY)

    def height(self, share: float) -> float:
        """Log-likelihood, without what does not depend on the share."""
        chances = self.chances(share)
        return float((special.xlogy(self.ones, chances) + special.xlog1py(self.people - self.ones, -chances)).sum())

    def step(self, share: float) -> float:
        """Step of Newton's method (Fisher scoring) towards the share with the largest ``height``."""
        chances = self.chances(share)
        weights = self.slope / (chances * (1 - chances))
        information = max(float(weights @ (self.people * self.slope)), _TINY)
        return float(weights @ (self.ones - self.people * chances)) / information

    def peak(self, low: float = -np.inf, high: float = np.inf) -> float:
        """Where ``height`` is largest, between these ends and where all chances are from 0 to 1."""
        moving = self.slope != 0
        no, slope = self.no[moving], self.slope[moving]
        ends = np.sort(np.stack([-no / slope, (1 - no) / slope]), axis=0)
        return falls(self.step, float(ends[0].max(initial=low)), float(ends[1].min(initial=high)))

    def expected(self, share: float) -> DesignedAnswers:
        """The same with answers 1 as expected at a share."""
        return dataclasses.replace(self, ones=self.people * self.chances(share))


def share_of_yes(answers: DesignedAnswers) -> Share:
    """The most likely share of yes; of one design it is the unbiased estimate."""
    raw = answers.peak() + 0.0  # no -0
    share = float(np.clip(raw, 0.0, 1.0))
    at_share = answers if raw == share else answers.expected(share)
    error, effect = _error(answers, share)
    low, high = likely_interval(at_share.height, share, effect * drop(answers.degrees))
    return Share(raw=raw, share=share, standard_error=error, ci_low=low, ci_high=high)


def misfit(answers: DesignedAnswers) -> str | None:
    """A sentence if answers lie too far outside those that are possible for shares in [0, 1]; None if they do not."""
    raw = answers.peak()
    share = float(np.clip(raw, 0.0, 1.0))
    if raw == share:
        return None
    error, effect = _error(answers, share)
    errors = abs(raw - share) / error
    ratio = np.sqrt(max(2 * (answers.height(raw) - answers.height(share)), 0.0) / effect)
    if max(errors, ratio) <= MOST_OUTSIDE:
        return None
    number = int(errors if errors > MOST_OUTSIDE else ratio)
    return f"the answers do not fit this design ({number} standard errors {'above 1' if raw > 1 else 'below 0'})"


def agreement(answers: DesignedAnswers) -> tuple[float, int, float] | None:
    """Test whether all designs have the same share of yes.

    Designs in which fewer than 5 answers 1 or fewer than 5 answers 0 are expected are left out.

    Returns:
        chi-square, its degrees of freedom, p-value; None if fewer than two designs can be tested.
    """
    chances = answers.chances(float(np.clip(answers.peak(), 0.0, 1.0)))
    answers = answers.of(answers.people * np.minimum(chances, 1 - chances) >= FEW)
    if len(answers.people) < 2:  # to compare
        return None
    apart = answers.ones / answers.people - answers.no
    return contrast_test(answers, apart, answers.slope[:, np.newaxis], answers.chances(answers.peak()))


def contrast_test(
    answers: DesignedAnswers, apart: np.ndarray, columns: np.ndarray, chances: np.ndarray
) -> tuple[float, int, float] | None:
    """Test whether fractions of answers 1 are linear functions of P numbers.

    Args:
        answers: of A designs.
        apart: (A,) the fractions, less what does not depend on the numbers.
        columns: (A, P), of independent columns: by how much each number changes the fractions.
        chances: (A,) estimated probabilities of answer 1.

    Returns:
        as ``agreement``.
    """
    covariance = answers.covariance
    if covariance is None:
        covariance = np.diag(chances * (1 - chances) / answers.people)
    contrasts = scipy.linalg.null_space(columns.T).T
    degrees = len(contrasts)
    left = answers.degrees - degrees + 1
    spread = contrasts @ covariance @ contrasts.T
    if degrees < 1 or left < 1 or np.linalg.matrix_rank(spread) < degrees:
        return None
    statistic = float(contrasts @ apart @ np.linalg.solve(spread, contrasts @ apart))
    if np.isinf(left):
        return statistic, degrees, float(scipy.stats.chi2.sf(statistic, degrees))
    return statistic, degrees, float(scipy.stats.f.sf(statistic * left / (answers.degrees * degrees), degrees, left))


def _error(answers: DesignedAnswers, share: float) -> tuple[float, float]:
    """Standard error of a share, and the factor of its variance by the design of the sample."""
    chances = answers.chances(share)
    gains = answers.slope * answers.people / (chances * (1 - chances))
    plain = 1 / (gains @ answers.slope)
    if answers.covariance is None or answers.effects is None:
        return float(np.sqrt(plain)), 1.0
    if share in (0, 1):  # the design effect of the observed fractions, with the variances of the expected ones
        observed = np.clip(answers.ones / answers.people, _TINY, 1 - _TINY)
        gains = gains * np.sqrt(chances * (1 - chances) / (observed * (1 - observed)))
    own = float(gains @ answers.covariance @ gains) * plain**2
    effect = own / plain if own > 0 else float(answers.effects.max())
    return float(np.sqrt(effect * plain)), effect


@functools.cache
def drop(degrees: float) -> float:
    """By how much twice the log-likelihood may be below its maximum in an interval."""
    return float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, degrees)) ** 2


def likely_interval(height: Callable[[float], float], at: float, limit: float) -> tuple[float, float]:
    """The numbers in [0, 1] whose log-likelihood is at most half of ``limit`` below that of the most likely one."""
    floor = height(at) - limit / 2
    low = 0.0 if height(0.0) >= floor else falls(lambda x: floor - height(x), 0.0, at)
    high = 1.0 if height(1.0) >= floor else falls(lambda x: height(x) - floor, at, 1.0)
    return low, high


def falls(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a function becomes negative; an end if it does not."""
    if function(low) <= 0:
        return low
    if function(high) >= 0:
        return high
    return float(optimize.brentq(function, low, high, xtol=_CLOSE, maxiter=_STEPS))
