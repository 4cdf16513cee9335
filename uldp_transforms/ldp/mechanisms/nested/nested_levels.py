"""Nested levels of values, each with its own epsilon: estimation from counts.

The reports that reach level l are those of its own mechanism, whose clear reports are all reports that pass. With n_l
reports that reach it and q the estimate of that mechanism from them, the unbiased estimate of a value of the level is

    p_x = q_x n_l / (n t_l),    and p_z = R_z / (n t_(L+1)) of a value that is sent in clear.

Its covariance is that of a sample in clear plus, for each level, the noise of its mechanism. With P_l the share of
people whose value has level l or a later one, or none, and q their distribution,

    n Cov(p) = diag(p) - p p^T + sum_l P_l / t_l (n Cov_l(q) - diag(q) + q q^T).

Notation: n reports, C cohorts, L levels, K symbols, v of them protected, M = K + L - 1 counted cells.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
import scipy

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals, score_intervals
from uldp_transforms.ldp.mechanisms.mechanism import About
from uldp_transforms.ldp.mechanisms.nested.level_payloads import LEVEL_PAYLOAD, SymbolPayloads
from uldp_transforms.ldp.mechanisms.nested.nested_channel import NestedChannel
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism


@dataclasses.dataclass(frozen=True, kw_only=True)
class NestedLevels(NestedChannel):
    """Values of level l are protected by epsilon_l; see the module and ``nested_channel``."""

    id: ClassVar[str] = "levels"
    about: ClassVar[About] = About(
        sends="a report with the noise of one of the levels; other values often in clear; `levels`; `of`",
        protects="each sensitive value by the epsilon of its level. Reports of a level rule earlier levels out",
        source="here; left open by Murakami & Kawamoto 2019, section 3.1, and Kairouz et al. 2016, section 6",
        payload=LEVEL_PAYLOAD,
    )

    # ------------------------------------------------------------------ counts

    @property
    def num_cells(self) -> int:
        return self.num_symbols + len(self.members) - 1

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        """As ``Mechanism.count``; then, for each level except the first, the reports that reach it."""
        cells = np.zeros((num_groups, self.num_cells), dtype=np.int64)
        levels, groups = self.payloads.levels(payloads), groups.astype(np.int64)
        for place, (member, symbols) in enumerate(zip(self.members, self.level_symbols)):
            rows = np.flatnonzero(levels == place)
            counted = member.count(self.payloads.opened(place, payloads[rows]), groups[rows], num_groups)
            cells[:, symbols] = counted[:, : len(symbols)]
            if place:
                reached = np.bincount(groups[levels >= place], minlength=num_groups)
                cells[:, self.num_symbols + place - 1] = reached
        rows = np.flatnonzero(levels == len(self.members))
        np.add.at(cells, (groups[rows], self.payloads.revealed(payloads[rows])), 1)
        return cells

    def _by_level(self, counts: CohortCounts) -> Iterator[CohortCounts]:
        """The reports that reach each level, counted as its own mechanism counts them.

        Reports that pass are counted as clear ones of the first later symbol; those that pass the last level, as they
        are.
        """
        reached = [counts.num_reports, *counts.cells[:, self.num_symbols :].T]
        for place, (member, symbols) in enumerate(zip(self.members, self.level_symbols)):
            cells = np.zeros((len(counts.num_reports), member.num_symbols), dtype=np.int64)
            cells[:, : len(symbols)] = counts.cells[:, symbols]
            if place + 1 < len(self.members):
                cells[:, len(symbols)] = reached[place + 1]
            else:
                cells[:, len(symbols) :] = counts.cells[:, self.num_sensitive : self.num_symbols]
            yield CohortCounts(reached[place], cells)

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().count_violations(counts)
        for place, (member, own) in enumerate(zip(self.members, self._by_level(counts))):
            for rule, violated in member.count_violations(own):
                yield f"{rule} (level {place + 1})", violated

    # ------------------------------------------------------------------ the inverse and its moments

    def _conditional(
        self, frequencies: np.ndarray
    ) -> Iterator[tuple[SetReportMechanism, np.ndarray, np.ndarray, np.ndarray]]:
        """Of each level: its mechanism, the symbols that reach it, P_l / t_l (..., 1), and q (..., number of them)."""
        for place, (member, passing) in enumerate(zip(self.members, self.passing)):
            symbols = self.order[self.starts[place] :]
            own = frequencies[..., symbols]
            share = own.sum(axis=-1, keepdims=True)
            nobody = share == 0
            q = np.where(nobody, 1 / len(symbols), own / np.where(nobody, 1.0, share))
            yield member, symbols, share / passing, q

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        cells = np.empty((*frequencies.shape[:-1], self.num_cells))
        for place, (member, _, share, q) in enumerate(self._conditional(frequencies)):
            reached, own = share[..., 0] * self.passing[place] ** 2, member.response(q)[..., : member.num_sensitive]
            cells[..., self.level_symbols[place]] = reached[..., np.newaxis] * own
            if place:
                cells[..., self.num_symbols + place - 1] = reached
        cells[..., self.num_sensitive : self.num_symbols] = frequencies[..., self.num_sensitive :] * self.passing[-1]
        return cells

    def invert(self, counts: CohortCounts) -> np.ndarray:
        frequencies = np.zeros((len(counts.num_reports), self.num_symbols))
        n = np.maximum(counts.num_reports, 1)[:, np.newaxis]
        for place, (member, own) in enumerate(zip(self.members, self._by_level(counts))):
            part = own.num_reports[:, np.newaxis] / (n * self.passing[place])
            frequencies[:, self.level_symbols[place]] = part * member.invert(own)[:, : member.num_sensitive]
        clear = slice(self.num_sensitive, self.num_symbols)
        frequencies[:, clear] = counts.cells[:, clear] / (n * self.passing[-1])
        return frequencies

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        variances: np.ndarray = frequencies * (1 - frequencies)
        for member, symbols, scale, q in self._conditional(frequencies):
            variances[..., symbols] += scale * (member.variances(q) - q * (1 - q))
        return variances

    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        variances = np.zeros(frequencies.shape)
        for member, symbols, scale, q in self._conditional(frequencies):
            variances[..., symbols] += scale * member.null_variances(q)
        return variances

    def private_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """See ``SetReportMechanism.private_variances``; of the symbols of the first level."""
        return self.members[0].private_variances(frequencies[..., self.order])

    def variance_of(self, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        variances: np.ndarray = _of_sample(weights, frequencies)
        for member, symbols, scale, q in self._conditional(frequencies):
            own = weights[..., symbols]
            variances = variances + scale[0] * (member.variance_of(own, q) - _of_sample(own, q))
        return variances

    def covariance(self, frequencies: np.ndarray) -> np.ndarray:
        covariance: np.ndarray = np.diag(frequencies) - np.outer(frequencies, frequencies)
        for member, symbols, scale, q in self._conditional(frequencies):
            covariance[np.ix_(symbols, symbols)] += scale * (member.covariance(q) - np.diag(q) + np.outer(q, q))
        return covariance

    # ------------------------------------------------------------------ intervals, and effects of one report

    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of the first level: those of its mechanism. Of values in clear: binomial. Of other levels: score intervals,
        since the share of reports that reach a level is estimated too; see ``Mechanism.intervals``."""
        n, raw = counts.total, self.invert(counts)[0]
        low, high = binomial_intervals(counts.cells[0, : self.num_symbols], n, confidence, strict)
        low, high = low / self.passing[-1], high / self.passing[-1]
        null, asked = self.null_variances(frequencies), np.broadcast_to(confidence, raw.shape)
        first = list(self.level_symbols[0])
        low[first], high[first] = self._first_intervals(counts, frequencies, confidence, strict)
        for place, (member, symbols) in enumerate(zip(self.members[1:], map(list, self.level_symbols[1:])), 1):
            low[symbols], high[symbols] = score_intervals(
                raw[symbols],
                null[symbols] / n,
                member.own_slope / (self.passing[place] * n),
                1 / n,
                self.jumps[symbols] / n,
                counts.cells[0, symbols] / n,
                confidence=asked[symbols],
                strict=strict,
            )
        return low, high

    def _first_intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """The intervals of the first level: every report reaches it."""
        member, size = self.members[0], len(self.level_symbols[0])
        own = np.asarray(confidence)[self.order] if np.ndim(confidence) else confidence
        low, high = member.intervals(next(self._by_level(counts)), frequencies[self.order], own, strict)
        return low[:size], high[:size]

    def _effects(self, of_member: str, of_clear: float) -> np.ndarray:
        """(K,): an effect of one report on the mechanism of each level, for n reports of all levels."""
        effects: np.ndarray = np.full(self.num_symbols, of_clear, dtype=np.float64)
        for member, symbols, passing in zip(self.members, self.level_symbols, self.passing):
            effects[list(symbols)] = getattr(member, of_member)[: len(symbols)] / passing
        return effects

    @property
    def jumps(self) -> np.ndarray:
        return self._effects("jumps", 1 / self.passing[-1])

    @property
    def largest_jump(self) -> float:
        return float(self.jumps.max())

    @property
    def largest_effects(self) -> np.ndarray:
        return self._effects("largest_effects", 1 / self.passing[-1])

    @property
    def smallest_effects(self) -> np.ndarray:
        """A report that does not reach the level of a symbol has no effect on it."""
        return np.asarray(np.minimum(self._effects("smallest_effects", 0.0), 0.0))

    # ------------------------------------------------------------------ likelihood

    def outcomes_of_counts(self, counts: CohortCounts) -> Outcomes | None:
        if not isinstance(self.payloads, SymbolPayloads):
            return None
        cohorts, symbols = np.nonzero(counts.cells[:, : self.num_symbols])
        return self._outcomes(self.payloads.clear(symbols), cohorts, counts.cells[cohorts, symbols])

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes:
        """Equal reports of one cohort are one kind."""
        together = np.hstack([cohorts.astype("<i8").view(np.uint8).reshape(len(cohorts), 8), payloads])
        kinds, counts = np.unique(together, axis=0, return_counts=True)
        return self._outcomes(kinds[:, 8:], np.ascontiguousarray(kinds[:, :8]).view("<i8")[:, 0], counts)

    def _outcomes(self, payloads: np.ndarray, cohorts: np.ndarray, counts: np.ndarray) -> Outcomes:
        """A report of a later level has the same probability under all symbols that reach it, and more if it supports
        them."""
        levels = self.payloads.levels(payloads)
        rows, likely = [], []
        for place, (member, symbols) in enumerate(zip(self.members, self.level_symbols)):
            chosen = np.flatnonzero(levels == place)
            supported = member.supports(self.payloads.opened(place, payloads[chosen]))[:, : len(symbols)]
            likelihood = np.zeros((len(chosen), self.num_symbols))
            likelihood[:, list(symbols)] = member.gain * supported
            if place:
                likelihood[:, self.order[self.starts[place] :]] += 1
            rows.append(chosen)
            likely.append(scipy.sparse.csr_array(likelihood))
        clear = np.flatnonzero(levels == len(self.members))
        places = (np.arange(len(clear)), self.payloads.revealed(payloads[clear]))
        likely.append(scipy.sparse.csr_array((np.ones(len(clear)), places), shape=(len(clear), self.num_symbols)))
        kinds = np.concatenate([*rows, clear])
        return Outcomes(
            counts=counts[kinds].astype(np.float64),
            cohorts=cohorts[kinds].astype(np.int64),
            base=(levels[kinds] == 0).astype(np.float64),
            rows=scipy.sparse.vstack(likely, format="csr"),
        )


def _of_sample(weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
    """n times the variance of weighted sums of the shares in a sample in clear."""
    variances: np.ndarray = weights**2 @ frequencies - (weights @ frequencies) ** 2
    return variances
