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
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from uldp_transforms.ldp.confidence import CONFIDENCE
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.counts.enough_reports import (
    LEAST_EXPECTED,
    chi_square_tail,
    corrections,
    corrections_of_bits,
    expected_reports,
    merged_values,
    rates_of,
)
from uldp_transforms.ldp.errors import NoReportsError, SpecError
from uldp_transforms.ldp.mechanisms import SetReportMechanism
from uldp_transforms.ldp.model import Model
from uldp_transforms.ldp.solvers.intervals import quantile
from uldp_transforms.ldp.solvers.simplex import clip_and_normalize

MAX_VALUES = 1024
"""Maximum number of values of a pooled question: matrices have its square as entries."""

_SMALLEST = 1e-10  # relative to the sum of variances; a smaller variance of their sum is a rounding error
_TOGETHER = 64  # parts whose frequencies are in memory
_SINGULAR = 1e-13  # relative; directions with less information are those that no version sees


@dataclasses.dataclass(frozen=True, eq=False)
class Agreement:
    """Chi-square test of whether the versions describe one population by their declared channels.

    Attributes:
        statistic: sum over versions of the squared distance to the pooled estimate, in units of the noise.
        degrees: its degrees of freedom.
        p_value: probability of such a statistic, or a larger one.
    """

    statistic: float
    degrees: int
    p_value: float


