"""Channel of the set-report family: a noise distribution and two coins, in integers and fractions.

A *noise law* (probability distribution) g on protected outputs y, each of which supports a set S_y of sensitive
symbols, defines a mechanism if every sensitive symbol is supported with the same probability, and so is every pair and
every triple:

    phi = Pr_g(u in S_y),    eta = Pr_g(u' in S_y | u in S_y),    eta3 = Pr_g(three given symbols in S_y) / phi.

The client tosses one coin with probability kappa = keep_weight / 2**64. Tails: it sends noise y ~ g, independent of its
symbol. Heads: a sensitive symbol sends y ~ g given that the symbol is supported; a non-sensitive one is sent in clear.
A protected report y then has probability g(y) (1 - kappa) (1 + [x in S_y] kappa / ((1 - kappa) phi)) under every symbol
x, so the odds change by at most 1 + kappa / ((1 - kappa) phi) <= e**epsilon: utility-optimised LDP (Murakami and
Kawamoto 2019, Definition 2). Without non-sensitive symbols this is plain epsilon-LDP.

With ``epsilon_inf`` people report repeatedly, with two coins. A report drawn as above, with kappa_1 for epsilon_inf, is
the *memo* of a symbol (permanent randomized response), which the client keeps for ever. Every report is the memo with
probability kappa_2, and noise otherwise. One report then has the channel above with kappa = kappa_1 kappa_2, and all
reports of a symbol together reveal no more than its memo (RAPPOR, Erlingsson, Pihur and Korolova 2014, for unary
reports).

Notation: n reports, K symbols, v of them sensitive, W payload bytes.
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
import scipy

from uldp_transforms.ldp.checks import describe, is_number, require_number
from uldp_transforms.ldp.errors import SpecError
from uldp_transforms.ldp.mechanisms.mechanism import MAX_EPSILON, Mechanism
from uldp_transforms.ldp.sampling import WORD, WordSource, below, exp_bounds, floor_weight


@dataclasses.dataclass(frozen=True, kw_only=True)
class SetChannel(Mechanism):
    """The client's half of a member of the family; see the module. Members implement the abstract methods.

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
        if self.names_values or self.num_hashes > 1:
            raise SpecError(
                f"{where} must be absent with declared priors or several hash functions, got {describe(given)}"
            )
        ok = is_number(given) and self.epsilon < given <= MAX_EPSILON
        require_number(where, given, f"a number above epsilon = {self.epsilon:g}, at most {MAX_EPSILON:g}", ok)
        object.__setattr__(self, "epsilon_inf", float(given))

    # ------------------------------------------------------------------ defined by each member of the family

    @property
    def support_size(self) -> int | None:
        """Number of symbols that every protected report supports; None if the number varies."""
        return None

    @property
    @abc.abstractmethod
    def noise_rate(self) -> Fraction:
        """phi, as an exact fraction."""

    @property
    @abc.abstractmethod
    def pair_rate(self) -> Fraction:
        """eta, as an exact fraction."""

    @property
    @abc.abstractmethod
    def triple_rate(self) -> Fraction:
        """eta3, as an exact fraction."""

    @property
    @abc.abstractmethod
    def rarest(self) -> list[tuple[Fraction, Fraction]]:
        """The protected reports y with the least g(y), among those that support some symbols but not all.

        One for each factor by which support raises the probability of a report: (g(y), the factor, 1 / phi).
        """

    @property
    @abc.abstractmethod
    def memo_sampler(self) -> dict[str, Any]:
        """``client_sampler`` for memos, or for reports that are drawn anew."""

    @property
    def clear_rate(self) -> Fraction:
        """Probability that a clear report is counted for a given sensitive symbol; 0 unless it carries noise too."""
        return Fraction(0)

    @abc.abstractmethod
    def draw_protected(self, symbols: np.ndarray, given: np.ndarray, source: WordSource) -> np.ndarray:
        """Protected payloads y ~ g, or y ~ g given that the symbol is supported; run by the client.

        One call draws both kinds, so that the client draws each word once and in one order.

        Args:
            symbols: (n,) int64; ignored where ``given`` is False.
            given: (n,) bool, where y must support the symbol, which is sensitive there.
            source: source of random words.

        Returns:
            (n, W) uint8.
        """

    @abc.abstractmethod
    def reveal(self, payloads: np.ndarray, rows: np.ndarray, symbols: np.ndarray) -> None:
        """Replace noise by clear reports, in place; run by the client.

        Args:
            payloads: (n, W) uint8.
            rows: (m,) int64, positions of the reports to replace.
            symbols: (m,) int64, the non-sensitive symbols to reveal.
        """

    @abc.abstractmethod
    def supports(self, payloads: np.ndarray) -> np.ndarray:
        """(n, K) bool: x in S_y for x < v, for any other content of the report; x = z for clear reports of z."""

    @abc.abstractmethod
    def log_noise(self, payloads: np.ndarray) -> np.ndarray:
        """(n,) float64: ln of the probability under noise: g(y) for protected reports, 1 for clear ones."""

    @abc.abstractmethod
    def noise_law(self) -> Iterator[tuple[bytes, Fraction, frozenset[int]]]:
        """Every protected payload with its exact g(y) and S_y. For small instances: there can be 2**v payloads."""

    @abc.abstractmethod
    def clear_law(self, symbol: int) -> Iterator[tuple[bytes, Fraction]]:
        """Every payload that reveals a non-sensitive symbol, with its conditional probability."""

    def boost(self, support_size: int) -> Fraction:
        """Factor by which a known support raises the probability of a report with this support size: 1 / phi.

        Samplers whose integers cannot represent this factor exactly return the factor that they use.
        """
        return 1 / self.noise_rate

    @property
    def largest_boost(self) -> Fraction:
        """The largest ``boost`` of any report."""
        return 1 / self.noise_rate

    # ------------------------------------------------------------------ derived for all members

    @property
    def coin_epsilon(self) -> float:
        """Epsilon of the first coin: that of the memo, or of the report if there is no memo."""
        return self.epsilon if self.epsilon_inf is None else self.epsilon_inf

    @functools.cached_property
    def keep_weight(self) -> int:
        """kappa_1 * 2**64, rounded in favour of privacy: kappa_1 / ((1 - kappa_1) phi) <= e**coin_epsilon - 1."""
        return floor_weight(self._coin(self.coin_epsilon))

    @functools.cached_property
    def repeat_weight(self) -> int:
        """kappa_2 * 2**64, rounded in favour of privacy: kappa_1 kappa_2 is at most kappa of epsilon. Without memos:
        1."""
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
    def memo(self) -> SetChannel:
        """The mechanism that draws memos: same noise, first coin only. Its ``exact_ratio`` is that of all reports
        together.

        Its fields are the same, so it compares equal: do not use it as a key.
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
        """Protected payloads y ~ g, (num_reports, W) uint8, for clients whose coin shows tails."""
        nothing = np.zeros(num_reports, dtype=np.int64)
        return self.draw_protected(nothing, nothing.astype(bool), source)

    def perturb(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """See ``Mechanism.perturb``. With ``epsilon_inf`` every report has a new memo, which is not kept.

        This is for simulations. Clients keep their memos: ``uldp_transforms.ldp.Client``.
        """
        payloads = self.draw_memos(symbols, source)
        return payloads if self.epsilon_inf is None else self.draw_reports(payloads, source)

    def draw_reports(self, memos: np.ndarray, source: WordSource) -> np.ndarray:
        """Toss the second coin of each report, and replace the memo by noise if it shows tails.

        Args:
            memos: (n, W) uint8, from ``draw_memos``.
            source: source of random words, fresh for every report.

        Returns:
            (n, W) uint8.
        """
        repeated = below(source.words(len(memos)), self.repeat_weight)
        return np.where(repeated[:, np.newaxis], memos, self.draw_noise(len(memos), source))

    def draw_memos(self, symbols: np.ndarray, source: WordSource) -> np.ndarray:
        """Toss the first coin of each report, then draw noise or a report of the symbol: symbols (n,) to (n, W) uint8.

        All coins are drawn first, and noise is drawn for clear reports too.
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
        """The largest ratio of the probabilities of ``num_reports`` protected reports of a person with a constant
        symbol.

        With memos, the maximum is reached if the same rare report is sent every time: with g its probability as noise,

            1 + (e**epsilon_inf - 1) c / (1 + c),    c = g (1 - kappa_1) ((1 + kappa_2 / ((1 - kappa_2) g))**n - 1).

        For given reports the ratio contains the sum over all memos of such c, which are convex in the number of each
        report.
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
        """ln of ``ratio_after``, in floating point, in a time that does not depend on the number of reports."""
        if self.epsilon_inf is None:
            return super().epsilon_after(num_reports)
        repeat, first = Fraction(self.repeat_weight, WORD), self.memo.informative
        found = []
        for noise, factor in self.rarest:
            growth = num_reports * np.logaddexp(0.0, _logarithm(repeat / (1 - repeat) / noise))
            log_weight = _logarithm(noise * (1 - first)) + growth + math.log(-math.expm1(-growth))
            found.append(math.log1p(float(first / (1 - first) * factor) * float(scipy.special.expit(log_weight))))
        return max(found)

    @property
    def caveats(self) -> list[str]:
        found = super().caveats
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
        """1 - kappa, accurate also if kappa is so near to 1 that the difference would be 0."""
        return float(1 - self.informative)

    @property
    def reveal_rate(self) -> float:
        return self.kappa

    @functools.cached_property
    def gain(self) -> float:
        """Relative increase of a report's probability by support: Q(y | x in S_y) / Q(y | x not in S_y) - 1."""
        return float(self.informative / (1 - self.informative) / self.noise_rate)

    @property
    def effective_epsilon(self) -> float:
        return math.log1p(self.gain)

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


def _logarithm(fraction: Fraction) -> float:
    """Natural logarithm, also of a fraction that underflows as a float."""
    return math.log(fraction.numerator) - math.log(fraction.denominator)
