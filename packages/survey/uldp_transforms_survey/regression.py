"""Logistic regression of a private value on covariates that are known in the clear.

A person with covariates x holds value v with probability softmax(x'b)_v, where the coefficients of value 0 are 0, and
sends report y with probability

    P(y | x) = sum_v Q[y, v] softmax(x'b)_v.

The likelihood is maximised by Newton's method with the expected information (Fisher scoring), whose inverse is the
covariance of the coefficients.

Source: Maddala 1983, section 2.13 (randomized response); Blair, Imai and Zhou 2015 (forced response). With a matrix Q
that is the identity it is multinomial logistic regression.

Letters: N people, K values, M outputs, P covariates.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy
from scipy import special

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.errors import EstimationError, SpecError
from uldp_transforms_survey.answers.profile import profile_interval
from uldp_transforms_survey.answers.samples import Sample

_STEPS = 100
_HALVINGS = 40
_CLOSE = 1e-10  # of the squared length of a step, in standard errors
_ROUNDING = 1e-12  # of a log-likelihood
_LEAST_INFORMATION = 1e-4  # a standard error of 100 for the log odds of covariates with mean square 1
_TINY = np.finfo(float).tiny
_RANK = 1e-9  # smallest share of a covariate that others may leave unexplained


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Regression:
    """Coefficients with their uncertainty.

    Attributes:
        coefficients: (K - 1, P) float64: log odds of values 1 to K - 1 against value 0, per unit of each covariate.
        covariance: of ``coefficients``, row after row, ((K - 1) P, (K - 1) P): inverse of the expected information.
        log_likelihood: maximum, in nats.
        num_people: N, with numbers of people their sum.
        degrees: degrees of freedom of ``covariance``, if it is that of a survey sample.
        fit: the likelihood, for intervals of shares.
    """

    coefficients: np.ndarray
    covariance: np.ndarray
    log_likelihood: float
    num_people: int
    degrees: float = np.inf
    fit: _Fit = dataclasses.field(repr=False)

    @property
    def standard_errors(self) -> np.ndarray:
        """(K - 1, P): standard errors of ``coefficients``."""
        return np.sqrt(np.diag(self.covariance)).reshape(self.coefficients.shape)

    @property
    def wald_p_values(self) -> np.ndarray:
        """(K - 1, P): p-values of the hypothesis that a coefficient is 0, from its ratio to its standard error."""
        return np.asarray(2 * scipy.stats.t.sf(np.abs(self.coefficients / self.standard_errors), self.degrees))

    def intervals(self, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
        """Ends (K - 1, P) and (K - 1, P) of the Wald intervals of the coefficients."""
        reach = scipy.stats.t.isf((1 - confidence) / 2, self.degrees) * self.standard_errors
        return self.coefficients - reach, self.coefficients + reach

    def probabilities(self, covariates: np.ndarray) -> np.ndarray:
        """(N, K): fitted probability of each value for people with covariates (N, P)."""
        return _shares(covariates, self.coefficients)

    def mean_probability(self, covariates: np.ndarray, people: np.ndarray, value: int = 1) -> tuple[float, float]:
        """Fitted share of a value among people with covariates (N, P), and its standard error (delta method).

        Args:
            covariates: (N, P), taken as they are: their own sampling error is not included.
            people: (N,) how many people, or weights.
            value: from 1 to K - 1.
        """
        share, slopes = _mean_share(covariates, people / people.sum(), self.coefficients, value)
        return share, float(np.sqrt(slopes @ self.covariance @ slopes))

    def mean_interval(
        self, covariates: np.ndarray, people: np.ndarray, value: int = 1, confidence: float = CONFIDENCE
    ) -> tuple[float, float]:
        """Ends of the profile-likelihood interval of ``mean_probability``, for the same arguments.

        For a survey sample, twice the drop of the log-likelihood is divided by the design effect of the share.
        """
        fit, weights, scaled = self.fit, people / people.sum(), covariates @ self.fit.back

        def log_odds(flat: np.ndarray) -> tuple[float, np.ndarray]:
            share, slopes = _mean_share(scaled, weights, flat.reshape(fit.coefficients.shape), value)
            odds = max(share, _TINY) / max(1 - share, _TINY)
            return float(np.log(odds)), slopes / max(share * (1 - share), _TINY)

        _, slopes = _mean_share(scaled, weights, fit.coefficients, value)
        inverse = np.linalg.inv(fit.information)
        effect = (slopes @ fit.covariance @ slopes) / (slopes @ inverse @ slopes)
        drop = effect * scipy.stats.t.isf((1 - confidence) / 2, self.degrees) ** 2 / 2
        return profile_interval(fit.problem.height_and_slope, log_odds, fit.coefficients.ravel(), inverse, drop)

    def likelihood_ratio(self, smaller: Regression) -> tuple[float, int, float]:
        """Compare with a regression of the same reports on some of the covariates.

        Returns:
            twice the difference of log-likelihoods, degrees of freedom, p-value (chi-square).

        Raises:
            SpecError: if the other one has as many coefficients or more, or another number of people.
        """
        degrees = self.coefficients.size - smaller.coefficients.size
        if degrees <= 0 or smaller.num_people != self.num_people:
            raise SpecError(
                "Regression.likelihood_ratio needs a regression of the same people with fewer coefficients than "
                f"{self.coefficients.size}, got {smaller.coefficients.size} of {smaller.num_people} people"
            )
        statistic = max(2 * (self.log_likelihood - smaller.log_likelihood), 0.0)
        return statistic, degrees, float(scipy.stats.chi2.sf(statistic, degrees))


def regress(
    channel: np.ndarray,
    outputs: np.ndarray,
    covariates: np.ndarray,
    people: np.ndarray | None = None,
    sample: Sample | None = None,
) -> Regression:
    """Fit the coefficients of ``Regression`` to reports.

    Args:
        channel: Q, (M, K) float64 with columns that sum to 1, Pr(output | value); or one for each person, (N, M, K).
        outputs: (N,) int64 in [0, M): what each person reported.
        covariates: (N, P) float64, with a column of ones for an intercept.
        people: (N,) numbers of people with this report and these covariates (default: 1 each).
        sample: how these people were drawn, with ``people`` of its own: the likelihood is weighted, and the covariance
            is that of the sample by linearization (default: independently, with equal chances).

    Raises:
        SpecError: if shapes do not fit, a column of the channel does not sum to 1, an output or a covariate is out of
            range, or covariates are linear combinations of others.
        EstimationError: if no finite coefficients have the largest likelihood, or the steps do not reach them.

    Examples:
        >>> import numpy as np
        >>> from uldp_transforms_survey.regression import regress
        >>> forced = np.array([[5 / 6, 1 / 6], [1 / 6, 5 / 6]])  # truth 2/3, yes 1/6, no 1/6
        >>> outputs, woman = np.array([0, 1, 0, 1]), np.array([0, 0, 1, 1])
        >>> covariates = np.stack([np.ones(4), woman], axis=1)
        >>> fit = regress(forced, outputs, covariates, people=np.array([600, 400, 700, 300]))
        >>> fit.probabilities(covariates)[[0, 2], 1].round(3).tolist()
        [0.35, 0.2]
    """
    if sample is not None:
        people = sample.shares
    weights = np.ones(len(outputs)) if people is None else np.asarray(people, dtype=np.float64)
    _check(channel, outputs, covariates, weights)
    scaled, back = _orthonormal(covariates, weights)
    problem = _Problem(channel, outputs, scaled, weights)
    fitted, information = problem.solve()
    num_values = channel.shape[-1]
    transform = np.kron(np.eye(num_values - 1), back)
    covariance = np.linalg.inv(information)
    if sample is not None:
        covariance = covariance @ sample.covariance(problem.scores(fitted)) @ covariance
    fit = _Fit(problem, fitted, information, covariance, back)
    return Regression(
        coefficients=fitted @ back.T,
        covariance=transform @ covariance @ transform.T,
        log_likelihood=problem.log_likelihood(fitted),
        num_people=round(weights.sum()),
        degrees=np.inf if sample is None else sample.degrees,
        fit=fit,
    )


class _Problem:
    """The likelihood and its derivatives, for covariates that are orthonormal."""

    def __init__(self, channel: np.ndarray, outputs: np.ndarray, covariates: np.ndarray, weights: np.ndarray):
        self.channel, self.covariates, self.weights = channel, covariates, weights
        self.observed = channel[outputs] if channel.ndim == 2 else channel[np.arange(len(outputs)), outputs]  # (N, K)

    def log_likelihood(self, coefficients: np.ndarray) -> float:
        """-inf where a report is impossible."""
        chances = (self.observed * _shares(self.covariates, coefficients)).sum(axis=1)
        with np.errstate(divide="ignore"):
            return float(self.weights @ np.log(chances))

    def height_and_slope(self, flat: np.ndarray) -> tuple[float, np.ndarray]:
        """The log-likelihood and the score, at coefficients in one list; finite also where a report is impossible."""
        coefficients = flat.reshape(self.channel.shape[-1] - 1, -1)
        shares = _shares(self.covariates, coefficients)
        joint = self.observed * shares
        chances = np.maximum(joint.sum(axis=1, keepdims=True), _TINY)
        apart = (self.weights[:, np.newaxis] * (joint / chances - shares))[:, 1:]
        return float(self.weights @ np.log(chances[:, 0])), (apart.T @ self.covariates).ravel()

    def solve(self) -> tuple[np.ndarray, np.ndarray]:
        """Maximum-likelihood coefficients (K - 1, P), starting from equal shares, and their expected information."""
        size = self.covariates.shape[1]
        at = np.zeros((self.channel.shape[-1] - 1, size))
        height = self.log_likelihood(at)
        for _ in range(_STEPS):
            score, information = self._derivatives(at)
            step = self._step(score, information)
            if score.ravel() @ step.ravel() <= _CLOSE:
                return at, information
            at, height = self._climb(at, height, step)
        raise EstimationError("Regression does not converge: no finite coefficients have the largest likelihood")

    def _step(self, score: np.ndarray, information: np.ndarray) -> np.ndarray:
        values = np.linalg.eigvalsh(information)
        if not values[0] > _LEAST_INFORMATION:
            raise EstimationError("Regression does not converge: the reports do not determine all coefficients")
        return np.linalg.solve(information, score.ravel()).reshape(score.shape)

    def _climb(self, at: np.ndarray, height: float, step: np.ndarray) -> tuple[np.ndarray, float]:
        for halving in range(_HALVINGS):
            there = at + step / 2**halving
            reached = self.log_likelihood(there)
            if reached >= height - _ROUNDING * abs(height):
                return there, reached
        raise EstimationError("Regression does not converge: no step increases the likelihood")

    def scores(self, coefficients: np.ndarray) -> np.ndarray:
        """(N, (K - 1) P): derivatives of the log-likelihood of one person of each row."""
        shares = _shares(self.covariates, coefficients)
        posterior = self.observed * shares
        posterior /= posterior.sum(axis=1, keepdims=True)
        apart = (posterior - shares)[:, 1:, np.newaxis] * self.covariates[:, np.newaxis]
        return np.asarray(apart.reshape(len(shares), coefficients.size))

    def _derivatives(self, coefficients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The score (K - 1, P), and the expected information ((K - 1) P, (K - 1) P)."""
        shares = _shares(self.covariates, coefficients)
        score = (self.weights @ self.scores(coefficients)).reshape(coefficients.shape)
        information = np.zeros((score.size, score.size))
        for output in range(self.channel.shape[-2]):
            rates = self.channel[..., output, :]  # (K,) or (N, K)
            chance = (rates * shares).sum(axis=1, keepdims=True)
            slopes = shares * (rates - chance) / np.sqrt(np.maximum(chance, np.finfo(float).tiny))
            slopes *= np.sqrt(self.weights)[:, np.newaxis]
            rows = (slopes[:, 1:, np.newaxis] * self.covariates[:, np.newaxis]).reshape(len(shares), score.size)
            information += rows.T @ rows
        return score, information


