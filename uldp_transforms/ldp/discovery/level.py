"""Scores of prefixes at one level: a joint fit of peeled prefixes, and tests of all others on its residuals.

For the notation see ``estimators.observation``. ``A`` is the number of peeled prefixes, whose frequencies are fitted
together; all other prefixes are scored by the residuals.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import linalg

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.discovery.grammar import Numbers
from uldp_transforms.ldp.solvers.buckets import Buckets
from uldp_transforms.ldp.solvers.linear import observe
from uldp_transforms.ldp.solvers.observation import Observation, common_noise, residual_law
from uldp_transforms.ldp.solvers.question import Question

_ROUNDS = 3
_ROWS = 128  # parents that are looked up at a time; they share one table of sums
_WORDS = 1 << 16


@dataclasses.dataclass(frozen=True, eq=False)
class Peeled:
    """A prefixes that were fitted together.

    Attributes:
        frequencies: (A,).
        scores: (A,) frequencies in units of the standard error under the hypothesis that nobody holds the prefix.
        cells: (C, k) weighted residuals.
        norm: variance of the sum of the cells of any other prefix that nobody holds.
        weights: (C,) 1 / variance per direction.
        table: (A, C) buckets of the prefixes.
        spare: share of the degrees of freedom that remains after the fit.
    """

    frequencies: np.ndarray
    scores: np.ndarray
    cells: np.ndarray
    norm: float
    weights: np.ndarray
    table: np.ndarray
    spare: float

    def without(self, position: int) -> np.ndarray:
        """(C, k): the cells if one prefix had not been fitted; their sum over its buckets is its frequency."""
        cells: np.ndarray = self.cells / self.norm
        own = self.frequencies[position] * self.weights * self.spare / self.norm
        cells[np.arange(len(own)), self.table[position]] += own
        cells -= own[:, np.newaxis] / cells.shape[1]
        return cells


class Level:
    """The cohorts of one level that have reports.

    Args:
        question: question for the whole collection.
        alphabet: alphabet of the collection.
        number: number of the level.
        counts: counts of all cohorts.
    """

    def __init__(self, question: Question, alphabet: Prefixes, number: int, counts: CohortCounts):
        own = slice(number, None, alphabet.num_levels)
        here = counts.num_reports[own] > 0
        self._question, self._alphabet, self._number = question, alphabet, number
        self._num_cohorts, self._here = len(counts.num_reports), here
        self._counts = CohortCounts(counts.num_reports[own][here], counts.cells[own][here])
        self._words: dict[int, np.ndarray] = {}

    @property
    def total(self) -> int:
        """Number of reports."""
        return self._counts.total

    @property
    def degrees(self) -> int:
        """Number of equations: degrees of freedom of the residuals before any prefix is peeled."""
        return len(self._counts.num_reports) * (self._alphabet.num_buckets - 1)

    @property
    def most(self) -> int:
        """Maximum number of prefixes that can be peeled; fitting more would leave too few degrees of freedom."""
        return self.degrees // 6

    def peel(self, sequences: Sequence[Numbers]) -> Peeled:
        """Fit the frequencies of A prefixes by least squares with a noise level for each cohort."""
        k, n = self._alphabet.num_buckets, self._counts.num_reports
        table = self._alphabet.buckets(self._alphabet.sums(sequences, self._num_cohorts, self._number)[:, self._here])
        buckets = Buckets(table.T.astype(np.int64), k)
        given = observe(self._question, buckets, self._counts, slice(0, k))
        centred = given.centre(given.inverted)
        degrees = float(self.degrees - len(sequences))
        weights = n.astype(np.float64)
        for _ in range(_ROUNDS):
            frequencies, errors = _fit(buckets, centred, weights)
            fitted = buckets.forward(frequencies)
            residuals = centred - given.centre(fitted)
            weights = _weights(given, fitted, (residuals**2).sum(axis=1), degrees)
        frequencies, errors = _fit(buckets, centred, weights)
        residuals = centred - given.centre(buckets.forward(frequencies))
        norm = float(weights.sum()) * (1 - 1 / k) * degrees / self.degrees
        return Peeled(
            frequencies=frequencies,
            scores=frequencies / errors,
            cells=weights[:, np.newaxis] * residuals,
            norm=norm,
            weights=weights,
            table=table,
            spare=degrees / self.degrees,
        )

    def scores(self, peeled: Peeled, parents: Sequence[Numbers], last: bool) -> Iterator[tuple[int, np.ndarray]]:
        """Scores of every parent extended by every token, in blocks of parents.

        The score is the frequency in units of the standard error under the hypothesis that nobody holds the prefix;
        scores of peeled prefixes have no meaning.

        Args:
            peeled: prefixes whose contribution is subtracted.
            parents: sequences of equal length.
            last: whether END follows every parent.

        Yields:
            Position of the first parent, and scores (parents, T + 1) float32.
        """
        position = len(parents[0])
        sums = self._alphabet.sums(parents, self._num_cohorts, self._number)[:, self._here].T
        words = self._next(position)
        if last:
            words = words + self._next(position + 1)[:, END, np.newaxis] * (np.arange(words.shape[1]) != END)
        cells = (peeled.cells / np.sqrt(peeled.norm)).astype(np.float32)
        for start in range(0, len(parents), _ROWS):
            own = np.ascontiguousarray(sums[:, start : start + _ROWS, np.newaxis])
            yield start, self._sums_of_cells(cells, own, words)

    def _sums_of_cells(self, cells: np.ndarray, own: np.ndarray, words: np.ndarray) -> np.ndarray:
        """(parents, T + 1) float32: sums over the cohorts of the cell that each parent with each token has.

        For many prefixes, each cohort's cells are laid out by hash word, which saves computing buckets.

        Args:
            cells: (C, k) float32.
            own: (C, parents, 1) uint16 hash words of the parents.
            words: (C, T + 1) uint16 hash words of the tokens.
        """
        if 4 * own.shape[1] * words.shape[1] < _WORDS:
            buckets = self._alphabet.buckets(own + words[:, np.newaxis])
            buckets = buckets + np.arange(len(cells))[:, np.newaxis, np.newaxis] * cells.shape[1]
            sums: np.ndarray = cells.ravel()[buckets].sum(axis=0)
            return sums
        look_up = self._alphabet.buckets(np.arange(_WORDS)).astype(np.intp)
        found = np.zeros((own.shape[1], words.shape[1]), dtype=np.float32)
        part = np.empty_like(found)
        for cohort, word in enumerate(words):
            np.take(cells[cohort][look_up], own[cohort] + word, out=part, mode="clip")
            found += part
        return found

    def _next(self, position: int) -> np.ndarray:
        """(C, T + 1) uint16: the hash words of all tokens at a position, in the cohorts of the level."""
        if position not in self._words:
            numbers = range(len(self._alphabet.tokens) + 1)
            words = self._alphabet.words(position, numbers, self._num_cohorts)
            own = words[:, self._number :: self._alphabet.num_levels][:, self._here]
            self._words[position] = np.ascontiguousarray(own.T)
        return self._words[position]


def _fit(buckets: Buckets, centred: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Frequencies (A,) by weighted least squares, and their standard errors if the weights are 1 / variance."""
    if not buckets.table.shape[1]:
        return np.zeros(0), np.zeros(0)
    cells = np.broadcast_to(weights[:, np.newaxis], centred.shape)
    gram = buckets.gram(cells, centred=True)
    gram.flat[:: len(gram) + 1] *= 1 + 1e-9
    inverse = linalg.cho_solve(linalg.cho_factor(gram, lower=True), np.eye(len(gram)))
    frequencies = inverse @ buckets.gather(cells * centred).sum(axis=0)
    return frequencies, np.sqrt(np.maximum(np.diag(inverse), 1e-300))


def _weights(given: Observation[Buckets], fitted: np.ndarray, squares: np.ndarray, degrees: float) -> np.ndarray:
    """(C,) 1 / variance per direction in each cohort: noise of the reports plus that of all other hashed texts."""
    shares = given.plausible(fitted)
    privacy, _ = residual_law(given, shares, given.noise(shares))
    known = privacy / given.num_reports
    return np.asarray(1 / (known + common_noise(squares, degrees, known)))
