"""Which tokens can follow a sequence that greedy matching has made."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes

Numbers = tuple[int, ...]
"""Of tokens, from the beginning of a text."""


class Grammar:
    """The sequences of tokens that texts are cut into: nowhere in them would a longer token have fit.

    Args:
        alphabet: whose tokens these are.
    """

    def __init__(self, alphabet: Prefixes):
        self._alphabet = alphabet
        self._longest = max(map(len, alphabet.tokens))
        self._missing: dict[str, list[str]] = defaultdict(list)  # of a text that begins a token: what the token adds
        self._begin: dict[str, list[int]] = defaultdict(list)  # of a text: the numbers of the tokens that it begins
        for number, token in enumerate(alphabet.tokens, 1):
            for length in range(1, len(token) + 1):
                self._begin[token[:length]].append(number)
                if length < len(token):
                    self._missing[token[:length]].append(token[length:])

    def followers(self, sequence: Numbers) -> np.ndarray:
        """(T + 1,) bool: the numbers that may come next; END always may.

        A token may not if, together with the last few of the sequence, it would complete a longer one, which greedy
        matching would have taken instead.
        """
        allowed = np.ones(len(self._alphabet.tokens) + 1, dtype=bool)
        tail = ""
        for number in reversed(sequence):
            tail = self._alphabet.tokens[number - 1] + tail
            if len(tail) >= self._longest:
                break
            for missing in self._missing.get(tail, ()):
                allowed[self._begin.get(missing, [])] = False
        allowed[END] = True
        return allowed

    def extended(self, sequences: Sequence[Numbers]) -> list[Numbers]:
        """Each sequence with each token that may follow it."""
        return [
            (*sequence, number)
            for sequence in sequences
            for number in np.flatnonzero(self.followers(sequence)).tolist()
            if number != END
        ]