@dataclasses.dataclass(frozen=True, eq=False)
class _Fit:
    """A maximum in orthonormal covariates.

    Attributes:
        problem: the likelihood.
        coefficients: (K - 1, P), where it is largest.
        information: ((K - 1) P, (K - 1) P), expected, there.
        covariance: of the coefficients; of a survey sample not the inverse of the information.
        back: (P, P), maps covariates to orthonormal ones.
    """

    problem: _Problem
    coefficients: np.ndarray
    information: np.ndarray
    covariance: np.ndarray
    back: np.ndarray


def _mean_share(
    covariates: np.ndarray, weights: np.ndarray, coefficients: np.ndarray, value: int
) -> tuple[float, np.ndarray]:
    """Mean share of a value with weights that sum to 1, and its derivatives by the coefficients, row after row."""
    shares = _shares(covariates, coefficients)
    others = (np.arange(1, shares.shape[1]) == value) - shares[:, 1:]
    slopes = ((weights * shares[:, value])[:, np.newaxis] * others).T @ covariates
    return float(weights @ shares[:, value]), slopes.ravel()


def _shares(covariates: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
    """(N, K) softmax."""
    logits = covariates @ coefficients.T
    shares: np.ndarray = special.softmax(np.column_stack([np.zeros(len(logits)), logits]), axis=1)
    return shares


def _orthonormal(covariates: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Uncorrelated combinations of covariates with mean square 1, and the matrix (P, P) of the inverse map."""
    lengths = np.sqrt(weights @ covariates**2)
    rows = np.sqrt(weights)[:, np.newaxis] * covariates / np.where(lengths > 0, lengths, 1.0)
    triangle = np.linalg.qr(rows, mode="r")
    if len(triangle) < len(lengths) or not (np.abs(np.diag(triangle)) > _RANK).all():
        raise SpecError("regress needs covariates that are not linear combinations of others, got dependent ones")
    back = np.linalg.inv(triangle) * np.sqrt(weights.sum()) / lengths[:, np.newaxis]
    return covariates @ back, back


def _check(channel: np.ndarray, outputs: np.ndarray, covariates: np.ndarray, weights: np.ndarray) -> None:
    num_people = len(outputs)
    if channel.ndim not in (2, 3) or (channel.ndim == 3 and len(channel) != num_people) or channel.shape[-1] < 2:
        raise SpecError(f"regress needs a channel of shape (M, K) or (N, M, K) with K > 1, got {channel.shape}")
    if not ((channel >= 0).all() and np.allclose(channel.sum(axis=-2), 1, rtol=0, atol=1e-9)):
        raise SpecError("regress needs a channel of probabilities whose columns sum to 1, got other columns")
    if outputs.ndim != 1 or not num_people or not ((outputs >= 0) & (outputs < channel.shape[-2])).all():
        raise SpecError(f"regress needs a list of outputs from 0 to {channel.shape[-2] - 1}, got other values or none")
    if covariates.ndim != 2 or len(covariates) != num_people or not np.isfinite(covariates).all():
        raise SpecError(
            f"regress needs finite covariates of shape ({num_people}, P), got {covariates.shape} or non-finite numbers"
        )
    if weights.shape != (num_people,) or not (np.isfinite(weights) & (weights > 0)).all():
        raise SpecError(f"regress needs {num_people} positive numbers of people, got other values")
