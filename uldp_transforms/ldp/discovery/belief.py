"""What is believed of a prefix before it is scored: what the levels before said of those that it begins with."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from scipy import special

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes
from uldp_transforms.ldp.discovery.grammar import Numbers

_HELD = 50.0  # frequent values that are expected before anything is known
_ENDS = 0.2  # part of the frequent prefixes that end where they are
_EVEN = 0.5  # part of the last tokens that are as likely as any other, whatever was learned
_SPREAD = 25.0  # variance of the scores of prefixes that people have, besides that of all scores


class Beliefs:
    """Logarithms of the expected numbers of frequent values that begin with a prefix.

    A frequent prefix is followed by END with one fixed probability, otherwise by any token, all equally likely; the
    last tokens of values too long to be hashed whole before the last level are as likely as those that ended others.
    So what is believed of a whole value comes from other people than those who decide about it.

    Args:
        alphabet: of the collection.
    """

    def __init__(self, alphabet: Prefixes):
        self._lengths = alphabet.lengths
        size = len(alphabet.tokens)
        self._follow = np.full(size + 1, np.log((1 - _ENDS) / size))
        self._follow[END] = np.log(_ENDS)
        self._last = self._follow.copy()
        self._known: dict[Numbers, float] = {(): float(np.log(_HELD))}
        self._ended: dict[Numbers, float] = {}  # how likely whole values are that a level before the last found

    def of(self, sequence: Numbers) -> float:
        """Of one sequence, before it is scored itself."""
        number, parent = sequence[-1], sequence[:-1]
        if not parent:  # the empty text is one first token of many
            return self._known[()] + float(self._follow[-1])
        if number == END and self._ends_last(sequence) and parent not in self._known:
            return self._of_parent(parent[:-1]) + float(self._last[parent[-1]])
        return self._of_parent(parent) + float(self._follow[number])

    def of_block(self, parents: Sequence[Numbers], last: bool) -> np.ndarray:
        """(parents, T + 1) float64: of every parent with every number behind it, and an END too at the last level."""
        own = np.array([self._of_parent(parent) for parent in parents])
        beliefs = own[:, np.newaxis] + (self._last if last else self._follow)
        for row, parent in enumerate(parents):
            if not parent:
                beliefs[row, END] = self.of((END,))
        return np.asarray(beliefs)

    def learn(self, scores: dict[Numbers, float], surviving: Iterable[Numbers]) -> None:
        """Take in the scores of a level, of prefixes that survive and of whole values."""
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
        cut = len(parent)
        while parent[:cut] not in self._known:
            cut -= 1
        return self._known[parent[:cut]] + float(sum(self._follow[number] for number in parent[cut:]))

    def _ends_last(self, sequence: Numbers) -> bool:
        """Whether only the last level hashes the whole sequence."""
        return len(self._lengths) == 1 or len(sequence) > (self._lengths[-2] or 0)

    def _learn_last(self) -> None:
        """The tokens that ended values are likely to end others."""
        size = len(self._last) - 1
        shares = np.zeros(size + 1)
        for sequence, likely in self._ended.items():
            if sequence[-2] <= size:
                shares[sequence[-2]] += np.exp(likely)
        even = np.full(size + 1, 1 / size)
        learned = _EVEN * even + (1 - _EVEN) * shares / shares.sum() if shares.sum() > 0 else even
        self._last[END + 1 :] = np.log((1 - _ENDS) * learned[END + 1 :])


def evidence(scores: np.ndarray) -> np.ndarray:
    """Logarithm of how much more likely scores are if people have the prefix: normal, with a positive mean.

    Without people a score is standard normal; with them its mean is half normal.
    """
    ratio = _SPREAD / (1 + _SPREAD)
    return np.asarray(
        ratio * scores**2 / 2 - np.log1p(_SPREAD) / 2 + np.log(2.0) + special.log_ndtr(scores * np.sqrt(ratio))
    )
