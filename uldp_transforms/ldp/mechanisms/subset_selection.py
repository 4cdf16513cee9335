"""Subset selection: the report is a set of d sensitive symbols. SS(d) protects all symbols, uSS(d) the sensitive ones.

Noise is a uniform d-subset, which supports its members: phi = d/v, eta = (d-1)/(v-1), eta3 = eta (d-2)/(v-2). Given
a supported symbol the other d - 1 members are a uniform subset of the rest.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import require_int
from uldp_transforms.ldp.mechanisms.bit_reports import BitReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WordSource

_CHUNK_WORDS = 1 << 17


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedSubsetSelection(BitReportMechanism):
    """uSS(d): d sensitive symbols, the own one among them with probability d E / (d E + v - d); or the symbol in clear.

    With d = 1 it is uRR. The payload of bit reports, with exactly d bits set in a protected report.

    Attributes:
        subset_size: d, in [1, max(1, v - 1)]; None: the size with the least variance when everybody is sensitive,
            near v / (E + 1).

    Source: Ye and Barg 2018 (subset selection); with non-sensitive symbols: Yoon, Park, Nam and Lee 2025.
    """

    id: ClassVar[str] = "uss"
    about: ClassVar[About] = About(
        sends="a set of sensitive symbols, or a non-sensitive one in clear; never far from optimal",
        protects="sensitive values",
        source="Yoon et al. 2025",
        payload="as of `urap`, exactly `subset_size` bits set in a protected report",
    )

    subset_size: int | None = dataclasses.field(
        default=None,
        metadata={
            "schema": {
                "description": "Symbols of a set, fewer than the sensitive ones; null or absent: the best size.",
                "type": ["integer", "null"],
                "minimum": 1,
            }
        },
    )

    def check_own_fields(self) -> None:
        super().check_own_fields()
        if self.subset_size is not None:
            largest = max(1, self.num_sensitive - 1)
            require_int(f"{type(self).__name__}.subset_size", self.subset_size, 1, largest)

    @property
    def size(self) -> int:
        """d."""
        if self.subset_size is not None:
            return self.subset_size
        v, e = self.num_sensitive, math.exp(self.epsilon)
        low = min(max(math.floor(v / (e + 1)), 1), max(1, v - 1))
        sizes = range(low, min(low + 1, max(1, v - 1)) + 1)
        return min(sizes, key=lambda d: (d * e + v - d) ** 2 / (d * max(v - d, 1)))

    @property
    def support_size(self) -> int:
        return self.size

    @property
    def num_protected_outputs(self) -> int:
        return math.comb(self.num_sensitive, self.size)

    @property
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        return [(Fraction(1, self.num_protected_outputs), 1 / self.noise_rate)]

    @property
    def memo_sampler(self) -> dict[str, Any]:
        return {"sampler": "subset", "keep_weight": str(self.keep_weight), "subset_size": self.size}

    def kinds(self) -> Iterator[Kind]:
        """A set with the own symbol comes as noise, or as one of the sets that hold it; any other only as noise."""
        v, d, keep = self.num_sensitive, self.size, self.informative
        noise = (1 - keep) * Fraction(1, math.comb(v, d))
        own = noise + keep * Fraction(1, math.comb(v - 1, d - 1))
        yield Kind("a set", ("a symbol in it", "a symbol that is not in it"), (own, noise))

    @property
    def noise_rate(self) -> Fraction:
        return Fraction(self.size, self.num_sensitive)

    @property
    def pair_rate(self) -> Fraction:
        return Fraction(self.size - 1, max(1, self.num_sensitive - 1))

    @property
    def triple_rate(self) -> Fraction:
        return self.pair_rate * Fraction(max(0, self.size - 2), max(1, self.num_sensitive - 2))

    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        bits = np.empty((len(symbols), self.bit_bytes), dtype=np.uint8)
        rows = max(1, _CHUNK_WORDS // self.num_sensitive)
        for start in range(0, len(symbols), rows):
            part = slice(start, start + rows)
            bits[part] = np.packbits(self._draw(symbols[part], given[part], source), axis=1, bitorder="little")
        return self.protected(bits)

    def _draw(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        """(n, v) bool with d symbols a row, among them that of ``symbols`` (n,) where it is ``given`` (n,).

        Each symbol draws a word, the d smallest win; a symbol that has to be in draws 0. Rows in which the d-th place
        is shared are drawn again, so every subset is equally likely.
        """
        chosen = np.empty((len(given), self.num_sensitive), dtype=bool)
        again = np.arange(len(given))
        while len(again):
            keys = source.words(len(again), self.num_sensitive).copy()
            forced = np.flatnonzero(given[again])
            keys[forced, symbols[again[forced]]] = 0
            last = np.partition(keys, self.size - 1, axis=1)[:, self.size - 1 : self.size]
            chosen[again] = keys <= last
            again = again[chosen[again].sum(axis=1) != self.size]
        return chosen

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        yield from super().violations(payloads)
        set_bits = np.bitwise_count(payloads[:, : self.bit_bytes]).sum(axis=1)
        yield Reason.IMPOSSIBLE_REPORT, (set_bits != self.size) & ~payloads[:, self.bit_bytes :].any(axis=1)

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        protected = ~payloads[:, self.bit_bytes :].any(axis=1)
        return np.where(protected, -math.log(math.comb(self.num_sensitive, self.size)), 0.0)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        probability = Fraction(1, math.comb(self.num_sensitive, self.size))
        for subset in itertools.combinations(range(self.num_sensitive), self.size):
            yield self.bits_payload(frozenset(subset)), probability, frozenset(subset)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SubsetSelection(UtilityOptimizedSubsetSelection):
    """SS(d): d symbols, the own one among them with probability d E / (d E + K - d).

    With the best d it is optimal among all LDP mechanisms as n grows.

    Source: Ye and Barg 2018.
    """

    id: ClassVar[str] = "ss"
    about: ClassVar[About] = About(
        sends="a set of `subset_size` symbols (none given: the best size if everybody's value is sensitive); optimal "
        "for many reports",
        protects="every value",
        source="Ye & Barg 2018",
        payload="bits as of `rappor`, exactly `subset_size` of them set",
    )
    protects_all: ClassVar[bool] = True
