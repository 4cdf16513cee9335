"""The set-report family: one calculus for almost every mechanism of the field.

A *noise law* g on protected outputs y, each of which supports a set S_y of sensitive symbols, makes a mechanism if
every sensitive symbol is supported equally often, every pair too, and every triple:

    phi = Pr_g(u in S_y),    eta = Pr_g(u' in S_y | u in S_y),    eta3 = Pr_g(three given symbols in S_y) / phi.

The client tosses one coin, of probability kappa = keep_weight / 2**64. Tails: it sends noise y ~ g, whatever its
symbol is. Heads: a sensitive symbol sends y ~ g given that the symbol is supported; a non-sensitive one is sent in
clear. A protected report y then has probability g(y) (1 - kappa) (1 + [x in S_y] kappa / ((1 - kappa) phi)) under
every symbol x, so the odds move by at most 1 + kappa / ((1 - kappa) phi) <= e**epsilon: utility-optimised LDP
(Murakami and Kawamoto 2019, Definition 2). Without non-sensitive symbols this is plain epsilon-LDP.

With ``epsilon_inf`` people report again and again, by two coins. A report drawn as above, with kappa_1 for epsilon_inf,
is the *memo* of a symbol, which the client keeps for ever. Every report is the memo with probability kappa_2, noise
otherwise. One report then has the channel above with kappa = kappa_1 kappa_2, and all reports of a symbol together say
no more than its memo (RAPPOR, Erlingsson, Pihur and Korolova 2014, has this in unary reports).

Letters: n reports, C cohorts, K symbols of which v sensitive, M = K counted cells, W payload bytes. Everything that
follows from (phi, eta, eta3, kappa) is written here, once: the inverse, its variances, covariances and intervals,
the likelihood, the exact channel. A member of the family is one file that says how to draw noise, how to draw it
given a supported symbol, how to count supports in arrays, and what goes on the wire.
"""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse, special

from uldp_transforms.ldp.checks import describe, is_number, require_number
from uldp_transforms.ldp.counts import CohortCounts
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.count_intervals import binomial_intervals, score_intervals
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON, Mechanism
from uldp_transforms.ldp.mechanisms.outcomes import Outcomes
from uldp_transforms.ldp.mechanisms.statistic import Moments, Statistic
from uldp_transforms.ldp.sampling import WORD, WordSource, below, exp_bounds, floor_weight

