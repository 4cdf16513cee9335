"""The search: from short prefixes to whole values, level by level, with what is found taken out of all levels."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.discovery.chance import tail
from uldp_transforms.ldp.discovery.grammar import Grammar, Numbers
from uldp_transforms.ldp.discovery.level import Level, Peeled

SURVIVORS = 1000
"""Prefixes of a level that are looked at further."""

PASSES = 3
"""How often all levels are searched, each time with what is known by then taken out."""

MOST_SCORED = 1 << 24
"""Prefixes that are scored at one level."""

_FALSE_SURVIVORS = 200.0  # that are expected among prefixes that nobody has: they cost time and nothing else
_FALSE_WHOLE = 50.0  # the same of whole values that are judged in the end
_DEGREES, _DEGREES_JUDGED = 2000.0, 100.0
"""Degrees of freedom for each false one that is taken out, or judged: what it fits is noise, which then seems less."""

_ROUNDS = 2  # of taking out what stands out, and looking at the rest again

Block = tuple[list[Numbers], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Limits:
    """Scores above which something is done.

    Attributes:
        judged: whole values are judged in the end.
        survives: prefixes are looked at further.
        whole, prefix: what stands out, a whole value or a prefix, is taken out.
        last: the level hashes whole values.
    """

    judged: float
    survives: float
    whole: float
    prefix: float
    last: bool


class Search:
    """Passes over the levels of a collection.

    Attributes:
        found: the sequences of whole values that are to be judged, with the best of their scores.
        num_scored: how many different whole values were ever scored.

    Args:
        alphabet: of the collection.
        levels: with their counts, in order.
    """

    def __init__(self, alphabet: Prefixes, levels: Sequence[Level]):
        self._alphabet, self._levels = alphabet, levels
        self._grammar = Grammar(alphabet)
        self._peeled: list[dict[Numbers, None]] = [{} for _ in levels]
        self._tried: set[tuple[int, Numbers]] = set()
        self._firm: dict[Numbers, None] = {}  # whole values that stood out
        self.found: dict[Numbers, float] = {}
        self.num_scored = 0

    def run(self) -> None:
        """All passes, or fewer if one finds nothing new."""
        for _ in range(PASSES):
            before = len(self.found)
            survivors: list[Numbers] = [()]
            for number in range(len(self._levels)):
                survivors = self._search_level(number, survivors)
            if len(self.found) == before:
                break

    def p_values(self, values: Sequence[str]) -> np.ndarray:
        """(S,): how often chance gives a text that nobody holds so large an estimate, when all of these are peeled.

        The estimate is the mean over the levels at which the value is whole, weighted by their reports.
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
        """Score what begins with the survivors of the level before; returns those of this one, the best first."""
        length, level = self._alphabet.lengths[number], self._levels[number]
        blocks = list(self._blocks(number, survivors))
        limits = self._limits(blocks, level, last=length is None)
        peeled = self._peeled[number] | dict.fromkeys(value[:length] for value in self._firm)
        for left in reversed(range(_ROUNDS)):
            fit = level.peel(list(peeled))
            others = dict(self._above(limits, level, fit, blocks))
            scores = others | dict(zip(peeled, fit.scores.tolist()))
            new = [sequence for sequence in _best(others, limits) if sequence not in peeled]
            new = new[: max(0, level.most - len(peeled))]
            if not new or not left:
                break
            peeled |= dict.fromkeys(new)
        outstanding = _best(scores, limits)
        self._peeled[number] = dict.fromkeys(sequence for sequence in outstanding if sequence in peeled)
        self._firm |= dict.fromkeys(sequence for sequence in outstanding if sequence[-1] == END)
        for sequence, score in scores.items():
            if sequence[-1] == END and score > limits.judged:
                self.found[sequence] = max(score, self.found.get(sequence, 0.0))
        surviving = [s for s, score in scores.items() if s[-1] != END and score > limits.survives]
        return sorted(surviving, key=scores.__getitem__, reverse=True)[:SURVIVORS]

    def _blocks(self, number: int, survivors: list[Numbers]) -> Iterator[tuple[list[Numbers], np.ndarray]]:
        """Parents of one length, and which numbers may follow each, (parents, T + 1) bool; counts what is new."""
        size, length = len(self._alphabet.tokens) + 1, self._alphabet.lengths[number]
        steps = 1 if length is None else length - (self._alphabet.lengths[number - 1] or 0) * (number > 0)
        parents = survivors[: max(1, MOST_SCORED // size**steps)]
        for step in range(steps):
            if not parents:
                return
            allowed = np.zeros((len(parents), size), dtype=bool)
            allowed[:, END] = True
            if step == steps - 1:
                allowed = np.array(list(map(self._grammar.followers, parents)))
            for parent, numbers in zip(parents, allowed):
                if (number, parent) not in self._tried:
                    self._tried.add((number, parent))
                    self.num_scored += int(numbers.sum()) if length is None else 1
            yield parents, allowed
            if step < steps - 1:
                parents = self._grammar.extended(parents)

    def _limits(self, blocks: Sequence[Block], level: Level, last: bool) -> Limits:
        every = sum(int(allowed.sum()) for _, allowed in blocks)
        whole = every if last else sum(len(allowed) for _, allowed in blocks)
        firm = level.degrees / _DEGREES
        return Limits(
            judged=_limit(min(_FALSE_WHOLE, level.degrees / _DEGREES_JUDGED), whole),
            survives=_limit(_FALSE_SURVIVORS, every - whole),
            whole=_limit(firm, whole),
            prefix=_limit(firm, every - whole),
            last=last,
        )

    def _above(
        self, limits: Limits, level: Level, fit: Peeled, blocks: Sequence[Block]
    ) -> Iterator[tuple[Numbers, float]]:
        """The sequences whose score is above the limit of their kind, and their scores."""
        least = np.full(len(self._alphabet.tokens) + 1, limits.judged if limits.last else limits.survives)
        least[END] = limits.judged
        for parents, allowed in blocks:
            for start, scores in level.scores(fit, parents, limits.last):
                here = (scores > least) & allowed[start : start + len(scores)]
                for row, column in np.argwhere(here).tolist():
                    ending = (END,) if limits.last and column != END else ()
                    yield (*parents[start + row], column, *ending), float(scores[row, column])


def _best(scores: dict[Numbers, float], limits: Limits) -> list[Numbers]:
    """The sequences that stand out, the best first."""
    chosen = [s for s, score in scores.items() if score > (limits.whole if s[-1] == END else limits.prefix)]
    return sorted(chosen, key=scores.__getitem__, reverse=True)


def _limit(false: float, size: int) -> float:
    """The score that so many of a number of prefixes that nobody has exceed, on average."""
    return float(-special.ndtri(min(false / max(size, 1), 0.5)))
