"""Estimation from reports that name a public block.

With w_b the share of people in block b and q the shares within it, a value has the share p = w_b q. Its estimate is the
mean over all reports of the estimate within the block, or of 0 for reports of other blocks. With V_b(q) n times the
covariance of the mechanism of b, n times the covariance of all estimates is therefore

    w_b V_b(q) + p p^T / w_b - p p^T    within a block,    - p p'^T    between two blocks,

that is, w_b^2 V_b / n_b from the noise in the n_b = w_b n reports of the block, and the sampling of n_b. The sum over a
block is n_b / n, which has no noise if the mechanism's shares always sum to 1.

Source: Acharya, Bonawitz, Kairouz, Ramage and Sun 2020 (block-structured context-aware LDP). Notation: see
``block_channel``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import scipy

from uldp_transforms.ldp.counts.block_places import Sizes, symbols_of_blocks
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals
from uldp_transforms.ldp.mechanisms.mechanism import Mechanism
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.mechanisms.public_blocks.block_channel import BlockChannel, check_part, not_alike
from uldp_transforms.ldp.mechanisms.public_blocks.in_clear import InClear

_LEAST = 1e-300


@dataclasses.dataclass(frozen=True, kw_only=True)
class WithinBlocks(BlockChannel):
    """Perturbs a value among those of its block, which is public; see the module."""

    @classmethod
    def of(cls, sizes: Sizes, build: Callable[..., Mechanism], **context: Any) -> WithinBlocks:
        """The mechanism for blocks of these sizes.

        Args:
            sizes: (K_b, v_b) of each block.
            build: makes the mechanism of one block from ``num_symbols`` and ``num_sensitive``.
            context: further fields of each.

        Raises:
            SpecError: as the mechanism, or if it does not treat all values alike.
        """
        parts = tuple(
            check_part(build(num_symbols=size, num_sensitive=own, **context))
            if own
            else InClear(num_symbols=size, num_sensitive=0)
            for size, own in dict.fromkeys(sizes)
        )
        first = next(part for part in parts if part.num_sensitive)
        if first.protects_all and not all(own for _, own in sizes):
            raise SpecError(
                "mechanism.id must be one that protects sensitive values only, such as urr, if a block has none, "
                f"got {first.id!r}"
            )
        return cls(
            num_symbols=sum(size for size, _ in sizes),
            num_sensitive=sum(size if first.protects_all else own for size, own in sizes),
            num_hashes=first.num_hashes,
            epsilon=first.epsilon,
            sizes=sizes,
            parts=parts,
        )

    def _by_block(self, frequencies: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Of the blocks of a part, their shares w (..., B_p, 1), and the shares within them q (..., B_p, K_b), equal
        where nobody is in a block."""
        own = frequencies[..., self.symbols_of[number]]
        held = own.sum(axis=-1, keepdims=True)
        even = np.full(own.shape[-1], self.num_hashes / own.shape[-1])
        within = np.where(held > 0, own * self.num_hashes / np.where(held > 0, held, 1), even)
        return held / self.num_hashes, within

    def _placed(self, frequencies: np.ndarray, of_part: Callable[[int], np.ndarray]) -> np.ndarray:
        """(..., K) from (..., B_p, K_b) of each part."""
        result = np.empty(frequencies.shape, dtype=np.float64)
        for number, symbols in enumerate(self.symbols_of):
            result[..., symbols] = of_part(number)
        return result

    # ------------------------------------------------------------------ estimation from counts

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        cells = np.empty((*frequencies.shape[:-1], self.num_cells))
        first = self.num_cells - self.num_blocks
        for number, part in enumerate(self.parts):
            held, within = self._by_block(frequencies, number)
            cells[..., self.cells_of[number]] = held * part.response(within)
            cells[..., first + self.blocks_of[number]] = held[..., 0]
        return cells

    def invert(self, counts: CohortCounts) -> np.ndarray:
        return self._inverted(counts, lambda part, own: part.invert(own))

    def invert_alone(self, counts: CohortCounts) -> np.ndarray:
        return self._inverted(counts, lambda part, own: part.invert_alone(own))

    def _inverted(self, counts: CohortCounts, invert: Callable[[Mechanism, CohortCounts], np.ndarray]) -> np.ndarray:
        num_cohorts = len(counts.num_reports)
        shares = self.reports_of(counts) / np.maximum(counts.num_reports, 1)[:, np.newaxis]
        frequencies = np.empty((num_cohorts, self.num_symbols))
        for number, (part, symbols) in enumerate(zip(self.parts, self.symbols_of)):
            within = invert(part, self.counts_of(counts, number)).reshape(num_cohorts, *symbols.shape)
            frequencies[:, symbols] = shares[:, self.blocks_of[number], np.newaxis] * within
        return frequencies

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        return self._variances(frequencies, lambda part, within: part.variances(within))

    def variances_alone(self, frequencies: np.ndarray) -> np.ndarray:
        return self._variances(frequencies, lambda part, within: part.variances_alone(within))

    def _variances(
        self, frequencies: np.ndarray, variances: Callable[[Mechanism, np.ndarray], np.ndarray]
    ) -> np.ndarray:
        def of_part(number: int) -> np.ndarray:
            held, within = self._by_block(frequencies, number)
            squares: np.ndarray = held * (variances(self.parts[number], within) + within**2) - (held * within) ** 2
            return squares

        return self._placed(frequencies, of_part)

    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        def of_part(number: int) -> np.ndarray:
            held, within = self._by_block(frequencies, number)
            variances: np.ndarray = held * np.array([self.parts[number].null_variances(shares) for shares in within])
            return variances

        return self._placed(frequencies, of_part)

    def variance_of(self, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        total = -((weights @ frequencies) ** 2)
        for number, (part, table) in enumerate(zip(self.parts, self.symbols_of)):
            held, within = self._by_block(frequencies, number)
            for symbols, share, shares in zip(table, held[:, 0], within):
                own = weights[..., symbols]
                total = total + share * (part.variance_of(own, shares) + (own @ shares) ** 2)
        return np.asarray(total)

    def covariance(self, frequencies: np.ndarray) -> np.ndarray:
        covariance: np.ndarray = -np.outer(frequencies, frequencies)
        for number, (part, table) in enumerate(zip(self.parts, self.symbols_of)):
            held, within = self._by_block(frequencies, number)
            for symbols, share, shares in zip(table, held[:, 0], within):
                covariance[np.ix_(symbols, symbols)] += share * (part.covariance(shares) + np.outer(shares, shares))
        return covariance

    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Of protected symbols, from the intervals within the block; of all others, whose reports are counted alone,
        those of a binomial probability. See ``Mechanism.intervals``.

        If a block has no reports, all that is known is that a value has at most the share of the block.
        """
        n, raw, cells = counts.total, self.invert(counts)[0], counts.cells[0, : self.num_symbols]
        levels, reports, halves = np.broadcast_to(confidence, raw.shape), self.reports_of(counts)[0], self.jumps / 2
        low, high = np.zeros((2, len(raw)))
        for block, symbols in enumerate(symbols_of_blocks(self.sizes)):
            own = levels[symbols] if np.ndim(confidence) else confidence
            shares = binomial_intervals(np.full(len(symbols), reports[block]), n, own, strict)
            high[symbols] = np.maximum(shares[1], halves[symbols] / n)
            if reports[block] and self.sizes[block][1]:
                part, within = self.part_and_counts(counts, block)
                held = max(float(frequencies[symbols].sum()), _LEAST)
                ends, mass = part.intervals(within, frequencies[symbols] / held, own, strict), reports[block] / n
                low[symbols], high[symbols] = ends_of_product(raw[symbols] / mass, ends, mass, shares)
        clear = np.arange(self.num_symbols) >= self.num_sensitive
        ends = binomial_intervals(cells[clear], n, levels[clear] if np.ndim(confidence) else confidence, strict)
        rates = self._reveal_rates[clear]
        low[clear], high[clear] = np.minimum(ends[0] / rates, raw[clear]), np.maximum(ends[1] / rates, raw[clear])
        return low, high

    @property
    def _reveal_rates(self) -> np.ndarray:
        return self._placed(np.empty(self.num_symbols), lambda number: np.asarray(self.parts[number].reveal_rate))

    @property
    def jumps(self) -> np.ndarray:
        return self._placed(np.empty(self.num_symbols), lambda number: self.parts[number].jumps)

    @property
    def largest_effects(self) -> np.ndarray:
        return self._placed(np.empty(self.num_symbols), lambda number: self.parts[number].largest_effects)

    @property
    def smallest_effects(self) -> np.ndarray | None:
        """Of a report of the block, or of another block, which contributes 0."""
        effects = [part.smallest_effects for part in self.parts]
        if any(found is None for found in effects):
            return None
        smallest: np.ndarray = np.minimum(
            self._placed(np.empty(self.num_symbols), lambda number: np.asarray(effects[number])), 0.0
        )
        return smallest

    def effects_of_sums(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of a report of any block, which contributes to the values of this block alone."""
        found = [
            part.effects_of_sums(weights[..., symbols])
            for part, table in zip(self.parts, self.symbols_of)
            for symbols in table
        ]
        return np.min([least for least, _ in found], axis=0), np.max([most for _, most in found], axis=0)

    @property
    def reveal_rate(self) -> float:
        """The smallest of the parts."""
        return min(part.reveal_rate for part in self.parts)

    def clear_reports(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Those of the blocks of each part that has sensitive values and others. See ``Mechanism.clear_reports``."""
        found = [
            part.clear_reports(self.counts_of(counts, number))
            for number, part in enumerate(self.parts)
            if 0 < part.num_sensitive < part.num_symbols
        ]
        clear, reports, rates = np.concatenate([np.zeros((3, 0)), *map(np.array, found)], axis=1)
        return clear, reports, rates

    # ------------------------------------------------------------------ likelihood

    def outcomes_of_counts(self, counts: CohortCounts) -> Outcomes | None:
        found = []
        for number, part in enumerate(self.parts):
            outcomes = part.outcomes_of_counts(self.counts_of(counts, number))
            if outcomes is None:
                return None
            cohorts, place = np.divmod(outcomes.cohorts, len(self.blocks_of[number]))
            found.append(self._outcomes_of(outcomes, number, cohorts, place))
        return _together(found)

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes | None:
        found = []
        for number, rows, place, inner in self._sorted_out(payloads):
            size = len(self.blocks_of[number])
            outcomes = self.parts[number].outcomes_of_reports(inner, cohorts[rows].astype(np.int64) * size + place)
            if outcomes is None:
                return None
            found.append(self._outcomes_of(outcomes, number, *np.divmod(outcomes.cohorts, size)))
        return _together(found)

    def _outcomes_of(self, outcomes: Outcomes, number: int, cohorts: np.ndarray, place: np.ndarray) -> Outcomes:
        """Outcomes of a part, among all symbols: the base of a report holds for the people of its block only."""
        coefficients = outcomes.rows.toarray() + outcomes.base[:, np.newaxis]
        columns = self.symbols_of[number][place]
        at = (coefficients.reshape(-1), (np.repeat(np.arange(len(place)), columns.shape[1]), columns.reshape(-1)))
        rows = scipy.sparse.csr_array(at, shape=(len(place), self.num_symbols))
        return Outcomes(outcomes.counts, cohorts, np.zeros(len(place)), rows)


def ends_of_product(
    inside: np.ndarray, ends: tuple[np.ndarray, np.ndarray], mass: float, shares: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of shares p = w q: the distances of both factors' ends, added in squares.

    If everybody in the block may hold the value, as with few reports, the upper end is at least that of w.

    Args:
        inside: (U,) unbiased q.
        ends: (U,), (U,) of its intervals.
        mass: w.
        shares: (U,), (U,) of the intervals of w.

    Source: Zou and Donner 2008 (method of variance estimates recovery), here for a product of independent estimates.
    """
    held = np.clip(inside, 0, 1)
    low: np.ndarray = mass * inside - np.hypot(mass * (inside - ends[0]), held * (mass - shares[0]))
    high: np.ndarray = mass * inside + np.hypot(mass * (ends[1] - inside), held * (shares[1] - mass))
    return low, np.where(ends[1] >= 1, np.maximum(high, shares[1]), high)


def _together(found: list[Outcomes]) -> Outcomes:
    return Outcomes(
        counts=np.concatenate([one.counts for one in found]),
        cohorts=np.concatenate([one.cohorts for one in found]),
        base=np.concatenate([one.base for one in found]),
        rows=scipy.sparse.vstack([one.rows for one in found], format="csr"),
    )


def mechanism_for(
    sizes: Sizes | None, spec: Mapping[str, Any], build: Callable[..., Mechanism], **context: Any
) -> Mechanism:
    """The mechanism of a collection: ``WithinBlocks`` if its alphabet has blocks of these sizes.

    Args:
        sizes: ``Alphabet.block_sizes``.
        spec: JSON form of the mechanism.
        build: ``MECHANISMS.build``.
        context: its fields that come from the alphabet.
    """
    if sizes is None:
        return build(spec, **context)

    def no_symbols(values: tuple[str, ...]) -> Sequence[int | None]:
        raise SpecError(not_alike(spec["id"]))

    own_context: dict[str, Any] = {"num_hashes": context["num_hashes"], "symbols_of": no_symbols}
    return WithinBlocks.of(sizes, lambda **own: build(spec, **own), **own_context)
