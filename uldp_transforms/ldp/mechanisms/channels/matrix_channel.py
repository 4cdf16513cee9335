"""Reports that are one integer with a known probability matrix: counts, inverse, variances and intervals.

Q[y, x] = Pr(output y | symbol x), in integers out of 2**64. With D the diagonal matrix of expected outputs of a uniform
population, the inverse is

    B = (Q^T D^-1 Q)^-1 Q^T D^-1,    so that B Q = 1 and B c / n is unbiased for every population,

which is Q^-1 if there are as many outputs as symbols. The covariance of one report is B diag(Q p) B^T - p p^T.

Notation: n reports, C cohorts, K symbols, M >= K outputs, each of which is a counted cell.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
from collections.abc import Iterator
from fractions import Fraction
from typing import ClassVar

import numpy as np
import scipy

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.channels.channel_intervals import ChannelIntervals
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals
from uldp_transforms.ldp.mechanisms.integer_reports import IntegerReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import Kind
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.sampling import WORD, WordSource

SMALLEST_SINGULAR_VALUE = 1e-6
"""Minimum singular value of D**(-1/2) Q: below it, symbols cannot be distinguished by their reports."""

Weights = tuple[tuple[int, ...], ...]


@dataclasses.dataclass(frozen=True, kw_only=True)
class MatrixChannel(IntegerReportMechanism):
    """Estimation from counts of the outputs of a channel; subclasses define the channel."""

    one_place: ClassVar[bool] = True

    @property
    @abc.abstractmethod
    def weights(self) -> Weights:
        """2**64 Q: M rows of K integers, whose columns each sum to 2**64."""

    @functools.cached_property
    def probabilities(self) -> np.ndarray:
        """Q, (M, K) float64."""
        return np.array([[weight / WORD for weight in row] for row in self.weights])

    @functools.cached_property
    def inverse(self) -> np.ndarray:
        """B, (K, M) float64; see the module."""
        return inverse_of(self.probabilities)

    @property
    def has_signal(self) -> bool:
        expected = self.probabilities.mean(axis=1, keepdims=True)
        return bool(expected.min() > 0) and bool(
            np.linalg.svd(self.probabilities / np.sqrt(expected), compute_uv=False)[-1] > SMALLEST_SINGULAR_VALUE
        )

    @property
    def sends_clear(self) -> bool:
        return any(sum(weight > 0 for weight in row) == 1 for row in self.weights)

    def kinds(self) -> Iterator[Kind]:
        """Each output, under the symbols that send it most and least often."""
        for output, row in enumerate(self.weights):
            high, low = (row.index(extreme(row)) for extreme in (max, min))
            yield Kind(
                f"output {output}", (f"symbol {high}", f"symbol {low}"), (Fraction(row[high]), Fraction(row[low]))
            )

    @property
    def num_cells(self) -> int:
        return self.num_outputs

    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        payloads = [self.as_bytes(output) for output in range(self.num_outputs)]
        return payloads, [[Fraction(weight, WORD) for weight in row] for row in self.weights]

    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            logs: np.ndarray = np.log(self.probabilities)[self.integers(payloads)]
            return logs

    # ------------------------------------------------------------------ reports

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """One word w per report: the first output y whose cumulative weight in the symbol's column exceeds w."""
        words = source.words(len(symbols))
        outputs: np.ndarray = np.empty(len(symbols), dtype=np.int64)
        order = np.argsort(symbols, kind="stable")
        present, starts = np.unique(symbols[order], return_index=True)
        for symbol, rows in zip(present.tolist(), np.split(order, starts[1:])):
            never, last_words = self._last_words(symbol)
            outputs[rows] = never + np.searchsorted(last_words, words[rows], side="left")
        return self.as_payloads(outputs)

    def _last_words(self, symbol: int) -> tuple[int, np.ndarray]:
        """Number of leading outputs that the symbol never sends; and the last word of each of the others."""
        total, last = 0, []
        for row in self.weights:
            total += row[symbol]
            if total:
                last.append(total - 1)
        return self.num_outputs - len(last), np.array(last, dtype=np.uint64)

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        index = groups.astype(np.int64) * self.num_outputs + self.integers(payloads)
        return np.bincount(index, minlength=num_groups * self.num_outputs).reshape(num_groups, self.num_outputs)

    # ------------------------------------------------------------------ estimation from counts

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        counted: np.ndarray = frequencies @ self.probabilities.T
        return counted

    def invert(self, counts: CohortCounts) -> np.ndarray:
        """B c / n; see ``Mechanism.invert``."""
        frequencies: np.ndarray = counts.cells / np.maximum(counts.num_reports, 1)[:, np.newaxis] @ self.inverse.T
        return frequencies

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        variances: np.ndarray = self.response(frequencies) @ (self.inverse**2).T - frequencies**2
        return variances

    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """The variances without the reports of people who hold the symbol; all other reports are unchanged."""
        without = self.response(frequencies)[np.newaxis] - frequencies[:, np.newaxis] * self.probabilities.T
        variances: np.ndarray = (without * self.inverse**2).sum(axis=1)
        return variances

    def variance_of(self, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        mean = np.asarray(weights @ frequencies)[..., np.newaxis]
        apart = weights @ self.inverse - mean  # before squaring: weights may be far from 0 and near each other
        variances: np.ndarray = apart**2 @ self.response(frequencies)
        return variances

    def covariance(self, frequencies: np.ndarray) -> np.ndarray:
        covariance: np.ndarray = (self.inverse * self.response(frequencies)) @ self.inverse.T
        return covariance - np.outer(frequencies, frequencies)

    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Score intervals with the skewness of the channel, see ``channel_intervals`` and ``Mechanism.intervals``.

        If one output alone determines the frequency of a symbol, its count is binomial, and the interval is that of its
        probability.
        """
        n, (symbols, outputs, base, slope) = counts.total, self._outputs_that_tell
        low, high = np.zeros((2, self.num_symbols))
        if len(symbols) < self.num_symbols:
            low, high = self._contrasts(counts, frequencies).of(confidence, strict)
        which = np.broadcast_to(confidence, low.shape)[symbols]
        own = which if strict or np.ndim(confidence) else confidence
        ends = binomial_intervals(counts.cells[0, outputs], n, own, strict)
        ends = tuple((end - base) / slope for end in ends)
        low[symbols], high[symbols] = np.minimum(*ends), np.maximum(*ends)
        return low, high

    def _contrasts(self, counts: CohortCounts, frequencies: np.ndarray) -> ChannelIntervals:
        return ChannelIntervals(
            raw=self.invert(counts)[0],
            plausible=frequencies,
            covariance=self.covariance(frequencies),
            squares=self.inverse**2 @ self.probabilities,
            cubes=self.inverse**3 @ self.probabilities,
            effects=np.abs(self.inverse).max(axis=1),
            num_reports=counts.total,
        )

    @functools.cached_property
    def _outputs_that_tell(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Symbols x, each with an output y such that Pr(y) = base + slope p_x for all other frequencies.

        If M = K, the unbiased linear estimate of p_x is unique, so it equals (c_y / n - base) / slope.
        """
        found: list[tuple[int, int, float, float]] = []
        if self.num_outputs == self.num_symbols:
            for symbol, output in enumerate(np.abs(self.inverse - np.median(self.inverse, axis=1)[:, None]).argmax(1)):
                row = self.weights[output]
                others = {weight for other, weight in enumerate(row) if other != symbol}
                if len(others) == 1:
                    base = others.pop()
                    found.append((symbol, int(output), base / WORD, (row[symbol] - base) / WORD))
        symbols, outputs, base_rates, slopes = zip(*found) if found else ((), (), (), ())
        return np.array(symbols, dtype=int), np.array(outputs, dtype=int), np.array(base_rates), np.array(slopes)

    @property
    def jumps(self) -> np.ndarray:
        return self.largest_effects

    @property
    def largest_effects(self) -> np.ndarray:
        effects: np.ndarray = self.inverse.max(axis=1)
        return effects

    @property
    def smallest_effects(self) -> np.ndarray:
        effects: np.ndarray = self.inverse.min(axis=1)
        return effects

    def effects_of_sums(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        of_outputs = weights @ self.inverse
        return of_outputs.min(axis=-1), of_outputs.max(axis=-1)

    @property
    def reveal_rate(self) -> float:
        return 0.0

    # ------------------------------------------------------------------ likelihood

    def outcomes_of_counts(self, counts: CohortCounts) -> Outcomes:
        cohorts, outputs = np.nonzero(counts.cells)
        return self._outcomes(counts.cells[cohorts, outputs], cohorts, outputs)

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes:
        kinds, counts = np.unique(
            cohorts.astype(np.int64) * self.num_outputs + self.integers(payloads), return_counts=True
        )
        return self._outcomes(counts, *np.divmod(kinds, self.num_outputs))

    def _outcomes(self, counts: np.ndarray, cohorts: np.ndarray, outputs: np.ndarray) -> Outcomes:
        rows = scipy.sparse.csr_array(self.probabilities[outputs])
        return Outcomes(counts.astype(np.float64), cohorts.astype(np.int64), np.zeros(len(outputs)), rows)


def inverse_of(probabilities: np.ndarray) -> np.ndarray:
    """B, (K, M), of Q, (M, K); see the module."""
    outputs, symbols = probabilities.shape
    if outputs == symbols:
        return np.linalg.inv(probabilities)
    root = np.sqrt(probabilities.mean(axis=1))
    inverse: np.ndarray = np.linalg.pinv(probabilities / root[:, np.newaxis]) / root
    return inverse
