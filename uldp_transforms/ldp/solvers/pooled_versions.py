"""One unbiased estimate, linear in the counts, from several versions of a question, and a test whether they agree.

Version a has n_a reports, unbiased frequencies u_a and their covariance V_a(p) / n_a where p is the population. People
hold exactly one value each, so p = 1/K + B^T t for some t in K - 1 dimensions, where the rows of B are e_j - e_K. With
information matrices J_a = B V_a^- B^T, the pooled frequencies are

    u = 1/K + B^T (sum_a n_a J_a)^-1 sum_a n_a B V_a^- (u_a - 1/K),    V_a = V_a(1/K, ..., 1/K).

The weights depend on the number of reports only, hence u is unbiased for every population. Its covariance is exact for
every population. For a uniform population it is the least of all unbiased linear estimates (Gauss and Markov; Aitken
1935), hence at most that of each version. For a concentrated population and a large epsilon it can be larger than that
of the most precise version.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import NoReportsError, SpecError
from uldp_transforms.ldp.mechanisms import Mechanism
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.intervals import quantile
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

MAX_VALUES = 1024
"""Maximum number of values of a pooled question: matrices have its square as entries."""

_MOST_WEIGHTS = 1 << 18  # numbers in an array
_SMALLEST = 1e-10  # relative to the largest eigenvalue of a covariance; smaller ones are rounding errors


@dataclasses.dataclass(frozen=True, eq=False)
class Agreement:
    """Chi-square test of whether the versions describe one population by their declared channels.

    Attributes:
        statistic: sum over versions of the squared distance to the pooled estimate, in units of the noise.
        degrees: its degrees of freedom.
        p_value: probability of such a statistic, or a larger one; asymptotic in the reports of each version.
    """

    statistic: float
    degrees: int
    p_value: float


@dataclasses.dataclass(frozen=True, eq=False)
class PooledEstimate:
    """Frequencies of K values from the reports of all versions.

    Attributes:
        values: K texts, in the order of the first version.
        raw_frequencies: (K,) unbiased, unclipped; they sum to 1.
        covariance: (K, K) of ``raw_frequencies``, at the nearest clipped frequencies.
        num_reports: of all versions.
        agreement: None if only one version has reports.
    """

    values: tuple[str, ...]
    raw_frequencies: np.ndarray
    covariance: np.ndarray
    num_reports: int
    agreement: Agreement | None

    @property
    def standard_errors(self) -> np.ndarray:
        """(K,) of ``raw_frequencies``."""
        return np.sqrt(np.maximum(np.diag(self.covariance), 0))

    def intervals(self, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Normal intervals (K,), (K,), not cut to [0, 1]; for values with many reports."""
        half = quantile(np.inf, confidence) * self.standard_errors
        return self.raw_frequencies - half, self.raw_frequencies + half