@dataclasses.dataclass(frozen=True, eq=False)
class PooledEstimate:
    """Frequencies of K values from the reports of all versions.

    Attributes:
        values: K texts, in the order of the versions' ``values``.
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

    def intervals(self, confidence: float = CONFIDENCE) -> tuple[np.ndarray, np.ndarray]:
        """Normal intervals (K,), (K,), not cut to [0, 1]; for values with many reports."""
        half = quantile(np.inf, confidence) * self.standard_errors
        return self.raw_frequencies - half, self.raw_frequencies + half


@dataclasses.dataclass(frozen=True, eq=False)
class PooledVersions:
    """Versions of one question that have the same values, each with a symbol of its own.

    Attributes:
        versions: two or more, of any mechanisms and epsilons; their values may be in different orders.
        values: order of the values; empty: that of the first version.
    """

    versions: Sequence[Model]
    values: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.versions) < 2:
            raise SpecError(f"PooledVersions.versions must be at least 2 versions, got {len(self.versions)}")
        for version in self.versions:
            _check_symbols(version)
        if not self.values:
            object.__setattr__(self, "values", tuple(self.versions[0].alphabet.known_values or ()))
        first = set(self.values)
        for version in self.versions:
            other = set(version.alphabet.known_values or ())
            if other != first:
                raise SpecError(
                    f"PooledVersions.versions must have the same values, because people cannot answer with a value "
                    f"that their version does not have; got {len(first ^ other)} value(s) that only one of two "
                    f"versions has"
                )

    def estimate(self, counts: Sequence[CohortCounts]) -> PooledEstimate:
        """Pool the counts of the versions.

        Args:
            counts: of each version, in the order of ``versions``; those without reports are left out.

        Raises:
            SpecError: if the counts are not as many as the versions, or have another shape.
            NoReportsError: if no version has reports.
        """
        chosen, alone, sizes = self._those_with_reports(counts)
        raw = _nearest(self._inverses_of_even[chosen], alone, sizes)
        plausible = clip_and_normalize(raw)
        covariance = self._covariance(chosen, sizes, plausible)
        agreement = self._agree(chosen, alone, plausible, sizes) if len(chosen) > 1 else None
        return PooledEstimate(self.values, raw, covariance, int(sizes.sum()), agreement)

    def estimate_copies(self, counts: Sequence[CohortCounts]) -> tuple[np.ndarray, Agreement | None]:
        """The pooled frequencies (K,) of many parts of the people who answer the first version, and whether they agree.

        It is ``estimate`` of as many copies of the version, in the memory of two of them.

        Args:
            counts: of each part, which are read twice; those without reports are left out.

        Raises:
            SpecError: if the counts have another shape.
            NoReportsError: if no part has reports.
        """
        shape = (self.versions[0].num_cohorts, self.versions[0].num_cells)
        shapes, totals, added = set[tuple[int, int]](), list[int](), np.zeros(len(self.values))
        for each in counts:
            shapes.add(each.shape)
            totals.append(each.total)
            if shapes == {shape} and each.total:
                added += each.total * self._invert(0, each)
        if shapes != {shape}:
            raise SpecError(f"counts must have the shape {shape}, got {sorted(shapes)}")
        places = np.flatnonzero(totals)
        if not len(places):
            raise NoReportsError("the versions of this question have no reports")
        sizes = np.array(totals, dtype=np.float64)[places]
        raw = _nearest(self._inverses_of_even[:1], (added / sizes.sum())[np.newaxis], sizes.sum(keepdims=True))

        def alone(some: np.ndarray) -> np.ndarray:
            return np.array([self._invert(0, counts[place]) for place in places[some].tolist()])

        return raw, self._agreement_of_copies(alone, raw, sizes) if len(places) > 1 else None

    def _agreement_of_copies(
        self, alone: Callable[[np.ndarray], np.ndarray], raw: np.ndarray, sizes: np.ndarray
    ) -> Agreement | None:
        """``_agree`` of parts with frequencies ``alone`` (A, K): the sums over parts of n J, n J d and n d^T J d, where
        d is the difference of a part's frequencies from ``raw`` (K,), give the distances from any other point."""
        held = clip_and_normalize(raw) + 0.5 / sizes.sum()
        held /= held.sum()
        certain, whole = int(self._certain[0]), self._inverses([0], held)[0]
        information, pulls, squares = np.zeros_like(whole), np.zeros(len(held)), 0.0
        ranks, known, corrected = 0, np.ones_like(whole), np.zeros(4)
        telling, covariance = 0, self.covariance_of_report(0, held)
        for sums, places in self._parts_by_sums(held, sizes, covariance):
            inverse, rank = whole, len(held) - certain
            if len(sums) < len(held):
                inverse, rank = self._inverse_of_sums(0, held, sums, covariance)
            own = sizes[places]
            information += own.sum() * inverse
            for some in np.array_split(places, -(-len(places) // _TOGETHER)):
                gaps = alone(some) - raw
                pulled = gaps @ inverse
                pulls += sizes[some] @ pulled
                squares += float(sizes[some] @ (pulled * gaps).sum(axis=1))
            ranks, telling = ranks + len(own) * rank, telling + len(own) * bool(len(sums))
            known += sums.T @ sums
            others = 1 - own / sizes.sum()
            corrected += (others**2 / own).sum() * self._corrections(0, held, sums, 1, covariance)
        if telling < 2:
            return None
        steps = _solve(_contrasts(_contrasts(information).T), pulls[:-1] - pulls[-1])
        moved = np.append(steps, -steps.sum())
        statistic = max(squares - 2 * float(moved @ pulls) + float(moved @ information @ moved), 0.0)
        degrees = ranks - int(np.linalg.matrix_rank(known, hermitian=True)) + 1
        return Agreement(statistic, degrees, chi_square_tail(statistic, degrees, corrected)) if degrees > 0 else None

    def _parts_by_sums(
        self, held: np.ndarray, sizes: np.ndarray, covariance: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """The sums that parts compare, and the positions of these parts, from those with the fewest reports on."""
        order = np.argsort(sizes, kind="stable")
        numbers, begins = np.unique(sizes[order], return_index=True)
        sums, members = np.zeros((0, 0)), list[np.ndarray]()
        for number, places in zip(numbers.tolist(), np.split(order, begins[1:])):
            own = self._sums_to_compare(0, held, number, covariance)
            if members and not np.array_equal(own, sums):
                yield sums, np.concatenate(members)
                members = []
            sums = own
            members.append(places)
        yield sums, np.concatenate(members)

    def agreement(self, alone: np.ndarray, plausible: np.ndarray, sizes: np.ndarray) -> Agreement | None:
        """The test whether versions agree; None if it has no degrees of freedom.

        Args:
            alone: (A, K), each version's own unbiased frequencies.
            plausible: (K,), frequencies at which the noise is evaluated; at least 0, with the sum 1.
            sizes: (A,), numbers of reports, at least 1.
        """
        return self._agree(list(range(len(self.versions))), alone, plausible, sizes)

    def _those_with_reports(self, counts: Sequence[CohortCounts]) -> tuple[list[int], np.ndarray, np.ndarray]:
        """Positions of the versions with reports, their own frequencies (A, K), and their numbers of reports (A,)."""
        self._check_shapes(counts)
        chosen = [index for index, of_version in enumerate(counts) if of_version.total]
        if not chosen:
            raise NoReportsError("the versions of this question have no reports")
        sizes = np.array([counts[index].total for index in chosen], dtype=np.float64)
        return chosen, np.array([self._invert(index, counts[index]) for index in chosen]), sizes

    def _agree(
        self, chosen: list[int], alone: np.ndarray, plausible: np.ndarray, sizes: np.ndarray
    ) -> Agreement | None:
        """The test at the pooled estimate, as if half a report more had each value.

        A value that is sent in clear and that nobody holds would have no variance, and the test no inverse. Values with
        too few expected reports of a version are merged in this version, and a version without enough for two sums says
        nothing; see ``enough_reports``.
        """
        held = plausible + 0.5 / sizes.sum()
        held /= held.sum()
        inverses, ranks = self._inverses(chosen, held), alone.shape[1] - self._certain[chosen].astype(int)
        known, corrected = [np.ones((1, alone.shape[1]))], np.zeros(4)
        for place, index in enumerate(chosen):
            sums = self._sums_to_compare(index, held, sizes[place])
            if len(sums) < alone.shape[1]:
                inverses[place], ranks[place] = self._inverse_of_sums(index, held, sums)
            known.append(sums)
            others = 1 - sizes[place] / sizes.sum()  # what a version differs from has as much of its own noise
            corrected += others**2 * self._corrections(index, held, sums, sizes[place])
        if np.count_nonzero([len(sums) for sums in known[1:]]) < 2:
            return None
        whole = any(len(sums) == alone.shape[1] for sums in known)
        dimensions = alone.shape[1] if whole else int(np.linalg.matrix_rank(np.concatenate(known)))
        return _agreement(alone, inverses, int(ranks.sum()), sizes, dimensions - 1, corrected)

    def _sums_to_compare(
        self, index: int, frequencies: np.ndarray, num_reports: float, covariance: np.ndarray | None = None
    ) -> np.ndarray:
        """(G, K): the sums of a version's shares that have enough expected reports; all K of them without a covariance
        if possible. ``covariance`` (K, K) is that of a report, if it is known; so in the methods below."""
        mechanism, held = self.versions[index].mechanism, self._held(index, frequencies)
        order = self._orders[index]
        if (expected_reports(mechanism.variances(held), mechanism.jumps, num_reports) >= LEAST_EXPECTED).all():
            return np.eye(len(held))
        jumps = mechanism.jumps if order is None else mechanism.jumps[order]
        known = self.covariance_of_report(index, frequencies) if covariance is None else covariance
        return merged_values(known, jumps, num_reports)

    def _corrections(
        self,
        index: int,
        frequencies: np.ndarray,
        sums: np.ndarray,
        num_reports: float,
        covariance: np.ndarray | None = None,
    ) -> np.ndarray:
        """(4,) for the sums that are compared of a version; zeros without sums."""
        if not len(sums):
            return np.zeros(4)
        mechanism, order = self.versions[index].mechanism, self._orders[index]
        if len(sums) == len(frequencies):
            variances, jumps = mechanism.variances(self._held(index, frequencies)), mechanism.jumps
        else:
            known = self.covariance_of_report(index, frequencies) if covariance is None else covariance
            variances = np.diag(sums @ known @ sums.T)
            jumps = (sums * (mechanism.jumps if order is None else mechanism.jumps[order])).max(axis=1)
        certain = bool(self._certain[index])
        rates = rates_of(variances, jumps, certain)
        return corrections(rates, num_reports) if certain else corrections_of_bits(rates, num_reports)

    def _inverse_of_sums(
        self, index: int, frequencies: np.ndarray, sums: np.ndarray, covariance: np.ndarray | None = None
    ) -> tuple[np.ndarray, int]:
        """S^T (S V_a S^T)^-1 S for the sums S (G, K), and its rank; zeros without sums."""
        if not len(sums):
            return np.zeros((len(frequencies), len(frequencies))), 0
        known = self.covariance_of_report(index, frequencies) if covariance is None else covariance
        covariance = sums @ known @ sums.T
        certain = int(self._certain[index])
        added = certain * np.trace(covariance) / len(sums) ** 2
        return sums.T @ np.linalg.inv(covariance + added) @ sums, len(sums) - certain

    def covariance(self, sizes: Sequence[int], frequencies: np.ndarray) -> np.ndarray:
        """Exact covariance (K, K) of the raw pooled frequencies.

        Args:
            sizes: number of reports of each version, at least 1.
            frequencies: (K,) of the population, in the order of ``values``; they sum to 1.
        """
        numbers = np.asarray(sizes, dtype=np.float64)
        return self._covariance(list(range(len(self.versions))), numbers, frequencies)

    def _covariance(self, chosen: list[int], sizes: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        maps = _maps(self._inverses_of_even[chosen], sizes)
        covariance = np.zeros((len(self.values), len(self.values)))
        for index, of_version, n in zip(chosen, maps, sizes):
            covariance += of_version @ (self.covariance_of_report(index, frequencies) / n) @ of_version.T
        return covariance

    def covariance_of_report(self, index: int, frequencies: np.ndarray) -> np.ndarray:
        """V_a (K, K): covariance of the frequency estimate from one report of a version, for a population (K,)."""
        covariance = self.versions[index].mechanism.covariance(self._held(index, frequencies))
        order = self._orders[index]
        return covariance if order is None else covariance[np.ix_(order, order)]

    def _held(self, index: int, frequencies: np.ndarray) -> np.ndarray:
        """(K,) in the order of a version's symbols."""
        order = self._orders[index]
        if order is None:
            return frequencies
        held = np.empty(len(order))
        held[order] = frequencies
        return held

    def _inverses(self, chosen: list[int], frequencies: np.ndarray) -> np.ndarray:
        """(A, K, K): V_a^-1 for a population in which every value is held.

        Where the sum of frequencies is certain, V_a has no inverse, so noise is added to the sum. Contrasts do not
        see it.
        """
        inverses = np.empty((len(chosen), len(self.values), len(self.values)))
        of_sets = np.array([isinstance(self.versions[index].mechanism, SetReportMechanism) for index in chosen])
        sets, others = np.flatnonzero(of_sets), np.flatnonzero(~of_sets)
        if len(sets):
            terms = [self._terms_of_report(chosen[place], frequencies) for place in sets]
            inverses[sets] = _inverses_of_terms(*(np.array(each) for each in zip(*terms)))
        for place in others:
            covariance = self.covariance_of_report(chosen[place], frequencies)
            added = self._certain[chosen[place]] * np.trace(covariance) / len(covariance) ** 2
            inverses[place] = np.linalg.inv(covariance + added)
        return inverses

    def _terms_of_report(self, index: int, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """V_a as in ``SetReportMechanism.covariance_terms``, with noise of the sum."""
        mechanism, order = self.versions[index].mechanism, self._orders[index]
        assert isinstance(mechanism, SetReportMechanism)
        own, factors, core = mechanism.covariance_terms(self._held(index, frequencies))
        if self._certain[index]:
            core[::2, ::2] += own.mean() / len(own)
        return (own, factors, core) if order is None else (own[order], factors[order], core)

    def _check_shapes(self, counts: Sequence[CohortCounts]) -> None:
        shapes = [(version.num_cohorts, version.num_cells) for version in self.versions]
        if [each.shape for each in counts] != shapes:
            raise SpecError(f"counts must have the shapes {shapes}, one per version, got {[c.shape for c in counts]}")

    def _invert(self, index: int, counts: CohortCounts) -> np.ndarray:
        order = self._orders[index]
        frequencies: np.ndarray = self.versions[index].mechanism.invert(counts.pooled())[0]
        return frequencies if order is None else frequencies[order]

    @functools.cached_property
    def _orders(self) -> list[np.ndarray | None]:
        """For each version, the symbols of ``values``; None if they are 0, 1, ..., K - 1."""
        orders = (version.alphabet.symbol_table(self.values, 1)[0] for version in self.versions)
        return [None if (np.diff(order, prepend=-1) == 1).all() else order for order in orders]

    @functools.cached_property
    def _certain(self) -> np.ndarray:
        """(A,): whether the sum of a version's frequencies is always 1, as for k-RR.

        No other sum is certain: its mean, hence its value, would be the same for all populations.
        """
        size = len(self.values)
        one, even = np.ones(size), np.full(size, 1 / size)
        mechanisms = [version.mechanism for version in self.versions]
        return np.array([each.variance_of(one, even) <= _SMALLEST * each.variances(even).sum() for each in mechanisms])

    @functools.cached_property
    def _inverses_of_even(self) -> np.ndarray:
        """(A, K, K), for the uniform population."""
        size = len(self.values)
        return self._inverses(list(range(len(self.versions))), np.full(size, 1 / size))


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


def _inverses_of_terms(own: np.ndarray, factors: np.ndarray, core: np.ndarray) -> np.ndarray:
    """(A, K, K): inverses of diag(own) + factors core factors^T, by Woodbury's formula."""
    scaled = factors / own[:, :, np.newaxis]
    inner = core @ (factors.transpose(0, 2, 1) @ scaled)
    inner.reshape(len(inner), -1)[:, :: inner.shape[1] + 1] += 1
    inverses: np.ndarray = (scaled @ np.linalg.solve(inner, -core)) @ scaled.transpose(0, 2, 1)
    inverses.reshape(len(inverses), -1)[:, :: inverses.shape[1] + 1] += 1 / own
    return inverses


def _contrasts(matrices: np.ndarray) -> np.ndarray:
    """B M (..., K - 1, K), where the rows of B are e_j - e_K."""
    contrasts: np.ndarray = matrices[..., :-1, :] - matrices[..., -1:, :]
    return contrasts


def _information(inverses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(K - 1, K - 1): sum_a n_a B V_a^- B^T."""
    total = np.tensordot(sizes, inverses, axes=1)
    return _contrasts(_contrasts(total).T)


def _nearest(inverses: np.ndarray, alone: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(K,): the estimate nearest to those of all versions (A, K), in units of their noise, with the sum 1."""
    even = 1 / alone.shape[1]
    pulls = sizes @ (inverses @ (alone - even)[:, :, np.newaxis])[:, :, 0]
    steps = _solve(_information(inverses, sizes), pulls[:-1] - pulls[-1])
    nearest: np.ndarray = even + np.append(steps, -steps.sum())
    return nearest


def _maps(inverses: np.ndarray, sizes: np.ndarray) -> np.ndarray:
    """(A, K, K): B^T (sum_a n_a J_a)^-1 n_a B V_a^-."""
    weighted = sizes[:, np.newaxis, np.newaxis] * _contrasts(inverses)
    steps = np.linalg.solve(_information(inverses, sizes), weighted)
    return np.concatenate([steps, -steps.sum(axis=1, keepdims=True)], axis=1)


def _solve(information: np.ndarray, pulls: np.ndarray) -> np.ndarray:
    """The steps (K - 1,), the shortest ones if no version tells some values apart."""
    steps: np.ndarray = np.linalg.lstsq(information, pulls, rcond=_SINGULAR)[0]
    return steps


def _agreement(
    alone: np.ndarray, inverses: np.ndarray, ranks: int, sizes: np.ndarray, dimensions: int, corrected: np.ndarray
) -> Agreement | None:
    """The test, by distances from the estimate nearest to all versions.

    ``ranks`` is the sum of those of all inverses, ``dimensions`` the number of contrasts that any of them sees, and
    ``corrected`` that of the ``corrections`` of all versions.
    """
    gaps = (alone - _nearest(inverses, alone, sizes))[:, :, np.newaxis]
    statistic = max(float(sizes @ (gaps.transpose(0, 2, 1) @ inverses @ gaps)[:, 0, 0]), 0.0)  # rounding may be below 0
    degrees = ranks - dimensions
    return Agreement(statistic, degrees, chi_square_tail(statistic, degrees, corrected)) if degrees > 0 else None
