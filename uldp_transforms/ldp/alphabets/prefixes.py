"""An open alphabet whose frequent values can be found without a list: prefixes of a text, hashed."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, Part, places_in_list, table_of_rows
from uldp_transforms.ldp.checks import describe, require_int, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical

MAX_TOKENS = 1 << 16
MAX_LEVELS = 8
MAX_LENGTH = 64
MAX_BUCKETS = 1 << 12
"""Maximum number of buckets: hash words have 16 bits, so the sizes of two buckets differ by at most one sixteenth."""

END = 0
"""Number that marks the end of a token sequence."""

_DOMAIN = b"uldp-prefix-1\x00"


@dataclasses.dataclass(frozen=True, kw_only=True)
class Prefixes(Alphabet):
    """Hashes the first few tokens of a text in some cohorts, more tokens in others, and the whole text in the rest.

    A text is split from its beginning into the longest matching tokens; a character at which no token begins is a token
    of its own. Cohort c has level c mod G: it hashes the first ``lengths[level]`` tokens, or all tokens and END. So the
    collector can find frequent texts that nobody listed, from short prefixes to whole texts
    (``uldp_transforms.ldp.discovery``).

    Symbols 0..num_buckets-1 are the buckets of sensitive texts; the listed ones have one symbol each, in the list's
    order.

    Attributes:
        num_buckets: k, for sensitive texts. Near e**epsilon + 1 the estimates are most precise.
        seed: names the hash functions; public.
        tokens: different texts, made from public text of the same kind (``uldp tokens``), never from people's values.
        lengths: G rising numbers of tokens, and null at the end: all tokens.
        non_sensitive: the public list; None: everything is sensitive.

    Source: hashing of longer and longer prefixes: Bassily, Nissim, Stemmer and Thakurta 2017 (TreeHist); sums of a
    word for each token and position: Zobrist 1970, Patrascu and Thorup 2012.
    """

    id: ClassVar[str] = "prefixes"
    num_buckets: int
    seed: int = 0
    tokens: tuple[str, ...]
    lengths: tuple[int | None, ...]
    non_sensitive: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        require_int("Prefixes.num_buckets", self.num_buckets, 2, MAX_BUCKETS)
        require_int("Prefixes.seed", self.seed, 0, (1 << 64) - 1)
        for name in ("tokens", "non_sensitive"):
            texts = getattr(self, name)
            if texts is None and name == "non_sensitive":
                continue
            require_texts(f"Prefixes.{name}", texts, at_least=1)
            kept = tuple(map(canonical, texts))
            require_texts(f"Prefixes.{name}", kept, at_least=1)
            object.__setattr__(self, name, kept)
        if "" in self.tokens or len(self.tokens) > MAX_TOKENS:
            came = "an empty one" if "" in self.tokens else f"{len(self.tokens)}"
            raise SpecError(f"Prefixes.tokens must be at most {MAX_TOKENS} texts, none of them empty, got {came}")
        self._check_lengths()

    def _check_lengths(self) -> None:
        given = self.lengths
        listed = list(given) if isinstance(given, (list, tuple)) else []
        numbers = [n for n in listed[:-1] if isinstance(n, int) and not isinstance(n, bool) and 1 <= n <= MAX_LENGTH]
        rising = numbers == sorted(set(numbers)) == listed[:-1]
        if not (rising and listed and listed[-1] is None and len(listed) <= MAX_LEVELS):
            raise SpecError(
                f"Prefixes.lengths must be at most {MAX_LEVELS - 1} increasing integers in [1, "
                f"{MAX_LENGTH}] followed by null, got {describe(given)}"
            )
        object.__setattr__(self, "lengths", tuple(listed))

    def to_json(self) -> dict[str, Any]:
        """Without the public list where there is none."""
        return {key: value for key, value in super().to_json().items() if value is not None}

    @property
    def clear_values(self) -> tuple[str, ...]:
        return self.non_sensitive or ()

    @property
    def num_symbols(self) -> int:
        return self.num_buckets + len(self.clear_values)

    @property
    def num_sensitive(self) -> int:
        return self.num_buckets

    @property
    def num_levels(self) -> int:
        """G."""
        return len(self.lengths)

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        return self._listed(values) >= 0

    def _listed(self, values: Sequence[str]) -> np.ndarray:
        """(S,) int64: position in the public list, -1 for sensitive texts."""
        return places_in_list(self.clear_values, values)

    def sequence(self, value: str) -> tuple[int, ...]:
        """The numbers of the tokens of a canonical value, followed by END.

        Token i has the number i + 1; a single character without a token has its code point + T + 1, with T tokens.
        """
        numbers, lengths = _tokens(self.tokens)
        found, at = [], 0
        while at < len(value):
            for length in lengths:
                number = numbers.get(value[at : at + length])
                if number is not None:
                    break
            else:
                number, length = len(self.tokens) + 1 + ord(value[at]), 1
            found.append(number)
            at += length
        return (*found, END)

    def text(self, sequence: Sequence[int]) -> str:
        """The text of token numbers, without END."""
        size = len(self.tokens)
        return "".join(self.tokens[n - 1] if n <= size else chr(n - size - 1) for n in sequence if n != END)

    def words(self, position: int, numbers: Sequence[int], num_cohorts: int) -> np.ndarray:
        """Contribution of tokens at a position to the sum whose upper part is the bucket; (len(numbers), C) uint16."""
        prefix = _DOMAIN + self.seed.to_bytes(8, "little") + position.to_bytes(4, "little")
        words = np.empty((len(numbers), num_cohorts), dtype="<u2")
        for row, number in enumerate(numbers):
            stream = hashlib.shake_128(prefix + int(number).to_bytes(4, "little")).digest(2 * num_cohorts)
            words[row] = np.frombuffer(stream, dtype="<u2")
        return words.astype(np.uint16, copy=False)

    def sums(self, sequences: Sequence[Sequence[int]], num_cohorts: int, level: int) -> np.ndarray:
        """Sums, modulo 2**16, of the words of each sequence, up to the length of the level, in the cohorts of the
        level.

        Args:
            sequences: S of them, of numbers.
            num_cohorts: C, of all levels.
            level: in [0, G).

        Returns:
            (S, number of cohorts of the level) uint16.
        """
        own, length = slice(level, None, self.num_levels), self.lengths[level]
        taken = [sequence[:length] for sequence in sequences]
        sums = np.zeros((len(taken), len(range(num_cohorts)[own])), dtype=np.uint16)
        for position, column in enumerate(itertools.zip_longest(*taken, fillvalue=-1)):
            numbers = np.array(column)
            here = np.flatnonzero(numbers >= 0)
            different, which = np.unique(numbers[here], return_inverse=True)
            sums[here] += self.words(position, different.tolist(), num_cohorts)[:, own][which]
        return sums

    def buckets(self, sums: np.ndarray) -> np.ndarray:
        """floor(sum k / 2**16), of any shape; uint16."""
        products = sums.astype(np.uint32) * np.uint32(self.num_buckets)
        upper: np.ndarray = (products >> np.uint32(16)).astype(np.uint16)
        return upper

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        return table_of_rows(self.symbol_rows(values, num_cohorts))

    def symbol_rows(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        sequences = list(map(self.sequence, values))
        rows = np.empty((len(values), num_cohorts), dtype=np.uint32)
        for level in range(self.num_levels):
            rows[:, level :: self.num_levels] = self.buckets(self.sums(sequences, num_cohorts, level))
        return self._with_listed(rows, values)

    def _with_listed(self, rows: np.ndarray, values: tuple[str, ...]) -> np.ndarray:
        """The rows (S, ...) of symbols, with the symbols of listed values inserted."""
        listed = self._listed(values)
        clear = np.flatnonzero(listed >= 0)
        rows[clear] = self.num_buckets + listed[clear, np.newaxis]
        return rows

    def rows_of_level(self, values: tuple[str, ...], num_cohorts: int, level: int) -> np.ndarray:
        """``symbol_rows`` in the cohorts of one level alone."""
        sums = self.sums(list(map(self.sequence, values)), num_cohorts, level)
        return self._with_listed(self.buckets(sums).astype(np.uint32), values)

    @property
    def whole_cohorts(self) -> slice:
        return slice(self.num_levels - 1, None, self.num_levels)

    def parts(self, values: tuple[str, ...]) -> tuple[Part, ...]:
        return tuple(self._parts(list(map(self.sequence, values)), values))

    def _parts(self, sequences: Sequence[tuple[int, ...]], values: tuple[str, ...]) -> Iterator[Part]:
        for level, length in enumerate(self.lengths):
            first: dict[tuple[int, ...], int] = {}
            member = np.array(
                [first.setdefault(sequence[:length], len(first)) for sequence in sequences], dtype=np.int64
            )
            place = np.unique(member, return_index=True)[1]
            yield Part(
                alphabet=OneLevel(whole=self, level=level),
                cohorts=slice(level, None, self.num_levels),
                values=tuple(values[i] for i in place),
                member=member,
                whole=np.array([length is None or len(sequence) <= length for sequence in sequences], dtype=bool),
            )

    @property
    def client_rule(self) -> dict[str, Any]:
        return {
            "rule": "prefixes",
            "num_buckets": self.num_buckets,
            "seed": str(self.seed),
            "tokens": list(self.tokens),
            "lengths": list(self.lengths),
            "listed": list(self.clear_values),
        }

    def check_cohorts(self, num_cohorts: int) -> None:
        least = 2 * self.num_levels
        if num_cohorts < least:
            raise SpecError(
                f"Collection.num_cohorts must be at least {least} for {self.num_levels} levels of prefixes (one hash "
                f"function cannot tell colliding values apart), got {num_cohorts}"
            )


@dataclasses.dataclass(frozen=True, kw_only=True)
class OneLevel(Alphabet):
    """The alphabet of the cohorts of one level, for estimators; values with the same prefix have the same symbols.

    Attributes:
        whole: the alphabet.
        level: whose cohorts, in their order, are the cohorts of this alphabet.
    """

    id: ClassVar[str] = "level"
    whole: Prefixes
    level: int

    @property
    def num_symbols(self) -> int:
        return self.whole.num_symbols

    @property
    def num_sensitive(self) -> int:
        return self.whole.num_sensitive

    def symbol_rows(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        last = self.level + self.whole.num_levels * (num_cohorts - 1)
        return self.whole.rows_of_level(values, last + 1, self.level)

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        return table_of_rows(self.symbol_rows(values, num_cohorts))

    @property
    def client_rule(self) -> dict[str, Any]:
        return self.whole.client_rule


@functools.lru_cache(maxsize=16)
def _tokens(tokens: tuple[str, ...]) -> tuple[dict[str, int], tuple[int, ...]]:
    """Numbers of tokens, and their lengths from the longest."""
    numbers = {token: number for number, token in enumerate(tokens, 1)}
    return numbers, tuple(sorted(set(map(len, tokens)), reverse=True))