@dataclasses.dataclass(frozen=True, eq=False)
class PooledVersions:
    """Versions of one question that have the same values, each with a symbol of its own.

    Attributes:
        versions: two or more, of any mechanisms and epsilons; their values may be in different orders.
    """

    versions: Sequence[Model]

    def __post_init__(self) -> None:
        if len(self.versions) < 2:
            raise SpecError(f"PooledVersions.versions must be at least 2 versions, got {len(self.versions)}")
        for version in self.versions:
            _check_symbols(version)
        first = set(self.values)
        for version in self.versions[1:]:
            other = set(version.alphabet.known_values or ())
            if other != first:
                raise SpecError(
                    f"PooledVersions.versions must have the same values, because people cannot answer with a value "
                    f"that their version does not have; got {len(first ^ other)} value(s) that only one of two "
                    f"versions has"
                )

    @property
    def values(self) -> tuple[str, ...]:
        """The values, in the order of the first version."""
        return tuple(self.versions[0].alphabet.known_values or ())

    def estimate(self, counts: Sequence[CohortCounts]) -> PooledEstimate:
        """Pool the counts of the versions.

        Args:
            counts: of each version, in the order of ``versions``; those without reports are left out.

        Raises:
            SpecError: if the counts are not as many as the versions, or have another shape.
            NoReportsError: if no version has reports.
        """
        chosen, alone, sizes = self._those_with_reports(counts)
        maps, raw = self._pool(chosen, alone, sizes)
        plausible = clip_and_normalize(raw)
        covariances = [self.covariance_of_report(index, plausible) for index in chosen]
        covariance = sum(each @ v @ each.T / n for each, v, n in zip(maps, covariances, sizes))
        agreement = self._agree(chosen, alone, plausible, sizes) if len(chosen) > 1 else None
        return PooledEstimate(self.values, raw, np.asarray(covariance), int(sizes.sum()), agreement)

    def agreement(self, counts: Sequence[CohortCounts]) -> Agreement | None:
        """The test of agreement alone; arguments and errors as for ``estimate``. None if one version has reports."""
        chosen, alone, sizes = self._those_with_reports(counts)
        if len(chosen) < 2:
            return None
        return self._agree(chosen, alone, clip_and_normalize(self._pool(chosen, alone, sizes)[1]), sizes)

    def _those_with_reports(self, counts: Sequence[CohortCounts]) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Positions of the versions with reports, their own frequencies (A, K), and their numbers of reports (A,)."""
        self._check_shapes(counts)
        chosen = [index for index, of_version in enumerate(counts) if of_version.total]
        if not chosen:
            raise NoReportsError("the versions of this question have no reports")
        sizes = np.array([counts[index].total for index in chosen], dtype=np.float64)
        return chosen, np.array([self._invert(index, counts[index]) for index in chosen]), sizes

    def _pool(self, chosen: list[int], alone: np.ndarray, sizes: np.ndarray) -> tuple[list[np.ndarray], np.ndarray]:
        """The matrices (K, K) by which versions are weighted, and the pooled frequencies (K,)."""
        even = np.full(len(self.values), 1 / len(self.values))
        maps = _maps([self._inverses_of_even[index] for index in chosen], sizes)
        return maps, even + sum(each @ (u - even) for each, u in zip(maps, alone))

    def _agree(
        self, chosen: Sequence[int], alone: np.ndarray, plausible: np.ndarray, sizes: np.ndarray
    ) -> Agreement | None:
        """The test at the pooled estimate, as if half a report more had each value.

        A value that is sent in clear and that nobody holds would have no variance, and the test no inverse.
        """
        held = plausible + 0.5 / sizes.sum()
        held /= held.sum()
        return _agreement(alone, [self.covariance_of_report(index, held) for index in chosen], sizes)

    def covariance(self, sizes: Sequence[int], frequencies: np.ndarray) -> np.ndarray:
        """Exact covariance (K, K) of the raw pooled frequencies.

        Args:
            sizes: number of reports of each version, at least 1.
            frequencies: (K,) of the population, in the order of ``values``; they sum to 1.
        """
        numbers = np.asarray(sizes, dtype=np.float64)
        covariance = np.zeros((len(self.values), len(self.values)))
        for index, each in enumerate(_maps(self._inverses_of_even, numbers)):
            covariance += each @ self.covariance_of_report(index, frequencies) @ each.T / numbers[index]
        return covariance

    def covariance_of_report(self, index: int, frequencies: np.ndarray) -> np.ndarray:
        """V_a (K, K): covariance of the frequency estimate from one report of a version, for a population (K,)."""
        order = self._orders[index]
        held = np.zeros(len(order))
        held[order] = frequencies
        covariance = _covariance(self.versions[index].mechanism, held)
        picked: np.ndarray = covariance[np.ix_(order, order)]
        return picked

    def _check_shapes(self, counts: Sequence[CohortCounts]) -> None:
        shapes = [(version.num_cohorts, version.num_cells) for version in self.versions]
        if [each.shape for each in counts] != shapes:
            raise SpecError(f"counts must have the shapes {shapes}, one per version, got {[c.shape for c in counts]}")

    def _invert(self, index: int, counts: CohortCounts) -> np.ndarray:
        frequencies: np.ndarray = self.versions[index].mechanism.invert(counts.pooled())[0][self._orders[index]]
        return frequencies

    @functools.cached_property
    def _orders(self) -> list[np.ndarray]:
        """For each version, the symbols of ``values``."""
        return [version.alphabet.symbol_table(self.values, 1)[0] for version in self.versions]

    @functools.cached_property
    def _inverses_of_even(self) -> list[np.ndarray]:
        """V_a^- of each version, for the uniform population."""
        even = np.full(len(self.values), 1 / len(self.values))
        return [_inverse(self.covariance_of_report(index, even))[0] for index in range(len(self.versions))]


def _check_symbols(version: Model) -> None:
    """Refuse versions in which a value has no symbol of its own."""
    values = version.alphabet.known_values or ()
    symbols = version.alphabet.num_symbols
    own = len(values) == symbols == version.mechanism.num_symbols and version.mechanism.num_hashes == 1
    if not own or not version.alphabet.has_own_symbol(values).all():
        raise SpecError(
            f"PooledVersions.versions must give every value a symbol of its own, got "
            f"{type(version.alphabet).__name__} with {len(values)} known values and {symbols} symbols"
        )
    if symbols > MAX_VALUES:
        raise SpecError(f"PooledVersions.versions must have at most {MAX_VALUES} values, got {symbols}")


def _covariance(mechanism: Mechanism, frequencies: np.ndarray) -> np.ndarray:
    """(K, K), from variances of sums: 2 cov(x, y) = var(x + y) - var(x) - var(y)."""
    size = len(frequencies)
    one, step = np.eye(size), max(1, _MOST_WEIGHTS // size**2)
    alone = mechanism.variance_of(one, frequencies)
    blocks = (one[start : start + step, np.newaxis] + one for start in range(0, size, step))
    sums = np.concatenate([mechanism.variance_of(block, frequencies) for block in blocks])
    covariance: np.ndarray = (sums - alone - alone[:, np.newaxis]) / 2
    return covariance


def _inverse(covariance: np.ndarray) -> tuple[np.ndarray, int]:
    """Moore-Penrose inverse of a symmetric matrix, and its rank."""
    scales, vectors = np.linalg.eigh(covariance)
    kept = scales > _SMALLEST * scales[-1]
    inverse: np.ndarray = vectors[:, kept] / scales[kept] @ vectors[:, kept].T
    return inverse, int(kept.sum())


def _maps(inverses: Sequence[np.ndarray], sizes: np.ndarray) -> list[np.ndarray]:
    """(K, K) for each version: B^T (sum_a n_a J_a)^-1 n_a B V_a^-."""
    size = len(inverses[0])
    plane = np.hstack([np.eye(size - 1), -np.ones((size - 1, 1))])
    weighted = [n * (plane @ inverse) for n, inverse in zip(sizes, inverses)]
    information = np.sum(weighted, axis=0) @ plane.T
    return [plane.T @ np.linalg.solve(information, each) for each in weighted]


def _agreement(alone: np.ndarray, covariances: Sequence[np.ndarray], sizes: np.ndarray) -> Agreement | None:
    """Distances (A, K) of the versions from the estimate nearest to all of them, with weights at this population."""
    inverses, ranks = zip(*map(_inverse, covariances))
    even = np.full(alone.shape[1], 1 / alone.shape[1])
    nearest = even + sum(each @ (u - even) for each, u in zip(_maps(inverses, sizes), alone))
    apart = alone - nearest
    statistic = float(sum(n * (gap @ inverse @ gap) for n, gap, inverse in zip(sizes, apart, inverses)))
    degrees = sum(ranks) - (alone.shape[1] - 1)
    if degrees < 1:
        return None
    return Agreement(statistic, degrees, float(special.chdtrc(degrees, statistic)))
