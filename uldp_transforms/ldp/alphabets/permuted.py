"""A closed alphabet folded into fewer buckets by one public permutation per cohort."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, index_of
from uldp_transforms.ldp.alphabets.closed import closed_values
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import hash_words


@dataclasses.dataclass(frozen=True, kw_only=True)
class Permuted(Alphabet):
    """Bucket ``permutation_c(value) mod num_buckets`` in cohort c; every value is sensitive.

    The permutation of cohort c ranks the values by their hash words in that cohort, so buckets are balanced: the
    numbers of values in any two buckets differ by at most one.

    Attributes:
        values: all values, in the order in which estimates list them.
        num_buckets: k, at most the number of values. With as many buckets as values it is the plain mechanism.
        seed: names the permutations; public.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5.4 (closed-alphabet O-RR and O-RAPPOR).
    """

    id: ClassVar[str] = "permuted"
    values: tuple[str, ...]
    num_buckets: int
    seed: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", closed_values("Permuted", self.values))
        require_int("Permuted.num_buckets", self.num_buckets, 2, min(len(self.values), 1 << 16))
        require_int("Permuted.seed", self.seed, 0, (1 << 64) - 1)

    @property
    def known_values(self) -> tuple[str, ...]:
        return self.values

    @property
    def num_symbols(self) -> int:
        return self.num_buckets

    @property
    def num_sensitive(self) -> int:
        return self.num_buckets

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        positions = index_of("Permuted.values", values, {v: i for i, v in enumerate(self.values)})
        return _buckets(self, num_cohorts)[:, positions]

    @property
    def client_rule(self) -> dict[str, Any]:
        parameters = {"num_buckets": self.num_buckets, "seed": str(self.seed)}
        return {"rule": "permutation", "values": list(self.values)} | parameters

    def check_cohorts(self, num_cohorts: int) -> None:
        needed = -(-(len(self.values) - 1) // (self.num_buckets - 1))
        if num_cohorts < needed:
            raise SpecError(
                f"Collection.num_cohorts must be at least {needed} to tell {len(self.values)} values apart with "
                f"{self.num_buckets} buckets, got {num_cohorts}"
            )


@functools.lru_cache(maxsize=16)
def _buckets(alphabet: Permuted, num_cohorts: int) -> np.ndarray:
    words = hash_words(alphabet.values, alphabet.seed, num_cohorts)
    order = np.argsort(words, axis=0, kind="stable")
    ranks = np.argsort(order, axis=0, kind="stable")
    return np.ascontiguousarray((ranks % alphabet.num_buckets).T)
