"""A known list folded into few buckets by public permutations, different ones in each cohort."""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.alphabets.alphabet import Alphabet, index_of, places_in_list, table_of_rows
from uldp_transforms.ldp.alphabets.closed import closed_values, sensitive_values
from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.hashing import hash_words

_RANKED_CELLS = 4_000_000  # words that are ranked at a time
_FEW_VALUES = 512  # whose equations are solved exactly
_NEVER = 1e-9  # expected number of pairs with equal buckets that needs no check
_MOST_UNEVEN = 1e8  # ratio of squared singular values; the solver refuses a condition number from it


@dataclasses.dataclass(frozen=True, kw_only=True)
class Permuted(Alphabet):
    """Bucket ``permutation_c(value) mod num_buckets`` in cohort c; a value that is not sensitive has its own symbol.

    The permutation of cohort c ranks the sensitive values by their hash words in that cohort, so buckets are balanced:
    the numbers of values in any two buckets differ by at most one. Symbols 0..num_buckets-1 are the buckets; the other
    values follow, in the order of ``values``.

    Attributes:
        values: all values, in the order in which estimates list them.
        num_buckets: k, at most the number of sensitive values. With as many buckets it is the plain mechanism.
        seed: names the permutations; public.
        sensitive: those among ``values`` that must be protected, at least two; None: all of them.
        num_hashes: h, permutations of a cohort, in [1, 16], each of which gives a value one bucket; above 1 only if all
            values are sensitive.

    Source: Kairouz, Bonawitz and Ramage 2016, section 5.4 (closed-alphabet O-RR and O-RAPPOR).
    """

    id: ClassVar[str] = "permuted"
    values: tuple[str, ...]
    num_buckets: int
    seed: int = 0
    sensitive: tuple[str, ...] | None = None
    num_hashes: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "values", closed_values("Permuted", self.values))
        if self.sensitive is not None:
            object.__setattr__(self, "sensitive", sensitive_values("Permuted", self.sensitive, self.values, at_least=2))
        require_int("Permuted.num_buckets", self.num_buckets, 2, min(len(self.folded), 1 << 16))
        require_int("Permuted.seed", self.seed, 0, (1 << 64) - 1)
        require_int("Permuted.num_hashes", self.num_hashes, 1, 1 if self.clear_values else 16)

    def to_json(self) -> dict[str, Any]:
        """Omits the defaults of ``sensitive`` and ``num_hashes``, so that older fingerprints stay valid."""
        omitted = {"sensitive": None, "num_hashes": 1}
        return {name: value for name, value in super().to_json().items() if value != omitted.get(name, "")}

    @functools.cached_property
    def folded(self) -> tuple[str, ...]:
        """The values that share buckets: the sensitive ones, in the order of ``values``."""
        if self.sensitive is None:
            return self.values
        chosen = frozenset(self.sensitive)
        return tuple(value for value in self.values if value in chosen)

    @functools.cached_property
    def clear_values(self) -> tuple[str, ...]:
        """The values that are not sensitive, in the order of ``values``."""
        folded = frozenset(self.folded)
        return tuple(value for value in self.values if value not in folded)

    @property
    def known_values(self) -> tuple[str, ...]:
        return self.values

    @property
    def num_symbols(self) -> int:
        return self.num_buckets + len(self.clear_values)

    @property
    def num_sensitive(self) -> int:
        return self.num_buckets

    def has_own_symbol(self, values: tuple[str, ...]) -> np.ndarray:
        return places_in_list(self.clear_values, values) >= 0

    def symbol_table(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        return table_of_rows(self.symbol_rows(values, num_cohorts), self.num_hashes)

    def symbol_rows(self, values: tuple[str, ...], num_cohorts: int) -> np.ndarray:
        places = index_of("Permuted.values", values, _places(self))
        folded, num_words = places < len(self.folded), num_cohorts * self.num_hashes
        rows = np.empty((len(values), num_words), dtype=np.uint16 if folded.all() else np.uint32)
        if folded.any():
            rows[folded] = _buckets(self.folded, self.num_buckets, self.seed, num_words)[places[folded]]
        rows[~folded] = (places[~folded] - len(self.folded) + self.num_buckets)[:, np.newaxis]
        return rows

    @property
    def client_rule(self) -> dict[str, Any]:
        parameters = {"num_buckets": self.num_buckets, "seed": str(self.seed)}
        several = {"num_hashes": self.num_hashes} if self.num_hashes > 1 else {}
        listed = {"listed": list(self.clear_values)} if self.clear_values else {}
        return {"rule": "permutation", "values": list(self.folded)} | parameters | several | listed

    def check_cohorts(self, num_cohorts: int) -> None:
        needed = -(-(len(self.folded) - 1) // (self.num_buckets - 1))
        if num_cohorts < needed:
            raise SpecError(
                f"Collection.num_cohorts must be at least {needed} to tell {len(self.folded)} values apart with "
                f"{self.num_buckets} buckets, got {num_cohorts}"
            )
        if not _tells_apart(self, num_cohorts):
            raise SpecError(
                f"Collection.alphabet.seed must name permutations that tell {len(self.folded)} values apart in "
                f"{num_cohorts} cohorts, got {self.seed}, whose buckets leave some shares open; use another seed, or "
                "more cohorts"
            )


@functools.lru_cache(maxsize=16)
def _places(alphabet: Permuted) -> dict[str, int]:
    """The place of each value: those that are folded, then all others."""
    return {value: place for place, value in enumerate((*alphabet.folded, *alphabet.clear_values))}


@functools.lru_cache(maxsize=64)
def _tells_apart(alphabet: Permuted, num_cohorts: int) -> bool:
    """Whether bucket frequencies determine the shares of all values; computed only where chance may decide otherwise.

    If equations are few, those of up to 512 values must be well conditioned. Of more values, no two may have the same
    buckets in all cohorts.
    """
    size, k, h = len(alphabet.folded), alphabet.num_buckets, alphabet.num_hashes
    few = size <= _FEW_VALUES and num_cohorts * (k - 1) < 2 * size
    if not few and 2 * math.log(size) - num_cohorts * h * math.log(k) < math.log(_NEVER):
        return True
    buckets = _buckets(alphabet.folded, k, alphabet.seed, num_cohorts * h)
    if not few:
        return len(np.unique(buckets, axis=0)) == size
    cells = np.zeros((size, num_cohorts, k))
    for column, of_column in enumerate(buckets.T):
        cells[np.arange(size), column // h, of_column] = 1
    cells -= cells.mean(axis=2, keepdims=True)
    equations = np.column_stack([cells.reshape(size, -1), np.ones(size)])  # the last: shares have a known sum
    squares = np.linalg.eigvalsh(equations @ equations.T)
    return bool(squares[-1] < _MOST_UNEVEN * squares[0])


@functools.lru_cache(maxsize=8)
def _buckets(values: tuple[str, ...], num_buckets: int, seed: int, num_words: int) -> np.ndarray:
    """(S, num_words) uint16: the rank of each value by its words, modulo the number of buckets."""
    words = hash_words(values, seed, num_words)
    buckets = np.empty(words.shape, dtype=np.uint16)
    of_ranks = (np.arange(len(values)) % num_buckets).astype(np.uint16)[:, np.newaxis]
    step = max(1, _RANKED_CELLS // len(values))
    for start in range(0, num_words, step):
        order = np.argsort(words[:, start : start + step], axis=0, kind="stable")
        np.put_along_axis(buckets[:, start : start + step], order, of_ranks, axis=0)
    return buckets
