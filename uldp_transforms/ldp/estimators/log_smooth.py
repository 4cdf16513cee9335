"""A smooth distribution of numbers with its uncertainty: shorter intervals where neighbouring bins are alike.

The frequencies of K symbols are p = softmax(eta). A priori the second differences of eta over neighbouring bins are
independent normal numbers with mean 0 and standard deviation s, so that the logarithm of the density bends little.
Those that touch one of the two end bins, in which clamped numbers are, have the variance s^2 + END^2; those that touch
bins of declared atoms, and symbols without a place in the order, are free. With Q the channel, c the counts of outputs
and n their sum, the posterior of eta at a fixed s is normal around the maximum of

    l(eta) = sum_y c_y ln (Q p)_y - eta'R eta / 2,
    R = D'D / s^2 + E'E / (s^2 + END^2) + RIDGE

with D the inner differences, E those at the ends, and the inverse covariance H = n J Q' diag(1 / Q p) Q J + R,
J = diag p - p p' (Laplace's approximation with the expected information). The integral of the posterior over eta is
the evidence of s, and s is averaged over a grid. Two choices keep intervals honest where the counts do not show that
the density bends, such as that it has two humps. The prior is flat in ln s for the estimate, but flat in s itself for
its covariance, because the first one favours the smoothest curve that the counts allow. And PULL^2 b b' is added to the
covariance, where b = J H^-1 (R - RIDGE) eta is what the prior changes p by, to first order.
``docs/numbers.md`` shows what intervals then cover.

Sources: Efron 2016, "Empirical Bayes deconvolution estimates" (softmax of a smooth curve); MacKay 1992, "Bayesian
interpolation" (evidence); Gelman 2006, "Prior distributions for variance parameters in hierarchical models" (flat in
the standard deviation).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection as Members
from collections.abc import Sequence

import numpy as np
from scipy import linalg, special

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.model import Model

SCALES = tuple(10.0 ** (half / 2) for half in range(-7, 4))
"""Grid of s, from straight lines to bins without relation."""

END = 2.0
"""Standard deviation by which the logarithm of the density may bend at an end bin: people are clamped there, or not."""

RIDGE = 1e-3
"""Inverse variance of each entry of eta, which makes all directions proper that the differences leave free."""

PULL = 3.0
"""Multiple of the prior's effect on the estimate that is allowed for as a bias."""

MOST_REPORTS = 10**12
"""Number of reports up to which double precision resolves the posterior."""

