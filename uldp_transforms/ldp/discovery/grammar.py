"""Which tokens can follow a sequence under greedy matching."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from uldp_transforms.ldp.alphabets.prefixes import END, Prefixes

Numbers = tuple[int, ...]
"""A prefix of a text as a sequence of tokens."""


class Grammar:
    """The token sequences that greedy matching can produce: no longer token fits at any position.

    Args:
        alphabet: alphabet that defines the tokens.
    """

    def __init__(self, alphabet: Prefixes):
        self._alphabet = alphabet
        self._longest = max(map(len, alphabet.tokens))
        self._missing: dict[str, list[str]] = defaultdict(list)  # proper prefix of tokens -> their remainders
        self._begin: dict[str, list[int]] = defaultdict(list)  # text -> numbers of the tokens that begin with it
        for number, token in enumerate(alphabet.tokens, 1):
            for length in range(1, len(token)):
                self._begin[token[:length]].append(number)
                self._missing[token[:length]].append(token[length:])
            self._begin[token].append(number)

    def followers(self, sequence: Numbers) -> np.ndarray:
        """(T + 1,) bool: the tokens that can follow a sequence; END always can.

        A token cannot follow if it would complete, with the last tokens of the sequence, a longer token, which greedy
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
        """Each sequence extended by each token that can follow it."""
        return [
            (*sequence, number)
            for sequence in sequences
            for number in np.flatnonzero(self.followers(sequence)).tolist()
            if number != END
        ]
