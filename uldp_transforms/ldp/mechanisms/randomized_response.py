"""Randomized response: the report is one symbol. k-RR protects all symbols, uRR the sensitive ones.

Noise is one uniform sensitive symbol, which supports itself: phi = 1/v, eta = 0.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Hashable, Iterator
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
import scipy

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.integer_reports import ONE_SYMBOL, IntegerReportMechanism
from uldp_transforms.ldp.mechanisms.mechanism import About, Kind
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.mechanisms.set_report import SetReportMechanism
from uldp_transforms.ldp.sampling import WORD, WordSource, below, exp_bounds, uniform_integers

_CHUNK = 32_768  # reports whose temporaries stay in the cache


@dataclasses.dataclass(frozen=True, kw_only=True)
class UtilityOptimizedRR(IntegerReportMechanism, SetReportMechanism):
    """uRR: sends its symbol with probability (E-1)/(v+E-1), else a uniform *sensitive* symbol; E = e**epsilon.

    A sensitive symbol x is reported by x with probability E/(v+E-1) and by any other with 1/(v+E-1); a non-sensitive
    symbol is reported only by itself. With v = K it is k-RR, with v = 1 and K = 2 Mangat's randomized response.

    Payload: the symbol, little-endian, in 1, 2 or 4 bytes.

    Source: Murakami and Kawamoto 2019, Definition 4.
    """

    id: ClassVar[str] = "urr"
    about: ClassVar[About] = About(
        sends="one symbol; non-sensitive ones often in clear",
        protects="sensitive values. One sensitive of two: Mangat 1994",
        source="uRR: Murakami & Kawamoto 2019, definition 4; ULDP, which implies OSLDP",
        payload=ONE_SYMBOL,
    )

    @property
    def layout(self) -> Hashable:
        return type(self), self.num_symbols, self.num_sensitive

    @functools.cached_property
    def noise_weight(self) -> int:
        """Number of the 2**64 words that send a given noise symbol; rounded up, in favour of privacy."""
        low, _ = exp_bounds(self.coin_epsilon)
        share = WORD / (self.num_sensitive - 1 + low)
        return -(-share.numerator // share.denominator)

    @functools.cached_property
    def keep_weight(self) -> int:
        """Number of words that keep the symbol: all except the noise words, so that one word decides everything."""
        return WORD - self.num_sensitive * self.noise_weight

    @functools.cached_property
    def report_noise_weight(self) -> int:
        """The noise weight of the second coin; 0 without memos."""
        share = WORD * (1 - self._second_coin) / self.num_sensitive
        return 0 if self.epsilon_inf is None else max(1, -(-share.numerator // share.denominator))

    @functools.cached_property
    def repeat_weight(self) -> int:
        """Number of words that keep the memo: all except the noise words of the second coin."""
        return WORD - self.num_sensitive * self.report_noise_weight

    @property
    def support_size(self) -> int:
        return 1

    @property
    def noise_rate(self) -> Fraction:
        return Fraction(1, self.num_sensitive)

    @property
    def pair_rate(self) -> Fraction:
        return Fraction(0)

    @property
    def triple_rate(self) -> Fraction:
        return Fraction(0)

    @property
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        return [(self.noise_rate, 1 / self.noise_rate)]

    @property
    def num_outputs(self) -> int:
        return self.num_symbols

    @property
    def memo_sampler(self) -> dict[str, Any]:
        return {"sampler": "symbol", "keep_weight": str(self.keep_weight), "noise_weight": str(self.noise_weight)}

    @property
    def client_sampler(self) -> dict[str, Any]:
        second = {} if self.epsilon_inf is None else {"noise_weight": str(self.report_noise_weight)}
        return super().client_sampler | second

    def kinds(self) -> Iterator[Kind]:
        """The kept symbol, and the equal slices of the other words for each noise symbol."""
        noise = (1 - self.informative) / self.num_sensitive
        own = self.informative + noise
        yield Kind("a sensitive symbol", ("that symbol", "another sensitive symbol"), (own, noise))
        if self.num_sensitive < self.num_symbols:
            yield Kind("a sensitive symbol", ("that symbol", "a non-sensitive symbol"), (own, noise))

    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        noise = uniform_integers(source.words(len(symbols)), self.num_sensitive)
        return self.as_payloads(np.where(given, symbols, noise))

    def reveal(self, payloads: np.ndarray, rows: np.ndarray, symbols: np.ndarray) -> None:
        payloads[rows] = self.as_payloads(symbols)

    def draw_memos(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """One word per report: the first ``keep_weight`` words keep the symbol, equal slices of the rest are noise.

        Using one word for both coin and noise halves the randomness that the base class needs.
        """
        return self._kept_or_noise(symbols, self.keep_weight, self.noise_weight, source)

    def draw_reports(self, memos: np.ndarray, source: WordSource) -> np.ndarray:
        """One word per report: the first ``repeat_weight`` words keep the memo, equal slices of the rest are noise."""
        return self._kept_or_noise(self.integers(memos), self.repeat_weight, self.report_noise_weight, source)

    def _kept_or_noise(self, symbols: np.ndarray, keep_weight: int, slice_: int, source: WordSource) -> np.ndarray:
        out = np.empty(len(symbols), dtype=self.dtype)
        keep, noise_weight = np.uint64(keep_weight), np.uint64(slice_)
        for start in range(0, len(symbols), _CHUNK):
            part = slice(start, start + _CHUNK)
            words = source.words(len(symbols[part]))
            noise = (words - keep) // noise_weight
            out[part] = np.where(below(words, keep_weight), symbols[part], noise.astype(np.int64))
        return self.as_payloads(out)

    def count(self, payloads: np.ndarray, groups: np.ndarray, num_groups: int) -> np.ndarray:
        cells = np.zeros(num_groups * self.num_symbols, dtype=np.int64)
        symbols = self.integers(payloads)
        for start in range(0, len(symbols), _CHUNK):
            part = slice(start, start + _CHUNK)
            index = symbols[part].astype(np.int64)
            if num_groups > 1:
                index += groups[part].astype(np.int64) * self.num_symbols
            np.add.at(cells, index, 1)
        return cells.reshape(num_groups, self.num_symbols)

    def supports(self, payloads: np.ndarray) -> np.ndarray:
        supported: np.ndarray = self.integers(payloads)[:, np.newaxis] == np.arange(self.num_symbols)
        return supported

    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        return np.where(self.integers(payloads) < self.num_sensitive, -np.log(self.num_sensitive), 0.0)

    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        for symbol in range(self.num_sensitive):
            yield self.as_bytes(symbol), Fraction(1, self.num_sensitive), frozenset({symbol})

    def clear_law(self, symbol: int) -> Iterator[tuple[bytes, Fraction]]:
        yield self.as_bytes(symbol), Fraction(1)

    has_closed_form: ClassVar[bool] = True
    one_place: ClassVar[bool] = True

    def most_likely(self, cells: np.ndarray) -> np.ndarray:
        """Water-filling: p_x = max(c_x / level - 1 / gain, 0) for sensitive x, R_z / level for the others.

        The level is the one at which frequencies sum to 1; it is found by testing all numbers of sensitive symbols
        above 0 at once. O(v log v). If the unbiased estimate has no negative entry, both are equal.

        Source: Kairouz, Bonawitz and Ramage 2016, Proposition 6 (k-RR); derived here for uRR.
        """
        v, dry = self.num_sensitive, 1 / self.gain
        descending = np.sort(cells[:v])[::-1].astype(np.float64)
        clear = cells[v:].sum()
        levels = (np.append(0.0, np.cumsum(descending)) + clear) / (1 + dry * np.arange(v + 1))
        level = levels[np.count_nonzero(descending > dry * levels[1:])]
        return np.append(np.maximum(cells[:v] / level - dry, 0), cells[v:] / level)

    def outcomes_of_counts(self, counts: CohortCounts) -> Outcomes:
        cohorts, symbols = np.nonzero(counts.cells)
        protected = symbols < self.num_sensitive
        supported = np.where(protected, self.gain, 1.0)
        shape = (len(symbols), self.num_symbols)
        return Outcomes(
            counts=counts.cells[cohorts, symbols].astype(np.float64),
            cohorts=cohorts,
            base=protected.astype(np.float64),
            rows=scipy.sparse.csr_array((supported, (np.arange(len(symbols)), symbols)), shape=shape),
        )


@dataclasses.dataclass(frozen=True, kw_only=True)
class KaryRR(UtilityOptimizedRR):
    """k-RR: sends its symbol with probability (E-1)/(K+E-1), else a uniform symbol. K = 2 is Warner's.

    Source: Kairouz, Bonawitz and Ramage 2016, section 4.1.
    """

    id: ClassVar[str] = "krr"
    about: ClassVar[About] = About(
        sends="one symbol",
        protects="every value: epsilon-LDP. Two symbols: Warner 1965",
        source="k-RR, and O-RR over `hashed`: Kairouz, Bonawitz & Ramage 2016, sections 4.1, 5.1",
        payload=ONE_SYMBOL,
    )
    protects_all: ClassVar[bool] = True
