"""Expected losses of the unbiased estimate, for comparison with simulated ones.

The loss is that against the frequencies p of all N people, of whom n are asked, drawn without replacement (Murakami
and Kawamoto 2019, section 6: N = 2 n). A mechanism's ``variances`` are those of independent people; without replacement
the sampling part of the covariance, diag(p) - p p^T, is smaller by the factor (N - n) / (N - 1).

The squared l2 distance is the trace of the covariance, exactly. The total variation and the spread of both over
repetitions take the errors for normal.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from scipy import special

from uldp_transforms.ldp import Collection
from uldp_transforms.ldp.mechanisms import Mechanism


@dataclasses.dataclass(frozen=True, kw_only=True)
class Expected:
    """A loss in one run.

    Attributes:
        mean: expected value.
        deviation: its standard deviation over runs.
    """

    mean: float
    deviation: float


def symbol_frequencies(collection: Collection, values: tuple[str, ...], frequencies: np.ndarray) -> np.ndarray:
    """(K,): the frequencies of values in the order of symbols, for alphabets that give each value its own."""
    ordered = np.zeros(collection.alphabet.num_symbols)
    ordered[collection.alphabet.symbol_table(values, 1)[0]] = frequencies
    return ordered


def sampling_factor(asked: int, people: int) -> float:
    """(N - n) / (N - 1)."""
    return (people - asked) / (people - 1)


def covariance(mechanism: Mechanism | None, frequencies: np.ndarray, asked: int, people: int) -> np.ndarray:
    """(K, K) covariance of the unbiased estimate; without a mechanism that of the share among those asked.

    Args:
        mechanism: None: values are sent as they are.
        frequencies: (K,) of symbols among all people.
        asked: n.
        people: N.
    """
    sampling = np.diag(frequencies) - np.outer(frequencies, frequencies)
    factor = sampling_factor(asked, people)
    if mechanism is None:
        return factor * sampling / asked
    own, unit = mechanism.variances(frequencies), np.eye(len(frequencies))
    sums = [mechanism.variance_of(unit + row, frequencies) for row in unit]
    independent = np.stack([(total - own - own[i]) / 2 for i, total in enumerate(sums)])
    return (independent - (1 - factor) * sampling) / asked


def standard_deviations(mechanism: Mechanism, frequencies: np.ndarray, asked: int, people: int) -> np.ndarray:
    """(K,): roots of the diagonal of ``covariance``."""
    sampling = (1 - sampling_factor(asked, people)) * frequencies * (1 - frequencies)
    return np.sqrt(np.maximum(mechanism.variances(frequencies) - sampling, 0) / asked)


def expected_squared_error(covariances: np.ndarray) -> Expected:
    """Mean and spread of the squared l2 distance; the mean is exact."""
    return Expected(mean=float(np.trace(covariances)), deviation=float(np.sqrt(2 * (covariances**2).sum())))


def expected_total_variation(covariances: np.ndarray) -> Expected:
    """Mean and spread of half the l1 distance.

    For normal X and Y of correlation c, Cov(|X|, |Y|) = 2/pi sd(X) sd(Y) (sqrt(1 - c**2) + c asin(c) - 1).
    """
    deviations = np.sqrt(np.maximum(np.diag(covariances), 0))
    products = np.outer(deviations, deviations)
    correlation = np.divide(covariances, products, out=np.zeros_like(products), where=products > 0).clip(-1, 1)
    joint = np.sqrt(1 - correlation**2) + correlation * np.arcsin(correlation) - 1
    variance = 2 / np.pi * (products * joint).sum()
    return Expected(mean=float(deviations.sum() / np.sqrt(2 * np.pi)), deviation=float(np.sqrt(max(variance, 0)) / 2))


def expected_with_bias(bias: np.ndarray, deviations: np.ndarray) -> float:
    """Expected half l1 distance when entries are normal with these means and standard deviations (folded normals)."""
    certain = 40.0  # standard deviations, beyond which the sign is
    ratio = np.clip(bias / np.maximum(deviations, np.finfo(float).tiny), -certain, certain)
    folded = deviations * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) + bias * special.erf(ratio / np.sqrt(2))
    return float(folded.sum() / 2)
