"""The search: extends prefixes level by level to whole values, and subtracts found values at all levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.discovery.belief import Beliefs
from uldp_transforms.ldp.discovery.grammar import Grammar, Numbers
from uldp_transforms.ldp.discovery.level import Level, Peeled
from uldp_transforms.ldp.solvers.hash_chance import tail

SURVIVORS = 2000
"""Number of prefixes per level that the search extends."""

PASSES = 3
"""Number of searches over all levels; each one first subtracts the values found so far."""

MOST_SCORED = 1 << 24
"""Maximum number of prefixes that are scored at one level."""

_FALSE_SURVIVORS = 1000.0  # expected number of surviving prefixes that nobody holds; they only cost time
_FALSE_WHOLE = 50.0  # expected number of tested whole values that nobody holds
_DEGREES, _DEGREES_JUDGED = 2000.0, 100.0
"""Degrees of freedom per value that is subtracted or tested: a false value fits noise, which then seems smaller."""

_ROWS = 128  # parents whose prefixes have their beliefs in memory together
_ROUNDS = 2  # of subtracting what stands out and scoring the rest again
_TINY = 1e-300

Block = tuple[list[Numbers], np.ndarray]


class Search:
    """Repeated passes over the levels of a collection.

    Prefixes are ranked by their expected number of false positives: the tail probability of the score, divided by the
    prior share of the prefix among those of its kind. Smaller is better.

    Attributes:
        found: sequences of the whole values to be tested, each with its smallest expected number of false positives.
        num_scored: number of different whole values that were scored in all passes.

    Args:
        alphabet: alphabet of the collection.
        levels: levels with their counts, in order.
    """

    def __init__(self, alphabet: Prefixes, levels: Sequence[Level]):
        self._alphabet, self._levels = alphabet, levels
        self._grammar = Grammar(alphabet)
        self._beliefs = Beliefs(alphabet)
        self._peeled: list[dict[Numbers, None]] = [{} for _ in levels]
        self._offered: dict[tuple[int, Numbers], float] = {}  # prior mass of whole values, by level and parent
        self._firm: dict[Numbers, None] = {}  # whole values that stand out
        self.found: dict[Numbers, float] = {}
        self.num_scored = 0

    def run(self) -> None:
        """Run all passes; stop early if one finds nothing new."""
        for _ in range(PASSES):
            before = len(self.found)
            survivors: list[Numbers] = [()]
            for number in range(len(self._levels)):
                survivors = self._search_level(number, survivors)
            if len(self.found) == before:
                break

    def hypotheses(self, values: Sequence[str]) -> np.ndarray:
        """(S,) float64: number of hypotheses that each value counts for: total prior mass over the value's own."""
        own = [self._beliefs.of(self._alphabet.sequence(value)) for value in values]
        return np.asarray(sum(self._offered.values()) / np.exp(own))

    def p_values(self, values: Sequence[str]) -> np.ndarray:
        """(S,): p-values of the estimates under the hypothesis that nobody holds the text, with all values peeled.

        The estimate is the mean over the levels that hash the value as a whole, weighted by their reports.
        """
        sequences = [self._alphabet.sequence(value) for value in values]
        sums, sizes = np.zeros(len(values)), np.zeros(len(values))
        cells: list[list[np.ndarray]] = [[] for _ in values]
        for level, length, peeled in zip(self._levels, self._alphabet.lengths, self._peeled):
            prefixes = dict.fromkeys(sequence[:length] for sequence in sequences)
            prefixes |= {prefix: None for prefix in peeled if prefix[-1] != END}
            fit = level.peel(list(prefixes))
            position = {prefix: i for i, prefix in enumerate(prefixes)}
            for row, sequence in enumerate(sequences):
                if length is None or len(sequence) <= length:
                    sums[row] += level.total * fit.frequencies[position[sequence]]
                    sizes[row] += level.total
                    cells[row].append(level.total * fit.without(position[sequence]))
        drawn = zip(cells, sums / sizes, sizes)
        return np.array([tail(np.concatenate(rows) / size, float(mean)) for rows, mean, size in drawn])

    def _search_level(self, number: int, survivors: list[Numbers]) -> list[Numbers]:
        """Score the extensions of the previous level's survivors; returns the survivors of this level, the best
        first."""
        length, level = self._alphabet.lengths[number], self._levels[number]
        blocks = list(self._blocks(number, survivors))
        kinds = self._kinds(blocks, number)
        peeled = self._peeled[number] | dict.fromkeys(value[:length] for value in self._firm)
        for left in reversed(range(_ROUNDS)):
            fit = level.peel(list(peeled))
            scores = dict(self._above(kinds, number, fit, blocks))
            others = self._striking(scores, kinds)
            new = [sequence for sequence in _best(others, level.degrees / _DEGREES) if sequence not in peeled]
            new = new[: max(0, level.most - len(peeled))]
            if not new or not left:
                break
            peeled |= dict.fromkeys(new)
        scores |= dict(zip(peeled, fit.scores.tolist()))
        striking = self._striking(scores, kinds)
        outstanding = _best(striking, level.degrees / _DEGREES)
        self._peeled[number] = dict.fromkeys(sequence for sequence in outstanding if sequence in peeled)
        self._firm |= dict.fromkeys(sequence for sequence in outstanding if sequence[-1] == END)
        for sequence in _best(striking, self._judged(level)):
            if sequence[-1] == END:
                self.found[sequence] = min(striking[sequence], self.found.get(sequence, np.inf))
        surviving = [sequence for sequence in _best(striking, _FALSE_SURVIVORS) if sequence[-1] != END][:SURVIVORS]
        if length is not None:
            self._beliefs.learn(scores, surviving)
        return surviving

    def _blocks(self, number: int, survivors: list[Numbers]) -> Iterator[Block]:
        """Blocks of parents of one length, with masks (parents, T + 1) bool of the tokens that can follow each."""
        size, length = len(self._alphabet.tokens) + 1, self._alphabet.lengths[number]
        before = self._alphabet.lengths[number - 1] or 0  # for the first level it is that of the last: None
        steps = 1 if length is None else length - before
        parents = survivors[: max(1, MOST_SCORED // size**steps)]
        for more in reversed(range(steps)):
            if not parents:
                return
            allowed = np.zeros((len(parents), size), dtype=bool)
            allowed[:, END] = True
            if not more:
                allowed = np.array(list(map(self._grammar.followers, parents)))
            yield parents, allowed
            if more:
                parents = self._grammar.extended(parents)

    def _kinds(self, blocks: Sequence[Block], number: int) -> tuple[float, float]:
        """Total prior mass of all scored prefixes and of all whole values; counts the new ones."""
        last = self._alphabet.lengths[number] is None
        prefixes = wholes = 0.0
        for parents, allowed in _pieces(blocks):
            beliefs = np.where(allowed, np.exp(self._beliefs.of_block(parents, last)), 0.0)
            totals = beliefs.sum(axis=1)
            columns = totals if last else beliefs[:, END], totals, allowed.sum(axis=1)
            for parent, offered, total, size in zip(parents, *(column.tolist() for column in columns)):
                if (number, parent) not in self._offered:
                    self.num_scored += size if last else 1
                self._offered[number, parent] = offered
                wholes += offered
                prefixes += total - offered
        return prefixes, wholes

    def _above(
        self, kinds: tuple[float, float], number: int, fit: Peeled, blocks: Sequence[Block]
    ) -> Iterator[tuple[Numbers, float]]:
        """Sequences with at most the allowed expected number of false positives for their kind, and their scores."""
        level, last = self._levels[number], self._alphabet.lengths[number] is None
        false = np.full(len(self._alphabet.tokens) + 1, self._judged(level) / max(kinds[1], _TINY))
        if not last:
            false[END + 1 :] = _FALSE_SURVIVORS / max(kinds[0], _TINY)
        for parents, allowed in blocks:
            for start, scores in level.scores(fit, parents, last):
                most = np.exp(self._beliefs.of_block(parents[start : start + len(scores)], last)) * false
                least = -special.ndtri(np.minimum(most, 0.5))
                here = (scores > least) & allowed[start : start + len(scores)]
                for row, column in np.argwhere(here).tolist():
                    ending = (END,) if last and column != END else ()
                    yield (*parents[start + row], column, *ending), float(scores[row, column])

    def _striking(self, scores: dict[Numbers, float], kinds: tuple[float, float]) -> dict[Numbers, float]:
        """The expected number of false positives at each score."""
        every = np.array([kinds[sequence[-1] == END] for sequence in scores])
        beliefs = np.array([self._beliefs.of(sequence) for sequence in scores])
        logs = special.log_ndtr(-np.fromiter(scores.values(), dtype=float)) + np.log(np.maximum(every, _TINY))
        return dict(zip(scores, np.exp(np.minimum(logs - beliefs, 700.0)).tolist()))

    def _judged(self, level: Level) -> float:
        return min(_FALSE_WHOLE, level.degrees / _DEGREES_JUDGED)


def _pieces(blocks: Sequence[Block]) -> Iterator[Block]:
    """The same, with few parents at a time."""
    for parents, allowed in blocks:
        for start in range(0, len(parents), _ROWS):
            yield parents[start : start + _ROWS], allowed[start : start + _ROWS]


def _best(striking: dict[Numbers, float], most: float) -> list[Numbers]:
    """The sequences with at most ``most`` expected false positives, the best first."""
    return sorted((s for s, false in striking.items() if false < most), key=striking.__getitem__)
