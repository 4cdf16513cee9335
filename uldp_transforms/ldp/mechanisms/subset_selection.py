"""Subset selection: the report is a set of d sensitive symbols. SS(d) protects all symbols, uSS(d) the sensitive ones.

Noise is a uniform subset, which supports its members. It has d members, or d + 1 with probability q (0 for one size):

    phi = E[D]/v,    eta = E[D(D-1)]/(E[D](v-1)),    eta3 = E[D(D-1)(D-2)]/(E[D](v-1)(v-2)),    D the size.

Given a supported symbol the size is D with its probability times D / E[D], and the other members are a uniform subset
of the rest. So the odds of every set change by the same factor, for any size.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from uldp_transforms.ldp.checks import is_number, require_int, require_number
from uldp_transforms.ldp.counts.bit_totals import count_bits, count_ones
from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.bit_reports import BitReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind, exact_sums
from uldp_transforms.ldp.mechanisms.noise_bits import MANY_REPORTS
from uldp_transforms.ldp.mechanisms.set_channel import SetChannel
from uldp_transforms.ldp.mechanisms.statistic import Statistic
from uldp_transforms.ldp.mechanisms.subset_scores import Scores, scores_of
from uldp_transforms.ldp.reasons import Reason
from uldp_transforms.ldp.sampling import WORD, WordSource, below, floor_weight

SMALLEST_SHARE = 1e-6
"""Minimum share of either set size, so that rounding to 64 bits is negligible."""

_CHUNK_WORDS = 131_072

_MOST_SHORT_KEYS = 4_096
"""Number of symbols up to which keys of 16 bits have ties in few reports."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedSubsetSelection(BitReportMechanism):
    """uSS(d): d sensitive symbols that include the own one with probability d E / (d E + v - d); or the clear symbol.

    With d = 1 it is uRR. The payload is that of bit reports, with d or d + 1 bits set in a protected report.

    Attributes:
        subset_size: d, in [1, max(1, v - 1)]; None: the size with the least variance if everybody holds a sensitive
            value, near v / (E + 1).
        larger_share: q, in [1e-6, 1 - 1e-6], the share of noise sets with d + 1 symbols; needs ``subset_size``. A set
            of all v symbols is allowed only beside smaller sets. None: all sets have d symbols.

    Source: Ye and Barg 2018 (subset selection); with non-sensitive symbols: Yoon, Park, Nam and Lee 2025.
    """

    id: ClassVar[str] = "uss"
    about: ClassVar[About] = About(
        sends="a set of sensitive symbols, or a non-sensitive one in clear; never far from optimal",
        protects="sensitive values",
        source="Yoon et al. 2025",
        payload="as for `urap`; a protected report has exactly `subset_size` bits set, or one more with `larger_share`",
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
    larger_share: float | None = dataclasses.field(
        default=None,
        metadata={
            "schema": {
                "description": "Share of noise that has one symbol more than subset_size, which must be given; null or "
                "absent: none.",
                "type": ["number", "null"],
                "minimum": SMALLEST_SHARE,
                "maximum": 1 - SMALLEST_SHARE,
            }
        },
    )

    def check_own_fields(self) -> None:
        super().check_own_fields()
        name, share = type(self).__name__, self.larger_share
        if self.subset_size is not None:
            largest = max(1, self.num_sensitive - 1)
            require_int(f"{name}.subset_size", self.subset_size, 1, largest)
        if share is None:
            return
        allowed = f"a number in [{SMALLEST_SHARE:g}, {1 - SMALLEST_SHARE:g}]"
        in_range = is_number(share) and SMALLEST_SHARE <= share <= 1 - SMALLEST_SHARE
        require_number(f"{name}.larger_share", share, allowed, in_range)
        object.__setattr__(self, "larger_share", float(share))
        largest = min(self.num_sensitive, self.num_symbols - 1) - 1
        if self.subset_size is None or self.subset_size > largest:
            raise SpecError(
                f"{name}.larger_share must be absent without subset_size or with one above {largest}, "
                f"got {share!r} with {self.subset_size!r}"
            )

    @property
    def size(self) -> int:
        """d, as given or chosen."""
        if self.subset_size is not None:
            return self.subset_size
        v, e = self.num_sensitive, math.exp(self.epsilon)
        low = min(max(math.floor(v / (e + 1)), 1), max(1, v - 1))
        sizes = range(low, min(low + 1, max(1, v - 1)) + 1)
        return min(sizes, key=lambda d: (d * e + v - d) ** 2 / (d * max(v - d, 1)))

    @functools.cached_property
    def larger_weight(self) -> int:
        """q * 2**64: noise has d + 1 symbols if a word is below it; 0 for one size."""
        return floor_weight(Fraction(self.larger_share)) if self.larger_share is not None else 0

    @functools.cached_property
    def larger_own_weight(self) -> int:
        """The weight of the size d + 1 given a supported symbol: q (d + 1) / (d + q) * 2**64, rounded down."""
        return (self.size + 1) * self.larger_weight * WORD // (self.size * WORD + self.larger_weight)

    @functools.cached_property
    def size_law(self) -> dict[int, tuple[Fraction, Fraction]]:
        """Size of a set -> its exact probabilities as noise and given a supported symbol."""
        noise, own = Fraction(self.larger_weight, WORD), Fraction(self.larger_own_weight, WORD)
        larger = {self.size + 1: (noise, own)} if self.larger_weight else {}
        return {self.size: (1 - noise, 1 - own)} | larger

    @property
    def support_size(self) -> int | None:
        return None if self.larger_weight else self.size

    @property
    def num_protected_outputs(self) -> int:
        return sum(math.comb(self.num_sensitive, size) for size in self.size_law)

    @property
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        noise = {size: law[0] / math.comb(self.num_sensitive, size) for size, law in self.size_law.items()}
        return [(probability, self.boost(size)) for size, probability in noise.items()]

    @property
    def memo_sampler(self) -> dict[str, Any]:
        sampler = {"sampler": "subset", "keep_weight": str(self.keep_weight), "subset_size": self.size}
        weights = {"larger_weight": str(self.larger_weight), "larger_own_weight": str(self.larger_own_weight)}
        return sampler | (weights if self.larger_weight else {})

    def kinds(self) -> Iterator[Kind]:
        """A set with the own symbol, as noise or as one of the sets that contain it; and any other set, as noise
        only."""
        v, keep = self.num_sensitive, self.informative
        for size, (of_noise, of_own) in self.size_law.items():
            noise = (1 - keep) * of_noise * Fraction(1, math.comb(v, size))
            own = noise + keep * of_own * Fraction(1, math.comb(v - 1, size - 1))
            what = f"a set of {size}" if self.larger_weight else "a set"
            yield Kind(what, ("a symbol in it", "a symbol that is not in it"), (own, noise))

    def _moment(self, order: int) -> Fraction:
        """Probability that noise supports ``order`` given symbols: E[D (D - 1) ...] over v (v - 1) ..., ``order``
        factors."""
        mean = sum(law[0] * math.perm(size, order) for size, law in self.size_law.items())
        return Fraction(mean) / max(1, math.perm(self.num_sensitive, order))

    @property
    def noise_rate(self) -> Fraction:
        return self._moment(1)

    @property
    def pair_rate(self) -> Fraction:
        return self._moment(2) / self._moment(1)

    @property
    def triple_rate(self) -> Fraction:
        return self._moment(3) / self._moment(1)

    def boost(self, support_size: int) -> Fraction:
        noise, own = self.size_law[support_size]
        return own / noise * Fraction(self.num_sensitive, support_size)

    @functools.cached_property
    def largest_boost(self) -> Fraction:
        return max(map(self.boost, self.size_law))

    @functools.cached_property
    def _laws(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes, and their shares in noise and given a supported symbol; each (Z,) float64."""
        noise, own = np.array([[float(share) for share in law] for law in self.size_law.values()]).T
        return np.array(list(self.size_law), dtype=np.float64), noise, own

    @functools.cached_property
    def scores(self) -> Scores:
        """Weights of supports in sets of each size, and of the sizes themselves."""
        sizes, noise, own = self._laws
        present = self.noise_share * noise + self.kappa * own
        return scores_of(self.num_symbols, self.num_sensitive, self.gain, sizes, present, own)

    @functools.cached_property
    def statistic(self) -> Statistic:
        """Supports; with two sizes, weighted and centred, with corrections by size (``subset_scores``)."""
        if not self.larger_weight:
            return super().statistic
        v, (sizes, noise, own), (weights, correction) = self.num_sensitive, self._laws, self.scores
        apart, supported = (v - sizes) / (v - 1), weights * sizes / v
        present = self.noise_share * noise + self.kappa * own
        share = correction / self.kappa * (supported - present @ supported)
        step = self.kappa * float(own @ (weights * apart))
        return Statistic(
            noise=noise,
            own=own,
            sizes=sizes,
            single=sizes / v,
            pair=(sizes - 1) / (v - 1),
            apart=apart,
            triple=(sizes - 1) * (sizes - 2) / max((v - 1) * (v - 2), 1),
            weights=weights,
            offsets=share * step / v - supported,
            shifts=-share / max(self.num_symbols - v, 1),
        )

    @property
    def memo(self) -> SetChannel:
        """The mechanism that draws memos, with the scores of reports: memos are observed only through reports."""
        memo = super().memo
        vars(memo)["scores"] = self.scores
        return memo

    @property
    def num_cells(self) -> int:
        return self.num_symbols + self.num_sensitive * (len(self.size_law) - 1)

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        cells = super().count(payloads, groups, num_groups)
        if not self.larger_weight:
            return cells
        bits = payloads[:, : self.bit_bytes]
        larger = np.bitwise_count(bits).sum(axis=1) == self.size + 1
        return np.hstack([cells, count_bits(bits[larger], self.num_sensitive, groups[larger], num_groups)])

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        """Supports of sets of one size sum to size times their number; those of larger sets are listed separately."""
        yield from super().count_violations(counts)
        v, size = self.num_sensitive, self.size
        supports, protected = counts.cells[:, :v], self.num_protected(counts)
        if self.larger_weight:
            of_larger = counts.cells[:, self.num_symbols :]
            sums = exact_sums(of_larger)
            larger = sums // (size + 1)
            smaller, protected = supports - of_larger, protected - larger
            yield f"cells of larger sets that sum to {size + 1} a set", larger * (size + 1) != sums
            yield "no cell of larger sets above their number", of_larger.max(axis=1) > larger
            outside = (smaller.min(axis=1) < 0) | (smaller.max(axis=1) > protected)
            yield "no cell of smaller sets below 0 or above their number", outside
            supports = smaller
        yield f"cells of sets that sum to {size} a set", exact_sums(supports) != size * protected

    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        sizes = self._draw_sizes(given, source)
        bits = np.empty((len(symbols), self.bit_bytes), dtype=np.uint8)
        rows = max(1, _CHUNK_WORDS // self.num_sensitive)
        for start in range(0, len(symbols), rows):
            part = slice(start, start + rows)
            chosen = self._draw(symbols[part], given[part], sizes[part], source)
            bits[part] = np.packbits(chosen, axis=1, bitorder="little")
        return self.protected(bits)

    def _draw_sizes(self, given: np.ndarray, source: WordSource) -> np.ndarray:
        """Set sizes (n,) int64; draws one word each if there are two sizes."""
        if not self.larger_weight:
            return np.full(len(given), self.size)
        words = source.words(len(given))
        return self.size + np.where(given, below(words, self.larger_own_weight), below(words, self.larger_weight))

    def _draw(self, symbols: np.ndarray, given: np.ndarray, sizes: np.ndarray, source: WordSource) -> np.ndarray:
        """(n, v) bool sets with ``sizes`` (n,) members, including ``symbols`` (n,) where ``given`` (n,) is True.

        Each symbol draws a key, and the d smallest are chosen; a symbol that must be included gets 0. Rows with a tie
        at the d-th place are drawn again, so every subset has the same probability. Keys are words; for many reports,
        16 bits.
        """
        chosen = np.empty((len(given), self.num_sensitive), dtype=bool)
        places = [size - 1 for size in self.size_law]
        short = len(given) >= MANY_REPORTS and self.num_sensitive <= _MOST_SHORT_KEYS
        again = np.arange(len(given))
        while len(again):
            keys = self._draw_keys(len(again), short, source)
            forced = np.flatnonzero(given[again])
            keys[forced, symbols[again[forced]]] = 0
            last = np.partition(keys, places, axis=1)[np.arange(len(again)), sizes[again] - 1]
            chosen[again] = keys <= last[:, np.newaxis]
            again = again[chosen[again].sum(axis=1) != sizes[again]]
        return chosen

    def _draw_keys(self, num_rows: int, short: bool, source: WordSource) -> np.ndarray:
        """(num_rows, v) independent, uniform keys, writable: uint16 if they are short, else uint64."""
        if not short:
            drawn: np.ndarray = source.words(num_rows, self.num_sensitive).copy()
            return drawn
        words = source.words(num_rows, -(-self.num_sensitive // 4)).astype("<u8")
        keys: np.ndarray = words.view("<u2")[:, : self.num_sensitive]
        return keys

    def violations(self, payloads: np.ndarray) -> Iterator[tuple[Reason, np.ndarray]]:
        yield from super().violations(payloads)
        set_bits = count_ones(payloads[:, : self.bit_bytes])
        impossible = np.all([set_bits != size for size in self.size_law], axis=0)
        yield Reason.IMPOSSIBLE_REPORT, impossible & ~payloads[:, self.bit_bytes :].any(axis=1)

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        protected = ~payloads[:, self.bit_bytes :].any(axis=1)
        set_bits = np.bitwise_count(payloads[:, : self.bit_bytes]).sum(axis=1)
        logs = {size: math.log(law[0] / math.comb(self.num_sensitive, size)) for size, law in self.size_law.items()}
        return np.where(protected, np.where(set_bits == self.size, logs[self.size], logs[max(logs)]), 0.0)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        for size, (noise, _) in self.size_law.items():
            probability = noise / math.comb(self.num_sensitive, size)
            for subset in itertools.combinations(range(self.num_sensitive), size):
                yield self.bits_payload(frozenset(subset)), probability, frozenset(subset)


@dataclasses.dataclass(frozen=True, kw_only=True)
class SubsetSelection(UtilityOptimizedSubsetSelection):
    """SS(d): d symbols, with the own one with probability d E / (d E + K - d).

    With the best d it is asymptotically optimal among all LDP mechanisms.

    Source: Ye and Barg 2018.
    """

    id: ClassVar[str] = "ss"
    about: ClassVar[About] = About(
        sends="a set of `subset_size` symbols (default: the best size if everybody's value is sensitive); optimal "
        "for many reports",
        protects="every value",
        source="Ye & Barg 2018",
        payload="bits as for `rappor`; exactly `subset_size` of them are set, or one more with `larger_share`",
    )
    protects_all: ClassVar[bool] = True
