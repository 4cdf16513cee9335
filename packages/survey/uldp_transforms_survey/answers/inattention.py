"""The share of yes, and the share of people who do not follow their design, from several designs or an anchor.

A share g of all people answers 1 with probability c, whatever the question and the design: c is 1, 0, or 1/2 for people
who answer by chance. The others follow their design, and a share t of them would truthfully say yes. Answers 1 of
design a have probability

    P_a = c + b (no_a - c) + d (yes_a - no_a),    b = 1 - g,    d = b t.

An anchor is a question whose share of yes is known, say k: there P_a = c + b (no_a + (yes_a - no_a) k - c). Chances are
linear in (b, d), so that the log-likelihood is concave, and each number given the other one is the share of a list of
designs (``DesignedAnswers``).

Letters: A designs.

Source: Clark and Desharnais 1998 (two rates; there people who always say no); Atsusaka and Stevenson 2021 (an anchor;
people who answer by chance).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np

from uldp_transforms.ldp.checks import describe
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms_survey.answers.shares import (
    FEW,
    MOST_OUTSIDE,
    DesignedAnswers,
    Share,
    contrast_test,
    drop,
    falls,
    likely_interval,
)

HABITS = {"one": 1.0, "zero": 0.0, "chance": 0.5}
"""Probability c of answer 1 by what people do who do not follow their design."""

_NUMBERS = 2  # b and d
_SAME = 1e-9  # singular value of probabilities that are those of linear combinations
_NOBODY = 1e-6  # share of people who follow their design, below which nothing is known of them


@dataclasses.dataclass(frozen=True, kw_only=True)
class Attention:
    """What answers say of people who follow their design, and of those who do not.

    Attributes:
        inattentive: share g of all people.
        yes: share t of those who follow their design.
        agreement: chi-square, its degrees of freedom and p-value of the test whether one g and one t fit all designs;
            None if there are as many numbers as designs.
    """

    inattentive: Share
    yes: Share
    agreement: tuple[float, int, float] | None


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class InattentiveAnswers:
    """Answers to a question, and perhaps to an anchor, in A designs, by people of whom some do not follow them.

    Attributes:
        answers: of both.
        known: (A,) float64, the known share of yes of an anchor; NaN for the question.
        habit: key of ``HABITS``.

    Raises:
        SpecError: if these designs do not determine both shares.
    """

    answers: DesignedAnswers
    known: np.ndarray
    habit: str

    def __post_init__(self) -> None:
        if self.habit not in HABITS:
            raise SpecError(f"InattentiveAnswers.habit must be one of {', '.join(HABITS)}, got {describe(self.habit)}")
        if np.linalg.matrix_rank(self.columns, tol=_SAME) < _NUMBERS:
            raise SpecError(
                f"InattentiveAnswers with habit {self.habit} needs an anchor question, or two rates whose answers "
                "determine both shares, got neither"
            )

    @property
    def columns(self) -> np.ndarray:
        """(A, 2): by how much b and d change the probabilities of answer 1."""
        is_anchor = ~np.isnan(self.known)
        sure = np.where(is_anchor, self.answers.slope * np.nan_to_num(self.known), 0)
        return np.stack(
            [self.answers.no - HABITS[self.habit] + sure, np.where(is_anchor, 0, self.answers.slope)], axis=1
        )

    def by_followers(self, yes: float) -> DesignedAnswers:
        """The answers as those of designs whose share is b, for a given t."""
        no = np.full(len(self.known), HABITS[self.habit])
        return dataclasses.replace(self.answers, no=no, yes=no + self.columns @ (1, yes))

    def by_truth(self, followers: float) -> DesignedAnswers:
        """The answers as those of designs whose share is t, for a given b."""
        no = HABITS[self.habit] + followers * self.columns[:, 0]
        return dataclasses.replace(self.answers, no=no, yes=no + followers * self.columns[:, 1])

    def most_likely(self) -> tuple[float, float]:
        """The most likely b and t in [0, 1]."""

        def step(followers: float) -> float:
            return self.by_followers(self.by_truth(followers).peak(0.0, 1.0)).step(followers)

        followers = falls(step, _NOBODY, 1.0)
        return followers, self.by_truth(followers).peak(0.0, 1.0)

    def height_at(self, *, inattentive: float | None = None, yes: float | None = None) -> float:
        """Largest log-likelihood for one of the shares; the other number is any for which there are probabilities."""
        if yes is not None:
            given = self.by_followers(yes)
            return given.height(given.peak(0.0))
        no = HABITS[self.habit] + (1 - (inattentive or 0.0)) * self.columns[:, 0]
        given = dataclasses.replace(self.answers, no=no, yes=no + self.columns[:, 1])
        return given.height(given.peak())


def attention(data: InattentiveAnswers) -> Attention:
    """The most likely shares, with standard errors and intervals by the likelihood ratio.

    An estimate at 0 or 1 has the interval of answers that are as expected there, and each interval leaves the other
    number free, so that an unlucky sample never looks more certain than a lucky one.

    Raises:
        EstimationError: if the answers are too far from all that are possible, or nobody seems to follow the designs.
    """
    followers, yes = data.most_likely()
    if followers == _NOBODY:
        raise EstimationError("no share of yes: they are the answers of people of whom none follows the design")
    at = data.by_truth(followers)
    chances, degrees = at.chances(yes), data.answers.degrees
    covariance, plain = _covariances(data, chances)
    _check_fit(data, chances, covariance, plain)
    tested = _agreement(data, chances)
    if followers == 1 or yes in (0, 1):
        expected = dataclasses.replace(data.answers, ones=at.expected(yes).ones)
        data = dataclasses.replace(data, answers=expected)

    def share(number: float, slopes: np.ndarray, height: Callable[[float], float]) -> Share:
        variance = float(slopes @ covariance @ slopes)
        low, high = likely_interval(height, number, variance / float(slopes @ plain @ slopes) * drop(degrees))
        return Share(raw=number, share=number, standard_error=variance**0.5, ci_low=low, ci_high=high)

    return Attention(
        inattentive=share(1 - followers, np.array([-1.0, 0.0]), lambda g: data.height_at(inattentive=g)),
        yes=share(yes, np.array([-yes, 1]) / followers, lambda t: data.height_at(yes=t)),
        agreement=tested,
    )


def _covariances(data: InattentiveAnswers, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Covariance (2, 2) of the estimates of b and d, and what it would be if people were independent."""
    answers = data.answers
    gains = data.columns.T * (answers.people / (chances * (1 - chances)))
    plain = np.linalg.inv(gains @ data.columns)
    if answers.covariance is None or answers.effects is None:
        return plain, plain
    own = plain @ gains @ answers.covariance @ gains.T @ plain
    return (own if (np.diag(own) > 0).all() else plain * answers.effects.max()), plain


def _check_fit(data: InattentiveAnswers, chances: np.ndarray, covariance: np.ndarray, plain: np.ndarray) -> None:
    """Refuse answers whose unrestricted estimates are many standard errors away from all shares in [0, 1]."""
    answers = data.answers
    step = plain @ data.columns.T @ ((answers.ones - answers.people * chances) / (chances * (1 - chances)))
    errors = float(np.sqrt(max(step @ np.linalg.pinv(covariance) @ step, 0.0)))
    if errors > MOST_OUTSIDE:
        raise EstimationError(f"the answers do not fit this design, even so ({int(errors)} standard errors away)")


def _agreement(data: InattentiveAnswers, chances: np.ndarray) -> tuple[float, int, float] | None:
    """As ``shares.agreement``, with two numbers; designs with few expected answers are left out."""
    enough = data.answers.people * np.minimum(chances, 1 - chances) >= FEW
    columns, answers = data.columns[enough], data.answers.of(enough)
    if len(columns) <= _NUMBERS or np.linalg.matrix_rank(columns, tol=_SAME) < _NUMBERS:
        return None
    return contrast_test(answers, answers.ones / answers.people - HABITS[data.habit], columns, chances[enough])
