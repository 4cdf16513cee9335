"""The set-report family: common formulas for almost every mechanism of the field.

Everything that follows from (phi, eta, eta3, kappa) is implemented once. ``set_channel`` defines how reports are drawn:
coins, memos, exact probabilities. This module defines estimation from their counts: the inverse, its variances,
covariances and intervals, and the likelihood. A member of the family is one module that defines how to draw noise, how
to draw it given a supported symbol, how to count supports in arrays, and the wire format.

Notation: n reports, C cohorts, K symbols, v of them sensitive, M = K counted cells.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator

import numpy as np
import scipy

from uldp_transforms.ldp.counts.cohort_counts import CohortCounts
from uldp_transforms.ldp.mechanisms.binomial_law import Confidence
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals, score_intervals
from uldp_transforms.ldp.mechanisms.mechanism import exact_sums
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.mechanisms.set_channel import SetChannel
from uldp_transforms.ldp.mechanisms.statistic import Moments, Statistic

_DENSE_CELLS = 16_777_216  # maximum size of a dense support matrix that is processed in one piece
_SMALLEST = 1e-300
_SHORT = 8  # maximum number of payload bytes for grouping equal reports


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetReportMechanism(SetChannel):
    """A member of the family: the channel of its reports, and estimation from their counts; see the module."""

    def num_protected(self, counts: CohortCounts) -> np.ndarray:
        """(C,) Python integers: numbers of protected reports."""
        protected: np.ndarray = counts.num_reports - exact_sums(counts.cells[:, self.num_sensitive : self.num_symbols])
        return protected

    def count_violations(self, counts: CohortCounts) -> Iterator[tuple[str, np.ndarray]]:
        yield from super().count_violations(counts)
        protected = self.num_protected(counts)
        yield "no more clear reports than reports", protected < 0
        if not self.clear_rate:
            supported = counts.cells[:, : self.num_sensitive].max(axis=1)
            yield "no sensitive cell above the reports that are not clear", supported > protected

    # ------------------------------------------------------------------ estimation from counts

    @functools.cached_property
    def miss(self) -> float:
        """Pr(x is supported | another sensitive symbol)."""
        return self.noise_share * float(self.noise_rate) + self.kappa * float(self.pair_rate)

    @functools.cached_property
    def delta(self) -> float:
        """Pr(x is supported | x) - Pr(x is supported | another sensitive symbol)."""
        return self.kappa * float(1 - self.pair_rate)

    @functools.cached_property
    def _revealed(self) -> tuple[float, float]:
        """Rate at which clear reports are counted for a sensitive symbol, and the correction to the rate of informative
        reports of another symbol: eta for plain supports."""
        return float(self.clear_rate), self.statistic.mean.other - float(self.clear_rate)

    @functools.cached_property
    def statistic(self) -> Statistic:
        """The linear function of the counts that estimates frequencies: by default, supports."""
        return Statistic.of_supports(self.noise_rate, self.pair_rate, self.triple_rate)

    @functools.cached_property
    def _affine(self) -> tuple[float, float]:
        """Mean contribution of one report to the statistic of a sensitive symbol that nobody holds, after the
        correction
        for clear reports, and its increase for a holder; ``miss`` and ``delta`` for plain supports."""
        mean = self.statistic.mean
        return self.noise_share * mean.noise + self.kappa * mean.other, self.kappa * mean.step

    @property
    def has_binomial_estimates(self) -> bool:
        """True if the estimate of each symbol is an affine function of that symbol's count alone."""
        alone = self.num_sensitive == self.num_symbols or not self._revealed[1]
        return alone and self.num_cells == self.num_symbols

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """mu_x for x < v, kappa p_z for z >= v; then mu_x of each kind of report except the first; see
        ``Mechanism``."""
        v, kinds = self.num_sensitive, self.statistic
        own, sensitive = frequencies[..., :v], frequencies[..., :v].sum(axis=-1, keepdims=True)
        later = [
            self.noise_share * noise * single + self.kappa * share * (own + pair * (sensitive - own))
            for noise, share, single, pair in list(zip(kinds.noise, kinds.own, kinds.single, kinds.pair))[1:]
        ]
        base = self._null_response(frequencies)
        return np.concatenate([base + self.delta * own, self.kappa * frequencies[..., v:], *later], axis=-1)

    def _null_response(self, frequencies: np.ndarray) -> np.ndarray:
        """(..., 1): rate at which a sensitive symbol that nobody holds is counted."""
        sensitive = frequencies[..., : self.num_sensitive].sum(axis=-1, keepdims=True)
        others = float(self.pair_rate) * sensitive
        if self._revealed[0]:
            others = others + self._revealed[0] * frequencies[..., self.num_sensitive :].sum(axis=-1, keepdims=True)
        counted: np.ndarray = self.noise_share * float(self.noise_rate) + self.kappa * others
        return counted

    def invert(self, counts: CohortCounts) -> np.ndarray:
        """Unbiased symbol frequencies; see ``Mechanism.invert``.

        Revealed-aware: the inverse uses that a clear report is certainly not sensitive. With X the statistic of x and Z
        the shift (c_x and 0 for plain supports),

            p_x = (X / n + eta R / n - miss) / delta,    p_z = R_z / (n kappa) + Z / n,    R = sum of the R_z

        If clear reports carry noise that is counted too (``clear_rate``), eta is replaced by eta - clear_rate.
        """
        raw, shift = self._inverted(counts)
        raw[:, self.num_sensitive :] += shift
        return raw

    def invert_alone(self, counts: CohortCounts) -> np.ndarray:
        return self._inverted(counts)[0]

    def inverses(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray]:
        alone, shift = self._inverted(counts)
        raw = alone.copy()
        raw[:, self.num_sensitive :] += shift
        return raw, alone

    @property
    def has_equal_rows(self) -> bool:
        return len(self.statistic.sizes) == 1  # several kinds of reports are added up by a product of matrices

    def _inverted(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray]:
        """``invert_alone`` (C, K), and the shift that ``invert`` adds to all non-sensitive symbols (C, 1)."""
        v, (base, slope) = self.num_sensitive, self._affine
        n = np.maximum(counts.num_reports, 1)[:, np.newaxis]
        counted, shift = self.statistic.sums(counts.cells, self.num_symbols, v)
        if v == self.num_symbols:
            raw = (counted / n - base) / slope
        else:
            clear = counts.cells[:, v : self.num_symbols] / n
            sensitive = (counted / n + self._revealed[1] * clear.sum(axis=1, keepdims=True) - base) / slope
            raw = np.concatenate([sensitive, clear / self.kappa], axis=1)
        return np.where(counts.num_reports[:, np.newaxis] > 0, raw, 0.0), shift / n

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        v = self.num_sensitive
        sensitive = self._sensitive_variances(frequencies, frequencies[..., :v])
        if v == self.num_symbols:
            return sensitive
        clear = frequencies[..., v:]
        return np.concatenate([sensitive, clear / self.kappa - clear**2 + self._shift_terms(frequencies)], axis=-1)

    def variances_alone(self, frequencies: np.ndarray) -> np.ndarray:
        variances: np.ndarray = self.variances(frequencies).copy()
        variances[..., self.num_sensitive :] -= self._shift_terms(frequencies)
        return variances

    def null_variances(self, frequencies: np.ndarray) -> np.ndarray:
        sensitive = self._sensitive_variances(frequencies, np.zeros(1))
        return np.where(np.arange(self.num_symbols) < self.num_sensitive, sensitive, 0.0)

    def _expected(self, moments: Moments, sensitive: np.ndarray | float, own: np.ndarray | float) -> np.ndarray:
        """Mean per report over protected reports, for the given shares of sensitive symbols and of the symbol
        itself."""
        mean = self.noise_share * moments.noise + self.kappa * (moments.other * sensitive + moments.step * own)
        return np.asarray(mean)

    def _sensitive_variances(self, frequencies: np.ndarray, own: np.ndarray) -> np.ndarray:
        """n times the variance of sensitive symbols with these own frequencies."""
        sensitive = frequencies[..., : self.num_sensitive].sum(axis=-1, keepdims=True)
        (base, slope), (counted, added) = self._affine, self._revealed
        of_clear = (counted + added**2) * self.kappa * (1 - sensitive)
        mean_squares = self._expected(self.statistic.square, sensitive, own) + of_clear
        variances: np.ndarray = (mean_squares - (base + slope * own) ** 2) / slope**2
        return variances

    def _shift_terms(self, frequencies: np.ndarray) -> np.ndarray:
        """(..., K - v): contribution of the shift of ``invert`` to ``variances`` of non-sensitive symbols."""
        clear = frequencies[..., self.num_sensitive :]
        terms: np.ndarray = 2 * self.statistic.clear_shift * clear + self._shift_variance(frequencies)
        return terms

    def _shift_variance(self, frequencies: np.ndarray) -> np.ndarray:
        """(..., 1): n times the variance of the shift that ``invert`` adds to all non-sensitive symbols."""
        sensitive = frequencies[..., : self.num_sensitive].sum(axis=-1, keepdims=True)
        revealed = self.kappa * (1 - sensitive) * self.statistic.clear_shift**2
        variance: np.ndarray = self._expected(self.statistic.shift, sensitive, 0.0) + revealed
        return variance

    def _pair_terms(self, sensitive: np.ndarray | float) -> tuple[np.ndarray, float]:
        """``base`` and ``slope`` of n times the covariance of two sensitive symbols,

            base + slope (p_x + p_y) - q_x q_y    with q = miss / delta + p,

        where ``sensitive`` is the share of people with sensitive symbols; miss and delta are those of the statistic.
        """
        (counted, added), (_, slope), product = self._revealed, self._affine, self.statistic.product
        base = self._expected(product, sensitive, 0.0) + (counted**2 + added**2) * self.kappa * (1 - sensitive)
        return base / slope**2, self.kappa * product.step / slope**2

    def private_variances(self, frequencies: np.ndarray) -> np.ndarray:
        p = frequencies[..., : self.num_sensitive]
        (null, step), (base, slope) = self._affine, self._pair_terms(p.sum(axis=-1, keepdims=True))
        own = self._sensitive_variances(frequencies, p) + (null / step + p) ** 2
        private: np.ndarray = own - base - 2 * slope * p
        return private

    def variance_of(self, weights: np.ndarray, frequencies: np.ndarray) -> np.ndarray:
        v, (null, step) = self.num_sensitive, self._affine
        p, clear = frequencies[:v], frequencies[v:]
        base, slope = self._pair_terms(p.sum())
        of_sensitive, of_clear = weights[..., :v], weights[..., v:]
        total, mean = of_sensitive.sum(axis=-1), of_sensitive @ p
        offset = of_sensitive @ (null / step + p)
        sensitive = of_sensitive**2 @ self.private_variances(frequencies) + base * total**2 + 2 * slope * total * mean
        revealed = of_clear @ clear
        mixed = 2 * revealed * (total * (self.statistic.mean.other - null) / step - mean)
        variance: np.ndarray = sensitive - offset**2 + mixed + of_clear**2 @ clear / self.kappa - revealed**2
        variance = variance + self._variance_of_shift(total, mean, of_clear.sum(axis=-1), revealed, frequencies)
        return variance

    def _variance_of_shift(
        self, total: np.ndarray, mean: np.ndarray, clear: np.ndarray, revealed: np.ndarray, frequencies: np.ndarray
    ) -> np.ndarray:
        """Contribution of the shift of ``invert`` to ``variance_of``; all arguments have shape (...).

        Args:
            total, clear: sums of the weights of sensitive symbols and of the others.
            mean, revealed: these weights times the frequencies, summed.
            frequencies: (K,).
        """
        others, shift = 1 - frequencies[: self.num_sensitive].sum(), self.statistic.clear_shift
        in_clear = shift * self.statistic.mean.other * self.kappa * others
        with_sensitive = total * (self._expected(self.statistic.shifted, 1 - others, 0.0) + in_clear)
        with_sensitive = with_sensitive + self.kappa * self.statistic.shifted.step * mean
        with_clear = shift * revealed
        own = clear * self._shift_variance(frequencies)[0]
        added: np.ndarray = clear * (own + 2 * (with_sensitive / self._affine[1] + with_clear))
        return added

    def covariance(self, frequencies: np.ndarray) -> np.ndarray:
        own, factors, core = self.covariance_terms(frequencies)
        covariance: np.ndarray = factors @ core @ factors.T
        covariance.flat[:: self.num_symbols + 1] += own
        return covariance

    def covariance_terms(self, frequencies: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """``covariance`` is ``diag(own) + factors @ core @ factors.T``; the terms are those of ``variance_of``.

        Args:
            frequencies: (K,) summing to 1.

        Returns:
            ``own`` (K,), positive for symbols that people hold; ``factors`` (K, 4), 1 and p for sensitive symbols, then
            1 and p for the others; ``core`` (4, 4), symmetric.
        """
        v, (null, step), kinds = self.num_sensitive, self._affine, self.statistic
        p, clear = frequencies[:v], frequencies[v:]
        sensitive, rest, revealed = float(p.sum()), null / step, (kinds.mean.other - null) / step
        base, slope = self._pair_terms(sensitive)
        in_clear = kinds.clear_shift * kinds.mean.other * self.kappa * (1 - sensitive)
        shifted = (float(self._expected(kinds.shifted, sensitive, 0.0)) + in_clear) / step
        added, shift = self.kappa * kinds.shifted.step / step, kinds.clear_shift
        core = np.array(
            [
                [base - rest**2, slope - rest, shifted, revealed],
                [slope - rest, -1.0, added, -1.0],
                [shifted, added, self._shift_variance(frequencies)[0], shift],
                [revealed, -1.0, shift, -1.0],
            ]
        )
        factors = np.zeros((self.num_symbols, 4))
        factors[:v, 0], factors[:v, 1], factors[v:, 2], factors[v:, 3] = 1, p, 1, clear
        return np.append(self.private_variances(frequencies), clear / self.kappa), factors, core

    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence intervals that are valid for rare symbols too; see ``Mechanism.intervals``.

        If the estimate of a symbol depends on its own count alone, that count is binomial, and the interval is that of
        its probability: always for non-sensitive symbols (except for a shift, to which the interval is extended); for
        sensitive ones unless clear reports correct them. Otherwise it is the score interval, with a variance that is
        quadratic in the symbol's own p.
        """
        cells = counts.cells[0, : self.num_symbols]
        return self._intervals(
            cells, counts.total, lambda: (self.invert(counts)[0], self.null_variances(frequencies)), confidence, strict
        )

    def intervals_of_windows(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: Confidence, strict: bool = False
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.num_cells > self.num_symbols:  # products of matrices depend on the number of windows
            return super().intervals_of_windows(counts, frequencies, confidence, strict)
        of_each = counts.num_reports[:, np.newaxis]
        return self._intervals(
            counts.cells, of_each, lambda: (self.invert(counts), self.null_variances(frequencies)), confidence, strict
        )

    def intervals_at_windows(
        self,
        frequencies: np.ndarray,
        num_reports: np.ndarray,
        whole: np.ufunc,
        confidence: np.ndarray,
        strict: bool = False,
    ) -> tuple[np.ndarray, np.ndarray]:
        if self.num_cells > self.num_symbols:
            return super().intervals_at_windows(frequencies, num_reports, whole, confidence, strict)
        expected = self.expected_counts(frequencies, num_reports, whole)
        low, high = self.intervals_of_windows(expected, frequencies, confidence, strict)
        beside = frequencies - self.invert(expected)
        return low + np.minimum(beside, 0), high + np.maximum(beside, 0)

    def lower_ends_of_everybody(self, num_reports: int, confidence: Confidence, strict: bool = False) -> np.ndarray:
        """See ``Mechanism``: what is expected is the same for all sensitive symbols, and for all others."""
        cells, raw, null = np.zeros(self.num_symbols, dtype=np.int64), *np.zeros((2, self.num_symbols))
        for alike in (slice(0, self.num_sensitive), slice(self.num_sensitive, self.num_symbols)):
            everybody = np.eye(1, self.num_symbols, min(alike.start, self.num_symbols - 1))[0]
            expected, first = self.expected_counts(everybody, num_reports, np.floor), everybody > 0
            cells[alike] = expected.cells[0, : self.num_symbols][first]
            raw[alike], null[alike] = self.invert(expected)[0][first], self.null_variances(everybody)[first]
        low = self._intervals(cells, num_reports, lambda: (raw, null), confidence, strict)[0]
        moved: np.ndarray = low + np.minimum(1 - raw, 0)
        return moved

    def _intervals(
        self,
        cells: np.ndarray,
        n: int | np.ndarray,
        law: Callable[[], tuple[np.ndarray, np.ndarray]],
        confidence: Confidence,
        strict: bool,
    ) -> tuple[np.ndarray, np.ndarray]:
        """See ``intervals``; each symbol by itself.

        Args:
            cells: (..., K) counts.
            n: number of reports; (..., 1) of several windows.
            law: returns the unbiased frequencies (..., K), and n times the variances (..., K) of symbols that nobody
                has.
            confidence, strict: as for ``intervals``.
        """
        v = self.num_sensitive
        low, high = binomial_intervals(cells, n, confidence, strict)
        if self.has_binomial_estimates and v == self.num_symbols:
            return (low - self.miss) / self.delta, (high - self.miss) / self.delta
        (raw, null), clear, own = law(), np.s_[..., v:], np.s_[..., :v]
        low[clear] = np.minimum(low[clear] / self.kappa, raw[clear])
        high[clear] = np.maximum(high[clear] / self.kappa, raw[clear])
        if self.has_binomial_estimates:
            low[own], high[own] = (low[own] - self.miss) / self.delta, (high[own] - self.miss) / self.delta
            return low, high
        low[own], high[own] = score_intervals(
            raw[own],
            null[own] / n,
            self.own_slope / n,
            1 / n,
            self.jumps[own] / n,
            cells[own] / n,
            confidence=np.broadcast_to(confidence, cells.shape)[own],
            strict=strict,
        )
        return low, high

    @property
    def own_slope(self) -> float:
        """Increase of n times the variance of a sensitive symbol per unit of its own frequency p, beside ``- p**2``."""
        null, step = self._affine
        return (self.kappa * self.statistic.square.step / step - 2 * null) / step

    @functools.cached_property
    def jumps(self) -> np.ndarray:
        sensitive = np.arange(self.num_symbols) < self.num_sensitive
        return np.where(sensitive, self.statistic.jump / self._affine[1], 1 / self.kappa)

    @property
    def largest_jump(self) -> float:
        return 1 / min(self.delta, self.kappa)

    @property
    def largest_effects(self) -> np.ndarray:
        kinds, (null, step) = self.statistic, self._affine
        of_sensitive = (float((kinds.weights + kinds.offsets).max()) - null) / step
        of_clear = 1 / self.kappa + kinds.clear_shift
        return np.where(np.arange(self.num_symbols) < self.num_sensitive, of_sensitive, of_clear)

    @property
    def smallest_effects(self) -> np.ndarray:
        """Of a report that does not support the symbol: protected, or clear if the symbol is not the last one."""
        kinds, (null, step) = self.statistic, self._affine
        supports = np.where(kinds.single < 1, 0.0, kinds.weights)  # a set of all symbols leaves none out
        silent, of_clear = float((kinds.offsets + supports).min()), float(kinds.shifts.min())
        if self.num_sensitive < self.num_symbols:
            silent, of_clear = min(silent, self._revealed[1]), min(of_clear, kinds.clear_shift)
        return np.where(np.arange(self.num_symbols) < self.num_sensitive, (silent - null) / step, of_clear)

    def effects_of_sums(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return -self._largest_of_sums(-weights), self._largest_of_sums(weights)

    def _largest_of_sums(self, weights: np.ndarray) -> np.ndarray:
        """Largest effect on weighted sums (..., K): of protected reports of each kind, and of clear ones."""
        v, kinds, (null, step) = self.num_sensitive, self.statistic, self._affine
        own, clear = weights[..., :v] / step, weights[..., v:]
        total, of_clear = own.sum(axis=-1), clear.sum(axis=-1)
        sizes = [self.support_size] if len(kinds.sizes) == 1 else [int(size) for size in kinds.sizes]
        found = [
            (offset - null) * total + _largest_of_supports(own * weight, size) + shift * of_clear
            for weight, offset, shift, size in zip(kinds.weights, kinds.offsets, kinds.shifts, sizes)
        ]
        if clear.shape[-1]:
            beside = _largest_of_supports(own * kinds.weights[0], None if self.clear_rate else 0)
            revealed = clear.max(axis=-1) / self.kappa + kinds.clear_shift * of_clear
            found.append((self._revealed[1] - null) * total + beside + revealed)
        largest: np.ndarray = np.maximum.reduce(found)
        return largest

    @property
    def silence(self) -> float:
        """Contribution of a protected report to n times the frequency of a sensitive symbol that it does not support.

        If reports are of several kinds, it is the average over noise without that support.
        """
        kinds, (null, step) = self.statistic, self._affine
        silent = kinds.noise * (1 - kinds.single)
        return (float(silent @ kinds.offsets) / max(float(silent.sum()), _SMALLEST) - null) / step

    @property
    def floor_rate(self) -> float | None:
        """A rate between phi, if nobody holds another sensitive symbol, and miss, if everybody does."""
        return None if self.clear_rate else min(float(self.noise_rate), self.miss)

    # ------------------------------------------------------------------ likelihood

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes | None:
        """Group equal short reports, and clear ones by cohort and symbol; long reports are rarely equal.

        The noise in a clear report carries no information and is ignored.
        """
        if self.num_hashes > 1:
            return None
        counts: np.ndarray = np.ones(len(payloads))
        cohorts = cohorts.astype(np.int64)
        if self.payload_size <= _SHORT:
            padded = np.zeros((len(payloads), 8 + _SHORT), dtype=np.uint8)
            padded[:, :8] = cohorts[:, np.newaxis].view(np.uint8)
            padded[:, 8 : 8 + self.payload_size] = payloads
            kinds, counts = np.unique(padded.view("<i8,<i8"), return_counts=True)
            cohorts = kinds["f0"]
            payloads = np.ascontiguousarray(kinds["f1"])[:, np.newaxis].view(np.uint8)[:, : self.payload_size]
        clear_symbols, protected = self._sort_out(payloads)
        revealed = clear_symbols >= 0
        places, which = np.unique((cohorts * self.num_symbols + clear_symbols)[revealed], return_inverse=True)
        clear_cohorts, symbols = np.divmod(places, self.num_symbols)
        clear = scipy.sparse.csr_array(
            (np.ones(len(places)), (np.arange(len(places)), symbols)), shape=(len(places), self.num_symbols)
        )
        return Outcomes(
            counts=np.concatenate([counts[~revealed], np.bincount(which, counts[revealed], len(places))]),
            cohorts=np.concatenate([cohorts[~revealed], clear_cohorts]),
            base=np.concatenate([np.ones(protected.shape[0]), np.zeros(len(places))]),
            rows=scipy.sparse.vstack([protected, clear], format="csr") if len(places) else protected,
        )

    def _sort_out(self, payloads: np.ndarray) -> tuple[np.ndarray, scipy.sparse.csr_array]:
        """The symbol of each clear report, -1 for protected ones; and ``gain`` where a protected report supports a
        symbol."""
        v, num_symbols = self.num_sensitive, self.num_symbols
        symbols = np.full(len(payloads), -1, dtype=np.int64)
        indices, lengths = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=np.int64)]
        step = max(1, _DENSE_CELLS // num_symbols)
        for start in range(0, len(payloads), step):
            supported = self.supports(payloads[start : start + step])
            if v < num_symbols:
                clear = supported[:, v:].any(axis=1)
                symbols[start : start + step][clear] = v + supported[clear, v:].argmax(axis=1)
                supported = supported[~clear]
            places = np.flatnonzero(supported)
            indices.append((places % num_symbols).astype(np.int32))
            lengths.append(np.count_nonzero(supported, axis=1))
        index, ends = np.concatenate(indices), np.cumsum(np.concatenate(lengths))
        start_of = np.append(0, ends).astype(np.int32 if len(index) < 1 << 31 else np.int64)
        shape = (len(ends), num_symbols)
        return symbols, scipy.sparse.csr_array((np.full(len(index), self.gain), index, start_of), shape=shape)


def _largest_of_supports(effects: np.ndarray, size: int | None) -> np.ndarray:
    """The largest sum of ``size`` of the effects (..., v); None: of any number of them."""
    chosen = np.maximum(effects, 0) if size is None else np.sort(effects, axis=-1)[..., effects.shape[-1] - size :]
    largest: np.ndarray = chosen.sum(axis=-1)
    return largest