_MOST_STEPS = 60
_LONGEST_STEP = 3.0  # maximum change of an entry of eta in one step
_GAIN = 1e-4  # gain of l at which the iteration stops
_NEGLIGIBLE = 12.0  # loss of log evidence, against the best, after which rougher scales are not fitted


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class LogSmooth:
    """Posterior of a distribution: its mean and covariance.

    Attributes:
        frequencies: (K,) posterior means, at least 0, summing to 1.
        covariance: (K, K), with the allowance for bias.
        scale: the s with the most posterior weight.
    """

    frequencies: np.ndarray
    covariance: np.ndarray
    scale: float

    def given(self, chosen: np.ndarray) -> LogSmooth:
        """The distribution among the people with one of the chosen symbols, in their order, by linearisation."""
        share = float(self.frequencies[chosen].sum())
        own = self.frequencies[chosen] / share
        slope = (np.eye(len(own)) - own[:, np.newaxis]) / share
        covariance = slope @ self.covariance[np.ix_(chosen, chosen)] @ slope.T
        return LogSmooth(frequencies=own, covariance=covariance, scale=self.scale)

    def of(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Posterior means (...) and standard deviations (...) of sums with the weights (..., K)."""
        squares = np.einsum("...i,ij,...j->...", weights, self.covariance, weights)
        return weights @ self.frequencies, np.sqrt(np.maximum(squares, 0))


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """The posterior at one scale.

    Attributes:
        scale: s.
        evidence: its logarithm, up to a constant.
        frequencies: (K,), p.
        covariance: (K, K), J H^-1 J.
        pull: (K,), b.
    """

    scale: float
    evidence: float
    frequencies: np.ndarray
    covariance: np.ndarray
    pull: np.ndarray


def fit_log_smooth(model: Model, counts: CohortCounts, reports_of_a_person: int = 1) -> LogSmooth | None:
    """The posterior of the frequencies of an alphabet's symbols.

    Args:
        model: with any alphabet that has ``bin_edges``.
        counts: of its reports.
        reports_of_a_person: m; counts are divided by m, the worst case, in which all reports of a person agree.

    Returns:
        the posterior, or None as ``fit_versions``.
    """
    return fit_versions([(model, counts, reports_of_a_person)])


def fit_versions(versions: Sequence[tuple[Model, CohortCounts, int]]) -> LogSmooth | None:
    """The posterior from the reports of several models with the same bins, which are independent.

    A report of version a is an output of the channel whose columns are those of all versions below one another, each
    multiplied by the share of reports that its version has.

    Args:
        versions: model, counts, and reports of a person, as for ``fit_log_smooth``.

    Returns:
        the posterior; None without reports, with more than ``MOST_REPORTS``, if fewer than three neighbouring bins are
        to be alike, or if a report is not one output of a known channel, so that counts do not have the likelihood.
    """
    alphabet = versions[-1][0].alphabet
    edges = alphabet.bin_edges
    total = sum(counts.total for _, counts, _ in versions)
    if edges is None or not all(model.mechanism.one_place for model, _, _ in versions) or not 0 < total <= MOST_REPORTS:
        return None
    bins = len(edges) - 1
    differences = second_differences(alphabet.num_symbols, bins, {0, bins - 1, *alphabet.atom_bins})
    if not len(differences):
        return None
    with_ends = second_differences(alphabet.num_symbols, bins, alphabet.atom_bins)
    ends = with_ends[with_ends[:, [0, bins - 1]].any(axis=1)]
    cells = [counts.pooled().cells[0] / times for _, counts, times in versions]
    parts = np.array([float(one.sum()) for one in cells])
    people = np.eye(alphabet.num_symbols)
    channels = [model.mechanism.response(people).T[:, model.alphabet.symbols_in_order] for model, _, _ in versions]
    channel = np.concatenate([part * one for part, one in zip(parts / parts.sum(), channels) if part])
    counted = np.concatenate([one for part, one in zip(parts, cells) if part])
    return mixture(fit_scales(Posterior(channel, counted, differences, ends), SCALES))


def second_differences(num_symbols: int, num_bins: int, free: Members[int]) -> np.ndarray:
    """(D, K): rows 1, -2, 1 over three neighbouring bins, none of which is free."""
    rows = np.diff(np.eye(num_bins, num_symbols), 2, axis=0)
    kept = [place for place in range(len(rows)) if not {place, place + 1, place + 2} & set(free)]
    differences: np.ndarray = rows[kept]
    return differences


class Posterior:
    """l and its derivatives at a fixed scale; see the module.

    Args:
        channel: (M, K) float64, Q.
        cells: (M,) counts, not all 0.
        differences: (D, K), inner ones.
        ends: (E, K), those at the ends; None: these are free.
    """

    def __init__(self, channel: np.ndarray, cells: np.ndarray, differences: np.ndarray, ends: np.ndarray | None = None):
        self.channel, self.cells, self.differences = channel, cells, differences
        self.ends = differences[:0] if ends is None else ends
        self._total = float(cells.sum())

    def smoothness(self, scale: float) -> np.ndarray:
        """(K, K): R - RIDGE."""
        at_ends = self.ends.T @ self.ends / (scale**2 + END**2)
        smoothness: np.ndarray = self.differences.T @ self.differences / scale**2 + at_ends
        return smoothness

    def prior(self, scale: float) -> np.ndarray:
        """(K, K): R, inverse covariance of eta."""
        inverse: np.ndarray = self.smoothness(scale) + RIDGE * np.eye(self.channel.shape[1])
        return inverse

    def normalization(self, scale: float) -> float:
        """Logarithm of the prior's density at its mode, up to a constant."""
        return -len(self.differences) * math.log(scale) - len(self.ends) / 2 * math.log(scale**2 + END**2)

    def value(self, eta: np.ndarray, prior: np.ndarray) -> float:
        """l."""
        return float(self.cells @ np.log(self.channel @ special.softmax(eta)) - eta @ prior @ eta / 2)

    def gradient(self, eta: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """(K,): J Q'(c / Q p), less the prior's part."""
        p = special.softmax(eta)
        told = self.channel.T @ (self.cells / (self.channel @ p))
        gradient: np.ndarray = p * (told - self._total) - prior @ eta
        return gradient

    def information(self, eta: np.ndarray, prior: np.ndarray) -> np.ndarray:
        """(K, K): H. As columns of Q sum to 1, J Q' diag(1 / Q p) Q J = P Q' diag(1 / Q p) Q P - p p', P = diag p."""
        p = special.softmax(eta)
        root = self.channel * (p / np.sqrt(self.channel @ p)[:, np.newaxis])
        information: np.ndarray = self._total * (root.T @ root - np.outer(p, p)) + prior
        return information

    def maximize(self, start: np.ndarray, prior: np.ndarray) -> tuple[np.ndarray, float]:
        """The eta (K,) with the largest l, and l, by Newton steps from ``start``."""
        eta, value = start, self.value(start, prior)
        for _ in range(_MOST_STEPS):
            step = linalg.cho_solve(linalg.cho_factor(self.information(eta, prior)), self.gradient(eta, prior))
            step *= _LONGEST_STEP / max(float(np.abs(step).max()), _LONGEST_STEP)
            at = self.value(eta + step, prior)
            while at < value and np.abs(step).max() > _GAIN**2:
                step = step / 2
                at = self.value(eta + step, prior)
            if at < value:
                break
            eta, gain, value = eta + step, at - value, at
            if gain < _GAIN:
                break
        return eta, value


def fit_scales(posterior: Posterior, scales: Sequence[float]) -> list[Fit]:
    """The posterior at each of the increasing scales, until the evidence has become negligible."""
    eta, fits = np.zeros(posterior.channel.shape[1]), list[Fit]()
    for scale in scales:
        prior = posterior.prior(scale)
        eta, value = posterior.maximize(eta, prior)
        p, factor = special.softmax(eta), linalg.cholesky(posterior.information(eta, prior), lower=True)
        slope = linalg.solve_triangular(factor, np.diag(p) - np.outer(p, p), lower=True)
        force = linalg.solve_triangular(factor, posterior.smoothness(scale) @ eta, lower=True)
        evidence = value + posterior.normalization(scale) - float(np.log(np.diag(factor)).sum())
        fits.append(
            Fit(
                scale=scale,
                evidence=evidence,
                frequencies=p,
                covariance=slope.T @ slope,
                pull=slope.T @ force,
            )
        )
        if evidence < max(fit.evidence for fit in fits) - _NEGLIGIBLE - math.log(scales[-1] / scale):
            break
    return fits


def mixture(fits: Sequence[Fit], power: float = 1.0, pull: float = PULL) -> LogSmooth:
    """Mean and covariance of the mixture over scales on a grid of equal ratios.

    The mean has the prior that is flat in ln s; the covariance is that around this mean under a rougher prior.

    Args:
        fits: at the scales.
        power: that prior's density of ln s is proportional to s to this power: 1 is flat in s.
        pull: multiple of b that is allowed for as a bias.
    """
    evidence = np.array([fit.evidence for fit in fits])
    logs = evidence + power * np.log([fit.scale for fit in fits])
    mean = special.softmax(evidence) @ np.stack([fit.frequencies for fit in fits])
    covariance = np.zeros((len(mean), len(mean)))
    for weight, fit in zip(special.softmax(logs).tolist(), fits):
        away = fit.frequencies - mean
        covariance += weight * (fit.covariance + np.outer(away, away) + pull**2 * np.outer(fit.pull, fit.pull))
    return LogSmooth(frequencies=mean, covariance=covariance, scale=fits[int(logs.argmax())].scale)
