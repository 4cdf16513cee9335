"""An open alphabet: any text, hashed into a few buckets, differently in each cohort."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.base import Alphabet
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import hash_words
from uldp_transforms.ldp.sampling import uniform_integers
from uldp_transforms.ldp.specs import require_int


@dataclasses.dataclass(frozen=True, kw_only=True)
class Hashed(Alphabet):
    """Bucket ``h_c(value)`` in cohort c; every value is sensitive.

    Attributes:
        num_buckets: k. Near e**epsilon + 1 the estimates are most precise.
        seed: names the hash functions; public.
        num_hashes: hash functions per cohort; 1.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5 (O-RR, O-RAPPOR).
    """

    id: ClassVar[str] = "hashed"
    num_buckets: int
    seed: int = 0
    num_hashes: int = 1

    def __post_init__(self) -> None:
        require_int("Hashed.num_buckets", self.num_buckets, 2, 1 << 16)
        require_int("Hashed.seed", self.seed, 0, (1 << 64) - 1)
        require_int("Hashed.num_hashes", self.num_hashes, 1, 1)

    @property
    def num_symbols(self) -> int:
        return self.num_buckets

    @property
    def num_sensitive(self) -> int:
        return self.num_buckets

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        words = hash_words(values, self.seed, num_cohorts)
        return np.ascontiguousarray(uniform_integers(words, self.num_buckets).T)

    def check_cohorts(self, num_cohorts: int) -> None:
        if num_cohorts < 2:
            raise SpecError(
                f"Collection.num_cohorts must be at least 2 for a hashed alphabet (one hash function cannot tell "
                f"colliding values apart), got {num_cohorts}"
            )