_DENSE_CELLS = 1 << 24  # of the support matrix of reports that is looked at in one piece
_SMALLEST = 1e-300
_SHORT = 8  # bytes of a payload up to which equal reports are looked for


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetReportMechanism(Mechanism):
    """A member of the family; see the module. Subclasses say what the abstract names ask for.

    Attributes:
        epsilon_inf: the guarantee of all reports of one symbol together, in (epsilon, 16]. None: every report is drawn
            anew, and guarantees add up.
    """

    epsilon_inf: float | None = dataclasses.field(
        default=None,
        metadata={
            "schema": {
                "description": "The guarantee of all reports of one symbol together, above epsilon: clients keep a "
                "memo. Null or absent: every report is drawn anew, and guarantees add up.",
                "type": ["number", "null"],
                "exclusiveMinimum": 0,
                "maximum": int(MAX_EPSILON),
            }
        },
    )

    def check_own_fields(self) -> None:
        if self.epsilon_inf is None:
            return
        where, given = f"{type(self).__name__}.epsilon_inf", self.epsilon_inf
        if self.declares_priors or self.num_hashes > 1:
            raise SpecError(
                f"{where} must be absent with declared priors or several hash functions, got {describe(given)}"
            )
        ok = is_number(given) and self.epsilon < given <= MAX_EPSILON
        require_number(where, given, f"a number above epsilon = {self.epsilon:g}, at most {MAX_EPSILON:g}", ok)
        object.__setattr__(self, "epsilon_inf", float(given))

    # ------------------------------------------------------------------ what a member of the family says

    @property
    def support_size(self) -> int | None:
        """How many symbols every protected report supports; None if reports differ in that."""
        return None

    @property
    @abc.abstractmethod
    def noise_rate(self) -> Fraction:
        """phi, exactly."""

    @property
    @abc.abstractmethod
    def pair_rate(self) -> Fraction:
        """eta, exactly."""

    @property
    @abc.abstractmethod
    def triple_rate(self) -> Fraction:
        """eta3, exactly."""

    @property
    @abc.abstractmethod
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        """Of the protected reports y that some symbols have support in and others have not, those with the least g(y).

        One for each factor by which support makes reports likelier: (g(y), the factor, 1 / phi).
        """

    @property
    @abc.abstractmethod
    def memo_sampler(self) -> dict[str, Any]:
        """``client_sampler`` of reports that are drawn anew, or of memos."""

    @property
    def clear_rate(self) -> Fraction:
        """Probability that a clear report is counted for a given sensitive symbol; 0 unless it carries noise too."""
        return Fraction(0)

    @abc.abstractmethod
    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        """Protected payloads y ~ g, or y ~ g given that the symbol is supported; run by the client.

        Both in one call, so that the client draws each word once and in one order.

        Args:
            symbols: (n,) int64; to be ignored where nothing is given.
            given: (n,) bool, where y has to support the symbol, which is sensitive there.
            source: of random words.

        Returns:
            (n, W) uint8.
        """

    @abc.abstractmethod
    def reveal(self, payloads: np.ndarray, rows: np.ndarray, symbols: np.ndarray) -> None:
        """Turn noise into reports in clear, in place; run by the client.

        Args:
            payloads: (n, W) uint8.
            rows: (m,) int64, which of them.
            symbols: (m,) int64, not sensitive: what these reveal.
        """

    @abc.abstractmethod
    def supports(self, payloads: np.ndarray) -> np.ndarray:
        """(n, K) bool: x in S_y for x < v, whatever else the report says; x = z for clear reports of z."""

    @abc.abstractmethod
    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) float64: ln of the probability of what is noise: g(y) for protected reports, 1 for clear ones."""

    @abc.abstractmethod
    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        """Every protected payload with its exact g(y) and S_y. For small instances: there may be 2**v."""

    @abc.abstractmethod
    def clear_law(self, symbol: int) -> Iterator[tuple[bytes, Fraction]]:
        """Every payload that reveals a non-sensitive symbol, with its share among these."""

    def boost(self, support_size: int) -> Fraction:
        """How much likelier, given that one of its symbols is supported, a report is that supports so many: 1 / phi.

        A sampler whose integers cannot hit that exactly says what it draws instead.
        """
        return 1 / self.noise_rate

    @property
    def largest_boost(self) -> Fraction:
        """The largest ``boost`` of any report."""
        return 1 / self.noise_rate

    # ------------------------------------------------------------------ what follows for all of them

    @property
    def coin_epsilon(self) -> float:
        """What the first coin keeps: the budget of the memo, or of the report if there is none."""
        return self.epsilon if self.epsilon_inf is None else self.epsilon_inf

    @functools.cached_property
    def keep_weight(self) -> int:
        """kappa_1 * 2**64, rounded towards privacy: kappa_1 / ((1 - kappa_1) phi) <= e**coin_epsilon - 1."""
        return floor_weight(self._coin(self.coin_epsilon))

    @functools.cached_property
    def repeat_weight(self) -> int:
        """kappa_2 * 2**64, rounded towards privacy: kappa_1 kappa_2 is at most kappa of epsilon. Without memos: 1."""
        return WORD if self.epsilon_inf is None else min(floor_weight(self._second_coin), WORD - 1)

    def _coin(self, epsilon: float) -> Fraction:
        """The largest kappa that this epsilon allows."""
        gain = (exp_bounds(epsilon)[0] - 1) / self.largest_boost
        return gain / (1 + gain)

    @property
    def _second_coin(self) -> Fraction:
        """The largest kappa_2."""
        return self._coin(self.epsilon) * WORD / self.keep_weight if self.keep_weight else Fraction(0)

    @property
    def informative(self) -> Fraction:
        """kappa = kappa_1 kappa_2, exactly: the probability that a report comes from the value."""
        return Fraction(self.keep_weight * self.repeat_weight, WORD**2)

    @property
    def has_signal(self) -> bool:
        return self.keep_weight >= 1 and self.repeat_weight >= 1

    @property
    def memo(self) -> SetReportMechanism:
        """How memos are drawn: the same noise and the first coin alone. Its ``exact_ratio`` is that of a lifetime.

        The fields are the same, so it compares equal: do not look things up by it.
        """
        memo = object.__new__(type(self))
        vars(memo).update({field.name: getattr(self, field.name) for field in dataclasses.fields(self)})
        vars(memo)["repeat_weight"] = WORD
        return memo

    @property
    def client_sampler(self) -> dict[str, Any]:
        if self.epsilon_inf is None:
            return self.memo_sampler
        return {"sampler": "memo", "repeat_weight": str(self.repeat_weight), "memo": self.memo_sampler}

    def draw_noise(self, num_reports: int, source: WordSource) -> np.ndarray:
        """Protected payloads y ~ g, (num_reports, W) uint8: what clients send whose coin shows tails."""
        nothing = np.zeros(num_reports, dtype=np.int64)
        return self.draw_protected(nothing, nothing.astype(bool), source)

    def draw_supporting(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """Protected payloads y ~ g given that a symbol is supported: sensitive symbols (n,) to (n, W) uint8.

        That is what clients with these symbols send whose coin shows heads.
        """
        return self.draw_protected(symbols, np.ones(len(symbols), dtype=bool), source)

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """See ``Mechanism.perturb``. With ``epsilon_inf`` every report has a memo of its own, which is forgotten.

        That is for simulation. Clients keep their memos: ``uldp_transforms.ldp.Client``.
        """
        payloads = self.draw_memos(symbols, source)
        return payloads if self.epsilon_inf is None else self.draw_reports(payloads, source)

    def draw_reports(self, memos: np.ndarray, source: WordSource) -> np.ndarray:
        """The second coin of each report, then noise, which takes the place of the memo if the coin shows tails.

        Args:
            memos: (n, W) uint8, of ``draw_memos``.
            source: of random words, fresh for every report.

        Returns:
            (n, W) uint8.
        """
        repeated = below(source.words(len(memos)), self.repeat_weight)
        return np.where(repeated[:, np.newaxis], memos, self.draw_noise(len(memos), source))

    def draw_memos(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """The first coin of each report, then noise or what the symbol asks for: (n,) symbols to (n, W) uint8.

        All coins are drawn first, and a clear report draws its noise too.
        """
        heads = below(source.words(len(symbols)), self.keep_weight)
        sensitive = symbols < self.num_sensitive
        payloads = self.draw_protected(symbols, heads & sensitive, source)
        if self.num_sensitive < self.num_symbols:
            clear = np.flatnonzero(heads & ~sensitive)
            self.reveal(payloads, clear, symbols[clear])
        return payloads

    @property
    def exact_ratio(self) -> Fraction:
        """1 + kappa / ((1 - kappa) phi), for every protected report: g(y) cancels."""
        return 1 + self.informative / (1 - self.informative) * self.largest_boost

    def ratio_after(self, num_reports: int) -> Fraction:
        """The largest ratio of the probabilities of so many protected reports of one person, whose symbol stays.

        With memos it is reached where one and the same rare report comes every time: with g its probability as noise,

            1 + (e**epsilon_inf - 1) c / (1 + c),    c = g (1 - kappa_1) ((1 + kappa_2 / ((1 - kappa_2) g))**n - 1).

        For given reports the ratio has the sum over all memos of such c, which are convex in how often each came.
        """
        if self.epsilon_inf is None:
            return self.exact_ratio**num_reports
        repeat, first = Fraction(self.repeat_weight, WORD), self.memo.informative
        found = []
        for noise, factor in self.rarest:
            weight = noise * (1 - first) * ((1 + repeat / (1 - repeat) / noise) ** num_reports - 1)
            found.append(1 + first / (1 - first) * factor * weight / (1 + weight))
        return max(found)

    def epsilon_after(self, num_reports: int) -> float:
        """ln of ``ratio_after``, in floating point, so that many reports take no longer than one."""
        if self.epsilon_inf is None:
            return super().epsilon_after(num_reports)
        repeat, first = Fraction(self.repeat_weight, WORD), self.memo.informative
        found = []
        for noise, factor in self.rarest:
            growth = num_reports * np.logaddexp(0.0, _logarithm(repeat / (1 - repeat) / noise))
            log_weight = _logarithm(noise * (1 - first)) + growth + math.log(-math.expm1(-growth))
            found.append(math.log1p(float(first / (1 - first) * factor) * float(special.expit(log_weight))))
        return max(found)

    @property
    def caveats(self) -> list[str]:
        found = []
        if self.num_sensitive < self.num_symbols:
            share = f"each is sent in clear with probability {self.kappa:.6g}"
            found.append(f"Non-sensitive symbols are not protected: {share}.")
        if self.epsilon_inf is not None:
            found.append("Memos are kept for each symbol: that a symbol changes, and when, is not protected.")
        return found

    @property
    def exact_weights(self) -> dict[str, int | str]:
        weights: dict[str, int | str] = {"keep_weight": self.keep_weight, "noise_rate": str(self.noise_rate)}
        return weights if self.epsilon_inf is None else weights | {"repeat_weight": self.repeat_weight}

    @functools.cached_property
    def kappa(self) -> float:
        """Probability of an informative report."""
        return float(self.informative)

    @functools.cached_property
    def noise_share(self) -> float:
        """1 - kappa, also where kappa is so near to 1 that the difference would be 0."""
        return float(1 - self.informative)

    @property
    def reveal_rate(self) -> float:
        return self.kappa

    @functools.cached_property
    def gain(self) -> float:
        """What support adds to the probability of a report: Q(y | x in S_y) / Q(y | x not in S_y) - 1."""
        return float(self.informative / (1 - self.informative) / self.noise_rate)

    @property
    def effective_epsilon(self) -> float:
        return math.log1p(self.gain)

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
        """Rate at which clear reports are counted for a sensitive symbol, and what is added to bring it to that of
        informative reports of another one, eta for plain supports."""
        return float(self.clear_rate), self.statistic.mean.other - float(self.clear_rate)

    def log_prob(self, payloads: np.ndarray) -> np.ndarray:
        supported = self.supports(payloads)
        clear = supported[:, self.num_sensitive :].any(axis=1, keepdims=True)
        bonus = self.kappa / float(self.noise_rate)
        noise = self.log_noise(payloads)[:, np.newaxis]
        revealed = supported & (np.arange(self.num_symbols) >= self.num_sensitive)
        with np.errstate(divide="ignore"):
            factor = np.where(clear, self.kappa * revealed, self.noise_share + bonus * supported)
            return noise + np.log(factor)

    def channel(self) -> tuple[list[bytes], list[list[Fraction]]]:
        kappa = self.informative
        payloads, rows = [], []
        for payload, noise, support in self.noise_law():
            kept = noise * kappa * self.boost(len(support))
            payloads.append(payload)
            rows.append([noise * (1 - kappa) + (kept if x in support else 0) for x in range(self.num_symbols)])
        for z in range(self.num_sensitive, self.num_symbols):
            for payload, share in self.clear_law(z):
                payloads.append(payload)
                rows.append([kappa * share if x == z else Fraction(0) for x in range(self.num_symbols)])
        return payloads, rows

    @functools.cached_property
    def statistic(self) -> Statistic:
        """Which linear function of the counts estimates frequencies: supports, unless a member knows better."""
        return Statistic.of_supports(self.noise_rate, self.pair_rate, self.triple_rate)

    @functools.cached_property
    def _affine(self) -> tuple[float, float]:
        """Mean of what one report adds to the statistic of a sensitive symbol that nobody holds, as clear reports are
        made up for, and by how much it is larger for a holder; of plain supports ``miss`` and ``delta``."""
        mean = self.statistic.mean
        return self.noise_share * mean.noise + self.kappa * mean.other, self.kappa * mean.step

    @property
    def has_binomial_estimates(self) -> bool:
        """True if the estimate of each symbol is an affine function of that symbol's count alone."""
        alone = self.num_sensitive == self.num_symbols or not self._revealed[1]
        return alone and self.num_cells == self.num_symbols

    def response(self, frequencies: np.ndarray) -> np.ndarray:
        """mu_x for x < v, kappa p_z for z >= v; then mu_x of each kind of report but the first; see ``Mechanism``."""
        v, kinds = self.num_sensitive, self.statistic
        own, sensitive = frequencies[..., :v], frequencies[..., :v].sum(axis=-1, keepdims=True)
        later = [
            self.noise_share * noise * single + self.kappa * share * (own + pair * (sensitive - own))
            for noise, share, single, pair in list(zip(kinds.noise, kinds.own, kinds.single, kinds.pair))[1:]
        ]
        base = self._null_response(frequencies)
        return np.concatenate([base + self.delta * own, self.kappa * frequencies[..., v:], *later], axis=-1)

    def _null_response(self, frequencies: np.ndarray) -> np.ndarray:
        """(..., 1): how often a sensitive symbol is counted that nobody holds."""
        sensitive = frequencies[..., : self.num_sensitive].sum(axis=-1, keepdims=True)
        others = float(self.pair_rate) * sensitive
        if self._revealed[0]:
            others = others + self._revealed[0] * frequencies[..., self.num_sensitive :].sum(axis=-1, keepdims=True)
        counted: np.ndarray = self.noise_share * float(self.noise_rate) + self.kappa * others
        return counted

    def invert(self, counts: CohortCounts) -> np.ndarray:
        """Unbiased symbol frequencies; see ``Mechanism.invert``.

        Revealed-aware: a clear report says "not sensitive" with certainty, and that is used. With X the statistic of
        x and Z the shift, of plain supports c_x and 0,

            p_x = (X / n + eta R / n - miss) / delta,    p_z = R_z / (n kappa) + Z / n,    R = sum of the R_z

        Where clear reports carry noise that is counted too (``clear_rate``), eta is replaced by eta - clear_rate.
        """
        raw, shift = self._inverted(counts)
        raw[:, self.num_sensitive :] += shift
        return raw

    def invert_alone(self, counts: CohortCounts) -> np.ndarray:
        return self._inverted(counts)[0]

    def _inverted(self, counts: CohortCounts) -> tuple[np.ndarray, np.ndarray]:
        """``invert_alone`` (C, K), and what ``invert`` adds to all non-sensitive symbols (C, 1)."""
        v, (base, slope) = self.num_sensitive, self._affine
        n = np.maximum(counts.num_reports, 1)[:, np.newaxis]
        counted, shift = self.statistic.sums(counts.cells, self.num_symbols, v)
        clear = counts.cells[:, v : self.num_symbols] / n
        sensitive = (counted / n + self._revealed[1] * clear.sum(axis=1, keepdims=True) - base) / slope
        raw = np.concatenate([sensitive, clear / self.kappa], axis=1)
        return np.where(counts.num_reports[:, np.newaxis] > 0, raw, 0.0), shift / n

    def variances(self, frequencies: np.ndarray) -> np.ndarray:
        v = self.num_sensitive
        sensitive = self._sensitive_variances(frequencies, frequencies[..., :v])
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
        """Mean per report over protected reports if people hold sensitive symbols, and one of these, so often."""
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
        """(..., K - v): what the shift of ``invert`` adds to ``variances`` of non-sensitive symbols."""
        clear = frequencies[..., self.num_sensitive :]
        terms: np.ndarray = 2 * self.statistic.clear_shift * clear + self._shift_variance(frequencies)
        return terms

    def _shift_variance(self, frequencies: np.ndarray) -> np.ndarray:
        """(..., 1): n times the variance of what ``invert`` adds to all non-sensitive symbols."""
        sensitive = frequencies[..., : self.num_sensitive].sum(axis=-1, keepdims=True)
        revealed = self.kappa * (1 - sensitive) * self.statistic.clear_shift**2
        variance: np.ndarray = self._expected(self.statistic.shift, sensitive, 0.0) + revealed
        return variance

    def _pair_terms(self, sensitive: np.ndarray) -> tuple[np.ndarray, float]:
        """``base`` and ``slope`` of n times the covariance of two sensitive symbols,

            base + slope (p_x + p_y) - q_x q_y    with q = miss / delta + p,

        where ``sensitive`` is the share of people with sensitive symbols; miss and delta are those of the statistic.
        """
        (counted, added), (_, slope), product = self._revealed, self._affine, self.statistic.product
        base = self._expected(product, sensitive, 0.0) + (counted**2 + added**2) * self.kappa * (1 - sensitive)
        return base / slope**2, self.kappa * product.step / slope**2

    def private_variances(self, frequencies: np.ndarray) -> np.ndarray:
        """The part of ``variances`` of the sensitive symbols that is not shared between them.

        On contrasts between sensitive symbols the covariance matrix of ``invert`` acts as ``diag(private) - p p^T``;
        centred least squares uses exactly that.

        Args:
            frequencies: (..., K) summing to 1.

        Returns:
            (..., v).
        """
        p = frequencies[..., : self.num_sensitive]
        (null, step), (base, slope) = self._affine, self._pair_terms(p.sum(axis=-1, keepdims=True))
        own = self.variances(frequencies)[..., : self.num_sensitive] + (null / step + p) ** 2
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
        """What the shift of ``invert`` adds to ``variance_of``, all numbers of shape (...).

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

    def intervals(
        self, counts: CohortCounts, frequencies: np.ndarray, confidence: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """Confidence intervals that hold for rare symbols too; see ``Mechanism.intervals``.

        Where the estimate of a symbol is a function of its own count alone, that count is binomial, and the interval is
        that of its probability: non-sensitive symbols always (but for a shift, which the interval is extended to
        reach); sensitive ones unless clear reports correct them. Else it is the score interval, the variance being
        quadratic in the own p.
        """
        v, n, cells = self.num_sensitive, counts.total, counts.cells[0, : self.num_symbols]
        low, high = binomial_intervals(cells, n, confidence)
        raw = self.invert(counts)[0]
        low[v:], high[v:] = np.minimum(low[v:] / self.kappa, raw[v:]), np.maximum(high[v:] / self.kappa, raw[v:])
        if self.has_binomial_estimates:
            low[:v], high[:v] = (low[:v] - self.miss) / self.delta, (high[:v] - self.miss) / self.delta
            return low, high
        null, step = self._affine
        slope = (self.kappa * self.statistic.square.step / step - 2 * null) / step
        variance, jump = self.null_variances(frequencies)[:v] / n, self.jumps[:v] / n
        low[:v], high[:v] = score_intervals(
            raw[:v], variance, slope / n, 1 / n, jump, cells[:v] / n, confidence=confidence
        )
        return low, high

    @property
    def jumps(self) -> np.ndarray:
        sensitive = np.arange(self.num_symbols) < self.num_sensitive
        return np.where(sensitive, self.statistic.jump / self._affine[1], 1 / self.kappa)

    @property
    def largest_effects(self) -> np.ndarray:
        kinds, (null, step) = self.statistic, self._affine
        of_sensitive = (float((kinds.weights + kinds.offsets).max()) - null) / step
        of_clear = 1 / self.kappa + kinds.clear_shift
        return np.where(np.arange(self.num_symbols) < self.num_sensitive, of_sensitive, of_clear)

    @property
    def silence(self) -> float:
        """What a protected report adds to n times the frequency of a sensitive symbol that it does not support.

        On average over noise that does not, if reports are of several kinds.
        """
        kinds, (null, step) = self.statistic, self._affine
        silent = kinds.noise * (1 - kinds.single)
        return (float(silent @ kinds.offsets) / max(float(silent.sum()), _SMALLEST) - null) / step

    @property
    def floor_rate(self) -> float | None:
        """phi if nobody, miss if everybody holds another sensitive symbol; between these otherwise."""
        return None if self.clear_rate else min(float(self.noise_rate), self.miss)

    # ------------------------------------------------------------------ likelihood

    def outcomes_of_reports(self, payloads: np.ndarray, cohorts: np.ndarray) -> Outcomes | None:
        """Equal short reports together, clear ones by cohort and symbol; long ones are hardly ever equal.

        The noise in a clear report says nothing and is left out.
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
        clear = sparse.csr_array(
            (np.ones(len(places)), (np.arange(len(places)), symbols)), shape=(len(places), self.num_symbols)
        )
        return Outcomes(
            counts=np.concatenate([counts[~revealed], np.bincount(which, counts[revealed], len(places))]),
            cohorts=np.concatenate([cohorts[~revealed], clear_cohorts]),
            base=np.concatenate([np.ones(protected.shape[0]), np.zeros(len(places))]),
            rows=sparse.vstack([protected, clear], format="csr") if len(places) else protected,
        )

    def _sort_out(self, payloads: np.ndarray) -> tuple[np.ndarray, sparse.csr_array]:
        """The symbol of each clear report, -1 for protected ones; and ``gain`` where the latter support a symbol."""
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
        return symbols, sparse.csr_array((np.full(len(index), self.gain), index, start_of), shape=shape)


def _logarithm(fraction: Fraction) -> float:
    """Also of a fraction that is 0 as a float."""
    return math.log(fraction.numerator) - math.log(fraction.denominator)
