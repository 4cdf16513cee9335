"""Prior probabilities of prefixes: learned from the scores of shorter prefixes at earlier levels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.discovery.grammar import Numbers

_HELD = 50.0  # prior expected number of frequent values
_ENDS = 0.2  # prior share of frequent prefixes that are whole values
_EVEN = 0.5  # weight of the uniform distribution of last tokens, beside the learned one
_SPREAD = 25.0  # additional variance of the scores of prefixes that people hold


class Beliefs:
    """Logarithms of the expected numbers of frequent values that begin with a prefix.

    A frequent prefix is followed by END with one fixed probability, otherwise by any token, all equally likely. For
    values too long to be hashed as a whole before the last level, the probabilities of the last token are learned from
    the values that have already ended. So the prior of a whole value comes from other people than its test.

    Args:
        alphabet: alphabet of the collection.
    """

    def __init__(self, alphabet: Prefixes):
        self._lengths = alphabet.lengths
        size = len(alphabet.tokens)
        self._follow = np.full(size + 1, np.log((1 - _ENDS) / size))
        self._follow[END] = np.log(_ENDS)
        self._steps: list[float] = self._follow.tolist()
        self._last = self._follow.copy()
        self._known: dict[Numbers, float] = {(): float(np.log(_HELD))}
        self._ended: dict[Numbers, float] = {}  # probabilities of whole values found before the last level

    def of(self, sequence: Numbers) -> float:
        """The log expectation for one sequence, before it is scored itself."""
        number, parent = sequence[-1], sequence[:-1]
        if not parent:  # one of all possible first tokens
            return self._known[()] + float(self._follow[-1])
        if number == END and self._ends_last(sequence) and parent not in self._known:
            return self._of_parent(parent[:-1]) + float(self._last[parent[-1]])
        return self._of_parent(parent) + float(self._follow[number])

    def of_block(self, parents: Sequence[Numbers], last: bool) -> np.ndarray:
        """(parents, T + 1) float64: for every parent extended by every token, and at the last level also by END."""
        own = np.array([self._of_parent(parent) for parent in parents])
        beliefs = own[:, np.newaxis] + (self._last if last else self._follow)
        for row, parent in enumerate(parents):
            if not parent:
                beliefs[row, END] = self.of((END,))
        return np.asarray(beliefs)

    def learn(self, scores: dict[Numbers, float], surviving: Iterable[Numbers]) -> None:
        """Update the beliefs with the scores of a level: of surviving prefixes and of whole values."""
        surviving = list(surviving)
        whole = [s for s in scores if s[-1] == END and len(s) > 1 and not self._ends_last(s)]
        sequences = surviving + whole
        prior = np.array([self.of(sequence) for sequence in sequences])
        odds = prior + evidence(np.array([scores[sequence] for sequence in sequences]))
        likely = (-np.logaddexp(0, -odds)).tolist()
        self._known |= dict(zip(surviving, likely))
        self._ended |= dict(zip(whole, likely[len(surviving) :]))
        self._learn_last()

    def _of_parent(self, parent: Numbers) -> float:
        cut = next(cut for cut in range(len(parent), -1, -1) if parent[:cut] in self._known)
        return self._known[parent[:cut]] + sum(self._steps[number] for number in parent[cut:])

    def _ends_last(self, sequence: Numbers) -> bool:
        """Whether only the last level hashes the sequence as a whole."""
        return len(self._lengths) == 1 or len(sequence) > (self._lengths[-2] or 0)

    def _learn_last(self) -> None:
        """Learn the distribution of last tokens from the values that have ended."""
        size = len(self._last) - 1
        shares = np.zeros(size + 1)
        for sequence, likely in self._ended.items():
            shares[sequence[-2]] += np.exp(likely)
        even = np.full(size + 1, 1 / size)
        learned = _EVEN * even + (1 - _EVEN) * shares / shares.sum() if shares.sum() > 0 else even
        self._last[END + 1 :] = np.log((1 - _ENDS) * learned[END + 1 :])


def evidence(scores: np.ndarray) -> np.ndarray:
    """Log Bayes factor of scores: a normal score with a positive mean against a standard normal one.

    Without holders a score is standard normal; with holders its mean has a half-normal prior.
    """
    ratio = _SPREAD / (1 + _SPREAD)
    return np.asarray(
        ratio * scores**2 / 2 - np.log1p(_SPREAD) / 2 + np.log(2.0) + special.log_ndtr(scores * np.sqrt(ratio))
    )
