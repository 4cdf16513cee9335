"""An open alphabet: any text, hashed into a few buckets, differently in each cohort."""

from __future__ import annotations

import dataclasses
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, places_in_list, table_of_rows
from uldp_transforms.ldp.checks import require_int, require_texts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import canonical, hash_words
from uldp_transforms.ldp.sampling import small_integers

_WORDS_AT_ONCE = 65_536  # half a megabyte of words stays in the cache


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hashed(Alphabet):
    """Bucket ``h_c(value)`` in cohort c. Every text is sensitive unless a public list says that it is not.

    Symbols 0..num_buckets-1 are the buckets of sensitive texts, in which no listed text is ever counted. Listed texts
    have one symbol each, in the list's order. If ``num_clear_buckets`` is given, they share that many separate buckets,
    by one hash function per cohort.

    Attributes:
        num_buckets: k, for sensitive texts. Near e**epsilon + 1 the estimates are most precise.
        seed: names the hash functions; public.
        num_hashes: h, buckets of one sensitive text, in [1, 16]; above 1 only without non-sensitive texts.
        non_sensitive: the public list; None: everything is sensitive.
        num_clear_buckets: buckets for the listed texts; None: one symbol each.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5 (O-RR, O-RAPPOR). With non-sensitive texts the report of a
    sensitive one still depends on its buckets only, and the guarantee is that of the mechanism over symbols;
    docs/estimation.md.
    """

    id: ClassVar[str] = "hashed"
    num_buckets: int
    seed: int = 0
    num_hashes: int = 1
    non_sensitive: tuple[str, ...] | None = None
    num_clear_buckets: int | None = None

    def __post_init__(self) -> None:
        require_int("Hashed.num_buckets", self.num_buckets, 2, 1 << 16)
        require_int("Hashed.seed", self.seed, 0, (1 << 64) - 1)
        require_int("Hashed.num_hashes", self.num_hashes, 1, 16 if self.non_sensitive is None else 1)
        if self.non_sensitive is not None:
            require_texts("Hashed.non_sensitive", self.non_sensitive, at_least=1)
            listed = tuple(map(canonical, self.non_sensitive))
            require_texts("Hashed.non_sensitive", listed, at_least=1)
            object.__setattr__(self, "non_sensitive", listed)
        if self.num_clear_buckets is not None:
            if self.non_sensitive is None:
                raise SpecError(
                    f"Hashed.num_clear_buckets must be absent without Hashed.non_sensitive, "
                    f"got {self.num_clear_buckets!r}"
                )
            require_int("Hashed.num_clear_buckets", self.num_clear_buckets, 2, 1 << 16)

    def to_json(self) -> dict[str, Any]:
        """Omits an empty public list, so that older fingerprints stay valid."""
        return {key: value for key, value in super().to_json().items() if value is not None}

    @property
    def clear_values(self) -> tuple[str, ...]:
        return self.non_sensitive or ()

    @property
    def num_symbols(self) -> int:
        return self.num_buckets + (self.num_clear_buckets or len(self.clear_values))

    @property
    def num_sensitive(self) -> int:
        return self.num_buckets

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        if self.num_clear_buckets is not None:
            return super().has_own_symbol(values)
        return self._listed(values) >= 0

    def _listed(self, values: tuple[str, ...]) -> np.ndarray:
        """(S,) int64: position in the public list, -1 for sensitive texts."""
        return places_in_list(self.clear_values, values)

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        return table_of_rows(self.symbol_rows(values, num_cohorts), self.num_hashes)

    def symbol_rows(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        listed = self._listed(values)
        clear = np.flatnonzero(listed >= 0)
        num_words = num_cohorts * self.num_hashes
        rows = np.empty((len(values), num_words), dtype=np.uint32 if len(clear) else np.uint16)
        step = max(1, _WORDS_AT_ONCE // num_words)
        for start in range(0, len(values), step):
            words = hash_words(values[start : start + step], self.seed, num_words)
            rows[start : start + step] = small_integers(words, self.num_buckets)
        if self.num_clear_buckets is None:
            rows[clear] = self.num_buckets + listed[clear, np.newaxis]
        elif len(clear):
            words = hash_words([values[i] for i in clear], self.seed, num_words)
            rows[clear] = self.num_buckets + small_integers(words, self.num_clear_buckets).astype(np.uint32)
        return rows

    @property
    def client_rule(self) -> dict[str, Any]:
        return {
            "rule": "hash",
            "num_buckets": self.num_buckets,
            "seed": str(self.seed),
            "num_hashes": self.num_hashes,
            "listed": list(self.clear_values),
            "num_clear_buckets": self.num_clear_buckets,
        }

    def check_cohorts(self, num_cohorts: int) -> None:
        if num_cohorts < 2:
            raise SpecError(
                f"Collection.num_cohorts must be at least 2 for a hashed alphabet (one hash function cannot tell "
                f"colliding values apart), got {num_cohorts}"
            )
